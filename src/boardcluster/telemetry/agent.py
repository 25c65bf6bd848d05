"""Runs ON a node: writes down what its kernel counts, again and again. Standard library only.

Started as ``python3 -I -S -c <this text> <request as JSON>``. The request:

- ``target``: file to append to. ``interval_seconds``: from one sample to the next.
- ``longest_seconds``: it ends by itself then, as on SIGTERM; each ends with a last sample.
- ``most_bytes``: bound of the file. Whenever half of what is left is full, the interval doubles.
- ``scope``: ``machine`` for the kernel's totals, ``node`` for an emulated node, of which only its
  own processes and interfaces count.
- ``groups``: name of a daemon to its process id on this node.
- ``namespaces``: inodes of the process-id namespaces whose processes are the cluster's, too.
- ``mark``: entry in the environment of the cluster's processes, where they run among others.
- ``trees``: process ids which are the cluster's with their descendants: the driver.
- ``lives_with``: process id without which it ends; for the machine that the driver runs on.

The file has three kinds of lines. A JSON object heads the lines that follow: the columns with kind
(``c`` counts up, ``g`` is a state) and scale to the unit in their name, and the interval. A line of
numbers is a sample: monotonic and wall clock in nanoseconds, then the columns; ``-`` is unknown.
A line that begins with ``#`` is a note: seconds of CPU time, and the foreign program that took it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
SLOW_SECONDS = 5.0
"""What changes rarely is read so often."""
FLUSH_SECONDS = 1.0
"""What was sampled goes to the file so often, for those who watch a run; to the medium the kernel
writes it no more often for that."""
SCAN_SHARE = 0.002
"""Share of one core for looking at every process; on crowded machines it is done less often."""
KERNEL_THREAD = 0x00200000  # PF_KTHREAD, include/linux/sched.h
SECTOR = 512  # of /proc/diskstats, whatever the device has
TOP_FOREIGN = 5
RELAY = "boardcl-relay"
"""Name of processes that pass on what is seen here, see relay.py: no work, like the agent."""

CPU = {  # Documentation/filesystems/proc.rst: /proc/stat; guest time is in user and nice already
    "cpu_user_seconds": (1, 2),
    "cpu_system_seconds": (3,),
    "cpu_idle_seconds": (4,),
    "cpu_iowait_seconds": (5,),
    "cpu_irq_seconds": (6, 7),
    "cpu_steal_seconds": (8,),
}
MEMORY = {
    "memory_available_bytes": (b"MemAvailable:",),
    "memory_cached_bytes": (b"Cached:", b"Buffers:"),
    "memory_dirty_bytes": (b"Dirty:", b"Writeback:"),
}
SWAPPED = {"swap_in_bytes": b"pswpin", "swap_out_bytes": b"pswpout"}
CPU_PLACE = 36
"""Of the CPU that a process ran on last, in its stat (proc(5), processor) after its name."""
READ, EXECUTE, PRIVATE = 1, 4, 2  # PROT_READ, PROT_EXEC, MAP_PRIVATE
PRESSURE = {
    "cpu": {b"some": "pressure_cpu_seconds"},
    "io": {b"some": "pressure_io_seconds", b"full": "pressure_io_full_seconds"},
    "memory": {b"some": "pressure_memory_seconds", b"full": "pressure_memory_full_seconds"},
}
DISK = {  # Documentation/admin-guide/iostats.rst: place in a line of /proc/diskstats, and its unit
    "disk_reads": (3, 1),
    "disk_read_bytes": (5, SECTOR),
    "disk_writes": (7, 1),
    "disk_written_bytes": (9, SECTOR),
    "disk_busy_seconds": (12, 0.001),
}
NETWORK = {  # places in a line of /proc/net/dev, after the name
    "net_received_bytes": (0,),
    "net_sent_bytes": (8,),
    "net_dropped_packets": (2, 3, 10, 11),
}
SCALES = {
    **dict.fromkeys(CPU, ("c", 1 / TICKS)),
    **dict.fromkeys(MEMORY, ("g", 1024)),
    **dict.fromkeys(SWAPPED, ("c", PAGE)),
    **{name: ("c", 1e-6) for names in PRESSURE.values() for name in names.values()},
    **{name: ("c", unit) for name, (_, unit) in DISK.items()},
    **dict.fromkeys(NETWORK, ("c", 1)),
    "swap_used_bytes": ("g", 1024),
    "clock_hertz": ("g", 1000),
    "clock_nominal_hertz": ("g", 1000),
    "clock_nominal_least_hertz": ("g", 1000),
    "clock_measured_hertz": ("g", 1),
    "temperature_celsius": ("g", 0.001),
    "throttle_bits": ("g", 1),
    "link_bits_per_second": ("g", 1_000_000),
    "group_cpu_seconds": ("c", 1 / TICKS),
    "group_memory_bytes": ("g", PAGE),
    "storage_read_bytes": ("c", 1),
    "storage_written_bytes": ("c", 1),
    "foreign_cpu_seconds": ("c", 1 / TICKS),
    "quota_cores": ("g", 0.001),
    "quota_throttled_seconds": ("c", 1e-6),
    "agent_cpu_seconds": ("c", 1e-9),
}
"""Kind and scale of each column, by its name before the slash."""


class Files:
    """Keeps files of /proc and /sys open: to read one again then costs one call, not three.

    Attributes:
        root: put before every path; empty but in tests.
    """

    def __init__(self, root: str = "") -> None:
        self.root = root
        self._open: dict[str, int] = {}

    def read(self, path: str, most: int = 1 << 16) -> bytes:
        """Return the content, or nothing where there is none."""
        descriptor = self._open.get(path)
        try:
            if descriptor is None:
                descriptor = os.open(self.root + path, os.O_RDONLY)
                self._open[path] = descriptor
            content = more = os.pread(descriptor, most, 0)
            # Of a long file of lines the kernel gives no more than a page at once (fs/seq_file.c).
            while more and PAGE // 2 <= len(content) < most:
                more = os.pread(descriptor, most - len(content), len(content))
                content += more
        except OSError:
            self.close(path)
            return b""
        return content

    def once(self, path: str, most: int = 1 << 16) -> bytes:
        """Return the content of what will not be asked often."""
        content = self.read(path, most)
        self.close(path)
        return content

    def close(self, path: str) -> None:
        """Forget a file."""
        descriptor = self._open.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def names(self, folder: str) -> list[str]:
        """Return the sorted names in a folder; none where it does not exist."""
        try:
            return sorted(os.listdir(self.root + folder))
        except OSError:
            return []


def number(text: bytes, base: int = 10) -> int | None:
    """Return the number that a file of the kernel holds, or None."""
    try:
        return int(text.split()[0], base)
    except (IndexError, ValueError):
        return None


def bound_cpus() -> set[int]:
    """Return the CPUs that we are bound to; none where we may use all, and the kernel's sum does.

    Of a container or a program bound to some CPUs, the others are not there to be used: idle, they
    would hide that ours are all busy.
    """
    own = os.sched_getaffinity(0)
    return own if len(own) < (os.cpu_count() or 1) else set()


def cpu_times(files: Files, cpus: set[int]) -> dict[str, Any]:
    """Read CPU time by state, summed over the given cores, or over all where none is given."""
    names = {b"cpu%d" % cpu for cpu in cpus} or {b"cpu"}
    lines = files.read("/proc/stat", 1 << 16 if cpus else 512).split(b"\n")[:-1]  # the last is cut
    rows = [words for line in lines if (words := line.split()) and words[0] in names]
    if not rows or min(map(len, rows)) < 9:
        return {}
    return {
        name: sum(int(words[place]) for words in rows for place in places)
        for name, places in CPU.items()
    }


def memory(files: Files) -> dict[str, Any]:
    """Read memory, page cache and swap."""
    found = {}
    for line in files.read("/proc/meminfo").split(b"\n"):
        words = line.split()
        if len(words) >= 2:
            found[words[0]] = int(words[1])
    row: dict[str, Any] = {
        name: sum(found[key] for key in keys) if all(key in found for key in keys) else None
        for name, keys in MEMORY.items()
    }
    if b"SwapTotal:" in found and b"SwapFree:" in found:
        row["swap_used_bytes"] = found[b"SwapTotal:"] - found[b"SwapFree:"]
    text = b"\n" + files.read("/proc/vmstat")
    for name, key in SWAPPED.items():
        row[name] = number(text.partition(b"\n" + key + b" ")[2])
    return row


def pressure(files: Files) -> dict[str, Any]:
    """Read pressure stall totals (Documentation/accounting/psi.rst)."""
    row = {}
    for resource, names in PRESSURE.items():
        for line in files.read(f"/proc/pressure/{resource}").split(b"\n"):
            kind, _, rest = line.partition(b" ")
            if kind in names:
                row[names[kind]] = number(rest.partition(b"total=")[2])
    return row


def disks(files: Files, devices: list[str]) -> dict[str, Any]:
    """Read the counters of whole devices."""
    row: dict[str, Any] = {}
    for line in files.read("/proc/diskstats").split(b"\n")[:-1]:  # a longer file is cut
        words = line.split()
        if len(words) > 12 and (device := words[2].decode()) in devices:
            for name, (place, _) in DISK.items():
                row[f"{name}/{device}"] = int(words[place])
    return row


def whole_devices(files: Files) -> list[str]:
    """Return the block devices that are media: no partitions, images or memory."""
    names = files.names("/sys/block")
    return [name for name in names if not name.startswith(("loop", "ram", "zram", "dm-", "md"))]


def network(files: Files) -> dict[str, Any]:
    """Read the counters of every interface but the loopback one."""
    row: dict[str, Any] = {}
    for line in files.read("/proc/net/dev").split(b"\n")[2:-1]:
        head, colon, rest = line.partition(b":")
        name = head.strip().decode()
        if colon and name != "lo":
            words = rest.split()
            for column, places in NETWORK.items():
                row[f"{column}/{name}"] = sum(int(words[place]) for place in places)
    return row


def links(files: Files) -> dict[str, Any]:
    """Read the rate that each interface agreed with the switch."""
    row: dict[str, Any] = {}
    for name in files.names("/sys/class/net"):
        if name != "lo":
            speed = number(files.once(f"/sys/class/net/{name}/speed"))
            row[f"link_bits_per_second/{name}"] = speed if speed and speed > 0 else None
    return row


def clocks(files: Files, cpus: list[str]) -> dict[str, Any]:
    """Read the clock that the kernel reports for each core."""
    row: dict[str, Any] = {}
    for cpu in cpus:
        path = f"/sys/devices/system/cpu/{cpu}/cpufreq/scaling_cur_freq"
        row[f"clock_hertz/{cpu}"] = number(files.read(path, 32))
    return row


def clocks_of_cpuinfo(files: Files) -> dict[str, Any]:
    """Read it where only /proc/cpuinfo says it: PCs and virtual machines without cpufreq."""
    row: dict[str, Any] = {}
    for index, line in enumerate(
        line
        for line in files.once("/proc/cpuinfo", 1 << 20).split(b"\n")[:-1]
        if line.startswith(b"cpu MHz")
    ):
        with contextlib.suppress(ValueError):
            row[f"clock_hertz/cpu{index}"] = round(float(line.partition(b":")[2]) * 1000)
    return row


def cores_with_clock(files: Files) -> list[str]:
    """Return the cores whose clock cpufreq tells, as ``cpu0`` and so on."""
    names = [name for name in files.names("/sys/devices/system/cpu") if name[3:].isdecimal()]
    names.sort(key=lambda name: int(name[3:]))
    there = "/sys/devices/system/cpu/{}/cpufreq/scaling_cur_freq"
    return [name for name in names if files.read(there.format(name), 32)]


def sensors(files: Files) -> list[str]:
    """Return the files that hold temperatures in thousandths of a degree."""
    zones = [
        f"/sys/class/thermal/{name}/temp"
        for name in files.names("/sys/class/thermal")
        if name.startswith("thermal_zone")
    ]
    chips = [
        f"/sys/class/hwmon/{chip}/{name}"
        for chip in files.names("/sys/class/hwmon")
        for name in files.names(f"/sys/class/hwmon/{chip}")
        if name.startswith("temp") and name.endswith("_input")
    ]
    return [path for path in zones or chips if number(files.read(path, 32)) is not None]


def hottest(files: Files, paths: list[str]) -> dict[str, Any]:
    """Read the hottest sensor."""
    values = [number(files.read(path, 32)) for path in paths]
    known = [value for value in values if value is not None]
    return {"temperature_celsius": max(known)} if known else {}


FIRMWARE = "/sys/devices/platform/soc/soc:firmware/get_throttled"
FIRMWARE_5 = "/sys/devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled"


def throttled(files: Files, path: str) -> dict[str, Any]:
    """Read the Raspberry Pi's bits, where its kernel offers them as a file."""
    bits = number(files.read(path, 32).removeprefix(b"0x"), 16)
    return {} if bits is None else {"throttle_bits": bits}


