"""Runs ON the master: one run of sysbench, and what it and its account came to as one JSON.

    python3 -c THIS '{"mode": "read_write", "threads": 8, ...}'

It runs in the folder with ledger.lua. In an open loop the rate is a share of what an earlier
run came to. Where a server is taken away meanwhile, the load lasts until the balancer has it again.
Standard library only, like everything that runs on a node.
"""

import csv
import glob
import json
import math
import os
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from typing import Any

__all__ = ["await_return", "command_of", "end_after_return", "main", "read_histogram",
           "read_ledgers", "read_report", "seen_by_balancer"]  # fmt: skip

IGNORED = "1213,1205,1020,1047,1180"
"""Errors after which it is tried again: undone by another transaction, the server is not ready, or
it left the others while it committed, as all do for a moment when one of them is gone (1180).
Of lost connections ledger.lua takes care."""
PERCENT = 100
POLL_SECONDS, TIMEOUT_SECONDS = 0.5, 5.0
OVER = "over"
"""A file: once it is there, clients that have done their share end."""
COUNTS = {
    "reads": r"^ +read: +(\d+)",
    "writes": r"^ +write: +(\d+)",
    "others": r"^ +other: +(\d+)",
    "transactions": r"^ +transactions: +(\d+)",
    "repeated": r"^ +ignored errors: +(\d+)",
}
SECONDS = r"^ +total time: +([\d.]+)s"
BUCKET = re.compile(r"^ *([\d.]+) \|[* ]* (\d+)$")


def command_of(asked: dict[str, Any], rate: float) -> list[str]:
    """Return the command of sysbench."""
    return [
        "sysbench",
        "ledger.lua",
        f"--config-file={asked['config']}",
        "--db-driver=mysql",
        f"--mysql-db={asked['database']}",
        f"--mysql-host={','.join(asked['hosts'])}",
        f"--mysql-port={asked['port']}",
        f"--mysql-ignore-errors={IGNORED}",
        f"--tables={asked['tables']}",
        f"--table-size={asked['rows']}",
        # The servers would leave gaps between the numbers that they make.
        "--auto-inc=off",
        f"--threads={asked['threads']}",
        # With a fault it is ledger.lua that ends them.
        f"--events={0 if asked.get('returns') else asked.get('transactions', 0)}",
        f"--time={0 if asked.get('returns') else asked.get('seconds', 0)}",
        f"--rate={round(rate)}",
        f"--rand-seed={asked['seed']}",
        "--histogram=on",
        asked.get("do", "run"),
    ]


def read_histogram(text: str) -> list[list[int]]:
    """Return the histogram of a report: upper edge in microseconds, count."""
    found = filter(None, map(BUCKET.match, text.splitlines()))
    return [[round(float(match[1]) * 1000), int(match[2])] for match in found]


def read_report(text: str) -> dict[str, Any]:
    """Return what sysbench reports, by name."""
    found: dict[str, Any] = {}
    for name, pattern in COUNTS.items():
        match = re.search(pattern, text, re.MULTILINE)
        if match is None:
            raise ValueError(f"sysbench reports no {name}")
        found[name] = int(match[1])
    match = re.search(SECONDS, text, re.MULTILINE)
    if match is None:
        raise ValueError("sysbench reports no time")
    found["seconds"] = float(match[1])
    found["latency_microseconds"] = read_histogram(text)
    return found


def read_ledgers(texts: dict[int, str]) -> dict[str, Any]:
    """Put together the accounts of the threads, each given by its number."""
    counts: dict[str, dict[int, int]] = {"good": {}, "lost": {}, "kind": {}}
    threads = {}
    for thread, text in sorted(texts.items()):
        own: dict[str, Any] = {"committed": [], "unknown": [], "last": 0}
        for line in text.splitlines():
            name, *numbers = line.split()
            if name == "committed":
                own["committed"].append([int(numbers[0]), int(numbers[1])])
            elif name == "unknown":
                own["unknown"].append(int(numbers[0]))
            elif name == "last":
                own["last"] = int(numbers[0])
            else:
                key, value = map(int, numbers)
                counts[name][key] = counts[name].get(key, 0) + value
        threads[str(thread)] = own
    good, lost = counts["good"], counts["lost"]
    tenths = [*good, *lost]
    series = []
    if tenths:
        begin, end = min(tenths), max(tenths)
        series = [[good.get(each, 0), lost.get(each, 0)] for each in range(begin, end + 1)]
    return {
        "threads": threads,
        "errors": {str(code): count for code, count in sorted(counts["kind"].items())},
        "series": series,
        "series_began_unix": min(tenths) / 10 if tenths else 0.0,
    }


