"""Runs ON a node: sends messages of fixed size back and forth over TCP and times each round trip.

``serve`` answers each message, once all of it is there, with one of the same size. ``measure``
sends one, waits for the answer, and takes the time. A connection carries one size, which its first
four bytes give; size 0 ends the server. Both end by themselves: an alarm of the kernel ends a
process whose driver is gone.
"""

from __future__ import annotations

import gc
import json
import signal
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["measure", "one_size", "prepare", "receive", "serve"]

LARGEST_BYTES = 1 << 20
ANSWER_SECONDS = 10.0


def receive(connection: socket.socket, view: memoryview) -> bool:
    """Fill a buffer; answer False if the other end closed before."""
    have = 0
    while have < len(view):
        count = connection.recv_into(view[have:])
        if not count:
            return False
        have += count
    return True


def prepare(connection: socket.socket) -> None:
    """Send at once what is to be sent: Nagle's algorithm would wait for acknowledgements."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(ANSWER_SECONDS)


def serve(request: dict[str, Any]) -> dict[str, int]:
    """Answer messages on ``address`` and ``port``, for at most ``longest_seconds``."""
    signal.alarm(request["longest_seconds"])
    messages = 0
    with socket.create_server((request["address"], request["port"])) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                prepare(connection)
                head = bytearray(4)
                size_bytes = 0
                if receive(connection, memoryview(head)):
                    size_bytes = int.from_bytes(head, "big")
                    if size_bytes == 0:
                        return {"messages": messages}
                if not 0 < size_bytes <= LARGEST_BYTES:
                    continue
                view = memoryview(bytearray(size_bytes))
                try:
                    while receive(connection, view):
                        connection.sendall(view)
                        messages += 1
                except OSError:
                    continue  # the other end was ended; somebody may connect again


def one_size(request: dict[str, Any], size_bytes: int) -> list[int]:
    """Time round trips of one size; the first ones, which warm up, are left out."""
    address = (request["address"], request["port"])
    rounds = []
    with socket.create_connection(address, timeout=ANSWER_SECONDS) as connection:
        prepare(connection)
        connection.sendall(size_bytes.to_bytes(4, "big"))
        message = bytes(size_bytes)
        view = memoryview(bytearray(size_bytes))
        deadline = time.monotonic() + request["most_seconds"]
        for index in range(request["warm_up"] + request["samples"]):
            began = time.perf_counter_ns()
            connection.sendall(message)
            if not receive(connection, view):
                raise ConnectionError("the other end closed the connection")
            ended = time.perf_counter_ns()
            if index >= request["warm_up"]:
                rounds.append(ended - began)
                if time.monotonic() > deadline:
                    break
    return rounds


def measure(request: dict[str, Any]) -> list[list[Any]]:
    """Answer [size, round trips in nanoseconds] for each of ``sizes_bytes``; end the server."""
    signal.alarm(request["longest_seconds"])
    gc.disable()
    rows = [[size_bytes, one_size(request, size_bytes)] for size_bytes in request["sizes_bytes"]]
    address = (request["address"], request["port"])
    with socket.create_connection(address, timeout=ANSWER_SECONDS) as connection:
        connection.sendall(bytes(4))
    return rows


if __name__ == "__main__":
    _request = json.loads(sys.argv[1]) if len(sys.argv) > 1 else json.load(sys.stdin)
    json.dump({"serve": serve, "measure": measure}[_request["do"]](_request), sys.stdout)
