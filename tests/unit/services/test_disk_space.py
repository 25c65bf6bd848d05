"""A disk on which the daemons would give up is refused before they start."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from boardcluster.errors import CapacityError
from boardcluster.services.disk_space import require_disk_space, used_percent


def _disk(monkeypatch: pytest.MonkeyPatch, *, total_bytes: int, available_bytes: int) -> None:
    usage = SimpleNamespace(total=total_bytes, free=available_bytes)
    seen = SimpleNamespace(
        f_frsize=1000, f_blocks=total_bytes // 1000, f_bavail=available_bytes // 1000
    )
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr(os, "statvfs", lambda _: seen)


def test_room_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _disk(monkeypatch, total_bytes=10_000_000_000, available_bytes=1_000_000_000)
    require_disk_space(tmp_path)


def test_a_small_rest_is_refused_with_the_arithmetic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _disk(monkeypatch, total_bytes=2_000_000_000, available_bytes=464_000_000)
    with pytest.raises(CapacityError, match="starting a cluster needs") as caught:
        require_disk_space(tmp_path)
    assert "100" in caught.value.hint


def test_a_disk_that_yarn_gives_up_is_refused_with_the_arithmetic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _disk(monkeypatch, total_bytes=100_000_000_000, available_bytes=8_000_000_000)
    with pytest.raises(CapacityError, match=r"92\.0 % full") as caught:
        require_disk_space(tmp_path)
    assert "free 2" in caught.value.hint
    assert "--home" in caught.value.hint


def test_a_file_system_without_a_size_is_not_full() -> None:
    assert used_percent(total_bytes=0, available_bytes=0) == 0
