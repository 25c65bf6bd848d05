"""Own runs: learned from, kept apart, and believed before the papers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import (
    make_board_fingerprint,
    make_cluster,
    make_energy,
    make_fingerprint,
    make_node,
    make_power,
    make_probe_run,
    make_result,
)

from boardcluster.plan.asking import RUNS_MOST, OwnNodes, model_for, predict_question
from boardcluster.plan.hardware import OWN_HARDWARE, board_rates, reference_write
from boardcluster.plan.model import intermediate_of, short_of_memory
from boardcluster.plan.own_runs import conditions_of, nodes_of, own_rates
from boardcluster.plan.power import load_of, worker_watts
from boardcluster.plan.prediction import RuntimePrediction, UnknownReason
from boardcluster.plan.question import Question
from boardcluster.queries.predictions import AskedRun, question_of
from boardcluster.records import (
    Checksum,
    Engine,
    Fingerprint,
    MasterPlacement,
    PlannedFault,
    ProbeFigure,
    ProbeRun,
    Result,
    Role,
    Variant,
    Verdict,
)

GB = 10**9
ASKED = Question(
    workload="wordcount",
    engine=Engine.SPARK,
    size_bytes=2 * GB,
    workers=4,
    board=OWN_HARDWARE,
    medium=OWN_HARDWARE,
)


class Archive:
    """Runs and probes in memory."""

    def __init__(self, runs: Sequence[Result], probes: Sequence[ProbeRun] = ()) -> None:
        self.runs = runs
        self.probes = probes

    def recent(
        self, workload: str, engine: str, *, most: int, without: Collection[str] = ()
    ) -> tuple[Result, ...]:
        found = [
            row
            for row in self.runs
            if (row.trial.workload, row.trial.engine) == (workload, engine)
            and row.trial.campaign_id not in without
        ]
        return tuple(found[:most])

    def probe_runs(self, *, node: str = "", probe: str = "") -> tuple[ProbeRun, ...]:
        return tuple(row for row in self.probes if row.probe == probe and not node)


def runs(
    law: Callable[[float, float], float],
    cells: Sequence[tuple[float, int]],
    *,
    start: float | None = None,
    **changes: Any,
) -> list[Result]:
    own: dict[str, Any] = {"workload": "wordcount", "engine": Engine.SPARK, **changes}
    found = []
    for place, (size, workers) in enumerate(cells):
        seconds = law(size, workers)
        if start is not None:
            phases = {"count": seconds, "count/stage 0: reduce": seconds - start}
            own["phases_seconds"] = phases
        found.append(
            make_result(
                seconds,
                position=place + changes.get("position", 0),
                workers=workers,
                size_bytes=int(size * GB),
                **{name: value for name, value in own.items() if name != "position"},
            )
        )
    return found


def boards(model: str, *, workers: int = 4, clock: str = "2.40") -> Fingerprint:
    """A cluster of Raspberry Pis; each line has the form that the campaign gives it."""
    line = f"Raspberry Pi {model} Model B, 4 x Cortex-A76 at {clock} GHz, 8 GiB, sd EVO, 1 Gbit/s"
    names = ["master", *(f"worker{number + 1}" for number in range(workers))]
    return make_board_fingerprint(
        hardware=tuple(f"{name}: {line}" for name in names), nodes=len(names)
    )


def written(rate: float, *, position: int, setup: Fingerprint) -> Result:
    return make_result(
        60.0,
        workload="dfsio",
        engine=Engine.MAPREDUCE,
        position=position,
        size_bytes=10 * GB,
        setup=setup,
        figures={"write_throughput_mebibytes_per_second": rate},
    )


def rated(model: str, mips: float) -> ProbeRun:
    """What 7-zip says of the worker of the same name in a cluster of other boards."""
    return make_probe_run(
        "seven-zip",
        node="worker1",
        hardware=boards(model).hardware[1],
        figures=(ProbeFigure(name="seven_zip_total_mips", value=mips),),
    )


def ask(archive: Archive | None, question: Question = ASKED, **how: Any) -> RuntimePrediction:
    return predict_question(question, archive, nodes=OwnNodes(memory_bytes=4 * GB, cores=4), **how)


def test_own_runs_on_few_workers_and_half_the_size_say_what_more_takes() -> None:
    """The law is unlike the papers': a longer start, and work eight times as light."""
    found = ask(
        Archive(runs(lambda size, workers: 30 + 20 * size / workers, [(1, 1), (1, 2)], start=30.0))
    )
    assert found.seconds
    assert found.seconds.median == pytest.approx(40, rel=0.12)
    assert found.provenance[0] == "2 own runs"
    assert "as a prior" in found.provenance[1]


