"""Campaigns that meet faults while nobody looks. As root; how to run it: README.md in this folder.

``soak``: a campaign on one master and four boards by real SSH, with a random fault every few
minutes, seeded. The driver is started again whenever it ends before the campaign does, as a timer
would. At the end every trial must have come out ok with its output verified, attempts must add up,
and neither the driver nor the boards may have grown: in memory, files and threads of the driver,
and in processes, memory and files of the boards.

``phases``: a campaign each for a link that is cut for 30 s and for a medium that answers nothing
for 70 s, in each of five phases of a run; each campaign must finish by itself.

Both go on with what is in their folder: the same command again. A phase whose campaign has met its
fault and ended is kept. SIGTERM and Ctrl-C end the driver and undo all mounts and faults first;
what a killed start left is ended by the next one in the same folder.

``--short`` makes runs and losses shorter, so that more trials fit into an hour: the input has 1 MB
instead of 8, a link of the soak is cut for 5 to 15 s instead of 5 to 40, a board stands still for
10 to 25 s instead of 10 to 70, and the driver waits at most 2 min for a lost part instead of 5.
Boards, engines, kinds of faults and what is judged are the same. It does not show losses that take
longer than 25 s to be noticed. The faults of ``phases`` are as long as without it.

Ends with status 1 if something is lost, not finished, valid that should not be, or grows.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

from boardcluster.cluster.processes import end_processes_of
from boardcluster.cluster.state import IDENTITY_VARIABLE, load_state
from boardcluster.remote.node_agent import processes, stat_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.boards import Boards, own_processes

WORKERS = 4
SAMPLE_SECONDS = 15.0
STARTS_MOST = 40
"""Of the driver, within one start of this program; more say that it gets nowhere."""
DRIVER_GROWTH_MOST = {"driver_bytes": 1.25, "driver_files": 1.25, "driver_threads": 1.25}
"""Of what the last third of the samples has, by what the first third has; in a driver's life."""
BOARDS_GROWTH_MOST = {"board_processes": 1.5, "board_memory_mb": 1.25}
"""The same, in the life of the boards. Jobs come and go, so processes may differ more."""
LEFT_BY_ATTEMPT_MOST = {"board_files": 100.0, "board_disk_mb": 4.0}
"""What an attempt may leave on all boards together, on average.

Something stays on purpose: Hadoop keeps the logs of containers for three hours, by default, and the
histories of jobs for a week. Reckoned, not measured: eight containers with seven files each, and
five files of history in HDFS, each block with its checksum and up to three copies. A result that is
not deleted, or a job's jars, are far above the bytes.
"""
SLACK = 2
"""A thread or a process more or less is no growth."""
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
COMMAND_SECONDS_MOST = 1800.0
"""For a command other than ``run``."""
END_SECONDS_MOST = 120.0
"""For what is told to end, until it is killed."""
PHASES = ("preparing", "submitting", "application master", "tasks", "proving")
PHASE_SECONDS_MOST = 300.0

CAMPAIGN = """\
[campaign]
name = "{name}"
repetitions = {repetitions}
repeat_tainted = 0
loss_wait = "{loss_wait}"

[[matrix]]
workload = "wordcount"
engine = {engines}
size = "{size}"
"""


@dataclass(frozen=True, kw_only=True)
class Extent:
    """How large runs and faults are."""

    size: str = "8 MB"
    """A run's input."""
    loss_wait: str = "5 min"
    """The longest wait of the driver for a lost part."""
    cut_seconds: tuple[float, float] = (5.0, 40.0)
    """How long a link of the soak is cut, from and to."""
    frozen_seconds: tuple[float, float] = (10.0, 70.0)
    """How long a board of the soak stands still, from and to."""

    def campaign(self, name: str, *, repetitions: int, engines: str) -> str:
        """Return a campaign file."""
        return CAMPAIGN.format(
            name=name,
            repetitions=repetitions,
            engines=engines,
            size=self.size,
            loss_wait=self.loss_wait,
        )


SHORT = Extent(size="1 MB", loss_wait="2 min", cut_seconds=(5.0, 15.0), frozen_seconds=(10.0, 25.0))


