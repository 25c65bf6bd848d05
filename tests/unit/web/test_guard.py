"""Who is let in: rebinding, other sites, tokens, and what answers carry."""

from __future__ import annotations

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from tests.unit.web.asking import HOST, ORIGIN, Answered, ask

from boardcluster.web.guard import Guard, allowed_hosts

TOKEN = "the-token-that-the-terminal-shows"


async def inner(scope: Scope, receive: Receive, send: Send) -> None:
    read = b""
    if scope["method"] == "POST":
        message = await receive()
        read = message.get("body", b"") if message["type"] == "http.request" else b"cut off"
    await PlainTextResponse(b"let in " + read[:20])(scope, receive, send)


def guard(token: str = "") -> Guard:
    return Guard(inner, allowed_hosts("127.0.0.1", 8470), token=token)


def change(*more: tuple[str, str], token: str = TOKEN, body: bytes = b"{}") -> Answered:
    headers = [("host", HOST), ("origin", ORIGIN), ("content-type", "application/json")]
    headers = [row for row in headers if row[0] not in {name for name, _ in more}]
    headers += [("authorization", f"Bearer {token}")]
    headers += [row for row in more if row[1]]
    return ask(guard(TOKEN), "/api/stop", method="POST", headers=headers, body=body)


@pytest.mark.parametrize("host", [HOST, "localhost:8470", "LOCALHOST:8470", "[::1]:8470"])
def test_our_own_names_are_answered(host: str) -> None:
    assert ask(guard(), headers=[("host", host)]).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8470",  # a name that was made to resolve to 127.0.0.1
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1:8470.evil.example",
        "localhost.evil.example:8470",
        "evil@127.0.0.1:8470",
        "127.0.0.1:8470, evil.example",
        "0.0.0.0:8470",
        "",
    ],
)
def test_a_rebound_name_gets_nothing(host: str) -> None:
    answer = ask(guard(), headers=[("host", host)])
    assert answer.status == 421
    assert b"let in" not in answer.body


def test_one_host_is_needed_and_no_more() -> None:
    assert ask(guard(), headers=[]).status == 421
    assert ask(guard(), headers=[("host", HOST), ("host", "evil.example")]).status == 421


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:8470", "http://127.0.0.1:8471", "file://"],
)
def test_pages_of_other_sites_read_nothing(origin: str) -> None:
    answer = ask(guard(), "/events", headers=[("host", HOST), ("origin", origin)])
    assert answer.status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_other_sites_embed_nothing(site: str) -> None:
    headers = [("host", HOST), ("sec-fetch-site", site), ("sec-fetch-mode", "no-cors")]
    assert ask(guard(), "/static/main.js", headers=headers).status == 403
    assert ask(guard(), "/", headers=headers).status == 403


def test_a_link_elsewhere_may_open_the_page_itself() -> None:
    headers = [("host", HOST), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]
    assert ask(guard(), "/", headers=headers).status == 200
    assert ask(guard(), "/report/", headers=headers).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_without_control_nothing_can_be_changed(method: str) -> None:
    headers = [("host", HOST), ("origin", ORIGIN), ("authorization", "Bearer ")]
    assert ask(guard(), "/api/stop", method=method, headers=headers).status == 403


def test_with_the_token_the_page_may_change_something() -> None:
    assert change().status == 200


@pytest.mark.parametrize("token", ["", "the-token", f"{TOKEN}x", TOKEN.upper(), "\u00fc"])
def test_another_token_is_refused(token: str) -> None:
    assert change(token=token).status == 401


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("origin", "", 403),  # forms and scripts of old browsers
        ("origin", "http://evil.example", 403),
        ("content-type", "text/plain", 415),  # what a form of another site could send
        ("content-type", "application/x-www-form-urlencoded", 415),
        ("content-type", "", 415),
        ("sec-fetch-site", "cross-site", 403),
    ],
)
def test_a_cross_site_post_is_refused_even_with_the_token(
    name: str, value: str, status: int
) -> None:
    assert change((name, value)).status == status


def test_a_body_without_end_is_cut_off() -> None:
    assert b"cut off" in change(body=b"x" * 100_000).body


def test_answers_carry_a_policy_without_inline_script() -> None:
    headers = ask(guard()).headers
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"


def test_other_addresses_answer_to_their_own_name_only() -> None:
    assert "192.0.2.7:1" in allowed_hosts("192.0.2.7", 1)
    assert "0.0.0.0:1" not in allowed_hosts("0.0.0.0", 1, ["desk"])
    assert "desk:1" in allowed_hosts("0.0.0.0", 1, ["Desk"])
    assert "[2001:db8::1]:1" in allowed_hosts("2001:db8::1", 1)


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("https", 443)])
def test_browsers_leave_out_the_port_that_a_scheme_has_by_default(scheme: str, port: int) -> None:
    app = Guard(inner, allowed_hosts("192.0.2.7", port, scheme=scheme), scheme=scheme, token=TOKEN)
    for host in ("192.0.2.7", f"192.0.2.7:{port}"):
        headers = [
            *(("host", host), ("origin", f"{scheme}://{host}")),
            *(("content-type", "application/json"), ("authorization", f"Bearer {TOKEN}")),
        ]
        assert ask(app, "/api/stop", method="POST", headers=headers, body=b"{}").status == 200
    assert "192.0.2.7" not in allowed_hosts("192.0.2.7", 8470, scheme=scheme)
    assert "192.0.2.7" not in allowed_hosts("192.0.2.7", 443 if port == 80 else 80, scheme=scheme)
