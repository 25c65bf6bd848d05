"""The two sides of a bisection: what they are, and in which properties they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from boardcluster.errors import SpecError, UsageError
from boardcluster.factors import FACTORS
from boardcluster.records import CampaignSpec, ClusterSpec, Matrix, Trial
from boardcluster.services.job_sizing import SIZED
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import Profile, build_profile, profile_names, with_settings
from boardcluster.services.settings import all_properties, check_setting, known_settings
from boardcluster.spec.checks import closest
from boardcluster.units import format_bytes

__all__ = [
    "BisectSides",
    "PropertyDifference",
    "bisect_sides",
    "cell_key",
    "cell_words",
    "engine_pairs",
    "matrix_of",
    "refuse_overlap",
]

_NOTHING = "cluster"
"""The side that is the cluster as cluster.toml says."""

_OWN_FIELDS = ("workload", "engine", "profile", "size_bytes", "input", "parameters", "settings")
"""Factors that a matrix does not keep in its ``levels``."""

_EACH_NODES = "each node's own"
_EACH_JOBS = "the job's own"
_SIZES = {_EACH_NODES: "sizes it for each node", _EACH_JOBS: "sizes it for each job"}
"""What stands for a value that the profile ``default`` computes, and what to say of it."""

_IN_WORDS = ("workload", "engine", "size_bytes")
"""What the words of every cell say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyDifference:
    """A property that the two sides set differently."""

    key: str
    """The property."""
    old: str
    """What the first side has: empty where it is not set, words where it sizes each node or job."""
    new: str
    """What the second one has."""

    @property
    def words(self) -> str:
        """It as a text: ``spark.executor.cores 2 instead of 1``."""
        return f"{self.key} {self.new} instead of {self.old or 'none'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectSides:
    """Two configurations, and how one becomes the other."""

    names: tuple[str, str]
    """As they were given."""
    profile: str
    """The profile of the first side; the second is that with the differences on top."""
    settings: Mapping[str, str]
    """Properties that the first side sets on top of it."""
    differences: tuple[PropertyDifference, ...]
    """What can be set one by one, by name."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """What also differs and cannot, by name, with the reason."""


def engine_pairs(names: tuple[str, str]) -> bool:
    """Whether both sides are engine pairs.

    Raises:
        UsageError: only one of them is.
    """
    found = [name in pair_ids() for name in names]
    if any(found) and not all(found):
        raise UsageError(
            f"{names[0]} and {names[1]} cannot be compared: only one is an engine pair",
            hint="name two engine pairs, or two profiles or settings",
        )
    return all(found)


def bisect_sides(names: tuple[str, str], declared: ClusterSpec) -> BisectSides:
    """Read both sides, and find every property in which they differ.

    A side is a profile, the path of one's own, ``KEY=VALUE[,KEY=VALUE]`` on top of the cluster's
    profile, or ``cluster`` for what cluster.toml says.

    Raises:
        UsageError: a side is none of these, or they do not differ.
        SpecError: a profile of one's own is missing or wrong.
        CapacityError: a side cannot run on this cluster; with the arithmetic.
    """
    (profile, settings), (other, others) = (_side(name, declared) for name in names)
    one = _built(profile, settings, declared)
    two = _built(other, others, declared)
    found, refused = _differences(names, one, two, declared.engines)
    if not found:
        also = f", except in {', '.join(refused)}, which cannot be set alone" if refused else ""
        raise UsageError(
            f"{names[0]} and {names[1]} do not differ in any property{also}",
            hint="name two configurations that do",
        )
    return BisectSides(
        names=names,
        profile=profile,
        settings=settings,
        differences=found,
        refused=refused,
    )


def _side(name: str, declared: ClusterSpec) -> tuple[str, dict[str, str]]:
    """Return a side's profile, and what it sets on top of it."""
    if name == _NOTHING:
        return declared.profile, {}
    if name in profile_names():
        return name, {}
    if name.endswith(".toml"):  # the home keeps it, where a relative path would begin elsewhere
        return str(Path(name).resolve()), {}
    if "=" not in name:
        known = [_NOTHING, *profile_names(), *pair_ids()]
        near = closest(name, known)
        raise UsageError(
            f"{name!r} is neither a profile nor an engine pair nor KEY=VALUE"
            + (f"; did you mean {near!r}?" if near else ""),
            hint=f"one of {', '.join(known)}, the path of a profile, or for example"
            " spark.executor.cores=2",
        )
    settings = {}
    for text in name.split(","):
        key, _, value = (part.strip() for part in text.partition("="))
        try:
            settings[key] = check_setting(key, value)
        except ValueError as error:
            raise UsageError(
                f"{text!r}: {error}",
                hint="write KEY=VALUE,KEY=VALUE; a value with a comma needs a profile of your own",
            ) from error
    return declared.profile, settings