def throttled_by_program(program: str) -> dict[str, Any] | None:
    """Ask the Raspberry Pi's firmware by its program; a process each time, so rarely.

    Returns:
        What it says; None if it cannot be started.
    """
    reading, writing = os.pipe()
    try:
        child = os.posix_spawn(
            program,
            [program, "get_throttled"],
            {},
            file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)],
        )
    except OSError:
        os.close(reading)
        return None
    finally:
        os.close(writing)
    with open(reading, "rb") as stream:
        answer = stream.read(100)
    os.waitpid(child, 0)
    bits = number(answer.partition(b"=")[2].strip().removeprefix(b"0x"), 16)
    return {} if bits is None else {"throttle_bits": bits}


LOOP_STEPS = 64
LOOP_TURNS = 8000
LOOP_TRIES = 3
LOOPS = {
    # mov rax, rdi; 64 x not rax; dec rdi; jnz; ret. Each instruction waits for the one before it.
    "x86_64": b"\x48\x89\xf8" + b"\x48\xf7\xd0" * 64 + b"\x48\xff\xcf\x0f\x85\x37\xff\xff\xff\xc3",
    # mov x1, x0; 64 x mvn x1, x1; subs x0, x0, #1; b.ne; ret
    "aarch64": b"".join(
        word.to_bytes(4, "little")
        for word in (
            0xAA0003E1,
            *[0xAA2103E1] * 64,
            0xF1000400,
            0x54000001 | (-65 & 0x7FFFF) << 5,
            0xD65F03C0,
        )
    ),
}
"""A chain of dependent one-cycle instructions per architecture: its time is its clock.

No core of the boards or PCs that we know does two of them in one cycle (Cortex-A53, A72 and A76:
Arm's software optimization guides, "logical, shift by immediate, no flagset", latency 1; x86:
Agner Fog, Instruction tables, NOT r, latency 1).
"""


