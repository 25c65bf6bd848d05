"""What to buy, as it is asked: names and texts to a plan. Starts nothing, reads no store."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from boardcluster.catalog.prices import CATALOG_CURRENCY
from boardcluster.errors import UsageError
from boardcluster.fetch.cache import make_folder, writing
from boardcluster.plan.buying import plan_purchase
from boardcluster.plan.candidates import WORKERS_MOST, PlanTask
from boardcluster.plan.composition import BoardsThere, PlanModel, WorkersThere
from boardcluster.plan.feasibility import HDFS_SHARES
from boardcluster.plan.limits import PlanLimits
from boardcluster.plan.offers import find_offers, read_prices
from boardcluster.plan.planning import PlanSpace
from boardcluster.plan.purchase import PurchasePlan
from boardcluster.plan.purchase_files import purchase_files
from boardcluster.plan.question import read_input_size
from boardcluster.records import ClusterSpec, Engine
from boardcluster.services.containers import needs_of_board
from boardcluster.services.declaration import read_spec
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.spec.template import render_cluster
from boardcluster.units import parse_duration
from boardcluster.workloads import load_workload

__all__ = [
    "PurchaseRequest",
    "plan_for_request",
    "read_boards_there",
    "read_limits",
    "read_planned_size",
    "write_plan",
]

_THERE = re.compile(r"([0-9]{1,4})\s*x\s*([^,\s]+)\s*,\s*([^,\s]+)")
_THERE_HINT = (
    "for example --have '4 x rpi-4b-4gb-1500mhz, samsung-evo-32gb', or a cluster.toml whose nodes"
    " name board and medium"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PurchaseRequest:
    """What is asked."""

    workload: str
    """Name of the workload."""
    size_bytes: int
    """Size of its input, or of what it makes; 0 for one that takes none."""
    engine: Engine | None = None
    """The engine; None for the faster or cheaper one of those that can run it."""
    limits: PlanLimits = field(default_factory=PlanLimits)
    """What must be kept."""
    boards: Sequence[str] = ()
    """Boards to choose from; none for the catalog's."""
    media: Sequence[str] = ()
    """Media, likewise."""
    networks: Sequence[str] = ()
    """Switches, likewise."""
    profiles: Sequence[str] = ()
    """Engine configurations to try; none for ``default``."""
    prices: Sequence[str] = ()
    """``NAME=AMOUNT`` each."""
    there: Sequence[str] = ()
    """What is there already: see ``read_boards_there``."""
    workers_most: int = WORKERS_MOST
    """Most workers to buy."""
    replication: int | None = None
    """Copies of each block; None for what each profile keeps."""


def read_planned_size(workload: str, size: str | int | None) -> int:
    """Return the size of a run in bytes; a text needs its unit.

    Raises:
        UsageError: it is missing, has no unit, or is no size; or the workload takes none.
    """
    if workload == "pi":
        if size is not None:
            raise UsageError("--size has no effect: pi takes no input", hint="leave it out")
        return 0
    if size is None:
        raise UsageError("a plan needs the size of the input", hint="for example --size 100GB")
    return read_input_size(size, example="100GB")


def read_limits(
    *,
    deadline: str | None = None,
    budget: float | None = None,
    watts: float | None = None,
    joules: float | None = None,
) -> PlanLimits:
    """Return limits, which must be above 0.

    Args:
        deadline: longest time of a run: ``"3h"``.
        budget: highest price of what is bought.
        watts: highest mean power of the workers.
        joules: highest energy of the workers.

    Raises:
        UsageError: one is no such amount.
    """
    try:
        seconds = None if deadline is None else parse_duration(deadline)
    except ValueError as error:
        raise UsageError(f"--deadline: {error}", hint="for example --deadline 3h") from error
    limits = PlanLimits(deadline_seconds=seconds, budget=budget, watts=watts, joules=joules)
    for name, value in limits.given().items():
        if not 0 < value < math.inf:
            raise UsageError(f"--{name} {value:g} allows nothing", hint="give a number above 0")
    return limits


