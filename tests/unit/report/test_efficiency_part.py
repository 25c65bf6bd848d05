"""What the energy of a service is told in: what it serves, by what was measured of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import make_result
from tests.unit.report.stored import measured_energy

from boardcluster.records import Engine
from boardcluster.report.efficiency_part import Declared, efficiency_part
from boardcluster.report.plots.figure import Bars
from boardcluster.report.source import Source


@pytest.mark.parametrize(
    ("workload", "engine", "served"),
    [("webserve", Engine.HTTP, "requests"), ("oltp", Engine.GALERA, "transactions")],
)
def test_energy_of_a_service_is_that_of_what_it_serves(
    workload: str, engine: Engine, served: str
) -> None:
    figures = {f"timed_{served}": 1000.0, f"{served}_per_second": 100.0}
    results = [
        make_result(
            10.0 + place,
            position=place,
            workload=workload,
            engine=engine,
            size_bytes=0,
            input_bytes=0,
            figures=figures,
            energy=measured_energy(300.0, 10.0),
        )
        for place in range(2)
    ]
    source = Source.of(results, [])

    part = efficiency_part(source, source.cells, Declared(cluster=None), name="energy")

    titles = {column.title for table in part.tables for column in table.columns}
    assert {f"J/1000 {served}", f"95 % interval of J/1000 {served}"} <= titles
    # The price is missing for a service's own rate, not for Gflops that it does not have.
    assert any("Performance per price is missing" in note for note in part.notes)
    assert not any("Gflops" in note for note in part.notes)


def test_the_price_of_hpl_with_a_size_is_of_its_gflops() -> None:
    result = make_result(
        10.0,
        workload="hpl",
        engine=Engine.MPI,
        size_bytes=134_000_000,
        input_bytes=0,
        figures={"gflops_per_second": 38.0},
    )
    source = Source.of([result], [])

    part = efficiency_part(source, source.cells, Declared(cluster=None), name="energy")

    (note,) = [note for note in part.notes if note.startswith("Performance per price")]
    assert note == (
        "Performance per price is missing: no prices are declared in [prices] of cluster.toml."
    )


@pytest.mark.parametrize(
    ("joules", "uncertainty_joules", "said"),
    [
        ((300.0, 310.0), 400.0, "no interval: the meters are too inexact"),
        ((100.0, 500.0), None, "0 to "),  # as in the figure: no energy is below 0
        ((300.0,), None, "one run, no interval"),
    ],
)
def test_an_interval_of_energy_is_one_that_can_be(
    joules: tuple[float, ...], uncertainty_joules: float | None, said: str
) -> None:
    results = [
        make_result(
            10.0,
            position=place,
            energy=replace(measured_energy(each, 10.0), uncertainty_joules=uncertainty_joules),
        )
        for place, each in enumerate(joules)
    ]
    source = Source.of(results, [])

    part = efficiency_part(source, source.cells, Declared(cluster=None), name="energy")

    (row,) = part.tables[0].rows
    titles = [column.title for column in part.tables[0].columns]
    assert row[titles.index("95 % interval of J")].startswith(said)
    body = part.figures[0].body
    assert isinstance(body, Bars)
    (bar,) = [bar for group in body.groups for bar in group.bars]
    assert said in bar.words[1]
