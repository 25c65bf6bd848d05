"""What nodes must show, against the catalog as it is and boards of one's own."""

import re
from pathlib import Path

import pytest
from tests.builders import make_node

from boardcluster.catalog.entry import BoardEntry, SourcedFigure, render_board
from boardcluster.catalog.lookup import entry_names, find_board, find_part
from boardcluster.errors import UsageError
from boardcluster.records import NodeSpec, NodeTwin, ProbeFigure
from boardcluster.twin.setpoints import NodeSetPoints, set_points
from boardcluster.units import GIB

GBIT = 10**9
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "twin.md"
NVME = "sk-hynix-gold-p31-500gb"


def _node(board: str, medium: str = "", pcie: str = "", memory_bytes: int = 8 * GIB) -> NodeSpec:
    twin = NodeTwin(board=board, medium=medium, pcie=pcie)
    return make_node(memory_bytes=memory_bytes, twin=twin)


def _values(points: NodeSetPoints) -> dict[str, float]:
    return {point.quantity: point.value for point in points.all}


def _entry(
    figures: dict[str, list[tuple[float, dict[str, str]]]], hardware: str = ""
) -> BoardEntry:
    return BoardEntry(
        id="own",
        name="Own board",
        cores=6,
        clock_hertz=2.4e9,
        memory_bytes=4 * GIB,
        emulated=False,
        hardware=hardware,
        versions=(),
        figures=tuple(
            SourcedFigure(
                figure=ProbeFigure(name=name, value=value, conditions=conditions),
                source="probe 7 2026-01-02",
            )
            for name, rows in figures.items()
            for value, conditions in rows
        ),
    )


def _sysbench(threads: int, value: float) -> tuple[float, dict[str, str]]:
    return value, {"threads": str(threads), "prime_limit": "2000"}


OWN = {
    "sysbench_cpu_events_per_second": [
        _sysbench(4, 60.0),
        _sysbench(16, 91.0),
        _sysbench(8, 90.0),
        (5.0, {"threads": "8", "prime_limit": "10000"}),
    ],
    "iperf3_bits_per_second": [
        (9.2e8, {"sender": "client", "repetition": "1"}),
        (9.4e8, {"sender": "server", "repetition": "1"}),
    ],
}


def _own(folder: Path, entry: BoardEntry) -> str:
    path = folder / "own.toml"
    path.write_text(render_board(entry))
    return str(path)


def test_a_measured_board_with_its_medium_needs_no_notes() -> None:
    points = set_points(_node("rpi-5b-8gb-2400mhz", NVME, "3.0"), GBIT)
    assert _values(points) == {
        "cpu_events_per_second": 98699.69,
        "memory_bytes": 8 * GIB,
        "link_bits_per_second": 937e6,
        "disk_read_bytes_per_second": 912051404.8,
        "disk_write_bytes_per_second": 854033694.72,
        "disk_read_iops": 17787.0,
        "disk_write_iops": 44652.0,
    }
    assert {point.note for point in points.all} == {""}
    assert points.cpu_events_per_second.source == "lee-park-2026 Table 23"
    assert points.disk
    assert points.disk.read_iops.source == "lee-park-2026 Table 7"


def test_pcie_chooses_the_figures_and_iops_may_come_from_bytes() -> None:
    disk = set_points(_node("rpi-5b-8gb-2400mhz", NVME, "2.0"), GBIT).disk
    assert disk
    assert disk.read_bytes_per_second.value == 468189184.0
    assert disk.read_iops.value == 67297607.68 / 4096
    assert disk.write_iops.source == "lee-park-2026 Table 22"


def test_hdparm_and_dd_serve_where_iozone_did_not_read_in_a_row() -> None:
    disk = set_points(_node("rpi-3b", "samsung-evo-32gb"), GBIT).disk
    assert disk
    assert disk.read_bytes_per_second.value == 22858956.8
    assert disk.write_bytes_per_second.value == 17300000.0
    assert disk.write_iops.value == 1887436.8 / 4096


def _own_medium(folder: Path, **sequential: str) -> str:
    board = 'board = "rpi-3b"'
    of_record = "".join(f', {key} = "{text}"' for key, text in sequential.items())
    rows = [
        (f"{kind}_{way}_{unit}", board + more)
        for way in ("read", "write")
        for kind, unit, more in (
            ("sequential", "bytes_per_second", of_record),
            ("random", "iops", ', record_bytes = "4096"' if sequential else ""),
        )
    ]
    figures = "".join(
        f'\n[[figure]]\nname = "{name}"\nvalue = {5000 + place}\nunit = "{_unit(name)}"\n'
        f'conditions = {{ {conditions} }}\nsource = "own"\n'
        for place, (name, conditions) in enumerate(rows)
    )
    path = folder / "own-card.toml"
    path.write_text(f'id = "own-card"\nname = "Own card"\nkind = "microSD"\n{figures}')
    return str(path)


def _unit(name: str) -> str:
    return "iops" if name.endswith("iops") else "bytes per second"


