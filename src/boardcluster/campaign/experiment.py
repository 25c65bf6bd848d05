"""An experiment: its files, what they cite and this machine are checked; then each twin runs."""

from __future__ import annotations

import contextlib
import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from boardcluster.analysis.experiments import PaperResult, column_of, is_of
from boardcluster.campaign.begin import CampaignRequest, Start, as_begun, left_of
from boardcluster.campaign.follow import Follower
from boardcluster.campaign.life import preflight_of, run_campaign
from boardcluster.campaign.plan import plan, spec_digest
from boardcluster.campaign.preflight import Preflight
from boardcluster.campaign.request import campaign_file
from boardcluster.campaign.rounds import next_round
from boardcluster.campaign.trial_jobs import variant_of
from boardcluster.campaign.twins import place_twin, read_twin, refuse_imported, twin_home
from boardcluster.campaign.upkeep import OF_EXPERIMENT
from boardcluster.catalog.consistency import doubt_of
from boardcluster.catalog.lookup import nearest
from boardcluster.catalog.published import find_cell, find_table, read_index
from boardcluster.catalog.ratios import Answer, check_ratios, read_ratios
from boardcluster.cluster.limits.disks import held_bytes
from boardcluster.cluster.limits.host import look_at_host, with_own_disks
from boardcluster.cluster.lock import driver_lock
from boardcluster.cluster.state import load_state
from boardcluster.errors import (
    BoardclusterError,
    CapacityError,
    ClusterError,
    LockedError,
    SpecError,
    UsageError,
)
from boardcluster.records import Campaign, CampaignSpec, ClusterSpec, Result, Trial
from boardcluster.services import operation
from boardcluster.services.disk_space import require_disk_space
from boardcluster.spec.experiment import ExperimentSpec, PublishedSpec
from boardcluster.spec.variant import apply_variant
from boardcluster.store import Store
from boardcluster.twin.calibration import calibrated_with
from boardcluster.twin.plan import Host, TwinPlan, plan_limits

__all__ = [
    "Checked",
    "Stand",
    "check_experiment",
    "end_leftovers",
    "may_go_on",
    "run_stand",
    "verified_so_far",
]

_NO_RATIOS = ("difference", "below", "above")
"""Statements of the papers that give no number of times as fast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """One twin of an experiment, and how far it is."""

    name: str
    """Its file's name without ``.toml``."""
    file: Path
    """Its file."""
    home: Path
    """Its state folder."""
    spec: ClusterSpec
    """Its cluster."""
    trials: tuple[Trial, ...]
    """All that is to run on it."""
    campaign: Campaign | None
    """The stored campaign to continue or to show; None before it was begun."""
    left: tuple[Trial, ...]
    """What is still to run."""
    preflight: Preflight | None
    """What that takes; None where nothing is left."""
    words: tuple[str, ...] = ()
    """Lines on what its nodes ask of this machine."""

    @property
    def known_seconds(self) -> float:
        """How long what is left takes on this machine, as far as earlier runs tell."""
        return self.preflight.known_seconds if self.preflight else 0.0

    @property
    def unknown_runs(self) -> int:
        """Runs that are left and like no earlier one."""
        return self.preflight.unknown_runs if self.preflight else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """An experiment in which nothing is wrong."""

    campaign: CampaignSpec
    """The campaign."""
    file_bytes: bytes
    """Its file."""
    stands: tuple[Stand, ...]
    """Its twins in order."""
    columns: tuple[str, ...]
    """The columns of its table, the first to compare with."""
    published: tuple[PaperResult, ...]
    """What the papers say of its cells."""


@contextlib.contextmanager
def _noting(found: list[BoardclusterError], where: str = "") -> Iterator[None]:
    """Note an error of the block with its place, and continue after it."""
    try:
        yield
    except BoardclusterError as error:
        message = error.message if not where else f"{where}: {error.message}"
        found.append(type(error)(message, hint=error.hint))


