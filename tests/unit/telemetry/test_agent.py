"""The agent's pieces on recorded /proc and /sys, and the whole of it as a process here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_until

from boardcluster.remote.base import ProcessRef
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.node_rpc import end_processes, processes, rpc
from boardcluster.telemetry import agent
from boardcluster.telemetry.samples import Alignment, parse_samples

HERE = LocalRemote("here")
NO_OFFSET = Alignment(monotonic_offset_seconds=0.0, wall_offset_seconds=0.0, error_seconds=0.0)
PROGRAM = Path(agent.__file__).read_text()


def put(root: Path, files: dict[str, str]) -> agent.Files:
    for path, text in files.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return agent.Files(str(root))


def test_cpu_time_by_state_is_that_of_all_cores(tmp_path: Path) -> None:
    # A Raspberry Pi 5 under load; guest time, the last two, is in user and nice already.
    files = put(
        tmp_path, {"/proc/stat": "cpu  100 5 30 400 20 3 4 7 50 2\ncpu0 1 1 1 1 1 1 1 1 0 0\n"}
    )
    assert agent.cpu_times(files, set()) == {
        "cpu_user_seconds": 105,
        "cpu_system_seconds": 30,
        "cpu_idle_seconds": 400,
        "cpu_iowait_seconds": 20,
        "cpu_irq_seconds": 7,
        "cpu_steal_seconds": 7,
    }


def test_cpu_time_of_a_program_that_is_bound_to_some_cores_is_that_of_these(tmp_path: Path) -> None:
    lines = "".join(f"cpu{core} {core} 0 0 {10**core} 0 0 0 0 0 0\n" for core in range(12))
    files = put(tmp_path, {"/proc/stat": f"cpu  66 0 0 0 0 0 0 0 0 0\n{lines}intr 5 1 2\n"})
    found = agent.cpu_times(files, {1, 11})
    assert (found["cpu_user_seconds"], found["cpu_idle_seconds"]) == (12, 10 + 10**11)


@pytest.mark.parametrize(("own", "bound"), [({0, 2}, {0, 2}), ({0, 1, 2, 3}, set())])
def test_only_a_binding_to_some_of_the_cores_counts(
    monkeypatch: pytest.MonkeyPatch, own: set[int], bound: set[int]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: own)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert agent.bound_cpus() == bound


def test_memory_swap_and_paging(tmp_path: Path) -> None:
    files = put(
        tmp_path,
        {
            "/proc/meminfo": "MemTotal: 8 kB\nMemAvailable: 6 kB\nBuffers: 1 kB\nCached: 3 kB\n"
            "SwapTotal: 10 kB\nSwapFree: 4 kB\nDirty: 2 kB\nWriteback: 1 kB\n",
            "/proc/vmstat": "nr_free_pages 1\npswpin 7\npswpout 9\n",
        },
    )
    assert agent.memory(files) == {
        "memory_available_bytes": 6,
        "memory_cached_bytes": 4,
        "memory_dirty_bytes": 3,
        "swap_used_bytes": 6,
        "swap_in_bytes": 7,
        "swap_out_bytes": 9,
    }


def test_pressure_disks_and_network(tmp_path: Path) -> None:
    stat = "8 0 sda 10 0 80 0 20 0 160 0 0 250 0\n8 1 sda1 9 9 9 9 9 9 9 9 9 9 9\n"
    files = put(
        tmp_path,
        {
            "/proc/pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=500\n"
            "full avg10=0.00 avg60=0.00 avg300=0.00 total=300\n",
            "/proc/diskstats": stat,
            "/sys/block/sda/size": "1\n",
            "/sys/block/loop0/size": "1\n",
            "/proc/net/dev": "Inter-|   Receive\n face |bytes\n"
            "    lo: 1 1 1 1 0 0 0 0 1 1 1 1 0 0 0 0\n"
            "  eth0: 1000 9 2 3 0 0 0 0 2000 8 4 5 0 0 0 0\n",
        },
    )
    assert agent.pressure(files) == {"pressure_io_seconds": 500, "pressure_io_full_seconds": 300}
    assert agent.whole_devices(files) == ["sda"]
    assert agent.disks(files, ["sda"]) == {
        "disk_reads/sda": 10,
        "disk_read_bytes/sda": 80,
        "disk_writes/sda": 20,
        "disk_written_bytes/sda": 160,
        "disk_busy_seconds/sda": 250,
    }
    assert agent.network(files) == {
        "net_received_bytes/eth0": 1000,
        "net_sent_bytes/eth0": 2000,
        "net_dropped_packets/eth0": 14,
    }


def test_long_files_of_the_kernel_are_read_to_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"  eth{number}: 1 9 0 0 0 0 0 0 2 8 0 0 0 0 0 0\n" for number in range(300))
    flags = f"flags\t\t: {'avx ' * 350}"
    cores = "".join(
        f"processor: {number}\ncpu MHz\t\t: 2400.000\n{flags}\n\n" for number in range(300)
    )
    heads = "Inter-|   Receive\n face |bytes\n"
    files = put(tmp_path, {"/proc/net/dev": heads + rows, "/proc/cpuinfo": cores})
    whole_read = os.pread

    def by_pages(descriptor: int, size: int, offset: int) -> bytes:
        """As the kernel reads such files: a page of whole lines at most."""
        part = whole_read(descriptor, min(size, agent.PAGE), offset)
        return part if size < agent.PAGE else part[: part.rfind(b"\n") + 1]

    monkeypatch.setattr(os, "pread", by_pages)
    assert len(agent.network(files)) == 300 * len(agent.NETWORK)
    assert len(agent.clocks_of_cpuinfo(files)) == 300
    # What is longer than what is read at most ends with a whole line.
    (tmp_path / "proc/net/dev").write_text(heads + rows * 100)
    assert len(agent.network(files)) == 300 * len(agent.NETWORK)


def test_clocks_heat_and_throttle_bits_of_a_board(tmp_path: Path) -> None:
    cpu = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"
    files = put(
        tmp_path,
        {
            cpu.format(0): "2400000\n",
            cpu.format(10): "1500000\n",
            cpu.format(2): "1500000\n",
            "/sys/class/thermal/thermal_zone0/temp": "51200\n",
            "/sys/class/thermal/thermal_zone1/temp": "48900\n",
            agent.FIRMWARE: "50005\n",
        },
    )
    cores = agent.cores_with_clock(files)
    assert cores == ["cpu0", "cpu2", "cpu10"]
    assert agent.clocks(files, cores)["clock_hertz/cpu10"] == 1500000
    assert agent.hottest(files, agent.sensors(files)) == {"temperature_celsius": 51200}
    assert agent.throttled(files, agent.FIRMWARE) == {"throttle_bits": 0x50005}


def test_throttle_bits_from_the_firmwares_program(tmp_path: Path) -> None:
    program = tmp_path / "vcgencmd"
    program.write_text("#!/bin/sh\necho throttled=0x50000\n")
    program.chmod(0o755)
    assert agent.throttled_by_program(str(program)) == {"throttle_bits": 0x50000}
    program.write_text("#!/bin/sh\necho VCHI initialization failed\n")
    assert agent.throttled_by_program(str(program)) == {}
    before = list(Path("/proc/self/fd").iterdir())
    for _ in range(3):
        assert agent.throttled_by_program(str(tmp_path / "none")) is None
    assert len(list(Path("/proc/self/fd").iterdir())) == len(before)


@pytest.mark.parametrize("version", [1, 2])
def test_the_tightest_quota_of_a_group_and_those_above_it(tmp_path: Path, version: int) -> None:
    first = {
        "/proc/40/cgroup": "5:memory:/x\n4:cpu,cpuacct:/board/jobs\n",
        "/sys/fs/cgroup/cpu/board/cpu.cfs_quota_us": "150000\n",
        "/sys/fs/cgroup/cpu/board/cpu.cfs_period_us": "100000\n",
        "/sys/fs/cgroup/cpu/board/cpu.stat": "nr_periods 9\nthrottled_time 7000000\n",
        "/sys/fs/cgroup/cpu/board/jobs/cpu.cfs_quota_us": "-1\n",
        "/sys/fs/cgroup/cpu/board/jobs/cpu.cfs_period_us": "100000\n",
        "/sys/fs/cgroup/cpu/board/jobs/cpu.stat": "nr_periods 9\nthrottled_time 0\n",
    }
    second = {
        "/proc/40/cgroup": "0::/board/jobs\n",
        "/sys/fs/cgroup/board/cpu.max": "150000 100000\n",
        "/sys/fs/cgroup/board/cpu.stat": "usage_usec 5\nthrottled_usec 7000\n",
        "/sys/fs/cgroup/board/jobs/cpu.max": "max 100000\n",
        "/sys/fs/cgroup/board/jobs/cpu.stat": "usage_usec 5\nthrottled_usec 0\n",
    }
    files = put(tmp_path, first if version == 1 else second)
    assert agent.quota(files, [40]) == {"quota_cores": 1500, "quota_throttled_seconds": 7000}
    (tmp_path / "proc/42").mkdir()
    (tmp_path / "proc/42/cgroup").write_text((tmp_path / "proc/40/cgroup").read_text())
    assert agent.quota(files, [40, 42]) == agent.quota(files, [40])
    assert agent.quota(files, [41]) == {"quota_cores": None, "quota_throttled_seconds": 0}


@pytest.mark.parametrize("version", [1, 2])
def test_a_twins_quota_is_its_boards_and_what_is_held_back_are_its_cores(
    tmp_path: Path, version: int
) -> None:
    node = "/boardcluster-01234567/worker1"
    first = {
        "/proc/40/cgroup": f"5:memory:{node}\n4:cpu:{node}/core1\n",
        f"/sys/fs/cgroup/cpu{node}/cpu.cfs_quota_us": "40000\n",
        f"/sys/fs/cgroup/cpu{node}/cpu.cfs_period_us": "100000\n",
        f"/sys/fs/cgroup/cpu{node}/cpu.stat": "throttled_time 0\n",
    }
    second = {
        "/proc/40/cgroup": f"0::{node}/core1\n",
        f"/sys/fs/cgroup{node}/cpu.max": "40000 100000\n",
        f"/sys/fs/cgroup{node}/cpu.stat": "throttled_usec 0\n",
    }
    for core, held in ((0, 2000), (1, 5000)):
        inside = f"/sys/fs/cgroup/cpu{node}/core{core}"
        first[f"{inside}/cpu.cfs_quota_us"] = "10000\n"
        first[f"{inside}/cpu.cfs_period_us"] = "100000\n"
        first[f"{inside}/cpu.stat"] = f"throttled_time {held}000\n"
        second[f"/sys/fs/cgroup{node}/core{core}/cpu.max"] = "10000 100000\n"
        second[f"/sys/fs/cgroup{node}/core{core}/cpu.stat"] = f"throttled_usec {held}\n"
    files = put(tmp_path, first if version == 1 else second)

    assert agent.quota(files, [40]) == {"quota_cores": 400, "quota_throttled_seconds": 7000}


@pytest.mark.parametrize(
    "group",
    [
        {
            "/proc/40/cgroup": "0::/\n",
            "/sys/fs/cgroup/cpu.max": "200000 100000\n",
            "/sys/fs/cgroup/cpu.stat": "throttled_usec 7000\n",
        },
        {
            "/proc/40/cgroup": "4:cpu:/\n",
            "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n",
            "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "/sys/fs/cgroup/cpu/cpu.stat": "throttled_time 7000000\n",
        },
    ],
)
def test_the_quota_of_a_container_that_sees_its_own_group_alone_counts_once(
    tmp_path: Path, group: dict[str, str]
) -> None:
    """As Docker's do: the group that it calls "/" is its own."""
    files = put(tmp_path, group)

    assert agent.quota(files, [40]) == {"quota_cores": 2000, "quota_throttled_seconds": 7000}


