"""From what the user wants to an ordered list of trials. Pure."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

from boardcluster.campaign.trial_jobs import variant_of
from boardcluster.errors import EmptySelectionError, UsageError
from boardcluster.factors import FACTORS, FACTORS_BY_NAME, hashable
from boardcluster.records import CampaignSpec, ClusterSpec, Matrix, Trial
from boardcluster.services.declaration import own_part_digests
from boardcluster.services.profile import own_file_digests
from boardcluster.services.settings import of_engine
from boardcluster.spec.campaign import WorkloadFacts, mix_engines
from boardcluster.spec.variant import ClusterVariant
from boardcluster.store.codec import JsonValue, to_json
from boardcluster.workloads import load_workload, workload_names
from boardcluster.workloads.base import InputKind

__all__ = [
    "TRIALS_MAX",
    "campaign_digest",
    "expand",
    "idle_settings",
    "plan",
    "spec_digest",
    "workload_facts",
]

TRIALS_MAX = 100_000
"""Most trials of a campaign: a bound on memory and on the time before the first one starts."""

_MIX_NAME_LENGTH_MAX = 32
_DIGEST_DIGITS = 8

_Cell: TypeAlias = "tuple[Any, ...]"
"""Levels of the factors in the order of ``_ORDER``: what a trial runs. It sorts and hashes."""

_FIRST = ("profile", "workers", "master", "workload", "engine", "size_bytes", "concurrency",
          "replication", "checksum", "input", "parameters")  # fmt: skip
"""The factors of which ids of trials were made first, in that order: an id never changes."""

_ORDER = (*_FIRST, *(factor.name for factor in FACTORS if factor.name not in _FIRST))


@dataclass(frozen=True, slots=True)
class _Runs:
    """How often a cell runs."""

    repetitions: int
    warm_ups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rounds:
    """How often the cells as a whole run."""

    starts: int
    """How often the cluster is started."""
    further_blocks: int
    """Blocks of every cell beyond its repetitions."""


def workload_facts() -> dict[str, WorkloadFacts]:
    """Return what campaigns must know of every workload there is, by name."""
    found = {}
    for name in workload_names():
        workload = load_workload(name)
        found[name] = WorkloadFacts(
            engines=workload.engines,
            parameters={
                key: (parameter.allowed, parameter.is_allowed)
                for key, parameter in workload.parameters.items()
            },
            takes_size=workload.input_kind is not InputKind.NOTHING,
            size_is_optional=workload.input_kind is InputKind.MATRIX,
            takes_text=workload.input_kind is InputKind.TEXT,
        )
    return found


def plan(
    spec: CampaignSpec, declared: ClusterSpec, *, campaign_id: str, further: int = 0
) -> tuple[Trial, ...]:
    """Return every trial of a campaign on a cluster, in the order to run it; see ``expand``."""
    return expand(
        spec,
        campaign_id=campaign_id,
        workloads=workload_facts(),
        cluster_profile=declared.profile,
        cluster_workers=len(declared.workers),
        cluster_settings=declared.settings,
        further=further,
    )


def expand(
    spec: CampaignSpec,
    *,
    campaign_id: str,
    workloads: Mapping[str, WorkloadFacts],
    cluster_profile: str,
    cluster_workers: int,
    cluster_settings: Mapping[str, str] | None = None,
    further: int = 0,
) -> tuple[Trial, ...]:
    """Return every trial of a campaign in the order to run it.

    1. Each matrix gives its cells. A cell that two matrices give is one cell; the larger number
       of repetitions, and of warm-ups, holds.
    2. Each start of the cluster runs every cell, so that what a start draws by chance can be told
       from what a cell does (Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM
       2013).
    3. In a start, cells of the same cluster variant are together, because another variant (profile,
       workers, place of the master, settings of daemons) restarts the daemons, too. These groups
       are in an order drawn from the seed, in each start another one.
    4. Inside a group come the warm-ups, then the measured repetitions. Each is a block that holds
       every cell once, in an order drawn from the seed, so a machine that slowly warms up or fills
       its disk does not favour one cell. Blocks are numbered through over the starts.
    5. A campaign that runs until its intervals are narrow has further rounds: starts where it has
       several, else blocks. What comes before them does not change with their number.

    The order depends on the cells and the seed, not on the order in the file.

    Args:
        spec: the campaign.
        campaign_id: id of the campaign; the trials' ids begin with it.
        workloads: the workloads that the campaign names.
        cluster_profile: the profile where a matrix names none.
        cluster_workers: the number of workers where a matrix names none.
        cluster_settings: the settings of the cluster; those of a matrix win over them.
        further: rounds beyond those that are planned first.

    Raises:
        EmptySelectionError: there is nothing to run.
        UsageError: there are more than TRIALS_MAX trials, or blocks of several variants are to be
            added in one start.
    """
    if spec.seed is None:
        raise ValueError("the seed must be drawn before the order")
    cells = _cells(spec, workloads, cluster_profile, cluster_workers, cluster_settings or {})
    templates = _templates(campaign_id, cells)
    groups: dict[ClusterVariant, list[_Cell]] = {}
    for cell in sorted(cells):
        groups.setdefault(variant_of(templates[cell]), []).append(cell)
    if spec.precision is not None and spec.starts == 1 and len(groups) > 1:
        raise UsageError(
            f"a precision with {len(groups)} variants of the cluster needs several starts: another "
            "variant restarts the daemons, and chance differences between starts would pass for a "
            "difference",
            hint="set starts = 3 or more, or compare only what needs no restart",
        )
    rounds = _Rounds(
        starts=spec.starts + (further if spec.starts > 1 else 0),
        further_blocks=further if spec.starts == 1 else 0,
    )
    return tuple(_trials(spec.seed, list(groups.values()), templates, cells, rounds))


def _cells(
    spec: CampaignSpec,
    workloads: Mapping[str, WorkloadFacts],
    cluster_profile: str,
    cluster_workers: int,
    cluster_settings: Mapping[str, str],
) -> dict[_Cell, _Runs]:
    """Return every cell of a campaign, and how often each start runs it."""
    defaults: dict[str, Any] = {
        **{factor.name: factor.empty for factor in FACTORS},
        "profile": cluster_profile,
        "workers": cluster_workers,
    }
    lists = [
        (matrix, _lists(matrix, workload, workloads, defaults, cluster_settings))
        for matrix in spec.matrices
        for workload in matrix.workloads
    ]
    count = sum(
        math.prod(map(len, values))
        * (
            spec.starts * matrix.warm_ups
            + max(spec.starts * matrix.repetitions, spec.repetitions_max)
        )
        for matrix, values in lists
    )
    if count > TRIALS_MAX:
        raise UsageError(
            f"the campaign {spec.name} plans {count:,} runs; allowed: at most {TRIALS_MAX:,}",
            hint="make its lists shorter, or split it into several campaigns",
        )
    cells: dict[_Cell, _Runs] = {}
    for matrix, values in lists:
        for row in product(*values):
            cell = _without_idle_settings(row, cluster_settings)
            known = cells.get(cell, _Runs(0, 0))
            cells[cell] = _Runs(
                max(known.repetitions, matrix.repetitions), max(known.warm_ups, matrix.warm_ups)
            )
    if not any(runs.repetitions > 0 for runs in cells.values()):
        raise EmptySelectionError(
            f"nothing to run: {len(cells)} cells, none with a repetition",
            hint="choose at least one engine and one repetition",
        )
    return cells


def _lists(
    matrix: Matrix,
    workload: str,
    workloads: Mapping[str, WorkloadFacts],
    defaults: Mapping[str, Any],
    cluster_settings: Mapping[str, str],
) -> list[Sequence[Any]]:
    """Return the levels of each factor, in the order of ``_ORDER``."""
    jobs = workload.split("+")
    own = mix_engines(workload, workloads)
    takes_size = any(workloads[job].takes_size for job in jobs)
    takes_text = any(workloads[job].takes_text for job in jobs)
    parameters = {
        name: values for name, values in matrix.parameters.items() if name.split(".", 1)[0] in jobs
    }
    settings: dict[str, Sequence[str]] = {key: (value,) for key, value in cluster_settings.items()}
    settings.update(matrix.settings)
    found: dict[str, Sequence[Any]] = {
        **matrix.levels,
        "workload": (workload,),
        "profile": matrix.profiles,
        "engine": [engine for engine in matrix.engines or own if engine in own],
        "size_bytes": (takes_size and matrix.sizes_bytes) or (0,),
        "input": (matrix.input if takes_text else "",),
        "concurrency": matrix.levels.get("concurrency", (len(jobs), 1)) if len(jobs) > 1 else (1,),
        "parameters": _tables(parameters),
        "settings": _tables(settings),
    }
    # An engine may be lacking, and then there is no cell; everything else has a default.
    return [
        found[name] if name == "engine" else found.get(name) or (defaults[name],) for name in _ORDER
    ]


def _without_idle_settings(cell: _Cell, cluster_settings: Mapping[str, str]) -> _Cell:
    """Leave out settings that the cell's engine does not read: they would only multiply cells.

    The cluster's own stay in every cell, so that engines on one cluster can be compared.
    """
    level = dict(zip(_ORDER, cell, strict=True))
    own = of_engine(dict(level["settings"]), level["engine"])
    level["settings"] = hashable({**cluster_settings, **own})
    return tuple(level.values())


def idle_settings(spec: CampaignSpec, planned: Iterable[Trial]) -> tuple[str, ...]:
    """Return the properties that a campaign sets and that none of its runs' engines reads."""
    engines = {trial.engine for trial in planned}
    keys = {key for matrix in spec.matrices for key in matrix.settings}
    read = {key for engine in engines for key in of_engine(dict.fromkeys(keys, ""), engine)}
    return tuple(sorted(keys - read))


