"""This machine as a node, and the prefix that makes it another one."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import wait_until

from boardcluster.errors import NotThereError, RemoteError, RemoteTimeoutError
from boardcluster.remote import node_agent, ssh
from boardcluster.remote.base import ProcessRef, Remote
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.netns import NetnsRemote, enter

DAEMON = """
import os, sys, time
print("started in", os.getcwd(), "with", os.environ.get("MARK"), flush=True)
print("and complains", file=sys.stderr, flush=True)
time.sleep(60)
"""


def start_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


def await_text(path: Path, text: str) -> str:
    def look() -> str:
        found = path.read_text() if path.exists() else ""
        return found if text in found else ""

    return wait_until(look, f"{text!r} in {path}", pause_seconds=0.01)


@contextlib.contextmanager
def ended(process: ProcessRef) -> Iterator[None]:
    try:
        yield
    finally:
        if start_ticks(process.pid) == process.start_ticks:
            os.kill(process.pid, signal.SIGKILL)


def test_is_a_remote() -> None:
    assert isinstance(LocalRemote(), Remote)
    assert LocalRemote().name == "local"


def test_runs_with_folder_and_variables(tmp_path: Path) -> None:
    done = LocalRemote().run(
        ["sh", "-c", "pwd; echo $MARK; cat"],
        cwd=str(tmp_path),
        env={"MARK": "value"},
        stdin=b"input",
    )

    assert done.text == f"{tmp_path.resolve()}\nvalue\ninput"


def test_check_can_be_left_out() -> None:
    assert LocalRemote().run(["sh", "-c", "exit 3"], check=False).returncode == 3
    with pytest.raises(RemoteError, match="status 3"):
        LocalRemote().run(["sh", "-c", "exit 3"])


def test_time_out_is_passed_on() -> None:
    with pytest.raises(RemoteTimeoutError, match=r"within 0\.2 s"):
        LocalRemote().run(["sleep", "30"], timeout_seconds=0.2)


def test_run_logged_with_folder_and_variables(tmp_path: Path) -> None:
    done = LocalRemote().run_logged(
        ["sh", "-c", "pwd; echo $MARK >&2; exit 2"],
        stdout=tmp_path / "out",
        stderr=tmp_path / "err",
        cwd="/",
        env={"MARK": "value"},
        timeout_seconds=30,
    )

    assert done.returncode == 2
    assert (tmp_path / "out").read_text() == "/\n"
    assert (tmp_path / "err").read_text() == "value\n"


def test_prefix_stands_before_every_command(tmp_path: Path) -> None:
    remote = LocalRemote("node", prefix=("env", "MARK=prefix"))

    assert remote.run(["sh", "-c", "echo $MARK"]).text == "prefix\n"
    assert remote.run(["sh", "-c", "echo $MARK; pwd"], cwd="/").text == "prefix\n/\n"
    remote.run_logged(
        ["sh", "-c", "echo $MARK"],
        stdout=tmp_path / "out",
        stderr=tmp_path / "err",
        timeout_seconds=30,
    )
    assert (tmp_path / "out").read_text() == "prefix\n"
    assert remote.name == "node"


def test_start_detaches_and_appends_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("from before\n")

    process = LocalRemote().start(
        [sys.executable, "-c", DAEMON], log=str(log), env={"MARK": "given"}, cwd=str(tmp_path)
    )

    with ended(process):
        text = await_text(log, "complains")
        assert text == (f"from before\nstarted in {tmp_path.resolve()} with given\nand complains\n")
        assert start_ticks(process.pid) == process.start_ticks
        stat = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        parent, session = int(stat[1]), int(stat[3])
        assert parent != os.getpid()  # what asked for it is gone, and it lives
        assert session == process.pid  # so Ctrl-C in our terminal does not reach it


def test_start_goes_through_the_prefix(tmp_path: Path) -> None:
    remote = LocalRemote("node", prefix=("env", "MARK=prefix"))
    process = remote.start([sys.executable, "-c", DAEMON], log=str(tmp_path / "log"))

    with ended(process):
        assert "started in / with prefix" in await_text(tmp_path / "log", "complains")


def test_what_outlives_a_command_does_not_carry_its_mark(tmp_path: Path) -> None:
    """What ends a command that took too long must not end what it started to stay."""
    remote = LocalRemote("node", prefix=("env", f"{ssh._MARK}=token"))
    process = remote.start(
        [sys.executable, "-c", DAEMON], log=str(tmp_path / "log"), env={"MARK": "given"}
    )

    with ended(process):
        await_text(tmp_path / "log", "complains")
        environ = Path(f"/proc/{process.pid}/environ").read_bytes()
    assert b"MARK=given" in environ
    assert b"BOARDCLUSTER_RUN" not in environ
    assert node_agent.RUN_MARK == ssh._MARK == "BOARDCLUSTER_RUN"


def test_start_of_a_missing_program_fails_in_few_words(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="no-such-program-here") as caught:
        LocalRemote().start(["no-such-program-here"], log=str(tmp_path / "log"))

    # The program that runs on the node is an argument; its text is no part of the message.
    assert "def listening" not in caught.value.message


def test_put_and_get_a_file(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"\0content")
    source.chmod(0o755)
    node_path = tmp_path / "node" / "deep" / "file"
    back = tmp_path / "back" / "file"

    LocalRemote().put(source, str(node_path))
    LocalRemote().get(str(node_path), back)

    assert node_path.read_bytes() == back.read_bytes() == b"\0content"
    assert node_path.stat().st_mode & 0o777 == 0o755


def test_put_replaces_the_content_of_a_folder(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "inner").mkdir(parents=True)
    (source / "inner" / "new").write_text("new")
    target.mkdir()
    (target / "stale").write_text("stale")

    LocalRemote().put(source, str(target))

    assert [path.name for path in target.rglob("*")] == ["inner", "new"]


def test_get_a_folder(tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / "log").write_text("line")

    LocalRemote().get(str(tmp_path / "node"), tmp_path / "back" / "logs")

    assert (tmp_path / "back" / "logs" / "log").read_text() == "line"


def test_get_of_nothing_is_a_remote_error(tmp_path: Path) -> None:
    with pytest.raises(NotThereError, match=r"node: .*absent does not exist"):
        LocalRemote("node").get(str(tmp_path / "absent"), tmp_path / "back")

    assert not (tmp_path / "back").exists()


def test_what_is_lent_and_collected_are_the_files_themselves(tmp_path: Path) -> None:
    with LocalRemote().temporary_upload(tmp_path / "source") as path:
        assert path == str(tmp_path / "source")
    with LocalRemote().download_on_exit(tmp_path / "target") as path:
        assert path == str(tmp_path / "target")


def test_close_ends_nothing(tmp_path: Path) -> None:
    remote = LocalRemote()
    remote.close()

    assert remote.run(["true"]).returncode == 0


def test_entering_namespaces_as_root_and_without() -> None:
    assert enter(42, own_user=False, kinds="nm") == ("nsenter", "-t", "42", "-n", "-m", "--")
    assert enter(42, own_user=True, kinds="nmup") == (
        *("nsenter", "-t", "42", "-U", "--preserve-credentials"),
        *("-n", "-m", "-u", "-p", "--"),
    )


def test_an_emulated_node_enters_every_namespace_of_its_first_process() -> None:
    # No such process: nsenter itself says so, which shows that the prefix was used.
    remote = NetnsRemote("worker1", pid=2**22 + 1, own_user=False)

    assert remote.name == "worker1"
    with pytest.raises(RemoteError) as caught:
        remote.run(["true"])
    assert "nsenter -t 4194305 -n -m -u -p -- true" in caught.value.message
