"""One row for each run, whatever its state; and one for each meter of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from boardcluster.analysis import twin_words, verdict_of
from boardcluster.records import (
    Attempt,
    Campaign,
    Energy,
    Fingerprint,
    Measurement,
    Power,
    Result,
    Trial,
    Verification,
)
from boardcluster.report.export.frames import (
    Column,
    Columns,
    Field,
    Frame,
    Kind,
    Value,
    boolean,
    frame_of,
    integer,
    lift,
    number,
    objects,
    text,
)
from boardcluster.report.export.settings import SETTINGS, TEXT_SETTINGS
from boardcluster.report.words import program

__all__ = ["EMULATED", "IDENTITY", "POWER", "RUNS", "TWIN", "Run", "power_frame", "run_frame"]

EMULATED = ("emulated", "whether nodes are namespaces on one machine, not boards")
TWIN = ("twin", "boards that emulated nodes stand for, and the dilation; else empty")


@dataclass(frozen=True, slots=True)
class Run:
    """A trial with its attempt, if it was begun, and its campaign, if that is known."""

    result: Result
    campaign: Campaign | None

    @property
    def emulated(self) -> bool:
        """Whether its nodes are emulated."""
        attempt = self.result.attempt
        planned = self.campaign is not None and self.campaign.emulated
        return planned or (attempt is not None and attempt.fingerprint.emulated)


IDENTITY: Columns[Run] = (
    text("campaign", "id of the campaign", lambda run: run.result.trial.campaign_id),
    text(
        "campaign_name",
        "name of its file; empty for a single command",
        lambda run: run.campaign.name if run.campaign else "",
    ),
    text(
        "cluster", "name of the cluster", lambda run: run.campaign.cluster if run.campaign else ""
    ),
    text("trial", "id of the trial: one cell and one repetition", lambda run: run.result.trial.id),
    integer(
        "attempt",
        "number of the attempt at it, from 1; nothing if it never began",
        lambda run: run.result.attempt.number if run.result.attempt else None,
    ),
    boolean(*EMULATED, lambda run: run.emulated),
    text(*TWIN, lambda run: twin_words([run.result])),
)
"""The columns that every table of runs begins with."""

_OWN: Columns[Trial] = (
    text(
        "arguments",
        "one's own program and its arguments; secrets are hidden",
        lambda trial: program(trial.arguments),
    ),
    integer("repetition", "from 1", lambda trial: trial.repetition),
    boolean(
        "warm_up", "whether it is a warm-up, which no statistics count", lambda trial: trial.warm_up
    ),
)
_SECURITY: Columns[Attempt] = (
    text(
        "security",
        "who could reach the cluster; empty before it began",
        lambda attempt: str(attempt.fingerprint.security),
    ),
)
_POSITION: Columns[Trial] = (
    integer("position", "place in the campaign's order, from 0", lambda trial: trial.position),
)
_STATE: Column[Run] = text(
    "state",
    "pending, running, ok, failed or invalid",
    lambda run: str(run.result.attempt.state) if run.result.attempt else "pending",
)
_ATTEMPT: Columns[Attempt] = (
    text("reason", "why it is not ok; of an ok run a remark, or empty", lambda row: row.reason),
    text("started_utc", "ISO 8601 with offset", lambda row: row.started_utc),
    text("ended_utc", "ISO 8601 with offset; empty while it runs", lambda row: row.ended_utc),
)
_PROOF: Columns[Verification] = (
    text(
        "verification",
        "how the output was proved right; empty if it was not",
        lambda proof: proof.method,
    ),
    integer("verified_records", "output records that were compared", lambda proof: proof.records),
    text(
        "verified_sha256",
        "digest of the output; empty if it was not proved",
        lambda proof: proof.actual_sha256,
    ),
)
_MEASUREMENT: Columns[Measurement] = (
    text(
        "verdict",
        "whether it can be trusted; empty without a measurement",
        lambda found: str(found.verdict),
    ),
    objects(
        "verdict_reasons", "why it is not valid", lambda found: list(found.verdict_reasons), []
    ),
    objects("remarks", "what was not as the policy asked", lambda found: list(found.remarks), []),
    number("dilation", "by how much nodes were slower than their boards", lambda row: row.dilation),
    number(
        "duration_seconds",
        "driver's monotonic clock around the submission",
        lambda found: found.duration_seconds,
    ),
    integer("input_bytes", "bytes of input; 0 where unknown", lambda found: found.input_bytes),
    integer(
        "output_bytes", "bytes of final output; 0 where unknown", lambda found: found.output_bytes
    ),
    integer(
        "intermediate_bytes",
        "written to local storage, final output not included",
        lambda found: found.intermediate_bytes,
    ),
    integer("exit_status", "exit status of the submission", lambda found: found.exit_status),
    text("application_id", "YARN's id; may be empty", lambda found: found.application_id),
    *lift(_PROOF, lambda found: found.verification),
)


def _watts(found: Measurement) -> float | None:
    joules = found.energy.energy_joules if found.energy else None
    return None if joules is None else joules / found.duration_seconds


_SUM: Columns[Energy] = (
    number(
        "energy_joules",
        "over the run and all nodes; nothing where no sum exists",
        lambda energy: energy.energy_joules,
    ),
)
_METHOD: Columns[Energy] = (
    text(
        "energy_method",
        "metered or modelled; empty where nothing was recorded",
        lambda energy: str(energy.method),
    ),
    integer(
        "energy_level", "level of the EE HPC WG methodology; 0 is none", lambda energy: energy.level
    ),
    text("energy_reason", "why there is no sum; may be empty", lambda energy: energy.reason),
)
_DETAILS: Columns[Measurement] = (
    objects(
        "counters", "the engine's own counters, group/name", lambda found: dict(found.counters), {}
    ),
    objects(
        "node_read_bytes",
        "by node, what its processes read from storage",
        lambda found: dict(found.node_read_bytes),
        {},
    ),
    objects(
        "node_written_bytes",
        "by node, what its processes wrote to storage",
        lambda found: dict(found.node_written_bytes),
        {},
    ),
)
_MEANINGS = {
    "config_sha256": "hash over every generated configuration file",
    "hardware": "one line for each board",
    "limits": "what the kernel gave each emulated board",
    "twin": "boards that emulated nodes stand for",
}


def _setup_column(item: dataclasses.Field[object]) -> Column[Fingerprint]:
    kinds: dict[str, Kind] = {"int": Kind.INTEGER, "bool": Kind.BOOLEAN}
    other = Kind.OBJECT if str(item.type).startswith("tuple") else Kind.TEXT
    kind = kinds.get(str(item.type), other)
    meaning = _MEANINGS.get(item.name, f"the setup's {item.name.replace('_', ' ')}")

    def get(setup: Fingerprint) -> Value:
        value: Value = getattr(setup, item.name)
        return str(value) if isinstance(value, str) else value

    unknown = "" if kind is Kind.TEXT else None
    return Column(Field(f"setup_{item.name}", kind, meaning), get, unknown)


def _attempt(run: Run) -> Attempt | None:
    return run.result.attempt


def _setup(run: Run) -> Fingerprint | None:
    return run.result.attempt.fingerprint if run.result.attempt else None


def _found(run: Run) -> Measurement | None:
    return run.result.measurement


def _energy(run: Run) -> Energy | None:
    return run.result.measurement.energy if run.result.measurement else None


_BEFORE: Columns[Run] = (
    *IDENTITY,
    *lift((*_POSITION, *SETTINGS), lambda run: run.result.trial),
    *lift(_SECURITY, _attempt),
    *lift((*TEXT_SETTINGS, *_OWN), lambda run: run.result.trial),
    _STATE,
    *lift(_ATTEMPT, _attempt),
    *lift(_MEASUREMENT, _found),
    *lift(_SUM, _energy),
    *lift((number("power_mean_watts", "energy over duration", _watts),), _found),
    *lift(_METHOD, _energy),
)
_AFTER: Columns[Run] = (
    *lift(_DETAILS, _found),
    *lift(
        tuple(_setup_column(item) for item in dataclasses.fields(Fingerprint)),
        _setup,
    ),
)
_FIGURE, _PHASE = "measured by the workload itself", "part of the duration"
RUNS: Columns[Run] = (
    *_BEFORE,
    number("figure_NAME", _FIGURE, lambda _: None),
    number("phase_NAME_seconds", _PHASE, lambda _: None),
    *_AFTER,
)
"""The columns of the table of runs, with one for all figures and one for all phases."""


def run_frame(results: Sequence[Result], campaigns: Mapping[str, Campaign]) -> Frame:
    """Return one row for each run: every attempt, and each trial that has none.

    A figure or a phase that any run has is a column of its own: ``figure_NAME`` and
    ``phase_NAME_seconds``.

    Args:
        results: trials with their attempts.
        campaigns: by their ids.
    """
    found = [row.measurement for row in results if row.measurement is not None]
    figures = dict.fromkeys(name for row in found for name in row.figures)
    phases = dict.fromkeys(name for row in found for name in row.phases_seconds)

    def figure(name: str) -> Callable[[Measurement], float | None]:
        return lambda row: row.figures.get(name)

    def phase(name: str) -> Callable[[Measurement], float | None]:
        return lambda row: row.phases_seconds.get(name)

    named: Columns[Measurement] = (
        *(number(f"figure_{name}", _FIGURE, figure(name)) for name in figures),
        *(number(f"phase_{name}_seconds", _PHASE, phase(name)) for name in phases),
    )
    runs = [Run(row, campaigns.get(row.trial.campaign_id)) for row in results]
    return frame_of("runs", (*_BEFORE, *lift(named, _found), *_AFTER), runs)


_Metered: TypeAlias = tuple[Run, Power, Energy]

_METER: Columns[Power] = (
    text("meter", "name of the meter", lambda power: power.meter),
    text("kind", "its driver", lambda power: power.kind),
    text("coverage", "what it sees", lambda power: str(power.coverage)),
    objects("nodes", "nodes that it covers", lambda power: list(power.nodes)),
    boolean("switch", "whether it also feeds the network switch", lambda power: power.switch),
    text("accuracy", "as its maker states it", lambda power: power.accuracy),
    number("rate_hertz", "readings per second as it took them", lambda power: power.rate_hertz),
    integer("readings", "readings within the run", lambda power: power.readings),
    number(
        "energy_joules",
        "over the run; nothing where the reason says why",
        lambda power: power.energy_joules,
    ),
    number("power_mean_watts", "mean over the run", lambda power: power.mean_watts),
    number("power_most_watts", "highest reading", lambda power: power.most_watts),
    text("method", "metered or modelled", lambda power: str(power.method)),
    objects("remarks", "gaps, resets, frozen values", lambda power: list(power.remarks)),
    text("reason", "why there is no energy; empty if there is", lambda power: power.reason),
)
_OF_RUN: Columns[Energy] = (
    number(
        "run_energy_joules",
        "sum over the meters of the run, where there is one",
        lambda energy: energy.energy_joules,
    ),
    integer(
        "run_energy_level",
        "level of the EE HPC WG methodology; 0 is none",
        lambda energy: energy.level,
    ),
    text("run_level_reason", "why the level is not higher", lambda energy: energy.level_reason),
)
_WHAT_RAN: Columns[Run] = (
    text("workload", "name of the workload", lambda run: run.result.trial.workload),
    text("engine", "the engine", lambda run: str(run.result.trial.engine)),
    dataclasses.replace(_STATE, field=Field("state", Kind.TEXT, "how the run ended")),
    text("verdict", "whether the run can be trusted", lambda run: str(verdict_of(run.result))),
    number(
        "duration_seconds",
        "of the run",
        lambda run: run.result.measurement.duration_seconds if run.result.measurement else None,
    ),
)
POWER: Columns[_Metered] = (
    *lift((*IDENTITY, *_WHAT_RAN), lambda row: row[0]),
    *lift(_METER, lambda row: row[1]),
    *lift(_OF_RUN, lambda row: row[2]),
)
"""The columns of the table of power."""


def power_frame(results: Iterable[Result], campaigns: Mapping[str, Campaign]) -> Frame:
    """Return one row for each meter of each run.

    Args:
        results: trials with their attempts.
        campaigns: by their ids.
    """
    rows = (
        (Run(result, campaigns.get(result.trial.campaign_id)), power, result.measurement.energy)
        for result in results
        if result.measurement is not None and result.measurement.energy is not None
        for power in result.measurement.energy.powers
    )
    return frame_of("power", POWER, rows)
