"""The command: table, JSON, exit code."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.doctor.fake_machine import FakeMachine
from typer.testing import CliRunner

from boardcluster.cli import app, main
from boardcluster.cli import doctor as command
from boardcluster.cluster.lock import driver_lock
from boardcluster.doctor import (
    Facts,
    Finding,
    Severity,
    Where,
    check_names,
    load_check,
)
from boardcluster.errors import HostError, LockedError, UsageError
from boardcluster.records import NodeSpec
from boardcluster.remote.fake import FakeRemote
from boardcluster.spec.template import propose_cluster

KEYS = {"check", "severity", "ok", "seen", "why", "fix", "source", "node", "repair"}


def _finding(name: str, severity: Severity, *, ok: bool = False) -> Finding:
    return Finding(
        check=name,
        severity=severity,
        ok=ok,
        seen=f"[[node]] of {name}",
        why=f"because of {name}",
        fix="" if ok else f"mend {name}",
        source=f"book of {name}",
    )


ERROR = _finding("first", Severity.ERROR)
WARNING = _finding("second", Severity.WARNING)
GOOD = _finding("third", Severity.ERROR, ok=True)


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Give back the handlers that the program replaces."""
    every = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(one) for one in every]
    yield
    for one, handler in zip(every, before, strict=True):
        signal.signal(one, handler)


