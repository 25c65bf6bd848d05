"""Bring a whole cluster up and down: nodes and daemons together.

State lives in one folder per cluster (``home``): ``cluster.toml`` is the user's, ``running.toml``
is what the live cluster was started from, ``state.json`` what is alive, ``nodes/`` each node's own
folder, ``conf/`` a copy of every node's configuration to read.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from boardcluster.cluster.each_node import each_node
from boardcluster.cluster.kinds import load_kind
from boardcluster.cluster.limits.disks import DISK
from boardcluster.cluster.limits.host import look_at_host, with_own_disks
from boardcluster.cluster.limits.limiter import Limiter
from boardcluster.cluster.memory import available_memory_bytes
from boardcluster.cluster.nodes import Nodes
from boardcluster.cluster.state import Daemon, LiveState, load_state, remove_state, save_state
from boardcluster.errors import (
    BoardclusterError,
    CapacityError,
    ClusterError,
    ClusterNotUpError,
    DaemonError,
    HostError,
    JvmCrashError,
    RemoteError,
    SpecError,
    StoreError,
    UnreadyNameNodeError,
)
from boardcluster.fetch.cache import Progress, open_to_others, writing
from boardcluster.records import HOST, ClusterSpec, Egress, NodeFacts, NodeSpec
from boardcluster.remote.base import Remote
from boardcluster.remote.local import LocalRemote
from boardcluster.services import lifecycle
from boardcluster.services.archive import made_archives, provide_archives, refuse_archives
from boardcluster.services.board_archives import refuse_board_archives
from boardcluster.services.boards import (
    Ready,
    board_layout,
    boards_were_reached,
    current_daemons,
    end_boards,
    load_facts,
    make_ready,
    managers_of,
    release_unused_boards,
    require_own_boards,
    wipe_boards,
)
from boardcluster.services.coming_up import end_safe_mode, missing_files, safe_mode_words
from boardcluster.services.conf import rules_sha256
from boardcluster.services.declaration import own_part_digests, read_spec
from boardcluster.services.disk_space import require_disk_space
from boardcluster.services.install import Installation, install
from boardcluster.services.java import Java, provide_java
from boardcluster.services.jobs import jobs_jar
from boardcluster.services.layout import Layout
from boardcluster.services.lifecycle import Health
from boardcluster.services.pair import load_pair, pair_ids
from boardcluster.services.profile import build_profile, own_file_digests, profile_names
from boardcluster.spec.template import render_cluster
from boardcluster.spec.variant import ClusterVariant, apply_variant, storage_name, variant_words
from boardcluster.store.files import read_cluster
from boardcluster.twin.plan import plan_limits
from boardcluster.units import format_bytes, format_count

__all__ = [
    "LiveCluster",
    "attach",
    "available_memory_bytes",
    "bare_layout",
    "check_memory",
    "dead_daemons",
    "down",
    "forget",
    "found_up",
    "look_at_cluster",
    "nodes_of",
    "plan_boards",
    "spec_as_run",
    "up",
    "wipe",
]

_DECLARED = "declared.toml"
"""What ``cluster.toml`` held when the cluster came up."""
_OWN_PROFILE = "running-profile.toml"
"""What a profile of the user's own held when the cluster came up."""

