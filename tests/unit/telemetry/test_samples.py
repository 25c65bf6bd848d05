"""From an agent's file to columns: counters, wraps, steps, damage."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from boardcluster.errors import ProbeOutputError
from boardcluster.records import NodeSamples
from boardcluster.telemetry.samples import Alignment, parse_samples

SECOND = 10**9
HEAD: dict[str, Any] = {
    "interval_seconds": 1.0,
    "columns": [
        ["cpu_user_seconds", "c", 0.01],
        ["temperature_celsius", "g", 0.001],
        ["net_sent_bytes/eth0", "c", 1],
    ],
}


def parse(text: str, *, offset_seconds: float = 0.0) -> NodeSamples:
    return parse_samples(
        text,
        node="pi0",
        scope="machine",
        cores=4,
        alignment=Alignment(
            monotonic_offset_seconds=offset_seconds, wall_offset_seconds=-90.0, error_seconds=0.01
        ),
        started_seconds=100.0,
    )


def lines(*rows: str, head: object = HEAD) -> str:
    return "".join(f"{line}\n" for line in (json.dumps(head), *rows))


def row(second: float, values: str, *, wall_seconds: float = 1.7e9) -> str:
    return f"{int(second * SECOND)} {int((wall_seconds + second) * SECOND)} {values}"


def test_counters_become_what_was_added_and_states_stay(tmp_path: object) -> None:
    found = parse(lines(row(99, "500 45000 7"), row(101, "550 - 17"), row(102, "650 47500 17")))
    assert found.seconds.tolist() == [-1.0, 1.0, 2.0]
    np.testing.assert_allclose(found.columns["cpu_user_seconds"], [math.nan, 0.5, 1.0])
    np.testing.assert_allclose(found.columns["temperature_celsius"], [45.0, math.nan, 47.5])
    np.testing.assert_allclose(found.columns["net_sent_bytes/eth0"], [math.nan, 10, 0])
    assert found.clock_offset_seconds == -90.0


def test_the_nodes_clock_is_carried_to_the_drivers() -> None:
    found = parse(lines(row(5100.5, "1 1 1")), offset_seconds=5000.0)
    assert found.seconds.tolist() == [0.5]


def test_an_unknown_value_is_no_gap_in_a_counter() -> None:
    found = parse(lines(row(100, "10 1 1"), row(101, "- 1 1"), row(102, "40 1 1")))
    np.testing.assert_allclose(found.columns["cpu_user_seconds"], [math.nan, math.nan, 0.3])


def test_a_counter_that_wraps_is_mended_and_one_set_back_is_unknown() -> None:
    wrapped = parse(lines(row(100, f"1 1 {2**32 - 100}"), row(101, "1 1 50")))
    assert wrapped.columns["net_sent_bytes/eth0"][1] == 150
    again = parse(lines(row(100, "1 1 5000"), row(101, "1 1 50"), row(102, "1 1 60")))
    assert math.isnan(again.columns["net_sent_bytes/eth0"][1])
    assert again.columns["net_sent_bytes/eth0"][2] == 10


def test_a_step_of_the_wall_clock_is_seen() -> None:
    found = parse(lines(row(100, "1 1 1"), row(101, "1 1 1", wall_seconds=1.7e9 - 120)))
    assert found.columns["clock_step_seconds"][1] == pytest.approx(-120.0)


def test_columns_may_come_later_and_notes_are_kept() -> None:
    more = {
        **HEAD,
        "interval_seconds": 2.0,
        "columns": [*HEAD["columns"], ["swap_used_bytes", "g", 1024]],
    }
    text = (
        lines(row(100, "1 1 1")) + json.dumps(more) + "\n" + row(102, "2 1 1 5") + "\n# 3.5 make\n"
    )
    found = parse(text)
    np.testing.assert_allclose(found.columns["swap_used_bytes"], [math.nan, 5120])
    assert found.notes == ("make 3.5 s",)
    assert found.interval_seconds == 1.0


def test_a_last_line_that_was_cut_is_left_out() -> None:
    assert len(parse(lines(row(100, "1 1 1")) + "101000").seconds) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no sample"),
        (lines(), "holds no sample"),
        (lines(row(100, "1 1")), "line 2"),
        (lines(row(100, "1 x 1")), "line 2"),
        (lines("bash: warning: setlocale"), "line 2"),
        (lines(row(100, "1 1 1"), "{}"), "line 3"),
        (lines(head={"interval_seconds": 1.0, "columns": [["a", "z", 1]]}), "line 1"),
        (lines(head={"interval_seconds": None, "columns": []}), "line 1"),
        ("\x00\x00\n", "line 1"),
        (lines(row(100, "1 1 1"), "# make"), "line 3"),
        (lines(row(100, f"1 {10**400} 1")), "line 2"),
        (lines(row(100, "1 1 1"), f"{10**30} 1 1 1 1"), "line 3"),
        (lines(row(100, "1 1 1"), "1 -1 1 1 1"), "line 3"),
        (lines(head={"interval_seconds": 10**400, "columns": []}), "line 1"),
    ],
)
def test_damage_is_named_with_its_line(text: str, words: str) -> None:
    with pytest.raises(ProbeOutputError, match=words) as caught:
        parse(text)
    assert "pi0" in caught.value.message
