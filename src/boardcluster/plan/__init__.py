"""How long, how many joules, how much on disk: predicted from runs and published tables. Pure."""

import sys

from boardcluster.callable_room import CallableRoom

__all__ = ()

sys.modules[__name__].__class__ = CallableRoom
