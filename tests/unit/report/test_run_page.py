"""The page of a run, of synthetic telemetry: what it shows, and that it stays readable."""

from __future__ import annotations

import csv
import io
import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from tests.unit.analysis.telemetry import DURATION_SECONDS, NAN, node, times, when
from tests.unit.report.shown import write_report

from boardcluster.analysis.telemetry import node_summaries
from boardcluster.errors import StoreError
from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    Engine,
    Fingerprint,
    NodeSamples,
    Result,
    Telemetry,
    Verdict,
)
from boardcluster.report.curves import Band, Chart, Line, Mark, csv_link, describe, draw
from boardcluster.report.run_curves import MOST_LINES, sections
from boardcluster.report.run_marks import disturbances
from boardcluster.report.run_page import page_name, write_run_page

Make = Callable[..., Result]
NAN_ROW = np.full(4, NAN)


def chart(*rows: object, **fields: object) -> Chart:
    lines = tuple(
        Line(label=f"n{place}", values=np.asarray(row, dtype=np.float64), colour=place)
        for place, row in enumerate(rows)
    )
    named = {"name": "cpu", "title": "CPU", "unit": "cores", "edges": np.arange(5.0), **fields}
    return Chart(lines=lines, **named)  # type: ignore[arg-type]


def parts(svg: str, kind: str) -> list[ET.Element]:
    root = ET.fromstring(svg)  # it is well-formed, or this raises
    return [row for row in root.iter() if kind in row.attrib.get("class", "").split()]


def test_a_line_is_drawn_from_its_lowest_to_its_highest() -> None:
    [path] = parts(draw(chart([0.0, 1.0, 2.0, 1.0])), "line")
    heights = [float(point.split()[1]) for point in path.attrib["d"][1:].split("L")]
    assert heights[0] > heights[1] > heights[2] < heights[3]


def test_unknown_values_leave_a_gap_and_a_single_one_is_still_seen() -> None:
    found = parts(draw(chart([1.0, NAN, 2.0, 3.0])), "line")
    assert [row.attrib["d"].count("L") for row in found] == [1, 1]
    assert parts(draw(chart(NAN_ROW)), "line") == []


def test_stacked_lines_stand_upon_each_other() -> None:
    low, high = parts(draw(chart([1.0] * 4, [2.0] * 4, stacked=True)), "area")
    bottom_of_high = float(high.attrib["d"].rpartition(" ")[2].removesuffix("Z"))
    top_of_low = float(low.attrib["d"][1:].partition("L")[0].split()[1])
    assert bottom_of_high == pytest.approx(top_of_low)


def test_a_chart_without_values_or_of_one_value_has_an_axis() -> None:
    for row in (NAN_ROW, np.zeros(4), np.full(4, 7.0)):
        for from_zero in (True, False):
            assert parts(draw(chart(row, from_zero=from_zero)), "grid")
    assert draw(chart())


def test_texts_are_escaped_and_the_chart_is_said_in_words() -> None:
    evil = '<script>alert("1")</script>'
    svg = draw(
        replace(
            chart([1.0] * 4, name=f'x"{evil}', title=evil, unit=evil),
            phases=((evil, 0.0, 4.0),),
            marks=(Mark(label=evil, begin_seconds=1.0, end_seconds=2.0),),
        )
    )
    assert "<script" not in svg
    assert ET.fromstring(svg)[0].text == describe(
        replace(
            chart([1.0] * 4, title=evil, unit=evil),
            marks=(Mark(label=evil, begin_seconds=1.0, end_seconds=2.0),),
        )
    )
    assert describe(chart([1.0, 3.0, NAN, 2.0])) == "CPU, in cores, over 4 s; n0: mean 2, 1 to 3"


def test_marks_and_phases_lie_within_the_drawing() -> None:
    svg = draw(
        replace(
            chart([1.0] * 4),
            phases=(("write", -1.0, 2.0), ("read", 2.0, 99.0), ("never", 50.0, 60.0)),
            marks=(
                Mark(label="hot", begin_seconds=-5.0, end_seconds=1.0),
                Mark(label="late", begin_seconds=9.0, end_seconds=10.0),
            ),
        )
    )
    width = float(ET.fromstring(svg).attrib["viewBox"].split()[2])
    rects = parts(svg, "phase") + parts(svg, "mark")
    assert len(rects) == 3
    for rect in rects:
        left = float(rect.attrib["x"])
        assert 0 <= left <= left + float(rect.attrib["width"]) <= width


