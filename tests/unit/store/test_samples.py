"""Telemetry goes into one file and comes back as it was, to the resolution of each unit."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import make_samples, make_telemetry

from boardcluster.errors import StoreError
from boardcluster.records import NodeSamples, TaskRecord, Telemetry
from boardcluster.store import sample_archive, samples
from boardcluster.store.files import TELEMETRY_NAME
from boardcluster.store.samples import read_telemetry, write_telemetry

NAN = math.nan
STORES = Path(__file__).parents[2] / "fixtures"
GIVEN = make_telemetry(
    make_samples(
        "pi0",
        seconds=[-0.125, 0.875, 1.875],
        columns={
            "cpu_user_seconds": [NAN, 0.5, 3.99],
            "disk_read_bytes/mmcblk0": [NAN, 2.0**40, 0.0],
            "temperature_celsius": [45.2, 46.5, NAN],
            "clock_hertz/cpu3": [2.4e9, 2.4e9, 1.5e9],
            "clock_step_seconds": [NAN, -120.5, 0.0],
        },
        clock_offset_seconds=-3.5,
        clock_error_seconds=0.002,
        notes=("3.20 apt-get",),
    ),
    make_samples(
        "pi-ü", seconds=[0.5], columns={"cpu_user_seconds": 0.25, "net_sent_bytes/eth0": 12.0}
    ),
    duration_seconds=2.5,
    phases={"sort": (0.0, 2.25)},
    tasks=(
        TaskRecord(
            node="pi-ü",
            begin_seconds=0.125,
            end_seconds=2.0,
            cpu_seconds=1.5,
            collection_seconds=0.0625,
            fetch_wait_seconds=0.25,
            overhead_seconds=0.03,
            spilled_bytes=2**40,
        ),
    ),
)


def same(given: NodeSamples, found: NodeSamples) -> None:
    assert set(found.columns) == set(given.columns)
    np.testing.assert_allclose(found.seconds, given.seconds, atol=1e-6)
    for name, values in given.columns.items():
        np.testing.assert_allclose(found.columns[name], values, rtol=1e-6, atol=1e-6)
    for field in (
        *("node", "scope", "interval_seconds", "cores", "notes"),
        *("clock_offset_seconds", "clock_error_seconds"),
    ):
        assert getattr(found, field) == getattr(given, field)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_telemetry(tmp_path, GIVEN)
    found = read_telemetry(tmp_path)
    assert found is not None
    assert (found.duration_seconds, dict(found.phases)) == (2.5, {"sort": (0.0, 2.25)})
    assert found.tasks == GIVEN.tasks
    for given, read in zip(GIVEN.nodes, found.nodes, strict=True):
        same(given, read)
    assert [path.name for path in tmp_path.iterdir()] == [TELEMETRY_NAME]


def test_a_number_that_no_sample_can_be_is_unknown(tmp_path: Path) -> None:
    values = [2.0**40, 2.0**63, -1e30, math.inf, NAN]
    node = make_samples("pi0", seconds=np.arange(5.0), columns={"disk_read_bytes/sda": values})
    write_telemetry(tmp_path, make_telemetry(node, duration_seconds=5.0))
    found = read_telemetry(tmp_path)
    assert found is not None
    np.testing.assert_equal(
        found.nodes[0].columns["disk_read_bytes/sda"], [2.0**40, NAN, NAN, NAN, NAN]
    )


def test_single_nodes_and_columns_are_read(tmp_path: Path) -> None:
    write_telemetry(tmp_path, GIVEN)
    found = read_telemetry(tmp_path, nodes=["pi0"], columns=["disk_read_bytes", "cpu_user_seconds"])
    assert found is not None
    (node,) = found.nodes
    assert set(node.columns) == {"cpu_user_seconds", "disk_read_bytes/mmcblk0"}


def test_numpy_alone_reads_the_file(tmp_path: Path) -> None:
    with np.load(write_telemetry(tmp_path, GIVEN)) as archive:
        assert archive["disk_read_bytes!mmcblk0"][1] == 2**40
        assert archive["temperature_celsius"].dtype == np.int32


def test_that_tasks_were_not_kept_stays_known(tmp_path: Path) -> None:
    for given in (None, ()):
        write_telemetry(tmp_path, replace(GIVEN, tasks=given))
        found = read_telemetry(tmp_path)
        assert found is not None
        assert found.tasks == given


def test_runs_from_before_tasks_were_kept_have_none() -> None:
    kept = sorted(STORES.rglob(TELEMETRY_NAME))
    assert kept
    for path in kept:
        found = read_telemetry(path.parent)
        assert found is not None
        assert found.nodes
        assert found.tasks is None


def test_no_samples_and_no_file(tmp_path: Path) -> None:
    assert read_telemetry(tmp_path) is None
    write_telemetry(tmp_path, Telemetry(duration_seconds=1.0, nodes=()))
    found = read_telemetry(tmp_path)
    assert found is not None
    assert found.nodes == ()


def test_text_within_that_is_nested_too_deeply_is_damage(tmp_path: Path) -> None:
    text = np.frombuffer(b"[" * 200_000, dtype=np.uint8)
    with (tmp_path / TELEMETRY_NAME).open("wb") as stream:
        np.savez_compressed(stream, meta=text)
    with pytest.raises(StoreError, match=TELEMETRY_NAME):
        read_telemetry(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"phases": {"a": []}},
        {"phases": []},
        {"phases": {"a": ["b", 1]}},
        {"duration_seconds": "long"},
        {
            "tasks": {
                "columns": ["node", "begin_seconds", "end_seconds", "cpu_seconds"],
                "rows": [["a", 0, 1, "b"]],
            }
        },
    ],
)
def test_text_within_that_makes_no_sense_is_damage(change: dict[str, Any], tmp_path: Path) -> None:
    head = {"format": 1, "duration_seconds": 1, "scales": {}, "nodes": [], "phases": {}, **change}
    with (tmp_path / TELEMETRY_NAME).open("wb") as stream:
        text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
        np.savez_compressed(stream, meta=text)
    with pytest.raises(StoreError, match=TELEMETRY_NAME):
        read_telemetry(tmp_path)


def _many_bytes(archive: zipfile.ZipFile) -> None:
    archive.getinfo("seconds.npy").file_size = 3 << 30


def _long_text(archive: zipfile.ZipFile) -> None:
    archive.getinfo("meta.npy").file_size = 129 << 20


def _many_names(archive: zipfile.ZipFile) -> None:
    for number in range(257):
        row = zipfile.ZipInfo(f"{number}.npy")
        row.comment = b" " * 65535
        archive.writestr(row, b"")


def _another_end(archive: zipfile.ZipFile) -> None:
    archive.comment = b"and more"


def _no_head(archive: zipfile.ZipFile) -> None:
    archive.writestr("net_sent_bytes!eth0.npy", b"\x93NUMPY\1\0\1\0(")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_many_bytes, "would unpack to more"),
        (_long_text, "more than that of any run"),
        (_many_names, "more arrays than"),
        (_another_end, "does not end as"),
        (_no_head, "what stands before an array"),
    ],
)
def test_an_archive_that_we_would_not_write_is_damage(
    change: Callable[[zipfile.ZipFile], None], words: str, tmp_path: Path
) -> None:
    copy(write_telemetry(tmp_path, GIVEN), change)
    with pytest.raises(StoreError, match=f"{TELEMETRY_NAME}: .*{words}"):
        read_telemetry(tmp_path)


def copy(
    path: Path, change: Callable[[zipfile.ZipFile], None] | None = None, kind: int = 0
) -> None:
    """Write an archive again, compressed in another way, or with another change."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        if change is not None:
            change(archive)


