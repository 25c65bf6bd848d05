"""Amounts per step are those of the slower functions that all else uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.analysis.test_bottleneck import NAN, board, times

from boardcluster.analysis.bottleneck.readings import readings_of
from boardcluster.analysis.telemetry import rate, window_of
from boardcluster.records import Telemetry

RNG = np.random.default_rng(3)
AMOUNTS = RNG.random(len(times()))
RARELY = np.where(np.arange(len(times())) % 5 == 3, AMOUNTS, NAN)


@pytest.mark.parametrize(
    "change",
    [
        lambda at: at,
        lambda at: at + 0.37,
        lambda at: at + np.linspace(0, 1.5, len(at)),
        lambda at: np.where(at > 25, at + 9, at),
        lambda at: np.where(at > 40, at + 1000, at),
        lambda at: at + 12,
    ],
    ids=["on the second", "shifted", "too slow", "gap", "stopped", "begun late"],
)
def test_rates_are_those_of_telemetry(change: Callable[[np.ndarray], np.ndarray]) -> None:
    first = AMOUNTS.copy()
    first[0] = NAN
    node = board(
        seconds=change(times()),
        cpu_user_seconds=first,
        cpu_system_seconds=AMOUNTS,
        cpu_irq_seconds=RARELY,
    )
    telemetry = Telemetry(duration_seconds=60, nodes=(node,))
    found = readings_of(telemetry)[0]
    for name in ("cpu_user_seconds", "cpu_system_seconds", "cpu_irq_seconds"):
        expected = rate(window_of(node, telemetry), name, found.edges)
        assert expected is not None
        both = found.known & ~np.isnan(expected)
        assert both.sum() >= 0.8 * np.sum(~np.isnan(expected))
        inner = both & (np.arange(len(both)) < len(both) - 1)
        np.testing.assert_allclose(found.rates[name][inner], expected[inner], atol=1e-9)


def test_bytes_of_a_vlan_are_counted_once() -> None:
    own: dict[str, Any] = {"net_sent_bytes/eth0": 5e6}
    vlan: dict[str, Any] = {"net_sent_bytes/eth0.10": 5e6, "link_bits_per_second/eth0.10": 1e9}
    nodes = (board(**own), board(**own, **vlan))
    alone, both = readings_of(Telemetry(duration_seconds=60, nodes=nodes))
    sent, expected = (row.sum("net_sent_bytes") for row in (both, alone))
    assert sent is not None
    assert expected is not None
    np.testing.assert_allclose(sent, expected)
    assert both.rates.keys() == alone.rates.keys()


def test_a_run_of_days_is_cut_into_a_bounded_number_of_steps() -> None:
    node = replace(board(seconds=times(end_seconds=40_000)), interval_seconds=1.0)
    found = readings_of(Telemetry(duration_seconds=40_000, nodes=(node,)))[0]
    assert len(found.known) == 3600
    assert found.known.all()
