"""A real emulated cluster whose nodes are held to boards: limits in the kernel, and what is left.

One board is a Raspberry Pi 5B with a microSD card. The master is a 4B in a closed case, because
that has a model of its heat. What they can do is measured in test_twin_speed.py. This machine has
one such cluster at a time, so what kills and refuses clusters comes first, and what brings the
common one down comes last.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from boardcluster.cluster.cores import available_cores
from boardcluster.cluster.processes import leftover_processes
from boardcluster.cluster.state import load_state
from boardcluster.fetch.cache import no_progress
from boardcluster.records import NodeLimits
from boardcluster.remote.gate import Completed
from boardcluster.services import operation
from boardcluster.services.operation import LiveCluster
from boardcluster.services.webhdfs import WebHdfs
from boardcluster.store.samples import read_telemetry
from boardcluster.twin.setpoints import NodeSetPoints, set_points
from tests.integration.conftest import AS_NOBODY, NOBODY, Cli, finish, is_unwatched, traces
from tests.waiting import wait_until

TWIN = """\
[cluster]
name = "boards"
kind = "emulated"
engines = "hadoop-3.4.2-spark-4.1.4"
profile = "default"

[network]
subnet = "198.18.210.0/24"

[twin]
dilation = "auto"

[[node]]
name = "master"
roles = ["master"]
board = "rpi-4b-4gb-1500mhz"
medium = "samsung-ufs-256gb"
cooling = "rpi-4b-closed-case"
memory = "2 GiB"
disk = "1 GiB"

[[node]]
name = "worker1"
roles = ["worker"]
board = "rpi-5b-8gb-2400mhz"
medium = "samsung-pro-plus-256gb"
memory = "3 GiB"
disk = "2 GiB"
"""
PARTS_OF_THE_MASTER = (
    'medium = "samsung-ufs-256gb"\n',
    'disk = "1 GiB"\n',
    'cooling = "rpi-4b-closed-case"\n',
)
WARM = """\
[campaign]
name = "warm"
repeat_tainted = 0  # this machine has other work
repetitions = 1
warm_ups = 1