_PATIENCE_SECONDS = 180.0
"""A start in which nothing has gone on for so long is given up."""
_STOP_GRACE_SECONDS = 2.5
_SYNC_SECONDS = 900.0
"""For what a node's disk has still to be written, which is gigabytes on a slow disk of this
machine: what is left then would take the node's own rate from a run."""
_ANY_JAVA = Java(program=Path("java"), feature=0, version="", vendor="")
"""For who starts no program of the engines."""
_NODES_AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCluster:
    """A running cluster that work can be given to."""

    home: Path
    """The cluster's state folder."""
    state: LiveState
    """What is alive."""
    layout: Layout
    """Where things are."""
    remotes: Mapping[str, Remote]
    """Every node by name, as the user that daemons and jobs run as."""
    admins: Mapping[str, Remote] = field(default_factory=dict)
    """Every node by name, as root, where that is another way; see ``as_root``."""
    facts: Mapping[str, NodeFacts] = field(default_factory=dict)
    """Every board by name, as it was found when the cluster came up; empty for nodes on this
    machine."""
    host: Remote = field(default_factory=lambda: LocalRemote(HOST))
    """The machine that emulated nodes share."""
    limiter: Limiter | None = None
    """What holds emulated boards to their limits; None where nothing is limited."""

    @property
    def as_root(self) -> Mapping[str, Remote]:
        """Every node by name, as root; for what the kernel allows nobody else."""
        return self.admins or self.remotes

    @property
    def metered(self) -> Mapping[str, Remote]:
        """Where a meter is read that is part of a node: emulated ones share this machine's."""
        if self.spec.capabilities.emulated:
            return dict.fromkeys((node.name for node in self.spec.nodes), self.host)
        return self.as_root

    @contextlib.contextmanager
    def unlimited(self) -> Iterator[None]:
        """Lift the limits of emulated boards while the block prepares or proves something.

        What is measured begins with every byte written, as it does on boards that had their time.
        A limit that cannot be lifted or set again, because its node is lost, is no error here: a
        run reads all of them back.
        """
        if self.limiter is None:
            yield
            return
        with contextlib.suppress(BoardclusterError):
            self.limiter.lift()
        try:
            yield
            for node in self.state.nodes:
                with contextlib.suppress(RemoteError):
                    self.remotes[node.name].run(
                        ["sync", "-f", f"{node.folder}/{DISK}"], timeout_seconds=_SYNC_SECONDS
                    )
        finally:
            with contextlib.suppress(BoardclusterError):
                self.limiter.set()

    @property
    def spec(self) -> ClusterSpec:
        """The cluster's specification."""
        return self.layout.spec

    @property
    def master(self) -> Remote:
        """The master node."""
        return self.remotes[self.spec.master.name]


def spec_as_run(home: Path) -> ClusterSpec | None:
    """Return the cluster as it was declared when it last came up.

    That is the whole of it, also where a campaign had only some of its nodes up. A report of old
    results must not need a valid ``cluster.toml``, nor take one for theirs that was edited since.
    """
    for name in (_DECLARED, "running.toml", "cluster.toml"):  # homes of earlier versions lack it
        try:
            return read_spec(home / name)
        except SpecError:
            continue
    return read_cluster(home)  # of results that were imported


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _is_edited(home: Path, left: LiveState) -> bool:
    """Whether ``cluster.toml`` says something else than when the cluster came up.

    Comments, layout and the firewall's doors do not count: they change no daemon, and a campaign
    that changes its variant must not end by them.
    """
    path = home / "cluster.toml"
    if left.spec_sha256 == _digest(path):
        return False
    try:
        before = read_spec(home / _DECLARED)
    except SpecError:  # homes of earlier versions lack it
        return True
    return _without_doors(read_spec(path)) != _without_doors(before)


def _without_doors(spec: ClusterSpec) -> ClusterSpec:
    """Return a specification without what only the firewall reads, which each ``up`` loads anew."""
    network = replace(spec.network, open_ports=(), ssh_from=(), egress=Egress.ANY)
    return replace(spec, network=network)


def _check_files(home: Path, spec: ClusterSpec, state: LiveState) -> None:
    """Refuse to go on with files that the running cluster does not follow.

    Raises:
        ClusterError: a profile of the user's own, or what boards have, was edited or is gone since
            it came up; or boardcluster itself would configure it in another way by now.
    """
    if state.rules_sha256 and state.rules_sha256 != rules_sha256():
        # Jobs would be configured in one way and daemons in another, under one digest.
        raise ClusterError(
            "boardcluster was changed since the cluster came up, and may configure it in another "
            "way now",
            hint="run `boardcluster down`, then `boardcluster up` again",
        )
    kept = str(home / _OWN_PROFILE)
    digests = own_file_digests([spec.profile, kept])
    if spec.profile in digests and digests[spec.profile] != digests[kept]:
        raise ClusterError(
            f"the profile {spec.profile} was edited since the cluster came up",
            hint="run `boardcluster down`, then `boardcluster up` again",
        )
    parts = own_part_digests(spec.nodes)
    if changed := [name for name, known in state.own_parts.items() if parts.get(name) != known]:
        raise ClusterError(
            f"{', '.join(changed)}: edited since the cluster came up",
            hint="run `boardcluster down`, then `boardcluster up` again",
        )


