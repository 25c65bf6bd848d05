"""Speed of a cluster of boards over SSH. How to run it: README.md in this folder. Needs root.

Targets on 2 cores with the engines in the driver's cache: first ``up`` of 4 nodes at most 90 s,
second ``up`` at most 10 s, ``status`` at most 2 s for 4 nodes and 5 s for 64, also while three of
them accept a connection and say nothing, ``doctor`` on 4 nodes at most 10 s, and 60 s if sudo asks
on one, the next has another host key and a third does not answer; one look at a board over an open
connection at most 3 s. Ends with status 1 if a median misses its target.

The nodes are namespaces with their own root folder and their own ``sshd``. The daemons of 64 do not
fit into one machine: in their place two processes on each node only sleep. So of 64 connecting and
asking is measured, and no answer of HDFS or YARN. All 64 ``sshd`` share the driver's cores here; a
row says how much CPU time is the driver's own, which is all that it has to do for real boards.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cluster import Table
from commands import CLI

from boardcluster.cluster.kinds.boards.nodes import SERVICE_USER
from boardcluster.cluster.state import Daemon, LiveNode, LiveState, save_state
from boardcluster.remote.base import ProcessRef

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.boards import Boards

MANY = 64
HANGING = (3, 17, 50)
"""Boards whose sshd is stopped: the kernel still accepts connections."""


HINDERED = "doctor, three boards hindered"
OWN_CPU = "status of 64: CPU time of the driver and its connections"
LOOK = """
import sys, time
from pathlib import Path
from boardcluster.cluster.kinds.boards.nodes import BoardNodes
from boardcluster.cluster.discovery import discover
remote = BoardNodes(Path(sys.argv[1])).reach(sys.argv[2], sys.argv[2], user="", folder="")
discover(remote)
for _ in range(int(sys.argv[3])):
    began = time.monotonic()
    discover(remote)
    print(time.monotonic() - began)
