"""Results to one HTML file that opens offline, and to Markdown. Never starts work."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from boardcluster.report.render import Written, write_source

__all__ = ["Written", "write_source"]


class _Room(ModuleType):
    """This room; ``boardcluster.report(...)`` calls the public function that has its name."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return import_module("boardcluster.api").report(*arguments, **named)


sys.modules[__name__].__class__ = _Room
