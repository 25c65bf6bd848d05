"""A disk on which the daemons would give up is refused before they start."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from boardcluster.errors import CapacityError
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed
from boardcluster.services.disk_space import (
    full_disk,
    fullest_disk,
    require_disk_space,
    sick_disks,
    used_percent,
)
from boardcluster.services.layout import Layout

DF = ("df", "--block-size=1", "--output=size,avail,source")


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


def test_a_dilated_node_has_longer_to_say_how_full_it_is(layout: Layout) -> None:
    patience: list[float] = []

    class Master(FakeRemote):
        def run(self, argv: Sequence[str], **named: Any) -> Completed:
            patience.append(named["timeout_seconds"])
            return super().run(argv, **named)

    master = layout.spec.master
    remote = Master(master.name)
    remote.tell(*DF, layout.data(master), stdout="size avail source\n1000 50 /dev/sda1\n")

    assert full_disk(replace(layout, dilation=3.0), remote, master) == "its disk is 95.0 % full"
    assert patience == [60.0]


def test_the_fullest_disk_is_that_of_the_workers_which_can_be_asked(layout: Layout) -> None:
    remotes = {node.name: FakeRemote(node.name) for node in layout.spec.nodes}
    first, second, *others = layout.spec.workers
    remotes["master"].tell(*DF, layout.data(layout.spec.master), stdout="size\n1000 1 /dev/a\n")
    remotes[first.name].tell(*DF, layout.data(first), stdout="size\n1000 700 /dev/a\n")
    remotes[second.name].tell(*DF, layout.data(second), stdout="size\n1000 600 /dev/a\n")
    for node in others:
        remotes[node.name].tell(*DF, layout.data(node), stdout="nonsense")

    assert fullest_disk(layout, remotes) == f"{second.name}: its disk is 40.0 % full now"
    mute = {node.name: FakeRemote(node.name) for node in layout.spec.nodes}
    assert fullest_disk(layout, mute) == ""


def test_the_kernels_words_on_another_disk_are_not_taken_for_those_on_this_one(
    layout: Layout,
) -> None:
    class ReadOnly(FakeRemote):
        def run(self, argv: Sequence[str], **named: Any) -> Completed:
            done = super().run(argv, **named)
            said = b"touch: cannot touch 'x': Read-only file system" if argv[0] == "touch" else b""
            return replace(done, stderr=said)

    remotes = {node.name: ReadOnly(node.name) for node in layout.spec.nodes}
    for node in layout.spec.nodes:
        remote, folder = remotes[node.name], layout.data(node)
        remote.tell(*DF, folder, stdout="size avail source\n1000 900 /dev/loop1\n")
        remote.tell("touch", f"{folder}/.written-by-boardcluster", returncode=1)
        remote.tell(
            *("dmesg", "--notime"),
            stdout="EXT4-fs error (device loop1): ours\nEXT4-fs error (device loop12): not ours\n",
        )

    found = sick_disks(layout, remotes, remotes)

    why = "its disk cannot be written to: Read-only file system"
    assert set(found.values()) == {f"{why} (kernel: EXT4-fs error (device loop1): ours)"}
