"""The command line: one file per command, which parses, calls and prints."""

import gc
import os

# What modules make while they are loaded stays: to look for garbage among it every 700 objects, as
# Python does, is a tenth of the time of a short command.
gc.set_threshold(50_000)
# Looking for plugins of Pydantic reads what every installed package says of itself; none is wanted.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from boardcluster.cli.app import app, main  # noqa: E402

__all__ = ["app", "main"]