[[matrix]]
workload = "pi"
engine = "mapreduce"
parameters.pi.maps = 1
parameters.pi.samples = 1000
"""
GIB = 1 << 30
COUNTED_PAYLOAD = 1448 / 1514  # docs/reference/twin.md: the token bucket counts headers
EXAMPLE = Path(__file__).parents[2] / "examples" / "twin" / "pcie-2-against-3.toml"

pytestmark = pytest.mark.needs_root


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "boards.toml"
    path.write_text(TWIN)
    return path


@pytest.fixture
def alone(tmp_path: Path, cli: Callable[..., Cli]) -> Iterator[Cli]:
    """A home of its own, brought down whatever happens."""
    program = cli(tmp_path / "home")
    yield program
    if program.home.is_dir():
        program("down", "--wipe")


@dataclass(frozen=True, kw_only=True)
class Boards:
    """The common cluster, and the file that it was made from."""

    program: Cli
    file: Path

    def up(self, **options: Any) -> str:
        return self.program("up", "--twin", str(self.file), **options)


@contextlib.contextmanager
def emulated_boards(folder: Path, cli: Callable[..., Cli]) -> Iterator[Boards]:
    """A cluster of emulated boards that is up."""
    made = Boards(program=cli(folder / "home"), file=folder / "boards.toml")
    made.file.write_text(TWIN)
    try:
        made.up()
        yield made
    finally:
        made.program("down", "--wipe")


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli]) -> Iterator[Boards]:
    with emulated_boards(tmp_path_factory.mktemp("twin"), cli) as made:
        yield made


def attached(boards: Boards) -> LiveCluster:
    return operation.attach(boards.program.home, cache=boards.program.cache, progress=no_progress)


@pytest.fixture
def live(boards: Boards) -> LiveCluster:
    return attached(boards)


# Bad input


def test_an_unknown_board_is_named_with_the_nearest(alone: Cli, file: Path) -> None:
    file.write_text(TWIN.replace("rpi-5b-8gb-2400mhz", "rpi-5b-8gb-2400mh"))
    alone("up", "--twin", str(file), code=3)
    assert f"{file}:25: node[1].board" in alone.stderr
    assert 'did you mean "rpi-5b-8gb-2400mhz"' in alone.stderr
    assert not alone.home.exists()


def test_a_twin_that_is_too_large_is_refused_with_the_arithmetic(alone: Cli, file: Path) -> None:
    worker = TWIN[TWIN.index('[[node]]\nname = "worker1"') :]
    worker = worker.replace("3 GiB", "8 GiB").replace("2 GiB", "200 GiB")
    count = 62
    workers = [worker.replace("worker1", f"worker{number}") for number in range(1, count + 1)]
    file.write_text(TWIN[: TWIN.index('[[node]]\nname = "worker1"')] + "\n".join(workers))
    alone("up", "--twin", str(file), code=5)
    assert f"memory: 1 x 2 GiB (rpi-4b-4gb-1500mhz) + {count} x 8 GiB" in alone.stderr
    assert f"disk: 1 x 1 GiB (rpi-4b-4gb-1500mhz) + {count} x 200 GiB" in alone.stderr
    assert alone.stderr.count("the largest number of workers that fits is") == 2
    assert load_state(alone.home) is None


def test_a_plain_cluster_is_no_twin(alone: Cli, tmp_path: Path) -> None:
    alone("init", "--workers", "1")
    alone("up", "--twin", str(alone.home / "cluster.toml"), code=2)
    assert "no node has a `board`" in alone.stderr


def test_an_ordinary_user_is_told_that_limits_need_root(
    cli: Callable[..., Cli], open_folder: Path
) -> None:
    file = open_folder / "boards.toml"
    file.write_text(TWIN)
    home = open_folder / "nobody"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    prefix = (
        *AS_NOBODY,
        *("env", f"HOME={home}", "--chdir=/", f"BOARDCLUSTER_CACHE={home}/cache"),
    )
    program = cli(home / "state", prefix=prefix)
    program("up", "--twin", str(file), code=5)
    assert "only root" in program.stderr
    assert "sudo" in program.stderr
    assert load_state(program.home) is None


def test_a_missing_sysbench_is_named(alone: Cli, file: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for folder in reversed(os.environ["PATH"].split(":")):
        for path in Path(folder).glob("*"):
            if path.name != "sysbench":
                (programs / path.name).unlink(missing_ok=True)
                (programs / path.name).symlink_to(path)
    alone.env["PATH"] = str(programs)
    alone("up", "--twin", str(file), code=5)
    assert "apt install sysbench" in alone.stderr
    assert load_state(alone.home) is None


def test_an_experiment_is_looked_at_without_running_it(alone: Cli, tmp_path: Path) -> None:
    out = alone("experiment", str(EXAMPLE), "--dry-run", "--home-root", str(tmp_path / "homes"))
    assert "columns: rpi5-pcie2-4, rpi5-nvme-4" in out
    assert not (tmp_path / "homes").exists()


# Killed while it comes up


def start_killed(program: Cli, file: Path, place: str, call: int) -> None:
    """Bring up a cluster with a driver that is killed just after a call."""
    killer = ("-m", "tests.integration.killer", place, "after", str(call), "--")
    command = [sys.executable, *killer, *("up", "--twin", str(file))]
    done = subprocess.run(command, env=program.env, capture_output=True, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr


def own_traces(program: Cli) -> dict[str, set[str]]:
    """What is left of a cluster, apart from what other modules have meanwhile.

    No other that runs beside this one has control groups. Links and rules are looked for when all
    have ended.
    """
    found, folder = traces(), str(program.home)
    state = load_state(program.home)
    return {
        "processes": {str(pid) for pid in leftover_processes(state.identity)} if state else set(),
        **{kind: found[kind] for kind in ("groups", "throttles")},
        **{kind: {row for row in found[kind] if folder in row} for kind in ("mounts", "loops")},
    }


def check_gone(program: Cli, before: Mapping[str, set[str]]) -> None:
    state = load_state(program.home)
    program("down")
    assert load_state(program.home) is None
    assert state is None or leftover_processes(state.identity) == []
    after = own_traces(program)
    assert {kind: after[kind] - before[kind] for kind in after} == {kind: set() for kind in after}


def test_killed_while_it_measures_this_machine(alone: Cli, file: Path) -> None:
    before = own_traces(alone)
    with alone.start("up", "--twin", str(file)) as process:
        wait_until(
            lambda: bool(own_traces(alone)["groups"] - before["groups"]),
            seconds=90,
            what="the first group",
        )
        time.sleep(0.5)
        process.kill()
        process.communicate()
    assert own_traces(alone)["groups"] - before["groups"]
    check_gone(alone, before)


def test_killed_between_attaching_a_disk_and_mounting_it(alone: Cli, file: Path) -> None:
    before = own_traces(alone)
    # The fourth program attaches the master's disk, after two that look and one that formats.
    start_killed(alone, file, "boardcluster.cluster.limits.disks:run_program", 4)
    now = own_traces(alone)
    assert {"processes", "groups", "loops"} <= {kind for kind in now if now[kind] - before[kind]}
    check_gone(alone, before)


def test_everything_killed_when_limits_are_set(alone: Cli, file: Path) -> None:
    before = own_traces(alone)
    start_killed(alone, file, "boardcluster.cluster.limits.limiter:Limiter.set", 1)
    state = load_state(alone.home)
    assert state is not None
    for _ in range(100):
        for pid in leftover_processes(state.identity):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
        if not leftover_processes(state.identity):
            break
    # The kernel unmounts and detaches disks with their nodes; groups and throttles it keeps.
    wait_until(lambda: own_traces(alone)["loops"] == before["loops"], what="disks to go")
    assert own_traces(alone)["groups"] - before["groups"]
    check_gone(alone, before)


# The limits, in the kernel


def hierarchy(controller: str) -> tuple[Path, bool]:
    """Return where a controller is, and whether that is version 2."""
    rows = [row.split() for row in Path("/proc/mounts").read_text().splitlines()]
    roots = [(Path(row[1]), row[2], row[3].split(",")) for row in rows]
    second = {"blkio": "io"}.get(controller, controller)
    for root, kind, _ in roots:
        if kind == "cgroup2" and second in (root / "cgroup.controllers").read_text().split():
            return root, True
    return next((root, False) for root, kind, names in roots if controller in names)


def group_file(live: LiveCluster, controller: str, node: str, first: str, second: str) -> Path:
    """Return a file of a node's group by its name in version 1 and in version 2."""
    root, is_second = hierarchy(controller)
    folder = root / f"boardcluster-{live.state.identity[:8]}" / node
    return folder / (second if is_second else first)