def _plant(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> list[Facts]:
    seen: list[Facts] = []

    def examine(facts: Facts) -> list[Finding]:
        seen.append(facts)
        return list(findings)

    monkeypatch.setattr(command, "examine", examine)
    return seen


def _run(home: Path, *more: str) -> tuple[str, BaseException | None]:
    arguments = ["doctor", "--home", str(home), "--cache", str(home / "cache"), *more]
    result = CliRunner().invoke(app, arguments)
    return result.stdout, result.exception


def _parsed(text: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(text)
    return rows


def test_the_table_and_what_follows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _plant(monkeypatch, ERROR, WARNING, GOOD)
    text, error = _run(tmp_path)
    assert isinstance(error, HostError)
    assert "found 1 error" in error.message
    rows = [line for line in text.splitlines() if line.startswith("│")]
    assert [row.split("│")[1].strip() for row in rows] == ["ERROR", "warning", "ok"]
    assert all("[[node]] of" in row for row in rows)
    for row in (ERROR, WARNING):
        for part in (row.why, row.fix, row.source):
            assert part in text
    assert GOOD.why not in text
    assert "1 error, 1 warning, 1 ok" in text


def test_json_is_a_list_of_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _plant(monkeypatch, WARNING, GOOD)
    text, error = _run(tmp_path, "--json")
    assert error is None
    rows = _parsed(text)
    assert [row["check"] for row in rows] == ["second", "third"]
    assert all(set(row) == KEYS for row in rows)
    assert rows[0]["severity"] == "warning"
    assert rows[0]["ok"] is False


@pytest.mark.parametrize(
    ("findings", "code"),
    [((ERROR, GOOD), 5), ((WARNING, GOOD), 0), ((GOOD,), 0), ((WARNING, ERROR), 5)],
)
def test_the_exit_code(
    findings: tuple[Finding, ...],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _plant(monkeypatch, *findings)
    with pytest.raises(SystemExit) as stopped:
        main(["doctor", "--home", str(tmp_path), "--json"])
    assert stopped.value.code == code
    shown = capsys.readouterr()
    assert len(_parsed(shown.out)) == len(findings)
    assert ("error:" in shown.err) == (code == 5)


def test_options_reach_the_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (seen,) = [_plant(monkeypatch, GOOD)]
    _run(tmp_path, "--deep")
    home = tmp_path / "other"
    _run(home)
    assert [facts.deep for facts in seen] == [True, False]
    assert seen[0].home == tmp_path
    assert seen[0].cache == tmp_path / "cache"
    assert seen[1].command("down") == f"boardcluster down --home {home}"


def test_the_default_cluster_needs_no_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "CLUSTER", "CACHE"):
        monkeypatch.delenv(f"BOARDCLUSTER_{name}", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    seen = _plant(monkeypatch, GOOD)
    runner = CliRunner()
    runner.invoke(app, ["doctor"])
    runner.invoke(app, ["doctor", "--cluster", "lab"])
    assert seen[0].command("up", fetches=True) == "boardcluster up"
    assert seen[1].command("up", fetches=True) == "boardcluster up --cluster lab"
    assert seen[1].home == tmp_path / "boardcluster" / "lab"


# Boards and repairs

REPAIR = ("timedatectl", "set-ntp", "true")


def _plant_boards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, mended: bool) -> FakeRemote:
    """A board whose clock nothing keeps; looked at again, it is kept if ``mended``."""
    sick = replace(WARNING, node="pi1", repair=REPAIR)
    looks = [[ERROR, sick, GOOD], [GOOD] if mended else [sick]]
    remote = FakeRemote("pi1")
    monkeypatch.setattr(command, "gather_facts", lambda home, **_: _facts(home))
    monkeypatch.setattr(command, "_boards_of", lambda facts: {"pi1": remote})
    monkeypatch.setattr(command, "ask_boards", lambda facts, remotes: facts)
    monkeypatch.setattr(command, "examine", lambda facts: looks.pop(0))
    return remote


def _facts(home: Path) -> Facts:
    spec = propose_cluster(
        name="test",
        workers=1,
        host_cores=2,
        host_available_bytes=8 * 2**30,
        engines="hadoop-3.4.2-spark-4.1.4",
        profile="default",
        subnet="198.18.0.0/24",
    )
    return Facts(machine=FakeMachine(), home=home, cache=home, options=" -c x", spec=spec)


def test_boards_are_looked_at_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = _plant_boards(monkeypatch, tmp_path, mended=False)
    text, error = _run(tmp_path)
    assert isinstance(error, HostError)
    assert "`boardcluster doctor -c x --fix` can do 1 repair for you" in text
    assert remote.calls == []


def test_repairs_are_run_and_then_it_looks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = _plant_boards(monkeypatch, tmp_path, mended=True)
    remote.tell(*REPAIR)
    text, error = _run(tmp_path, "--fix", "--yes", "--json")
    assert error is None
    assert remote.calls == [REPAIR]
    assert [row["check"] for row in _parsed(text)] == ["third"]


def test_a_repair_that_fails_is_said_and_the_fault_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = _plant_boards(monkeypatch, tmp_path, mended=False)
    remote.tell(*REPAIR, returncode=1)
    arguments = ["doctor", "--home", str(tmp_path), "--fix", "--yes"]
    result = CliRunner().invoke(app, arguments)
    assert "pi1: failed: timedatectl set-ntp true" in result.stderr
    assert "because of second" in result.stdout


def test_nothing_is_mended_while_another_driver_is_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = _plant_boards(monkeypatch, tmp_path, mended=True)
    remote.tell(*REPAIR)
    with driver_lock(tmp_path, doing="up"):
        _, error = _run(tmp_path, "--fix", "--yes")
    assert isinstance(error, LockedError)
    assert "boardcluster up" in error.message
    assert remote.calls == []


def test_nothing_is_mended_on_boards_of_another_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, view: Facts
) -> None:
    remote = _plant_boards(monkeypatch, tmp_path, mended=True)
    remote.tell(*REPAIR)
    monkeypatch.setattr(command, "gather_facts", lambda home, **_: replace(view, home=home))
    asked = []

    def refuse(home: Path, boards: Sequence[NodeSpec]) -> None:
        asked.append((home, boards))
        raise LockedError("these boards belong to the cluster of another driver")

    monkeypatch.setattr(command, "require_own_boards", refuse)
    _, error = _run(tmp_path, "--fix", "--yes")
    assert isinstance(error, LockedError)
    of_repairs = [node for node in view.declared.nodes if node.name == "pi1"]
    assert asked == [(tmp_path, of_repairs)], "another board may refuse us"
    assert remote.calls == []


def test_nothing_is_mended_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = _plant_boards(monkeypatch, tmp_path, mended=False)
    _, error = _run(tmp_path, "--fix")
    assert isinstance(error, UsageError)
    assert error.hint == "add --yes"
    assert remote.calls == []


@pytest.mark.parametrize(("answer", "calls"), [("y", [REPAIR]), ("n", [])])
def test_each_repair_is_asked_about(
    answer: str, calls: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = _plant_boards(monkeypatch, tmp_path, mended=True)
    remote.tell(*REPAIR)
    asked = []

    def confirm(text: str, **_: Any) -> bool:
        asked.append(text)
        return answer == "y"

    monkeypatch.setattr("typer.confirm", confirm)
    monkeypatch.setattr(command, "_can_ask", lambda: True)
    _run(tmp_path, "--fix")
    assert remote.calls == calls
    assert "as root on pi1: timedatectl set-ntp true" in asked[0]


def test_nothing_to_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _plant(monkeypatch, WARNING, GOOD)
    result = CliRunner().invoke(app, ["doctor", "--home", str(tmp_path), "--fix"])
    assert "no fault was found that can be repaired automatically" in result.stderr
    assert result.exit_code == 0


def test_this_machine_as_it_is_and_nothing_is_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    with pytest.raises(SystemExit) as stopped:
        main(["doctor", "--home", str(home), "--cache", str(tmp_path / "cache"), "--json"])
    rows = _parsed(capsys.readouterr().out)
    assert {row["check"] for row in rows} == {
        name for name in check_names() if load_check(name).where not in (Where.BOARDS, Where.LOCAL)
    }
    assert not [row for row in rows if "this check itself failed" in row["seen"]]
    errors = [row for row in rows if not row["ok"] and row["severity"] == "error"]
    assert stopped.value.code == (5 if errors else 0)
    assert list(tmp_path.iterdir()) == []
