"""Temperature, power and clock of a board that is not there: what heat and supply would do. Pure.

Everything here is modelled, and much of it assumed: ``HeatModel.assumptions`` says what, one line
each, and docs/explanation/heat.md says why.

One temperature ``T`` stands for the board with its cooling::

    dT/dt = (surroundings + resistance * watts - T) / time constant
    watts = idle + busy share * (watts of the clock share, all cores busy, above idle)

The firmware's limits are a chain of straight lines from temperature to clock, so between two of
its corners the equation is linear and solved exactly, whatever the length of a step.

Firmware: Raspberry Pi Ltd, documentation, "Frequency management and thermal control" (from 80 °C
the Arm cores are slowed progressively, 85 °C is the limit; 3B+: 1.2 GHz from 60 °C on) and
config.txt, "Overclocking options" (``temp_limit``, ``temp_soft_limit``, ``arm_freq_min``; an
under-voltage slows the cores too). What ``get_throttled`` tells as bits are these events.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from boardcluster.catalog.entry import BoardEntry, SourcedFigure
from boardcluster.catalog.lookup import PartEntry, entry_names, find_board, find_part
from boardcluster.errors import UsageError
from boardcluster.records import NodeSpec, PowerModel

__all__ = [
    "HYSTERESIS_KELVIN",
    "SUPPLY_PEAK_FACTOR",
    "HeatModel",
    "HeatState",
    "heat_model",
    "heat_models",
    "power_model_of",
    "start",
    "step",
]

SUPPLY_PEAK_FACTOR = 1.5
"""Assumed: how many times its mean power a board draws for moments, with storage and USB. What Lee
and Park 2026 saw a 5B do with 12.5, 15 and 27 W follows from any factor of 1.47 to 1.60."""

HYSTERESIS_KELVIN = 1.0
"""Assumed: how much cooler than where it was slowed a board must be before its clock rises."""

_SLOWED_CELSIUS = 80.0
_LIMIT_CELSIUS = 85.0
_SOFT_RAMP_KELVIN = 1.0
"""Assumed: over how much the 3B+ goes to its soft limit. The firmware steps; a line is solvable."""

_NEAR_KELVIN = 1e-9
"""Corners nearer than this count as reached."""

_IDLE_WATTS = "power_idle_mean_watts"
_STRESS_WATTS = "power_stress_mean_watts"
_IDLE_CELSIUS = "idle_mean_celsius"
_STRESS_CELSIUS = "stress_mean_celsius"
_RESISTANCE = "assumed_resistance_kelvin_per_watt"
_SURROUNDINGS = "assumed_surroundings_celsius"
_CAPACITY = "assumed_heat_capacity_joules_per_kelvin"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Firmware:
    """What the firmware of a model does when it is too hot or has too little power."""

    model: str
    """How the names of its boards begin, in the catalog and in their device tree."""
    lowest_hertz: float
    """``arm_freq_min``, below which it does not slow the cores."""
    soft_celsius: float | None = None
    """Where it goes to ``soft_hertz``; None if it has no such limit."""
    soft_hertz: float | None = None
    """Likewise."""


_FIRMWARE = (
    _Firmware(model="Raspberry Pi 5", lowest_hertz=1.5e9),
    _Firmware(model="Raspberry Pi 4", lowest_hertz=6e8),
    _Firmware(
        model="Raspberry Pi 3 Model B+", lowest_hertz=6e8, soft_celsius=60.0, soft_hertz=1.2e9
    ),
    _Firmware(model="Raspberry Pi 3", lowest_hertz=6e8),
    _Firmware(model="Raspberry Pi 2", lowest_hertz=6e8),
    _Firmware(model="Raspberry Pi Zero 2", lowest_hertz=6e8),
    _Firmware(model="Raspberry Pi Zero", lowest_hertz=7e8),
)
"""Of several that fit the first counts. The table of defaults in "Overclocking options"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatModel:
    """The constants of one board with its cooling and its supply."""

    board: str
    """Its id."""
    idle_watts: float
    """When it does nothing."""
    stress_watts: float
    """When every core is busy at the highest clock."""
    lowest_watts: float
    """When every core is busy at the lowest clock."""
    lowest_clock_share: float
    """The lowest clock over the highest."""
    limits: tuple[tuple[float, float], ...]
    """What the firmware allows: pairs of a temperature in celsius and a clock share, the cooler
    first, with straight lines between; empty without cooling given."""
    supply_watts: float | None
    """Mean power that the supply can carry; None without supply given."""
    assumptions: tuple[str, ...]
    """What is assumed, one line each, to be shown with every figure."""
    resistance_kelvin_per_watt: float | None = None
    """How much warmer a watt makes it; None without cooling given."""
    surroundings_celsius: float | None = None
    """What it would have at 0 W, which is not the room's temperature where the line was drawn
    through two measured points; None likewise."""
    time_constant_seconds: float | None = None
    """In which 63 % of a change is done; None likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatState:
    """A modelled board at one moment."""

    celsius: float | None
    """Its temperature; None without cooling given."""
    watts: float
    """What it draws."""
    clock_share: float
    """Its clock over the highest, a mean over time where it changes quickly."""
    limited_by: str
    """What holds the clock down: nothing, ``heat`` or ``supply``."""
    heat_clock_share: float = 1.0
    """What heat alone would allow; remembered, since it rises later than it falls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watts:
    """What a board draws, and of which entry the line below the maker's clock is."""

    idle_watts: float
    stress_watts: float
    standard: BoardEntry | None = None


