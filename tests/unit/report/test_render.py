from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.builders import make_cluster, make_node
from tests.unit.report.shown import write_report

from boardcluster.errors import StoreError
from boardcluster.records import (
    Campaign,
    CampaignKind,
    ClusterSpec,
    Engine,
    Fingerprint,
    Result,
    Security,
    Verdict,
)
from boardcluster.report.words import EMULATED, INSECURE

Make = Callable[..., Result]
VOID = {"meta", "br", "wbr", "link", "img", "hr"}


class _Page(HTMLParser):
    """Checks nesting and collects ids, references and texts of captions."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.captions: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        if tag == "figcaption":
            self.captions.append("")
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name in ("href", "src", "xlink:href", "srcset", "action") and value:
                self.references.append(value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "figcaption" in self.open:
            self.captions[-1] += data


@pytest.fixture
def cluster() -> ClusterSpec:
    return make_cluster(make_node("master", cores=1))


def _texts(
    results: list[Result], campaigns: list[Campaign], cluster: ClusterSpec | None, folder: Path
) -> tuple[str, str]:
    html, markdown = write_report(results, campaigns, cluster=cluster, folder=folder)
    return html.read_text(encoding="utf-8"), markdown.read_text(encoding="utf-8")


def test_the_page_is_well_formed_and_needs_no_network(
    demo: list[Result], campaign: Campaign, cluster: ClusterSpec, tmp_path: Path
) -> None:
    html, _ = _texts(demo, [campaign], cluster, tmp_path)
    page = _Page(html)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    local = [item for item in page.references if not item.startswith("data:text/csv")]
    assert local
    assert all(item.startswith("#") and item[1:] in page.ids for item in local)
    named = set(re.findall(r"https?://[^\s\"'<]+", html))
    assert named == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    for used in re.findall(r"url\(#([^)]+)\)", html):
        assert used in page.ids
    assert "<script" not in html


def test_every_caption_says_what_is_emulated(
    demo: list[Result], campaign: Campaign, cluster: ClusterSpec, tmp_path: Path
) -> None:
    html, markdown = _texts(demo, [campaign], cluster, tmp_path)
    captions = _Page(html).captions
    provenance = [text for text in captions if text.startswith("Campaigns and where")]
    assert len(captions) > 5
    assert len(provenance) == 1
    assert all(EMULATED in text for text in captions if text not in provenance)
    assert "(emulated)" in html
    bold = [line for line in markdown.splitlines() if line.startswith("**")]
    assert sum(EMULATED in line for line in bold) == len(bold) - 1


def test_boards_have_no_emulated_badge(
    demo: list[Result], campaign: Campaign, tmp_path: Path
) -> None:
    boards = [
        replace(
            run,
            attempt=run.attempt
            and replace(run.attempt, fingerprint=replace(run.attempt.fingerprint, emulated=False)),
        )
        for run in demo
    ]
    html, markdown = _texts(boards, [replace(campaign, emulated=False)], None, tmp_path)
    assert "emulated" not in re.sub(r"data:text/csv[^\"]*", "", html)
    assert "emulated" not in markdown


def _measured_with(run: Result, security: Security) -> Result:
    assert run.attempt is not None
    setup = replace(run.attempt.fingerprint, emulated=False, security=security)
    return replace(run, attempt=replace(run.attempt, fingerprint=setup))


@pytest.mark.parametrize("open_runs", [1, 6])
def test_numbers_of_an_open_cluster_have_a_banner_on_top(
    open_runs: int, demo: list[Result], campaign: Campaign, tmp_path: Path
) -> None:
    runs = [
        _measured_with(run, Security.INSECURE_LAB if place < open_runs else Security.CLOSED)
        for place, run in enumerate(demo)
    ]
    html, markdown = _texts(runs, [replace(campaign, emulated=False)], None, tmp_path)
    assert _Page(html).open == []
    banner = f'<p><span class="badge">{INSECURE}</span></p>'
    assert html.count(banner) == 1
    assert html.index("<h1>") < html.index(banner) < html.index("<table")
    lines = markdown.splitlines()
    place = lines.index(f"> **{INSECURE}**")
    assert (lines[place - 1], lines[place + 1]) == ("", "")  # or it would not be a quotation
    assert place < next(number for number, line in enumerate(lines) if line.startswith("|"))


def test_an_open_cluster_is_said_beside_emulated_nodes(
    demo: list[Result], campaign: Campaign, tmp_path: Path
) -> None:
    runs = [_measured_with(demo[0], Security.INSECURE_LAB), *demo[1:]]
    html, markdown = _texts(runs, [campaign], None, tmp_path)
    assert f'<span class="badge">{INSECURE}</span>' in html
    quoted = [line for line in markdown.splitlines() if line.startswith("> ")]
    assert len(quoted) == 2
    assert EMULATED in quoted[0]
    assert quoted[1] == f"> **{INSECURE}**"
    assert f"\n\n{quoted[1]}\n\n" in markdown


def test_times_of_emulated_boards_are_named_with_their_dilation(
    make: Make, fingerprint: Fingerprint, campaign: Campaign, tmp_path: Path
) -> None:
    twin = replace(
        fingerprint, twin="4 x rpi-5b", limits="worker1: 0.35 cores\nworker2: 0.35 cores"
    )
    runs = [
        make(place, Engine.SPARK, 20.0 + place, setup=twin, measured={"dilation": 4.0})
        for place in (0, 1)
    ]
    html, markdown = _texts(runs, [campaign], None, tmp_path)
    words = "emulated boards, dilation 4.0"
    assert f"> **{words}: nodes are network namespaces on one machine, with the limits" in markdown
    times = next(line for line in markdown.splitlines() if "results by engine" in line)
    assert times.count(words) == 2  # what its rows have in common, and what all numbers are
    assert f"seconds ({words})" in html
    assert "the remark of each run says how long it took on this machine" in html
    assert "| Stands for | 4 x rpi-5b |" in markdown
    assert "| Limits | worker1: 0.35 cores; worker2: 0.35 cores |" in markdown
    assert EMULATED not in html + markdown


def test_dilated_and_undilated_runs_are_told_apart(
    make: Make, fingerprint: Fingerprint, campaign: Campaign, tmp_path: Path
) -> None:
    runs = [
        make(0, Engine.SPARK, 20.0),
        make(
            1,
            Engine.SPARK,
            21.0,
            setup=replace(fingerprint, twin="4 x rpi-5b", limits="worker1: 0.35 cores"),
            measured={"dilation": 2.5},
        ),
    ]
    _, markdown = _texts(runs, [campaign], None, tmp_path)
    assert "partly emulated boards, dilation 2.5" in markdown
    assert "WordCount over 256 MB, emulated boards, dilation 2.5" in markdown
    [row] = [line for line in markdown.splitlines() if line.startswith("| 2 |")]
    assert "| emulated boards, dilation 2.5 |" in row


@pytest.mark.parametrize("security", [Security.CLOSED, Security.EMULATED])
def test_other_clusters_have_no_such_banner(
    security: Security, demo: list[Result], campaign: Campaign, tmp_path: Path
) -> None:
    runs = [_measured_with(run, security) for run in demo]
    html, markdown = _texts(runs, [campaign], None, tmp_path)
    for text in (html, markdown):
        assert INSECURE not in text
        assert "INSECURE" not in text


def test_the_same_records_give_the_same_bytes(
    demo: list[Result], campaign: Campaign, tmp_path: Path
) -> None:
    first = _texts(demo, [campaign], None, tmp_path / "a")
    second = _texts(demo[::-1], [campaign], None, tmp_path / "b")
    assert first == second


def test_every_run_is_a_point_and_every_cell_has_its_interval(
    demo: list[Result], campaign: Campaign, tmp_path: Path
) -> None:
    html, _ = _texts(demo, [campaign], None, tmp_path)
    wide = html[html.index('class="wide"') : html.index('class="narrow"')]
    points = re.findall(
        r'<use xlink:href="[^"]*" x="[^"]*" y="[^"]*" style="fill: var\(--(\w+)\)', wide
    )
    assert sorted(points) == ["mapreduce"] * 3 + ["spark"] * 3
    assert "23.4 to" not in wide
    assert wide.count(" to ") == 2


def test_one_run_has_no_error_bar(demo: list[Result], campaign: Campaign, tmp_path: Path) -> None:
    several, _ = _texts(demo, [campaign], None, tmp_path / "several")
    once, _ = _texts(demo[:2], [campaign], None, tmp_path / "once")
    lines = [page.count("stroke-width: 1.6") for page in (several, once)]
    assert lines[0] == 2 * 2 * 3  # two drawings, two cells, a whisker of three lines
    assert lines[1] == 0
    assert "one run, no interval" in once


def test_no_drawing_colour_is_left_fixed(
    demo: list[Result], campaign: Campaign, tmp_path: Path
) -> None:
    html, _ = _texts(demo, [campaign], None, tmp_path)
    drawings = html[html.index("<svg") : html.rindex("</svg>")]
    assert re.findall(r"#[0-9a-fA-F]{6}\b", drawings) == []


def test_hostile_and_foreign_names_are_text(make: Make, campaign: Campaign, tmp_path: Path) -> None:
    name = "<script>alert(1)</script> | $x^2$ *a* Zürich 東京 \udcff"
    hostile = replace(
        campaign, dataset=name, dataset_source=name, cluster=name, kind=CampaignKind.RUN
    )
    runs = [
        make(0, Engine.SPARK, 20.0, reason=name, workload=name, profile=name),
        make(1, Engine.SPARK, 20.0, profile="p"),
    ]
    html, markdown = _texts(runs, [hostile], None, tmp_path)
    assert _Page(html).open == []
    assert "<script" not in html
    assert re.search(r"(?<!\\)<script", markdown) is None
    assert "Zürich 東京" in html
    assert "\\<script\\>alert(1)\\</script\\> \\| \\$x^2\\$ \\*a\\* Zürich 東京 \\udcff" in markdown


def test_an_empty_store_gives_a_report_that_says_so(tmp_path: Path, cluster: ClusterSpec) -> None:
    html, markdown = _texts([], [], None, tmp_path / "bare")
    assert "<h1>Nothing has been run yet</h1>" in html
    assert "<code>boardcluster demo</code>" in html
    assert "emulated" not in html
    assert markdown.startswith("# Nothing has been run yet\n")
    html, _ = _texts([], [], cluster, tmp_path / "declared")
    assert EMULATED in html
    assert "198.18.0.0/24" in html


def test_many_configurations_are_cut_into_several_drawings(
    make: Make, campaign: Campaign, tmp_path: Path
) -> None:
    runs = [make(n, Engine.SPARK, 20.0 + n, size_bytes=(n + 1) * 10**8) for n in range(40)]
    html, _ = _texts(runs, [campaign], None, tmp_path)
    assert re.findall(r'<title id="workload-wordcount-times-(\d)-980-title"', html) == [*"123"]
    page = _Page(html)
    assert len(page.ids) == len(set(page.ids))


def test_a_folder_that_cannot_be_written_is_an_error_with_a_hint(
    demo: list[Result], campaign: Campaign, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written") as caught:
        write_report(demo, [campaign], cluster=None, folder=tmp_path / "file")
    assert "another folder" in caught.value.hint


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("boardcluster.cli.report", {"matplotlib", "scipy", "jinja2"}),
        ("boardcluster.cli.run", {"boardcluster.report.render", "jinja2"}),
    ],
)
def test_a_command_loads_no_drawing_before_it_runs(module: str, unwanted: set[str]) -> None:
    code = f"import sys; import {module}; print(sorted({unwanted} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_tainted_runs_can_be_read_in_both_forms(
    make: Callable[..., Result], campaign: Campaign, tmp_path: Path
) -> None:
    reasons = ("host: other programs used 38 %: <b>stress-ng</b> 37 %",)
    measured = {"verdict": Verdict.TAINTED, "verdict_reasons": reasons}
    runs = [make(place, Engine.SPARK, 20.0 + place, measured=measured) for place in range(2)]
    html, markdown = (
        path.read_text() for path in write_report(runs, [campaign], cluster=None, folder=tmp_path)
    )
    for text in (html, markdown):
        assert "No valid run yet: both verified runs are tainted" in text
        assert "Runs that cannot be trusted" in text
        assert "20.0, 21.0" in text
        assert "these numbers include tainted runs" not in text
    assert "<b>stress-ng</b>" not in html
    assert "the option <code>--tainted</code>" in html
    assert "the option `--tainted`" in markdown
    assert html.count('<tr class="out">') == 2

    html, markdown = (
        path.read_text()
        for path in write_report(runs, [campaign], cluster=None, folder=tmp_path, tainted=True)
    )
    for text in (html, markdown):
        assert "WordCount over 256 MB: Spark 20.5 s" in text
        assert "these numbers include tainted runs" in text
        assert "cannot be trusted" not in text
