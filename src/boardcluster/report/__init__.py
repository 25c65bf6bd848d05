"""Results to one HTML file that opens offline, and to Markdown. Never starts work.

Rendering is loaded when it is first used: most commands want only the words of this room.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["Written", "write_source"]

if TYPE_CHECKING:
    from boardcluster.report.render import Written, write_source
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.render"), name)


class _Room(ModuleType):
    """This room; ``boardcluster.report(...)`` calls the public function that has its name."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return import_module("boardcluster.api").report(*arguments, **named)


sys.modules[__name__].__class__ = _Room
