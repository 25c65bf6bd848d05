"""Memory that this machine has for us, with and without groups that limit it."""

from __future__ import annotations

from pathlib import Path

import pytest

from boardcluster.cluster.memory import available_memory_bytes
from boardcluster.errors import ClusterError

GIB = 1 << 30


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with 8 GiB available."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable:  {8 << 20} kB\n")
    return tmp_path


V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat")
V2 = ("memory.max", "memory.current", "memory.stat")


def limit(folder: Path, names: tuple[str, ...], *texts: object) -> None:
    """Write a group: its limit, its use, and what it says of its page cache."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(names, texts, strict=True):
        (folder / name).write_text(f"{text}\n")


def test_without_groups_it_is_what_the_kernel_says(root: Path) -> None:
    assert available_memory_bytes(root) == 8 * GIB
    (root / "proc/meminfo").write_text("MemTotal: 1 kB\n")
    with pytest.raises(ClusterError, match="no MemAvailable"):
        available_memory_bytes(root)


@pytest.mark.parametrize(
    ("most", "left"),
    [(4 * GIB, 3 * GIB), ("max", 8 * GIB), (GIB, 0), (64 * GIB, 8 * GIB)],
)
def test_a_container_of_version_2(most: object, left: int, root: Path) -> None:
    (root / "proc/self/cgroup").write_text("0::/\n")
    stat = f"anon 1\nfile 9\ninactive_file {GIB // 2}\nactive_file {GIB // 2}"
    limit(root / "sys/fs/cgroup", V2, most, 2 * GIB, stat)
    assert available_memory_bytes(root) == left


def test_the_narrowest_of_the_groups_above_counts(root: Path) -> None:
    (root / "proc/self/cgroup").write_text("0::/user.slice/session.scope\n")
    slice_ = root / "sys/fs/cgroup/user.slice"
    limit(slice_, V2, 2 * GIB, GIB, "inactive_file 0")
    limit(slice_ / "session.scope", V2, "max", GIB, "inactive_file 0")
    assert available_memory_bytes(root) == GIB


def test_a_container_of_version_1_that_has_the_hosts_path(root: Path) -> None:
    (root / "proc/self/cgroup").write_text("5:cpu,cpuacct:/docker/7\n4:memory:/docker/7\n0::/\n")
    stat = f"inactive_file 1\ntotal_inactive_file {GIB // 2}\ntotal_active_file 0"
    limit(root / "sys/fs/cgroup/memory", V1, 3 * GIB, GIB, stat)
    assert available_memory_bytes(root) == 5 * GIB // 2
