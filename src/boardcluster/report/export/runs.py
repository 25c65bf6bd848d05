"""One row for each run, whatever its state; and one for each meter of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

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
)
from boardcluster.report.export.frames import Field, Frame, Kind, Value
from boardcluster.report.export.settings import (
    SETTINGS,
    TEXT_SETTINGS,
    settings_values,
    text_settings_values,
)
from boardcluster.report.words import program

__all__ = ["IDENTITY", "identity", "power_frame", "run_frame"]

IDENTITY = (
    Field("campaign", Kind.TEXT, "id of the campaign"),
    Field("campaign_name", Kind.TEXT, "name of its file; empty for a single command"),
    Field("cluster", Kind.TEXT, "name of the cluster"),
    Field("trial", Kind.TEXT, "id of the trial: one cell and one repetition"),
    Field("attempt", Kind.INTEGER, "number of the try at it, from 1; nothing if it never began"),
    Field("emulated", Kind.BOOLEAN, "whether nodes are namespaces on one machine, not boards"),
    Field("twin", Kind.TEXT, "boards that emulated nodes stand for, and the dilation; else empty"),
)
"""The columns that every table of runs begins with."""

_TRIAL = (
    Field("position", Kind.INTEGER, "place in the campaign's order, from 0"),
    *SETTINGS,
    Field("security", Kind.TEXT, "who could reach the cluster; empty before it began"),
    *TEXT_SETTINGS,
    Field("arguments", Kind.TEXT, "one's own program and its arguments; secrets are hidden"),
    Field("repetition", Kind.INTEGER, "from 1"),
    Field("warm_up", Kind.BOOLEAN, "whether it is a warm-up, which no statistics count"),
)
_ATTEMPT = (
    Field("state", Kind.TEXT, "pending, running, ok, failed or invalid"),
    Field("reason", Kind.TEXT, "why it is not ok; of an ok run a remark, or empty"),
    Field("started_utc", Kind.TEXT, "ISO 8601 with offset"),
    Field("ended_utc", Kind.TEXT, "ISO 8601 with offset; empty while it runs"),
)
_MEASUREMENT = (
    Field("verdict", Kind.TEXT, "whether it can be trusted; empty without a measurement"),
    Field("verdict_reasons", Kind.OBJECT, "why it is not valid"),
    Field("remarks", Kind.OBJECT, "what was not as the policy asked"),
    Field("dilation", Kind.NUMBER, "by how much nodes were slower than their boards"),
    Field("duration_seconds", Kind.NUMBER, "driver's monotonic clock around the submission"),
    Field("input_bytes", Kind.INTEGER, "bytes of input; 0 where unknown"),
    Field("output_bytes", Kind.INTEGER, "bytes of final output; 0 where unknown"),
    Field("intermediate_bytes", Kind.INTEGER, "written to local storage beside the output"),
    Field("exit_status", Kind.INTEGER, "exit status of the submission"),
    Field("application_id", Kind.TEXT, "YARN's id; may be empty"),
    Field("verification", Kind.TEXT, "how the output was proved right; empty if it was not"),
    Field("verified_records", Kind.INTEGER, "output records that were compared"),
    Field("verified_sha256", Kind.TEXT, "digest of the output; empty if it was not proved"),
)
_ENERGY = (
    Field("energy_joules", Kind.NUMBER, "over the run and all nodes; nothing where no sum exists"),
    Field("power_mean_watts", Kind.NUMBER, "energy over duration"),
    Field("energy_method", Kind.TEXT, "metered or modelled; empty where nothing was recorded"),
    Field("energy_level", Kind.INTEGER, "level of the EE HPC WG methodology; 0 is none"),
    Field("energy_reason", Kind.TEXT, "why there is no sum; may be empty"),
)
_DETAILS = (
    Field("counters", Kind.OBJECT, "the engine's own counters, group/name"),
    Field("node_read_bytes", Kind.OBJECT, "by node, what its processes read from storage"),
    Field("node_written_bytes", Kind.OBJECT, "by node, what its processes wrote to storage"),
)
_MEANINGS = {
    "config_sha256": "hash over every generated configuration file",
    "hardware": "one line for each board",
    "limits": "what the kernel gave each emulated board",
    "twin": "boards that emulated nodes stand for",
}


def _setup_fields() -> tuple[Field, ...]:
    def kind(annotation: object) -> Kind:
        if annotation == "int":
            return Kind.INTEGER
        if annotation == "bool":
            return Kind.BOOLEAN
        return Kind.OBJECT if str(annotation).startswith("tuple") else Kind.TEXT

    return tuple(
        Field(
            f"setup_{item.name}",
            kind(item.type),
            _MEANINGS.get(item.name, f"the setup's {item.name.replace('_', ' ')}"),
        )
        for item in dataclasses.fields(Fingerprint)
    )


def run_frame(results: Sequence[Result], campaigns: Mapping[str, Campaign]) -> Frame:
    """Return one row for each run: every attempt, and each trial that has none.

    A figure or a phase that any run has is a column of its own: ``figure_NAME`` and
    ``phase_NAME_seconds``.

    Args:
        results: trials with their attempts.
        campaigns: by their ids.
    """
    found = [row.measurement for row in results if row.measurement is not None]
    figures = tuple(dict.fromkeys(name for row in found for name in row.figures))
    phases = tuple(dict.fromkeys(name for row in found for name in row.phases_seconds))
    setup = _setup_fields()
    fields = (
        *IDENTITY,
        *_TRIAL,
        *_ATTEMPT,
        *_MEASUREMENT,
        *_ENERGY,
        *(
            Field(f"figure_{name}", Kind.NUMBER, "measured by the workload itself")
            for name in figures
        ),
        *(Field(f"phase_{name}_seconds", Kind.NUMBER, "part of the duration") for name in phases),
        *_DETAILS,
        *setup,
    )

    def rows() -> Iterator[Sequence[Value]]:
        for result in results:
            yield (
                *identity(result, campaigns),
                *_trial_values(result.trial, result.attempt),
                *_attempt_values(result.attempt),
                *_measured_values(result.measurement),
                *_energy_values(result.measurement),
                *(_of(result.measurement, "figures", name) for name in figures),
                *(_of(result.measurement, "phases_seconds", name) for name in phases),
                *_detail_values(result.measurement),
                *_setup_values(result.attempt, setup),
            )

    return Frame(name="runs", fields=fields, rows=rows())


def identity(result: Result, campaigns: Mapping[str, Campaign]) -> tuple[Value, ...]:
    """Return the values of ``IDENTITY`` for a run."""
    campaign = campaigns.get(result.trial.campaign_id)
    emulated = campaign is not None and campaign.emulated
    if result.attempt is not None:
        emulated = emulated or result.attempt.fingerprint.emulated
    return (
        result.trial.campaign_id,
        campaign.name if campaign else "",
        campaign.cluster if campaign else "",
        result.trial.id,
        result.attempt.number if result.attempt else None,
        emulated,
        twin_words([result]),
    )


def _trial_values(trial: Trial, attempt: Attempt | None) -> tuple[Value, ...]:
    return (
        trial.position,
        *settings_values(trial),
        str(attempt.fingerprint.security) if attempt else "",
        *text_settings_values(trial),
        program(trial.arguments),
        trial.repetition,
        trial.warm_up,
    )


def _attempt_values(attempt: Attempt | None) -> tuple[Value, ...]:
    if attempt is None:
        return ("pending", "", "", "")
    return (str(attempt.state), attempt.reason, attempt.started_utc, attempt.ended_utc)


def _measured_values(found: Measurement | None) -> tuple[Value, ...]:
    if found is None:
        return ("", [], [], None, None, None, None, None, None, "", "", None, "")
    proof = found.verification
    return (
        str(found.verdict),
        list(found.verdict_reasons),
        list(found.remarks),
        found.dilation,
        found.duration_seconds,
        found.input_bytes,
        found.output_bytes,
        found.intermediate_bytes,
        found.exit_status,
        found.application_id,
        proof.method if proof else "",
        proof.records if proof else None,
        proof.actual_sha256 if proof else "",
    )


def _energy_values(found: Measurement | None) -> tuple[Value, ...]:
    energy = found.energy if found is not None else None
    if found is None or energy is None:
        return (None, None, "", None, "")
    joules = energy.energy_joules
    watts = None if joules is None else joules / found.duration_seconds
    return (joules, watts, str(energy.method), energy.level, energy.reason)


def _of(found: Measurement | None, what: str, name: str) -> float | None:
    if found is None:
        return None
    values: Mapping[str, float] = getattr(found, what)
    return values.get(name)


def _detail_values(found: Measurement | None) -> tuple[Value, ...]:
    if found is None:
        return ({}, {}, {})
    return (dict(found.counters), dict(found.node_read_bytes), dict(found.node_written_bytes))


def _setup_values(attempt: Attempt | None, fields: Sequence[Field]) -> tuple[Value, ...]:
    if attempt is None:
        return tuple("" if field.kind is Kind.TEXT else None for field in fields)
    values = [getattr(attempt.fingerprint, item.name) for item in dataclasses.fields(Fingerprint)]
    return tuple(str(value) if isinstance(value, str) else value for value in values)


# Power

_POWER = (
    Field("workload", Kind.TEXT, "name of the workload"),
    Field("engine", Kind.TEXT, "the engine"),
    Field("state", Kind.TEXT, "how the run ended"),
    Field("verdict", Kind.TEXT, "whether the run can be trusted"),
    Field("duration_seconds", Kind.NUMBER, "of the run"),
    Field("meter", Kind.TEXT, "name of the meter"),
    Field("kind", Kind.TEXT, "its driver"),
    Field("coverage", Kind.TEXT, "what it sees"),
    Field("nodes", Kind.OBJECT, "nodes that it covers"),
    Field("switch", Kind.BOOLEAN, "whether the network switch hangs on it too"),
    Field("accuracy", Kind.TEXT, "as its maker states it"),
    Field("rate_hertz", Kind.NUMBER, "readings per second as it took them"),
    Field("readings", Kind.INTEGER, "readings within the run"),
    Field("energy_joules", Kind.NUMBER, "over the run; nothing where the reason says why"),
    Field("power_mean_watts", Kind.NUMBER, "mean over the run"),
    Field("power_most_watts", Kind.NUMBER, "highest reading"),
    Field("method", Kind.TEXT, "metered or modelled"),
    Field("remarks", Kind.OBJECT, "gaps, resets, frozen values"),
    Field("reason", Kind.TEXT, "why there is no energy; empty if there is"),
    Field("run_energy_joules", Kind.NUMBER, "sum over the meters of the run, where there is one"),
    Field("run_energy_level", Kind.INTEGER, "level of the EE HPC WG methodology; 0 is none"),
    Field("run_level_reason", Kind.TEXT, "why the level is not higher"),
)


def power_frame(results: Iterable[Result], campaigns: Mapping[str, Campaign]) -> Frame:
    """Return one row for each meter of each run.

    Args:
        results: trials with their attempts.
        campaigns: by their ids.
    """

    def rows() -> Iterator[Sequence[Value]]:
        for result in results:
            found = result.measurement
            if found is None or found.energy is None:
                continue
            for power in found.energy.powers:
                yield (
                    *identity(result, campaigns),
                    result.trial.workload,
                    str(result.trial.engine),
                    str(result.attempt.state) if result.attempt else "pending",
                    str(verdict_of(result)),
                    found.duration_seconds,
                    *_power_values(power, found.energy),
                )

    return Frame(name="power", fields=(*IDENTITY, *_POWER), rows=rows())


def _power_values(power: Power, energy: Energy) -> tuple[Value, ...]:
    return (
        power.meter,
        power.kind,
        str(power.coverage),
        list(power.nodes),
        power.switch,
        power.accuracy,
        power.rate_hertz,
        power.readings,
        power.energy_joules,
        power.mean_watts,
        power.most_watts,
        str(power.method),
        list(power.remarks),
        power.reason,
        energy.energy_joules,
        energy.level,
        energy.level_reason,
    )