def check_memory(spec: ClusterSpec) -> None:
    """Refuse nodes that declare more memory than this machine has free.

    Raises:
        CapacityError: with the arithmetic, and how many workers would fit.
    """
    wanted = sum(node.memory_bytes for node in spec.nodes)
    free = available_memory_bytes()
    if wanted <= free:
        return
    worker = min(node.memory_bytes for node in spec.workers)
    rest = wanted - sum(node.memory_bytes for node in spec.workers)
    fitting = max(0, (free - rest) // worker)
    size = format_bytes(wanted, binary=True)
    several = f"{len(spec.nodes)} nodes declare {size} together"
    said = several if len(spec.nodes) > 1 else f"the node declares {size}"
    fewer = format_count(fitting, "worker")
    raise CapacityError(
        f"{said}, but this machine has {format_bytes(free, binary=True)} available",
        hint=f"declare at most {fewer} of {format_bytes(worker, binary=True)}, or less memory for "
        "each, in cluster.toml"
        if fitting
        else "declare less `memory` in cluster.toml, or end programs that use memory",
    )


def _layout(spec: ClusterSpec, state: LiveState, cache: Path, progress: Progress) -> Layout:
    pair = load_pair(spec.engines)
    with open_to_others():
        java = provide_java(pair, cache=cache)
        engines = install(pair, java, cache=cache, progress=progress)
    profile = build_profile(spec.profile, spec)
    if spec.capabilities.provisioned:
        return board_layout(spec, profile, engines, state)
    archives = cache / "archives" / "none"
    if profile.uses_archives:
        with open_to_others():
            archives = provide_archives(engines, java, cache=cache, progress=progress)
    return Layout(
        spec=spec,
        profile=profile,
        engines=engines,
        java=java,
        archives=archives,
        archived=dict.fromkeys((node.name for node in spec.nodes), made_archives(archives)),
        folders={node.name: node.folder for node in state.nodes},
        user=load_kind(spec.kind).user(state),
        storage=state.storage,
        dilation=state.dilation,
    )


def bare_layout(
    spec: ClusterSpec, state: LiveState, *, cache: Path, java: Java = _ANY_JAVA
) -> Layout:
    """Return a layout for who only asks or looks: nothing is fetched, checked or locked."""
    pair = load_pair(spec.engines)
    engines = Installation(pair=pair, folder=cache / "engines" / pair.id)
    profile = build_profile(spec.profile, spec)
    if spec.capabilities.provisioned:
        return board_layout(spec, profile, engines, state)
    return Layout(
        spec=spec,
        profile=profile,
        engines=engines,
        java=java,
        archives=cache,
        folders={node.name: node.folder for node in state.nodes},
        user=load_kind(spec.kind).user(state),
        storage=state.storage,
        dilation=state.dilation,
    )


def up(
    home: Path,
    *,
    cache: Path,
    progress: Progress,
    seen: Callable[[Health], None],
    variant: ClusterVariant | None = None,
    temporary: bool = False,
    deep: bool = False,
    leave_safe_mode: bool = False,
) -> LiveCluster:
    """Bring the cluster of ``<home>/cluster.toml`` up; one that runs like that is left as it is.

    The firewall of boards is loaded as the file says now in any case. Whatever goes wrong,
    including Ctrl-C, ends everything that was started.

    Args:
        home: the cluster's state folder.
        cache: folder of fetched engines.
        progress: told what is being fetched.
        seen: told of the cluster's health while it starts.
        variant: fewer workers, another profile or another place of the master, for a campaign; one
            that runs in another variant is brought down first.
        temporary: whether the caller will bring it down; recorded, for a caller that is killed.
        deep: read every byte of what was copied to boards, not only names and sizes.
        leave_safe_mode: have HDFS leave a safe mode that would never end, with the files that it
            still has; ``progress`` is told which it has lost.

    Raises:
        SpecError, HostError, InstallError, ClusterError: see errors.py.
    """
    leaving = (lambda words: progress(words, 0, 0)) if leave_safe_mode else None
    path = home / "cluster.toml"
    declared = read_spec(path)
    spec = declared if variant is None else apply_variant(declared, variant)
    profile = build_profile(spec.profile, spec)
    left = load_state(home)
    if left is not None:
        _require_own(home, left)
        running = _still_running(
            home, left, spec, cache, progress, deep=deep, leave=leave_safe_mode
        )
        if running is not None:
            return running if temporary else _lasting(home, running)
    nodes = nodes_of(home, spec.kind)
    if spec.capabilities.on_this_machine:
        if spec.twin is None:
            check_memory(spec)
        require_disk_space(home)
    with _giving_up_unused(home, spec):
        nodes.check(spec)
        state = nodes.new_state(spec, identity=str(uuid.uuid4()))
        parts = own_part_digests(spec.nodes)
        state = replace(state, spec_sha256=_digest(path), temporary=temporary, own_parts=parts)
        if spec != declared and variant is not None:
            form, storage = variant_words(declared, variant), storage_name(declared, variant)
            state = replace(state, form=form, storage=storage)
        _write_running(home, path.read_text(), spec, is_declared=spec == declared)
        start = partial(
            _start_afresh,
            home,
            spec,
            state,
            cache=cache,
            progress=progress,
            seen=seen,
            deep=deep,
            leaving=leaving,
        )
        return _started(home, start, has_archives=profile.small_daemons, progress=progress)


def _started(
    home: Path, start: Callable[[], LiveCluster], *, has_archives: bool, progress: Progress
) -> LiveCluster:
    """Start a cluster; again where a JVM crashed, which then does without its archive.

    Again, too, where a daemon asked the NameNode in the moment before it had started.
    """
    try:
        return start()
    except (JvmCrashError, UnreadyNameNodeError) as error:
        crashed = isinstance(error, JvmCrashError)
        if (crashed and not has_archives) or load_state(home) is not None:
            raise  # what could not be ended must stay recorded
        how = " without class-data archives" if crashed else ""
        progress(f"{error.message}; starting again{how}", 0, 0)
        return start()


def _write_running(home: Path, text: str, spec: ClusterSpec, *, is_declared: bool) -> None:
    """Keep what is declared, and what the cluster is started from: that, or a variant of it."""
    running = text
    if not is_declared:
        running = render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names())
    for name, content in ((_DECLARED, text), ("running.toml", running)):
        with writing(home / name):
            (home / name).write_text(content)
    if spec.profile.endswith(".toml"):
        shutil.copyfile(spec.profile, home / _OWN_PROFILE)


