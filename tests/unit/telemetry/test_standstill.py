"""A disk that stands still is told by its node's samples, and a slow one is not."""

import numpy as np
import numpy.typing as npt
from tests.builders import make_samples

from boardcluster.telemetry.standstill import standstills


def steady(pause: float = 1.0, count: int = 100) -> npt.NDArray[np.float64]:
    return np.arange(count, dtype=np.float64) * pause


def test_a_node_that_writes_its_samples_stood_nowhere_still() -> None:
    assert standstills({"worker1": make_samples(seconds=steady())}) == {}


def test_a_gap_in_the_samples_is_a_standstill() -> None:
    seconds = steady()
    seconds[50:] += 64.0
    found = standstills({"worker1": make_samples(seconds=seconds)})
    assert found == {
        "worker1": "no sample could be written for 1 min 05 s, so its disk or the whole node had "
        "stopped"
    }
    seconds = steady()
    seconds[50:] += 15.0
    assert standstills({"worker1": make_samples(seconds=seconds)}) == {}


def test_an_agent_that_has_doubled_its_pause_again_and_again_is_no_standstill() -> None:
    late = 200 + steady(pause=32.0)
    seconds = np.concatenate([steady(count=200), late])
    assert standstills({"worker1": make_samples(seconds=seconds)}) == {}


def test_a_disk_that_is_busy_and_completes_nothing_stood_still() -> None:
    busy = np.where((steady() >= 30) & (steady() < 72), 1.0, 0.3)
    done = np.where((steady() >= 30) & (steady() < 72), 0.0, 20.0)
    columns = {"disk_busy_seconds/mmcblk0": busy, "disk_writes/mmcblk0": done}
    stuck = make_samples(seconds=steady(), columns={**columns, "disk_reads/mmcblk0": 0.0})
    assert standstills({"worker1": stuck}) == {"worker1": "its disk mmcblk0 did nothing for 42 s"}
    slow = make_samples(seconds=steady(), columns={**columns, "disk_reads/mmcblk0": 1.0})
    assert standstills({"worker1": slow}) == {}


def test_samples_too_few_or_empty_say_nothing() -> None:
    assert standstills({"worker1": make_samples(seconds=[0.5])}) == {}
