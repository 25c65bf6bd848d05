"""Ports, addresses and what is refused."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from tests.unit.web.asking import ask

from boardcluster.errors import AddressError, UsageError
from boardcluster.web.server import LOOPBACK, Serving, _host, _say_begun, bind_free_port, serve

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBfjCCASWgAwIBAgIUEtdYFUadPrXODxUy5OOd1so15uowCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJZGFzaGJvYXJkMCAXDTI2MTEyODAzMTA1N1oYDzIxMjYxMTA0
MDMxMDU3WjAUMRIwEAYDVQQDDAlkYXNoYm9hcmQwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARsentf1Mc5NqvLqqp520dGVm/E49NAsKhW0ISBkr2NUgbqCILwy08Y
S5G2kTPBJhpp7x5+Hm/KfxWlMTlgS5VEo1MwUTAdBgNVHQ4EFgQUjV3d0IFtfaFy
bgsPQP8Dn5GExEswHwYDVR0jBBgwFoAUjV3d0IFtfaFybgsPQP8Dn5GExEswDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiAxSZiJy5XfcHzT4YaTQ2WR
o1TlsvfRecUvzkCmKYMazAIgE0/W054s/O0zzFcWMgL1m59Kyes2C2J9O5I8/fdW
ATE=
-----END CERTIFICATE-----
"""
"""Of nobody: its key was thrown away."""


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


def test_the_token_is_printed_and_in_no_argument_of_a_browser() -> None:
    said: list[str] = []
    opened: list[str] = []
    page = "http://127.0.0.1:8470/#token=T0k"
    _say_begun(serving(control=True), page, "T0k", said.append, opened.append)
    assert opened == ["http://127.0.0.1:8470/"]
    assert f"dashboard: {page}" in said
    assert "token to start and stop work: T0k" in said


def test_a_wildcard_is_opened_under_a_name_that_is_answered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    apps: list[Any] = []

    def run(server: Any, *, sockets: object) -> None:
        apps.append(server.config.app)
        server.config.app.app.state.board.on_begin()

    monkeypatch.setattr("uvicorn.Server.run", run)
    monkeypatch.setattr("socket.gethostname", lambda: "Desk")
    monkeypatch.setattr("socket.getfqdn", lambda: "desk.example")
    said: list[str] = []
    opened: list[str] = []
    given = serving(home=tmp_path, port=0, address="0.0.0.0", plain=True)
    serve(given, say=said.append, opened=opened.append)
    [page] = opened
    assert f"dashboard: {page}" in said
    host = page.removeprefix("http://").removesuffix("/")
    assert ask(apps[0], headers=[("host", host)]).status == 200
    assert _host("::") == "Desk"
    assert _host("2001:db8::1") == "[2001:db8::1]"


@pytest.mark.parametrize(
    ("certificate", "key"),
    [("no PEM file", None), (CERTIFICATE, None), (CERTIFICATE, CERTIFICATE)],
    ids=["no certificate", "without its key", "no key"],
)
def test_a_certificate_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, certificate: str, key: str | None
) -> None:
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, sockets: None)
    (tmp_path / "page.pem").write_text(certificate)
    changes: dict[str, object] = {"home": tmp_path, "certificate": tmp_path / "page.pem"}
    if key is not None:
        (tmp_path / "page.key").write_text(key)
        changes["key"] = tmp_path / "page.key"
    with pytest.raises(UsageError, match=r"page\.pem cannot be used") as caught:
        serve(serving(port=0, **changes), say=print, opened=print)
    assert ("page.key" in caught.value.message) is (key is not None)


def test_what_a_plan_waits_for_ends_with_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ended: list[bool] = []

    def interrupted(*_: object, sockets: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("uvicorn.Server.run", interrupted)
    monkeypatch.setattr("boardcluster.web.server.end_programs", lambda: ended.append(True))
    with pytest.raises(KeyboardInterrupt):
        serve(serving(home=tmp_path, port=0), say=print, opened=print)
    assert ended