def timed_loop() -> Callable[[], int] | None:
    """Return a function that measures the clock of the core it runs on, in hertz; None if it can't.

    The code lies in a file in memory that is mapped to be executed: the kernel then cleans the
    instruction cache itself, and no page is ever writable and executable.
    """
    code = LOOPS.get(os.uname().machine)
    if code is None or sys.maxsize < 1 << 32:
        return None
    try:
        import ctypes

        descriptor = os.memfd_create("loop")
        os.write(descriptor, code)
        library = ctypes.CDLL(None)
        library.mmap.restype = ctypes.c_void_p
        library.mmap.argtypes = (
            ctypes.c_void_p,
            ctypes.c_size_t,
            *[ctypes.c_int] * 3,
            ctypes.c_long,
        )
        address = library.mmap(None, len(code), READ | EXECUTE, PRIVATE, descriptor, 0)
        os.close(descriptor)
    except (AttributeError, ImportError, OSError):
        return None
    if address == ctypes.c_void_p(-1).value:  # MAP_FAILED: a security module forbids it
        return None
    call = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(address)

    def measure() -> int:
        times: list[int] = []
        for _ in range(LOOP_TRIES):  # an interrupt makes one longer, nothing makes one shorter
            began = time.perf_counter_ns()
            call(LOOP_TURNS)
            times.append(time.perf_counter_ns() - began)
        hertz: int = LOOP_STEPS * LOOP_TURNS * 1_000_000_000 // min(times)
        return hertz

    return measure


