"""What the docs say is what the program does."""

import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster import errors
from boardcluster.campaign.plan import workload_facts
from boardcluster.factors import FACTORS
from boardcluster.records import ClusterSpec, Engine
from boardcluster.services.daemons import DAEMONS
from boardcluster.services.job_sizing import size_job
from boardcluster.services.layout import PORTS
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import build_profile, profile_names
from boardcluster.services.sizing import size_cluster
from boardcluster.spec.campaign import load_campaign
from boardcluster.spec.cluster import load_cluster
from boardcluster.spec.template import propose_cluster
from boardcluster.store.migrations import MIGRATIONS
from boardcluster.units import parse_size
from boardcluster.workloads import load_workload, workload_names
from tests.builders import make_cluster, make_node
from tests.tidy.docs_blocks import console_blocks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
REFERENCE = DOCS / "reference"
GIB = 1 << 30

LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")
OPTION = re.compile(r"`(-[-\w]*)[ \w=]*`")


def page_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def table_rows(text: str) -> list[list[str]]:
    """Every row of every table without its heading, as cells."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    lines = [index for index, row in enumerate(rows) if all(set(cell) <= set("-:") for cell in row)]
    headings = {index for line in lines for index in (line - 1, line)}
    return [row for index, row in enumerate(rows) if index not in headings]


def section(text: str, title: str) -> str:
    start = text.index(f"\n## {title}\n")
    return text[start : (text + "\n## ").index("\n## ", start + 1)]


def anchors(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link} is not there"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


def test_the_index_names_every_page() -> None:
    index = (DOCS / "README.md").read_text()
    named = {(DOCS / link).resolve() for link in LINK.findall(index)}
    assert {*DOCS.rglob("*.md")} - {DOCS / "README.md"} == named


# Commands


WRITER = runpy.run_path(str(ROOT / "tools" / "write_reference.py"))


def test_the_reference_is_what_the_code_says() -> None:
    """Each part that restates code is there and as fresh as tools/write_reference.py writes it."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "write_reference.py"), "--check"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def invocations() -> list[tuple[str, str]]:
    return [
        (f"{page_name(page)}:{block.line}", command.replace("\\\n", " "))
        for page in PAGES
        for block in console_blocks(page.read_text())
        for command in block.commands
        if re.match(r"(\.venv/bin/)?boardcluster\b", command)
    ]


def test_code_in_the_help_of_an_option_stays_in_one_piece() -> None:
    table = WRITER["option_table"](WRITER["commands"]()["import"])
    assert "A file that `boardcluster export --bundle` wrote" in table


@pytest.mark.parametrize(("where", "command"), invocations())
def test_commands_in_the_docs_can_be_parsed(where: str, command: str) -> None:
    words = shlex.split(command.partition(" > ")[0].partition(" && ")[0])[1:]
    known = WRITER["commands"]()
    length = 2 if words[0] == "data" else 1
    name = "" if words[0].startswith("-") else " ".join(words[:length])
    assert name in known, where
    if name:
        context = known[name].make_context(name, words[length:])
        assert not context.args, where


def test_the_tutorial_can_be_run_as_it_stands() -> None:
    blocks = console_blocks((DOCS / "tutorial" / "first-cluster.md").read_text())
    assert len(blocks) >= 8
    assert [block.line for block in blocks if block.needs] == []
    used = {
        command.split()[1] for b in blocks for command in b.commands if "boardcluster " in command
    }
    assert {"init", "up", "status", "run", "submit", "results", "report", "down"} <= used


# Data


def test_every_pair_profile_and_workload_is_named() -> None:
    cluster_toml = (REFERENCE / "cluster-toml.md").read_text()
    files = (REFERENCE / "files.md").read_text()
    profiles = (REFERENCE / "profiles.md").read_text()
    commands = (REFERENCE / "cli.md").read_text()
    for pair in pair_ids():
        assert f"`{pair}`" in cluster_toml
        assert f"`engines/{pair}/`" in files
    for profile in profile_names():
        assert f"`{profile}`" in cluster_toml
        assert f"| `{profile}` |" in profiles
        assert profile == "default" or f"`{profile}.toml`" in profiles
    for workload in workload_names():
        assert f"[{workload}](workloads/{workload}.md)" in commands