def test_figures_of_an_own_medium_that_lack_a_condition_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        set_points(_node("rpi-3b", _own_medium(tmp_path)), GBIT)
    (line,) = [row for row in caught.value.message.splitlines() if "do not count" in row]
    tool, record = 'without tool = "iozone", "hdparm" or "dd"', 'without record_bytes = "4096"'
    assert line.strip() == (
        f"figures that do not count: sequential_read_bytes_per_second {tool}; random_read_iops "
        f"{record}; sequential_write_bytes_per_second {tool}; random_write_iops {record}"
    )

    with pytest.raises(UsageError, match=r"sequential_read_bytes_per_second without tool") as other:
        set_points(_node("rpi-3b", _own_medium(tmp_path, tool="fio")), GBIT)
    assert "random" not in other.value.message.partition("do not count: ")[2].splitlines()[0]


def test_an_own_medium_is_offered_with_the_boards_of_its_file(tmp_path: Path) -> None:
    medium = _own_medium(tmp_path, tool="dd")
    assert set_points(_node("rpi-3b", medium), GBIT).disk is not None
    with pytest.raises(UsageError, match=r"boards that own-card can be used with: rpi-3b\n"):
        set_points(_node("rpi-4b-4gb-1500mhz", medium), GBIT)


def test_conditions_that_are_no_numbers_count_as_absent(tmp_path: Path) -> None:
    medium = _own_medium(tmp_path, tool="iozone", record_bytes="16 MiB")
    assert set_points(_node("rpi-3b", medium), GBIT).disk is not None
    figures = OWN | {
        "sysbench_cpu_events_per_second": [
            (70.0, {"threads": "four", "prime_limit": "2000"}),
            _sysbench(8, 90.0),
        ]
    }
    points = set_points(_node(_own(tmp_path, _entry(figures))), GBIT)
    assert points.cpu_events_per_second.value == 90.0


def test_without_a_medium_there_is_no_disk() -> None:
    points = set_points(_node("rpi-4b-4gb-1500mhz", memory_bytes=4 * GIB), GBIT)
    assert points.disk is None
    assert len(points.all) == 3
    assert points.memory_bytes.source == "lee-park-2026 Table 1"


def test_the_link_is_never_faster_than_the_network() -> None:
    point = set_points(_node("rpi-5b-8gb-2400mhz"), 10**8).link_bits_per_second
    assert point.value == pytest.approx(94.148e6, rel=1e-4)
    assert point.source == "cluster.toml"
    assert "937 Mbit/s" in point.note


def test_a_link_that_nobody_measured_has_the_payload_of_its_nominal_rate() -> None:
    point = set_points(_node("rpi-5b-8gb-3000mhz"), GBIT).link_bits_per_second
    assert point.value == pytest.approx(941.48e6, rel=1e-4)
    assert "nominal" in point.note


def test_wifi_is_no_ethernet(tmp_path: Path) -> None:
    figures = OWN | {"iperf3_bits_per_second": [(5e7, {"interface": "WiFi"})]}
    figures["link_bits_per_second"] = [(7e7, {"interface": "WiFi"})]
    with pytest.raises(UsageError, match="no source gives the Ethernet rate of the board own"):
        set_points(_node(_own(tmp_path, _entry(figures))), GBIT)


def test_a_slower_bus_behind_the_link_counts(tmp_path: Path) -> None:
    figures = {"sysbench_cpu_events_per_second": OWN["sysbench_cpu_events_per_second"]}
    figures["link_bits_per_second"] = [(1e9, {"interface": "Ethernet"})]
    figures["ethernet_most_bits_per_second"] = [(3e8, {"limit": "USB 2.0"})]
    point = set_points(_node(_own(tmp_path, _entry(figures))), GBIT).link_bits_per_second
    assert point.value == pytest.approx(3e8 * 1448 / 1538)


def test_less_memory_than_the_board_has_is_noted() -> None:
    point = set_points(_node("rpi-5b-8gb-2400mhz", memory_bytes=2 * GIB), GBIT).memory_bytes
    assert (point.value, point.source) == (2 * GIB, "cluster.toml")
    assert point.note == "2 GiB of memory, the board has 8 GiB"


def test_a_board_of_ones_own_is_read_as_its_probes_wrote_it(tmp_path: Path) -> None:
    points = set_points(_node(_own(tmp_path, _entry(OWN))), GBIT)
    assert points.cpu_events_per_second.value == 90.0
    assert points.cpu_events_per_second.note == "with 8 threads"
    assert points.link_bits_per_second.value == pytest.approx(9.3e8)
    assert points.link_bits_per_second.note == "link: mean of 2 figures"


def test_a_disk_is_known_from_a_board_with_the_same_chip_and_clock(tmp_path: Path) -> None:
    entry = _entry(OWN, hardware="Broadcom BCM2712, 4 x Cortex-A76")
    disk = set_points(_node(_own(tmp_path, entry), "samsung-pro-plus-256gb"), GBIT).disk
    assert disk
    assert disk.read_iops.value == 6405
    assert disk.read_iops.note == (
        "disk: measured in rpi-5b-8gb-2400mhz, which has the same chip and clock"
    )