def process(
    pid: int,
    name: str,
    *,
    ticks: str = "0 0 0 0",
    parent: int = 1,
    flags: int = 0,
    moved: tuple[int, int, int] = (30, 50, 90),
    cpu: int = 0,
) -> dict[str, str]:
    """What the kernel says of a process; it moved bytes by read_bytes, wchar and write_bytes."""
    zeros = "0 " * 4
    times = f"{ticks} 20 0 1 0 {pid}00 0 5"
    rest = f"{'0 ' * 14}{cpu}"
    return {
        f"/proc/{pid}/stat": f"{pid} ({name}) S {parent} 1 1 0 -1 {flags} {zeros}{times} {rest}\n",
        f"/proc/{pid}/io": f"rchar: 1\nwchar: {moved[1]}\nsyscr: 1\nsyscw: 1\n"
        f"read_bytes: {moved[0]}\nwrite_bytes: {moved[2]}\ncancelled_write_bytes: 0\n",
    }


def test_processes_of_a_node_are_counted_with_the_children_that_were_waited_for(
    tmp_path: Path,
) -> None:
    request = {"scope": "node", "groups": {"nodemanager": 20}}
    put(tmp_path, process(20, "java", ticks="100 10 0 0"))
    put(tmp_path, process(21, "java) x", ticks="500 50 0 0", parent=20))
    put(tmp_path, process(2, "kthreadd", ticks="9 9 0 0", flags=agent.KERNEL_THREAD))
    looking = agent.Processes(agent.Files(str(tmp_path)), request)
    assert looking.scan()["cpu_user_seconds"] == 0
    # The job ended and its parent waited for it, so its time moved; another began meanwhile.
    (tmp_path / "proc/21/stat").unlink()
    put(tmp_path, process(20, "java", ticks="110 10 530 50"))
    put(tmp_path, process(22, "java", ticks="40 4 0 0", parent=20))
    row = looking.scan()
    assert (row["cpu_user_seconds"], row["cpu_system_seconds"]) == (80, 4)
    assert row["group_cpu_seconds/nodemanager"] == 10
    assert row["group_cpu_seconds/jobs"] == 74
    assert "foreign_cpu_seconds" not in row
    # One that nobody waited for takes its time with it: what the others used still counts.
    (tmp_path / "proc/22/stat").unlink()
    put(tmp_path, process(20, "java", ticks="115 10 530 50"))
    assert looking.scan()["cpu_user_seconds"] == 85


