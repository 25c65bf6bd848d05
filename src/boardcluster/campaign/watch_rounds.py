"""A watch of the performance: the same small campaign again and again, a round at a time."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from boardcluster.analysis.control_chart import BASELINE_DEFAULT
from boardcluster.analysis.watched import WatchStanding
from boardcluster.campaign.begin import CampaignRequest, Start, as_begun, left_of
from boardcluster.campaign.driver import now_utc
from boardcluster.campaign.follow import Follower
from boardcluster.campaign.life import CampaignOutcome, Preview, preview_campaign, run_campaign
from boardcluster.campaign.plan import campaign_digest, spec_digest
from boardcluster.campaign.request import campaign_file
from boardcluster.campaign.rounds import next_round
from boardcluster.campaign.upkeep import read_declared
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import HostError, RemoteError, StoreError, UsageError
from boardcluster.factors import FACTORS
from boardcluster.fetch.cache import writing
from boardcluster.records import BASELINE_LEAST, AttemptState, CampaignSpec, ClusterSpec
from boardcluster.redaction import redact
from boardcluster.remote.gate import run_program
from boardcluster.services.declaration import read_spec
from boardcluster.services.user_timer import UserTimer
from boardcluster.store import Store
from boardcluster.store.watches import WatchRecord, read_watch, write_watch
from boardcluster.telemetry.meters.registry import meter_facts
from boardcluster.units import format_count

__all__ = [
    "WatchOrder",
    "WatchedFile",
    "check_watch",
    "notify_command",
    "notify_once",
    "notify_program",
    "preview_round",
    "run_round",
    "watch_name",
    "watch_timer",
]

_PREFIX = "watch-"
_NOTIFY_SECONDS = 60.0
_KEPT = ("PATH", "JAVA_HOME")
"""What decides which Java and which tools a round finds."""

_TRIES_MOST = 3
"""How often a round begins a run that is invalid each time: one that always is must not keep the
next round of the other cells from beginning."""

_OF_THE_CLUSTER = ("profile", "workers", "master", "settings")
"""Factors whose levels come from the cluster where a file names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOrder:
    """What a user asks for."""

    file: Path
    """The campaign file."""
    baseline: int | None = None
    """Rounds that make the limits; None for what was begun with, or the default."""
    new: bool = False
    """Whether another baseline begins with this round."""
    tainted: bool = False
    """Whether runs that were too disturbed count, too; chosen when a baseline begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedFile:
    """A campaign file that can be watched with."""

    request: CampaignRequest
    """Its campaign, named as rounds are."""
    record: WatchRecord
    """The watch that the next round belongs to."""
    is_begun: bool
    """Whether the record is stored already."""


def watch_name(file: Path) -> str:
    """Return the name that the rounds of a campaign file have, wherever the file is now.

    Raises:
        SpecError: the file is missing or wrong.
    """
    return _request(file).spec.name


def _request(file: Path) -> CampaignRequest:
    request = campaign_file(file)
    return replace(request, spec=replace(request.spec, name=f"{_PREFIX}{request.spec.name}"))


def check_watch(home: Path, order: WatchOrder) -> WatchedFile:
    """Read the file and find its watch; changes nothing.

    Raises:
        SpecError: the file is missing or wrong.
        UsageError: it means something else than the rounds so far, or the baseline does not fit.
        StoreError: the record of the watch cannot be used; a new baseline writes another.
    """
    request = _request(order.file)
    spec = request.spec
    wanted = BASELINE_DEFAULT if order.baseline is None else order.baseline
    if wanted < BASELINE_LEAST:
        raise UsageError(
            f"a baseline of {wanted} rounds; allowed: at least {BASELINE_LEAST}, because limits "
            "from fewer are so wide that nearly everything is within them",
            hint=f"allow --baseline {BASELINE_DEFAULT}, or leave it out",
        )
    fresh = WatchRecord(
        name=spec.name,
        file=str(order.file.absolute()),
        spec_sha256=campaign_digest(spec),
        baseline=wanted,
        begun_utc=now_utc(),
        factors=_named_factors(spec),
        settings=tuple(sorted({key for row in spec.matrices for key in row.settings})),
        tainted=order.tainted,
    )
    known = None if order.new else read_watch(home, spec.name)
    if known is not None and not _rounds(home, known):
        # Its first round was refused: what was asked for with it still holds.
        kept = known.baseline if order.baseline is None else wanted
        fresh = replace(fresh, baseline=kept, tainted=order.tainted or known.tainted)
    if known is None or not _rounds(home, known):
        return WatchedFile(request=request, record=fresh, is_begun=False)
    if known.spec_sha256 != fresh.spec_sha256:
        other = "" if known.file == fresh.file else f", and those are of {known.file}"
        raise UsageError(
            f"{order.file} differs in meaning from the "
            f"{format_count(_rounds(home, known), 'round')} so far{other}: they cannot share a "
            "chart",
            hint="restore it, give it another [campaign] name, or start a new baseline with --new",
        )
    if order.baseline is not None and order.baseline != known.baseline:
        raise UsageError(
            f"this watch was begun with --baseline {known.baseline}, not {order.baseline}",
            hint="leave it out, or start a new baseline with --new",
        )
    if order.tainted and not known.tainted:
        raise UsageError(
            "this watch was begun without --tainted",
            hint="leave it out, or start a new baseline with --new --tainted",
        )
    moved = replace(known, file=fresh.file)
    return WatchedFile(request=request, record=moved, is_begun=True)


def _named_factors(spec: CampaignSpec) -> tuple[str, ...]:
    """Return the factors whose levels come from the file; the cluster decides on the others."""
    named = {name for row in spec.matrices for name, levels in row.levels.items() if levels}
    if any(row.profiles for row in spec.matrices):
        named.add("profile")
    return tuple(
        row.name for row in FACTORS if row.name in named or row.name not in _OF_THE_CLUSTER
    )


def _rounds(home: Path, record: WatchRecord) -> int:
    if not home.is_dir():
        return 0
    with Store.open(home, read_only=True) as store:
        found = store.find_campaigns(record.name)
    return sum(row.created_utc >= record.begun_utc for row in found)


def preview_round(home: Path, order: WatchOrder, *, cache: Path) -> Preview:
    """Return what the next round would do, and what it would need; changes nothing.

    Raises:
        BoardclusterError: as ``run_round`` before its first run.
    """
    found = check_watch(home, order)
    declared = read_spec(home / "cluster.toml", meter_kinds=meter_facts())
    with Store.open(home, read_only=True) as store:
        start, _ = _start(store, found, declared)
    return preview_campaign(home, replace(found.request, start=start), cache=cache)


def run_round(home: Path, order: WatchOrder, *, cache: Path, follow: Follower) -> CampaignOutcome:
    """Run one round: what is left of one that was interrupted, else another one.

    1. Check the file against the rounds so far.
    2. Lock the cluster: it has one driver at a time.
    3. Find a round of this baseline that is not finished.
    4. Begin the watch's record, or keep it.
    5. Run the round as a campaign; ``run_campaign`` lists its steps.

    A round that the cluster has changed under is left as it is, since its runs would not be alike.

    Raises:
        LockedError: another driver is at work.
        UsageError: the file means something else than the rounds so far.
        CapacityError: it cannot run here.
        ClusterError: a node or daemon was lost; the next call goes on.
    """
    found = check_watch(home, order)  # 1
    with driver_lock(home, doing="watch-performance"):  # 2
        declared = read_declared(home)
        with Store.open(home) as store:
            start, words = _start(store, found, declared)  # 3
        if words:
            follow.line(words)
        before = None
        with suppress(StoreError):  # only a new baseline comes here with a record of no use
            before = read_watch(home, found.record.name)
        if before != found.record:
            with writing(home):
                write_watch(home, found.record)  # 4
        request = replace(found.request, start=start)
        try:
            return run_campaign(home, request, cache=cache, follow=follow, locked=True)  # 5
        finally:
            if before is not None and not _rounds(home, found.record):
                with writing(home):  # it was refused, so the earlier baseline is the latest
                    write_watch(home, before)


def _start(store: Store, found: WatchedFile, declared: ClusterSpec) -> tuple[Start, str]:
    """Say how the next round begins, and what there is to say of that."""
    name = found.request.spec.name
    earlier = store.find_campaigns(name) if found.is_begun else ()
    if not earlier or earlier[-1].created_utc < found.record.begun_utc:
        return Start.NEW, ""
    latest = earlier[-1]
    spec = as_begun(found.request.spec, latest)
    left = left_of(store, latest, spec.policy) or next_round(store, latest, spec, declared).trials
    if not left:
        return Start.NEW, ""
    tries = Counter(
        row.trial.id
        for row in store.results(latest.id, all_attempts=True)
        if row.attempt and row.attempt.state is AttemptState.INVALID
    )
    if all(tries[trial.id] >= _TRIES_MOST for trial in left):
        return Start.NEW, (
            f"round {latest.id} stays unfinished: {len(left)} of its runs had {_TRIES_MOST} tries, "
            "all of them invalid; a new one begins"
        )
    if latest.spec_sha256 != spec_digest(found.request.spec, declared):
        return Start.NEW, (
            f"round {latest.id} was interrupted and the cluster has changed since, so it stays "
            "unfinished; a new one begins"
        )
    return Start.CONTINUE, f"round {latest.id} was interrupted; runs left: {len(left)}"


# Telling others


def notify_command(text: str) -> tuple[str, ...]:
    """Return a command as the words that are run; none for an empty text.

    Raises:
        UsageError: a quote is not closed, or a word is or follows what names a secret: the command
            stands in a unit file, in messages and in the list of processes.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--notify: {error}", hint="close the quote") from error
    if redact(words) != words:
        raise UsageError(
            f"--notify {words[0]}: one of its arguments looks like a secret, which anybody on this"
            " machine could read",
            hint="put the command into a script of your own with mode 700, and name that",
        )
    return words


