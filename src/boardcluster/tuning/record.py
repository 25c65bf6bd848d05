"""The record of a tuning: an append-only file, one JSON object a line.

Each line reaches the disk before the next thing begins, so a kill at any moment loses at most the
run under way. A last line that was torn by it is left out, and cut off before the next one.

    begin       what was asked for; the first line
    sitting     a driver begins or goes on
    ruled_out   what is left out, with the reason
    candidate   settings that will be tried
    run         one run of a candidate, and what it came to
    proof       the campaign that proves the best, and how many pairs
    pair        a run of a proof of the user's own program
    end         what was shown
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from boardcluster.errors import StoreError
from boardcluster.records import Engine
from boardcluster.redaction import redact
from boardcluster.tuning.space import Level, RuledOut

__all__ = [
    "BASE",
    "Candidate",
    "Objective",
    "Outcome",
    "PairRecord",
    "ProofPlan",
    "ProofResult",
    "Purpose",
    "Sitting",
    "TrialRecord",
    "TuningRecord",
    "TuningRequest",
    "begin_record",
    "read_record_file",
    "read_records",
    "record_folder",
]

BASE = "base"
"""Id of the candidate that sets nothing."""


class Objective(StrEnum):
    """What to make less of. BOTH is the product of energy and time (energy-delay product)."""

    TIME = "time"
    ENERGY = "energy"
    BOTH = "both"


class Outcome(StrEnum):
    """What a run came to. STOPPED: by us, as it took much longer than the best."""

    OK = "ok"
    STOPPED = "stopped"
    FAILED = "failed"
    INVALID = "invalid"


class Purpose(StrEnum):
    """Why a run is made.

    BASE: the base, for the first time at a size. KNOWN: what another profile sets. NEW: settings
    not tried yet. PROMOTED: good ones at a larger size. AGAIN: the best again. DRIFT: the base
    again, to see whether the machine has changed.
    """

    BASE = "base"
    KNOWN = "known"
    NEW = "new"
    PROMOTED = "promoted"
    AGAIN = "again"
    DRIFT = "drift"


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRequest:
    """What was asked for."""

    id: str
    """Id of the tuning, and of its search's campaign."""
    target: str
    """The workload, or the path of the user's own program."""
    engine: Engine
    """The engine."""
    objective: Objective
    """What to make less of."""
    budget_seconds: float
    """How long it may take, the proof included."""
    size_bytes: int
    """Size of the input; 0 where there is none."""
    base: str
    """The profile to compare with, and to set things on top of."""
    seed: int
    """Seed of everything that is drawn."""
    pairs: int
    """Least number of pairs of the proof."""
    input: str = ""
    """The text that is read; empty for the flights."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Parameters of the workload."""
    arguments: tuple[str, ...] = ()
    """Of the user's own program: its arguments, in which secrets are hidden."""
    main: str = ""
    """Of the user's own program: its main class."""
    cluster_sha256: str = ""
    """Digest of the cluster, the space and the user's own program, with which it can go on."""
    version: str = ""
    """Version of boardcluster that began it."""

    def __post_init__(self) -> None:
        """Hide secrets in arguments: they are written down, and a bundle takes them along."""
        object.__setattr__(self, "arguments", redact(self.arguments))

    @property
    def is_program(self) -> bool:
        """Whether it is the user's own program, which is kept by its whole path."""
        return Path(self.target).is_absolute()

    @property
    def key(self) -> tuple[object, ...]:
        """What must be equal for one tuning to continue another."""
        left_out = ("id", "seed", "budget_seconds", "version", "cluster_sha256", "pairs")
        fields = dataclasses.asdict(self)
        return tuple(
            # Options may come in any order.
            repr(sorted(value.items()) if isinstance(value, dict) else value)
            for name, value in fields.items()
            if name not in left_out
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """A driver begins or goes on."""

    started_utc: str
    """When; ISO 8601."""
    budget_seconds: float
    """The budget from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Settings to be tried."""

    id: str
    """``base``, or a number."""
    origin: str
    """Where they are from: ``base``, ``profile upstream`` or ``search``."""
    settings: dict[str, str]
    """The properties, as the engines read them."""
    params: dict[str, Level]
    """The same by the names of the space, as far as they are in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """One run of a candidate."""

    candidate: str
    """The candidate."""
    rung: int
    """Which size: 0 is the whole, 1 the next smaller one."""
    purpose: Purpose
    """Why it was made."""
    outcome: Outcome
    """What it came to."""
    seconds: float
    """How long the job took; of a stopped run, how long it was left; 0 if that is not known."""
    value: float
    """What to make less of: seconds, joules or their product; 0 if that is not known."""
    wall_seconds: float
    """How long the run took with all that is around it."""
    spent_seconds: float
    """How much of the budget was spent at its end."""
    run: str
    """Its name in the store, ``TRIAL/NUMBER``; empty if it never began."""
    reason: str = ""
    """Why it is not ok, in one line."""
    dilation: float = 1.0
    """Seconds of this machine in one of ``seconds``; above 1 on nodes slower than their boards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofPlan:
    """How the best is proved."""

    campaign: str
    """The campaign that holds the pairs; empty for the user's own program."""
    candidate: str
    """The candidate."""
    pairs: int
    """Number of pairs."""
    reason: str = ""
    """Why the search ended; empty if a record of an earlier version does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRecord:
    """One run of a proof of the user's own program, which no campaign holds."""

    pair: int
    """Number of the pair, from 1."""
    candidate: str
    """What ran: the best, or ``base``."""
    run: str
    """Its name in the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofResult:
    """What was shown in the end."""

    reason: str
    """Why the search ended, in one line."""
    verdict: str = ""
    """What the pairs show of the best against the base; empty without a proof."""
    words: str = ""
    """The same as a sentence."""
    ratio: float = 0.0
    """Best against base; 0 without a proof."""
    low: float = 0.0
    """Lower end of its 95 % interval."""
    high: float = 0.0
    """Upper end."""
    pairs: int = 0
    """Pairs that count."""
    profile: str = ""
    """The profile that was written; empty if none was."""


_KINDS: Mapping[str, type[Any]] = {
    "begin": TuningRequest,
    "sitting": Sitting,
    "ruled_out": RuledOut,
    "candidate": Candidate,
    "run": TrialRecord,
    "proof": ProofPlan,
    "pair": PairRecord,
    "end": ProofResult,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_ENUMS = {"engine": Engine, "objective": Objective, "outcome": Outcome, "purpose": Purpose}


class TuningRecord:
    """All that is known of a tuning; what is added is also written, if there is a file.

    Attributes:
        request: what was asked for.
        sittings: how often a driver began or went on, and when.
        ruled_out: what is left out.
        candidates: what was tried, by id.
        runs: every run in order.
        proof: how the best is proved; None before that.
        pairs: the runs of a proof of the user's own program.
        end: what was shown; None while it is not finished.
    """

    def __init__(self, request: TuningRequest, *, write: Callable[[str], object] | None) -> None:
        self.request = request
        self.sittings: list[Sitting] = []
        self.ruled_out: list[RuledOut] = []
        self.candidates: dict[str, Candidate] = {}
        self.runs: list[TrialRecord] = []
        self.proof: ProofPlan | None = None
        self.pairs: list[PairRecord] = []
        self.end: ProofResult | None = None
        self._first_of_sitting = 0
        self._write = write or (lambda _: None)

    @property
    def budget_seconds(self) -> float:
        """The budget, as it was said last."""
        return self.sittings[-1].budget_seconds if self.sittings else self.request.budget_seconds

    @property
    def spent_seconds(self) -> float:
        """How much of it was spent at the last run's end."""
        return self.runs[-1].spent_seconds if self.runs else 0.0

    @property
    def runs_of_sitting(self) -> tuple[TrialRecord, ...]:
        """The runs of the driver that is at work."""
        return tuple(self.runs[self._first_of_sitting :])

    def add(self, event: object) -> None:
        """Take what has happened, after it is on the disk."""
        self._write(_line(event))
        self._take(event)

    def _take(self, event: object) -> None:
        if isinstance(event, Sitting):
            self.sittings.append(event)
            self._first_of_sitting = len(self.runs)
            self.end = None
        elif isinstance(event, RuledOut):
            self.ruled_out.append(event)
        elif isinstance(event, Candidate):
            self.candidates[event.id] = event
        elif isinstance(event, TrialRecord):
            self.runs.append(event)
        elif isinstance(event, ProofPlan):
            self.proof = event
        elif isinstance(event, PairRecord):
            self.pairs.append(event)
        elif isinstance(event, ProofResult):
            self.end = event

    def replay(self, events: Iterable[object]) -> None:
        """Take what was read from the file."""
        for event in events:
            self._take(event)


def record_folder(home: Path) -> Path:
    """Return the folder of a cluster's tunings."""
    return home / "tunings"


def begin_record(home: Path, request: TuningRequest) -> TuningRecord:
    """Begin the record of a tuning."""
    path = record_folder(home) / f"{request.id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = TuningRecord(request, write=lambda line: _append(path, line))
    record.add(request)
    return record


def read_records(home: Path) -> tuple[TuningRecord, ...]:
    """Return every tuning of a cluster, oldest first; one without a whole line is none.

    Raises:
        StoreError: a file is damaged.
    """
    found = (read_record_file(path) for path in sorted(record_folder(home).glob("*.jsonl")))
    return tuple(record for record in found if record is not None)


def read_record_file(path: Path) -> TuningRecord | None:
    """Return a tuning; None if its first line never reached the disk.

    Raises:
        StoreError: the file is damaged.
    """
    whole = path.read_bytes()
    lines = [line.decode(errors="replace") for line in whole.split(b"\n")[:-1]]
    events = []
    for number, line in enumerate(lines, start=1):
        try:
            events.append(_event(line))
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"{path}, line {number} is damaged: {error}",
                hint="move the file away; the runs themselves are in the store",
            ) from error
    if not events or not isinstance(events[0], TuningRequest):
        return None
    record = TuningRecord(events[0], write=lambda line: _append(path, line))
    record.replay(events[1:])
    return record


def _append(path: Path, line: str) -> None:
    """Add a line and have it on the disk; a torn one before it is cut off."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        size_bytes = os.fstat(descriptor).st_size
        whole = os.pread(descriptor, size_bytes, 0)
        end = whole.rfind(b"\n") + 1
        os.ftruncate(descriptor, end)
        left = line.encode()
        while left:  # a disk that is nearly full takes a part, and says so at the next only
            done = os.pwrite(descriptor, left, end)
            left, end = left[done:], end + done
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _line(event: object) -> str:
    fields = dataclasses.asdict(event)  # type: ignore[call-overload]
    return json.dumps({"event": _NAMES[type(event)], **fields}) + "\n"


def _event(line: str) -> object:
    fields = json.loads(line)
    kind = _KINDS[fields.pop("event")]
    for name, value in fields.items():
        if name in _ENUMS:
            fields[name] = _ENUMS[name](value)
        elif isinstance(value, list):
            fields[name] = tuple(value)
    return kind(**fields)