@dataclass(kw_only=True)
class Place:
    """Where a campaign runs, and the command line there."""

    home: Path
    """The cluster's state folder."""
    identity: str
    """In the environment of every command, so that a later start finds what a killed one left."""
    prefix: tuple[str, ...] = ()
    """What a program of the driver is started with."""
    env: dict[str, str] = field(default_factory=dict)
    """Its variables beside the caller's own."""

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command, in a group of its own; what it says goes to a file of the home."""
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        said = self.home.parent / f"{arguments[0]}.log"
        with said.open("a") as log:
            return subprocess.Popen(
                [*self.prefix, sys.executable, "-m", "boardcluster", *arguments],
                env={
                    **os.environ,
                    **self.env,
                    IDENTITY_VARIABLE: self.identity,
                    "BOARDCLUSTER_HOME": str(self.home),
                    "BOARDCLUSTER_CACHE": f"{base}/boardcluster",
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if "--json" in arguments else log,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def __call__(self, *arguments: str, codes: Sequence[int] = (0,)) -> str:
        """Run a command that must succeed."""
        with self.start(*arguments) as process:
            try:
                out, _ = process.communicate(timeout=COMMAND_SECONDS_MOST)
            except BaseException:
                ended(process)
                raise
        if process.returncode not in codes:
            sys.exit(f"{arguments} ended with {process.returncode}: see {self.home.parent}")
        return out or ""

    @contextlib.contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Have a command run; it has ended when the block has."""
        process = self.start(*arguments)
        try:
            yield process
        finally:
            ended(process)

    def attempts(self) -> list[dict[str, Any]]:
        """Return every attempt of the home, and the trials that have none."""
        rows: list[dict[str, Any]] = json.loads(self("results", "--all", "--json"))["results"]
        return rows

    def declare(self, *words: str) -> None:
        """Write cluster.toml, with the memory of small boards, unless it is there."""
        if not (self.home / "cluster.toml").exists():
            self("init", *words)
            path = self.home / "cluster.toml"
            path.write_text(re.sub(r'memory = ".*"', 'memory = "4 GiB"', path.read_text()))


