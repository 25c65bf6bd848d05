"""Read all declared power meters in the background while runs go on.

Each meter has a thread of its own, so that a slow one delays nobody; times are the driver's
monotonic clock. Nothing that a meter does ends or delays a run: what it did not answer is a trouble
in its trace, and its energy of that run is None with the reason.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from boardcluster.analysis.energy import (
    IDLE_SECONDS,
    Instrument,
    Trace,
    Trouble,
    busy_cores,
    gap_limit_seconds,
    idle_power,
    integrate,
)
from boardcluster.errors import BoardclusterError, SpecError
from boardcluster.records import HOST, Coverage, MeterSpec, Power, PowerSamples, Telemetry
from boardcluster.remote.base import Remote
from boardcluster.telemetry.meters.base import Batched, Meter, MeterKind, Reading, Recorded
from boardcluster.telemetry.meters.registry import kind_of, settings_of
from boardcluster.telemetry.meters.wire.options import choice

__all__ = [
    "STOP_SECONDS",
    "MeterCheck",
    "Metering",
    "check_meter",
    "check_meters",
    "metering",
    "open_meter",
    "rise",
]

STOP_SECONDS = 2.0
"""Longest wait for meters at the end; a thread that still waits for an answer is left behind."""

_Array = npt.NDArray[np.float64]

_BATCH_SECONDS = 3.0
_KEPT_READINGS = 1_000_000
"""Readings kept of a meter: more than eleven days at one a second, in 24 MB at most."""

_LATEST_SECONDS = 4.0
"""How long ``powers`` waits for the readings that end a run."""

_ACCURACY_OPTION = "accuracy_percent"


def open_meter(spec: MeterSpec, remotes: Mapping[str, Remote]) -> Meter:
    """Open a declared meter without asking it anything.

    Args:
        spec: the meter.
        remotes: nodes by name, as root, for meters that are read on one.

    Raises:
        SpecError: an option has a wrong value, or its node is not there.
        HostError: a package that it needs is not installed.
        MeterError: a secret cannot be read.
    """
    kind = kind_of(spec)
    remote = None
    if kind.on_node:
        remote = next((remotes[name] for name in spec.nodes if name in remotes), None)
        if remote is None:
            raise SpecError(
                f'meter "{spec.name}": none of its nodes exists: {", ".join(spec.nodes)}',
                hint="correct nodes in cluster.toml",
            )
    try:
        return kind.open(settings_of(spec), remote)
    except BoardclusterError as error:
        raise type(error)(f'meter "{spec.name}": {error.message}', hint=error.hint) from error


def check_meters(specs: Sequence[MeterSpec], remotes: Mapping[str, Remote]) -> None:
    """Open and close each meter, so that a mistake is said before anything begins. Asks none.

    Args:
        specs: declared meters.
        remotes: nodes by name, as root, for meters that are read on one.

    Raises:
        SpecError: an option has a wrong value, or a meter's node is not there.
        HostError: a package that a meter needs is not installed.
        MeterError: a secret cannot be read. A meter that does not answer is no error.
    """
    for spec in specs:
        meter = open_meter(spec, remotes)
        try:
            _accuracy(kind_of(spec), settings_of(spec))
        finally:
            with contextlib.suppress(BoardclusterError, OSError):
                meter.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterCheck:
    """One look at a declared meter."""

    meter: str
    """Its name."""
    kind: str
    """Its driver."""
    nodes: tuple[str, ...]
    """The nodes it covers."""
    switch: bool
    """Whether the network switch hangs on it too."""
    coverage: Coverage
    """What it sees."""
    accuracy: str
    """In words."""
    accuracy_percent: float | None
    """As a number; None where none is stated."""
    watts: float | None
    """What is drawn now; None if it did not say."""
    counted_joules: float | None
    """Its own count; None if it keeps none."""
    error: str = ""
    """Why there is no reading, in one line; empty if there is."""
    hint: str = ""
    """The next thing to do."""


def check_meter(spec: MeterSpec, remotes: Mapping[str, Remote]) -> MeterCheck:
    """Read a declared meter once; twice, a second apart, if it only counts energy.

    Args:
        spec: the meter.
        remotes: nodes by name, as root, for meters that are read on one.

    Raises:
        SpecError: there is no such kind of meter, or an option is unknown, missing or wrong.
    """
    kind, settings = kind_of(spec), settings_of(spec)
    percent = _accuracy(kind, settings)
    check = MeterCheck(
        meter=spec.name,
        kind=kind.name,
        nodes=spec.nodes,
        switch=spec.switch,
        coverage=_coverage(kind, settings),
        accuracy=_accuracy_words(kind, settings, percent),
        accuracy_percent=percent,
        watts=None,
        counted_joules=None,
    )
    try:
        with contextlib.closing(open_meter(spec, remotes)) as meter:
            first = meter.read()
            watts = first.watts
            if watts is None and not isinstance(meter, Recorded):
                time.sleep(1.0)
                watts = rise(first, meter.read())
    except BoardclusterError as error:
        text = error.message.partition("\n")[0].removeprefix(f'meter "{spec.name}": ')
        return replace(check, error=text, hint=error.hint)
    return replace(check, watts=watts, counted_joules=first.energy_joules)


def rise(first: Reading, second: Reading) -> float | None:
    """Return the mean power between two counts, in watts; None if they do not tell it."""
    if first.energy_joules is None or second.energy_joules is None:
        return None
    joules = second.energy_joules - first.energy_joules
    if joules < 0:
        joules += second.wraps_at_joules or math.nan
    span_seconds = second.seconds - first.seconds
    watts = joules / span_seconds if span_seconds > 0 else math.nan
    return watts if math.isfinite(watts) else None


def _accuracy_words(kind: MeterKind, settings: Mapping[str, str], percent: float | None) -> str:
    said = settings.get(_ACCURACY_OPTION)
    return f"{percent:g} % according to cluster.toml" if said else kind.accuracy


class _Kept:
    """Readings in order, three numbers each; the oldest half goes when there are too many."""

    def __init__(self) -> None:
        self._columns = (array("d"), array("d"), array("d"))

    def add(self, row: Reading) -> None:
        values = (row.seconds, _number(row.watts), _number(row.energy_joules))
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)
        if len(self._columns[0]) > _KEPT_READINGS:
            for column in self._columns:
                del column[: _KEPT_READINGS // 2]

    @property
    def latest_seconds(self) -> float:
        return self._columns[0][-1] if self._columns[0] else -math.inf

    def between(self, first_seconds: float, last_seconds: float) -> _Kept:
        """Copy the readings of a span."""
        at = self._columns[0]
        part = slice(bisect_left(at, first_seconds), bisect_right(at, last_seconds))
        found = _Kept()
        found._columns = tuple(column[part] for column in self._columns)  # type: ignore[assignment]
        return found

    def columns(self) -> tuple[_Array, _Array, _Array]:
        """Return times, watts and counts."""
        first, second, third = (np.array(column, dtype=np.float64) for column in self._columns)
        return first, second, third


class _Watch:
    """One meter, its thread and what it said."""

    def __init__(self, spec: MeterSpec, meter: Meter) -> None:
        self.spec = spec
        self.kind: MeterKind = kind_of(spec)
        self.settings = settings_of(spec)
        self.meter = meter
        self.counts = False
        """Whether the energy that ``power`` said last is the meter's own count."""
        self._readings = _Kept()
        self._wraps_at_joules: float | None = None
        self._troubles: deque[Trouble] = deque(maxlen=1000)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._thread = threading.Thread(target=self._loop, name=f"meter {spec.name}", daemon=True)
        self._ending = threading.Event()

    def start(self) -> None:
        if not isinstance(self.meter, Recorded):
            self._thread.start()

    def stop(self) -> None:
        self._ending.set()

    def close(self, deadline_seconds: float) -> None:
        if self._thread.is_alive():
            self._thread.join(max(0.0, deadline_seconds - time.monotonic()))
        with contextlib.suppress(BoardclusterError, OSError):
            self.meter.close()

    def _loop(self) -> None:
        due = time.monotonic()
        while not self._ending.is_set():
            self._ask()
            # Whoever was held up does not hurry afterwards: a meter that is asked twice at once
            # says the same twice.
            due = max(due + self.kind.interval_seconds, time.monotonic())
            if isinstance(self.meter, Batched):
                due = time.monotonic()
            self._ending.wait(due - time.monotonic())

    def _ask(self) -> None:
        try:
            if isinstance(self.meter, Batched):
                found = self.meter.read_for(
                    _BATCH_SECONDS, interval_seconds=self.kind.interval_seconds
                )
            else:
                found = (self.meter.read(),)
        except BoardclusterError as error:
            self._failed(error.message.partition("\n")[0])
        except Exception as error:  # noqa: BLE001  whatever a device sends must not end the thread
            self._failed(f"{type(error).__name__} while reading it")
        else:
            with self._changed:
                for row in found:
                    if _is_finite(row):
                        self._readings.add(row)
                        self._wraps_at_joules = row.wraps_at_joules
                self._changed.notify_all()

    def _failed(self, text: str) -> None:
        with self._changed:
            self._troubles.append(Trouble(seconds=time.monotonic(), text=text))
            self._changed.notify_all()
        if isinstance(self.meter, Batched):
            self._ending.wait(self.kind.interval_seconds)

    def wait_until(self, seconds: float, deadline_seconds: float) -> None:
        """Wait for a reading or a trouble that is not older than some time."""
        if not self._thread.is_alive():
            return
        with self._changed:
            while self._latest() < seconds and (left := deadline_seconds - time.monotonic()) > 0:
                self._changed.wait(left)

    def _latest(self) -> float:
        return max(
            self._readings.latest_seconds,
            self._troubles[-1].seconds if self._troubles else -math.inf,
        )

    def trace(self, started_seconds: float, ended_seconds: float) -> Trace:
        """Return what is known about a run and the time around it; clocks count from its start."""
        interval_seconds, wraps = self.kind.interval_seconds, self._wraps_at_joules
        troubles: list[Trouble] = []
        kept = _Kept()
        if isinstance(self.meter, Recorded):
            try:
                for row in self.meter.between(started_seconds - IDLE_SECONDS, ended_seconds):
                    if _is_finite(row):
                        kept.add(row)
            except BoardclusterError as error:
                text = error.message.partition("\n")[0]
                troubles.append(Trouble(seconds=started_seconds, text=text))
        else:
            with self._lock:
                around = 2 * gap_limit_seconds(interval_seconds)
                kept = self._readings.between(started_seconds - around, ended_seconds + around)
                troubles = list(self._troubles)
        seconds, watts, counted_joules = kept.columns()
        if isinstance(self.meter, Recorded) and len(seconds) > 1:
            interval_seconds = max(float(np.median(np.diff(seconds))), 1e-3)
        return Trace(
            seconds=seconds - started_seconds,
            watts=watts,
            counted_joules=counted_joules,
            interval_seconds=interval_seconds,
            wraps_at_joules=wraps,
            troubles=tuple(
                Trouble(seconds=row.seconds - started_seconds, text=row.text) for row in troubles
            ),
        )

    @property
    def coverage(self) -> Coverage:
        """What it sees."""
        return _coverage(self.kind, self.settings)

    def samples(self, started_seconds: float, ended_seconds: float) -> PowerSamples:
        """Return its readings around a run; of a mere count, how fast it rose."""
        trace = self.trace(started_seconds, ended_seconds)
        seconds, watts = trace.seconds, trace.watts
        if len(seconds) > 1 and bool(np.isnan(watts).all()):
            spans = np.diff(seconds)
            with np.errstate(divide="ignore", invalid="ignore"):
                watts = np.diff(trace.counted_joules) / spans
            seconds = seconds[:-1] + spans / 2
            # A count that begins again at zero says nothing of that moment.
            watts = np.where((watts < 0) | ~np.isfinite(watts), np.nan, watts)
        return PowerSamples(
            meter=self.spec.name,
            coverage=self.coverage,
            nodes=self.spec.nodes,
            seconds=seconds,
            watts=watts,
        )

    def power(
        self,
        started_seconds: float,
        ended_seconds: float,
        telemetry: Telemetry | None,
        span: tuple[float, float] | None,
        *,
        idle_until_seconds: float,
    ) -> Power:
        """Return what the meter recorded over a run, or over a span of it."""
        load = busy_cores(telemetry, self._fed(telemetry)) if telemetry else None
        begin, end = span or (0.0, ended_seconds - started_seconds)
        trace = self.trace(started_seconds, ended_seconds)
        found = integrate(
            trace,
            started_seconds=begin,
            ended_seconds=end,
            load=load,
            feeds_nodes=bool(self.spec.nodes),
        )
        self.counts = found.counted
        idle_watts, idle_reason = idle_power(
            self.trace(idle_until_seconds, idle_until_seconds),
            load=self._load_before(telemetry, idle_until_seconds - started_seconds),
        )
        percent = _accuracy(self.kind, self.settings)
        return Power(
            meter=self.spec.name,
            kind=self.kind.name,
            coverage=self.coverage,
            nodes=self.spec.nodes,
            switch=self.spec.switch,
            accuracy=_accuracy_words(self.kind, self.settings, percent),
            rate_hertz=found.rate_hertz,
            energy_joules=found.energy_joules,
            mean_watts=found.mean_watts,
            most_watts=found.most_watts,
            readings=found.readings,
            remarks=found.remarks,
            reason=found.reason,
            idle_watts=idle_watts,
            idle_reason=f"{self.spec.name}: {idle_reason}" if idle_reason else "",
            uncertainty_joules=None
            if percent is None or found.energy_joules is None
            else percent / 100 * found.energy_joules + found.lag_joules,
        )

    def _load_before(
        self, telemetry: Telemetry | None, moment_seconds: float
    ) -> tuple[_Array, _Array] | None:
        """Return how busy the nodes were before a moment, as seconds from it; None if not known."""
        if telemetry is None:
            return None
        later = IDLE_SECONDS - moment_seconds
        nodes = tuple(replace(row, seconds=row.seconds + later) for row in telemetry.nodes)
        earlier = replace(telemetry, nodes=nodes, duration_seconds=IDLE_SECONDS, phases={})
        at, busy = busy_cores(earlier, self._fed(telemetry))
        return at - IDLE_SECONDS, busy

    def _fed(self, telemetry: Telemetry) -> set[str]:
        """The nodes whose load its power follows: those that it feeds; of a switch alone, all."""
        if not self.spec.nodes:
            return {row.node for row in telemetry.nodes}
        return {*self.spec.nodes, HOST}


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _is_finite(row: Reading) -> bool:
    values = [row.seconds, *(v for v in (row.watts, row.energy_joules) if v is not None)]
    return len(values) > 1 and all(map(math.isfinite, values))


