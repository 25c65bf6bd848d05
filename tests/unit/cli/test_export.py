"""`export` to files and to standard output: exact numbers, no half files, plain refusals."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_energy, make_power, make_probe_run
from tests.unit.cli.stocked import stock
from typer.testing import CliRunner, Result

from boardcluster.cli.app import app
from boardcluster.errors import ClusterError, EmptySelectionError, UsageError
from boardcluster.queries.names import TableName
from boardcluster.queries.tables import StoredTables
from boardcluster.records import (
    AttemptState,
    Disturbance,
    EnergyMethod,
    Engine,
    ProbeFigure,
    Verdict,
)
from boardcluster.store import Store

SECONDS = (1 / 3, 0.1 + 0.2, 41.00000000000001)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "boards"
    measured = {
        "energy": make_energy(812.3456789),
        "counters": {"group/NAME": 2**53 + 1},
        "figures": {"read_bytes_per_second": 1e7 / 3},
    }
    stock(folder, "20260801-1", SECONDS, name="grün", verdict=Verdict.VALID, measured=measured)
    stock(folder, "20260801-2", (5.0, None), state=AttemptState.FAILED, profile="tuned")
    return folder


def export(home: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["export", "--home", str(home), *options])


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def read_back(home: Path, to: str, path: Path, what: str = "runs") -> list[dict[str, Any]]:
    done = export(home, "--format", to, "--what", what, "-o", str(path))
    assert done.exit_code == 0, done.output
    if to == "json":
        rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"]
        return rows
    import pyarrow.parquet as pq

    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found


@pytest.mark.parametrize("to", ["csv", "json", "parquet"])
def test_what_disturbed_a_run_is_exported(tmp_path: Path, to: str) -> None:
    steal = Disturbance(cause="steal", node="host", share=0.1, adjustable=True)
    folder = tmp_path / "boards"
    stock(folder, "20260801-1", SECONDS, measured={"disturbances": (steal,)})
    path = tmp_path / f"runs.{to}"
    if to == "csv":
        rows: list[dict[str, Any]] = list(read_csv(export(folder, "--format", to).stdout))
    else:
        rows = read_back(folder, to, path)
    found = rows[0]["disturbances"]
    assert (json.loads(found) if isinstance(found, str) else found) == [
        {"cause": "steal", "node": "host", "share": 0.1, "adjustable": True}
    ]


def test_every_run_is_there_whatever_became_of_it(home: Path) -> None:
    rows = read_csv(export(home, "--format", "csv").stdout)
    assert [row["state"] for row in rows] == ["ok", "ok", "ok", "failed", "pending"]
    assert [row["attempt"] for row in rows] == ["1", "1", "1", "1", ""]
    assert [row["campaign_name"] for row in rows] == ["grün"] * 3 + [""] * 2
    assert rows[3]["reason"] == "it broke"
    assert rows[4]["setup_kernel"] == rows[4]["duration_seconds"] == ""
    assert rows[0]["setup_cpu_cores"] == "4"
    assert rows[0]["emulated"] == "false"


def test_numbers_of_csv_are_those_of_the_store(home: Path) -> None:
    rows = read_csv(export(home, "--format", "csv").stdout)
    with Store.open(home, read_only=True) as store:
        stored = [row.measurement for row in store.results(all_attempts=True)]
    for row, found in zip(rows, stored, strict=True):
        if found is None:
            continue
        assert float(row["duration_seconds"]) == found.duration_seconds
        assert found.energy is not None
        assert float(row["energy_joules"]) == found.energy.energy_joules
        assert json.loads(row["counters"]) == found.counters
        assert float(row["figure_read_bytes_per_second"]) == found.figures["read_bytes_per_second"]
        assert row["energy_method"] == "metered"
        assert float(row["power_mean_watts"]) == 812.3456789 / found.duration_seconds


@pytest.mark.parametrize("to", ["json", "parquet"])
def test_numbers_of_other_formats_are_those_of_the_store(
    to: str, home: Path, tmp_path: Path
) -> None:
    rows = read_back(home, to, tmp_path / f"it.{to}")
    assert [row["duration_seconds"] for row in rows] == [*SECONDS, None, None]
    assert [row["attempt"] for row in rows] == [1, 1, 1, 1, None]
    assert [row["campaign_name"] for row in rows][:1] == ["grün"]
    assert [row["setup_kernel"] for row in rows] == ["6.12.25 aarch64"] * 4 + [""]
    counters = rows[0]["counters"]
    assert (counters if to == "json" else json.loads(counters)) == {"group/NAME": 2**53 + 1}


def test_json_says_its_schema_and_what_columns_mean(home: Path) -> None:
    document = json.loads(export(home, "--format", "json").stdout)
    assert document["schema"] == 1
    assert document["table"] == "runs"
    assert [field["name"] for field in document["fields"]] == list(document["rows"][0])


def test_parquet_says_its_schema(home: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "it.parquet"
    read_back(home, "parquet", path)
    metadata = pq.read_schema(path).metadata
    assert (metadata[b"schema"], metadata[b"table"]) == (b"1", b"runs")


def test_cells_hold_the_statistics(home: Path) -> None:
    (row,) = read_csv(export(home, "--format", "csv", "--what", "cells").stdout)
    assert float(row["duration_mean_seconds"]) == sum(SECONDS) / 3
    assert row["runs"] == row["energy_runs"] == "3"
    assert (
        float(row["duration_low_seconds"]) < sum(SECONDS) / 3 < float(row["duration_high_seconds"])
    )
    assert row["starts"] == "1"
    assert row["variation_between_share"] == ""
    powers = [812.3456789 / seconds for seconds in SECONDS]  # as the report's table has it
    assert float(row["power_mean_watts"]) == pytest.approx(sum(powers) / 3)


def test_a_cell_of_tainted_runs_has_no_mean(tmp_path: Path) -> None:
    stock(tmp_path, "a", (2.0, 3.0), verdict=Verdict.TAINTED)
    (row,) = read_csv(export(tmp_path, "--format", "csv", "--what", "cells").stdout)
    assert (row["runs"], row["runs_left_out"], row["duration_mean_seconds"]) == ("0", "2", "")
    (row,) = read_csv(export(tmp_path, "--format", "csv", "--what", "cells", "--tainted").stdout)
    assert (row["runs"], row["runs_tainted"], row["duration_mean_seconds"]) == ("2", "2", "2.5")


def test_one_run_has_no_interval(tmp_path: Path) -> None:
    stock(tmp_path, "a", (2.0,))
    (row,) = read_csv(export(tmp_path, "--format", "csv", "--what", "cells").stdout)
    assert row["duration_mean_seconds"] == "2.0"
    assert row["duration_low_seconds"] == row["duration_deviation_seconds"] == ""


def test_samples_are_long_and_without_unknown_ones(home: Path) -> None:
    rows = read_csv(export(home, "--format", "csv", "--what", "samples").stdout)
    first = [
        (row["node"], float(row["seconds"]), row["column"], float(row["value"])) for row in rows
    ][:3]
    assert first == [
        ("wörker1", 1.5, "cpu_user_seconds", pytest.approx(0.123456)),
        ("wörker1", 0.5, "temperature_celsius/soc", 41.5),
        ("wörker1", 1.5, "temperature_celsius/soc", 42.25),
    ]
    assert len(rows) == 3 * 3


def test_samples_are_read_run_by_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the first run is read before the first row is asked for."""
    read: list[int] = []
    telemetry = Store.telemetry

    def counting(self: Store, attempt: Any, **options: Any) -> Any:
        read.append(attempt.number)
        return telemetry(self, attempt, **options)

    monkeypatch.setattr(Store, "telemetry", counting)
    with Store.open(home, read_only=True) as store:
        frame = StoredTables(store).frame(TableName.SAMPLES)
        rows = iter(frame.rows)
        for _ in range(3):
            next(rows)
        assert len(read) == 1
        next(rows)
        assert len(read) == 2


