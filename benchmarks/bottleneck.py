"""How near predicted gains come to true ones, beside predictors that look at nothing.

    benchmarks/bottleneck.py model [--workloads 120] [--without-tasks]
    benchmarks/bottleneck.py live --root DIR [--rounds 5] [--kinds slow,fast] [--minutes 15]

``model``: boards with four cores as a closed queueing network, simulated request by request
(tests/closed_queue.py), so that what a resource twice as fast brings is known. Their samples and
tasks go through the code that judges real boards. Needs no cluster; minutes.

``live``: in each round TeraSort and WordCount run on both engines on every kind of nodes. Emulated
boards: slow.toml and fast.toml (twice the CPU), disk.toml and link.toml (fast.toml with twice the
disk, the link), memory.toml and start.toml (half the memory, half as many heartbeats); the first
four once more with four cores of half the speed instead of two (four.toml and its kin). Nodes
without limits, whose runs go through the code that judges boards: plain.toml, narrow.toml (half the
link), waiting.toml (half as many heartbeats). Rounds turn their order, so that runs that are
compared lie close together: a pair. As root, on a quiet machine with 2 cores; a kind takes three to
ten minutes. Results are kept in --root, so what was measured is not measured again, and table.md
there is written anew after each kind. With --minutes no kind is begun after so many. Pairs of
earlier sittings, in bottleneck/pairs.json, are part of the table with what was predicted then;
copy pairs.json of --root there to add to them.

Both print the null predictors, "nothing helps" and "the CPU's ratio only", and end with 1 if the
median error is above 10 %, not below that of the best null predictor, or the first resource is
wrong in more than one case of ten. ``live`` ends with 1, too, while pairs are missing.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import statistics
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import commands
from scipy.stats import t as student

from boardcluster.analysis.bottleneck import Bound, PhaseDiagnosis, diagnose
from boardcluster.analysis.bottleneck.limits import node_limits
from boardcluster.records import AttemptState, Fingerprint, Result, Verdict
from boardcluster.store import Store

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' simulation

from tests.closed_queue import RESOURCES, Workload, board_result, simulate, true_gain

FILES = Path(__file__).parent / "bottleneck"
FOUR_CORES = ("four-slow", "four", "four-disk", "four-link")
BOARDS = ("slow", "fast", "disk", "link", "memory", "start", *FOUR_CORES)
KINDS = (*BOARDS, "narrow", "plain", "waiting")
PAIRS = (
    (Bound.CPU, "slow", "fast"),
    (Bound.STORAGE, "fast", "disk"),
    (Bound.NETWORK, "fast", "link"),
    (Bound.MEMORY, "memory", "fast"),
    (Bound.START_UP, "start", "fast"),
    (Bound.CPU, "four-slow", "four"),
    (Bound.STORAGE, "four", "four-disk"),
    (Bound.NETWORK, "four", "four-link"),
    (Bound.NETWORK, "narrow", "plain"),
    (Bound.START_UP, "waiting", "plain"),
)
"""What is faster, and the kinds of nodes without and with it."""
LEAST_PAIRS = 5

ERROR_MOST = 0.10
RIGHT_LEAST = 0.90
SAME_SAVING = 0.02
"""Of the time: two resources that save the same but for so much are both right as the first."""
HELPS = 1.10
"""A true gain of which more than next to nothing is to be predicted."""

RUN_CODES = (0, 9)  # 9: some runs are not ok; they are named in the table


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One resource of one workload."""

    bound: Bound
    """What is twice as fast."""
    truth: float
    """How many times as fast the run then is."""
    predicted: float
    """The same by the diagnosis."""
    low: float
    """At least, by the diagnosis."""
    high: float
    """At most, by the diagnosis."""
    cpu_ratio: float
    """The same by the CPU's ratio only."""