def test_work_that_more_workers_do_not_shorten_is_seen() -> None:
    found = ask(Archive(runs(lambda size, _: 10 + 30 * size, [(1, 1), (1, 2), (0.5, 1)])))
    assert found.seconds
    assert found.seconds.median == pytest.approx(70, rel=0.25)


def test_more_own_runs_narrow_the_interval() -> None:
    def law(size: float, workers: float) -> float:
        return 30 + 20 * size / workers

    cells = [(1, 1), (1, 2), (2, 1), (2, 2), (2, 4), (1, 4)]
    few, many = (ask(Archive(runs(law, cells[:count]))).seconds for count in (1, 6))
    assert few
    assert many
    assert many.interval.high / many.median < few.interval.high / few.median
    assert many.median == pytest.approx(40, rel=0.05)


def test_runs_of_other_versions_and_security_modes_are_left_out_and_said() -> None:
    mine = runs(lambda size, workers: 30 + 20 * size / workers, [(1, 1), (1, 2), (2, 2)])
    other = runs(
        lambda size, workers: 300 + 200 * size / workers,
        [(1, 1), (1, 2)],
        position=9,
        setup=make_fingerprint(hadoop="3.3.6"),
    )
    apart, mixed = (ask(Archive([*mine, *other]), mixed=how) for how in (False, True))
    assert apart.seconds
    assert mixed.seconds
    assert apart.seconds.median == pytest.approx(40, rel=0.1)
    assert any("left out: 2 runs of Hadoop 3.3.6" in words for words in apart.provenance)
    assert mixed.seconds.median > 1.3 * apart.seconds.median
    assert any("included, as asked" in words for words in mixed.provenance)
    assert not any("included" in words and "prior" in words for words in mixed.provenance)


def test_runs_that_are_left_out_are_said_where_nothing_else_is_known() -> None:
    own = runs(
        lambda *_: 30.0,
        [(1, 1), (1, 2)],
        workload="teravalidate",
        settings={"dfs.blocksize": "33554432"},
    )
    found = ask(Archive(own), replace(ASKED, workload="teravalidate"))
    assert found.seconds is None
    assert any("left out: 2 runs" in words for words in found.provenance)


def test_the_settings_of_the_cluster_are_those_of_the_question() -> None:
    spec = make_cluster(
        make_node("master", Role.MASTER),
        make_node("worker1", Role.WORKER),
        settings={"dfs.blocksize": "33554432", "spark.executor.cores": "1"},
    )
    asked = AskedRun(
        workload="terasort",
        engine=Engine.SPARK,
        size_bytes=10**9,
        settings={"spark.executor.cores": "2"},
    )
    settings = question_of(asked, spec).settings
    assert settings == {"dfs.blocksize": "33554432", "spark.executor.cores": "2"}


def test_mixed_runs_are_all_of_the_program_that_is_asked_about() -> None:
    def law(size: float, workers: float) -> float:
        return 30 + 20 * size / workers

    mine = runs(law, [(1, 1), (1, 2), (2, 2)])
    older = runs(law, [(1, 1), (1, 2)], position=9, setup=make_fingerprint(hadoop="3.3.6"))
    planted = runs(lambda *_: 900.0, [(1, 1), (1, 2)], position=19, fault=PlannedFault.KILL)
    found = ask(Archive([*mine, *older, *planted]), mixed=True)
    assert found.seconds
    assert found.seconds.median == pytest.approx(40, rel=0.1)
    assert found.provenance[0] == "5 own runs"
    [left] = [words for words in found.provenance if words.startswith("left out")]
    assert "2 runs of" in left
    assert "fault=" in left


@pytest.mark.parametrize("mixed", [False, True])
def test_own_runs_on_boards_that_were_replaced_are_left_out_and_said(mixed: bool) -> None:
    """However many there are: the newest run is on the boards that are there now."""
    old = runs(
        lambda size, workers: 300 + 200 * size / workers,
        [(1, 1), (1, 2), (2, 1), (2, 2)],
        setup=boards("4"),
    )
    new = runs(
        lambda size, workers: 30 + 20 * size / workers,
        [(1, 1), (1, 2), (2, 2)],
        position=9,
        setup=boards("5"),
    )
    found = ask(Archive([*old, *new]), mixed=mixed)
    assert found.seconds
    assert found.seconds.median == pytest.approx(40, rel=0.1)
    assert found.provenance[0] == "3 own runs"
    [left] = [words for words in found.provenance if words.startswith("left out")]
    assert "4 runs of" in left
    assert "Raspberry Pi 4 Model B with sd EVO" in left


