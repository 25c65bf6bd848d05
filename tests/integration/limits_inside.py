"""Limit two nodes with the control groups of this kernel, use them, and print what they got.

Runs as root inside the machine of tests/small_machine.py; test_limits_version_2.py judges its one
line of JSON. Nodes are made as ``up`` makes them: in their groups from their first process on, and
with a disk on a loop device that is mounted in the node alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boardcluster.cluster.limits.cgroups import Cgroups, CgroupsV2, find_cgroups, joining
from boardcluster.cluster.limits.core_watcher import Core, NodeCores, watch
from boardcluster.cluster.limits.disks import DISK, attach_disk
from boardcluster.cluster.limits.limiter import clear_leftovers
from boardcluster.errors import HostError
from boardcluster.records import DiskLimits
from boardcluster.remote.base import Remote
from boardcluster.remote.gate import run_program
from boardcluster.remote.netns import NetnsRemote

IDENTITY = "0123456789abcdef"
GROUP = Path("/sys/fs/cgroup/boardcluster-01234567")
HOME = Path("/home-of-nodes")
USER = str(Path(__file__).with_name("disk_user.py"))
MIB = 1 << 20
MEMORY_BYTES = 128 * MIB
DISK_BYTES = 1 << 30
FILE_BYTES = 64 * MIB
LARGE_BYTES = 256 * MIB
BUFFERED_BYTES = 32 * MIB
BLOCK_BYTES = 256 << 10
DIRTY_BYTES = 24 * MIB
CPU_SECONDS = 6.0
LIFTED_SECONDS = 2.0
CORES = 2
CORE_SHARE = 0.2
CORE_SECONDS = 3.0
WAIT_SECONDS_MOST = 30.0
ISOLATED = ("unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a node is limited to."""

    cores: float
    disk: DiskLimits