def seen_by_balancer(folder: str, server: str) -> tuple[int, bool]:
    """Return how often HAProxy has found a server down, and whether it has it now.

    Args:
        folder: of its socket, whose whole path may be too long for one.
        server: the name it has for it.
    """
    place = os.open(folder, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(TIMEOUT_SECONDS)
            link.connect(f"/proc/self/fd/{place}/haproxy.sock")
            link.sendall(b"show stat\n")
            text = b"".join(iter(lambda: link.recv(65536), b"")).decode()
    finally:
        os.close(place)
    rows = csv.DictReader(text.removeprefix("# ").splitlines())
    row = next(row for row in rows if row["svname"] == server)
    return int(row["chkdown"]), row["status"].startswith("UP")


def await_return(asked: dict[str, Any], first: int) -> str:
    """Wait until the balancer has lost a server and has it again, without a break for some time.

    That may take as long as the load that was asked for, and after it as long as its patience.

    Args:
        asked: the run.
        first: how often the server had been found down before.

    Returns:
        What did not happen in time, in words; empty if all did.
    """
    returns, began = asked["returns"], time.monotonic()
    since: float | None = None
    ends = math.inf
    while True:
        downs, is_up = seen_by_balancer(returns["folder"], returns["server"])
        now = time.monotonic()
        since = (since or now) if is_up and downs > first else None
        if since is not None and now - since >= returns["steady_seconds"]:
            return ""
        if ends == math.inf and _is_made(asked, now - began):
            ends = now + returns["patience_seconds"]
        if now >= ends:
            what = "lost" if downs == first else "taken back"
            return (
                f"the balancer has not {what} {returns['server']} until "
                f"{returns['patience_seconds']:g} s after the load"
            )
        time.sleep(POLL_SECONDS)


def _is_made(asked: dict[str, Any], seconds: float) -> bool:
    """Say whether the load that was asked for has been made."""
    if "transactions" in asked:
        return len(glob.glob("share-*")) >= int(asked["threads"])
    return seconds >= float(asked["seconds"])


def end_after_return(asked: dict[str, Any], first: int, missing: list[str]) -> None:
    """Have the clients end when the server is back, and the load has lasted as long as asked.

    What did not happen in time is added to the words in ``missing``.
    """
    began = time.monotonic()
    try:
        if words := await_return(asked, first):
            missing.append(words)
        time.sleep(max(0.0, began + asked.get("seconds", 0) - time.monotonic()))
    finally:
        with open(OVER, "w"):
            pass


def main(asked: dict[str, Any]) -> int:
    """Run it; write result.json, unless it only prepares."""
    exact = rate = 0.0
    if "of" in asked:
        with open(asked["of"]) as stream:
            earlier = json.load(stream)
        exact = earlier["transactions"] / earlier["seconds"] * asked["share"] / PERCENT
        # sysbench takes whole numbers, and what it came to is held against what it was asked for.
        rate = float(max(1, round(exact)))
    env = {
        **os.environ,
        "LEDGER_MODE": asked["mode"],
        "LEDGER_PHASE": str(asked["phase"]),
        "LEDGER_WRITES": "yes" if asked["ledger"] else "no",
        "LEDGER_PAUSE_MILLISECONDS": str(asked["pause_milliseconds"]),
    }
    missing: list[str] = []
    if returns := asked.get("returns"):
        env["LEDGER_SHARE"] = str(-(-asked.get("transactions", 0) // asked["threads"]))
        first, _ = seen_by_balancer(returns["folder"], returns["server"])
        given = (asked, first, missing)
        threading.Thread(target=end_after_return, args=given, daemon=True).start()
    began = time.time()
    done = subprocess.run(
        command_of(asked, rate), env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    sys.stdout.write(done.stdout)
    if missing:
        sys.stderr.write(f"{missing[0]}; see the logs on that node\n")
        return 1
    if done.returncode:
        # What sysbench could not go on with is in what it printed, among much else.
        lines = [line for line in done.stdout.splitlines() if "FATAL" in line]
        words = lines[0] if lines else f"sysbench ended with status {done.returncode}"
        sys.stderr.write(f"{words}\n")
        return 1
    if asked.get("do", "run") != "run":
        return 0
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    texts = {}
    for path in glob.glob("ledger-*.txt"):
        with open(path) as stream:
            texts[int(path[len("ledger-") : -len(".txt")])] = stream.read()
    result = {
        **read_report(done.stdout),
        **read_ledgers(texts),
        "rate": rate,
        "exact_rate": exact,
        "began_unix": began,
        "cpu_seconds": used.ru_utime + used.ru_stime,
    }
    with open("result.json", "w") as stream:
        json.dump(result, stream)
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