def _coverage(kind: MeterKind, settings: Mapping[str, str]) -> Coverage:
    """Return what a meter sees: what the file says, else what its kind does.

    Raises:
        SpecError: the file says something else.
    """
    if "coverage" not in settings:
        return kind.coverage
    return Coverage(choice(settings, "coverage", list(Coverage)))


def _accuracy(kind: MeterKind, settings: Mapping[str, str]) -> float | None:
    """Return the accuracy in percent: what the file says, else what the maker states.

    Raises:
        SpecError: the file says no number.
    """
    said = settings.get(_ACCURACY_OPTION)
    if not said:
        return kind.accuracy_percent
    try:
        percent = float(said)
    except ValueError:
        percent = math.nan
    if not 0 < percent <= 100:
        raise SpecError(
            f'the option "{_ACCURACY_OPTION}" of a meter is "{said}"; allowed: a number up to 100',
            hint=f"correct {_ACCURACY_OPTION} in cluster.toml",
        )
    return percent


class Metering:
    """Meters that are being read."""

    def __init__(self, watches: Sequence[_Watch]) -> None:
        self._watches = tuple(watches)
        self._began_seconds = time.monotonic()
        self._idle_until_seconds: float | None = None

    @property
    def instruments(self) -> Mapping[str, Instrument]:
        """What the level of a measurement asks of each meter, by name; call it after ``powers``.

        One whose count was too coarse for that run, or that has none, did not integrate.
        """
        return {
            watch.spec.name: Instrument(
                integrates=watch.kind.integrates and watch.counts,
                accuracy_percent=_accuracy(watch.kind, watch.settings),
            )
            for watch in self._watches
        }

    def powers(
        self,
        started_seconds: float,
        ended_seconds: float,
        *,
        telemetry: Telemetry | None = None,
        span_seconds: tuple[float, float] | None = None,
    ) -> tuple[Power, ...]:
        """Return what each meter recorded over a run that has ended.

        Waits up to four seconds for the readings that follow the end of the run, so that the power
        at its end is between two readings.

        Args:
            started_seconds: of the run, by the driver's monotonic clock.
            ended_seconds: likewise, later.
            telemetry: of the run; with it a frozen meter is told from a constant load, and what was
                drawn before the run from work.
            span_seconds: begin and end, from the start of the run, of what is wanted; None is the
                whole run.
        """
        if not ended_seconds > started_seconds:
            raise ValueError("a run ends after its start")
        deadline = time.monotonic() + _LATEST_SECONDS
        for watch in self._watches:
            watch.wait_until(ended_seconds, deadline)
        return tuple(
            watch.power(
                started_seconds,
                ended_seconds,
                telemetry,
                span_seconds,
                idle_until_seconds=self._idle_until_seconds or started_seconds,
            )
            for watch in self._watches
        )

    def idle(self) -> None:
        """Wait until each meter has been read for ``IDLE_SECONDS``, while nothing runs.

        Idle power is then that of the time before the end of this wait, not before the run: a
        service is warmed up in between.
        """
        if self._watches:
            longest_seconds = max(watch.kind.interval_seconds for watch in self._watches)
            left = self._began_seconds + IDLE_SECONDS + longest_seconds - time.monotonic()
            time.sleep(max(0.0, left))
            self._idle_until_seconds = time.monotonic()

    def samples(self, started_seconds: float, ended_seconds: float) -> tuple[PowerSamples, ...]:
        """Return the readings of each meter over a run; call it after ``powers``, which waits.

        Args:
            started_seconds: of the run, by the driver's monotonic clock.
            ended_seconds: likewise, later.

        Returns:
            One for each meter that gave a reading; moments count from the start of the run.
        """
        found = (watch.samples(started_seconds, ended_seconds) for watch in self._watches)
        return tuple(row for row in found if len(row.seconds))


@contextlib.contextmanager
def metering(specs: Sequence[MeterSpec], remotes: Mapping[str, Remote]) -> Iterator[Metering]:
    """Read meters in the background during the block.

    Args:
        specs: declared meters; with none it costs nothing.
        remotes: nodes by name, as root, for meters that are read on one.

    Raises:
        SpecError: an option has a wrong value.
        HostError: a package that a meter needs is not installed.
        MeterError: a secret cannot be read. A meter that does not answer is no error.
    """
    watches: list[_Watch] = []
    try:
        watches.extend(_Watch(spec, open_meter(spec, remotes)) for spec in specs)
        found = Metering(watches)
        _ = found.instruments  # a wrong accuracy is said before anything runs
        for watch in watches:
            watch.start()
        yield found
    finally:
        for watch in watches:
            watch.stop()
        deadline = time.monotonic() + STOP_SECONDS
        for watch in watches:
            watch.close(deadline)
