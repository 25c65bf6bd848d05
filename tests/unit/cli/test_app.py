"""How the program ends: which errors are the machine's, and what is said about what is left."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from boardcluster.cli import main
from boardcluster.cli.app import COMMANDS, PANELS, Stopped, app
from boardcluster.errors import DaemonError


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Give back the handlers that the program replaces."""
    every = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(one) for one in every]
    yield
    for one, handler in zip(every, before, strict=True):
        signal.signal(one, handler)


def _end(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[object, str]:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(sys.modules[Stopped.__module__], "app", fail)
    with pytest.raises(SystemExit) as stopped:
        main([])
    return stopped.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    "number",
    [
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.ENOTDIR,
        errno.ENAMETOOLONG,
    ],
)
def test_what_the_machine_refuses_is_no_defect(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = OSError(number, os.strerror(number), "/some/file")
    code, text = _end(error, monkeypatch, capsys)
    assert code == 5
    assert "/some/file" in text
    assert "->" in text
    assert "Traceback" not in text


def test_a_full_disk_without_a_file_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = _end(OSError(errno.ENOSPC, "No space left"), monkeypatch, capsys)
    assert code == 5
    assert "the disk became full" in text


@pytest.mark.parametrize("error", [OSError(errno.EBADF, "bad"), OSError("odd"), KeyError("x")])
def test_anything_else_is_a_defect(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = _end(error, monkeypatch, capsys)
    assert code == 70
    assert "Traceback" in text


def test_ctrl_c_says_that_all_was_ended_only_if_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _end(Stopped(130), monkeypatch, capsys) == (
        130,
        "\nstopped: everything that this command started has been stopped\n",
    )
    left = Stopped(143)
    left.add_note("not everything could be ended: run `boardcluster down`")
    assert _end(left, monkeypatch, capsys) == (
        143,
        "\nstopped: not everything could be ended: run `boardcluster down`\n",
    )


def test_a_terminal_that_was_closed_does_not_stop_the_cleaning_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A shell that ends sends SIGHUP twice, and then nothing can be written any more."""

    class Closed:
        def write(self, _: str) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    program = sys.modules[Stopped.__module__]
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever the tests were started with
    with pytest.raises(Stopped):
        program._on_signal(signal.SIGHUP, None)
    monkeypatch.setattr(sys, "stderr", Closed())
    os.kill(os.getpid(), signal.SIGHUP)


@pytest.mark.parametrize("ignored", [True, False])
def test_nohup_keeps_a_command_from_ending_with_its_terminal(
    ignored: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    program = sys.modules[Stopped.__module__]
    monkeypatch.setattr(program, "app", lambda **_: os.kill(os.getpid(), signal.SIGHUP))
    if ignored:
        main([])
        return
    with pytest.raises(Stopped) as stopped:
        main([])
    assert stopped.value.code == 143
    assert "stopped" in capsys.readouterr().err


def test_an_error_also_says_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = DaemonError("the namenode died", hint="look")
    error.add_note("run `boardcluster down`")
    code, text = _end(error, monkeypatch, capsys)
    assert code == 7
    assert text.endswith("run `boardcluster down`\n")


@pytest.mark.parametrize("option", ["--home", "--cache"])
def test_a_file_where_a_folder_should_be(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "text").write_text("words\n")
    command = ["init"] if option == "--home" else ["data", "text", str(tmp_path / "text")]
    with pytest.raises(SystemExit) as stopped:
        main([*command, option, str(tmp_path / "file")])
    assert stopped.value.code == 5
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_a_name_that_is_too_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["init"], ["status"], ["run", "wordcount"], ["down"]):
        with pytest.raises(SystemExit) as stopped:
            main([*command, "--home", str(tmp_path / ("x" * 300))])
        # In some versions of Python, asking whether such a path exists is already refused.
        assert stopped.value.code in ({5} if command == ["init"] else {3, 5, 7})
        assert "Traceback" not in capsys.readouterr().err


def test_a_mistyped_home_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.py").write_text("print()\n")
    home = tmp_path / "mistyped"
    for command in (["run", "wordcount"], ["submit", "spark"]):
        rest = ["--", str(tmp_path / "app.py")] if command[0] == "submit" else []
        with pytest.raises(SystemExit) as stopped:
            main([*command, "--home", str(home), *rest])
        assert stopped.value.code == 7
        assert f"boardcluster up --home {home}" in capsys.readouterr().err
        assert not home.exists()


@pytest.mark.parametrize(
    ("arguments", "shown"), [(("catalog", "boards"), "rpi-5b"), (("reprot",), "report")]
)
def test_a_command_loads_nothing_of_the_others(arguments: tuple[str, ...], shown: str) -> None:
    code = (
        "import sys; from boardcluster.cli.app import app\n"
        f"try: app({list(arguments)})\n"
        "except SystemExit: pass\n"
        "print('numpy' in sys.modules, 'boardcluster.cli.run' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown in found.stdout + found.stderr
    assert found.stdout.splitlines()[-1] == "False False"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_help(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0
    assert f"boardcluster {name}" in result.stdout


def test_the_nearest_command_is_offered() -> None:
    result = CliRunner().invoke(app, ["reprot"])
    assert result.exit_code == 2
    assert "report" in result.stderr


def test_the_help_shows_each_command_in_its_group() -> None:
    assert len(set(COMMANDS)) == len(COMMANDS)
    assert list(PANELS) == ["Start here", "Run", "Look", "Boards", "More"]
    shown = CliRunner().invoke(app, ["--help"]).output
    where = [shown.index(f"─ {title} ─") for title in PANELS]
    assert where == sorted(where)
    for (title, names), begin, end in zip(PANELS.items(), where, [*where[1:], None], strict=True):
        lines = shown[begin:end].splitlines()
        listed = [line.split()[1] for line in lines if line[:1] == "│" and line[2:3].isalpha()]
        assert listed == list(names), title