def test_emulated_nodes_with_other_memory_are_other_nodes() -> None:
    old = runs(lambda *_: 900.0, [(1, 1)] * 4, setup=make_fingerprint(node_memory_bytes=GB))
    new = runs(lambda size, workers: 30 + 20 * size / workers, [(1, 1), (1, 2)], position=9)
    assert ask(Archive([*old, *new])).provenance[0] == "2 own runs"


def test_workers_clocks_and_configurations_do_not_part_own_runs() -> None:
    """What follows from the number of workers differs between runs that are learned together."""
    unlike = [boards("5", workers=workers) for workers in (4, 1, 2)]
    cards = [line.replace("sd EVO", f"sd card {line[6]}") for line in unlike[0].hardware]
    for setups in (
        [boards("5", workers=workers, clock=f"2.{workers}0") for workers in (1, 2, 4)],
        [
            replace(setup, hardware=tuple(cards[: setup.nodes]), node_memory_bytes=setup.nodes * GB)
            for setup in unlike
        ],
        [make_fingerprint(nodes=workers + 1, config_sha256=str(workers)) for workers in (1, 2, 4)],
    ):
        mine = [
            row
            for place, (setup, workers) in enumerate(zip(setups, (1, 2, 4), strict=True))
            for row in runs(
                lambda size, workers: 30 + 20 * size / workers,
                [(1, workers)],
                position=place,
                setup=setup,
            )
        ]
        assert ask(Archive(mine)).provenance[0] == "3 own runs"


@pytest.mark.parametrize(
    "other",
    [
        {"variant": Variant.TEXTBOOK},
        {"input": "/data/novel.txt"},
        {"checksum": Checksum.NULL},
        {"master": MasterPlacement.COMBINED},
        {"fault": PlannedFault.KILL},
    ],
)
def test_runs_of_another_program_text_or_checksum_are_not_mixed_in(other: dict[str, Any]) -> None:
    mine = runs(lambda size, workers: 30 + 20 * size / workers, [(1, 1), (1, 2), (2, 2)])
    apart = runs(
        lambda size, workers: 300 + 200 * size / workers, [(1, 1), (1, 2)], position=9, **other
    )
    found = ask(Archive([*mine, *apart]))
    assert found.seconds is not None
    assert found.seconds.median == pytest.approx(40, rel=0.1)
    asked = replace(ASKED, parameters=conditions_of(apart[0].trial))
    of_other = ask(Archive([*mine, *apart]), asked)
    assert of_other.provenance[0] == "2 own runs"


def test_runs_that_contradict_each_other() -> None:
    same = runs(lambda *_: 20.0, [(1, 2)]) + runs(lambda *_: 60.0, [(1, 2)], position=5)
    found = ask(Archive(same))
    assert [row.reason for row in found.unknown] == [UnknownReason.CONTRADICTION]
    assert "20 to 60 s" in found.unknown[0].words


def test_runs_of_two_boards_do_not_contradict_each_other() -> None:
    slow, fast = (
        make_fingerprint(twin=f"5 x {board} with samsung-ufs-256gb")
        for board in ("rpi-4b-4gb-1500mhz", "rpi-5b-8gb-3000mhz")
    )
    mine = runs(lambda *_: 100.0, [(1, 4)], setup=slow)
    mine += runs(lambda *_: 40.0, [(1, 4)], setup=fast, position=5)
    asked = replace(ASKED, board="rpi-4b-4gb-1500mhz", medium="samsung-ufs-256gb")
    found = ask(Archive(mine), asked, mixed=True)
    assert UnknownReason.CONTRADICTION not in [row.reason for row in found.unknown]


def test_runs_on_a_large_board_say_nothing_of_a_small_ones_memory() -> None:
    medium = "samsung-ufs-256gb"
    twin = make_fingerprint(twin=f"5 x rpi-4b-4gb-1500mhz with {medium}")
    mine = runs(lambda size, workers: 30 + 20 * size / workers, [(1, 2), (2, 2)], setup=twin)
    small, as_large = (
        ask(Archive(mine), replace(ASKED, board=board, medium=medium))
        for board in ("rpi-3b", "rpi-4b-4gb-1500mhz")
    )
    assert UnknownReason.MEMORY in [row.reason for row in small.unknown]
    assert as_large.is_known
    own = runs(lambda size, workers: 30 + 20 * size / workers, [(1, 2), (2, 2)])
    learned = model_for([ASKED], Archive(own)).series["wordcount", Engine.SPARK]
    assert short_of_memory(learned, np.array([1.0 * GB])), "own nodes whose memory is not known"


