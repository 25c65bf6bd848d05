"""Questions about a network of tasks: together they get the answers that each gets alone."""

from __future__ import annotations

import math

import numpy as np

from boardcluster.analysis.bottleneck.bounds import Bound
from boardcluster.analysis.bottleneck.queueing import (
    Demand,
    Margin,
    TaskNetwork,
    TaskQuestion,
    predict_tasks,
)

NODES, STEPS = 3, 7


def drawn(seed: int) -> Demand:
    random = np.random.default_rng(seed)

    def shares(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return random.uniform(0.0, 1.0, (*shape, NODES, STEPS))

    cpu = 2 * shares()
    return Demand(
        tasks=4 * shares(),
        overhead=0.2 * shares(),
        cores=np.full((NODES, STEPS), 2.0),
        cpu=cpu,
        own_cpu=cpu * shares(),
        fetching=0.3 * shares(),
        heat=0.1 * shares(),
        busy=shares(2),
        at_once=shares(),
        memory=0.2 * shares(),
        serial=np.array([[True, False, True], [True] * NODES]),
    )


def test_questions_that_are_asked_together_get_the_answers_of_each_alone() -> None:
    networks = [TaskNetwork.fit(drawn(1)), TaskNetwork.fit(drawn(1), helpers_first=True)]
    questions = [TaskQuestion(networks[0])] + [
        TaskQuestion(network, bound, times_as_fast, margin)
        for network in networks
        for bound in Bound
        for times_as_fast in (2.0, math.inf)
        for margin in Margin
    ]
    for question, answer in zip(questions, predict_tasks(questions), strict=True):
        [alone] = predict_tasks([question])
        assert np.array_equal(answer.lengths, alone.lengths)
        assert np.array_equal(answer.shares, alone.shares)


def test_what_nobody_changes_stays_as_it_was_and_what_is_faster_helps() -> None:
    network = TaskNetwork.fit(drawn(2))
    seen, faster = predict_tasks([TaskQuestion(network), TaskQuestion(network, Bound.CPU, 2.0)])
    assert np.allclose(seen.lengths, 1.0)
    assert np.allclose(seen.shares.sum(axis=0), 1.0)
    assert (faster.lengths < seen.lengths).all()