def test_bytes_of_storage_never_fall_though_a_process_ends_that_nobody_waited_for(
    tmp_path: Path,
) -> None:
    """Else the driver takes a fall of gigabytes for a counter of 32 bits that wrapped."""
    request = {"scope": "node", "groups": {"datanode": 20}}
    looking = agent.Processes(agent.Files(str(tmp_path)), request)

    def seen() -> tuple[int | None, int | None]:
        row = looking.scan()
        return row["storage_read_bytes"], row["storage_written_bytes"]

    put(tmp_path, process(20, "java", moved=(2_000_000_000, 50, 90)))
    assert seen() == (0, 0)
    put(tmp_path, process(21, "cat", moved=(1_500_000_000, 20, 10)))
    assert seen() == (1_500_000_000, 10)
    (tmp_path / "proc/21/stat").unlink()
    assert seen() == (None, None)
    put(tmp_path, process(20, "java", moved=(2_000_000_007, 90, 90)))
    assert seen() == (1_500_000_007, 50)


def test_foreign_programs_on_cpus_that_are_not_ours_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "bound_cpus", lambda: {0, 1})
    here, there = process(5, "here", cpu=1), process(6, "there", cpu=7)
    processes = agent.Processes(put(tmp_path, {**here, **there}), {"scope": "machine"})
    processes.scan()
    put(tmp_path, process(5, "here", ticks="10 0 0 0", cpu=1))
    put(tmp_path, process(6, "there", ticks="70 0 0 0", cpu=7))
    assert processes.scan()["foreign_cpu_seconds"] == 10
    put(tmp_path, process(6, "there", ticks="75 0 0 0", cpu=0))  # it comes to one of ours
    assert processes.scan()["foreign_cpu_seconds"] == 15