def _refuse(found: Sequence[BoardclusterError]) -> None:
    """Raise everything that was found as one error."""
    if not found:
        return
    if len(found) == 1:
        raise found[0]
    kind = SpecError if any(isinstance(row, SpecError) for row in found) else type(found[0])
    lines = [f"{row.message} ({row.hint})" if row.hint else row.message for row in found]
    raise kind("\n".join(lines), hint="correct all of these and run the command again")


def check_experiment(
    experiment: ExperimentSpec, root: Path | None, *, keep: bool = False
) -> Checked:
    """Check all files, that every twin can hold its part of the campaign, and what is cited.

    Args:
        experiment: the experiment.
        root: folder of the twins' state folders; None for where all clusters have theirs.
        keep: whether each twin keeps its disks, so that this machine must hold all of them.

    Raises:
        BoardclusterError: with all that is wrong.
    """
    found: list[BoardclusterError] = []
    request: CampaignRequest | None = None
    specs: dict[Path, ClusterSpec] = {}
    published: list[tuple[PublishedSpec, PaperResult]] = []
    with _noting(found):
        request = campaign_file(experiment.campaign)
    for file in experiment.twins:
        with _noting(found):
            specs[file] = read_twin(file)
    for row in experiment.published:
        with _noting(found, row.place):
            published.append((row, _cited(row)))
    _refuse(found)
    if request is None:
        raise RuntimeError("no campaign, though nothing was wrong with it")
    campaign = request.spec
    homes = _homes(specs, root, found)
    stands: list[Stand] = []
    for file, spec in specs.items():
        with _noting(found, file.stem):
            freed_bytes = 0 if keep else sum(map(_leftover_bytes, stands))
            stands.append(_stand(file, spec, homes[file], campaign, found, freed_bytes=freed_bytes))
    if any(stand.left for stand in stands):
        stands = _fitting(stands, found, keep=keep)
    if len(stands) == len(specs):
        _check_cited(published, stands, found)
    _refuse(found)
    return Checked(
        campaign=campaign,
        file_bytes=request.file_bytes,
        stands=tuple(stands),
        columns=_columns(experiment, campaign, stands),
        published=tuple(row for _, row in published),
    )


def _homes(
    specs: Mapping[Path, ClusterSpec], root: Path | None, found: list[BoardclusterError]
) -> dict[Path, Path]:
    """Return the twins' state folders: one for each, without results of others."""
    homes: dict[Path, Path] = {}
    for file, spec in specs.items():
        home = twin_home(root / spec.name if root else None, spec)
        if home in homes.values():
            found.append(
                SpecError(
                    f"{file}: [cluster] name {spec.name!r} is also the name of another twin",
                    hint="give each twin a name of its own",
                )
            )
        with _noting(found, file.stem):
            refuse_imported(home)
        homes[file] = home
    return homes


def _stand(
    file: Path,
    spec: ClusterSpec,
    home: Path,
    campaign: CampaignSpec,
    found: list[BoardclusterError],
    *,
    freed_bytes: int,
) -> Stand:
    """Look at what a twin has done and has still to do.

    ``freed_bytes`` of this machine's disk are deleted before it begins.
    """
    any_order = replace(campaign, seed=0)
    trials = plan(any_order, spec, campaign_id="dry-run")
    begun, left = _progress(home, campaign, spec, trials)
    preflight: Preflight | None = None
    if left:
        with Store.open(home, read_only=True) as store:
            folder = _existing(home)
            preflight = preflight_of(folder, spec, store, left, freed_bytes=freed_bytes)
        found.extend(
            CapacityError(f"{file.stem}: {problem}", hint="") for problem in preflight.problems
        )
    return Stand(
        name=file.stem,
        file=file,
        home=home,
        spec=spec,
        trials=trials,
        campaign=begun,
        left=left,
        preflight=preflight,
    )


