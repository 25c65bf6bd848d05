"""Tasks of a node as a closed queueing network that is fitted to what was seen of them.

So many tasks ``N`` take turns on the cores, the disk and the link of a node. In one second of what
was seen, ``D`` seconds of a resource are needed (its utilisation), and ``Q`` tasks are at it on
average, in service or waiting. By Little's law the time that the work of this second spends there
is ``Q`` seconds of tasks, and all of them together are ``N``. What a task waits for others is
approximated as Bard and Schweitzer do, with a factor that is solved from what was seen:

    R = D / (1 - phi D X),    N = X (sum of all R + Z)

``X`` is the speed of the node, 1 as it was; ``Z`` is time for which no resource of the node is
known to be busy. ``phi`` is 0 where nobody waits for others, as on an NVMe SSD that serves all
requests at once, and near ``1 - 1/N`` where requests come at random and are served one by one.
More tasks than cores wait for a core: ``R = D max(1, (1 + (1 - 1/N) Q) / cores)``. A resource
halved is ``D`` halved, and ``X`` is solved anew; it cannot be more than ``1 / D`` of a resource
that serves one at a time, however little tasks wait for it (asymptotic bound).

Sources: E. D. Lazowska, J. Zahorjan, G. S. Graham and K. C. Sevcik, "Quantitative System
Performance", 1984, chapters 3 (Little's law), 5 (asymptotic bounds) and 6 (Schweitzer's
approximation); Y. Bard, "Some Extensions to Multiclass Queueing Network Analysis", 1979.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple, Self

import numpy as np

from boardcluster.analysis.bottleneck.bounds import Bound
from boardcluster.analysis.bottleneck.model import BOUNDS, Array, Prediction

__all__ = ["Demand", "Margin", "TaskNetwork", "TaskQuestion", "predict_tasks"]

_TINY = 1e-9
_HALVINGS = 14  # of the interval that the speed lies in, before its ends are joined by a line
_NEARLY_ALL = 1 - 1e-6
_NEARLY_FULL = (0.80, 0.95)  # of the time disk or cores are busy: between them others begin to wait

_DEVICES = (Bound.STORAGE, Bound.NETWORK)


class Margin(IntEnum):
    """Which prediction is wanted: the least that bounds allow, the likeliest, or the most."""

    LEAST = -1
    LIKELY = 0
    MOST = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Demand:
    """What was seen of every node, by node and step."""

    tasks: Array
    """Tasks in flight, a mean number; 0 where there are none."""
    overhead: Array
    """Of those, tasks that were not at work yet, or no longer."""
    cores: Array
    """What the node has and other programs leave."""
    cpu: Array
    """CPU time used per second, and what a hypervisor kept meanwhile, in cores."""
    own_cpu: Array
    """Part of that which is known to be the tasks' own; the rest is of daemons and the like."""
    fetching: Array
    """Tasks that waited for shuffle data, as far as an engine says it."""
    heat: Array
    """Part of the CPU time, 0 to 1, that a lowered clock added."""
    busy: Array
    """By device (disk, link), node and step: for how much of the step it was at work, 0 to 1."""
    at_once: Array
    """Of what the disk does, 0 to 1, what is not the writing back of what is in memory."""
    memory: Array
    """For how much of each step something waited for memory, 0 to 1."""
    serial: Array
    """By device and node: whether it serves one request at a time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskNetwork:
    """A closed network for each node and step, fitted to what was seen."""

    demand: Demand
    """What it was fitted to."""
    cpu: Array
    """CPU time that tasks wait for, in tasks; queueing for a core is not in it."""
    cores: Array
    """So many cores that as many tasks compute or wait for one as were left to do so."""
    crowding: Array
    """``1 - 1/N``: of the others, how many a task finds on its arrival."""
    devices: Array
    """By device, node and step: ``D``."""
    waiting: Array
    """Likewise: ``phi``."""
    memory: Array
    """Tasks that wait for memory."""
    other: Array
    """Tasks that wait for none of these: ``Z``."""

    @classmethod
    def fit(
        cls,
        demand: Demand,
        *,
        helpers_first: bool = False,
        written_later: bool = False,
        stalled: Margin = Margin.LIKELY,
    ) -> Self:
        """Say where the tasks were, so that they are all accounted for.

        A task is computing for its own CPU time. The rest of its time it waits: for memory, for as
        many tasks as the kernel's pressure says; for disk and link, for as many as can queue at a
        device that is so busy; then for the CPU time of other processes (a DataNode reads for
        it); and what is left is waiting for something else.

        Args:
            demand: what was seen.
            helpers_first: whether to count the CPU time of other processes before the devices.
            written_later: whether nobody waits while a disk writes back what is in memory.
            stalled: how many tasks wait for memory while any does: one, independently of one
                another, or all of them.
        """
        tasks = np.maximum(demand.tasks, _TINY)
        crowding = np.clip(1 - 1 / tasks, 0.0, 1.0)
        left = np.maximum(demand.tasks - demand.overhead, 0.0)
        own = np.minimum(demand.cpu if helpers_first else demand.own_cpu, left)
        cpu = np.minimum(_at_cores(own, 1.0, demand.cores, crowding), left)
        left = left - cpu
        # So many of N tasks that nobody makes wait, if for so much of the time at least one does.
        short = np.minimum(demand.memory, _NEARLY_ALL)
        likely = tasks * (1 - (1 - short) ** (1 / tasks))
        memory = {Margin.LEAST: short, Margin.LIKELY: likely, Margin.MOST: tasks * short}[stalled]
        memory = np.minimum(memory, left)
        left = left - memory
        busy = np.minimum(demand.busy, 1.0)
        if written_later:
            busy = busy * np.array([demand.at_once, np.ones_like(left)])
        most = busy / (1 - np.minimum(crowding * busy, _NEARLY_ALL))
        # Shuffle data comes by the link, as far as that can have been waited for.
        fetched = np.minimum(np.minimum(demand.fetching, most[1]), left)
        queued = np.array([np.zeros_like(fetched), fetched])
        room = most - queued
        queued += room * np.minimum(1.0, (left - fetched) / np.maximum(room.sum(axis=0), _TINY))
        left = left - queued.sum(axis=0)
        helped = np.clip(np.minimum(demand.cpu - own, left), 0.0, None)
        # Who writes waits for a disk only while it can do no more, and no longer as soon as it can.
        # So these tasks wait nowhere in the network: that the disk is busy limits their speed.
        full = np.interp(demand.busy[0], _NEARLY_FULL, (0.0, 1.0)) * demand.serial[0][:, np.newaxis]
        queued[0] *= 1 - full * (1 - demand.at_once)
        # What is read ahead or written later keeps a device busy while nobody waits for it.
        needed = np.where(demand.serial[..., np.newaxis], np.minimum(busy, queued), queued)
        gap = 1 - needed / np.maximum(queued, _TINY)
        # While all cores are busy, what else is left waits for one: other programs have them.
        taken = np.interp(demand.cpu / demand.cores, _NEARLY_FULL, (0.0, 1.0)) * (left - helped)
        total, at_cores = own + helped, cpu + helped + taken
        crowded = total * (1 + crowding * at_cores) / np.maximum(at_cores, _TINY)
        enough = np.maximum(demand.cores, 1 + crowding * total)
        return cls(
            demand=demand,
            cpu=total,
            cores=np.where(at_cores > total + _TINY, crowded, enough),
            crowding=crowding,
            devices=needed,
            waiting=np.where(queued > _TINY, gap / np.maximum(needed, _TINY), 0.0),
            memory=memory,
            other=left - helped - taken + np.minimum(demand.overhead, demand.tasks),
        )

    @property
    def queued(self) -> Array:
        """By device, node and step: tasks that were at it."""
        blocked = np.minimum(self.waiting * self.devices, _NEARLY_ALL)
        return np.asarray(self.devices / (1 - blocked))

    def at(self, margin: Margin, bound: Bound) -> Self:
        """The same with what is known least, or most, in favour of a faster resource.

        At least, waiting for it shrinks only as its own work does, and what is saved is partly
        spent in other queues. At most, nobody waits any longer for others, and no other queue
        grows.
        """
        if margin is Margin.LIKELY:
            return self
        mine = np.array([bound is device for device in _DEVICES])[:, np.newaxis, np.newaxis]
        as_delay = mine if margin is Margin.LEAST else ~mine
        alone = mine & (margin is Margin.MOST)
        return replace(
            self,
            devices=np.where(as_delay, self.queued, self.devices),
            waiting=np.where(as_delay | alone, 0.0, self.waiting),
        )


def _at_cores(cpu: Array, speed: Array | float, cores: Array, crowding: Array) -> Array:
    """Tasks that compute or wait for a core, at a speed of the node."""
    waits = speed * crowding * cpu / cores
    queue = speed * cpu / cores / (1 - np.minimum(waits, _NEARLY_ALL))
    return np.asarray(np.maximum(speed * cpu, queue))


class TaskQuestion(NamedTuple):
    """What is to be predicted of steps in which tasks ran."""

    network: TaskNetwork
    """As it was; every step that is looked at has a task on some node."""
    bound: Bound | None = None
    """What is faster; None leaves all as it was. Memory then suffices and heat is gone, by whatever
    factor."""
    times_as_fast: float = 1.0
    """At least 1; may be infinite."""
    margin: Margin = Margin.LIKELY
    """Whether to take what is likely, or the least or most that bounds allow."""


def predict_tasks(questions: Sequence[TaskQuestion]) -> list[Prediction]:
    """Say what each step would take were one resource faster, as the mean over all tasks in it.

    Arrays of a run are short, and dozens of questions are asked of it: all are answered at once, by
    question first, which takes a tenth of the time.

    Args:
        questions: of the same nodes and steps; at least one.
    """
    asked = _Questions.of(questions)
    cool = asked.cpu * (1 - asked.heat)
    hot = asked.cpu * asked.heat * asked.kept(Bound.HEAT)
    cpu = (cool + hot) / asked.faster(Bound.CPU)
    slower = np.array([1 / asked.faster(device)[:, 0, 0] for device in _DEVICES]).T
    slower = slower[:, :, np.newaxis, np.newaxis]
    devices = asked.devices * slower
    fixed = {
        Bound.MEMORY: asked.memory * asked.kept(Bound.MEMORY),
        Bound.START_UP: asked.other / asked.faster(Bound.START_UP),
    }
    tasks = np.maximum(asked.tasks, _TINY)
    delay = fixed[Bound.MEMORY] + fixed[Bound.START_UP]

    def found(speed: Array) -> tuple[Array, Array]:
        """Tasks at the cores, and at each device."""
        speeds = speed[:, np.newaxis]
        blocked = np.minimum(asked.waiting * devices * speeds, _NEARLY_ALL)
        at_devices = speeds * devices / (1 - blocked)
        return _at_cores(cpu, speed, asked.cores, asked.crowding), at_devices

    def surplus(speed: Array) -> Array:
        at_cores, at_devices = found(speed)
        return np.asarray(at_cores + at_devices.sum(axis=1) + speed * delay - tasks)

    # A device that serves one at a time, and the cores, can do no more than be busy all the time.
    busy = np.where(asked.serial, np.minimum(asked.busy, 1.0) * slower, 0.0)
    full = np.concatenate((busy, (cpu / asked.cores)[:, np.newaxis]), axis=1)
    least = np.maximum((cpu + devices.sum(axis=1) + delay) / tasks, full.max(axis=1))
    speed = _zero(surplus, 1 / np.maximum(least, _TINY))
    speed[[question.bound is None for question in questions]] = 1.0
    at_cores, at_devices = found(speed)
    # Where that limits them, whom no queue accounts for waits for the resource that does.
    kept = np.maximum(tasks - at_cores - at_devices.sum(axis=1) - speed * delay, 0.0)
    places = np.arange(full.shape[1])[:, np.newaxis, np.newaxis]
    limits = full.argmax(axis=1)[:, np.newaxis] == places
    at_devices = at_devices + kept[:, np.newaxis] * limits[:, :-1]
    at_cores = at_cores + kept * limits[:, -1]
    weights = asked.tasks / np.maximum(asked.tasks.sum(axis=1, keepdims=True), _TINY)
    cool_part = np.divide(cool, cool + hot, out=np.ones_like(cool), where=cool + hot > _TINY)
    return _together(
        weights / np.maximum(speed, _TINY),
        {
            Bound.CPU: at_cores * cool_part,
            Bound.HEAT: at_cores * (1 - cool_part),
            Bound.STORAGE: at_devices[:, 0],
            Bound.NETWORK: at_devices[:, 1],
            **{name: row * speed for name, row in fixed.items()},
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Questions:
    """What questions are about, each array by question first."""

    questions: Sequence[TaskQuestion]
    cpu: Array
    cores: Array
    crowding: Array
    devices: Array
    waiting: Array
    memory: Array
    other: Array
    tasks: Array
    heat: Array
    busy: Array
    serial: Array

    @classmethod
    def of(cls, questions: Sequence[TaskQuestion]) -> Self:
        networks = [
            row.network if row.bound is None else row.network.at(row.margin, row.bound)
            for row in questions
        ]
        parts = ("cpu", "cores", "crowding", "devices", "waiting", "memory", "other")
        return cls(
            questions=questions,
            **{name: np.array([getattr(row, name) for row in networks]) for name in parts},
            tasks=np.array([row.demand.tasks for row in networks]),
            heat=np.array([row.demand.heat for row in networks]),
            busy=np.array([row.demand.busy for row in networks]),
            serial=np.array([row.demand.serial for row in networks])[..., np.newaxis],
        )

    def faster(self, bound: Bound) -> Array:
        """How many times as fast a resource is, in each question."""
        found = [row.times_as_fast if row.bound is bound else 1.0 for row in self.questions]
        return np.array(found)[:, np.newaxis, np.newaxis]

    def kept(self, bound: Bound) -> Array:
        """1 in each question in which it stays as it was, 0 where it is gone."""
        found = [float(row.bound is not bound) for row in self.questions]
        return np.array(found)[:, np.newaxis, np.newaxis]


def _zero(surplus: Callable[[Array], Array], high: Array) -> Array:
    """Where a growing function is 0, between 0 and a limit; the limit where it is not yet."""
    low = np.where(surplus(high) <= 0, high, 0.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = surplus(middle) <= 0
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    under, over = surplus(low), surplus(high)
    rise = over - under
    part = np.divide(-under, rise, out=np.zeros_like(rise), where=rise > 0)
    return np.asarray(low + np.clip(part, 0.0, 1.0) * (high - low))


def _together(lengths: Array, rows: Mapping[Bound, Array]) -> list[Prediction]:
    """The mean over the nodes of how long a step takes, and of what tasks do in it."""
    total = np.maximum(np.sum(list(rows.values()), axis=0), _TINY)
    shares = np.array([(lengths * rows[bound] / total).sum(axis=1) for bound in BOUNDS])
    return [
        Prediction(lengths=length, shares=share)
        for length, share in zip(
            lengths.sum(axis=1), np.maximum(shares, 0.0).swapaxes(0, 1), strict=True
        )
    ]
