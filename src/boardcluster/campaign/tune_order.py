"""What is to be tuned, checked: the request, the space on this cluster, and what is tried first."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from boardcluster import __version__
from boardcluster.campaign.begin import Start
from boardcluster.campaign.follow import Follower
from boardcluster.campaign.request import single_workload
from boardcluster.campaign.submit import SUBMIT, UserProgram, check_program
from boardcluster.campaign.trial_jobs import check_spark_fits
from boardcluster.catalog.lookup import find_board
from boardcluster.errors import BoardclusterError, CapacityError, UsageError
from boardcluster.records import ClusterSpec, Engine
from boardcluster.services.job_sizing import real_cores, size_job
from boardcluster.services.profile import (
    Profile,
    build_profile,
    own_file_digests,
    own_parts,
    profile_names,
    with_settings,
)
from boardcluster.services.settings import all_properties, check_setting, known_settings
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
    settings_of_params,
)
from boardcluster.twin.heat import power_model_of
from boardcluster.workloads import load_workload, workload_names

__all__ = ["PAIRS_LEAST", "TuneOrder", "TunePlan", "checked_settings", "plan_tuning"]

PAIRS_LEAST = 5
"""Fewest pairs of a proof."""

_BUDGET_SECONDS = 3600.0
_DRAWN_SEEDS = 1_000_000
_SPARK_HADOOP = "spark.hadoop."
_JVM_OPTIONS = (
    *("spark.executor.extraJavaOptions", "spark.driver.extraJavaOptions"),
    *("mapreduce.map.java.opts", "mapreduce.reduce.java.opts"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOrder:
    """What a user asks for."""

    target: str
    """A workload, or the path of the user's own program."""
    budget_seconds: float | None = None
    """How long it may take, the proof included; None for what it was begun with, or an hour."""
    engine: Engine | None = None
    """The engine; None for Spark where the workload or the program has it."""
    objective: Objective = Objective.TIME
    """What to make less of."""
    size_bytes: int | None = None
    """Size of the input; None for the default, or for the whole text."""
    base: str = ""
    """The profile to compare with; empty for the cluster's."""
    seed: int | None = None
    """Seed of all that is drawn; None draws one."""
    pairs: int | None = None
    """Least number of pairs of the proof; None for ``PAIRS_LEAST``."""
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
    tainted: bool = False
    """Whether runs of the proof that were too disturbed count, too."""

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
        if self.engine is not None and not self.engine.on_yarn:
            raise UsageError(
                f"tune has no settings for {self.engine.own_name}",
                hint="choose --engine spark or mapreduce",
            )
        if self.is_program:
            if self.engine is None and not self.target.endswith(".py"):
                raise UsageError(
                    f"which engine is to run {self.target}?",
                    hint="give --engine spark or mapreduce",
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
    workers: int
    """Number of workers."""
    space: tuple[Dimension, ...]
    """The settings, without what cannot run or would have no effect."""
    ruled_out: tuple[RuledOut, ...]
    """What is left out, and why."""
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

    workload = SUBMIT if order.is_program else request.target
    rows = dimensions(spec, request.engine, workload, cores=real_cores(spec))
    free, fixed = _not_fixed(rows, declared.settings, request)
    flags = {row.name: row.values[0] for row in free if row.tunable.flags}
    # Every point sets these; a heap among the base's options would refuse smaller containers.
    options = settings_of_params(free, flags)
    space, out = narrowed(free, lambda settings: refusal_of({**options, **settings}))
    texts = _Texts(spec, request)
    base = texts.of(profile)
    known, unfit = _known(texts, profile, base, space, refusal_of)
    return TunePlan(
        request=request,
        workers=len(spec.workers),
        space=space,
        ruled_out=(*fixed, *out, *unfit),
        known=known,
        refusal_of=refusal_of,
        base_params=params_of(space, base),
    )


def _not_fixed(
    rows: Sequence[Dimension], fixed: Mapping[str, str], request: TuningRequest
) -> tuple[tuple[Dimension, ...], tuple[RuledOut, ...]]:
    """Leave out what a tuned profile could not change, or not without losing something.

    The first is what ``[settings]`` of the cluster or a parameter of the workload sets; the second
    are options of JVMs that the user's own base sets, such as a ``-D`` that the program needs.
    """
    options = all_properties(own_parts(request.base).tables)
    kept, out = [], []
    for row in rows:
        keys = row.tunable.properties
        own = next((key for key in keys if key in fixed), "")
        kept_option = next((key for key in keys if row.tunable.flags and key in options), "")
        if own:
            reason = f"[settings] of cluster.toml sets {own}, which overrides a profile"
            out.append(RuledOut(what=row.name, reason=reason))
        elif kept_option:
            reason = f"{Path(request.base).name} sets {kept_option}, whose options are kept"
            out.append(RuledOut(what=row.name, reason=reason))
        elif given := row.tunable.fixing(request.parameters):
            reason = f"the parameter {given} sets it, which overrides a profile"
            out.append(RuledOut(what=row.name, reason=reason))
        else:
            kept.append(row)
    return tuple(kept), tuple(out)


def checked_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings as the engines read them.

    Raises:
        ValueError: one is none.
    """
    return {key: check_setting(key, value) for key, value in settings.items()}


def _request(
    order: TuneOrder, declared: ClusterSpec, *, tuning_id: str, cache: Path, follow: Follower
) -> TuningRequest:
    if order.pairs is not None and order.pairs < PAIRS_LEAST:
        raise UsageError(
            f"a proof of {order.pairs} pairs; allowed: at least {PAIRS_LEAST}",
            hint="allow more pairs, or leave the number out",
        )
    if order.is_program:
        _check_program_order(order)
    elif order.arguments or order.main:
        raise UsageError(
            f"{order.target} is a workload: arguments and --class are for programs of your own",
            hint="leave them out; parameters of a workload are set with --set",
        )
    engine = order.chosen_engine
    if order.is_program:
        if order.main and engine is not Engine.SPARK:
            raise UsageError(
                "--class can only be used with Spark",
                hint="for MapReduce give the main class first after `--`",
            )
        check_program(UserProgram(engine=engine, path=Path(order.target), arguments=()))
    if order.objective is not Objective.TIME and not _knows_energy(declared):
        raise UsageError(
            f"the objective {order.objective} needs the energy of every run, but the cluster has no"
            " power meter and no model of its nodes' power",
            hint="declare a [[meter]] or a [[power]] in cluster.toml, see"
            " docs/how-to/measure-energy.md, or choose --objective time",
        )
    base = order.base or declared.profile
    if base.endswith(".toml"):
        base = str(Path(base).resolve())  # as the cluster's own, which must be equal
    size_bytes, parameters = 0, dict(order.parameters)
    if not order.is_program:
        checked = single_workload(
            order.target,
            cache=cache,
            progress=follow.progress,
            engines=[engine],
            size_bytes=order.size_bytes,
            text=order.text,
            parameters=parameters,
        )
        [matrix] = checked.spec.matrices
        [size_bytes] = matrix.sizes_bytes
        parameters = {key: str(value) for key, (value,) in matrix.parameters.items()}
    return TuningRequest(
        id=tuning_id,
        target=str(Path(order.target).absolute()) if order.is_program else order.target,
        engine=engine,
        objective=order.objective,
        budget_seconds=_BUDGET_SECONDS if order.budget_seconds is None else order.budget_seconds,
        size_bytes=size_bytes,
        base=base,
        seed=1 + secrets.randbelow(_DRAWN_SEEDS) if order.seed is None else order.seed,
        pairs=order.pairs or PAIRS_LEAST,
        input=str(order.text.absolute()) if order.text else "",
        parameters=parameters,
        arguments=order.arguments,
        main=order.main,
        cluster_sha256=_digest(declared, base, Path(order.target) if order.is_program else None),
        version=__version__,
    )


def _knows_energy(declared: ClusterSpec) -> bool:
    """Whether runs have an energy: metered, by a declared model, or by the catalog's of boards."""
    if declared.meters or declared.power_models:
        return True
    boards = [node.twin.board for node in declared.nodes if node.twin is not None]
    known = (power_model_of(find_board(board), "") is not None for board in boards)
    return len(boards) == len(declared.nodes) and all(known)


def _check_program_order(order: TuneOrder) -> None:
    """Refuse what is neither a workload nor a program, and what a program does not have.

    Raises:
        UsageError: names it.
    """
    if not Path(order.target).is_file():
        near = closest(order.target, workload_names())
        raise UsageError(
            f"{order.target!r} is neither a workload nor a file"
            + (f"; did you mean {near!r}?" if near else ""),
            hint=f"name a workload ({', '.join(workload_names())}), or a jar or .py file",
        )
    if order.target.endswith(".toml"):
        raise UsageError(
            f"{order.target} is a campaign file, which tune does not accept",
            hint="name one workload or program; vary known settings with [matrix.settings]",
        )
    if order.size_bytes is not None or order.text is not None or order.parameters:
        raise UsageError(
            "--size, --input and --set are for workloads: a program reads what its arguments say",
            hint="leave them out",
        )


def _digest(declared: ClusterSpec, base: str, program: Path | None) -> str:
    """Digest what a tuning must find again to go on: cluster, profile, space, and the program."""
    parts: list[object] = [
        to_json(declared),
        own_file_digests([base]),
        repr(read_space()),
        real_cores(declared),  # ranges and the sizing of jobs go by them
    ]
    if program is not None:
        with program.open("rb") as stream:
            parts.append(hashlib.file_digest(stream, "sha256").hexdigest())
        parts.append(str(Path.cwd()))  # it starts there, and may read what is there
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class _Texts:
    """What properties are in a profile, with the engines' own values where it sets none."""

    def __init__(self, spec: ClusterSpec, request: TuningRequest) -> None:
        self.spec = spec
        self.engine = request.engine
        self._request = request
        known = known_settings(spec.engines)
        self._defaults = {key: row.default for key, row in known.items() if row.default}

    def of(self, profile: Profile) -> dict[str, str]:
        """Return the properties by name."""
        rows = all_properties(profile.properties)
        engine, size_bytes = self._request.engine, self._request.size_bytes
        sizing = (
            None  # `submit` sizes nothing
            if self._request.is_program
            else size_job(
                self.spec,
                profile,
                engine,
                size_bytes=size_bytes,
                workload=self._request.target,
                reads_input=load_workload(self._request.target).reads_input,
            )
        )
        rows |= all_properties(sizing.properties if sizing else {})
        if sizing and sizing.brief:  # as it would be if a user had written it
            for key in _JVM_OPTIONS:
                rows[key] = f"{rows.get(key, '')} -XX:TieredStopAtLevel=1".strip()
        return {**self._defaults, **rows}


def _known(
    texts: _Texts,
    profile: Profile,
    base: Mapping[str, str],
    space: tuple[Dimension, ...],
    refusal_of: Callable[[Mapping[str, str]], str],
) -> tuple[tuple[Candidate, ...], tuple[RuledOut, ...]]:
    """Return what other profiles set of the space, where it is not what the base does."""
    found: list[Candidate] = []
    out = []
    unset = {
        key: "" if row.tunable.flags else row.tunable.unset
        for row in space
        for key in row.tunable.properties
    }
    for name in profile_names():
        if name == profile.name:
            continue
        try:
            built = build_profile(name, texts.spec)
        except CapacityError as error:
            out.append(RuledOut(what=f"profile {name}", reason=error.message))
            continue
        if built.spark_refusal and texts.engine is Engine.SPARK:
            out.append(RuledOut(what=f"profile {name}", reason=built.spark_refusal))
            continue
        theirs = texts.of(built)
        plain = {
            key: theirs.get(key.removeprefix(_SPARK_HADOOP), "") or own
            for key, own in unset.items()
        }
        settings = {
            key: value
            for key, value in plain.items()
            if value and value != (base.get(key.removeprefix(_SPARK_HADOOP), "") or unset[key])
        }
        if not settings or any(row.settings == settings for row in found):
            continue
        if reason := refusal_of(settings):
            out.append(RuledOut(what=f"profile {name}", reason=reason))
            continue
        found.append(
            Candidate(
                id=name,
                origin=f"profile {name}",
                settings=checked_settings(settings),
                params=params_of(space, {**base, **settings}),
            )
        )
    return tuple(found), tuple(out)