@contextlib.contextmanager
def _giving_up_unused(home: Path, spec: ClusterSpec) -> Iterator[None]:
    """Give up boards that were claimed for a start that ends before it changed anything."""
    try:
        yield
    except BaseException:
        if spec.capabilities.provisioned:
            release_unused_boards(home)
        raise


def plan_boards(home: Path, *, cache: Path, progress: Progress, deep: bool = False) -> Ready:
    """Return what ``up`` would change on the boards of a cluster; changes nothing on them.

    Raises:
        SpecError, HostError, InstallError, RemoteError: see errors.py.
    """
    spec = read_spec(home / "cluster.toml")
    state = nodes_of(home, spec.kind).new_state(spec, identity="")
    layout = _layout(spec, state, cache, progress)
    running = load_state(home)
    if running is None or running.phase != "up":
        return make_ready(
            home, spec, layout, cache=cache, dry_run=True, deep=deep, progress=progress
        )
    used = {node.name: frozenset(node.archived) for node in running.nodes}
    layout = replace(layout, archived=used)
    return make_ready(home, spec, layout, dry_run=True, deep=deep, progress=progress)


def _lasting(home: Path, live: LiveCluster) -> LiveCluster:
    """Record that the cluster is no longer only up for a campaign."""
    if not live.state.temporary:
        return live
    state = replace(live.state, temporary=False)
    save_state(home, state)
    return replace(live, state=state)


