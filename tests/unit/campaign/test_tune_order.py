"""What is to be tuned: only what a tuned profile could change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster.campaign.follow import LineProgress
from boardcluster.campaign.tune_order import TuneOrder, TunePlan, plan_tuning
from boardcluster.records import ClusterSpec, Engine
from boardcluster.services.pair import pair_ids

MakeSpec = Callable[..., ClusterSpec]


@pytest.fixture
def spec(make_spec: MakeSpec) -> ClusterSpec:
    return make_spec(engines=pair_ids()[0])


def planned(spec: ClusterSpec, folder: Path, *, base: str = "") -> TunePlan:
    order = TuneOrder(target="wordcount", engine=Engine.MAPREDUCE, size_bytes=64_000_000, base=base)
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


def test_the_base_is_the_file_that_a_path_leads_to(
    spec: ClusterSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base.toml"
    base.write_text('base = "default"\n')
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert planned(spec, tmp_path, base="../base.toml").request.base == str(base.resolve())
