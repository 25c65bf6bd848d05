"""The gate with real programs of this machine; python3 and coreutils are all it needs."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.waiting import wait_until

from boardcluster.errors import DriverSpaceError, HostError, RemoteError, RemoteTimeoutError
from boardcluster.remote import gate
from boardcluster.remote.gate import (
    cleaning_up,
    end_programs,
    pipe,
    run_logged,
    run_program,
    tail_text,
)

# A child that starts a grandchild; both write their ids, and the grandchild may be stubborn.
FAMILY = """
import os, signal, subprocess, sys, time
folder, stubborn = sys.argv[1], sys.argv[2] == "stubborn"
grandchild = os.fork()
if grandchild == 0:
    if stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open(folder + "/grandchild", "w").write(str(os.getpid()))
    time.sleep(60)
open(folder + "/child", "w").write(str(os.getpid()))
print("last words", file=sys.stderr, flush=True)
time.sleep(60)
"""


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except OSError:
        return False


def read_pid(path: Path, *, within_seconds: float = 60.0) -> int:
    return int(
        wait_until(
            lambda: path.exists() and path.read_text(),
            path.name,
            seconds=within_seconds,
            pause_seconds=0.01,
        )
    )


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code, *arguments]


def test_captures_output_and_status_and_time() -> None:
    done = run_program(
        python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"), check=False
    )

    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 3)
    assert done.text == "out\n"
    assert 0 < done.duration_seconds < 30
    assert done.argv[0] == sys.executable


def test_feeds_standard_input_and_knows_the_working_folder(tmp_path: Path) -> None:
    done = run_program(["sh", "-c", "cat; pwd"], stdin=b"in\0put\n", cwd=tmp_path)

    assert done.stdout == b"in\0put\n" + os.fsencode(tmp_path.resolve()) + b"\n"


def test_duration_covers_the_run() -> None:
    assert run_program(["sleep", "0.2"]).duration_seconds >= 0.2


def test_text_survives_what_is_not_utf8() -> None:
    assert run_program(["printf", r"a\377b"]).text == "a\ufffdb"


def test_failure_names_status_command_and_last_lines() -> None:
    with pytest.raises(RemoteError) as caught:
        run_program(["sh", "-c", "echo the reason >&2; exit 4"])

    assert caught.type is RemoteError  # not a time-out
    assert caught.value.exit_code == 8
    assert "status 4" in caught.value.message
    assert "sh -c" in caught.value.message
    assert caught.value.message.endswith("the reason")


def test_failure_falls_back_to_standard_output() -> None:
    with pytest.raises(RemoteError, match="said here"):
        run_program(["sh", "-c", "echo said here; exit 1"])


def test_failure_message_cuts_long_arguments() -> None:
    program = "first line\nexit 1\n" + "x" * 5000
    with pytest.raises(RemoteError) as caught:
        run_program(["false", program, "y" * 5000, "short"])

    assert "first line..." in caught.value.message
    assert "exit 1" not in caught.value.message
    assert "short" in caught.value.message
    assert len(caught.value.message) < 400


def test_death_by_signal_is_a_negative_status() -> None:
    assert run_program(["sh", "-c", "kill -9 $$"], check=False).returncode == -signal.SIGKILL


def test_missing_program_is_an_error_of_the_host_with_a_hint() -> None:
    with pytest.raises(HostError, match="no-such-program-here") as caught:
        run_program(["no-such-program-here", "argument"])

    assert "install no-such-program-here" in caught.value.hint


def test_program_that_may_not_be_run_is_an_error_of_the_host(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o644)

    with pytest.raises(HostError, match="cannot be executed") as caught:
        run_program([str(program)])

    assert "permissions" in caught.value.hint


def test_program_for_another_processor_is_an_error_of_the_host(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF of another machine")
    program.chmod(0o755)

    with pytest.raises(HostError, match=r"cannot be run.*Exec format error") as caught:
        run_program([str(program)])

    assert "processor" in caught.value.hint


@pytest.mark.parametrize("kind", ["obedient", "stubborn"])
def test_time_out_ends_the_whole_group(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "_GRACE_SECONDS", 0.3)

    with pytest.raises(RemoteTimeoutError, match=r"did not end within 1 s") as caught:
        run_program(python(FAMILY, str(tmp_path), kind), timeout_seconds=1)

    assert isinstance(caught.value, RemoteError)
    assert caught.value.exit_code == 8
    assert "last words" in caught.value.message
    assert not lives(read_pid(tmp_path / "child"))
    assert not lives(read_pid(tmp_path / "grandchild"))


def test_time_out_gives_the_group_time_to_end_by_itself(tmp_path: Path) -> None:
    # The leader ends at once; its child needs a moment to clean up, and gets it.
    code = """
