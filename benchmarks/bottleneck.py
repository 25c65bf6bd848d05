"""How near predicted gains come: one resource of emulated boards twice as fast, and measured again.

    benchmarks/bottleneck.py --root DIR [--runs 2]

Brings up the boards of each file of benchmarks/bottleneck in turn and runs campaign.toml on them:
slow.toml, fast.toml with twice its CPU, and disk.toml and link.toml with twice the disk and the
link of fast.toml. As root, on a quiet machine with 2 cores; a round takes about 15 minutes. What
the samples of the slower ones predict stands beside what was measured, every cell, also the bad
ones. Ends with 1 if the median error is above 15 % or a cell was not measured. Results are kept in
--root, so that what was measured once is not measured again: repeat the command to see the tables.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from boardcluster.analysis.bottleneck import Bound, PhaseDiagnosis, diagnose
from boardcluster.analysis.phases import submissions
from boardcluster.analysis.ratios import Ratio, ratio_of_means
from boardcluster.records import AttemptState, Result, Verdict
from boardcluster.store import Store

CLI = (sys.executable, "-m", "boardcluster")
FILES = Path(__file__).parent / "bottleneck"
KINDS = ("slow", "fast", "disk", "link")
SPED_UP = {
    Bound.CPU: ("slow", "fast"),
    Bound.STORAGE: ("fast", "disk"),
    Bound.NETWORK: ("fast", "link"),
}
"""What is twice as fast on the boards of the second file as on those of the first."""

WHOLE = ""
ERROR_MOST = 0.15
BOUND_SHARE = 0.1
"""Where a resource has less of the time, no gain is predicted and none is easily found."""

RUN_CODES = (0, 9)  # 9: some runs are not ok; they are named in the table


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A run, or one of its submissions.

    Attributes:
        workload: with its engine, in words.
        name: of the submission; empty for the whole run.
        seconds: how long it took.
        found: what bound it.
    """

    workload: str
    name: str
    seconds: float
    found: PhaseDiagnosis


def command(home: Path, *arguments: str, codes: Sequence[int] = (0,)) -> None:
    """Run our own command line on a home; end if it does."""
    env = {**os.environ, "BOARDCLUSTER_HOME": str(home)}
    done = subprocess.run([*CLI, *arguments], stdout=sys.stderr, env=env, check=False)
    if done.returncode not in codes:
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}")


def results(home: Path) -> Iterator[tuple[Result, tuple[Part, ...]]]:
    """Yield every run of a home with its parts; one that is not ok has none."""
    with Store.open(home, read_only=True) as store:
        for result in store.results():
            yield result, tuple(_parts(store, result))


def _parts(store: Store, result: Result) -> Iterator[Part]:
    attempt, measurement = result.attempt, result.measurement
    if attempt is None or measurement is None or attempt.state is not AttemptState.OK:
        return
    telemetry = store.telemetry(attempt)
    if telemetry is None:
        return
    found = diagnose(result, telemetry)
    words = _words(result)
    yield Part(workload=words, name=WHOLE, seconds=measurement.duration_seconds, found=found.run)
    spans = submissions(telemetry.phases)
    if len(spans) > 1:  # else it is the run
        for row in found.phases:
            if row.phase in spans:
                yield Part(workload=words, name=row.phase, seconds=row.duration_seconds, found=row)


def _words(result: Result) -> str:
    return f"{result.trial.workload}, {result.trial.engine}"


def measure(root: Path, runs: int) -> None:
    """Run what is missing: every kind of boards once in each round, in turned order."""
    for turn in range(runs):
        for name in KINDS if turn % 2 == 0 else reversed(KINDS):
            home = root / name
            if home.exists() and _rounds(home) > turn:
                continue
            home.mkdir(parents=True, exist_ok=True)
            command(home, "up", "--twin", str(FILES / f"{name}.toml"), "--home", str(home))
            try:
                command(
                    home, "run", str(FILES / "campaign.toml"), "--new", "--yes", codes=RUN_CODES
                )
            finally:
                command(home, "down", "--wipe")


def _rounds(home: Path) -> int:
    """How many campaigns of a home have no run left to do."""
    with Store.open(home, read_only=True) as store:
        states = [store.states(campaign.id).values() for campaign in store.campaigns()]
    ended = (AttemptState.OK, AttemptState.FAILED, AttemptState.INVALID)
    return sum(all(state in ended for state in row) for row in states)


