"""Finding the checks, running them, and gathering what they look at."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.asleep import asleep
from tests.unit.doctor.fake_machine import FakeMachine

from boardcluster.capabilities import every_kind
from boardcluster.cluster.lock import driver_lock
from boardcluster.cluster.state import (
    IDENTITY_VARIABLE,
    LiveState,
    boot_id,
    save_state,
)
from boardcluster.doctor import (
    Facts,
    Machine,
    Severity,
    check_names,
    checks,
    examine,
    gather_facts,
    load_check,
    run_check,
)
from boardcluster.doctor.checks.tools import BOARD_TOOLS
from boardcluster.doctor.gather import driver_of
from boardcluster.records import ClusterSpec, Security
from boardcluster.spec.template import propose_cluster, render_cluster

# The checks as a whole


@pytest.mark.parametrize("name", check_names())
def test_a_check_says_everything(name: str) -> None:
    check = load_check(name)
    assert check.name == name
    for text in (check.looks_at, check.why):
        assert text.endswith(".")
    assert check.source


def test_no_two_checks_have_the_same_name() -> None:
    loaded = [load_check(name) for name in check_names()]
    names = [name for row in loaded for name in (row.name, row.name_on_boards) if name]
    assert len(set(names)) == len(names)


# Crashes


def test_a_check_that_crashes_is_a_finding(facts: Facts, machine: FakeMachine) -> None:
    machine.files["/proc/self/limits"] = "Max open files  many  many  files\n"
    (finding,) = [row for row in examine(facts) if row.check == "open_files"]
    assert not finding.ok
    assert finding.severity is Severity.WARNING
    assert "ValueError" in finding.seen
    assert finding.fix
    assert {row.check for row in examine(facts)} == _of_kind("emulated")


def test_what_was_found_before_the_crash_is_kept(facts: Facts, machine: FakeMachine) -> None:
    machine.tell(
        "python3", "-I", "-S", "-c", "import sys; print(*sys.version_info[:3])", stdout="?"
    )
    first, second = [row for row in examine(facts) if row.check == "python"]
    assert "ValueError" in first.seen
    assert first.severity is Severity.ERROR
    assert second.ok


def test_a_check_that_cannot_even_be_loaded_is_a_finding(
    facts: Facts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    monkeypatch.setattr(checks, "__path__", [*checks.__path__, str(tmp_path)])
    found = examine(facts)
    (finding,) = [row for row in found if row.check == "broken"]
    assert "ModuleNotFoundError" in finding.seen
    assert finding.severity is Severity.ERROR
    assert {row.check for row in found} == {*_of_kind("emulated"), "broken"}


def test_a_new_file_is_a_new_check(
    facts: Facts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(checks.__path__[0], "clock.py").read_text()
    (tmp_path / "added.py").write_text(text)
    monkeypatch.setattr(checks, "__path__", [*checks.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{checks.__name__}.added", raising=False)
    assert "added" in {row.check for row in examine(facts)}
    del sys.modules[f"{checks.__name__}.added"]


def test_errors_come_first_and_what_is_well_last(facts: Facts, machine: FakeMachine) -> None:
    machine.lack("tr")
    machine.page_size_bytes = 65536
    ranks = [2 if row.ok else 0 if row.severity is Severity.ERROR else 1 for row in examine(facts)]
    assert ranks == sorted(ranks)
    assert set(ranks) == {0, 1, 2}


# A cluster of boards


def _of_kind(kind: str) -> set[str]:
    """Names of the checks that matter to a kind of node."""
    known = every_kind()[kind]
    loaded = [load_check(name) for name in check_names() if name != "broken"]
    return {
        (known.over_ssh and check.name_on_boards) or check.name
        for check in loaded
        if check.where.applies(known)
    }


def _local(spec: ClusterSpec) -> ClusterSpec:
    node = replace(spec.master, name="localhost", address="127.0.0.1")
    return replace(spec, kind="local", security=Security.LOCAL, nodes=(node,))


def _boards(spec: ClusterSpec) -> ClusterSpec:
    nodes = tuple(
        replace(
            node, host=f"pi@{node.name}", address=f"198.18.0.{number}", folder="/srv/boardcluster"
        )
        for number, node in enumerate(spec.nodes, start=10)
    )
    return replace(spec, kind="boards", security=Security.CLOSED, nodes=nodes)


@pytest.mark.parametrize("kind", list(every_kind()))
def test_what_does_not_matter_to_a_kind_of_node_is_left_out(
    kind: str, facts: Facts, machine: FakeMachine, spec: ClusterSpec
) -> None:
    for tool in BOARD_TOOLS:
        machine.tell(tool.name, tool.ask, stdout=tool.ability)
    declared = {"emulated": spec, "boards": _boards(spec), "local": _local(spec)}[kind]
    assert {row.check for row in examine(replace(facts, spec=declared))} == _of_kind(kind)


def test_boards_need_other_programs(facts: Facts, machine: FakeMachine, spec: ClusterSpec) -> None:
    for tool in BOARD_TOOLS:
        machine.tell(tool.name, tool.ask, stdout=tool.ability)
    machine.lack("unshare")
    machine.lack("rsync")
    boards = replace(facts, spec=_boards(spec))
    (fault,) = [row for row in examine(boards) if row.check == "tools"]
    assert fault.seen == "`rsync` is missing"


def test_recorded_boards_are_no_leftovers(
    facts: Facts, spec: ClusterSpec, state: LiveState
) -> None:
    facts = replace(facts, spec=_boards(spec), state=replace(state, kind="boards"))
    (found,) = run_check(load_check("leftovers"), facts)
    assert found.ok
    assert "dead_daemons" in found.seen


# What the checks look at


def _write_spec(home: Path) -> None:
    home.mkdir()
    spec = propose_cluster(
        name="test",
        workers=2,
        host_cores=2,
        host_available_bytes=8 * 2**30,
        engines="hadoop-3.4.2-spark-4.1.4",
        profile="default",
        subnet="198.18.0.0/24",
    )
    text = render_cluster(spec, engine_pairs=[spec.engines], profiles=["default"])
    (home / "cluster.toml").write_text(text)


def _gather(home: Path) -> Facts:
    return gather_facts(home, cache=home / "cache", machine=FakeMachine())


def test_looking_creates_nothing(tmp_path: Path) -> None:
    seen = _gather(tmp_path / "home")
    assert (seen.spec, seen.spec_error, seen.state, seen.driver) == (None, None, None, None)
    assert list(tmp_path.iterdir()) == []


def test_a_good_file_and_a_wrong_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    _write_spec(home)
    good = _gather(home)
    assert good.spec is not None
    assert len(good.spec.workers) == 2
    path = home / "cluster.toml"
    path.write_text(path.read_text().replace("profile", "profil"))
    wrong = _gather(home)
    assert wrong.spec is None
    assert wrong.spec_error is not None
    assert "profil" in wrong.spec_error.message
    assert wrong.pair.id == wrong.declared.engines


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("")
    seen = _gather(home)
    assert (seen.spec, seen.spec_error, seen.state, seen.state_error) == (None, None, None, None)


def test_a_damaged_record_is_kept_as_an_error(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{")
    seen = _gather(tmp_path)
    assert seen.state is None
    assert seen.state_error is not None
    assert "damaged" in seen.state_error.message
    assert IDENTITY_VARIABLE in seen.state_error.hint


def test_processes_are_found_by_identity(tmp_path: Path, state: LiveState) -> None:
    save_state(tmp_path, replace(state, boot_id=boot_id()))
    with asleep(**{IDENTITY_VARIABLE: state.identity}) as process:
        seen = _gather(tmp_path)
    assert seen.this_boot
    assert not seen.alive
    assert process.pid in seen.processes


def test_a_record_of_another_boot_has_no_processes(tmp_path: Path, state: LiveState) -> None:
    save_state(tmp_path, state)
    seen = _gather(tmp_path)
    assert (seen.this_boot, seen.alive, seen.processes) == (False, False, ())


def test_the_driver_is_known_as_long_as_it_lives(tmp_path: Path) -> None:
    assert driver_of(tmp_path) is None
    with driver_lock(tmp_path, doing="up"):
        assert driver_of(tmp_path) == os.getpid()
        with pytest.raises(BlockingIOError), (tmp_path / "driver.lock").open() as second:
            _try_lock(second.fileno())
    assert (tmp_path / "driver.lock").exists()
    assert driver_of(tmp_path) is None


def _try_lock(fd: int) -> None:
    import fcntl

    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_driver_of_an_earlier_boot_is_dead(tmp_path: Path) -> None:
    lock = tmp_path / "driver.lock"
    lock.write_text(json.dumps({"pid": os.getpid(), "boot_id": "before", "doing": "up"}))
    with lock.open():
        assert driver_of(tmp_path) is None


def test_commands_name_the_cluster_again(facts: Facts) -> None:
    seen = replace(facts, cache_option=" --cache /c")
    assert seen.command("down") == "boardcluster down --cluster test"
    assert seen.command("up", fetches=True) == "boardcluster up --cluster test --cache /c"


# This machine


def test_files_and_patterns(tmp_path: Path) -> None:
    (tmp_path / "proc/17").mkdir(parents=True)
    (tmp_path / "proc/self").mkdir()
    (tmp_path / "proc/17/cmdline").write_bytes(b"a\0b\xff\0")
    here = Machine(root=tmp_path)
    assert here.paths("/proc/[0-9]*/cmdline") == ["/proc/17/cmdline"]
    assert here.text("/proc/17/cmdline") == "a\0b\ufffd\0"
    assert here.text("/proc/18/cmdline") is None
    assert here.text("/proc/17") is None


def test_programs() -> None:
    here = Machine()
    done = here.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert done is not None
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
    assert here.run(["no-such-program-anywhere"]) is None


def test_the_disk_of_a_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    seen = Machine().disk(tmp_path / "a" / "b")
    assert seen.folder == str(tmp_path)
    assert seen.writable
    assert 0 < seen.available_bytes <= seen.total_bytes


def test_hardware_agrees_with_the_system() -> None:
    here = Machine()
    asked = [here.run(["getconf", "PAGE_SIZE"]), here.run(["getconf", "LONG_BIT"])]
    assert [int(done.text) for done in asked if done] == [here.page_size_bytes, here.userland_bits]
    assert here.python == sys.version_info[:3]
    assert here.is_root == (os.geteuid() == 0)
    assert here.processor == os.uname().machine
