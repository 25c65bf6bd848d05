"""Settings: single properties of the engines that a user sets, or varies in a campaign. Pure.

Each engine pair has a list of every property that its engines know, with the default value, made
from its jars by tools/list_settings.py. A property that is not in it is refused with the nearest
one that is; so is one that boardcluster sets itself.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import gzip
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from typing import Any

from boardcluster.errors import UsageError
from boardcluster.factors import FACTORS, Factor, engine_of_setting
from boardcluster.records import Engine
from boardcluster.redaction import names_secret, redact
from boardcluster.services.pair import pair_ids
from boardcluster.spec.checks import refusal, shown
from boardcluster.units import parse_engine_size, parse_size

__all__ = [
    "all_properties",
    "by_file",
    "check_for_pair",
    "check_setting",
    "known_settings",
    "memory_mib",
    "merge_files",
    "of_daemons",
    "of_engine",
    "of_jobs",
    "refusal_of",
    "refuse_idle",
    "restarts_daemons",
    "settings_of_jobs",
    "settings_of_submission",
]

_FOLDER = resources.files("boardcluster.services").joinpath("pairs")
_MIB = 1 << 20
_LENGTH_MAX = 4096

_NOT_LISTED = {
    "mapreduce.input.fileinputformat.split.maxsize": ("mapred-site", str((1 << 63) - 1)),
    "mapreduce.map.java.opts": ("mapred-site", ""),
    "mapreduce.reduce.java.opts": ("mapred-site", ""),
    "spark.default.parallelism": ("spark-defaults", ""),
    "yarn.scheduler.capacity.maximum-am-resource-percent": ("yarn-site", "0.1"),
}
"""Properties that the engines read though their lists lack them, or name them in a comment only:
file and default."""

_SPARK_PREFIXES = ("spark.executorEnv.", "spark.yarn.appMasterEnv.")
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_.]*")
_SPARK_HADOOP = "spark.hadoop."
"""What follows is a property of Hadoop, for Spark's jobs."""

_NOT_SETTABLE = (
    (
        (
            r"(address|hostname|bind-host|[.-]hosts?|[.-]ports?|bindAddress|\.ur[il]s?)$"
            r"|^fs\.defaultFS$|[.-]address\.|nameservice|\.ha\.|\.ha-|federation"
        ),
        "boardcluster gives every daemon its address and port",
    ),
    (
        r"([.-]|output|input)dirs?$|[.-]path$|logDirectory|staging",
        "boardcluster decides where daemons and jobs keep their files",
    ),
    (
        (
            r"(^|[.-])(acls?|keytab\w*|principal\w*|ssl|kerberos|csrf|rest-csrf|passwords?|permissions?"
            r"|superuser\w*|proxyuser|kms|crypto|encrypt\w*|authenticat\w*|authoriz\w*|security|tokens?"
            r"|secret\w*|credentials?|oauth2?|staticuser|killEnabled|protection)([.-]|$)"
            r"|^yarn\.webapp\.enable-rest-app-submissions$|ui-actions|(access|account)\.key"
        ),
        "boardcluster decides who may do what, see docs/explanation/security.md",
    ),
    (
        (
            r"^(mapreduce\.framework\.name|spark\.master|spark\.submit\.deployMode|spark\.yarn\.jars"
            r"|spark\.yarn\.archive|spark\.app\.name|spark\.yarn\.tags|mapreduce\.job\.(tags|name)"
            r"|yarn\.nodemanager\.env-whitelist|yarn\.nodemanager\.container-executor\.class)$"
            r"|classpath|ClassPath|aux-services|^spark\.(eventLog|history)\."
            r"|admin[.-].*opts$|defaultJavaOptions$|^spark\.yarn\.am\.extraJavaOptions$"
            r"|^yarn\.scheduler\.capacity\.root\."
        ),
        "boardcluster uses it to start the engines, follow jobs and count what they did",
    ),
    (
        r"^mapreduce\.output\.fileoutputformat\.compress$",
        "boardcluster verifies outputs as they are; a program of your own may set it itself",
    ),
    (
        r"^mapreduce\.job\.end-notification\.max\.",
        "Hadoop declares it final, and would ignore the value",
    ),
)
"""Patterns of properties that nobody may set, and why."""

_OF_JOBS = re.compile(
    r"^(spark\.|mapreduce\.(?!jobhistory\.|shuffle\.|cluster\.)|yarn\.app\.mapreduce\.|yarn\.client\."
    r"|dfs\.client[.-]|dfs\.blocksize$|dfs\.bytes-per-checksum$)"
)
"""Properties that clients and jobs read. All others count as the daemons', which is never wrong:
daemons and jobs have them then."""

