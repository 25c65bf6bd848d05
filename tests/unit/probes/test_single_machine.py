"""One program on one node: its input, its time, and the proof that its output was right."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_dataset
from tests.unit.probes.answering import Answering, done, make_site

from boardcluster.datasets.text import from_file
from boardcluster.errors import CapacityError, ProbeOutputError, RemoteError
from boardcluster.probes import single_count, single_grep, single_machine, single_sort
from boardcluster.probes.base import Probe, Site
from boardcluster.probes.node import single_machine as node
from boardcluster.probes.single_machine import LineSet, Text, fitting_sizes, text_of
from boardcluster.records import Dataset, ProbeFigure, ProbeMode
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.node_rpc import CacheDrop
from boardcluster.workloads.grep.workload import WORKLOAD as GREP
from boardcluster.workloads.wordcount.counting import count_words

PROBES = (single_sort.PROBE, single_grep.PROBE, single_count.PROBE)
TOOLS = {tool.program for probe in PROBES for tool in probe.tools}

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, TOOLS)), reason=f"one of {', '.join(sorted(TOOLS))} is missing here"
)

UNIT = (
    b"year,origin,dest\n"
    b"2013,ATL,LGA\n"
    b"  2013,JFK,ATL 2013,ATL,ATL\t2014\n"
    b"\n"
    b"one\x0bword and\xc2\xa0another\rthird\x0cfourth \n"
    b"2013,ATL,LGA\n"
)
"""Lines with several matches, every delimiter of words, and two blanks that are none."""

SIZES_BYTES = (len(UNIT) - 10, 10_000)


@pytest.fixture
def drops(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What the next drops of the page cache say; the last one stays. None is done."""
    answers = [True]

    def drop(_: object) -> CacheDrop:
        dropped = answers.pop(0) if len(answers) > 1 else answers[0]
        return CacheDrop(dropped=dropped, reason="" if dropped else "not root", boot_id="b")

    monkeypatch.setattr(single_machine, "drop_caches", drop)
    return answers


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, drops: list[bool]) -> Path:
    """Small sizes, and a small text for the flights; a folder for a site."""
    del drops
    monkeypatch.setattr(single_machine, "SIZES_BYTES", dict.fromkeys(ProbeMode, SIZES_BYTES))
    flights = tmp_path / "flights.csv"
    flights.write_bytes(UNIT)

    def prepare(*, size_bytes: int | None, cache: Path) -> Dataset:
        assert (size_bytes, cache) == (None, Path("/cache"))
        return make_dataset(flights, size_bytes=len(UNIT))

    monkeypatch.setattr(single_machine, "prepare_airline", prepare)
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


def site(folder: Path, **more: Any) -> Site:
    named = {"remote": LocalRemote("pi1"), "folder": str(folder), "cores": 2}
    return make_site(**{**named, "settings": {"cache": "/cache"}, **more})


def conditions(figures: tuple[ProbeFigure, ...], name: str) -> list[dict[str, str]]:
    return [figure.conditions for figure in figures if figure.name == name]


# Input


def written(folder: Path, count: int, *, seed: int = 7) -> dict[str, int]:
    path = folder / "records"
    return node.records({"path": str(path), "count": count, "seed": seed})


def test_a_record_is_a_line_of_a_hundred_bytes_with_a_printable_key(tmp_path: Path) -> None:
    made = written(tmp_path, 50_001)  # more than two chunks
    data = (tmp_path / "records").read_bytes()
    rows = [data[place : place + 100] for place in range(0, len(data), 100)]
    assert made == {"records": 50_001, "checksum": sum(map(zlib.crc32, rows))}
    assert all(row.endswith(b"\r\n") and row.count(b"\n") == 1 and len(row) == 100 for row in rows)
    keys = {row[:10] for row in rows}
    assert len(keys) == 50_001
    assert {byte for key in keys for byte in key} == set(range(32, 127))
    assert [int(row[12:44], 16) for row in rows] == list(range(50_001))


