"""Frames of every kind, written and read back by other programs' readers."""

from __future__ import annotations

import csv
import errno
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_energy, make_power
from tests.unit.report.conftest import Make

from boardcluster.analysis.cells import summarise, untrusted
from boardcluster.analysis.efficiency import efficiency_of
from boardcluster.errors import CapacityError, HostError, UsageError
from boardcluster.records import (
    Campaign,
    Energy,
    EnergyMethod,
    Engine,
    Fingerprint,
    Measurement,
    Verdict,
)
from boardcluster.report.export.cells import cell_frame, mean_power_watts
from boardcluster.report.export.frames import DType, Field, Frame, Value
from boardcluster.report.export.runs import power_frame, run_frame
from boardcluster.report.export.writers import Format, whole_file, write_frame, write_stream

ODD: list[tuple[Value, ...]] = [
    ("plain", 1, 0.1 + 0.2, True, {"a": 2**60, "b": "ü"}),
    ('quoted "x",\nand a line', -(2**62), 5e-324, False, {}),
    ("=1+1", None, None, None, {"nested": [1.5, None]}),
    ("日本\udcff", 0, 1.7976931348623157e308, True, {}),
]
FIELDS = (
    Field("name", DType.TEXT, "a text"),
    Field("count", DType.INTEGER, "a count"),
    Field("share", DType.NUMBER, "a share"),
    Field("known", DType.BOOLEAN, "whether"),
    Field("rest", DType.OBJECT, "the rest"),
)


def odd() -> Frame:
    return Frame(name="odd", fields=FIELDS, rows=iter(ODD))


def shown(text: object) -> str:
    return str(text).encode("utf-8", "backslashreplace").decode()


def test_csv_reads_back_as_the_same(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    assert write_frame(odd(), path, to=Format.CSV, force=False) == 4
    head, *rows = csv.reader(io.StringIO(path.read_bytes().decode(), newline=""))
    assert head == [field.name for field in FIELDS]
    for (name, count, share, known, rest), row in zip(ODD, rows, strict=True):
        assert row[0].removeprefix("'") == shown(name)
        assert (int(row[1]) if row[1] else None) == count
        assert (float(row[2]) if row[2] else None) == share
        assert {"true": True, "false": False, "": None}[row[3]] is known
        assert json.loads(row[4]) == rest


@pytest.mark.parametrize("to", [Format.JSON, Format.PARQUET])
def test_other_formats_read_back_as_the_same(to: Format, tmp_path: Path) -> None:
    path = tmp_path / f"odd.{to}"
    assert write_frame(odd(), path, to=to, force=False) == 4
    rows: list[dict[str, Any]]
    if to is Format.JSON:
        rows = json.loads(path.read_text())["rows"]
    else:
        import pyarrow.parquet as pq

        rows = pq.read_table(path).to_pylist()
        rows = [{**row, "rest": json.loads(row["rest"])} for row in rows]
    for (name, *rest), row in zip(ODD, rows, strict=True):
        # JSON can say even half of a character; Arrow takes valid UTF-8 only.
        assert list(row.values()) == [name if to is Format.JSON else shown(name), *rest]


def test_an_empty_table_is_a_table(tmp_path: Path) -> None:
    for to in Format:
        path = tmp_path / f"none.{to}"
        frame = Frame(name="none", fields=FIELDS, rows=())
        assert write_frame(frame, path, to=to, force=False) == 0
    assert (tmp_path / "none.csv").read_text() == "name,count,share,known,rest\n"
    assert json.loads((tmp_path / "none.json").read_text())["rows"] == []


def test_parquet_is_written_in_bounded_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    from boardcluster.report.export import writers

    monkeypatch.setattr(writers, "_BATCH_ROWS", 3)
    write_frame(odd(), tmp_path / "odd.parquet", to=Format.PARQUET, force=False)
    file = pq.ParquetFile(tmp_path / "odd.parquet")
    assert [file.metadata.row_group(place).num_rows for place in range(2)] == [3, 1]


def test_parquet_is_no_text() -> None:
    with pytest.raises(UsageError):
        write_stream(odd(), io.StringIO(), to=Format.PARQUET)


def _write_half(path: Path) -> None:
    with whole_file(path, force=True) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt


def test_a_block_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "it"
    with pytest.raises(KeyboardInterrupt):
        _write_half(path)
    assert list(path.parent.iterdir()) == []
    path.write_text("old")
    with pytest.raises(UsageError), whole_file(path, force=False):
        pass
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, CapacityError), (errno.EACCES, HostError)]
)
def test_what_the_system_refuses_is_said(
    number: int, kind: type[HostError], tmp_path: Path
) -> None:
    with pytest.raises(kind, match="it") as caught, whole_file(tmp_path / "it", force=False):
        raise OSError(number, "refused")
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_names_of_columns_are_unique_and_units_last(make: Make, campaign: Campaign) -> None:
    results = [
        make(0, Engine.SPARK, 20.0, measured={"figures": {"x_watts": 1.0}}),
        make(1, Engine.SPARK, None, state=None),
    ]
    frames = (
        run_frame(results, {campaign.id: campaign}),
        cell_frame(summarise(results)),
        power_frame(results, {campaign.id: campaign}),
    )
    for frame in frames:
        names = [field.name for field in frame.fields]
        assert len(names) == len(set(names))
        assert {"seconds", "bytes"} & {name.rpartition("_")[2] for name in names}
        for field, values in zip(frame.fields, zip(*frame.rows, strict=True), strict=False):
            assert field.kind is not DType.TEXT or all(isinstance(row, str) for row in values)
            assert field.meaning


