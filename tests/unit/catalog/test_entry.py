"""A board's entry: written, read back, and refused where it is wrong."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import make_probe_run

from boardcluster.catalog.entry import BoardEntry, entry_of, read_board, render_board
from boardcluster.catalog.shown import conditions_text, show_figure, unit_of
from boardcluster.errors import SpecError, UsageError
from boardcluster.records import ProbeFigure, ProbeMode, ProbeRun

RATE = ProbeFigure(
    name="sysbench_cpu_events_per_second", value=24699.51, conditions={"threads": "1"}
)
TIME = ProbeFigure(name="build_seconds", value=120.0, conditions={})
RUN = make_probe_run(
    "sysbench-cpu",
    id="20260801-120000-123abcd",
    mode=ProbeMode.PAPER,
    node="pi1",
    cluster="lab",
    versions=("sysbench 1.0.20",),
    hardware='pi1: Raspberry Pi 5 "B", 8 GiB',
    figures=(RATE, TIME),
)


def entry(*runs: ProbeRun) -> BoardEntry:
    return entry_of(
        runs,
        name="Raspberry Pi 5 Model B Rev 1.0",
        cores=4,
        clock_hertz=2.4e9,
        memory_bytes=8 << 30,
    )


def read(tmp_path: Path, text: str) -> BoardEntry:
    (tmp_path / "board.toml").write_text(text)
    return read_board(tmp_path / "board.toml")


def test_an_entry_is_read_back_as_it_was(tmp_path: Path) -> None:
    odd = ProbeFigure(
        name="fio_latency_milliseconds",
        value=1e-9,
        conditions={"a b": 'quote " and \\ and \n', "ü": "\x7f\x01"},
    )
    made = entry(RUN, replace(RUN, id="2", figures=(odd,), versions=("fio-3.33",)))
    assert read(tmp_path, render_board(made)) == made
    assert made.versions == ("fio-3.33", "sysbench 1.0.20")
    bare = replace(made, clock_hertz=None, versions=())
    assert read(tmp_path, render_board(bare)) == bare


def test_an_entry_is_tidy_toml() -> None:
    text = render_board(entry(RUN))
    assert (
        """\
[[figure]]
name = "sysbench_cpu_events_per_second"
value = 24699.51
unit = "events per second"
conditions = { threads = "1" }
source = "probe 20260801-120000-123abcd 2026-08-01"
"""
        in text
    )
    assert tomllib.loads(text)["id"] == "raspberry-pi-5-model-b-rev-1-0"


def test_the_last_run_counts_and_failures_do_not() -> None:
    later = replace(RUN, id="later", figures=(replace(RATE, value=2.0),))
    failed = replace(RUN, id="failed", figures=(), reason="it hung")
    made = entry(RUN, later, failed)
    assert [(row.figure.value, row.source) for row in made.figures] == [
        (2.0, "probe later 2026-08-01"),
        (120.0, f"probe {RUN.id} 2026-08-01"),
    ]


def test_a_peer_is_a_condition_and_emulation_is_said() -> None:
    made = entry(replace(RUN, peer="pi2", emulated=True))
    assert made.emulated
    assert made.figures[1].figure.conditions == {"peer": "pi2"}


@pytest.mark.parametrize(
    "runs",
    [(), (replace(RUN, reason="it hung", figures=()),), (RUN, replace(RUN, node="pi2"))],
)
def test_an_entry_is_of_one_node(runs: tuple[ProbeRun, ...]) -> None:
    with pytest.raises(UsageError, match="figures of one node"):
        entry(*runs)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("cores = 4", "cores = 0", r"board\.toml:4: cores: 0 is not allowed"),
        ("cores = 4", "cors = 4", 'nearest|did you mean "cores"'),
        ("value = 24699.51", 'value = "fast"', "a number"),
        ("value = 24699.51", "value = nan", "a number"),
        ('unit = "seconds"', 'unit = "hours"', "unit of build_seconds is 'seconds', not 'hours'"),
        ('threads = "1"', "threads = 1", "conditions"),
        ("id = ", 'id = "Pi 5" #', "a-z, 0-9 and hyphens"),
        ("[[figure]]", "[figure", "not TOML"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    text = render_board(entry(RUN))
    assert old in text
    with pytest.raises(SpecError, match=words):
        read(tmp_path, text.replace(old, new, 1))


def test_a_missing_entry_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such file") as caught:
        read_board(tmp_path / "board.toml")
    assert "--save-board" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "value", "shown", "unit"),
    [
        ("stream_copy_bytes_per_second", 9.8123e9, ("stream copy", "9,812", "MB/s"), "bytes"),
        ("build_seconds", 3.74712, ("build", "3.747", "s"), "seconds"),
        ("a_bits_per_second", 9.37e8, ("a", "937.0", "Mbit/s"), "bits per second"),
        ("cpu_clock_hertz", 2.4e9, ("cpu clock", "2,400", "MHz"), "hertz"),
        ("a_latency_microseconds", 51.2, ("a latency", "51.2", "µs"), "microseconds"),
        ("fio_fsync_mean_seconds", 0.0019, ("fio fsync mean", "1.9", "ms"), "seconds"),
        ("a_things", 3.0, ("a things", "3", ""), "things"),
    ],
)
def test_figures_are_shown_in_handy_units(
    name: str, value: float, shown: tuple[str, str, str], unit: str
) -> None:
    assert show_figure(ProbeFigure(name=name, value=value)) == shown
    assert unit_of(name).startswith(unit)


def test_points_of_curves_stay_out_of_an_entry() -> None:
    point = replace(TIME, conditions={"phase": "idle", "second": "3"})
    made = entry(replace(RUN, figures=(RATE, point)))
    assert [row.figure for row in made.figures] == [RATE]


def test_conditions_are_one_line() -> None:
    assert conditions_text({"prime_limit": "2000", "threads": "4"}) == "prime limit 2000, threads 4"
    assert conditions_text({}) == ""


def test_sources_of_what_a_board_did_not_tell_itself_are_kept(tmp_path: Path) -> None:
    made = replace(entry(RUN), sources={"cores": "a paper Table 1", "memory_bytes": "its maker"})
    text = render_board(made)
    assert 'sources = { cores = "a paper Table 1", memory_bytes = "its maker" }' in text
    assert read(tmp_path, text) == made
    with pytest.raises(SpecError, match="sources"):
        read(tmp_path, text.replace("{ cores", "{ colour"))