def test_intermediate_bytes_are_less_certain_beyond_what_was_measured() -> None:
    mine = runs(lambda size, _: 30 + 20 * size, [(1, 2), (2, 2)], intermediate_bytes=GB)
    learned = model_for([ASKED], Archive(mine)).series["wordcount", Engine.SPARK]
    found, upper = intermediate_of(learned, np.array([2.0, 500.0]))
    assert upper[0] == pytest.approx(1.18 * found[0], rel=0.01)
    assert upper[1] > 2 * found[1]


def test_runs_without_a_size_that_contradict_each_other() -> None:
    """Two maps of pi are not 0.02 GB."""
    same: dict[str, Any] = {"workload": "pi", "parameters": {"pi.maps": "2"}}
    mine = runs(lambda *_: 20.0, [(0, 2)], **same)
    mine += runs(lambda *_: 60.0, [(0, 2)], position=5, **same)
    asked = replace(ASKED, workload="pi", size_bytes=0, parameters={"pi.maps": "2"})
    [unknown] = ask(Archive(mine), asked).unknown
    assert "took 20 to 60 s (workers 2, 2 maps)" in unknown.words


def test_own_runs_keep_the_copies_that_they_had() -> None:
    """Whatever is asked; of a block there are no more copies than workers."""
    mine = runs(lambda size, workers: 30 + 20 * size / workers, [(1, 1), (1, 2), (2, 4)])
    for asked in (replace(ASKED, replication=1), replace(ASKED, replication=3, workers=1)):
        model = model_for([asked], Archive(mine), copies=2)
        learned = model.series["wordcount", Engine.SPARK].fitted.data.work
        assert list(learned.replication) == [1, 2, 2]


@pytest.mark.parametrize("metered", ["each node", "all at one plug"])
def test_the_power_of_own_workers_is_without_the_master_and_of_their_board(metered: str) -> None:
    """One worker that draws 6 W, and a master that draws 2.7 W, idle."""
    seconds = 50.0
    sums = {"master": 2.7 * seconds, "worker1": 6.0 * seconds}
    powers = tuple(
        make_power(joules, meter=name, nodes=(name,), switch=False) for name, joules in sums.items()
    )
    energy = make_energy(
        sum(sums.values()),
        powers=powers if metered == "each node" else (),
        idle_watts=5.4,
    )
    four, five = "rpi-4b-4gb-1500mhz", "rpi-5b-8gb-2400mhz"
    mine = runs(
        lambda *_: seconds,
        [(1, 1)],
        setup=make_fingerprint(twin=f"2 x {four} with samsung-ufs-256gb", nodes=2),
        energy=energy,
    )
    asked = replace(ASKED, board=four, medium="samsung-ufs-256gb", workers=8)
    same = ask(Archive(mine), asked)
    assert same.seconds
    assert same.joules
    assert same.joules.median / same.seconds.median / 8 == pytest.approx(6.0)
    other = ask(Archive(mine), replace(asked, board=five))
    assert other.seconds
    assert other.joules
    watts = worker_watts(board_rates(five), load_of("wordcount", Engine.SPARK))
    assert other.joules.median / other.seconds.median / 8 == pytest.approx(watts)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_power_of_own_workers_is_without_the_switch(workers: int) -> None:
    """Two boards that draw 6 W, or one of them and an idle master; and a switch with 8 W."""
    seconds = 50.0
    boards = make_power(
        12.0 * seconds, meter="plugs", nodes=("a", "b"), switch=False, idle_watts=12.0
    )
    switch = make_power(8.0 * seconds, meter="switch", nodes=(), switch=True, idle_watts=8.0)
    mine = runs(
        lambda *_: seconds,
        [(1, workers)],
        setup=make_fingerprint(twin="2 x rpi-4b-4gb-1500mhz with samsung-ufs-256gb", nodes=2),
        energy=make_energy(20.0 * seconds, powers=(boards, switch), idle_watts=20.0),
    )
    asked = replace(ASKED, board="rpi-4b-4gb-1500mhz", medium="samsung-ufs-256gb", workers=8)
    found = ask(Archive(mine), asked)
    assert found.seconds
    assert found.joules
    assert found.joules.median / found.seconds.median / 8 == pytest.approx(6.0)


def test_tainted_runs_and_those_of_searches_are_not_learned_from() -> None:
    bad = runs(lambda *_: 900.0, [(1, 1)], verdict=Verdict.INVALID)
    searched = runs(lambda *_: 900.0, [(1, 1)], campaign_id="tune-1", position=3)
    found = ask(Archive([*bad, *searched]), searches={"tune-1"})
    assert found.seconds is None


