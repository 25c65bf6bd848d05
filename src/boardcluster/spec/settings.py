"""What both files say of the engines' configuration: settings, and a profile of one's own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationInfo

from boardcluster.spec.checks import check_choice, choices_text, complaint, refusal, shown
from boardcluster.spec.problems import Problem
from boardcluster.spec.toml import KeyPath

__all__ = ["SETTINGS_TABLE", "CheckSetting", "check_profile", "profiles_allowed", "read_settings"]

SETTINGS_TABLE = "a table of properties of the engines, each key in quotes"

CheckSetting: TypeAlias = "Callable[[str, Any], str]"
"""Returns a property's value as the engines read it, or raises ValueError."""


def profiles_allowed(profiles: Collection[str]) -> str:
    """Say what may be named as a profile."""
    return f"{choices_text(profiles)}, or the path of a .toml file of your own"


def check_profile(value: str, info: ValidationInfo[Mapping[str, Any]]) -> str:
    """Return the value if it names a profile, or a file that is there.

    A relative path begins at the folder of the file that names it, ``folder`` of the context.

    Raises:
        ValueError: it does not; names the profiles and the nearest.
    """
    profiles = info.context["profiles"]
    if not value.endswith(".toml"):
        return check_choice(value, profiles, what="a profile")
    path: Path = info.context["folder"] / value
    if not path.is_file():
        raise refusal(
            f"{shown(value)}: there is no file {path}", allowed=profiles_allowed(profiles)
        )
    return value


def read_settings(
    at: KeyPath, table: Any, check: CheckSetting | None, *, listed: bool = False
) -> tuple[dict[str, tuple[str, ...]], list[Problem]]:
    """Read a table of settings with everything that is wrong in it.

    Args:
        at: its place in the file.
        table: what the file holds there; anything but a table is refused elsewhere.
        check: see CheckSetting; None takes values as they are.
        listed: whether a list of values is allowed, each of which is a level.

    Returns:
        Each property with its values, and the problems.
    """
    values: dict[str, tuple[str, ...]] = {}
    problems: list[Problem] = []
    for key, value in table.items() if isinstance(table, dict) else ():
        path: KeyPath = (*at, key)
        if isinstance(value, dict):
            text = complaint("a table is not a value", allowed="the whole key in quotes")
            problems.append(Problem(path=path, text=text))
            continue
        if value == []:
            text = complaint("an empty array is not allowed", allowed="one or more values")
            problems.append(Problem(path=path, text=text))
        texts: list[str] = []
        many = listed and isinstance(value, list)
        for index, item in enumerate(value if many else [value]):
            place: KeyPath = (*path, index) if many else path
            try:
                text = check(key, item) if check else str(item)
            except ValueError as error:
                problems.append(Problem(path=place, text=str(error)))
                continue
            if text in texts:
                text = complaint(f"{shown(item)} is here twice", allowed="each value once")
                problems.append(Problem(path=place, text=text))
            texts.append(text)
        values[key] = tuple(texts)
    return values, problems