def _fitting(stands: Sequence[Stand], found: list[BoardclusterError], *, keep: bool) -> list[Stand]:
    """Check that this machine holds each twin that is still to run, and is free for it."""
    hosts: list[Host] = []
    with _noting(found):
        host = look_at_host(
            _existing(stands[0].home),
            str(uuid.uuid4()),
            memory_available_bytes=operation.available_memory_bytes(),
        )
        hosts.append(host)
    fitting = []
    kept_bytes = 0
    for place, stand in enumerate(stands):
        if operation.found_up(stand.home):
            found.append(
                ClusterError(
                    f"{stand.name}: its cluster is up and would share this machine with the others",
                    hint=f"run `boardcluster down --home {stand.home}` first",
                )
            )
        planned = stand
        if hosts and stand.preflight is not None and not stand.preflight.problems:
            with _noting(found, stand.name):
                earlier = () if keep else stands[:place]
                host = _without_leftovers(hosts[0], earlier)
                host = replace(host, disk_free_bytes=host.disk_free_bytes - kept_bytes)
                planned = replace(stand, words=_fit(stand, host).words)
        fitting.append(planned)
        if keep and stand.left:
            kept_bytes += _missing_bytes(stand)
    return fitting


def _existing(folder: Path) -> Path:
    """Return the folder, or what will hold it."""
    while not folder.is_dir():
        folder = folder.parent
    return folder


def _fit(stand: Stand, host: Host) -> TwinPlan:
    """Check that this machine holds the largest variant of a twin; return what its nodes get.

    Raises:
        CapacityError: it does not; with the arithmetic.
        UsageError: the catalog lacks a figure of a board.
    """
    variants = {variant_of(trial) for trial in stand.left}
    largest = max(
        (apply_variant(stand.spec, variant) for variant in variants),
        key=lambda row: len(row.nodes),
    )
    names = {node.name for node in largest.nodes}
    if stand.campaign is None:  # disks of nodes that it has no more are deleted first, too
        names.update(_leftovers(stand))
    return plan_limits(largest, with_own_disks(host, stand.home / "nodes", sorted(names)))


def _missing_bytes(stand: Stand) -> int:
    """Return what the disks of a twin take at most of this machine's beyond what they hold now."""
    disks = {node.name: node.twin.disk_bytes for node in stand.spec.nodes if node.twin}
    return max(0, sum(disks.values()) - held_bytes(stand.home / "nodes", disks))


def _without_leftovers(host: Host, stands: Sequence[Stand]) -> Host:
    """Return a host with the room that disks of a killed experiment take.

    Those of twins that come before another one are deleted when that begins.
    """
    for stand in stands:
        if names := _leftovers(stand):
            host = with_own_disks(host, stand.home / "nodes", names)
    return host


def _leftovers(stand: Stand) -> list[str]:
    """Return the nodes whose disks a killed experiment left; also those that a twin has no more."""
    nodes = stand.home / "nodes"
    if not (stand.home / OF_EXPERIMENT).exists() or not nodes.is_dir():
        return []
    return sorted(folder.name for folder in nodes.iterdir())


def _leftover_bytes(stand: Stand) -> int:
    """Return the room that they take on this machine's disk."""
    return held_bytes(stand.home / "nodes", _leftovers(stand))


def _progress(
    home: Path, campaign: CampaignSpec, spec: ClusterSpec, trials: tuple[Trial, ...]
) -> tuple[Campaign | None, tuple[Trial, ...]]:
    """Return the latest campaign if it is of the same files, and what is left to run."""
    with Store.open(home, read_only=True) as store:
        earlier = store.find_campaigns(campaign.name)
        if not earlier or earlier[-1].spec_sha256 != spec_digest(campaign, spec):
            return None, trials
        begun = earlier[-1]
        left = left_of(store, begun, campaign.policy)
        return begun, left or next_round(store, begun, as_begun(campaign, begun), spec).trials


