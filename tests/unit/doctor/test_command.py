"""The command: table, JSON, exit code."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from boardcluster.cli import app, main
from boardcluster.cli import doctor as command
from boardcluster.doctor import Finding, Severity, Surroundings, check_names
from boardcluster.errors import HostError

KEYS = {"check", "severity", "ok", "seen", "why", "fix", "source"}


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


def _plant(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> list[Surroundings]:
    seen: list[Surroundings] = []

    def examine(around: Surroundings) -> list[Finding]:
        seen.append(around)
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
    assert [around.deep for around in seen] == [True, False]
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


def test_this_machine_as_it_is_and_nothing_is_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    with pytest.raises(SystemExit) as stopped:
        main(["doctor", "--home", str(home), "--cache", str(tmp_path / "cache"), "--json"])
    rows = _parsed(capsys.readouterr().out)
    assert {row["check"] for row in rows} == set(check_names())
    assert not [row for row in rows if "this check failed itself" in row["seen"]]
    errors = [row for row in rows if not row["ok"] and row["severity"] == "error"]
    assert stopped.value.code == (5 if errors else 0)
    assert list(tmp_path.iterdir()) == []
