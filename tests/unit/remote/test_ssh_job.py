"""Jobs that outlive a connection: here on this machine, with connections that break as told."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_until

from boardcluster.errors import RemoteError, RemoteTimeoutError, UnreachableError
from boardcluster.remote import node_agent, ssh_job
from boardcluster.remote.gate import Completed, end_programs
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.node_rpc import rpc
from boardcluster.remote.ssh_job import run_job

SECRET = "--password=hunter2"
MARK = f"given-{os.getpid()}"
"""In the environment of this process's jobs; others of pytest-xdist run some at the same time."""


class Breaking(LocalRemote):
    """Breaks before or after what it was to do, as often as told."""

    def __init__(self, *, before: int = 0, after: int = 0, always: bool = False) -> None:
        super().__init__("pi0")
        self.before, self.after, self.always = before, after, always

    def run(self, *args: Any, **options: Any) -> Completed:
        if self.always or self.before:
            self.before -= 1
            raise UnreachableError("pi0: no connection", hint="plug it in")
        done = super().run(*args, **options)
        if self.after:
            self.after -= 1
            raise UnreachableError("pi0: broke")
        return done


@pytest.fixture(autouse=True)
def retry_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_job, "_RETRY_SECONDS", 0.01)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Completed]:
    def one(
        remote: LocalRemote, words: str, *, timeout_seconds: float = 20, lost_seconds: float = 5
    ) -> Completed:
        return run_job(
            remote,
            ["sh", "-c", f"echo started >>{tmp_path}/starts; {words}"],
            jobs=str(tmp_path / "jobs"),
            stdout=tmp_path / "out",
            stderr=tmp_path / "err",
            env={"MARK": MARK},
            cwd="/usr",
            timeout_seconds=timeout_seconds,
            lost_seconds=lost_seconds,
        )

    return one


def left(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "jobs").iterdir())


