"""A real emulated cluster for the tests, and proof that nothing is left of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boardcluster.cluster.state import IDENTITY_VARIABLE

CLI = (sys.executable, "-m", "boardcluster")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, and count, what needs root; in CI, which has root, nothing may be skipped."""
    needing = [item for item in items if item.get_closest_marker("needs_root")]
    if os.geteuid() == 0 or not needing:
        return
    if os.environ.get("BOARDCLUSTER_CI"):
        raise pytest.UsageError(f"CI must run as root: {len(needing)} tests need it")
    for item in needing:
        item.add_marker(pytest.mark.skip(reason="needs root: host link, other users, mounts"))


@pytest.fixture(scope="session")
def cache() -> Path:
    """The user's own cache: fetched once per machine, as a user would have it."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "boardcluster"


class Cli:
    """The program as a user runs it, on one home."""

    def __init__(self, home: Path, cache: Path, *, prefix: tuple[str, ...] = ()) -> None:
        self.home = home
        self.cache = cache
        self.prefix = prefix
        self.env = {
            **os.environ,
            "BOARDCLUSTER_HOME": str(home),
            "BOARDCLUSTER_CACHE": str(cache),
        }

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Start the program and return at once."""
        return subprocess.Popen(
            [*self.prefix, *CLI, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env,
            **options,
        )

    def __call__(self, *arguments: str, code: int = 0, timeout: float = 600) -> str:
        """Run the program, check its exit code, return its standard output."""
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=timeout)
        assert process.returncode == code, f"{arguments}: {process.returncode}\n{out}\n{err}"
        self.stderr = err
        return out

    def json(self, *arguments: str) -> Any:
        """Run the program with --json and parse what it prints."""
        return json.loads(self(*arguments, "--json"))


@pytest.fixture(scope="session")
def cli(cache: Path) -> Callable[..., Cli]:
    def make(home: Path, **options: Any) -> Cli:
        return Cli(home, cache, **options)

    return make


def traces() -> dict[str, set[str]]:
    """Everything of a cluster that could be left on this machine."""
    processes = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                environ = (entry / "environ").read_bytes()
            except OSError:
                continue
            if IDENTITY_VARIABLE.encode() in environ:
                processes.add(entry.name)
    return {
        "processes": processes,
        "links": {path.name for path in Path("/sys/class/net").iterdir()},
        "mounts": set(Path("/proc/mounts").read_text().splitlines()),
        "loops": set(
            subprocess.run(
                ["losetup", "-a"], capture_output=True, text=True, check=False
            ).stdout.splitlines()
        ),
        "groups": {str(path) for path in _hierarchies("boardcluster-*")},
        "throttles": {
            f"{path.name} {row}"
            for path in _hierarchies("blkio.throttle.*_device")
            for row in path.read_text().splitlines()
        },
        "rules": set(
            subprocess.run(
                ["ip", "rule"], capture_output=True, text=True, check=True
            ).stdout.splitlines()
        ),
        "namespaces": {path.name for path in Path("/run/netns").glob("*")},
        "tmp": {
            path.name
            for path in Path("/tmp").iterdir()
            if path.name.startswith(("hadoop", "spark", "jetty", "blockmgr", "Jetty"))
        },
    }


def _hierarchies(pattern: str) -> Iterator[Path]:
    """Find names at the root of every hierarchy of control groups, of either version."""
    for root in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*/")):
        yield from root.glob(pattern)


@pytest.fixture(autouse=True, scope="module")
def nothing_left_behind() -> Iterator[None]:
    """After every module: nothing of what ``traces`` looks for."""
    before = traces()
    yield
    after = traces()
    left = {kind: after[kind] - before[kind] for kind in after if after[kind] - before[kind]}
    assert not left