USER, SYSTEM = 0, 1
CHILD = 2  # so much further on are the times of children that were waited for
REAPERS = frozenset({"init", "systemd", "sshd", "sshd-session", "sudo"})
"""Programs that wait for processes of the cluster: what their children took is not theirs."""


def gained(before: dict[Any, Any], now: dict[Any, Any], part: int) -> int:
    """Return the ticks that a set of processes used between two looks.

    That is what the sums gained, children that were waited for included, or what survivors and new
    ones used themselves: whichever is more, because a process that nobody waits for takes its time
    with it.
    """
    sums = sum(row[part] + row[part + CHILD] for row in now.values())
    sums -= sum(row[part] + row[part + CHILD] for row in before.values())
    nothing = (0, 0, 0, 0)
    alive = sum(row[part] - before.get(key, nothing)[part] for key, row in now.items())
    used: int = max(sums, alive, 0)
    return used


class Processes:
    """Looks at every process and sums what belongs to the cluster, and what does not.

    Args:
        files: of /proc.
        request: as at the top.
    """

    def __init__(self, files: Files, request: dict[str, Any]) -> None:
        self._files = files
        self._machine = request["scope"] == "machine"
        self._groups = {pid: name for name, pid in request.get("groups", {}).items()}
        self._namespaces = frozenset(request.get("namespaces", ()))
        self._trees = frozenset(request.get("trees", ()))
        self._mark = request.get("mark", "").encode()
        self.bound = bound_cpus()
        self._kinds: dict[Any, str] = {}
        self._programs: dict[Any, str] = {}
        self._before: dict[str, dict[Any, Any]] | None = None
        self._ticks: dict[str, int] = {}
        self._sums: dict[str, int] = {}
        self._added: dict[str, int] = {}
        self._named: dict[str, int] = {}

    def scan(self) -> dict[str, Any]:
        """Return the columns that come from processes."""
        names: dict[Any, str] = {}
        elsewhere = []
        now: dict[str, dict[Any, Any]] = {"own": {}, "foreign": {}}
        resident: dict[str, int] = {}
        read = written = 0
        seen = self._look()
        for key, words, name in seen:
            kind = self._kind_of(key, name, int(words[1]))
            if name == RELAY:
                kind = "agent"
            self._kinds[key] = kind
            if kind in ("agent", "driver"):
                continue
            part = "foreign" if kind == "foreign" else "own"
            times = tuple(map(int, words[11:15]))
            if part == "foreign" and (key[0] == 1 or name in REAPERS):
                times = (*times[:CHILD], 0, 0)
            now[part][key] = times
            if part == "foreign" and self.bound and int(words[CPU_PLACE]) not in self.bound:
                elsewhere.append(key)
            names[key] = name if kind == "foreign" else kind
            if kind != "foreign":
                resident[kind] = resident.get(kind, 0) + int(words[21])
                more = self._storage(key[0])
                read, written = read + more[0], written + more[1]
        self._kinds = {key: self._kinds[key] for key, _, _ in seen}
        self._programs = {key: name for key, _, name in seen}
        if self._before is not None:  # what runs on CPUs that are not ours takes nothing of them
            self._before["foreign"].update((key, now["foreign"][key]) for key in elsewhere)
        self._count(now, names)
        self._before = now
        row: dict[str, Any] = (
            {"foreign_cpu_seconds": self._ticks["foreign"]}
            if self._machine
            else {
                "cpu_user_seconds": self._ticks["user"],
                "cpu_system_seconds": self._ticks["system"],
            }
        )
        for kind in {**dict.fromkeys(self._groups.values(), 0), "jobs": 0} if now["own"] else ():
            row[f"group_cpu_seconds/{kind}"] = self._ticks.get(kind, 0)
            row[f"group_memory_bytes/{kind}"] = resident.get(kind, 0)
        if now["own"]:
            row["storage_read_bytes"] = self._rise("read", read)
            row["storage_written_bytes"] = self._rise("written", written)
        return row

    def _rise(self, way: str, total: int) -> int | None:
        """Return how far a sum over processes has risen since the first look.

        It falls where one ends that no other of the cluster's waits for, and so takes its part with
        it: what the others added meanwhile is not known.
        """
        before = self._sums.get(way, total)
        self._sums[way] = total
        if total < before:
            return None
        self._added[way] = self._added.get(way, 0) + total - before
        return self._added[way]

    def notes(self) -> list[str]:
        """Return the foreign programs that used most CPU time, as lines of the file."""
        most = sorted(self._named.items(), key=lambda item: -item[1])[:TOP_FOREIGN]
        return [f"# {ticks / TICKS:.2f} {name}" for name, ticks in most if ticks]

    def _look(self) -> list[tuple[Any, list[bytes], str]]:
        """Return each process but the kernel's own: id and start, words of its stat, its name."""
        found = []
        for entry in os.listdir(self._files.root + "/proc"):
            if entry.isdecimal():
                head, _, tail = self._files.once(f"/proc/{entry}/stat").rpartition(b")")
                words = tail.split()  # proc(5): the first of them is field 3
                if len(words) > 21 and not int(words[6]) & KERNEL_THREAD:
                    # A name may hold a line break; a line of our file may not.
                    name = " ".join(head.partition(b"(")[2].decode(errors="replace").split())
                    found.append(((int(entry), int(words[19])), words, name))
        return sorted(found, key=lambda row: row[0][::-1])  # whoever starts others comes first

    def _count(self, now: dict[str, dict[Any, Any]], names: dict[Any, str]) -> None:
        """Add what was used since the look before."""
        ticks = self._ticks
        for name in ("user", "system", "foreign", "jobs"):
            ticks.setdefault(name, 0)
        if self._before is None:
            return
        user, system = (gained(self._before["own"], now["own"], part) for part in (USER, SYSTEM))
        ticks["user"] += user
        ticks["system"] += system
        ticks["foreign"] += sum(
            gained(self._before["foreign"], now["foreign"], part) for part in (USER, SYSTEM)
        )
        daemons = 0
        for part, rows in now.items():
            for key, row in rows.items():
                earlier = self._before[part].get(key, (0, 0, 0, 0))
                used = row[USER] + row[SYSTEM] - earlier[USER] - earlier[SYSTEM]
                name = names[key]
                if part == "foreign":
                    self._named[name] = self._named.get(name, 0) + used
                elif name != "jobs":
                    ticks[name] = ticks.get(name, 0) + used
                    daemons += used
        ticks["jobs"] += max(0, user + system - daemons)

    def _kind_of(self, key: Any, name: str, parent: int) -> str:
        """Say whose a process is, which is found out once; again where it became another program.

        One that was seen between its start and its program, as a shell or ``env``, may not have had
        the cluster's mark yet.
        """
        known = self._kinds.get(key, "")
        others = ("driver", "foreign")
        if known and (known not in others or self._programs[key] == name):
            return known
        found = self._classify(key[0], parent)
        return known if known and found in others else found

    def _classify(self, pid: int, parent: int) -> str:
        """Say whose a process is: the agent, the driver, a daemon by name, jobs or foreign."""
        if pid == os.getpid():
            return "agent"
        daemon: str = self._groups.get(pid, "")
        place = f"{self._files.root}/proc/{pid}"
        if self._mark and not daemon and self._is_marked(place):
            return "jobs"  # also what the driver started: a job's client
        if self._mark and not daemon and self._is(parent, "jobs"):
            return "jobs"  # nginx, for one, writes its title over its environment
        if pid in self._trees or self._is(parent, "driver"):
            return "driver"
        if daemon or not self._machine:
            return daemon or "jobs"
        return "foreign" if self._mark else self._of_machine(place)

    def _of_machine(self, place: str) -> str:
        """Say whose a process is that is neither a daemon nor the driver's."""
        try:
            if self._namespaces:
                ours = os.stat(f"{place}/ns/pid").st_ino in self._namespaces
                return "driver" if ours else "foreign"
            return "jobs" if os.stat(place).st_uid == os.getuid() != 0 else "foreign"
        except OSError:  # another user's, or it ended a moment ago
            return "foreign"

    def _is_marked(self, place: str) -> bool:
        try:
            with open(f"{place}/environ", "rb") as stream:
                return self._mark in stream.read().split(b"\0")
        except OSError:  # another user's, or it ended a moment ago
            return False

    def _is(self, pid: int, what: str) -> bool:
        return any(kind == what for (other, _), kind in self._kinds.items() if other == pid)

    def _storage(self, pid: int) -> tuple[int, int]:
        """Return bytes read from storage, and written: no more than passed to write calls.

        See ``storage`` in remote/node_agent.py for why.
        """
        words = self._files.once(f"/proc/{pid}/io").split()
        return (int(words[9]), min(int(words[3]), int(words[11]))) if len(words) > 13 else (0, 0)


