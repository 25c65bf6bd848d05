"""Cores that this machine has for us, with and without CPU quotas."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from boardcluster.cluster.cores import available_cores


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of which we may use eight cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/user.slice/a.service\n")
    return tmp_path


def limit(folder: Path, **texts: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("_", ".", 1)).write_text(f"{text}\n")


def test_without_a_quota_those_that_we_are_bound_to_count(root: Path) -> None:
    assert available_cores(root) == 8
    (root / "proc/self/cgroup").unlink()
    assert available_cores(root) == 8


@pytest.mark.parametrize(
    ("most", "cores"),
    [
        ("200000 100000", 2),
        ("150000 100000", 1),
        ("50000 100000", 1),
        ("max 100000", 8),
        ("6400000 100000", 8),
        ("rubbish", 8),
    ],
)
def test_the_quota_of_a_container_counts(most: str, cores: int, root: Path) -> None:
    limit(root / "sys/fs/cgroup", cpu_max=most)
    assert available_cores(root) == cores


def test_the_narrowest_of_the_groups_above_counts(root: Path) -> None:
    limit(root / "sys/fs/cgroup/user.slice", cpu_max="300000 100000")
    limit(root / "sys/fs/cgroup/user.slice/a.service", cpu_max="400000 100000")
    assert available_cores(root) == 3


@pytest.mark.parametrize(("quota", "cores"), [(250_000, 2), (-1, 8), (0, 8)])
def test_a_container_of_version_1(quota: int, cores: int, root: Path) -> None:
    (root / "proc/self/cgroup").write_text("3:cpu,cpuacct:/docker/7\n2:memory:/docker/7\n0::/\n")
    limit(root / "sys/fs/cgroup/cpu", cpu_cfs_quota_us=quota, cpu_cfs_period_us=100_000)
    assert available_cores(root) == cores
