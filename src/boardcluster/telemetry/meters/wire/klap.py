"""KLAP, the encrypted protocol of newer TP-Link plugs over HTTP.

Both sides prove with seeds and SHA-256 that they know the hash of the account's name and password,
and derive a key for AES-128-CBC from the same. There is no specification by the maker; what is done
here follows the description in the open-source project python-kasa and is tested against exchanges
recorded with it. Version 1 (MD5) is that of Kasa plugs, version 2 (SHA) of Tapo and newer Kasa.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import struct
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from boardcluster.errors import HostError, MeterError, extra_hint
from boardcluster.telemetry.meters.wire.credentials import Secret
from boardcluster.telemetry.meters.wire.web import TIMEOUT_SECONDS

__all__ = ["KlapSession", "Seeds", "account_hash"]

_LARGEST_BYTES = 1 << 16


def _sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


def _ciphers() -> Any:
    try:
        return import_module("cryptography.hazmat.primitives.ciphers")
    except ImportError as error:
        raise HostError(
            "a TP-Link plug with the protocol KLAP needs the Python package cryptography",
            hint=extra_hint("meters"),
        ) from error


def account_hash(user: str, password: Secret, *, version: int) -> bytes:
    """Return what both sides know of the account.

    Args:
        user: the account's name, an e-mail address; empty for a plug that never saw one.
        password: its password.
        version: 1 or 2.
    """
    name, word = user.encode(), password.reveal().encode()
    if version == 1:
        return _md5(_md5(name) + _md5(word))
    return _sha256(_sha1(name), _sha1(word))


class Seeds:
    """What a session is derived from.

    Args:
        mine: our 16 random bytes.
        theirs: the plug's.
        account: from ``account_hash``.
        version: 1 or 2.
    """

    def __init__(self, mine: bytes, theirs: bytes, account: bytes, *, version: int) -> None:
        self._whole = mine + theirs + account
        mixed = (mine, theirs, account) if version == 2 else (mine, account)
        self.their_proof = _sha256(*mixed)
        mixed = (theirs, mine, account) if version == 2 else (theirs, account)
        self.my_proof = _sha256(*mixed)
        first = _sha256(b"iv", self._whole)
        self._vector = first[:12]
        self.number: int = struct.unpack(">i", first[-4:])[0]
        self._key = _sha256(b"lsk", self._whole)[:16]
        self._signing = _sha256(b"ldk", self._whole)[:28]

    def _cipher(self) -> Any:
        ciphers = _ciphers()
        vector = self._vector + struct.pack(">i", self.number)
        return ciphers.Cipher(ciphers.algorithms.AES(self._key), ciphers.modes.CBC(vector))

    def seal(self, text: bytes) -> bytes:
        """Encrypt and sign the next request; its number is ``number``."""
        self.number = (self.number + 1 + 2**31) % 2**32 - 2**31
        short = 16 - len(text) % 16
        encryptor = self._cipher().encryptor()
        sealed: bytes = encryptor.update(text + bytes([short]) * short) + encryptor.finalize()
        return _sha256(self._signing, struct.pack(">i", self.number), sealed) + sealed

    def open(self, data: bytes) -> bytes:
        """Decrypt the answer to the last request.

        Raises:
            MeterError: it is not one, or its signature is wrong.
        """
        signature, sealed = data[:32], data[32:]
        if not sealed or len(sealed) % 16:
            raise MeterError("the plug's answer is not a block of the protocol KLAP")
        if signature != _sha256(self._signing, struct.pack(">i", self.number), sealed):
            raise MeterError("the plug's answer has a wrong signature")
        decryptor = self._cipher().decryptor()
        text: bytes = decryptor.update(sealed) + decryptor.finalize()
        return text[: -text[-1]] if 1 <= text[-1] <= 16 else text


class KlapSession:
    """One session with a plug; a new handshake when the plug has forgotten it.

    Raises:
        HostError: the package that encrypts is not installed.
    """

    def __init__(self, host: str, port: int, *, user: str, password: Secret, version: int) -> None:
        _ciphers()
        self._host, self._port = host, port
        self._accounts = [account_hash(user, password, version=version)]
        if user or password:  # a plug that was never bound to the account knows an empty one
            self._accounts.append(account_hash("", Secret(""), version=version))
        self._version = version
        self._seeds: Seeds | None = None
        self._cookie = ""

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a request and return its answer.

        Raises:
            MeterError: no answer, a refusal, or an answer that cannot be read.
        """
        try:
            return self._ask(request)
        except MeterError:
            self._seeds = None  # begin anew with the next request
            raise

    def _ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._seeds is None:
            self._seeds = self._shake_hands()
        sealed = self._seeds.seal(json.dumps(request).encode())
        status, _, body = self._post(f"/app/request?seq={self._seeds.number}", sealed)
        if status != 200:
            raise MeterError(f"{self._host} answered a request with status {status}")
        try:
            answer = json.loads(self._seeds.open(body))
        except ValueError as error:
            raise MeterError(f"{self._host} did not answer with JSON") from error
        if not isinstance(answer, dict):
            raise MeterError(f"{self._host} did not answer with a JSON object")
        return answer

    def _shake_hands(self) -> Seeds:
        mine = os.urandom(16)
        self._cookie = ""
        status, headers, body = self._post("/app/handshake1", mine)
        if status != 200 or len(body) != 48:
            raise MeterError(
                f"{self._host} does not speak KLAP: status {status}, {len(body)} bytes",
                hint='try protocol = "xor" in cluster.toml',
            )
        self._cookie = (headers.get("Set-Cookie") or "").partition(";")[0]
        for account in self._accounts:
            seeds = Seeds(mine, body[:16], account, version=self._version)
            if seeds.their_proof == body[16:]:
                status, _, _ = self._post("/app/handshake2", seeds.my_proof)
                if status != 200:
                    raise MeterError(f"{self._host} refused the handshake with status {status}")
                return seeds
        raise MeterError(
            f"{self._host} belongs to another account than the given one",
            hint="give the account of the TP-Link app: user and password_file in cluster.toml",
        )

    def _post(self, path: str, body: bytes) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)
        headers = {"Cookie": self._cookie} if self._cookie else {}
        try:
            connection.request("POST", path, body=body, headers=headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read(_LARGEST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            words = getattr(error, "strerror", None) or type(error).__name__
            raise MeterError(f"{self._host}:{self._port} cannot be read: {words}") from error
        finally:
            connection.close()