def shaded(svg: str) -> list[tuple[float, float]]:
    rows = parts(svg, "p0")
    return [(float(row.attrib["x"]), float(row.attrib["width"])) for row in rows]


def test_phases_of_the_engine_are_shaded_in_place_of_their_submission() -> None:
    plain = replace(chart([1.0] * 4), phases=(("sort", 0.0, 4.0),))
    inner = (("start", 0.5, 1.0), ("map", 1.0, 3.0), ("commit", 3.0, 3.5))
    svg = draw(replace(plain, parts=inner))

    assert len(shaded(draw(plain))) == 1
    (start, _), (commit, _) = shaded(svg)  # every other one
    assert start < commit
    assert [row.text for row in parts(svg, "phase-name")] == ["start", "map", "commit"]
    titles = [row[0].text for row in parts(svg, "phase")]
    assert titles == ["start, 0.5 to 1.0 s", "map, 1.0 to 3.0 s", "commit, 3.0 to 3.5 s"]


def test_a_name_without_room_is_cut_to_what_says_it() -> None:
    inner = (("map", 0.0, 3.2), ("reduce after the last map", 3.2, 4.0))
    svg = draw(replace(chart([1.0] * 4), phases=(("sort", 0.0, 4.0),), parts=inner))

    assert [row.text for row in parts(svg, "phase-name")] == ["map", "reduce"]


def test_several_submissions_with_phases_have_a_row_of_names_above_them() -> None:
    outer = (("write", 0.0, 2.0), ("read", 2.0, 4.0))
    svg = draw(replace(chart([1.0] * 4), phases=outer, parts=(("map", 0.2, 1.8),)))

    rows = {row.text: float(row.attrib["y"]) for row in parts(svg, "phase-name")}
    assert rows["write"] == rows["read"] < rows["map"]
    assert len(parts(svg, "phase")) == 2  # map, and read, which has no phases of its own
    flat = draw(replace(chart([1.0] * 4), phases=outer))
    heights = [float(ET.fromstring(row).attrib["viewBox"].split()[3]) for row in (svg, flat)]
    assert heights[0] > heights[1]
    lowest = max(float(row.attrib["y"]) for row in parts(svg, "phase-name"))
    assert lowest < min(float(row.attrib["y"]) for row in parts(svg, "phase"))


def test_names_of_phases_never_lie_over_each_other() -> None:
    stages = tuple((f"stage {i}: collect at a.py:1", i * 0.5, i * 0.5 + 1.9) for i in range(5))
    svg = draw(replace(chart([1.0] * 4), phases=(("count", 0.0, 4.0),), parts=stages))

    spans = [
        (float(row.attrib["x"]), float(row.attrib["x"]) + 6.0 * len(row.text or ""))
        for row in parts(svg, "phase-name")
    ]
    assert len(spans) >= 2
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
    assert {(row.text or "").partition(":")[0] for row in parts(svg, "phase-name")} <= {
        f"stage {i}" for i in range(5)
    }


@pytest.mark.parametrize(
    ("seconds", "word"), [(4.0, "seconds"), (4000.0, "minutes"), (40_000.0, "hours")]
)
def test_long_runs_count_in_minutes_or_hours(seconds: float, word: str) -> None:
    assert f"{word} from the start" in draw(chart([1.0] * 4, edges=np.linspace(0, seconds, 5)))


def test_the_csv_holds_what_is_drawn() -> None:
    band = Band(label="all", low=np.zeros(4), high=np.ones(4))
    link = csv_link(replace(chart([1.0, NAN, 2.5, 3.0]), bands=(band,)))
    rows = list(csv.reader(io.StringIO(unquote(link.partition(",")[2]))))
    assert rows[0] == ["seconds", "n0 (cores)", "all: from (cores)", "all: to (cores)"]
    assert rows[1:3] == [["1.00", "1", "0", "1"], ["2.00", "", "0", "1"]]
    assert len(rows) == 5


def emulated_run() -> Telemetry:
    own = {
        "cpu_idle_seconds": NAN,
        "clock_measured_hertz": NAN,
        "storage_read_bytes": 1e6,
        "group_memory_bytes/datanode": 1e8,
    }
    return Telemetry(
        duration_seconds=DURATION_SECONDS,
        nodes=(
            *(node(f"worker{i}", scope="node", columns=own) for i in (1, 2)),
            node("host", columns={"disk_read_bytes/vda": 2e6, "clock_hertz/cpu0": 2.4e9}),
        ),
        phases={"write": (0.0, 30.0), "read": (30.0, 60.0)},
    )


