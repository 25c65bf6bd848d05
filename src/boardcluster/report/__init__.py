"""Results to one HTML file that opens offline, and to Markdown. Never starts work.

Rendering is loaded when it is first used: most commands want only the words of this room.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from boardcluster.callable_room import CallableRoom

__all__ = ["Written", "write_source"]

if TYPE_CHECKING:
    from boardcluster.report.render import Written, write_source
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.render"), name)


sys.modules[__name__].__class__ = CallableRoom
