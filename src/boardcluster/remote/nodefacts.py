"""Runs ON a node: answers what the node is, as raw text that the driver understands.

Standard library only and self-contained, sent as text like node_agent.py: one request as JSON on
standard input, one answer as JSON on standard output. It changes nothing. What a file or a program
says is passed on as it is, so that what it means is decided, and tested, on the driver; only what
a node alone can do is done here: follow links, count free space, ask the kernel.

Requests are ``{"do": VERB, "root": FOLDER, ...}``; ``root`` stands for ``/`` wherever files are
read and programs are looked up.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time

TYPE_CHECKING = False
"""Type checkers take this for true; see node_agent.py."""

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from typing import Any

FILE_BYTES_MOST = 65536
LOG_LINES_MOST = 20
"""Of each kind: a failing card writes thousands, and they must not hide that memory ran out."""
PROGRAMS_WITHIN_SECONDS = 4.0
PATH = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/opt/vc/bin",
)

FACT_FILES = (
    "/proc/device-tree/model",
    "/proc/device-tree/compatible",
    "/proc/device-tree/chosen/bootloader/version",
    "/proc/device-tree/chosen/u-boot,version",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/product_version",
    "/sys/class/dmi/id/bios_vendor",
    "/sys/class/dmi/id/bios_version",
    "/sys/class/dmi/id/bios_date",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/cpuinfo_min_freq",
    "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/cpuinfo_max_freq",
    "/sys/class/thermal/thermal_zone[0-9]*/temp",
    "/sys/class/net/*/speed",
    "/sys/class/net/*/duplex",
    "/sys/class/net/*/carrier",
    "/sys/class/net/*/phy80211/name",
    "/sys/class/block/*/dev",
    "/sys/class/block/*/size",
    "/sys/class/block/*/queue/rotational",
    "/sys/class/block/*/queue/discard_max_bytes",
    "/sys/class/block/*/device/type",
    "/sys/class/block/*/device/name",
    "/sys/class/block/*/device/model",
    "/sys/class/block/*/device/vendor",
    "/sys/class/nvme/*/device/current_link_speed",
    "/sys/class/nvme/*/device/current_link_width",
    "/sys/fs/cgroup/cgroup.controllers",
    "/proc/cgroups",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/swaps",
    "/proc/uptime",
    "/proc/self/mountinfo",
    "/proc/sys/kernel/random/boot_id",
    "/etc/os-release",
    "/etc/rpi-issue",
    "/etc/hosts",
    "/etc/ssh/ssh_host_*_key.pub",
)
LINKS = (
    "/sys/class/block/*",
    "/sys/class/block/*/slaves/*",
    "/sys/class/net/*/device",
    "/dev/mapper/*",
)
JAVAS = (
    "/usr/lib/jvm/*/bin/java",
    "/usr/bin/java",
    "/usr/local/bin/java",
    "/opt/*/bin/java",
    "/opt/*/*/bin/java",
)
COMPLAINTS = (
    *("uas_eh_abort", "uas_eh_device_reset", "reset high-speed USB", "reset SuperSpeed"),
    *("I/O error", "EXT4-fs error", "Remounting filesystem read-only"),
    *(f"mmc{number}: error" for number in range(4)),
    *("Under-voltage", "Undervoltage", "Out of memory", "oom-kill"),
    "Memory cgroup out of memory",
)
MOUNTED_FILE = re.compile(r"\bloop\d+(p\d+)?\b")
"""A file that is mounted as a disk: the medium below it reports its own errors."""
PACKAGE_MANAGERS = (b"apt", b"dpkg", b"unattended-upgrade", b"mandb", b"update-initramfs")
REMOTE_FILE_SYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "autofs")


def inside(root: str, path: str) -> str:
    """Return where a path of the node is."""
    return path if root == "/" else root.rstrip("/") + path


def outside(root: str, place: str) -> str:
    """Return what the node calls a place."""
    return place if root == "/" else place[len(root.rstrip("/")) :] or "/"


def expand(root: str, patterns: Sequence[str]) -> list[str]:
    """Return the paths of the node that match; loop and RAM disks hold nothing of interest."""
    import glob

    found = []
    for pattern in patterns:
        places = glob.glob(inside(root, pattern)) if "*" in pattern else [inside(root, pattern)]
        found += [outside(root, place) for place in sorted(places)]
    return [path for path in found if "/block/loop" not in path and "/block/ram" not in path]


def texts(root: str, paths: Sequence[str], *, of_jobs: bool = False) -> dict[str, str]:
    """Read small files, of a long one the first whole lines; what cannot be read is left out.

    Where jobs may write, a name may lead to a device or wait for a writer for ever: with
    ``of_jobs`` only a file is read that has that name itself, and nothing is waited for.
    """
    flags = os.O_NOFOLLOW | os.O_NONBLOCK if of_jobs else 0
    answer = {}
    for path in paths:
        try:
            with open(
                inside(root, path), "rb", opener=lambda name, mode: os.open(name, mode | flags)
            ) as stream:
                if of_jobs and not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    continue
                text = stream.read(FILE_BYTES_MOST)
        except OSError:
            continue  # absent, or a link without a carrier, which refuses its speed
        if len(text) == FILE_BYTES_MOST:
            text = text[: text.rfind(b"\n") + 1]
        answer[path] = text.decode("utf-8", "replace")
    return answer


def links(root: str, patterns: Sequence[str]) -> dict[str, str]:
    """Follow links to what they mean."""
    return {
        path: outside(root, os.path.realpath(inside(root, path))) for path in expand(root, patterns)
    }


def start(root: str, argv: Sequence[str]) -> subprocess.Popen[bytes] | None:
    """Start a program that only looks; None if there is none."""
    import subprocess

    folders = ":".join(inside(root, folder) for folder in PATH)
    for folder in folders.split(":"):
        program = f"{folder}/{argv[0]}"
        if os.access(program, os.X_OK):
            return subprocess.Popen(
                [program, *argv[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={"PATH": folders, "LC_ALL": "C", "HOME": "/"},
            )
    return None


def finish(
    process: subprocess.Popen[bytes] | None, deadline_seconds: float
) -> dict[str, Any] | None:
    """Return what a program said; None if there is none, or if it does not end."""
    import contextlib
    import subprocess

    if process is None:
        return None
    try:
        out, err = process.communicate(timeout=max(0.01, deadline_seconds - time.monotonic()))
    except subprocess.TimeoutExpired:
        with contextlib.suppress(PermissionError):  # a sudo that is root by now ends by itself
            process.kill()
            process.communicate()
        return None
    return {
        "status": process.returncode,
        "out": out.decode("utf-8", "replace"),
        "err": err.decode("utf-8", "replace")[-2000:],
    }


def kernel_clock() -> dict[str, int] | None:
    """Ask the kernel whether its clock is kept: adjtimex(2), which any user may read."""
    import ctypes

    words = (ctypes.c_long * 64)()  # struct timex: modes, offset, freq, maxerror, esterror, status
    if ctypes.CDLL(None, use_errno=True).adjtimex(words) == -1:
        return None
    return {"maxerror_microseconds": words[3], "status": words[5] & 0xFFFFFFFF}


def spaces(root: str, mountinfo: str) -> dict[str, list[int]]:
    """Answer size, free bytes for users, and read-only of each local file system.

    A server that is gone makes statvfs wait for ever, so network file systems are not asked.
    """
    import re

    answer = {}
    for line in mountinfo.splitlines():
        head, _, tail = line.partition(" - ")
        kind, source = tail.split()[:2]
        local = source.startswith("/dev/") or kind in ("overlay", "tmpfs", "zfs", "ramfs")
        if not local or kind in REMOTE_FILE_SYSTEMS:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), head.split()[4])
        try:
            seen = os.statvfs(inside(root, point))
        except OSError:
            continue
        read_only = int(bool(seen.f_flag & os.ST_RDONLY))
        folder = int(os.path.isdir(inside(root, point)))
        size, free = seen.f_blocks * seen.f_frsize, seen.f_bavail * seen.f_frsize
        answer[point] = [size, free, read_only, folder]
    return answer


def javas(root: str, java_home: str) -> dict[str, dict[str, str]]:
    """Answer, for the real folder of each Java, its ``release`` file and its program's head.

    Root and all daemons run it, so one is left out that any account may replace but root and the
    user who logs in.
    """
    patterns = [f"{java_home}/bin/java"] if java_home else []
    answer = {}
    for path in expand(root, [*patterns, *JAVAS]):
        program = os.path.realpath(inside(root, path))
        home = outside(root, program).rpartition("/bin/")[0]
        if not home or home in answer or not os.access(program, os.X_OK):
            continue
        if others_may_change(root, program):
            continue
        with open(program, "rb") as stream:
            head = stream.read(20).hex()
        said = texts(root, [f"{home}/release", f"{home.rpartition('/')[0]}/release"])
        answer[home] = {"head": head, "release": next(iter(said.values()), "")}
    return answer


def others_may_change(root: str, place: str) -> bool:
    """Whether anybody but root and the user who logs in may change a file or a folder above it."""
    users = (0, os.geteuid(), int(os.environ.get("SUDO_UID", "0")))
    groups = (0, os.getegid(), int(os.environ.get("SUDO_GID", "0")))
    while True:
        found = os.stat(place)
        shared = found.st_mode & stat.S_IWGRP and found.st_gid not in groups
        loose = (found.st_mode & stat.S_IWOTH or shared) and not found.st_mode & stat.S_ISVTX
        if found.st_uid not in users or loose:
            return True
        if place in ("/", root.rstrip("/")):
            return False
        place = os.path.dirname(place)


def usb(root: str, blocks: dict[str, str]) -> dict[str, str]:
    """Answer the rate of the USB link of each block device behind one, in Mbit/s as the kernel."""
    answer = {}
    for path, real in blocks.items():
        folder = real
        while "/usb" in folder:
            if os.access(inside(root, f"{folder}/idVendor"), os.F_OK):
                answer[path] = texts(root, [f"{folder}/speed"]).get(f"{folder}/speed", "")
                break
            folder = folder.rpartition("/")[0]
    return answer


def package_managers(root: str) -> list[str]:
    """Answer the command lines of processes that may be package managers."""
    found = []
    for path in expand(root, ["/proc/[0-9]*/cmdline"]):
        try:
            with open(inside(root, path), "rb") as stream:
                line = stream.read(400)
        except OSError:
            continue  # it ended a moment ago
        if any(name in line for name in PACKAGE_MANAGERS):
            found.append(line.decode("utf-8", "replace"))
    return found


def identity(root: str) -> str:
    """Hash the machine id, which machine-id(5) asks not to show."""
    import hashlib

    text = texts(root, ["/etc/machine-id"]).get("/etc/machine-id", "").strip()
    return hashlib.sha256(f"boardcluster {text}".encode()).hexdigest()[:32] if text else ""


def user() -> str:
    """Return who logged in, also behind sudo."""
    import pwd

    try:
        return os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def existing(root: str, folder: str) -> str:
    """Return the real path of a folder, or of the nearest one above it that exists."""
    place = inside(root, folder)
    while not os.path.isdir(place) and place not in ("/", ""):
        place = place.rpartition("/")[0] or "/"
    return outside(root, os.path.realpath(place))


def facts(request: dict[str, Any]) -> dict[str, Any]:
    """Answer everything that NodeFacts is made from. Source of each: see cluster/facts.py."""
    import struct

    first = time.time()
    root = request["root"]
    name = os.uname().nodename
    asked = {
        "lscpu": start(root, ["lscpu"]),
        "ip": start(root, ["ip", "-j", "addr"]),
        "getent": start(root, ["getent", "ahosts", name]),
        "sudo": start(root, ["sudo", "-n", "true"]),
    }
    deadline = time.monotonic() + PROGRAMS_WITHIN_SECONDS
    files = texts(root, expand(root, FACT_FILES))
    sudo = asked.pop("sudo")
    said = {"sudo": finish(sudo, deadline)}
    works = os.geteuid() != 0 and said["sudo"] is not None and said["sudo"]["status"] == 0
    prefix = ["sudo", "-n"] if works else []
    asked["dmesg"] = start(root, [*prefix, "dmesg"])
    if any(os.access(inside(root, f"{folder}/vcgencmd"), os.X_OK) for folder in PATH):
        asked["bootloader"] = start(root, [*prefix, "vcgencmd", "bootloader_version"])
        asked["throttled"] = start(root, [*prefix, "vcgencmd", "get_throttled"])
    real = links(root, LINKS)
    answer = {
        "name": name,
        "machine": os.uname().machine,
        "kernel": os.uname().release,
        "pointer_bits": struct.calcsize("P") * 8,
        "page_size_bytes": os.sysconf("SC_PAGE_SIZE"),
        "cpus": os.cpu_count(),
        "python": ".".join(map(str, sys.version_info[:3])),
        "user": user(),
        "is_root": os.geteuid() == 0,
        "sudo_hangs": sudo is not None and said["sudo"] is None,
        "java_home": os.environ.get("JAVA_HOME", ""),
        "systemd": os.path.isdir(inside(root, "/run/systemd/system")),
        "machine_id": identity(root),
        "files": files,
        "links": real,
        "usb": usb(root, {k: v for k, v in real.items() if k.startswith("/sys/class/block/")}),
        "javas": javas(root, os.environ.get("JAVA_HOME", "")),
        "package_managers": package_managers(root),
        "spaces": spaces(root, files.get("/proc/self/mountinfo", "")),
        "folder": existing(root, request["folder"]),
        "kernel_clock": kernel_clock(),
    }
    said.update({name: finish(process, deadline) for name, process in asked.items()})
    dmesg = said.pop("dmesg")
    answer["kernel_log"] = complaints(dmesg["out"]) if dmesg and dmesg["status"] == 0 else None
    return {**answer, "programs": said, "clock_seconds": [first, time.time()]}


def inspect(request: dict[str, Any]) -> dict[str, Any]:
    """Answer what the doctor looks at beside the facts; to be asked as root."""
    import pwd

    root, folder, name = request["root"], request["folder"], request["name"]
    asked = {
        "nft": start(root, ["nft", "list", "table", "inet", "boardcluster"]),
        "getent": start(root, ["getent", "ahostsv4", name]),
        "sshd": start(root, ["sshd", "-T"]),
    }
    deadline = time.monotonic() + PROGRAMS_WITHIN_SECONDS
    versions = [f"{folder}/*/{kind}node/current/VERSION" for kind in ("name", "data")]
    try:
        login = pwd.getpwnam(user())
        own = [f"{login.pw_dir}{inner}" for inner in ("", "/.ssh", "/.ssh/authorized_keys")]
        uid = login.pw_uid
    except KeyError:
        own, uid = [], 0
    link = inside(root, "/opt/boardcluster/java")
    return {
        # The record stays, too, where only the data was kept.
        "provisioned": os.path.isdir(inside(root, "/opt/boardcluster"))
        and os.access(inside(root, "/etc/boardcluster/manifest.json"), os.F_OK),
        "versions": texts(root, expand(root, versions), of_jobs=True),
        "uid": uid,
        "permissions": permissions(root, own),
        "listening": listening(root),
        "accounts": accounts_with_password(root),
        "java": outside(root, os.path.realpath(link)) if os.path.isdir(link) else "",
        "programs": {what: finish(process, deadline) for what, process in asked.items()},
    }


def permissions(root: str, paths: Sequence[str]) -> dict[str, list[int]]:
    """Answer owner and mode of each path that is there."""
    answer = {}
    for path in paths:
        try:
            seen = os.stat(inside(root, path))
        except OSError:
            continue
        answer[path] = [seen.st_uid, seen.st_mode & 0o7777]
    return answer


def accounts_with_password(root: str) -> list[str]:
    """Answer the names of accounts that a password opens; never what is kept of it."""
    rows = texts(root, ["/etc/shadow"]).get("/etc/shadow", "").splitlines()
    fields = [row.split(":") for row in rows if row.count(":") > 1]
    return [row[0] for row in fields if row[1] and row[1][0] not in "!*"]


def listening(root: str) -> list[str]:
    """Answer every local address that takes TCP connections, as the kernel writes it."""
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in texts(root, [table]).get(table, "").splitlines()[1:]:
            fields = line.split()
            if len(fields) > 3 and fields[3] == "0A":
                found.append(fields[1])
    return found


def complaints(log: str) -> list[str]:
    """Return lines of the kernel's log that tell of failing hardware or lacking memory.

    Of each kind the last ones, in the order of the log.
    """
    lines = [line for line in log.splitlines() if not MOUNTED_FILE.search(line)]
    kept: set[int] = set()
    for word in COMPLAINTS:
        kept.update([place for place, line in enumerate(lines) if word in line][-LOG_LINES_MOST:])
    return [lines[place] for place in sorted(kept)]


VERBS: dict[str, Callable[[dict[str, Any]], object]] = {"facts": facts, "inspect": inspect}


if __name__ == "__main__":
    _request = json.load(sys.stdin)
    json.dump(VERBS[_request["do"]](_request), sys.stdout)