_SIZE = re.compile(r"[\d.]+\s*([KMGT]i?)?B")
_ENGINE_SIZE = re.compile(r"(\d+)\s*([kmgt])", re.IGNORECASE)
"""A size as the engines write one, ``128m``; Spark reads none with a blank in it."""
_NUMBER = re.compile(r"-?\d+(\.\d+)?\s*[A-Za-z]*")
_FRACTION = re.compile(r"-?\d+\.\d+")
_WHOLE = re.compile(r"-?\d+")
_TIME = re.compile(r"(\d+)\s*(ns|us|ms|s|m|min|h|d)")
_SIZE_WORDS = (
    *("size", "bytes", "memory", "-mb", ".mb", "buffer", "limit", "threshold", "reserved"),
    "bandwidth",
)
_TIME_WORDS = (
    *("time", "interval", "period", "delay", "wait", "duration", "expir", "age", "retention"),
    *("-ms", ".ms", "-sec", ".sec"),
)
_AT_LEAST_ONE = frozenset(
    {
        "dfs.replication",
        "mapreduce.job.reduces",
        "spark.default.parallelism",
        "yarn.scheduler.minimum-allocation-mb",
        "yarn.scheduler.maximum-allocation-mb",
    }
)
_CHECKSUM_BYTES = 512
"""What one checksum is of; blocks hold whole ones (``dfs.bytes-per-checksum``)."""
_HEAPS = ("spark.driver.memory", "spark.executor.memory")
"""Written in MiB: a JVM's ``-Xmx`` takes no ``b``, and a number alone would be bytes."""


@dataclass(frozen=True, slots=True)
class _KnownProperty:
    """A property that engines know: the file it belongs to, and its default as text."""

    file: str
    default: str


@functools.cache
def known_settings(pair_id: str) -> Mapping[str, _KnownProperty]:
    """Return every property that the engines of a pair know, by name."""
    packed = _FOLDER.joinpath(f"{pair_id}.settings.gz").read_bytes()
    found = {key: _KnownProperty(*row) for key, row in _NOT_LISTED.items()}
    for line in gzip.decompress(packed).decode().splitlines():
        file, key, default = line.split("\t")
        found.setdefault(key, _KnownProperty(file, default))
    return found


@functools.cache
def _known_anywhere() -> Mapping[str, _KnownProperty]:
    found: dict[str, _KnownProperty] = {}
    for pair_id in pair_ids():
        found = {**known_settings(pair_id), **found}
    return found


def refusal_of(key: str) -> str:
    """Return why a property cannot be set; empty if it can."""
    plain = key.removeprefix(_SPARK_HADOOP)
    return next((reason for pattern, reason in _NOT_SETTABLE if re.search(pattern, plain)), "")


def _file_of(key: str) -> str:
    if key.startswith("spark."):
        return "spark-defaults"
    return _known_anywhere()[key].file


def check_setting(key: str, value: Any, *, in_profile: bool = False) -> str:
    """Return the value of a property as the engines read it.

    Sizes such as ``32 MiB`` become what the property is measured in. In a profile it may be one
    that a matrix varies by a key of its own.

    Raises:
        ValueError: no engine pair knows the property, nobody may set it, or the value cannot be one
            of it; names what is allowed and the nearest property.
    """
    if reason := refusal_of(key):
        raise refusal(f'"{key}" cannot be set: {reason}', allowed="leave it out")
    prefix = next((each for each in _SPARK_PREFIXES if key.startswith(each)), "")
    if prefix and not _VARIABLE.fullmatch(key.removeprefix(prefix)):
        # A space or a line end would begin a value, or another property, in Spark's file.
        raise refusal(
            f"{shown(key)} names no environment variable after {shown(prefix)}",
            allowed="letters, digits, _ and ., which begin with a letter or _",
        )
    words = str(value).split()
    named = key.startswith(_SPARK_PREFIXES) and names_secret(key)
    if named or redact(words) != tuple(words):
        # Its value is part of what tells trials apart, so it cannot be hidden where they are shown.
        raise refusal(
            f'"{key}" looks like a secret, and settings are stored and shown with every result',
            allowed="let the program read it from a file that only its user can read",
        )
    plain = key.removeprefix(_SPARK_HADOOP)
    factors = () if in_profile else FACTORS
    if own := next((factor for factor in factors if plain in _properties_of(factor)), None):
        allowed = f"`{own.file_key}` in a [[matrix]] of a campaign file"
        raise refusal(f'"{key}" has a key of its own', allowed=allowed)
    known = _known_anywhere().get(plain)
    if known is None and not key.startswith(_SPARK_PREFIXES):
        near = difflib.get_close_matches(plain, _known_anywhere(), n=1)
        raise refusal(
            f"no engine has a property {shown(key)}",
            allowed="the properties in docs/reference/settings.md",
            nearest=near[0] if near else "",
        )
    return _value(key, value, known.default if known else "")


