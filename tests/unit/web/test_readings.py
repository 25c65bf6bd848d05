"""What the page shows of a node, from the lines of its agent."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from boardcluster.records import PowerModel
from boardcluster.web.readings import READINGS, LiveReadings, NodeFrame

SECOND = 1_000_000_000
START = 1_795_000_000 * SECOND
HUGE = "9" * 400
COLUMNS = (
    ("cpu_user_seconds", "c", 0.01),
    ("cpu_system_seconds", "c", 0.01),
    ("disk_read_bytes/sda", "c", 512),
    ("disk_read_bytes/sdb", "c", 512),
    ("net_received_bytes/eth0", "c", 1),
    ("net_received_bytes/veth1", "c", 1),
    ("memory_available_bytes", "g", 1024),
    ("temperature_celsius", "g", 0.001),
)


def head(columns: Any = COLUMNS) -> str:
    return json.dumps({"interval_seconds": 1.0, "columns": columns})


def line(second: float, *values: object) -> str:
    words = ["-" if value is None else str(value) for value in values]
    return f"5 {int(START + second * SECOND)} {' '.join(words)}"


def node(**changes: Any) -> LiveReadings:
    frame = {"name": "one", "cores": 4.0, "memory_bytes": 10 * 1024**2, "is_machine": True}
    readings = LiveReadings(NodeFrame(**{**frame, **changes}))
    readings.feed(head())
    return readings


def test_rates_are_of_the_time_between_samples() -> None:
    found = node()
    assert found.feed(line(0, 0, 0, 0, 0, 0, 0, 5120, 45000))
    assert math.isnan(found.now["user"])
    assert found.feed(line(2, 100, 50, 4, 4, 3000, 9999, 5120, 46500))
    assert found.now["user"] == pytest.approx(0.5)
    assert found.now["system"] == pytest.approx(0.25)
    assert found.now["read"] == pytest.approx(8 * 512 / 2)
    assert found.now["received"] == pytest.approx(1500), "virtual interfaces count twice"
    assert found.now["memory"] == 5 * 1024**2
    assert found.now["celsius"] == pytest.approx(46.5)
    assert found.busy_share == pytest.approx(0.75 / 4)


@pytest.mark.parametrize(("disks", "read"), [(1, 100.0), (0, 90.0)])
def test_what_processes_read_is_not_counted_beside_the_disks(disks: int, read: float) -> None:
    found = node()
    names = ["disk_read_bytes/sda"] * disks + ["storage_read_bytes"]
    found.feed(head([(name, "c", 1) for name in names]))
    found.feed(line(0, *([0] * disks), 0))
    found.feed(line(1, *([100] * disks), 90))
    assert found.now["read"] == pytest.approx(read)


def test_nothing_is_kept_of_columns_that_are_gone() -> None:
    found = node()
    for number in range(50):
        found.feed(head([(f"net_received_bytes/veth{number}", "c", 1), (f"link/{number}", "g", 1)]))
        found.feed(line(number, 5, 1))
    assert len(found._amounts) == len(found._states) == 1


def test_bytes_of_a_vlan_are_counted_once() -> None:
    found = node()
    names = ("eth0", "eth0.10")
    found.feed(head([(f"net_received_bytes/{name}", "c", 1) for name in names]))
    found.feed(line(0, 0, 0))
    found.feed(line(1, 3000, 2900))
    assert found.now["received"] == pytest.approx(3000)


def test_what_is_read_rarely_holds_and_is_then_forgotten() -> None:
    found = node()
    found.feed(line(0, 0, 0, 0, 0, 0, 0, 5120, 45000))
    found.feed(line(1, 1, 1, 0, 0, 0, 0, None, None))
    assert found.now["celsius"] == pytest.approx(45.0)
    found.feed(line(20, 2, 2, 0, 0, 0, 0, None, None))
    assert math.isnan(found.now["celsius"])


def test_a_counter_that_begins_again_gives_no_rate_below_nothing() -> None:
    found = node()
    found.feed(line(0, 500, 0, 0, 0, 0, 0, 1, 1))
    found.feed(line(1, 600, 0, 0, 0, 0, 0, 1, 1))
    found.feed(line(2, 3, 0, 0, 0, 0, 0, 1, 1))
    assert math.isnan(found.now["user"])
    found.feed(line(3, 103, 0, 0, 0, 0, 0, 1, 1))
    assert found.now["user"] == pytest.approx(1.0)


def test_power_is_modelled_where_there_is_a_model() -> None:
    model = PowerModel(node="one", idle_watts=2.0, stress_watts=6.0)
    found = node(power=model)
    found.feed(line(0, 0, 0, 0, 0, 0, 0, 1, 1))
    assert math.isnan(found.now["watts"]), "what the cores do is not known yet"
    found.feed(line(1, 200, 0, 0, 0, 0, 0, 1, 1))
    assert found.now["watts"] == pytest.approx(4.0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# 1.0 firefox",
        "1 2",
        "a b c d e f g h i j",
        "{",
        '{"columns": 3}',
        "\x00" * 40,
        "5 6 7",
    ],
)
def test_what_is_no_sample_is_passed_over(text: str) -> None:
    found = node()
    assert not found.feed(text)
    assert found.feed(line(0, 0, 0, 0, 0, 0, 0, 5120, 45000))


@pytest.mark.parametrize("scale", ["1e999", "-1e999", "NaN", HUGE])
def test_a_head_with_an_impossible_scale_is_refused(scale: str) -> None:
    found = node()
    found.feed(f'{{"columns": [["clock_measured_hertz", "g", {scale}]]}}')
    assert not found.feed(f"5 {START} 7")
    assert found.feed(line(0, 0, 0, 0, 0, 0, 0, 5120, 45000)), "the head of before holds"


@pytest.mark.parametrize("words", [f"{START} {HUGE}", f"{HUGE} 0", f"{1 << 63} 0", "-1 0"])
def test_a_sample_with_an_impossible_number_is_passed_over(words: str) -> None:
    found = node()
    assert not found.feed(f"5 {words} 0 0 0 0 0 5120 45000")
    assert found.feed(line(0, 0, 0, 0, 0, 0, 0, 5120, 45000))


def test_history_is_in_means_and_has_no_steps_of_silence() -> None:
    found = node()
    for second in [*range(30), *range(100, 120)]:
        found.feed(line(second, 100 * second, 0, 0, 0, 0, 0, 1, 1))
    steps = list(found.history(since_seconds=0, step_seconds=10))
    assert [round(at - START / SECOND) for at, _ in steps] == [0, 10, 20, 100, 110]
    user = READINGS.index("user")
    assert steps[1][1][user] == pytest.approx(1.0)


def test_an_hour_is_kept_and_no_more() -> None:
    found = node()
    for second in range(5000):
        found.feed(line(second, second, 0, 0, 0, 0, 0, 1, 1))
    assert 3600 <= len(list(found.history(since_seconds=0, step_seconds=1))) <= 3901
    assert len(found.recent) == 90


def test_a_node_that_is_lost_shows_nothing() -> None:
    found = node()
    found.feed(line(0, 0, 0, 0, 0, 0, 0, 1, 1))
    found.lost()
    assert all(math.isnan(value) for value in found.now.values())