def _start_afresh(
    home: Path,
    spec: ClusterSpec,
    state: LiveState,
    *,
    cache: Path,
    progress: Progress,
    seen: Callable[[Health], None],
    deep: bool,
    leaving: Callable[[str], object] | None,
) -> LiveCluster:
    layout = _layout(spec, state, cache, progress)
    facts: dict[str, NodeFacts] = {}
    refuse = partial(refuse_archives, layout.archives)
    if spec.capabilities.provisioned:
        declared = read_spec(home / "cluster.toml")
        ready = make_ready(home, declared, layout, cache=cache, deep=deep, progress=progress)
        _say_changes(ready, progress)
        facts = ready.facts
        refuse = partial(_refuse_on_boards, ready)
        state = _made_ready(state, ready)
        layout = replace(layout, archived=ready.archived)
    else:
        state = replace(state, java=layout.java.description)
    state = replace(state, rules_sha256=rules_sha256())
    save_state(home, state)
    try:
        if spec.twin is not None:
            state = _limited(home, spec, state, progress)
            layout = replace(layout, storage=state.storage, dilation=state.dilation)
        needed = _needed_of(layout, cache)
        return _bring_up(
            home, spec, state, layout, needed=needed, facts=facts, seen=seen, leaving=leaving
        )
    except BaseException as error:
        try:
            _end_all(home, state)
            remove_state(home)
        except (BoardclusterError, OSError):
            error.add_note(f"not everything could be ended: run `boardcluster down --home {home}`")
        if isinstance(error, JvmCrashError) and layout.profile.small_daemons:
            refuse(error.message)
        raise


def _needed_of(layout: Layout, cache: Path) -> tuple[Path, ...]:
    """Return the folders of this machine that daemons and jobs read, where they see its files.

    Of the cache, engines and archives are named, too: the rest of it they need not read.
    """
    needed = [cache, layout.engines.folder, layout.java.home]
    if layout.archives.is_dir():
        needed.append(layout.archives)
    with contextlib.suppress(HostError):  # jobs without the jar say so themselves
        needed.append(jobs_jar().parent)
    return tuple(needed)


def _made_ready(state: LiveState, ready: Ready) -> LiveState:
    """Return the state with what is known of boards that are ready."""
    nodes = tuple(
        replace(node, archived=tuple(sorted(ready.archived.get(node.name, ()))))
        for node in state.nodes
    )
    return replace(state, java=ready.java, nodes=nodes)


def _refuse_on_boards(ready: Ready, reason: str) -> None:
    """Do without archives on boards like these: which of them crash with theirs is not known."""
    for folder in ready.archive_folders:
        refuse_board_archives(folder, reason)


def _limited(home: Path, spec: ClusterSpec, state: LiveState, progress: Progress) -> LiveState:
    """Work out what the nodes are limited to, and record it before anything is limited.

    Raises:
        CapacityError: this machine cannot hold them; with the arithmetic.
        HostError: its speed cannot be measured.
        UsageError: the catalog lacks a figure of a board.
    """
    progress("measuring this machine's speed", 0, 0)
    host = look_at_host(home, state.identity, memory_available_bytes=available_memory_bytes())
    own = with_own_disks(host, home / "nodes", [node.name for node in spec.nodes])
    plan = plan_limits(spec, own)
    for line in plan.words:
        progress(line, 0, 0)
    state = replace(
        state, limits=plan.limits, dilation=plan.dilation, storage=f"{DISK}/{state.storage}"
    )
    save_state(home, state)
    return state


def _say_changes(ready: Ready, progress: Progress) -> None:
    """Say what was done to the boards, and what could not be."""
    count = len(ready.changes)
    progress(f"changes on boards: {count}" if count else "boards: nothing to change", 0, 0)
    for change in ready.changes:
        if change.remark:
            progress(f"{change.node}: {change.words}: {change.remark}", 0, 0)