def read_boards_there(texts: Sequence[str]) -> BoardsThere:
    """Read what is there already: ``COUNT x BOARD, MEDIUM`` or the path of a ``cluster.toml``.

    Raises:
        UsageError: a text is neither, a name does not exist, or nodes of the file name no board.
        SpecError: the file is missing or wrong.
    """
    rows: list[tuple[int, str, str]] = []
    for text in texts:
        if text.endswith(".toml") and not _THERE.fullmatch(text.strip()):
            rows += _of_file(Path(text))
        elif found := _THERE.fullmatch(text.strip()):
            rows.append((int(found[1]), found[2], found[3]))
        else:
            raise UsageError(f"--have {text!r} is not COUNT x BOARD, MEDIUM", hint=_THERE_HINT)
    kinds = []
    for count, board, medium in rows:
        offers = find_offers(boards=[board], media=[medium])
        if not (offers.boards and offers.media):
            why = "; ".join(f"{row.name}: {row.why}" for row in offers.left_out)
            raise UsageError(f"--have {board}, {medium}: {why}", hint=_THERE_HINT)
        kinds.append(WorkersThere(count=count, board=offers.boards[0], medium=offers.media[0]))
    return BoardsThere(rows=tuple(row for row in kinds if row.count))


def _of_file(path: Path) -> list[tuple[int, str, str]]:
    counted: dict[tuple[str, str], int] = {}
    for node in read_spec(path).workers:
        if node.twin is None or not node.twin.medium:
            raise UsageError(
                f"{path}: node {node.name} names no board and medium of the catalog",
                hint=_THERE_HINT,
            )
        key = (node.twin.board, node.twin.medium)
        counted[key] = counted.get(key, 0) + 1
    return [(count, board, medium) for (board, medium), count in counted.items()]


def plan_for_request(
    request: PurchaseRequest, learn: Callable[[str, Sequence[str], Sequence[str]], PlanModel]
) -> PurchasePlan:
    """Return what to buy.

    Args:
        request: what is asked.
        learn: makes the model of a workload on boards and media, by their names.

    Raises:
        UsageError: a name does not exist, options contradict each other, or the limits exclude
            everything; says which one binds, and by how much.
        PredictionUnknownError: the model knows the time of none.
        CapacityError: no cluster holds the data or has the memory.
        SpecError: a file of one's own is missing or wrong.
    """
    engines = _engines(request)
    offers = find_offers(
        boards=request.boards,
        media=request.media,
        switches=request.networks,
        prices=read_prices(request.prices),
    )
    there = read_boards_there(request.there)
    boards = [row.name for row in (*offers.boards, *(row.board for row in there.rows))]
    media = [row.name for row in (*offers.media, *(row.medium for row in there.rows))]
    return plan_purchase(
        PlanSpace(
            task=PlanTask(
                workload=request.workload,
                engines=engines,
                size_bytes=request.size_bytes,
                replication=request.replication,
            ),
            limits=request.limits,
            offers=offers,
            profiles=tuple(request.profiles) or ("default",),
            there=there,
            model=learn(request.workload, boards, media),
            needs_of=cache(partial(needs_of_board, engines=pair_ids()[0])),
            currency=CATALOG_CURRENCY,
            workers_most=request.workers_most,
        )
    )


def _engines(request: PurchaseRequest) -> tuple[Engine, ...]:
    possible = tuple(engine for engine in load_workload(request.workload).engines if engine.on_yarn)
    if not possible or request.workload not in HDFS_SHARES:
        raise UsageError(
            f"no plan for {request.workload}: it is not a workload of Hadoop or Spark",
            hint=f"choose one of {', '.join(HDFS_SHARES)}",
        )
    if request.engine is None:
        return possible
    if request.engine not in possible:
        raise UsageError(
            f"{request.workload} does not run on {request.engine}",
            hint=f"choose one of {', '.join(possible)}",
        )
    return (request.engine,)


def write_plan(plan: PurchasePlan, folder: Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write ``cluster.toml``, ``twin.toml`` and the shopping list.

    Returns:
        The files, and what is to be said of them, a sentence each.

    Raises:
        UsageError: there is a declaration already, which may be a real cluster's.
        HostError: they cannot be written.
    """
    for name in ("cluster.toml", "twin.toml"):
        if (folder / name).exists():
            raise UsageError(
                f"{folder / name} exists already, and a plan replaces no cluster",
                hint="choose another folder with --out, or remove the file",
            )
    files, words = purchase_files(plan, engines=pair_ids()[0], render=_render)
    make_folder(folder)
    for name, text in files.items():
        with writing(folder / name):
            (folder / name).write_text(text)
    return tuple(folder / name for name in files), words


def _render(spec: ClusterSpec) -> str:
    return render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names())