def quota_file(live: LiveCluster, node: str) -> Path:
    return group_file(live, "cpu", node, "cpu.cfs_quota_us", "cpu.max")


def quota(live: LiveCluster, node: str) -> int:
    """Return the CPU time of a node in each 100 ms, in microseconds."""
    return int(quota_file(live, node).read_text().split()[0])


def memory_limit(live: LiveCluster, node: str) -> int:
    path = group_file(live, "memory", node, "memory.limit_in_bytes", "memory.max")
    return int(path.read_text())


def disk_rates(live: LiveCluster, node: str) -> dict[str, int]:
    """Return the throttles of a node's disk by their names in version 2."""
    device = device_number(live, node)
    root, is_second = hierarchy("blkio")
    if is_second:
        path = root / f"boardcluster-{live.state.identity[:8]}" / node / "io.max"
        rows = dict(row.split(" ", 1) for row in path.read_text().splitlines())
        words = dict(word.split("=") for word in rows[device].split())
        return {name: int(value) for name, value in words.items()}
    names = {"rbps": "read_bps", "wbps": "write_bps", "riops": "read_iops", "wiops": "write_iops"}
    found = {}
    for short, name in names.items():
        text = (root / f"blkio.throttle.{name}_device").read_text()
        found[short] = int(dict(row.split() for row in text.splitlines())[device])
    return found


