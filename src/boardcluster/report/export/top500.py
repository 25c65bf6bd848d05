"""HPL as the lists of the fastest and the greenest have it: ``Gflops at W = Gflops/W``.

Rate over mean power in the core phase, which is the solution without the making and checking of the
matrix; where the program does not date it (hpcc, an xhpl of one's own), over the whole run, and the
line says so. Green500's performance per watt (W. Feng and K. W. Cameron, "The
Green500 List", *IEEE Computer* 40(12), 2007), and Baun 2016, equation 4. The rate of a cell is the
mean of its runs, not the best of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.twins import twin_words
from boardcluster.records import Energy, EnergyMethod, Result
from boardcluster.report.export.cells import core_power_watts
from boardcluster.units import format_count

__all__ = ["top500_lines"]

_HPL = "hpl"
_RATE = "gflops_per_second"


def top500_lines(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Return one line for each cell of HPL: ``1.367 Gflops at 26 W = 0.0526 Gflops/W (...)``.

    Where the power of any of its runs is not known the line says so, and has no efficiency.
    """
    return tuple(_line(cell) for cell in cells if cell.workload == _HPL and _RATE in cell.figures)


def _line(cell: Cell) -> str:
    gflops = cell.figures[_RATE].mean
    watts = core_power_watts(cell.results)
    if watts is None or not watts > 0:
        said = ", ".join((_missing(cell.results), *_remarks(cell)))
        return f"{gflops:.4g} Gflops ({said})"
    said = ", ".join((*_powered(cell.results), *_remarks(cell)))
    return f"{gflops:.4g} Gflops at {watts:.4g} W = {gflops / watts:.3g} Gflops/W ({said})"


def _energies(results: Sequence[Result]) -> list[Energy]:
    return [
        row.measurement.energy
        for row in results
        if row.measurement is not None and row.measurement.energy is not None
    ]


def _missing(results: Sequence[Result]) -> str:
    known = sum(energy.energy_joules is not None for energy in _energies(results))
    if known:
        return f"power is known of {known} of {len(results)} runs only"
    reasons = dict.fromkeys(energy.reason for energy in _energies(results) if energy.reason)
    return "; ".join(("no power was measured", *reasons))


def _powered(results: Sequence[Result]) -> tuple[str, ...]:
    energies = _energies(results)
    dated = all(energy.core is not None for energy in energies)
    level = min((energy.core or energy).level for energy in energies)
    modelled = any(energy.method is EnergyMethod.MODELLED for energy in energies)
    return (
        f"level {level}" if level else "level 0, none of the EE HPC WG methodology",
        str(EnergyMethod.MODELLED if modelled else EnergyMethod.METERED),
        "power of the core phase"
        if dated
        else "power of the whole job, not of the core phase alone",
    )


def _remarks(cell: Cell) -> tuple[str, ...]:
    setups = [row.attempt.fingerprint for row in cell.results if row.attempt is not None]
    nodes = sorted({setup.nodes for setup in setups})
    words = [
        format_count(cell.workers, "node" if nodes == [cell.workers] else "worker"),
        cell.label,
        "" if cell.count == 1 else f"mean of {cell.count} runs",
        "one run" if cell.count == 1 else "",
    ]
    if not twin_words(cell.results):
        words += dict.fromkeys(setup.mark for setup in setups)
    return tuple(word for word in words if word)
