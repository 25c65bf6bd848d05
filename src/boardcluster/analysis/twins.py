"""Results of nodes that are no boards: what is said wherever they are shown."""

from __future__ import annotations

from collections.abc import Iterable

from boardcluster.records import Result

__all__ = [
    "LEFT_OUT",
    "dilation_of",
    "dilation_words",
    "is_twin",
    "node_words",
    "twin_words",
    "undilated_value",
]


_TIMES = ("seconds", "microseconds", "milliseconds", "nanoseconds")
_RATES = ("per_second", "flops", "gflops", "iops", "mips")
_TIMELESS = (
    *("bytes", "celsius", "count", "percent", "ratio", "records", "requests", "samples", "share"),
    *("operations", "transactions"),
    *("n", "nb", "p", "q", "residual"),  # of HPL, which have no unit
)
LEFT_OUT = ("hertz", "joules", "watts")
"""Units of what is this machine's own, however slow its nodes are: its clock and its power."""


def is_twin(result: Result) -> bool:
    """Say whether a result is of emulated nodes that stand for boards."""
    stands_for = result.attempt is not None and bool(result.attempt.fingerprint.twin)
    return stands_for or dilation_of(result) != 1


def dilation_of(result: Result) -> float:
    """Return by how much the nodes were slower than their boards; 1 where nothing was measured."""
    return result.measurement.dilation if result.measurement else 1.0


def dilation_words(*dilations: float) -> str:
    """Name dilations, each once and in order: ``dilation 4.0``, ``dilation 2.0, 4.0``."""
    return f"dilation {', '.join(str(float(value)) for value in sorted(set(dilations)))}"


def twin_words(results: Iterable[Result]) -> str:
    """Say that results are of emulated boards: ``emulated boards, dilation 4.0``.

    Returns:
        Empty if none of them is. The dilation is that of what was measured; warm-ups may run at
        this machine's full speed, and count nowhere.
    """
    twins: list[Result] = []
    others = 0
    for result in results:
        if is_twin(result):
            twins.append(result)
        else:
            others += result.measurement is not None
    if not twins:
        return ""
    what = "partly emulated boards" if others else "emulated boards"
    counted = (row for row in twins if row.measurement and not row.trial.warm_up)
    measured = [dilation_of(row) for row in counted]
    return f"{what}, {dilation_words(*measured)}" if measured else what


def node_words(results: Iterable[Result]) -> str:
    """Say what results are of, if neither of boards nor of plain emulated nodes.

    Returns:
        The words for emulated boards, or those of another kind of node: ``local node, not a
        board``; empty for boards and for emulated nodes that stand for none.
    """
    rows = list(results)
    if words := twin_words(rows):
        return words
    fingerprints = [row.attempt.fingerprint for row in rows if row.attempt is not None]
    other = [found for found in fingerprints if found.short_mark and not found.emulated]
    words = ", ".join(dict.fromkeys(found.short_mark for found in other))
    return f"partly {words}" if words and len(other) < len(fingerprints) else words


def undilated_value(name: str, value: float, dilation: float) -> float | None:
    """Return a figure as it would be on the boards, by the unit that its name ends with.

    None where it does not depend on the boards (``LEFT_OUT``), or where the unit is not known, so
    that it may or may not contain time.
    """
    if _ends_with(name, _RATES):
        return value * dilation
    if _ends_with(name, _TIMES):
        return value / dilation
    return value if _ends_with(name, _TIMELESS) else None


def _ends_with(name: str, units: tuple[str, ...]) -> bool:
    """Whether a figure's last words are one of these units; a mix puts ``job/`` before the name."""
    words = "_" + name.rpartition("/")[2]
    return words.endswith(tuple(f"_{unit}" for unit in units))
