"""Find the checks of boards and run them, as for the checks of this machine."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from boardcluster.doctor.boards import checks
from boardcluster.doctor.boards.view import ClusterView
from boardcluster.doctor.examine import names_in, run_checks
from boardcluster.doctor.finding import Check, Finding

__all__ = ["board_check_names", "examine_boards", "load_board_check"]


def board_check_names() -> tuple[str, ...]:
    """Return the names of all checks of boards: the files in ``checks/``."""
    return names_in(checks)


def load_board_check(name: str) -> Check[ClusterView]:
    """Return a check by its name."""
    return cast("Check[ClusterView]", import_module(f"{checks.__name__}.{name}").CHECK)


def examine_boards(view: ClusterView) -> list[Finding]:
    """Run every check and return what they found: errors, then warnings, then what is well."""
    return run_checks(board_check_names(), load_board_check, view)
