"""A room that has the name of a public function.

``boardcluster.report`` and ``boardcluster.plan`` are rooms as soon as anything in them is loaded.
To users of the package they are functions, whenever they call them.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["CallableRoom"]


class CallableRoom(ModuleType):
    """A module; calling it calls the function of the public API that has its name."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call that function, which is loaded now."""
        name = self.__name__.rpartition(".")[2]
        return getattr(import_module("boardcluster.api"), name)(*arguments, **named)