def test_emulated_boards_are_named_in_every_row(
    make: Make, campaign: Campaign, fingerprint: Fingerprint
) -> None:
    setup = replace(fingerprint, twin="4 x rpi-4b-4gb-1500mhz")
    results = [make(0, Engine.SPARK, 20.0, setup=setup, measured={"dilation": 4.0})]
    for frame in (run_frame(results, {}), cell_frame(summarise(results))):
        (row,) = (dict(zip([f.name for f in frame.fields], row, strict=True)) for row in frame.rows)
        assert row["emulated"] is True
        assert row["twin"] == "emulated boards, dilation 4.0"
        assert row["dilation"] == 4.0


def energy(joules: float | None, method: EnergyMethod = EnergyMethod.METERED) -> Energy:
    mean_watts = None if joules is None else joules / 20
    reason = "" if joules is not None else "silent"
    power = make_power(
        joules,
        nodes=("worker1", "worker2"),
        mean_watts=mean_watts,
        most_watts=50.0,
        method=method,
        reason=reason,
    )
    return make_energy(joules, method=method, powers=(power,), reason="")


def test_power_has_a_row_for_each_meter(make: Make, campaign: Campaign) -> None:
    results = [
        make(0, Engine.SPARK, 20.0, measured={"energy": energy(800.0)}),
        make(1, Engine.SPARK, 20.0, measured={"energy": energy(None)}),
        make(2, Engine.SPARK, 20.0),
    ]
    frame = power_frame(results, {campaign.id: campaign})
    names = [field.name for field in frame.fields]
    rows = [dict(zip(names, row, strict=True)) for row in frame.rows]
    assert [(row["meter"], row["energy_joules"], row["reason"]) for row in rows] == [
        ("plug", 800.0, ""),
        ("plug", None, "silent"),
    ]
    assert rows[0]["nodes"] == ["worker1", "worker2"]
    assert rows[0]["cluster"] == "demo"


def test_mean_power_needs_every_run(make: Make) -> None:
    known = [
        make(place, Engine.SPARK, seconds, measured={"energy": energy(joules)})
        for place, (seconds, joules) in enumerate(((10.0, 300.0), (30.0, 500.0)))
    ]
    assert mean_power_watts(known) == 20.0
    assert mean_power_watts([*known, make(2, Engine.SPARK, 10.0)]) is None