def loop_device(live: LiveCluster, node: str) -> str:
    """Return the one loop device that holds a node's disk."""
    image = live.home / "nodes" / node / "disk.img"
    listed = subprocess.run(
        ["losetup", "--json", "--list"], capture_output=True, text=True, check=True
    )
    rows = json.loads(listed.stdout)["loopdevices"]
    (device,) = [row["name"] for row in rows if row["back-file"] == str(image)]
    assert isinstance(device, str)
    return device


def device_number(live: LiveCluster, node: str) -> str:
    number = Path(loop_device(live, node)).stat().st_rdev
    return f"{os.major(number)}:{os.minor(number)}"


def inside(pid: int, *words: str) -> str:
    """Run a program in the network namespace of a process."""
    done = subprocess.run(
        ["nsenter", "-t", str(pid), "-n", "-m", *words], capture_output=True, text=True, check=True
    )
    return done.stdout


def link_ends(live: LiveCluster, node: str) -> tuple[tuple[int, str], tuple[int, str]]:
    names = [row.name for row in live.state.nodes]
    pid = live.state.nodes[names.index(node)].pid
    return (pid, "eth0"), (live.state.switch_pid, f"port{names.index(node)}")


def points_of(live: LiveCluster, node: str) -> NodeSetPoints:
    (spec,) = [row for row in live.spec.nodes if row.name == node]
    return set_points(spec, live.spec.network.link_bits_per_second)


def limits_of(live: LiveCluster, node: str) -> NodeLimits:
    (row,) = [row for row in live.state.limits if row.node == node]
    return row


def check_limits(live: LiveCluster, node: str) -> None:
    """Compare the kernel's own files with what the catalog says, divided by the dilation."""
    points, dilation = points_of(live, node), live.state.dilation
    disk = points.disk
    assert disk is not None
    assert quota(live, node) == pytest.approx(limits_of(live, node).cpu_cores * 100_000, abs=1)
    assert memory_limit(live, node) == points.memory_bytes.value
    rates = {
        "rbps": disk.read_bytes_per_second,
        "wbps": disk.write_bytes_per_second,
        "riops": disk.read_iops,
        "wiops": disk.write_iops,
    }
    assert disk_rates(live, node) == {
        name: round(point.value / dilation) for name, point in rates.items()
    }
    for pid, device in link_ends(live, node):
        (row,) = json.loads(inside(pid, "tc", "-j", "qdisc", "show", "dev", device))
        wanted = points.link_bits_per_second.value / dilation / COUNTED_PAYLOAD
        assert row["options"]["rate"] * 8 == pytest.approx(wanted, rel=0.001)


@pytest.mark.parametrize("node", ["master", "worker1"])
def test_the_kernel_has_the_boards_limits(live: LiveCluster, node: str) -> None:
    assert live.state.dilation > 1
    check_limits(live, node)


def test_cpu_shares_are_as_the_boards_are(live: LiveCluster) -> None:
    points = [points_of(live, node).cpu_events_per_second.value for node in ("master", "worker1")]
    shares = [limits_of(live, node).cpu_cores for node in ("master", "worker1")]
    assert shares[0] / shares[1] == pytest.approx(points[0] / points[1])
    cores = available_cores()
    assert sum(shares) <= 0.75 * cores + 1e-9


