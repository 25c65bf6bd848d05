"""Numbers of the report, computed again from the raw store by other means.

Nothing of ``boardcluster.analysis`` is used here: rows come from SQLite by plain SQL, statistics
from the standard library and SciPy's own functions.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sqlite3
import statistics
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from scipy import stats
from tests.unit.report.stored import Run, fill

from boardcluster import api
from boardcluster.records import AttemptState, Engine, Verdict

MAPREDUCE, SPARK = Engine.MAPREDUCE, Engine.SPARK
SIZE_BYTES = 64_000_000

_TIMES = {
    (MAPREDUCE, 1): (80.2, 82.9, 81.1, 84.0, 79.4),
    (MAPREDUCE, 2): (47.3, 45.9, 48.8, 46.2, 47.9),
    (MAPREDUCE, 4): (29.9, 31.2, 30.4, 29.1, 30.8),
    (SPARK, 1): (61.0, 58.7, 60.2, 63.1, 59.5),
    (SPARK, 2): (34.1, 36.0, 35.2, 33.9, 34.7),
    (SPARK, 4): (21.7, 23.0, 22.2, 22.9, 21.4),
}
_WATTS = {1: 9.5, 2: 15.25, 4: 27.5}


class _Tables(HTMLParser):
    """Every table of a page as rows of ``data-label`` to text, by its caption."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[dict[str, str]]] = {}
        self._caption = ""
        self._in_caption = False
        self._label: str | None = None
        self._row: dict[str, str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag == "figcaption":
            self._caption, self._in_caption = "", True
        elif tag == "table":
            self.tables[self._caption.strip()] = []
        elif tag == "tr":
            self._row = {}
        elif tag in ("td", "th") and "data-label" in known:
            self._label = known["data-label"] or ""
            if self._row is not None:
                self._row[self._label] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "figcaption":
            self._in_caption = False
        elif tag in ("td", "th"):
            self._label = None
        elif tag == "tr" and self._row:
            self.tables[self._caption.strip()].append(self._row)
            self._row = None

    def handle_data(self, data: str) -> None:
        if self._in_caption:
            self._caption += data
        elif self._label is not None and self._row is not None:
            self._row[self._label] += data


class _Shown:
    """A report that was written, and the raw rows that it was made of."""

    def __init__(self, home: Path, folder: Path) -> None:
        written = api.report(home=home, out=folder)
        html, markdown = written.html, written.markdown
        self.folder = folder
        self.html = html.read_text(encoding="utf-8")
        self.markdown = markdown.read_text(encoding="utf-8")
        self.tables = _Tables(self.html).tables
        connection = sqlite3.connect(home / "store.sqlite")
        connection.row_factory = sqlite3.Row
        self.rows = connection.execute(
            "SELECT t.engine, t.workers, t.size_bytes, m.duration_seconds, m.input_bytes, m.energy"
            " FROM measurements m JOIN trials t ON t.id = m.trial_id"
            " JOIN attempts a ON a.trial_id = m.trial_id AND a.number = m.number"
            " WHERE a.state = 'ok' AND m.verdict = 'valid'"
        ).fetchall()
        connection.close()

    def table(self, words: str) -> list[dict[str, str]]:
        [rows] = [rows for caption, rows in self.tables.items() if words in caption]
        return rows

    def row(self, words: str, engine: str, workers: int) -> dict[str, str]:
        [row] = [
            row
            for row in self.table(words)
            if row["Engine"] == engine
            and str(workers) in (row.get("Workers", ""), _workers(row.get("Configuration", "")))
        ]
        return row

    def seconds(self, engine: Engine, workers: int) -> list[float]:
        return [row["duration_seconds"] for row in self._of(engine, workers)]

    def energies(self, engine: Engine, workers: int) -> list[float]:
        return [json.loads(row["energy"])["energy_joules"] for row in self._of(engine, workers)]

    def _of(self, engine: Engine, workers: int) -> list[sqlite3.Row]:
        return [row for row in self.rows if row["engine"] == engine and row["workers"] == workers]

    def csv(self, name: str) -> list[dict[str, str]]:
        with (self.folder / "data" / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))


