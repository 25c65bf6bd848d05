"""Understanding what recorded machines say of themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.cluster.recordings import DESKTOP, PI_3, PI_4, PI_5, RECORDINGS, VM, Recording

from boardcluster.cluster.facts import package_manager, parse_facts
from boardcluster.records import JavaHome, Link, Medium, NodeFacts, Sudo, Swap
from boardcluster.remote.nodefacts import LOG_LINES_MOST, complaints
from boardcluster.store import from_json, to_json

FOLDER = "/var/lib/boardcluster"
ASKED = 1_700_000_000.0


def facts_of(recording: Recording, **changed: Any) -> NodeFacts:
    raw = {**recording.raw(), **changed}
    return parse_facts(raw, folder=FOLDER, asked_seconds=ASKED, answered_seconds=ASKED + 0.7)


def with_files(recording: Recording, **texts: str) -> NodeFacts:
    """The machine with other content in files, named by the last words of their paths."""
    raw = recording.raw()
    for end, text in texts.items():
        (path,) = [path for path in raw["files"] if path.endswith(end)]
        raw["files"][path] = text
    return parse_facts(raw, folder=FOLDER, asked_seconds=ASKED, answered_seconds=ASKED + 0.7)


@pytest.mark.parametrize("name", RECORDINGS)
def test_facts_survive_the_way_through_json(name: str) -> None:
    facts = facts_of(RECORDINGS[name])
    assert from_json(NodeFacts, json.loads(json.dumps(to_json(facts)))) == facts


@pytest.mark.parametrize(
    ("name", "board", "soc", "cpu", "firmware"),
    [
        (
            "pi5",
            "Raspberry Pi 5 Model B Rev 1.0",
            "brcm,bcm2712",
            "Cortex-A76",
            "bootloader 2024/09/23 14:02:56 (26826259)",
        ),
        (
            "pi4",
            "Raspberry Pi 4 Model B Rev 1.4",
            "brcm,bcm2711",
            "Cortex-A72",
            "bootloader 91a3d5d7dc6ba0b1e9f6d13ee0aa6d7d9d3a8d6b",
        ),
        ("pi3", "Raspberry Pi 3 Model B Rev 1.2", "brcm,bcm2837", "Cortex-A53", ""),
        (
            "desktop",
            "Dell Inc. OptiPlex 7010",
            "",
            "Intel(R) Core(TM) i5-10505 CPU @ 3.20GHz",
            "Dell Inc. 1.14.0 03/08/2024",
        ),
        (
            "vm",
            "QEMU Standard PC (Q35 + ICH9, 2009)",
            "",
            "QEMU Virtual CPU version 2.5+",
            "SeaBIOS 1.16.3-debian-1.16.3-2 04/01/2014",
        ),
    ],
)
def test_what_it_is(name: str, board: str, soc: str, cpu: str, firmware: str) -> None:
    facts = facts_of(RECORDINGS[name])
    assert (facts.board, facts.soc, facts.cpu, facts.firmware) == (board, soc, cpu, firmware)


def test_the_processor() -> None:
    facts = facts_of(PI_5)
    assert facts.cores == 4
    assert (facts.clock_least_hertz, facts.clock_most_hertz) == (1_500_000_000, 2_400_000_000)
    assert facts.governor == "ondemand"
    assert (facts.architecture, facts.userland_bits) == ("aarch64", 64)
    assert facts.page_size_bytes == 16384
    assert facts.memory_bytes == 8_257_232 * 1024
    assert facts.available_memory_bytes == 7_700_000 * 1024


def test_processors_of_two_kinds_and_switched_off_cores() -> None:
    raw = PI_5.raw()
    raw["programs"]["lscpu"]["out"] = (
        "  Model name:            Cortex-A55\n  Model name:            Cortex-A76\n"
    )
    raw["files"]["/sys/devices/system/cpu/online"] = "0-1,4,6-7\n"
    raw["files"]["/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"] = "performance\n"
    raw["files"]["/sys/devices/system/cpu/cpu3/cpufreq/cpuinfo_max_freq"] = "2600000\n"
    facts = facts_of(PI_5, **raw)
    assert facts.cpu == "Cortex-A55 + Cortex-A76"
    assert facts.cores == 5
    assert facts.governor == "ondemand,performance"
    assert facts.clock_most_hertz == 2_600_000_000


def test_what_a_machine_does_not_say_is_left_open() -> None:
    facts = facts_of(VM)
    assert (facts.clock_least_hertz, facts.clock_most_hertz, facts.governor) == (None, None, "")
    assert (facts.throttled, facts.temperature_celsius) == (None, None)
    assert facts.links[0].speed_bits_per_second is None
    assert facts.links[0].duplex == ""
    assert facts.own_addresses == ()
    assert facts.javas == ()
    assert facts_of(VM, kernel_clock=None).clock_synchronised is None


def test_a_maker_that_left_its_fields_empty() -> None:
    raw = DESKTOP.raw()
    raw["files"]["/sys/class/dmi/id/sys_vendor"] = "To Be Filled By O.E.M.\n"
    raw["files"]["/sys/class/dmi/id/product_name"] = "System Product Name\n"
    assert facts_of(DESKTOP, **raw).board == ""


def test_a_boot_loader_of_another_board() -> None:
    raw = VM.raw()
    raw["files"]["/proc/device-tree/chosen/u-boot,version"] = "U-Boot 2024.01-armbian\0"
    assert facts_of(VM, **raw).firmware == "U-Boot 2024.01-armbian"


def test_the_system() -> None:
    facts = facts_of(PI_5)
    assert facts.os == "Debian GNU/Linux 12 (bookworm), Raspberry Pi reference 2024-07-04"
    assert facts.kernel == "6.6.51+rpt-rpi-2712"
    assert facts.service_manager == "systemd"
    assert facts.uptime_seconds == 351735.47
    assert facts_of(PI_5, systemd=False).service_manager == "none"


def test_host_keys_as_ssh_keygen_shows_them() -> None:
    assert facts_of(PI_5).host_keys == ("SHA256:9I4xALSB4FcTu2ZxjhCVw/NT37xuFo0OhxBI4OTD04c",)


@pytest.mark.parametrize(
    ("is_root", "user", "answer", "sudo"),
    [
        (True, "root", None, Sudo.ROOT),
        (True, "pi", None, Sudo.MISSING),
        (True, "pi", {"status": 0, "out": "", "err": ""}, Sudo.WORKS),
        (False, "pi", {"status": 0, "out": "", "err": ""}, Sudo.WORKS),
        (False, "pi", {"status": 1, "out": "", "err": "sudo: a password is required"}, Sudo.ASKS),
        (False, "pi", None, Sudo.MISSING),
    ],
)
def test_sudo(is_root: bool, user: str, answer: dict[str, Any] | None, sudo: Sudo) -> None:
    raw = PI_5.raw()
    raw["programs"]["sudo"] = answer
    assert facts_of(PI_5, **{**raw, "is_root": is_root, "user": user}).sudo is sudo


@pytest.mark.parametrize(("is_root", "sudo"), [(True, Sudo.WORKS), (False, Sudo.SILENT)])
def test_a_sudo_that_hangs(is_root: bool, sudo: Sudo) -> None:
    raw = PI_5.raw()
    raw["programs"]["sudo"] = None
    assert facts_of(PI_5, **{**raw, "is_root": is_root, "sudo_hangs": True}).sudo is sudo


# Java


def test_javas() -> None:
    assert facts_of(PI_5).javas == (
        JavaHome(
            home="/usr/lib/jvm/java-17-openjdk-arm64",
            version="17.0.15",
            feature=17,
            vendor="Debian",
            architecture="aarch64",
        ),
    )
    assert [java.feature for java in facts_of(DESKTOP).javas] == [21, 8]


@pytest.mark.parametrize(
    "head", ["", "2321", "7f454c46", "7f454c460201010000000000000000000300ffff"]
)
def test_a_java_that_is_no_known_program(head: str) -> None:
    (java,) = facts_of(PI_5, javas={"/j": {"head": head, "release": ""}}).javas
    assert java == JavaHome(home="/j", version="", feature=None, vendor="", architecture="")


# Network and time


def test_links() -> None:
    assert facts_of(PI_3).links == (
        Link(
            name="eth0",
            addresses=("192.168.1.22/24",),
            speed_bits_per_second=100_000_000,
            duplex="full",
            wireless=False,
            up=True,
        ),
        Link(
            name="wlan0",
            addresses=("192.168.1.122/24",),
            speed_bits_per_second=None,
            duplex="",
            wireless=True,
            up=True,
        ),
    )


def test_loopback_and_bridges_of_containers_are_no_links() -> None:
    assert [link.name for link in facts_of(DESKTOP).links] == ["enp0s31f6"]


def test_what_the_own_name_means() -> None:
    assert facts_of(PI_5).own_addresses == ("127.0.1.1",)
    assert facts_of(DESKTOP).own_addresses == ("127.0.1.1", "192.168.1.5")


def test_the_clock_is_kept_while_its_error_is_bounded() -> None:
    assert facts_of(PI_5).clock_synchronised is True
    assert facts_of(PI_3).clock_synchronised is False


@pytest.mark.parametrize("ahead", [-3600.0, 0.0, 1.5])
def test_the_offset_of_a_clock(ahead: float) -> None:
    facts = facts_of(PI_5, clock_seconds=[ASKED + 0.3 + ahead, ASKED + 0.5 + ahead])
    assert facts.clock_offset_seconds == pytest.approx(ahead + 0.05)
    assert facts.clock_error_seconds == pytest.approx(0.25)
    assert abs(facts.clock_offset_seconds - ahead) <= facts.clock_error_seconds


def test_work_on_the_node_does_not_blur_the_offset() -> None:
    facts = facts_of(PI_5, clock_seconds=[ASKED + 0.1, ASKED + 0.6])
    assert facts.clock_error_seconds == pytest.approx(0.1)


# Storage


def test_an_nvme_disk_with_its_link_as_it_runs() -> None:
    assert facts_of(PI_5).media == (
        Medium(
            name="nvme0n1",
            kind="nvme",
            model="Samsung SSD 980 500GB",
            size_bytes=1_000_215_216 * 512,
            pcie_generation=3,
            pcie_lanes=1,
            trim=True,
        ),
    )


@pytest.mark.parametrize(
    ("speed", "generation"), [("2.5 GT/s PCIe", 1), ("5.0 GT/s PCIe", 2), ("Unknown speed", None)]
)
def test_generations_of_pcie(speed: str, generation: int | None) -> None:
    facts = with_files(PI_5, current_link_speed=speed)
    assert facts.media[0].pcie_generation == generation


def test_a_card_and_a_usb_disk() -> None:
    card, disk = facts_of(PI_4).media
    assert (card.name, card.kind, card.model, card.trim) == ("mmcblk0", "sd", "SC64G", True)
    assert (disk.name, disk.kind, disk.model) == ("sda", "usb-ssd", "Portable SSD T5")
    assert (disk.usb_bits_per_second, disk.trim) == (5 * 10**9, False)


def test_kinds_of_media() -> None:
    assert [medium.kind for medium in facts_of(DESKTOP).media] == ["nvme", "hdd"]
    assert [medium.kind for medium in facts_of(VM).media] == ["virtual"]
    raw = PI_4.raw()
    raw["files"]["/sys/class/block/mmcblk0/device/type"] = "MMC\n"
    raw["files"]["/sys/class/block/sda/queue/rotational"] = "1\n"
    assert [medium.kind for medium in facts_of(PI_4, **raw).media] == ["emmc", "usb"]


def test_a_mapped_volume_lies_on_its_disk() -> None:
    facts = facts_of(DESKTOP)
    root = facts.mount("/var/lib/boardcluster")
    assert root is not None
    assert (root.source, root.medium) == ("/dev/mapper/vg-root", "nvme0n1")


def test_btrfs_hides_its_device_but_not_from_us() -> None:
    data = facts_of(DESKTOP).mount("/data/x")
    assert data is not None
    assert (data.file_system, data.medium) == ("btrfs", "sda")


def test_which_mounts_count() -> None:
    assert [mount.folder for mount in facts_of(DESKTOP).mounts] == ["/", "/data", "/net", "/tmp"]
    assert [mount.folder for mount in facts_of(PI_4).mounts] == ["/", "/mnt/big disk", "/mnt/ssd"]


def test_a_network_file_system_is_not_asked_for_space() -> None:
    net = facts_of(DESKTOP).mount("/net/x")
    assert net is not None
    assert (net.size_bytes, net.available_bytes, net.medium) == (None, None, "")


def test_a_root_that_became_read_only() -> None:
    root = facts_of(PI_3).mount("/")
    assert root is not None
    assert root.read_only
    writable = facts_of(PI_5).mount("/")
    assert writable is not None
    assert not writable.read_only


def test_names_that_begin_alike_are_different_folders() -> None:
    found = facts_of(DESKTOP).mount("/database")
    assert found is not None
    assert found.folder == "/"


@pytest.mark.parametrize(
    ("real", "mount"), [("/data", "/data"), ("/data/a/b", "/data"), ("/dat", "/"), ("/", "/")]
)
def test_the_mount_of_the_folder_follows_links(real: str, mount: str) -> None:
    assert facts_of(DESKTOP, folder=real).folder_mount == mount


def test_swap() -> None:
    zram, card = facts_of(PI_4).swaps
    assert zram == Swap(place="/dev/zram0", size_bytes=1_942_696 * 1024, used_bytes=0, kind="zram")
    assert (card.kind, card.used_bytes) == ("sd", 51_200 * 1024)
    assert [swap.kind for swap in facts_of(PI_5).swaps] == ["nvme"]
    assert [swap.kind for swap in facts_of(DESKTOP).swaps] == ["nvme"]


# Health


def test_the_memory_controller() -> None:
    assert not facts_of(PI_5).memory_controller
    assert facts_of(PI_4).memory_controller
    assert not facts_of(PI_3).memory_controller  # cgroup 1, where it is listed but off
    raw = PI_3.raw()
    raw["files"]["/proc/cgroups"] = raw["files"]["/proc/cgroups"].replace("82\t0", "82\t1")
    assert facts_of(PI_3, **raw).memory_controller


def test_throttling_and_temperature() -> None:
    assert (facts_of(PI_5).throttled, facts_of(PI_4).throttled) == (0, 0x50005)
    assert facts_of(DESKTOP).temperature_celsius == 46.0


def test_the_kernels_complaints() -> None:
    faults = facts_of(PI_4).kernel_faults
    assert faults is not None
    assert "uas_eh_abort_handler" in faults[0]
    assert facts_of(PI_5).kernel_faults == ()
    assert facts_of(PI_3).kernel_faults is None  # nobody may read it


def test_many_complaints_of_one_kind_hide_no_other() -> None:
    card = [f"blk_update_request: I/O error, dev mmcblk0, sector {n}" for n in range(100)]
    image = ["blk_update_request: I/O error, dev loop0, sector 1"] * 100
    found = complaints("\n".join(["Out of memory: Killed process 7", *card, *image]))
    assert found == ["Out of memory: Killed process 7", *card[-LOG_LINES_MOST:]]


@pytest.mark.parametrize(
    "line",
    [
        "blk_update_request: I/O error, dev loop0, sector 1",
        "EXT4-fs error (device loop0): __ext4_remount:6785: Abort forced by user",
        "Buffer I/O error on dev loop12p1, logical block 0, lost async page write",
    ],
)
def test_errors_of_a_mounted_file_are_not_the_mediums(line: str) -> None:
    assert complaints(line) == []
    of_card = line.replace("loop12p1", "mmcblk0p2").replace("loop0", "mmcblk0")
    assert complaints(of_card) == [of_card]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("/usr/bin/apt-get\0upgrade\0", "apt-get"),
        ("/usr/bin/python3\0/usr/bin/unattended-upgrade\0", "unattended-upgrade"),
        ("/usr/bin/dpkg\0--configure\0-a\0", "dpkg"),
        ("/bin/sh\0/usr/lib/apt/apt.systemd.daily\0update\0", "apt.systemd.daily"),
        ("/usr/bin/python3\0/usr/share/unattended-upgrades/unattended-upgrade-shutdown\0", ""),
        ("/usr/sbin/adaptd\0", ""),
        ("", ""),
    ],
)
def test_package_managers(line: str, name: str) -> None:
    assert package_manager(line.split("\0")) == name
    found = facts_of(PI_5, package_managers=[line]).package_managers
    assert found == ((name,) if name else ())


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_machine_that_says_nothing_at_all_is_still_described(name: str) -> None:
    raw = RECORDINGS[name].raw()
    nothing: dict[str, Any] = {"files": {}, "links": {}, "usb": {}, "javas": {}, "spaces": {}}
    facts = facts_of(RECORDINGS[name], **nothing, programs=dict.fromkeys(raw["programs"]))
    assert facts.media == ()
    assert facts.mounts == ()
    assert (facts.board, facts.cpu, facts.firmware, facts.os) == ("", "", "", "")
    assert facts.cores == raw["cpus"]