def _tables(values: Mapping[str, Sequence[str]]) -> list[tuple[tuple[str, str], ...]]:
    """Return every combination of the values, as sorted pairs."""
    names = sorted(values)
    rows = product(*(values[name] for name in names))
    return [tuple(zip(names, row, strict=True)) for row in rows]


def _trials(
    seed: int,
    groups: list[list[_Cell]],
    templates: Mapping[_Cell, Trial],
    cells: Mapping[_Cell, _Runs],
    rounds: _Rounds,
) -> Iterator[Trial]:
    draw = random.Random(seed)  # noqa: S311  an order to repeat, not a secret
    before = _Runs(
        max(runs.repetitions for runs in cells.values()),
        max(runs.warm_ups for runs in cells.values()),
    )
    position = 0
    for start in range(1, rounds.starts + 1):
        draw.shuffle(groups)
        for group in groups:
            for number, warm_up, block in _blocks(group, cells, rounds.further_blocks):
                draw.shuffle(block)
                earlier = before.warm_ups if warm_up else before.repetitions
                repetition = (start - 1) * earlier + number
                for cell in block:
                    first = templates[cell]
                    yield replace(
                        first,
                        id=f"{first.id}-{'w' if warm_up else ''}{repetition}",
                        position=position,
                        repetition=repetition,
                        warm_up=warm_up,
                        start=start,
                    )
                    position += 1


