"""How long, how many joules, how much on disk: predicted from runs and published tables. Pure."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ()


class _PlanRoom(ModuleType):
    """This room; ``boardcluster.plan(...)`` calls the public function that has its name."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return import_module("boardcluster.api").plan(*arguments, **named)


sys.modules[__name__].__class__ = _PlanRoom
