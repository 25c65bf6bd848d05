"""A real emulated cluster for the tests, and proof that nothing is left of it.

Most modules run side by side, each in one process of pytest-xdist. What measures this machine is
marked ``alone`` and runs by itself (see the Makefile).
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from boardcluster.cluster.state import IDENTITY_VARIABLE
from boardcluster.datasets.airline import prepare_airline
from boardcluster.fetch.cache import no_progress
from boardcluster.services.archive import provide_archives
from boardcluster.services.install import Installation, install
from boardcluster.services.java import provide_java
from boardcluster.services.pair import load_pair, pair_ids
from tests.boards import AS_DRIVER, SYSTEM_PATH
from tests.quick_java import make_java_home

for _folder in ("/usr/sbin", "/sbin"):  # which an ordinary user's often lacks
    if _folder not in os.environ["PATH"].split(":"):
        os.environ["PATH"] += f":{_folder}"

CLI = (sys.executable, "-m", "boardcluster")
NOBODY = 65534
AS_NOBODY = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"),
)
"""An ordinary user who may only read more than others: our interpreter may be in /root."""

COPIED_BYTES_MOST = 1 << 20
"""Files of the cache up to this size become the user's own."""

WORKER_VARIABLE = "PYTEST_XDIST_WORKER"
"""Set by pytest-xdist in each of its processes, and so in all that they start."""


LONGEST_FIRST = (
    *("test_boards_cluster", "test_campaign", "test_survival", "test_services", "test_python"),
    *("test_cluster", "test_twin", "test_provision", "test_faults", "test_tutorial"),
    *("test_services_database", "test_settings", "test_starts", "test_local", "test_wireguard"),
    *("test_variants", "test_dashboard", "test_labs", "test_tune", "test_bad_input"),
    *("test_systemd", "test_filestore", "test_limits_version_2"),
    "test_twin_speed",
)
"""Modules that take minutes. Side by side they begin first, so that none is left to end alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest; skip, and count, what needs root.

    In CI, which has root, nothing may be skipped.
    """
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))
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


@pytest.fixture(scope="session")
def installed(cache: Path) -> Callable[[str], Installation]:
    """Install an engine pair in the cache as `up` does, unless it is there."""

    @functools.cache
    def install_pair(pair_id: str) -> Installation:
        pair = load_pair(pair_id)
        java = provide_java(pair, cache=cache)
        return install(pair, java, cache=cache, progress=no_progress)

    return install_pair


@pytest.fixture(scope="session")
def fetched(cache: Path, installed: Callable[[str], Installation]) -> None:
    """Fetch and make what a driver needs that reaches nothing but its boards, or writes nothing."""
    engines = installed(pair_ids()[0])
    java = provide_java(engines.pair, cache=cache)
    provide_archives(engines, java, cache=cache, progress=no_progress)
    prepare_airline(size_bytes=1_000_000, cache=cache, progress=no_progress)


