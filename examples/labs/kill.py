"""Kill one daemon of an emulated cluster, or a whole node, as a power cut would (SIGKILL).

    python3 examples/labs/kill.py STATE_JSON NODE [DAEMON]

STATE_JSON is the file `state.json` in the home of a cluster that is up. DAEMON is a name that
`boardcluster status` shows, such as datanode; without it the node's first process is killed, and
with it all others of the node. Needs no root where the cluster was started without. Standard
library only.
"""

import json
import os
import signal
import sys
from pathlib import Path


def main(arguments: list[str]) -> None:
    """Kill what was named, or end with the reason why not."""
    if len(arguments) not in (2, 3):
        sys.exit("use: python3 examples/labs/kill.py STATE_JSON NODE [DAEMON]")
    file, name, *daemon = arguments
    try:
        state = json.loads(Path(file).read_text())
    except FileNotFoundError:
        sys.exit(f"{file}: no such file; the cluster of this home is not up")
    nodes = {node["name"]: node["pid"] for node in state["nodes"]}
    daemons = {
        row["name"]: row["process"]["pid"] for row in state["daemons"] if row["node"] == name
    }
    if name not in nodes:
        sys.exit(f"no node is called {name}; there are {', '.join(nodes)}")
    if not {*daemon} <= {*daemons}:
        sys.exit(f"{name} has no daemon {daemon[0]}; it has {', '.join(daemons)}")
    pid = nodes[name]
    if daemon:
        pid = outside(pid, daemons[daemon[0]])
    if not pid or not Path(f"/proc/{pid}").exists():
        sys.exit(f"{' '.join([name, *daemon])}: has ended already")
    os.kill(pid, signal.SIGKILL)
    sys.stdout.write(f"killed {daemon[0] if daemon else 'everything'} on {name}\n")


def outside(first: int, inside: int) -> int:
    """Return this machine's number of a process that its node knows by another one; 0 if none.

    A node has a space of process ids of its own, in which ``first`` is the first.
    """
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            same = (entry / "ns/pid").readlink() == Path(f"/proc/{first}/ns/pid").readlink()
            status = (entry / "status").read_text()
        except OSError:  # another user's, or it has just ended
            continue
        numbers = next(row for row in status.splitlines() if row.startswith("NSpid:")).split()
        if same and int(numbers[-1]) == inside:
            return int(entry.name)
    return 0


if __name__ == "__main__":
    main(sys.argv[1:])