def test_a_nodes_disk_is_mounted_in_it_alone(live: LiveCluster) -> None:
    for node, size_bytes in (("master", GIB), ("worker1", 2 * GIB)):
        device = loop_device(live, node)
        folder = f"{live.home}/nodes/{node}/disk"
        (pid,) = [row.pid for row in live.state.nodes if row.name == node]
        mounts = Path(f"/proc/{pid}/mounts").read_text()
        assert f"{device} {folder} ext4 " in mounts
        assert device not in Path("/proc/mounts").read_text()
        sectors = int(Path("/sys/block", Path(device).name, "size").read_text())
        assert sectors * 512 == size_bytes
        seen = live.remotes[node].run(["stat", "-f", "-c", "%T", folder]).text.strip()
        assert seen == "ext2/ext3"


# Memory


def test_a_program_that_takes_more_memory_than_its_node_has_is_ended(
    boards: Boards, live: LiveCluster
) -> None:
    # It offers itself, so that no daemon goes for it.
    take = (
        "open('/proc/self/oom_score_adj', 'w').write('1000')\n"
        f"kept = [b'x' * (64 << 20) for _ in range({3 * GIB // (64 << 20)})]"
    )
    with live.unlimited():
        done = live.remotes["worker1"].run(["python3", "-c", take], check=False)
    assert was_killed(done)
    assert boards.program.json("status")["phase"] == "up"


def was_killed(done: Completed) -> bool:
    return done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)


def test_the_page_cache_of_a_node_stays_within_its_memory(live: LiveCluster) -> None:
    """Of a file with holes: reading those fills the cache, and no disk is asked."""
    large = f"{live.home}/nodes/master/disk/large"
    master = live.remotes["master"]
    master.run(["truncate", f"--size={5 * GIB // 2}", large])
    try:
        with live.unlimited():
            master.run(["sh", "-c", f"cat {large} > /dev/null"])
    finally:
        master.run(["rm", large])
    used = group_file(live, "memory", "master", "memory.max_usage_in_bytes", "memory.peak")
    if used.exists():  # version 2 has it from Linux 5.19 on
        assert 0.9 * 2 * GIB < int(used.read_text()) <= 2 * GIB


def test_no_more_waits_to_be_written_than_on_the_board(live: LiveCluster) -> None:
    """The board has 2 GiB, so what is written beyond a fifth of that takes its medium's time."""
    held = Path("/sys/dev/block", device_number(live, "master"), "bdi", "strict_limit")
    if not held.exists():
        pytest.skip("before Linux 6.2 the kernel has no such limit for a single device")
    large = f"{live.home}/nodes/master/disk/large"
    master = live.remotes["master"]
    try:
        master.run(["dd", "if=/dev/zero", f"of={large}", "bs=1M", "count=700", "status=none"])
        waiting = unwritten_bytes(live, "master")
    finally:
        with live.unlimited():
            master.run(["rm", "-f", large])
    assert 0 < waiting < 0.2 * 2 * GIB


def unwritten_bytes(live: LiveCluster, node: str) -> int:
    stat = group_file(live, "memory", node, "memory.stat", "memory.stat").read_text()
    rows = dict(row.split() for row in stat.splitlines())
    names = ("dirty", "writeback", "file_dirty", "file_writeback")  # of version 1, and of 2
    return sum(int(rows.get(name, "0")) for name in names)


# Down, and up again


def test_up_again_changes_nothing(boards: Boards, live: LiveCluster) -> None:
    before = (live.home / "state.json").read_text()
    boards.up()
    assert (live.home / "state.json").read_text() == before
    check_limits(live, "worker1")


def test_another_file_is_refused_while_the_cluster_is_up(boards: Boards) -> None:
    boards.file.write_text(TWIN.replace("3 GiB", "2 GiB"))
    try:
        boards.up(code=7)
        assert "boardcluster down" in boards.program.stderr
    finally:
        boards.file.write_text(TWIN)


