"""The doctor's second half: boards, each looked at over SSH, and the cluster they make up.

Everything is asked once, by ``look_at_boards``; the checks in ``checks/`` are pure functions over
what it returns. Adding one is adding a file there and its section to docs/reference/doctor.md.
"""

from boardcluster.doctor.boards.examine import board_check_names, examine_boards, load_board_check
from boardcluster.doctor.boards.look import look_at_boards
from boardcluster.doctor.boards.view import (
    BoardView,
    ClusterView,
    Inside,
    LostBoard,
    Manager,
    Masters,
    WaitingJob,
)

__all__ = [
    "BoardView",
    "ClusterView",
    "Inside",
    "LostBoard",
    "Manager",
    "Masters",
    "WaitingJob",
    "board_check_names",
    "examine_boards",
    "load_board_check",
    "look_at_boards",
]
