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
import sys
import time

TYPE_CHECKING = False
"""Type checkers take this for true; what only some requests need is imported there, too. Dozens of
these programs run between two measurements, and ``typing`` alone takes as long to load as the rest.
"""

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PROC = "/proc"
HTTP_BYTES_MAX = 24 << 20
"""Of one answer that is not written to a file; that of a gigabyte would not fit a board."""
BOOT_ID = "/proc/sys/kernel/random/boot_id"
DROP_CACHES = "/proc/sys/vm/drop_caches"
MOUNTS = "/proc/self/mountinfo"
DEVICES = "/sys/dev/block"
ZONES = "/sys/class/thermal"
WCHAR, WRITE_BYTES = 3, 11
IO_COUNTERS = {
    "rchar": 1,
    "wchar": WCHAR,
    "read_bytes": 9,
    "write_bytes": WRITE_BYTES,
    "cancelled_write_bytes": 13,
}
"""Counters of /proc/PID/io, and the place of their values among its words."""
RUN_MARK = "BOARDCLUSTER_RUN"
"""In the environment of a command that the driver waits for; not of what is to outlive it."""
SUPERVISE = """\
read began rest </proc/uptime
"$@" >"$0/stdout" 2>"$0/stderr"
status=$?
read ended rest </proc/uptime
echo "$status $began $ended" >"$0/status.new" && mv "$0/status.new" "$0/status"
"""
"""Runs a job in a folder, $0. It stays a shell, because a board has better uses for memory."""
NOT_PERMITTED = "not permitted for this user"


