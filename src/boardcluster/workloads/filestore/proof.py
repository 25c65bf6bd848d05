"""Whether every replica holds what was written, and what the load came to. Pure."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boardcluster.errors import VerificationError
from boardcluster.records import PlannedFault, Verification
from boardcluster.services.gluster.config import BrickPlace
from boardcluster.services.gluster.result import (
    BrickFiles,
    FioRun,
    HealTimes,
    WatchedClient,
    read_audit,
    read_fio,
    read_heal,
    read_watch,
)
from boardcluster.workloads.base import Proof
from boardcluster.workloads.filestore.load import (
    CLASSES,
    PASSES,
    block_files,
    expected_files,
)

__all__ = ["TREE_PASSES", "StoreRun", "TreeResult", "prove"]

TREE_PASSES = ("tree make", "tree read")
"""Phases of the small files."""

_PINGS = 2.5
"""So many times as long as it may be silent, a brick must be away to be lost for sure: the client
looks once in that time whether anything came or went since (GlusterFS, ``rpc-clnt-ping.c``)."""

_HINT = "see the attempt's folder, and the folders gluster/server/log of the workers"
_METHOD = (
    "every file was read from the disk of each brick of its set, and its SHA-256 is that of what "
    "was written, which was computed apart; no brick has a file more, and none was left to heal; "
    "fio and the reader of small files compared every byte that they read through the mount"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeResult:
    """What one pass over the small files came to."""

    files: int
    """How many there were."""
    seconds: float
    """How long they took."""
    ended_unix: float
    """When the last was done, by the master's clock."""
    latency_microseconds: Sequence[int]
    """Of each, sorted."""

    def percentile(self, share: float) -> float:
        """Return a percentile of the time of a file, the share given from 0 to 1."""
        rank = max(1, math.ceil(share * len(self.latency_microseconds)))
        return float(self.latency_microseconds[rank - 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRun:
    """What a job left behind."""

    size_bytes: int
    """The size that was asked for."""
    files: int
    """Small files."""
    file_bytes: int
    """Bytes of each."""
    bricks: Sequence[BrickPlace]
    """The bricks."""
    fault: PlannedFault
    """What happened to the last worker."""
    ping_seconds: float
    """So long a brick may be silent until the client goes on without it, on this machine."""
    blocks: Mapping[str, str]
    """By pass, what fio wrote."""
    trees: Mapping[str, str]
    """By pass, what the program of the small files wrote."""
    audits: Mapping[str, str]
    """By worker, what its bricks hold."""
    healed: str
    """What was seen of healing after the last write."""
    fault_text: str
    """What the fault wrote down; empty if it never ended."""
    watched: str
    """What the client saw of the last worker's bricks; empty without a fault."""


def prove(run: StoreRun) -> Proof:
    """Hold what the bricks have against what was written.

    Raises:
        VerificationError: a file is wrong, missing, or one too many on a brick; something was left
            to heal; an operation failed; the fault never came. Says which and where.
    """
    blocks = {name: read_fio(text, phase=name) for name, text in run.blocks.items()}
    _check_work(run, blocks)
    trees = {name: _read_tree(text, name, run.files) for name, text in run.trees.items()}
    if run.fault is not PlannedFault.NONE and not run.fault_text:  # before what that led to
        raise VerificationError(
            "the run was over before the fault had come and gone",
            hint="set a larger size, more filestore.files or a smaller filestore.down_seconds",
        )
    end = read_heal(run.healed, what="what was seen of healing")
    if not end.healed:
        raise VerificationError(
            f"the volume is not healed: {end.seen}",
            hint="see the folders gluster/server/log of the workers, glustershd.log",
        )
    expected = expected_files(size_bytes=run.size_bytes, files=run.files, file_bytes=run.file_bytes)
    actual = _check_bricks(run, expected)
    figures = _block_figures(blocks) | _tree_figures(trees)
    if run.fault is not PlannedFault.NONE:
        figures |= _fault_figures(run, trees)
    return Proof(
        verification=Verification(
            method=_METHOD,
            expected_sha256=_digest(expected),
            actual_sha256=_digest(actual),
            records=len(actual),
        ),
        output_bytes=sum(size for size, _ in actual.values()),
        figures=figures,
    )


def _digest(files: Mapping[str, tuple[int, str]]) -> str:
    lines = [f"{path} {size} {digest}\n" for path, (size, digest) in sorted(files.items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _check_work(run: StoreRun, blocks: Mapping[str, Mapping[str, FioRun]]) -> None:
    """Refuse results of fio that are not those of what was asked."""
    for which in PASSES:
        for block in CLASSES:
            found = blocks.get(which.name, {}).get(block.name)
            asked = sum(block_files(block, run.size_bytes).values())
            if found is None or found.errors or found.moved_bytes != asked:
                said = (
                    "nothing"
                    if found is None
                    else f"{found.moved_bytes} bytes and {found.errors} errors"
                )
                raise VerificationError(
                    f"{which.name}, blocks of {block.name.replace('_', ' ')}: fio reports {said} "
                    f"where {asked} bytes were asked for",
                    hint=_HINT,
                )


def _read_tree(text: str, name: str, files: int) -> TreeResult:
    try:
        row = json.loads(text)
        found = TreeResult(
            files=int(row["files"]),
            seconds=float(row["seconds"]),
            ended_unix=float(row["ended_unix"]),
            latency_microseconds=tuple(map(int, row["latency_microseconds"])),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise VerificationError(
            f"{name}: its result cannot be read: {error!r}", hint=_HINT
        ) from error
    if not found.files == len(found.latency_microseconds) == files or found.seconds <= 0:
        raise VerificationError(
            f"{name}: {found.files} files and {len(found.latency_microseconds)} times where "
            f"{files} were asked for",
            hint=_HINT,
        )
    return found


def _check_bricks(
    run: StoreRun, expected: Mapping[str, tuple[int, str]]
) -> dict[str, tuple[int, str]]:
    """Return the files of all sets, each of which every brick of its set holds alike."""
    held = {worker: read_audit(text, worker=worker) for worker, text in run.audits.items()}
    merged: dict[str, tuple[int, str]] = {}
    for group in sorted({brick.group for brick in run.bricks}):
        bricks = [brick for brick in run.bricks if brick.group == group]
        copies: dict[str, BrickFiles] = {}
        for brick in bricks:
            files = held.get(brick.worker, {}).get(brick.name)
            if files is None:
                raise VerificationError(
                    f"{brick.worker} has no brick {brick.name} any more", hint=_HINT
                )
            copies[f"{brick.worker}, {brick.name}"] = files
        for path in sorted(set().union(*copies.values())):
            if path in merged:
                raise VerificationError(f"{path} is in two sets of bricks", hint=_HINT)
            merged[path] = _same_everywhere(path, copies, expected)
    if missing := sorted(set(expected) - set(merged)):
        raise VerificationError(
            f"{len(missing)} of {len(expected)} files are on no brick; first {missing[0]}",
            hint=_HINT,
        )
    return merged


def _same_everywhere(
    path: str, copies: Mapping[str, BrickFiles], expected: Mapping[str, tuple[int, str]]
) -> tuple[int, str]:
    wanted = expected.get(path)
    for where, files in copies.items():
        found = files.get(path)
        if found is None:
            raise VerificationError(f"{path} is missing on {where}", hint=_HINT)
        if wanted is None:
            raise VerificationError(f"{path} on {where} was never written", hint=_HINT)
        if found != wanted:
            raise VerificationError(
                f"{path} on {where} is not what was written: {found[0]} bytes, SHA-256 {found[1]}; "
                f"written: {wanted[0]} bytes, {wanted[1]}",
                hint=_HINT,
            )
        first = found
    return first


def _block_figures(blocks: Mapping[str, Mapping[str, FioRun]]) -> dict[str, float]:
    figures: dict[str, float] = {}
    longest = 0.0
    for which in PASSES:
        for block in CLASSES:
            found = blocks[which.name][block.name]
            name = f"{which.figure}_{block.name}"
            figures[f"{name}_megabytes_per_second"] = found.bytes_per_second / 1e6
            figures[f"{name}_operations_per_second"] = found.operations_per_second
            for part, value in found.latency_nanoseconds.items():
                figures[f"{name}_latency_{part}_microseconds"] = value / 1000
            longest = max(longest, found.longest_nanoseconds)
    figures["longest_operation_seconds"] = longest / 1e9
    return figures


def _tree_figures(trees: Mapping[str, TreeResult]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name in TREE_PASSES:
        found, word = trees[name], name.replace(" ", "_")
        figures[f"{word}_files_per_second"] = found.files / found.seconds
        for part, share in (("p50", 0.5), ("p99", 0.99)):
            figures[f"{word}_latency_{part}_microseconds"] = found.percentile(share)
    figures["failed_operations"] = 0.0  # a run in which one failed is none
    return figures


def _fault_figures(run: StoreRun, trees: Mapping[str, TreeResult]) -> dict[str, float]:
    """Return what the fault cost; each difference is of two readings of one clock."""
    times = read_heal(run.fault_text, what="when the fault came and went")
    if times.down_unix is None or times.up_unix is None or not times.healed:
        raise VerificationError(f"the fault was not healed: {times.seen}", hint=_HINT)
    client = read_watch(run.watched)
    _check_noticed(run, times, client, until_unix=trees[TREE_PASSES[-1]].ended_unix)
    lost, back = client.lost_unix, client.back_unix
    return {
        "worker_away_seconds": times.up_unix - times.down_unix,
        "client_without_it_seconds": 0.0 if lost is None or back is None else back - lost,
        "heal_seconds": times.healed_unix - times.up_unix,
        "recovery_seconds": times.healed_unix - times.down_unix,
    }


def _check_noticed(
    run: StoreRun, times: HealTimes, client: WatchedClient, *, until_unix: float
) -> None:
    """Refuse a fault that did nothing, or that came when the load was over."""
    if run.fault is PlannedFault.KILL and (not times.ended or client.lost_unix is None):
        raise VerificationError(
            f"the client never lost the last worker's bricks, of which {times.ended} processes "
            "were killed",
            hint="set a larger filestore.down_seconds",
        )
    away_seconds = (times.up_unix or 0.0) - (times.down_unix or 0.0)
    if client.lost_unix is None and away_seconds > _PINGS * run.ping_seconds:
        raise VerificationError(
            f"the client never lost the last worker's bricks, which were away for "
            f"{away_seconds:.1f} s; it should after {run.ping_seconds:g} s",
            hint="was the link down? see gluster/fault.log on the last worker",
        )
    if client.lost_unix is not None and client.back_unix is None:
        raise VerificationError(
            "the client has not got the last worker's bricks back", hint="see gluster/client/log"
        )
    if client.lost_unix is not None and client.lost_unix > until_unix:
        raise VerificationError(
            "the fault came when the last file was done",
            hint="set a larger size or more filestore.files",
        )