@dataclass(slots=True)
class Score:
    """What was right and what was not."""

    cases: list[Case] = field(default_factory=list)
    firsts: list[bool] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the figures of each predictor."""
        yield "| Predictor | Cases | Median error | Mean error | 90 % of errors below |"
        yield "|---|--:|--:|--:|--:|"
        for title, cases in (
            ("", self.cases),
            (f", true gains of {HELPS:g} and more", [c for c in self.cases if c.truth >= HELPS]),
        ):
            for name, errors in self._errors(cases).items():
                yield f"| {name}{title} | {len(cases)} | {' | '.join(_figures(errors))} |"
        if self.firsts:
            right = 100 * sum(self.firsts) / len(self.firsts)
            yield f"\nThe first resource was right in {right:.0f} % of {len(self.firsts)} runs."
        if self.cases:
            inside = sum(row.low / 1.02 <= row.truth <= row.high * 1.02 for row in self.cases)
            share = 100 * inside / len(self.cases)
            yield f"{share:.0f} % of the true gains lay within the bounds, or within 2 % of them."

    @staticmethod
    def _errors(cases: Sequence[Case]) -> dict[str, list[float]]:
        return {
            "the diagnosis": [abs(row.predicted / row.truth - 1) for row in cases],
            "nothing helps": [abs(1 / row.truth - 1) for row in cases],
            "the CPU's ratio only": [abs(row.cpu_ratio / row.truth - 1) for row in cases],
        }

    def missed(self) -> str:
        """Say which goal was missed; empty if none was."""
        if not self.cases:
            return "nothing was measured"
        ours, *null = (statistics.median(errors) for errors in self._errors(self.cases).values())
        if ours > ERROR_MOST or ours >= min(null):
            best = f"{100 * min(null):.1f} %"
            return f"the median error is {100 * ours:.1f} %, of the best null predictor {best}"
        if self.firsts and sum(self.firsts) < RIGHT_LEAST * len(self.firsts):
            return "the first resource is wrong too often"
        return ""


def _figures(errors: Sequence[float]) -> list[str]:
    if not errors:
        return ["-", "-", "-"]
    late = sorted(errors)[min(len(errors) - 1, math.ceil(0.9 * len(errors)) - 1)]
    values = (statistics.median(errors), statistics.fmean(errors), late)
    return [f"{100 * value:.1f} %" for value in values]


def saving(bound: Bound, gain: float) -> float:
    """What half of a resource gone saves of the time; memory is gone as a whole."""
    return (1 - 1 / gain) / (2 if bound is Bound.MEMORY else 1)


def first_is_right(first: Bound | None, gains: Mapping[Bound, float]) -> bool:
    """Whether nothing saves clearly more than the bound that is named first."""
    saved = {bound: saving(bound, gain) for bound, gain in gains.items()}
    return first is not None and saved.get(first, 0.0) >= max(saved.values()) - SAME_SAVING


# The model


def workloads(count: int, seed: int = 5) -> Iterator[Workload]:
    """Draw what boards do: one to three things besides computing, and how all of it is spread."""
    draw = random.Random(seed)
    for _ in range(count):
        times: dict[str, float] = {"cpu": draw.choice([5, 10, 20, 40, 80])}
        kinds = ["storage", "network", "memory", "other", "written", "start_seconds"]
        for kind in draw.sample(kinds, k=draw.choice([1, 1, 2, 2, 3])):
            waits = [4, 10, 20] if kind == "start_seconds" else [3, 6, 12, 25, 50]
            times[kind] = draw.choice(waits)
        yield Workload(
            **times,  # type: ignore[arg-type]
            tasks=draw.choice([1, 2, 4, 4, 4, 6, 8]),
            disk_servers=draw.choice([1, 1, 32]),
            spread=draw.choice(["exponential", "exponential", "uniform", "constant"]),
            steal=draw.choice([0.0, 0.0, 0.1]),
            nodes=draw.choice([1, 1, 3]),
            seconds=30,
        )


def model(count: int, *, with_tasks: bool) -> Score:
    """Predict and simulate; print the worst cases."""
    score = Score()
    worst: list[tuple[float, str]] = []
    for load in workloads(count):
        telemetry = simulate(load).telemetry
        if not with_tasks:
            telemetry = replace(telemetry, tasks=())
        found = diagnose(board_result(load), telemetry).run
        truths = {Bound(name): true_gain(load, name) for name in RESOURCES if load.uses(name)}
        for bound, truth in truths.items():
            low, high = found.gain_bounds[bound]
            case = Case(
                bound=bound,
                truth=truth,
                predicted=found.gains[bound],
                low=low,
                high=high,
                cpu_ratio=2.0 if bound is Bound.CPU else 1.0,
            )
            score.cases.append(case)
            words = f"{case.predicted:.2f} ({low:.2f} to {high:.2f}) for {truth:.2f}: {bound}"
            worst.append((abs(case.predicted / truth - 1), f"{words} of {load}"))
        score.firsts.append(first_is_right(found.first, truths))
    print("The worst predictions:\n")
    for error, words in sorted(worst, reverse=True)[:8]:
        print(f"- {100 * error:.0f} %: {words}")
    return score


# Live


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A measured run."""

    campaign: str
    """The campaign that it is of."""
    seconds: float
    """How long it took."""
    found: PhaseDiagnosis
    """What bound it."""
    cores: float
    """CPU limit of its boards together, in cores of this machine."""
    doubt: str
    """Why it is not valid; empty if it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two runs of the same, one of them with a resource twice as fast."""

    measured: str
    """The campaigns of both, which no other pair of the same workload and engine has."""
    slow: str
    """The kind of nodes without it."""
    fast: str
    """And with it."""
    cell: str
    """Workload and engine."""
    before_seconds: float
    """How long it took without."""
    then_seconds: float
    """And with it."""
    share: float
    """Of the time without, what the resource had."""
    predicted: float
    """How many times as fast it would be, by the run without."""
    low: float
    """At least."""
    high: float
    """At most."""
    cores_ratio: float
    """CPU limit with, divided by that without; 1 where there is none."""
    first: str
    """What the run without names first."""
    doubts: tuple[str, ...]
    """Why either is not valid."""

    @classmethod
    def of(cls, kinds: tuple[Bound, str, str], cell: str, one: Run, two: Run) -> Pair:
        """Compare two runs on the kinds of a row of ``PAIRS``."""
        bound, slow, fast = kinds
        low, high = one.found.gain_bounds.get(bound, (1.0, 1.0))
        return cls(
            measured=f"{one.campaign} {two.campaign}",
            slow=slow,
            fast=fast,
            cell=cell,
            before_seconds=one.seconds,
            then_seconds=two.seconds,
            share=one.found.shares.get(bound, 0.0),
            predicted=one.found.gains.get(bound, 1.0),
            low=low,
            high=high,
            cores_ratio=two.cores / one.cores if one.cores else 1.0,
            first=str(one.found.first or ""),
            doubts=tuple(
                f"{cell}, {kind}: {run.doubt}"
                for kind, run in ((slow, one), (fast, two))
                if run.doubt
            ),
        )