def _still_running(
    home: Path,
    left: LiveState,
    spec: ClusterSpec,
    cache: Path,
    progress: Progress,
    *,
    deep: bool,
    leave: bool,
) -> LiveCluster | None:
    """Return the cluster if it is up as wanted; clear away what a dead driver left behind."""
    path = home / "cluster.toml"
    nodes = nodes_of(home, left.kind)
    if left.phase != "up" or not nodes.has_leftovers(left):
        _end_all(home, left)
        remove_state(home)
        return None
    if _is_edited(home, left):
        raise ClusterError(
            f"{path} was edited since the cluster came up",
            hint="run `boardcluster down`, then `boardcluster up` again",
        )
    if _without_doors(read_spec(home / "running.toml")) != _without_doors(spec):
        progress(
            f"the cluster is up with {left.form or 'what cluster.toml says'}: taking it down", 0, 0
        )
        down(home)
        return None
    live = _attached(home, left, cache=cache, progress=progress)
    if live.spec.capabilities.provisioned:
        # A firewall that somebody switched off must not stay off because the daemons still run.
        ready = make_ready(home, read_spec(path), live.layout, deep=deep, progress=progress)
        _say_changes(ready, progress)
        live = _with_processes(replace(live, facts=ready.facts))
    again = "run `boardcluster status`; `boardcluster down` and `up` restart it"
    if dead := dead_daemons(live):
        raise DaemonError(f"the cluster is up but not healthy: {', '.join(dead)} ended", hint=again)
    if live.limiter is not None:
        live.limiter.set()  # a driver that was killed while it prepared left them lifted
    health = lifecycle.health(live.layout, live.master)
    if leave and health.safe_mode and health.live_datanodes == len(live.spec.workers):
        _leave_safe_mode(live, progress)
        health = lifecycle.health(live.layout, live.master)
    if not health.is_good(len(live.spec.workers)):
        safe = ", and HDFS is in safe mode" if health.safe_mode else ""
        raise DaemonError(
            f"the cluster is up but not healthy: {health.live_datanodes} DataNodes and "
            f"{health.live_nodemanagers} NodeManagers of {len(live.spec.workers)} are live{safe}",
            hint=again,
        )
    return live


def _leave_safe_mode(live: LiveCluster, progress: Progress) -> None:
    """Have a running HDFS leave its safe mode, once every DataNode has reported what it has.

    Raises:
        DaemonError: blocks are still being reported: a file that misses some may yet be whole.
    """
    said = safe_mode_words(live.layout, live.master)
    time.sleep(lifecycle.SAFE_MODE_SECONDS * live.layout.dilation)
    if (now := safe_mode_words(live.layout, live.master)) != said:
        raise DaemonError(
            f"HDFS is in safe mode, and its DataNodes still report blocks: {now}",
            hint="wait until `boardcluster status` shows no change, then try again",
        )
    lost = missing_files(live.layout, live.master)
    progress(f"leaving safe mode{f': {lost.words}' if lost.paths else ''}", 0, 0)
    end_safe_mode(live.layout, live.master, lost)


def _with_processes(live: LiveCluster) -> LiveCluster:
    """Take note of daemons that a service manager has started again."""
    state = replace(live.state, daemons=current_daemons(live.home, live.state))
    if state != live.state:
        save_state(live.home, state)
    return replace(live, state=state)


def _bring_up(
    home: Path,
    spec: ClusterSpec,
    state: LiveState,
    layout: Layout,
    *,
    needed: Sequence[Path],
    facts: Mapping[str, NodeFacts],
    seen: Callable[[Health], None],
    leaving: Callable[[str], object] | None,
) -> LiveCluster:
    nodes = nodes_of(home, spec.kind)
    state = nodes.create(spec, state, needed)
    save_state(home, state)
    layout = replace(layout, folders={node.name: node.folder for node in state.nodes})
    remotes = {node.name: nodes.remote_of(node, state) for node in state.nodes}
    digest = lifecycle.configure(layout, remotes, staging=home / "conf")
    state = replace(state, config_sha256=digest)
    record = [state]

    def started(daemon: Daemon) -> None:
        record.append(record[-1].with_daemon(daemon))
        save_state(home, record[-1])

    admins = {node.name: nodes.admin_of(node, state) for node in state.nodes}
    daemons = lifecycle.start(
        layout,
        remotes,
        managers=managers_of(facts, remotes, admins),
        identity=state.identity,
        started=started,
    )
    lifecycle.wait_healthy(
        layout,
        remotes,
        daemons,
        home=home,
        patience_seconds=_PATIENCE_SECONDS,
        seen=seen,
        leaving=leaving,
    )
    limiter = nodes.limiter(spec, state)
    if limiter is not None:
        limiter.set()
    state = replace(record[-1], phase="up")
    save_state(home, state)
    return LiveCluster(
        home=home,
        state=state,
        layout=layout,
        remotes=remotes,
        admins=admins,
        facts=facts,
        limiter=limiter,
    )


