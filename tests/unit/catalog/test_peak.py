"""Rpeak from what is known of processors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.builders import make_cluster, make_fingerprint, make_node

from boardcluster.catalog.lookup import entry_path
from boardcluster.catalog.peak import peak_of, read_processors
from boardcluster.catalog.published import find_cell, find_table, read_index
from boardcluster.errors import SpecError
from boardcluster.records import ClusterSpec, NodeTwin, Role


def cluster(*boards: str, workers: int = 4) -> ClusterSpec:
    nodes = (
        make_node(
            f"n{place}",
            Role.MASTER if place == 0 else Role.WORKER,
            twin=NodeTwin(board=boards[min(place, len(boards) - 1)]) if boards else None,
        )
        for place in range(workers + 1)
    )
    return make_cluster(*nodes, kind="emulated" if boards else "boards")


def test_the_2016_papers_peak_of_additions() -> None:
    peak = peak_of(cluster("rpi-b-800mhz", workers=8).workers[:8], make_fingerprint())
    table = find_table("baun-2016-prose", index=read_index())
    cell = find_cell(table, {"what": "peak of eight nodes, additions"}, "performance")
    assert peak.gflops == pytest.approx(float(cell.value))
    assert "baun-2016" in peak.source
    assert peak.source.startswith("8 x (1 x ARM11 at 0.8 GHz, 1 operations per cycle")


def test_only_workers_that_took_part_count_and_each_with_its_own_board() -> None:
    spec = cluster("rpi-4b-4gb-1500mhz", "rpi-4b-4gb-1500mhz", "rpi-5b-8gb-2400mhz")
    assert peak_of(spec.workers[:1], make_fingerprint()).gflops == pytest.approx(1.5 * 4 * 4)
    assert peak_of(spec.workers[:3], make_fingerprint()).gflops == pytest.approx(
        24 + 2 * 2.4 * 4 * 8
    )


def test_boards_are_read_off_the_fingerprint() -> None:
    lines = tuple(
        f"n{place}: Raspberry Pi 5 Model B Rev 1.0, 4 x Cortex-A76 at 2.40 GHz, 7.87 GiB"
        for place in range(5)
    )
    peak = peak_of(cluster().workers[:4], make_fingerprint(hardware=lines))
    assert peak.gflops == pytest.approx(4 * 2.4 * 4 * 8)


def test_what_is_not_known_says_so() -> None:
    other = ("n1: A board, 4 x Cortex-A53 at 1.20 GHz, 1 GiB",)
    peak = peak_of(cluster().workers[:1], make_fingerprint(hardware=other))
    assert peak.gflops is None
    assert peak.reason == "the catalog has no operations per cycle of Cortex-A53"
    peak = peak_of(cluster().workers[:1], make_fingerprint())
    assert peak.reason == "processor and clock of n1 are not known"
    assert "Core i5" in peak_of(cluster("desktop-i5-8400").workers[:1], make_fingerprint()).reason
    assert peak_of(cluster().workers[:0], make_fingerprint()).reason == "no worker took part"


def test_cores_of_several_kinds_are_not_all_taken_for_the_fastest(tmp_path: Path) -> None:
    cores = "8 x Cortex-A55 + Cortex-A76 at 2.40 GHz"
    reason = "the catalog has no operations per cycle of "
    measured = make_fingerprint(hardware=(f"n1: Orange Pi 5, {cores}, 8 GiB",))
    peak = peak_of(cluster().workers[:1], measured)
    assert (peak.gflops, peak.reason) == (None, f"{reason}Cortex-A55 + Cortex-A76")

    text = entry_path("boards", "rpi-5b-8gb-2400mhz").read_text()
    own = tmp_path / "own.toml"
    own.write_text(re.sub(r"(?m)^hardware = .*$", f'hardware = "{cores}"', text))
    peak = peak_of(cluster(str(own)).workers[:1], make_fingerprint())
    assert (peak.gflops, peak.reason) == (None, f"{reason}{cores}")


def test_every_processor_has_a_source_and_no_two_share_a_name() -> None:
    rows = read_processors()
    names = [name for row in rows for name in row.names]
    assert len(set(names)) == len(names) >= 4
    assert all(row.source for row in rows)


def test_a_wrong_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "processors.toml"
    path.write_text('[[processor]]\nnames = ["A"]\noperations_per_cycle = 0.0\nsource = "s"\n')
    with pytest.raises(SpecError, match=r"processors\.toml:3: .*a number above 0"):
        read_processors(path)