def ended(process: subprocess.Popen[str]) -> None:
    """Have a command end as by Ctrl-C, and kill it if it does not."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(END_SECONDS_MOST)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(END_SECONDS_MOST)


@contextlib.contextmanager
def undoing() -> Iterator[contextlib.ExitStack]:
    """Give a stack for what is to be undone; signals that would end this wait until it is."""
    undo = contextlib.ExitStack()
    try:
        yield undo
    finally:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        try:
            undo.close()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[str]:
    """Hold a folder, end what a killed start left running there, and give the mark of its commands.

    The mark is written down before a command carries it, and stays the folder's.
    """
    with (folder / "identity").open("a+") as stream, undoing() as undo:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"another start of this program is at work in {folder}")
        stream.seek(0)
        identity = stream.read().strip()
        if not identity:
            identity = uuid.uuid4().hex
            stream.write(identity)
            stream.flush()
        for note in folder.glob("*/mount.json"):
            thaw(note.parent)  # what waits for a frozen medium does not end
        end_processes_of(identity, within_seconds=END_SECONDS_MOST)
        undo.callback(end_processes_of, identity, within_seconds=END_SECONDS_MOST)
        yield identity


@dataclass(kw_only=True)
class Planted:
    """One fault."""

    kind: str
    """What it is."""
    where: str
    """Whom it met."""
    began_unix: float
    """When it began."""
    ended_unix: float
    """When it was over; recovery comes after."""


class Faults:
    """The faults of a soak, on boards."""

    def __init__(
        self, boards: Boards, place: Place, chance: random.Random, *, extent: Extent, disks: Path
    ) -> None:
        self.boards = boards
        self.disks = disks
        self.extent = extent
        self.place = place
        self._chance = chance
        self.driver: subprocess.Popen[str] | None = None
        self.kinds: dict[str, Callable[[], str]] = {
            "daemon of a worker killed": lambda: self._kill(
                self._worker(), r"DataNode|NodeManager"
            ),
            "daemon of the master killed": lambda: self._kill(0, r"NameNode|ResourceManager"),
            "container killed": lambda: self._kill(
                self._worker(), r"YarnChild|MRAppMaster|Executor"
            ),
            "link cut": self._cut,
            "board stands still": self._freeze,
            "connections dropped": self._drop,
            "driver killed": self._kill_driver,
        }

    def plant(self) -> Planted:
        """Plant one, and wait until it is over."""
        kind = self._chance.choice(sorted(self.kinds))
        began = time.time()
        where = self.kinds[kind]()
        return Planted(kind=kind, where=where, began_unix=began, ended_unix=time.time())

    def _worker(self) -> int:
        return self._chance.randrange(1, WORKERS + 1)

    def _kill(self, index: int, pattern: str) -> str:
        found = self.boards.run_on(index, ["pgrep", "-f", pattern], check=False).stdout.split()
        if not found:
            return "nobody"
        pid = self._chance.choice(found)
        self.boards.run_on(index, ["kill", "-KILL", pid], check=False)
        return f"pi{index}"

    def _cut(self) -> str:
        index = self._worker()
        self.boards.cut(index)
        try:
            time.sleep(self._chance.uniform(*self.extent.cut_seconds))
        finally:
            self.boards.mend(index)
        return f"pi{index}"

    def _freeze(self) -> str:
        index = self._worker()
        self.boards.run_on(index, ["pkill", "-STOP", "-u", "boardcluster"], check=False)
        try:
            time.sleep(self._chance.uniform(*self.extent.frozen_seconds))
        finally:
            self.boards.run_on(index, ["pkill", "-CONT", "-u", "boardcluster"], check=False)
        return f"pi{index}"

    def _drop(self) -> str:
        index = self._chance.randrange(WORKERS + 1)
        self.boards.run_on(index, ["pkill", "-KILL", "-f", "^sshd: pi"], check=False)
        return f"pi{index}"

    def _kill_driver(self) -> str:
        if self.driver is None or self.driver.poll() is not None:
            return "nobody"
        os.killpg(self.driver.pid, signal.SIGKILL)
        return "driver"


def sampled(process: subprocess.Popen[str], faults: Faults) -> dict[str, float]:
    """What the driver and the boards hold now; nothing of a driver that has just ended."""
    found = {"unix": time.time(), **boards_hold(faults)}
    for pid in tree_of(process.pid):
        with contextlib.suppress(OSError, StopIteration):
            status = Path(f"/proc/{pid}/status").read_text().splitlines()
            rows = dict(row.split(":", 1) for row in status if ":" in row)
            found["driver_bytes"] = found.get("driver_bytes", 0.0) + 1024 * int(
                rows["VmRSS"].split()[0]
            )
            found["driver_threads"] = found.get("driver_threads", 0.0) + int(rows["Threads"])
            files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
            found["driver_files"] = found.get("driver_files", 0.0) + files
    return found


def boards_hold(faults: Faults) -> dict[str, float]:
    """Count the processes, memory (MB) and files of all boards, and the attempts so far."""
    namespaces = {
        (seen.st_dev, seen.st_ino)
        for node in faults.boards.nodes
        for seen in [Path(f"/proc/{node.pid}/ns/net").stat()]
    }
    running = own_processes(namespaces)
    held = [files_below(faults.disks / node.name / "upper") for node in faults.boards.nodes]
    return {
        "attempts": float(sum(1 for _ in (faults.place.home / "attempts").glob("*/*"))),
        "board_processes": float(len(running)),
        "board_memory_mb": sum(map(memory_bytes, running)) / 1e6,
        "board_files": float(sum(count for count, _ in held)),
        "board_disk_mb": sum(size_bytes for _, size_bytes in held) / 1e6,
    }


def memory_bytes(pid: int) -> int:
    """Return a process's share of memory (PSS); 0 of one that has ended."""
    (found,) = processes({"processes": [[pid, stat_of(pid)[1]]]})
    return int(found["proportional_bytes"])


def files_below(folder: Path) -> tuple[int, int]:
    """Count the files below a folder, and the bytes of disk that they take."""
    count = size_bytes = 0
    left = [str(folder)]
    while left:
        with contextlib.suppress(OSError), os.scandir(left.pop()) as entries:  # it may just be gone
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
                    continue
                with contextlib.suppress(OSError):
                    size_bytes += 512 * entry.stat(follow_symlinks=False).st_blocks
                    count += 1
    return count, size_bytes