def test_foreign_programs_are_told_from_the_driver_and_named(tmp_path: Path) -> None:
    request = {"scope": "machine", "groups": {}, "namespaces": [1], "trees": [30]}
    before = {30: "0 0", 31: "0 0", 50: "0 0"}
    after = {30: "50 0", 31: "70 0", 50: "300 25"}
    names = {30: "python", 31: "sort", 50: "stress-ng"}
    parents = {30: 1, 31: 30, 50: 1}
    looking = agent.Processes(agent.Files(str(tmp_path)), request)
    for ticks in (before, after):
        for pid, used in ticks.items():
            put(tmp_path, process(pid, names[pid], ticks=f"{used} 0 0", parent=parents[pid]))
        row = looking.scan()
    assert row == {"foreign_cpu_seconds": 325}
    assert looking.notes() == [f"# {325 / agent.TICKS:.2f} stress-ng"]


def test_a_child_of_the_clusters_own_is_its_own_though_it_hides_its_mark(tmp_path: Path) -> None:
    """As nginx does, which writes its title over its environment."""
    request = {"scope": "machine", "groups": {}, "mark": "MARK=1", "trees": []}
    looking = agent.Processes(agent.Files(str(tmp_path)), request)
    put(tmp_path, process(40, "sh", ticks="0 0 0 0") | {"/proc/40/environ": "A=b\0MARK=1\0"})
    put(tmp_path, process(50, "stress-ng", ticks="0 0 0 0") | {"/proc/50/environ": "A=b\0"})
    looking.scan()
    for used in ("0 0", "200 20"):
        put(tmp_path, process(41, "nginx", ticks=f"{used} 0 0", parent=40))
        put(tmp_path, process(42, "nginx", ticks=f"{used} 0 0", parent=41))
        put(tmp_path, process(50, "stress-ng", ticks=f"{used} 0 0"))
        row = looking.scan()
    assert row["foreign_cpu_seconds"] == 220
    assert row["group_cpu_seconds/jobs"] == 440


