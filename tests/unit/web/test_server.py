"""Ports, addresses and what is refused."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from boardcluster.errors import AddressError, UsageError
from boardcluster.web.server import LOOPBACK, Serving, bind_free_port, serve


def serving(**changes: object) -> Serving:
    given = {"home": Path("/nowhere"), "cache": Path("/nowhere"), "port": 8470, **changes}
    return Serving(**given)  # type: ignore[arg-type]


def test_the_next_free_port_is_taken() -> None:
    with socket.socket() as other:
        other.bind((LOOPBACK, 0))
        other.listen()
        port = other.getsockname()[1]
        with bind_free_port(LOOPBACK, port) as found:
            assert port < found.getsockname()[1] < port + 20


def test_a_port_in_use_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, sockets: None)
    said: list[str] = []
    with socket.socket() as other:
        other.bind((LOOPBACK, 0))
        other.listen()
        port = other.getsockname()[1]
        serve(serving(home=tmp_path, port=port), say=said.append, opened=said.append)
    [words] = said
    assert words.startswith(f"port {port} is in use; the dashboard takes ")
    assert port < int(words.rpartition(" ")[2]) < port + 20


def test_an_address_of_elsewhere_is_said() -> None:
    with pytest.raises(AddressError, match=r"192\.0\.2\.1"):
        bind_free_port("192.0.2.1", 8470)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"address": "0.0.0.0"}, "nothing would be encrypted"),
        ({"address": "192.0.2.1"}, "nothing would be encrypted"),
        ({"address": "localhost"}, "not an address"),
        ({"key": Path("/etc/passwd")}, "needs its certificate"),
        ({"certificate": Path("/nonexistent.pem")}, "no file"),
    ],
)
def test_other_addresses_need_encryption_or_a_word(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        serve(serving(**changes), say=print, opened=print)
