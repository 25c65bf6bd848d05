"""The kinds of power meters: every file of this folder that holds a ``KIND``."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from boardcluster.errors import SpecError
from boardcluster.records import MeterSpec
from boardcluster.spec.meters import MeterFacts
from boardcluster.telemetry import meters
from boardcluster.telemetry.meters.base import MeterKind

__all__ = ["kind_of", "kinds", "meter_facts", "settings_of"]


@functools.cache
def kinds() -> Mapping[str, MeterKind]:
    """Return every kind by name."""
    modules = (
        import_module(f"{meters.__name__}.{row.name}") for row in iter_modules(meters.__path__)
    )
    return {module.KIND.name: module.KIND for module in modules if hasattr(module, "KIND")}


def meter_facts() -> Mapping[str, MeterFacts]:
    """Return what a ``cluster.toml`` may say of each kind, for ``load_cluster``."""
    return {
        name: MeterFacts(
            options={option.name: option.default is None for option in kind.options},
            on_node=kind.on_node,
        )
        for name, kind in kinds().items()
    }


def kind_of(spec: MeterSpec) -> MeterKind:
    """Return the kind of a declared meter.

    Raises:
        SpecError: there is no such kind.
    """
    if spec.kind not in kinds():
        raise SpecError(
            f'meter "{spec.name}": "{spec.kind}" is not a kind of meter',
            hint=f"choose one of {', '.join(kinds())} in cluster.toml",
        )
    return kinds()[spec.kind]


def settings_of(spec: MeterSpec) -> Mapping[str, str]:
    """Return all options of a declared meter, defaults included.

    Raises:
        SpecError: one is missing or unknown.
    """
    kind = kind_of(spec)
    known = {option.name: option.default for option in kind.options}
    for name in spec.options:
        if name not in known:
            raise SpecError(
                f'meter "{spec.name}": a {kind.name} has no option "{name}"',
                hint=f"its options: {', '.join(known)}",
            )
    settings = {}
    for name, default in known.items():
        value = spec.options.get(name, default)
        if value is None:
            raise SpecError(
                f'meter "{spec.name}": the option "{name}" is missing',
                hint=f"give {name} in its table of cluster.toml",
            )
        settings[name] = value
    return settings