def notify_program(text: str) -> str:
    """Return a command with the path of its program, which a timer may not find by itself.

    Raises:
        UsageError: as ``notify_command``, or there is no such program.
    """
    words = notify_command(text)
    if not words:
        return ""
    path = shutil.which(words[0])
    if path is None:
        raise UsageError(
            f"--notify: there is no program {words[0]!r}",
            hint="name one that can be run, with its full path",
        )
    return shlex.join([str(Path(path).absolute()), *words[1:]])


def notify_once(home: Path, standing: WatchStanding, command: Sequence[str]) -> str:
    """Tell of cells of which no notice has told; say why that failed.

    Those are cells that left their limits, and cells of which no run counts any more. What was told
    is kept in the watch's record, with the round in which that began. So a notice that could not be
    sent, or whose round ended in an error, is sent after the next.

    Args:
        home: folder of the cluster.
        standing: how the watch stands after its last round.
        command: the words of the command; none tells nobody.
    """
    record = read_watch(home, standing.name)
    if record is None or not command:
        return ""
    due = {f"{row.chart.left_in} {row.name}" for row in standing.out}
    due |= {f"{row.chart.silent_in} {row.name}" for row in standing.silent}
    told = due & set(record.told)
    failure = ""
    if due - told:
        failure = _notify(standing, command)
        told = told if failure else due
    if told != set(record.told):
        with writing(home):
            write_watch(home, replace(record, told=tuple(sorted(told))))
    return failure