def _columns(
    experiment: ExperimentSpec, campaign: CampaignSpec, stands: Sequence[Stand]
) -> tuple[str, ...]:
    """Return the columns in the order of the files; values that no file names are sorted."""
    vary = str(experiment.vary)
    there = {column_of(vary, row.name, trial) for row in stands for trial in row.trials}
    named: dict[str, None] = dict.fromkeys(row.name for row in stands) if vary == "twin" else {}
    for matrix in campaign.matrices:
        lists = {**matrix.levels, "profile": matrix.profiles}
        named |= dict.fromkeys(str(value) for value in lists.get(vary, ()))
    rest = sorted(there - set(named), key=lambda text: (len(text), text))
    return (*(column for column in named if column in there), *rest)


# What is cited


def _cited(row: PublishedSpec) -> PaperResult:
    """Look up what an experiment cites.

    Raises:
        UsageError: there is no such table, cell or ratio, or it is no time.
    """
    if row.ratio:
        ratios = {ratio.id: ratio for ratio in read_ratios()}
        if row.ratio not in ratios:
            near = nearest(row.ratio, list(ratios))
            raise UsageError(
                f"the catalog has no ratio {row.ratio!r}"
                + (f'; did you mean "{near}"?' if near else ""),
                hint="see the ratios with: boardcluster catalog published --check",
            )
        said = ratios[row.ratio]
        if said.how in _NO_RATIOS or said.times != 1:
            raise UsageError(
                f"the catalog's {row.ratio!r} is no ratio that can be compared with: {said.words}",
                hint="name one that states how many times as fast something is",
            )
        source = f"{said.paper}, {said.section}: {said.words}"
        [check] = check_ratios([said])
        if check.answer is Answer.NOT and check.given is not None:
            source += f" (doubtful: the paper's tables give {check.given.value:.2f})"
        return PaperResult(of=row.of, seconds=None, ratio=float(said.says), source=source)
    table = find_table(row.file, index=read_index())
    cell = find_cell(table, row.where, row.quantity)
    seconds = _number(cell.value)
    if cell.unit != "s" or not seconds > 0:
        raise UsageError(
            f"{table.id}: {row.quantity} {cell.value!r} {cell.unit} is not a time in s",
            hint="name a cell that is one, such as execution_time",
        )
    keys = ", ".join(f"{key} {value}" for key, value in cell.keys.items() if value)
    if calibrated := calibrated_with(row.file, row.where):
        keys += f" (calibrates {calibrated})"
    doubt = doubt_of(table.id, cell)
    source = f"{table.paper}, {table.table}: {keys}" + (f" (doubtful: {doubt})" if doubt else "")
    return PaperResult(of=row.of, seconds=seconds, ratio=None, source=source)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _check_cited(
    published: Sequence[tuple[PublishedSpec, PaperResult]],
    stands: Sequence[Stand],
    found: list[BoardclusterError],
) -> None:
    """Each citation belongs to one cell, and each cell has at most one."""
    cells = [
        (stand.name, trial)
        for stand in stands
        for trial in stand.trials
        if trial.repetition == 1 and not trial.warm_up
    ]
    taken: dict[tuple[str, str], str] = {}
    for row, said in published:
        own = [(twin, trial) for twin, trial in cells if is_of(said.of, twin, trial)]
        if len(own) != 1:
            found.append(
                SpecError(
                    f"{row.place}: of: {len(own)} cells of the experiment match that",
                    hint="say which one by twin, workload, engine, size, workers, master, "
                    "concurrency and profile",
                )
            )
            continue
        place = (own[0][0], own[0][1].id)
        if place in taken:
            found.append(
                SpecError(
                    f"{row.place}: of: that cell already has {taken[place]}",
                    hint="name one number for each cell",
                )
            )
        taken.setdefault(place, row.place)


# Running