def found_up(home: Path) -> bool:
    """Whether the cluster is up, and not only for a campaign that was killed."""
    state = load_state(home)
    return (
        state is not None
        and state.phase == "up"
        and not state.temporary
        and _nodes_alive(home, state)
    )


def attach(
    home: Path, *, cache: Path, progress: Progress, any_variant: bool = False
) -> LiveCluster:
    """Return the running cluster of a home; one that a campaign changed only with ``any_variant``.

    Raises:
        ClusterNotUpError: it is not up, or in a variant that a campaign gave it.
    """
    state = _state_of_live(home)
    if state.form and not any_variant:
        raise ClusterNotUpError(
            f"the cluster in {home} is up in a variant that a campaign chose: {state.form}",
            hint="run `boardcluster up`, which restores what cluster.toml says",
        )
    live = _attached(home, state, cache=cache, progress=progress)
    if not live.spec.capabilities.provisioned:
        return live
    # Not those that `up` noted: systemd may have started one again since, as another process.
    return replace(live, state=replace(live.state, daemons=current_daemons(home, live.state)))


def look_at_cluster(home: Path, *, cache: Path) -> LiveCluster:
    """Return the running cluster of a home, in whatever variant, to who only looks at it.

    No program of the engines can be started on it: whether they and Java are in the cache is not
    asked, and nothing is fetched or locked.

    Raises:
        ClusterNotUpError: it is not up.
    """
    state = _state_of_live(home)
    spec = read_spec(home / "running.toml")
    return _live(home, state, bare_layout(spec, state, cache=cache))


def _state_of_live(home: Path) -> LiveState:
    """Return what is recorded of a cluster that is up.

    Raises:
        ClusterNotUpError: it is not.
    """
    state = load_state(home)
    if state is None:
        raise ClusterNotUpError(
            f"the cluster in {home} is not up", hint="run `boardcluster up` first"
        )
    _require_own(home, state)
    if state.phase != "up" or not _nodes_alive(home, state):
        raise ClusterNotUpError(
            f"the cluster in {home} is not up: its driver or its nodes were killed",
            hint="run `boardcluster down`, then `boardcluster up`",
        )
    return state


def _attached(home: Path, state: LiveState, *, cache: Path, progress: Progress) -> LiveCluster:
    spec = read_spec(home / "running.toml")
    _check_files(home, spec, state)
    return _live(home, state, _layout(spec, state, cache, progress))


def _live(home: Path, state: LiveState, layout: Layout) -> LiveCluster:
    nodes = nodes_of(home, state.kind)
    return LiveCluster(
        home=home,
        state=state,
        layout=layout,
        remotes={node.name: nodes.remote_of(node, state) for node in state.nodes},
        admins={node.name: nodes.admin_of(node, state) for node in state.nodes},
        facts=load_facts(home) if state.capabilities.provisioned else {},
        limiter=nodes.limiter(layout.spec, state),
    )


def _require_own(home: Path, state: LiveState) -> None:
    """Refuse to touch boards that another driver claimed since this home recorded its state.

    Raises:
        LockedError: names whose they are.
    """
    if state.capabilities.provisioned:
        require_own_boards(home, state.nodes)


def _nodes_alive(home: Path, state: LiveState) -> bool:
    return len(nodes_of(home, state.kind).alive(state)) == len(state.nodes)


def dead_daemons(live: LiveCluster) -> list[str]:
    """Name every daemon of the cluster that no longer runs, and every node that is gone.

    Asked of the nodes themselves: HDFS takes 630 s to miss a DataNode, YARN 600 s a NodeManager.
    """

    def one(node: NodeSpec) -> list[str]:
        here = [daemon for daemon in live.state.daemons if daemon.node == node.name]
        try:
            dead = lifecycle.ended(live.remotes[node.name], here)
        except RemoteError:
            return [f"node {node.name}"]
        return [f"{daemon.name} on {daemon.node}" for daemon in dead]

    with ThreadPoolExecutor(_NODES_AT_ONCE) as pool:
        return [name for names in pool.map(one, live.spec.nodes) for name in names]