def boards(count: int, **columns: object) -> tuple[NodeSamples, ...]:
    warm = {"temperature_celsius": 55.0, "clock_hertz/cpu0": 1.5e9, **columns}
    return tuple(node(f"pi{i}", columns=warm) for i in range(count))  # type: ignore[arg-type]


def names(telemetry: Telemetry) -> set[str]:
    return {row.name for part in sections(telemetry, ()) for row in part.charts}


def test_an_emulated_cluster_shows_its_nodes_and_the_machine_below() -> None:
    assert names(emulated_run()) >= {
        *("cpu-worker1", "cpu-worker2", "cpu-host", "iowait", "disk-read"),
        *("network-received", "network-sent", "clock-measured", "clock-reported"),
        *("memory-own", "memory-available"),
    }
    [network] = [
        row
        for part in sections(emulated_run(), ())
        for row in part.charts
        if row.name == "network-sent"
    ]
    assert [line.label for line in network.lines] == ["worker1", "worker2"]


def test_few_boards_are_lines_and_many_are_quantiles() -> None:
    few = Telemetry(duration_seconds=60.0, nodes=boards(MOST_LINES))
    many = Telemetry(duration_seconds=60.0, nodes=boards(MOST_LINES + 1))
    for telemetry in (few, many):
        charts = [row for part in sections(telemetry, ()) for row in part.charts]
        assert all(len(row.lines) <= MOST_LINES for row in charts)
        [heat] = [row for row in charts if row.name == "temperature"]
        assert (len(heat.bands) == 2) == (telemetry is many)
    styles = {
        (line.colour, line.dashed)
        for part in sections(few, ())
        for row in part.charts
        for line in row.lines
    }
    assert len(styles) == MOST_LINES, "every line of a chart looks different"
    assert "cpu-busy" in names(many)
    assert "cpu-pi0" not in names(many)


def test_a_long_run_is_drawn_with_few_points() -> None:
    seconds = times(end_seconds=7200.0)
    telemetry = Telemetry(duration_seconds=7200.0, nodes=(node("pi1", seconds=seconds),))
    for part in sections(telemetry, ()):
        for row in part.charts:
            assert len(row.edges) <= 181


def test_nothing_is_drawn_of_what_nobody_measured() -> None:
    assert sections(Telemetry(duration_seconds=60.0, nodes=()), ()) == ()
    assert sections(Telemetry(duration_seconds=0.0, nodes=boards(1)), ()) == ()
    empty = replace(boards(1)[0], columns={})
    assert sections(Telemetry(duration_seconds=60.0, nodes=(empty,)), ()) == ()
    one = node("pi1", seconds=np.array([5.0]))
    assert sections(Telemetry(duration_seconds=60.0, nodes=(one,)), ())


def test_disturbances_are_found_with_their_times() -> None:
    at = times()
    hot = when(at, 4.0, outside=0.0, start_seconds=10.0, end_seconds=20.0)
    load = when(at, 0.5, outside=0.0, start_seconds=30.0, end_seconds=35.0)
    telemetry = Telemetry(
        duration_seconds=60.0,
        nodes=(
            node("pi1", columns={"throttle_bits": hot, "foreign_cpu_seconds": load}),
            node("pi2", columns={"quota_throttled_seconds": 0.2}),
            node("pi3"),
        ),
    )
    found = {(row.node, row.what): row for row in disturbances(telemetry)}
    assert set(found) == {
        ("pi1", "clock held back by the firmware"),
        ("pi1", "CPU used by other programs"),
        ("pi2", "held back by a CPU quota"),
    }
    [(begin, end)] = found["pi1", "clock held back by the firmware"].spans
    assert begin == pytest.approx(9.4, abs=0.5)
    assert end == pytest.approx(19.4, abs=0.5)
    assert found["pi2", "held back by a CPU quota"].spans == ((0.0, 60.0),)
    marked = [row for part in sections(telemetry, tuple(found.values())) for row in part.charts]
    [cpu] = [row for row in marked if row.name == "cpu-pi1"]
    assert {mark.label.partition(": ")[2] for mark in cpu.marks} == {
        "clock held back by the firmware",
        "CPU used by other programs",
    }
    assert not next(row for row in marked if row.name == "cpu-pi3").marks