def test_a_long_search_does_not_push_out_own_runs() -> None:
    """Only so many of the newest runs are read, and a search may make more."""
    mine = runs(lambda size, workers: 30 + 20 * size / workers, [(1, 1), (1, 2)])
    search: dict[str, Any] = {"campaign_id": "tune-1"}
    searched = runs(lambda *_: 900.0, [(1, 1)] * RUNS_MOST, position=9, **search)
    written = make_result(
        60.0,
        workload="dfsio",
        engine=Engine.MAPREDUCE,
        position=3,
        figures={"write_throughput_mebibytes_per_second": 1.0},
        **search,
    )
    found = ask(Archive([written, *searched, *mine]), searches={"tune-1"})
    assert found.provenance[0] == "2 own runs"
    elsewhere = replace(ASKED, board="rpi-5b-8gb-2400mhz")
    asked = ask(Archive([written, *mine]), elsewhere, searches={"tune-1"})
    assert "no HDFS write probe" in asked.unknown[0].words


def test_of_a_farm_of_servers_more_servers_shorten_a_part() -> None:
    mine = runs(
        lambda _, workers: 5 + 40 / workers,
        [(0, 1), (0, 1), (0, 2), (0, 2)],
        workload="webserve",
        engine=Engine.HTTP,
    )
    asked = replace(ASKED, workload="webserve", engine=Engine.HTTP, size_bytes=0)
    found = ask(Archive(mine), asked)
    assert found.is_known
    assert found.seconds
    assert found.seconds.median == pytest.approx(15, rel=0.05)


def test_an_own_program_needs_two_numbers_of_workers() -> None:
    asked = replace(ASKED, workload="submit", size_bytes=0, arguments=("app.py", "10"))
    program: dict[str, Any] = {"workload": "submit", "arguments": ("app.py", "10")}
    cells = [(0.0, 1), (0.0, 2)]

    def law(_: float, workers: float) -> float:
        return 12 + 40 / workers

    one, two = (ask(Archive(runs(law, cells[:count], **program)), asked) for count in (1, 2))
    assert [row.reason for row in one.unknown] == [UnknownReason.NO_DATA]
    assert two.seconds
    assert two.seconds.median == pytest.approx(22, rel=0.05)
    other = ask(Archive(runs(law, cells, **program)), replace(asked, arguments=("app.py", "20")))
    assert other.seconds is None


def test_media_are_compared_by_the_writes_nearest_to_ten_gigabytes() -> None:
    """Most of a small write stays in the page cache."""
    writes = [
        make_result(
            60.0,
            workload="dfsio",
            engine=Engine.MAPREDUCE,
            position=30 + place,
            size_bytes=int(size * GB),
            figures={"write_throughput_mebibytes_per_second": rate},
        )
        for place, (size, rate) in enumerate([(0.1, 400.0), (0.1, 410.0), (0.2, 300.0), (8, 11.0)])
    ]
    assert own_rates([], writes).hdfs_write_mebibytes_per_second == 11.0
    assert own_rates([], writes[:3]).hdfs_write_mebibytes_per_second == 300.0
    assert own_rates([], []).hdfs_write_mebibytes_per_second is None


def test_media_are_compared_by_the_writes_on_the_nodes_that_runs_were_on() -> None:
    """Not by those on boards that came later, and not by those on boards that nodes stood for."""
    twin = make_fingerprint(twin="5 x rpi-4b-4gb-1500mhz with samsung-ufs-256gb")
    writes = [
        written(rate, position=30 + place, setup=setup)
        for place, (rate, setup) in enumerate(
            [(40.0, boards("4")), (11.0, boards("5")), (99.0, twin)]
        )
    ]
    assert own_rates([], writes).hdfs_write_mebibytes_per_second == 11.0
    on_four = own_rates([], writes, nodes=nodes_of(boards("4")))
    assert on_four.hdfs_write_mebibytes_per_second == 40.0
    replaced = dict.fromkeys(nodes_of(boards("4")), "others")
    assert own_rates([], writes, nodes=replaced).hdfs_write_mebibytes_per_second is None
    probes = [rated(board, mips) for board, mips in (("4", 5800.0), ("5", 14000.0))]
    assert own_rates(probes, [], nodes=nodes_of(boards("4"))).seven_zip_mips == 5800.0
    assert own_rates(probes, [], nodes=nodes_of(make_fingerprint())).seven_zip_mips == 14000.0
    on_another = nodes_of(boards("4", workers=0))  # a run names the nodes that it was on
    assert own_rates(probes[1:], [], nodes=on_another).seven_zip_mips == 14000.0
    mine = runs(lambda *_: 50.0, [(1, 1)], setup=boards("4"))
    model = model_for([ASKED], Archive([*mine, *writes]))
    assert model.media[OWN_HARDWARE].slowness == pytest.approx(reference_write() / 40.0)