class Table:
    """The rows of the validation, and what is wrong with them.

    Attributes:
        errors: of every whole run, without sign.
        bound: of those in which the resource had so much of the time that a gain was predicted.
        lost: rows that could not be measured.
    """

    def __init__(self) -> None:
        self.errors: list[float] = []
        self.bound: list[float] = []
        self.lost: list[str] = []

    def row(
        self, key: tuple[str, str], bound: Bound, base: Sequence[Part], fast: Sequence[Part]
    ) -> str:
        """Return a row, and remember its error if it is of a whole run."""
        workload, part = key
        cells = [workload, part or "the run", bound, _seconds(base), _seconds(fast)]
        if not base or not fast:
            self.lost.append(f"{bound} of {workload} {part}".rstrip())
            return _line([*cells, "-", "-", "-", "not measured"])
        share = statistics.fmean(row.found.shares.get(bound, 0.0) for row in base)
        predicted = statistics.fmean(row.found.gains.get(bound, 1.0) for row in base)
        measured = ratio_of_means([row.seconds for row in base], [row.seconds for row in fast])
        error = predicted / measured.value - 1
        if part == WHOLE:
            self.errors.append(abs(error))
            if share >= BOUND_SHARE:
                self.bound.append(abs(error))
        shown = (f"{100 * share:.0f} %", f"{predicted:.2f}", _ratio(measured))
        return _line([*cells, *shown, f"{100 * error:+.0f} %"])


def _seconds(rows: Sequence[Part]) -> str:
    return ", ".join(f"{row.seconds:.1f}" for row in rows) + " s" if rows else "none"


def _ratio(ratio: Ratio) -> str:
    if ratio.interval is None:
        return f"{ratio.value:.2f} ({ratio.reason})"
    return f"{ratio.value:.2f} ({ratio.interval.low:.2f} to {ratio.interval.high:.2f})"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def show(root: Path) -> Table:
    """Print what bound the runs of the base, and every prediction beside its measurement."""
    parts: dict[str, dict[tuple[str, str], list[Part]]] = {}
    for name in KINDS:
        kept = parts.setdefault(name, {})
        for result, found in results(root / name):
            if not found:
                print(f"not measured on {name}: {_words(result)}: {_why(result)}")
            elif result.measurement and result.measurement.verdict is not Verdict.VALID:
                reasons = "; ".join(result.measurement.verdict_reasons)
                print(f"{result.measurement.verdict} on {name}: {_words(result)}: {reasons}")
            for part in found:
                kept.setdefault((part.workload, part.name), []).append(part)
    keys = sorted({key for kept in parts.values() for key in kept})
    for name in ("slow", "fast"):
        _bounds(name, keys, parts[name])
    table = Table()
    print(
        "\n| workload | part | twice as fast | as it was | then | share | predicted "
        "| measured (95 %) | error |\n|---|---|---|--:|--:|--:|--:|--:|--:|"
    )
    for key in keys:
        for bound, (base, fast) in SPED_UP.items():
            print(table.row(key, bound, parts[base].get(key, ()), parts[fast].get(key, ())))
    return table


def _why(result: Result) -> str:
    return f"{result.attempt.state}, {result.attempt.reason}" if result.attempt else "never begun"


def _bounds(
    name: str, keys: Sequence[tuple[str, str]], base: Mapping[tuple[str, str], Sequence[Part]]
) -> None:
    """Print what bound the first run of each part on one kind of boards, and what shows it."""
    print(f"\nWhat bound the first run on {name}.toml:\n")
    print("| workload | part | " + " | ".join(Bound) + " | evidence |")
    print("|---|---|" + "--:|" * len(Bound) + "---|")
    for key in keys:
        for part in base.get(key, ())[:1]:
            shares = [f"{100 * part.found.shares.get(bound, 0.0):.0f} %" for bound in Bound]
            print(_line([key[0], key[1] or "the run", *shares, "; ".join(part.found.evidence)]))


def main() -> None:
    """Measure what is missing, print the tables, and judge them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--root", type=Path, default=Path("bottleneck-results"))
    parser.add_argument("--runs", type=int, default=2, help="how often everything is run")
    given = parser.parse_args()
    root = given.root.resolve()
    measure(root, given.runs)
    table = show(root)
    print(f"\nMedian error of {_median(table.errors)}; of {_median(table.bound)} among them whose")
    print(f"resource had at least {100 * BOUND_SHARE:.0f} % of the time. Asked: at most 15 %.")
    judged = table.bound or table.errors
    if judged and statistics.median(judged) > ERROR_MOST:
        sys.exit(f"missed: the median error is {_median(judged)}")
    if table.lost or not judged:
        sys.exit(f"not measured: {'; '.join(table.lost) or 'anything'}")


def _median(errors: Sequence[float]) -> str:
    if not errors:
        return "no predictions"
    return f"{len(errors)} predictions: {100 * statistics.median(errors):.0f} %"


if __name__ == "__main__":
    main()
