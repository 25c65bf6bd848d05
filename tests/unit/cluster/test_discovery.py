"""Looking at a machine: whether it can be a node, and where its data belongs."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.cluster.recordings import GIB, PI_3, PI_4, PI_5, RECORDINGS, VM
from tests.unit.cluster.test_facts import facts_of

from boardcluster.cluster.discovery import (
    discover,
    facts_table,
    refusals,
    skews,
    suggest_folder,
    vague_clocks,
)
from boardcluster.records import Medium, Mount, NodeFacts, Sudo
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.local import LocalRemote
from boardcluster.spec.cluster import DEFAULT_FOLDER


def test_a_machine_is_asked_once() -> None:
    remote = FakeRemote("pi0")
    remote.tell_node_agent("facts", PI_5.raw())
    facts = discover(remote, folder="/mnt/x/boardcluster")
    assert facts.board.startswith("Raspberry Pi 5")
    assert facts.folder == "/mnt/x/boardcluster"
    assert remote.requests == [{"do": "facts", "root": "/", "folder": "/mnt/x/boardcluster"}]


def test_the_usual_folder_is_asked_for() -> None:
    remote = FakeRemote("pi0")
    remote.tell_node_agent("facts", PI_5.raw())
    assert discover(remote).folder == DEFAULT_FOLDER


def test_the_offset_is_against_the_drivers_clock() -> None:
    remote = FakeRemote("pi0")
    ahead = time.time() + 100
    remote.tell_node_agent("facts", {**PI_5.raw(), "clock_seconds": [ahead, ahead]})
    facts = discover(remote)
    assert facts.clock_offset_seconds == pytest.approx(100, abs=0.5)


def test_this_machine_for_real() -> None:
    began = time.monotonic()
    facts = discover(LocalRemote("here"))
    assert time.monotonic() - began < 5
    assert facts.userland_bits in (32, 64)
    assert facts.memory_bytes > facts.available_memory_bytes > 0
    assert facts.cores >= 1
    assert facts.mount("/") is not None
    assert facts.folder_mount
    assert abs(facts.clock_offset_seconds) <= facts.clock_error_seconds + 0.01
    assert facts.login_user


# Where data belongs


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("pi5", DEFAULT_FOLDER),
        ("pi4", "/mnt/ssd/boardcluster"),
        ("pi3", DEFAULT_FOLDER),
        ("desktop", DEFAULT_FOLDER),
        ("vm", DEFAULT_FOLDER),
    ],
)
def test_the_fastest_suitable_medium(name: str, folder: str) -> None:
    assert suggest_folder(facts_of(RECORDINGS[name])) == folder


def _with_nvme(**mount: Any) -> NodeFacts:
    """The Pi 4 with an NVMe disk instead of its USB one."""
    facts = facts_of(PI_4)
    disk = Medium(name="nvme0n1", kind="nvme", model="x", size_bytes=500 * GIB)
    row = Mount(
        **{
            "folder": "/srv",
            "file_system": "ext4",
            "source": "/dev/nvme0n1p1",
            "medium": "nvme0n1",
            "size_bytes": 490 * GIB,
            "available_bytes": 400 * GIB,
            "read_only": False,
            "options": "rw,relatime",
            **mount,
        }
    )
    return replace(facts, media=(*facts.media, disk), mounts=(*facts.mounts, row))


def test_a_faster_one_wins() -> None:
    assert suggest_folder(_with_nvme()) == "/srv/boardcluster"


@pytest.mark.parametrize(
    "unsuitable",
    [
        {"read_only": True},
        {"options": "rw,noexec"},
        {"file_system": "vfat"},
        {"available_bytes": 3 * GIB},
        {"available_bytes": None},
        {"folder": "/media/pi/My Disk"},
        {"folder": "/boot/firmware"},
        {"folder": "/tmp"},
        {"folder": "/usr"},
        {"folder": "/srv/.hidden"},
        {"folder": "/root"},
        {"medium": ""},
    ],
)
def test_a_faster_one_that_does_not_suit(unsuitable: dict[str, Any]) -> None:
    assert suggest_folder(_with_nvme(**unsuitable)) == "/mnt/ssd/boardcluster"


def test_a_medium_that_holds_the_usual_folder_already() -> None:
    assert suggest_folder(_with_nvme(folder="/var")) == DEFAULT_FOLDER


# What cannot be a node


@pytest.mark.parametrize("name", ["pi5", "pi4", "desktop"])
def test_good_machines_are_not_refused(name: str) -> None:
    assert refusals(facts_of(RECORDINGS[name])) == []


def test_a_32_bit_system_on_a_64_bit_kernel_is_refused_with_the_reason() -> None:
    bits, sudo = refusals(facts_of(PI_3))
    assert "its programs are 32-bit; its kernel is 64-bit (aarch64)" in bits.reason
    assert "native libraries" in bits.reason
    assert "64-bit Raspberry Pi OS" in bits.fix
    assert "asks pi for a password" in sudo.reason


def test_an_old_32_bit_kernel() -> None:
    (bits,) = refusals(facts_of(PI_5, machine="armv7l", pointer_bits=32))
    assert "on armv7l" in bits.reason
    assert "its kernel is" not in bits.reason


def test_another_processor() -> None:
    (one,) = refusals(facts_of(PI_5, machine="riscv64"))
    assert "riscv64" in one.reason


def test_no_way_to_become_root() -> None:
    (missing,) = refusals(facts_of(VM))
    assert missing.reason == "debian is not root, and sudo is not installed"
    (asks,) = refusals(replace(facts_of(PI_5), sudo=Sudo.ASKS))
    assert "echo 'pi ALL=(ALL) NOPASSWD: ALL'" in asks.fix
    assert asks.fix.endswith("/etc/sudoers.d/010_boardcluster")  # sudo reads no name with a dot
    (silent,) = refusals(replace(facts_of(PI_5), sudo=Sudo.SILENT))
    assert "cannot look up its own name" in silent.reason
    assert refusals(replace(facts_of(PI_5), sudo=Sudo.ROOT)) == []


def test_the_account_of_the_services_is_nobody_to_log_in_as() -> None:
    (one,) = refusals(replace(facts_of(PI_5), login_user="boardcluster"))
    assert "it ends all processes of that account" in one.reason
    assert "`host` of cluster.toml" in one.fix


def test_too_little_memory() -> None:
    (one,) = refusals(replace(facts_of(PI_5), memory_bytes=430 * 2**20))
    assert one.reason.startswith("430 MiB of memory")
    assert refusals(replace(facts_of(PI_5), memory_bytes=906 * 2**20)) == []


def _at(offset: float, error: float = 0.1) -> NodeFacts:
    return replace(facts_of(PI_5), clock_offset_seconds=offset, clock_error_seconds=error)


def test_clocks_that_are_apart() -> None:
    assert skews({"a": _at(0.0), "b": _at(0.9), "c": _at(1.0)}) == []
    assert skews({"a": _at(2.0), "b": _at(-1.0), "c": _at(2.1)}) == [
        "the clock of a is 2 s ahead of this machine's"
    ]


def test_small_steps_between_clocks_add_up() -> None:
    assert skews({"a": _at(0.0), "b": _at(0.9), "c": _at(1.7)}) == [
        "the clock of c is 1.7 s ahead of this machine's"
    ]
    assert skews({"a": _at(-0.7), "b": _at(0.7)}) == ["the clock of b is 1.4 s ahead of a's"]
    assert skews({"a": _at(-0.5), "b": _at(0.5)}) == []
    assert skews({}) == []


def test_boards_that_are_all_wrong_alike_are_not_right() -> None:
    assert skews({"a": _at(-500.0), "b": _at(-500.1)}) == [
        "the clock of this machine is 8 min 20 s ahead of a's"
    ]


def test_a_doubtful_difference_is_not_blamed_and_a_doubtful_clock_is_refused() -> None:
    assert skews({"a": _at(0.0, 0.4), "b": _at(1.3, 0.4)}) == []
    assert len(skews({"a": _at(0.0, 0.1), "b": _at(1.3, 0.1)})) == 1
    doubtful = {"a": _at(0.0), "b": _at(11.0, 10.0)}
    assert skews(doubtful) == []
    assert list(vague_clocks(doubtful)) == ["b"]
    assert vague_clocks(doubtful)["b"].startswith("the clock of b is known only to within 10 s")


# The table


def test_the_table_has_a_row_for_each_node() -> None:
    columns, rows = facts_table({name: facts_of(row) for name, row in RECORDINGS.items()})
    assert [row[0] for row in rows] == list(RECORDINGS)
    assert {len(row) for row in rows} == {len(columns)}
    pi5, pi4, pi3, desktop, vm = rows
    assert "4 x Cortex-A76, 2.4 GHz" in pi5
    assert "NVMe SSD, PCIe 3 x1, 483 GB free" in pi5
    assert "eth0 1 Gbit/s" in pi5
    assert any("16 KiB pages" in cell for cell in pi5)
    assert "USB SSD at 5 Gbit/s, 91.3 GB free" in pi4
    assert "eth0 100 Mbit/s, wlan0 wireless" in pi3
    assert any("32 bit" in cell for cell in pi3)
    assert "21.0.7, 1.8.0_452" in desktop
    assert "none" in vm