ROOTS_1 = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct")
ROOTS_2 = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")


def quota(files: Files, pids: list[int]) -> dict[str, Any]:
    """Read the tightest CPU quota of the groups that processes are in, and how long it held them.

    Version 2: Documentation/admin-guide/cgroup-v2.rst, cpu.max and cpu.stat. Version 1:
    Documentation/scheduler/sched-bwc.rst.
    """
    groups, nodes = set(), set()
    for pid in pids:
        for line in files.once(f"/proc/{pid}/cgroup").decode().splitlines():
            number_, controllers, path = line.split(":", 2)
            if number_ == "0" or "cpu" in controllers.split(","):
                node, core = path.rpartition("/")[::2]
                if path.startswith("/boardcluster-") and core.startswith("core"):
                    nodes.add((number_ == "0", node))
                    path = node
                # Of a container that sees only its own group, that is "/", which ends as it begins.
                groups.add((number_ == "0", path.rstrip("/")))
    places = {
        (second, path[:end])
        for second, path in groups
        for end, letter in enumerate(f"{path}/")
        if letter == "/"
    }
    limits, held = [], 0
    for second, place in sorted(places):  # each once, though several daemons may be in it
        cores, microseconds = (quota_2 if second else quota_1)(files, place)
        held += microseconds
        if cores is not None:
            limits.append(cores)
    for second, node in nodes:  # the limit is the node's, but it is its cores that are held back
        roots = ROOTS_2 if second else ROOTS_1
        names = {name for root in roots for name in files.names(f"{root}{node}")}
        for core in sorted(name for name in names if name.startswith("core")):
            held += (quota_2 if second else quota_1)(files, f"{node}/{core}")[1]
    row: dict[str, Any] = {"quota_throttled_seconds": held}
    row["quota_cores"] = min(limits) if limits else None
    return row