def _blocks(
    group: Sequence[_Cell], cells: Mapping[_Cell, _Runs], further: int
) -> Iterator[tuple[int, bool, list[_Cell]]]:
    """Yield number, whether it is a warm-up, and the cells of every block of a group."""
    for number in range(1, max(cells[cell].warm_ups for cell in group) + 1):
        yield number, True, [cell for cell in group if cells[cell].warm_ups >= number]
    most = max(cells[cell].repetitions for cell in group)
    for number in range(1, most + further + 1):
        wanted = [cell for cell in group if cells[cell].repetitions >= number or number > most]
        yield number, False, wanted


def _templates(campaign_id: str, cells: Iterable[_Cell]) -> dict[_Cell, Trial]:
    """Return each cell as a trial that lacks its repetition and place."""
    digests = {cell: _digest_of(cell) for cell in cells}
    digits = _DIGEST_DIGITS
    while len({digest[:digits] for digest in digests.values()}) < len(digests):
        digits += 4  # two of many cells may begin alike; their ids must not
    found = {}
    for cell, digest in digests.items():
        level = dict(zip(_ORDER, cell, strict=True))
        tables = {row.name: dict(level[row.name]) for row in FACTORS if row.kind is dict}
        found[cell] = Trial(
            id=f"{campaign_id}-{_short_name(level['workload'])}-{level['engine']}-"
            f"{digest[:digits]}",
            campaign_id=campaign_id,
            position=0,
            repetition=0,
            **(level | tables),
        )
    return found