# From the catalog


def power_model_of(board: BoardEntry, node: str) -> PowerModel | None:
    """Return what a node draws that stands for a board.

    Args:
        board: of the catalog.
        node: the node's name.

    Returns:
        None where the board's idle or stress watts were not measured.
    """
    watts = _measured_watts(board)
    if watts is None:
        return None
    return PowerModel(node=node, idle_watts=watts.idle_watts, stress_watts=watts.stress_watts)


def heat_model(
    board: BoardEntry, *, cooling: PartEntry | None, supply: PartEntry | None
) -> HeatModel:
    """Return the model of a board.

    Args:
        board: of the catalog.
        cooling: of the catalog; None leaves temperature and heat limits out.
        supply: of the catalog; None is one that always suffices.

    Raises:
        UsageError: a figure is missing, which is named, with the boards or parts that have it; or
            the supply is too weak for the board even at its lowest clock.
    """
    watts = _watts(board)
    line = (
        f"power is linear in busy time and clock, from {watts.idle_watts:g} W idle to "
        f"{watts.stress_watts:.4g} W with every core busy; a limited clock alternates between the "
        "highest and the lowest one, and the lower voltage at a lower clock is ignored"
    )
    lines = [line]
    if watts.standard is not None:
        lines.append(
            f"the {watts.stress_watts:.4g} W were not measured: they follow from the temperature, "
            f"if a watt heats as much as at the clock of {watts.standard.id}"
        )
    lowest_share, lowest_watts = 1.0, watts.stress_watts
    thermal: dict[str, float] = {}
    limits: tuple[tuple[float, float], ...] = ()
    if cooling is not None or supply is not None:
        firmware, clock_hertz = _firmware(board)
        lowest_share = min(1.0, firmware.lowest_hertz / clock_hertz)
        lowest_watts = _lowest_watts(watts, firmware, lowest_share)
        if cooling is not None:
            thermal, assumed = _thermal(board, cooling)
            limits = _limits(firmware, clock_hertz)
            lines += [*assumed, _limits_line(limits, clock_hertz)]
    carried: float | None = None
    if supply is not None:
        carried = _carried_watts(board, supply, lowest_watts)
        lines.append(
            f"the supply feeds this board alone; peaks draw {SUPPLY_PEAK_FACTOR:g} times the mean, "
            f"storage and USB included, so the supply can carry a mean of {carried:.4g} W"
        )
    return HeatModel(
        board=board.id,
        idle_watts=watts.idle_watts,
        stress_watts=watts.stress_watts,
        lowest_watts=lowest_watts,
        lowest_clock_share=lowest_share,
        limits=limits,
        supply_watts=carried,
        assumptions=tuple(lines),
        **thermal,
    )


