"""Words of others through every output: they come out as text, and nothing obeys them."""

from __future__ import annotations

import csv
import importlib
import io
import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.builders import make_campaign, make_measurement, make_probe_run, make_trial, store_run
from tests.unit.cli.stocked import FINGERPRINT, samples
from typer.testing import CliRunner
from typer.testing import Result as Ran

from boardcluster.cli import doctor
from boardcluster.cli import status as status_command
from boardcluster.cli.app import app
from boardcluster.cli.console import Reporter, make_console, print_table, show_error
from boardcluster.cli.show_probes import print_probe_runs
from boardcluster.cli.show_progress import progress_picture
from boardcluster.doctor import Finding, Severity
from boardcluster.errors import RunError
from boardcluster.foreign import visible
from boardcluster.queries.progress import progress_of
from boardcluster.records import AttemptState, ProbeFigure, Security, Verdict
from boardcluster.services.status import DaemonView, Status
from boardcluster.store import Store

WORDS = {
    "closing tag": "failed in [/var/log/hadoop]",
    "opening tag": "[connected to 10.0.0.7] lost",
    "style": "[bold red]board[/bold red]",
    "emoji": "pool :cd: of :warning: b",
    "window title": "\x1b]0;owned\x07end",
    "clear screen": "\x1b[2Jend",
    "single control": "\x9b31mend",
    "backspaces": "bad\x08\x08\x08good\rbest",
    "direction": "\u202egnp.exe\u2066",
    "formula": '=HYPERLINK("http://198.18.0.1","x")',
    "sum": "+1+cmd|' /C calc'!A0",
    "at": "@SUM(1)",
    "script": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "LaTeX": r"\input{/etc/passwd} $x^2$ & 100 % #1 ~ {",
    "Markdown": "| [here](http://198.18.0.1) `code` # *x*",
    "no text": "name-\udcff",
}
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.fixture(params=list(WORDS.values()), ids=list(WORDS))
def word(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def stocked(home: Path, word: str) -> Path:
    """A home in which everything that others may name has that name."""
    trials = [
        make_trial(
            "grep",
            id=f"c-{number}",
            campaign_id="c",
            position=number,
            parameters={"grep.pattern": word},
            size_bytes=1000,
        )
        for number in range(3)
    ]
    campaign = make_campaign(id="c", name=word, cluster=word, dataset=word, dataset_source=word)
    judged: dict[str, Any] = {
        "verdict": Verdict.TAINTED,
        "verdict_reasons": (word,),
        "remarks": (word,),
    }
    with Store.open(home) as store:
        store.add_campaign(campaign, trials)
        for trial, seconds in zip(trials[:2], (20.0, 22.0), strict=True):
            measured = make_measurement(seconds, **judged)
            store_run(
                store, trial, measured, fingerprint=FINGERPRINT, telemetry=samples(), reason=word
            )
        store_run(store, trials[2], fingerprint=FINGERPRINT, state=AttemptState.FAILED, reason=word)
    return home


def kept(word: str) -> str:
    """What the store keeps of a word: what is no text is written out."""
    return word.encode("utf-8", "backslashreplace").decode()


def run(home: Path, *words: str) -> Ran:
    return CliRunner().invoke(app, [words[0], "--home", str(home), *words[1:]])


def squeezed(text: str) -> str:
    """Text without what a table or a page puts between words."""
    return re.sub(r"[\s│]", "", text)


def check(shown: str, word: str) -> None:
    assert OBEYED.search(shown) is None
    assert squeezed(visible(word)) in squeezed(shown)


def test_results_and_telemetry(word: str, tmp_path: Path) -> None:
    home = stocked(tmp_path, word)
    for arguments in (("results",), ("telemetry", "c-0/1"), ("results", "--tainted")):
        ran = run(home, *arguments)
        assert ran.exit_code == 0, ran.output
        assert OBEYED.search(ran.output) is None
        if "\t" not in word:
            assert squeezed(visible(word))[:9] in squeezed(ran.output)
    rows = json.loads(run(home, "results", "--json").stdout)["results"]
    assert kept(word) in [row["attempt"]["reason"] for row in rows]


def test_tables_lines_and_progress(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_table(word, [word], [[word]])
    shown = capsys.readouterr().out
    check(shown, word)
    assert squeezed(shown).count(squeezed(visible(word))) == 3
    for terminal in (True, False):
        made, out = Reporter(), io.StringIO()
        made._console = Console(file=out, force_terminal=terminal, width=200, highlight=False)
        with made.following():
            made.line(word)
            made.progress(word, 1, 0)
            made.progress(f"{word} again", 1, 20_000)
        own = re.sub(r"\x1b\[[0-9?;]*[A-Za-z]|\r", "", out.getvalue())
        check(own, word)
        assert squeezed(own).count(squeezed(visible(word))) >= 3
    show_error(RunError(word, hint=word))
    check(capsys.readouterr().err, word)


def test_the_picture_of_a_campaign(word: str, tmp_path: Path) -> None:
    from datetime import UTC, datetime

    seen = progress_of(stocked(tmp_path, word), "c")
    assert seen is not None
    console = make_console(width=400)
    with console.capture() as captured:
        console.print(progress_picture(seen, "", datetime.now(UTC)))
    check(captured.get(), word)


def test_status_doctor_and_probes(
    word: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = Finding(
        check="c", severity=Severity.ERROR, ok=False, seen=word, why=word, fix=word, source=word
    )
    doctor._print_findings([finding], fixing="boardcluster doctor --fix")
    check(capsys.readouterr().out, word)

    figure = ProbeFigure(name="stream_copy_bytes_per_second", value=9.8e9, conditions={"a": word})
    print_probe_runs(
        [make_probe_run(hardware=word, reason=word, figures=(figure,), verdict_reasons=(word,))]
    )
    check(capsys.readouterr().out, word)

    daemon = DaemonView(
        node=word,
        name=word,
        url=word,
        log=word,
        address=word,
        pid=1,
        alive=False,
        resident_bytes=1,
        proportional_bytes=1,
    )
    seen = Status(
        phase="up",
        daemons=(daemon,),
        health=None,
        workers=1,
        profile=word,
        engines=word,
        browsable=True,
        kind="boards",
        security=Security.CLOSED,
        unreachable=(word,),
    )
    monkeypatch.setattr(status_command, "status", lambda *_, **__: seen)
    ran = run(Path("/nowhere"), "status")
    assert ran.exit_code == 0, ran.output
    check(ran.output, word)


def test_exports(word: str, tmp_path: Path) -> None:
    home = stocked(tmp_path / "home", word)
    shown = run(home, "export", "--format", "csv").stdout
    assert OBEYED.search(shown) is None
    head, *rows = csv.reader(io.StringIO(shown))
    assert len(rows) == 3
    for row in rows:
        named = dict(zip(head, row, strict=True))
        assert named["reason"].removeprefix("'") == visible(word)
        assert all(cell == "-" or cell[:1] not in {"=", "@", "\t", "+"} for cell in row)
    first = dict(zip(head, rows[0], strict=True))
    assert float(first["duration_seconds"]) == 20.0

    found = run(home, "export", "--format", "json").stdout
    assert OBEYED.search(found) is None
    assert {row["reason"] for row in json.loads(found)["rows"]} == {kept(word)}

    tables = tmp_path / "latex"
    ran = run(home, "export", "--format", "latex", "--tainted", "--output", str(tables))
    assert ran.exit_code == 0, ran.output
    for path in tables.glob("*.tex"):
        text = path.read_text()
        assert not re.search(r"\\input|[^\\]\$x\^", text)
        assert OBEYED.search(text) is None


def test_reports_and_comparisons(word: str, tmp_path: Path) -> None:
    home = stocked(tmp_path / "home", word)
    out = tmp_path / "report"
    ran = run(home, "report", "--output", str(out), "--tainted")
    assert ran.exit_code == 0, ran.output
    page = (out / "report.html").read_text()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    for path in out.rglob("*.*"):
        if path.suffix in {".html", ".md", ".csv", ".tex"}:
            assert OBEYED.search(path.read_text()) is None, path
    ran = run(home, "compare", f"{home}@c", f"{home}@c", "--tainted")
    assert OBEYED.search(ran.output) is None
    assert ran.exit_code != 70, ran.output


def test_a_bug_of_ours_is_reported_without_obeying_it(
    word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = importlib.import_module("boardcluster.cli.app")

    def fail(**_: object) -> None:
        raise RuntimeError(word)

    monkeypatch.setattr(program, "app", fail)
    with pytest.raises(SystemExit, match="70"):
        program.main([])
    check(capsys.readouterr().err, word)


def test_every_control_character_is_written_out() -> None:
    every = "".join(map(chr, range(0x2100))) + "\ud800"
    kept = {"\t", "\n"}
    left = [c for c in visible(every) if unicodedata.category(c) in {"Cc", "Cs"}]
    assert set(left) == kept