def _notify(standing: WatchStanding, command: Sequence[str]) -> str:
    """Run a command with a watch's notice as its last argument; return why it failed, or nothing.

    It gets the user's environment and a minute. What it does never changes what a round came to.
    """
    if shutil.which(command[0]) is None:
        return f"there is no program {command[0]!r}"
    try:
        run_program([*command, standing.notice], env=os.environ, timeout_seconds=_NOTIFY_SECONDS)
    except (HostError, RemoteError) as error:
        return error.message
    return ""


def watch_timer(home: Path, cache: Path, file: Path, *, notify: str = "") -> UserTimer:
    """Return the timer that runs rounds of a campaign file, with this program as it is installed.

    The file is not read, so that the timer of one that is gone can be removed.
    """
    path, folder = file.absolute(), home.absolute()
    # -P: it runs beside the campaign file, whose folder may hold modules of any name.
    command = [sys.executable, "-P", "-m", "boardcluster", "watch-performance", str(path)]
    command += ["--home", str(folder), "--cache", str(cache.absolute())]
    command += ["--notify", notify] if notify else []
    kept = {key: os.environ[key] for key in _KEPT if os.environ.get(key)}
    return UserTimer(
        about=f"One more round of {path} on the cluster in {folder}",
        title=path.stem,
        key=f"{folder}\n{path}",
        command=tuple(command),
        folder=path.parent,
        environment=kept,
    )
