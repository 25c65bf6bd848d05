"""Who may ask the dashboard for what: an ASGI middleware in front of everything.

The page binds to the loopback address, but every page of the Web that the same browser has open can
send requests there, and a name that its owner makes resolve to 127.0.0.1 (DNS rebinding) makes them
of the same origin. So the names under which we answer are a closed list, requests that another
site's page sends are refused, and work needs a token that no other page knows.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["CONTENT_POLICY", "REPORT_POLICY", "Guard", "allowed_hosts"]

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page itself may load: nothing from elsewhere, and no script or style within the page."""

REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Reports carry their style within, as they are one file; no script runs in them."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_READING = frozenset({"GET", "HEAD"})
_SAME_SITE = frozenset({"same-origin", "none"})
_BODY_BYTES_MAX = 64 << 10
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


def allowed_hosts(
    address: str, port: int, names: Iterable[str] = (), *, scheme: str = "http"
) -> frozenset[str]:
    """Return the values of ``Host`` that we answer to.

    Args:
        address: what we listen on; a wildcard has no name of its own.
        port: where; browsers leave out the one that the scheme has by default.
        names: further names of this machine.
        scheme: ``http`` or ``https``.
    """
    hosts = {"127.0.0.1", "localhost", "[::1]", *names}
    if address not in {"0.0.0.0", "::"}:  # noqa: S104  compared, not bound
        hosts.add(f"[{address}]" if ":" in address else address)
    endings = (f":{port}", "") if port == _DEFAULT_PORTS[scheme] else (f":{port}",)
    return frozenset(f"{host.lower()}{ending}" for host in hosts for ending in endings)


@dataclass(slots=True)
class Guard:
    """Lets through what may be asked for.

    Args:
        app: what is guarded.
        hosts: values of ``Host`` that are ours.
        scheme: ``http`` or ``https``.
        token: without which nothing can be changed; empty if nothing can be changed at all.
    """

    app: ASGIApp
    hosts: Collection[str]
    scheme: str = "http"
    token: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await _answer(send, *refusal)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_more(message)]
            await send(message)

        await self.app(scope, _bounded(receive), guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Why a request is refused: status and words; None if it is not."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return 421, "this name is not one of the dashboard's; open the address it printed"
        origins = {f"{self.scheme}://{host}" for host in self.hosts}
        given = [row.lower() for row in headers.get("origin", [])]
        if any(row not in origins for row in given):
            return 403, "a page of another site may not ask the dashboard"
        sites = headers.get("sec-fetch-site", [])
        is_page = scope["path"] == "/" and headers.get("sec-fetch-mode") == ["navigate"]
        if any(site not in _SAME_SITE for site in sites) and not is_page:
            return 403, "a page of another site may not ask the dashboard"
        if scope["method"] in _READING:
            return None
        return self._refusal_of_change(headers, has_origin=bool(given))

    def _refusal_of_change(
        self, headers: dict[str, list[str]], *, has_origin: bool
    ) -> tuple[int, str] | None:
        if not self.token:
            return 403, "this dashboard is read-only; start it with --control to start or stop runs"
        if not has_origin:
            return 403, "the request does not say which page sent it"
        if [row.partition(";")[0].strip() for row in headers.get("content-type", [])] != [
            "application/json"
        ]:
            return 415, "send JSON"
        given = headers.get("authorization", [""])[0].removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return 401, "this needs the token that the terminal shows; type it into its field"
        return None


def _more(message: Message) -> list[tuple[bytes, bytes]]:
    there = {name.lower() for name, _ in message.get("headers", [])}
    found = [row for row in _HEADERS if row[0] not in there]
    if b"content-security-policy" not in there:
        found.append((b"content-security-policy", CONTENT_POLICY.encode()))
    if b"cache-control" not in there:
        found.append((b"cache-control", b"no-store"))
    return found


def _bounded(receive: Receive) -> Receive:
    """Read no more of a body than any form of ours has."""
    read = 0

    async def bounded() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > _BODY_BYTES_MAX:
            return {"type": "http.disconnect"}
        return message

    return bounded


async def _answer(send: Send, status: int, words: str) -> None:
    body = json.dumps({"error": words}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"content-security-policy", b"default-src 'none'"),
        (b"cache-control", b"no-store"),
        *_HEADERS,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