def down(
    home: Path,
    *,
    without: Collection[str] = (),
    scratch_stays: Callable[[str, str], object] | None = None,
) -> int:
    """End everything of the cluster, whatever state it is in; return how many processes ended.

    Daemons are asked to end and get a short while for it; HDFS keeps its data. What submissions
    left on nodes, such as secrets, is deleted while those answer; ``scratch_stays`` is told of a
    node on which it cannot be, and why. Boards named in ``without`` are gone, and are left as they
    are.

    Raises:
        ClusterError: something could not be ended.
        LockedError: boards are another driver's; nothing was ended.
    """
    state = load_state(home)
    if state is None:
        return 0
    state = replace(
        state,
        nodes=tuple(node for node in state.nodes if node.name not in without),
        daemons=tuple(daemon for daemon in state.daemons if daemon.node not in without),
    )
    _require_own(home, state)
    nodes = nodes_of(home, state.kind)
    asked = 0
    if state.daemons:
        remotes = {node.name: nodes.remote_of(node, state) for node in nodes.alive(state)}
        admins = {node.name: nodes.admin_of(node, state) for node in state.nodes}
        managers = managers_of(_facts_if_readable(home), remotes, admins)
        rows = [(d.node, d.name, d.process) for d in state.daemons if d.node in remotes]
        asked = len(rows)
        with contextlib.suppress(BoardclusterError):  # what does not end by asking ends below
            lifecycle.stop(managers, rows, grace_seconds=_STOP_GRACE_SECONDS)
        places = {node.name: str(Path(node.folder, "scratch")) for node in state.nodes}
        _, errors = each_node(remotes, lambda name: remotes[name].run(["rm", "-rf", places[name]]))
        for name, error in errors.items():
            if scratch_stays is not None:
                scratch_stays(name, error.message)
    ended = _end_all(home, state)
    remove_state(home)
    return asked + ended


def _facts_if_readable(home: Path) -> Mapping[str, NodeFacts]:
    """Return what was found on boards; nothing if that is damaged, which must not stop an end."""
    try:
        return load_facts(home)
    except StoreError:
        return {}


def _end_all(home: Path, state: LiveState) -> int:
    """End everything of the cluster; return how many processes were ended."""
    if state.capabilities.provisioned:
        return end_boards(home, state)
    return nodes_of(home, state.kind).destroy(state)


def wipe(home: Path, *, without: Collection[str] = ()) -> None:
    """Delete the nodes' folders: HDFS with everything in it, logs, configuration.

    What runs on boards although no cluster is recorded is ended first. Boards named in ``without``
    are gone, and are left as they are.

    Raises:
        ClusterError: the cluster is still up, or something on a board does not end.
        HostError: a board's disk is not mounted.
        RemoteError: a board cannot be reached.
    """
    if load_state(home) is not None:
        raise ClusterError("the cluster is still up", hint="run `boardcluster down` first")
    if boards_were_reached(home):
        spec = read_spec(home / "cluster.toml")
        if spec.capabilities.provisioned:
            there = tuple(node for node in spec.nodes if node.name not in without)
            wipe_boards(home, replace(spec, nodes=there))
    forget(home)


def forget(home: Path) -> None:
    """Delete what this machine holds of a cluster that is down; results and host keys stay."""
    for name in ("nodes", "conf", "etc"):
        shutil.rmtree(home / name, ignore_errors=True)
    for name in (
        *("running.toml", _DECLARED, _OWN_PROFILE, "anchors.log", "core-watcher.log"),
        *("hosts", "nsswitch.conf"),  # of earlier versions
    ):
        (home / name).unlink(missing_ok=True)


def nodes_of(home: Path, kind: str) -> Nodes:
    """Return the nodes of a cluster by the kind that its ``cluster.toml`` names.

    Boards keep their connections for the life of this process, so the same object is returned.

    Raises:
        UsageError: there is no such kind.
    """
    return load_kind(kind).nodes(home)
