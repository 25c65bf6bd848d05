"""What is to be tuned, checked: the request, the space on this cluster, and what is tried first."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from boardcluster import __version__
from boardcluster.campaign.begin import Start
from boardcluster.campaign.follow import Follower
from boardcluster.campaign.request import single_workload
from boardcluster.campaign.trial_jobs import check_spark_fits
from boardcluster.errors import BoardclusterError, CapacityError, UsageError
from boardcluster.records import ClusterSpec, Engine
from boardcluster.services.profile import (
    Profile,
    build_profile,
    own_profile_digests,
    profile_names,
    with_settings,
)
from boardcluster.services.settings import (
    by_file,
    check_setting,
    known_settings,
    of_daemons,
)
from boardcluster.spec.checks import closest
from boardcluster.store import to_json
from boardcluster.tuning.record import Candidate, Objective, TuningRequest
from boardcluster.tuning.space import (
    Dimension,
    RuledOut,
    dimensions,
    narrowed,
    params_of,
    read_space,
)
from boardcluster.workloads import load_workload, workload_names

__all__ = ["PAIRS_LEAST", "TuneOrder", "TunePlan", "plan_tuning"]

PAIRS_LEAST = 5
"""Fewest pairs of a proof."""

_DRAWN_SEEDS = 1_000_000
_SPARK_HADOOP = "spark.hadoop."


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOrder:
    """What a user asks for."""

    target: str
    """A workload, or the path of the user's own program."""
    budget_seconds: float
    """How long it may take, the proof included."""
    engine: Engine | None = None
    """The engine; None for Spark where the workload or the program has it."""
    objective: Objective = Objective.TIME
    """What shall be little."""
    size_bytes: int | None = None
    """Size of the input; None for the default, or for the whole text."""
    base: str = ""
    """The profile to compare with; empty for the cluster's."""
    seed: int | None = None
    """Seed of all that is drawn; None draws one."""
    pairs: int = PAIRS_LEAST
    """Least number of pairs of the proof."""
    text: Path | None = None
    """A text file to read instead of the flights."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the workload."""
    arguments: tuple[str, ...] = ()
    """Arguments of the user's own program; ``{run}`` in one is another name in each run."""
    main: str = ""
    """Main class of a Spark jar."""
    start: Start = Start.BEGIN
    """How to begin."""
    out: Path | None = None
    """The profile to write; None for a name of its own in the state folder."""

    @property
    def is_program(self) -> bool:
        """Whether it is a program; a workload's name is none, whatever lies in the folder."""
        return self.target not in workload_names()

    @property
    def chosen_engine(self) -> Engine:
        """The engine.

        Raises:
            UsageError: it must be said, or the workload has no settings to search.
        """
        if self.engine is Engine.MPI:
            raise UsageError(
                "tune has no settings for MPI", hint="choose --engine spark or mapreduce"
            )
        if self.is_program:
            if self.engine is None and not self.target.endswith(".py"):
                raise UsageError(
                    f"which engine runs {self.target}?", hint="say --engine spark or mapreduce"
                )
            return self.engine or Engine.SPARK
        own = load_workload(self.target).engines
        known = [row for row in (Engine.SPARK, Engine.MAPREDUCE) if row in own]
        if not known:
            raise UsageError(
                f"{self.target} runs on {', '.join(own)} only, for which tune has no settings",
                hint="tune a workload of Spark or MapReduce",
            )
        return self.engine or known[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class TunePlan:
    """An order that can be carried out."""

    request: TuningRequest
    """What is tuned."""
    space: tuple[Dimension, ...]
    """The settings, without what cannot run."""
    ruled_out: tuple[RuledOut, ...]
    """What cannot run, and why."""
    known: tuple[Candidate, ...]
    """What other profiles set."""
    refusal_of: Callable[[Mapping[str, str]], str]
    """Says why settings cannot run on top of the base; empty if they can."""
    base_params: Mapping[str, str | int | float]
    """What the base sets, as far as it is in the space."""


def plan_tuning(
    order: TuneOrder, declared: ClusterSpec, *, tuning_id: str, cache: Path, follow: Follower
) -> TunePlan:
    """Check an order against a cluster.

    Raises:
        BoardclusterError: with what is wrong, and what is allowed.
    """
    request = _request(order, declared, tuning_id=tuning_id, cache=cache, follow=follow)
    spec = replace(declared, profile=request.base)
    profile = build_profile(request.base, spec)
    check_spark_fits(profile, request.engine)

    def refusal_of(settings: Mapping[str, str]) -> str:
        try:
            built = with_settings(profile, checked_settings(settings), spec)
        except (BoardclusterError, ValueError) as error:
            return error.message if isinstance(error, BoardclusterError) else str(error)
        return built.spark_refusal if request.engine is Engine.SPARK else ""

    workload = "submit" if order.is_program else request.target
    space, out = narrowed(
        dimensions(spec, request.engine, workload, cores=_cores(spec)), refusal_of
    )
    texts = _texts(profile, space, spec)
    known, unfit = _known(profile, space, spec, refusal_of)
    return TunePlan(
        request=request,
        space=space,
        ruled_out=(*out, *unfit),
        known=known,
        refusal_of=refusal_of,
        base_params=params_of(space, texts),
    )
