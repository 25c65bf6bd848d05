"""Runs and what they came to, in words."""

from __future__ import annotations

from boardcluster.analysis.cells import verdict_of
from boardcluster.factors import settings_words
from boardcluster.records import AttemptState, Result, Trial, Verdict
from boardcluster.units import format_bytes, format_count

__all__ = ["outcome_words", "trial_title"]

_VERDICTS = {
    Verdict.VALID: "can be trusted",
    Verdict.TAINTED: "was disturbed",
    Verdict.INVALID: "cannot be trusted",
    Verdict.UNJUDGED: "was not judged",
}


def trial_title(trial: Trial) -> str:
    """Name a trial by what it runs and by what is not as usual."""
    if trial.workload == "submit":
        program = trial.arguments[0].rpartition("/")[2] if trial.arguments else "a program"
        words = f"{program} on {trial.engine.own_name}"
    else:
        words = f"{trial.workload} on {trial.engine.own_name}"
    if trial.size_bytes:
        words += f", {format_bytes(trial.size_bytes)}"
    words += f", {format_count(trial.workers, 'worker')}"
    words += "".join(f", {key} {value}" for key, value in sorted(trial.parameters.items()))
    words += f", {settings_words(trial.settings)}" if trial.settings else ""
    return words + (", warm-up" if trial.warm_up else "")


def outcome_words(result: Result) -> str:
    """Say in a sentence what an attempt came to."""
    attempt, measured = result.attempt, result.measurement
    if attempt is None:
        return "It has not run yet."
    if attempt.state is AttemptState.RUNNING:
        return "It is running."
    if measured is None or attempt.state is not AttemptState.OK:
        failed = attempt.state is AttemptState.FAILED
        what = "It failed" if failed else "It is invalid"
        if measured is not None:
            took = f"{measured.duration_seconds:.1f} s"
            what = f"It failed after {took}" if failed else f"It took {took} and is invalid"
        return f"{what}: {attempt.reason or 'no reason was recorded'}."
    proof = measured.verification
    words = f"It took {measured.duration_seconds:.1f} s"
    if proof is not None:
        verb = "was" if proof.records == 1 else "were"
        words += f"; {format_count(proof.records, 'record')} {verb} verified"
    verdict = verdict_of(result)
    if verdict is not Verdict.UNJUDGED:
        words += f"; it {_VERDICTS[verdict]}"
    if reason := next(filter(None, measured.verdict_reasons), ""):
        words += f", because {reason}"
    return words + "."