def test_records_depend_on_the_seed_alone(tmp_path: Path) -> None:
    sums = [written(tmp_path, 100, seed=seed)["checksum"] for seed in (7, 7, 8)]
    assert sums[0] == sums[1] != sums[2]


@pytest.mark.parametrize(
    ("spoil", "changed"),
    [
        (sorted, set()),
        (lambda rows: rows, {"descents"}),
        (lambda rows: sorted(rows)[1:], {"records", "checksum"}),
        (lambda rows: [sorted(rows)[0], *sorted(rows)[:-1]], {"checksum"}),
        (lambda rows: [row[:-1] + b"x" for row in sorted(rows)], {"checksum"}),
        (lambda rows: [*sorted(rows), b"more"], {"records", "checksum", "descents"}),
    ],
)
def test_what_is_wrong_with_sorted_records_is_seen(
    tmp_path: Path, spoil: Callable[[list[bytes]], list[bytes]], changed: set[str]
) -> None:
    made = written(tmp_path, 1000)
    data = (tmp_path / "records").read_bytes()
    rows = [data[place : place + 100] for place in range(0, len(data), 100)]
    (tmp_path / "out").write_bytes(b"".join(spoil(rows)))
    found = node.sorted_records({"path": str(tmp_path / "out")})
    right = {**made, "descents": 0}
    assert {name for name in right if found[name] != right[name]} == changed


@pytest.mark.parametrize("size_bytes", [20, len(UNIT) - 1, len(UNIT), len(UNIT) + 5, 1234])
def test_the_text_is_that_of_campaigns(tmp_path: Path, size_bytes: int) -> None:
    unit, grown = tmp_path / "flights.csv", tmp_path / "grown"
    unit.write_bytes(UNIT)
    request = {"source": str(unit), "path": str(grown), "size_bytes": size_bytes}
    assert node.grow(request) == {"size_bytes": text_of(UNIT, size_bytes).size_bytes}
    theirs = from_file(unit, size_bytes=size_bytes, cache=tmp_path / "cache")
    assert grown.read_bytes() == theirs.path.read_bytes()


def test_a_text_without_a_last_newline_is_refused() -> None:
    with pytest.raises(ProbeOutputError, match="do not end with a newline"):
        text_of(b"a\nb", 10)


@pytest.mark.parametrize("size_bytes", [*SIZES_BYTES, len(UNIT)])
def test_words_are_those_of_the_wordcount(tmp_path: Path, size_bytes: int) -> None:
    text = text_of(UNIT, size_bytes)
    whole = tmp_path / "whole"
    whole.write_bytes(text.unit * text.copies + text.rest)
    count_words(whole, target=tmp_path / "counts", work=tmp_path)
    ours = sorted(b"%b\t%d\n" % (word, count) for word, count in text.words().items())
    assert ours == (tmp_path / "counts").read_bytes().splitlines(keepends=True) != []


def test_matches_are_counted_over_all_copies_and_the_rest() -> None:
    text = Text(unit=b"ATLATL\nx\n", copies=3, rest=b"ATL\n")
    assert text.occurrences(b"ATL") == 7
    found = text.matching(b"ATL")
    assert found == LineSet(lines=4, checksum=3 * zlib.crc32(b"ATLATL") + zlib.crc32(b"ATL"))


# Programs


