"""The sides of a bisection: only what can be set on the first one is a difference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from boardcluster.campaign.bisect_sides import BisectSides, PropertyDifference, bisect_sides
from boardcluster.errors import UsageError
from boardcluster.records import ClusterSpec
from boardcluster.services.pair import pair_ids

MakeSpec = Callable[..., ClusterSpec]

EXECUTORS = "spark.executor.instances"
OF_NODES = ("yarn.nodemanager.resource.memory-mb", "yarn.nodemanager.resource.cpu-vcores")


@pytest.fixture
def spec(make_spec: MakeSpec) -> ClusterSpec:
    return make_spec(workers=4, engines=pair_ids()[0])


def own_profile(folder: Path, file: str, row: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(f'base = "default"\n["{file}"]\n{row}\n')
    return path


def of(sides: BisectSides) -> dict[str, tuple[str, str]]:
    return {row.key: (row.old, row.new) for row in sides.differences}


def test_the_path_of_a_profile_is_whole_wherever_it_is_read(
    spec: ClusterSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_profile(tmp_path, "mapred-site", '"mapreduce.task.io.sort.factor" = "64"')
    monkeypatch.chdir(tmp_path)
    sides = bisect_sides(("mine.toml", "cluster"), spec)
    assert sides.profile == str(tmp_path.resolve() / "mine.toml")
    assert of(sides) == {"mapreduce.task.io.sort.factor": ("64", "10")}


@pytest.mark.parametrize(
    "setting",
    [
        f"{EXECUTORS}=4",  # as many as there are workers, which is what `default` writes
        "spark.executor.cores=4",
        "mapreduce.job.reduces=4",
        "dfs.blocksize=67108864",
    ],
)
def test_what_is_set_differs_from_what_each_job_is_sized_for(
    spec: ClusterSpec, setting: str
) -> None:
    key, _, value = setting.partition("=")
    [found] = bisect_sides(("cluster", setting), spec).differences
    assert found == PropertyDifference(key=key, old="the job's own", new=value)
    assert found.words == f"{key} {value} instead of the job's own"


def test_a_profile_of_ones_own_sets_it_likewise(spec: ClusterSpec, tmp_path: Path) -> None:
    own = own_profile(tmp_path, "spark-defaults", f'"{EXECUTORS}" = "4"')
    assert of(bisect_sides(("cluster", str(own)), spec)) == {EXECUTORS: ("the job's own", "4")}


def test_what_the_second_side_sizes_for_each_job_cannot_be_set(spec: ClusterSpec) -> None:
    with pytest.raises(UsageError, match=f"except in {EXECUTORS}, which cannot be set alone"):
        bisect_sides((f"{EXECUTORS}=4", "cluster"), spec)


@pytest.mark.parametrize("first", ["paper-2026", "paper-2021", "upstream"])
def test_what_the_second_side_sizes_for_each_node_cannot_be_set(
    spec: ClusterSpec, first: str
) -> None:
    sides = bisect_sides((first, "default"), spec)
    assert {sides.refused[key] for key in OF_NODES} == {"default sizes it for each node"}
    assert not {*OF_NODES, EXECUTORS} & set(of(sides))
    assert "-1" not in {new for _, new in of(sides).values()}


def test_sizes_of_each_node_are_left_for_one_of_all_and_not_for_none(spec: ClusterSpec) -> None:
    paper = bisect_sides(("default", "paper-2026"), spec)
    assert of(paper)[OF_NODES[0]] == ("each node's own", "8192")
    upstream = bisect_sides(("default", "upstream"), spec)
    assert upstream.refused[OF_NODES[0]] == (
        "default sizes it for each node, and upstream does not set it"
    )


def test_what_both_sides_size_is_no_difference(spec: ClusterSpec) -> None:
    other = "mapreduce.task.io.sort.factor=64"
    assert set(of(bisect_sides(("default", other), spec))) == {"mapreduce.task.io.sort.factor"}
