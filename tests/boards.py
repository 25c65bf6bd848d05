"""Boards for tests: nodes with a system of their own on this machine, reached only by real SSH.

A node is a process id, host name, mount, network and IPC namespace whose root folder is an overlay.
Its lower layer is this machine's own root, read only, so that the machine's Debian packages are
there; its upper layer has the node's own users, host keys, host name and hosts file, and hides what
is not the system's: homes, temporary files, mounts, data of services, the driver's folders. In it
runs ``sshd``. There is no systemd. Nodes share this machine's kernel, cores, memory and clock.

All nodes hang on one bridge, in a namespace of its own. So do a ``driver``, which has the only key,
and an ``outside`` host, which has none: an attacker on the same network. This machine's own network
namespace is not connected to any of them.

Every mount is made inside the namespaces of a process that the kernel ends with this one, so
nothing stays mounted, even after kill -9. The thread that enters ``Boards`` has to live as long.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import random
import secrets
import select
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.process_tree import children_of
from tests.quick_java import put_into_layer
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[1]
LOGIN = "pi"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
START_SECONDS_MOST = 60.0
END_SECONDS_MOST = 20.0
DRIVER_HOST = 2
FIRST_HOST = 10
OUTSIDE_HOST = 200

HOSTS = ("switch", "driver", "outside")
HOST_KEYS = ("ecdsa", "ed25519")
SYSTEM_FOLDERS = ("bin", "etc", "lib", "sbin", "usr", "var")
FRESH_FOLDERS = {
    "boot": 0o755,
    "dev": 0o755,
    "home": 0o755,
    "media": 0o755,
    "mnt": 0o755,
    "opt": 0o755,
    "proc": 0o555,
    "root": 0o700,
    "run": 0o755,
    "srv": 0o755,
    "sys": 0o555,
    "tmp": 0o1777,
}
"""Folders of the root that are a node's own, and empty at first."""

KEPT = ("var/lib", "var/lib/apt", "var/lib/dpkg", "var/lib/pam", "var/lib/ucf")
"""What a node sees of this machine's /var: Debian's own records of what is installed."""

NOT_A_NODES = (
    "etc/boardcluster",
    "etc/gshadow-",
    "etc/group-",
    "etc/passwd-",
    "etc/shadow-",
    "etc/subgid",
    "etc/subuid",
    "var/lib/boardcluster",
)
"""What may exist here and does not exist on a fresh board."""

SSHD_CONFIG = """\
Include /etc/ssh/sshd_config.d/*.conf
HostKey /etc/ssh/ssh_host_ecdsa_key
HostKey /etc/ssh/ssh_host_ed25519_key
KbdInteractiveAuthentication no
UsePAM yes
X11Forwarding yes
PrintMotd no
AcceptEnv LANG LC_*
Subsystem sftp /usr/lib/openssh/sftp-server
"""

SUDOERS = f"""\
Defaults env_reset
Defaults mail_badpass
Defaults secure_path="{SYSTEM_PATH}"
Defaults use_pty
root ALL=(ALL:ALL) ALL
%sudo ALL=(ALL:ALL) ALL
@includedir /etc/sudoers.d
"""

NO_PASSWORD = "etc/sudoers.d/010_pi-nopasswd"  # Raspberry Pi OS calls it so

NSSWITCH = """\
passwd: files
group: files
shadow: files
gshadow: files
hosts: files dns
networks: files
protocols: files
services: files
ethers: files
rpc: files
"""

WITHOUT = "-sys_time,-sys_module,-sys_rawio,-mknod"
"""What even root on a node may not do, because it would reach the machine that all nodes share."""

MOUNT_ROOT = """\
mount -t overlay -o "$layers" node "$root"
mount -t proc proc "$root/proc"
for part in sys sysrq-trigger; do
    [ -e "$root/proc/$part" ] || continue
    mount --bind "$root/proc/$part" "$root/proc/$part"
    mount -o remount,bind,ro "$root/proc/$part"
done
"""
"""Mounts the layers of a node with its own /proc, in which little can be changed."""

MAKE_DEVICES = """\
cd "$root/dev"
mkdir pts shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts pts
mount -t tmpfs -o mode=1777 shm shm
for device in full null random tty urandom zero; do
    : > "$device"
    mount --bind "/dev/$device" "$device"
done
if [ -e /dev/net/tun ]; then
    mkdir net
    : > net/tun
    mount --bind /dev/net/tun net/tun
fi
ln -s pts/ptmx ptmx
ln -s /proc/self/fd fd
"""
"""Fills /dev, which is mounted already, and ends in it."""

