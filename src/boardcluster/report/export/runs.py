"""One row for each run, whatever its state; and one for each meter of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from boardcluster.analysis.cells import verdict_of
from boardcluster.analysis.efficiency import watts_of
from boardcluster.analysis.twins import twin_words
from boardcluster.records import (
    Attempt,
    Campaign,
    Energy,
    Fingerprint,
    Measurement,
    Power,
    Result,
    Trial,
)
from boardcluster.report.export.frames import (
    DType,
    Field,
    FieldGetter,
    Frame,
    at,
    boolean,
    frame_of,
    integer,
    number,
    objects,
    text,
)
from boardcluster.report.export.settings import SETTINGS, TEXT_SETTINGS
from boardcluster.report.words import program

__all__ = ["EMULATED", "IDENTITY", "POWER", "RUNS", "TWIN", "Run", "power_frame", "run_frame"]

EMULATED = ("emulated", "whether nodes are namespaces on one machine, not boards")
TWIN = ("twin", "that nodes are emulated boards, with the dilation; else empty")


def _disturbances(run: Run) -> list[dict[str, object]] | None:
    """What disturbed a run, as plain rows."""
    found = run.result.measurement
    return None if found is None else [dataclasses.asdict(each) for each in found.disturbances]


_LEVEL = "level of the EE HPC WG methodology; 0 is none"


@dataclass(frozen=True, slots=True)
class Run:
    """A trial with its attempt, if it was begun, and its campaign, if that is known."""

    result: Result
    campaign: Campaign | None

    @property
    def trial(self) -> Trial:
        """The trial."""
        return self.result.trial

    @property
    def attempt(self) -> Attempt | None:
        """The attempt."""
        return self.result.attempt

    @property
    def found(self) -> Measurement | None:
        """What it yielded."""
        return self.result.measurement

    @property
    def setup(self) -> Fingerprint | None:
        """What it ran on."""
        return self.attempt.fingerprint if self.attempt else None

    @property
    def emulated(self) -> bool:
        """Whether its nodes are emulated."""
        planned = self.campaign is not None and self.campaign.emulated
        return planned or (self.setup is not None and self.setup.emulated)


@dataclass(frozen=True, slots=True)
class _Metered(Run):
    """A run with one of its meters."""

    power: Power
    energy: Energy


IDENTITY = (
    text("campaign", "id of the campaign", "trial.campaign_id"),
    text("campaign_name", "name of its file; empty for a single command", "campaign.name"),
    text("cluster", "name of the cluster", "campaign.cluster"),
    text("trial", "id of the trial: one cell and one repetition", "trial.id"),
    integer(
        "attempt",
        "number of the attempt at it, from 1; nothing if it never began",
        "attempt.number",
    ),
    boolean(*EMULATED),
    text(*TWIN, lambda run: twin_words([run.result])),
)
"""The columns that every table of runs begins with."""

_MEANINGS = {
    "config_sha256": "hash over every generated configuration file",
    "hardware": "one line for each board",
    "limits": "what the kernel gave each emulated board",
    "twin": "boards that emulated nodes stand for",
}
_KINDS = {"int": DType.INTEGER, "bool": DType.BOOLEAN, "tuple[str, ...]": DType.OBJECT}


def _setup_column(item: dataclasses.Field[object]) -> FieldGetter:
    kind = _KINDS.get(str(item.type), DType.TEXT)
    meaning = _MEANINGS.get(item.name, f"the setup's {item.name.replace('_', ' ')}")
    field = Field(f"setup_{item.name}", kind, meaning)
    return FieldGetter(field, at(f"setup.{item.name}"))


def _state(run: Run) -> str:
    return str(run.attempt.state) if run.attempt else "pending"


def _watts(run: Run) -> float | None:
    found = run.found
    if found is None or found.energy is None:
        return None
    return watts_of(found.energy, found.duration_seconds)


_BEFORE = (
    *IDENTITY,
    integer("position", "place in the campaign's order, from 0", "trial.position"),
    *SETTINGS,
    text("security", "who could reach the cluster; empty before it began", "setup.security"),
    *TEXT_SETTINGS,
    text(
        "arguments",
        "one's own program and its arguments; secrets are hidden",
        lambda run: program(run.trial.arguments),
    ),
    integer("repetition", "from 1, numbered through over the starts", "trial.repetition"),
    integer("start", "which start of the cluster it belongs to, from 1", "trial.start"),
    boolean("warm_up", "whether it is a warm-up, which no statistics count", "trial.warm_up"),
    text("state", "pending, running, ok, failed or invalid", _state),
    text("reason", "why it is not ok; of an ok run a remark, or empty", "attempt.reason"),
    text("started_utc", "ISO 8601 with offset", "attempt.started_utc"),
    text("ended_utc", "ISO 8601 with offset; empty while it runs", "attempt.ended_utc"),
    text(
        "start_id",
        "id of the start of the daemons that it ran on; empty where none was recorded",
        "attempt.start_id",
    ),
    text("verdict", "whether it can be trusted; empty without a measurement", "found.verdict"),
    objects("verdict_reasons", "why it is not valid", "found.verdict_reasons", list),
    objects("remarks", "what was not as the policy asked", "found.remarks", list),
    number("dilation", "by how much nodes were slower than their boards", "found.dilation"),
    number(
        "duration_seconds",
        "driver's monotonic clock around the submission",
        "found.duration_seconds",
    ),
    integer("input_bytes", "bytes of input; 0 where unknown", "found.input_bytes"),
    integer("output_bytes", "bytes of final output; 0 where unknown", "found.output_bytes"),
    integer(
        "intermediate_bytes",
        "written to local storage, final output not included",
        "found.intermediate_bytes",
    ),
    integer("exit_status", "exit status of the submission", "found.exit_status"),
    text("application_id", "YARN's id; may be empty", "found.application_id"),
    text(
        "verification",
        "how the output was proved right; empty if it was not",
        "found.verification.method",
    ),
    integer("verified_records", "output records that were compared", "found.verification.records"),
    text(
        "verified_sha256",
        "digest of the output; empty if it was not proved",
        "found.verification.actual_sha256",
    ),
    number(
        "energy_joules",
        "over the run and all nodes; nothing where no sum exists",
        "found.energy.energy_joules",
    ),
    number(
        "power_mean_watts",
        "energy over its span, from the first submission to the end of the last",
        _watts,
    ),
    text(
        "energy_method",
        "metered or modelled; empty where nothing was recorded",
        "found.energy.method",
    ),
    integer("energy_level", _LEVEL, "found.energy.level"),
    text("energy_reason", "why there is no sum; may be empty", "found.energy.reason"),
)
_AFTER = (
    objects("disturbances", "what disturbed it, and how much", _disturbances, list),
    number("tolerated_share", "above which it is tainted", "found.tolerated_share"),
    objects("clock_hertz", "by node, the clock under load", "found.clock_hertz", dict),
    objects("counters", "the engine's own counters, group/name", "found.counters", dict),
    objects(
        "node_read_bytes",
        "by node, what its processes read from storage",
        "found.node_read_bytes",
        dict,
    ),
    objects(
        "node_written_bytes",
        "by node, what its processes wrote to storage",
        "found.node_written_bytes",
        dict,
    ),
    *(_setup_column(item) for item in dataclasses.fields(Fingerprint)),
)


def _named(figures: Iterable[str], phases: Iterable[str]) -> tuple[FieldGetter, ...]:
    """One column for each figure and for each phase."""

    def of(values: str, name: str, run: Run) -> float | None:
        return None if run.found is None else getattr(run.found, values).get(name)

    return (
        *(
            number(
                f"figure_{name}", "measured by the workload itself", partial(of, "figures", name)
            )
            for name in figures
        ),
        *(
            number(
                f"phase_{name}_seconds", "part of the duration", partial(of, "phases_seconds", name)
            )
            for name in phases
        ),
    )


RUNS = (*_BEFORE, *_named(["NAME"], ["NAME"]), *_AFTER)
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
    runs = [Run(row, campaigns.get(row.trial.campaign_id)) for row in results]
    return frame_of("runs", (*_BEFORE, *_named(figures, phases), *_AFTER), runs)


POWER = (
    *IDENTITY,
    text("workload", "name of the workload", "trial.workload"),
    text("engine", "the engine", "trial.engine"),
    text("state", "how the run ended", _state),
    text("verdict", "whether the run can be trusted", lambda run: verdict_of(run.result)),
    number("duration_seconds", "of the run", "found.duration_seconds"),
    text("meter", "name of the meter", "power.meter"),
    text("kind", "its driver", "power.kind"),
    text("coverage", "what it sees", "power.coverage"),
    objects("nodes", "nodes that it covers", "power.nodes"),
    boolean("switch", "whether it also feeds the network switch", "power.switch"),
    text("accuracy", "as its maker states it", "power.accuracy"),
    number("rate_hertz", "readings per second as it took them", "power.rate_hertz"),
    integer("readings", "readings within the run", "power.readings"),
    number(
        "energy_joules", "over the run; nothing where the reason says why", "power.energy_joules"
    ),
    number("power_mean_watts", "mean over the run", "power.mean_watts"),
    number("power_most_watts", "highest reading", "power.most_watts"),
    text("method", "metered or modelled", "power.method"),
    objects("remarks", "gaps, resets, frozen values", "power.remarks"),
    text("reason", "why there is no energy; empty if there is", "power.reason"),
    number(
        "run_energy_joules",
        "sum over the meters of the run, where there is one",
        "energy.energy_joules",
    ),
    integer("run_energy_level", _LEVEL, "energy.level"),
    text("run_level_reason", "why the level is not higher", "energy.level_reason"),
)
"""The columns of the table of power."""


def power_frame(results: Iterable[Result], campaigns: Mapping[str, Campaign]) -> Frame:
    """Return one row for each meter of each run.

    Args:
        results: trials with their attempts.
        campaigns: by their ids.
    """
    rows = (
        _Metered(result, campaigns.get(result.trial.campaign_id), power, found.energy)
        for result in results
        if (found := result.measurement) is not None and found.energy is not None
        for power in found.energy.powers
    )
    return frame_of("power", POWER, rows)
