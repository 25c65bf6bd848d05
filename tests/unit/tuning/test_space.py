"""The space: every row is right for the engines, fits a cluster, and reads what it writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from boardcluster.factors import engine_of_setting
from boardcluster.records import ClusterSpec, Engine
from boardcluster.services.job_sizing import real_cores
from boardcluster.services.pair import pair_ids
from boardcluster.services.settings import check_for_pair, check_setting, restarts_daemons
from boardcluster.tuning.space import (
    Dimension,
    Tunable,
    dimensions,
    narrowed,
    params_of,
    read_space,
    settings_of_params,
)
from boardcluster.workloads import load_workload, workload_names

MakeSpec = Callable[..., ClusterSpec]


def named(row: Tunable) -> str:
    return f"{row.engines[0]}-{row.name}"


@pytest.mark.parametrize("row", read_space(), ids=named)
def test_each_row_sets_what_its_engine_reads_without_a_restart(row: Tunable) -> None:
    assert row.why
    assert row.kind in {"choice", "whole", "share"}
    assert (row.kind == "choice") == bool(row.values)
    assert set(row.not_for) <= set(workload_names())
    for workload, name in (entry.partition("=")[0].split(".") for entry in row.fixed_by):
        assert name in load_workload(workload).parameters
    levels = row.values or (f"{row.low:g} {row.unit}".strip(),)
    for key in row.properties:
        assert not restarts_daemons(key)
        assert engine_of_setting(key) in {None, *row.engines}
        for level in levels:
            assert check_setting(key, level)
        for pair in pair_ids():
            check_for_pair({key: ""}, pair)


@pytest.mark.parametrize("engine", [Engine.SPARK, Engine.MAPREDUCE])
@pytest.mark.parametrize("workload", ["wordcount", "terasort", "pi", "submit"])
def test_what_is_written_is_read_again(make_spec: MakeSpec, engine: Engine, workload: str) -> None:
    spec = make_spec(engines=pair_ids()[0])
    space = dimensions(spec, engine, workload, cores=real_cores(spec))
    assert len(space) >= 7
    assert len({row.name for row in space}) == len(space)
    for ends in ("low", "high"):
        params = {
            row.name: row.values[0 if ends == "low" else -1]
            if row.is_choice
            else row.snapped(getattr(row, ends))
            for row in space
        }
        settings = settings_of_params(space, params)
        texts = {key: check_setting(key, value) for key, value in settings.items()}
        assert params_of(space, texts) == params


def test_rows_that_share_a_property_are_joined(make_spec: MakeSpec) -> None:
    space = dimensions(make_spec(), Engine.SPARK, "wordcount", cores=4)
    joined = settings_of_params(
        space,
        {
            "compiler of executors": "-XX:TieredStopAtLevel=1",
            "collector of executors": "-XX:+UseG1GC",
        },
    )
    options = "-XX:TieredStopAtLevel=1 -XX:+UseG1GC"
    assert joined == {"spark.executor.extraJavaOptions": options}
    unset = params_of(space, {})
    assert unset["collector of executors"] == "-XX:+UseSerialGC"
    assert unset["executors"] == 2
    assert "parallelism" not in unset, "nobody knows what it is"


@pytest.mark.parametrize(
    ("key", "text", "level"),
    [
        ("mapreduce.input.fileinputformat.split.maxsize", "4194304", 8),
        ("mapreduce.input.fileinputformat.split.maxsize", "9223372036854775807", 512),
        ("mapreduce.input.fileinputformat.split.maxsize", "", 512),
        ("mapreduce.job.reduces", "64", 8),
        ("mapreduce.map.output.compress.codec", "my.own.Codec", None),
    ],
)
def test_a_value_beyond_the_range_is_its_end_and_not_the_default(
    make_spec: MakeSpec, key: str, text: str, level: object
) -> None:
    space = dimensions(make_spec(workers=4), Engine.MAPREDUCE, "wordcount", cores=4)
    (row,) = [row for row in space if row.tunable.properties == (key,)]
    assert row.read({key: text}) == level


@pytest.mark.parametrize(("cores", "most"), [(1, 2), (2, 4), (4, 8), (16, 8)])
def test_executors_beyond_twice_the_workers_or_the_real_cores_are_not_tried(
    make_spec: MakeSpec, cores: int, most: int
) -> None:
    space = dimensions(make_spec(workers=4), Engine.SPARK, "wordcount", cores=cores)
    assert {row.name: row for row in space}["executors"].high == most


def test_values_too_small_to_run_are_left_out_and_the_others_kept(make_spec: MakeSpec) -> None:
    space = dimensions(make_spec(memory_mib=8192), Engine.MAPREDUCE, "wordcount", cores=4)

    def refusal_of(settings: Mapping[str, str]) -> str:
        mib = int(settings.get("mapreduce.map.memory.mb", "512").split()[0])
        return "no room for the buffer" if mib < 340 else "too much" if mib > 7000 else ""

    kept, out = narrowed(space, refusal_of)
    row = {row.name: row for row in kept}["memory of a map"]
    assert (row.low, row.high) == (384, 6976)
    assert {(row.what, row.reason) for row in out} == {
        ("memory of a map up to 320 MiB", "no room for the buffer"),
        ("memory of a map from 7040 MiB", "too much"),
    }

    kept, out = narrowed(space, lambda rows: "no" if "mapreduce.map.memory.mb" in rows else "")
    assert "memory of a map" not in {row.name for row in kept}
    assert ("memory of a map from 256 MiB", "no") in {(row.what, row.reason) for row in out}


@pytest.mark.parametrize(
    ("parameters", "fixing"),
    [
        ({"terasort.reduces": "8"}, "terasort.reduces=8"),
        ({"terasort.reduces": "0"}, ""),
        ({}, ""),
        ({"grep.form": "fast"}, "grep.form=fast"),
        ({"grep.form": "stock"}, ""),
        ({"wordcount.form": "fast"}, ""),
    ],
)
def test_a_parameter_may_set_what_would_be_searched(
    parameters: dict[str, str], fixing: str
) -> None:
    (row,) = [row for row in read_space() if row.name == "reduces"]
    assert row.fixing(parameters) == fixing


def test_what_cannot_run_even_alone_is_left_out_with_its_reason(make_spec: MakeSpec) -> None:
    spec = make_spec(memory_mib=2048)
    space = dimensions(spec, Engine.SPARK, "wordcount", cores=4)

    def refusal_of(settings: Mapping[str, str]) -> str:
        if int(settings.get("spark.executor.memory", "0").split()[0]) > 1100:
            return "too much memory"
        if "zstd" in settings.values():
            return "no zstd here"
        return "no Kryo" if "Kryo" in settings.get("spark.serializer", "") else ""

    kept, out = narrowed(space, refusal_of)
    rows: dict[str, Dimension] = {row.name: row for row in kept}
    assert rows["memory of an executor"].high == 1088
    assert rows["codec"].values == ("lz4", "snappy")
    assert "serializer" not in rows, "one value is no choice"
    assert {(row.what, row.reason) for row in out} == {
        ("memory of an executor from 1152 MiB", "too much memory"),
        ("codec zstd", "no zstd here"),
        ("serializer org.apache.spark.serializer.KryoSerializer", "no Kryo"),
    }
