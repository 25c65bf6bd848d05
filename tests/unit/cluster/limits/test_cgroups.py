from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from boardcluster.cluster.limits import cgroups, group_files
from boardcluster.cluster.limits.cgroups import CgroupsV1, CgroupsV2, find_cgroups, joining
from boardcluster.errors import ClusterError, HostError
from boardcluster.records import DiskLimits
from boardcluster.remote.gate import run_program

DISK = DiskLimits(
    size_bytes=1 << 30,
    read_bytes_per_second=92_000_000,
    write_bytes_per_second=54_000_000,
    read_iops=6405,
    write_iops=2353,
)
IDENTITY = "0123456789ab"


def mount(kind: str, folder: Path, options: str) -> str:
    return f"31 23 0:27 / {folder} rw,nosuid shared:9 - {kind} {kind} rw,{options}"


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Hierarchies of version 1, with cpu and cpuacct mounted together as systemd does."""
    roots = {
        "cpu": tmp_path / "cpu,cpuacct",
        "cpuacct": tmp_path / "cpu,cpuacct",
        "memory": tmp_path / "memory",
        "blkio": tmp_path / "blkio",
    }
    for folder in roots.values():
        folder.mkdir(exist_ok=True)
    rows = [
        mount("cgroup", roots["cpu"], "cpu,cpuacct"),
        mount("cgroup", roots["memory"], "memory"),
        mount("cgroup", roots["blkio"], "blkio"),
    ]
    table = tmp_path / "mountinfo"
    table.write_text("\n".join(rows) + "\n")
    monkeypatch.setattr(cgroups, "_MOUNTS", table)
    return roots


@pytest.fixture
def second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hierarchy of version 2."""
    root = tmp_path / "unified"
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    table = tmp_path / "mountinfo"
    table.write_text(mount("cgroup2", root, "nsdelegate") + "\n")
    monkeypatch.setattr(cgroups, "_MOUNTS", table)
    return root


def test_version_1_limits_a_node_in_its_groups_and_its_device_in_the_root(
    first: dict[str, Path],
) -> None:
    groups = find_cgroups(IDENTITY)
    assert isinstance(groups, CgroupsV1)

    groups.create("worker1", 4)
    groups.set_cpu("worker1", 0.2427, 4)
    groups.set_memory("worker1", (1 << 31) + 17)
    groups.set_disk("worker1", "7:3", DISK)

    cpu = first["cpu"] / "boardcluster-01234567" / "worker1"
    assert (cpu / "cpu.cfs_quota_us").read_text() == "24270"
    assert (cpu / "cpu.cfs_period_us").read_text() == "100000"
    quotas = [(cpu / f"core{core}" / "cpu.cfs_quota_us").read_text() for core in range(4)]
    assert quotas == ["6068"] * 4
    assert not (first["memory"] / "boardcluster-01234567" / "worker1" / "core0").exists()
    assert (first["blkio"] / "blkio.throttle.read_bps_device").read_text() == "7:3 92000000"
    assert (first["blkio"] / "blkio.throttle.write_iops_device").read_text() == "7:3 2353"


def test_version_1_joins_the_root_group_of_blkio_and_each_group_once(
    first: dict[str, Path],
) -> None:
    files = find_cgroups(IDENTITY).join_files("worker1")

    assert files == (
        str(first["cpu"] / "boardcluster-01234567/worker1/core0/cgroup.procs"),
        str(first["memory"] / "boardcluster-01234567/worker1/cgroup.procs"),
        str(first["blkio"] / "cgroup.procs"),
    )


def test_version_1_reads_back_what_the_kernel_has(first: dict[str, Path]) -> None:
    groups = find_cgroups(IDENTITY)
    groups.create("worker1", 2)
    groups.set_cpu("worker1", 0.25, 2)
    groups.set_memory("worker1", 1 << 31)
    cpu = first["cpu"] / "boardcluster-01234567" / "worker1"
    (cpu / "tasks").write_text("")
    for name, value in (
        ("read_bps", 92_000_000),
        ("write_bps", 54_000_000),
        ("read_iops", 6405),
        ("write_iops", 2353),
    ):
        file = first["blkio"] / f"blkio.throttle.{name}_device"
        file.write_text(f"8:0 1000\n7:3 {value}\n")
    wanted = groups.expected(0.25, 1 << 31, "7:3", DISK, 2)

    assert groups.read("worker1", "7:3") == wanted
    groups.set_cpu("worker1", 0.5, 2)
    read = groups.read("worker1", "7:3")
    quotas = {"cpu quota", "quota of core0", "quota of core1"}
    assert {name for name in wanted if read[name] != wanted[name]} == quotas
    (cpu / "tasks").write_text("40\n41\n")
    assert groups.read("worker1", "7:3")["threads in no core's group"] == "2"
    (cpu / "core1" / "cpu.cfs_quota_us").unlink()
    (cpu / "core1").rmdir()
    assert "quota of core1" not in groups.read("worker1", "7:3")
    (first["blkio"] / "blkio.throttle.read_iops_device").write_text("8:0 1000\n")
    assert groups.read("worker1", "7:3")["read_iops"] == "none"


