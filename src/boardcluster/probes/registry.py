"""Every probe by its name: the modules of this folder that have a ``PROBE``."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

from boardcluster import probes
from boardcluster.errors import UsageError
from boardcluster.probes.base import Probe

__all__ = ["AREAS", "all_probes", "choose_probes"]

AREAS = ("cpu", "memory", "storage", "whole", "network", "heat", "power")
"""The order in which probes run: what heats the board comes last."""


@functools.cache
def all_probes() -> tuple[Probe, ...]:
    """Return all probes in the order in which they run: by area, then by name.

    Raises:
        RuntimeError: a file and its probe have different names; a defect of ours.
    """
    found: list[Probe] = []
    for module in iter_modules(probes.__path__):
        probe = getattr(import_module(f"{probes.__name__}.{module.name}"), "PROBE", None)
        if probe is None:
            continue
        if not isinstance(probe, Probe) or probe.name.replace("-", "_") != module.name:
            raise RuntimeError(f"probes/{module.name}.py holds a probe of another name")
        found.append(probe)
    return tuple(sorted(found, key=lambda probe: (AREAS.index(probe.area), probe.name)))


def choose_probes(names: Sequence[str]) -> tuple[Probe, ...]:
    """Return the named probes, in the order in which they run; without names, the default ones.

    Raises:
        UsageError: there is no probe of a name; says the nearest.
    """
    known = {probe.name: probe for probe in all_probes()}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name.lower().replace("_", "-"), known, n=1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise UsageError(
                f"no probe {name!r}", hint=f"{meant}choose from: {', '.join(sorted(known))}"
            )
    if names:
        return tuple(probe for probe in all_probes() if probe.name in names)
    return tuple(probe for probe in all_probes() if probe.default)