def measure(root: Path, rounds: int, kinds: Sequence[str], until: float) -> None:
    """Run what is missing: every kind of boards once in each round, in turned order."""
    for turn in range(rounds):
        for name in KINDS if turn % 2 == 0 else reversed(KINDS):
            home = root / name
            if name not in kinds or (home.exists() and len(_rounds(name, home)) > turn):
                continue
            if time.monotonic() > until:
                return
            home.mkdir(parents=True, exist_ok=True)
            try:
                file = FILES / f"{name}.toml"
                if name not in BOARDS:
                    shutil.copy(file, home / "cluster.toml")
                twin = ("--twin", str(file)) if name in BOARDS else ()
                commands.run(home, "up", *twin, "--home", str(home), stdout=sys.stderr)
                campaign = str(FILES / "campaign.toml")
                words = ("run", campaign, "--new", "--yes")
                commands.run(home, *words, codes=RUN_CODES, stdout=sys.stderr)
            finally:
                commands.run(home, "down", "--wipe", stdout=sys.stderr)
            show(root, rounds)


def _rounds(name: str, home: Path) -> list[dict[str, Run]]:
    """The runs of each round of a kind that has ended, by workload and engine; only what is ok.

    A round with other settings than the kind's file now has counts for nothing, but keeps its
    place: rounds of different kinds are pairs by their number.
    """
    found: list[dict[str, Run]] = []
    settings = tomllib.loads((FILES / f"{name}.toml").read_text()).get("settings", {})
    ended = (AttemptState.OK, AttemptState.FAILED, AttemptState.INVALID)
    with Store.open(home, read_only=True) as store:
        for campaign in store.campaigns():
            if not all(state in ended for state in store.states(campaign.id).values()):
                continue
            rows = [
                row
                for row in store.results()
                if row.trial.campaign_id == campaign.id and row.trial.settings == settings
            ]
            runs = {_words(row): _run(store, row) for row in rows}
            found.append({name: run for name, run in runs.items() if run is not None})
    return found