def tree_of(pid: int) -> list[int]:
    """Return the Python processes of the driver; programs that it runs for moments are not it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        named = {int(child): Path(f"/proc/{child}/comm").read_text() for child in children}
    except OSError:  # one of them has just ended
        return [pid]
    return [pid, *(child for child, name in named.items() if name.startswith("python"))]


def appended(path: Path, row: object) -> None:
    """Append one row to a file of JSON lines."""
    with path.open("a") as stream:
        stream.write(json.dumps(row) + "\n")


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of such a file; none if there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def soak(
    folder: Path,
    *,
    identity: str,
    extent: Extent,
    trials: int,
    seed: int,
    every_seconds: float,
    longest_seconds: float,
) -> bool:
    """Run a campaign among faults, to its end or for so long; return whether all held."""
    home, notes = folder / "home", folder / "faults.jsonl"
    file = folder / "soak.toml"
    engines = '["mapreduce", "spark"]'
    file.write_text(extent.campaign("soak", repetitions=(trials + 1) // 2, engines=engines))
    chance = random.Random(seed + len(rows_of(notes)))
    scratch = folder / "boards"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    with undoing() as undo:
        undo.callback(shutil.rmtree, scratch, ignore_errors=True)
        boards = undo.enter_context(Boards(WORKERS + 1, folder=scratch))
        place = Place(
            home=home, identity=identity, prefix=boards.driver_prefix, env=boards.driver_env
        )
        declared = home / "cluster.toml"
        before = declared.read_text() if declared.exists() else ""
        for name in ("known_hosts", "state.json", "facts.json", "cluster.toml"):
            (home / name).unlink(missing_ok=True)  # these boards are new
        place.declare("--hosts", hosts_of(boards), "--yes")
        if before:
            declared.write_text(before)  # what the campaign was begun with
        faults = Faults(boards, place, chance, extent=extent, disks=scratch)
        until = time.monotonic() + longest_seconds
        driving(file, faults, chance, folder=folder, every_seconds=every_seconds, until=until)
        stopped = time.monotonic() >= until
        good = judged(place, folder, planned=(trials + 1) // 2 * 2, stopped=stopped)
        place("down", codes=(0, 7))
    return good


def hosts_of(boards: Boards) -> str:
    """Return the boards' names as ``init`` wants them."""
    return ",".join(node.name for node in boards.nodes)


def driving(
    file: Path,
    faults: Faults,
    chance: random.Random,
    *,
    folder: Path,
    every_seconds: float,
    until: float,
) -> None:
    """Start the driver until the campaign is done or time is up, and plant faults meanwhile."""
    starts, samples = folder / "starts.jsonl", folder / "samples.jsonl"
    first, boards = next_number(rows_of(starts), rows_of(samples))
    for start in range(first, first + STARTS_MOST):
        with faults.place.running("run", str(file), "--yes", "--continue") as driver:
            faults.driver = driver
            look = time.monotonic()
            due = look + chance.uniform(0.5, 1.5) * every_seconds
            while driver.poll() is None:
                if time.monotonic() >= until:
                    break
                if time.monotonic() >= due:
                    appended(folder / "faults.jsonl", vars(faults.plant()))
                    due = time.monotonic() + chance.uniform(0.5, 1.5) * every_seconds
                if time.monotonic() >= look:
                    held = sampled(driver, faults)
                    appended(samples, {"start": start, "boards": boards, **held})
                    look = time.monotonic() + SAMPLE_SECONDS
                time.sleep(0.5)
        appended(starts, {"start": start, "status": driver.returncode, "unix": time.time()})
        if driver.returncode in (0, 9) or time.monotonic() >= until:
            return
    sys.exit(f"the driver was started {STARTS_MOST} times and the campaign is not done")


def next_number(
    starts: Sequence[dict[str, Any]], samples: Sequence[dict[str, Any]]
) -> tuple[int, int]:
    """Return the first free number of a driver, and of boards, beside the rows of earlier starts.

    A driver that was killed with this program has samples and no row of its own.
    """
    drivers = [len(starts) - 1, *(row["start"] for row in [*starts, *samples] if "start" in row)]
    return max(drivers) + 1, max((row.get("boards", 0) for row in samples), default=-1) + 1