def start(request: dict[str, Any]) -> dict[str, int | None]:
    """Start ``argv`` detached, output to ``log``; answer its pid and start time.

    The child is orphaned on purpose (we exit), so that the node's init reaps it.
    """
    import subprocess

    with open(request["log"], "ab", buffering=0) as log:
        child = subprocess.Popen(
            request["argv"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=request["cwd"],
            env={**inherited(), **request["env"]},
            start_new_session=True,
        )
    child.returncode = 0  # detached: never wait for it
    return {"pid": child.pid, "start_ticks": stat_of(child.pid)[1]}


def inherited() -> dict[str, str]:
    """Return our environment for what outlives the command that we are."""
    return {name: value for name, value in os.environ.items() if name != RUN_MARK}


def job_start(request: dict[str, Any]) -> dict[str, Any]:
    """Start ``argv`` with a supervisor in ``folder``, which must be new; answer the job's state.

    If the folder is there, the job was started before: then nothing is started.
    """
    import subprocess

    folder = request["folder"]
    try:
        os.makedirs(folder, 0o700)
    except FileExistsError:
        # Whoever made the folder may be about to say which process it is.
        deadline = time.monotonic() + 5
        while not os.access(f"{folder}/supervisor", os.F_OK) and time.monotonic() < deadline:
            time.sleep(0.05)
        return job_state(folder)
    child = subprocess.Popen(
        ["sh", "-c", SUPERVISE, folder, *request["argv"]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={**inherited(), **request["env"]},
        start_new_session=True,
    )
    child.returncode = 0  # detached: never wait for it
    row = {"pid": child.pid, "start_ticks": stat_of(child.pid)[1], **boot()}
    with open(f"{folder}/supervisor.new", "w") as stream:
        json.dump(row, stream)
    os.rename(f"{folder}/supervisor.new", f"{folder}/supervisor")
    return job_state(folder)


def supervisor_of(folder: str) -> dict[str, Any] | None:
    """Return the process that supervises a job, if it was started and this is the same boot."""
    try:
        with open(f"{folder}/supervisor") as stream:
            row: dict[str, Any] = json.load(stream)
    except FileNotFoundError:
        return None
    return row if row["boot_id"] == boot()["boot_id"] else None


def job_state(folder: str) -> dict[str, Any]:
    """Return whether a job is ``running``, ``ended``, or why it is neither.

    With an end come its ``status``, and by this node's clock the ``seconds`` that it took and the
    ``seconds_ago`` that it ended.
    ``absent``: no folder. ``rebooted``: the node was started anew. ``lost``: its supervisor is gone
    without a status.
    """
    row = supervisor_of(folder)
    if row is not None and same(row["pid"], row["start_ticks"]):
        return {"state": "running"}
    try:
        with open(f"{folder}/status") as stream:
            status, began, ended = stream.read().split()
        with open("/proc/uptime") as stream:
            now = stream.read().split()[0]
        seconds, ago = float(ended) - float(began), float(now) - float(ended)
        return {"state": "ended", "status": int(status), "seconds": seconds, "seconds_ago": ago}
    except FileNotFoundError:
        pass
    if not os.access(folder, os.F_OK):
        return {"state": "absent"}
    started = os.access(f"{folder}/supervisor", os.F_OK)
    return {"state": "rebooted" if row is None and started else "lost"}


def job_wait(request: dict[str, Any]) -> dict[str, Any]:
    """Wait, for at most ``seconds``, until the job in ``folder`` has ended; answer its state."""
    import select

    row = supervisor_of(request["folder"])
    if row is not None:
        deadline = time.monotonic() + request["seconds"]
        try:
            descriptor = os.pidfd_open(row["pid"])
        except ProcessLookupError:
            pass
        except (AttributeError, OSError):  # before Python 3.9, or Linux 5.3
            while same(row["pid"], row["start_ticks"]) and time.monotonic() < deadline:
                time.sleep(0.1)
        else:
            if same(row["pid"], row["start_ticks"]):
                select.select([descriptor], [], [], request["seconds"])
            os.close(descriptor)
    return job_state(request["folder"])


def job_end(request: dict[str, Any]) -> dict[str, str]:
    """End all that carries the job's ``mark``, remove its ``folder``; answer the end of stderr."""
    import shutil

    for _ in range(5):  # what is ended may start something a moment before
        if end_marked(request)["ended"] == 0:
            break
    words = b""
    with contextlib.suppress(OSError), open(f"{request['folder']}/stderr", "rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - 4096))
        words = stream.read()
    shutil.rmtree(request["folder"], ignore_errors=True)
    return {"stderr": words.decode("utf-8", "replace")}


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


def of_user(request: dict[str, Any]) -> list[list[int]]:
    """Answer [pid, start ticks] of every process of a ``user``, except this one.

    None of them if there is no such user.
    """
    import pwd

    try:
        uid = pwd.getpwnam(request["user"]).pw_uid
    except KeyError:
        return []
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                state, ticks = stat_of(int(name))
                if os.stat(f"/proc/{name}").st_uid == uid and state not in (None, "Z", "X"):
                    found.append([int(name), ticks or 0])
    return found


def end_of_user(request: dict[str, Any]) -> dict[str, int | str]:
    """End every process of a ``user``, as ``end`` does; answer how many there were.

    Who logs in as that user gets nothing but that answer: it would be their own session.
    """
    if (login := os.environ.get("SUDO_USER", "")) == request["user"]:
        return {"login": login}
    ended: set[tuple[int, int]] = set()
    for _ in range(5):  # what is ended may start something a moment before
        found = of_user(request)
        if not found:
            break
        end({"processes": found, "grace_seconds": request["grace_seconds"]})
        ended.update((pid, ticks) for pid, ticks in found)
    left = {(pid, ticks) for pid, ticks in of_user(request)}
    return {"ended": len(ended - left), "left": len(left)}


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
    # For https only, and it takes a third of the time that http.client takes to load.
    sys.modules.setdefault("ssl", None)  # type: ignore[arg-type]
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
            body = response.read(HTTP_BYTES_MAX + 1)
            answer["body"] = body.decode("utf-8", "replace")
            if len(body) > HTTP_BYTES_MAX:
                return {"status": 0, "location": None, "body": "the answer is too long"}
        if response.length:  # read() says nothing of a connection that was closed too early
            words = f"the answer broke off: its last {response.length} bytes are missing"
            return {"status": 0, "location": None, "body": words}
    except (OSError, http.client.HTTPException) as error:
        return {"status": 0, "location": None, "body": f"{type(error).__name__}: {error}"}
    else:
        return answer
    finally:
        connection.close()


def http_requests(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Perform each of ``requests`` in turn."""
    return [one_http(item) for item in request["requests"]]


def storage(_request: dict[str, Any] | None = None) -> dict[str, int]:
    """Sum ``/proc/PID/io`` over every process of this node's PID namespace, except this one.

    The kernel adds the counters of a child that was waited for to its parent's (wait_task_zombie,
    do_io_accounting), so the sum keeps what ended containers did as long as their NodeManager
    lives. Lost are children of a process that ignores SIGCHLD, and programs that entered the
    namespace from outside, as soon as they end.

    ``bounded`` is ``write_bytes`` where no process counts more than it passed to write calls: a
    page cache of large folios charges a whole folio, a megabyte say, for each synchronous write of
    a few bytes into it, as NameNode's edit log makes them. ``unreadable`` counts processes of
    other users.
    """
    totals = dict.fromkeys(IO_COUNTERS, 0)
    unreadable = bounded = 0
    own = str(os.getpid())
    for name in os.listdir(PROC):
        if not name.isdecimal() or name == own:
            continue
        try:
            # Asked often and of every process, so without the layers of open().
            descriptor = os.open(f"{PROC}/{name}/io", os.O_RDONLY)
            try:
                words = os.read(descriptor, 4096).split()
            finally:
                os.close(descriptor)
        except PermissionError:
            unreadable += 1
            continue
        except OSError:
            continue  # it ended a moment ago
        for label, place in IO_COUNTERS.items():
            totals[label] += int(words[place])
        bounded += min(int(words[WCHAR]), int(words[WRITE_BYTES]))
    return {**totals, "bounded": bounded, "unreadable": unreadable}


def moment(request: dict[str, Any]) -> dict[str, Any]:
    """Answer this node's clocks, as near to each other as can be, and what is free in a folder."""
    clocks = {"monotonic_seconds": time.monotonic(), "wall_seconds": time.time()}
    room = os.statvfs(request["folder"])
    return {**clocks, **boot(), "free_bytes": room.f_bavail * room.f_frsize}


def boot(_request: dict[str, Any] | None = None) -> dict[str, str]:
    """Answer the id of the running kernel's boot: nodes that share a kernel have the same."""
    with open(BOOT_ID) as stream:
        return {"boot_id": stream.read().strip()}


def drop_caches(_request: dict[str, Any]) -> dict[str, Any]:
    """Write back what is dirty, then drop page cache, dentries and inodes of the whole kernel."""
    os.sync()
    reason = ""
    try:
        with open(DROP_CACHES, "w") as stream:
            stream.write("3")
    except PermissionError:  # EACCES, EPERM
        reason = NOT_PERMITTED
    except OSError as error:
        reason = f"{DROP_CACHES}: {error.strerror}"
    return {"dropped": not reason, "reason": reason, **boot()}


def mount_of(folder: str) -> tuple[str, str, str]:
    """Return mount point, device as ``MAJOR:MINOR`` and source of the mount that holds a folder."""
    import re

    path = os.path.realpath(folder)
    best = ("", "", "")
    with open(MOUNTS) as stream:
        for line in stream:
            head, _, tail = line.partition(" - ")
            fields = head.split()
            point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4])
            inside = path == point or path.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best[0]):  # a later mount covers an earlier one
                best = (point, fields[2], tail.split()[1])
    return best


