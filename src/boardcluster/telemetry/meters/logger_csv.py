"""A CSV file that any other logger writes on this machine; read when a run has ended."""

from __future__ import annotations

import collections
import csv
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from boardcluster.errors import MeterError, SpecError
from boardcluster.records import Coverage
from boardcluster.remote.base import Remote
from boardcluster.telemetry.meters.base import Meter, MeterKind, Option, Reading
from boardcluster.telemetry.meters.wire.options import choice, number
from boardcluster.units import format_seconds

__all__ = ["KIND", "CsvForm"]

_WATTS_PER_UNIT = {"W": 1.0, "mW": 0.001, "kW": 1000.0}
_JOULES_PER_UNIT = {"J": 1.0, "Wh": 3600.0, "kWh": 3_600_000.0}
_UNITS = (*_WATTS_PER_UNIT, *_JOULES_PER_UNIT)
_AROUND_SECONDS = 60.0
_MISSED_LINES = 3
"""What is older, in the time from line to line, says nothing of now."""

_LARGEST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvForm:
    """How a file is to be read."""

    time_column: str
    """Its title."""
    value_column: str
    """Its title."""
    unit: str
    """Of the values; of power or of a running count of energy."""
    time_format: str
    """``iso``, ``unix``, or codes of strptime."""
    zone: tzinfo | None
    """For times that do not say theirs."""
    skew_seconds: float
    """How far the logger's clock is ahead of the driver's."""
    delimiter: str
    """Between cells."""
    decimal_comma: bool
    """Whether numbers have a comma where others have a point."""

    def number(self, text: str) -> float:
        """Read a number.

        Raises:
            ValueError: it is none.
        """
        return float(text.replace(",", ".") if self.decimal_comma else text)

    def wall_seconds(self, text: str) -> float:
        """Read a time as seconds since 1970 by the driver's wall clock.

        Raises:
            ValueError: it is none.
        """
        if self.time_format == "unix":
            seconds = self.number(text)
        else:
            if self.time_format == "iso":
                moment = datetime.fromisoformat(text)
            else:
                moment = datetime.strptime(text, self.time_format)  # noqa: DTZ007  its zone follows
            if moment.tzinfo is None and self.zone is not None:
                moment = moment.replace(tzinfo=self.zone)
            seconds = moment.timestamp()
        return seconds - self.skew_seconds


