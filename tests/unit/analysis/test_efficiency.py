"""What a result took and gave, in energy and money."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import make_board_fingerprint, make_fingerprint, make_probe_run
from tests.unit.analysis.runs import metered, result

from boardcluster.analysis.cells import summarise
from boardcluster.analysis.efficiency import (
    DGEMM_FIGURE,
    Amount,
    Efficiency,
    Peak,
    PriceList,
    PricePart,
    dgemm_peak,
    efficiency_of,
    energy_cost,
    hpl_efficiency,
    hpl_peak_gflops,
    joules_per_gigabyte,
    mflops_per_watt,
    performance_per_price,
    performance_per_watt,
    watts_of,
    yearly_energy_cost,
)
from boardcluster.records import Energy, EnergyMethod, Engine, ProbeFigure, ProbeRun, Verdict

GB = 10**9
PRICES = PriceList(
    currency="EUR",
    per_kwh=0.25,
    parts=(
        PricePart(name="boards", what="", count=5, each=80.0, source="s"),
        PricePart(name="switch", what="", count=1, each=100.0, source="s"),
    ),
    missing=(),
)


def amounts(efficiency: Efficiency) -> dict[str, Amount]:
    named = {
        field.name: getattr(efficiency, field.name) for field in dataclasses.fields(efficiency)
    }
    return {name: value for name, value in named.items() if isinstance(value, Amount)}


def test_formulas() -> None:
    assert joules_per_gigabyte(3000, 2e9) == 1500
    assert performance_per_watt(32e9, 320, 50) == pytest.approx(0.002)
    assert mflops_per_watt(1.3, 26) == pytest.approx(50)
    assert yearly_energy_cost(1000, 0.1) == pytest.approx(8766 * 0.1)
    assert energy_cost(3.6e6, 0.3) == pytest.approx(0.3)
    assert hpl_peak_gflops(2.4e9, 4, 8) == pytest.approx(76.8)
    assert hpl_efficiency(38.4, 76.8) == 0.5
    assert performance_per_price(10, 4) == 2.5


def test_a_year_at_the_power_of_a_run_costs_as_much_as_its_energy() -> None:
    seconds_per_year = 365.25 * 86400
    assert yearly_energy_cost(26, 0.25) == pytest.approx(energy_cost(26 * seconds_per_year, 0.25))


def test_what_is_not_above_zero_is_refused() -> None:
    for formula, values in (
        (joules_per_gigabyte, (1.0, 0)),
        (performance_per_watt, (1.0, 0.0, 1.0)),
        (performance_per_watt, (1.0, 1.0, 0.0)),
        (mflops_per_watt, (1.0, 0.0)),
        (hpl_efficiency, (1.0, 0.0)),
        (performance_per_price, (1.0, 0.0)),
    ):
        with pytest.raises(ValueError, match="not above 0"):
            formula(*values)


def test_the_efficiency_of_a_cell_with_everything() -> None:
    runs = [
        result(
            seconds,
            position=place,
            size_bytes=2 * GB,
            workload="hpl",
            engine=Engine.MPI,
            energy=metered(seconds * 30, mean_watts=30.0),
            figures={"gflops_per_second": 1.5},
        )
        for place, seconds in enumerate((90.0, 100.0, 110.0))
    ]
    (cell,) = summarise(runs)
    efficiency = efficiency_of(cell, PRICES, peak=Peak(gflops=6.0))
    values = {name: amount.value for name, amount in amounts(efficiency).items()}
    assert values == pytest.approx(
        {
            "energy_joules": 3000,
            "joules_per_gigabyte": 1500,
            "mean_watts": 30,
            "performance_per_watt": 2 / 30 * (1 / 90 + 1 / 100 + 1 / 110) / 3,
            "gflops_per_second": 1.5,
            "mflops_per_watt": 50,
            "hpl_efficiency": 0.25,
            "dgemm_efficiency": None,
            "energy_cost": 3000 / 3.6e6 * 0.25,
            "yearly_energy_cost": 0.03 * 24 * 365.25 * 0.25,
            "gigabytes_per_second_per_price": 2 / 500 * (1 / 90 + 1 / 100 + 1 / 110) / 3,
            "gflops_per_price": 1.5 / 500,
            "joules_per_1000_requests": None,
            "price_per_request_per_second": None,
        }
    )
    assert all(
        (amount.count, amount.reason) == (3, "") and amount.interval is not None
        for name, amount in amounts(efficiency).items()
        if values[name] is not None
    )
    interval = efficiency.energy_joules.interval
    assert interval is not None
    assert interval.half_width == pytest.approx(4.3027 * 300 / 3**0.5, rel=1e-4)
    assert (efficiency.method, efficiency.level, efficiency.remark) == (EnergyMethod.METERED, 1, "")
    assert efficiency.currency == "EUR"


def test_a_service_has_joules_per_1000_requests_and_a_price_per_request_a_second() -> None:
    figures = {"timed_requests": 50_000.0, "requests_per_second": 500.0}
    run = result(
        100,
        workload="webserve",
        engine=Engine.HTTP,
        energy=metered(3000, mean_watts=30),
        figures=figures,
    )
    (cell,) = summarise([run])
    efficiency = efficiency_of(cell, PRICES)
    assert efficiency.joules_per_1000_requests.value == 60
    assert efficiency.price_per_request_per_second.value == 1.0  # 500 for 500 a second
    (other,) = summarise([result(100, energy=metered(3000, mean_watts=30))])
    assert efficiency_of(other, PRICES).joules_per_1000_requests.reason


def test_a_transaction_of_a_database_is_a_request() -> None:
    figures = {"timed_transactions": 50_000.0, "transactions_per_second": 500.0}
    run = result(
        100,
        workload="oltp",
        engine=Engine.GALERA,
        energy=metered(3000, mean_watts=30),
        figures=figures,
    )
    (cell,) = summarise([run])
    efficiency = efficiency_of(cell, PRICES)
    assert efficiency.joules_per_1000_requests.value == 60
    assert efficiency.price_per_request_per_second.value == 1.0


def test_one_run_has_no_interval() -> None:
    (cell,) = summarise([result(100, energy=metered(3000, mean_watts=30))])
    efficiency = efficiency_of(cell)
    assert efficiency.energy_joules == Amount(value=3000, interval=None, count=1, reason="")


def test_everything_that_is_missing_says_why() -> None:
    (cell,) = summarise([result(100, size_bytes=0)])
    efficiency = efficiency_of(cell)
    for name, amount in amounts(efficiency).items():
        assert (amount.value, amount.interval, amount.count) == (None, None, 0), name
        assert amount.reason, name
    assert "no meter" in efficiency.energy_joules.reason
    assert "input" in efficiency.joules_per_gigabyte.reason
    assert "no meter" in efficiency.joules_per_gigabyte.reason
    assert "does not measure Gflops" in efficiency.mflops_per_watt.reason
    assert "peak" in efficiency.hpl_efficiency.reason
    assert "per kWh" in efficiency.yearly_energy_cost.reason
    assert "no prices" in efficiency.gigabytes_per_second_per_price.reason
    assert (efficiency.method, efficiency.level, efficiency.currency) == (None, None, "")


def test_a_meter_without_a_sum_says_its_reason() -> None:
    (cell,) = summarise([result(100, energy=metered(None, reason="no meter covers worker2"))])
    efficiency = efficiency_of(cell, PRICES)
    assert efficiency.energy_joules.reason == "no meter covers worker2"
    assert efficiency.energy_cost.reason == "no meter covers worker2"


def test_only_runs_with_a_sum_count() -> None:
    runs = [
        result(100, energy=metered(3000, mean_watts=30)),
        result(100, position=1, energy=metered(None, reason="plug: no readings")),
        result(100, position=2),
    ]
    (cell,) = summarise(runs)
    energy = efficiency_of(cell).energy_joules
    assert (energy.value, energy.count, energy.interval) == (3000, 1, None)
    assert energy.reason.startswith("1 of 3 runs; for the others: ")
    assert "plug: no readings" in energy.reason


def test_modelled_energy_says_so_and_a_mixture_how_much_of_it() -> None:
    modelled = metered(1000, mean_watts=10, method=EnergyMethod.MODELLED, level=0)
    (cell,) = summarise([result(100, energy=modelled)])
    efficiency = efficiency_of(cell)
    assert (efficiency.method, efficiency.level, efficiency.remark) == (
        EnergyMethod.MODELLED,
        0,
        "",
    )
    both = [result(100, energy=modelled), result(100, position=1, energy=metered(3000))]
    (cell,) = summarise(both)
    efficiency = efficiency_of(cell)
    assert (efficiency.method, efficiency.level) == (EnergyMethod.MODELLED, 0)
    assert efficiency.remark == "1 of 2 energies are modelled"


def test_power_is_over_the_span_of_the_energy_not_over_the_submissions_alone() -> None:
    """Two submissions of 40 s with 20 s between them: 100 s of power, 80 s of duration."""
    assert watts_of(metered(3000, mean_watts=30), 80) == pytest.approx(30)
    assert watts_of(metered(3000), 100) == pytest.approx(30), "no meter tells the span"
    assert watts_of(metered(None), 100) is None
    assert watts_of(metered(3000), 0) is None


def test_two_meters_add_up() -> None:
    energy = metered(3000, mean_watts=30)
    part = replace(energy.powers[0], energy_joules=1500.0, mean_watts=15.0)
    assert watts_of(replace(energy, powers=(part, part)), 90) == pytest.approx(30)


def test_a_price_that_lacks_a_part_is_no_price() -> None:
    lacking = replace(PRICES, missing=("no price of media",))
    assert lacking.total is None
    assert PRICES.total == 500
    (cell,) = summarise([result(100)])
    amount = efficiency_of(cell, lacking).gigabytes_per_second_per_price
    assert (amount.value, amount.reason) == (None, "no price of media")
    free = replace(PRICES, parts=())
    amount = efficiency_of(cell, free).gigabytes_per_second_per_price
    assert (amount.value, amount.reason) == (None, "everything was free of charge")


def test_electricity_that_costs_nothing_is_a_price() -> None:
    (cell,) = summarise([result(100, energy=metered(3000, mean_watts=30))])
    cost = efficiency_of(cell, replace(PRICES, per_kwh=0.0)).yearly_energy_cost
    assert (cost.value, cost.reason) == (0, "")


# The core phase, DGEMM, and what meters may be wrong by


def test_flops_per_watt_are_of_the_power_of_the_core_phase() -> None:
    """A job of 100 s at 10 W with a solution of 10 s at 25 W: 1.5 Gflops take 25 W."""
    core = metered(250, mean_watts=25.0, level=2)
    energy = replace(metered(1000, mean_watts=10.0, level=1), core=core)
    figures = {"gflops_per_second": 1.5}
    (cell,) = summarise([result(100, energy=energy, figures=figures)])
    found = efficiency_of(cell)
    assert found.mflops_per_watt.value == pytest.approx(60)
    assert found.mean_watts.value == pytest.approx(10)
    assert (found.level, found.core_level) == (1, 2)


def test_intervals_contain_what_the_meters_may_be_wrong_by() -> None:
    exact = [metered(joules, mean_watts=10) for joules in (990, 1000, 1010)]
    inexact = [replace(row, uncertainty_joules=20.0) for row in exact]

    def interval(energies: list[Energy]) -> Any:
        rows = [result(100, energy=row, position=n) for n, row in enumerate(energies)]
        (cell,) = summarise(rows)
        return efficiency_of(cell).energy_joules.interval

    plain, wide = interval(exact), interval(inexact)
    share = 20 / 990
    assert wide.low == pytest.approx(plain.low / (1 + share))
    assert wide.high == pytest.approx(plain.high / (1 - share))


def test_meters_that_may_be_wrong_by_all_they_say_give_no_interval() -> None:
    """Readings that are seconds apart say little of a run of seconds."""
    energies = [
        replace(metered(joules, mean_watts=10), uncertainty_joules=1200.0)
        for joules in (990, 1000, 1010)
    ]
    (cell,) = summarise(
        [result(100, energy=row, position=place) for place, row in enumerate(energies)]
    )
    found = efficiency_of(cell).energy_joules
    assert found.value == pytest.approx(1000)
    assert found.interval is None
    assert found.why_no_interval == "no interval: the meters are too inexact"


def test_costs_of_energy_contain_what_the_meters_may_be_wrong_by() -> None:
    """Power and its price in a year are as uncertain as the energy that they come from."""
    energies = [
        replace(metered(joules, mean_watts=joules / 100), uncertainty_joules=50.0)
        for joules in (990, 1000, 1010)
    ]
    (cell,) = summarise(
        [result(100, energy=row, position=place) for place, row in enumerate(energies)]
    )
    found = efficiency_of(cell, PRICES)
    energy, cost = found.energy_joules.interval, found.energy_cost.interval
    watts, yearly = found.mean_watts.interval, found.yearly_energy_cost.interval
    assert energy is not None
    assert cost is not None
    assert watts is not None
    assert yearly is not None
    for edge in ("low", "high"):
        joules, power = getattr(energy, edge), getattr(watts, edge)
        assert getattr(cost, edge) == pytest.approx(energy_cost(joules, 0.25))
        assert getattr(yearly, edge) == pytest.approx(yearly_energy_cost(power, 0.25))


def test_starts_of_the_cluster_are_the_replicates_of_energy_too() -> None:
    """Six runs that scatter little, in three starts that scatter much."""
    by_start = {1: (1000.0, 1002.0), 2: (1100.0, 1102.0), 3: (900.0, 902.0)}
    rows = [
        result(
            100,
            energy=metered(joules, mean_watts=joules / 100),
            start=start,
            position=2 * start + place,
        )
        for start, values in by_start.items()
        for place, joules in enumerate(values)
    ]
    (cell,) = summarise(rows)
    found = efficiency_of(cell, PRICES)
    assert found.energy_joules.count == 6
    for amount, unit in (
        (found.energy_joules, 1.0),
        (found.mean_watts, 0.01),
        (found.energy_cost, 0.25 / 3.6e6),
    ):
        assert amount.interval is not None
        half = 4.302653 * 100 / 3**0.5
        assert amount.interval.half_width == pytest.approx(half * unit, rel=1e-6)


def probed(node: str, *rates: float, blas: str = "b") -> ProbeRun:
    return make_probe_run(
        "dgemm",
        node=node,
        figures=tuple(
            ProbeFigure(
                name=DGEMM_FIGURE,
                value=rate,
                conditions={"processes": str(processes), "blas": blas},
            )
            for processes, rate in enumerate(rates, start=1)
        ),
    )


def test_boards_add_up_to_a_dgemm_peak_each_with_all_its_cores() -> None:
    setup = make_board_fingerprint(blas="b")
    probes = [probed("w1", 9, 17), probed("w1", 10, 20), probed("w2", 10, 19)]
    found = dgemm_peak(["w1", "w2"], setup, probes)
    assert (found.gflops, found.source) == (39, "probe dgemm on w1, w2")
    assert dgemm_peak(["w1", "w2", "w3"], setup, probes).reason == (
        "no undisturbed run of the probe dgemm on the boards of w3 with b"
    )
    assert "on the boards of w1, w2" in dgemm_peak(["w1", "w2"], setup, []).reason


def test_a_peak_that_was_disturbed_or_of_a_board_that_was_replaced_does_not_count() -> None:
    line = "w1: Raspberry Pi 5, 4 x Cortex-A76, sd EVO, Linux 6.12.{}"
    setup = make_board_fingerprint(blas="b", hardware=(line.format(25),))
    good = replace(probed("w1", 20), hardware=line.format(34), verdict=Verdict.VALID)
    hot = replace(good, figures=probed("w1", 9).figures, verdict=Verdict.INVALID)
    older = replace(probed("w1", 4), hardware="w1: Raspberry Pi 4, 4 x Cortex-A72")
    assert dgemm_peak(["w1"], setup, [good, hot, older]).gflops == 20
    assert "no undisturbed run" in dgemm_peak(["w1"], setup, [hot, older]).reason


def test_a_peak_of_another_blas_does_not_count() -> None:
    setup = make_board_fingerprint(blas="b")
    assert dgemm_peak(["w1"], setup, [probed("w1", 99, blas="other")]).gflops is None


def test_plain_emulated_nodes_share_one_machine_and_so_one_peak() -> None:
    setup = make_fingerprint(blas="b", cpu_cores=2, node_cores=2)
    probes = [probed("w1", 80, 160), probed("w2", 79, 158)]
    assert dgemm_peak(["w1", "w2", "w3", "w4"], setup, probes).gflops == 160
    one = make_fingerprint(blas="b", cpu_cores=2, node_cores=1)
    assert dgemm_peak(["w1"], one, [probed("w1", 80)]).gflops == 80
    assert dgemm_peak(["w1", "w2"], one, [probed("w1", 80)]).gflops == 160


def test_a_peak_is_of_as_many_processes_as_hpl_had() -> None:
    setup = make_board_fingerprint(blas="b")
    probes = [probed("w1", 10, 19, 27, 34), probed("w2", 10, 19, 27, 34)]
    two = {"hpl.ranks_per_node": "2"}
    found = dgemm_peak(["w1", "w2"], setup, probes, parameters=two)
    assert (found.gflops, found.source) == (38, "probe dgemm on w1, w2, 2 processes on each")
    more = {"hpl.ranks_per_node": "8"}
    assert dgemm_peak(["w1", "w2"], setup, probes, parameters=more).gflops == 68
    shared = make_fingerprint(blas="b", cpu_cores=8, node_cores=4)
    assert dgemm_peak(["w1", "w2"], shared, probes, parameters=two).gflops == 34
    only_all = replace(probes[0], figures=probes[0].figures[-1:])
    assert dgemm_peak(["w1"], setup, [only_all], parameters=two).gflops == 17


def test_hpl_of_another_blas_has_no_dgemm_peak_and_says_why() -> None:
    setup = make_board_fingerprint(blas="reference")
    for blas in ("b", "reference"):
        found = dgemm_peak(
            ["w1"], setup, [probed("w1", 9, blas=blas)], parameters={"hpl.binary": "hpcc"}
        )
        assert found.gflops is None
        assert found.reason.startswith("HPL was hpcc, whose BLAS is not the one")


def test_a_core_phase_without_energy_says_why() -> None:
    core = metered(None, reason="plug: no readings in the core phase")
    energy = replace(metered(1000, mean_watts=10.0), core=core)
    (cell,) = summarise([result(100, energy=energy, figures={"gflops_per_second": 1.5})])
    found = efficiency_of(cell)
    assert found.energy_joules.value == 1000
    assert found.mflops_per_watt.value is None
    assert found.mflops_per_watt.reason == "plug: no readings in the core phase"


def test_the_rate_of_hpl_is_compared_with_that_of_dgemm() -> None:
    (cell,) = summarise([result(100, figures={"gflops_per_second": 136.0})])
    peak = Peak(gflops=160.0, source="probe dgemm on w1")
    assert efficiency_of(cell, dgemm=peak).dgemm_efficiency.value == 0.85
    assert efficiency_of(cell).dgemm_efficiency.reason == "DGEMM was not measured"