def _workers(configuration: str) -> str:
    found = re.search(r"(\d+) workers?", configuration)
    return found[1] if found else ""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> _Shown:
    """A campaign over engines and numbers of workers, in mixed order, with what must stay out."""
    runs = [
        Run(
            engine=engine,
            seconds=times[repetition],
            workers=workers,
            joules=times[repetition] * _WATTS[workers],
            more={"intermediate_bytes": 3 * SIZE_BYTES + repetition},
        )
        for repetition in range(5)
        for (engine, workers), times in _TIMES.items()
    ]
    runs.insert(7, Run(engine=SPARK, seconds=300.0, verdict=Verdict.TAINTED, reason="pi1: hot"))
    runs.append(Run(engine=SPARK, seconds=None, state=AttemptState.FAILED, reason="out of memory"))
    runs.append(
        Run(engine=MAPREDUCE, seconds=None, state=AttemptState.INVALID, reason="pi2 was lost")
    )
    home = tmp_path_factory.mktemp("home")
    fill(home, runs)
    return _Shown(home, home / "report")


CELLS = [pytest.param(engine, workers, id=f"{engine}-{workers}") for engine, workers in _TIMES]
NAMES = {MAPREDUCE: "MapReduce", SPARK: "Spark"}


def _interval(values: list[float]) -> tuple[float, float]:
    spread = statistics.stdev(values) / math.sqrt(len(values))
    low, high = stats.t.interval(0.95, len(values) - 1, statistics.fmean(values), spread)
    return float(low), float(high)


def _span(text: str) -> tuple[float, float]:
    low, high = text.split(" to ")
    return float(low.replace(",", "")), float(high.replace(",", ""))


@pytest.mark.parametrize(("engine", "workers"), CELLS)
def test_means_and_intervals_of_times(shown: _Shown, engine: Engine, workers: int) -> None:
    row = shown.row("TeraSort (64 MB, profile default): results", NAMES[engine], workers)
    values = shown.seconds(engine, workers)
    assert len(values) == 5
    assert row["Runs"] == "5"
    assert float(row["Mean (s)"]) == pytest.approx(statistics.fmean(values), abs=0.051)
    assert float(row["Median (s)"]) == pytest.approx(statistics.median(values), abs=0.051)
    assert _span(row["95 % interval (s)"]) == pytest.approx(_interval(values), abs=0.051)
    variation = 100 * statistics.stdev(values) / statistics.fmean(values)
    assert float(row["CV"].removesuffix(" %")) == pytest.approx(variation, abs=0.051)
    megabytes = 5 * SIZE_BYTES / sum(values) / 1e6
    assert float(row["MB/s"]) == pytest.approx(megabytes, abs=0.0051)


def _welch(over: list[float], under: list[float]) -> tuple[float, float]:
    """Limits of the ratio of geometric means, with 3 % allowed for either start of the cluster."""
    ones, others = ([math.log(value) for value in values] for values in (over, under))
    parts = [statistics.variance(logs) / len(logs) for logs in (ones, others)]
    total = sum(parts) + 2 * 0.03**2
    degrees = total**2 / sum(part**2 / (len(ones) - 1) for part in parts)
    middle = statistics.fmean(ones) - statistics.fmean(others)
    half = stats.t.ppf(0.975, degrees) * math.sqrt(total)
    return math.exp(middle - half), math.exp(middle + half)