def test_own_runs_are_not_refused_for_a_spill_that_their_profile_decides() -> None:
    """The papers' executors spill from 0.9 GB on; how large a profile makes them is not known."""

    def reasons(**settings: str) -> list[UnknownReason]:
        mine = runs(
            lambda size, workers: 30 + 20 * size / workers,
            [(0.25, 1), (0.5, 1), (0.5, 2)],
            settings=settings,
        )
        return [row.reason for row in ask(Archive(mine), replace(ASKED, settings=settings)).unknown]

    assert UnknownReason.THRESHOLD not in reasons()
    said = {"spark.executor.memory": "1g", "spark.executor.instances": "2"}
    assert reasons(**said) == [UnknownReason.THRESHOLD]


def test_runs_of_a_node_alone_say_nothing_of_slow_links() -> None:
    def law(size: float, workers: float) -> float:
        return 30 + 20 * size / workers

    alone = runs(law, [(1, 1)], setup=make_fingerprint(link_bits_per_second=0))
    several = runs(law, [(1, 2), (2, 2)], position=1)
    slow = replace(ASKED, link_bits_per_second=1e8)
    found = ask(Archive([*alone, *several]), slow)
    assert [row.reason for row in found.unknown] == [UnknownReason.RESOURCE]


def test_own_nodes_are_compared_with_others_only_by_their_probes() -> None:
    mine = runs(lambda size, workers: 30 + 20 * size / workers, [(1, 1), (1, 2), (2, 2)])
    boards = replace(ASKED, board="rpi-5b-8gb-2400mhz", medium="samsung-ufs-256gb")
    without = ask(Archive(mine), boards)
    assert any("left out: 3 own runs on hardware" in words for words in without.provenance)
    figure = ProbeFigure(name="seven_zip_total_mips", value=4825.0, conditions={"threads": "4"})
    probe = make_probe_run("seven-zip", figures=(figure,))
    writes = make_result(
        60.0,
        workload="dfsio",
        engine=Engine.MAPREDUCE,
        position=30,
        figures={"write_throughput_mebibytes_per_second": 11.27},
    )
    probed = ask(Archive([*mine, writes], [probe]), boards)
    assert probed.provenance[0] == "3 own runs"
    assert probed.seconds
    assert probed.seconds.median < 40  # its start is the same, and its CPU 2.45 times as fast


def test_emulated_boards_are_those_that_most_nodes_stand_for() -> None:
    twin = "1 x desktop-i5-9600k + 4 x rpi-4b-4gb-1500mhz with samsung-ufs-256gb, PCIe 2.0"
    mine = runs(
        lambda size, workers: 30 + 20 * size / workers,
        [(1, 1), (1, 2), (2, 2)],
        setup=make_fingerprint(twin=twin),
    )
    asked = replace(ASKED, board="rpi-4b-4gb-1500mhz", medium="samsung-ufs-256gb")
    found = ask(Archive(mine), asked)
    assert found.provenance[0] == "3 own runs"
    assert found.seconds
    assert found.seconds.median == pytest.approx(40, rel=0.1)


def test_emulated_boards_of_an_own_file_are_learned_from(tmp_path: Path) -> None:
    figure = "[[figure]]\nname = '{name}'\nvalue = 2.0\nunit = '{unit}'\nsource = 'made up'\n"
    board, medium = tmp_path / "small.toml", tmp_path / "card.toml"
    board.write_text(
        "id = 'small'\nname = 'Small'\ncores = 1\nmemory_bytes = 4294967296\n"
        + figure.format(name="sysbench_cpu_events_per_second", unit="events per second")
    )
    medium.write_text(
        "id = 'card'\nname = 'Card'\nkind = 'microSD card'\n"
        + figure.format(name="capacity_bytes", unit="bytes")
    )
    mine = runs(
        lambda size, workers: 30 + 20 * size / workers,
        [(1, 1), (1, 2), (2, 2)],
        setup=make_fingerprint(twin="5 x small with card"),
    )
    found = ask(Archive(mine), replace(ASKED, board=str(board), medium=str(medium)))
    assert found.provenance[0] == "3 own runs"
    assert found.seconds
    assert found.seconds.median == pytest.approx(40, rel=0.1)
    other = ask(Archive(mine), replace(ASKED, board="rpi-4b-4gb-1500mhz", medium=str(medium)))
    assert "3 own runs" not in other.provenance, "another board is not reached without a rating"


