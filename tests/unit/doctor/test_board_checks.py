"""Every check of boards: a healthy cluster passes, and each planted fault is found and named."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_state
from tests.unit.doctor.board_facts import FOLDER, GIB, JAVA, LOGIN_HOME, with_details, with_facts

from boardcluster.doctor import (
    Facts,
    Finding,
    Severity,
    Where,
    check_names,
    examine,
    load_check,
    run_check,
)
from boardcluster.doctor.facts import LostBoard, MasterAnswers, NodeManagerState, WaitingJob
from boardcluster.errors import HostKeyError, LoginError, UnreachableError
from boardcluster.records import JavaHome, Medium, Mount, Security, Sudo, Swap
from boardcluster.remote import nodefacts

ERROR, WARNING = Severity.ERROR, Severity.WARNING


CHECKS = {
    check.name_on_boards or name: check
    for name in check_names()
    if (check := load_check(name)).where in (Where.BOARDS, Where.NODES)
}
"""The checks that look at boards, by the names of their findings there."""


def look(view: Facts, check: str) -> list[Finding]:
    return list(run_check(CHECKS[check], view))


def fault(view: Facts, check: str, severity: Severity, node: str = "pi1") -> Finding:
    """Return the only fault, which must be of this severity and say what mends it."""
    (found,) = [finding for finding in look(view, check) if not finding.ok]
    assert found.severity is severity
    assert found.check == check
    assert found.node == node
    for text in (found.seen, found.why, found.fix, found.source):
        assert text
    if node:
        assert node in found.seen
    return found


@pytest.mark.parametrize("name", CHECKS)
def test_a_healthy_cluster_passes(name: str, view: Facts) -> None:
    findings = look(view, name)
    assert findings
    assert [finding for finding in findings if not finding.ok] == []
    assert {finding.check for finding in findings} == {name}
    assert {finding.repair for finding in findings} == {()}
    assert not any("cannot tell" in finding.seen for finding in findings)


@pytest.mark.parametrize("name", CHECKS)
def test_a_healthy_cluster_is_one_line_per_check(name: str, view: Facts) -> None:
    assert len(look(view, name)) == 1


@pytest.mark.parametrize("name", CHECKS)
def test_no_check_fails_when_no_board_answers(name: str, view: Facts) -> None:
    lost = tuple(
        LostBoard(spec=node, error=UnreachableError(f"{node.name}: no answer"))
        for node in view.declared.nodes
    )
    findings = look(replace(view, boards=(), lost=lost, masters=None), name)
    assert findings
    assert name == "reachable" or all(finding.ok for finding in findings)


@pytest.mark.parametrize("name", CHECKS)
def test_a_cluster_that_was_never_up_has_no_faults(name: str, view: Facts) -> None:
    for board in view.boards:
        view = with_details(view, board.name, provisioned=False, firewall=False, java="")
        view = with_details(view, board.name, cluster_ids={})
    assert all(finding.ok for finding in look(replace(view, masters=None), name))


@pytest.mark.parametrize("profile", ["default", "upstream"])
def test_whole_clusters_are_examined(profile: str, view: Facts) -> None:
    changed = replace(view, spec=replace(view.declared, profile=profile))
    findings = [row for row in examine(changed) if row.check in CHECKS]
    assert {finding.check for finding in findings} == set(CHECKS)
    assert not any("itself failed" in finding.seen for finding in findings)
    if profile == "default":
        assert all(finding.ok for finding in findings)
    else:
        assert {row.check for row in findings if not row.ok} == {
            "board_memory",
            "pipeline_recovery",
            "virtual_memory_check",
        }


# Reaching


def _lost(view: Facts, error: Exception) -> Facts:
    assert isinstance(error, UnreachableError | LoginError | HostKeyError)
    (board,) = [board for board in view.boards if board.name == "pi1"]
    others = tuple(row for row in view.boards if row is not board)
    return replace(view, boards=others, lost=(LostBoard(spec=board.spec, error=error),))


@pytest.mark.parametrize(
    "error",
    [
        UnreachableError("no route to host\nmore", hint="switch it on"),
        LoginError("permission denied (publickey)", hint="ssh-copy-id pi@pi1"),
        HostKeyError("its host key changed", hint="ssh-keygen -R pi1"),
    ],
)
def test_a_board_out_of_reach(error: Any, view: Facts) -> None:
    found = fault(_lost(view, error), "reachable", ERROR)
    assert found.seen == f"pi1: {error.message.splitlines()[0]}"
    assert found.fix == error.hint
    assert all(finding.ok for finding in look(_lost(view, error), "sudo_asks"))


def test_sudo_that_asks_is_not_a_board_out_of_reach(view: Facts) -> None:
    asks = _lost(view, LoginError("sudo asks for a password", hint="add a line to sudoers"))
    assert fault(asks, "sudo_asks", ERROR).fix == "add a line to sudoers"
    assert all(finding.ok for finding in look(asks, "reachable"))


def test_sudo_that_asks_as_the_board_itself_says(view: Facts) -> None:
    found = fault(with_facts(view, "pi1", sudo=Sudo.ASKS), "sudo_asks", ERROR)
    assert "NOPASSWD" in found.fix


# What a board is


def test_32_bit_programs(view: Facts) -> None:
    found = fault(with_facts(view, "pi1", userland_bits=32), "userland", ERROR)
    assert "32-bit" in found.seen
    assert "64-bit Raspberry Pi OS" in found.fix


def test_an_own_name_that_means_the_loopback(view: Facts) -> None:
    wrong = with_details(view, "pi1", name_addresses=("127.0.1.1",))
    found = fault(wrong, "own_name", ERROR)
    assert "127.0.1.1" in found.seen
    assert found.fix.startswith("boardcluster up --cluster lab")
    fault(with_details(wrong, "pi1", provisioned=False), "own_name", WARNING)


def test_a_java_that_is_too_new_before_up(view: Facts) -> None:
    java = JavaHome(
        home="/opt/jdk", version="25.0.3", feature=25, vendor="x", architecture="aarch64"
    )
    changed = with_facts(view, "pi1", javas=(java,))
    found = fault(with_details(changed, "pi1", provisioned=False, java=""), "board_java", WARNING)
    assert "25.0.3 (/opt/jdk)" in found.seen


@pytest.mark.parametrize("installed", ["", "/opt/gone"])
def test_the_link_to_the_java_of_the_daemons_is_broken(installed: str, view: Facts) -> None:
    found = fault(with_details(view, "pi1", java=installed), "board_java", ERROR)
    assert "/opt/boardcluster/java points to" in found.seen


def test_no_java_at_all(view: Facts) -> None:
    changed = with_details(with_facts(view, "pi1", javas=()), "pi1", provisioned=False)
    assert "found: none" in fault(changed, "board_java", WARNING).seen


@pytest.mark.parametrize(("used", "severity"), [(True, ERROR), (False, WARNING)])
def test_a_java_of_another_processor(used: bool, severity: Severity, view: Facts) -> None:
    foreign = JavaHome(
        home="/opt/jdk", version="17.0.1", feature=17, vendor="", architecture="x86_64"
    )
    changed = with_facts(view, "pi1", javas=(*view.boards[1].facts.javas, foreign))
    changed = with_details(changed, "pi1", java="/opt/jdk" if used else JAVA)
    assert "/opt/jdk is for x86_64" in fault(changed, "java_architecture", severity).seen


def test_a_java_home_that_leads_nowhere(view: Facts) -> None:
    assert (
        "/opt/old"
        in fault(with_facts(view, "pi1", java_home="/opt/old"), "java_home", WARNING).seen
    )
    assert all(row.ok for row in look(with_facts(view, "pi1", java_home=JAVA), "java_home"))


def test_large_pages(view: Facts) -> None:
    found = fault(with_facts(view, "pi1", page_size_bytes=16384), "page_sizes", WARNING)
    assert "16 KiB" in found.seen
    assert "kernel8.img" in found.fix


def test_no_memory_controller(view: Facts) -> None:
    changed = with_facts(
        view, "pi1", memory_controller=False, cgroup_controllers=("cpuset", "cpu", "pids")
    )
    found = fault(changed, "memory_controller", WARNING)
    assert "(cpuset cpu pids)" in found.seen
    assert "cgroup_enable=memory" in found.fix


def test_clones(view: Facts) -> None:
    same_id = with_facts(view, "pi1", machine_id=view.boards[2].facts.machine_id)
    assert "pi1, pi2" in fault(same_id, "machine_ids", WARNING, node="").seen
    same_key = with_facts(view, "pi1", host_keys=("SHA256:own", *view.boards[2].facts.host_keys))
    assert "pi1, pi2" in fault(same_key, "host_keys", WARNING, node="").seen


def test_boards_without_a_machine_id_are_not_clones(view: Facts) -> None:
    changed = with_facts(with_facts(view, "pi1", machine_id=""), "pi2", machine_id="")
    assert all(finding.ok for finding in look(changed, "machine_ids"))


# Memory


def test_more_memory_declared_than_there_is(view: Facts) -> None:
    found = fault(with_facts(view, "pi1", memory_bytes=4 * GIB - 1), "board_memory", ERROR)
    assert "declares 7 GiB" in found.seen
    assert 'memory = "0' not in found.fix


def test_the_memory_to_declare_is_one_that_fits(view: Facts) -> None:
    changed = with_facts(view, "pi1", memory_bytes=3_978_645_504)
    assert '`memory = "3776 MiB"`' in fault(changed, "board_memory", ERROR).fix


def test_a_board_too_small_for_anything(view: Facts) -> None:
    found = fault(with_facts(view, "pi1", memory_bytes=400 * 2**20), "board_memory", ERROR)
    assert "400 MiB" in found.seen


def test_a_profile_that_promises_more_than_there_is(view: Facts) -> None:
    upstream = replace(view, spec=replace(view.declared, profile="upstream"))
    faults = [row for row in look(upstream, "board_memory") if not row.ok]
    assert [row.node for row in faults] == ["pi1", "pi2", "pi3"]  # the master gives YARN nothing
    assert "promises YARN 8192 MiB" in faults[0].seen


def test_zram_that_counts_as_memory(view: Facts) -> None:
    zram = Swap(place="/dev/zram0", size_bytes=4 * GIB, used_bytes=0, kind="zram")
    changed = with_facts(view, "pi1", swaps=(zram,))
    assert all(finding.ok for finding in look(changed, "swap"))
    changed = with_facts(changed, "pi1", memory_bytes=4 * GIB)
    assert "zram would have to find 3 GiB" in fault(changed, "swap", ERROR).seen


@pytest.mark.parametrize("kind", ["sd", "emmc", "usb", "hdd"])
def test_swap_on_slow_media(kind: str, view: Facts) -> None:
    area = Swap(place="/var/swap", size_bytes=GIB, used_bytes=0, kind=kind)
    found = fault(with_facts(view, "pi1", swaps=(area,)), "swap", WARNING)
    assert "swapoff /var/swap" in found.fix


def test_out_of_memory(view: Facts) -> None:
    line = "[99.1] Out of memory: Killed process 812 (java) total-vm:4096kB"
    found = fault(with_facts(view, "pi1", kernel_faults=("x", line)), "out_of_memory", WARNING)
    assert "Killed process 812" in found.seen
    line = "[99.2] Memory cgroup out of memory: Killed process 813 (java) total-vm:4096kB"
    found = fault(with_facts(view, "pi1", kernel_faults=("x", line)), "out_of_memory", WARNING)
    assert "1 line in the kernel's log, the last: [99.2] Memory cgroup out of memory" in found.seen


# Storage


def _root(view: Facts, **changed: Any) -> Facts:
    """The same cluster where the root of pi1 is another file system."""
    facts = view.boards[1].facts
    mounts = tuple(replace(row, **changed) if row.folder == "/" else row for row in facts.mounts)
    return with_facts(view, "pi1", mounts=mounts)


@pytest.mark.parametrize(("percent", "severity"), [(95, ERROR), (90, ERROR), (82, WARNING)])
def test_a_full_disk(percent: int, severity: Severity, view: Facts) -> None:
    full = _root(view, size_bytes=100 * GIB, available_bytes=(100 - percent) * GIB)
    found = fault(full, "board_disk", severity)
    assert f"{percent} % full" in found.seen
    assert "sudo du" in found.fix


def test_a_disk_that_was_not_measured(view: Facts) -> None:
    assert all(row.ok for row in look(_root(view, size_bytes=None), "board_disk"))


def test_a_disk_that_became_read_only(view: Facts) -> None:
    found = fault(_root(view, read_only=True), "read_only", ERROR)
    assert "/ (/dev/nvme0n1p2) is read-only" in found.seen


def test_data_in_memory(view: Facts) -> None:
    found = fault(_root(view, file_system="tmpfs"), "data_in_memory", ERROR)
    assert f"{FOLDER} is on tmpfs" in found.seen


@pytest.mark.parametrize(
    "line",
    [
        "blk_update_request: I/O error, dev mmcblk0, sector 1234",
        "EXT4-fs error (device mmcblk0p2): ext4_find_entry:1455",
        "EXT4-fs (mmcblk0p2): Remounting filesystem read-only",
        "mmc0: error -110 whilst initialising SD card",
    ],
)
def test_storage_errors(line: str, view: Facts) -> None:
    found = fault(with_facts(view, "pi1", kernel_faults=(line,)), "storage_errors", ERROR)
    assert found.seen == f"pi1: 1 line in the kernel's log, the last: {line}"
    assert all(
        row.ok for row in look(with_facts(view, "pi1", kernel_faults=(line,)), "usb_storage")
    )


def test_resets_of_a_usb_disk(view: Facts) -> None:
    lines = (
        "sd 0:0:0:0: [sda] tag#12 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD OUT",
        "usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd",
    )
    found = fault(with_facts(view, "pi1", kernel_faults=lines), "usb_storage", WARNING)
    # One reset has several lines.
    assert found.seen == f"pi1: 2 lines in the kernel's log, the last: {lines[1]}"
    assert "usb-storage.quirks" in found.fix
    many = with_facts(view, "pi1", kernel_faults=lines * nodefacts.LOG_LINES_MOST)
    assert fault(many, "usb_storage", WARNING).seen.startswith("pi1: at least 40 lines in")


def test_a_log_that_may_not_be_read_is_no_fault_and_no_good_news(view: Facts) -> None:
    changed = with_facts(view, "pi1", kernel_faults=None)
    assert all(finding.ok for finding in look(changed, "throttled"))
    for name in ("storage_errors", "usb_storage", "out_of_memory"):
        assert [(finding.ok, finding.seen) for finding in look(changed, name)] == [
            (True, "pi1: not checked: its kernel's log cannot be read")
        ]
    # Of a board without the firmware's bits, that log alone tells of weak power.
    changed = with_facts(view, "pi1", kernel_faults=None, throttled=None)
    assert [(finding.ok, finding.seen) for finding in look(changed, "throttled")] == [
        (True, "pi1: not checked: its kernel's log cannot be read")
    ]


def test_a_faster_medium_that_lies_idle(view: Facts) -> None:
    facts = view.boards[1].facts
    card = Medium(name="mmcblk0", kind="sd", model="x", size_bytes=60 * GIB)
    slow = _root(view, medium="mmcblk0", source="/dev/mmcblk0p2")
    mounts = (
        *slow.boards[1].facts.mounts,
        Mount(
            folder="/mnt/nvme",
            file_system="ext4",
            source="/dev/nvme0n1p1",
            medium="nvme0n1",
            size_bytes=400 * GIB,
            available_bytes=400 * GIB,
            read_only=False,
            options="rw",
        ),
    )
    changed = with_facts(slow, "pi1", media=(card, *facts.media), mounts=mounts)
    found = fault(changed, "slow_medium", WARNING)
    assert 'folder = "/mnt/nvme/boardcluster"' in found.fix
    moved = with_facts(changed, "pi1", folder_mount="/mnt/nvme")
    assert all(finding.ok for finding in look(moved, "slow_medium"))


# Power, time, load


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0x1, "now: under-voltage"),
        (0x50000, "since boot: under-voltage, throttled"),
        (0x80008, "now: soft temperature limit; since boot: soft temperature limit"),
        (0x20002, "now: frequency capped; since boot: frequency capped"),
    ],
)
def test_throttling(bits: int, words: str, view: Facts) -> None:
    assert fault(with_facts(view, "pi1", throttled=bits), "throttled", WARNING).seen == (
        f"pi1: {words}"
    )


def test_under_voltage_that_only_the_kernel_tells(view: Facts) -> None:
    line = "hwmon hwmon1: Undervoltage detected!"
    changed = with_facts(view, "pi1", throttled=None, kernel_faults=(line,))
    assert line in fault(changed, "throttled", WARNING).seen


def test_a_clock_that_nothing_keeps(view: Facts) -> None:
    found = fault(with_facts(view, "pi1", clock_synchronised=False), "board_clock", WARNING)
    assert found.repair == ("timedatectl", "set-ntp", "true")
    plain = with_facts(view, "pi1", clock_synchronised=False, service_manager="none")
    assert fault(plain, "board_clock", WARNING).repair == ()
    unknown = with_facts(view, "pi1", clock_synchronised=None)
    assert all(finding.ok for finding in look(unknown, "board_clock"))


def test_clocks_that_are_apart(view: Facts) -> None:
    changed = with_facts(view, "pi1", clock_offset_seconds=5.0)
    found = fault(changed, "board_clock", ERROR, node="")
    assert "the clock of pi1 is 5 s ahead" in found.seen
    assert "refuses to start" in found.why


def test_where_this_machines_clock_is_wrong_the_fix_is_for_it_too(view: Facts) -> None:
    late = view
    for name in ("pi0", "pi1", "pi2", "pi3"):
        late = with_facts(late, name, clock_offset_seconds=5.0)
    found = fault(late, "board_clock", ERROR, node="")
    assert "this machine's" in found.seen
    assert found.fix.startswith("ssh pi@pi0 ")
    assert found.fix.endswith("' && sudo timedatectl set-ntp true")


def test_a_clock_that_answers_too_slowly_is_not_mended_by_a_time_server(view: Facts) -> None:
    slow = with_facts(view, "pi1", clock_error_seconds=2.0)
    found = fault(slow, "board_clock", ERROR, node="")
    assert found.seen.startswith("the clock of pi1 is known only to within 2 s")
    assert found.fix.startswith("ping -c 5 192.168.1.21 ")
    assert "timedatectl" not in found.fix


def test_another_governor(view: Facts) -> None:
    found = fault(with_facts(view, "pi1", governor="ondemand,performance"), "governors", WARNING)
    assert found.repair[:2] == ("sh", "-c")
    assert "echo performance" in found.repair[2]
    assert all(row.ok for row in look(with_facts(view, "pi1", governor=""), "governors"))


def test_updates_at_work(view: Facts) -> None:
    busy = with_facts(view, "pi1", package_managers=("unattended-upgrade", "dpkg", "dpkg"))
    found = fault(busy, "board_updates", WARNING)
    assert found.seen == "pi1: running now: unattended-upgrade, dpkg"
    assert found.repair[:2] == ("systemctl", "stop")
    assert "unattended-upgrade" not in " ".join(found.repair)  # what is at work is let finish
    plain = with_facts(busy, "pi1", service_manager="none")
    assert fault(plain, "board_updates", WARNING).repair == ()


# Network


def _link(view: Facts, **changed: Any) -> Facts:
    (link,) = view.boards[1].facts.links
    return with_facts(view, "pi1", links=(replace(link, **changed),))


def test_an_address_that_is_not_there(view: Facts) -> None:
    found = fault(_link(view, addresses=("192.168.1.77/24",)), "interfaces", ERROR)
    assert "192.168.1.21, its address in cluster.toml, is on no interface" in found.seen
    assert "it has 192.168.1.77" in found.seen


def test_two_interfaces_in_the_cluster_s_network(view: Facts) -> None:
    (cable,) = view.boards[1].facts.links
    radio = replace(cable, name="wlan0", addresses=("192.168.1.121/24",), wireless=True)
    found = fault(with_facts(view, "pi1", links=(cable, radio)), "interfaces", ERROR)
    assert "eth0 and wlan0 are both in 192.168.1.0/24" in found.seen
    assert "ip link set wlan0 down" in found.fix
    elsewhere = replace(radio, addresses=("10.0.0.2/24", "fd00::1/64"))
    both = with_facts(view, "pi1", links=(cable, elsewhere))
    assert all(finding.ok for finding in look(both, "interfaces"))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"speed_bits_per_second": 10**8}, "eth0 runs at 100 Mbit/s"),
        ({"duplex": "half"}, "eth0 runs at 1 Gbit/s, half duplex"),
        ({"wireless": True, "name": "wlan0"}, "wlan0, which has its address, is wireless"),
    ],
)
def test_a_slow_link(changed: dict[str, Any], words: str, view: Facts) -> None:
    assert words in fault(_link(view, **changed), "link_speed", WARNING).seen


def test_a_link_that_does_not_say_its_speed(view: Facts) -> None:
    unknown = _link(view, speed_bits_per_second=None, duplex="")
    assert all(finding.ok for finding in look(unknown, "link_speed"))


# Safety


def test_a_firewall_that_is_not_loaded(view: Facts) -> None:
    for loaded in (False, None):
        found = fault(with_details(view, "pi1", firewall=loaded), "firewall", ERROR)
        # Rules that are loaded by themselves may lock the driver out; `up` takes those back.
        assert (found.fix, found.repair) == ("boardcluster up --cluster lab", ())


def test_an_open_cluster_is_said_to_be_open(view: Facts) -> None:
    lab = replace(view, spec=replace(view.declared, security=Security.INSECURE_LAB))
    found = fault(lab, "firewall", WARNING, node="")
    assert 'security = "closed"' in found.fix
    assert "run any command" in found.seen


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_a_daemon_on_every_address(address: str, view: Facts) -> None:
    changed = with_details(
        view, "pi1", listening=((address, 8088), (address, 22), (address, 13562))
    )
    found = fault(changed, "open_ports", WARNING)
    assert found.seen == "pi1: listens on every address: 8088 (resourcemanager-web)"


def test_others_may_write_the_keys(view: Facts) -> None:
    path = f"{LOGIN_HOME}/.ssh/authorized_keys"
    loose = {**view.boards[1].details.permissions, path: (1000, 0o664)}
    found = fault(with_details(view, "pi1", permissions=loose), "ssh_permissions", WARNING)
    assert f"others may write to {path} (664)" in found.seen
    assert found.repair == ("chmod", "go-w", path)


@pytest.mark.parametrize(
    ("settings", "accounts", "seen", "line"),
    [
        (
            {"passwordauthentication": "yes"},
            ("root", "ann", "pi"),
            "these accounts have one: ann, pi (names that vendors use: pi)",
            "PasswordAuthentication no",
        ),
        (
            {"kbdinteractiveauthentication": "yes", "permitrootlogin": "yes"},
            ("root",),
            "root may log in with its password",
            "PermitRootLogin prohibit-password",
        ),
        (
            {"permitemptypasswords": "yes"},
            (),
            "accounts without a password may log in",
            "PermitEmptyPasswords no",
        ),
    ],
)
def test_passwords_open_the_door(
    view: Facts, settings: dict[str, str], accounts: tuple[str, ...], seen: str, line: str
) -> None:
    changed = with_details(view, "pi1", ssh_settings=settings, accounts_with_password=accounts)
    found = fault(changed, "ssh_login", WARNING)
    assert seen in found.seen
    assert line in found.fix
    assert not found.repair, "who locks the door must hold a key first"


def test_a_password_that_no_setting_takes_is_none(view: Facts) -> None:
    changed = with_details(
        view,
        "pi1",
        ssh_settings={"passwordauthentication": "no", "permitrootlogin": "yes"},
        accounts_with_password=("root", "pi"),
    )
    assert [finding for finding in look(changed, "ssh_login") if not finding.ok] == []


def test_keys_of_somebody_else(view: Facts) -> None:
    foreign = {f"{LOGIN_HOME}/.ssh": (1001, 0o700)}
    found = fault(with_details(view, "pi1", permissions=foreign), "ssh_permissions", WARNING)
    assert "belongs to another user" in found.seen
    assert found.repair == ()
    assert f"chown pi {LOGIN_HOME}/.ssh" in found.fix


# The engines


def test_data_of_another_file_system(view: Facts) -> None:
    path = f"{FOLDER}/data/datanode/current/VERSION"
    found = fault(with_details(view, "pi1", cluster_ids={path: "CID-2"}), "cluster_ids", ERROR)
    assert "says CID-2, but the NameNode on pi0 says CID-1" in found.seen
    assert f"mv {FOLDER}/data/datanode {FOLDER}/data/datanode.of-another-cluster" in found.fix
    assert "rm" not in found.fix.split()


def test_a_folder_that_a_job_named_is_no_command(view: Facts) -> None:
    storage = f"{FOLDER}/data; touch $(id) 'x'"
    name = f"{storage}/datanode"
    view = with_details(view, "pi0", cluster_ids={f"{storage}/namenode/current/VERSION": "CID-1"})
    view = with_details(view, "pi1", cluster_ids={f"{name}/current/VERSION": "CID-2"})
    found = fault(view, "cluster_ids", ERROR)
    ssh, host, command = shlex.split(found.fix.partition("   (keeps")[0])
    assert (ssh, host) == ("ssh", "pi@pi1")
    assert shlex.split(command) == ["sudo", "mv", name, f"{name}.of-another-cluster"]


def test_data_of_another_form_is_compared_with_its_own_namenode(view: Facts) -> None:
    other = {f"{FOLDER}/data-2/datanode/current/VERSION": "CID-9"}
    own = view.boards[1].details.cluster_ids
    changed = with_details(view, "pi1", cluster_ids={**own, **other})
    assert all(finding.ok for finding in look(changed, "cluster_ids"))


def test_what_a_former_master_keeps_does_not_decide(view: Facts) -> None:
    own = view.boards[2].details.cluster_ids
    former = {f"{FOLDER}/data/namenode/current/VERSION": "CID-0", **own}
    changed = with_details(view, "pi2", cluster_ids=former)
    assert all(finding.ok for finding in look(changed, "cluster_ids"))


def test_what_a_former_master_keeps_does_not_decide_while_the_master_is_off(view: Facts) -> None:
    former = {f"{FOLDER}/data/namenode/current/VERSION": "CID-0"}
    own = view.boards[2].details.cluster_ids
    changed = with_details(view, "pi2", cluster_ids={**former, **own})
    master, *others = changed.boards
    off = LostBoard(spec=master.spec, error=UnreachableError("pi0: no answer"))
    (row,) = look(replace(changed, boards=tuple(others), lost=(off,)), "cluster_ids")
    assert (row.ok, row.seen) == (True, "cannot tell: the master's board could not be asked")


@pytest.mark.parametrize("name", ["live_workers", "unhealthy_nodes", "waiting_jobs"])
def test_masters_that_were_not_asked(name: str, view: Facts) -> None:
    down = replace(view, masters=None)
    assert [(row.ok, row.seen) for row in look(down, name)] == [(True, "the cluster is not up")]
    (row,) = look(replace(down, state=make_state(kind="boards")), name)
    assert (row.ok, row.seen) == (True, "cannot tell: the master's board could not be asked")


def test_fewer_workers_than_declared(view: Facts) -> None:
    assert view.masters is not None
    fewer = replace(view, masters=replace(view.masters, live_datanodes=2))
    assert "2 of 3 DataNodes" in fault(fewer, "live_workers", ERROR, node="").seen
    silent = replace(view, masters=replace(view.masters, managers=view.masters.managers[:2]))  # type: ignore[index]
    assert "pi3" in fault(silent, "live_workers", ERROR, node="").seen


def test_a_cluster_in_another_form_is_compared_with_that(view: Facts) -> None:
    assert view.masters is not None
    managers = (NodeManagerState(host="pi1", state="RUNNING", report=""),)
    masters = MasterAnswers(live_datanodes=1, managers=managers, waiting=())
    running = replace(view.declared, nodes=view.declared.nodes[:2])
    smaller = replace(view, masters=masters, running=running)
    assert all(finding.ok for finding in look(smaller, "live_workers"))


def test_masters_that_do_not_answer(view: Facts) -> None:
    mute = replace(view, masters=MasterAnswers(live_datanodes=None, managers=None, waiting=None))
    seen = [row.seen for row in look(mute, "live_workers") if not row.ok]
    assert seen == ["the NameNode does not answer", "the ResourceManager does not answer"]
    for name in ("unhealthy_nodes", "waiting_jobs"):
        assert look(mute, name)[0].seen == "YARN gives no answer"


def test_a_daemon_that_ended(view: Facts) -> None:
    found = fault(with_details(view, "pi1", dead_daemons=("datanode",)), "dead_daemons", ERROR)
    assert "ended: datanode" in found.seen
    assert f"tail {FOLDER}/logs/datanode.log" in found.fix


def test_an_unhealthy_nodemanager(view: Facts) -> None:
    assert view.masters is not None
    report = "1/1 local-dirs usable space is below configured utilization percentage"
    managers = (
        NodeManagerState(host="pi1", state="UNHEALTHY", report=report),
        NodeManagerState(host="pi2", state="RUNNING", report=""),
    )
    sick = replace(view, masters=replace(view.masters, managers=managers))
    found = fault(sick, "unhealthy_nodes", ERROR)
    assert report in found.seen
    assert "board_disk" in found.fix


def test_a_job_that_waits(view: Facts) -> None:
    assert view.masters is not None
    job = WaitingJob(
        id="application_1_1", name="wordcount", waited_seconds=90, diagnostics="AM container is\n"
    )
    stuck = replace(view, masters=replace(view.masters, waiting=(job,)))
    found = fault(stuck, "waiting_jobs", WARNING, node="")
    assert (
        "application_1_1 (wordcount) has been ACCEPTED for 1 min 30 s: AM container is"
        in found.seen
    )
    fresh = replace(job, waited_seconds=3)
    early = replace(view, masters=replace(view.masters, waiting=(fresh,)))
    assert all(finding.ok for finding in look(early, "waiting_jobs"))


# The profile


def _with_setting(view: Facts, file: str, name: str, value: str) -> Facts:
    """The same cluster with one more property in its profile."""
    profile = view.profile
    assert profile is not None
    properties = {**profile.properties, file: {**profile.properties[file], name: value}}
    changed = replace(view)
    object.__setattr__(changed, "profile", replace(profile, properties=properties))
    return changed


@pytest.mark.parametrize(
    ("file", "name", "value"),
    [
        ("yarn-site", "yarn.nodemanager.recovery.enabled", "true"),
        ("yarn-site", "yarn.resourcemanager.store.class", "x.LeveldbRMStateStore"),
        ("mapred-site", "mapreduce.jobhistory.recovery.store.class", "x.HistoryServerLeveldbState"),
    ],
)
def test_leveldb_on_arm64(file: str, name: str, value: str, view: Facts) -> None:
    changed = _with_setting(view, file, name, value)
    assert name in fault(changed, "leveldb", ERROR, node="").seen
    pcs = changed
    for board in view.boards:
        pcs = with_facts(pcs, board.name, architecture="x86_64")
    pcs = _with_setting(pcs, file, name, value)
    assert all(finding.ok for finding in look(pcs, "leveldb"))


def test_the_virtual_memory_check(view: Facts) -> None:
    on = _with_setting(view, "yarn-site", "yarn.nodemanager.vmem-check-enabled", "true")
    assert "2.1 times" in fault(on, "virtual_memory_check", WARNING, node="").seen


def test_no_datanode_to_replace_a_failed_one(view: Facts) -> None:
    three = replace(view, spec=replace(view.declared, profile="upstream"))
    assert "3 workers hold 3 replicas" in fault(three, "pipeline_recovery", WARNING, node="").seen
    never = _with_setting(
        three, "hdfs-site", "dfs.client.block.write.replace-datanode-on-failure.policy", "NEVER"
    )
    assert all(finding.ok for finding in look(never, "pipeline_recovery"))
    odd = _with_setting(three, "hdfs-site", "dfs.replication", "all")
    assert all(finding.ok for finding in look(odd, "pipeline_recovery"))


def test_the_policy_goes_by_the_setting_not_by_how_many_workers_there_are(view: Facts) -> None:
    nodes = view.declared.nodes[:3]
    two = replace(view, spec=replace(view.declared, profile="upstream", nodes=nodes))
    seen = fault(two, "pipeline_recovery", WARNING, node="").seen
    assert seen.startswith("2 workers hold 2 of 3 replicas")
    fewer = _with_setting(two, "hdfs-site", "dfs.replication", "2")
    assert all(finding.ok for finding in look(fewer, "pipeline_recovery"))
    policy = "dfs.client.block.write.replace-datanode-on-failure.policy"
    always = _with_setting(fewer, "hdfs-site", policy, "ALWAYS")
    assert "2 workers hold 2 replicas" in fault(always, "pipeline_recovery", WARNING, node="").seen
    one = replace(two, spec=replace(two.declared, nodes=nodes[:2]))
    assert all(finding.ok for finding in look(one, "pipeline_recovery"))


def test_a_profile_that_fits_no_node_is_left_to_its_own_check(view: Facts) -> None:
    nodes = tuple(replace(node, memory_bytes=512 * 2**20) for node in view.declared.nodes)
    small = replace(view, spec=replace(view.declared, nodes=nodes))
    assert small.profile is None
    for name in ("leveldb", "virtual_memory_check", "pipeline_recovery"):
        assert all(finding.ok for finding in look(small, name))


@pytest.mark.parametrize("text", ["", "[yarn-sites]", '[yarn-site]\n"yarn.no.such" = 1'])
def test_a_profile_with_a_mistake_is_left_to_its_own_check(
    text: str, view: Facts, tmp_path: Path
) -> None:
    own = tmp_path / "own.toml"
    if text:
        own.write_text(text)
    wrong = replace(view, spec=replace(view.declared, profile=str(own)))
    assert wrong.profile is None
    for name in ("leveldb", "virtual_memory_check", "pipeline_recovery"):
        assert all(finding.ok for finding in look(wrong, name))
