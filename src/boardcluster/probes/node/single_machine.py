"""Runs ON a node: makes input for one program, times it, and proves its output right.

``records`` writes records to sort, ``grow`` a text of a size, ``time`` runs a program or a pipeline
of several, ``sorted`` and ``lines`` read what it wrote. The checksum of records or lines is the sum
of the CRC-32 of each, which no order changes. Standard library only, on Python 3.9 and later.

A record has 100 bytes and is a line: a key of ten printable characters, two blanks, its number as
32 hexadecimal digits, two blanks, 52 letters, CR and LF.
Source: Chris Nyberg's gensort 1.1 (ordinal.com), "ASCII" records. The keys are not his.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
import zlib
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["grow", "lines", "records", "sorted_records", "time_stages"]

RECORD_BYTES = 100
KEY_BYTES = 10
CHUNK_RECORDS = 20_000
CHUNK_BYTES = 1 << 20
WORDS_BYTES = 2000

_PRINTABLE = bytes(32 + value % 95 for value in range(256))
_LETTERS = bytes(65 + value % 26 for value in range(256))


def records(request: dict[str, Any]) -> dict[str, int]:
    """Write ``count`` records to ``path``, the same ones for the same ``seed``."""
    source = random.Random(request["seed"])  # noqa: S311  nobody is to be kept from guessing it
    checksum = 0
    with Path(request["path"]).open("wb") as stream:
        for first in range(0, request["count"], CHUNK_RECORDS):
            chunk = _chunk(source, first, min(CHUNK_RECORDS, request["count"] - first))
            checksum += sum(
                zlib.crc32(chunk[place : place + RECORD_BYTES])
                for place in range(0, len(chunk), RECORD_BYTES)
            )
            stream.write(chunk)
        _flush(stream)
    return {"records": request["count"], "checksum": checksum}


def _chunk(source: random.Random, first: int, count: int) -> bytes:
    """Return consecutive records, column by column: a loop over records takes many times longer."""
    chunk = bytearray((b" " * 12 + b"0" * 32 + b" " * 54 + b"\r\n") * count)
    keys = source.randbytes(KEY_BYTES * count).translate(_PRINTABLE)
    for place in range(KEY_BYTES):
        chunk[place::RECORD_BYTES] = keys[place::KEY_BYTES]
    numbers = b"".join([b"%08X" % number for number in range(first, first + count)])
    for place in range(8):
        chunk[36 + place :: RECORD_BYTES] = numbers[place::8]
    letters = source.randbytes(13 * count).translate(_LETTERS)
    for place in range(52):
        chunk[46 + place :: RECORD_BYTES] = letters[place // 4 :: 13]
    return bytes(chunk)


def _flush(stream: Any) -> None:
    """Bring a file to storage: what is written back later would cost the program that is timed."""
    stream.flush()
    os.fsync(stream.fileno())


def sorted_records(request: dict[str, Any]) -> dict[str, int]:
    """Read records from ``path``: how many, their checksum, and how often a key is too small."""
    count = checksum = descents = 0
    before = b""
    with Path(request["path"]).open("rb") as stream:
        while chunk := stream.read(RECORD_BYTES * CHUNK_RECORDS):
            for place in range(0, len(chunk), RECORD_BYTES):
                record = chunk[place : place + RECORD_BYTES]
                checksum += zlib.crc32(record)
                key = record[:KEY_BYTES]
                if key < before:
                    descents += 1
                before = key
            count += -(-len(chunk) // RECORD_BYTES)
    return {"records": count, "checksum": checksum, "descents": descents}


def grow(request: dict[str, Any]) -> dict[str, int]:
    """Repeat the text ``source`` to ``size_bytes`` in ``path``, cut after its last whole line."""
    unit = Path(request["source"]).read_bytes()
    copies, rest = divmod(request["size_bytes"], len(unit))
    with Path(request["path"]).open("wb") as stream:
        for _ in range(copies):
            stream.write(unit)
        stream.write(unit[: unit.rfind(b"\n", 0, rest) + 1])
        _flush(stream)
        return {"size_bytes": stream.tell()}


def lines(request: dict[str, Any]) -> dict[str, int]:
    """Read lines from ``path``: how many, and their checksum, each without its end."""
    count = checksum = 0
    with Path(request["path"]).open("rb") as stream:
        while rows := stream.readlines(CHUNK_BYTES):
            checksum += sum(zlib.crc32(row[:-1] if row[-1:] == b"\n" else row) for row in rows)
            count += len(rows)
    return {"lines": count, "checksum": checksum}


def time_stages(request: dict[str, Any]) -> dict[str, Any]:
    """Run a pipeline in ``folder``, from nothing into the file ``output``; time it as a whole.

    The clock is the node's, because a connection adds tens of milliseconds.
    """
    os.chdir(request["folder"])
    log = os.open(".single.log", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    sink = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    source = os.open(os.devnull, os.O_RDONLY)
    environment = {**os.environ, "LC_ALL": "C"}
    pids = []
    began = time.monotonic()
    for place, argv in enumerate(request["stages"]):
        last = place == len(request["stages"]) - 1
        following, end = (-1, sink) if last else os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate((source, end, log))]
        pids.append(os.posix_spawnp(argv[0], argv, environment, file_actions=actions))
        os.close(source)
        os.close(end)
        source = following
    statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    seconds = time.monotonic() - began
    size = os.fstat(log).st_size
    words = os.pread(log, WORDS_BYTES, max(0, size - WORDS_BYTES)).decode("utf-8", "replace")
    Path(".single.log").unlink()
    return {"seconds": seconds, "statuses": statuses, "words": words}


VERBS = {
    "records": records,
    "sorted": sorted_records,
    "grow": grow,
    "lines": lines,
    "time": time_stages,
}

if __name__ == "__main__":
    _request = json.load(sys.stdin)
    json.dump(VERBS[_request["do"]](_request), sys.stdout)