def heat_models(nodes: Iterable[NodeSpec]) -> dict[str, HeatModel]:
    """Return the model of each node for which cooling or a supply is declared.

    Raises:
        UsageError: see ``heat_model``.
    """
    return {
        node.name: heat_model(
            find_board(node.twin.board),
            cooling=find_part("cooling", node.twin.cooling) if node.twin.cooling else None,
            supply=find_part("supplies", node.twin.supply) if node.twin.supply else None,
        )
        for node in nodes
        if node.twin is not None and (node.twin.cooling or node.twin.supply)
    }


def _last(figures: Sequence[SourcedFigure], name: str, **conditions: str) -> SourcedFigure | None:
    """Return the last figure with a name and, among others, these conditions."""
    for row in reversed(figures):
        if row.figure.name == name and conditions.items() <= row.figure.conditions.items():
            return row
    return None


def _measured_watts(board: BoardEntry) -> _Watts | None:
    idle, stress = _last(board.figures, _IDLE_WATTS), _last(board.figures, _STRESS_WATTS)
    if idle is None or stress is None:
        return None
    return _Watts(idle_watts=idle.figure.value, stress_watts=stress.figure.value)


def _watts(board: BoardEntry) -> _Watts:
    """Return what a board draws: as measured, or as follows from how hot it was."""
    found = _measured_watts(board) or _watts_by_heat(board)
    if found is not None:
        return found
    missing = [name for name in (_IDLE_WATTS, _STRESS_WATTS) if _last(board.figures, name) is None]
    entries = (find_board(name) for name in entry_names("boards"))
    having = [entry.id for entry in entries if _measured_watts(entry) or _watts_by_heat(entry)]
    raise UsageError(
        f"the power of {board.id} cannot be modelled: the catalog has no {' and no '.join(missing)}"
        " of it",
        hint=f"boards that have them: {', '.join(having)}; or measure your own: "
        "boardcluster probe power --save-board FILE",
    )


def _watts_by_heat(board: BoardEntry) -> _Watts | None:
    """Return the watts of a board whose temperature is known, and whose standard entry has both."""
    for name in entry_names("cooling"):
        part = find_part("cooling", name)
        hot = _last(part.figures, _STRESS_CELSIUS, board=board.id)
        if hot is None or "standard" not in hot.figure.conditions:
            continue
        standard = find_board(hot.figure.conditions["standard"])
        watts, line = _measured_watts(standard), _measured_line(part, standard)
        if watts is not None and line is not None:
            resistance, surroundings = line
            stress = (hot.figure.value - surroundings) / resistance
            return _Watts(idle_watts=watts.idle_watts, stress_watts=stress, standard=standard)
    return None


def _measured_line(part: PartEntry, board: BoardEntry) -> tuple[float, float] | None:
    """Return kelvin per watt, and celsius at 0 W, through a board's idle and stress points."""
    idle = _last(part.figures, _IDLE_CELSIUS, board=board.id)
    stress = _last(part.figures, _STRESS_CELSIUS, board=board.id)
    watts = _measured_watts(board)
    if idle is None or stress is None or watts is None:
        return None
    resistance = (stress.figure.value - idle.figure.value) / (watts.stress_watts - watts.idle_watts)
    return resistance, idle.figure.value - resistance * watts.idle_watts


def _firmware(board: BoardEntry) -> tuple[_Firmware, float]:
    """Return a board's firmware and its highest clock in hertz."""
    found = next((row for row in _FIRMWARE if board.name.startswith(row.model)), None)
    if found is None:
        raise UsageError(
            f"heat and supply of {board.id} cannot be modelled: how the firmware of "
            f'"{board.name}" behaves is not known',
            hint="supported are names that begin with: "
            + ", ".join(row.model for row in _FIRMWARE),
        )
    if board.clock_hertz is None:
        raise UsageError(
            f"heat and supply of {board.id} cannot be modelled: its entry has no clock_hertz",
            hint="add clock_hertz, its highest clock, to the board's file",
        )
    return found, board.clock_hertz


