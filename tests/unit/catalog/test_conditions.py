"""What the papers' cells were measured under, in our words."""

from __future__ import annotations

import pytest
from tests.builders import make_board_fingerprint

from boardcluster.analysis.result_sets import DURATION, INTERMEDIATE, ResultPoint
from boardcluster.catalog.conditions import machine_of, published_result_set
from boardcluster.catalog.published import read_cells, read_index
from boardcluster.catalog.stated import read_conditions
from boardcluster.errors import UsageError
from boardcluster.records import Engine
from boardcluster.workloads import load_workload, workload_names


def points(name: str, **where: str) -> tuple[ResultPoint, ...]:
    return published_result_set(name, where, index=read_index(), asked=name).points


@pytest.mark.parametrize("name", read_conditions())
def test_conditions_name_what_there_is(name: str) -> None:
    row = read_conditions()[name]
    table = read_index().tables[name]
    assert row.engine in {"", *Engine}
    assert set(row.quantities) <= {cell.quantity for cell in read_cells(table)}
    for point in points(name):
        at = point.conditions
        assert at["workload"] in workload_names()
        assert at["engine"] in set(Engine)
        workload = load_workload(str(at["workload"]))
        for key in at:
            if "." in key:
                assert key.partition(".")[2] in workload.parameters
        assert Engine(str(at["engine"])) in workload.engines


def test_every_number_of_a_table_is_a_point() -> None:
    for table in read_index().tables.values():
        numbers = 0
        for cell in read_cells(table) if table.file else ():
            try:
                float(cell.value)
            except ValueError:
                continue
            numbers += 1
        if numbers:
            assert len(points(table.id)) == numbers


def test_sizes_of_dfsio_are_those_of_all_files() -> None:
    of_all, of_each = (
        points(name, data_size="1GB", storage="microSD" if "2026" in name else "UFS")[0]
        for name in ("lee-oh-park-2021-table-16", "lee-park-2026-table-18")
    )
    assert (of_all.conditions["size_bytes"], of_all.conditions["workers"]) == (10**9, 5)
    assert (of_each.conditions["size_bytes"], of_each.conditions["workers"]) == (10**10, 8)
    assert of_each.quantity == "read_throughput_mebibytes_per_second"


def test_units_become_ours() -> None:
    (gigabytes,) = points("lee-park-2026-table-11", platform="Hadoop", data_size="1GB")
    (megabytes,) = points("lee-park-2026-table-12", platform="Spark", data_size="1GB")
    assert gigabytes.quantity == megabytes.quantity == INTERMEDIATE
    assert gigabytes.values == (1.8e9,)
    assert gigabytes.conditions["engine"] == "mapreduce"
    assert 1e6 < megabytes.values[0] < 1e9


def test_what_a_table_leaves_blank_is_left_open() -> None:
    point = points("lee-park-2026-table-17", storage="SSD", nodes="8")[0]
    assert "pi.maps" not in point.conditions
    assert point.conditions["pi.samples"] == "10000"
    assert point.quantity == DURATION


def test_the_order_of_the_matrix_is_the_size_of_hpl() -> None:
    """The paper's share is of N, and ours of the memory: they are different work."""
    where = {"nodes": "8", "memory_percent": "80"}
    (rate,) = points("baun-2016-table-07", **where, quantity="performance")
    assert rate.conditions["size_bytes"] == 8 * 18432**2
    assert (rate.conditions["hpl.nb"], rate.conditions["hpl.p"]) == ("32", "2")
    assert "hpl.memory_share" not in rate.conditions
    (seconds,) = points("baun-2016-table-07", **where, quantity="execution_time")
    assert seconds.quantity == "solve_seconds"


@pytest.mark.parametrize(
    ("hardware", "twin", "machine"),
    [
        (
            ("w: Raspberry Pi 5 Model B Rev 1.0, 4 x A76, nvme P31",),
            "",
            {"board": "5b", "storage": "ssd"},
        ),
        (
            ("w: Raspberry Pi 3 Model B Plus Rev 1.3, sd SC64G",),
            "",
            {"board": "3b+", "storage": "sd card"},
        ),
        ((), "4 x rpi-4b-4gb-1500mhz with samsung-ufs-256gb", {"board": "4b", "storage": "ufs"}),
        (
            (),
            "8 x rpi-5b-8gb-2400mhz with sk-hynix-gold-p31-500gb, PCIe 3.0",
            {"board": "5b", "storage": "ssd"},
        ),
        ((), "", {}),
        (("a: Raspberry Pi 4 Model B", "b: Raspberry Pi 5 Model B"), "", {}),
    ],
)
def test_the_machine_of_a_setup(
    hardware: tuple[str, ...], twin: str, machine: dict[str, str]
) -> None:
    setup = make_board_fingerprint(hardware=hardware, twin=twin)
    assert machine_of(setup) == machine


def test_a_number_of_boards_in_a_column_is_the_number_of_workers() -> None:
    name = "lee-park-2026-table-21"
    power = points(name, computer="8 \N{MULTIPLICATION SIGN} RPi 5B", benchmark="Pi")
    assert {point.conditions["workers"] for point in power} == {8}
    assert {point.machine["board"] for point in power} == {"5b"}
    desktop = points(name, computer="Desktop")
    assert all("workers" not in point.conditions for point in desktop)


def test_the_board_of_a_table_without_a_column_for_it_is_known() -> None:
    """Tables 12 to 18 are of one board, which their text says."""
    for point in points("lee-oh-park-2021-table-14", storage="microSD1"):
        assert point.machine == {"storage": "sd card", "board": "4b"}
    assert {point.machine["board"] for point in points("lee-oh-park-2021-table-20")} >= {"3b"}


def test_text_is_no_number() -> None:
    with pytest.raises(UsageError, match="no number with quantity 'cpu'"):
        points("lee-park-2026-table-08", quantity="cpu")


def test_doubts_and_conditions_are_said() -> None:
    side = published_result_set("lee-park-2026-table-18", {}, index=read_index(), asked="x")
    assert any("replication 1" in note for note in side.notes)
    assert any("doubtful" in note for note in side.notes)
    assert "Lee" in side.title
    assert "Table 18" in side.title