WANTED = {
    "one": Wanted(
        cores=0.25,
        disk=DiskLimits(
            size_bytes=DISK_BYTES,
            read_bytes_per_second=20_000_000,
            write_bytes_per_second=10_000_000,
            read_iops=500,
            write_iops=200,
        ),
    ),
    "two": Wanted(
        cores=0.5,
        disk=DiskLimits(
            size_bytes=DISK_BYTES,
            read_bytes_per_second=15_000_000,
            write_bytes_per_second=5_000_000,
            read_iops=300,
            write_iops=100,
        ),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node that lives.

    Attributes:
        remote: the way into it.
        device: of its disk, as MAJOR:MINOR.
        file: a file on its disk.
        process: what holds its namespaces.
    """

    remote: Remote
    device: str
    file: str
    process: subprocess.Popen[bytes]

    def use(self, *words: object, check: bool = True) -> Any:
        """Run disk_user.py on the node; return what it prints, or how it ended."""
        argv = [sys.executable, "-ES", USER, *map(str, words)]
        done = self.remote.run(argv, check=check, timeout_seconds=120)
        return json.loads(done.text) if done.returncode == 0 else {"ended": done.returncode}


def first_of(process: subprocess.Popen[bytes]) -> int:
    """Return the process id of a node's first process, when it is in all its namespaces."""
    deadline = time.monotonic() + WAIT_SECONDS_MOST
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, IndexError):
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            pid = int(children.split()[0])
            if Path(f"/proc/{pid}/comm").read_text().strip() == "sleep":
                return pid
        time.sleep(0.01)
    raise RuntimeError("a node does not start")


def start(groups: Cgroups, name: str) -> Node:
    """Make a node with its groups and its disk."""
    groups.create(name)
    groups.set_memory(name, MEMORY_BYTES)
    join = joining(groups.join_files(name))
    folder = HOME / name
    folder.mkdir(parents=True)
    process = subprocess.Popen([*join, *ISOLATED, "--mount-proc", "sleep", "infinity"])
    remote = NetnsRemote(name, pid=first_of(process), own_user=False, joining=join)
    device = attach_disk(folder, remote, size_bytes=DISK_BYTES)
    return Node(remote=remote, device=device, file=str(folder / DISK / "file"), process=process)


def readings(groups: Cgroups, nodes: Mapping[str, Node], *, limited: bool) -> list[list[Any]]:
    """Return for each node what the kernel has, and what was set."""
    rows = []
    for name, node in nodes.items():
        wanted = WANTED[name]
        cores, disk = (wanted.cores, wanted.disk) if limited else (None, None)
        expected = groups.expected(cores, MEMORY_BYTES, node.device, disk)
        rows.append([dict(groups.read(name, node.device)), dict(expected)])
    return rows


def set_all(groups: Cgroups, nodes: Mapping[str, Node], *, limited: bool) -> None:
    """Set or lift the rates of all nodes."""
    for name, node in nodes.items():
        groups.set_cpu(name, WANTED[name].cores if limited else None)
        groups.set_disk(name, node.device, WANTED[name].disk if limited else None)


def ticks(pid: int) -> int:
    """Return the CPU time of a process as /proc has it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def cpu_shares(
    groups: Cgroups, names: Sequence[str], *, wanted_seconds: float = CPU_SECONDS
) -> dict[str, dict[str, float]]:
    """Return of loops that run on nodes at once the CPU time per second, counted in two ways."""
    loops = {
        name: subprocess.Popen(
            [*joining(groups.join_files(name)), "sh", "-c", "while :; do :; done"]
        )
        for name in names
    }
    try:
        time.sleep(1)
        begin = time.monotonic()
        before = {name: (groups.cpu_seconds(name), ticks(loops[name].pid)) for name in names}
        time.sleep(wanted_seconds)
        seconds = time.monotonic() - begin
        return {
            name: {
                "group": (groups.cpu_seconds(name) - before[name][0]) / seconds,
                "process": (ticks(loops[name].pid) - before[name][1])
                / os.sysconf("SC_CLK_TCK")
                / seconds,
            }
            for name in names
        }
    finally:
        for loop in loops.values():
            loop.kill()
            loop.wait()


def core_shares(groups: Cgroups) -> dict[str, Any]:
    """Return the CPU time per second of one thread on a node with two cores, and of two."""
    name = "cores"
    groups.create(name, CORES)
    groups.set_cpu(name, CORES * CORE_SHARE, CORES)
    first = subprocess.Popen([*joining(groups.join_files(name)), "sleep", "infinity"])
    began = int(Path(f"/proc/{first.pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
    cores = [Core(folder, groups.threads_name) for folder in groups.core_folders(name, CORES)]
    watcher = threading.Thread(target=watch, args=([NodeCores(cores)], [[first.pid, began]]))
    watcher.start()
    busy = [*joining(groups.join_files(name)), "sh", "-c", "while :; do :; done"]
    shares = []
    try:
        for count in (1, CORES):
            loops = [subprocess.Popen(busy) for _ in range(count)]
            time.sleep(1)
            before, begin = [ticks(loop.pid) for loop in loops], time.monotonic()
            time.sleep(CORE_SECONDS)
            rate = os.sysconf("SC_CLK_TCK") * (time.monotonic() - begin)
            pairs = zip(loops, before, strict=True)
            shares.append([(ticks(loop.pid) - early) / rate for loop, early in pairs])
            for loop in loops:
                loop.kill()
                loop.wait()
    finally:
        first.kill()
        first.wait()
        watcher.join()
    return {"shares": shares, "outside": groups.read(name, "")["threads in no core's group"]}


def on_all(nodes: Mapping[str, Node], *words: object) -> dict[str, Any]:
    """Use all nodes at once, each its own file."""
    task, *rest = words
    with ThreadPoolExecutor() as pool:
        asked = {
            name: pool.submit(node.use, task, node.file, *rest) for name, node in nodes.items()
        }
        return {name: future.result() for name, future in asked.items()}


@contextlib.contextmanager
def watched(name: str) -> Iterator[list[int]]:
    """Collect how much memory a node's group has, a hundred times a second."""
    seen: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.01):
            seen.append(int((GROUP / name / "memory.current").read_text()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


def memory(node: Node, name: str) -> dict[str, Any]:
    """Write and read more than a node has memory, and take more."""
    large = f"{node.file}.large"
    with watched(name) as written:
        node.use("make", large, LARGE_BYTES)
    Path("/proc/sys/vm/drop_caches").write_text("3")
    with watched(name) as read:
        scanned = node.use("scan", large)
    taken = node.use("take", 2 * MEMORY_BYTES, check=False)
    events = dict(
        line.split() for line in (GROUP / name / "memory.events").read_text().splitlines()
    )
    return {
        "written_most": max(written),
        "read_most": max(read),
        "read_bytes": scanned["bytes"],
        "taken": taken,
        "oom_kills": int(events["oom_kill"]),
    }


def changed_outside(groups: Cgroups, nodes: Mapping[str, Node]) -> list[str]:
    """Let somebody else change a node's limits; return the names of those that differ."""
    name, node = next(iter(nodes.items()))
    (GROUP / name / "cpu.max").write_text("30000 100000")
    (GROUP / name / "memory.max").write_text(str(MEMORY_BYTES * 2))
    (GROUP / name / "io.max").write_text(f"{node.device} rbps=max wiops=201")
    read, expected = readings(groups, nodes, limited=True)[0]
    groups.set_memory(name, MEMORY_BYTES)
    return sorted(key for key in expected if read[key] != expected[key])


def in_a_container() -> str:
    """Make groups in a group that holds processes, as a container's first one does."""
    place = GROUP.parent / "container"
    place.mkdir()
    process = subprocess.Popen([*joining([str(place / "cgroup.procs")]), "sleep", "infinity"])
    try:
        deadline = time.monotonic() + WAIT_SECONDS_MOST
        while not (place / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        CgroupsV2(place, "boardcluster-inside").create("one")
    except HostError as error:
        return f"{error.message}; {error.hint}"
    finally:
        process.kill()
        process.wait()
    return ""


def leave(nodes: Mapping[str, Node]) -> dict[str, Any]:
    """End the nodes while a disk has much to write, clear up, and return what is left."""
    nodes["two"].use("dirty", nodes["two"].file, DIRTY_BYTES)
    in_use = run_program(["losetup", "--noheadings", "--list", "--output", "NAME"]).text.split()
    for node in nodes.values():
        node.process.send_signal(signal.SIGKILL)
        node.process.wait()
    killed = time.monotonic()
    clear_leftovers(IDENTITY, HOME)
    seconds = time.monotonic() - killed
    deadline = killed + WAIT_SECONDS_MOST
    while run_program(["losetup", "--list"]).text and time.monotonic() < deadline:
        time.sleep(0.1)  # the kernel detaches devices when it has time
    return {
        "seconds": seconds,
        "loops_before": len(in_use),
        "loops": run_program(["losetup", "--list"]).text,
        "group": GROUP.exists(),
        "notes": [str(path) for path in HOME.glob("*/disk.device")],
        "mounts": [row for row in Path("/proc/mounts").read_text().splitlines() if "loop" in row],
    }


def main() -> None:
    """Do all of it."""
    started = time.monotonic()
    run_program(["mkfs.ext4", "-q", "-F", "/dev/vda"])
    HOME.mkdir()
    run_program(["mount", "-t", "ext4", "/dev/vda", str(HOME)])
    groups = find_cgroups(IDENTITY)
    found: dict[str, Any] = {"kind": type(groups).__name__, "kernel": os.uname().release}
    nodes = {name: start(groups, name) for name in WANTED}
    on_all(nodes, "make", FILE_BYTES)

    set_all(groups, nodes, limited=True)
    found["set"] = readings(groups, nodes, limited=True)
    found["cpu"] = cpu_shares(groups, list(nodes))
    found["cores"] = core_shares(groups)
    for name in nodes:
        groups.set_cpu(name, None)
    for task in ("read", "write"):
        found[f"{task} bytes"] = on_all(nodes, task, BLOCK_BYTES, 2)
        found[f"{task} requests"] = on_all(nodes, task, 4096, 4)
    found["buffered"] = on_all(nodes, "make", BUFFERED_BYTES)

    set_all(groups, nodes, limited=True)
    found["changed"] = changed_outside(groups, nodes)
    set_all(groups, nodes, limited=False)
    found["lifted"] = readings(groups, nodes, limited=False)
    found["buffered lifted"] = on_all(nodes, "make", BUFFERED_BYTES)
    found["cpu lifted"] = cpu_shares(groups, ["one"], wanted_seconds=LIFTED_SECONDS)
    found["read bytes lifted"] = nodes["one"].use("read", nodes["one"].file, BLOCK_BYTES, 2)
    found["write requests lifted"] = nodes["one"].use("write", nodes["one"].file, 4096, 4)
    found["container"] = in_a_container()
    found["memory"] = memory(nodes["one"], "one")
    set_all(groups, nodes, limited=True)
    found["left"] = leave(nodes)
    found["seconds"] = time.monotonic() - started
    print(json.dumps(found))


if __name__ == "__main__":
    main()
