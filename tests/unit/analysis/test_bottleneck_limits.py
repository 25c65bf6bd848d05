"""The limits of emulated boards come back from the words in which results keep them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.analysis.test_bottleneck import SETUP

from boardcluster.analysis.bottleneck.limits import NodeLimit, node_limits
from boardcluster.campaign.fingerprint import limits_line
from boardcluster.records import DiskLimits, NodeLimits

GIVEN = NodeLimits(
    node="worker-ü",
    cpu_cores=0.4321,
    memory_bytes=4 << 30,
    disk=DiskLimits(
        size_bytes=8 << 30,
        read_bytes_per_second=92_348_088,
        write_bytes_per_second=640_000,
        read_iops=6405,
        write_iops=7,
        unwritten_bytes=(4 << 30) // 10,
    ),
    link_bits_per_second=31_368_785,
    board_cores=4,
)


def test_limits_come_back_as_far_as_their_words_are_exact() -> None:
    bare = replace(GIVEN, node="master", disk=None, cpu_cores=0.00001, link_bits_per_second=999)
    # What the board has at its own speed is not what it could have in the run.
    own = replace(GIVEN, board="4 cores, disk 8 GiB reading 9 GB/s and 9 requests/s, link 9 Gbit/s")
    setup = replace(SETUP, limits="\n".join(limits_line(row) for row in (own, bare)))
    found = node_limits(setup)
    assert list(found) == ["worker-ü", "master"]
    row = found["worker-ü"]
    assert row.cpu_cores == pytest.approx(GIVEN.cpu_cores, rel=1e-3)
    assert row.board_cores == 4
    assert row.link_bits_per_second == pytest.approx(GIVEN.link_bits_per_second, rel=5e-3)
    assert GIVEN.disk is not None
    assert row.read_bytes_per_second == pytest.approx(GIVEN.disk.read_bytes_per_second, rel=5e-3)
    assert row.write_bytes_per_second == pytest.approx(GIVEN.disk.write_bytes_per_second, rel=5e-3)
    assert row.unwritten_bytes == pytest.approx(GIVEN.disk.unwritten_bytes, rel=5e-3)
    older = limits_line(replace(GIVEN, disk=replace(GIVEN.disk, unwritten_bytes=None)))
    assert node_limits(replace(SETUP, limits=older))["worker-ü"] == replace(
        row, unwritten_bytes=None
    )
    assert found["master"] == NodeLimit(cpu_cores=1e-5, board_cores=4, link_bits_per_second=999)


def test_other_nodes_and_other_words_have_no_limits() -> None:
    assert node_limits(None) == {}
    assert node_limits(SETUP) == {}
    assert node_limits(replace(SETUP, limits="as fast as it goes")) == {}
    odd = node_limits(replace(SETUP, limits="a: 1.2.3 cores of this machine, link 0 bit/s"))
    assert odd == {"a": NodeLimit()}