@pytest.mark.parametrize("workload", workload_names())
def test_every_workload_has_a_page_with_its_parameters(workload: str) -> None:
    text = (REFERENCE / "workloads" / f"{workload}.md").read_text()
    for name, parameter in load_workload(workload).parameters.items():
        assert f"| `{workload}.{name}` | `{parameter.default}` |" in text
    assert re.search(r"^## .*[Vv]erified", text, re.MULTILINE)
    assert re.search(r"^## Sources?", text, re.MULTILINE)


def test_the_example_of_campaign_toml_is_valid(tmp_path: Path) -> None:
    text = (REFERENCE / "campaign-toml.md").read_text()
    blocks = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "campaign.toml").write_text(blocks[0])
    spec = load_campaign(
        tmp_path / "campaign.toml", workloads=workload_facts(), profiles=profile_names()
    )
    assert spec.matrices


@pytest.mark.parametrize("profile", ["paper-2021", "paper-2026"])
def test_the_papers_values_are_documented(profile: str) -> None:
    text = (REFERENCE / "profiles.md").read_text()
    part = (
        text[text.index(f"\n### {profile}\n") :].partition("\n###")[2].partition("\nInferred:")[0]
    )
    written = {
        name: row[1].removesuffix(" (default)")
        for row in table_rows(part)
        for name in re.findall(r"`([^`]+)`", row[0])
    }
    place = ROOT / "src/boardcluster/services/profiles" / f"{profile}.toml"
    raw = tomllib.loads(place.read_text())
    values = {k: v for table in raw.values() if isinstance(table, dict) for k, v in table.items()}
    written |= {k: "4194304" for k, v in written.items() if v == "4MB"}
    written |= {k: "{workers}" for k, v in written.items() if v.startswith("number of workers")}
    assert written == values


def board(memory_bytes: int, *, cores: int, workers: int) -> ClusterSpec:
    nodes = (
        make_node(f"worker{number}", cores=cores, memory_bytes=memory_bytes)
        for number in range(1, workers + 1)
    )
    return make_cluster(make_node("master", cores=cores), *nodes, engines=pair_ids()[0])


def test_the_table_of_sizes_is_what_the_rule_gives() -> None:
    text = (REFERENCE / "profiles.md").read_text()
    found = re.search(r"<!-- sizing-table: cores (\d+), workers (\d+) -->\n((?:\|.*\n)+)", text)
    assert found
    rows = table_rows(found[3])
    assert [row[0] for row in rows] == ["1 GiB", "2 GiB", "4 GiB", "8 GiB"]
    for row in rows:
        memory_bytes = int(row[0].split()[0]) * GIB
        sizing = size_cluster(board(memory_bytes, cores=int(found[1]), workers=int(found[2])))
        assert row[1:] == [
            str(sizing.available["worker1"]),
            *map(str, (sizing.slots, sizing.task, sizing.task_heap, sizing.am, sizing.am_heap)),
            str(sizing.sort),
            str(sizing.executor_heap) if not sizing.spark_refusal else "none",
            str(sizing.executor_overhead),
        ]


@pytest.mark.parametrize("name", ["paper-2026", "paper-2021"])
def test_what_is_inferred_for_a_papers_profile_is_listed(name: str) -> None:
    text = (REFERENCE / "profiles.md").read_text()
    listed = table_rows(text.partition(f"<!-- inferred: {name} -->\n")[2].partition("\n\n")[0])
    profile = build_profile(name, board(8 * GIB, cores=4, workers=4))
    expected = [
        [
            f"`{row.key}`" + (f" in `{row.workload}`" if row.workload else ""),
            "number of workers"
            if row.key == "spark.executor.instances"
            else re.sub(r"\{spark-jars:(\d+)\}", r"\1 bytes of Spark's jars", row.value),
            row.because,
        ]
        for row in profile.inferred
    ]
    assert listed == expected


def test_the_examples_of_jobs_are_what_the_rule_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boardcluster.services.job_sizing.available_cores", lambda: 2)
    text = (REFERENCE / "profiles.md").read_text()
    rows = table_rows(text.partition("<!-- job-sizing-table -->")[2].partition("\n\n")[0])
    boards = replace(board(4 * GIB, cores=4, workers=4), kind="boards")
    emulated = board(4 * GIB, cores=1, workers=4)
    assert [row[0] for row in rows] == ["8 MB", "256 MB", "4 GB"]
    for size, *shown in rows:
        assert shown == [job_in_words(spec, parse_size(size)) for spec in (boards, emulated)]


