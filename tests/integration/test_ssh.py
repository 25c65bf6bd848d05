"""The ssh Remote against a real OpenSSH server of our own on the loopback interface."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from boardcluster.errors import (
    HostError,
    HostKeyError,
    LoginError,
    RemoteError,
    RemoteTimeoutError,
    UnreachableError,
)
from boardcluster.remote.base import Remote
from boardcluster.remote.hostkeys import HostKey, known, learn, trust
from boardcluster.remote.node_rpc import processes, rpc
from boardcluster.remote.ssh import SshRemote, SshRoute
from tests.process_tree import children_of
from tests.waiting import wait_until

MARKS = (b"BOARDCLUSTER_RUN=", b"BOARDCLUSTER_JOB=")
OURS = f"BOARDCLUSTER_SSH_TEST_{os.getpid()}"
"""A variable of everything that the test's own server starts."""
PRIVILEGE_SEPARATION = Path("/run/sshd")


def ssh_keygen(path: Path) -> str:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path)]
    subprocess.run(command, check=True)
    return path.with_suffix(".pub").read_text()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def process_table() -> Iterator[tuple[int, list[str], bytes]]:
    """Every process: its id, words and environment."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                yield int(entry.name), words, (entry / "environ").read_bytes()


def marked() -> list[list[str]]:
    """What runs on behalf of a command or a job that came through a server of this test."""
    return [
        words
        for _, words, env in process_table()
        if OURS.encode() in env and any(mark in env for mark in MARKS)
    ]


def processes_of(user: str) -> list[str]:
    """The user's processes on this machine; a container may have one of the same number."""
    uid, here = pwd.getpwnam(user).pw_uid, Path("/proc/self/ns/pid").readlink()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if entry.stat().st_uid == uid and (entry / "ns" / "pid").readlink() == here:
                    found.append(entry.name)
    return found


def with_words(text: str) -> list[int]:
    return [pid for pid, words, _ in process_table() if text in " ".join(words)]


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@dataclass
class Server:
    """A running sshd and what its clients need.

    ``~/.ssh`` is the home of the account, whatever HOME says; so a program named ``ssh`` stands
    first on PATH and gives the real one the configuration of the test.
    """

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def config(self) -> Path:
        return self.folder / "config"

    @property
    def host_key(self) -> str:
        return " ".join((self.folder / "host_key.pub").read_text().split()[:2])

    def known_hosts(self) -> str:
        return f"[127.0.0.1]:{self.port} {self.host_key}\n"

    def stop(self, connections: list[int]) -> None:
        """End the server first, so that nobody can connect again, and then its connections."""
        self.process.terminate()
        self.process.wait(10)
        kill_all(connections)

    def restart(self) -> None:
        self.process = start_sshd(self.folder, self.port)

    def connections(self) -> list[int]:
        """The processes of sshd that serve one connection each, newest last."""
        return children_of(self.process.pid)

    def serving(self) -> list[int]:
        """All processes of connections, oldest first, and nothing that runs by them.

        An ordinary user's connection is served by a child of the process that took it.
        """
        found = []
        for taker in self.connections():
            names = {pid: Path(f"/proc/{pid}/comm").read_text() for pid in children_of(taker)}
            found += [taker, *(pid for pid, name in names.items() if name == "sshd\n")]
        return found


