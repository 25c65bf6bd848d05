"""Whether data fits the disks and containers fit the memory, against what the papers saw."""

from __future__ import annotations

import numpy as np
import pytest

from boardcluster.catalog.published import find_cell, find_table, read_cells, read_index
from boardcluster.errors import UsageError
from boardcluster.plan.answer import batch_of
from boardcluster.plan.feasibility import (
    DISK_SHARE,
    HDFS_SHARES,
    ContainerMemory,
    DiskNeed,
    disk_shares,
)
from boardcluster.plan.hardware import board_rates, medium_rates
from boardcluster.plan.learning import learn
from boardcluster.plan.model import predict_many
from boardcluster.plan.question import Question
from boardcluster.records import Engine

TERA = 10**12
INTERMEDIATE = {"wordcount": "11", "terasort": "13", "grep": "14"}
NAMES = {"wordcount": "WordCount", "terasort": "TeraSort", "grep": "Grep"}
UNITS = {"GB": 1e9, "MB": 1e6}


def did_end(workload: str, tera: int) -> bool:
    """Whether Lee and Park 2026 have a time of a run of so many terabytes."""
    prose = find_table("lee-park-2026-prose", index=read_index())
    what = {"what": f"{NAMES[workload]} of {tera} TB"}
    try:
        return float(find_cell(prose, what, "execution_time").value) > 0
    except UsageError:
        return False


def intermediate_bytes(workload: str, engine: str, size_bytes: float) -> float:
    """Extrapolate a published series of intermediate data by its two largest sizes."""
    table = find_table(f"lee-park-2026-table-{INTERMEDIATE[workload]}", index=read_index())
    cells = {
        float(cell.keys["data_size"].removesuffix("GB")) * 1e9: float(cell.value) * UNITS[cell.unit]
        for cell in read_cells(table)
        if cell.keys["platform"] == engine and cell.value
    }
    (size, low), (most, high) = sorted(cells.items())[-2:]
    return high + (high - low) / (most - size) * (size_bytes - most)


def need(workload: str, engine: str, tera: int, *, disk_bytes: float = 500e9) -> DiskNeed:
    """What a run of the 2026 paper keeps on its eight disks; it kept one copy of each block."""
    return DiskNeed(
        size_bytes=tera * TERA,
        shares=HDFS_SHARES[workload],
        intermediate_bytes=intermediate_bytes(workload, engine, tera * TERA),
        replication=1,
        workers=8,
        disk_bytes=disk_bytes,
    )


@pytest.mark.parametrize("tera", [1, 2])
@pytest.mark.parametrize("workload", sorted(INTERMEDIATE))
def test_spark_at_one_and_two_terabytes_ends_as_the_paper_says(workload: str, tera: int) -> None:
    assert need(workload, "Spark", tera).fits is did_end(workload, tera)


@pytest.mark.parametrize("workload", ["wordcount", "terasort"])
def test_hadoop_needs_more_than_the_disks_for_a_terabyte(workload: str) -> None:
    """Its intermediate data alone is over four times its input (2026 paper, Tables 11 and 13)."""
    assert not need(workload, "Hadoop", 1).fits
    assert need(workload, "Hadoop", 1, disk_bytes=1e12).fits


@pytest.mark.parametrize("tera", [1, 2])
@pytest.mark.parametrize("engine", [Engine.SPARK, Engine.MAPREDUCE])
@pytest.mark.parametrize("workload", ["wordcount", "terasort"])
def test_the_learned_model_gives_the_papers_verdicts(
    workload: str, engine: Engine, tera: int
) -> None:
    board, medium = "rpi-5b-8gb-2400mhz", "sk-hynix-gold-p31-500gb"
    question = Question(
        workload=workload,
        engine=engine,
        size_bytes=tera * TERA,
        workers=8,
        board=board,
        medium=medium,
        replication=1,
    )
    model = learn([board_rates(board)], [medium_rates(medium)], keys=[(workload, engine)])
    answer = predict_many(model, batch_of(question))
    row = DiskNeed(
        size_bytes=tera * TERA,
        shares=HDFS_SHARES[workload],
        intermediate_bytes=float(answer.intermediate_bytes[0]),
        replication=1,
        workers=8,
        disk_bytes=500e9,
    )
    assert row.fits is (engine is Engine.SPARK and did_end(workload, tera))


def test_what_spark_needs_for_a_terabyte_is_what_the_paper_leads_to_expect() -> None:
    assert need("wordcount", "Spark", 1).need_bytes == pytest.approx(2.6e12, rel=0.05)
    assert need("terasort", "Spark", 1).need_bytes == pytest.approx(3.1e12, rel=0.05)


def test_replicas_count_but_not_more_than_one_on_a_worker() -> None:
    row = DiskNeed(
        size_bytes=1e9,
        shares=HDFS_SHARES["terasort"],
        intermediate_bytes=5e8,
        replication=3,
        workers=2,
        disk_bytes=1e10,
    )
    assert row.need_bytes == pytest.approx(2 * 2e9 + 5e8)
    assert row.words == (
        "disks: 1 GB input x 2 + 500 MB intermediate + 1 GB output x 2 = 4.5 GB, 22 % of 2 x 10 GB;"
        f" at most {100 * DISK_SHARE:.0f} % fits"
    )


def test_many_runs_at_once_give_what_one_gives() -> None:
    workers = np.array([1.0, 2.0, 8.0])
    found = disk_shares(
        size_bytes=np.full(3, 1e12),
        shares=HDFS_SHARES["wordcount"],
        intermediate_bytes=np.array([6e11, np.nan, 6e11]),
        replication=np.full(3, 2.0),
        workers=workers,
        disk_bytes=np.full(3, 5e11),
    )
    assert found[0] == pytest.approx(2.6e12 / 5e11)
    assert np.isnan(found[1])
    assert found[2] == pytest.approx(4.6e12 / 4e12)


def make_memory(**changes: object) -> ContainerMemory:
    rows = {
        "node_mib": 4096,
        "system_mib": 327,
        "daemons_mib": 256,
        "granted_mib": 3488,
        "am_mib": 512,
        "task_mib": 1024,
        "at_once_mib": 3072,
        "alone": False,
    }
    return ContainerMemory(**(rows | changes))  # type: ignore[arg-type]  # by name


def test_a_task_needs_a_place_beside_system_and_daemons() -> None:
    assert make_memory().has_margin
    assert not make_memory(task_mib=3520).fits, "YARN hands out less"
    assert not make_memory(granted_mib=8192, task_mib=3520).fits, "the memory is not there"


def test_the_only_worker_holds_the_application_master_too() -> None:
    assert make_memory(task_mib=3072).fits
    assert not make_memory(task_mib=3072, alone=True).fits


def test_what_runs_at_once_beyond_the_memory_fits_without_margin() -> None:
    row = make_memory(granted_mib=8192, at_once_mib=8192)
    assert row.fits
    assert not row.has_margin
    assert row.words == (
        "memory: 327 system + 256 daemons + 8192 containers at once (application master 512,"
        " largest task 1024) = 214 % of 4096 MiB"
    )


def test_a_profile_that_no_container_fits_says_why() -> None:
    row = make_memory(refusal="an executor needs 450 MiB")
    assert not row.fits
    assert row.words == "memory: an executor needs 450 MiB"
