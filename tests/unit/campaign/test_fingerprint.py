"""What a result was measured on."""

import platform
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cluster.recordings import DESKTOP, PI_3, PI_4, PI_5, VM, Recording

from boardcluster import __version__
from boardcluster.analysis.fingerprints import same_setup
from boardcluster.campaign.fingerprint import cpu_model, hardware_line, take_fingerprint
from boardcluster.campaign.kernel import clean_command_line, settings_on
from boardcluster.cluster.facts import parse_facts
from boardcluster.records import (
    DiskLimits,
    Fingerprint,
    NodeFacts,
    NodeLimits,
    NodeTwin,
    Security,
)
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.local import LocalRemote
from boardcluster.services.operation import LiveCluster

CPUINFO = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: A CPU @ 3 GHz\nflags\t: x\n"
PI_CPUINFO = "processor\t: 0\nBogoMIPS\t: 108.00\n\nModel\t\t: Raspberry Pi 4 Model B Rev 1.5\n"


def pretend(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Give these paths this content; everything else is absent."""
    monkeypatch.setattr(Path, "exists", lambda self: str(self) in files)
    monkeypatch.setattr(Path, "read_bytes", lambda self: files[str(self)])
    monkeypatch.setattr(Path, "read_text", lambda self: files[str(self)].decode())


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (
            {"/proc/device-tree/model": b"Raspberry Pi 5 Model B Rev 1.0\0", "/proc/cpuinfo": b""},
            "Raspberry Pi 5 Model B Rev 1.0",
        ),
        ({"/proc/cpuinfo": CPUINFO.encode()}, "A CPU @ 3 GHz"),
        ({"/proc/cpuinfo": PI_CPUINFO.encode()}, "Raspberry Pi 4 Model B Rev 1.5"),
        ({"/proc/cpuinfo": b"processor\t: 0\n"}, platform.machine()),
    ],
)
def test_name_of_the_cpu(
    files: dict[str, bytes], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        pretend(files, patched)
        seen = cpu_model()

    assert seen == name


def test_describes_machine_engines_and_configuration(live: LiveCluster) -> None:
    fingerprint = take_fingerprint(live)

    assert fingerprint.kernel == f"{platform.release()} {platform.machine()}"
    assert fingerprint.os
    assert fingerprint.memory_bytes > 100_000_000
    assert fingerprint.boardcluster == __version__
    assert fingerprint.profile == "default"
    assert fingerprint.link_bits_per_second == 10**9
    assert (fingerprint.emulated, fingerprint.security) == (True, Security.EMULATED)
    assert fingerprint.hardware == ()
    assert fingerprint == take_fingerprint(live)  # or nothing could ever be compared


def test_another_configuration_is_another_fingerprint(live: LiveCluster) -> None:
    other = replace(live, state=replace(live.state, config_sha256="ef" * 32))

    assert take_fingerprint(other) != take_fingerprint(live)


def test_the_smallest_worker_is_described(live: LiveCluster) -> None:
    nodes = list(live.spec.nodes)
    nodes[0] = replace(nodes[0], memory_bytes=1 << 30)  # the master does not count
    nodes[3] = replace(nodes[3], memory_bytes=3 << 29, cores=2)
    layout = replace(live.layout, spec=replace(live.spec, nodes=tuple(nodes)))

    fingerprint = take_fingerprint(replace(live, layout=layout))

    assert (fingerprint.node_memory_bytes, fingerprint.node_cores) == (3 << 29, 2)


def test_emulated_boards_and_their_limits_are_described(live: LiveCluster) -> None:
    assert (take_fingerprint(live).twin, take_fingerprint(live).limits) == ("", "")
    master, *workers = live.spec.nodes
    board = NodeTwin(board="rpi-5b-8gb-2400mhz")
    fast = replace(board, medium="an-nvme", pcie="3.0", supply="rpi-27w", cooling="fan")
    own = NodeTwin(board="boards/my-board.toml", medium="parts/card.toml")
    twins = [fast, *[own] * (len(workers) - 1)]
    nodes = [
        replace(master, twin=board),
        *(replace(node, twin=twin) for node, twin in zip(workers, twins, strict=True)),
    ]
    disk = DiskLimits(
        size_bytes=8 << 30,
        read_bytes_per_second=100_000_000,
        write_bytes_per_second=80_000_000,
        read_iops=900,
        write_iops=700,
        unwritten_bytes=(8 << 30) // 10,
    )
    limits = tuple(
        NodeLimits(
            node=name,
            cpu_cores=0.35123,
            memory_bytes=8 << 30,
            disk=its_disk,
            link_bits_per_second=85_000_000,
            board_cores=4,
            board=f"a core of {name}",
        )
        for name, its_disk in (("master", None), ("worker1", disk))
    )
    layout = replace(live.layout, spec=replace(live.spec, nodes=tuple(nodes)))
    found = take_fingerprint(
        replace(live, layout=layout, state=replace(live.state, limits=limits, dilation=4.0))
    )

    assert found.twin == (
        "1 x rpi-5b-8gb-2400mhz"
        " + 1 x rpi-5b-8gb-2400mhz with an-nvme, PCIe 3.0, rpi-27w, fan"
        f" + {len(workers) - 1} x my-board with card"
    )
    assert found.limits == (
        "master: 0.3512 cores of this machine as 4 of the board, 8 GiB memory, link 85 Mbit/s"
        "; of a board with a core of master\n"
        "worker1: 0.3512 cores of this machine as 4 of the board, 8 GiB memory, disk"
        " 8 GiB reading 100 MB/s and 900 requests/s, writing 80 MB/s"
        " and 700 requests/s, at most 859 MB unwritten, link 85 Mbit/s"
        "; of a board with a core of worker1"
    )


def test_the_content_of_files_that_boards_follow_is_part_of_the_setup(
    live: LiveCluster, tmp_path: Path
) -> None:
    def seen(**parts: Any) -> Fingerprint:
        twin = replace(NodeTwin(board="rpi-3b"), **parts)
        nodes = tuple(replace(node, twin=twin) for node in live.spec.nodes)
        given = NodeLimits(
            node="worker1",
            cpu_cores=0.5,
            memory_bytes=1 << 30,
            disk=None,
            link_bits_per_second=10**8,
            board_cores=4,
            board="4 cores, dilation 2",
        )
        layout = replace(live.layout, spec=replace(live.spec, nodes=nodes))
        state = replace(live.state, limits=(given,))
        return take_fingerprint(replace(live, layout=layout, state=state))

    own = tmp_path / "fan.toml"
    own.write_text("a = 1\n")
    first = seen(cooling=str(own))
    assert re.search(r"4 cores, dilation 2, of own files fan\.toml [0-9a-f]{12}$", first.limits)
    own.write_text("a = 2\n")
    assert same_setup(first) != same_setup(seen(cooling=str(own)))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "fan.toml").write_text("a = 1\n")
    assert first == seen(cooling=str(tmp_path / "b" / "fan.toml"))
    assert seen(cooling="fan").limits.endswith("; of a board with 4 cores, dilation 2")


def facts_of(recording: Recording, folder: str = "/var/lib/boardcluster") -> NodeFacts:
    raw = {**recording.raw(), "folder": folder}
    return parse_facts(raw, folder=folder, asked_seconds=0.0, answered_seconds=0.5)


@pytest.mark.parametrize(
    ("recording", "folder", "line"),
    [
        (
            PI_5,
            "/var/lib/boardcluster",
            (
                "pi: Raspberry Pi 5 Model B Rev 1.0, 4 x Cortex-A76 at 2.40 GHz, 7.87 GiB, "
                "nvme Samsung SSD 980 500GB, PCIe 3 x1, 1 Gbit/s, 16 KiB pages, Debian GNU/Linux "
                "12 (bookworm), Raspberry Pi reference 2024-07-04, kernel 6.6.51+rpt-rpi-2712, "
                "bootloader 2024/09/23 14:02:56 (26826259), governor ondemand"
            ),
        ),
        (
            PI_4,  # two media: the one that the folder is on
            "/mnt/ssd/boardcluster",
            (
                "pi: Raspberry Pi 4 Model B Rev 1.4, 4 x Cortex-A72 at 1.80 GHz, 3.71 GiB, "
                "usb-ssd Portable SSD T5, 1 Gbit/s, 4 KiB pages, Debian GNU/Linux 13 (trixie), "
                "kernel 6.12.47+rpt-rpi-v8, bootloader 91a3d5d7dc6ba0b1e9f6d13ee0aa6d7d9d3a8d6b, "
                "governor performance"
            ),
        ),
        (
            PI_3,
            "/var/lib/boardcluster",
            (
                "pi: Raspberry Pi 3 Model B Rev 1.2, 4 x Cortex-A53 at 1.20 GHz, 909 MiB, sd "
                "00000, 100 Mbit/s, 4 KiB pages, Raspbian GNU/Linux 12 (bookworm), kernel "
                "6.6.51+rpt-rpi-v8, governor ondemand"
            ),
        ),
        (
            DESKTOP,  # below LVM
            "/var/lib/boardcluster",
            (
                "pi: Dell Inc. OptiPlex 7010, 6 x Intel(R) Core(TM) i5-10505 CPU @ 3.20GHz at "
                "4.60 GHz, 31.1 GiB, nvme WD_BLACK SN770 1TB, PCIe 4 x4, 2.5 Gbit/s, 4 KiB pages, "
                "Debian GNU/Linux 13 (trixie), kernel 6.12.43+deb13-amd64, Dell Inc. 1.14.0 "
                "03/08/2024, governor powersave"
            ),
        ),
        (
            VM,  # no clock, no rate, no governor: nothing is guessed
            "/var/lib/boardcluster",
            (
                "pi: QEMU Standard PC (Q35 + ICH9, 2009), 2 x QEMU Virtual CPU version 2.5+, "
                "1.94 GiB, virtual, 4 KiB pages, Debian GNU/Linux 12 (bookworm), kernel "
                "6.1.0-37-amd64, SeaBIOS 1.16.3-debian-1.16.3-2 04/01/2014"
            ),
        ),
    ],
)
def test_a_board_is_one_line(recording: Recording, folder: str, line: str) -> None:
    assert hardware_line("pi", facts_of(recording, folder)) == line


def test_the_medium_is_that_of_the_real_folder_behind_a_link() -> None:
    linked = replace(facts_of(PI_4, "/mnt/ssd/boardcluster"), folder="/var/lib/boardcluster")

    assert "usb-ssd Portable SSD T5" in hardware_line("pi", linked)


def test_what_is_not_known_is_left_out_of_the_line() -> None:
    facts = replace(
        facts_of(VM), board="", cpu="", media=(), mounts=(), os="", firmware="", kernel="6.1"
    )

    assert hardware_line("pi", facts) == "pi: 2 x x86_64, 1.94 GiB, 4 KiB pages, kernel 6.1"


@pytest.mark.parametrize(
    "change",
    [
        {"available_memory_bytes": 5},
        {"boot_id": "another"},
        {"uptime_seconds": 5.0},
        {"temperature_celsius": 80.0},
        {"clock_offset_seconds": 0.2, "clock_error_seconds": 0.1},
        {"clock_synchronised": None},
        {"throttled": 0x50005},
        {"package_managers": ("apt",)},
        {"kernel_faults": ("Undervoltage detected!",)},
        {"swaps": ()},
    ],
)
def test_what_changes_from_run_to_run_is_not_in_the_line(change: dict[str, Any]) -> None:
    # Or no two fingerprints of boards would ever be equal.
    facts = facts_of(PI_5)
    assert replace(facts, **change) != facts

    assert hardware_line("pi", replace(facts, **change)) == hardware_line("pi", facts)


def boards(live: LiveCluster, security: Security = Security.CLOSED) -> LiveCluster:
    """The cluster with a PC as master and four boards, of which worker3 is the smallest."""
    nodes = tuple(
        replace(node, memory_bytes=1 << 29) if node.name == "worker3" else node
        for node in live.spec.nodes
    )
    spec = replace(live.spec, kind="boards", security=security, nodes=nodes)
    machines = (DESKTOP, PI_5, PI_5, PI_3, PI_4)
    facts = {
        node.name: facts_of(machine) for node, machine in zip(spec.nodes, machines, strict=True)
    }
    return replace(live, layout=replace(live.layout, spec=spec), facts=facts)


def test_of_boards_the_smallest_worker_is_the_machine(live: LiveCluster) -> None:
    fingerprint = take_fingerprint(boards(live))

    assert fingerprint.kernel == "6.6.51+rpt-rpi-v8 aarch64"
    assert fingerprint.os == "Raspbian GNU/Linux 12 (bookworm)"
    assert fingerprint.cpu == "Raspberry Pi 3 Model B Rev 1.2"
    assert fingerprint.cpu_cores == 4
    assert fingerprint.memory_bytes == 930_372 * 1024
    assert fingerprint.node_memory_bytes == 1 << 29
    assert not fingerprint.emulated


def test_each_board_is_in_the_fingerprint(live: LiveCluster) -> None:
    cluster = boards(live)
    hardware = take_fingerprint(cluster).hardware

    assert [line.partition(":")[0] for line in hardware] == [node.name for node in live.spec.nodes]
    assert hardware == tuple(
        hardware_line(node.name, cluster.facts[node.name]) for node in live.spec.nodes
    )
    slower = replace(facts_of(PI_5), clock_most_hertz=1_500_000_000)
    other = replace(cluster, facts={**cluster.facts, "worker2": slower})
    assert take_fingerprint(other) != take_fingerprint(cluster)


def test_a_board_without_a_model_is_named_by_its_processor(live: LiveCluster) -> None:
    cluster = boards(live)
    plain = replace(cluster.facts["worker3"], board="")

    fingerprint = take_fingerprint(replace(cluster, facts={**cluster.facts, "worker3": plain}))

    assert fingerprint.cpu == "Cortex-A53"


@pytest.mark.parametrize("security", [Security.CLOSED, Security.INSECURE_LAB])
def test_who_could_reach_the_cluster_is_in_the_fingerprint(
    security: Security, live: LiveCluster
) -> None:
    assert take_fingerprint(boards(live, security)).security is security


# Synthetic, of words that raspberrypi/linux (pull requests 6273, 6434) and rpi-eeprom document.
PI_5_LINE = (
    "reboot=w coherent_pool=1M 8250.nr_uarts=1 pci=pcie_bus_safe numa_policy=interleave "
    "numa=fake=8 system_heap.max_order=0 smsc95xx.macaddr=D8:3A:DD:00:00:01 "
    "vc_mem.mem_base=0x3fc00000 console=ttyAMA10,115200 root=PARTUUID=6c586e13-02 "
    "rootfstype=ext4 fsck.repair=yes rootwait"
)


@pytest.mark.parametrize(
    ("line", "cleaned"),
    [
        ("quiet  rootwait\n", "quiet rootwait"),
        ("root=PARTUUID=6c586e13-02 ro", "root=PARTUUID=(id) ro"),
        (
            "root=UUID=0f2a6e34-5b4e-4a8e-9d5b-1b6a1d0c2f3e ro",
            "root=UUID=(id) ro",
        ),
        ("rd.luks=0f2a6e34-5b4e-4a8e-9d5b-1b6a1d0c2f3e", "rd.luks=(id)"),
        ("smsc95xx.macaddr=D8:3A:DD:00:00:01", "smsc95xx.macaddr=(id)"),
        ("bcm2709.serial=0x8d1f2c3a", "bcm2709.serial=(id)"),
        ("nic=d8:3a:dd:00:00:01", "nic=(id)"),
        ("wifi.password=tulip quiet", "wifi.password=(hidden) quiet"),
        ("install.token=abcdef", "install.token=(hidden)"),
        ("cgroup_enable=memory numa=fake=8", "cgroup_enable=memory numa=fake=8"),
        ("", ""),
    ],
)
def test_a_command_line_without_secrets_and_ids(line: str, cleaned: str) -> None:
    assert clean_command_line(line) == cleaned


def test_a_command_line_is_bounded() -> None:
    assert len(clean_command_line("word " * 10_000)) <= 2048


def told(blas: str, *, line: str = PI_5_LINE, nodes: str = "0-7") -> FakeRemote:
    """A node that answers as grep and find of Debian 12 do."""
    node = FakeRemote("pi")
    node.tell(
        *("grep", "-sH", "", "/proc/cmdline", "/proc/sys/kernel/numa_balancing"),
        "/sys/devices/system/node/online",
        stdout=f"/proc/cmdline:{line}\n/sys/devices/system/node/online:{nodes}\n",
        returncode=2,  # no balancing in this kernel
    )
    node.tell(
        *("find", "/etc/alternatives", "-maxdepth", "1", "-name", "libblas.so.3*"),
        *("-printf", "%f %l\\n"),
        stdout=blas,
    )
    return node


def test_settings_of_a_board() -> None:
    link = "/usr/lib/aarch64-linux-gnu/openblas-pthread/libblas.so.3"
    found = settings_on(told(f"libblas.so.3-aarch64-linux-gnu {link}\n"))

    assert found.blas == "openblas-pthread/libblas.so.3"
    assert found.numa == "8 nodes, numa_policy=interleave, numa=fake=8"
    assert "numa=fake=8" in found.command_line
    assert "6c586e13" not in found.command_line


@pytest.mark.parametrize(
    ("nodes", "numa"),
    [("0", "1 node"), ("0-1,4", "3 nodes"), ("", ""), ("nonsense", ""), ("0-", ""), ("7-0", "")],
)
def test_numa_nodes_are_counted_and_nonsense_is_not_guessed_at(nodes: str, numa: str) -> None:
    assert settings_on(told("", line="quiet", nodes=nodes)).numa == numa


@pytest.mark.parametrize("blas", ["", "garbled", "\n\n"])
def test_a_blas_that_is_not_there_is_unknown(blas: str) -> None:
    assert settings_on(told(blas)).blas == ""


def test_a_board_that_does_not_answer_has_unknown_settings(live: LiveCluster) -> None:
    assert settings_on(FakeRemote("pi")).command_line == ""
    assert take_fingerprint(boards(live)).kernel_command_line == ""


def test_this_machine_says_how_its_kernel_was_started(live: LiveCluster) -> None:
    found = settings_on(LocalRemote("host"))

    assert found.command_line == clean_command_line(Path("/proc/cmdline").read_text())
    assert take_fingerprint(live).kernel_command_line == found.command_line
    assert take_fingerprint(live).numa == found.numa


def test_settings_come_from_the_smallest_worker_and_governors_from_all(live: LiveCluster) -> None:
    cluster = boards(live)
    remotes = {**cluster.remotes, "worker3": told("")}

    fingerprint = take_fingerprint(replace(cluster, remotes=remotes))

    assert "numa=fake=8" in fingerprint.kernel_command_line
    assert fingerprint.numa.startswith("8 nodes")
    assert fingerprint.governor == "ondemand,performance,powersave"