def test_swapping_in_and_out_is_one_disturbance() -> None:
    at = times()
    columns = {
        f"swap_{way}_bytes": when(at, 1e6, outside=0.0, start_seconds=begin, end_seconds=begin + 10)
        for way, begin in (("out", 10.0), ("in", 15.0))
    }
    telemetry = Telemetry(duration_seconds=60.0, nodes=(node("pi1", columns=columns),))
    [found] = disturbances(telemetry)
    assert found.what == "swapping"
    assert found.seconds == pytest.approx(15.0, abs=1.1)


# The page


class Links(HTMLParser):
    """Every reference of a page, its ids, and tags that were opened and not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src", "xlink:href"):
                self.found.append(value or "")
            if name == "id":
                self.ids.append(value or "")


def attempt_of(result: Result) -> Attempt:
    assert result.attempt
    return result.attempt


def page(result: Result, telemetry: Telemetry | None, folder: Path) -> str:
    path = write_run_page(result, attempt_of(result), telemetry, folder=folder)
    assert path == folder / page_name(attempt_of(result))
    return path.read_text()


def test_the_page_says_what_it_was_and_why_it_cannot_be_trusted(make: Make, tmp_path: Path) -> None:
    reason = "host: other programs used 7 % of the machine"
    result = make(
        0,
        Engine.SPARK,
        20.5,
        measured={
            "verdict": Verdict.TAINTED,
            "verdict_reasons": (reason,),
            "remarks": ("page caches kept",),
        },
    )
    text = page(result, emulated_run(), tmp_path)
    assert "WordCount on Spark over 256" in text
    assert "<b>tainted</b>" in text
    shown = text.replace("\N{NO-BREAK SPACE}", " ")
    for words in (
        reason,
        "page caches kept",
        "emulated: nodes are network namespaces",
        "phase write",
    ):
        assert words in shown
    assert text.count("<svg") == text.count('download="run-')
    assert text.count("<svg") >= 10


@pytest.mark.parametrize("state", [AttemptState.FAILED, AttemptState.INVALID])
def test_a_run_that_ended_badly_is_not_called_valid_though_it_was_measured(
    state: AttemptState, make: Make, tmp_path: Path
) -> None:
    result = make(0, Engine.SPARK, 20.5, measured={"verdict": Verdict.VALID})
    lost = replace(attempt_of(result), state=state, reason="worker2 was lost")
    text = page(replace(result, attempt=lost), emulated_run(), tmp_path)
    assert f"<b>{state.value}</b>: worker2 was lost</p>" in text
    assert "<b>valid</b>" not in text


def with_engine(count: int) -> Telemetry:
    """A run of two submissions, the first with so many phases of the engine, each longer."""
    inner = {
        f"write/stage {i}: step": (1.0 + 0.1 * i, 1.0 + 0.1 * i + 0.5 + 0.01 * i)
        for i in range(count)
    }
    outer = {"write": (0.0, 30.0), **inner, "read": (30.0, 60.0)}
    return replace(emulated_run(), phases=outer)


def test_phases_of_the_engine_are_rows_of_one_table(make: Make, tmp_path: Path) -> None:
    text = page(make(0, Engine.SPARK, 60.0), with_engine(3), tmp_path)
    shown = text.replace("\N{NO-BREAK SPACE}", " ")
    assert shown.count("Every node in phase") == 2  # of each submission, as before
    assert "All nodes together in each phase of the engine; phases may overlap" in shown
    for name in ("write/stage 0: step", "write/stage 1: step", "write/stage 2: step"):
        assert shown.count(f">{name}<") == 1
    bare = page(make(0, Engine.SPARK, 60.0), emulated_run(), tmp_path)
    assert "phase of the engine;" not in bare


def test_a_table_of_phases_counts_nodes_and_not_the_machine_below_them_too(
    make: Make, tmp_path: Path
) -> None:
    text = page(make(0, Engine.SPARK, 60.0), with_engine(1), tmp_path)
    row = text[text.index(">write/stage 0: step<") :].partition("</tr>")[0]
    cells = re.findall(r'data-label="([^"]*)"><span>([^<]*)<', row)
    busy = [
        summary.cpu_busy_mean_cores or 0.0
        for summary in node_summaries(with_engine(1), "write/stage 0: step")
        if summary.scope == "node"
    ]
    assert len(busy) == 2
    assert dict(cells)["CPU busy, cores"] == f"{sum(busy):.2f}"


def test_of_very_many_phases_the_longest_are_shown_and_the_page_stays_small(
    make: Make, tmp_path: Path
) -> None:
    text = page(make(0, Engine.SPARK, 60.0), with_engine(100), tmp_path)
    assert "the 16 longest of 100" in text.replace("\N{NO-BREAK SPACE}", " ")
    assert ">write/stage 99: step<" in text
    assert ">write/stage 10: step<" not in text
    assert len(text) < 400_000


def test_the_page_of_an_emulated_board_says_whose_seconds_are_whose(
    make: Make, fingerprint: Fingerprint, tmp_path: Path
) -> None:
    result = make(
        0,
        Engine.SPARK,
        15.0,
        setup=replace(fingerprint, twin="4 x rpi-5b", limits="worker1: 0.35 cores"),
        measured={"dilation": 4.0, "remarks": ("time dilation 4.0: 60.0 s on this machine",)},
    )
    shown = page(result, emulated_run(), tmp_path).replace("\N{NO-BREAK SPACE}", " ")
    for words in (
        "emulated boards, dilation 4.0: nodes are network namespaces",
        "time dilation 4.0: 60.0 s on this machine",
        "<dt>Settings</dt><dd>emulated boards, dilation 4.0</dd>",
        "use this machine&#39;s time",
        "4 x rpi-5b",
    ):
        assert words in shown, words
    plain = page(make(0, Engine.SPARK, 15.0), emulated_run(), tmp_path)
    assert "dilation" not in plain


def test_a_quota_that_is_meant_disturbs_nothing() -> None:
    held = node("worker1", scope="node", columns={"quota_throttled_seconds": 0.6})
    telemetry = Telemetry(duration_seconds=DURATION_SECONDS, nodes=(held,))
    assert [row.what for row in disturbances(telemetry)] == ["held back by a CPU quota"]
    assert disturbances(telemetry, limited=True) == ()


def test_a_node_with_a_quota_is_drawn_up_to_it() -> None:
    quota = node("worker1", scope="node", columns={"quota_cores": 0.35}, cores=4)
    plain = node("worker2", scope="node", columns={"quota_cores": NAN}, cores=4)
    telemetry = Telemetry(duration_seconds=DURATION_SECONDS, nodes=(quota, plain, node("host")))
    charts = {chart.name: chart for row in sections(telemetry, ()) for chart in row.charts}
    assert (charts["cpu-worker1"].unit, charts["cpu-worker1"].most) == ("cores, of 0.35", 0.35)
    assert (charts["cpu-worker2"].unit, charts["cpu-worker2"].most) == ("cores, of 4", 4.0)


def test_the_page_opens_without_a_network_and_every_anchor_is_there(
    make: Make, tmp_path: Path
) -> None:
    text = page(make(0, Engine.SPARK, 20.5), emulated_run(), tmp_path)
    links = Links(text)
    assert all(row.startswith(("data:text/csv", "#")) for row in links.found)
    assert {row[1:] for row in links.found if row.startswith("#")} <= set(links.ids)
    assert len(links.ids) == len(set(links.ids))
    assert not re.search(r"https?://", text)
    assert "<script" not in text


def test_the_same_samples_give_the_same_page_and_a_small_one(make: Make, tmp_path: Path) -> None:
    result = make(0, Engine.SPARK, 20.5)
    first, second = (page(result, emulated_run(), tmp_path / name) for name in "ab")
    assert first == second
    assert len(first) < 300_000


def test_a_run_without_samples_has_a_page_that_says_so(make: Make, tmp_path: Path) -> None:
    failed = make(0, Engine.MAPREDUCE, None, reason="its job failed")
    for telemetry in (None, Telemetry(duration_seconds=1.0, nodes=())):
        text = page(failed, telemetry, tmp_path)
        assert "This run has no samples" in text
        assert "its job failed" in text
        assert "<svg" not in text


def test_a_folder_that_cannot_be_written_is_named(make: Make, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        page(make(0, Engine.SPARK, 1.0), None, tmp_path / "file")


def test_the_report_links_to_the_pages_that_there_are(
    make: Make, campaign: Campaign, tmp_path: Path
) -> None:
    results = [make(0, Engine.SPARK, 20.0), make(1, Engine.SPARK, 21.0)]
    page_of = {(attempt_of(results[1]).trial_id, 1): "runs/run-1.html"}
    html, markdown = write_report(results, [campaign], cluster=None, folder=tmp_path, pages=page_of)
    assert html.read_text().count('<a href="runs/run-1.html">') == 1
    assert "runs/run-1.html" not in markdown.read_text()