def _built(profile: str, settings: Mapping[str, str], declared: ClusterSpec) -> Profile:
    try:
        return with_settings(build_profile(profile, declared), settings, declared)
    except SpecError as error:
        raise SpecError(f"--bisect: {error.message}", hint=error.hint) from error


def _differences(
    names: tuple[str, str], one: Profile, two: Profile, engines: str
) -> tuple[tuple[PropertyDifference, ...], dict[str, str]]:
    """Return what can be set one by one, and what also differs and cannot, with the reasons."""
    known = known_settings(engines)
    found: list[PropertyDifference] = []
    refused: dict[str, str] = {}
    for key in sorted({*_keys(one), *_keys(two)}):
        default = known[key].default if key in known else ""
        own = _value(two, key)
        old, new = _value(one, key) or default, own or default
        if old == new:
            continue
        if new in _SIZES:
            refused[key] = f"{names[1]} {_SIZES[new]}"
        elif old == _EACH_NODES and not own:
            # The engines' default is -1 there, which Hadoop reads as a size that no node has.
            refused[key] = f"{names[0]} {_SIZES[old]}, and {names[1]} does not set it"
        elif not new:
            refused[key] = f"{names[1]} does not set it, and the engines state no default"
        else:
            try:
                checked = check_setting(key, new)
            except ValueError as error:
                refused[key] = str(error)
            else:
                found.append(PropertyDifference(key=key, old=old, new=checked))
    return tuple(found), refused


def _keys(profile: Profile) -> set[str]:
    """Return every property that a profile sets for all nodes, for each node or for each job."""
    nodes = {key for rows in profile.per_node.values() for key in rows}
    return {*all_properties(profile.properties), *nodes, *SIZED}


def _value(profile: Profile, key: str) -> str:
    """Return what a profile sets, in words where that is another value for each node or job."""
    if any(key in rows for rows in profile.per_node.values()):
        return _EACH_NODES
    if profile.small_daemons and key in SIZED and key not in profile.settings:
        return _EACH_JOBS
    return all_properties(profile.properties).get(key, "")


def matrix_of(
    trial: Trial, *, profile: str, settings: Mapping[str, str], repetitions: int
) -> Matrix:
    """Return the matrix of one cell under other settings."""
    return Matrix(
        workloads=(trial.workload,),
        engines=(trial.engine,),
        profiles=(profile,),
        sizes_bytes=(trial.size_bytes,),
        levels={
            row.name: (row.level(trial),)
            for row in FACTORS
            if row.name not in _OWN_FIELDS and not (row.is_default(trial) and row.default == 0)
        },
        repetitions=repetitions,
        input=trial.input,
        parameters={key: (value,) for key, value in trial.parameters.items()},
        settings={key: (value,) for key, value in settings.items()},
    )


def cell_key(trial: Trial, sides: BisectSides) -> tuple[str, ...]:
    """Return what tells a cell from others, whichever side it is run as."""
    varied = {row.key for row in sides.differences} | set(sides.settings)
    own = {key: value for key, value in trial.settings.items() if key not in varied}
    plain = replace(trial, settings=own, profile="")
    return tuple(repr(row.level(plain)) for row in FACTORS)


def refuse_overlap(spec: CampaignSpec, sides: BisectSides) -> None:
    """Refuse properties that a campaign file and the sides both set: one would hide the other.

    Raises:
        UsageError: names them.
    """
    own = {key for row in spec.matrices for key in row.settings}
    both = sorted(own & {*sides.settings, *(row.key for row in sides.differences)})
    if both:
        raise UsageError(
            f"the campaign file sets {', '.join(both)} itself, and so do the two sides",
            hint="take it out of [matrix.settings], or out of the sides",
        )


def cell_words(trial: Trial, among: Sequence[Trial]) -> str:
    """Name a cell in a few words that tell it from others."""
    size = f", {format_bytes(trial.size_bytes)}" if trial.size_bytes else ""
    said = [
        row.words(row.level(trial))
        for row in FACTORS
        if row.name not in _IN_WORDS and any(row.level(trial) != row.level(one) for one in among)
    ]
    return ", ".join([f"{trial.workload} on {trial.engine}{size}", *filter(None, said)])
