"""``campaign.toml`` -> a validated CampaignSpec."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, ValidationInfo, create_model

from boardcluster.factors import FACTORS, Factor
from boardcluster.records import (
    MANY_YEARS,
    CachePolicy,
    CampaignSpec,
    DeclaredComparison,
    Engine,
    Matrix,
    OnLoss,
    Policy,
)
from boardcluster.spec.checks import (
    INPUT_SIZE_BYTES_MAX,
    Allowed,
    check_campaign_name,
    check_choice,
    check_input_size,
    check_mix,
    check_precision,
    check_size,
    check_timeout,
    check_wait,
    check_word,
    choices_text,
    closest,
    complaint,
    mix_jobs,
    shown,
)
from boardcluster.spec.problems import (
    Problem,
    StrictTable,
    Text,
    key_text,
    repeated,
    spec_error,
    validate,
    word_of,
)
from boardcluster.spec.settings import (
    SETTINGS_TABLE,
    CheckSetting,
    check_profile,
    profiles_allowed,
    read_settings,
)
from boardcluster.spec.toml import KeyPath, TomlDocument, path_from, read_toml
from boardcluster.spec.twin import part_name
from boardcluster.units import SIZE_ALLOWED, format_bytes_exact

__all__ = [
    "DEFAULT_REPETITIONS",
    "REPETITIONS_MAX",
    "SEED_MAX",
    "STARTS_MAX",
    "WARM_UPS_MAX",
    "WorkloadFacts",
    "default_repetitions_max",
    "load_campaign",
    "mix_engines",
]

DEFAULT_REPETITIONS = 3
REPETITIONS_MAX = 1000
WARM_UPS_MAX = 100
STARTS_MAX = 100
SEED_MAX = 2**63 - 1
"""The largest number that the store's tables hold."""

_CELSIUS_MAX = 120
_CREATE_HINT = "name a campaign file, or copy one of the project's examples folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFacts:
    """What a campaign must know of a workload."""

    engines: tuple[Engine, ...]
    """Engines it runs on."""
    parameters: Mapping[str, tuple[str, Callable[[str], bool]]]
    """For each of its settings what is allowed, in words, and whether a text is."""
    takes_size: bool
    """Whether its input has a size."""
    size_is_optional: bool
    """Whether it finds a size by itself where none is given."""
    takes_text: bool
    """Whether it reads text, which may be the user's own."""


def default_repetitions_max(least: int) -> int:
    """Return the most runs of a cell with a precision where nobody says it: ten times the least."""
    return max(least, min(10 * least, REPETITIONS_MAX))


def mix_engines(workload: str, workloads: Mapping[str, WorkloadFacts]) -> tuple[Engine, ...]:
    """Return the engines on which a workload, or every job of a mix, runs."""
    jobs = mix_jobs(workload)
    return tuple(engine for engine in Engine if all(engine in workloads[j].engines for j in jobs))


_Item = TypeVar("_Item")
_Listed = Annotated[
    list[_Item],
    Field(min_length=1),
    BeforeValidator(lambda value: value if isinstance(value, list) else [value]),
]


def _level_of(factor: Factor) -> tuple[Any, Any]:
    """Return the field of a matrix for a plain factor: a list of its levels, empty if left out."""
    item: Any
    if factor.unit == "bytes":
        most_bytes = factor.most or INPUT_SIZE_BYTES_MAX
        ends = " to ".join(map(format_bytes_exact, (factor.least, most_bytes)))
        each = f"{SIZE_ALLOWED}, from {ends}"
        check = partial(check_size, least_bytes=factor.least, most_bytes=most_bytes, allowed=each)
        item = Annotated[int, BeforeValidator(check)]
        allowed = f"one or more sizes; each {each}"
    elif factor.kind is int:
        item = Annotated[int, Field(ge=factor.least, le=factor.most)]
        most = f" to {factor.most}" if factor.most else " to the number of jobs of the mix"
        allowed = f"one or more whole numbers from {factor.least}{most}"
    else:
        item = Annotated[factor.kind, word_of(factor.kind, factor.noun)]
        allowed = f"one or more of {', '.join(level.value for level in factor.kind)}"
    return _Listed[item], Field(default=[], description=allowed)