def test_damaged_samples_cost_only_themselves_and_are_named(home: Path) -> None:
    (home / "attempts" / "20260801-1-spark-1" / "1" / "telemetry.npz").write_bytes(b"PK broken")
    done = export(home, "--format", "csv", "--what", "samples")
    assert done.exit_code == 0
    assert {row["trial"] for row in read_csv(done.stdout)} == {
        "20260801-1-spark-0",
        "20260801-1-spark-2",
    }
    assert "left out: damaged" in done.stderr
    assert "20260801-1-spark-1" in done.stderr.replace("\n", "")


def test_probes(home: Path) -> None:
    with Store.open(home) as store:
        for run_id, figures, reason in (
            ("p1", (ProbeFigure(name="rate_bytes_per_second", value=1 / 3),), ""),
            ("p2", (), "no fio"),
        ):
            store.add_probe_run(
                make_probe_run(id=run_id, node="wörker1", figures=figures, reason=reason)
            )
    rows = read_csv(export(home, "--format", "csv", "--what", "probes").stdout)
    assert [(row["run"], row["value"], row["reason"]) for row in rows] == [
        ("p1", repr(1 / 3), ""),
        ("p2", "", "no fio"),
    ]


@pytest.mark.parametrize(
    ("joules", "method", "line"),
    [
        (
            (780.0, 780.0),
            EnergyMethod.METERED,
            "1.367 Gflops at 26 W = 0.0526 Gflops/W (level 1, metered, power of the whole job,",
        ),
        (
            (780.0, 780.0),
            EnergyMethod.MODELLED,
            "= 0.0526 Gflops/W (level 1, modelled, power of the whole job,",
        ),
        (
            (None, None),
            EnergyMethod.METERED,
            "1.367 Gflops (no power was measured; the meter was silent,",
        ),
    ],
)
def test_top500(
    joules: tuple[float | None, ...], method: EnergyMethod, line: str, tmp_path: Path
) -> None:
    fields: dict[str, Any] = {
        "workload": "hpl",
        "engine": Engine.MPI,
        "size_bytes": 0,
        "workers": 5,
    }
    for place, each in enumerate(joules):
        measured = {
            "figures": {"gflops_per_second": 1.367},
            "energy": make_energy(each, method=method),
        }
        stock(tmp_path, f"c{place}", (30.0,), measured=measured, **fields)
    shown = export(tmp_path, "--format", "top500").stdout
    assert line in shown
    assert "5 nodes, mean of 2 runs)" in shown