def start_sshd(folder: Path, port: int) -> subprocess.Popen[bytes]:
    with (folder / "sshd.log").open("ab") as log:
        process = subprocess.Popen(
            ["/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "sshd_config")],
            stdin=subprocess.DEVNULL,
            stderr=log,
        )

    def listens() -> bool:
        assert process.poll() is None, (folder / "sshd.log").read_text()
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens, "the server")
    return process


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = not PRIVILEGE_SEPARATION.exists() and os.geteuid() == 0
    if made:
        PRIVILEGE_SEPARATION.mkdir(mode=0o755)
    folder = Path(tempfile.mkdtemp(prefix="sshd-", dir="/tmp"))
    folder.chmod(0o755)
    ssh_keygen(folder / "host_key")
    (folder / "authorized").write_text(ssh_keygen(folder / "id"))
    ssh_keygen(folder / "other_id")
    port = free_port()
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\n"
        f"HostKey {folder}/host_key\n"
        f"PidFile {folder}/sshd.pid\n"
        # A shell inside a shell: so bash does not spend its time on the developer's .bashrc.
        f"SetEnv {OURS}={folder} SHLVL=2\n"
        f"AuthorizedKeysFile {folder}/authorized\n"
        "UsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "PermitRootLogin yes\nMaxStartups 100\n"
    )
    user = pwd.getpwuid(os.geteuid()).pw_name
    (folder / "config").write_text(
        f"Host node\n  HostName 127.0.0.1\n  Port {port}\n  User {user}\n"
        f"  UserKnownHostsFile {folder}/of_the_user\n"  # for its use as a jump host
        f"Host behind\n  HostName localhost\n  Port {port}\n  User {user}\n  ProxyJump node\n"
        f"Host nokey\n  HostName 127.0.0.1\n  Port {port}\n  User {user}\n"
        f"  IdentityFile {folder}/other_id\n"
        f"Host absent\n  HostName 127.0.0.1\n  Port {free_port()}\n"
        f"Host alias\n  HostName 127.0.0.1\n  Port {port}\n  User {user}\n  HostKeyAlias pi9\n"
        f"Host * !nokey\n  IdentityFile {folder}/id\n"
        "Host *\n  IdentitiesOnly yes\n  RequestTTY force\n"
    )
    (folder / "bin").mkdir()
    program = folder / "bin" / "ssh"
    program.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n')
    program.chmod(0o755)
    running = Server(folder=folder, port=port, process=start_sshd(folder, port))
    yield running
    running.process.terminate()
    running.process.wait(10)
    shutil.rmtree(folder)
    if made:
        PRIVILEGE_SEPARATION.rmdir()