def test_a_program_of_the_cluster_that_was_seen_before_it_began_is_its_own(tmp_path: Path) -> None:
    """A look may fall between the start of a process and that of the program with the mark."""
    request = {"scope": "machine", "groups": {}, "mark": "MARK=1", "trees": [30]}
    looking = agent.Processes(agent.Files(str(tmp_path)), request)
    put(tmp_path, process(30, "boardcluster", ticks="0 0 0 0") | {"/proc/30/environ": "A=b\0"})
    for pid, parent in ((40, 1), (41, 30)):
        put(tmp_path, process(pid, "env", ticks="0 0 0 0", parent=parent))
        put(tmp_path, {f"/proc/{pid}/environ": "A=b\0"})
    looking.scan()
    for pid, parent in ((40, 1), (41, 30)):
        put(tmp_path, process(pid, "java", ticks="300 0 0 0", parent=parent))
        put(tmp_path, {f"/proc/{pid}/environ": "A=b\0MARK=1\0"})
    row = looking.scan()
    assert row["foreign_cpu_seconds"] == 0
    assert row["group_cpu_seconds/jobs"] == 600
    # What became another program without it stays what it was.
    put(tmp_path, process(41, "sh", ticks="310 0 0 0", parent=30) | {"/proc/41/environ": "A=b\0"})
    assert looking.scan()["group_cpu_seconds/jobs"] == 610


def test_what_others_reap_of_the_cluster_is_not_theirs(tmp_path: Path) -> None:
    """Jobs are orphans, so that they outlive a connection: the first process waits for them."""
    request = {"scope": "machine", "groups": {}, "namespaces": [1], "trees": [30]}
    looking = agent.Processes(agent.Files(str(tmp_path)), request)
    for reaped in ("100 0", "4100 50"):
        put(tmp_path, process(1, "systemd", ticks=f"5 5 {reaped}"))
        put(tmp_path, process(60, "sshd", ticks=f"5 5 {reaped}"))
        put(tmp_path, process(61, "make", ticks=f"5 5 {reaped}"))
        row = looking.scan()
    assert row == {"foreign_cpu_seconds": 4050}  # only what make had others do