def _workload(value: Any, info: ValidationInfo[Mapping[str, Collection[str]]]) -> str:
    return check_mix(value, info.context["workloads"])


def _profile(value: Any, info: ValidationInfo[Mapping[str, Any]]) -> str:
    if isinstance(value, str):
        return check_profile(value, info)
    return check_word(value, info.context["profiles"], what="a profile")


_Timeout = Annotated[float, BeforeValidator(check_timeout)]
_Wait = Annotated[float, BeforeValidator(check_wait)]
_POLICY = Policy()
_REPEAT_MAX = 10
_REPETITIONS = f"a whole number from 1 to {REPETITIONS_MAX}"
_WARM_UPS = f"a whole number from 0 to {WARM_UPS_MAX}"


class _Campaign(StrictTable):
    name: Annotated[str, BeforeValidator(check_campaign_name)] = Field(
        description=Allowed.CAMPAIGN_NAME
    )
    seed: int | None = Field(
        default=None, ge=0, le=SEED_MAX, description=f"a whole number from 0 to {SEED_MAX}"
    )
    starts: int = Field(
        default=1, ge=1, le=STARTS_MAX, description=f"a whole number from 1 to {STARTS_MAX}"
    )
    repetitions: int = Field(
        default=DEFAULT_REPETITIONS, ge=1, le=REPETITIONS_MAX, description=_REPETITIONS
    )
    warm_ups: int = Field(default=0, ge=0, le=WARM_UPS_MAX, description=_WARM_UPS)
    until: Annotated[float, BeforeValidator(check_precision)] | None = Field(
        default=None, description=Allowed.PRECISION
    )
    at_most: int | None = Field(default=None, ge=1, le=REPETITIONS_MAX, description=_REPETITIONS)
    timeout: _Timeout = Field(default=_POLICY.timeout_seconds, description=Allowed.TIMEOUT)
    cache: Annotated[CachePolicy, word_of(CachePolicy, "a cache policy")] = _POLICY.cache
    trim: bool = Field(default=_POLICY.trim, description="true, false")
    cool_down: _Wait = Field(default=_POLICY.cool_down_seconds, description=Allowed.WAIT)
    cool_below_celsius: float = Field(
        default=_POLICY.cool_below_celsius,
        ge=0,
        le=_CELSIUS_MAX,
        allow_inf_nan=False,
        description=f"a number from 0 to {_CELSIUS_MAX}; 0 does not wait",
    )
    cool_wait: _Wait = Field(default=_POLICY.cool_wait_seconds, description=Allowed.WAIT)
    repeat_tainted: int = Field(
        default=1, ge=0, le=_REPEAT_MAX, description=f"a whole number from 0 to {_REPEAT_MAX}"
    )
    telemetry_hertz: float = Field(
        default=_POLICY.telemetry_hertz,
        ge=0.1,
        le=10,
        allow_inf_nan=False,
        description="a number from 0.1 to 10",
    )
    on_loss: Annotated[OnLoss, word_of(OnLoss, "a way to go on")] = OnLoss.RESTART
    loss_wait: _Wait = Field(default=_POLICY.loss_wait_seconds, description=Allowed.WAIT)


_PLAIN = tuple(factor for factor in FACTORS if factor.is_plain)


class _MatrixHead(StrictTable):
    """The first keys of a ``[[matrix]]``. An empty list is a key that was left out."""

    workload: _Listed[Annotated[str, BeforeValidator(_workload)]] = Field(
        description="one or more workloads or mixes"
    )
    engine: _Listed[Annotated[Engine, word_of(Engine, "an engine")]] = Field(
        default=[], description=f"one or more of {', '.join(Engine)}"
    )
    profile: _Listed[Annotated[str, BeforeValidator(_profile)]] = Field(
        default=[], description="one or more profiles"
    )
    size: _Listed[Annotated[int, BeforeValidator(check_input_size)]] = Field(
        default=[], description=f"one or more sizes; each {Allowed.INPUT_SIZE}"
    )