def test_only_what_is_decompressed_within_a_bound_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_telemetry(tmp_path, GIVEN)
    copy(path)
    assert read_telemetry(tmp_path) is not None
    copy(path, kind=zipfile.ZIP_LZMA)
    with pytest.raises(StoreError, match="compressed in a way"):
        read_telemetry(tmp_path)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)  # a second end, which has the last word
    copy(path)
    with pytest.raises(StoreError, match="does not end as"):
        read_telemetry(tmp_path)


def test_more_values_than_memory_may_hold_are_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_telemetry(tmp_path, GIVEN)
    monkeypatch.setattr(samples, "VALUES_MOST", 10)
    assert read_telemetry(tmp_path) is not None, "no more than its size allows"
    monkeypatch.setattr(sample_archive, "_FOR_EACH_BYTE", 0)
    assert read_telemetry(tmp_path, columns=["disk_read_bytes"]) is not None
    with pytest.raises(StoreError, match="more values than"):
        read_telemetry(tmp_path)


@pytest.mark.parametrize("damage", ["cut", "empty", "other", "flipped"])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str) -> None:
    path = write_telemetry(tmp_path, GIVEN)
    data = path.read_bytes()
    flipped = bytearray(data)
    flipped[60] ^= 0xFF
    path.write_bytes(
        {"cut": data[:-40], "empty": b"", "other": b"hello", "flipped": bytes(flipped)}[damage]
    )
    with pytest.raises(StoreError, match=TELEMETRY_NAME):
        read_telemetry(tmp_path)
