"""Speed of predictions, and predictions against real emulated clusters. How to run: README.md here.

    benchmarks/predict.py speed
    benchmarks/predict.py live --home FOLDER [--size 256MB] [--only wordcount-spark] [--table]

``speed``: a prediction from a store with 10,000 runs within 0.3 s, beyond the start of Python and
the loading of modules; 40,000 questions within 1 s; all backtests within 20 s. Ends with status 1
if a median misses its target.

``live``: three workloads on two engines. Each runs on 1 and on 2 workers at half the size; then 4
workers at the full size are predicted, and run. It goes on where it was stopped: a cell that is in
the store is not run again, and its prediction, made before, is kept in predictions.json. With
``--table`` it only prints what there is. It needs a quiet machine, and the time of 18 runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
from store import FINGERPRINT, MEASUREMENT, plan, row, timed

import boardcluster as bc
from boardcluster.catalog.lookup import entry_names
from boardcluster.plan.asking import predict_question
from boardcluster.plan.hardware import OWN_HARDWARE, board_rates, medium_rates
from boardcluster.plan.learning import learn
from boardcluster.plan.model import predict_many
from boardcluster.plan.question import Question, QuestionBatch
from boardcluster.plan.scoreboard import published_scoreboard
from boardcluster.records import AttemptState, Engine
from boardcluster.store import Store
from boardcluster.units import parse_size

WORKLOADS = ("wordcount", "terasort", "grep")
ENGINES = ("mapreduce", "spark")
LEARNED = ((1, 0.5), (2, 0.5))
"""Workers, and the share of the size."""
ASKED = (4, 1.0)
RUNS = 10_000
MEDIAN_GOAL = 0.12


def many(count: int) -> QuestionBatch:
    """Return questions over every board and medium and up to 1,000 workers."""
    random = np.random.default_rng(1)
    boards, media = entry_names("boards"), entry_names("media")
    return QuestionBatch(
        workload="terasort",
        engine=Engine.SPARK,
        boards=boards,
        media=media,
        size_bytes=np.full(count, 4e9),
        workers=random.integers(1, 1000, count).astype(float),
        board=random.integers(0, len(boards), count),
        medium=random.integers(0, len(media), count),
        replication=np.full(count, 3.0),
        link_bits_per_second=np.full(count, 1e9),
        slots=np.zeros(count),
    )


def stocked(home: Path) -> None:
    """Fill a store with runs of one workload on one engine: all of them are candidates."""
    campaign, trials = plan(0)
    with Store.open(home) as store:
        store.add_campaign(campaign, trials)
        for trial in trials:
            attempt = store.begin_attempt(trial.id, FINGERPRINT, "2026-08-01T12:00:01+00:00")
            store.finish(
                attempt,
                state=AttemptState.OK,
                reason="",
                ended_utc="2026-08-01T12:00:31+00:00",
                measurement=MEASUREMENT,
            )


def speed(runs: int) -> bool:
    """Time predictions; return whether all targets were met."""
    print("| what | median | range | runs | target |\n|---|---|---|---|---|")
    question = Question(
        workload="wordcount",
        engine=Engine.SPARK,
        size_bytes=512_000_000,
        workers=4,
        board=OWN_HARDWARE,
        medium=OWN_HARDWARE,
    )
    with tempfile.TemporaryDirectory(prefix="boardcluster-predict-") as folder:
        home = Path(folder)
        stocked(home)

        def one() -> None:
            with Store.open(home, read_only=True) as store:
                predict_question(question, store)

        met = [row(f"predict, {RUNS} runs stored", timed(one, runs), 0.3)]
    model = learn(map(board_rates, entry_names("boards")), map(medium_rates, entry_names("media")))
    batch = many(40_000)
    met.append(row("40,000 questions", timed(lambda: predict_many(model, batch), runs), 1.0))
    met.append(row("backtest of all tables", timed(published_scoreboard, runs), 20.0))
    return all(met)


def seconds_of(home: Path, workload: str, engine: str, size: int, workers: int) -> float | None:
    """Return the median time of a cell in the store; None where it did not run."""
    with Store.open(home, read_only=True) as store:
        found = [
            result.measurement.duration_seconds
            for result in store.recent(workload, engine, most=RUNS)
            if result.measurement
            and (result.trial.size_bytes, result.trial.workers) == (size, workers)
        ]
    return statistics.median(found) if found else None


def run_cell(home: Path, workload: str, engine: str, size: int, workers: int) -> float:
    """Return the time of a cell; run it where the store has none."""
    known = seconds_of(home, workload, engine, size, workers)
    if known is not None:
        return known
    name = f"{workload}-{engine}-{size}-{workers}"
    path = home / f"{name}.toml"
    path.write_text(
        f'[campaign]\nname = "{name}"\nrepetitions = 1\n\n[[matrix]]\nworkload = "{workload}"\n'
        f'engine = "{engine}"\nsize = {size}\nworkers = {workers}\n'
    )
    print(f"running {name}", file=sys.stderr, flush=True)
    bc.open(home=home).run(path, resume=True)
    done = seconds_of(home, workload, engine, size, workers)
    if done is None:
        sys.exit(f"{name} gave no valid run: see `boardcluster results --home {home}`")
    return done


def live(home: Path, size: int, only: str, *, table: bool, tainted: bool) -> bool:
    """Run what is left, and print each prediction beside its run."""
    kept = home / "predictions.json"
    predicted = json.loads(kept.read_text()) if kept.exists() else {}
    errors: list[float] = []
    print("| workload | predicted | 90 % interval | measured | error |\n|---|--:|--:|--:|--:|")
    for workload in WORKLOADS:
        for engine in ENGINES:
            name = f"{workload}-{engine}"
            if only and name != only:
                continue
            workers, share = ASKED
            key, asked = f"{name}-{size}", int(size * share)
            if key not in predicted and not table:
                for few, part in LEARNED:
                    run_cell(home, workload, engine, int(size * part), few)
                answer = bc.predict(
                    workload,
                    engine=engine,
                    size=asked,
                    workers=workers,
                    home=home,
                    tainted=tainted,
                )
                if answer.seconds is None:
                    sys.exit(f"{name}: {answer.unknown[0].words}")
                low, high = answer.seconds.interval.low, answer.seconds.interval.high
                predicted[key] = [answer.seconds.median, low, high]
                kept.write_text(json.dumps(predicted, indent=1))
            if key in predicted and not table:
                run_cell(home, workload, engine, asked, workers)
            measured = seconds_of(home, workload, engine, asked, workers)
            if key in predicted and measured:
                median, low, high = predicted[key]
                errors.append(abs(median / measured - 1))
                print(
                    f"| {name} | {median:.1f} s | {low:.0f} to {high:.0f} | {measured:.1f} s |"
                    f" {100 * (median / measured - 1):+.0f} % |",
                    flush=True,
                )
    if not errors:
        return False
    middle: float = statistics.median(errors)
    print(f"\nmedian error {100 * middle:.0f} % of {len(errors)}; goal {100 * MEDIAN_GOAL:.0f} %")
    return middle <= MEDIAN_GOAL


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["speed", "live"])
    parser.add_argument("--runs", type=int, default=5, help="calls of each kind")
    parser.add_argument("--home", type=Path, help="state folder of the cluster for live")
    parser.add_argument("--size", default="256MB", help="full size of live")
    parser.add_argument("--only", default="", help="one workload and engine of live")
    parser.add_argument("--tainted", action="store_true", help="learn from tainted runs, too")
    parser.add_argument("--table", action="store_true", help="run nothing")
    chosen = parser.parse_args()
    if chosen.what == "speed":
        sys.exit(0 if speed(chosen.runs) else 1)
    if chosen.home is None or not (chosen.home / "cluster.toml").exists():
        sys.exit("live needs --home with a cluster.toml of at least 4 workers")
    good = live(
        chosen.home.absolute(),
        parse_size(chosen.size),
        chosen.only,
        table=chosen.table,
        tainted=chosen.tainted,
    )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
