"""A small SNMP agent on loopback; the driver was also tried against Net-SNMP's own, v2c and v3."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.telemetry.meters.serving import opened

from boardcluster.errors import MeterError, SpecError
from boardcluster.telemetry.meters.poe_snmp import sum_of

pytest.importorskip("gufo.snmp")

TOTAL = "1.3.6.1.2.1.105.1.3.1.1.4.1"
PORTS = ("1.3.6.1.4.1.9.9.402.1.2.1.9.1.1", "1.3.6.1.4.1.9.9.402.1.2.1.9.1.2")
VALUES = {TOTAL: 37, PORTS[0]: 6200, PORTS[1]: 5400}
GET, RESPONSE, SEQUENCE, INTEGER, OCTETS, OID, GAUGE = 0xA0, 0xA2, 0x30, 2, 4, 6, 0x42
NO_SUCH_OBJECT = b"\x80\x00"


def tlv(tag: int, body: bytes) -> bytes:
    length = bytes([len(body)]) if len(body) < 128 else bytes([0x82]) + len(body).to_bytes(2)
    return bytes([tag]) + length + body


def take(data: bytes) -> tuple[int, bytes, bytes]:
    tag, length, at = data[0], data[1], 2
    if length & 0x80:
        at += length & 0x7F
        length = int.from_bytes(data[2:at])
    return tag, data[at : at + length], data[at + length :]


def oid_text(body: bytes) -> str:
    numbers, value = [body[0] // 40, body[0] % 40], 0
    for byte in body[1:]:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    return ".".join(map(str, numbers))


def respond(request: bytes, community: bytes) -> bytes | None:
    """RFC 3416: a GetRequest of version 2c in, a Response out; silence for a wrong community."""
    _, message, _ = take(request)
    _, version, rest = take(message)
    _, given, rest = take(rest)
    tag, pdu, _ = take(rest)
    assert (version, tag) == (b"\x01", GET)
    if given != community:
        return None
    _, number, rest = take(pdu)
    _, _, rest = take(rest)
    _, _, rest = take(rest)
    _, bindings, _ = take(rest)
    answers = b""
    while bindings:
        _, binding, bindings = take(bindings)
        _, name, _ = take(binding)
        value = VALUES.get(oid_text(name))
        shown = NO_SUCH_OBJECT if value is None else tlv(GAUGE, value.to_bytes(3))
        answers += tlv(SEQUENCE, tlv(OID, name) + shown)
    zero = tlv(INTEGER, b"\x00")
    whole = tlv(INTEGER, number) + zero + zero + tlv(SEQUENCE, answers)
    head = tlv(INTEGER, version) + tlv(OCTETS, given)
    return tlv(SEQUENCE, head + tlv(RESPONSE, whole))


@contextlib.contextmanager
def agent(*, garbled: bool = False) -> Iterator[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.bind(("127.0.0.1", 0))
        link.settimeout(0.05)
        ending = threading.Event()

        def serve() -> None:
            while not ending.is_set():
                with contextlib.suppress(TimeoutError):
                    request, asker = link.recvfrom(4096)
                    reply = b"\x30\x03xyz" if garbled else respond(request, b"s3cret")
                    if reply is not None:
                        link.sendto(reply, asker)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield str(link.getsockname()[1])
        finally:
            ending.set()
            thread.join()


@pytest.fixture
def secret(tmp_path: Path) -> str:
    path = tmp_path / "community"
    path.write_text("s3cret\n")
    path.chmod(0o600)
    return str(path)


def test_the_whole_switch_in_watts(secret: str) -> None:
    with agent() as port:
        meter = opened("poe-snmp", host="127.0.0.1", port=port, community_file=secret)
        assert [meter.read().watts, meter.read().watts] == [37, 37]
        meter.close()


def test_chosen_ports_in_the_vendors_unit(secret: str) -> None:
    with agent() as port:
        meter = opened(
            "poe-snmp",
            host="127.0.0.1",
            port=port,
            community_file=secret,
            oids=f".{PORTS[0]}, {PORTS[1]}",
            unit="mW",
        )
        assert meter.read().watts == pytest.approx(11.6)


def test_what_the_switch_does_not_have_is_said(secret: str) -> None:
    with (
        agent() as port,
        pytest.raises(MeterError, match=r"no number for 1\.3\.6\.1\.2\.1\.105\.9"),
    ):
        opened(
            "poe-snmp", host="127.0.0.1", port=port, community_file=secret, oids="1.3.6.1.2.1.105.9"
        ).read()


def test_a_wrong_community_is_said_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCH", "w0rng")
    with agent() as port, pytest.raises(MeterError, match="did not answer within 2 s") as caught:
        opened("poe-snmp", host="127.0.0.1", port=port, community_variable="SWITCH").read()
    assert "w0rng" not in str(caught.value)


def test_a_garbled_answer_is_said(secret: str) -> None:
    with agent(garbled=True) as port, pytest.raises(MeterError, match=r"cannot be read|answer"):
        opened("poe-snmp", host="127.0.0.1", port=port, community_file=secret).read()


def test_text_where_a_number_should_be_is_said() -> None:
    with pytest.raises(MeterError, match="no number"):
        sum_of({"1.3": b"37 W"}, ("1.3",), unit="W", where="switch")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "requires community_file"),
        ({"version": "1"}, "2c, 3"),
        ({"version": "3"}, "no user"),
        ({"version": "3", "user": "anna"}, "requires password_file"),
        ({"oids": "pethMain"}, "numbers with dots"),
    ],
)
def test_wrong_options_are_said(options: dict[str, str], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        opened("poe-snmp", host="switch", **options)