def judged(place: Place, folder: Path, *, planned: int, stopped: bool) -> bool:
    """Hold the results against the faults; print the table and what does not hold."""
    everything = place.attempts()
    rows = [row for row in everything if row["attempt"]]
    planted = rows_of(folder / "faults.jsonl")
    trials = {row["trial"]["id"] for row in everything}
    good = {row["trial"]["id"] for row in rows if row["attempt"]["state"] == "ok"}
    left = trials - good
    wrong = [f"lost: {trial}" for trial in sorted(left) if not stopped]
    if len(trials) != planned:
        wrong.append(f"lost: {planned - len(trials)} of {planned} trials are not there")
    tries = Counter((row["trial"]["id"], row["attempt"]["number"]) for row in rows)
    wrong += [f"twice: {trial}/{number}" for (trial, number), count in tries.items() if count > 1]
    wrong += [
        f"not verified: {row['attempt']['trial_id']}"
        for row in rows
        if row["attempt"]["state"] == "ok" and not (row["measurement"] or {}).get("verification")
    ]
    by_kind: dict[str, Counter[str]] = {}
    for fault in planted:
        if fault["where"] == "nobody":
            continue  # there was no such process at that moment
        counts = by_kind.setdefault(fault["kind"], Counter())
        counts["planted"] += 1
        met = [row for row in rows if overlaps(row["attempt"], fault)]
        for row in met:
            verdict = (row["measurement"] or {}).get("verdict", "")
            state = row["attempt"]["state"]
            counts[verdict if state == "ok" and verdict == "tainted" else state] += 1
    print("| fault | planted | attempts it met: invalid | tainted | ok | failed |")
    print("|---|--:|--:|--:|--:|--:|")
    for kind, counts in sorted(by_kind.items()):
        shown = (counts[name] for name in ("planted", "invalid", "tainted", "ok", "failed"))
        print(f"| {kind} | {' | '.join(map(str, shown))} |")
    states = Counter(row["attempt"]["state"] for row in rows)
    samples = rows_of(folder / "samples.jsonl")
    started, _ = next_number(rows_of(folder / "starts.jsonl"), samples)
    lost = sum(row.startswith("lost") for row in wrong)
    print(
        f"\n{len(trials)} trials, {len(rows)} attempts ({dict(states)}), driver started "
        f"{started} times, lost {lost}{f', not run yet {len(left)}' if stopped else ''}"
    )
    wrong += undisturbed(rows, planted)
    wrong += grown(samples)
    for words in wrong:
        print(f"WRONG: {words}")
    return not wrong


def overlaps(attempt: dict[str, Any], fault: dict[str, Any]) -> bool:
    """Whether a fault came while an attempt ran."""
    if not attempt["ended_utc"] or fault["where"] == "nobody":
        return False
    began, ended = (
        datetime.fromisoformat(attempt[name]).timestamp() for name in ("started_utc", "ended_utc")
    )
    return bool(began <= fault["ended_unix"] and fault["began_unix"] <= ended)