def _lowest_watts(watts: _Watts, firmware: _Firmware, lowest_share: float) -> float:
    """Return the watts of a board with every core busy at its lowest clock.

    An overclocked one is there on the line of its standard entry.
    """
    above, share = watts.stress_watts - watts.idle_watts, lowest_share
    if watts.standard is not None and watts.standard.clock_hertz is not None:
        standard = _watts(watts.standard)
        above = standard.stress_watts - standard.idle_watts
        share = min(1.0, firmware.lowest_hertz / watts.standard.clock_hertz)
    return watts.idle_watts + above * share


def _limits(firmware: _Firmware, clock_hertz: float) -> tuple[tuple[float, float], ...]:
    """Return the corners of what the firmware allows."""
    lowest = min(1.0, firmware.lowest_hertz / clock_hertz)
    hot = [(_LIMIT_CELSIUS, lowest)]
    if firmware.soft_celsius is None or firmware.soft_hertz is None:
        return ((_SLOWED_CELSIUS, 1.0), *hot)
    soft = min(1.0, firmware.soft_hertz / clock_hertz)
    return (
        (firmware.soft_celsius, 1.0),
        (firmware.soft_celsius + _SOFT_RAMP_KELVIN, soft),
        (_SLOWED_CELSIUS, soft),
        *hot,
    )


def _limits_line(limits: Sequence[tuple[float, float]], clock_hertz: float) -> str:
    ramp = ", ".join(f"{share * clock_hertz / 1e6:.0f} MHz at {at:g} °C" for at, share in limits)
    return (
        f"the firmware lowers the clock along straight lines: {ramp}; it raises it when the board "
        f"is {HYSTERESIS_KELVIN:g} K cooler"
    )


def _thermal(board: BoardEntry, cooling: PartEntry) -> tuple[dict[str, float], list[str]]:
    """Return the constants of a board with a way of cooling by name, and what is assumed."""
    resistance, surroundings, lines = _line(board, cooling)
    capacity = _assumed(cooling, _CAPACITY, board)
    if capacity is None:
        raise _missing(board, cooling, _CAPACITY)
    seconds = resistance * capacity.figure.value
    lines.append(
        f"the whole board has one temperature, with a time constant of {seconds:.0f} s, from "
        f"{capacity.figure.value:g} J/K ({capacity.source})"
    )
    constants = {
        "resistance_kelvin_per_watt": resistance,
        "surroundings_celsius": surroundings,
        "time_constant_seconds": seconds,
    }
    return constants, lines


def _line(board: BoardEntry, cooling: PartEntry) -> tuple[float, float, list[str]]:
    """Return kelvin per watt, celsius at 0 W, and what of it is assumed."""
    for row in cooling.figures:
        measured = row.figure.conditions.get("board")
        if row.figure.name != _IDLE_CELSIUS or measured is None:
            continue
        entry = find_board(measured)
        line = _measured_line(cooling, entry)
        if line is not None and _firmware(entry)[0] == _firmware(board)[0]:
            resistance, surroundings = line
            word = (
                f"{resistance:.3g} K/W and {surroundings:.3g} °C at 0 W: a straight line through "
                f"the idle and stress points of {entry.id} ({row.source})"
            )
            return resistance, surroundings, [word]
    found = [_assumed(cooling, name, board) for name in (_RESISTANCE, _SURROUNDINGS)]
    if found[0] is None or found[1] is None:
        raise _missing(board, cooling, _RESISTANCE if found[0] is None else _SURROUNDINGS)
    resistance, surroundings = found[0].figure.value, found[1].figure.value
    words = [
        f"{resistance:g} K/W ({found[0].source})",
        f"surroundings of {surroundings:g} °C ({found[1].source})",
    ]
    return resistance, surroundings, words