def test_own_nodes_without_runs_or_probes_are_not_known() -> None:
    found = ask(Archive([]))
    assert [row.reason for row in found.unknown] == [UnknownReason.NO_FIGURE]


def test_published_pi_is_of_its_own_number_of_samples() -> None:
    asked = replace(
        ASKED, workload="pi", size_bytes=0, board="rpi-5b-8gb-2400mhz", medium="samsung-ufs-256gb"
    )
    defaults = {"pi.maps": "8", "pi.samples": "1000000"}
    assert ask(None, asked, defaults=defaults).seconds is None
    words = ask(None, asked, defaults=defaults).unknown[0].words
    assert words.endswith(
        "two numbers of workers are needed; the published series is of pi.samples=10000"
    )
    few = replace(asked, parameters={"pi.samples": "10000"})
    papers = replace(asked, parameters={"pi.samples": "10000", "pi.maps": "100"})
    found = ask(None, papers, defaults=defaults)
    fewer = ask(None, few, defaults=defaults)
    assert fewer.seconds is not None
    assert found.seconds is not None
    assert fewer.seconds.median < 0.5 * found.seconds.median, "of 8 maps, as `run` would make them"
    assert found.seconds.median == pytest.approx(97, rel=0.1)  # 2026, Table 17: 97 and 101 s


def test_hpl_of_the_published_board_and_of_own_runs() -> None:
    asked = Question(
        workload="hpl",
        engine=Engine.MPI,
        size_bytes=8 * 11392**2,
        workers=4,
        board="rpi-b-800mhz",
        medium=OWN_HARDWARE,
        link_bits_per_second=1e8,
    )
    figures = {"n": 5000.0, "p": 1.0, "q": 1.0, "gflops_per_second": 10.0}
    alone = make_result(
        9.0, workload="hpl", engine=Engine.MPI, workers=1, size_bytes=8, figures=figures
    )
    own = ask(Archive([alone]), replace(asked, board=OWN_HARDWARE, workers=1))
    assert own.figures
    assert own.figures["gflops_per_second"].median == pytest.approx(10, rel=0.01)
    together = make_result(
        9.0, workload="hpl", engine=Engine.MPI, workers=4, size_bytes=8, figures=figures
    )
    several = ask(Archive([together]), replace(asked, board=OWN_HARDWARE))
    assert several.figures
    assert several.provenance == ("1 own run, messages by baun-2016 Table 7",)
    sizeless = ask(Archive([alone]), replace(asked, board=OWN_HARDWARE, size_bytes=0))
    assert [row.reason for row in sizeless.unknown] == [UnknownReason.NO_DATA]
    assert "give a size" in sizeless.unknown[0].words
    unknown = ask(None, replace(asked, board="rpi-5b-8gb-2400mhz"))
    assert [row.reason for row in unknown.unknown] == [UnknownReason.NO_DATA]
    full = ask(None, replace(asked, size_bytes=8 * 20000**2))
    assert UnknownReason.MEMORY in [row.reason for row in full.unknown]


def test_hpl_of_a_node_alone_needs_no_link() -> None:
    figures = {"n": 5000.0, "p": 1.0, "q": 1.0, "gflops_per_second": 10.0}
    alone = make_result(
        9.0,
        setup=make_fingerprint(nodes=1, link_bits_per_second=0),
        workload="hpl",
        engine=Engine.MPI,
        workers=1,
        size_bytes=8,
        figures=figures,
    )
    spec = make_cluster(
        make_node("here", Role.MASTER, Role.WORKER), kind="local", link_bits_per_second=0
    )
    run = AskedRun(workload="hpl", engine=Engine.MPI, size_bytes=8 * 5000**2)
    for workers in (1, 4):
        found = ask(Archive([alone]), question_of(replace(run, workers=workers), spec))
        assert found.figures
        assert found.figures["gflops_per_second"].median <= 10.0 * workers * 1.01
    several = make_result(
        4.0, workload="hpl", engine=Engine.MPI, workers=4, size_bytes=8, figures=figures
    )
    own = Archive([alone, alone, alone, several, several])
    nodes = [make_node(f"worker{number}", Role.WORKER) for number in range(1, 5)]
    asked = question_of(
        replace(run, workers=4), make_cluster(make_node("master", Role.MASTER), *nodes)
    )
    assert ask(own, asked).figures  # the runs without a link are of one node


def solved(gigaflops: float, **changes: Any) -> Result:
    """A run of HPL on one worker."""
    figures = {"n": 5000.0, "p": 1.0, "q": 1.0, "gflops_per_second": gigaflops}
    own: dict[str, Any] = {"workload": "hpl", "engine": Engine.MPI, "workers": 1, "size_bytes": 8}
    return make_result(9.0, figures=figures, **(own | changes))