if TYPE_CHECKING:
    _MatrixLevels = _MatrixHead
else:
    _fields = {factor.file_key: _level_of(factor) for factor in _PLAIN}
    _MatrixLevels = create_model("_MatrixLevels", __base__=_MatrixHead, **_fields)


class _Matrix(_MatrixLevels):
    """One ``[[matrix]]``, with every plain factor of the table."""

    repetitions: int | None = Field(
        default=None, ge=1, le=REPETITIONS_MAX, description=_REPETITIONS
    )
    warm_ups: int | None = Field(default=None, ge=0, le=WARM_UPS_MAX, description=_WARM_UPS)
    input: str = Field(default="", min_length=1, description="the path of a text file")
    parameters: dict[str, dict[str, Any]] = Field(
        default={}, description="tables [matrix.parameters.WORKLOAD] with values or lists of values"
    )
    settings: dict[str, Any] = Field(
        default={}, description=f"[matrix.settings], {SETTINGS_TABLE}, or with lists of values"
    )


_DIMENSIONS = (
    *("workload", "engine", "size", "profile"),
    *(factor.file_key for factor in _PLAIN),
)


class _CampaignFile(StrictTable):
    campaign: _Campaign = Field(description="one [campaign] table with a name")
    matrix: list[dict[str, Any]] = Field(
        min_length=1, description="one or more [[matrix]] tables, each with workloads"
    )
    comparison: list[dict[str, Any]] = Field(
        default=[], description="any number of [[comparison]] tables"
    )


