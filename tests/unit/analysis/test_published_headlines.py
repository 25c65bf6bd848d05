"""The headline numbers of the four papers, by the functions that analyse our own runs.

Numbers come from the papers' tables in the catalog; here stand only those that the papers say in
words, as they print them.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.builders import make_fingerprint
from tests.unit.analysis.runs import metered, result

from boardcluster.analysis.cells import summarise
from boardcluster.analysis.efficiency import (
    Peak,
    efficiency_of,
    hpl_efficiency,
    hpl_peak_gflops,
    mflops_per_watt,
    performance_per_price,
    performance_per_watt,
    watts_of,
    yearly_energy_cost,
)
from boardcluster.analysis.inference import compare_values
from boardcluster.analysis.ratios import quotient, sums_ratio
from boardcluster.analysis.scaling import (
    Fit,
    amdahl_fit,
    efficiency,
    factor_effects,
    gustafson_fit,
    intermediate_share,
    node_scalings,
    predict,
)
from boardcluster.analysis.statistics import mean
from boardcluster.catalog.published import find_cell, find_table, read_cells, read_index
from boardcluster.catalog.ratios import Answer, check_ratios
from boardcluster.records import Engine

INDEX = read_index()
CHECKS = {check.ratio.id: check for check in check_ratios()}
HPL_NODES = (1, 2, 4, 8)
CLUSTER = "8 \u00d7 RPi 5B"


def number(table: str, quantity: str, **where: str) -> float:
    return float(find_cell(find_table(table, index=INDEX), where, quantity).value)


def said(what: str, quantity: str, paper: str = "baun-2016") -> float:
    return number(f"{paper}-prose", quantity, what=what)


def follows(value: float, printed: str) -> bool:
    """Whether a number is what is printed: the papers round, and now and then cut off."""
    digits = len(printed.partition(".")[2])
    cut = math.floor(value * 10**digits + 1e-9) / 10**digits
    return float(printed) in {round(value, digits), cut}


def gflops(memory_percent: int, nodes: int) -> float:
    return number(
        "baun-2016-table-07", "performance", memory_percent=str(memory_percent), nodes=str(nodes)
    )


def hadoop_and_spark(computer: str, platform: str) -> list[float]:
    return [
        number("lee-oh-park-2021-table-22", "execution_time", **where)
        for benchmark in ("Wordcount", "TeraGen", "TeraSort")
        for where in ({"platform": platform, "computing_nodes": computer, "benchmark": benchmark},)
    ]


# What the tables of ratios.toml say, by paper


@pytest.mark.parametrize(
    ("name", "says", "answer"),
    [
        ("baun-2016-speedup-80-8", "6.44", Answer.CUT),
        ("baun-2016-speedup-80-2", "1.77", Answer.NOT),
        ("baun-2016-speedup-70-4", "2.78", Answer.NOT),
        ("baun-2016-efficiency-add", "21", Answer.ROUNDED),
        ("baun-2016-efficiency-multiply", "42", Answer.CUT),
        ("baun-2016-mflops-per-watt", "52.57", Answer.CUT),
        ("baun-2016-top500", "120000", Answer.ROUNDED),
        ("baun-2016-green500", "133", Answer.ROUNDED),
        ("lee-oh-park-2021-cpu", "2.49", Answer.ROUNDED),
        ("lee-oh-park-2021-desktop-hadoop-five", "1.4", Answer.ROUNDED),
        ("lee-oh-park-2021-desktop-spark-five", "1.5", Answer.ROUNDED),
        ("lee-oh-park-2021-desktop-all", "1.45", Answer.NOT),
        ("lee-oh-park-2021-dfsio-write-spark-ufs-microsd1", "7.07", Answer.NOT),
        ("lee-oh-park-2021-wordcount-hadoop-ufs", "1.3", Answer.ROUNDED),
        ("lee-oh-park-2021-cooling-hadoop", "1.97", Answer.UNKNOWN),
        ("lee-park-2026-cpu", "1.74", Answer.ROUNDED),
        ("lee-park-2026-wordcount-doubling-hadoop", "1.57", Answer.UNKNOWN),
        ("lee-park-2026-wordcount-doubling-spark", "1.78", Answer.UNKNOWN),
        ("lee-park-2026-wordcount-ssd-one", "2.25", Answer.UNKNOWN),
        ("lee-park-2026-teragen-spark-ssd", "2.66", Answer.UNKNOWN),
        ("lee-park-2026-parallel", "1.9", Answer.ROUNDED),
        ("lee-park-2026-power-desktop-hadoop", "1.52", Answer.NOT),
        ("lee-park-2026-power-desktop-spark", "1.71", Answer.NOT),
        ("lee-park-2026-per-watt", "2.52", Answer.UNKNOWN),
    ],
)
def test_headline_follows_or_is_known_not_to(name: str, says: str, answer: Answer) -> None:
    check = CHECKS[name]
    assert check.ratio.says == says
    assert check.answer is answer
    if answer is Answer.UNKNOWN:
        assert check.ratio.needs, "what would be needed is said"


def test_headlines_that_cannot_be_recomputed_lack_a_table_that_we_do_not_have() -> None:
    lacking = [check for check in CHECKS.values() if check.answer is Answer.UNKNOWN]
    assert lacking
    for check in lacking:
        assert check.given is None
        assert not any(
            table.table == check.ratio.needs and table.paper == check.ratio.paper and table.file
            for table in INDEX.tables.values()
        ), f"{check.ratio.id}: {check.ratio.needs} is there"


# Baun 2016


def test_baun_energy_of_a_year_costs_57_euros() -> None:
    watts = number(
        "baun-2016-table-02", "power", power_supply="2x 5-port USB power supplies", mode="stress"
    )
    per_kwh = said("electricity", "price")
    cost = yearly_energy_cost(watts, per_kwh)
    assert round(cost, 2) == 56.98
    assert cost == pytest.approx(said("electricity for a year in stress mode", "cost"), abs=0.01)


def test_baun_mflops_per_watt() -> None:
    rmax, watts = said("highest of HPL", "performance"), said("eight nodes under HPL", "power")
    given = mflops_per_watt(rmax, watts)
    assert follows(given, "52.57")
    assert given == pytest.approx(52.577, abs=0.001)  # so it was cut off
    behind = quotient(said("first of the Green500 list of November 2015", "efficiency"), given)
    assert math.floor(behind) == 133


def test_baun_peak_and_efficiency_of_hpl() -> None:
    nodes, clock_hertz = 8, 800e6
    peaks = {
        "additions": hpl_peak_gflops(clock_hertz, nodes, 1),
        "multiplications": hpl_peak_gflops(clock_hertz, nodes, 0.5),
    }
    for what, peak in peaks.items():
        assert peak == pytest.approx(said(f"peak of eight nodes, {what}", "performance"))
    shares = [hpl_efficiency(gflops(80, 8), peak) for peak in peaks.values()]
    assert [math.floor(share * 100) for share in shares] == [21, 42]


@pytest.mark.parametrize("memory_percent", [70, 75, 80, 85, 90, 95])
def test_baun_speed_ups_of_table_7(memory_percent: int) -> None:
    wrong = {(70, 4): "2.87", (80, 2): "1.64"}  # as ratios.toml lists them
    for nodes in HPL_NODES:
        where = {"memory_percent": str(memory_percent), "nodes": str(nodes)}
        table = find_table("baun-2016-table-07", index=INDEX)
        printed = find_cell(table, where, "speedup").value
        one_seconds, seconds = 1 / gflops(memory_percent, 1), 1 / gflops(memory_percent, nodes)
        speed_up = compare_values([one_seconds], [seconds]).value
        assert follows(speed_up, wrong.get((memory_percent, nodes), printed))
        assert follows(speed_up, printed) == ((memory_percent, nodes) not in wrong)


def hpl_fit(memory_percent: int) -> tuple[Fit, Fit]:
    """Amdahl over seconds for the same operations, Gustafson for as many more as nodes."""
    seconds = [(nodes, 1 / gflops(memory_percent, nodes)) for nodes in HPL_NODES]
    amdahl, gustafson = amdahl_fit(seconds), gustafson_fit([(n, n * s) for n, s in seconds])
    assert amdahl is not None
    assert gustafson is not None
    return amdahl, gustafson


@pytest.mark.parametrize("memory_percent", [70, 75, 80, 85, 90])
def test_baun_hpl_scales_nearly_as_gustafson_has_it(memory_percent: int) -> None:
    amdahl, gustafson = hpl_fit(memory_percent)
    assert 0 <= amdahl.serial_share < 0.05
    assert 0.15 < gustafson.serial_share < 0.35
    for fit in (amdahl, gustafson):
        assert len(fit.residuals) == len(HPL_NODES)
        assert max(map(abs, fit.residuals)) < 0.15
        assert not fit.exact
    given = 8 * predict(gustafson, 1) / predict(gustafson, 8)
    assert given == pytest.approx(8 - gustafson.serial_share * 7)


def test_baun_swap_memory_ends_scaling_at_95_percent() -> None:
    assert efficiency(quotient(gflops(95, 8), gflops(95, 1)), workers=8) == pytest.approx(
        0.434, abs=0.001
    )
    assert efficiency(quotient(gflops(90, 8), gflops(90, 1)), workers=8) > 0.8
    amdahl, _ = hpl_fit(95)
    others = [hpl_fit(percent)[0].serial_share for percent in (70, 75, 80, 85, 90)]
    assert amdahl.serial_share > 3 * max(others)


def test_baun_runs_of_the_store_give_the_same_speed_ups() -> None:
    """The cells of a campaign go the whole way: results, cells, scaling; of one matrix."""
    runs = [
        result(1 / gflops(80, nodes), workers=nodes, workload="hpl", engine=Engine.MPI)
        for nodes in HPL_NODES
    ]
    (scaling,) = node_scalings(summarise(runs))
    assert scaling.base_workers == 1
    assert [round(point.speed_up.value, 2) for point in scaling.points] == [1.0, 1.64, 2.98, 6.45]
    assert scaling.amdahl == hpl_fit(80)[0]
    assert all(point.speed_up.interval is None for point in scaling.points), "one run each"


def test_baun_cluster_under_hpl_by_its_stored_run() -> None:
    watts = said("eight nodes under HPL", "power")
    run = result(
        3055.37,
        workload="hpl",
        engine=Engine.MPI,
        workers=8,
        size_bytes=0,
        figures={"gflops_per_second": gflops(80, 8)},
        energy=metered(watts * 3055.37, mean_watts=watts),
    )
    (cell,) = summarise([run])
    worth = efficiency_of(cell, peak=Peak(gflops=hpl_peak_gflops(800e6, 8, 1)))
    assert worth.mflops_per_watt.value == pytest.approx(52.577, abs=0.001)
    assert worth.hpl_efficiency.value == pytest.approx(0.2136, abs=0.0001)
    assert run.measurement is not None
    assert run.measurement.energy is not None
    assert watts_of(run.measurement.energy, 3055.37) == pytest.approx(watts)


# Lee, Oh and Park 2021


@pytest.mark.parametrize(
    ("platform", "computer", "says"),
    [
        ("Hadoop", "RPi4B (1 node)", "4.3"),
        ("Hadoop", "RPi4B (5 nodes)", "1.4"),
        ("Spark", "RPi4B (1 node)", "3.9"),
        ("Spark", "RPi4B (5 nodes)", "1.5"),
    ],
)
def test_lee_oh_park_desktop_against_the_cluster(platform: str, computer: str, says: str) -> None:
    over = hadoop_and_spark(computer, platform)
    under = hadoop_and_spark("Desktop PC", platform)
    assert follows(sums_ratio(over, under), says)
    assert sums_ratio(over, under) == pytest.approx(mean(over) / mean(under))


def test_lee_oh_park_desktop_against_all_is_1_44_and_not_1_45() -> None:
    over, under = (
        [*hadoop_and_spark(computer, "Hadoop"), *hadoop_and_spark(computer, "Spark")]
        for computer in ("RPi4B (5 nodes)", "Desktop PC")
    )
    assert round(sums_ratio(over, under), 2) == 1.44


def test_lee_oh_park_media_as_a_factor_of_stored_runs() -> None:
    runs = [
        result(
            number(
                "lee-oh-park-2021-table-12",
                "execution_time",
                data_size="2GB",
                nodes="1",
                storage=storage,
            ),
            position=place,
            workers=1,
            setup=make_fingerprint(twin=f"2 x rpi-4b with {storage}"),
        )
        for place, storage in enumerate(("microSD1", "microSD2", "UFS"))
    ]
    effects = factor_effects(summarise(runs))
    against_first = {
        row.faster_value.rpartition(" ")[2]: round(row.ratio.value, 1)
        for row in effects
        if row.slower_value.endswith("microSD1")
    }
    assert {row.factor for row in effects} == {"boards and media"}
    assert against_first == {"UFS": 1.3, "microSD2": 1.2}


# Gamess and Hernandez 2022: no ratios are stated; ranks are


def test_gamess_hernandez_the_4b_is_the_fastest_and_three_boards_are_alike() -> None:
    builds: dict[str, list[float]] = {}
    for cell in read_cells(INDEX.tables["gamess-hernandez-2022-table-02"]):
        builds.setdefault(cell.keys["board"], []).append(float(cell.value))
    times = {
        board: sums_ratio(seconds, builds["RPi 4B"])
        for board, seconds in builds.items()
        if board != "RPi 4B"
    }
    assert min(times.values()) > 1.9
    alike = [times[board] for board in ("RPi Zero 2 W (Over)", "RPi 3B", "RPi 3B+")]
    assert quotient(max(alike), min(alike)) < 1.05


def test_gamess_hernandez_the_zero_2_w_gives_most_for_its_price() -> None:
    rates = {
        board: performance_per_price(
            number("gamess-hernandez-2022-table-01", "signing", board=board),
            said(priced, "price", "gamess-hernandez-2022"),
        )
        for board, priced in (
            ("RPi Zero W", "RPi Zero W"),
            ("RPi Zero 2 W", "RPi Zero 2 W"),
            ("RPi 3B", "RPi 3B"),
            ("RPi 3B+", "RPi 3B+"),
        )
    }
    assert max(rates, key=rates.__getitem__) == "RPi Zero 2 W"
    assert rates["RPi Zero 2 W"] == pytest.approx(39.4 / 15)


# Lee and Park 2026


def test_lee_park_four_jobs_at_once_are_1_9_times_as_fast() -> None:
    jobs = "four Spark jobs {}, 4 GB each"
    in_turn = said(jobs.format("in turn"), "execution_time", "lee-park-2026")
    at_once = said(jobs.format("at once"), "execution_time", "lee-park-2026")
    runs = [
        result(seconds, position=place, workload="grep+grep+grep+grep", concurrency=jobs_at_once)
        for place, (seconds, jobs_at_once) in enumerate(((in_turn, 1), (at_once, 4)))
    ]
    (effect,) = factor_effects(summarise(runs))
    assert (effect.factor, effect.slower_value, effect.faster_value) == ("concurrency", "1", "4")
    assert round(effect.ratio.value, 1) == 1.9
    assert effect.ratio.value == compare_values([in_turn], [at_once]).value


@pytest.mark.parametrize(
    ("platform", "says", "gives"), [("Hadoop", 1.52, 1.59), ("Spark", 1.71, 1.58)]
)
def test_lee_park_power_of_the_desktop_does_not_follow(
    platform: str, says: float, gives: float
) -> None:
    def watts(computer: str) -> list[float]:
        return [
            number(
                "lee-park-2026-table-21",
                "power",
                platform=platform,
                computer=computer,
                benchmark=benchmark,
            )
            for benchmark in ("WordCount", "TeraGen", "TeraSort", "Grep", "Pi")
        ]

    desktop, cluster = watts("Desktop"), watts(CLUSTER)
    each = [quotient(one, other) for one, other in zip(desktop, cluster, strict=True)]
    assert round(mean(each), 2) == gives != says
    # Nor is it the ratio of the sums, which is what our own cells would give.
    assert round(sums_ratio(desktop, cluster), 2) != says


def test_lee_park_per_watt_of_hadoop_stays_below_2_52() -> None:
    """Table S35 is missing; what the text says of Hadoop's times bounds the ratio there.

    Performance per watt of cluster over desktop is the ratio of powers times how many times as fast
    the cluster is, so 2.52 can only be one of Spark's.
    """
    faster = {
        "WordCount": 1 / float(CHECKS["lee-park-2026-desktop-wordcount"].ratio.says),
        "TeraGen": 1 / float(CHECKS["lee-park-2026-desktop-teragen"].ratio.says),
        "TeraSort": 1 / float(CHECKS["lee-park-2026-desktop-terasort"].ratio.says),
        "Grep": float(CHECKS["lee-park-2026-desktop-grep"].ratio.says),
        "Pi": float(CHECKS["lee-park-2026-desktop-pi"].ratio.says),
    }
    ratios = {}
    for benchmark, times in faster.items():
        cluster, desktop = (
            performance_per_watt(
                32e9,
                seconds,
                number(
                    "lee-park-2026-table-21",
                    "power",
                    platform="Hadoop",
                    computer=computer,
                    benchmark=benchmark,
                ),
            )
            for computer, seconds in ((CLUSTER, 100 / times), ("Desktop", 100.0))
        )
        ratios[benchmark] = quotient(cluster, desktop)
    assert max(ratios, key=ratios.__getitem__) == "Grep"
    assert round(ratios["Grep"], 2) == 2.15


def test_lee_park_pcie_3_reads_1_95_times_as_fast() -> None:
    pcie = {
        version: number(
            "lee-park-2026-table-22",
            "sequential_read",
            storage="SK Hynix GOLD P31",
            pcie=version,
            record_kb="16384",
        )
        for version in ("2.0", "3.0")
    }
    assert round(quotient(pcie["3.0"], pcie["2.0"]), 2) == 1.95


def test_lee_park_intermediate_data_of_hadoop_is_3_94_times_the_input() -> None:
    written = number(
        "lee-park-2026-table-11", "intermediate_data", platform="Hadoop", data_size="32GB"
    )
    run = result(1.0, size_bytes=32 * 10**9, intermediate_bytes=round(written * 1e9))
    (cell,) = summarise([run])
    share = intermediate_share(cell)
    assert share is not None
    assert follows(share, CHECKS["lee-park-2026-intermediate-wordcount-hadoop"].ratio.says)


# The page that explains it


PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "scaling-and-efficiency.md"


@pytest.mark.parametrize("memory_percent", [80, 95])
def test_the_table_of_the_page_is_what_the_functions_give(memory_percent: int) -> None:
    amdahl, gustafson = hpl_fit(memory_percent)
    rows = [
        [
            str(nodes),
            f"{gflops(memory_percent, nodes):.3f}",
            f"{speed_up:.2f}",
            f"{efficiency(speed_up, workers=nodes):.2f}",
            f"{one * 100:+.1f} %",
            f"{other * 100:+.1f} %",
        ]
        for nodes, one, other in zip(HPL_NODES, amdahl.residuals, gustafson.residuals, strict=True)
        for speed_up in [quotient(gflops(memory_percent, nodes), gflops(memory_percent, 1))]
    ]
    text = PAGE.read_text().partition(f"<!-- hpl-scaling: memory {memory_percent} -->\n")[2]
    lines = text.partition("\n\n")[0].splitlines()[2:]
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines] == rows
    share = f"{amdahl.serial_share * 100:.1f} %"
    assert share in PAGE.read_text()
    if memory_percent == 80:
        assert f"{gustafson.serial_share * 100:.1f} %" in PAGE.read_text()


def test_the_page_says_how_many_speed_ups_do_not_follow() -> None:
    speed_ups = [check for name, check in CHECKS.items() if "baun-2016-speedup" in name]
    assert len(speed_ups) == 18
    assert sum(check.answer is Answer.NOT for check in speed_ups) == 2
    assert "all but two of eighteen" in PAGE.read_text()