def undisturbed(rows: Sequence[dict[str, Any]], planted: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Name valid runs that took much longer than those which met no fault.

    A fault in the preparation or the proof of a run changes no number. One that does shows in it:
    beyond Tukey's outer fence of the undisturbed runs of the same cell.
    """
    cells: dict[str, list[tuple[float, bool, str]]] = {}
    for row in rows:
        measured = row["measurement"]
        if row["attempt"]["state"] == "ok" and measured.get("verdict") != "tainted":
            met = any(overlaps(row["attempt"], fault) for fault in planted)
            name = f"{row['trial']['id']}/{row['attempt']['number']}"
            cells.setdefault(row["trial"]["engine"], []).append(
                (measured["duration_seconds"], met, name)
            )
    for found in cells.values():
        quiet = [seconds for seconds, met, _ in found if not met]
        if len(quiet) < 4:
            continue
        low, _, high = statistics.quantiles(quiet, n=4)
        for seconds, met, name in found:
            if met and seconds > high + 3 * (high - low):
                yield (
                    f"{name} met a fault, took {seconds:.1f} s (others {low:.1f} to {high:.1f} s) "
                    "and is valid"
                )


def grown(samples: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Name what has grown: in the longest life of a driver, and in that of a set of boards."""
    for whose, bounds in (("start", DRIVER_GROWTH_MOST), ("boards", BOARDS_GROWTH_MOST)):
        early, late = thirds(samples, whose)
        for name, most in bounds.items():
            before, after = typical(early, name), typical(late, name)
            if before and after:
                print(f"{name}: {before:,.0f} early, {after:,.0f} late")
                if after > max(most * before, before + SLACK):
                    yield f"{name} grew from {before:,.0f} to {after:,.0f}"
    early, late = thirds(samples, "boards")
    attempts = typical(late, "attempts") - typical(early, "attempts")
    for name, most in LEFT_BY_ATTEMPT_MOST.items():
        before, after = typical(early, name), typical(late, name)
        if before and attempts > 0:
            each = (after - before) / attempts
            print(f"{name}: {before:,.0f} early, {after:,.0f} late, {each:,.1f} an attempt")
            if each > most:
                yield f"{name} grew by {each:,.1f} an attempt, {most:g} are allowed"


def thirds(
    samples: Sequence[dict[str, Any]], whose: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return an early and the last third of the longest life; nothing if none was long enough.

    The early third begins after a sixth: what starts is not yet as it stays.
    """
    lives: dict[int, list[dict[str, Any]]] = {}
    for row in samples:
        if whose in row:
            lives.setdefault(row[whose], []).append(row)
    longest = max(lives.values(), key=len, default=[])
    third = len(longest) // 3
    if third < 3:
        print(
            f"{'no driver' if whose == 'start' else 'no boards'} lived long enough to tell growth"
        )
        return [], []
    return longest[third // 2 : third + third // 2], longest[-third:]


def typical(samples: Sequence[dict[str, Any]], name: str) -> float:
    """Return the median of those samples that have a value; 0 if none has."""
    return float(statistics.median([row[name] for row in samples if name in row] or [0.0]))


def phase_of(spaces: set[int], seen: set[str]) -> str:
    """Return the phase of a MapReduce run that goes on, from what runs on its nodes."""
    running = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "ns" / "pid").stat().st_ino in spaces:
                words = (entry / "cmdline").read_bytes()
                running |= {
                    name
                    for name in ("RunJar", "ExampleDriver", "MRAppMaster", "YarnChild")
                    if name.encode() in words
                }
    seen |= running
    if "YarnChild" in running:
        return "tasks"
    if "MRAppMaster" in running:
        return "proving" if "YarnChild" in seen else "application master"
    if running:
        return "submitting"
    return "proving" if "YarnChild" in seen else "preparing"


@dataclass(frozen=True, kw_only=True)
class PhaseFault:
    """A fault of ``phases``."""

    seconds: float
    """How long it lasts."""
    commands: Callable[[], tuple[Sequence[str], Sequence[str]]]
    """Returns what begins it and what ends it; asked when the phase is there."""


@dataclass(kw_only=True)
class Planting:
    """What becomes of the fault of a phase, in a thread of its own."""

    began: bool = False
    """Whether it has begun."""
    reason: str = ""
    """Why it did not begin, or did not end; empty if it did."""
    over: threading.Event = field(default_factory=threading.Event)
    """The campaign has ended: no phase will come."""
    stop: threading.Event = field(default_factory=threading.Event)
    """It has to end at once."""

    def plant(self, phase: str, home: Path, fault: PhaseFault) -> None:
        """Plant a fault in the first run that comes into a phase; note what prevents it."""
        try:
            self.reason = self._await_phase(phase, home)
            if not self.reason:
                with held(*fault.commands()):
                    self.began = True
                    self.stop.wait(fault.seconds)
        except Exception as error:  # noqa: BLE001 - a thread's exception would reach nobody
            said = str(getattr(error, "stderr", None) or "").strip()
            self.reason = f"{type(error).__name__}: {error}{f' ({said})' if said else ''}"

    def _await_phase(self, phase: str, home: Path) -> str:
        """Wait for a phase; return why it did not come."""
        seen: set[str] = set()
        deadline = time.monotonic() + PHASE_SECONDS_MOST
        while time.monotonic() < deadline:
            if self.over.is_set() or self.stop.is_set():
                return f"no run was seen in the phase {phase} before the campaign ended"
            attempts = list((home / "attempts").glob("*/*"))
            state = load_state(home)
            if attempts and state is not None and state.phase == "up":
                spaces = {Path(f"/proc/{node.pid}/ns/pid").stat().st_ino for node in state.nodes}
                if phase_of(spaces, seen) == phase:
                    return ""
            time.sleep(0.05)
        return f"no run came into the phase {phase} within {PHASE_SECONDS_MOST:.0f} s"


@contextlib.contextmanager
def planting_in(phase: str, home: Path, fault: PhaseFault) -> Iterator[Planting]:
    """Have a thread plant a fault; both have ended when the block has."""
    planting = Planting()
    planter = threading.Thread(target=planting.plant, args=(phase, home, fault))
    planter.start()
    try:
        yield planting
        planting.over.set()
        planter.join()
    finally:
        planting.stop.set()
        planter.join()


def phases(
    folder: Path, *, identity: str, extent: Extent, trials: int, only: Sequence[str]
) -> bool:
    """Run a campaign for each fault and phase that has none yet; print what became of each."""
    for note in sorted(folder.glob("*/mount.json")):
        tidy(Place(home=note.parent / "home", identity=identity))
    notes = folder / "phases.jsonl"
    kept = finished(rows_of(notes), trials=trials, size=extent.size)
    print("| fault | phase | attempts | seconds | ended by itself |\n|---|---|---|--:|---|")
    good = True
    for kind in ("link cut for 30 s", "medium frozen for 70 s"):
        for phase in PHASES:
            if only and phase not in only:
                continue
            row = kept.get((kind, phase))
            if row is None:
                own = folder / f"{kind[:4]}-{phase.replace(' ', '-')}"
                put_aside(own)
                place = Place(home=own / "home", identity=identity)
                row = one_phase(place, kind, phase, trials=trials, extent=extent)
                appended(notes, row)
            wrong = shortcomings(row)
            print(
                f"| {kind} | {phase} | {row['attempts']} | {row['seconds']:.0f} | "
                f"{'no: ' + '; '.join(wrong) if wrong else 'yes'} |",
                flush=True,
            )
            good &= not wrong
    return good


def finished(
    rows: Sequence[dict[str, Any]], *, trials: int, size: str
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the phases that were done as they are asked for; without their fault they were not."""
    return {
        (row["kind"], row["phase"]): row
        for row in rows
        if row["planted"] and (row["trials"], row["size"]) == (trials, size)
    }


def shortcomings(row: dict[str, Any]) -> list[str]:
    """Say what is wrong with the campaign of a phase; nothing if it finished by itself."""
    wrong = []
    if not row["planted"]:
        wrong.append(f"the fault was not planted: {row['reason']}")
    elif row["reason"]:
        wrong.append(f"the fault did not end: {row['reason']}")
    if row["status"]:
        wrong.append(f"the driver ended with status {row['status']}")
    if row["ok"] < row["trials"]:
        wrong.append(f"{row['ok']} of {row['trials']} trials are ok")
    return wrong


def put_aside(folder: Path) -> None:
    """Rename what a start left that was broken off, so that the phase can begin anew."""
    if folder.exists():
        number = sum(1 for _ in folder.parent.glob(f"{folder.name}.broken-*")) + 1
        folder.rename(folder.with_name(f"{folder.name}.broken-{number}"))


def one_phase(
    place: Place, kind: str, phase: str, *, trials: int, extent: Extent
) -> dict[str, Any]:
    """Run one campaign that meets a fault in a phase of its first run; return its row."""
    folder = place.home.parent
    with undoing() as undo:
        undo.callback(tidy, place)
        disk = mounted(folder)

        def link() -> tuple[Sequence[str], Sequence[str]]:
            state = load_state(place.home)
            if state is None:
                raise RuntimeError("the cluster is not there any more")
            port = ["nsenter", "-t", str(state.switch_pid), "-n", "ip", "link", "set", "port2"]
            return [*port, "down"], [*port, "up"]

        def medium() -> tuple[Sequence[str], Sequence[str]]:
            return ["fsfreeze", "--freeze", str(disk)], ["fsfreeze", "--unfreeze", str(disk)]

        place.declare("--workers", "2", "--subnet", "198.18.163.0/24")
        file = folder / "phases.toml"
        file.write_text(extent.campaign("phases", repetitions=trials, engines='"mapreduce"'))
        fault = (
            PhaseFault(seconds=30, commands=link)
            if kind.startswith("link")
            else PhaseFault(seconds=70, commands=medium)
        )
        began = time.monotonic()
        driver = undo.enter_context(place.running("run", str(file), "--yes"))
        undo.callback(thaw, folder)
        with planting_in(phase, place.home, fault) as planting:
            status = driver.wait()
        states = Counter(
            row["attempt"]["state"] if row["attempt"] else "pending" for row in place.attempts()
        )
        return {
            "kind": kind,
            "phase": phase,
            "trials": trials,
            "size": extent.size,
            "attempts": ", ".join(f"{count} {state}" for state, count in sorted(states.items())),
            "seconds": time.monotonic() - began,
            "status": status,
            "ok": states["ok"],
            "planted": planting.began,
            "reason": planting.reason,
        }


def mounted(folder: Path) -> Path:
    """Mount a file as the disk of a worker; note first by what ``unmount`` finds it again."""
    disk, image = folder / "home" / "nodes" / "worker2", folder / "image"
    disk.mkdir(parents=True)
    with image.open("wb") as stream:
        stream.truncate(2_000_000_000)
    seen = image.stat()
    device = f"{os.major(seen.st_dev)}:{os.minor(seen.st_dev)}"
    note = {"inode": seen.st_ino, "device": device}
    (folder / "mount.json").write_text(json.dumps(note))
    commanded(["mkfs.ext4", "-q", str(image)])
    commanded(["mount", "-o", "loop", str(image), str(disk)])
    return disk


def tidy(place: Place) -> None:
    """Undo what a phase did to this machine, whether this start made it or a killed one."""
    folder = place.home.parent
    thaw(folder)
    try:
        if load_state(place.home) is not None:
            place("down")
    finally:
        unmount(folder)


def thaw(folder: Path) -> None:
    """Let a medium answer again if it is frozen."""
    for _, target in loops_of(folder):
        if target:
            commanded(["fsfreeze", "--unfreeze", target], check=False)


def unmount(folder: Path) -> None:
    """Unmount the file of a folder, and give its loop device back."""
    for device, target in loops_of(folder):
        if target:
            commanded(["umount", target])
        commanded(["losetup", "--detach", device], check=False)  # it may be gone with the mount
    (folder / "image").unlink(missing_ok=True)
    (folder / "mount.json").unlink(missing_ok=True)


def loops_of(folder: Path) -> list[tuple[str, str]]:
    """Return each loop device of the file of a folder, by its number, with each place of it."""
    note = folder / "mount.json"
    if not note.exists():
        return []
    own = json.loads(note.read_text())
    said = commanded(["losetup", "--list", "--json", "--output", "NAME,BACK-INO,BACK-MAJ:MIN"])
    rows = json.loads(said.stdout)["loopdevices"] if said.stdout.strip() else []
    found = []
    for row in rows:
        if (row["back-ino"], row["back-maj:min"].strip()) == (own["inode"], own["device"]):
            said = commanded(["findmnt", "--json", "--source", row["name"]], check=False)
            mounts = json.loads(said.stdout)["filesystems"] if said.stdout.strip() else []
            found += [(row["name"], mount["target"]) for mount in mounts] or [(row["name"], "")]
    return found


def commanded(argv: Sequence[str], *, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program of this machine to its end."""
    return subprocess.run(
        argv, check=check, capture_output=True, text=True, timeout=END_SECONDS_MOST
    )


@contextlib.contextmanager
def held(begin: Sequence[str], end: Sequence[str]) -> Iterator[None]:
    """Have one command's effect until the block ends; also undo one that failed half-way."""
    try:
        commanded(begin)
    except BaseException:
        commanded(end, check=False)
        raise
    try:
        yield
    finally:
        commanded(end)


def end_by_signal(number: int, _frame: FrameType | None) -> None:
    """Let a signal end this as an exception does, so that everything is undone."""
    sys.exit(128 + number)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("soak", "phases"))
    parser.add_argument("--folder", type=Path, required=True, help="state; the same goes on")
    parser.add_argument("--trials", type=int, default=0, help="default: 200 of soak, 20 of phases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=150.0, help="seconds from fault to fault")
    parser.add_argument("--minutes", type=float, default=1e6, help="stop a soak then, and judge it")
    parser.add_argument("--phase", choices=PHASES, action="append", default=[])
    parser.add_argument("--short", action="store_true", help="smaller input, shorter losses")
    asked = parser.parse_args()
    for number in ENDING:
        signal.signal(number, end_by_signal)
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    extent = SHORT if asked.short else Extent()
    with alone(folder) as identity:
        if asked.what == "soak":
            good = soak(
                folder,
                identity=identity,
                extent=extent,
                trials=asked.trials or 200,
                seed=asked.seed,
                every_seconds=asked.every,
                longest_seconds=asked.minutes * 60,
            )
        else:
            trials = asked.trials or 20
            good = phases(folder, identity=identity, extent=extent, trials=trials, only=asked.phase)
    sys.exit(not good)


if __name__ == "__main__":
    main()