def run_stand(
    stand: Stand, checked: Checked, *, cache: Path, follow: Follower, keep: bool
) -> tuple[Result, ...]:
    """Run what is left on a twin; whatever happens, it is down afterwards.

    Returns:
        All its trials with their latest attempts.
    """
    if stand.campaign is not None and not stand.left:
        if not keep:
            _delete_leftovers(stand.home)
        with Store.open(stand.home, read_only=True) as store:
            return store.results(stand.campaign.id)
    request = CampaignRequest(
        spec=checked.campaign,
        file_bytes=checked.file_bytes,
        start=Start.RESUME if stand.campaign else Start.NEW,
    )
    mark = stand.home / OF_EXPERIMENT
    # Whose the nodes' data is must not be decided while an `up` makes it the user's.
    with driver_lock(stand.home, doing="experiment"):
        if stand.campaign is None:  # its disks may have other sizes, and it starts with its own
            _wipe_marked(stand.home)
        of_user = (stand.home / "nodes").exists() and not mark.exists()
        place_twin(stand.spec, stand.file, stand.home)
        if keep or of_user:
            mark.unlink(missing_ok=True)
        else:
            mark.touch()  # for the next experiment, if this one is killed
        try:
            done = run_campaign(stand.home, request, cache=cache, follow=follow, locked=True)
            return done.results
        finally:
            _wipe_marked(stand.home)


def _wipe_marked(home: Path) -> None:
    """Delete what nodes keep only for an experiment, unless they run; with the lock held."""
    mark = home / OF_EXPERIMENT
    if mark.exists() and load_state(home) is None:
        operation.wipe(home)
        mark.unlink()


def _delete_leftovers(home: Path) -> None:
    """Delete what a killed experiment left of a twin that has nothing left to run."""
    if (home / OF_EXPERIMENT).exists():
        with contextlib.suppress(LockedError), driver_lock(home, doing="experiment"):
            _wipe_marked(home)  # what another driver has by now is no leftover


def may_go_on(stand: Stand) -> bool:
    """Whether the next twin can run after one broke off.

    It cannot beside what still runs of that, nor on a full disk. A lack of memory or speed may be
    that twin's alone, and over by then.
    """
    if load_state(stand.home) is not None:
        return False
    try:
        require_disk_space(_existing(stand.home))
    except CapacityError:
        return False
    return True


def verified_so_far(stand: Stand, checked: Checked) -> tuple[Result, ...]:
    """Return the trials of a twin that broke off, with their latest attempts; none before any."""
    campaign, _ = _progress(stand.home, checked.campaign, stand.spec, stand.trials)
    if campaign is None:
        return ()
    with Store.open(stand.home, read_only=True) as store:
        return store.results(campaign.id)


def end_leftovers(experiment: ExperimentSpec, root: Path | None) -> None:
    """Bring down what killed experiments left up: it takes memory and time from the next twin.

    Those are this experiment's twins, and others beside them, which may have been its twins before
    it was edited. Files that are wrong are left to ``check_experiment``.

    Raises:
        LockedError: another driver runs one of the twins.
        ClusterError: something could not be ended.
    """
    homes = []
    for file in experiment.twins:
        with contextlib.suppress(BoardclusterError):
            spec = read_twin(file)
            homes.append(twin_home(root / spec.name if root else None, spec))
    for home in homes:
        _end_temporary(home)
    for home in _marked_beside(homes):
        # One that goes on was not killed, and one of another user is not ours to end.
        with contextlib.suppress(BoardclusterError):
            _end_temporary(home)


def _end_temporary(home: Path) -> None:
    """End a cluster that was to be up for a campaign only."""
    state = load_state(home)
    if state is not None and state.temporary:
        with driver_lock(home, doing="experiment"):
            operation.down(home)


def _marked_beside(homes: Sequence[Path]) -> list[Path]:
    """Return other state folders beside some that experiments use, and whose state can be read."""
    found = []
    for folder in dict.fromkeys(home.parent for home in homes):
        for mark in sorted(folder.glob(f"*/{OF_EXPERIMENT}")):
            with contextlib.suppress(BoardclusterError):  # of another user, or damaged: not ours
                load_state(mark.parent)
                found.append(mark.parent)
    return [home for home in found if home not in homes]
