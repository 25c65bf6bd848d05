"""Ask a meter in the local network over HTTP: one short request, a bound on time and size."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from boardcluster.errors import MeterError, SpecError
from boardcluster.telemetry.meters.wire.credentials import Secret

__all__ = ["TIMEOUT_SECONDS", "WebMeter", "figure"]

TIMEOUT_SECONDS = 2.0
"""A plug in the local network answers in milliseconds; one that does not is away."""

_LARGEST_BYTES = 1 << 16
_AWAY_HINT = "check that it is on, and its url in cluster.toml"
_CHALLENGE = re.compile(r'(\w+)=(?:"([^"]*)"|([^\s,]+))')
_DIGESTS = {"MD5": "md5", "SHA-256": "sha256"}


def figure(answer: Mapping[str, Any], name: str, *, where: str) -> float:
    """Return a number of an answer.

    Raises:
        MeterError: it is missing or no number.
    """
    value = answer.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MeterError(f"{where} reports no number for {name}: {str(value)[:80]!r}")
    return float(value)


def _body(response: http.client.HTTPResponse, deadline_seconds: float) -> bytes:
    """Read a body, also one that arrives byte by byte, in time.

    Raises:
        TimeoutError: it is not complete in time.
    """
    body = b""
    while len(body) < _LARGEST_BYTES and (part := response.read1(4096)):
        body += part
        if time.monotonic() > deadline_seconds:
            raise TimeoutError
    return body


class WebMeter:
    """The web interface of a meter.

    Args:
        url: ``http://HOST`` or ``http://HOST:PORT``; a secret must not stand in it.
        user: user name for basic and digest authentication.
        password: empty for none.
    """

    def __init__(self, url: str, *, user: str = "", password: Secret | None = None) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port or 80
        except ValueError:
            parts, port = urlsplit("http://"), 0
        if parts.scheme != "http" or not parts.hostname or parts.username or not port:
            raise SpecError(
                f'the url of a meter is "{parts.scheme}://{parts.netloc.rpartition("@")[2]}"; '
                "allowed: http://HOST or http://HOST:PORT, without user and password",
                hint="correct url in cluster.toml; a password goes into a file, see password_file",
            )
        self.shown = f"http://{parts.hostname}:{port}"
        self._host, self._port = parts.hostname, port
        self._user, self._password = user, password or Secret("")
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, path: str, *, secret_path: str = "") -> tuple[Mapping[str, Any], float]:
        """Get a JSON object.

        Args:
            path: what to ask for, also for messages.
            secret_path: what is appended to it on the way only.

        Returns:
            The object, and the driver's monotonic clock halfway between question and answer.

        Raises:
            MeterError: no answer in time, a refusal, or no JSON object.
        """
        asked = time.monotonic()
        status, headers, body = self._exchange(path + secret_path, {})
        if status == 401 and self._password:
            asked = time.monotonic()
            answer = self._authorization(headers.get("WWW-Authenticate", ""), path + secret_path)
            status, _, body = self._exchange(path + secret_path, {"Authorization": answer})
        halfway = (asked + time.monotonic()) / 2
        if status == 401:
            raise MeterError(
                f"{self.shown} {'rejects this' if self._password else 'requires a'} password",
                hint="give password_file or password_variable in its table of cluster.toml",
            )
        if status != 200:
            raise MeterError(f"{self.shown}{path} answered with status {status}")
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise MeterError(
                f"{self.shown}{path} did not answer with JSON: {body[:80]!r}"
            ) from error
        if not isinstance(value, dict):
            raise MeterError(f"{self.shown}{path} did not answer with a JSON object: {body[:80]!r}")
        return value, halfway

    def _exchange(
        self, path: str, headers: Mapping[str, str]
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)
        self._connection = connection
        try:
            connection.request("GET", path, headers={"Connection": "close", **headers})
            response = connection.getresponse()
            return response.status, response.headers, _body(response, deadline)
        except TimeoutError as error:
            raise MeterError(
                f"{self.shown} did not answer within {TIMEOUT_SECONDS:g} s", hint=_AWAY_HINT
            ) from error
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            words = getattr(error, "strerror", None) or type(error).__name__
            raise MeterError(f"{self.shown} cannot be read: {words}", hint=_AWAY_HINT) from error
        finally:
            connection.close()

    def _authorization(self, challenge: str, path: str) -> str:
        """Answer a challenge; source: RFC 7617 (basic), RFC 7616 (digest)."""
        if not challenge.lower().startswith("digest"):
            plain = f"{self._user}:{self._password.reveal()}".encode()
            return f"Basic {base64.b64encode(plain).decode()}"
        words = {key: quoted or bare for key, quoted, bare in _CHALLENGE.findall(challenge)}
        algorithm = words.get("algorithm", "MD5").upper()
        if algorithm not in _DIGESTS or "nonce" not in words:
            raise MeterError(f"{self.shown} uses an unknown method of authentication")

        def digest(text: str) -> str:
            return hashlib.new(_DIGESTS[algorithm], text.encode()).hexdigest()

        realm, nonce, mine = words.get("realm", ""), words["nonce"], os.urandom(8).hex()
        first = digest(f"{self._user}:{realm}:{self._password.reveal()}")
        whole = digest(f"{first}:{nonce}:00000001:{mine}:auth:{digest(f'GET:{path}')}")
        return (
            f'Digest username="{self._user}", realm="{realm}", nonce="{nonce}", uri="{path}", '
            f'algorithm={algorithm}, qop=auth, nc=00000001, cnonce="{mine}", response="{whole}"'
        )

    def close(self) -> None:
        """Break a request that is on its way."""
        if self._connection is not None:
            self._connection.close()