START_NODE = f"""\
set -e
root=$1 name=$2 layers=$3
{MOUNT_ROOT}mount --bind "$root/proc/sys/net" "$root/proc/sys/net"
mount -o remount,bind,rw "$root/proc/sys/net"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 run "$root/run"
mount -t tmpfs -o mode=755 dev "$root/dev"
{MAKE_DEVICES}: > kmsg
ln -s fd/0 stdin
ln -s fd/1 stdout
ln -s fd/2 stderr
hostname "$name"
cd "$root"
mkdir run/sshd run/lock run/outer
chmod 1777 run/lock
pivot_root . run/outer
cd /
umount -l run/outer
rmdir run/outer
/usr/sbin/sshd
until [ -s run/sshd.pid ]; do sleep 0.01; done
echo ready
exec env --ignore-signal=CHLD sleep infinity > /dev/null 2>&1
"""
"""The first process of a node. sshd listens once it has written its process id.

Its kernel's log is an empty file of its own: what the machine's kernel tells of other tests and
other disks is no fault of a board.
"""

START_HOST = """\
set -e
[ -z "$1" ] || mount -t overlay -o "lowerdir=$1:/etc" etc /etc
ip link set lo up
echo ready
exec sleep infinity > /dev/null 2>&1
"""
"""The first process of what is only a network: the switch, the driver, the outside host.

The driver has a passwd of its own. It lies in a folder that is mounted, because a mount over the
machine's own file would end as soon as somebody on the machine replaces that file.
"""

AS_DRIVER = (
    "sh",
    "-c",
    'there=$1; shift; exec nsenter --target "$there" --net --mount -- env --chdir="$(pwd)" "$@"',
    "driver",
)
"""Entering a mount namespace leads to its root folder; the caller's folder is wanted."""


@dataclass(frozen=True, slots=True)
class BoardNode:
    """A node that runs.

    Attributes:
        name: host name, and its name in the driver's SSH configuration.
        address: its IPv4 address.
        pid: process id, on this machine, of its first process.
        sshd_port: where its SSH server listens.
    """

    name: str
    address: str
    pid: int
    sshd_port: int = 22

    @property
    def root(self) -> Path:
        """The node's root folder as seen from here; an absolute link in it leads elsewhere."""
        return Path(f"/proc/{self.pid}/root")