ASKED_HPL = replace(ASKED, workload="hpl", engine=Engine.MPI, size_bytes=8 * 5000**2, workers=1)


def hpl_rate(runs_made: Sequence[Result], asked: Question = ASKED_HPL) -> float:
    found = ask(Archive(runs_made), asked)
    assert found.figures
    return found.figures["gflops_per_second"].median


def test_hpl_of_a_board_does_not_take_the_rate_of_another() -> None:
    laptop = solved(100.0)
    asked = replace(ASKED_HPL, board="rpi-b-800mhz", link_bits_per_second=1e8)
    assert ask(Archive([laptop]), asked) == ask(None, asked)
    elsewhere = replace(asked, board="rpi-5b-8gb-2400mhz")
    assert [row.reason for row in ask(Archive([laptop]), elsewhere).unknown] == [
        UnknownReason.NO_DATA
    ]
    twin = solved(0.5, position=1, setup=make_fingerprint(twin="2 x rpi-b-800mhz"))
    assert hpl_rate([laptop, twin], asked) == pytest.approx(0.5, rel=0.01)
    assert hpl_rate([laptop, twin]) == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize("name", ["hpl.binary", "hpl.ranks_per_node"])
def test_hpl_is_of_the_program_that_is_asked_about(name: str) -> None:
    other = {name: "2"}
    mine = [solved(10.0), solved(2.0, position=1, parameters=other)]
    assert hpl_rate(mine) == pytest.approx(10, rel=0.01)
    asked = replace(ASKED_HPL, parameters=other)
    assert hpl_rate(mine, asked) == pytest.approx(2, rel=0.01)


def test_hpl_of_a_cluster_of_several_boards_is_of_the_slowest() -> None:
    """As a question about it is, for jobs wait for that one."""
    setup = make_fingerprint(twin="4 x rpi-5b-8gb-2400mhz + 1 x rpi-4b-4gb-1500mhz")
    asked = replace(ASKED_HPL, board="rpi-4b-4gb-1500mhz")
    assert hpl_rate([solved(0.5, setup=setup)], asked) == pytest.approx(0.5, rel=0.01)


def test_hpl_is_of_the_boards_that_are_there_now() -> None:
    mine = [solved(10.0, setup=boards("4")), solved(30.0, position=1, setup=boards("5"))]
    assert hpl_rate(mine) == pytest.approx(30, rel=0.01)


def test_netpipe_is_latency_and_bandwidth() -> None:
    figures = {
        "latency_mean_microseconds": 100.0,
        "peak_throughput_mean_megabits_per_second": 900.0,
    }
    run = make_result(9.0, workload="netpipe", engine=Engine.MPI, figures=figures)
    asked = replace(ASKED, workload="netpipe", engine=Engine.MPI, size_bytes=0)
    found = ask(Archive([run]), asked)
    assert found.figures
    peak = 8 * 4 * 2**20 / (100e-6 + 8 * 4 * 2**20 / 900e6) / 1e6
    assert found.figures["throughput_megabits_per_second"].median == pytest.approx(peak, rel=0.001)
    assert ask(Archive([]), asked).figures is None
    elsewhere = replace(asked, board="rpi-5b-8gb-2400mhz")
    assert ask(Archive([run]), elsewhere) == ask(None, elsewhere), "these are other boards"


def test_a_run_on_fewer_workers_than_the_workload_needs_is_not_advised() -> None:
    """NetPIPE refuses one worker, and the database fewer than three."""
    messages = replace(ASKED, workload="netpipe", engine=Engine.MPI, size_bytes=0, workers_least=2)
    advised = ask(Archive([]), messages).run_next
    assert advised
    assert advised.workers == 2
    database = replace(ASKED, workload="oltp", engine=Engine.GALERA, size_bytes=0, workers_least=3)
    advised = ask(Archive([]), database).run_next
    assert advised
    assert advised.workers == 3
    known = runs(
        lambda _, workers: 20 + 60 / workers,
        [(0, 3), (0, 5)],
        workload="oltp",
        engine=Engine.GALERA,
    )
    found = ask(Archive(known), replace(database, workers=5, slots=4))
    assert [row.reason for row in found.unknown] == [UnknownReason.SLOTS]
    assert found.run_next
    assert found.run_next.workers >= 3


def test_a_workload_of_mpi_without_a_model_is_not_taken_for_another() -> None:
    found = ask(Archive([]), replace(ASKED, workload="other", engine=Engine.MPI, size_bytes=0))
    assert found.unknown[0].words == "there is no model of other"
    assert found.run_next is None