def test_version_2_limits_a_node_in_one_group(second: Path) -> None:
    groups = find_cgroups(IDENTITY)
    assert isinstance(groups, CgroupsV2)

    groups.create("worker1", 2)
    groups.set_cpu("worker1", 0.2427, 2)
    groups.set_memory("worker1", 1 << 31)
    groups.set_disk("worker1", "7:3", DISK)

    folder = second / "boardcluster-01234567" / "worker1"
    assert (second / "cgroup.subtree_control").read_text() == "+cpu +io +memory"
    assert (folder / "cpu.max").read_text() == "24270 100000"
    assert (folder / "cgroup.subtree_control").read_text() == "+cpu"
    for core in ("core0", "core1"):
        assert (folder / core / "cgroup.type").read_text() == "threaded"
        assert (folder / core / "cpu.max").read_text() == "12135 100000"
    (folder / "cgroup.threads").write_text("")
    assert (folder / "memory.max").read_text() == str(1 << 31)
    words = "rbps=92000000 wbps=54000000 riops=6405 wiops=2353"
    assert (folder / "io.max").read_text() == f"7:3 {words}"
    assert groups.read("worker1", "7:3") == groups.expected(0.2427, 1 << 31, "7:3", DISK, 2)
    groups.set_cpu("worker1", None, 2)
    groups.set_disk("worker1", "7:3", None)
    assert groups.read("worker1", "7:3") == groups.expected(None, 1 << 31, "7:3", None, 2)
    assert groups.join_files("worker1") == (str(folder / "core0" / "cgroup.procs"),)


def test_cpu_time_is_read_in_both_versions(first: dict[str, Path], tmp_path: Path) -> None:
    groups = find_cgroups(IDENTITY)
    groups.create("n")
    folder = first["cpuacct"] / "boardcluster-01234567" / "n"
    (folder / "cpuacct.usage").write_text("2500000000\n")
    assert groups.cpu_seconds("n") == 2.5

    unified = CgroupsV2(tmp_path, "boardcluster-01234567")
    (tmp_path / "boardcluster-01234567" / "n").mkdir(parents=True)
    stat = tmp_path / "boardcluster-01234567" / "n" / "cpu.stat"
    stat.write_text("usage_usec 2500000\nuser_usec 1\n")
    assert unified.cpu_seconds("n") == 2.5


