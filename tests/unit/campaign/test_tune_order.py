"""What is to be tuned: only what a tuned profile could change."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster.campaign.follow import LineProgress
from boardcluster.campaign.tune_order import TuneOrder, TunePlan, plan_tuning
from boardcluster.errors import UsageError
from boardcluster.records import ClusterSpec, Engine, NodeTwin
from boardcluster.services.pair import pair_ids
from boardcluster.tuning.record import Objective

MakeSpec = Callable[..., ClusterSpec]


@pytest.fixture
def spec(make_spec: MakeSpec) -> ClusterSpec:
    return make_spec(engines=pair_ids()[0])


def planned(
    spec: ClusterSpec, folder: Path, *, base: str = "", engine: Engine = Engine.MAPREDUCE
) -> TunePlan:
    order = TuneOrder(target="wordcount", engine=engine, size_bytes=64_000_000, base=base)
    return plan_tuning(order, spec, tuning_id="t", cache=folder, follow=LineProgress())


def test_what_the_cluster_fixes_is_not_searched(spec: ClusterSpec, tmp_path: Path) -> None:
    assert "reduces" in {row.name for row in planned(spec, tmp_path).space}
    fixed = replace(
        spec, settings={"mapreduce.job.reduces": "8", "mapreduce.map.speculative": "true"}
    )
    plan = planned(fixed, tmp_path)
    assert not {"reduces", "speculation"} & {row.name for row in plan.space}
    reasons = {row.what: row.reason for row in plan.ruled_out}
    assert reasons["reduces"] == (
        "[settings] of cluster.toml sets mapreduce.job.reduces, which overrides a profile"
    )
    assert "mapreduce.map.speculative" in reasons["speculation"]
    assert all("mapreduce.job.reduces" not in row.settings for row in plan.known)


@pytest.mark.parametrize(
    ("board", "known"), [("rpi-4b-4gb-1500mhz", True), ("rpi-5b-8gb-3000mhz", False), ("", False)]
)
def test_energy_can_be_modelled_by_what_the_catalog_knows_of_boards(
    spec: ClusterSpec, tmp_path: Path, board: str, known: bool
) -> None:
    twin = NodeTwin(board=board) if board else None
    spec = replace(spec, nodes=tuple(replace(node, twin=twin) for node in spec.nodes))
    order = TuneOrder(target="wordcount", size_bytes=64_000_000, objective=Objective.BOTH)
    with contextlib.nullcontext() if known else pytest.raises(UsageError, match="no model of its"):
        plan_tuning(order, spec, tuning_id="t", cache=tmp_path, follow=LineProgress())


def test_what_a_parameter_sets_is_not_searched(spec: ClusterSpec, tmp_path: Path) -> None:
    order = TuneOrder(
        target="terasort",
        engine=Engine.MAPREDUCE,
        size_bytes=64_000_000,
        parameters={"reduces": "8"},
    )
    plan = plan_tuning(order, spec, tuning_id="t", cache=tmp_path, follow=LineProgress())
    assert "reduces" not in {row.name for row in plan.space}
    reasons = {row.what: row.reason for row in plan.ruled_out}
    assert (
        reasons["reduces"] == "the parameter terasort.reduces=8 sets it, which overrides a profile"
    )


def test_the_base_is_the_file_that_a_path_leads_to(
    spec: ClusterSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base.toml"
    base.write_text('base = "default"\n')
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert planned(spec, tmp_path, base="../base.toml").request.base == str(base.resolve())


def test_containers_of_tasks_are_searched_although_the_base_names_a_heap(
    spec: ClusterSpec, tmp_path: Path
) -> None:
    plan = planned(spec, tmp_path)
    rows = {row.name: row for row in plan.space}
    assert rows["memory of a map"].low == rows["memory of a reduce"].low == 256
    assert plan.refusal_of({"mapreduce.map.memory.mb": "256"}), "beside the base's own heap"


def test_a_profile_with_which_spark_does_not_run_is_left_out(
    make_spec: MakeSpec, tmp_path: Path
) -> None:
    nodes = make_spec(workers=2, memory_mib=1024, engines=pair_ids()[0])
    master = replace(nodes.master, memory_bytes=2 << 30)
    small = replace(nodes, nodes=(master, *nodes.workers), profile="upstream")
    plan = planned(small, tmp_path, engine=Engine.SPARK)
    (reason,) = [row.reason for row in plan.ruled_out if row.what == "profile default"]
    assert "but a Spark executor needs 450 MiB" in reason
    assert "default" not in {row.id for row in plan.known}


@pytest.mark.parametrize(
    ("engine", "key", "lost"),
    [
        (Engine.SPARK, "spark.executor.extraJavaOptions", "executors"),
        (Engine.MAPREDUCE, "mapreduce.map.java.opts", "tasks"),
    ],
)
def test_options_of_jvms_that_the_base_sets_are_kept(
    spec: ClusterSpec, tmp_path: Path, engine: Engine, key: str, lost: str
) -> None:
    base = tmp_path / "base.toml"
    table = "spark-defaults" if engine is Engine.SPARK else "mapred-site"
    base.write_text(f'base = "default"\n["{table}"]\n"{key}" = "-Xss8m"\n')
    plan = planned(spec, tmp_path, base=str(base), engine=engine)
    names = {row.name for row in plan.space}
    assert not {f"compiler of {lost}", f"collector of {lost}"} & names
    reasons = {row.what: row.reason for row in plan.ruled_out}
    assert reasons[f"compiler of {lost}"] == f"base.toml sets {key}, whose options are kept"
