"""The node-side program, run for real through ``rpc`` on this machine."""

import ast
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.asleep import asleep
from tests.waiting import wait_until

from boardcluster.errors import RemoteError
from boardcluster.remote import node_agent
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.node_rpc import (
    CacheDrop,
    HttpAnswer,
    Reached,
    Reaching,
    StorageTotals,
    Trimmed,
    boot_of,
    drop_caches,
    end_marked,
    end_processes,
    excerpt,
    hottest_celsius,
    http_get_all,
    listening,
    processes,
    reach,
    rpc,
    storage,
    trim,
)
from boardcluster.remote.node_rpc import http as ask_http

HERE = LocalRemote("here")
STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""


def ref_of(process: "subprocess.Popen[bytes]") -> ProcessRef:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return ProcessRef(process.pid, int(fields[19]))


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with asleep() as process:
        yield process


@pytest.fixture
def stubborn() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def test_imports_nothing_but_the_standard_library() -> None:
    tree = ast.parse(Path(node_agent.__file__).read_text())
    roots = set()
    for found in ast.walk(tree):
        if isinstance(found, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in found.names}
        elif isinstance(found, ast.ImportFrom):
            assert found.level == 0
            roots.add(str(found.module).split(".")[0])

    assert "json" in roots
    assert roots <= sys.stdlib_module_names


def test_runs_isolated_without_site_packages() -> None:
    text = Path(node_agent.__file__).read_text()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", text],
        input=b'{"do": "listening", "ports": []}',
        capture_output=True,
        env={},
        cwd="/",
        check=True,
        timeout=30,
    )

    assert json.loads(done.stdout) == []
    assert done.stderr == b""


def test_is_small_enough_for_one_argument() -> None:
    # Linux: MAX_ARG_STRLEN, 32 pages.
    assert Path(node_agent.__file__).stat().st_size < 131_072 // 4


def test_an_unknown_verb_is_a_remote_error() -> None:
    with pytest.raises(RemoteError, match="KeyError: 'dance'"):
        rpc(HERE, {"do": "dance"})