@pytest.mark.parametrize("version", ["first", "second"])
def test_cpu_time_of_a_group_that_is_gone_is_an_error(
    version: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(version)

    with pytest.raises(HostError, match=r"never-made/cpu\S+ cannot be read"):
        find_cgroups(IDENTITY).cpu_seconds("never-made")


def test_missing_controllers_are_named_in_both_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "unified"
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpu hugetlb\n")
    table = tmp_path / "mountinfo"
    rows = [mount("cgroup2", root, "x"), mount("cgroup", tmp_path, "cpu,cpuacct")]
    table.write_text("\n".join(rows))
    monkeypatch.setattr(cgroups, "_MOUNTS", table)

    with pytest.raises(HostError) as caught:
        find_cgroups(IDENTITY)

    assert "version 1 lacks blkio, memory" in caught.value.message
    assert "version 2 lacks io, memory" in caught.value.message
    assert "cgroup_enable=memory" in caught.value.hint


def test_a_refused_limit_says_what_was_written_where(first: dict[str, Path]) -> None:
    groups = find_cgroups(IDENTITY)

    with pytest.raises(HostError, match=r"refuses '100000' for .*core0.cpu.cfs_quota_us"):
        groups.set_cpu("never-made", 1.0)
    assert first["cpu"].is_dir()


def test_a_group_that_holds_processes_is_told_from_missing_rights(
    second: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(number: int) -> None:
        def write_text(self: Path, text: str) -> int:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(Path, "write_text", write_text)

    groups = find_cgroups(IDENTITY)
    refuse(errno.EBUSY)
    with pytest.raises(HostError) as busy:
        groups.create("worker1")
    refuse(errno.EACCES)
    with pytest.raises(HostError) as denied:
        groups.create("worker1")

    assert "--cgroupns=host" in busy.value.hint
    assert "root" in denied.value.hint
    assert "--cgroupns=host" not in denied.value.hint


def test_a_quota_is_never_below_what_the_kernel_takes() -> None:
    assert cgroups.quota_microseconds(0.0001) == 1000
    assert cgroups.quota_microseconds(1.5) == 150_000


def test_a_part_is_never_above_the_whole(
    first: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 1 refuses that at any moment, so the order matters."""
    groups = find_cgroups(IDENTITY)
    groups.create("n", 2)
    cpu = first["cpu"] / "boardcluster-01234567" / "n"
    write = Path.write_text

    def write_text(self: Path, text: str) -> int:
        done = write(self, text)
        quotas = [
            cgroups.amount_of(group_files.read_limit(folder / "cpu.cfs_quota_us"))
            for folder in (cpu, cpu / "core0", cpu / "core1")
        ]
        assert max(quotas[1:]) == float("inf") or max(quotas[1:]) <= quotas[0]
        return done

    monkeypatch.setattr(Path, "write_text", write_text)
    for cores in (1.0, 0.2, None, 0.1, 0.9):
        groups.set_cpu("n", cores, 2)
    assert (cpu / "core1" / "cpu.cfs_quota_us").read_text() == "45000"


def test_removing_takes_away_the_clusters_groups_only(first: dict[str, Path]) -> None:
    ours, other = find_cgroups(IDENTITY), find_cgroups("ffffffffffff")
    other.create("worker1")
    for controller in ("cpu", "memory"):  # real groups hold files that need no removal
        (first[controller] / "boardcluster-01234567" / "worker1").mkdir(parents=True)

    ours.remove()
    ours.remove()

    assert not (first["cpu"] / "boardcluster-01234567").exists()
    assert (first["cpu"] / "boardcluster-ffffffff" / "worker1").is_dir()


def test_a_group_that_is_not_there_is_removed_also_from_a_tree_that_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container: the kernel refuses before it looks whether there is such a folder."""

    def refuse(_: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "rmdir", refuse)
    monkeypatch.setattr(group_files, "_REMOVED_WITHIN_SECONDS", 0.0)
    group_files.remove_group(tmp_path / "boardcluster-01234567")


def test_a_group_that_is_still_in_use_is_named(
    first: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = find_cgroups(IDENTITY)
    groups.create("worker1")
    inside = first["cpu"] / "boardcluster-01234567" / "worker1" / "a-process"
    inside.write_text("")
    monkeypatch.setattr(group_files, "_REMOVED_WITHIN_SECONDS", 0.0)

    with pytest.raises(ClusterError, match="worker1 cannot be removed"):
        groups.remove()


def test_a_program_joins_its_groups_before_it_runs(tmp_path: Path) -> None:
    files = [tmp_path / "one.procs", tmp_path / "two.procs"]
    argv = [*joining([str(file) for file in files]), "printf", "%s|", "a b", "--", "$HOME"]

    assert run_program(argv).text == "a b|--|$HOME|"
    assert [file.read_text() for file in files] == ["0\n", "0\n"]
    assert joining([]) == ()


def test_a_program_that_cannot_join_does_not_run(tmp_path: Path) -> None:
    argv = [*joining([str(tmp_path / "no" / "such.procs")]), "touch", str(tmp_path / "ran")]

    assert run_program(argv, check=False).returncode == 125
    assert not (tmp_path / "ran").exists()


def test_empty_groups_of_killed_drivers_are_swept_and_no_others(first: dict[str, Path]) -> None:
    groups = find_cgroups(IDENTITY)
    left = first["cpu"] / "boardcluster-dead0000" / "speed"
    node = first["cpu"] / "boardcluster-live0000" / "worker1"
    used = first["memory"] / "boardcluster-live0000" / "speed"
    for folder in (left / "core0", node, used):
        folder.mkdir(parents=True)
    (used / "a-process").write_text("")

    groups.sweep("speed")

    assert not left.parent.exists()
    assert node.is_dir()
    assert used.is_dir()
