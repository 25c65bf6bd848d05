"""Ask an ASGI application without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message

__all__ = ["HOST", "ORIGIN", "Answered", "ask"]

HOST = "127.0.0.1:8470"
ORIGIN = f"http://{HOST}"


@dataclass(frozen=True)
class Answered:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    app: ASGIApp,
    path: str = "/",
    *,
    method: str = "GET",
    headers: Sequence[tuple[str, str]] = (("host", HOST),),
    body: bytes = b"",
) -> Answered:
    """Send one request and take the whole answer."""
    route, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": route,
        "raw_path": route.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8470),
    }
    sent: list[Message] = []

    questions: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if questions:
            return questions.pop()
        await asyncio.Event().wait()  # whoever asked stays and says nothing more
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    start = sent[0]
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answered(start["status"], found, b"".join(row.get("body", b"") for row in sent[1:]))