@dataclass(frozen=True, slots=True)
class _KnownNames:
    """What is known besides the file: see ``load_campaign``."""

    workloads: Mapping[str, WorkloadFacts]
    profiles: Collection[str]
    folder: Path
    check_setting: CheckSetting | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A ``[[matrix]]`` as far as it could be read."""

    at: KeyPath
    """Its place in the file."""
    model: _Matrix
    """It, without the keys whose values are wrong."""
    wrong: frozenset[str]
    """Keys whose values are wrong."""
    parameters: dict[str, tuple[str, ...]]
    """``workload.parameter`` to its values."""
    settings: dict[str, tuple[str, ...]]
    """Properties of the engines to their values."""


def load_campaign(
    path: Path,
    *,
    workloads: Mapping[str, WorkloadFacts],
    profiles: Collection[str],
    check_setting: CheckSetting | None = None,
) -> CampaignSpec:
    """Read and validate a ``campaign.toml``.

    Args:
        path: the file. Relative paths in it begin at the file's folder.
        workloads: the known workloads by name.
        profiles: names of the known profiles.
        check_setting: returns the value of an engine's property as the engines read it, or raises
            ValueError; None takes values as they are.

    Returns:
        The campaign; a mix is written as names joined by ``+``, an ``input`` as an absolute path.

    Raises:
        SpecError: the file cannot be read, is not TOML, or is wrong; lists every problem with its
            line, key, value, what is allowed and the nearest valid name.
    """
    document = read_toml(path, create_hint=_CREATE_HINT)
    folder = path.expanduser().absolute().parent
    known = _KnownNames(workloads, profiles, folder, check_setting)
    model, problems = validate(_CampaignFile, document.data, context={}, allowed_words={})
    tables = document.data.get("matrix")
    read: list[_Read] = []
    for index, table in enumerate(tables if isinstance(tables, list) else ()):
        if isinstance(table, dict):
            at: KeyPath = ("matrix", index)
            matrix, found = _read_matrix(document, at, table, known)
            problems += found
            read += [matrix] if matrix else []
    comparisons: list[DeclaredComparison] = []
    tables = document.data.get("comparison")
    for index, table in enumerate(tables if isinstance(tables, list) else ()):
        if isinstance(table, dict):
            declared, found = _read_comparison(("comparison", index), table, read, known)
            problems += found
            comparisons += [declared] if declared else []
    if model is not None:
        problems += _repetition_problems(model.campaign, read)
    if model is None or problems:
        raise spec_error(document, [_as_written(document, problem) for problem in problems])
    return replace(_to_record(model.campaign, read, folder), comparisons=tuple(comparisons))


def _as_written(document: TomlDocument, problem: Problem) -> Problem:
    """Leave out the index of a value that stands alone in the file, not in a list."""
    path = problem.path
    while path and isinstance(path[-1], int) and path not in document.lines:
        path = path[:-1]
    return replace(problem, path=path)


def _read_matrix(
    document: TomlDocument,
    at: KeyPath,
    table: Mapping[str, Any],
    known: _KnownNames,
) -> tuple[_Read | None, list[Problem]]:
    """Read one ``[[matrix]]`` with everything that is wrong in it.

    Rules about several keys run on the keys that are right, so that one wrong size does not hide
    an engine that no workload has. None is returned where not even the workloads are known.
    """
    workloads, profiles = known.workloads, known.profiles
    context = {"workloads": workloads, "profiles": profiles, "folder": known.folder}
    words: dict[KeyPath, str] = {
        ("workload",): f"one or more of {choices_text(workloads)}",
        ("profile",): f"one or more of {profiles_allowed(profiles)}",
    }
    model, found = validate(_Matrix, table, context=context, allowed_words=words)
    problems = [replace(problem, path=(*at, *problem.path)) for problem in found]
    wrong = frozenset(str(problem.path[0]) for problem in found)
    if model is None:
        right = {key: value for key, value in table.items() if key not in wrong}
        model, _ = validate(_Matrix, right, context=context, allowed_words=words)
    if model is None:
        return None, problems
    parameters, more = _read_parameters(at, model, workloads)
    settings, others = read_settings(
        (*at, "settings"), model.settings, known.check_setting, listed=True
    )
    read = _Read(at=at, model=model, wrong=wrong, parameters=parameters, settings=settings)
    problems += [
        *more,
        *others,
        *_engine_problems(read, workloads),
        *_input_problems(read, workloads),
    ]
    return read, [*problems, *_concurrency_problems(read), *_repeated(document, read)]


def _jobs_of(model: _Matrix) -> list[str]:
    """Return every workload of a matrix once, those of mixes included."""
    return list(dict.fromkeys(job for mix in model.workload for job in mix_jobs(mix)))


def _read_parameters(
    at: KeyPath, model: _Matrix, workloads: Mapping[str, WorkloadFacts]
) -> tuple[dict[str, tuple[str, ...]], list[Problem]]:
    values: dict[str, tuple[str, ...]] = {}
    problems: list[Problem] = []
    jobs = _jobs_of(model)
    for workload, settings in model.parameters.items():
        path: KeyPath = (*at, "parameters", workload)
        try:
            check_choice(workload, jobs, what="a workload of this matrix")
        except ValueError as error:
            problems.append(Problem(path=path, text=str(error)))
            continue
        for name, value in settings.items():
            known = workloads[workload].parameters
            if name not in known:
                text = complaint(
                    f'"{workload}" has no such parameter',
                    allowed=choices_text(known),
                    nearest=closest(name, known),
                )
                problems.append(Problem(path=(*path, name), text=text))
                continue
            texts, found = _parameter_values((*path, name), value, *known[name])
            values[f"{workload}.{name}"] = texts
            problems += found
    return values, problems


def _parameter_values(
    path: KeyPath, value: Any, allowed: str, is_allowed: Callable[[str], bool]
) -> tuple[tuple[str, ...], list[Problem]]:
    if value == []:
        text = complaint("an empty array is not allowed", allowed=f"one or more of: {allowed}")
        return (), [Problem(path=path, text=text)]
    texts: list[str] = []
    problems = []
    for index, item in enumerate(value if isinstance(value, list) else [value]):
        text = str(item)
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            text = ""
        elif isinstance(item, int) and item.bit_length() > 64:
            text = ""  # Python refuses to write very long numbers
        if not text or not is_allowed(text):
            words = complaint(f"{shown(item)} is not allowed", allowed=allowed)
            problems.append(Problem(path=(*path, index), text=words))
        else:
            texts.append(text)
    return () if problems else tuple(texts), problems


def _engine_problems(read: _Read, workloads: Mapping[str, WorkloadFacts]) -> Iterator[Problem]:
    own = [(mix, mix_engines(mix, workloads)) for mix in read.model.workload]
    had = [engine for engine in Engine if any(engine in engines for _, engines in own)]
    listed = read.model.engine
    for index, engine in enumerate(listed):
        if engine not in had:
            text = complaint(f'no workload here runs on "{engine}"', allowed=", ".join(had))
            yield Problem(path=(*read.at, "engine", index), text=text)
    for index, (mix, engines) in enumerate(own):
        path = (*read.at, "workload", index)
        if not engines:
            text = complaint(
                f'the jobs of "{mix}" have no engine in common',
                allowed="a mix of workloads that run on the same engine",
            )
            yield Problem(path=path, text=text)
        elif set(listed) & set(had) and not set(listed) & set(engines):
            text = complaint(
                f'"{mix}" runs on none of the engines listed here',
                allowed=f"a matrix with {', '.join(engines)}",
            )
            yield Problem(path=path, text=text)


def _input_problems(read: _Read, workloads: Mapping[str, WorkloadFacts]) -> Iterator[Problem]:
    """Check size and text against what the workloads read."""
    jobs = _jobs_of(read.model)
    sized = [job for job in jobs if workloads[job].takes_size]
    needing = [job for job in sized if not workloads[job].size_is_optional]
    if needing and not read.model.size and "size" not in read.wrong:
        text = complaint(
            f'missing, but "{needing[0]}" needs an input size', allowed=Allowed.INPUT_SIZE
        )
        yield Problem(path=(*read.at, "size"), text=text)
    if read.model.size and not sized:
        text = complaint("no workload here has an input size", allowed="nothing; leave it out")
        yield Problem(path=(*read.at, "size"), text=text)
    if read.model.input and not any(workloads[job].takes_text for job in jobs):
        text = complaint("no workload here reads text", allowed="nothing; leave it out")
        yield Problem(path=(*read.at, "input"), text=text)


def _concurrency_problems(read: _Read) -> Iterator[Problem]:
    mixes = [(len(mix_jobs(mix)), mix) for mix in read.model.workload if len(mix_jobs(mix)) > 1]
    most, mix = min(mixes, default=(1, ""))
    for index, jobs in enumerate(dict(read.model)["concurrency"]):
        if jobs > most:
            what = f'{jobs} jobs at once, but "{mix}" has {most}'
            text = complaint(
                what if mix else f"{jobs} jobs at once, but there is no mix here",
                allowed=f"1 to {most}" if mix else "1, or leave it out",
            )
            yield Problem(path=(*read.at, "concurrency", index), text=text)


def _repeated(document: TomlDocument, read: _Read) -> Iterator[Problem]:
    """Find values that mean the same as one before them in their list."""
    lists: list[tuple[KeyPath, Sequence[Any]]] = [
        ((*read.at, key), getattr(read.model, key)) for key in _DIMENSIONS
    ]
    for name, texts in read.parameters.items():
        lists.append(((*read.at, "parameters", *name.split(".", 1)), texts))
    for at, values in lists:
        for path, first in repeated(((*at, index), value) for index, value in enumerate(values)):
            what = f"the same as {key_text(first)} in line {document.line_of(first)}"
            yield Problem(path=path, text=complaint(what, allowed="each value once"))


# Declared comparisons


class _ComparisonTable(StrictTable):
    """One ``[[comparison]]``; its levels are checked as those of a ``[[matrix]]``."""

    of: Text = Field(description="one key of a [[matrix]], or a property of the engines")
    levels: list[Any] = Field(description="two or more levels, the base first")
    where: dict[str, Any] = Field(
        default={}, description="a table of other keys of a [[matrix]] with levels"
    )


_LIMITING = {row.file_key: row for row in FACTORS if row.kind is not dict and row.name != "input"}
"""What can limit a comparison, by its key in the file."""

_COMPARED = {key: row for key, row in _LIMITING.items() if not row.changes_work}
"""What can be compared: trials of other levels of these do the same work."""


def _read_comparison(
    at: KeyPath, table: Mapping[str, Any], read: Sequence[_Read], known: _KnownNames
) -> tuple[DeclaredComparison | None, list[Problem]]:
    """Read one ``[[comparison]]`` with everything that is wrong in it."""
    model, found = validate(_ComparisonTable, table, context={}, allowed_words={})
    problems = [replace(problem, path=(*at, *problem.path)) for problem in found]
    if model is None:
        return None, problems
    if "." not in model.of and model.of not in _COMPARED:
        text = complaint(
            f"{shown(model.of)} cannot be compared",
            allowed=f"{choices_text(_COMPARED)}, or a property of the engines",
            nearest=closest(model.of, _COMPARED),
        )
        return None, [Problem(path=(*at, "of"), text=text)]
    levels, problems = _levels_of(model.of, model.levels, (*at, "levels"), read, known)
    if len(model.levels) < 2:
        what = "only one" if model.levels else "none"
        text = complaint(what, allowed="two or more levels, the base first")
        problems.append(Problem(path=(*at, "levels"), text=text))
    where: dict[str, tuple[int | str, ...]] = {}
    for key, value in model.where.items():
        path = (*at, "where", key)
        if key == model.of or ("." not in key and key not in _LIMITING):
            what = f"{shown(key)} is what is compared" if key == model.of else "unknown key"
            others = [name for name in _LIMITING if name != model.of]
            text = complaint(
                what,
                allowed=f"{choices_text(others)}, or a property of the engines",
                nearest="" if key == model.of else closest(key, others),
            )
            problems.append(Problem(path=path, text=text))
            continue
        listed = value if isinstance(value, list) else [value]
        allowed, found = _levels_of(key, listed, path, read, known)
        problems += found
        where[_factor_name(key)] = allowed
    if problems:
        return None, problems
    return DeclaredComparison(factor=_factor_name(model.of), levels=levels, where=where), []


def _factor_name(key: str) -> str:
    return _LIMITING[key].name if key in _LIMITING else key


def _levels_of(
    key: str, values: list[Any], at: KeyPath, read: Sequence[_Read], known: _KnownNames
) -> tuple[tuple[int | str, ...], list[Problem]]:
    """Return levels as trials have them, and what is wrong with them."""
    if "." in key:
        settings, found = read_settings((), {key: values}, known.check_setting, listed=True)
        problems = [replace(row, path=(*at, *row.path[1:])) for row in found]
        levels: tuple[int | str, ...] = settings.get(key, ())
    else:
        levels, problems = _factor_levels(key, values, at, known)
    if problems:
        return (), problems
    there = _levels_there(key, read, known)
    for index, level in enumerate(levels):
        if level in levels[:index]:
            text = complaint(f"{shown(values[index])} is here twice", allowed="each level once")
            problems.append(Problem(path=(*at, index), text=text))
        elif there is not None and level not in there:
            text = complaint(
                f"no cell of this campaign has {key} {shown(values[index])}",
                allowed=", ".join(_written(key, row) for row in there)
                or "nothing, since no matrix sets it",
            )
            problems.append(Problem(path=(*at, index), text=text))
    return levels, problems


def _written(key: str, level: int | str) -> str:
    """Write a level as a file may."""
    is_size = key in _LIMITING and _LIMITING[key].unit == "bytes" and isinstance(level, int)
    return format_bytes_exact(int(level)) if is_size else str(level)


def _factor_levels(
    key: str, values: list[Any], at: KeyPath, known: _KnownNames
) -> tuple[tuple[int | str, ...], list[Problem]]:
    """Check levels as a ``[[matrix]]`` does."""
    context = {
        "workloads": known.workloads,
        "profiles": known.profiles,
        "folder": known.folder,
    }
    table = {"workload": [next(iter(known.workloads))], key: values}
    words: dict[KeyPath, str] = {("profile",): profiles_allowed(known.profiles)}
    model, found = validate(_Matrix, table, context=context, allowed_words=words)
    if model is None:
        return (), [replace(row, path=(*at, *row.path[1:])) for row in found]
    levels: list[int | str] = getattr(model, key)
    if key == "profile":
        return tuple(part_name(str(name), known.folder) for name in levels), []
    return tuple(str(level) if isinstance(level, str) else level for level in levels), []


def _levels_there(
    key: str, read: Sequence[_Read], known: _KnownNames
) -> tuple[int | str, ...] | None:
    """Return the levels in the file; None where a matrix leaves some to the cluster."""
    found: dict[int | str, None] = {}
    for matrix in read:
        if "." in key:
            found |= dict.fromkeys(matrix.settings.get(key, ()))
            continue
        listed: list[int | str] = getattr(matrix.model, key)
        if key == "engine" and not listed:
            listed = [
                engine
                for mix in matrix.model.workload
                for engine in mix_engines(mix, known.workloads)
            ]
        if not listed:
            return None
        if key == "profile":
            listed = [part_name(str(name), known.folder) for name in listed]
        found |= dict.fromkeys(listed)
    return tuple(found)


def _repetition_problems(campaign: _Campaign, read: Sequence[_Read]) -> Iterator[Problem]:
    """Check the maximum of runs against the minimum."""
    if campaign.at_most is None:
        return
    path: KeyPath = ("campaign", "at_most")
    if campaign.until is None:
        text = complaint("it has no effect without until", allowed='until = "3 %", for example')
        yield Problem(path=path, text=text)
    elif campaign.at_most < (least := campaign.starts * _repetitions(campaign, read)):
        text = complaint(
            f"{campaign.at_most} runs, but starts and repetitions ask for {least} of each cell",
            allowed=f"a whole number from {least} to {REPETITIONS_MAX}",
        )
        yield Problem(path=path, text=text)


def _repetitions(campaign: _Campaign, read: Sequence[_Read]) -> int:
    """Return the repetitions of the matrix that has most."""
    given = [row.model.repetitions for row in read]
    return max(
        (campaign.repetitions if each is None else each for each in given),
        default=campaign.repetitions,
    )


def _to_record(campaign: _Campaign, read: Sequence[_Read], folder: Path) -> CampaignSpec:
    return CampaignSpec(
        name=campaign.name,
        seed=campaign.seed,
        policy=Policy(
            timeout_seconds=campaign.timeout,
            cache=campaign.cache,
            trim=campaign.trim,
            cool_down_seconds=campaign.cool_down,
            cool_below_celsius=campaign.cool_below_celsius,
            cool_wait_seconds=campaign.cool_wait,
            repeat_tainted=campaign.repeat_tainted,
            telemetry_hertz=campaign.telemetry_hertz,
            on_loss=campaign.on_loss,
            loss_wait_seconds=campaign.loss_wait,
        ),
        matrices=tuple(_to_matrix(campaign, matrix, folder) for matrix in read),
        starts=campaign.starts,
        precision=campaign.until,
        repetitions_max=_repetitions_max(campaign, read),
    )


def _repetitions_max(campaign: _Campaign, read: Sequence[_Read]) -> int:
    if campaign.until is None:
        return 0
    return campaign.at_most or default_repetitions_max(
        campaign.starts * _repetitions(campaign, read)
    )


def _text_of(written: str, folder: Path) -> str:
    """Return the path of a text, or what stands for flights."""
    if written in {"", MANY_YEARS}:
        return written
    return str(path_from(folder, written))


def _to_matrix(campaign: _Campaign, read: _Read, folder: Path) -> Matrix:
    model = read.model
    repetitions, warm_ups = model.repetitions, model.warm_ups
    return Matrix(
        workloads=tuple(model.workload),
        engines=tuple(model.engine),
        profiles=tuple(part_name(name, folder) for name in model.profile),
        sizes_bytes=tuple(model.size),
        levels={
            factor.name: tuple(listed)
            for factor in _PLAIN
            if (listed := getattr(model, factor.file_key))
        },
        repetitions=campaign.repetitions if repetitions is None else repetitions,
        warm_ups=campaign.warm_ups if warm_ups is None else warm_ups,
        input=_text_of(model.input, folder),
        parameters=read.parameters,
        settings=read.settings,
    )