@pytest.mark.parametrize("hardware", ["", "Broadcom BCM2711", "Broadcom"])
def test_another_chip_or_none_gives_no_disk(tmp_path: Path, hardware: str) -> None:
    path = _own(tmp_path, _entry(OWN, hardware=hardware))
    with pytest.raises(UsageError, match="writes of the medium samsung-pro-plus-256gb in"):
        set_points(_node(path, "samsung-pro-plus-256gb"), GBIT)


def test_figures_of_another_clock_are_not_carried() -> None:
    with pytest.raises(UsageError) as caught:
        set_points(_node("rpi-5b-8gb-3000mhz", NVME, "3.0"), GBIT)
    assert f"writes of the medium {NVME} by PCI Express 3.0 in the board rpi-5b-8gb-3000mhz" in (
        caught.value.message
    )
    assert caught.value.hint == (
        f'use board = "rpi-5b-8gb-2400mhz" with medium = "{NVME}", pcie = "3.0"; or leave the '
        "medium out to use this machine's own disk"
    )


@pytest.mark.parametrize(
    ("board", "near"),
    [
        ("rpi-2b", "rpi-3b"),
        ("rpi-5b-16gb-3000mhz", "rpi-5b-8gb-3000mhz"),
        ("rpi-4b-2gb-1500mhz", "rpi-4b-4gb-1500mhz"),
        ("rpi-4b-4gb-1800mhz", "rpi-4b-8gb-1800mhz"),
    ],
)
def test_a_board_without_figures_of_its_cpu_is_refused_with_the_nearest(
    board: str, near: str
) -> None:
    with pytest.raises(UsageError) as caught:
        set_points(_node(board), GBIT)
    assert caught.value.message.startswith("node worker1 cannot emulate its board:\n")
    assert f"no source gives `sysbench cpu` of the board {board} with" in caught.value.message
    assert "rpi-3b, rpi-4b-4gb-1500mhz, rpi-4b-8gb-1800mhz, rpi-5b" in caught.value.message
    assert caught.value.hint == f'use board = "{near}"'


def test_everything_that_is_missing_is_said_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        set_points(_node("rpi-zero-w", "sony-sd-16gb-class10"), GBIT)
    for words in ("sysbench cpu", "Ethernet rate", "medium sony-sd", "used with: none"):
        assert words in caught.value.message
    assert re.fullmatch(r'use board = "[\w-]+" with medium = "[\w-]+"', caught.value.hint)


def test_a_medium_measured_elsewhere_gets_one_measured_here() -> None:
    with pytest.raises(UsageError) as caught:
        set_points(_node("rpi-5b-8gb-2400mhz", "samsung-evo-32gb"), GBIT)
    assert "used with: rpi-3b, rpi-4b-4gb-1500mhz" in caught.value.message
    assert 'board = "rpi-5b-8gb-2400mhz" with medium = "samsung-pro' in caught.value.hint


def test_a_medium_needs_its_version_of_pcie() -> None:
    with pytest.raises(UsageError, match=r"2400mhz with pcie 2\.0, rpi-5b-8gb-2400mhz with pcie 3"):
        set_points(_node("rpi-5b-8gb-2400mhz", NVME), GBIT)


def test_a_node_without_a_board_is_refused() -> None:
    node = make_node("n", cores=1)
    with pytest.raises(UsageError, match="node n has no board"):
        set_points(node, GBIT)


def _known(board: str, medium: str, pcie: str) -> NodeSetPoints | None:
    try:
        return set_points(_node(board, medium, pcie, find_board(board).memory_bytes), GBIT)
    except UsageError:
        return None


def test_the_page_lists_every_usable_board_and_medium() -> None:
    """The two tables of docs/reference/twin.md hold what the catalog gives, and all of it."""
    text = PAGE.read_text()
    boards = {}
    for name in entry_names("boards"):
        if points := _known(name, "", ""):
            boards[name] = [
                f"{points.cpu_events_per_second.value:,.0f}",
                f"{points.link_bits_per_second.value / 1e6:g}",
            ]
    assert _table(text, "usable-boards", keys=1) == {(name,): row for name, row in boards.items()}
    pairs = {}
    for medium in entry_names("media"):
        figures = find_part("media", medium).figures
        for pcie in sorted({row.figure.conditions.get("pcie", "") for row in figures}):
            for board in boards:
                points = _known(board, medium, pcie)
                if points and points.disk:
                    rates = (points.disk.read_bytes_per_second, points.disk.write_bytes_per_second)
                    iops = (points.disk.read_iops, points.disk.write_iops)
                    pairs[board, medium, pcie or "-"] = [
                        *(f"{point.value / 1e6:.1f}" for point in rates),
                        *(f"{point.value:,.0f}" for point in iops),
                    ]
    assert _table(text, "usable-media", keys=3) == pairs


def _table(text: str, mark: str, *, keys: int) -> dict[tuple[str, ...], list[str]]:
    lines = text.partition(f"<!-- {mark} -->")[2].lstrip("\n").partition("\n\n")[0].splitlines()
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines[2:]]
    return {tuple(row[:keys]): row[keys : keys + (2 if keys == 1 else 4)] for row in rows}
