"""The probe of linear algebra: how large its matrices are, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from boardcluster.errors import CapacityError, ProbeOutputError
from boardcluster.probes import dgemm as module
from boardcluster.probes.base import Site
from boardcluster.probes.dgemm import FIGURE, PROBE, order_for
from boardcluster.records import ProbeMode
from boardcluster.remote.fake import FakeRemote
from boardcluster.services.linpack import Linpack

GIB = 1 << 30
PROGRAM = Linpack(folder="/f", blas="OpenBLAS 1, kernels for X", kernels="X", key="k")


@pytest.mark.parametrize(
    ("memory", "processes", "rate", "order"),
    [
        (8 * GIB, 2, 80e9, 1984),
        (GIB, 4, 20e9, 1664),  # a quarter of it for four times three matrices
        (GIB // 2, 1, 0.2e9, 320),  # a Raspberry Pi 1
    ],
)
def test_matrices_fit_and_take_a_slow_core_about_half_a_second(
    memory: int, processes: int, rate: float, order: int
) -> None:
    assert order_for(memory, processes, rate) == order
    assert 3 * 8 * order**2 * processes <= memory / 4


def test_too_little_memory_is_refused() -> None:
    with pytest.raises(CapacityError, match="three matrices of order 256 for each of 4 processes"):
        order_for(16 << 20, 4, 1e9)


def site(remote: FakeRemote, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(module, "have_linpack", lambda *_, **__: PROGRAM)
    return Site(
        node="n",
        remote=remote,
        admin=remote,
        cores=2,
        memory_bytes=8 * GIB,
        folder="/f",
        address="",
        mode=ProbeMode.QUICK,
        tell=lambda _: None,
        settings={"cache": "/cache"},
    )


def printed(processes: int, order: int, times: int = 100) -> dict[str, Any]:
    rows = [
        f"process {at} order {order} times {times} in 2.000000000 s, every number right\n"
        for at in range(processes)
    ]
    return {"stdout": f"kernels X processes {processes}\n{''.join(rows)}"}


def test_it_measures_one_process_and_one_for_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    remote = FakeRemote()
    remote.tell("/f/dgemm", "1", "256", "0.1", **printed(1, 256, 10000))
    remote.tell("/f/dgemm", "1", "1984", "2.0", **printed(1, 1984))
    remote.tell("/f/dgemm", "2", "1984", "2.0", **printed(2, 1984))

    one, two = PROBE.measure(site(remote, monkeypatch))

    assert (one.name, two.name) == (FIGURE, FIGURE)
    assert one.value == pytest.approx(2 * 1984**3 * 100 / 2.0 / 1e9)
    assert two.value == pytest.approx(2 * one.value)
    assert two.conditions == {
        "processes": "2",
        "order": "1984",
        "runs": "1",
        "blas": "OpenBLAS 1, kernels for X",
    }


def test_output_of_another_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    remote = FakeRemote()
    remote.tell("/f/dgemm", "1", "256", "0.1", **printed(2, 256))
    with pytest.raises(ProbeOutputError, match="dgemm with 1 processes and order 256"):
        PROBE.measure(site(remote, monkeypatch))


def test_it_runs_only_if_named() -> None:
    assert not PROBE.default
    assert Path(module.__file__).stem == PROBE.name