def job_in_words(spec: ClusterSpec, size_bytes: int) -> str:
    profile = build_profile("default", spec)
    found: dict[str, str] = {}
    for engine in (Engine.SPARK, Engine.MAPREDUCE):
        job = size_job(spec, profile, engine, size_bytes=size_bytes)
        assert job
        for rows in job.properties.values():
            found |= rows
    executors, cores = found["spark.executor.instances"], found["spark.executor.cores"]
    maps, reduces = found["mapreduce.job.maps"], found["mapreduce.job.reduces"]
    return f"{executors} x {cores}; {maps} + {reduces}"


def runs_spark(workers: int, available_bytes: int) -> bool:
    try:
        spec = propose_cluster(
            name="boards",
            workers=workers,
            host_cores=4,
            host_available_bytes=available_bytes,
            engines=pair_ids()[0],
            profile="default",
        )
        return not build_profile("default", spec).spark_refusal
    except errors.CapacityError:
        return False


def test_the_memory_that_is_needed_is_what_the_rules_give() -> None:
    text = (REFERENCE / "cluster-toml.md").read_text()
    rows = table_rows(text.partition("<!-- memory-needed -->")[2].partition("\n\n")[0])
    assert [row[0] for row in rows] == ["1", "2", "3", "4"]
    for row in rows:
        tenths = round(float(row[1].removesuffix(" GiB")) * 10)
        assert runs_spark(int(row[0]), tenths * GIB // 10), row
        assert not runs_spark(int(row[0]), (tenths - 1) * GIB // 10), row
        assert row[1] in (ROOT / "README.md").read_text()


def test_the_example_of_cluster_toml_is_valid(tmp_path: Path) -> None:
    text = (REFERENCE / "cluster-toml.md").read_text()
    blocks = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "cluster.toml").write_text(blocks[0])
    spec = load_cluster(
        tmp_path / "cluster.toml", engine_pairs=pair_ids(), profiles=profile_names()
    )
    assert len(spec.workers) == 2


def test_the_examples_of_boards_are_valid(tmp_path: Path) -> None:
    text = (REFERENCE / "cluster-toml.md").read_text()
    blocks = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "cluster.toml").write_text(blocks[1])
    for path in (tmp_path / "cluster.toml", ROOT / "examples" / "boards.toml"):
        spec = load_cluster(path, engine_pairs=pair_ids(), profiles=profile_names())
        assert spec.kind == "boards"
        assert not build_profile(spec.profile, spec).spark_refusal


def test_every_port_is_documented() -> None:
    rows = table_rows(section((REFERENCE / "files.md").read_text(), "Ports"))
    written = {
        row[0]: {int(number) for number in re.findall(r"\b\d{4,5}\b", f"{row[2]} {row[3]}")}
        for row in rows
    }
    assert written == {kind.name: {PORTS[port] for port in kind.ports} for kind in DAEMONS}
    assert {row[0]: int(row[2]) for row in rows} == {kind.name: PORTS[kind.web] for kind in DAEMONS}


def test_the_tables_of_the_store_are_documented() -> None:
    statements = " ".join(row for _, rows in MIGRATIONS for row in rows)
    text = (REFERENCE / "store.md").read_text()
    tables = {row[0].strip("`") for row in table_rows(section(text, "Tables"))}
    assert tables == {*re.findall(r"CREATE TABLE (\w+)", statements), "migrations"}
    for name in re.findall(r"CREATE (?:TRIGGER|UNIQUE INDEX) (\w+)", statements):
        assert f"`{name}`" in text
    of_factors = {factor.migration[0] for factor in FACTORS if factor.migration}
    assert [f"`{name}`" for name, _ in MIGRATIONS if name not in of_factors] == [
        row[0] for row in table_rows(section(text, "Formats"))
    ]


# Style


@pytest.mark.parametrize("page", sorted((DOCS / "decisions").glob("*.md")), ids=page_name)
def test_decisions_are_short_and_have_the_same_parts(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert len(lines) < 40
    assert re.match(rf"# {page.name[:4]} \S", lines[0])
    titles = [line for line in lines if line.startswith("## ")]
    assert titles == ["## Context", "## Decision", "## Consequences"]


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(page.name[:4]) for page in sorted((DOCS / "decisions").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_bills_of_materials_are_what_the_lock_files_say() -> None:
    command = [sys.executable, str(ROOT / "tools" / "write_bill.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
