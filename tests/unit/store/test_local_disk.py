"""A state folder on a network file system is refused before anything is written into it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import HostError
from boardcluster.store import Store, local_disk


def mount(kind: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel say that a folder is on a file system of this kind."""
    device = place.stat().st_dev
    there = f"{os.major(device)}:{os.minor(device)}"
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "21 1 0:1 / /proc rw - proc proc rw\n"
        f"30 1 {there} / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        f"31 30 {there} / {place} rw shared:2 master:1 - {kind} nas:/home rw\n"
    )
    monkeypatch.setattr(local_disk, "_MOUNTS", mounts)


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "fuse.sshfs"])
def test_a_store_on_a_network_file_system_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount(kind, tmp_path, tmp_path, monkeypatch)
    home = tmp_path / "not" / "yet"

    with pytest.raises(HostError) as caught:
        Store.open(home)
    assert f"network file system ({kind})" in caught.value.message
    assert "--home" in caught.value.hint
    with pytest.raises(HostError), driver_lock(home, doing="up"):
        pytest.fail("the lock was taken")

    assert not home.parent.exists()


@pytest.mark.parametrize("kind", ["ext4", "tmpfs", "fuse.ntfs-3g", "overlay"])
def test_disks_of_this_machine_will_do(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount(kind, tmp_path, tmp_path, monkeypatch)
    with Store.open(tmp_path / "home") as store:
        assert store.results() == ()


def test_a_kernel_that_does_not_say_refuses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_disk, "_MOUNTS", tmp_path / "missing")
    local_disk.require_local_disk(tmp_path)