def write(path: Path, text: str, *, mode: int = 0o644, owner: int = 0, group: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    os.chown(path, owner, group)


def make_key(path: Path, kind: str, comment: str) -> None:
    command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", comment, "-f", str(path)]
    subprocess.run(command, check=True, capture_output=True)


def empty(folder: Path, *, mode: int, owner: int = 0, group: int = 0) -> None:
    """Make a folder that covers the lower layer's."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(mode)
    os.chown(folder, owner, group)
    os.setxattr(folder, "trusted.overlay.opaque", b"y")


def remove(upper: Path, name: str, *, lower: Path) -> None:
    """Let a name of the lower layer not exist."""
    if os.path.lexists(lower / name):
        (upper / name).parent.mkdir(parents=True, exist_ok=True)
        os.mknod(upper / name, stat.S_IFCHR, os.makedev(0, 0))


def cover(upper: Path, *, lower: Path) -> None:
    """Leave of the lower layer only what belongs to the system."""
    for name, mode in FRESH_FOLDERS.items():
        empty(upper / name, mode=mode)
    for entry in lower.iterdir():
        if not entry.name.startswith(SYSTEM_FOLDERS) and entry.name not in FRESH_FOLDERS:
            remove(upper, entry.name, lower=lower)
    for name in NOT_A_NODES:
        remove(upper, name, lower=lower)
    for entry in (*(lower / "var").iterdir(), *(lower / "var" / "lib").iterdir()):
        name = str(entry.relative_to(lower))
        if entry.is_dir() and not entry.is_symlink() and name not in (*KEPT, *NOT_A_NODES):
            below = entry.stat()
            mode = stat.S_IMODE(below.st_mode)
            empty(upper / name, mode=mode, owner=below.st_uid, group=below.st_gid)
    for name in ("etc/ssh", "etc/sudoers.d", "usr/local", *driver_folders()):
        empty(upper / name, mode=0o755)


def driver_folders() -> list[str]:
    """Folders of whoever runs the tests that could lie among the system's programs."""
    folders = {Path.cwd(), Path.home(), Path(tempfile.gettempdir()), ROOT}
    names = {str(folder.resolve()).lstrip("/") for folder in folders}
    return sorted(name for name in names if name.startswith("usr/"))


def add_users(upper: Path, *, lower: Path, uid: int) -> None:
    """Write the node's users: the system's, nobody with a password, and the one who logs in."""
    rows = [line.split(":") for line in (lower / "etc/passwd").read_text().splitlines()]
    users = [row for row in rows if int(row[2]) < 1000 or row[0] == "nobody"]
    users = [row for row in users if row[0] != "boardcluster"]
    users.append([LOGIN, "x", str(uid), str(uid), ",,,", f"/home/{LOGIN}", "/bin/bash"])
    names = [row[0] for row in users]
    rows = [line.split(":") for line in (lower / "etc/group").read_text().splitlines()]
    groups = [row for row in rows if int(row[2]) < 1000 or row[0] == "nogroup"]
    groups = [[*row[:3], LOGIN if row[0] == "sudo" else ""] for row in groups]
    groups = [row for row in groups if row[0] != "boardcluster"]
    groups.append([LOGIN, "x", str(uid), ""])
    shadow = next(int(row[2]) for row in groups if row[0] == "shadow")
    etc = upper / "etc"
    write(etc / "passwd", "".join(":".join(row) + "\n" for row in users))
    write(etc / "group", "".join(":".join(row) + "\n" for row in groups))
    for name, text in (
        ("shadow", "".join(f"{name}:*:19000:0:99999:7:::\n" for name in names)),
        ("gshadow", "".join(f"{row[0]}:*::{row[3]}\n" for row in groups)),
    ):
        write(etc / name, text, mode=0o640, group=shadow)


def prepare(node: Path, *, name: str, lower: Path, key: str) -> None:
    """Write the upper layer of a node."""
    upper = node / "upper"
    upper.mkdir(parents=True)
    (node / "work").mkdir()
    (node / "root").mkdir()
    cover(upper, lower=lower)
    if lower == Path("/"):
        put_into_layer(upper)
    uid = random.randint(1000, 50_000)
    add_users(upper, lower=lower, uid=uid)
    etc = upper / "etc"
    write(etc / "environment", "")
    write(etc / "fstab", "# UNCONFIGURED FSTAB FOR BASE SYSTEM\n")
    write(etc / "hostname", f"{name}\n")
    # The second row is Debian's: a daemon that looks up its own name gets an address of its own.
    write(etc / "hosts", f"127.0.0.1\tlocalhost\n127.0.1.1\t{name}\n")
    write(etc / "machine-id", f"{secrets.token_hex(16)}\n", mode=0o444)
    write(etc / "nsswitch.conf", NSSWITCH)
    write(etc / "resolv.conf", "")
    write(etc / "sudoers", SUDOERS, mode=0o440)
    write(upper / NO_PASSWORD, f"{LOGIN} ALL=(ALL) NOPASSWD: ALL\n", mode=0o440)
    write(etc / "ssh" / "sshd_config", SSHD_CONFIG)
    for kind in HOST_KEYS:
        make_key(etc / "ssh" / f"ssh_host_{kind}_key", kind, f"root@{name}")
    home = upper / "home" / LOGIN
    write(home / ".ssh" / "authorized_keys", key, mode=0o600, owner=uid, group=uid)
    for folder in (home, home / ".ssh"):
        folder.chmod(0o700)
        os.chown(folder, uid, uid)


class Boards:
    """Nodes, driver and outside host; a context manager.

    Args:
        count: how many nodes.
        folder: where the nodes' upper layers lie while they run; on a real disk, not on an overlay.
        subnet: IPv4 network of all hosts; the driver is its .2, node i its .(10+i), outside .200.
        base: root folder of another Debian system for the lower layer; this machine's if not given.

    Attributes:
        nodes: the nodes, in order; their names are pi0, pi1, ...
        driver_address: the driver's IPv4 address.
        outside_address: the outside host's IPv4 address.
    """

    def __init__(
        self,
        count: int,
        *,
        folder: Path,
        subnet: str = "198.18.44.0/24",
        base: Path = Path("/"),
    ) -> None:
        network = ipaddress.ip_network(subnet)
        assert 0 < count <= OUTSIDE_HOST - FIRST_HOST
        assert network.num_addresses > OUTSIDE_HOST + 1
        self.nodes: tuple[BoardNode, ...] = ()
        self.driver_address = str(network[DRIVER_HOST])
        self.outside_address = str(network[OUTSIDE_HOST])
        self._addresses = [str(network[FIRST_HOST + index]) for index in range(count)]
        self._prefix_length = network.prefixlen
        self._folder = folder
        self._base = base
        self._home = folder / "driver" / "home"
        self._etc = folder / "driver" / "etc"
        self._key = self._home / ".ssh" / "id_ed25519"
        self._hosts: dict[str, subprocess.Popen[bytes]] = {}
        self._boards: list[subprocess.Popen[bytes]] = []
        self._namespaces: list[int] = []

    @property
    def driver_prefix(self) -> tuple[str, ...]:
        """What a program of the driver is started with."""
        return (*AS_DRIVER, str(self._hosts["driver"].pid))

    @property
    def outside_prefix(self) -> tuple[str, ...]:
        """What a program of the outside host is started with."""
        return ("nsenter", "--target", str(self._hosts["outside"].pid), "--net", "--")

    @property
    def driver_env(self) -> dict[str, str]:
        """Variables, beside the caller's own, that a program of the driver needs."""
        return {"HOME": str(self._home), "SSH_AUTH_SOCK": ""}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException as error:
            logs = sorted(self._folder.glob("*.log"))
            error.add_note("".join(path.read_text(errors="replace") for path in logs)[-2000:])
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()

    def on_driver(
        self, argv: Sequence[str], *, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the driver."""
        return subprocess.run(
            [*self.driver_prefix, *argv],
            env={**os.environ, **self.driver_env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=check,
        )

    def run_on(
        self, index: int, argv: Sequence[str], *, user: str = "root", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on a node, not over SSH: to plant a fault, or to look."""
        assert self._boards[index].poll() is None, f"pi{index} is off"
        enter = ["nsenter", "--target", str(self.nodes[index].pid), "--mount", "--uts", "--ipc"]
        enter += ["--net", "--pid", "--"]
        if user != "root":
            enter += ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        return subprocess.run(
            [*enter, *argv],
            env={"PATH": SYSTEM_PATH, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=check,
        )

    def power_off(self, index: int) -> None:
        """End a node as a power cut does: nobody on the network hears of it."""
        self.cut(index)
        os.kill(self.nodes[index].pid, signal.SIGKILL)
        self._boards[index].wait(END_SECONDS_MOST)

    def cut(self, index: int) -> None:
        """Pull a node's network cable."""
        self._in_switch(f"link set port{index} down")

    def mend(self, index: int) -> None:
        """Plug it in again."""
        self._in_switch(f"link set port{index} up")

    def new_host_key(self, index: int) -> None:
        """Give a node other host keys, as a new installation of its system does."""
        program = (
            "cd /etc/ssh; rm ssh_host_*\n"
            f"for kind in {' '.join(HOST_KEYS)}\n"
            'do ssh-keygen -q -t "$kind" -N "" -f "ssh_host_${kind}_key"; done\n'
            "pid=$(cat /run/sshd.pid); rm /run/sshd.pid; kill -HUP $pid\n"
            "until [ -s /run/sshd.pid ]; do sleep 0.01; done\n"
        )
        self.run_on(index, ["timeout", "10", "sh", "-ec", program])

    def sudo_asks(self, index: int) -> None:
        """Let sudo ask for a password on a node."""
        (self.nodes[index].root / NO_PASSWORD).unlink()

    def _start(self) -> None:
        """1. keys and upper layers; 2. first processes; 3. cables; 4. wait for each sshd."""
        names = [f"pi{index}" for index in range(len(self._addresses))]
        self._prepare_driver(names)
        key = self._key.with_suffix(".pub").read_text()
        with ThreadPoolExecutor(4) as pool:
            made = [
                pool.submit(prepare, self._folder / name, name=name, lower=self._base, key=key)
                for name in names
            ]
            for future in made:
                future.result()

        for name in HOSTS:
            etc = str(self._etc) if name == "driver" else ""
            flags = ("--net", "--mount")
            self._hosts[name] = self._spawn(name, flags, ("sh", "-c", START_HOST, name, etc))
        self._boards = [self._start_board(name) for name in names]
        pids = [first_child(process) for process in self._boards]
        self.nodes = tuple(map(BoardNode, names, self._addresses, pids))
        for process in self._hosts.values():
            await_ready(process)
        every = (*(process.pid for process in self._hosts.values()), *pids)
        self._namespaces = [os.open(f"/proc/{pid}/ns/net", os.O_RDONLY) for pid in every]

        self._lay_cables()
        for process in self._boards:
            await_ready(process)

    def _prepare_driver(self, names: list[str]) -> None:
        """Write the driver's home. OpenSSH takes its path from passwd, not from HOME."""
        ssh = self._home / ".ssh"
        ssh.mkdir(parents=True, mode=0o700)
        make_key(self._key, "ed25519", "driver")
        entries = [
            f"Host {name}\n  HostName {address}\n  User {LOGIN}\n"
            f"  IdentityFile {self._key}\n  IdentitiesOnly yes\n"
            for name, address in zip(names, self._addresses, strict=True)
        ]
        write(ssh / "config", "".join(entries), mode=0o600)
        rows = [line.split(":") for line in Path("/etc/passwd").read_text().splitlines()]
        rows = [[*row[:5], str(self._home), row[6]] if row[2] == "0" else row for row in rows]
        write(self._etc / "passwd", "".join(":".join(row) + "\n" for row in rows))

    def _start_board(self, name: str) -> subprocess.Popen[bytes]:
        node = self._folder / name
        layers = f"lowerdir={self._base},upperdir={node / 'upper'},workdir={node / 'work'}"
        flags = ("--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child")
        limit = ("setpriv", f"--bounding-set={WITHOUT}")
        script = ("sh", "-c", START_NODE, name, str(node / "root"), name, layers)
        return self._spawn(name, flags, (*limit, *script))

    def _spawn(
        self, name: str, flags: Sequence[str], argv: Sequence[str]
    ) -> subprocess.Popen[bytes]:
        """Start a first process, which ends when this thread does."""
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "unshare", *flags, "--", *argv],
                env={"PATH": SYSTEM_PATH},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def _in_switch(self, *lines: str) -> None:
        batch_ip(self._hosts["switch"].pid, lines)

    def _lay_cables(self) -> None:
        hosts = [("driver", self.driver_address), ("outside", self.outside_address)]
        ends = [(name, self._hosts[name].pid, address) for name, address in hosts]
        ends += [(f"port{index}", node.pid, node.address) for index, node in enumerate(self.nodes)]
        lines = ["link add name switch type bridge", "link set switch up"]
        for port, pid, _ in ends:
            lines += [
                f"link add name {port} type veth peer name eth0 netns {pid}",
                f"link set {port} master switch up",
            ]
        self._in_switch(*lines)
        for _, pid, address in ends:
            network = f"{address}/{self._prefix_length}"
            add = f"addr add {network} broadcast + dev eth0"
            batch_ip(pid, ["link set lo up", add, "link set eth0 up"])

    def _end(self) -> None:
        """End every process in the namespaces, wait until none is left, delete all files."""
        processes = [*self._boards, *self._hosts.values()]
        for process in processes:
            process.kill()
        for process in processes:
            process.wait(END_SECONDS_MOST)
            if process.stdout:
                process.stdout.close()
        # The open files keep a namespace's number from being given to somebody else's.
        seen = [os.fstat(number) for number in self._namespaces]
        namespaces = {(status.st_dev, status.st_ino) for status in seen}
        wait_until(
            lambda: not kill_in(namespaces),
            "the end of the boards' processes",
            seconds=END_SECONDS_MOST,
            pause_seconds=0.01,
        )
        while self._namespaces:
            os.close(self._namespaces.pop())
        for name in (*HOSTS, *(f"pi{index}" for index in range(len(self._addresses)))):
            shutil.rmtree(self._folder / name, ignore_errors=not (self._folder / name).exists())
            (self._folder / f"{name}.log").unlink(missing_ok=True)


def own_processes(namespaces: set[tuple[int, int]]) -> list[int]:
    """Find the processes in any of these network namespaces (device and inode)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                seen = (entry / "ns" / "net").stat()
                if (seen.st_dev, seen.st_ino) in namespaces:
                    found.append(int(entry.name))
    return found


def kill_in(namespaces: set[tuple[int, int]]) -> list[int]:
    """Kill the processes in these network namespaces; return those that were there."""
    found = own_processes(namespaces)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return found


def batch_ip(pid: int, lines: Sequence[str]) -> None:
    """Run commands of ip(8) in a process's network."""
    subprocess.run(
        ["nsenter", "--target", str(pid), "--net", "--", "ip", "-batch", "-"],
        env={"PATH": SYSTEM_PATH},
        input="\n".join(lines).encode() + b"\n",
        check=True,
    )


def first_child(parent: subprocess.Popen[bytes]) -> int:
    """Wait for the only child of ``unshare --fork``; all its namespaces are then there."""

    def children() -> list[int]:
        with contextlib.suppress(OSError):
            return children_of(parent.pid)
        return []

    (child,) = wait_until(
        children,
        f"the first process of {parent.args!r}",
        seconds=START_SECONDS_MOST,
        failed=lambda: parent.poll() is not None,
        pause_seconds=0.002,
    )
    return child


def await_ready(process: subprocess.Popen[bytes]) -> None:
    """Wait until a first process says that all is in place."""
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], START_SECONDS_MOST)
    if not readable or process.stdout.readline() != b"ready\n":
        raise RuntimeError(f"does not start: {process.args!r}")