def _assumed(cooling: PartEntry, name: str, board: BoardEntry) -> SourcedFigure | None:
    """Return an assumed figure that is for a board, or for any."""
    for row in cooling.figures:
        if row.figure.name == name and board.name.startswith(
            row.figure.conditions.get("model", "")
        ):
            return row
    return None


def _missing(board: BoardEntry, cooling: PartEntry, name: str) -> UsageError:
    parts = (find_part("cooling", each) for each in entry_names("cooling"))
    having = [part.id for part in parts if _assumed(part, _CAPACITY, board) is not None]
    return UsageError(
        f"the heat of {board.id} with the cooling {cooling.id} cannot be modelled: that entry has "
        f"no {name} for a {board.name}",
        hint=f"cooling for this board: {', '.join(having)}"
        if having
        else "the catalog has no cooling for this board; leave `cooling` out, or give a .toml "
        "file of your own",
    )


def _carried_watts(board: BoardEntry, supply: PartEntry, lowest_watts: float) -> float:
    """Return the mean power that a supply carries for a board."""
    rated = _rated_watts(supply)
    carried = rated / SUPPLY_PEAK_FACTOR
    if carried < lowest_watts:
        raise UsageError(
            f"the supply {supply.id} is too weak for {board.id}: of its {rated:g} W it can carry a "
            f"mean of {carried:.2f} W, and the board draws {lowest_watts:.2f} W even at its lowest "
            "clock; it would shut down under load",
            hint=f"choose a supply of {lowest_watts * SUPPLY_PEAK_FACTOR:.1f} W or more; see "
            "`boardcluster catalog supplies`",
        )
    return carried


def _rated_watts(supply: PartEntry) -> float:
    """Return what a supply is rated for: in watts, or else amperes times volts."""
    watts, amperes, volts = (
        _last(supply.figures, f"rated_{unit}") for unit in ("watts", "amperes", "volts")
    )
    if watts is not None:
        return watts.figure.value
    if amperes is not None and volts is not None:
        return amperes.figure.value * volts.figure.value
    raise UsageError(
        f"the supply {supply.id} cannot be modelled: it has no rated_watts, nor rated_amperes with "
        "rated_volts",
        hint="see `boardcluster catalog supplies`",
    )


# Over time


def start(model: HeatModel) -> HeatState:
    """Return a board that has been idle for long."""
    celsius: float | None = None
    share = 1.0
    if model.resistance_kelvin_per_watt is not None and model.surroundings_celsius is not None:
        celsius = model.surroundings_celsius + model.resistance_kelvin_per_watt * model.idle_watts
        share = _allowed(model, celsius)
    return _state(model, celsius, share, busy_share=0.0)


def step(model: HeatModel, state: HeatState, *, busy_share: float, seconds: float) -> HeatState:
    """Return a board after some time of one load.

    Args:
        model: of the board.
        state: at the start of that time.
        busy_share: part of the cores' time that was not idle, 0 to 1, at the clock they had; CPU
            times that come in ticks may be a little above, which counts as 1.
        seconds: of the board's time, 0 or more; on a node that is slower by time dilation, the
            host's seconds divided by it.
    """
    busy = min(1.0, max(0.0, busy_share))
    celsius, share = state.celsius, state.heat_clock_share
    if celsius is not None:
        celsius, share = _heated(model, celsius, share, busy, seconds)
    return _state(model, celsius, share, busy_share=busy)


def _state(
    model: HeatModel, celsius: float | None, heat_share: float, *, busy_share: float
) -> HeatState:
    supply_share = _supply_share(model, busy_share)
    share = min(heat_share, supply_share)
    cause = "heat" if heat_share <= supply_share else "supply"
    return HeatState(
        celsius=celsius,
        watts=_drawn_watts(model, busy_share, share),
        clock_share=share,
        limited_by=cause if share < 1.0 else "",
        heat_clock_share=heat_share,
    )


def _swing_watts(model: HeatModel) -> float:
    """Return how many watts all of the clock share is worth, with every core busy."""
    if model.lowest_clock_share >= 1.0:
        return 0.0
    return (model.stress_watts - model.lowest_watts) / (1.0 - model.lowest_clock_share)


