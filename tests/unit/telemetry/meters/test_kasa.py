import json
import os
import struct
import time
from typing import Any

import pytest
from tests.unit.telemetry.meters.serving import (
    Answer,
    Request,
    free_port,
    opened,
    recorded,
    tcp,
    web,
)

from boardcluster.errors import MeterError, SpecError
from boardcluster.telemetry.meters.kasa import scramble, unscramble

DEVICE = recorded("kasa")
KLAP = recorded("klap")


def framed(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + scramble(text)


def xor(answer: object) -> Any:
    def reply(request: bytes) -> bytes:
        assert json.loads(unscramble(request)) == {"emeter": {"get_realtime": {}}}
        return framed(json.dumps(answer).encode())

    return tcp(reply)


def test_the_first_bytes_are_those_of_the_published_protocol() -> None:
    # softScheck 2016: '{"system":...' begins d0 f2 81 f8 8b ff 9a f7 d5
    assert scramble(b'{"system"').hex(" ") == "d0 f2 81 f8 8b ff 9a f7 d5"
    assert unscramble(bytes.fromhex("d0f281f88bff9af7d5")) == b'{"system"'


def test_the_first_plugs_give_watts_and_kilowatt_hours() -> None:
    with xor(DEVICE["hs110"]) as port:
        reading = opened("kasa", host="127.0.0.1", port=str(port)).read()
    assert reading.watts == 0.928511
    assert reading.energy_joules == pytest.approx(55.139 * 3_600_000)


def test_later_plugs_give_milliwatts_and_watt_hours() -> None:
    values = {**DEVICE["kp115"]["emeter"]["get_realtime"], "power_mw": 36_800, "total_wh": 2}
    with xor({"emeter": {"get_realtime": values}}) as port:
        reading = opened("kasa", host="127.0.0.1", port=str(port)).read()
    assert reading.watts == 36.8
    assert reading.energy_joules == 7200


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (framed(json.dumps(DEVICE["no_meter"]).encode()), "has no meter: .*module not support"),
        (framed(b'{"emeter":{"get_realtime":{"err_code":-2}}}'), "has no meter"),
        (framed(b'{"emeter":{"get_realtime":{"power":"x","total":1}}}'), "no number for power"),
        (framed(b"[]"), "not answer with a JSON object"),
        (framed(b"\xff{"), "not answer with JSON"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not answer with JSON"),
        (struct.pack(">I", 500) + b"\xd0", "not answer with JSON"),
        (b"", "not answer with JSON"),
    ],
)
def test_what_is_no_reading_is_said(reply: bytes, words: str) -> None:
    with tcp(lambda _: reply) as port, pytest.raises(MeterError, match=words):
        opened("kasa", host="127.0.0.1", port=str(port)).read()


def test_one_that_is_off_or_hangs_is_said() -> None:
    with pytest.raises(MeterError, match="Connection refused"):
        opened("kasa", host="127.0.0.1", port=str(free_port())).read()

    def hang(_: bytes) -> bytes:
        time.sleep(2.5)
        return b""

    with tcp(hang) as port, pytest.raises(MeterError, match="did not answer within 2 s"):
        opened("kasa", host="127.0.0.1", port=str(port)).read()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"host": "http://plug"}, "host name or IPv4"),
        ({"host": "plug", "protocol": "smart"}, "klap, tapo, xor"),
        ({"host": "plug", "port": "0"}, "whole number"),
    ],
)
def test_wrong_options_are_said(options: dict[str, str], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        opened("kasa", **options)


# KLAP: needs the package that encrypts


def device(exchange: dict[str, Any]) -> Any:
    """A plug that answers as recorded, and only to exactly what was recorded."""

    def answer(request: Request) -> Answer:
        if request.path == "/app/handshake1":
            assert request.body.hex() == exchange["seed"]
            cookie = {"Set-Cookie": "TP_SESSIONID=0A1B;TIMEOUT=86400"}
            return Answer(bytes.fromhex(exchange["handshake1"]), headers=cookie)
        if request.headers.get("Cookie") != "TP_SESSIONID=0A1B":
            return Answer(status=403)
        if request.path == "/app/handshake2":
            right = request.body.hex() == exchange["handshake2"]
            return Answer(status=200 if right else 403)
        if request.path == f"/app/request?seq={exchange['sequence']}":
            right = request.body.hex() == exchange["request"]
            return Answer(bytes.fromhex(exchange["answer"]), status=200 if right else 403)
        return Answer(status=403)

    return web(answer)


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cryptography")
    monkeypatch.setattr(os, "urandom", lambda size: bytes(range(size)))
    monkeypatch.setenv("ACCOUNT", KLAP["tapo"]["password"])


@pytest.mark.parametrize(
    ("name", "protocol", "watts"),
    [("klap", "klap", 0.928511), ("klap-unbound", "klap", 0.928511), ("tapo", "tapo", 5.0)],
)
@pytest.mark.usefixtures("seeded")
def test_klap_byte_for_byte(name: str, protocol: str, watts: float) -> None:
    with device(KLAP[name]) as server:
        meter = opened(
            "kasa",
            host="127.0.0.1",
            port=str(server.port),
            protocol=protocol,
            user="anna@example.org",
            password_variable="ACCOUNT",
        )
        assert meter.read().watts == pytest.approx(watts)
        with pytest.raises(MeterError, match="status 403"):
            meter.read()  # the recording holds one request
        assert meter.read().watts == pytest.approx(watts)  # so it shook hands anew


@pytest.mark.usefixtures("seeded")
def test_another_account_is_said_without_the_password() -> None:
    with device(KLAP["klap"]) as server:
        meter = opened(
            "kasa",
            host="127.0.0.1",
            port=str(server.port),
            protocol="klap",
            user="otto@example.org",
            password_variable="ACCOUNT",
        )
        with pytest.raises(MeterError, match="another account") as caught:
            meter.read()
        assert "horse" not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "words"),
    [(Answer(b"x" * 48), "another account"), (Answer(b"short"), "does not speak KLAP")],
)
@pytest.mark.usefixtures("seeded")
def test_what_does_not_speak_klap_is_said(answer: Answer, words: str) -> None:
    with web(lambda _: answer) as server, pytest.raises(MeterError, match=words):
        opened("kasa", host="127.0.0.1", port=str(server.port), protocol="klap").read()


@pytest.mark.parametrize(("part", "words"), [(40, "signature"), (70, "not a block")])
@pytest.mark.usefixtures("seeded")
def test_a_damaged_answer_is_said(part: int, words: str) -> None:
    damaged = bytearray.fromhex(KLAP["tapo"]["answer"])
    damaged = damaged[:-1] if part == 70 else damaged
    damaged[part] ^= 1
    with device({**KLAP["tapo"], "answer": damaged.hex()}) as server:
        meter = opened(
            "kasa",
            host="127.0.0.1",
            port=str(server.port),
            protocol="tapo",
            user="anna@example.org",
            password_variable="ACCOUNT",
        )
        with pytest.raises(MeterError, match=words):
            meter.read()