@pytest.mark.parametrize(("engine", "workers"), CELLS)
def test_speed_up_and_efficiency(shown: _Shown, engine: Engine, workers: int) -> None:
    row = shown.row("speed-up and efficiency", NAMES[engine], workers)
    base, values = shown.seconds(engine, 1), shown.seconds(engine, workers)
    speed_up = statistics.fmean(base) / statistics.fmean(values)
    assert float(row["Speed-up"]) == pytest.approx(speed_up, abs=0.0051)
    percent = 100 * speed_up / workers
    assert float(row["Efficiency"].removesuffix(" %")) == pytest.approx(percent, abs=0.51)
    if workers > 1:
        expected = _welch(base, values)
        assert _span(row["95 % interval of speed-up"]) == pytest.approx(expected, abs=0.0051)


def test_the_ratio_of_engines_is_that_of_their_pairs(shown: _Shown) -> None:
    [row] = [
        row
        for row in shown.table("effect of changing one factor")
        if row["What differs"] == "engine" and "2 workers" in row["In common"]
    ]
    slow, fast = shown.seconds(MAPREDUCE, 2), shown.seconds(SPARK, 2)
    logs = [math.log(one / other) for one, other in zip(slow, fast, strict=True)]
    low, high = (math.exp(edge) for edge in _interval(logs))
    assert (row["Faster"], row["Slower"]) == ("Spark", "MapReduce")
    assert float(row["Times as fast"]) == pytest.approx(
        math.exp(statistics.fmean(logs)), abs=0.0051
    )
    assert _span(row["95 % interval"]) == pytest.approx((low, high), abs=0.0051)


@pytest.mark.parametrize(("engine", "workers"), CELLS)
def test_energy(shown: _Shown, engine: Engine, workers: int) -> None:
    row = shown.row("energy and performance per watt", NAMES[engine], workers)
    joules, seconds = shown.energies(engine, workers), shown.seconds(engine, workers)
    gigabytes = SIZE_BYTES / 1e9
    assert row["How"].startswith("metered")

    def close(text: str, expected: float) -> None:
        assert float(text.replace(",", "")) == pytest.approx(expected, rel=1e-3)

    close(row["Energy (J)"], statistics.fmean(joules))
    close(row["J/GB"], statistics.fmean(value / gigabytes for value in joules))
    per_watt = [
        gigabytes / time / (value / time) for value, time in zip(joules, seconds, strict=True)
    ]
    close(row["(MB/s)/W"], 1000 * statistics.fmean(per_watt))
    low, high = _span(row["95 % interval of J"])
    assert (low, high) == pytest.approx(_interval(joules), rel=1e-3)
    close(row["Power (W)"], _WATTS[workers])


def test_data_files_hold_the_same_numbers(shown: _Shown) -> None:
    rows = shown.csv("workload-terasort-workers")
    assert len(rows) == len(_TIMES)
    for row in rows:
        values = shown.seconds(Engine(row["engine"]), int(row["workers"]))
        assert float(row["mean_seconds"]) == pytest.approx(statistics.fmean(values), rel=1e-9)
        span = (float(row["low_seconds"]), float(row["high_seconds"]))
        assert span == pytest.approx(_interval(values), rel=1e-8)
    runs = shown.csv("workload-terasort-runs")
    stored = sorted(row["duration_seconds"] for row in shown.rows)
    valid = [row for row in runs if row["state"] == "ok" and row["verdict"] == "valid"]
    assert sorted(float(row["duration_seconds"]) for row in valid) == stored
    assert len(runs) == len(stored) + 3


def test_what_stays_out_is_counted(shown: _Shown) -> None:
    assert (
        "Of 33 attempts, 30 are valid, 1 is tainted, 1 is invalid and 1 failed; 30 count."
        in shown.markdown
    )
    assert "300" not in json.dumps(shown.table("results by engine")[-1])


def test_the_page_and_the_markdown_say_the_same(shown: _Shown) -> None:
    def cells(row: dict[str, Any]) -> list[str]:
        return [text.replace("\N{NO-BREAK SPACE}", " ") for text in row.values()]

    plain = shown.markdown.replace("\\", "")
    for caption, rows in shown.tables.items():
        if "results by engine" in caption or "speed-up" in caption:
            for row in rows:
                assert "| " + " | ".join(cells(row)) + " |" in plain