@functools.cache
def _properties_of(factor: Factor) -> frozenset[str]:
    """Return the properties that the levels of a factor set; two levels are enough to see them."""
    if factor.kind is dict:
        return frozenset()
    tried = (
        list(factor.kind)
        if issubclass(factor.kind, StrEnum)
        else [factor.least if factor.kind is int else factor.kind(1)]
    )
    rows = [factor.properties(level) for level in tried]
    return frozenset(key for files in rows for names in files.values() for key in names)


def _value(key: str, value: Any, default: str) -> str:
    """Return a value as text, or refuse what the property's default shows to be of no such kind."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, str | int | float):
        text = str(value).strip()
    else:
        raise refusal(f"{shown(value)} is not allowed", allowed="text, a number, true or false")
    if len(text) > _LENGTH_MAX or not text.isprintable():
        allowed = f"one line of at most {_LENGTH_MAX} characters"
        raise refusal(f"the value of {key} is too long or has control characters", allowed=allowed)
    text = _number_text(key, text, default)
    if default in ("true", "false") and text not in ("true", "false"):
        raise refusal(f"{shown(value)} is not a value of {key}", allowed="true, false")
    number = _NUMBER.fullmatch(text)
    if _FRACTION.fullmatch(default):  # a share, which has no unit
        number = _FRACTION.fullmatch(text) or _WHOLE.fullmatch(text)
    if _NUMBER.fullmatch(default) and not number:
        allowed = f"a number, as its default {default}"
        raise refusal(f"{shown(value)} is not a value of {key}", allowed=allowed)
    return text


def _number_text(key: str, text: str, default: str) -> str:
    """Return a size in the unit of its property; refuse a number that the property cannot be."""
    if key.startswith(_SPARK_PREFIXES):  # a variable of any program's, which reads it as it is
        return text
    plain = key.removeprefix(_SPARK_HADOOP)
    of_hadoop = not plain.startswith("spark.")
    is_size = any(word in plain.lower() for word in _SIZE_WORDS)
    if key in _HEAPS and not (_SIZE.fullmatch(text) or _ENGINE_SIZE.fullmatch(text)):
        with contextlib.suppress(ValueError):  # what is no size at all is refused further on
            text = f"{memory_mib(text)}m"
    if is_size and (found := _ENGINE_SIZE.fullmatch(text)):
        text = f"{found[1]} {found[2].upper()}iB" if of_hadoop else f"{found[1]}{found[2]}"
    if _SIZE.fullmatch(text):
        if _WHOLE.fullmatch(default) and not (is_size and of_hadoop):
            allowed = f"a number without unit, as its default {default}"
            raise refusal(f"{shown(text)} is not a value of {key}", allowed=allowed)
        text = _size(key, text) if is_size else text
    named_time = any(word in plain.lower() for word in _TIME_WORDS)
    if time := _TIME.fullmatch(text) if named_time else None:
        # The engines read no blank before the unit, and Hadoop no "min".
        text = time[1] + ("m" if of_hadoop and time[2] == "min" else time[2])
    if _WHOLE.fullmatch(default) and not (_WHOLE.fullmatch(text) or time):
        raise refusal(
            f"{shown(text)} is not a value of {key}",
            allowed=f"a whole number, as its default {default}"
            + (", or a size such as 64 MiB" if is_size and of_hadoop else ""),
        )
    if plain in _AT_LEAST_ONE and not (_WHOLE.fullmatch(text) and int(text) >= 1):
        raise refusal(f"{shown(text)} is not a value of {key}", allowed="a whole number from 1")
    if plain == "dfs.blocksize" and (int(text) < _MIB or int(text) % _CHECKSUM_BYTES):
        allowed = f"at least 1 MiB, and a multiple of {_CHECKSUM_BYTES} bytes"
        raise refusal(f"{shown(text)} is not a value of {key}", allowed=allowed)
    return text


def _size(key: str, text: str) -> str:
    """Return a size in what the property is measured in: bytes, MB, or with Spark's suffix."""
    size_bytes = parse_size(text)
    if key in _HEAPS:
        return f"{-(-size_bytes // _MIB)}m"
    if key.startswith("spark.") and not key.startswith(_SPARK_HADOOP):
        whole = size_bytes % _MIB == 0
        return f"{size_bytes // _MIB}m" if whole else f"{size_bytes}b"
    if not key.endswith((".mb", "-mb")):
        return str(size_bytes)
    if size_bytes % _MIB:
        raise refusal(f"{text} is not a whole number of MiB", allowed=f"{key} is measured in MiB")
    return str(size_bytes // _MIB)


def check_for_pair(settings: Mapping[str, str], pair_id: str) -> None:
    """Refuse properties that another engine pair has, but not this one.

    Raises:
        UsageError: with the nearest property that it has.
    """
    known = known_settings(pair_id)
    for key in settings:
        plain = key.removeprefix(_SPARK_HADOOP)
        if plain not in known and not key.startswith(_SPARK_PREFIXES):
            near = difflib.get_close_matches(plain, known, n=1)
            raise UsageError(
                f"the engine pair {pair_id} has no property {key!r}",
                hint=f"did you mean {near[0]!r}?" if near else "leave it out",
            )


def restarts_daemons(key: str) -> bool:
    """Whether a daemon reads a property, so that another value restarts the daemons."""
    return not _OF_JOBS.match(key)


def of_engine(settings: Mapping[str, str], engine: Engine) -> dict[str, str]:
    """Return the settings that can matter to jobs of an engine: those of daemons, and its own."""
    return {key: value for key, value in settings.items() if _matters(key, engine)}


def refuse_idle(settings: Iterable[str], engines: Iterable[Engine]) -> None:
    """Refuse properties that jobs of none of some engines read.

    Raises:
        UsageError: names them.
    """
    tried = tuple(engines)
    idle = [key for key in settings if not any(_matters(key, engine) for engine in tried)]
    if idle:
        raise UsageError(
            f"settings without effect on jobs of {' and '.join(tried)}: {', '.join(idle)}",
            hint="leave them out, or choose another engine",
        )


def _matters(key: str, engine: Engine) -> bool:
    if restarts_daemons(key):
        return True
    only = engine_of_setting(key)
    return engine.on_yarn if only is None else engine is only


def of_daemons(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that daemons read."""
    return {key: value for key, value in settings.items() if restarts_daemons(key)}


def of_jobs(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that only clients and jobs read: a submission can have its own."""
    return {key: value for key, value in settings.items() if not restarts_daemons(key)}


def settings_of_submission(texts: Iterable[str]) -> dict[str, str]:
    """Read ``--setting KEY=VALUE``; the cluster is up, so only what its jobs read can be set.

    Raises:
        UsageError: it is no such text, a daemon reads the property, it is given twice, or
            ``check_setting`` refuses.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key:
            raise UsageError(
                f"--setting {text!r} is not KEY=VALUE",
                hint="for example --setting spark.executor.cores=2",
            )
        if key in found:
            raise UsageError(
                f"--setting: {key} is given twice",
                hint="give one value; a campaign file can vary it, in [matrix.settings]",
            )
        found[key] = _for_jobs(key, value, f"--setting {text}")
    return found


def settings_of_jobs(settings: Mapping[str, object]) -> dict[str, str]:
    """Return settings as the engines read them; the cluster is up, so only those of its jobs.

    Raises:
        UsageError: a daemon reads a property, or ``check_setting`` refuses it or its value.
    """
    return {key: _for_jobs(key, value, f"settings: {key}") for key, value in settings.items()}


def _for_jobs(key: str, value: object, named: str) -> str:
    try:
        checked = check_setting(key, value)
    except ValueError as error:
        raise UsageError(f"{named}: {error}", hint="correct it") from error
    if restarts_daemons(key):
        raise UsageError(
            f"{named}: {key} is read by the daemons, which are already running",
            hint="set it in [matrix.settings] of a campaign file, or in [settings] of "
            "cluster.toml and run `boardcluster down` and `boardcluster up`",
        )
    return checked


def by_file(settings: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return settings by the configuration file that each belongs to."""
    found: dict[str, dict[str, str]] = {}
    for key, value in settings.items():
        found.setdefault(_file_of(key), {})[key] = value
    return found


def merge_files(*parts: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return the properties of several parts per file; of one that several set, the last holds."""
    found: dict[str, dict[str, str]] = {}
    for part in parts:
        for file, properties in part.items():
            found.setdefault(file, {}).update(properties)
    return found


def all_properties(files: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the properties of all files, whichever each stands in."""
    return {key: value for rows in files.values() for key, value in rows.items()}


def memory_mib(text: str, *, default_unit_bytes: int = _MIB) -> int:
    """Return a size as the engines write one (``1g``, ``512m``, ``1024``) in whole MiB, rounded up.

    Args:
        text: the size.
        default_unit_bytes: unit of a number without one.

    Raises:
        ValueError: it is none.
    """
    return -(-parse_engine_size(text, default_unit_bytes=default_unit_bytes) // _MIB)
