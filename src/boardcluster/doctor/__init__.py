"""What is wrong with this machine and cluster, why it matters, and the command that mends it.

Adding a check is adding one file to ``checks/``, or to ``boards/checks/`` if it looks at boards,
and its section to docs/reference/doctor.md. Nothing in this room changes anything.
"""

from boardcluster.doctor.examine import check_names, examine, in_order, load_check
from boardcluster.doctor.fake import FakeMachine
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.machine import Disk, LocalMachine, Machine
from boardcluster.doctor.surroundings import Surroundings, look_around

__all__ = [
    "Check",
    "Disk",
    "FakeMachine",
    "Finding",
    "LocalMachine",
    "Machine",
    "Severity",
    "Surroundings",
    "check_names",
    "examine",
    "in_order",
    "load_check",
    "look_around",
]
