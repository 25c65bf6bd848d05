"""The public Python API: what it offers, what it refuses, and that its import is light."""

import errno
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.desk import Desk, bad

import boardcluster as bc
from boardcluster.errors import (
    ClusterError,
    ClusterNotUpError,
    DriverSpaceError,
    EmptySelectionError,
    HostError,
    UsageError,
)
from boardcluster.records import Engine

FIXTURE = Path(__file__).parents[1] / "fixtures" / "store-b7912e2" / "home"
SMALL = """\
[campaign]
name = "small"
repetitions = 1

[[matrix]]
workload = ["wordcount", "teragen"]
engine = "mapreduce"
size = "1 MB"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURE, tmp_path / "shelf"))


@pytest.fixture
def cluster(desk: Desk) -> bc.Cluster:
    return bc.open(home=desk.home, cache=desk.home / "cache")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


# The import


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_the_import_loads_nothing_but_itself() -> None:
    code = (
        "import sys; before = set(sys.modules); import boardcluster as bc; bc.__version__;"
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(loaded & {'numpy', 'pydantic', 'rich', 'typer', 'scipy', 'jinja2'}),"
        "[name for name in sys.modules if name.startswith('boardcluster.')])"
    )
    assert run_python(code) == "[] []"


@pytest.mark.parametrize("first", ["", "import boardcluster.report.render; "])
def test_report_can_be_called_whether_or_not_its_room_was_loaded(first: str) -> None:
    """A room of the package has the function's name."""
    code = f"{first}import boardcluster as bc; print(bc.report(home='/nonexistent/home'))"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run_python(code)
    assert "ClusterError: there is no cluster in /nonexistent/home" in caught.value.stderr


