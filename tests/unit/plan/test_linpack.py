"""HPL of one's own boards, with messages as published ones cost."""

from __future__ import annotations

import pytest

from boardcluster.plan.linpack import (
    LinpackRun,
    fit_linpack,
    linpack_grid,
    linpack_operations,
    linpack_seconds,
    published_linpack,
)

PUBLISHED = [run for rows in published_linpack().values() for run in rows]


def run_of(n: int, gflops: float, *, workers: int = 1) -> LinpackRun:
    p, q = linpack_grid(workers)
    return LinpackRun(
        n=n,
        workers=workers,
        p=p,
        q=q,
        seconds=linpack_operations(n) / gflops / 1e9,
        link_bits_per_second=1e9,
        source="own",
    )


def test_a_slow_published_board_does_not_widen_the_interval_of_a_fast_one() -> None:
    own = run_of(5000, 10.0)
    model = fit_linpack([own], PUBLISHED, source="own")
    assert linpack_seconds(model, own) == pytest.approx(own.seconds)
    alone = [run for run in PUBLISHED if run.workers == 1]
    assert model.log_spread <= 1.2 * fit_linpack(alone, PUBLISHED, source="").log_spread


def test_a_rate_is_never_guessed_from_what_messages_leave_of_a_run() -> None:
    """As the old board's messages cost, they would take longer than the whole run."""
    own = run_of(4000, linpack_operations(4000) / 1.6 / 1e9, workers=4)
    model = fit_linpack([own], PUBLISHED, source="own")
    each = linpack_operations(4000) / 1.6 / 1e9 / 4
    assert each <= model.rate_gflops <= 2 * each * (1 + 1e-9)