def test_a_modelled_energy_among_metered_ones_is_modelled(make: Make) -> None:
    results = [
        make(place, Engine.SPARK, 20.0, measured={"energy": energy(800.0, method)})
        for place, method in enumerate(EnergyMethod)
    ]
    frame = cell_frame(summarise(results))
    (row,) = (dict(zip([f.name for f in frame.fields], row, strict=True)) for row in frame.rows)
    assert row["energy_method"] == "modelled"
    assert row["energy_mean_joules"] == 800.0


def test_the_power_of_a_run_is_the_one_of_the_report(make: Make) -> None:
    """Two submissions of 40 s with 20 s between them: 100 s of energy, 80 s of duration."""
    power = make_power(3000.0, mean_watts=30.0)
    run = make(0, Engine.SPARK, 80.0, measured={"energy": make_energy(3000.0, powers=(power,))})
    rows = []
    for frame in (run_frame([run], {}), cell_frame(summarise([run]))):
        names = [field.name for field in frame.fields]
        rows += [dict(zip(names, row, strict=True)) for row in frame.rows]
    assert [row["power_mean_watts"] for row in rows] == [pytest.approx(30.0)] * 2


def test_exported_energy_has_the_tables_interval(make: Make) -> None:
    results = [
        make(
            place,
            Engine.SPARK,
            20.0,
            start=1 + place // 2,
            measured={"energy": replace(energy(joules), uncertainty_joules=40.0)},
        )
        for place, joules in enumerate((800.0, 801.0, 840.0, 841.0))
    ]
    (cell,) = summarise(results)
    frame = cell_frame([cell])
    (row,) = (dict(zip([f.name for f in frame.fields], row, strict=True)) for row in frame.rows)
    known = efficiency_of(cell)
    assert known.energy_joules.interval is not None
    assert row["energy_low_joules"] == known.energy_joules.interval.low
    assert row["energy_high_joules"] == known.energy_joules.interval.high
    assert row["power_mean_watts"] == known.mean_watts.value
    assert row["energy_runs"] == 4


def test_configurations_without_a_valid_run_have_a_row_without_numbers(make: Make) -> None:
    results = [
        make(place, Engine.SPARK, 20.0, measured={"verdict": Verdict.TAINTED}) for place in range(2)
    ]
    frame = cell_frame(summarise(results), untrusted(results))
    (row,) = (dict(zip([f.name for f in frame.fields], row, strict=True)) for row in frame.rows)
    assert (row["runs"], row["runs_left_out"], row["duration_mean_seconds"]) == (0, 2, None)
    assert row["workload"] == "wordcount"
    assert row["remark"]


def test_secrets_of_own_programs_stay_hidden(make: Make) -> None:
    arguments = ("job.py", "--password=hunter2")
    frame = run_frame([make(0, Engine.SPARK, 2.0, workload="submit", arguments=arguments)], {})
    (row,) = frame.rows
    assert "hunter2" not in str(row)
    assert "job.py" in str(row)


def test_a_run_holds_what_was_measured(make: Make, campaign: Campaign) -> None:
    result = make(
        0,
        Engine.SPARK,
        1 / 3,
        counters={"g/n": 7},
        measured={
            "phases_seconds": {"sort": 0.25},
            "intermediate_bytes": 11,
            "remarks": ("warm",),
            "node_read_bytes": {"worker1": 5},
        },
        parameters={"wordcount.x": "1"},
    )
    frame = run_frame([result], {campaign.id: campaign})
    (values,) = frame.rows
    row = dict(zip([field.name for field in frame.fields], values, strict=True))
    found = result.measurement
    assert isinstance(found, Measurement)
    assert row["duration_seconds"] == found.duration_seconds
    assert row["phase_sort_seconds"] == 0.25
    assert row["counters"] == {"g/n": 7}
    assert row["node_read_bytes"] == {"worker1": 5}
    assert row["parameters"] == {"wordcount.x": "1"}
    assert row["remarks"] == ["warm"]
    assert row["energy_joules"] is None
    assert row["verified_records"] == 2_712_345
