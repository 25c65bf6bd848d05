"""The table of rules, in the order in which advice of equal worth is given."""

from __future__ import annotations

from boardcluster.analysis.advice.blocks import BLOCK_RULES
from boardcluster.analysis.advice.boards import BOARD_RULES
from boardcluster.analysis.advice.faster import FASTER_RULES
from boardcluster.analysis.advice.media import MEDIA_RULES
from boardcluster.analysis.advice.memory import MEMORY_RULES
from boardcluster.analysis.advice.placement import PLACEMENT_RULES
from boardcluster.analysis.advice.rule import Rule
from boardcluster.analysis.advice.tasks import TASK_RULES

__all__ = ["RULES"]

RULES: tuple[Rule, ...] = (
    *FASTER_RULES,
    *BOARD_RULES,
    *MEMORY_RULES,
    *TASK_RULES,
    *BLOCK_RULES,
    *MEDIA_RULES,
    *PLACEMENT_RULES,
)
