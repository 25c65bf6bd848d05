"""Runs ON a node, in place of ssh: it writes down what ``mpirun`` asks for, and ends well.

``mpirun`` calls its remote shell as ``AGENT HOST COMMAND...`` and needs only that the call ends
with 0, because the daemons it asks for detach themselves. The driver reads the file and starts
them.
Standard library only, like everything that runs on a node.
"""

import json
import os
import sys

__all__ = ["REQUESTS", "note"]

REQUESTS = "mpi-requests.jsonl"
"""One request per line, in the folder that mpirun was started in."""


def note(words: list[str]) -> None:
    """Append one request; one write of one line, so that no reader sees half of two."""
    line = json.dumps({"host": words[0], "command": " ".join(words[1:])}) + "\n"
    handle = os.open(REQUESTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


if __name__ == "__main__":
    note(sys.argv[1:])