def test_a_line_break_in_a_name_stays_out_of_the_file(tmp_path: Path) -> None:
    looking = agent.Processes(
        agent.Files(str(tmp_path)), {"scope": "machine", "groups": {}, "namespaces": [1]}
    )
    for ticks in ("0 0 0 0", "90 0 0 0"):
        put(tmp_path, process(70, "my\nprog", ticks=ticks))
        looking.scan()
    assert looking.notes() == [f"# {90 / agent.TICKS:.2f} my prog"]


@pytest.mark.skipif(os.uname().machine not in agent.LOOPS, reason="no loop for this architecture")
def test_the_timed_loop_measures_a_clock() -> None:
    measure = agent.timed_loop()
    assert measure is not None
    assert 2e8 < max(measure() for _ in range(5)) < 8e9


def start(folder: Path, **request: Any) -> ProcessRef:
    wanted = {
        "target": str(folder / "samples"),
        "interval_seconds": 0.05,
        "longest_seconds": 60.0,
        "most_bytes": 1 << 20,
        "scope": "machine",
        "groups": {},
        **request,
    }
    argv = ["python3", "-I", "-S", "-c", PROGRAM, json.dumps(wanted)]
    return HERE.start(argv, log=str(folder / "log"), env={"MARK": str(folder)})


def wait_until_ended(running: ProcessRef, folder: Path) -> None:
    wait_until(lambda: not processes(HERE, [running])[0].alive, "the agent's end", seconds=20)
    assert (folder / "log").read_text() == ""


def read(folder: Path) -> Any:
    text = (folder / "samples").read_text()
    assert text.endswith("\n")
    return parse_samples(
        text, node="here", scope="machine", cores=2, alignment=NO_OFFSET, started_seconds=0.0
    )


def test_the_agent_samples_until_sigterm_and_cuts_no_line(tmp_path: Path) -> None:
    began = time.monotonic()
    running = start(tmp_path)
    samples = tmp_path / "samples"
    wait_until(
        lambda: samples.exists() and samples.read_text().count("\n") > 10, "samples", seconds=20
    )
    assert end_processes(HERE, [running], grace_seconds=10) == 0
    found = read(tmp_path)
    assert began < found.seconds[0] < found.seconds[-1] < time.monotonic()
    assert len(found.seconds) >= 5
    assert found.columns["cpu_user_seconds"][1:].min() >= 0
    assert found.columns["memory_available_bytes"].min() > 0
    assert abs(found.columns["clock_step_seconds"][1:]).max() < 0.05
    assert found.columns["agent_cpu_seconds"][1:].max() < 0.05


def test_the_agent_ends_by_itself_and_with_its_companion(tmp_path: Path) -> None:
    wait_until_ended(start(tmp_path, longest_seconds=0.2), tmp_path)
    companion = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"])
    (tmp_path / "samples").unlink()
    running = start(tmp_path, lives_with=companion.pid)
    companion.kill()
    companion.wait()
    wait_until_ended(running, tmp_path)
    assert len(read(tmp_path).seconds) >= 1


def test_the_agent_is_found_by_its_mark(tmp_path: Path) -> None:
    running = start(tmp_path, interval_seconds=30)
    mark = {"do": "end_marked", "mark": f"MARK={tmp_path}", "grace_seconds": 10}
    assert rpc(HERE, mark) == {"ended": 1}
    assert not processes(HERE, [running])[0].alive


def test_the_file_is_bounded_and_the_interval_doubles_as_it_fills(tmp_path: Path) -> None:
    path = tmp_path / "samples"
    log = agent.Log(str(path), most_bytes=4000, interval_seconds=1.0)
    for index in range(300):
        log.add({"agent_cpu_seconds": index})
        log.flush()
    assert path.stat().st_size <= 4000
    intervals = [
        json.loads(line)["interval_seconds"]
        for line in path.read_text().splitlines()
        if line.startswith("{")
    ]
    assert intervals[:3] == [1.0, 2.0, 4.0]