def test_every_public_name_is_there_and_documented() -> None:
    for name in bc.__all__:
        found: Any = getattr(bc, name)
        assert name == "__version__" or found.__doc__, name
    assert set(dir(bc)) == set(bc.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        bc.nonsense  # type: ignore[attr-defined]  # noqa: B018


# A cluster


def test_a_size_may_be_a_whole_number_as_notebooks_write_it(
    desk: Desk, cluster: bc.Cluster
) -> None:
    desk.is_up = True
    cluster.run("wordcount", engine="spark", size=64e6, repetitions=1)
    assert [trial.size_bytes for trial in desk.ran] == [64_000_000]
    assert type(desk.ran[0].size_bytes) is int
    with pytest.raises(UsageError, match=r"size: 0\.5 is no whole number"):
        cluster.run("wordcount", engine="spark", size=0.5)


def test_a_workload_runs_and_says_what_it_came_to(desk: Desk, cluster: bc.Cluster) -> None:
    desk.is_up = True

    done = cluster.run("wordcount", engine="spark", size="64 MB", repetitions=2)

    assert [(trial.engine, trial.size_bytes) for trial in desk.ran] == [
        (Engine.SPARK, 64_000_000)
    ] * 2
    assert done.runs == tuple(f"{trial.id}/1" for trial in desk.ran)
    assert (done.summary.ok, done.unverified) == (2, ())
    assert len(cluster.results().rows()) == 2


def test_settings_are_those_of_the_jobs(desk: Desk, cluster: bc.Cluster) -> None:
    desk.is_up = True
    settings = {"mapreduce.map.output.compress": True, "dfs.blocksize": "32 MiB"}

    cluster.run("teragen", engine="mapreduce", repetitions=1, settings=settings)

    (trial,) = desk.ran
    assert trial.settings == {"mapreduce.map.output.compress": "true", "dfs.blocksize": "33554432"}
    (row,) = cluster.results().rows()
    assert row["settings"] == trial.settings


def test_a_failed_run_raises_nothing_and_is_named(desk: Desk, cluster: bc.Cluster) -> None:
    desk.is_up = True
    desk.ends["wordcount"] = bad()

    done = cluster.run("wordcount", engine=["mapreduce", "spark"], repetitions=1)

    assert [row.attempt and row.attempt.reason for row in done.unverified] == ["because"] * 2


@pytest.mark.parametrize(
    ("worker", "call"),
    [
        ("bring_up", lambda cluster: cluster.up()),
        ("take_down", lambda cluster: cluster.down()),
        ("run_campaign", lambda cluster: cluster.run("wordcount", repetitions=1)),
        ("run_tuning", lambda cluster: cluster.tune("wordcount")),
        ("run_round", lambda cluster: cluster.watch_performance("small.toml")),
        ("run_bisect", lambda cluster: cluster.bisect("small.toml", "default", "upstream")),
    ],
)
def test_what_the_machine_refuses_is_an_error_of_boardcluster(
    worker: str,
    call: Callable[[bc.Cluster], object],
    cluster: bc.Cluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ends_with(number: int, *names: str) -> None:
        error = OSError(number, os.strerror(number), *names)
        error.add_note("something is left")

        def fail(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(f"boardcluster.api.{worker}", fail)

    ends_with(errno.EDQUOT)
    with pytest.raises(DriverSpaceError, match="a file of the cluster's folder") as caught:
        call(cluster)
    assert caught.value.hint.startswith("free space")
    assert caught.value.__notes__ == ["something is left"]
    ends_with(errno.EACCES, "/some/file")
    with pytest.raises(HostError, match="cannot use /some/file: Permission denied"):
        call(cluster)
    ends_with(errno.EBADF)  # a bug of ours is not to be hidden
    with pytest.raises(OSError, match="Bad file descriptor"):
        call(cluster)


def test_a_file_begins_and_then_has_nothing_left(
    desk: Desk, cluster: bc.Cluster, small: Path
) -> None:
    first = cluster.run(small, resume=True)
    again = cluster.run(str(small), resume=True)

    assert (len(first.runs), again.runs) == (2, ())
    assert first.campaign == again.campaign
    assert [row.attempt for row in again.results] == [row.attempt for row in first.results]
    assert cluster.run(small, new=True).campaign != first.campaign
    assert desk.calls[-1] == "down"  # as it was found


def test_what_is_told_is_one_line_for_each_thing(desk: Desk) -> None:
    desk.is_up = True
    lines: list[str] = []
    bc.open(home=desk.home, tell=lines.append).run("teragen", engine="spark", repetitions=1)

    assert any(re.fullmatch(r"campaign \S+: 1 run, seed \d+", line) for line in lines)
    assert any(line.startswith("run 1 of 1: ok, 20.0 s") for line in lines)


@pytest.mark.parametrize(
    ("what", "named", "words"),
    [
        ("wordcount", {"resume": True}, "resume cannot be used with a workload"),
        ("small.toml", {"engine": "spark"}, "engine cannot be used with a campaign file"),
        ("small.toml", {"seed": -1}, "seed must be from 0 to"),
        ("small.toml", {"starts": 0}, "starts must be from 1 to 100, not 0"),
        ("wordcount", {"until": "3"}, 'until: "3" is not valid; allowed: a percentage'),
        ("small.toml", {"resume": True, "new": True}, "resume and new contradict each other"),
        ("small.toml", {"retry_failed": True}, "retry_failed needs resume=True"),
        ("wordcount", {"engine": "flink"}, "there is no engine 'flink'"),
        ("wordcount", {"size": "much"}, "size: "),
        ("wordcount", {"size": 0}, "size must be at least 1, not 0"),
        ("wordcount", {"repetitions": 0}, "repetitions must be at least 1"),
        ("wordcount", {"repetitions": 1001}, "repetitions must be at most 1000, not 1001"),
        ("wordcount", {"timeout_seconds": math.nan}, "timeout_seconds must be at least 1, not nan"),
        ("wordcount", {"timeout_seconds": 1e9}, "timeout_seconds must be at most 2592000, not"),
        ("pi", {"size": "1 MB"}, "a size has no effect: pi takes no input"),
        ("teragen", {"parameters": {"x": 1}}, "x"),
        ("small.toml", {"settings": {}}, "settings cannot be used with a campaign file"),
        ("teragen", {"settings": {"dfs.blocksiz": 1}}, "settings: dfs.blocksiz: .*dfs.blocksize"),
        (
            "teragen",
            {"settings": {"dfs.heartbeat.interval": 5}},
            "dfs.heartbeat.interval is read by the daemons",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    what: str, named: dict[str, Any], words: str, desk: Desk, cluster: bc.Cluster
) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        cluster.run(what, **named)

    assert caught.value.hint
    assert desk.calls == []


@pytest.mark.parametrize("named", [{"workers": 0}, {"workers": 1001}, {"replication": 0}])
def test_a_prediction_of_what_cannot_be_is_refused(named: dict[str, Any], tmp_path: Path) -> None:
    [(name, value)] = named.items()
    with pytest.raises(UsageError, match=f"{name} must be from 1 to .*, not {value}"):
        bc.predict("wordcount", engine="spark", size="1 GB", home=tmp_path, **named)


@pytest.mark.parametrize("named", [{}, {"engine": ""}, {"engine": None}])
def test_a_prediction_needs_no_engine_where_there_is_one_only(
    named: dict[str, Any], tmp_path: Path
) -> None:
    found = bc.predict(
        "hpl", size="1 GB", workers=1, board="rpi-5b-8gb-2400mhz", home=tmp_path, **named
    )
    assert found.question.engine is Engine.MPI
    with pytest.raises(UsageError, match="terasort runs on"):
        bc.predict("terasort", size="1 GB", workers=1, home=tmp_path, **named)


@pytest.mark.parametrize("named", [{"workers_most": 0}, {"workers_most": 1001}, {"replication": 0}])
def test_a_plan_of_what_cannot_be_is_refused(named: dict[str, Any], tmp_path: Path) -> None:
    [(name, value)] = named.items()
    with pytest.raises(UsageError, match=f"{name} must be from 1 to .*, not {value}"):
        bc.plan("wordcount", size="1 GB", home=tmp_path, **named)


def test_no_cluster_is_said_and_nothing_is_made(tmp_path: Path) -> None:
    nowhere = bc.open(home=tmp_path / "nowhere", cache=tmp_path / "cache")
    for call in (lambda: nowhere.run("wordcount"), nowhere.down, nowhere.results().rows):
        with pytest.raises((ClusterError, ClusterNotUpError), match="there is no cluster in"):
            call()
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(UsageError, match="is not a valid cluster name"):
        bc.open("../x")


# What is stored


def test_rows_have_the_schema_that_is_documented(home: Path) -> None:
    table = bc.results(home=home)

    rows = table.rows()
    assert len(rows) == 21
    assert all(list(row) == [field.name for field in table.fields] for row in rows)
    assert all(field.meaning for field in table.fields)
    first = rows[0]
    assert (first["trial"], first["attempt"], first["duration_seconds"]) == (
        *("20260901-a-000", 1),
        101.25,
    )
    assert first["warm_up"] is False
    assert isinstance(first["counters"], dict)
    only = bc.results(home=home, campaign="20260910-2").rows()
    assert {row["profile"] for row in only} == {"tuned"}


def test_the_other_tables(home: Path) -> None:
    results = bc.results(home=home)

    means = {
        (row["engine"], row["workers"]): row["duration_mean_seconds"]
        for row in results.cells().rows()
        if row["workload"] == "terasort"
    }
    assert means["mapreduce", 4] == pytest.approx(101.25)
    assert [row["figure"] for row in results.probes().rows()] == ["events_per_second"]
    assert {row["meter"] for row in results.power().rows()} == {"plug"}


def test_samples_of_a_run(home: Path) -> None:
    results = bc.results(home=home)

    rows = results.telemetry("20260901-a-000/1").rows()
    assert {row["node"] for row in rows} == {"pi0", "pi1", "pi2"}
    assert {row["trial"] for row in results.telemetry().rows()} == {"20260901-a-012"}
    with pytest.raises(EmptySelectionError, match="no run 20260901-a-099"):
        results.telemetry("20260901-a-099")
    of_another = bc.results(home=home, campaign="20260910-2").telemetry().rows()
    assert {row["trial"] for row in of_another} == {"20260910-2-spark-2"}
    with pytest.raises(EmptySelectionError, match="20260910-9"):
        bc.results(home=home, campaign="20260910-9").telemetry()


def test_arrow_and_pandas_have_the_same_values(home: Path) -> None:
    table = bc.results(home=home)
    rows = table.rows()

    arrow = table.to_arrow()
    assert arrow.column_names == [field.name for field in table.fields]
    assert arrow["duration_seconds"].to_pylist() == [row["duration_seconds"] for row in rows]
    assert arrow.schema.field("duration_seconds").metadata[b"meaning"]
    frame = table.to_pandas()
    assert list(frame.columns) == arrow.column_names
    assert str(frame["attempt"].dtype) == "Int64"
    assert frame["attempt"].isna().sum() == 1  # the pending one
    assert frame["duration_seconds"].dropna().tolist() == [
        row["duration_seconds"] for row in rows if row["duration_seconds"] is not None
    ]
    assert frame["counters"].tolist() == [row["counters"] for row in rows]


@pytest.mark.parametrize(("method", "package"), [("to_pandas", "pandas"), ("to_arrow", "pyarrow")])
def test_a_missing_extra_is_named(
    method: str, package: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=f"package {package}") as caught:
        getattr(bc.results(home=home), method)()
    assert "pip install 'boardcluster[" in caught.value.hint


def test_a_comparison_has_words_and_rows_and_can_be_written(home: Path, tmp_path: Path) -> None:
    found = bc.compare("profile:default", "profile:tuned", home=home)

    (row,) = [row for row in found.rows() if row["ratio"] is not None]
    assert (row["workload"], row["a_mean"], row["b_mean"], row["ratio"]) == (
        *("wordcount", 41.0, 20.5),
        2.0,
    )
    assert found.words.headline
    assert found.to_arrow().num_rows == len(found.rows())
    for name in ("a.html", "a.md", "a.csv"):
        found.write(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    with pytest.raises(UsageError, match=r"a\.txt does not end in one of"):
        found.write(tmp_path / "a.txt")


def test_the_report_is_written_where_it_is_asked_for(home: Path, tmp_path: Path) -> None:
    written = bc.report(home=home, out=tmp_path / "out", campaign="20260910-2")

    assert written.html == tmp_path / "out" / "report.html"
    assert "wordcount" in written.markdown.read_text()
