"""What is wrong with this machine and cluster, why it matters, and the command that fixes it.

Everything is asked once and kept in ``Facts``, whether it comes from this machine, from what is
recorded about the cluster, or from boards over SSH. A check is one file in ``checks/`` that says
where it applies and reads facts. Nothing in this room changes anything.
"""

from boardcluster.doctor.ask_boards import ask_boards
from boardcluster.doctor.check import Check, Fault, Finding, Severity, Where
from boardcluster.doctor.examine import check_names, examine, load_check, run_check
from boardcluster.doctor.facts import Facts
from boardcluster.doctor.gather import gather_facts
from boardcluster.doctor.machine import Disk, Machine

__all__ = [
    "Check",
    "Disk",
    "Facts",
    "Fault",
    "Finding",
    "Machine",
    "Severity",
    "Where",
    "ask_boards",
    "check_names",
    "examine",
    "gather_facts",
    "load_check",
    "run_check",
]