def _run(store: Store, result: Result) -> Run | None:
    attempt, measurement = result.attempt, result.measurement
    if attempt is None or measurement is None or attempt.state is not AttemptState.OK:
        return None
    telemetry = store.telemetry(attempt)
    if telemetry is None:
        return None
    return Run(
        campaign=result.trial.campaign_id,
        seconds=measurement.duration_seconds,
        found=diagnose(result, telemetry).run,
        cores=_cores(attempt.fingerprint),
        doubt=""
        if measurement.verdict is Verdict.VALID
        else f"{measurement.verdict}: {'; '.join(measurement.verdict_reasons)}",
    )


def _cores(fingerprint: Fingerprint) -> float:
    return sum(row.cpu_cores or 0.0 for row in node_limits(fingerprint).values())


def _words(result: Result) -> str:
    return f"{result.trial.workload}, {result.trial.engine}"


def pairs_of(root: Path) -> list[Pair]:
    """Every pair so far: of earlier sittings, and of this one."""
    earlier = FILES / "pairs.json"
    rows = json.loads(earlier.read_text()) if earlier.exists() else []
    found = [Pair(**{**row, "doubts": tuple(row["doubts"])}) for row in rows]
    known = {(pair.measured, pair.cell) for pair in found}
    measured = {
        name: _rounds(name, root / name) if (root / name).exists() else [] for name in KINDS
    }
    for kinds in PAIRS:
        _, slow, fast = kinds
        for one, two in zip(measured[slow], measured[fast], strict=False):
            every = [Pair.of(kinds, cell, one[cell], two[cell]) for cell in one if cell in two]
            found += [pair for pair in every if (pair.measured, pair.cell) not in known]
    return found


def show(root: Path, rounds: int) -> tuple[Score, list[str]]:
    """Write and print the table of all pairs so far; return its score and what is missing."""
    pairs = pairs_of(root)
    rows = ",\n".join(json.dumps(asdict(pair)) for pair in pairs)
    (root / "pairs.json").write_text(f"[\n{rows}\n]\n")
    score, missing, lines = Score(), [], list(_HEAD)
    gains: dict[str, dict[Bound, float]] = {}
    firsts: dict[str, Bound | None] = {}
    wanted = max(rounds, LEAST_PAIRS)
    for bound, slow, fast in PAIRS:
        of_kinds = [pair for pair in pairs if (pair.slow, pair.fast) == (slow, fast)]
        cells = sorted({pair.cell for pair in of_kinds})
        for cell in cells:
            both = [pair for pair in of_kinds if pair.cell == cell]
            case = _case(bound, both)
            score.cases.append(case)
            base = f"{cell}, {_hardware(slow)}"
            gains.setdefault(base, {})[bound] = case.truth
            newest = both[-1].first
            firsts.setdefault(base, Bound(newest) if newest else None)
            lines.append(_row(base, case, both))
        counts = [sum(pair.cell == cell for pair in of_kinds) for cell in cells]
        if (least := min(counts, default=0)) < wanted:
            missing.append(f"{bound}, {slow} and {fast}: {least} of {wanted} pairs")
    score.firsts = [
        first_is_right(firsts[cell], found) for cell, found in gains.items() if len(found) > 1
    ]
    lines += ["", *score.lines(), ""]
    lines += [f"Not measured yet: {'; '.join(missing)}."] if missing else []
    doubts = dict.fromkeys(words for pair in pairs for words in pair.doubts)
    lines += [f"Not valid: {words}" for words in doubts]
    text = "\n".join(lines)
    (root / "table.md").write_text(text + "\n")
    print(text, flush=True)
    return score, missing