def _digest_of(cell: _Cell) -> str:
    """Return a digest that does not change when a factor is added, unless the cell sets it."""
    count = len(_FIRST)
    later = {
        name: level
        for name, level in zip(_ORDER[count:], cell[count:], strict=True)
        if level != hashable(FACTORS_BY_NAME[name].empty)
    }
    text = json.dumps([*cell[:count], *([later] if later else [])])
    return hashlib.sha256(text.encode()).hexdigest()


def _short_name(workload: str) -> str:
    """Return a name for ids: YARN's tags, made from them, have at most 100 characters."""
    if len(workload) <= _MIX_NAME_LENGTH_MAX:
        return workload
    return f"mix-of-{workload.count('+') + 1}"


def spec_digest(spec: CampaignSpec, cluster: ClusterSpec) -> str:
    """Return the SHA-256 of what a campaign and its cluster mean.

    Comments do not change it, but any change of the users' own files that they name does: profiles,
    boards, media, power supplies and cooling.
    """
    declared = to_json(cluster)
    _drop_empty(declared, "settings")  # type: ignore[arg-type]
    for name in ("open_ports", "ssh_from", "egress"):  # the firewall's doors change no result
        del declared["network"][name]  # type: ignore[arg-type, call-overload, index, union-attr]
    whole: dict[str, JsonValue] = {"cluster": declared}
    if digests := own_part_digests(cluster.nodes):
        whole["parts"] = to_json(digests)
    return _digest_with_profiles(spec, whole, [cluster.profile])


def campaign_digest(spec: CampaignSpec) -> str:
    """Return the SHA-256 of what a campaign means by itself, on whichever cluster it runs."""
    return _digest_with_profiles(spec, {}, [])


def _digest_with_profiles(
    spec: CampaignSpec, parts: Mapping[str, JsonValue], profiles: Sequence[str]
) -> str:
    """Digest a campaign and other parts with the users' own profiles that they name."""
    campaign = to_json(spec)
    for matrix in campaign["matrices"]:  # type: ignore[index, call-overload, union-attr]
        _in_first_form(matrix)  # type: ignore[arg-type]
    _without_later(campaign)  # type: ignore[arg-type]
    whole = {"campaign": campaign, **parts}
    names = [*profiles, *(name for row in spec.matrices for name in row.profiles)]
    if digests := own_file_digests(names):
        whole["profiles"] = to_json(digests)
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


_FIRST_LISTS: Mapping[str, tuple[str, list[int | str]]] = {
    "workers": ("workers", []),
    "concurrency": ("concurrencies", []),
    "replication": ("replications", [0]),
    "checksum": ("checksums", ["crc32c"]),
    "master": ("masters", ["declared"]),
}
"""How the first campaigns wrote the levels of a factor, and what they wrote for none."""


def _in_first_form(matrix: dict[str, Any]) -> None:
    """Write a matrix as the first campaigns did, which may be unfinished; later keys if set."""
    for name, (plural, default) in _FIRST_LISTS.items():
        matrix[plural] = matrix["levels"].pop(name, None) or default
    _drop_empty(matrix, "levels", "settings")


def _without_later(campaign: dict[str, Any]) -> None:
    """Leave out what the first campaigns did not have, unless it is set."""
    if campaign["seed"] is None:
        campaign["seed"] = 1  # what no seed meant to them
    if campaign["starts"] == 1:
        del campaign["starts"]
    _drop_empty(campaign, "precision", "repetitions_max", "comparisons")
    for name in ("on_loss", "loss_wait_seconds"):  # they change no run, so they may be edited
        del campaign["policy"][name]


def _drop_empty(table: dict[str, Any], *names: str) -> None:
    for name in names:
        if not table[name]:
            del table[name]