def discards(device: str, source: str) -> bool:
    """Whether a block device takes discards; of a partition, whether its disk does."""
    if device.startswith("0:") and source.startswith("/dev/"):  # btrfs hides the device
        with contextlib.suppress(OSError):
            number = os.lstat(os.path.realpath(source)).st_rdev
            device = f"{os.major(number)}:{os.minor(number)}"
    path = os.path.realpath(f"{DEVICES}/{device}")
    for folder in (path, path.rpartition("/")[0]):
        try:
            with open(f"{folder}/queue/discard_max_bytes") as stream:
                return int(stream.read()) > 0
        except (OSError, ValueError):
            continue
    return False


def run_fstrim(mount: str) -> tuple[int, str]:
    """Run ``fstrim``; return the bytes it discarded, and why it did not."""
    import re
    import subprocess

    try:
        done = subprocess.run(
            ["fstrim", "-v", mount],
            capture_output=True,
            text=True,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        return 0, "the program fstrim is missing"
    if done.returncode == 0:
        found = re.search(r"(\d+) bytes", done.stdout)
        return (int(found[1]), "") if found else (0, "fstrim does not say how much")
    words = done.stderr.strip()
    if "not permitted" in words or "Permission denied" in words:
        return 0, NOT_PERMITTED
    return 0, words.rsplit("\n", 1)[-1] or f"fstrim ended with status {done.returncode}"


def trim(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Discard the unused blocks of each file system that holds one of ``folders``, once.

    File systems on a device in ``skip`` (``MAJOR:MINOR``) are left out: done from another node.
    """
    done = set(request["skip"])
    answers = []
    for folder in request["folders"]:
        mount, device, source = mount_of(folder)
        if device in done:
            continue
        done.add(device)
        trimmed, reason = 0, "its device does not support it"
        if discards(device, source):
            trimmed, reason = run_fstrim(mount)
        answers.append(
            {"mount": mount, "device": device, "trimmed_bytes": trimmed, "reason": reason}
        )
    return answers


def temperatures(_request: dict[str, Any]) -> dict[str, float | None]:
    """Answer the hottest thermal zone in degrees Celsius, or None where there is no sensor."""
    found = []
    for name in os.listdir(ZONES) if os.access(ZONES, os.F_OK) else []:
        try:
            with open(f"{ZONES}/{name}/temp") as stream:
                found.append(int(stream.read()) / 1000)
        except (OSError, ValueError):
            continue  # a cooling device, or a sensor that sleeps
    return {"hottest_celsius": max(found, default=None)}


def reach(request: dict[str, Any]) -> list[dict[str, str]]:
    """Open, at once, a TCP connection to each of ``targets``, as [host, port], and close it.

    Answers ``ok``, ``refused`` (the host is there, nobody listens) or ``unreachable``, with words.
    """
    import socket
    import threading

    targets, patience = request["targets"], request["timeout_seconds"]
    answers = [{"state": "unreachable", "words": "timed out"} for _ in targets]

    def one(index: int, host: str, port: int) -> None:
        try:
            socket.create_connection((host, port), timeout=patience).close()
            answers[index] = {"state": "ok", "words": ""}
        except ConnectionRefusedError as error:
            answers[index] = {"state": "refused", "words": str(error.strerror)}
        except OSError as error:
            answers[index] = {"state": "unreachable", "words": error.strerror or str(error)}

    threads = [
        threading.Thread(target=one, args=(index, host, port), daemon=True)
        for index, (host, port) in enumerate(targets)
    ]
    deadline = time.monotonic() + patience + 0.5
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [dict(answer) for answer in answers]


def excerpt(request: dict[str, Any]) -> dict[str, int] | None:
    """Gather the files below a folder in another one, of long ones the end; answer what was cut.

    Without that folder the answer is null.

    Files that are taken whole are linked: nothing is copied that need not be. What is no ordinary
    file is left out, since whoever wrote it may have led it anywhere.
    """
    import shutil
    import stat

    source, target, left = request["source"], request["target"], request["total_bytes"]
    cut, left_out = 0, 0
    shutil.rmtree(target, ignore_errors=True)
    if not os.path.isdir(source):
        return None
    for folder, folders, names in os.walk(source):
        folders.sort()
        place = target + folder[len(source) :]
        os.makedirs(place)
        for name in sorted(names):
            path = f"{folder}/{name}"
            try:
                seen = os.lstat(path)
            except OSError:  # it was deleted a moment ago
                continue
            size = min(seen.st_size, request["file_bytes"])
            if not stat.S_ISREG(seen.st_mode):
                continue
            if size > left:
                left_out += 1
                continue
            left -= size
            if size == seen.st_size:
                os.link(path, f"{place}/{name}")
                continue
            cut += 1
            with open(path, "rb") as whole, open(f"{place}/{name}", "wb") as end:
                whole.seek(seen.st_size - size)
                end.write(whole.read(size))
    return {"cut": cut, "left_out": left_out}


def owner(request: dict[str, Any]) -> dict[str, Any] | None:
    """Answer who claimed this node, as that one wrote it; nothing if nobody did."""
    try:
        with open(request["path"], encoding="utf-8", errors="replace") as stream:
            found = json.loads(stream.read(1 << 16))
            return found if isinstance(found, dict) else {}
    except FileNotFoundError:
        return None
    except ValueError:
        return {}


def claim(request: dict[str, Any]) -> dict[str, Any]:
    """Claim this node unless it is another's, or even then; answer whose it is, and was before.

    Of several who ask at once one wins: a link is made by one alone. Who logs in as the service
    user gets nothing but that answer: whoever has the node ends all processes of that user.
    """
    path, mine = request["path"], request["owner"]
    if (login := os.environ.get("SUDO_USER")) == request["service_user"]:
        return {"login": login}
    before = owner(request)
    if before is not None and before.get("id") == mine["id"]:
        return {"now": before, "before": before}  # also of a file system that is read-only now
    fresh = "%s.%d" % (path, os.getpid())  # noqa: UP031  short to start
    before = None
    try:
        with open(fresh, "w", encoding="utf-8") as stream:
            json.dump(mine, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(fresh, path)
    except FileExistsError:
        before = owner(request) or {}
        if before.get("id") != mine["id"] and request["take_over"]:
            os.replace(fresh, path)
    except OSError as error:
        return {"error": error.strerror or str(error)}
    finally:
        with contextlib.suppress(OSError):
            os.unlink(fresh)
    return {"now": owner(request), "before": before}


def release(request: dict[str, Any]) -> bool:
    """Give up this node if it is the asker's; answer whether it was."""
    mine = bool((owner(request) or {}).get("id") == request["owner"]["id"])
    if mine:
        os.unlink(request["path"])
    return mine


VERBS: dict[str, Callable[[dict[str, Any]], object]] = {
    "start": start,
    "processes": processes,
    "end": end,
    "end_marked": end_marked,
    "of_user": of_user,
    "end_of_user": end_of_user,
    "job_start": job_start,
    "job_wait": job_wait,
    "job_end": job_end,
    "listening": listening,
    "http": http_requests,
    "storage": storage,
    "moment": moment,
    "boot": boot,
    "drop_caches": drop_caches,
    "trim": trim,
    "temperatures": temperatures,
    "reach": reach,
    "excerpt": excerpt,
    "owner": owner,
    "claim": claim,
    "release": release,
}


if __name__ == "__main__":
    _request = json.load(sys.stdin)
    json.dump(VERBS[_request["do"]](_request), sys.stdout)