def _hardware(kind: str) -> str:
    if kind in FOUR_CORES:
        return "boards with four cores"
    return "boards" if kind in BOARDS else "without limits"


_HEAD = (
    "| Workload | Faster | Pairs | Before (s) | Then (s) | Share | Predicted | Measured | Error |",
    "|---|---|--:|--:|--:|--:|--:|--:|--:|",
)


def _case(bound: Bound, both: Sequence[Pair]) -> Case:
    logs = [math.log(pair.before_seconds / pair.then_seconds) for pair in both]
    cores = statistics.fmean(pair.cores_ratio for pair in both)
    return Case(
        bound=bound,
        truth=math.exp(statistics.fmean(logs)),
        predicted=statistics.fmean(pair.predicted for pair in both),
        low=statistics.fmean(pair.low for pair in both),
        high=statistics.fmean(pair.high for pair in both),
        cpu_ratio=cores if bound is Bound.CPU else 1.0,
    )


def _row(cell: str, case: Case, both: Sequence[Pair]) -> str:
    logs = [math.log(pair.before_seconds / pair.then_seconds) for pair in both]
    wide = "one pair"
    if len(logs) > 1:
        half = student.ppf(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
        middle = statistics.fmean(logs)
        wide = f"{math.exp(middle - half):.2f} to {math.exp(middle + half):.2f}"
    cells = (
        cell,
        str(case.bound),
        str(len(both)),
        f"{statistics.fmean(pair.before_seconds for pair in both):.1f}",
        f"{statistics.fmean(pair.then_seconds for pair in both):.1f}",
        f"{100 * statistics.fmean(pair.share for pair in both):.0f} %",
        f"{case.predicted:.2f} ({case.low:.2f} to {case.high:.2f})",
        f"{case.truth:.2f} ({wide})",
        f"{100 * (case.predicted / case.truth - 1):+.0f} %",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure what is missing, print the tables, and judge them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parts = parser.add_subparsers(dest="part", required=True)
    simulated = parts.add_parser("model", help="against simulated queues")
    simulated.add_argument("--workloads", type=int, default=120)
    simulated.add_argument("--without-tasks", action="store_true", help="from samples alone")
    real = parts.add_parser("live", help="against emulated boards; as root")
    real.add_argument("--root", type=Path, default=Path("bottleneck-results"))
    real.add_argument("--rounds", type=int, default=LEAST_PAIRS, help="how often all is run")
    real.add_argument("--kinds", default=",".join(KINDS), help="kinds of boards to run")
    real.add_argument("--minutes", type=float, default=math.inf, help="begin none after so many")
    given = parser.parse_args()
    if given.part == "model":
        score = model(given.workloads, with_tasks=not given.without_tasks)
        print("", *score.lines(), sep="\n")
        missing: list[str] = []
    else:
        root = given.root.resolve()
        root.mkdir(parents=True, exist_ok=True)
        until = time.monotonic() + 60 * given.minutes
        measure(root, given.rounds, given.kinds.split(","), until)
        score, missing = show(root, given.rounds)
    if words := score.missed() or "; ".join(missing):
        sys.exit(f"missed: {words}")


if __name__ == "__main__":
    main()
