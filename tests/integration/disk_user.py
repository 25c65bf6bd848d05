"""A program that uses what its node is limited to, and prints one line of JSON. See limits_inside.

disk_user.py read FILE BLOCK_BYTES THREADS    read around the page cache for some seconds
disk_user.py write FILE BLOCK_BYTES THREADS   the same, but overwrite
disk_user.py make FILE BYTES                  write through the page cache, and fsync
disk_user.py dirty FILE BYTES                 the same without fsync
disk_user.py scan FILE                        read all of it through the page cache
disk_user.py take BYTES                       fill memory
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import threading
import time

WARM_UP_SECONDS = 1.0
SECONDS = 3.0
CHUNK_BYTES = 1 << 20


def direct(path: str, block_bytes: int, threads: int, *, writes: bool) -> dict[str, float]:
    """Use a file around the page cache; count the requests that end in some seconds."""
    handle = os.open(path, (os.O_WRONLY if writes else os.O_RDONLY) | os.O_DIRECT)
    blocks = os.fstat(handle).st_size // block_bytes
    begin = time.monotonic() + WARM_UP_SECONDS
    ended: list[float] = []

    def use(first: int) -> None:
        buffer = mmap.mmap(-1, block_bytes)  # memory of its own is aligned as O_DIRECT wants it
        block = first
        while (now := time.monotonic()) < begin + SECONDS:
            place = block % blocks * block_bytes
            if writes:
                assert os.pwritev(handle, [buffer], place) == block_bytes
            else:
                assert os.preadv(handle, [buffer], place) == block_bytes
            if now >= begin:
                ended.append(time.monotonic())
            block += threads

    users = [threading.Thread(target=use, args=(first,)) for first in range(threads)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    # From one end of a request to another: a window would cut the first and the last in pieces.
    ended.sort()
    rate = (len(ended) - 1) / (ended[-1] - ended[0])
    return {"requests_per_second": rate, "bytes_per_second": rate * block_bytes}


def make(path: str, size_bytes: int, *, durable: bool) -> dict[str, float]:
    """Write a file through the page cache; the time includes fsync if it is to be durable."""
    data = os.urandom(CHUNK_BYTES)
    begin = time.monotonic()
    with open(path, "wb", buffering=0) as stream:  # noqa: PTH123  fewer imports, faster start
        for _ in range(size_bytes // CHUNK_BYTES):
            stream.write(data)
        if durable:
            os.fsync(stream.fileno())
    return {"bytes_per_second": size_bytes / (time.monotonic() - begin)}


def scan(path: str) -> dict[str, float]:
    """Read a file through the page cache."""
    size_bytes = 0
    begin = time.monotonic()
    with open(path, "rb", buffering=0) as stream:  # noqa: PTH123
        while data := stream.read(CHUNK_BYTES):
            size_bytes += len(data)
    return {"bytes": size_bytes, "bytes_per_second": size_bytes / (time.monotonic() - begin)}


def take(size_bytes: int) -> dict[str, float]:
    """Fill memory of this process."""
    memory = mmap.mmap(-1, size_bytes)
    for place in range(0, size_bytes, mmap.PAGESIZE):
        memory[place] = 1
    return {"bytes": size_bytes}


def main(task: str, *words: str) -> None:
    """Do one task."""
    if task in {"read", "write"}:
        found = direct(words[0], int(words[1]), int(words[2]), writes=task == "write")
    elif task in {"make", "dirty"}:
        found = make(words[0], int(words[1]), durable=task == "make")
    elif task == "scan":
        found = scan(words[0])
    else:
        found = take(int(words[0]))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