def _drawn_watts(model: HeatModel, busy_share: float, clock_share: float) -> float:
    above = model.stress_watts - model.idle_watts - (1.0 - clock_share) * _swing_watts(model)
    return model.idle_watts + busy_share * above


def _supply_share(model: HeatModel, busy_share: float) -> float:
    """Return the clock share at which a board draws what its supply carries; 1 if it suffices."""
    if model.supply_watts is None:
        return 1.0
    over = _drawn_watts(model, busy_share, 1.0) - model.supply_watts
    swing = busy_share * _swing_watts(model)
    if over <= 0.0 or swing == 0.0:
        return 1.0
    return max(model.lowest_clock_share, 1.0 - over / swing)


def _pairs(model: HeatModel) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    return zip(model.limits, model.limits[1:], strict=False)


def _allowed(model: HeatModel, celsius: float) -> float:
    """Return the clock share that the firmware allows on the way up."""
    if not model.limits or celsius <= model.limits[0][0]:
        return model.limits[0][1] if model.limits else 1.0
    for (cool, high), (hot, low) in _pairs(model):
        if celsius <= hot:
            return high + (low - high) * (celsius - cool) / (hot - cool)
    return model.limits[-1][1]


def _reached_at(model: HeatModel, share: float) -> list[float]:
    """Return the temperatures at which the firmware comes to a clock share between corners."""
    return [
        cool + (hot - cool) * (high - share) / (high - low)
        for (cool, high), (hot, low) in _pairs(model)
        if low < share < high
    ]


def _heated(
    model: HeatModel, celsius: float, heat_share: float, busy: float, seconds: float
) -> tuple[float, float]:
    """Return temperature, and the clock share that heat allows, after some time of one load.

    At one load the temperature only rises or only falls: a slower clock brings its end nearer, not
    to the other side. Rising, the clock stays until the firmware's line comes down to it; falling,
    until the line as of a board that is warmer by the hysteresis goes up to it.
    """
    resistance = model.resistance_kelvin_per_watt or 0.0
    supply_share = _supply_share(model, busy)

    def end_at(share: float) -> float:
        return (model.surroundings_celsius or 0.0) + resistance * _drawn_watts(model, busy, share)

    held = max(_allowed(model, celsius + HYSTERESIS_KELVIN), heat_share)
    held = min(_allowed(model, celsius), held)
    rising = end_at(min(held, supply_share)) > celsius
    shift = 0.0 if rising else HYSTERESIS_KELVIN

    def heat_allows(at: float) -> float:
        line = _allowed(model, at + shift)
        return min(held, line) if rising else max(held, line)

    corners = [at for at, _ in model.limits]
    corners += [*_reached_at(model, held), *_reached_at(model, supply_share)]
    left = seconds
    for corner in [*sorted((at - shift for at in corners), reverse=not rising), math.inf]:
        ahead = corner - celsius if rising or corner == math.inf else celsius - corner
        if ahead <= _NEAR_KELVIN:
            continue
        here = min(heat_allows(celsius), supply_share)
        slope = 0.0
        if corner != math.inf:
            there = min(heat_allows(corner), supply_share)
            slope = (there - here) / (corner - celsius)
        # Along a piece the watts are linear in the temperature, and so is its rate of change.
        firm = 1.0 - resistance * busy * _swing_watts(model) * slope
        end = celsius + (end_at(here) - celsius) / firm
        rate = firm / (model.time_constant_seconds or math.inf)
        needed = _seconds_to(corner, celsius, end, rate)
        if needed >= left:
            celsius = end + (celsius - end) * math.exp(-rate * left)
            break
        celsius, left = corner, left - needed
    return celsius, heat_allows(celsius)


def _seconds_to(corner: float, celsius: float, end: float, rate: float) -> float:
    """Return how long it takes to a corner; infinite if the way ends before it."""
    if not abs(corner - celsius) < abs(end - celsius):
        return math.inf
    return math.log((end - celsius) / (end - corner)) / rate
