"""Runs ON the master: asks every server what it holds and what it has counted, as one JSON.

    python3 -c THIS CLIENT-FILE DATABASE TABLES PORT NAME=ADDRESS...

Each server first waits for what the others have committed. Standard library only, like everything
that runs on a node.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator

__all__ = ["ask", "audit", "ranges", "stream"]

COUNTERS = ("Com_select", "wsrep_cluster_size", "wsrep_cluster_status", "wsrep_cluster_state_uuid",
            "wsrep_last_committed", "wsrep_local_state_comment")  # fmt: skip
SUMS = (
    "SELECT COUNT(*), COALESCE(SUM(id), 0), COALESCE(SUM(k), 0), "
    "COALESCE(SUM(CRC32(CONCAT_WS('#', id, k, c, pad))), 0), "
    "BIT_XOR(CAST(CONV(LEFT(SHA1(CONCAT_WS('#', id, k, c, pad)), 16), 16, 10) AS UNSIGNED)) "
    "FROM sbtest{number} FORCE INDEX (PRIMARY)"
)
LEDGER = "SELECT * FROM ledger ORDER BY phase, thread, number"
PATIENCE_SECONDS = 3600.0


def ask(base: list[str], question: str) -> list[list[str]]:
    """Return the rows of an answer."""
    done = subprocess.run(
        base,
        input=question,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    if done.returncode:
        raise SystemExit(f"{base[-2]}: {done.stderr.strip()}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def stream(base: list[str], question: str) -> Iterator[list[str]]:
    """Yield the rows of an answer that may be larger than memory, as they come."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            base, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
        )
        late = threading.Timer(PATIENCE_SECONDS, process.kill)
        late.start()
        try:
            with process, process.stdin or said as asking, process.stdout or said as rows:
                with contextlib.suppress(BrokenPipeError):  # its status tells
                    asking.write(question)
                    asking.close()
                for line in rows:
                    yield line.rstrip("\n").split("\t")
        finally:
            late.cancel()
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{base[-2]}: {said.read().strip()}")


def ranges(rows: Iterable[list[str]]) -> dict[str, list[list[int]]]:
    """Return rows of (phase, thread, number), in order, as ranges without gaps by phase:thread."""
    found: dict[str, list[list[int]]] = {}
    for phase, thread, text in rows:
        own, number = found.setdefault(f"{phase}:{thread}", []), int(text)
        if own and own[-1][1] == number - 1:
            own[-1][1] = number
        else:
            own.append([number, number])
    return found


def audit(base: list[str], tables: int) -> dict[str, object]:
    """Return what one server holds."""
    names = ", ".join(map(repr, COUNTERS))
    wait = "SET SESSION wsrep_sync_wait = 1; "
    # What it counts is whole only once it has waited. The begin of a transaction waits as a SELECT
    # does, and is not counted among those.
    first = f"{wait}START TRANSACTION; COMMIT; "
    counters = ask(base, f"{first}SHOW GLOBAL STATUS WHERE Variable_name IN ({names})")
    sums = [ask(base, wait + SUMS.format(number=number))[0] for number in range(1, tables + 1)]
    return {
        "counters": {row[0]: row[1] for row in counters},
        "tables": sums,
        "ledger": ranges(stream(base, wait + LEDGER)),
    }


if __name__ == "__main__":
    file, database, tables, port = sys.argv[1:5]
    found = {}
    for word in sys.argv[5:]:
        name, address = word.split("=", 1)
        command = [
            *("mariadb", f"--defaults-file={file}", "--batch", "--skip-column-names", "--quick"),
            *(f"--port={port}", "--connect-timeout=30", f"--host={address}", database),
        ]
        found[name] = audit(command, int(tables))
    sys.stdout.write(json.dumps(found))