def of_job() -> list[int]:
    """Processes of this machine that a job of ours started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                environ = (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"BOARDCLUSTER_JOB=" in environ and f"MARK={MARK}\0".encode() in environ:
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("remote", [Breaking(), Breaking(before=3), Breaking(after=4)])
def test_is_run_once_however_often_the_connection_breaks(
    run: Callable[..., Completed], tmp_path: Path, remote: Breaking
) -> None:
    done = run(remote, "pwd; echo $MARK; echo words >&2; sleep 0.3; exit 3")

    assert (remote.before, remote.after) == (0, 0)
    assert done.returncode == 3
    assert 0.3 <= done.duration_seconds < 10
    assert (tmp_path / "out").read_text() == f"/usr\n{MARK}\n"
    assert (tmp_path / "err").read_text() == "words\n"
    assert (tmp_path / "starts").read_text() == "started\n"
    assert left(tmp_path) == []


@pytest.mark.parametrize(("verb", "late"), [("job_wait", 1), ("job_wait", 60), ("job_start", 1)])
def test_a_connection_that_stands_still_at_the_end_is_no_part_of_the_duration(
    run: Callable[..., Completed], monkeypatch: pytest.MonkeyPatch, verb: str, late: int
) -> None:
    """Whatever stood still, the end is where the node says that it was."""

    class Still(LocalRemote):
        stood = False

        def run(self, *args: Any, **options: Any) -> Completed:
            done = super().run(*args, **options)
            if verb.encode() in options.get("stdin", b"") and not self.stood:
                self.stood = True
                time.sleep(1.5)
            return done

    monkeypatch.setattr(ssh_job, "_LATE_SECONDS", float(late))
    done = run(Still("pi0"), "sleep 0.2")
    corrected = verb == "job_start" or late == 1
    assert done.duration_seconds >= 0.15
    assert (done.duration_seconds < 1.5) == corrected


def test_is_given_up_when_the_node_is_out_of_reach_for_too_long(
    run: Callable[..., Completed],
) -> None:
    started = time.monotonic()
    with pytest.raises(UnreachableError, match=r"pi0: unreachable for 0\.2 s") as caught:
        run(Breaking(always=True), f": {SECRET}", lost_seconds=0.2)

    assert 0.2 <= time.monotonic() - started < 5
    assert caught.value.hint == "plug it in"
    assert "may still be running there: sh\n" in caught.value.message
    assert SECRET not in str(caught.value)


def test_a_time_out_ends_it_and_keeps_its_last_words(
    run: Callable[..., Completed], tmp_path: Path
) -> None:
    with pytest.raises(RemoteTimeoutError, match=r"pi0: command did not end within 0\.5 s") as e:
        run(
            LocalRemote("pi0"),
            f"echo last >&2; : {SECRET}; setsid sleep 60 & sleep 60",
            timeout_seconds=0.5,
        )

    assert e.value.message.endswith(": sh\nlast")
    assert SECRET not in str(e.value)
    assert (tmp_path / "err").read_text() == "last\n"
    assert left(tmp_path) == []
    assert of_job() == []


def test_leaving_it_early_ends_it(run: Callable[..., Completed], tmp_path: Path) -> None:
    class Interrupted(LocalRemote):
        def run(self, *args: Any, **options: Any) -> Completed:
            if b"job_wait" in options.get("stdin", b""):
                raise KeyboardInterrupt
            return super().run(*args, **options)

    with pytest.raises(KeyboardInterrupt):
        run(Interrupted("pi0"), "sleep 60")

    assert left(tmp_path) == []
    assert of_job() == []


def test_ctrl_c_in_another_thread_ends_it(run: Callable[..., Completed], tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run, LocalRemote("pi0"), "sleep 60")
        wait_until((tmp_path / "starts").exists, "the start")
        while not future.done():
            end_programs()
            time.sleep(0.02)
        with pytest.raises(RemoteError):
            future.result()

    assert left(tmp_path) == []
    assert of_job() == []


@pytest.mark.parametrize("what", ["lost", "rebooted", "absent"])
def test_what_is_gone_without_a_status_is_an_error(
    run: Callable[..., Completed], tmp_path: Path, what: str
) -> None:
    def harm() -> None:
        wait_until((tmp_path / "starts").exists, "the start", pause_seconds=0.01)
        (folder,) = left(tmp_path)
        # The job may run before it is written down who watches it.
        wait_until((folder / "supervisor").exists, "the supervisor", pause_seconds=0.01)
        row = (folder / "supervisor").read_text()
        pid = int(row.split('"pid": ')[1].split(",")[0])
        # Each at once: whoever asks in between would see a supervisor that is lost.
        if what == "rebooted":
            other = tmp_path / "other"
            other.write_text(row.replace('"boot_id": "', '"boot_id": "x'))
            other.replace(folder / "supervisor")
        if what == "absent":
            folder.rename(tmp_path / "gone")
        os.kill(pid, signal.SIGKILL)

    words = {
        "lost": "pi0: a command's supervisor was killed, so its exit status is lost: sh",
        "rebooted": "pi0: the node restarted while a command ran: sh",
        "absent": "pi0: a command's folder was deleted while it ran: sh",
    }
    breaker = threading.Thread(target=harm)
    breaker.start()
    try:
        with pytest.raises(RemoteError) as caught:
            run(LocalRemote("pi0"), f": {SECRET}; exec sleep 60")
    finally:
        breaker.join()
    # The program, and nothing of what it was given.
    assert caught.value.message == words[what]
    assert SECRET not in str(caught.value)
    assert left(tmp_path) == []
    assert of_job() == []


def test_job_start_of_a_known_folder_starts_nothing(tmp_path: Path) -> None:
    request = {
        "do": "job_start",
        "folder": str(tmp_path / "jobs" / "job-1"),
        "argv": ["sh", "-c", f"echo started >>{tmp_path}/starts; exit 7"],
        "env": {},
    }
    here = LocalRemote("here")

    assert rpc(here, request)["state"] in {"running", "ended"}
    wait = {"do": "job_wait", "folder": request["folder"], "seconds": 10}
    ended = rpc(here, wait)
    assert (ended["state"], ended["status"]) == ("ended", 7)
    assert 0 <= ended["seconds_ago"] < 10
    again = rpc(here, request)
    assert again["status"] == 7
    assert again["seconds_ago"] >= ended["seconds_ago"]
    assert (tmp_path / "starts").read_text() == "started\n"


@pytest.mark.parametrize("error", [AttributeError("pidfd_open"), OSError(38, "not implemented")])
def test_job_wait_needs_no_descriptor_of_the_process(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python before 3.9 and Linux before 5.3 have none."""

    def missing(_: int) -> int:
        raise error

    monkeypatch.setattr(os, "pidfd_open", missing)
    child = subprocess.Popen(["sleep", "0.3"])
    ticks = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
    row = {"pid": child.pid, "start_ticks": ticks, "boot_id": node_agent.boot()["boot_id"]}
    (tmp_path / "supervisor").write_text(json.dumps(row))
    reaper = threading.Thread(target=child.wait)
    reaper.start()
    began = time.monotonic()
    state = node_agent.job_wait({"folder": str(tmp_path), "seconds": 20})
    reaper.join()
    assert state["state"] == "lost"  # it wrote no status
    assert 0.2 < time.monotonic() - began < 15


def test_job_wait_returns_in_time_and_at_once(tmp_path: Path) -> None:
    request = {
        "do": "job_start",
        "folder": str(tmp_path / "job-1"),
        "argv": ["sleep", "1.5"],
        "env": {},
    }
    here = LocalRemote("here")
    started = time.monotonic()
    rpc(here, request)

    wait = {"do": "job_wait", "folder": request["folder"]}
    assert rpc(here, {**wait, "seconds": 0.1}) == {"state": "running"}
    assert time.monotonic() - started < 1.5
    ended = rpc(here, {**wait, "seconds": 60})
    assert (ended["state"], ended["status"]) == ("ended", 0)
    assert 1.4 <= ended["seconds"] < 10
    assert 1.5 <= time.monotonic() - started < 10