@pytest.mark.parametrize(
    ("probe", "name", "distinct"),
    [
        (single_sort.PROBE, "single_sort", [{"threads": "1"}, {"threads": "2"}]),
        (single_grep.PROBE, "single_grep", [{"form": "counts"}, {"form": "lines"}]),
        (single_count.PROBE, "single_count", [{"threads": "1"}]),
    ],
)
def test_a_probe_gives_time_and_rate_at_each_size(
    small: Path, probe: Probe, name: str, distinct: list[dict[str, str]]
) -> None:
    figures = probe.measure(site(small))
    seconds = [figure for figure in figures if figure.name == f"{name}_seconds"]
    rates = [figure for figure in figures if figure.name == f"{name}_bytes_per_second"]
    assert [figure.conditions["size_bytes"] for figure in seconds] == [
        str(size) for size in SIZES_BYTES for _ in distinct
    ]
    for one, other, wanted in zip(seconds, rates, distinct * 2, strict=True):
        assert one.conditions == other.conditions
        assert one.conditions.items() >= {**wanted, "cache": "dropped", "repeats": "2"}.items()
        size_bytes = int(one.conditions["size_bytes"])
        text_bytes = text_of(UNIT, size_bytes).size_bytes
        sort_bytes = size_bytes // 100 * 100
        moved = sort_bytes if probe is single_sort.PROBE else text_bytes
        assert one.value * other.value == pytest.approx(moved)


def test_paper_mode_repeats_more_often(small: Path) -> None:
    figures = single_count.PROBE.measure(site(small, mode=ProbeMode.PAPER))
    assert {figure.conditions["repeats"] for figure in figures} == {"3"}


@pytest.mark.parametrize(("said", "cache"), [([True, False, True], "kept"), ([False], "kept")])
def test_a_cache_that_could_not_be_dropped_is_said(
    small: Path, drops: list[bool], said: list[bool], cache: str
) -> None:
    drops[:] = said
    figures = single_count.PROBE.measure(site(small))
    assert figures[0].conditions["cache"] == cache


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("cat",), r"what sort wrote: .*'descents': [1-9]"),
        (("head", "-n", "3"), r"what sort wrote: .*'records': 3,"),
        (("sort", "-r"), r"what sort wrote: .*'descents': [1-9]"),
    ],
)
def test_a_sort_that_does_not_sort_is_found(
    small: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], words: str
) -> None:
    monkeypatch.setattr(
        single_machine, "SIZES_BYTES", dict.fromkeys(ProbeMode, (10_000,))
    )  # one record would be in order
    monkeypatch.setattr(
        single_sort, "sort_argv", lambda where, _: (*command, f"{where.folder}/input")
    )
    with pytest.raises(ProbeOutputError, match=words):
        single_sort.PROBE.measure(site(small))


def test_a_count_that_is_wrong_is_found(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_count, "COUNT", single_count.COUNT.replace(r"\r", ""))
    with pytest.raises(ProbeOutputError, match="what perl counted"):
        single_count.PROBE.measure(site(small))


@pytest.mark.parametrize("form", ["counts", "lines"])
def test_a_search_that_is_wrong_is_found(
    small: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    stages = single_grep.stages_of

    def wrong(asked: str, path: str) -> tuple[tuple[str, ...], ...]:
        first, *rest = stages(asked, path)
        return ((*first[:3], "LGA", *first[4:]) if asked == form else first, *rest)

    monkeypatch.setattr(single_grep, "stages_of", wrong)
    with pytest.raises(ProbeOutputError, match="what grep found"):
        single_grep.PROBE.measure(site(small))


def test_the_pattern_is_that_of_the_workload() -> None:
    assert GREP.parameters["pattern"].default == single_grep.PATTERN


def test_a_program_that_fails_is_named_with_its_words(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_sort, "sort_argv", lambda *_: ("sort", "--", "/nowhere"))
    with pytest.raises(RemoteError, match=r"sort ended with status 2: .*/nowhere"):
        single_sort.PROBE.measure(site(small))


def test_a_stage_in_the_middle_that_fails_is_found(small: Path) -> None:
    request = {
        "folder": str(small),
        "stages": [["echo", "b"], ["sh", "-c", "cat; exit 3"], ["cat"]],
        "output": "out",
    }
    answer = node.time_stages(request)
    assert answer["statuses"] == [0, 3, 0]
    assert answer["seconds"] > 0
    assert (small / "out").read_bytes() == b"b\n"
    assert sorted(path.name for path in small.iterdir()) == ["out"]


def test_sort_gets_half_of_the_nodes_memory_and_the_nodes_medium() -> None:
    place = make_site(Answering({}), memory_bytes=1 << 30)
    assert single_sort.sort_argv(place, 4) == (
        *("sort", "--parallel=4", "-S", "512M", "-T", "/data/probe", "--", "/data/probe/input"),
    )


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"seconds": 0.0, "statuses": [0], "words": ""},
        {"seconds": 1.0, "statuses": [], "words": ""},
        {"seconds": 1.0, "statuses": [0, 0], "words": ""},
        {"seconds": "soon", "statuses": [0], "words": ""},
        [],
    ],
)
def test_a_timing_that_is_none_is_refused(drops: list[bool], answer: object) -> None:
    del drops
    remote = Answering({"time": lambda *_: done(answer)})
    with pytest.raises(ProbeOutputError, match="timing sort answered"):
        single_machine.measure_program(
            make_site(remote),
            ["sort"],
            name="single_sort",
            size_bytes=1,
            input_bytes=1,
            prove=lambda: None,
        )