class _CsvMeter(Meter):
    """The file of a logger."""

    def __init__(self, path: Path, form: CsvForm) -> None:
        self._path, self._form = path, form

    def read(self) -> Reading:
        last = collections.deque(self._rows(time.time() - _AROUND_SECONDS), maxlen=2)
        if not last:
            raise MeterError(f"{self._path} holds no readings yet")
        wall_seconds, value = last[-1]
        late_seconds = time.time() - wall_seconds
        if abs(late_seconds) > max(_AROUND_SECONDS, _MISSED_LINES * (wall_seconds - last[0][0])):
            way = "ago" if late_seconds > 0 else "ahead"
            raise MeterError(
                f"{self._path}: its last reading is {format_seconds(abs(late_seconds))} {way}",
                hint="check that the logger runs, and time_format, zone and skew_seconds in "
                "cluster.toml",
            )
        return self._reading(wall_seconds, value)

    def between(self, started_seconds: float, ended_seconds: float) -> tuple[Reading, ...]:
        # The wall clock must not have been set in between.
        least, most = started_seconds - _AROUND_SECONDS, ended_seconds + _AROUND_SECONDS
        ahead = time.time() - time.monotonic()
        readings = (self._reading(*row) for row in self._rows(least + ahead, most + ahead))
        return tuple(row for row in readings if least <= row.seconds <= most)

    def _reading(self, wall_seconds: float, value: float) -> Reading:
        seconds = wall_seconds - time.time() + time.monotonic()
        if self._form.unit in _WATTS_PER_UNIT:
            return Reading(seconds=seconds, watts=value * _WATTS_PER_UNIT[self._form.unit])
        counted = value * _JOULES_PER_UNIT[self._form.unit]
        return Reading(seconds=seconds, watts=None, energy_joules=counted)

    def _rows(self, least: float, most: float = math.inf) -> Iterator[tuple[float, float]]:
        """Yield time and value of each line; a last line that is still being written is left out.

        What is wrong outside the time that matters, such as hours before a run, is left out, too.

        Args:
            least: begin of that time, in seconds since 1970.
            most: its end.

        Raises:
            MeterError: no such file or column, a cell that is no time or number, or time going
                backwards.
        """
        form = self._form
        earlier = before = -math.inf
        wrong: MeterError | None = None
        try:
            if self._path.stat().st_size > _LARGEST_BYTES:
                raise MeterError(f"{self._path} is larger than 1 GiB", hint="start a new file")
            with self._path.open(newline="", encoding="utf-8-sig", errors="replace") as stream:
                whole = (line for line in stream if line.endswith(("\n", "\r")))
                rows = csv.DictReader(whole, delimiter=form.delimiter)
                for column in (form.time_column, form.value_column):
                    if column not in (rows.fieldnames or ()):
                        titles = ", ".join(map(str, rows.fieldnames or ()))[:200]
                        raise MeterError(
                            f'{self._path} has no column "{column}"; it has: {titles or "none"}',
                            hint="correct time_column, value_column or delimiter in cluster.toml",
                        )
                for row in rows:
                    place = f"{self._path}:{rows.line_num}"
                    try:
                        seconds = form.wall_seconds((row[form.time_column] or "").strip())
                        value = form.number((row[form.value_column] or "").strip())
                    except (ValueError, OverflowError, TypeError) as error:
                        wrong = wrong or MeterError(f"{place}: no valid time and number: {error}")
                        continue
                    if seconds < before:
                        wrong = wrong or MeterError(
                            f"{place}: the time goes backwards by {before - seconds:.0f} s",
                            hint="let the logger write UTC or Unix time",
                        )
                    # When a single line that is far too late was, its neighbours say.
                    single = -math.inf < earlier <= seconds < before
                    low, high = sorted((earlier if single else before, seconds))
                    if wrong and low <= most and high >= least:
                        raise wrong
                    wrong, earlier, before = None, before, seconds
                    yield seconds, value
                if wrong and before <= most:
                    raise wrong
        except OSError as error:
            raise MeterError(f"{self._path}: cannot be read: {error.strerror}") from error
        except csv.Error as error:
            raise MeterError(f"{self._path} is not a valid CSV file: {error}") from error


def _zone(name: str) -> tzinfo | None:
    if name == "local":
        return None
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        raise SpecError(
            f'the option "zone" of a meter is "{name}"; allowed: local, UTC, or a name such as '
            "Europe/Berlin",
            hint="correct zone in cluster.toml",
        ) from error


def _open(settings: Mapping[str, str], _: Remote | None) -> Meter:
    choice(settings, "coverage", list(Coverage))
    form = CsvForm(
        time_column=settings["time_column"],
        value_column=settings["value_column"],
        unit=choice(settings, "unit", _UNITS),
        time_format=settings["time_format"],
        zone=_zone(settings["zone"]),
        skew_seconds=number(settings, "skew_seconds", least=-1e6, most=1e6),
        delimiter={"tab": "\t"}.get(settings["delimiter"], settings["delimiter"]),
        decimal_comma=choice(settings, "decimal", ("point", "comma")) == "comma",
    )
    if len(form.delimiter) != 1:
        raise SpecError(
            f'the option "delimiter" of a meter is "{form.delimiter}"; allowed: one character, tab',
            hint="correct delimiter in cluster.toml",
        )
    return _CsvMeter(Path(settings["path"]).expanduser(), form)


KIND = MeterKind(
    name="logger-csv",
    summary="CSV file that another logger writes on this machine",
    coverage=Coverage.WALL,
    accuracy="that of the logger's meter; give what its data sheet says",
    options=(
        Option(name="path", help="the file, on this machine"),
        Option(name="time_column", help="title of the column with the time", default="time"),
        Option(name="value_column", help="title of the column with the values", default="watts"),
        Option(name="unit", help="W, mW, kW; of a running count: J, Wh, kWh", default="W"),
        Option(name="time_format", help="iso, unix, or codes of strptime", default="iso"),
        Option(
            name="zone", help="time zone of times that give none: local, UTC, ...", default="UTC"
        ),
        Option(name="skew_seconds", help="by how much the logger's clock is ahead", default="0"),
        Option(name="delimiter", help="between cells; or tab", default=","),
        Option(name="decimal", help="point or comma", default="point"),
        Option(name="coverage", help="wall, node, board, package, port", default="wall"),
        Option(name="accuracy_percent", help="of its data sheet; empty: none", default=""),
    ),
    open=_open,
)
