"""The cluster of a campaign takes each variant that a trial needs, and is left as it was found."""

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_trial

from boardcluster.campaign import variants as module
from boardcluster.campaign.variants import VariantSwitcher
from boardcluster.cluster.state import LiveState
from boardcluster.errors import BoardclusterError, CapacityError, ClusterError, DaemonError
from boardcluster.records import Engine, MasterPlacement, Trial
from boardcluster.services import operation
from boardcluster.services.operation import LiveCluster
from boardcluster.spec.variant import ClusterVariant


def trial_of(workers: int = 4, **fields: Any) -> Trial:
    return make_trial(workers=workers, **fields)


def form(workers: int = 4, **fields: Any) -> ClusterVariant:
    values = {"profile": "default", "master": MasterPlacement.DECLARED, **fields}
    return ClusterVariant(workers=workers, **values)


class Machine:
    """A machine on which the cluster is up or down, and what it was asked to do.

    Attributes:
        is_up: whether the cluster is up.
        calls: variants it was brought up in (None is that of cluster.toml), and "down".
        fails: errors of the next ``up``; None is a good one.
        fails_running: whether a failing ``up`` leaves the cluster running.
        lost: what is found lost after each ``up``; then nothing.
        said: what was told of progress.
        strays: what is found running after the next ``up``.
    """

    def __init__(self, live: LiveCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.live = live
        self.is_up = False
        self.calls: list[ClusterVariant | str | None] = []
        self.fails: list[BoardclusterError | None] = []
        self.fails_running = True
        self.lost: list[str] = []
        self.said: list[str] = []
        self.strays: list[str] = []
        monkeypatch.setattr(operation, "up", self._up)
        monkeypatch.setattr(operation, "down", self._down)
        self.form = ""
        monkeypatch.setattr(module, "load_state", lambda _: self._state())
        monkeypatch.setattr(operation, "found_up", lambda _: self.is_up)
        monkeypatch.setattr(module, "clear_leftovers", lambda _: None)
        monkeypatch.setattr(module, "end_lost_jobs", self._end_lost_jobs)
        monkeypatch.setattr(module, "lost_now", lambda _: self.lost.pop(0) if self.lost else "")

    def _up(
        self, home: Path, *, variant: ClusterVariant | None = None, **named: Any
    ) -> LiveCluster:
        assert (home, named["cache"]) == (Path("/home"), Path("/cache"))
        assert callable(named["seen"])
        self.calls.append(variant)
        if self.fails and (error := self.fails.pop(0)):
            self.is_up = self.fails_running
            raise error
        self.is_up = True
        words = "" if variant is None or variant == FULL else "another form"
        self.form = words
        return replace(self.live, state=replace(self.live.state, form=words))

    def _state(self) -> LiveState | None:
        return replace(self.live.state, form=self.form) if self.is_up else None

    def _end_lost_jobs(self, _: LiveCluster) -> list[str]:
        strays, self.strays = self.strays, []
        return strays

    def _down(self, home: Path, *, without: Collection[str] = ()) -> int:
        assert home == Path("/home")
        self.calls.append(" ".join(["down", *without]))
        self.is_up = False
        return 1

    def forms(self, begun: tuple[int, str] | None = None) -> VariantSwitcher:
        return VariantSwitcher(
            Path("/home"),
            begun=begun,
            cache=Path("/cache"),
            progress=lambda what, *_: self.said.append(what),
            seen=lambda _: None,
        )


FULL = form()


@pytest.fixture
def machine(live: LiveCluster, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(live, monkeypatch)


def test_the_cluster_changes_only_when_the_form_does(machine: Machine) -> None:
    forms = machine.forms()
    trials = [
        trial_of(),
        trial_of(repetition=2, workload="pi", engine=Engine.MAPREDUCE),
        trial_of(2),
        trial_of(2, warm_up=True),
        trial_of(2, profile="upstream"),
        trial_of(2, profile="upstream", master=MasterPlacement.COMBINED),
        trial_of(),
    ]

    lives = [forms(trial) for trial in trials]

    assert machine.calls == [
        FULL,
        form(2),
        form(2, profile="upstream"),
        form(2, profile="upstream", master=MasterPlacement.COMBINED),
        FULL,
    ]
    assert lives[0] is lives[1]
    assert lives[2] is lives[3]
    assert len({id(live) for live in lives}) == 5
    assert machine.said[0] == (
        "changing the cluster to 4 workers, profile default, master declared"
    )


def test_nothing_happens_before_the_first_trial(machine: Machine) -> None:
    machine.forms()

    assert machine.calls == []


def test_a_cluster_that_is_not_healthy_is_started_afresh(machine: Machine) -> None:
    machine.is_up = True
    machine.fails = [DaemonError("the cluster is up but not healthy: datanode on worker1 ended")]

    machine.forms()(trial_of(2))

    assert machine.calls == [form(2), "down", form(2)]
    assert machine.said[-1] == (
        "restarting the cluster: the cluster is up but not healthy: datanode on worker1 ended"
    )


def test_a_cluster_of_which_something_is_lost_is_started_afresh(machine: Machine) -> None:
    machine.lost = ["node worker2 unreachable"]

    machine.forms()(trial_of())

    assert machine.calls == [FULL, "down", FULL]
    assert machine.said[-1] == "restarting the cluster: node worker2 unreachable"


def test_a_cluster_that_was_just_started_and_failed_is_not_started_again(
    machine: Machine,
) -> None:
    machine.fails = [DaemonError("namenode on master ended while starting")]
    machine.fails_running = False  # up() ends what it began

    with pytest.raises(DaemonError, match="ended while starting"):
        machine.forms()(trial_of())

    assert machine.calls == [FULL]


def test_a_cluster_that_fails_twice_is_an_error(machine: Machine) -> None:
    machine.is_up = True
    machine.fails = [DaemonError("not healthy"), DaemonError("does not start")]

    with pytest.raises(DaemonError, match="does not start"):
        machine.forms()(trial_of())

    assert machine.calls == [FULL, "down", FULL]


def test_what_is_no_daemons_fault_is_not_tried_again(machine: Machine) -> None:
    machine.is_up = True
    machine.fails = [CapacityError("4 nodes declare 9 GB together")]

    with pytest.raises(CapacityError):
        machine.forms()(trial_of())

    assert machine.calls == [FULL]


def test_a_form_that_did_not_come_up_is_tried_again_by_the_next_trial(machine: Machine) -> None:
    forms = machine.forms()
    forms(trial_of())
    machine.fails = [CapacityError("no memory")]
    with pytest.raises(CapacityError):
        forms(trial_of(2))

    forms(trial_of(2))

    assert machine.calls == [FULL, form(2), form(2)]


def test_each_start_stops_the_daemons_also_in_the_same_form(machine: Machine) -> None:
    forms = machine.forms((0, ""))

    for trial in (trial_of(start=1), trial_of(2, start=1), trial_of(2, start=2), trial_of(start=2)):
        forms(trial)
        forms(trial)

    assert machine.calls == [FULL, form(2), "down", form(2), FULL]
    assert "stopping the cluster for start 2" in machine.said


def test_the_first_start_is_a_fresh_one(machine: Machine) -> None:
    machine.is_up = True

    machine.forms((0, ""))(trial_of(start=1))

    assert machine.calls == ["down", FULL]


def test_the_start_in_which_a_campaign_was_killed_goes_on(machine: Machine) -> None:
    machine.is_up = True
    forms = machine.forms((2, machine.live.state.identity))

    for start in (2, 3):
        forms(trial_of(start=start))

    assert machine.calls == [FULL, "down", FULL]


def test_without_several_starts_nothing_is_restarted(machine: Machine) -> None:
    machine.is_up = True
    forms = machine.forms()

    for start in (1, 2):
        forms(trial_of(start=start))

    assert machine.calls == [FULL]


Leaving = Callable[[VariantSwitcher], None]


@pytest.mark.parametrize("leave", [VariantSwitcher.leave, VariantSwitcher.abandon])
def test_a_cluster_that_was_down_goes_down(leave: Leaving, machine: Machine) -> None:
    forms = machine.forms()
    forms(trial_of(2))
    machine.calls.clear()

    leave(forms)

    assert machine.calls == ["down"]


def test_a_cluster_that_was_up_comes_back_to_what_is_declared(machine: Machine) -> None:
    machine.is_up = True
    forms = machine.forms()
    forms(trial_of(2))
    machine.calls.clear()

    forms.leave()

    assert machine.calls == [None]
    assert machine.said[-1] == "returning the cluster to cluster.toml"


@pytest.mark.parametrize("leave", [VariantSwitcher.leave, VariantSwitcher.abandon])
def test_what_was_changed_is_known_though_the_last_run_was_lost(
    leave: Leaving, machine: Machine
) -> None:
    machine.is_up = True
    forms = machine.forms()
    forms(trial_of(2))
    machine.calls.clear()
    forms.look_again()

    leave(forms)

    if leave is VariantSwitcher.leave:
        assert machine.calls == [None]
    else:
        assert machine.calls == []
        assert machine.said[-1].startswith("the cluster stays up with another form")


def test_a_job_that_nobody_waits_for_is_ended_before_the_next(machine: Machine) -> None:
    machine.strays.append("20261101-100000-abcd-grep-spark-1-1")
    machine.forms()(trial_of())
    assert machine.said[-1].endswith("lost sight of: 20261101-100000-abcd-grep-spark-1-1")


def test_a_cluster_that_was_up_as_declared_is_left_alone(machine: Machine) -> None:
    machine.is_up = True
    forms = machine.forms()
    forms(trial_of(2))
    forms(trial_of())
    machine.calls.clear()

    forms.leave()

    assert machine.calls == []


def test_a_cluster_that_was_up_and_ran_nothing_is_left_alone(machine: Machine) -> None:
    machine.is_up = True

    machine.forms().leave()

    assert machine.calls == []


def test_after_an_error_a_cluster_that_was_up_stays_to_be_looked_at(machine: Machine) -> None:
    machine.is_up = True
    forms = machine.forms()
    forms(trial_of(2))
    machine.calls.clear()

    forms.abandon()

    assert machine.calls == []


@pytest.mark.parametrize("failure", [ClusterError("worker4 is away"), OSError("no space")])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ClusterError("worker4 was lost")])
def test_what_cannot_be_ended_does_not_hide_why_it_is(
    error: BaseException,
    failure: Exception,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise failure

    forms = machine.forms()
    monkeypatch.setattr(operation, "down", refuse)

    def run() -> None:
        with forms:
            forms(trial_of())
            raise error

    with pytest.raises(type(error)) as caught:
        run()

    assert caught.value is error
    assert f"not everything could be ended: {failure}; run `boardcluster" in error.__notes__[-1]


def test_a_cluster_that_goes_on_without_a_worker_is_not_returned_to_what_needs_it(
    machine: Machine,
) -> None:
    machine.is_up = True
    forms = machine.forms()
    forms(trial_of())
    forms.end_without(("worker4",))
    forms(trial_of(2))

    forms.leave()

    assert machine.calls == [FULL, "down worker4", form(2)]
    assert "`boardcluster up` returns it to cluster.toml" in machine.said[-1]