def test_processes_tells_the_living_from_the_dead_and_the_reborn(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    alive = ref_of(sleeper)
    with asleep() as other:
        dead = ref_of(other)
    impostor = ProcessRef(alive.pid, alive.start_ticks + 1)

    views = processes(HERE, [dead, alive, impostor])

    assert [view.alive for view in views] == [False, True, False]
    assert views[1].resident_bytes > 100_000
    assert 0 < views[1].proportional_bytes <= views[1].resident_bytes
    assert views[2].resident_bytes == 0


def test_a_zombie_is_not_alive(sleeper: "subprocess.Popen[bytes]") -> None:
    ref = ref_of(sleeper)
    sleeper.kill()
    stat = Path(f"/proc/{ref.pid}/stat")
    wait_until(lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "Z", "the zombie")

    (view,) = processes(HERE, [ref])

    assert not view.alive


def test_a_process_whose_name_looks_like_a_stat_line_is_read_right(tmp_path: Path) -> None:
    program = tmp_path / "a) Z 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as process:
        # Popen returns after exec, so the name is the new one.
        (view,) = processes(HERE, [ref_of(process)])
        process.kill()

    assert view.alive


def test_end_asks_first(sleeper: "subprocess.Popen[bytes]") -> None:
    assert end_processes(HERE, [ref_of(sleeper)], grace_seconds=10) == 0

    assert sleeper.wait(10) == -signal.SIGTERM


def test_end_kills_the_stubborn_after_the_grace(
    stubborn: "subprocess.Popen[bytes]", sleeper: "subprocess.Popen[bytes]"
) -> None:
    started = time.monotonic()
    killed = end_processes(HERE, [ref_of(stubborn), ref_of(sleeper)], grace_seconds=0.4)

    assert killed == 1
    assert time.monotonic() - started >= 0.4
    assert stubborn.wait(10) == -signal.SIGKILL
    assert sleeper.wait(10) == -signal.SIGTERM


def test_end_spares_a_process_that_only_has_the_same_id(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    ref = ref_of(sleeper)

    assert end_processes(HERE, [ProcessRef(ref.pid, ref.start_ticks - 1)], grace_seconds=0.1) == 0
    assert sleeper.poll() is None


def test_end_marked_ends_what_carries_the_mark_and_nothing_else(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    with asleep(MARK="one") as marked:
        end_marked(HERE, "MARK=on", grace_seconds=0.1, timeout_seconds=30)
        assert marked.poll() is None
        end_marked(HERE, "MARK=one", grace_seconds=60, timeout_seconds=120)
        assert marked.wait(60) == -signal.SIGTERM
    assert sleeper.poll() is None


def test_end_survives_a_process_that_ended_a_moment_ago(
    sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = ProcessRef(2**22 + 1, 1)
    alive = ref_of(sleeper)
    monkeypatch.setattr(
        node_agent, "same", lambda pid, ticks: pid == gone.pid or sleeper.poll() is None
    )
    request = {
        "processes": [[gone.pid, gone.start_ticks], [alive.pid, alive.start_ticks]],
        "grace_seconds": 0.2,
    }

    node_agent.end(request)

    assert sleeper.wait(10) == -signal.SIGTERM


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_listening_sees_a_real_socket(family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.socket(family) as server, socket.socket(family) as client:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no {host}")
        server.listen()
        client.connect(server.getsockname())  # has a port, but nobody can connect to it
        port, other = server.getsockname()[1], client.getsockname()[1]

        assert listening(HERE, [other, port]) == [port]
        assert listening(HERE, []) == []


class Handler(http.server.BaseHTTPRequestHandler):
    seen: list[tuple[str, str, dict[str, str], bytes]]

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((self.command, self.path, dict(self.headers), body))
        if self.path.startswith("/missing"):
            self.send_error(404, "not here")
            return
        if self.path.startswith("/moved"):
            self.send_response(307)
            self.send_header("Location", "http://elsewhere:9864/place?x=1")
            self.end_headers()
            return
        content = b"x" * 3_000_000 if self.path == "/large" else b'{"answer": 42}'
        missing = 7 if self.path == "/broken" else 0
        self.send_response(201 if self.command == "PUT" else 200)
        self.send_header("Content-Length", str(len(content) + missing))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_DELETE = answer  # noqa: N815  http.server's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Handler.seen = []
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as daemon:
        thread = threading.Thread(target=daemon.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{daemon.server_port}"
        daemon.shutdown()
        thread.join()


def test_http_get(server: str) -> None:
    answer = ask_http(HERE, "GET", f"{server}/path?q=1&r=a%2Fb")

    assert answer == HttpAnswer(status=200, body='{"answer": 42}', location=None)
    assert answer.json() == {"answer": 42}
    method, path, headers, _ = Handler.seen[0]
    assert (method, path) == ("GET", "/path?q=1&r=a%2Fb")
    assert headers["Accept"] == "application/json"


def test_http_put_with_body_and_headers(server: str) -> None:
    answer = ask_http(
        HERE, "PUT", f"{server}/x", body="größe", headers={"Content-Type": "text/plain"}
    )

    assert answer.status == 201
    method, _, headers, body = Handler.seen[0]
    assert (method, body) == ("PUT", "größe".encode())
    assert headers["Content-Type"] == "text/plain"


def test_http_sends_a_file(server: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(3_000_000))

    assert ask_http(HERE, "PUT", f"{server}/file", source=str(source)).status == 201
    _, _, headers, body = Handler.seen[0]
    assert body == source.read_bytes()
    assert headers["Content-Length"] == "3000000"


def test_http_stores_the_body_in_a_file(server: str, tmp_path: Path) -> None:
    target = tmp_path / "target"

    answer = ask_http(HERE, "GET", f"{server}/large", target=str(target))

    assert (answer.status, answer.body) == (200, "")
    assert target.read_bytes() == b"x" * 3_000_000


@pytest.mark.parametrize("stored", [True, False])
def test_http_takes_no_part_of_a_body_for_the_whole(
    stored: bool, server: str, tmp_path: Path
) -> None:
    target = str(tmp_path / "target") if stored else ""

    answer = ask_http(HERE, "GET", f"{server}/broken", target=target)

    assert answer == HttpAnswer(
        status=0, body="the answer broke off: its last 7 bytes are missing", location=None
    )


def test_http_stores_no_error_page_as_data(server: str, tmp_path: Path) -> None:
    target = tmp_path / "target"

    answer = ask_http(HERE, "GET", f"{server}/missing", target=str(target))

    assert answer.status == 404
    assert "not here" in answer.body
    assert not target.exists()


def test_http_gives_the_location_and_does_not_follow_it(server: str) -> None:
    answer = ask_http(HERE, "PUT", f"{server}/moved")

    assert (answer.status, answer.location) == (307, "http://elsewhere:9864/place?x=1")
    assert len(Handler.seen) == 1


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_http_to_nobody_is_status_0_and_says_why() -> None:
    answer = ask_http(HERE, "GET", f"http://127.0.0.1:{unused_port()}/")

    assert (answer.status, answer.location) == (0, None)
    assert "ConnectionRefusedError" in answer.body


def test_http_to_a_silent_daemon_ends_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        answer = ask_http(HERE, "GET", url, timeout_seconds=0.3)

    assert answer.status == 0
    assert "imed out" in answer.body


def test_http_get_all_keeps_the_order_and_goes_on_after_a_failure(server: str) -> None:
    nobody = f"http://127.0.0.1:{unused_port()}/"

    answers = http_get_all(HERE, [f"{server}/missing", nobody, f"{server}/there"])

    assert [answer.status for answer in answers] == [404, 0, 200]


def test_an_answer_that_is_not_json_is_a_remote_error() -> None:
    with pytest.raises(RemoteError, match="not JSON: '<html>'"):
        HttpAnswer(status=200, body="<html>", location=None).json()


# Storage accounting


def io_text(*, rchar: int = 0, wchar: int = 0, read: int = 0, write: int = 0, less: int = 0) -> str:
    return (
        f"rchar: {rchar}\nwchar: {wchar}\nsyscr: 900\nsyscw: 901\nread_bytes: {read}\n"
        f"write_bytes: {write}\ncancelled_write_bytes: {less}\n"
    )


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "proc"
    (folder / "sys").mkdir(parents=True)
    monkeypatch.setattr(node_agent, "PROC", str(folder))
    return folder


def add_process(proc: Path, pid: int, text: str) -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "io").write_text(text)


def test_storage_sums_every_process_but_itself(proc: Path) -> None:
    add_process(proc, 10, io_text(rchar=1, wchar=9_000, read=20, write=300, less=4_000))
    add_process(proc, 11, io_text(rchar=2, wchar=5, read=30, write=50_000, less=1))
    add_process(proc, os.getpid(), io_text(rchar=10**6, wchar=10**6, read=10**6, write=10**6))
    (proc / "12").mkdir()  # ended a moment ago

    assert node_agent.storage() == {
        "rchar": 3,
        "wchar": 9_005,
        "read_bytes": 50,
        "write_bytes": 50_300,
        "cancelled_write_bytes": 4_001,
        "bounded": 305,
        "unreadable": 0,
    }


def test_storage_counts_processes_it_may_not_read(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_process(proc, 10, io_text(read=7))
    add_process(proc, 11, io_text(read=7))
    real = os.open

    def refuse(path: str, flags: int) -> int:
        if "/11/" in path:
            raise PermissionError(path)
        return real(path, flags)

    monkeypatch.setattr(os, "open", refuse)

    totals = node_agent.storage()

    assert (totals["read_bytes"], totals["unreadable"]) == (7, 1)


PARENT = """
import signal, subprocess, sys
if sys.argv[1] == "ignores":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
subprocess.run([sys.executable, "-c", "import sys; open(sys.argv[1], 'wb').write(b'x' * 10**7)",
    sys.argv[2]])
print("done", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("kind", "least", "most"), [("waits", 10**7, 10**7 + 10**5), ("ignores", 0, 10**5)]
)
def test_the_kernel_adds_a_child_to_the_parent_that_waits_for_it(
    proc: Path, tmp_path: Path, kind: str, least: int, most: int
) -> None:
    argv = [sys.executable, "-c", PARENT, kind, str(tmp_path / "written")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"done\n"
        (proc / "77").symlink_to(f"/proc/{parent.pid}")
        totals = node_agent.storage()
        parent.communicate()

    assert least <= totals["wchar"] <= most


def test_storage_is_parsed() -> None:
    node = FakeRemote()
    row = {"rchar": 1, "wchar": 2, "read_bytes": 3, "write_bytes": 4, "cancelled_write_bytes": 5}
    node.tell_node_agent("storage", {**row, "bounded": 6, "unreadable": 7})

    assert storage(node) == StorageTotals(
        read_bytes=3,
        written_bytes=6,
        charged_bytes=4,
        cancelled_bytes=5,
        read_call_bytes=1,
        written_call_bytes=2,
        unreadable_processes=7,
    )
    assert storage(HERE).read_call_bytes > 0


def test_the_moment_is_of_both_clocks_with_what_is_free(tmp_path: Path) -> None:
    before = (time.monotonic(), time.time())
    answer = rpc(HERE, {"do": "moment", "folder": str(tmp_path)})
    after = (time.monotonic(), time.time())
    assert before[0] <= answer["monotonic_seconds"] <= after[0]
    assert before[1] <= answer["wall_seconds"] <= after[1]
    assert answer["free_bytes"] > 0


# Page caches


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: calls.append("sync"))
    return calls


def test_drop_caches_writes_back_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: list[str]
) -> None:
    monkeypatch.setattr(node_agent, "DROP_CACHES", str(tmp_path / "drop"))

    answer = node_agent.drop_caches({})

    assert answer == {"dropped": True, "reason": "", **node_agent.boot()}
    assert (tmp_path / "drop").read_text() == "3"
    assert synced == ["sync"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermissionError(13, "Permission denied"), "not permitted for this user"),
        (OSError(30, "Read-only file system"), "/proc/sys/vm/drop_caches: Read-only file system"),
    ],
)
def test_drop_caches_says_why_not(
    monkeypatch: pytest.MonkeyPatch, synced: list[str], error: OSError, reason: str
) -> None:
    def refuse(path: str, mode: str = "r") -> object:
        if mode == "w":
            raise error
        return Path(path).open(mode)

    monkeypatch.setattr(node_agent, "open", refuse, raising=False)

    answer = node_agent.drop_caches({})

    assert (answer["dropped"], answer["reason"]) == (False, reason)
    assert answer["boot_id"]


def test_drop_caches_is_parsed() -> None:
    node = FakeRemote()
    node.tell_node_agent("drop_caches", {"dropped": False, "reason": "why", "boot_id": "b"})

    assert drop_caches(node) == CacheDrop(dropped=False, reason="why", boot_id="b")


# Unused blocks


MOUNT_TABLE = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 254:1 / {tmp}/disk rw,relatime shared:1 - ext4 /dev/vda1 rw
31 22 0:40 / {tmp}/disk\\040two rw,relatime - btrfs /dev/null rw
32 22 0:41 / {tmp}/memory rw - tmpfs none rw
33 22 254:7 / {tmp}/memory rw - ext4 /dev/vdb rw
"""


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mountinfo").write_text(MOUNT_TABLE.format(tmp=tmp_path))
    monkeypatch.setattr(node_agent, "MOUNTS", str(tmp_path / "mountinfo"))
    return tmp_path


@pytest.mark.parametrize(
    ("folder", "mount", "device"),
    [
        ("disk/deep/down", "disk", "254:1"),
        ("disk", "disk", "254:1"),
        ("disk two/x", "disk two", "0:40"),
        ("memory/x", "memory", "254:7"),
        ("link/x", "disk", "254:1"),
    ],
)
def test_the_mount_of_a_folder(mounts: Path, folder: str, mount: str, device: str) -> None:
    (mounts / "link").symlink_to(mounts / "disk" / "deep")

    found = node_agent.mount_of(str(mounts / folder))

    assert found[:2] == (str(mounts / mount), device)


def test_a_folder_whose_name_only_begins_like_a_mount_is_not_on_it(mounts: Path) -> None:
    assert node_agent.mount_of(str(mounts / "disks")) == ("/", "254:0", "/dev/vda")


@pytest.fixture
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    real = tmp_path / "devices"
    for disk, most in (("vda", "1048576"), ("vdb", "0")):
        (real / disk / f"{disk}1").mkdir(parents=True)
        (real / disk / "queue").mkdir()
        (real / disk / "queue" / "discard_max_bytes").write_text(f"{most}\n")
    numbers = tmp_path / "block"
    numbers.mkdir()
    for number, place in (
        ("254:0", "vda"),
        ("254:1", "vda/vda1"),
        ("254:7", "vdb"),
        ("1:3", "vda"),
    ):
        (numbers / number).symlink_to(real / place)
    monkeypatch.setattr(node_agent, "DEVICES", str(numbers))
    return numbers


@pytest.mark.parametrize(
    ("device", "source", "expected"),
    [
        ("254:0", "/dev/vda", True),
        ("254:1", "/dev/vda1", True),  # a partition: its disk knows
        ("254:7", "/dev/vdb", False),
        ("0:41", "none", False),
        ("0:40", "/dev/null", True),  # 1:3, standing in for the disk under btrfs
        ("0:40", "/dev/no-such-device", False),
    ],
)
def test_whether_a_device_discards(devices: Path, device: str, source: str, expected: bool) -> None:
    assert node_agent.discards(device, source) is expected


def test_trim_does_each_device_once(
    mounts: Path, devices: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trimmed = []

    def fstrim(mount: str) -> tuple[int, str]:
        trimmed.append(mount)
        return 4096, ""

    monkeypatch.setattr(node_agent, "run_fstrim", fstrim)
    folders = [str(mounts / name) for name in ("disk/a", "disk/b", "memory", "elsewhere")]

    answers = node_agent.trim({"folders": folders, "skip": ["254:0"]})

    assert trimmed == [str(mounts / "disk")]
    assert answers == [
        {"mount": str(mounts / "disk"), "device": "254:1", "trimmed_bytes": 4096, "reason": ""},
        {
            "mount": str(mounts / "memory"),
            "device": "254:7",
            "trimmed_bytes": 0,
            "reason": "its device does not support it",
        },
    ]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('echo "$2: 127.7 MiB (133906432 bytes) trimmed"', (133_906_432, "")),
        ("echo done", (0, "fstrim does not say how much")),
        (
            'echo "fstrim: $2: FITRIM ioctl failed: Operation not permitted" >&2; exit 1',
            (0, "not permitted for this user"),
        ),
        (
            'echo "fstrim: $2: the discard operation is not supported" >&2; exit 1',
            (0, "fstrim: /disk: the discard operation is not supported"),
        ),
        ("exit 3", (0, "fstrim ended with status 3")),
    ],
)
def test_what_fstrim_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: tuple[int, str]
) -> None:
    program = tmp_path / "fstrim"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    assert node_agent.run_fstrim("/disk") == expected


def test_fstrim_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert node_agent.run_fstrim("/disk") == (0, "the program fstrim is missing")


def test_trim_is_asked_and_parsed() -> None:
    node = FakeRemote()
    row = {"mount": "/", "device": "8:1", "trimmed_bytes": 5, "reason": ""}
    node.tell_node_agent("trim", [row])

    found = trim(node, ["/data"], skip=["8:2"])

    assert found == [Trimmed(mount="/", device="8:1", trimmed_bytes=5, reason="")]
    assert node.requests == [{"do": "trim", "folders": ["/data"], "skip": ["8:2"]}]


# Temperatures


def test_the_hottest_zone_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("thermal_zone0", "41250\n"), ("thermal_zone1", "63000\n"), ("bad", "x")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "temp").write_text(text)
    (tmp_path / "cooling_device0").mkdir()
    monkeypatch.setattr(node_agent, "ZONES", str(tmp_path))

    assert node_agent.temperatures({}) == {"hottest_celsius": 63.0}


def test_no_zone_is_no_temperature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_agent, "ZONES", str(tmp_path / "missing"))

    assert node_agent.temperatures({}) == {"hottest_celsius": None}


@pytest.mark.parametrize("celsius", [None, 47.5])
def test_temperatures_are_parsed(celsius: float | None) -> None:
    node = FakeRemote()
    node.tell_node_agent("temperatures", {"hottest_celsius": celsius})

    assert hottest_celsius(node) == celsius


# Reaching ports


def test_reach_tells_ok_refused_and_unreachable_in_order() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        targets = [
            ("255.255.255.255", 9),  # no TCP to a broadcast address
            ("127.0.0.1", server.getsockname()[1]),
            ("127.0.0.1", unused_port()),
        ]
        views = reach(HERE, targets, timeout_seconds=5)

    assert [view.state for view in views] == [Reached.UNREACHABLE, Reached.OK, Reached.REFUSED]
    assert views[0].words
    assert views[1].words == ""
    assert views[2].words == "Connection refused"


def test_reach_ends_in_time_and_asks_at_once() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        address = server.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for client in waiting:  # fill the queue of those that wait to be accepted
            client.setblocking(False)
            client.connect_ex(address)
        started = time.monotonic()
        views = reach(HERE, [address] * 8, timeout_seconds=0.4)
        took_seconds = time.monotonic() - started
        for client in waiting:
            client.close()

    assert views == [Reaching(state=Reached.UNREACHABLE, words="timed out")] * 8
    assert took_seconds < 8 * 0.4


def test_what_a_login_script_prints_is_no_answer() -> None:
    remote = FakeRemote("pi0")
    remote.tell("node_agent", "boot", stdout='Welcome!\n{"boot_id": "x"}')

    with pytest.raises(RemoteError, match="pi0: the answer is not JSON: 'Welcome!") as caught:
        boot_of(remote)
    assert ".bashrc" in caught.value.hint


def test_logs_are_gathered_within_a_bound_and_only_from_ordinary_files(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "scratch" / "logs"
    (source / "container_1").mkdir(parents=True)
    (source / "container_1" / "long").write_bytes(b"begin" + b"x" * 100 + b"end")
    (source / "container_1" / "short").write_bytes(b"short")
    (source / "container_2").mkdir()
    (source / "container_2" / "syslog").write_bytes(b"y" * 40)
    (source / "container_2" / "link").symlink_to("/etc/passwd")

    assert excerpt(HERE, str(source), str(target), file_bytes=50, total_bytes=60) == (1, 1)

    found = {str(path.relative_to(target)): path.read_bytes() for path in target.glob("*/*")}
    assert found == {"container_1/long": b"x" * 47 + b"end", "container_1/short": b"short"}
    assert excerpt(HERE, f"{source}-none", str(target), file_bytes=50, total_bytes=60) is None
    assert not target.exists()
