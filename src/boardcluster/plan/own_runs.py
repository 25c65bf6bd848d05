"""Runs of one's own as observations, in groups that may be learned from together."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from statistics import median
from types import MappingProxyType

from boardcluster.analysis.fingerprints import board_and_medium
from boardcluster.analysis.phases import submission_of
from boardcluster.catalog.lookup import entry_names
from boardcluster.plan.hardware import OWN_HARDWARE, PROBE_BYTES
from boardcluster.plan.observations import NodesOfRun, RunObservation, amount_of
from boardcluster.plan.question import Question
from boardcluster.records import (
    Checksum,
    Energy,
    Fingerprint,
    MasterPlacement,
    PlannedFault,
    ProbeRun,
    Result,
    Trial,
    Variant,
    Verdict,
    in_cell,
)
from boardcluster.units import format_bytes, format_count

__all__ = [
    "OwnGroup",
    "OwnRates",
    "chosen_group",
    "conditions_of",
    "nodes_of",
    "observation_of",
    "on_same_nodes",
    "own_groups",
    "own_rates",
    "stands_for",
]

_WORK = re.compile(r"(^|: )(map|reduce after the last map|stage \d+.*)$")
"""Phases in which the input is worked on; the rest of a submission is start and end."""
_WRITTEN = "write_throughput_mebibytes_per_second"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRates:
    """What own probes say of ``OWN_HARDWARE``."""

    seven_zip_mips: float | None
    """7-zip's rating with all threads; None where it was not probed."""
    hdfs_write_mebibytes_per_second: float | None
    """TestDFSIO's write throughput; None where it did not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnGroup:
    """Runs that differ in nothing but size, workers and replication."""

    words: str
    """What they have in common: engines, security, profile, what is set, and the nodes."""
    runs: tuple[RunObservation, ...]
    """The runs, the newest first."""
    nodes: NodesOfRun
    """What each of their nodes was."""


def _start_seconds(phases: Mapping[str, float], duration_seconds: float) -> float | None:
    """Return what a run spent before and after its work; None where the engine gave no phases."""
    work = [
        seconds
        for name, seconds in phases.items()
        if (of := submission_of(name, phases)) and _WORK.search(name.removeprefix(f"{of}/"))
    ]
    if not work:
        work = [seconds for name, seconds in phases.items() if _WORK.search(name)]
    return max(0.0, duration_seconds - sum(work)) if work else None


@cache
def stands_for(twin: str, kind: str, file: str) -> str:
    """Return the entry that most emulated nodes stand for, where it is one; the last of equals.

    Args:
        twin: ``Fingerprint.twin``; the master stands first in it, and may be another board.
        kind: ``boards`` or ``media``.
        file: one of the user's own that counts as an entry; empty for none.
    """
    counted = re.findall(r"(\d+) x ([^+]+)", twin) or [("1", twin)]
    most = max(int(count) for count, _ in counted)
    words = next(text for count, text in reversed(counted) if int(count) == most)
    named = [
        name
        for name in entry_names(kind)
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", words)
    ]
    if (
        not named
        and file
        and re.search(rf"(?<![\w-]){re.escape(PurePath(file).stem)}(?![\w-])", words)
    ):
        return file
    return named[0] if len(named) == 1 else OWN_HARDWARE


_WITH = " with "
"""Between a board and its medium."""


def nodes_of(found: Fingerprint) -> NodesOfRun:
    """Return what the nodes of a run were, by name, and what its smallest worker had.

    The kernel, the clock and the memory that a kernel counts may change on the same boards, so of
    each line of hardware the board and its medium count, and the memory is the declared one. Which
    worker is the smallest follows from their number.
    """
    boards = {line.partition(": ")[0]: _board_words(line) for line in found.hardware}
    memory = format_bytes(found.node_memory_bytes, binary=True)
    smallest = f"{format_count(found.node_cores, 'core')} and {memory}"
    return boards | {f"smallest of {found.nodes}": smallest}


def _board_words(line: str) -> str:
    """Return the board of a line of hardware, and its medium."""
    return _WITH.join(filter(None, board_and_medium(line)))


def on_same_nodes(one: NodesOfRun, other: NodesOfRun) -> bool:
    """Whether no node that both name was another one; a run on fewer workers names fewer."""
    return all(other.get(name, said) == said for name, said in one.items())


def observation_of(
    result: Result,
    *,
    replication: int,
    defaults: Mapping[str, str],
    tainted: bool = False,
    files: Mapping[str, str] = MappingProxyType({}),
) -> RunObservation | None:
    """Return a stored run; None for one that statistics leave out.

    Args:
        result: an ok run.
        replication: copies of a block where the trial does not say it, and there are workers
            enough.
        defaults: what parameters are where the trial does not set them.
        tainted: whether a tainted run counts.
        files: of ``boards`` and ``media``, the user's own file that is asked about: runs on
            emulated boards of that name were on it. Without, they were on own nodes.
    """
    attempt, measured, trial = result.attempt, result.measurement, result.trial
    if attempt is None or measured is None:
        return None
    if not in_cell(measured) and not (tainted and measured.verdict is Verdict.TAINTED):
        return None
    found = attempt.fingerprint
    own = {
        name: value
        for name, value in trial.parameters.items()
        if name != "pi.maps" and defaults.get(name) != value
    } | conditions_of(trial)
    program = _program(trial.arguments, own)
    energy = measured.energy
    joules = (
        None
        if energy is None
        else _workers_joules(
            energy, nodes=found.nodes, workers=trial.workers, seconds=measured.duration_seconds
        )
    )
    size = trial.size_bytes or measured.input_bytes
    start = _start_seconds(measured.phases_seconds, measured.duration_seconds)
    return RunObservation(
        workload=trial.workload,
        engine=trial.engine,
        amount=amount_of(trial.workload, size, {**defaults, **trial.parameters}),
        workers=trial.workers,
        seconds=measured.duration_seconds,
        board=stands_for(found.twin, "boards", files.get("boards", "")),
        medium=stands_for(found.twin, "media", files.get("media", "")),
        replication=trial.replication or min(replication, trial.workers),
        source=f"{trial.id}/{attempt.number}",
        own=True,
        start_seconds=start,
        link_bits_per_second=float(found.link_bits_per_second),
        intermediate_bytes=measured.intermediate_bytes,
        joules=joules,
        settings={**trial.settings, "profile": trial.profile},
        engines=f"Hadoop {found.hadoop}, Spark {found.spark}",
        security=found.security,
        program=program,
        nodes=nodes_of(found),
        started_utc=attempt.started_utc,
    )


def _workers_joules(energy: Energy, *, nodes: int, workers: int, seconds: float) -> float | None:
    """Return the energy of the workers alone; None where it cannot be told from the master's.

    A node that is no worker draws least, as it runs no tasks. Where no meter sees single nodes, it
    counts as idle. What a meter says of a switch alone is not theirs.
    """
    others = nodes - workers
    switches = [row for row in energy.powers if row.switch and not row.nodes]
    if energy.energy_joules is None or any(row.energy_joules is None for row in switches):
        return None
    joules = energy.energy_joules - sum(row.energy_joules or 0.0 for row in switches)
    if others <= 0:
        return joules
    single = [
        row.energy_joules
        for row in energy.powers
        if len(row.nodes) == 1 and not row.switch and row.energy_joules is not None
    ]
    if len(single) == nodes:
        return sum(sorted(single)[others:])
    if energy.idle_watts is None or any(row.idle_watts is None for row in switches):
        return None
    idle_watts = energy.idle_watts - sum(row.idle_watts or 0.0 for row in switches)
    return max(0.0, joules - idle_watts / nodes * others * seconds)


def conditions_of(trial: Trial) -> dict[str, str]:
    """Return what else a run is of where it is not the usual, as further parameters.

    Another program, text, checksum or place of the master takes another time, and so does a run in
    which a server is lost on purpose.
    """
    rows = {
        "variant": (trial.variant, Variant.FAST),
        "input": (trial.input, ""),
        "checksum": (trial.checksum, Checksum.CRC32C),
        "master": (trial.master, MasterPlacement.DECLARED),
        "fault": (trial.fault, PlannedFault.NONE),
    }
    return {name: str(value) for name, (value, usual) in rows.items() if value != usual}


def _program(arguments: Sequence[str], parameters: Mapping[str, str]) -> str:
    return " ".join([*arguments, *(f"{name}={parameters[name]}" for name in sorted(parameters))])


def own_groups(runs: Iterable[RunObservation]) -> tuple[OwnGroup, ...]:
    """Group runs, the largest group first; what ran before a node was replaced stands alone."""
    groups: dict[tuple[object, ...], list[tuple[dict[str, str], list[RunObservation]]]] = {}
    for run in runs:
        settings = tuple(sorted(run.settings.items()))
        key = (run.engines, run.security, settings, run.program, run.board, run.medium)
        alike = groups.setdefault(key, [])
        for nodes, rows in alike:
            if on_same_nodes(run.nodes, nodes):
                nodes.update(run.nodes)
                rows.append(run)
                break
        else:
            alike.append((dict(run.nodes), [run]))
    every = [row for alike in groups.values() for row in alike]
    return tuple(
        OwnGroup(words=_words(rows[0], nodes), runs=tuple(rows), nodes=nodes)
        for nodes, rows in sorted(every, key=lambda row: len(row[1]), reverse=True)
    )


def _words(run: RunObservation, nodes: NodesOfRun) -> str:
    parts = [run.engines, f"security {run.security}", f"profile {run.settings['profile']}"]
    parts += [f"{name} {value}" for name, value in run.settings.items() if name != "profile"]
    parts += [run.program] if run.program else []
    if run.board != OWN_HARDWARE or run.medium != OWN_HARDWARE:
        parts.append(f"on {run.board} with {run.medium}")
    return ", ".join([*parts, "nodes of " + " + ".join(sorted({*nodes.values()}))])


def _asked_program(asked: Question) -> str:
    wanted = {name: value for name, value in asked.parameters.items() if name != "pi.maps"}
    return _program(asked.arguments, wanted)


def _fits(run: RunObservation, asked: Question) -> bool:
    settings = {name: value for name, value in run.settings.items() if name != "profile"}
    return (
        settings == dict(asked.settings)
        and (not asked.profile or run.settings["profile"] == asked.profile)
        and (not asked.engines or run.engines == asked.engines)
        and (asked.security is None or run.security is asked.security)
    )


def _on_newest_nodes(groups: Sequence[OwnGroup]) -> list[OwnGroup]:
    """Return the groups on the nodes that the newest run of the same board and medium was on.

    Nodes that were replaced since say nothing of those that are there now.
    """
    newest: dict[tuple[str, str], NodesOfRun] = {}
    every = (run for group in groups for run in group.runs)
    for run in sorted(every, key=lambda run: run.started_utc):
        newest[run.board, run.medium] = run.nodes
    firsts = [(group, group.runs[0]) for group in groups]
    return [
        group for group, run in firsts if on_same_nodes(newest[run.board, run.medium], group.nodes)
    ]


def chosen_group(
    groups: Sequence[OwnGroup], asked: Question, *, mixed: bool
) -> tuple[tuple[RunObservation, ...], tuple[str, ...]]:
    """Return the runs to learn from, and what is said of those left out or mixed.

    Those of the question's board and medium come first, then the largest group. Runs of other
    engine versions, security modes, profiles or settings are left out unless asked for; runs of
    another program, or on nodes that were replaced since, always are.
    """
    wanted = _asked_program(asked)
    of_program = [group for group in groups if group.runs[0].program == wanted]
    kept = _on_newest_nodes([group for group in of_program if mixed or _fits(group.runs[0], asked)])
    if not mixed:
        kept.sort(
            key=lambda group: (
                group.runs[0].board == asked.board,
                group.runs[0].medium == asked.medium,
                len(group.runs),
            ),
            reverse=True,
        )
        del kept[1:]
    chosen = {id(group) for group in kept}
    said = [
        f"{'included, as asked' if id(group) in chosen else 'left out'}:"
        f" {format_count(len(group.runs), 'run')} of {group.words}"
        for group in groups
        if mixed or id(group) not in chosen
    ]
    return tuple(run for group in kept for run in group.runs), tuple(said)


def _is_of(run: ProbeRun, nodes: NodesOfRun) -> bool:
    """Whether a probe ran on no other board than the one of its name, if that is among some nodes.

    A run on fewer workers names fewer. The medium does not compute.
    """
    board, _ = board_and_medium(run.hardware)
    return nodes.get(run.node, board).partition(_WITH)[0] == board


def own_rates(
    probes: Iterable[ProbeRun],
    writes: Iterable[Result],
    *,
    nodes: NodesOfRun | None = None,
) -> OwnRates:
    """Return what own probes say of the nodes: the median of the last run on each.

    Of the writes those count whose size is nearest to that at which media are compared: most of a
    small one stays in the page cache.

    Args:
        probes: runs of probes.
        writes: runs of TestDFSIO; those on nodes that stand for a medium do not count.
        nodes: the nodes that are compared (``nodes_of``): only what was measured on them counts.
            None takes every probe, and the writes on the nodes of the newest one.
    """
    last: dict[str, float] = {}
    for run in probes:
        ratings = [row.value for row in run.figures if row.name == "seven_zip_total_mips"]
        counts = run.probe == "seven-zip" and run.verdict is not Verdict.INVALID
        if counts and ratings and _is_of(run, nodes or {}):
            last[run.node] = max(ratings)
    own = [
        (attempt.started_utc, nodes_of(attempt.fingerprint), result.trial, measured.figures)
        for result in writes
        if (attempt := result.attempt)
        and (measured := result.measurement)
        and in_cell(measured)
        and _WRITTEN in measured.figures
        and stands_for(attempt.fingerprint.twin, "media", "") == OWN_HARDWARE
    ]
    if nodes is None:
        nodes = max(own, key=lambda row: row[0])[1] if own else {}
    rates: dict[int, list[float]] = {}
    for _, measured_on, trial, figures in own:
        if on_same_nodes(measured_on, nodes):
            rates.setdefault(max(1, trial.size_bytes), []).append(figures[_WRITTEN])
    nearest = min(rates, key=lambda size: abs(math.log(size / PROBE_BYTES)), default=0)
    return OwnRates(
        seven_zip_mips=median(last.values()) if last else None,
        hdfs_write_mebibytes_per_second=median(rates[nearest]) if rates else None,
    )