import os, signal, sys, time
def leave(*_):
    time.sleep(0.3)
    open(sys.argv[1] + "/cleaned", "w").close()
    os._exit(0)
if os.fork() == 0:
    signal.signal(signal.SIGTERM, leave)
    open(sys.argv[1] + "/ready", "w").close()
time.sleep(60)
"""
    with pytest.raises(RemoteTimeoutError):
        run_program(python(code, str(tmp_path)), timeout_seconds=1)

    assert (tmp_path / "ready").exists()
    assert (tmp_path / "cleaned").exists()


INTERRUPTED = """
import ctypes, signal, sys
from pathlib import Path
from boardcluster.remote import gate
from boardcluster.remote.gate import {verb}
gate._GRACE_SECONDS = 60.0
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: orphans become ours, and stay zombies
signal.signal(signal.SIGINT, signal.default_int_handler)  # may be ignored: started by nohup or CI
argv = [sys.executable, "-I", "-S", "-c", sys.argv[1], sys.argv[2], "obedient"]
folder = Path(sys.argv[2])
{call}
"""
CALLS = {
    "run_program": "run_program(argv)",
    "run_logged": "run_logged(argv, stdout=folder / 'o', stderr=folder / 'e', timeout_seconds=60)",
    "pipe": "pipe([['cat'], argv, ['cat']], source=Path('/dev/zero'), target=folder / 't', "
    "timeout_seconds=60)",
}


@pytest.mark.parametrize("verb", list(CALLS))
def test_ctrl_c_leaves_no_process(verb: str, tmp_path: Path) -> None:
    code = INTERRUPTED.format(verb=verb, call=CALLS[verb])
    driver = subprocess.Popen(
        [sys.executable, "-c", code, FAMILY, str(tmp_path)],
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with driver:
        child, grandchild = read_pid(tmp_path / "child"), read_pid(tmp_path / "grandchild")
        assert lives(child)
        driver.send_signal(signal.SIGINT)
        # Less than the grace period: it does not wait for zombies, which nobody may ever reap.
        _, stderr = driver.communicate(timeout=50)

    assert b"KeyboardInterrupt" in stderr
    assert not lives(child)
    assert not lives(grandchild)


def test_ctrl_c_of_the_terminal_does_not_reach_the_program(tmp_path: Path) -> None:
    done = run_program(python("import os; print(os.getpgid(0), os.getsid(0), os.getpid())"))

    group, session, pid = done.text.split()
    assert group == session == pid
    assert int(group) != os.getpgid(0)


def test_run_logged_streams_to_files(tmp_path: Path) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    code = f"""
import sys, time
print("early", flush=True)
print("problem", file=sys.stderr, flush=True)
for _ in range(500):
    if open({str(out)!r}).read() == "early\\n":
        print("seen while running")
        sys.exit(5)
    time.sleep(0.01)