@pytest.fixture(scope="session")
def java_home() -> Iterator[Path]:
    """A Java that starts fast, where every user and every emulated node can read it."""
    with tempfile.TemporaryDirectory(prefix="boardcluster-java-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield make_java_home(Path(folder) / "java")


START_AS_NOBODY = """\
mount -t overlay -o "lowerdir=$1,upperdir=$2,workdir=$3" own "$1"
echo ready
exec sleep infinity
"""
"""The first process of an ordinary user's own view of this machine."""


def give_away(folder: Path, user: int) -> None:
    """Make every folder and every small file in a folder a user's, while others write there.

    What another test fetches meanwhile is renamed when it is whole: a name that has gone is theirs.
    """
    for above, _, names in os.walk(folder):
        for path in (Path(above), *(Path(above, name) for name in names)):
            with contextlib.suppress(FileNotFoundError):
                if path.is_dir() or path.lstat().st_size < COPIED_BYTES_MOST:
                    os.chown(path, user, user, follow_symlinks=False)


@contextlib.contextmanager
def as_nobody(cache: Path, folder: Path) -> Iterator[tuple[str, ...]]:
    """What an ordinary user's programs are started with; the cache is the user's own, uncopied.

    As root that user has a view of this machine in which the folder that closes the cache to others
    is open, and in which every folder of the cache and every small file, locks among them, is the
    user's; jars are only read. The cache is where it always is, because class-data archives fit
    only jars at the paths that they were made of, and a JVM without any takes twice the time to
    start. An ordinary user has a cache already.
    """
    if os.geteuid() != 0:
        yield ()
        return
    above = [path for path in reversed(cache.parents) if not path.stat().st_mode & stat.S_IXOTH]
    top, upper, work = (above or [cache])[0], folder / "own" / "upper", folder / "own" / "work"
    for part in (upper, work):
        part.mkdir(parents=True)
    start = ["unshare", "--mount", "sh", "-ec", START_AS_NOBODY, "nobody"]
    with subprocess.Popen([*start, top, upper, work], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"ready\n"
            root = Path(f"/proc/{holder.pid}/root")
            for path in above:
                (root / path.relative_to("/")).chmod(0o755)
            give_away(root / cache.relative_to("/"), NOBODY)
            yield (*AS_DRIVER, str(holder.pid), *AS_NOBODY)
        finally:
            holder.kill()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder where other users of this machine may look; pytest's own are closed to them."""
    with tempfile.TemporaryDirectory(prefix="boardcluster-user-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


class Cli:
    """The program as a user runs it, on one home."""

    def __init__(
        self, home: Path, cache: Path, java_home: Path, *, prefix: tuple[str, ...] = ()
    ) -> None:
        self.home = home
        self.cache = cache
        self.prefix = prefix
        self.env = {
            **os.environ,
            "BOARDCLUSTER_HOME": str(home),
            "BOARDCLUSTER_CACHE": str(cache),
            "JAVA_HOME": str(java_home),
            # Nodes ask for python3 often; a wrapper in front of it would cost more than it.
            "PATH": f"{SYSTEM_PATH}:{os.environ['PATH']}",
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
            try:
                out, err = process.communicate(timeout=timeout)
            except KeyboardInterrupt:  # it gets that, too, and cleans up
                process.communicate()
                raise
        assert process.returncode == code, f"{arguments}: {process.returncode}\n{out}\n{err}"
        self.stderr = err
        return out

    def json(self, *arguments: str) -> Any:
        """Run the program with --json and parse what it prints."""
        return json.loads(self(*arguments, "--json"))


def is_unwatched(attempt: Mapping[str, Any]) -> bool:
    """Whether this machine was too busy for agents to watch a run of a second or two."""
    return bool(attempt["reason"].startswith("telemetry: "))


def finish(
    program: Cli,
    file: str,
    *,
    excused: Callable[[Mapping[str, Any]], bool] = is_unwatched,
) -> tuple[Any, str]:
    """Run a campaign to its end, or go on with one; again if runs could not be watched, only.

    Args:
        program: on the campaign's home.
        file: the campaign.
        excused: which attempts that are not ok are tried again; any other fails the test.

    Returns:
        What it prints with ``--json``, and all that it said.
    """
    said = ""
    for _ in range(4):
        with program.start("run", file, "--continue", "--json") as process:
            out, told = process.communicate(timeout=600)
        said += told
        done = json.loads(out)
        bad = [row["attempt"] for row in done["results"] if row["attempt"]["state"] != "ok"]
        if not bad:
            break
        assert all(map(excused, bad)), f"{told}\n{bad}"
    return done, said


@pytest.fixture(scope="session")
def cli(cache: Path, java_home: Path) -> Callable[..., Cli]:
    def make(home: Path, **options: Any) -> Cli:
        return Cli(home, cache, java_home, **options)

    return make


@pytest.fixture(scope="session")
def watched(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli]) -> Iterator[Cli]:
    """A cluster that is up, for all tests that measure on one and leave it as they found it."""
    program = cli(tmp_path_factory.mktemp("watched") / "home")
    program("init", "--workers", "2", "--subnet", "198.18.62.0/24")
    try:
        program("up")
        yield program
    finally:
        program("down", "--wipe")


def traces() -> dict[str, set[str]]:
    """Everything of a cluster that could be left on this machine."""
    return {
        "processes": _processes(),
        "links": {path.name for path in Path("/sys/class/net").iterdir()},
        "mounts": set(Path("/proc/mounts").read_text().splitlines()),
        "loops": _lines("losetup", "-a", check=False),
        "groups": {str(path) for path in _hierarchies("boardcluster-*")},
        "throttles": {
            f"{path.name} {row}"
            for path in _hierarchies("blkio.throttle.*_device")
            for row in path.read_text().splitlines()
        },
        "rules": _lines("ip", "rule"),
        "namespaces": {path.name for path in Path("/run/netns").glob("*")},
        "tmp": {
            path.name
            for path in Path("/tmp").iterdir()
            if path.name.startswith(("hadoop", "spark", "jetty", "blockmgr", "Jetty"))
        },
    }


def _processes() -> set[str]:
    """Processes of clusters; those of this process of pytest-xdist alone, where it is one."""
    marks = [IDENTITY_VARIABLE.encode()]
    if worker := os.environ.get(WORKER_VARIABLE):
        marks.append(f"{WORKER_VARIABLE}={worker}\0".encode())
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                environ = (entry / "environ").read_bytes()
            except OSError:
                continue
            if all(mark in environ for mark in marks):
                found.add(entry.name)
    return found


def _lines(*command: str, check: bool = True) -> set[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=check)
    return set(done.stdout.splitlines())


def _hierarchies(pattern: str) -> Iterator[Path]:
    """Find names at the root of every hierarchy of control groups, of either version."""
    for root in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*/")):
        yield from root.glob(pattern)


def left_since(before: dict[str, set[str]]) -> dict[str, set[str]]:
    """What is on this machine now and was not then."""
    after = traces()
    return {kind: after[kind] - before[kind] for kind in after if after[kind] - before[kind]}


@pytest.fixture(autouse=True, scope="module")
def nothing_left_behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """After every module: nothing of what ``traces`` looks for.

    Beside another module, it is asked for what can be told apart: this one's processes and mounts.
    The rest is looked at when both have ended; a loop device also stays as long as a node of the
    other module, whose mounts are copies of this machine's.
    """
    before = traces()
    yield
    left = left_since(before)
    if WORKER_VARIABLE in os.environ:
        own = str(tmp_path_factory.getbasetemp())
        mounts = {row for row in left.get("mounts", set()) if own in row}
        left = {"processes": left.get("processes", set()), "mounts": mounts}
    assert not any(left.values()), left


_BEFORE = pytest.StashKey[dict[str, set[str]]]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remember what was there before any test."""
    session.config.stash[_BEFORE] = traces()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """After all tests, side by side or not: nothing of what ``traces`` looks for."""
    if WORKER_VARIABLE in os.environ:
        return
    # None where this file is read late, as by a plain `pytest`; modules are looked at anyway.
    before = session.config.stash.get(_BEFORE, None)
    if before is not None and (left := left_since(before)):
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        assert reporter is not None
        reporter.write_line(f"left behind: {left}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