@pytest.mark.parametrize("answer", [{}, {"lines": 1}, {"lines": None, "checksum": 1}, 7])
def test_lines_that_are_none_are_refused(answer: object) -> None:
    remote = Answering({"lines": lambda *_: done(answer)})
    expected = LineSet(lines=1, checksum=1)
    with pytest.raises(ProbeOutputError, match="the lines of "):
        single_machine.check_lines(make_site(remote), "what came", expected, size_bytes=1)


# Space


def place(
    *, free_bytes: int, memory_bytes: int, file_system: str = "ext4"
) -> tuple[Site, list[str]]:
    told: list[str] = []
    text = f"    Avail Type\n{free_bytes} {file_system}\n"
    remote = Answering({"df": lambda *_: done(text)})
    return make_site(remote, memory_bytes=memory_bytes, tell=told.append), told


NEEDS: dict[str, int] = {"copies": 3, "memory_bytes": 150_000_000}


def test_sizes_that_do_not_fit_are_left_out_and_the_sums_are_told() -> None:
    where, told = place(free_bytes=500_000_000, memory_bytes=1 << 30)
    assert fitting_sizes(where, "sort", **NEEDS) == (64_000_000,)
    assert "\n".join(told) == (
        "left out: sort on 256 MB: 3 x 256 MB = 768 MB on disk is more than 90% of the 500 MB that "
        "are free in /data/probe"
    )
    where, told = place(free_bytes=768_000_000 * 10 // 9 + 2, memory_bytes=1 << 30)
    assert fitting_sizes(where, "sort", **NEEDS) == (64_000_000, 256_000_000)
    assert told == []


def test_a_node_on_which_nothing_fits_is_refused() -> None:
    where, _ = place(free_bytes=100_000_000, memory_bytes=256_000_000)
    with pytest.raises(CapacityError) as caught:
        fitting_sizes(where, "perl", **NEEDS)
    assert caught.value.message == (
        "node1: perl on 64 MB: 3 x 64 MB = 192 MB on disk is more than 90% of the 100 MB that are "
        "free in /data/probe and 150 MB in memory is more than 50% of its 256 MB; perl on 256 MB: "
        "3 x 256 MB = 768 MB on disk is more than 90% of the 100 MB that are free in /data/probe "
        "and 150 MB in memory is more than 50% of its 256 MB"
    )


def test_a_disk_in_memory_counts_as_memory() -> None:
    where, told = place(free_bytes=10**10, memory_bytes=10**9, file_system="tmpfs")
    assert fitting_sizes(where, "sort", **NEEDS) == (64_000_000,)
    assert "\n".join(told) == (
        "left out: sort on 256 MB: 3 x 256 MB = 768 MB and 150 MB in memory is more than 50% of "
        "its 1 GB"
    )