def test_disks_keep_data_and_their_size_until_they_are_wiped(boards: Boards) -> None:
    """In one test, because each step is what the next one begins with."""
    program = boards.program
    live = attached(boards)
    source = live.home / "kept.txt"
    source.write_text("kept\n")
    WebHdfs(live.layout, live.master).put(source, "/kept.txt")
    images = {path: path.stat().st_size for path in live.home.glob("nodes/*/disk.img")}
    assert sorted(images.values()) == [GIB, 2 * GIB]
    assert not (live.home / "nodes/worker1/disk/data").exists()  # seen from the node alone
    program("down")
    assert {path: path.stat().st_size for path in images} == images

    boards.file.write_text(TWIN.replace('disk = "2 GiB"', 'disk = "3 GiB"'))
    boards.up(code=7)
    assert "worker1/disk.img is a disk of 2 GiB" in program.stderr
    assert "--wipe" in program.stderr
    assert load_state(live.home) is None
    boards.file.write_text(TWIN)

    boards.up()
    live = attached(boards)
    back = live.home / "back.txt"
    WebHdfs(live.layout, live.master).get("/kept.txt", back)
    assert back.read_text() == "kept\n"
    check_limits(live, "worker1")

    device = device_number(live, "worker1")
    program("down", "--wipe")
    assert not list(live.home.glob("nodes/*/disk.img"))
    held = Path("/sys/dev/block", device, "bdi", "strict_limit")
    assert not held.exists() or held.read_text() == "0\n"  # nothing is left for others


@pytest.fixture(scope="module")
def plain(boards: Boards) -> Iterator[Boards]:
    """The common cluster, its master with this machine's disk and without a model of heat."""
    text = TWIN
    for line in PARTS_OF_THE_MASTER:
        assert line in text
        text = text.replace(line, "")
    boards.program("down", "--wipe")
    boards.file.write_text(text)
    try:
        boards.up()
        yield boards
    finally:
        boards.program("down", "--wipe")
        boards.file.write_text(TWIN)


def test_a_node_without_a_medium_keeps_its_data(plain: Boards) -> None:
    """The master has HDFS's names on this machine's disk."""
    live = attached(plain)
    source, back = live.home / "kept.txt", live.home / "back.txt"
    source.write_text("kept\n")
    WebHdfs(live.layout, live.master).put(source, "/kept.txt")
    plain.program("down")
    plain.up()
    live = attached(plain)
    WebHdfs(live.layout, live.master).get("/kept.txt", back)
    assert back.read_text() == "kept\n"
    assert not (live.home / "nodes/master/disk.img").exists()
    assert (live.home / "nodes/master/disk").stat().st_uid == 0


@pytest.mark.alone  # beside others its runs are disturbed again and again
def test_a_warm_up_runs_without_limits_and_what_follows_it_with_them(
    plain: Boards, tmp_path: Path
) -> None:
    file = tmp_path / "warm.toml"
    file.write_text(WARM)
    done, _ = finish(plain.program, str(file), excused=is_disturbed)
    warm, measured = sorted(done["results"], key=lambda row: not row["trial"]["warm_up"])
    assert any("full speed" in words for words in warm["measurement"]["remarks"])
    assert not any("full speed" in words for words in measured["measurement"]["remarks"])
    live = attached(plain)
    wanted = pytest.approx(limits_of(live, "worker1").cpu_cores, abs=0.002)
    assert not any(quota == wanted for quota in quotas_of(plain, warm, "worker1"))
    assert any(quota == wanted for quota in quotas_of(plain, measured, "worker1"))
    check_limits(live, "worker1")


def is_disturbed(attempt: Mapping[str, Any]) -> bool:
    """Whether other work here took what the nodes were promised, or the time to watch them."""
    return "too slow for its nodes" in attempt["reason"] or is_unwatched(attempt)


def quotas_of(boards: Boards, row: Mapping[str, Any], node: str) -> list[float]:
    """What the kernel let a node have in each sample of a run, in cores of this machine."""
    telemetry = read_telemetry(boards.program.home / row["attempt"]["artefacts"])
    assert telemetry is not None
    (samples,) = [each for each in telemetry.nodes if each.node == node]
    return [float(value) for value in samples.columns.get("quota_cores", ())]
