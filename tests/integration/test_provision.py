"""Provisioning of nodes over real SSH: real apt, users and nftables; kills; exact uninstall."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import random
import signal
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.boards import BoardNode, Boards
from tests.waiting import wait_until

pytestmark = pytest.mark.needs_root

SUBNET = "198.18.46.0/24"
PROVISIONER = Path(__file__).with_name("provisioner.py")
CHANGING = ("etc/.pwd.lock", "etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-")
"""What the system's own tools leave: locks, and their copies of the former file."""

NOT_OURS = ("dev", "proc", "run", "sys", "tmp", "home", "var/cache", "var/lib/apt", "var/log")
DPKG_OWN = ("var/lib/dpkg/lock", "var/lib/dpkg/lock-frontend", "var/lib/dpkg/status-old")
LISTEN = "import socket, sys; s = socket.create_server((sys.argv[1], 9864)); print(1, flush=True)\n"


class Lab:
    """Two boards, and what the driver does to the first."""

    def __init__(self, boards: Boards, folder: Path) -> None:
        self.boards = boards
        self.folder = folder
        self.trees: list[list[str]] = []

    def start(self, verb: str, **fields: Any) -> subprocess.Popen[str]:
        request = {
            "verb": verb,
            "node": "pi0",
            "nodes": {node.name: node.address for node in self.boards.nodes},
            "subnet": SUBNET,
            "security": "closed",
            "architecture": platform.machine(),
            "packages": ["bc-tool"],
            "trees": self.trees,
            "keep_data": False,
            "known_hosts": str(self.folder / "known_hosts"),
            **fields,
        }
        process = subprocess.Popen(
            [*self.boards.driver_prefix, sys.executable, str(PROVISIONER)],
            env={**os.environ, **self.boards.driver_env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        process.stdin = None
        return process

    def ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        with self.start(verb, **fields) as process:
            out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        answer: dict[str, Any] = json.loads(out)
        return answer

    def words(self, verb: str, **fields: Any) -> list[str]:
        answer = self.ask(verb, **fields)
        assert "error" not in answer, answer
        return [change["words"] for change in answer["changes"]]

    def on(self, script: str, *, node: int = 0) -> str:
        return self.boards.run_on(node, ["sh", "-ec", script]).stdout

    def packages(self) -> list[str]:
        return self.on("dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n'").split(
            "\n"
        )

    def snapshot(self) -> dict[str, Any]:
        """Every file that is not another program's scratch, and every package."""
        root = self.boards.nodes[0].root
        files: dict[str, Any] = {}
        for folder, folders, names in os.walk(root):
            place = os.path.relpath(folder, root)
            folders[:] = [
                name for name in folders if os.path.normpath(f"{place}/{name}") not in NOT_OURS
            ]
            if place.startswith(("usr", "var/lib/dpkg/info")):
                files[place] = sorted(names)
                continue
            for name in [*folders, *names]:
                path = os.path.normpath(f"{place}/{name}")
                if path not in (*CHANGING, *DPKG_OWN):
                    files[path] = seen(root / path)
        return {**files, "packages": self.packages()}

    def kill_everything(self) -> None:
        """End, at once, all that runs on the board but its first process and its SSH server."""
        self.on(
            "main=$(cat /run/sshd.pid); for entry in /proc/[0-9]*; do pid=${entry#/proc/}; "
            'case $pid in 1|"$main"|$$) ;; *) kill -9 $pid 2>/dev/null || true ;; esac; done'
        )


def seen(path: Path) -> tuple[int, int, int, str]:
    """Type with mode, owner, and content of a file."""
    found = path.lstat()
    content = ""
    if stat.S_ISLNK(found.st_mode):
        content = str(path.readlink())
    elif stat.S_ISREG(found.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    return found.st_mode, found.st_uid, found.st_gid, content


def make_package(folder: Path, name: str, needs: str) -> str:
    """Make a tiny Debian package; return its paragraph for the repository's list."""
    source = folder / "source"
    (source / "DEBIAN").mkdir(parents=True)
    (source / "etc").mkdir()
    (source / "etc" / f"{name}.conf").write_text("setting\n")
    (source / "DEBIAN" / "conffiles").write_text(f"/etc/{name}.conf\n")
    # It takes a moment, as real packages do, so that a kill meets it.
    (source / "DEBIAN" / "postinst").write_text("#!/bin/sh\nsleep 0.3\n")
    (source / "DEBIAN" / "postinst").chmod(0o755)
    control = (
        f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: Test <test@example.org>\n"
        f"{f'Depends: {needs}' if needs else 'Section: misc'}\nDescription: for a test\n"
    )
    (source / "DEBIAN" / "control").write_text(control)
    file = folder / f"{name}.deb"
    subprocess.run(
        ["dpkg-deb", "--build", str(source), str(file)], check=True, stdout=subprocess.DEVNULL
    )
    subprocess.run(["rm", "-r", str(source)], check=True)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return f"{control}Filename: ./{file.name}\nSize: {file.stat().st_size}\nSHA256: {digest}\n\n"


def give_repository(node: BoardNode) -> None:
    """Let apt on a board know of two tiny packages and of nothing else."""
    repository = node.root / "srv" / "repository"
    repository.mkdir()
    rows = [
        make_package(repository, "bc-tool", "bc-needed"),
        make_package(repository, "bc-needed", ""),
        make_package(repository, "bc-user", "bc-needed"),
    ]
    (repository / "Packages").write_text("".join(rows))
    for path in (node.root / "etc/apt/sources.list.d").glob("*"):
        path.unlink()
    (node.root / "etc/apt/sources.list").write_text("deb [trusted=yes] file:/srv/repository ./\n")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("provision")
    with Boards(2, folder=folder / "boards", subnet=SUBNET) as boards:
        made = Lab(boards, folder)
        give_repository(boards.nodes[0])
        engine = folder / "engine"
        (engine / "jars").mkdir(parents=True)
        for number in range(40):
            (engine / "jars" / f"{number}.jar").write_bytes(random.randbytes(50_000))
        (engine / "jars").chmod(0o700)
        made.trees = [["engines/pair", str(engine)]]
        made.on("apt-get -q update")
        yield made


def test_a_bare_board_is_made_ready_once_and_given_back_exactly(lab: Lab) -> None:
    before = lab.snapshot()
    planned = lab.words("plan")
    assert lab.snapshot() == before
    assert planned[0] == "installs bc-tool and their dependencies"

    assert lab.words("apply") == planned
    assert {"bc-tool 1.0 installed", "bc-needed 1.0 installed"} <= set(lab.packages())
    user = lab.on("getent passwd boardcluster; sudo -n -l -U boardcluster; id -nG boardcluster")
    assert ":/nonexistent:/usr/sbin/nologin" in user
    assert "is not allowed to run sudo" in user
    assert user.endswith("\nboardcluster\n")
    assert lab.on("getent shadow boardcluster").split(":")[1].startswith("!")
    assert lab.on("stat -c '%U %a' /var/lib/boardcluster /opt/boardcluster/engines/pair/jars") == (
        "boardcluster 750\nroot 755\n"
    )
    assert lab.on("/opt/boardcluster/java/bin/java -version 2>&1")
    own = lab.on("getent ahosts pi0").split()[0]
    assert own == lab.boards.nodes[0].address, "Debian's 127.0.1.1 would win"

    after = lab.snapshot()
    assert lab.words("apply") == []
    assert lab.snapshot() == after

    lab.on("install -d -o boardcluster /var/lib/boardcluster/data/block")
    gone = lab.words("plan_uninstall")
    assert lab.words("uninstall") == gone
    assert lab.snapshot() == before
    assert lab.on("nft list tables") == ""
    assert lab.words("uninstall") == []


def test_a_run_killed_at_a_random_moment_is_finished_by_the_next(lab: Lab) -> None:
    before = lab.snapshot()
    moments = random.Random(20261121)
    for verb in ("apply", "uninstall") * 3:
        with lab.start(verb) as process:
            time.sleep(moments.uniform(0.3, 2.0))
            lab.kill_everything()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=60)
    lab.words("apply")
    assert lab.words("apply") == []
    assert "bc-tool 1.0 installed" in lab.packages()
    lab.words("uninstall")
    assert lab.snapshot() == before


def test_packages_that_cannot_be_fetched_are_named(lab: Lab) -> None:
    before = lab.snapshot()
    answer = lab.ask("apply", packages=["bc-tool", "not-there"])
    assert answer["error"] == "InstallError"
    assert "pi0: apt-get could not install bc-tool, not-there" in answer["message"]
    assert "Unable to locate package not-there" in answer["message"]
    lab.words("uninstall")
    assert lab.snapshot() == before


def test_a_package_that_another_one_needs_since_is_left(lab: Lab) -> None:
    lab.words("apply")
    lab.on("apt-get -q -y install bc-user")
    answer = lab.ask("uninstall")
    remarks = [change["remark"] for change in answer["changes"] if change["remark"]]
    assert remarks == ["left, because other packages or your login need them: bc-needed"]
    assert "bc-needed 1.0 installed" in lab.packages()
    lab.on("dpkg --purge bc-user bc-needed")


def test_data_is_kept_for_whom_it_belongs_to(lab: Lab) -> None:
    before = lab.snapshot()
    lab.words("apply")
    lab.on("install -d -o boardcluster /var/lib/boardcluster/data/block")
    lab.words("uninstall", keep_data=True)
    assert lab.on("stat -c %U /var/lib/boardcluster/data/block") == "boardcluster\n"
    assert lab.on("ls /opt; nft list tables") == ""
    lab.words("uninstall")
    assert lab.snapshot() == before


def test_uninstall_is_refused_while_anything_runs(lab: Lab) -> None:
    lab.words("apply")
    lab.on("sudo -u boardcluster sleep 60 >/dev/null 2>&1 & sleep 0.2")
    answer = lab.ask("uninstall")
    assert answer["error"] == "ClusterError"
    assert "sudo pkill -KILL -u boardcluster" in answer["hint"]
    assert lab.on("ls /opt") == "boardcluster\n"
    lab.on("pkill -u boardcluster")
    lab.words("uninstall")


def connects(prefix: tuple[str, ...], address: str, port: int) -> bool:
    program = (
        "import socket, sys\n"
        "socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1).close()"
    )
    words = [*prefix, "/usr/bin/python3", "-c", program, address, str(port)]
    return subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode == 0


@pytest.fixture
def ends() -> Iterator[contextlib.ExitStack]:
    """Ends what a test has started, also where it fails."""
    with contextlib.ExitStack() as stack:
        yield stack


@contextlib.contextmanager
def ended(process: subprocess.Popen[Any]) -> Iterator[None]:
    try:
        yield
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def serve(
    ends: contextlib.ExitStack, prefix: tuple[str, ...], program: str, *where: str | int
) -> None:
    """Start a program that serves, and wait until it says that it does."""
    words = [*prefix, "/usr/bin/python3", "-c", program, *map(str, where)]
    server = subprocess.Popen(words, stdout=subprocess.PIPE)
    ends.enter_context(ended(server))
    assert server.stdout is not None
    server.stdout.readline()


def test_the_firewall_lets_in_the_cluster_and_ssh_and_nobody_else(
    lab: Lab, ends: contextlib.ExitStack
) -> None:
    pi0, pi1 = lab.boards.nodes
    enter = ("nsenter", "--target", str(pi0.pid), "--net", "--")
    other = ("nsenter", "--target", str(pi1.pid), "--net", "--")
    program = LISTEN + "while True: s.accept()[0].close()"
    try:
        serve(ends, enter, program, pi0.address)
        assert connects(lab.boards.outside_prefix, pi0.address, 9864)  # open, so this can fail
        lab.words("apply")
        assert not connects(lab.boards.outside_prefix, pi0.address, 9864)
        assert not connects(lab.boards.driver_prefix, pi0.address, 9864)
        assert connects(lab.boards.outside_prefix, pi0.address, 22)
        assert connects(other, pi0.address, 9864)
        assert connects(enter, pi0.address, 9864)
        assert connects(enter, pi1.address, 22)  # what the node itself asks for
        ping = [*lab.boards.outside_prefix, "ping", "-c1", "-W1", pi0.address]
        if Path("/usr/bin/ping").exists():
            subprocess.run(ping, check=True, stdout=subprocess.DEVNULL)

        lab.on("nft insert rule inet boardcluster input tcp dport 9864 accept")
        assert connects(lab.boards.outside_prefix, pi0.address, 9864)
        assert len(lab.words("apply")) == 1
        assert not connects(lab.boards.outside_prefix, pi0.address, 9864)

        assert lab.words("apply", security="insecure-lab") == ["removes the firewall"]
        assert connects(lab.boards.outside_prefix, pi0.address, 9864)
    finally:
        lab.words("uninstall")


def reaches(lab: Lab, user: str, *targets: tuple[str, int], node: int = 0) -> list[bool]:
    """Whether a user of a board gets a connection to each target."""
    program = (
        "import json, socket, sys\n"
        "def one(address, port):\n"
        "    try: socket.create_connection((address, port), timeout=2).close()\n"
        "    except OSError: return False\n"
        "    return True\n"
        "print(json.dumps([one(*row) for row in json.loads(sys.argv[1])]))"
    )
    words = ["/usr/bin/python3", "-c", program, json.dumps(targets)]
    found: list[bool] = json.loads(lab.boards.run_on(node, words, user=user).stdout)
    return found


SERVE = """
import selectors, socket, sys
own = socket.create_server(("", int(sys.argv[1])))
poll = selectors.DefaultSelector()
for port in map(int, sys.argv[2:]):
    poll.register(socket.create_server(("::", port), family=socket.AF_INET6,
                                       dualstack_ipv6=True), selectors.EVENT_READ)
poll.register(own, selectors.EVENT_READ)
print(1, flush=True)
while True:
    for key, _ in poll.select():
        key.fileobj.accept()[0].close()
"""
SERVED = (8020, 9866, 8032, 8041, 13562)
"""NameNode, DataNode, ResourceManager, NodeManager and shuffle."""


def test_other_accounts_of_a_board_reach_no_service_of_members(
    lab: Lab, ends: contextlib.ExitStack
) -> None:
    """Own services of such an account go on, as does SSH; egress keeps daemons and jobs inside."""
    pi0, pi1 = lab.boards.nodes
    own_port, job_port = 8099, 40404  # of another program of the board, and of a job
    lab.on("useradd --create-home other")
    try:
        for prefix in (
            ("nsenter", "--target", str(pi0.pid), "--net", "--"),
            ("nsenter", "--target", str(pi1.pid), "--net", "--"),
            lab.boards.outside_prefix,
        ):
            serve(ends, prefix, SERVE, own_port, job_port, *SERVED)
        members = [
            (address, port)
            for address in (pi0.address, pi1.address)
            for port in (*SERVED, job_port)
        ]
        loop = [(address, port) for address in ("127.0.0.1", "::1") for port in SERVED]
        closed = [*members, *loop]
        beyond = [(lab.boards.outside_address, own_port)]
        assert all(reaches(lab, "other", *closed, *beyond))  # open, so this can fail

        lab.words("apply")
        assert reaches(lab, "other", *closed) == [False] * len(closed)
        left = [("127.0.0.1", own_port), (pi0.address, 22), (pi1.address, 22), *beyond]
        assert all(reaches(lab, "other", *left))
        for user in ("root", "boardcluster", "pi"):
            assert all(reaches(lab, user, *closed, *beyond)), user

        (words,) = lab.words("apply", egress="members")
        assert "daemons and jobs reach nothing but members" in words
        assert all(reaches(lab, "boardcluster", *closed))
        assert reaches(lab, "boardcluster", *beyond) == [False]
        for user in ("root", "pi", "other"):
            assert all(reaches(lab, user, *beyond)), user
        assert lab.words("apply", egress="members") == []
    finally:
        lab.words("uninstall")
        lab.on("userdel --remove other")


ECHO = """\
import socket, sys, threading
def opened(family, kind, port):
    s = socket.socket(family, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of earlier tests linger
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind(('', port))
    if kind == socket.SOCK_STREAM:
        s.listen(512)
    return s
def serve(s):
    while s.type == socket.SOCK_STREAM:
        s.accept()[0].close()
    while True:
        s.sendto(*s.recvfrom(9))
for port in map(int, sys.argv[1:]):
    for family in (socket.AF_INET, socket.AF_INET6):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            threading.Thread(target=serve, args=(opened(family, kind, port),), daemon=True).start()
print('ready', flush=True)
threading.Event().wait()
"""
SIEGE = """\
import contextlib, json, os, pwd, socket, sys, threading, time
targets, seconds, user = json.loads(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
once = len(sys.argv) > 4
if user:
    row = pwd.getpwnam(user)
    os.setgroups([]); os.setgid(row.pw_gid); os.setuid(row.pw_uid)
tries, reached = [0], {}
def besiege(kind, address, port):
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    where = socket.getaddrinfo(address, port, family)[0][4]
    end = time.monotonic() + seconds
    if kind == 'flood':
        return flood(family, where, end)
    while time.monotonic() < end:
        s = socket.socket(family, socket.SOCK_STREAM if kind == 'tcp' else socket.SOCK_DGRAM)
        s.settimeout(0.05)
        tries[0] += 1
        try:
            s.connect(where)
            if kind == 'udp':
                s.send(b'?'); s.recv(9)
            reached[f'{kind} {address}'] = reached.get(f'{kind} {address}', 0) + 1
            if once:
                return
        except OSError:
            pass
        finally:
            s.close()
def flood(family, where, end):
    while time.monotonic() < end:
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.setblocking(False)
            for _ in range(64):
                with contextlib.suppress(OSError):
                    s.sendto(b'?', where)
            time.sleep(0.0002)
            with contextlib.suppress(OSError):
                s.recv(9)
                reached[f'flood {where[0]}'] = reached.get(f'flood {where[0]}', 0) + 1
        tries[0] += 64
threads = [threading.Thread(target=besiege, args=target) for target in targets]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps({'tries': tries[0], 'reached': reached}))
"""
"""Tries the same again and again, as fast as answers come or fail to; or until each was reached. A
flood does not wait for answers: it meets moments that are too short for the others."""


def besieging(
    prefix: tuple[str, ...],
    targets: list[tuple[str, str, int]],
    *,
    seconds: float,
    user: str = "",
    once: bool = False,
) -> subprocess.Popen[str]:
    words = [*prefix, "/usr/bin/python3", "-c", SIEGE, json.dumps(targets), str(seconds), user]
    words += ["once"] if once else []
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def got_in(siege: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = siege.communicate(timeout=120)
    assert siege.returncode == 0
    found: dict[str, Any] = json.loads(out)
    return found


def test_nobody_gets_in_by_ipv6_or_udp_nor_while_the_rules_are_loaded_again(
    lab: Lab, ends: contextlib.ExitStack
) -> None:
    """From another host of the network, and from an account of a board."""
    pi0, pi1 = lab.boards.nodes
    enter = [("nsenter", "--target", str(node.pid), "--net", "--") for node in (pi0, pi1)]
    port = SERVED[0]
    six = [
        f"{lab.on('ip -6 -o addr show dev eth0 scope link', node=index).split()[3].split('/')[0]}"
        "%eth0"
        for index in (0, 1)
    ]
    outside = [
        (kind, address, port) for kind in ("tcp", "udp") for address in (pi0.address, six[0])
    ]
    # By UDP nothing of ours listens on a board itself.
    account = [("tcp", address, port) for address in ("127.0.0.1", "::1", pi0.address, six[0])]
    account += [(kind, address, port) for kind in ("tcp", "udp") for address in (six[1],)]
    account += [("tcp", pi1.address, port)]
    lab.on("useradd --create-home other")
    try:
        for entered in enter:
            serve(ends, entered, ECHO, port)
        inside = ("nsenter", "--target", str(pi0.pid), "--net", "--mount", "--")
        for prefix, targets, user in (
            (lab.boards.outside_prefix, outside, ""),
            (inside, account, "other"),
        ):
            # No more connections than that: the kernel lets one through that has the same port as
            # one which it still knows, however long that has been closed.
            seen = got_in(besieging(prefix, targets, seconds=20, user=user, once=True))
            assert len(seen["reached"]) == len(targets), "open, so this can fail"

        lab.words("apply")
        rules = (pi0.root / "etc/boardcluster/firewall.nft").read_text()
        (pi1.root / "run" / "firewall.nft").write_text(rules)  # as the other board would have it
        lab.on("nft -f /run/firewall.nft", node=1)
        sieges = [
            besieging(lab.boards.outside_prefix, outside, seconds=12),
            besieging(lab.boards.outside_prefix, [("flood", pi0.address, port)], seconds=12),
            besieging(inside, account, seconds=12, user="other"),
        ]
        for siege in sieges:
            ends.enter_context(ended(siege))
        again = "for i in $(seq 60); do nft -f /etc/boardcluster/firewall.nft; done"
        while sieges[0].poll() is None:
            lab.on(again)
        for siege in sieges:
            seen = got_in(siege)
            assert seen["reached"] == {}
            assert seen["tries"] > 200
        assert connects(lab.boards.outside_prefix, pi0.address, 22)
    finally:
        lab.words("uninstall")
        lab.on("nft delete table inet boardcluster 2>/dev/null || true", node=1)
        lab.on("userdel --remove other")


def test_guests_of_a_board_reach_no_service_of_members(
    lab: Lab, ends: contextlib.ExitStack
) -> None:
    """A container behind a masquerading board would arrive at the others under its address."""
    pi0, pi1 = lab.boards.nodes
    enter = [("nsenter", "--target", str(node.pid), "--net", "--") for node in (pi0, pi1)]
    guest = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    ends.enter_context(ended(guest))
    inside = ("nsenter", "--target", str(guest.pid), "--net", "--")
    try:
        for prefix in enter:
            serve(ends, prefix, SERVE, 8099, *SERVED)
        wait_until(lambda: namespace(guest.pid) != namespace(os.getpid()), "the guest")
        for prefix, commands in (
            (
                enter[0],
                (
                    f"ip link add guests type veth peer name eth0 netns {guest.pid}",
                    "ip addr add 10.99.0.1/24 dev guests",
                    "ip link set guests up",
                    "sysctl -qw net.ipv4.ip_forward=1",
                    "nft add table ip guests",
                    "nft add chain ip guests out { type nat hook postrouting priority 100; }",
                    "nft add rule ip guests out ip saddr 10.99.0.0/24 masquerade",
                ),
            ),
            (
                inside,
                (
                    "ip addr add 10.99.0.2/24 dev eth0",
                    "ip link set eth0 up",
                    "ip route add default via 10.99.0.1",
                ),
            ),
        ):
            for command in commands:
                subprocess.run([*prefix, *command.split()], check=True)
        both = [(board.address, port) for board in (pi0, pi1) for port in SERVED]
        assert all(connects(inside, *place) for place in both)  # so this can fail

        lab.words("apply")
        assert not any(connects(inside, *place) for place in both)
        assert connects(inside, pi1.address, 22)
        assert connects(enter[0], pi1.address, SERVED[0])  # the member itself, as root
    finally:
        subprocess.run([*enter[0], "ip", "link", "delete", "guests"], check=False)
        subprocess.run([*enter[0], "sysctl", "-qw", "net.ipv4.ip_forward=0"], check=True)
        subprocess.run([*enter[0], "nft", "delete", "table", "ip", "guests"], check=False)
        lab.words("uninstall")


def namespace(pid: int) -> Path:
    return Path(f"/proc/{pid}/ns/net").readlink()


def test_ssh_may_be_narrowed_and_ports_opened_without_locking_anybody_out(lab: Lab) -> None:
    address, driver = lab.boards.nodes[0].address, lab.boards.driver_address
    refused = lab.ask("apply", ssh_from=["203.0.113.0/24"])
    assert refused["error"] == "ClusterError"
    assert f"leaves out {driver}, from which you are connected" in refused["message"]
    assert lab.on("nft list tables") == ""

    (words,) = [row for row in lab.words("plan") if "firewall" in row]
    lab.words("apply", ssh_from=[f"{driver}/32"], open_ports=["8125/udp"])
    assert "others reach SSH only" in words
    assert not connects(lab.boards.outside_prefix, address, 22)
    assert connects(lab.boards.driver_prefix, address, 22)
    assert "udp dport 8125 accept" in lab.on("nft list table inet boardcluster")
    assert lab.on("ls /etc/boardcluster") == "firewall.nft\nmanifest.json\n"
    lab.words("uninstall")


LIST = "nft -s list table inet boardcluster 2>&1 || true; cat /etc/boardcluster/firewall.nft"
BLOCK = (
    "nft 'add table inet block; add chain inet block out { type filter hook output priority 0; };"
    " add rule inet block out ct state new tcp dport 22 drop'"
)


def test_rules_through_which_no_new_connection_comes_are_taken_back(lab: Lab) -> None:
    """Once it is the network that keeps the driver from coming back, and once its end."""
    lab.words("apply")
    former = lab.on(LIST)
    changed = {"open_ports": ["8125/udp"], "confirm_seconds": 3}
    answer = lab.ask("apply", **changed, before_coming_back=BLOCK)
    lab.boards.on_driver(["nft", "delete", "table", "inet", "block"])
    assert answer["error"] == "UnreachableError"
    assert "its new firewall lets no new connection in, and is taken back" in answer["message"]
    wait_until(lambda: lab.on(LIST) == former, seconds=10, what="the former rules")

    killed = lab.start("apply", **changed, before_coming_back="kill -9 $PPID")
    assert killed.wait(60) == -signal.SIGKILL
    killed.communicate()
    assert "8125" in lab.on(LIST)
    wait_until(lambda: lab.on(LIST) == former, seconds=10, what="the former rules")

    assert len(lab.words("apply", open_ports=["8125/udp"])) == 1
    assert "8125" in lab.on(LIST)
    lab.words("uninstall")


LEASE_SECONDS = 120
"""The least that dnsmasq gives out."""

DNSMASQ = (
    "/usr/sbin/dnsmasq --conf-file=/dev/null --user=root --interface=eth0 "
    "--bind-interfaces --no-resolv --no-hosts --address=/gateway.test/198.18.46.10 "
    f"--dhcp-range=198.18.46.150,198.18.46.160,{LEASE_SECONDS} --dhcp-authoritative "
    "--no-ping --leasefile-ro --pid-file=/run/dnsmasq.pid"
)
TAKE_ADDRESS = """\
#!/bin/sh
case $1 in bound|renew) ip address replace "$ip/24" dev "$interface" ;; esac
"""
RESOLVE = """\
import socket, sys
head = bytes([1, 2, 1, 0, 0, 1, *bytes(6)])  # RFC 1035, 4.1.1: one question
question = head + bytes([7, *b"gateway", 4, *b"test", 0, 0, 1, 0, 1])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ask:
    ask.settimeout(2)
    ask.sendto(question, (sys.argv[1], 53))
    sys.exit(socket.inet_aton("198.18.46.10") not in ask.recv(512))
"""


@contextlib.contextmanager
def leasing(lab: Lab) -> Iterator[None]:
    """Make the first board the network's DHCP and DNS server."""
    lab.on(DNSMASQ)  # goes on by itself once it listens
    try:
        yield
    finally:
        lab.on("kill $(cat /run/dnsmasq.pid)")


class Member:
    """A host of the network that lives on leases, and on names of the gateway."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self._prefix = lab.boards.outside_prefix
        self._gateway = lab.boards.nodes[0].address
        self._script = folder / "take-address"
        self._script.write_text(TAKE_ADDRESS)
        self._script.chmod(0o755)
        self._client = [*self._prefix, "udhcpc", "-f", "-i", "eth0", "-s", str(self._script)]

    def asks(self) -> bool:
        """Ask for a lease; say whether there was one."""
        once = [*self._client, "-n", "-q", "-t", "2", "-T", "1", "-A", "1"]
        return subprocess.run(once, capture_output=True, timeout=60, check=False).returncode == 0

    @contextlib.contextmanager
    def holding(self) -> Iterator[subprocess.Popen[str]]:
        """Hold a lease while the block runs."""
        with subprocess.Popen(self._client, stderr=subprocess.PIPE, text=True) as client:
            try:
                self.await_lease(client)
                yield client
            finally:
                client.terminate()
                address = ("ip", "address", "flush", "dev", "eth0", "to", "198.18.46.144/28")
                subprocess.run([*self._prefix, *address], check=True)

    def await_lease(self, client: subprocess.Popen[str]) -> None:
        """Wait until a client says that it got a lease, or that it has it again."""
        assert client.stderr is not None
        for line in client.stderr:
            if "lease of 198.18.46." in line:
                return
            assert any(word in line for word in ("started", "discover", "select", "renew")), line

    def resolves(self) -> bool:
        """Say whether the gateway answers a question for a name."""
        ask = [*self._prefix, "/usr/bin/python3", "-c", RESOLVE, self._gateway]
        return subprocess.run(ask, capture_output=True, timeout=60, check=False).returncode == 0


def test_a_gateway_goes_on_serving_the_network_also_after_a_restart(
    lab: Lab, tmp_path: Path
) -> None:
    """Its master is the DHCP and DNS server of hosts that are no members."""
    member = Member(lab, tmp_path)
    ports = {"open_ports": ["53/udp", "67/udp"]}
    with leasing(lab):
        assert member.asks()
        assert member.resolves()
        (words,) = [row for row in lab.words("plan") if "firewall" in row]
        assert "67/udp (dnsmasq)" in words

        lab.words("apply")
        assert not member.asks(), "closed, so what follows can fail"
        assert not member.resolves()
        lab.words("apply", **ports)
        with member.holding() as client:
            # What a restart does to rules. That the unit loads them then: test_systemd.py.
            lab.on("nft flush ruleset; nft -f /etc/boardcluster/firewall.nft")
            client.send_signal(signal.SIGUSR1)  # asks for more time now, not after half of it
            member.await_lease(client)
            assert member.resolves()
        assert member.asks()
        address = lab.boards.nodes[0].address
        assert connects(lab.boards.driver_prefix, address, 22)
    lab.words("uninstall")


def test_the_port_by_which_we_came_stays_open(lab: Lab) -> None:
    config = textwrap.dedent("""\
        Port 22
        Port 2022
    """)
    lab.on(
        f"mkdir /etc/ssh/sshd_config.d; printf '{config}' > /etc/ssh/sshd_config.d/port.conf; "
        "pid=$(cat /run/sshd.pid); rm /run/sshd.pid; kill -HUP $pid; "
        "until [ -s /run/sshd.pid ]; do sleep 0.05; done"
    )
    ssh = Path(lab.boards.driver_env["HOME"]) / ".ssh" / "config"
    former = ssh.read_text()
    ssh.write_text(f"Host pi0\n  Port 2022\n{former}")
    try:
        fields = {"known_hosts": str(lab.folder / "known_hosts_2022")}
        lab.words("apply", **fields)
        address = lab.boards.nodes[0].address
        assert connects(lab.boards.outside_prefix, address, 2022)
        assert not connects(lab.boards.outside_prefix, address, 22)
        lab.words("uninstall", **fields)
    finally:
        ssh.write_text(former)


def test_a_damaged_record_is_said_and_nothing_is_lost(lab: Lab) -> None:
    lab.words("apply")
    record = lab.boards.nodes[0].root / "etc/boardcluster/manifest.json"
    whole = record.read_bytes()
    record.write_bytes(whole[: len(whole) // 2])
    before = lab.snapshot()
    for verb in ("plan", "apply", "uninstall"):
        answer = lab.ask(verb)
        assert answer["error"] == "InstallError"
        assert "manifest.json, is damaged" in answer["message"]
    assert lab.snapshot() == before
    record.write_bytes(whole)
    lab.words("uninstall")