"""


class Program:
    """The command line on the driver of some boards."""

    def __init__(self, boards: Boards, home: Path) -> None:
        self.boards = boards
        self.home = home
        self.said = ""

    def status(self, *silent: int) -> float:
        """Return the seconds of ``status``, which must say that just these boards are silent."""
        seconds = self.run("status", "--json")
        found = {row["node"] for row in json.loads(self.said)["daemons"] if not row["alive"]}
        if found != {self.boards.nodes[index].name for index in silent}:
            sys.exit(f"status: {sorted(found)} are not alive, but only {silent} hang")
        return seconds

    def run(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> float:
        """Return the seconds of a command that must succeed."""
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        began = time.monotonic()
        done = subprocess.run(
            [*self.boards.driver_prefix, *CLI, *arguments],
            env={
                **os.environ,
                **self.boards.driver_env,
                "BOARDCLUSTER_HOME": str(self.home),
                "BOARDCLUSTER_CACHE": f"{base}/boardcluster",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - began
        self.said = done.stdout
        if done.returncode not in codes:
            sys.exit(f"{arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
        return seconds

    def declare(self) -> None:
        """Write cluster.toml, with the memory of small boards."""
        self.run("init", "--yes", "--hosts", ",".join(node.name for node in self.boards.nodes))
        path = self.home / "cluster.toml"
        path.write_text(re.sub(r'memory = ".*"', 'memory = "4 GiB"', path.read_text()))


def few(folder: Path, repetitions: int) -> dict[str, list[float]]:
    """Measure 4 nodes; each first ``up`` begins on boards that have nothing."""
    found: dict[str, list[float]] = {name: [] for name in ("up", "again", "status", "doctor")}
    with Boards(4, folder=folder) as boards:
        program = Program(boards, folder / "home")
        program.declare()
        for _ in range(repetitions):
            found["up"].append(program.run("up"))
            found["again"].append(program.run("up"))
            found["status"].append(program.run("status"))
            found["doctor"].append(program.run("doctor", codes=(0, 5)))
            program.run("uninstall", "--yes")
        look = [sys.executable, "-c", LOOK, str(program.home), boards.nodes[0].name]
        words = boards.on_driver([*look, str(repetitions)]).stdout.split()
        found["look at a board"] = [float(word) for word in words]
        boards.sudo_asks(1)
        boards.new_host_key(2)
        boards.cut(3)
        found[HINDERED] = [program.run("doctor", codes=(5,)) for _ in range(repetitions)]
    return found


def many(folder: Path, repetitions: int) -> dict[str, list[float]]:
    """Measure ``status`` of 64 nodes with two sleeping processes each; then with some that hang."""
    adopt_orphans()
    with Boards(MANY, folder=folder) as boards:
        program = Program(boards, folder / "home")
        program.declare()
        daemons = []
        for index, node in enumerate(boards.nodes):
            boards.run_on(index, ["useradd", "--system", "--no-create-home", SERVICE_USER])
            boards.run_on(index, ["mkdir", "-p", "/var/lib/boardcluster/tmp"])
            daemons += [
                Daemon(node=node.name, name=name, process=sleeper(boards, index), log="", url="")
                for name in ("datanode", "nodemanager")
            ]
        save_state(
            program.home,
            LiveState(
                identity="benchmark",
                boot_id="",
                phase="up",
                own_user=False,
                subnet="198.18.44.0/24",
                kind="boards",
                nodes=tuple(
                    LiveNode(
                        name=node.name,
                        address=node.address,
                        pid=0,
                        start_ticks=0,
                        folder="/var/lib/boardcluster",
                        host=node.name,
                    )
                    for node in boards.nodes
                ),
                daemons=tuple(daemons),
            ),
        )
        found: dict[str, list[float]] = {"status of 64": [], OWN_CPU: []}
        for _ in range(repetitions):
            before = children_cpu_seconds()
            found["status of 64"].append(program.status())
            found[OWN_CPU].append(children_cpu_seconds() - before)
        for index in HANGING:
            boards.run_on(index, ["pkill", "-STOP", "sshd"])
        some = f"status of 64, {len(HANGING)} hang"
        return found | {some: [program.status(*HANGING) for _ in range(repetitions)]}


def adopt_orphans() -> None:
    """Become the parent of connections whose program has ended (PR_SET_CHILD_SUBREAPER)."""
    if ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def children_cpu_seconds() -> float:
    """CPU time of all that this process started and that has ended, shared connections included."""
    time.sleep(1.0)  # they are told to end, and not waited for
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sleeper(boards: Boards, index: int) -> ProcessRef:
    """Start a process of the service user that sleeps."""
    script = (
        "import json, subprocess; p = subprocess.Popen(['sleep', '600'], start_new_session=True, "
        "stdin=-3, stdout=-3, stderr=-3); "
        "print(json.dumps([p.pid, int(open(f'/proc/{p.pid}/stat').read().split()[21])]))"
    )
    done = boards.run_on(index, ["python3", "-c", script], user=SERVICE_USER)
    pid, ticks = json.loads(done.stdout)
    return ProcessRef(pid, ticks)


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", choices=("few", "many"))
    asked = parser.parse_args()
    repetitions = asked.repetitions
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "few").mkdir()
        (folder / "many").mkdir()
        if asked.only != "many":
            found = few(folder / "few", repetitions)
        if asked.only != "few":
            found |= many(folder / "many", repetitions)
    targets = {"up": 90, "again": 10, "status": 2, "doctor": 10, "look at a board": 3, HINDERED: 60}
    table = Table()
    table.head()
    for what, seconds in found.items():
        # The driver's share is a part of the row before, and has no goal of its own.
        table.row(what, seconds, "s", None if what == OWN_CPU else targets.get(what, 5))
    if table.missed:
        sys.exit(f"missed: {', '.join(table.missed)}")


if __name__ == "__main__":
    main()
