"""The command line: one file per command, which parses, calls and prints."""

from boardcluster.cli.app import app, main

__all__ = ["app", "main"]