def test_top500_takes_the_power_of_the_core_phase_and_states_its_level(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"workload": "hpl", "engine": Engine.MPI, "size_bytes": 0}
    core = make_energy(500.0, level=0, powers=(make_power(500.0, mean_watts=50.0),))
    measured = {
        "figures": {"gflops_per_second": 100.0},
        "energy": make_energy(900.0, core=core),
    }
    stock(tmp_path, "c", (30.0,), measured=measured, **fields)
    assert export(tmp_path, "--format", "top500").stdout == (
        "100 Gflops at 50 W = 2 Gflops/W (level 0, none of the EE HPC WG methodology, metered, "
        "power of the core phase, 4 workers, one run)\n"
    )


def test_top500_without_hpl_or_energy(home: Path, tmp_path: Path) -> None:
    assert isinstance(export(home, "--format", "top500").exception, EmptySelectionError)
    fields: dict[str, Any] = {"workload": "hpl", "engine": Engine.MPI, "size_bytes": 0}
    stock(tmp_path, "c", (30.0,), measured={"figures": {"gflops_per_second": 1.367}}, **fields)
    shown = export(tmp_path, "--format", "top500").stdout
    assert shown == "1.367 Gflops (no power was measured, 4 workers, one run)\n"


def test_latex_writes_a_file_for_each_table(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    done = export(home, "--format", "latex", "-o", str(folder))
    assert done.exit_code == 0, done.output
    (times,) = (path.read_text() for path in folder.glob("*terasort*times*.tex"))
    assert r"\toprule" in times
    assert "500~MB" in times or "500 MB" in times
    again = export(home, "--format", "latex", "-o", str(folder))
    assert isinstance(again.exception, UsageError)
    assert export(home, "--format", "latex", "-o", str(folder), "--force").exit_code == 0


def test_latex_shows_no_effect_of_other_work_like_the_report(tmp_path: Path) -> None:
    home, folder = tmp_path / "boards", tmp_path / "tables"
    for place, samples in enumerate(("1000", "2000"), start=1):
        seconds = tuple(place * one for one in SECONDS)
        fields: dict[str, Any] = {"workload": "pi", "parameters": {"pi.samples": samples}}
        stock(home, f"20260801-{place}", seconds, size_bytes=0, **fields)
    assert export(home, "--format", "latex", "-o", str(folder)).exit_code == 0
    written = "".join(path.read_text() for path in folder.glob("*.tex"))
    assert "times" in written
    assert "effect of changing one factor" not in written


def test_a_file_that_is_there_is_refused_without_force(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("mine\n")
    done = export(home, "--format", "csv", "-o", str(path))
    assert isinstance(done.exception, UsageError)
    assert "--force" in done.exception.hint
    assert path.read_text() == "mine\n"
    assert export(home, "--format", "csv", "-o", str(path), "--force").exit_code == 0
    assert path.read_text().startswith("campaign,")


def test_a_folder_gets_a_file_of_the_tables_name(home: Path, tmp_path: Path) -> None:
    assert export(home, "--format", "json", "--what", "cells", "-o", str(tmp_path)).exit_code == 0
    assert json.loads((tmp_path / "cells.json").read_text())["table"] == "cells"


def test_ctrl_c_leaves_no_part_of_a_file(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    telemetry = Store.telemetry
    read: list[str] = []

    def interrupted(self: Store, attempt: Any, **options: Any) -> Any:
        read.append(attempt.trial_id)
        if len(read) == 2:
            raise SystemExit(130)
        return telemetry(self, attempt, **options)

    monkeypatch.setattr(Store, "telemetry", interrupted)
    folder = tmp_path / "out"
    done = export(home, "--format", "csv", "--what", "samples", "-o", str(folder / "samples.csv"))
    assert done.exit_code == 130
    assert list(folder.iterdir()) == []


def test_parquet_without_its_package_says_what_to_install(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = export(home, "--format", "parquet", "-o", str(tmp_path / "it.parquet"))
    assert isinstance(done.exception, UsageError)
    assert "pip install 'boardcluster[parquet]'" in done.exception.hint
    assert not (tmp_path / "it.parquet").exists()


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (("--format", "parquet"), UsageError),
        (("--format", "latex"), UsageError),
        (("--format", "top500", "--what", "runs"), UsageError),
        (("--format", "csv", "--what", "probes", "--campaign", "c"), UsageError),
        (("--format", "csv", "--what", "probes"), EmptySelectionError),
        (("--format", "csv", "--campaign", "nope"), EmptySelectionError),
    ],
)
def test_refusals(options: tuple[str, ...], kind: type[Exception], home: Path) -> None:
    assert isinstance(export(home, *options).exception, kind)


def test_power_without_any(tmp_path: Path) -> None:
    stock(tmp_path, "a", (2.0,))
    done = export(tmp_path, "--format", "csv", "--what", "power")
    assert isinstance(done.exception, EmptySelectionError)
    assert "no power was measured" in done.exception.message


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    assert isinstance(export(tmp_path / "no", "--format", "csv").exception, ClusterError)
