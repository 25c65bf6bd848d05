"""Runs ON a worker: tells the balancer whether the worker's database may have work.

    python3 -c THIS ADDRESS PORT FOLDER DILATION

It answers 200 where the database is in step with the others and they are the majority, and else
503; in the body are its state and how many statements it has had. A donor that sends another server
only what that missed takes work as before; one that copies everything is closed to writes until
that is over (MariaDB, "Rapid Node Recovery with IST and the GCache"; Galera says of both only that
they are donors). It asks through one connection to the socket in the folder, and waits longer where
nodes are slower by a dilation. Standard library only, like everything that runs on a node.
"""

import contextlib
import os
import select
import socket
import subprocess
import sys

__all__ = ["Database", "answer_of", "copies_everything", "serve"]

CLIENT = ("mariadb", "--no-defaults", "--batch", "--skip-column-names", "--unbuffered",
          "--no-auto-rehash", "--socket=mariadb.sock")  # fmt: skip
NAMES = ("wsrep_local_state", "wsrep_cluster_status", "wsrep_cluster_size", "Questions")
DONOR, SYNCED = "2", "4"
COPYING, MISSED = b"wsrep_sst_", b"--bypass"
"""How the name begins of the program that makes a copy, and what it is told if none is needed."""
QUESTION = f"SHOW GLOBAL STATUS WHERE Variable_name IN ({', '.join(map(repr, NAMES))});\n"
PATIENCE_SECONDS = 2.0


class Database:
    """One connection to the database of this node, made anew whenever it is lost.

    Args:
        argv: the client.
        patience_seconds: for so long it may say nothing; then it counts as lost.
    """

    def __init__(
        self, argv: tuple[str, ...] = CLIENT, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._argv = argv
        self.patience_seconds = patience_seconds
        self._client: subprocess.Popen[bytes] | None = None

    def ask(self) -> dict[str, str]:
        """Return its state by name; empty if it does not answer."""
        if self._client is None or self._client.poll() is not None:
            # Its messages go where ours go: into the service's log.
            self._client = subprocess.Popen(
                self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        try:
            return self._exchange(self._client)
        except (OSError, EOFError, TimeoutError):
            self.close()
            return {}

    def close(self) -> None:
        """End the connection."""
        if self._client is not None:
            self._client.kill()
            self._client.communicate()
            self._client = None

    def _exchange(self, client: "subprocess.Popen[bytes]") -> dict[str, str]:
        if client.stdin is None or client.stdout is None:
            raise EOFError
        client.stdin.write(QUESTION.encode())
        client.stdin.flush()
        text = b""
        while text.count(b"\n") < len(NAMES):
            ready, _, _ = select.select([client.stdout], [], [], self.patience_seconds)
            if not ready:
                raise TimeoutError
            part = os.read(client.stdout.fileno(), 65536)
            if not part:
                raise EOFError
            text += part
        rows = [line.split("\t") for line in text.decode().splitlines()]
        return {row[0]: row[-1] for row in rows}


def copies_everything(proc: str = "/proc") -> bool:
    """Say whether a donor of this node copies all of its data."""
    for name in filter(str.isdecimal, os.listdir(proc)):
        with contextlib.suppress(OSError):  # it ended a moment ago
            with open(f"{proc}/{name}/cmdline", "rb") as stream:
                words = stream.read().split(b"\0")
            is_copy = any(os.path.basename(word).startswith(COPYING) for word in words)
            if is_copy and b"donor" in words and MISSED not in words:
                return True
    return False


def answer_of(state: dict[str, str]) -> bytes:
    """Return the answer for a state."""
    step = state.get(NAMES[0])
    fit = step == SYNCED or (step == DONOR and not copies_everything())
    fit = fit and state.get(NAMES[1]) == "Primary"
    body = " ".join(f"{name} {state.get(name, '-')}" for name in NAMES) + "\n"
    status = "200 OK" if fit else "503 Service Unavailable"
    head = f"HTTP/1.0 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def serve(listener: socket.socket, database: Database) -> None:
    """Answer one after the other."""
    while True:
        link, _ = listener.accept()
        with link:
            link.settimeout(database.patience_seconds)
            try:
                link.recv(65536)
                link.sendall(answer_of(database.ask()))
            except OSError:
                continue


if __name__ == "__main__":
    os.chdir(sys.argv[3])
    patient = Database(patience_seconds=PATIENCE_SECONDS * float(sys.argv[4]))
    serve(socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=64), patient)