def quota_2(files: Files, place: str) -> tuple[int | None, int]:
    """Return limit in thousandths of a core and microseconds held back, of a version 2 group."""
    for root in ROOTS_2:
        words = files.once(f"{root}{place}/cpu.max").split()
        if len(words) == 2:
            held = number(files.once(f"{root}{place}/cpu.stat").partition(b"throttled_usec ")[2])
            limit = None if words[0] == b"max" else 1000 * int(words[0]) // int(words[1])
            return limit, held or 0
    return None, 0


def quota_1(files: Files, place: str) -> tuple[int | None, int]:
    """Return the same of a version 1 group."""
    for root in ROOTS_1:
        limit = number(files.once(f"{root}{place}/cpu.cfs_quota_us"))
        period = number(files.once(f"{root}{place}/cpu.cfs_period_us"))
        if limit is not None and period:
            held = number(files.once(f"{root}{place}/cpu.stat").partition(b"throttled_time ")[2])
            return (1000 * limit // period if limit > 0 else None), (held or 0) // 1000
    return None, 0


class Sampler:
    """Takes samples of one node.

    Args:
        request: as at the top.
        files: of /proc and /sys.
    """

    def __init__(self, request: dict[str, Any], files: Files) -> None:
        self._request = request
        self._files = files
        self._machine = request["scope"] == "machine"
        self.processes = Processes(files, request)
        self._devices = whole_devices(files) if self._machine else []
        self._cpus = cores_with_clock(files) if self._machine else []
        self._sensors = sensors(files) if self._machine else []
        self._firmware = next((path for path in (FIRMWARE, FIRMWARE_5) if files.read(path)), "")
        self._vcgencmd = "" if self._firmware else vcgencmd(files.root)
        self._measure = timed_loop() if self._machine else None
        self._slow_due = self._scan_due = 0.0
        self._slow: dict[str, Any] = {}
        self._scanned: dict[str, Any] = {}

    def row(self, *, last: bool = False) -> dict[str, Any]:
        """Return one sample: every column with its raw value, None where it is not known now."""
        now = time.monotonic()
        row = network(self._files)
        if self._machine:
            row |= cpu_times(self._files, self.processes.bound)
            row |= memory(self._files) | pressure(self._files)
            row |= disks(self._files, self._devices) | hottest(self._files, self._sensors)
            row |= clocks(self._files, self._cpus)
            if self._measure is not None:
                row["clock_measured_hertz"] = self._measure()
            if self._firmware:
                row |= throttled(self._files, self._firmware)
        if now >= self._scan_due or last:
            began = time.process_time()
            self._scanned = self.processes.scan()
            self._scan_due = now + (time.process_time() - began) / SCAN_SHARE
            row |= self._scanned
        else:
            row |= dict.fromkeys(self._scanned)
        if now >= self._slow_due or last:
            self._slow = self._rarely()
            self._slow_due = now + SLOW_SECONDS
            row |= self._slow
        else:
            row |= dict.fromkeys(self._slow)
        row["agent_cpu_seconds"] = time.process_time_ns()
        return row

    def _rarely(self) -> dict[str, Any]:
        """Return what changes rarely, or costs much to ask."""
        files = self._files
        row = quota(files, list(self._request.get("groups", {}).values()))
        if self._machine:  # an emulated node sees the machine's /sys, whose links are not its own
            row |= links(files)
            nominal = [
                number(files.once(f"/sys/devices/system/cpu/{cpu}/cpufreq/cpuinfo_max_freq"))
                for cpu in self._cpus
            ]
            known = [value for value in nominal if value is not None]
            row["clock_nominal_hertz"] = max(known) if known else None
            row["clock_nominal_least_hertz"] = min(known) if known else None
            if not self._cpus:
                row |= clocks_of_cpuinfo(files)
            if self._vcgencmd:
                found = throttled_by_program(self._vcgencmd)
                if found is None:  # that of another system, which cannot run here
                    self._vcgencmd = ""
                row |= found or {}
        return row


def vcgencmd(root: str) -> str:
    """Return the Raspberry Pi's firmware program, if it is there."""
    places = ("/usr/bin/vcgencmd", "/opt/vc/bin/vcgencmd")
    return next((path for path in places if os.access(root + path, os.X_OK)), "")


class Log:
    """The file of samples. What is sampled goes there every few seconds, and at the end.

    Args:
        path: the file.
        most_bytes: its bound.
        interval_seconds: from one sample to the next.
    """

    def __init__(self, path: str, *, most_bytes: int, interval_seconds: float) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._left_bytes = most_bytes
        self._pace_bytes = most_bytes // 2
        self.interval_seconds = interval_seconds
        self._columns: tuple[str, ...] = ()
        self._lines: list[str] = []
        self._due = 0.0

    def add(self, row: dict[str, Any]) -> None:
        """Keep one sample."""
        if tuple(row) != self._columns:
            self._columns = tuple(row)
            self._head()
        words = ["-" if value is None else str(value) for value in row.values()]
        self._lines.append(f"{time.monotonic_ns()} {time.time_ns()} {' '.join(words)}")
        if time.monotonic() >= self._due:
            self.flush()

    def _head(self) -> None:
        columns = [[name, *SCALES[name.partition("/")[0]]] for name in self._columns]
        self._lines.append(
            json.dumps({"interval_seconds": self.interval_seconds, "columns": columns})
        )

    def flush(self, notes: tuple[str, ...] = ()) -> None:
        """Write what was kept; take samples half as often when half of the room is gone."""
        data = "".join(f"{line}\n" for line in (*self._lines, *notes)).encode()
        self._lines.clear()
        self._due = time.monotonic() + FLUSH_SECONDS
        if len(data) > self._left_bytes:
            return
        os.write(self._descriptor, data)
        self._left_bytes -= len(data)
        if self._left_bytes < self._pace_bytes:
            self._pace_bytes //= 2
            self.interval_seconds *= 2
            self._head()


def is_alone(request: dict[str, Any]) -> bool:
    """Say whether the process that the agent lives with has ended."""
    pid = request.get("lives_with")
    return pid is not None and not os.access(f"/proc/{pid}", os.F_OK)


def run(request: dict[str, Any]) -> int:
    """Take samples until the end; return how many.

    SIGTERM only ends a pause, so that no line is ever cut. Not sigtimedwait: Python 3.11's returns
    a signal that never came when the process was stopped for longer than the pause.
    """
    import select
    import signal

    told, telling = os.pipe()
    os.set_blocking(telling, False)
    signal.set_wakeup_fd(telling)
    signal.signal(signal.SIGTERM, lambda *_: None)
    sampler = Sampler(request, Files())
    log = Log(
        request["target"],
        most_bytes=request["most_bytes"],
        interval_seconds=request["interval_seconds"],
    )
    started = time.monotonic()
    samples, ended = 0, False
    while True:
        now = time.monotonic() - started
        ended = ended or now >= request["longest_seconds"]
        log.add(sampler.row(last=ended))
        samples += 1
        if ended:
            log.flush(tuple(sampler.processes.notes()))
            return samples
        # A beat that was missed is left out: the next one is on the same grid again.
        due = (int(now / log.interval_seconds) + 1) * log.interval_seconds
        pause = max(0.0, due - (time.monotonic() - started))
        ended = bool(select.select([told], [], [], pause)[0]) or is_alone(request)


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
