"""Runs ON a node: one request as JSON on standard input, one answer as JSON on standard output.

Standard library only and self-contained, because a board needs nothing but python3: the driver
sends this file's text as the argument of ``python3 -c``. Talks to daemons from inside the cluster,
where their addresses are reachable, without paying for a JVM per question.

Requests are ``{"do": VERB, ...}``; see the functions for their fields.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from typing import Any


def start(request: dict[str, Any]) -> dict[str, int | None]:
    """Start ``argv`` detached, output to ``log``; answer its pid and start time.

    The child is orphaned on purpose (we exit), so that the node's init reaps it.
    """
    with open(request["log"], "ab", buffering=0) as log:
        child = subprocess.Popen(
            request["argv"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=request["cwd"],
            env={**os.environ, **request["env"]},
            start_new_session=True,
        )
    child.returncode = 0  # detached: never wait for it
    return {"pid": child.pid, "start_ticks": stat_of(child.pid)[1]}


def stat_of(pid: int) -> tuple[str, int] | tuple[None, None]:
    """Return (state, start ticks) of a process, or (None, None) if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            fields = stream.read().rsplit(b")", 1)[1].split()
    except OSError:
        return None, None
    return fields[0].decode(), int(fields[19])


def same(pid: int, start_ticks: int) -> bool:
    """Whether exactly this process is alive (a zombie is not)."""
    state, ticks = stat_of(pid)
    return ticks == start_ticks and state not in ("Z", "X")


def processes(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Answer for each ``[pid, start_ticks]``: alive, resident and proportional bytes."""
    answer = []
    for pid, ticks in request["processes"]:
        entry = {"alive": same(pid, ticks), "resident_bytes": 0, "proportional_bytes": 0}
        if entry["alive"]:
            try:
                with open(f"/proc/{pid}/smaps_rollup") as stream:
                    for line in stream:
                        if line.startswith("Rss:"):
                            entry["resident_bytes"] = int(line.split()[1]) * 1024
                        elif line.startswith("Pss:"):
                            entry["proportional_bytes"] = int(line.split()[1]) * 1024
            except OSError:
                pass
        answer.append(entry)
    return answer


def send(pid: int, signum: int) -> None:
    """Send a signal to a process that may have ended a moment ago."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signum)


def end(request: dict[str, Any]) -> dict[str, int]:
    """Send SIGTERM to each process, wait, SIGKILL what is left; answer how many were killed."""
    victims = [(pid, ticks) for pid, ticks in request["processes"] if same(pid, ticks)]
    for pid, _ in victims:
        send(pid, 15)
    deadline = time.monotonic() + request["grace_seconds"]
    while any(same(*victim) for victim in victims) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [victim for victim in victims if same(*victim)]
    for pid, _ in left:
        send(pid, 9)
    return {"killed": len(left)}


def end_marked(request: dict[str, Any]) -> dict[str, int]:
    """End every process of this node whose environment holds ``mark``, as ``end`` does."""
    mark = request["mark"].encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as stream:
                    marked = mark in stream.read().split(b"\0")
            except OSError:
                continue
            ticks = stat_of(int(name))[1]
            if marked and ticks is not None:
                found.append([int(name), ticks])
    end({"processes": found, "grace_seconds": request["grace_seconds"]})
    return {"ended": len(found)}


def listening(request: dict[str, Any]) -> list[int]:
    """Answer which of ``ports`` some process listens on, as IPv4 or IPv6."""
    wanted = set(request["ports"])
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as stream:
                next(stream)
                for line in stream:
                    fields = line.split()
                    if fields[3] == "0A":
                        found.add(int(fields[1].rsplit(":", 1)[1], 16))
        except OSError:
            continue
    return sorted(wanted & found)


def one_http(item: dict[str, Any]) -> dict[str, Any]:
    """Perform one request; ``source`` sends a file, ``target`` stores the body in a file."""
    import http.client
    from urllib.parse import urlsplit

    parts = urlsplit(item["url"])
    connection = http.client.HTTPConnection(
        parts.hostname, parts.port, timeout=item["timeout"], blocksize=1 << 20
    )
    path = parts.path + ("?" + parts.query if parts.query else "")
    headers = {"Accept": "application/json", **item.get("headers", {})}
    body = item["body"].encode() if item.get("body") is not None else None
    try:
        if item.get("source"):
            with open(item["source"], "rb") as stream:
                headers["Content-Length"] = str(os.fstat(stream.fileno()).st_size)
                headers["Content-Type"] = "application/octet-stream"
                connection.request(item["method"], path, body=stream, headers=headers)
        else:
            connection.request(item["method"], path, body=body, headers=headers)
        response = connection.getresponse()
        answer = {"status": response.status, "location": response.getheader("Location")}
        answer["body"] = ""
        if item.get("target") and response.status == 200:
            with open(item["target"], "wb") as stream:
                while chunk := response.read(1 << 20):
                    stream.write(chunk)
        else:
            answer["body"] = response.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return {"status": 0, "location": None, "body": f"{type(error).__name__}: {error}"}
    else:
        return answer
    finally:
        connection.close()


def http_requests(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Perform each of ``requests`` in turn."""
    return [one_http(item) for item in request["requests"]]


VERBS = {
    "start": start,
    "processes": processes,
    "end": end,
    "end_marked": end_marked,
    "listening": listening,
    "http": http_requests,
}


if __name__ == "__main__":
    _request = json.load(sys.stdin)
    json.dump(VERBS[_request["do"]](_request), sys.stdout)
