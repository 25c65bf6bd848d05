"""From what the user wants to an ordered list of trials. Pure."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import groupby, product
from typing import Any

from boardcluster.errors import EmptySelectionError, UsageError
from boardcluster.records import (
    CampaignSpec,
    Checksum,
    ClusterSpec,
    Engine,
    MasterPlacement,
    Matrix,
    Trial,
)
from boardcluster.spec import WorkloadFacts, mix_engines
from boardcluster.store.codec import to_json
from boardcluster.workloads import load_workload, workload_names
from boardcluster.workloads.base import Takes

__all__ = ["TRIALS_MAX", "expand", "spec_digest", "workload_facts"]

TRIALS_MAX = 100_000
"""Most trials of a campaign: a bound on memory and on the time before the first one starts."""

_MIX_NAME_LENGTH_MAX = 32
_DIGEST_DIGITS = 8


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class _Cell:
    """What a trial runs. The first three fields are the cluster's form.

    Attributes are those of Trial; ``parameters`` is sorted, so that equal cells are equal.
    """

    profile: str
    workers: int
    master: MasterPlacement
    workload: str
    engine: Engine
    size_bytes: int
    concurrency: int
    replication: int
    checksum: Checksum
    input: str
    parameters: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Runs:
    """How often a cell runs."""

    repetitions: int
    warm_ups: int


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
            takes_size=workload.takes is not Takes.NOTHING,
            size_is_optional=workload.takes is Takes.MATRIX,
            takes_text=workload.takes is Takes.TEXT,
        )
    return found


def expand(
    spec: CampaignSpec,
    *,
    campaign_id: str,
    workloads: Mapping[str, WorkloadFacts],
    cluster_profile: str,
    cluster_workers: int,
) -> tuple[Trial, ...]:
    """Return every trial of a campaign in the order to run it.

    1. Each matrix gives its cells. A cell that two matrices give is one cell; the larger number
       of repetitions, and of warm-ups, holds.
    2. Cells with the same profile, workers and place of the master are together, because changing
       one of these restarts the daemons. These groups are in an order drawn from the seed.
    3. Inside a group come the warm-ups, then the measured repetitions. Each is a block that holds
       every cell once, in an order drawn from the seed, so a machine that slowly warms up or fills
       its disk does not favour one cell.

    The order depends on the cells and the seed, not on the order in the file.

    Args:
        spec: the campaign.
        campaign_id: id of the campaign; the trials' ids begin with it.
        workloads: the workloads that the campaign names.
        cluster_profile: the profile where a matrix names none.
        cluster_workers: the number of workers where a matrix names none.

    Raises:
        EmptySelectionError: there is nothing to run.
        UsageError: there are more than TRIALS_MAX trials.
    """
    lists = [
        (matrix, workload, _lists(matrix, workload, workloads, cluster_profile, cluster_workers))
        for matrix in spec.matrices
        for workload in matrix.workloads
    ]
    count = sum(
        math.prod(map(len, values)) * (matrix.repetitions + matrix.warm_ups)
        for matrix, _, values in lists
    )
    if count > TRIALS_MAX:
        raise UsageError(
            f"the campaign {spec.name} plans {count:,} runs; allowed: at most {TRIALS_MAX:,}",
            hint="make its lists shorter, or split it into several campaigns",
        )
    cells: dict[_Cell, _Runs] = {}
    for matrix, workload, values in lists:
        for row in product(*values):
            cell = _cell(matrix, workload, workloads, row)
            known = cells.get(cell, _Runs(0, 0))
            cells[cell] = _Runs(
                max(known.repetitions, matrix.repetitions), max(known.warm_ups, matrix.warm_ups)
            )
    if not any(runs.repetitions > 0 for runs in cells.values()):
        raise EmptySelectionError(
            f"nothing to run: {len(cells)} cells, none with a repetition",
            hint="choose at least one engine and one repetition",
        )
    return tuple(_trials(spec.seed, campaign_id, cells))


def _lists(
    matrix: Matrix,
    workload: str,
    workloads: Mapping[str, WorkloadFacts],
    cluster_profile: str,
    cluster_workers: int,
) -> list[Sequence[Any]]:
    """Return the values of each dimension, in the order in which ``_cell`` takes them."""
    jobs = workload.split("+")
    own = mix_engines(workload, workloads)
    takes_size = any(workloads[job].takes_size for job in jobs)
    return [
        matrix.profiles or (cluster_profile,),
        matrix.workers or (cluster_workers,),
        matrix.masters,
        [engine for engine in matrix.engines or own if engine in own],
        (takes_size and matrix.sizes_bytes) or (0,),
        (1,) if len(jobs) == 1 else matrix.concurrencies or (len(jobs), 1),
        matrix.replications,
        matrix.checksums,
        *(matrix.parameters[name] for name in _parameters_of(matrix, jobs)),
    ]


def _parameters_of(matrix: Matrix, jobs: Sequence[str]) -> list[str]:
    """Return the parameters of a matrix that concern these workloads."""
    return sorted(name for name in matrix.parameters if name.split(".", 1)[0] in jobs)


def _cell(
    matrix: Matrix, workload: str, workloads: Mapping[str, WorkloadFacts], row: Sequence[Any]
) -> _Cell:
    jobs = workload.split("+")
    profile, workers, master, engine, size_bytes, concurrency, replication, checksum, *rest = row
    return _Cell(
        profile=profile,
        workers=workers,
        master=master,
        workload=workload,
        engine=engine,
        size_bytes=size_bytes,
        concurrency=concurrency,
        replication=replication,
        checksum=checksum,
        input=matrix.input if any(workloads[job].takes_text for job in jobs) else "",
        parameters=tuple(zip(_parameters_of(matrix, jobs), rest, strict=True)),
    )


def _trials(seed: int, campaign_id: str, cells: Mapping[_Cell, _Runs]) -> Iterator[Trial]:
    draw = random.Random(seed)  # noqa: S311  an order to repeat, not a secret
    templates = _templates(campaign_id, cells)
    groups = [list(group) for _, group in groupby(sorted(cells), key=_form_of)]
    draw.shuffle(groups)
    position = 0
    for group in groups:
        for number, warm_up, block in _blocks(group, cells):
            draw.shuffle(block)
            for cell in block:
                first = templates[cell]
                yield replace(
                    first,
                    id=f"{first.id}-{'w' if warm_up else ''}{number}",
                    position=position,
                    repetition=number,
                    warm_up=warm_up,
                )
                position += 1


def _form_of(cell: _Cell) -> tuple[str, int, str]:
    return (cell.profile, cell.workers, cell.master)


def _blocks(
    group: Sequence[_Cell], cells: Mapping[_Cell, _Runs]
) -> Iterator[tuple[int, bool, list[_Cell]]]:
    """Yield number, whether it is a warm-up, and the cells of every block of a group."""
    for number in range(1, max(cells[cell].warm_ups for cell in group) + 1):
        yield number, True, [cell for cell in group if cells[cell].warm_ups >= number]
    for number in range(1, max(cells[cell].repetitions for cell in group) + 1):
        yield number, False, [cell for cell in group if cells[cell].repetitions >= number]


def _templates(campaign_id: str, cells: Iterable[_Cell]) -> dict[_Cell, Trial]:
    """Return each cell as a trial that lacks its repetition and place."""
    digests = {cell: _digest_of(cell) for cell in cells}
    digits = _DIGEST_DIGITS
    while len({digest[:digits] for digest in digests.values()}) < len(digests):
        digits += 4  # two of many cells may begin alike; their ids must not
    return {
        cell: Trial(
            id=f"{campaign_id}-{_short_name(cell.workload)}-{cell.engine}-{digest[:digits]}",
            campaign_id=campaign_id,
            position=0,
            workload=cell.workload,
            engine=cell.engine,
            profile=cell.profile,
            size_bytes=cell.size_bytes,
            workers=cell.workers,
            repetition=0,
            concurrency=cell.concurrency,
            replication=cell.replication,
            checksum=cell.checksum,
            master=cell.master,
            input=cell.input,
            parameters=dict(cell.parameters),
        )
        for cell, digest in digests.items()
    }


def _digest_of(cell: _Cell) -> str:
    return hashlib.sha256(json.dumps(astuple(cell)).encode()).hexdigest()


def _short_name(workload: str) -> str:
    """Return a name for ids: YARN's tags, made from them, have at most 100 characters."""
    if len(workload) <= _MIX_NAME_LENGTH_MAX:
        return workload
    return f"mix-of-{workload.count('+') + 1}"


def spec_digest(spec: CampaignSpec, cluster: ClusterSpec) -> str:
    """Return the SHA-256 of what a campaign and its cluster mean; comments do not change it."""
    both = {"campaign": to_json(spec), "cluster": to_json(cluster)}
    text = json.dumps(both, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