@pytest.fixture(autouse=True)
def path(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{server.folder}/bin:{os.environ['PATH']}")


@pytest.fixture
def route(server: Server) -> Iterator[SshRoute]:
    with tempfile.TemporaryDirectory(prefix="bc %", dir="/tmp") as name:
        control = Path(name)
        (control / "known hosts").write_text(server.known_hosts())
        yield SshRoute(host="node", known_hosts=control / "known hosts", control=control)


@pytest.fixture
def make(route: SshRoute, tmp_path: Path) -> Iterator[Callable[..., SshRemote]]:
    """Remotes to the server; afterwards nothing of them is left."""
    remotes: list[SshRemote] = []

    def one(*, host: str = "node", **options: object) -> SshRemote:
        options = {"jobs": str(tmp_path / "jobs"), **options}
        remote = SshRemote("pi0", replace(route, host=host), **options)  # type: ignore[arg-type]
        remotes.append(remote)
        return remote

    yield one
    for remote in remotes:
        remote.close()
    wait_until(lambda: not with_words(str(route.control)), "the end of the connection")
    assert marked() == []
    assert not list((tmp_path / "jobs").glob("*"))


@pytest.fixture
def remote(make: Callable[..., SshRemote]) -> SshRemote:
    return make()


def test_runs_with_folder_variables_and_input(remote: SshRemote, tmp_path: Path) -> None:
    done = remote.run(
        ["sh", "-c", "pwd; echo $MARK; cat; echo words >&2"],
        cwd=str(tmp_path),
        env={"MARK": "a value"},
        stdin=b"in\0put",
    )

    assert done.stdout == os.fsencode(tmp_path) + b"\na value\nin\0put"
    assert (done.stderr, done.returncode) == (b"words\n", 0)
    assert done.argv[0] == "sh"
    assert isinstance(remote, Remote)


ODD = [
    "",
    "two words",
    "it's",
    '"double"',
    "$HOME `id` $(id)",
    "back\\slash\\",
    "line\nbreak",
    "*",
    "~",
    "-n",
    "--",
    "#",
    "semi;colon & | > <",
    "größe \u2603",
    "a=b",
]


def test_arguments_arrive_as_they_are(remote: SshRemote) -> None:
    program = "import json, sys; print(json.dumps(sys.argv[1:]))"

    done = remote.run(["python3", "-c", program, *ODD], env={"ODD": "it's $HOME"})

    assert done.text.strip() == json.dumps(ODD)


def test_large_input_arrives_whole(remote: SshRemote) -> None:
    data = os.urandom(2_000_000)

    assert remote.run(["sha256sum"], stdin=data).text.split()[0] == hashlib.sha256(data).hexdigest()
    assert remote.run(["true"], stdin=data).returncode == 0


@pytest.mark.parametrize("status", [1, 126, 255])
def test_a_commands_own_status_is_not_a_broken_connection(remote: SshRemote, status: int) -> None:
    command = ["sh", "-c", f"printf 'no line end' >&2; exit {status}"]

    done = remote.run(command, check=False)

    assert (done.returncode, done.stderr) == (status, b"no line end")
    with pytest.raises(RemoteError, match=rf"pi0: command failed with status {status}: sh -c") as e:
        remote.run(command)
    assert type(e.value) is RemoteError
    assert "no line end" in e.value.message


def test_a_signal_is_a_status_above_128(remote: SshRemote) -> None:
    assert remote.run(["sh", "-c", "kill -9 $$"], check=False).returncode == 137


def test_a_missing_program_is_said_with_the_node(remote: SshRemote) -> None:
    with pytest.raises(RemoteError, match="pi0: program not found: no-such-program") as caught:
        remote.run(["no-such-program", "x"], check=False)
    assert caught.value.hint == "install no-such-program on pi0"


def test_one_connection_is_shared_and_ends_with_close(
    make: Callable[..., SshRemote], server: Server
) -> None:
    first, second = make(), make()
    assert server.connections() == []

    first.run(["true"])
    (connection,) = server.connections()
    second.run(["true"])

    assert server.connections() == [connection]
    first.close()
    wait_until(lambda: server.connections() == [], "the end of the connections")
    first.close()  # twice does no harm
    assert second.run(["true"]).returncode == 0


def test_many_at_once(remote: SshRemote) -> None:
    with ThreadPoolExecutor(12) as pool:  # more than sshd's MaxSessions
        done = list(pool.map(lambda number: remote.run(["echo", str(number)]).text, range(12)))

    assert done == [f"{number}\n" for number in range(12)]


def test_a_long_program_goes_by_standard_input(remote: SshRemote) -> None:
    """Sudo logs every argument list, and logs lie on the board's card."""
    program = (
        "from __future__ import annotations\n"
        "import json, sys\n"
        "if __name__ == '__main__':\n"
        "    with open('/proc/self/cmdline') as stream:\n"
        "        print(len(stream.read()), sys.argv[1:], sys.stdin.read(), 'größe')\n"
    )
    size, *rest = remote.run(
        ["python3", "-I", "-S", "-c", program + "#" * 5000, "a"], stdin=b"input"
    ).text.split()

    assert int(size) < 200
    assert rest == ["['a']", "input", "größe"]
    assert "boot_id" in rpc(remote, {"do": "boot"})


def test_unknown_key(make: Callable[..., SshRemote], route: SshRoute) -> None:
    route.known_hosts.write_text("")

    with pytest.raises(HostKeyError, match=r"pi0: the host key of node \(\[127\.0\.0\.1\]:\d+\)"):
        make().run(["true"])
    assert route.known_hosts.read_text() == ""


def test_changed_key(make: Callable[..., SshRemote], route: SshRoute, server: Server) -> None:
    other = (server.folder / "other_id.pub").read_text().split()[1]
    planted = f"[127.0.0.1]:{server.port} ssh-ed25519 {other}\n"
    route.known_hosts.write_text(planted)

    with pytest.raises(HostKeyError, match="another host key than before") as caught:
        make().run(["true"])

    assert route.known_hosts.read_text() == planted
    # The hint's command does what it says.
    command = caught.value.hint.partition("run ")[2].partition(", then")[0]
    subprocess.run(shlex.split(command), check=True, capture_output=True)
    assert route.known_hosts.read_text() == ""


def test_no_key_fits(make: Callable[..., SshRemote], route: SshRoute, server: Server) -> None:
    with pytest.raises(LoginError, match=r"nokey accepts none of your keys: .*Permission denied"):
        make(host="nokey").run(["true"])

    remote = SshRemote("pi0", replace(route, host="nokey", identity=server.folder / "id"))
    assert remote.run(["true"]).returncode == 0
    remote.close()


def test_nobody_listens(make: Callable[..., SshRemote]) -> None:
    with pytest.raises(UnreachableError, match=r"pi0: cannot reach absent: .*Connection refused"):
        make(host="absent").run(["true"])
    with pytest.raises(UnreachableError, match="Could not resolve"):
        make(host="no-such-host.invalid").run(["true"])


def test_a_silent_host_is_unreachable_and_not_a_command_that_takes_long(
    make: Callable[..., SshRemote], server: Server
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        host = f"ssh://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UnreachableError, match=r"no connection to .* within 0\.5 s"):
            make(host=host).run(["true"], timeout_seconds=0.5)


def test_a_broken_configuration_is_this_machines_fault(
    make: Callable[..., SshRemote], server: Server
) -> None:
    good = server.config.read_text()
    try:
        server.config.write_text(f"NoSuchKeyword yes\n{good}")
        with pytest.raises(HostError, match="Bad configuration option: nosuchkeyword"):
            make().run(["true"])
    finally:
        server.config.write_text(good)


def test_a_connection_that_breaks_while_a_command_runs(remote: SshRemote, server: Server) -> None:
    remote.run(["true"])
    breaker = threading.Timer(0.5, lambda: kill_all(server.serving()))
    breaker.start()

    with pytest.raises(UnreachableError, match="the connection broke while a command ran: sleep"):
        remote.run(["sleep", "2.5"])

    breaker.join()
    assert remote.run(["true"]).returncode == 0  # over a new one
    wait_until(
        lambda: not marked(), "the end of what was started"
    )  # it went on, because nobody could end it


def test_what_took_too_long_does_not_go_on(remote: SshRemote) -> None:
    command = ["sh", "-c", "echo last words >&2; setsid sleep 61 & exec sleep 60"]

    with pytest.raises(RemoteTimeoutError, match=r"pi0: command did not end within 1 s") as caught:
        remote.run(command, timeout_seconds=1)

    assert caught.value.message.endswith("last words")
    assert caught.value.stderr == b"last words\n"
    assert marked() == []


INTERRUPTED = """
import sys
from pathlib import Path
from boardcluster.remote.ssh import SshRemote, SshRoute
host, folder, jobs, kind = sys.argv[1:]
folder = Path(folder)
remote = SshRemote("pi0", SshRoute(host=host, known_hosts=folder / "known hosts", control=folder),
                   jobs=jobs)
command = ["sh", "-c", 'sleep 60 & echo begun >"$0"; wait', str(folder / "begun")]
try:
    if kind == "run":
        remote.run(command)
    else:
        remote.run_logged(command, stdout=folder / "out", stderr=folder / "err", timeout_seconds=60)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("kind", ["run", "run_logged"])
def test_ctrl_c_ends_the_command_on_the_node(
    make: Callable[..., SshRemote], route: SshRoute, tmp_path: Path, kind: str
) -> None:
    make()
    arguments = ["node", str(route.control), str(tmp_path / "jobs"), kind]
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *arguments], stderr=subprocess.PIPE
    ) as driver:
        begun = route.control / "begun"
        wait_until(begun.exists, "the command")
        assert marked()
        driver.send_signal(signal.SIGINT)
        _, words = driver.communicate(timeout=20)

    assert (driver.returncode, words) == (130, b"")
    assert marked() == []


def test_a_killed_driver_leaves_a_connection_that_ends_by_itself(
    make: Callable[..., SshRemote], route: SshRoute
) -> None:
    make().run(["true"])

    (command,) = [words for _, words, _ in process_table() if str(route.control) in " ".join(words)]
    assert "[mux]" in " ".join(command)
    assert "ControlPersist=60" in route.command()


def test_start_outlives_the_connection(remote: SshRemote, tmp_path: Path) -> None:
    log = tmp_path / "log"

    ref = remote.start(
        ["sh", "-c", "echo $MARK; exec sleep 60"], log=str(log), env={"MARK": "given"}
    )

    try:
        remote.close()
        (view,) = processes(remote, [ref])
        assert view.alive
        wait_until(lambda: log.read_text() == "given\n", "the log")
        assert marked() == []  # it is no command that we wait for
    finally:
        os.kill(ref.pid, signal.SIGKILL)


def test_start_of_a_missing_program(remote: SshRemote, tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="no-such-program"):
        remote.start(["no-such-program"], log=str(tmp_path / "log"))


def test_put_and_get_a_file(remote: SshRemote, tmp_path: Path) -> None:
    source = tmp_path / "a source's file"
    source.write_bytes(b"\0content")
    source.chmod(0o750)
    there = tmp_path / "node" / "it's $HOME *" / "file"
    back = tmp_path / "back" / "file"

    remote.put(source, str(there))
    remote.get(str(there), back)

    assert there.read_bytes() == back.read_bytes() == b"\0content"
    assert there.stat().st_mode & 0o777 == 0o750
    assert [path.name for path in back.parent.iterdir()] == ["file"]


def test_put_replaces_what_has_the_same_size_and_second(remote: SshRemote, tmp_path: Path) -> None:
    source, there = tmp_path / "conf", tmp_path / "node"
    source.mkdir()
    for text in ("port 1", "port 2"):
        (source / "site").write_text(text)
        now = time.time_ns()
        second = now - now % 10**9 + (1 if text == "port 1" else 2)
        os.utime(source / "site", ns=(second, second))
        remote.put(source, str(there))
        assert (there / "site").read_text() == text


def test_put_replaces_the_content_of_a_folder(remote: SshRemote, tmp_path: Path) -> None:
    source, there = tmp_path / "source", tmp_path / "node"
    (source / "inner").mkdir(parents=True)
    (source / "inner" / "new").write_text("new")
    (source / "link").symlink_to("inner/new")
    (source / "outside").symlink_to(Path(__file__))
    there.mkdir()
    (there / "stale").write_text("stale")

    remote.put(source, str(there))

    found = {str(path.relative_to(there)) for path in there.rglob("*")}
    assert found == {"inner", "inner/new", "link", "outside"}
    assert (there / "link").is_symlink()
    assert not (there / "outside").is_symlink()
    assert (there / "outside").read_text() == Path(__file__).read_text()


def test_get_a_folder_without_its_links(remote: SshRemote, tmp_path: Path) -> None:
    there, back = tmp_path / "node", tmp_path / "back"
    (there / "logs").mkdir(parents=True)
    (there / "logs" / "log").write_text("line")
    (there / "logs" / "link").symlink_to(there / "logs" / "log")
    back.mkdir()
    (back / "stale").write_text("stale")

    remote.get(f"{there}/logs", back)

    assert {path.name: path.is_symlink() for path in back.iterdir()} == {
        "log": False,
        "link": False,
    }
    assert (back / "link").read_text() == "line"


def test_get_of_nothing_and_put_of_nothing(remote: SshRemote, tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match=r"pi0: .*absent cannot be .*: it does not exist"):
        remote.get(str(tmp_path / "absent"), tmp_path / "back" / "file")
    with pytest.raises(RemoteError, match=r"pi0: .*absent cannot be copied"):
        remote.put(tmp_path / "absent", str(tmp_path / "there"))

    assert list((tmp_path / "back").iterdir()) == []


def test_a_copy_that_cannot_connect_says_so(make: Callable[..., SshRemote], tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="cannot reach absent"):
        make(host="absent").put(Path(__file__), str(tmp_path / "x"))
    with pytest.raises(LoginError):
        make(host="nokey").get(__file__, tmp_path / "x")


def test_lend_and_collect(remote: SshRemote, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("content")

    with remote.temporary_upload(source) as there, remote.download_on_exit(target) as result:
        assert there != str(source)
        remote.run(["cp", there, result])
        assert not target.exists()

    assert target.read_text() == "content"


def test_collect_of_a_block_that_fails_leaves_nothing(remote: SshRemote, tmp_path: Path) -> None:
    with (
        pytest.raises(RemoteError, match="status 1"),
        remote.download_on_exit(tmp_path / "target") as there,
    ):
        remote.run(["sh", "-c", 'touch "$0"; exit 1', there])

    assert not (tmp_path / "target").exists()


def job_of(tmp_path: Path, words: str) -> list[str]:
    """A job that notes that it was started."""
    return ["sh", "-c", f"echo started >>{tmp_path}/starts; {words}"]


def starts(tmp_path: Path) -> int:
    path = tmp_path / "starts"
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_job_runs_and_its_output_comes_back(remote: SshRemote, tmp_path: Path) -> None:
    done = remote.run_logged(
        job_of(tmp_path, "pwd; echo $MARK; echo words >&2; cat; exit 255"),
        stdout=tmp_path / "out",
        stderr=tmp_path / "err",
        env={"MARK": "it's"},
        cwd="/usr",
        timeout_seconds=30,
    )

    assert done.returncode == 255
    assert (tmp_path / "out").read_text() == "/usr\nit's\n"
    assert (tmp_path / "err").read_text() == "words\n"
    assert 0 < done.duration_seconds < 10
    assert starts(tmp_path) == 1


@pytest.mark.parametrize("what", ["connection", "server"])
def test_a_job_survives_a_dropped_connection_and_is_found_again(
    remote: SshRemote, route: SshRoute, server: Server, tmp_path: Path, what: str
) -> None:
    seen: list[int] = []

    def drop() -> None:
        wait_until(lambda: starts(tmp_path), "the start of the job")
        seen.extend([*server.serving(), *with_words(str(route.control))])
        if what == "server":  # nobody answers for a while
            server.stop(seen)
            time.sleep(1.5)
            server.restart()
        else:
            kill_all(seen)

    breaker = threading.Thread(target=drop)
    breaker.start()
    done = remote.run_logged(
        job_of(tmp_path, "sleep 3; echo the end"),
        stdout=tmp_path / "out",
        stderr=tmp_path / "err",
        timeout_seconds=30,
    )
    breaker.join()

    assert seen
    assert done.returncode == 0
    assert (tmp_path / "out").read_text() == "the end\n"
    assert 3 <= done.duration_seconds < 10
    assert starts(tmp_path) == 1


def test_a_job_is_given_up_when_its_node_is_gone_for_too_long(
    make: Callable[..., SshRemote], server: Server, tmp_path: Path
) -> None:
    remote = make(lost_seconds=1.0)

    def drop() -> None:
        wait_until(lambda: starts(tmp_path), "the start of the job")
        server.stop(server.serving())

    breaker = threading.Thread(target=drop)
    breaker.start()
    try:
        with pytest.raises(UnreachableError, match="unreachable for 1 s while a command may"):
            remote.run_logged(
                job_of(tmp_path, "exec sleep 60"),
                stdout=tmp_path / "out",
                stderr=tmp_path / "err",
                timeout_seconds=30,
            )
    finally:
        breaker.join()
        server.restart()
    (left,) = (tmp_path / "jobs").iterdir()
    mark = f"BOARDCLUSTER_JOB={left.name.removeprefix('job-')}"
    request = {"do": "job_end", "folder": str(left), "mark": mark, "grace_seconds": 1.0}
    rpc(remote, request)


def test_a_job_that_takes_too_long_is_ended_with_all_it_started(
    remote: SshRemote, tmp_path: Path
) -> None:
    with pytest.raises(RemoteTimeoutError, match=r"pi0: command did not end within 1 s") as caught:
        remote.run_logged(
            job_of(tmp_path, "echo last words >&2; setsid sleep 60 & exec sleep 60"),
            stdout=tmp_path / "out",
            stderr=tmp_path / "err",
            timeout_seconds=1,
        )

    assert caught.value.message.endswith("last words")
    assert (tmp_path / "err").read_text() == "last words\n"
    assert marked() == []


def test_a_job_of_a_missing_program(remote: SshRemote, tmp_path: Path) -> None:
    done = remote.run_logged(
        ["no-such-program"],
        stdout=tmp_path / "out",
        stderr=tmp_path / "err",
        timeout_seconds=30,
    )

    assert done.returncode == 127
    assert "no-such-program" in (tmp_path / "err").read_text()


def test_a_job_whose_supervisor_is_killed_has_no_status(remote: SshRemote, tmp_path: Path) -> None:
    def kill() -> None:
        # The job may begin before the file is there that says who supervises it.
        wait_until(lambda: starts(tmp_path), "the start of the job")
        [path] = wait_until(lambda: [*tmp_path.glob("jobs/*/supervisor")], "its supervisor")
        row = json.loads(path.read_text())
        os.kill(row["pid"], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(RemoteError, match="pi0: a command's supervisor was killed"):
        remote.run_logged(
            job_of(tmp_path, "exec sleep 60"),
            stdout=tmp_path / "out",
            stderr=tmp_path / "err",
            timeout_seconds=30,
        )
    killer.join()
    assert marked() == []


@pytest.fixture(scope="module")
def stranger() -> Iterator[str]:
    """A user of this machine who may log in and nothing else."""
    name = f"bctest{os.getpid()}"
    subprocess.run(
        # An account without password; one that is locked could not log in.
        ["useradd", "--system", "--shell", "/bin/sh", "--password", "*", "--home", "/", name],
        check=True,
    )
    yield name
    subprocess.run(["userdel", name], check=True, capture_output=True)


@pytest.mark.needs_root
def test_sudo_that_asks(make: Callable[..., SshRemote], server: Server, stranger: str) -> None:
    host = f"ssh://{stranger}@node:{server.port}"
    assert make(host=host).run(["id", "-un"]).text.strip() == stranger

    with pytest.raises(LoginError, match=f"pi0: {stranger} cannot become root") as caught:
        make(host=host, user="root").run(["true"], check=False)
    assert f"{stranger} ALL=(ALL) NOPASSWD: ALL" in caught.value.hint
    with pytest.raises(LoginError, match="cannot become root"):
        make(host=host, user="root").put(Path(__file__), "/nowhere")


@pytest.mark.needs_root
def test_a_user_who_is_not_there(make: Callable[..., SshRemote]) -> None:
    with pytest.raises(RemoteError, match="pi0: there is no user bcnobody"):
        make(user="bcnobody").run(["true"])


@pytest.mark.needs_root
def test_commands_and_files_are_the_users(
    make: Callable[..., SshRemote], stranger: str, server: Server, tmp_path: Path
) -> None:
    if not shutil.which("sudo"):
        pytest.skip("this machine has no sudo")
    folder = server.folder / "of the user"
    folder.mkdir()
    shutil.chown(folder, stranger)
    remote = make(user=stranger, jobs=str(folder / "jobs"))
    (tmp_path / "source").write_text("content")

    assert remote.run(["id", "-un"]).text.strip() == stranger
    asked = ["grep", "NoNewPrivs", "/proc/self/status"]
    assert remote.run(asked).text.split()[-1] == "1", "as for daemons, no set-user-ID program"
    direct = make(host=f"{stranger}@node", user=stranger)  # needs no sudo, and may not use it
    assert direct.run(["id", "-un"]).text.strip() == stranger
    direct.close()
    remote.put(tmp_path / "source", str(folder / "deep" / "file"))
    done = remote.run_logged(
        ["sh", "-c", "id -un; umask; pwd"],
        stdout=tmp_path / "out",
        stderr=tmp_path / "err",
        timeout_seconds=30,
    )
    with pytest.raises(RemoteTimeoutError):
        remote.run(["sleep", "60"], timeout_seconds=0.5)

    assert (folder / "deep" / "file").owner() == stranger
    assert done.returncode == 0
    assert (tmp_path / "out").read_text() == f"{stranger}\n0022\n/\n"
    with pytest.raises(RemoteError, match="Permission denied"):
        remote.put(tmp_path / "source", "/etc/boardcluster-test/file")
    wait_until(lambda: not processes_of(stranger), "the end of the stranger's processes")


def test_learn_trust_known(server: Server, route: SshRoute) -> None:
    route.known_hosts.unlink()
    fingerprint = subprocess.run(
        ["ssh-keygen", "-lf", str(server.folder / "host_key.pub")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[1]

    learned = learn(["node", "alias", "nokey", "absent", "node"])

    assert list(learned) == ["node", "alias", "nokey", "absent"]
    keys = [learned[host] for host in ("node", "alias", "nokey")]
    assert [key.name for key in keys if isinstance(key, HostKey)] == [
        f"[127.0.0.1]:{server.port}",
        "pi9",
        f"[127.0.0.1]:{server.port}",
    ]
    for key in keys:
        assert isinstance(key, HostKey)
        assert (key.kind, key.fingerprint) == ("ssh-ed25519", fingerprint)
    assert isinstance(learned["absent"], UnreachableError)
    assert "Connection refused" in learned["absent"].message
    assert not route.known_hosts.exists()
    assert known(route.known_hosts, "node") == ()

    trust(route.known_hosts, [key for key in keys if isinstance(key, HostKey)])

    assert route.known_hosts.stat().st_mode & 0o777 == 0o600
    assert route.known_hosts.read_text() == (f"{server.known_hosts()}pi9 {server.host_key}\n")
    for host in ("node", "alias"):
        assert known(route.known_hosts, host) == (learned[host],)
        remote = SshRemote("pi0", replace(route, host=host))
        assert remote.run(["true"]).returncode == 0
        remote.close()
    assert known(route.known_hosts, "absent") == ()


def test_jump_hosts_apply(
    make: Callable[..., SshRemote], server: Server, route: SshRoute, tmp_path: Path
) -> None:
    unknown = learn(["behind"])["behind"]
    assert isinstance(unknown, HostKeyError)
    assert "jump host" in unknown.hint
    with pytest.raises(UnreachableError) as caught:  # what the jump host's ssh says is not heard
        make(host="behind").run(["true"])
    assert "`ssh behind true`" in caught.value.hint
    (server.folder / "of_the_user").write_text(server.known_hosts())

    key = learn(["behind"])["behind"]
    assert isinstance(key, HostKey)
    assert key.name == f"[localhost]:{server.port}"
    trust(route.known_hosts, [key])
    remote = make(host="behind")
    remote.put(Path(__file__), str(tmp_path / "copy"))

    assert remote.run(["sha256sum", str(tmp_path / "copy")]).returncode == 0
    assert remote.run(["sh", "-c", "echo $SSH_CONNECTION"]).text.split()[3] == str(server.port)


def test_trust_never_replaces_a_key(server: Server, route: SshRoute) -> None:
    planted = (server.folder / "other_id.pub").read_text().split()[:2]
    name = f"[127.0.0.1]:{server.port}"
    learned = learn(["node", "alias"])
    keys = [key for key in learned.values() if isinstance(key, HostKey)]
    route.known_hosts.write_text(f"other {planted[0]} {planted[1]}\n{name} {' '.join(planted)}\n")
    subprocess.run(
        ["ssh-keygen", "-q", "-H", "-f", str(route.known_hosts)], check=True, capture_output=True
    )
    before = route.known_hosts.read_text()
    assert name not in before  # hashed, and found all the same

    with pytest.raises(HostKeyError, match=r"node: .* holds another key for \[127"):
        trust(route.known_hosts, keys[::-1])

    assert route.known_hosts.read_text() == before
    assert [path.name for path in route.known_hosts.parent.glob(".known*")] == []
    trust(route.known_hosts, keys[1:])
    assert route.known_hosts.read_text() == f"{before}pi9 {server.host_key}\n"
