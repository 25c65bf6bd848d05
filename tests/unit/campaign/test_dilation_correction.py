"""What was measured on slowed-down nodes, converted to what it says of the boards."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.builders import make_energy, make_measurement, make_power

import boardcluster.probes
import boardcluster.workloads
from boardcluster.analysis.twins import LEFT_OUT, undilated_value
from boardcluster.campaign.dilation_correction import correct_for_dilation
from boardcluster.probes.registry import all_probes
from boardcluster.records import (
    EnergyMethod,
    Verdict,
)
from boardcluster.workloads.dfsio.measured import Measured
from boardcluster.workloads.netpipe import workload as netpipe

POWER = make_power(
    800.0,
    meter="model of pi0",
    kind="model",
    nodes=("pi0",),
    switch=False,
    accuracy="modelled",
    mean_watts=8.0,
    most_watts=9.0,
    readings=100,
    method=EnergyMethod.MODELLED,
)
MEASURED = make_measurement(
    100.0,
    input_bytes=1_000,
    output_bytes=500,
    counters={"TaskCounter/GC_TIME_MILLIS": 4000, "JobCounter/MILLIS_MAPS": 90_000},
    application_id="application_1_0001",
    figures={
        "write_throughput_mebibytes_per_second": 10.0,
        "write_execution_seconds": 40.0,
        "residual": 0.01,
        "grep/latency_microseconds": 80.0,
        "board_watts": 5.0,
    },
    phases_seconds={"sort": 100.0, "sort/map": 60.0},
    intermediate_bytes=2_000,
    node_written_bytes={"pi0": 3_000},
    node_read_bytes={"pi0": 4_000},
    remarks=("page caches kept",),
    verdict=Verdict.TAINTED,
    verdict_reasons=("host: other programs used 7 % of the machine (from 14 s on)",),
    energy=make_energy(
        800.0,
        method=EnergyMethod.MODELLED,
        level=0,
        level_reason="the power of pi0 is modelled, not measured",
        powers=(POWER,),
    ),
)


def test_without_dilation_nothing_changes() -> None:
    assert correct_for_dilation(MEASURED, 1.0) is MEASURED


def test_times_are_divided_and_rates_multiplied() -> None:
    found = correct_for_dilation(MEASURED, 4.0)
    assert found.dilation == 4.0
    assert found.duration_seconds == 25.0
    assert found.phases_seconds == {"sort": 25.0, "sort/map": 15.0}
    assert found.figures == {
        "write_throughput_mebibytes_per_second": 40.0,
        "write_execution_seconds": 10.0,
        "residual": 0.01,
        "grep/latency_microseconds": 20.0,
    }
    assert list(found.figures) == [name for name in MEASURED.figures if name != "board_watts"]
    assert found.remarks == (
        "page caches kept",
        "time dilation 4.0: 100.0 s on this machine",
        "left out, because they do not apply to the boards: board_watts",
    )


def test_what_has_no_time_in_it_or_is_the_engines_own_stays() -> None:
    found = correct_for_dilation(MEASURED, 4.0)
    for name in (
        *("input_bytes", "output_bytes", "counters", "verification", "exit_status"),
        *("application_id", "intermediate_bytes", "node_written_bytes", "node_read_bytes"),
        *("verdict", "verdict_reasons"),
    ):
        assert getattr(found, name) == getattr(MEASURED, name), name


def test_modelled_energy_is_divided_at_the_same_power() -> None:
    energy = correct_for_dilation(MEASURED, 4.0).energy
    assert energy is not None
    assert energy.energy_joules == 200.0
    assert (energy.powers[0].energy_joules, energy.powers[0].mean_watts) == (200.0, 8.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a_seconds", 2.5),
        ("milliseconds", 2.5),
        ("netpipe_one_way_nanoseconds", 2.5),
        ("gflops_per_second", 40.0),
        ("gflops", 40.0),
        ("fio_random_read_operations_per_second", 40.0),
        ("iperf3_bits_per_second", 40.0),
        ("seven_zip_total_mips", 40.0),
        ("heat_celsius", 10.0),
        ("block_bytes", 10.0),
        ("job_of_seconds/files_count", 10.0),
        ("n", 10.0),
        ("heat_clock_hertz", None),
        ("power_idle_mean_watts", None),
        ("parsecs", None),
        ("milliseconds_n", 10.0),
        ("plan", None),  # no unit, though it ends with the n of HPL
        ("", None),
    ],
)
def test_a_figure_is_converted_by_the_unit_at_the_end_of_its_name(
    name: str, value: float | None
) -> None:
    assert undilated_value(name, 10.0, 4.0) == value


def sources(package: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(package.rglob("*.py")):
        yield path, ast.parse(path.read_text())


def texts(tree: ast.AST) -> Iterator[str]:
    """Every text of a program; what a formatted one puts in is ``x``."""
    for item in ast.walk(tree):
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            yield item.value
        elif isinstance(item, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "x" for part in item.values
            )


def figures_of_proofs() -> Iterator[tuple[str, ast.expr]]:
    """Each workload that gives figures, and the expression that makes them."""
    for path, tree in sources(Path(boardcluster.workloads.__path__[0])):
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Proof":
                for keyword in call.keywords:
                    if keyword.arg == "figures":
                        yield path.parent.name, keyword.value


def test_every_figure_of_every_workload_can_be_converted() -> None:
    by_workload = dict(figures_of_proofs())
    # Of a new one here, take its names into this test.
    # Those of webserve and filestore: tests/unit/workloads/*/test_proof.py.
    assert set(by_workload) == {"dfsio", "filestore", "hpl", "netpipe", "oltp", "webserve"}
    measured = Measured(
        files=1,
        total_bytes=1,
        throughput_mebibytes_per_second=1.0,
        average_io_rate_mebibytes_per_second=1.0,
        io_rate_deviation_mebibytes_per_second=1.0,
        execution_seconds=1.0,
    )
    of_hpl = by_workload["hpl"]
    assert isinstance(of_hpl, ast.Dict)
    names = [
        *measured.figures("write"),
        *(key.value for key in of_hpl.keys if isinstance(key, ast.Constant)),
        *(
            text.format("mean_")
            for text in texts(ast.parse(Path(netpipe.__file__).read_text()))
            if re.fullmatch(r"[a-z_]+_\{\}[a-z_]+", text)
        ),
    ]
    assert {"n", "gflops_per_second", "latency_mean_microseconds"} <= set(names)
    assert len(names) == 4 + 7 + 3
    for name in names:
        assert undilated_value(str(name), 1.0, 2.0) is not None, name


def test_every_figure_of_every_probe_has_a_unit_that_is_known() -> None:
    starts = "|".join(probe.name.replace("-", "_") for probe in all_probes())
    units = r"(seconds|per_second|bytes|mips|hertz|celsius|watts|joules|samples)"
    found = {
        text
        for _, tree in sources(Path(boardcluster.probes.__path__[0]))
        for text in texts(tree)
        if re.fullmatch(rf"({starts})_[a-z0-9_]*{units}", text)
    }
    assert len(found) >= 20
    for name in found:
        if undilated_value(name, 1.0, 2.0) is None:
            assert name.endswith(LEFT_OUT), name