"""
    done = run_logged(python(code), stdout=out, stderr=err, timeout_seconds=30)

    assert done.returncode == 5
    assert out.read_text() == "early\nseen while running\n"
    assert err.read_text() == "problem\n"
    assert (done.stdout, done.stderr) == (b"", b"")


def test_run_logged_has_no_standard_input(tmp_path: Path) -> None:
    done = run_logged(["cat"], stdout=tmp_path / "o", stderr=tmp_path / "e", timeout_seconds=30)

    assert done.returncode == 0
    assert (tmp_path / "o").read_bytes() == b""


def test_run_logged_time_out_shows_the_end_of_the_log(tmp_path: Path) -> None:
    with pytest.raises(RemoteTimeoutError, match=r"(?s)did not end within 1 s.*last words"):
        run_logged(
            python(FAMILY, str(tmp_path), "obedient"),
            stdout=tmp_path / "o",
            stderr=tmp_path / "e",
            timeout_seconds=1,
        )

    assert not lives(read_pid(tmp_path / "grandchild"))


def test_pipe_joins_three_stages(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("b\na\nb\n" * 50_000)

    pipe(
        [["sort"], ["uniq", "-c"], ["tr", "-s", " ", "_"]],
        source=source,
        target=target,
        timeout_seconds=60,
    )

    assert target.read_text() == "_50000_a\n_100000_b\n"


def test_pipe_adds_variables(tmp_path: Path) -> None:
    pipe(
        [["sh", "-c", "echo $MARK"]],
        source=Path(os.devnull),
        target=tmp_path / "target",
        env={"MARK": "here"},
        timeout_seconds=30,
    )

    assert (tmp_path / "target").read_text() == "here\n"


def test_pipe_blames_the_failing_middle_stage(tmp_path: Path) -> None:
    # The first stage dies of SIGPIPE because the second stopped reading: it is a victim.
    with pytest.raises(RemoteError) as caught:
        pipe(
            [["yes"], ["sh", "-c", "echo culprit >&2; exit 7"], ["cat"]],
            source=Path(os.devnull),
            target=tmp_path / "target",
            timeout_seconds=30,
        )

    assert caught.type is RemoteError  # not a time-out
    assert "status 7" in caught.value.message
    assert "culprit" in caught.value.message


def test_pipe_that_fills_a_disk_says_so(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("text")
    with pytest.raises(DriverSpaceError, match=r"a disk became full: cat: .*No space left"):
        pipe([["cat"], ["cat"]], source=source, target=Path("/dev/full"))


def test_pipe_is_not_blocked_by_a_stage_that_complains_much(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match=r"(?s)status 3.*the end$"):
        pipe(
            [
                python("import sys; sys.stderr.write('x' * 300_000 + '\\nthe end'); sys.exit(3)"),
                ["cat"],
            ],
            source=Path(os.devnull),
            target=tmp_path / "target",
            timeout_seconds=20,
        )


def test_pipe_time_out_ends_every_stage(tmp_path: Path) -> None:
    with pytest.raises(RemoteTimeoutError, match="did not end within 1 s"):
        pipe(
            [["cat"], python(FAMILY, str(tmp_path), "obedient"), ["cat"]],
            source=Path(os.devnull),
            target=tmp_path / "target",
            timeout_seconds=1,
        )

    assert not lives(read_pid(tmp_path / "child"))
    assert not lives(read_pid(tmp_path / "grandchild"))


def test_pipe_with_a_missing_program_ends_the_stages_before_it(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="no-such-program-here"):
        pipe(
            [python(FAMILY, str(tmp_path), "obedient"), ["no-such-program-here"]],
            source=Path(os.devnull),
            target=tmp_path / "target",
            timeout_seconds=30,
        )

    # It may have been ended before it could even say who it is.
    if (tmp_path / "child").exists():
        assert not lives(read_pid(tmp_path / "child"))
    assert not [p for p in Path("/proc").glob("[0-9]*/cmdline") if mentions(p, tmp_path)]


def mentions(cmdline: Path, folder: Path) -> bool:
    try:
        return os.fsencode(folder) in cmdline.read_bytes()
    except OSError:
        return False


def environment_of_a_program(**extra: str) -> dict[str, str]:
    text = run_program(["env", "-0"], env=extra).text
    return dict(row.split("=", 1) for row in text.rstrip("\0").split("\0"))


@pytest.mark.parametrize(
    "name",
    ["SPARK_HOME", "JAVA_TOOL_OPTIONS", "HADOOP_CONF_DIR", "JAVA_HOME", "PYTHONPATH", "LANG"],
)
def test_stray_variables_do_not_leak(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "/stray")

    assert name not in environment_of_a_program()


@pytest.mark.parametrize(
    "name",
    [
        *("PIP_INDEX_URL", "https_proxy", "HTTPS_PROXY", "no_proxy", "SSL_CERT_FILE"),
        *("HOME", "TMPDIR", "SSH_AUTH_SOCK"),
    ],
)
def test_what_programs_need_to_reach_the_network_is_kept(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "/kept")

    assert environment_of_a_program()[name] == "/kept"


def test_environment_has_one_language_and_every_system_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    seen = environment_of_a_program()

    assert seen["LC_ALL"] == "C.UTF-8"
    assert seen["PATH"] == "/usr/bin:/bin:/usr/sbin:/sbin"


def test_given_variables_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/ours")

    assert environment_of_a_program(HOME="/given", LC_ALL="C")["HOME"] == "/given"
    assert environment_of_a_program(LC_ALL="C")["LC_ALL"] == "C"


def test_tail_text_takes_the_last_lines_of_bytes_and_of_files(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(100_000))
    path = tmp_path / "log"
    path.write_text(text)

    assert tail_text(text.encode(), lines=2) == "line 99998\nline 99999"
    assert tail_text(path, lines=2) == "line 99998\nline 99999"
    assert len(tail_text(path).splitlines()) == 12


def test_tail_text_of_nothing_is_empty(tmp_path: Path) -> None:
    assert tail_text(b"  \n\n") == ""
    assert tail_text(tmp_path / "absent") == ""


@pytest.mark.parametrize("stream", [1, 2])
def test_what_a_program_writes_without_end_is_not_kept_without_end(
    stream: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "_OUTPUT_BYTES_MAX", 1 << 20)
    with pytest.raises(RemoteError, match=r"wrote more than 1 MiB: sh -c"):
        run_program(["sh", "-c", f"yes >&{stream}"], timeout_seconds=60)


def test_much_input_meets_much_output_and_a_program_that_does_not_read() -> None:
    data = os.urandom(1 << 20)
    assert run_program(["cat"], stdin=data).stdout == data
    assert run_program(["true"], stdin=data).returncode == 0


def test_the_tail_of_one_endless_line_is_short() -> None:
    assert len(tail_text(b"x" * (1 << 20))) < 1 << 15


def test_a_program_beside_a_block_ends_with_it_whatever_it_does(tmp_path: Path) -> None:
    for program in ("cat >/dev/null", "trap '' TERM; sleep 60", "exit 1"):
        words = f'echo $$ >"$0"; {program}'
        pid = tmp_path / "pid"
        pid.unlink(missing_ok=True)
        with gate.beside(["sh", "-c", words, str(pid)]):
            found = read_pid(pid)
        assert not lives(found), program


def test_what_we_ended_is_told_from_what_ended_by_itself() -> None:
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run_program, ["sleep", "20"], check=False)
        wait_until(lambda: gate._running, "the program")
        end_programs()
        done = future.result()
    assert (done.returncode, done.ended_by_us) == (-signal.SIGTERM, True)
    assert not run_program(["sh", "-c", "kill -TERM $$"], check=False).ended_by_us


def test_clean_ups_are_not_ended(tmp_path: Path) -> None:
    begun = tmp_path / "begun"

    def clean_up() -> int:
        with cleaning_up(), cleaning_up():
            pass
        with cleaning_up():
            words = ["sh", "-c", 'touch "$0"; sleep 0.5', str(begun)]
            return run_program(words, check=False).returncode

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(clean_up)
        wait_until(begun.exists, "the program")
        end_programs()
        assert future.result() == 0
