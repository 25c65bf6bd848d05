"""Every probe is found by its file, and says what it is."""

from __future__ import annotations

import re

import pytest

from boardcluster.errors import UsageError
from boardcluster.probes.registry import AREAS, all_probes, choose_probes


def test_every_probe_of_the_issue_is_there() -> None:
    assert {probe.name for probe in all_probes()} == {
        *("sysbench-cpu", "seven-zip", "openssl", "build", "audio", "dgemm"),
        *("stream", "sysbench-memory", "fio", "iperf3", "tcp-latency", "netpipe"),
        *("heat", "power", "single-sort", "single-grep", "single-count"),
    }


@pytest.mark.parametrize("probe", all_probes(), ids=lambda probe: probe.name)
def test_a_probe_says_what_it_is(probe: object) -> None:
    known = {one.name: one for one in all_probes()}
    (one,) = (row for row in known.values() if row is probe)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", one.name)
    assert one.area in AREAS
    assert one.summary
    assert one.matches
    assert 0 < one.quick_seconds < one.paper_seconds


def test_they_run_by_area() -> None:
    areas = [AREAS.index(probe.area) for probe in all_probes()]
    assert areas == sorted(areas)


def test_the_usual_set_of_one_node_takes_less_than_three_minutes() -> None:
    usual = [probe for probe in choose_probes([]) if not probe.pair]
    assert sum(probe.quick_seconds for probe in usual) < 180
    assert {probe.area for probe in usual} >= {"cpu", "memory", "storage"}


def test_named_probes_run_in_the_usual_order_whatever_order_they_are_named_in() -> None:
    names = [probe.name for probe in choose_probes(["stream", "openssl", "stream"])]
    assert names == ["openssl", "stream"]


def test_a_wrong_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="no probe 'sysbench_cpu'") as caught:
        choose_probes(["sysbench_cpu"])
    assert "did you mean 'sysbench-cpu'?" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        choose_probes(["xyzzy"])
    assert caught.value.hint.startswith("choose from: audio, build,")
