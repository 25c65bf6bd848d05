"""One node with systemd, in namespaces of this machine. It is entered, not reached by SSH.

Its root folder is made as those of the boards are (tests/boards.py). Of this machine's settings it
can change none: /proc/sys is read-only, and so is /sys but for its own group of processes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from boardcluster.remote.local import LocalRemote
from tests.boards import (
    MAKE_DEVICES,
    MOUNT_ROOT,
    SYSTEM_PATH,
    WITHOUT,
    first_child,
    prepare,
)
from tests.waiting import wait_until

START_SECONDS_MOST = 60.0
END_SECONDS_MOST = 20.0

START = f"""\
set -e
root=$1 name=$2 layers=$3 address=$4 share=$5 place=$6
{MOUNT_ROOT}mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 run "$root/run"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mount -t tmpfs -o mode=755 dev "$root/dev"
mkdir -p "$root$place"
mount --bind "$share" "$root$place"
mount -o remount,bind,ro "$root$place"
{MAKE_DEVICES}hostname "$name"
ip link set lo up
ip link add eth0 type veth peer name cable
ip addr add "$address/24" dev eth0
ip link set eth0 up
ip link set cable up
cd "$root"
rm -rf etc/systemd/system/*.wants
mkdir run/outer
pivot_root . run/outer
cd /
umount -l run/outer
rmdir run/outer
exec env -i container=other PATH="$PATH" /lib/systemd/systemd --unit=basic.target
"""
"""The first process of the node, which becomes systemd."""


def cgroup_root() -> Path | None:
    """Return where this machine's groups of processes are (version 2), if it has them."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, folder, kind, *_ = line.split()
        if kind == "cgroup2" and os.access(folder, os.W_OK):
            return Path(folder)
    return None


class Inside(LocalRemote):
    """The node, as one of its users."""

    def __init__(self, pid: int, *, user: str) -> None:
        spaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup")
        enter = ("nsenter", "--target", str(pid), *spaces, "--", "env", f"PATH={SYSTEM_PATH}")
        become = ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups")
        super().__init__("sd0", prefix=(*enter, *(become if user != "root" else ())))
        self._root = Path(f"/proc/{pid}/root")

    def put(self, source: Path, target: str) -> None:
        """Copy into the node's own root folder, for the user it is entered as."""
        place = Path(f"{self._root}{target}")
        staged = self._root / "tmp" / "put"
        super().put(source, str(staged))
        staged.chmod(0o755)
        self.run(["mkdir", "-p", str(Path(target).parent)])
        if source.is_dir():
            self.run(["rm", "-rf", target])
        self.run(["cp", "-rT", "/tmp/put", target])
        shutil.rmtree(staged) if staged.is_dir() else staged.unlink()
        assert place.exists()


class SystemdNode:
    """The node; a context manager.

    Args:
        folder: where its upper layer lies; on a real disk, not on an overlay.
        address: its IPv4 address, in a network of its own.
        share: a folder of this machine that the node sees, read-only.
        place: where it sees it.
    """

    def __init__(self, *, folder: Path, address: str, share: Path, place: str) -> None:
        self._folder = folder
        self._arguments = (address, str(share), place)
        self._process: subprocess.Popen[bytes] | None = None
        self._group = Path()
        self.pid = 0

    def remote(self, user: str = "root") -> Inside:
        """Return the way into it."""
        return Inside(self.pid, user=user)

    def run(self, script: str, *, check: bool = True) -> str:
        """Run a script as root; return what it prints."""
        return self.remote().run(["sh", "-ec", script], check=check).text

    def __enter__(self) -> Self:
        root = cgroup_root()
        assert root is not None, "this machine has no cgroup v2"
        prepare(self._folder / "sd0", name="sd0", lower=Path("/"), key="")
        self._group = root / f"boardcluster-test-{os.getpid()}"
        self._group.mkdir()
        try:
            self._start()
        except BaseException as error:
            error.add_note((self._folder / "sd0.log").read_text(errors="replace")[-2000:])
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

    def _start(self) -> None:
        node = self._folder / "sd0"
        layers = f"lowerdir=/,upperdir={node / 'upper'},workdir={node / 'work'}"
        join = 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"'
        flags = ("--net", "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--fork")
        with (self._folder / "sd0.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig", "KILL", "sh", "-c", join, "sh", str(self._group)),
                    *("unshare", *flags, "--kill-child", "--"),
                    *("setpriv", f"--bounding-set={WITHOUT}"),
                    *("sh", "-c", START, "sh", str(node / "root"), "sd0", layers),
                    *self._arguments,
                ],
                env={"PATH": SYSTEM_PATH},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pid = first_child(self._process)
        wait_until(
            self._is_running,
            "systemd",
            seconds=START_SECONDS_MOST,
            failed=lambda: self._process is None or self._process.poll() is not None,
        )

    def _is_running(self) -> bool:
        if not Path(f"/proc/{self.pid}/root/run/systemd/private").exists():
            return False
        state = self.run("systemctl is-system-running", check=False).strip()
        return state in ("running", "degraded")

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()  # and with it, its child: the first process of the node
            self._process.wait(END_SECONDS_MOST)
        wait_until(self._is_gone, "the end of the node's processes", seconds=END_SECONDS_MOST)
        shutil.rmtree(self._folder / "sd0")

    def _is_gone(self) -> bool:
        """Remove the node's control groups; False while processes are in them."""
        folders = [Path(folder) for folder, _, _ in os.walk(self._group, topdown=False)]
        with contextlib.suppress(OSError):
            for folder in folders:
                folder.rmdir()
        return not self._group.exists()
