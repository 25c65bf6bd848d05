"""One folder per workload: prepare, command, verify, clean. No other program part names one."""

from __future__ import annotations

import difflib
import functools
from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from boardcluster.errors import UsageError
from boardcluster.workloads.base import Workload

__all__ = ["changes_work", "load_workload", "parameter_defaults", "workload_names"]


@functools.cache
def workload_names() -> tuple[str, ...]:
    """Return the names of all workloads: the folders here."""
    return tuple(sorted(module.name for module in iter_modules(__path__) if module.ispkg))


def load_workload(name: str) -> Workload:
    """Return a workload.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in workload_names():
        near = difflib.get_close_matches(name, workload_names(), n=1)
        meant = f"did you mean {near[0]!r}? " if near else ""
        raise UsageError(
            f"no workload {name!r}", hint=f"{meant}choose from: {', '.join(workload_names())}"
        )
    module = import_module(f"boardcluster.workloads.{name}.workload")
    return cast("Workload", module.WORKLOAD)


def parameter_defaults(name: str) -> dict[str, str]:
    """Return what the parameters of a workload are where nobody sets them: ``pi.maps`` to ``8``.

    Raises:
        UsageError: there is no workload of that name.
    """
    return {f"{name}.{key}": row.default for key, row in load_workload(name).parameters.items()}


def changes_work(parameter: str) -> bool:
    """Say whether another value of ``workload.parameter`` is other work, as far as is known."""
    name, _, key = parameter.partition(".")
    return name in workload_names() and key in load_workload(name).work_parameters
