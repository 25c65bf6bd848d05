"""Runs ON the master: asks the balancer and every server what they have counted, as one JSON.

    python3 -c THIS FOLDER NAME=URL...

The balancer's socket is in the folder, which we enter: its path may be too long for a socket.
Standard library only, like everything that runs on a node.
"""

import csv
import json
import os
import socket
import sys
import urllib.request

__all__ = ["balancer", "server"]

TIMEOUT_SECONDS = 10.0
NUMBERS = ("req_tot", "hrsp_2xx", "chkdown")
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Asks the server itself: a proxy that the environment names may not reach the nodes."""


def balancer(folder: str) -> dict[str, dict[str, object]]:
    """Return the counts of HAProxy by the name of a server; those of all together as FRONTEND."""
    os.chdir(folder)
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(TIMEOUT_SECONDS)
        link.connect("haproxy.sock")
        link.sendall(b"show stat\n")
        text = b"".join(iter(lambda: link.recv(65536), b"")).decode()
    rows = csv.DictReader(text.removeprefix("# ").splitlines())
    return {
        row["svname"]: {
            "status": row["status"],
            **{name: int(row.get(name) or 0) for name in NUMBERS},
        }
        for row in rows
        if row["svname"] != "BACKEND"
    }


def server(url: str) -> int:
    """Return how many requests an nginx has had, this one included (stub_status, third number).

    One that does not answer, as it is still away after a fault, has -1.
    """
    try:
        with DIRECT.open(url, timeout=TIMEOUT_SECONDS) as answer:
            return int(answer.read().decode().splitlines()[2].split()[2])
    except OSError:
        return -1


if __name__ == "__main__":
    named = [word.split("=", 1) for word in sys.argv[2:]]
    found = {
        "servers": {name: server(url) for name, url in named},
        "balancer": balancer(sys.argv[1]),
    }
    sys.stdout.write(json.dumps(found))
