"""TP-Link plugs with a meter: Kasa over its old protocol or KLAP, Tapo over KLAP.

The old protocol: JSON on TCP port 9999 after four bytes of length, each byte xored with the one
before it as sent, the first with 171. There is no specification by the maker; source: Stroetmann
and Esser, "Reverse Engineering the TP-Link HS110", softScheck 2016.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Mapping
from typing import Any

from boardcluster.errors import MeterError, SpecError
from boardcluster.records import Coverage
from boardcluster.remote.base import Remote
from boardcluster.telemetry.meters.base import Meter, MeterKind, Option, Reading
from boardcluster.telemetry.meters.wire.credentials import secret_of, secret_options
from boardcluster.telemetry.meters.wire.klap import KlapSession
from boardcluster.telemetry.meters.wire.options import choice, whole
from boardcluster.telemetry.meters.wire.web import TIMEOUT_SECONDS, figure

__all__ = ["KIND", "read_emeter", "read_usage", "scramble", "unscramble"]

_FIRST_KEY = 171
_LARGEST_BYTES = 1 << 16
_JOULES_PER_WATT_HOUR = 3600.0
_JOULES_PER_KILOWATT_HOUR = 3_600_000.0
_EMETER: Mapping[str, Any] = {"emeter": {"get_realtime": {}}}
_USAGE = {"method": "get_energy_usage"}
_PORTS = {"xor": "9999", "klap": "80", "tapo": "80"}


def scramble(text: bytes) -> bytes:
    """Write a message of the old protocol without its length."""
    key, out = _FIRST_KEY, bytearray()
    for byte in text:
        key ^= byte
        out.append(key)
    return bytes(out)


def unscramble(data: bytes) -> bytes:
    """Read a message of the old protocol without its length."""
    return bytes(
        byte ^ before for byte, before in zip(data, bytes([_FIRST_KEY]) + data[:-1], strict=True)
    )


def read_emeter(answer: Mapping[str, Any], *, where: str) -> tuple[float, float]:
    """Read ``emeter.get_realtime``: of the first plugs in W and kWh; of later ones in mW and Wh.

    Returns:
        Watts, and joules counted.

    Raises:
        MeterError: the device has no meter or reports a failure.
    """
    emeter = answer.get("emeter")
    values = emeter.get("get_realtime") if isinstance(emeter, dict) else None
    if not isinstance(values, dict) or values.get("err_code", 0) != 0:
        raise MeterError(
            f"{where} has no meter: {str(emeter)[:80]}",
            hint="name a plug with energy monitoring, such as an HS110, KP115 or EP25",
        )
    if "power_mw" in values:
        watts = figure(values, "power_mw", where=where) / 1000
        return watts, figure(values, "total_wh", where=where) * _JOULES_PER_WATT_HOUR
    watts = figure(values, "power", where=where)
    return watts, figure(values, "total", where=where) * _JOULES_PER_KILOWATT_HOUR


def read_usage(answer: Mapping[str, Any], *, where: str) -> float:
    """Read ``get_energy_usage`` of a Tapo, whose counts begin anew each day and are left out.

    Returns:
        Watts.

    Raises:
        MeterError: the device has no meter or reports a failure.
    """
    result = answer.get("result")
    if answer.get("error_code") != 0 or not isinstance(result, dict):
        raise MeterError(
            f"{where} has no meter: error {answer.get('error_code')}",
            hint="name a plug with energy monitoring, such as a P110",
        )
    return figure(result, "current_power", where=where) / 1000


class _KasaMeter(Meter):
    """A plug that speaks the old protocol."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port

    def read(self) -> Reading:
        where = f"{self._host}:{self._port}"
        asked = time.monotonic()
        try:
            answer = json.loads(unscramble(self._exchange(json.dumps(_EMETER).encode())))
        except TimeoutError as error:
            raise MeterError(f"{where} did not answer within {TIMEOUT_SECONDS:g} s") from error
        except OSError as error:
            raise MeterError(f"{where} cannot be read: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:
            raise MeterError(
                f"{where} did not answer with JSON",
                hint='try protocol = "klap" in cluster.toml',
            ) from error
        halfway = (asked + time.monotonic()) / 2
        if not isinstance(answer, dict):
            raise MeterError(f"{where} did not answer with a JSON object")
        watts, counted = read_emeter(answer, where=where)
        return Reading(seconds=halfway, watts=watts, energy_joules=counted)

    def _exchange(self, request: bytes) -> bytes:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        with socket.create_connection((self._host, self._port), timeout=TIMEOUT_SECONDS) as link:
            link.sendall(struct.pack(">I", len(request)) + scramble(request))
            (length,) = struct.unpack(">I", _take(link, 4, deadline))
            if length > _LARGEST_BYTES:
                raise ValueError
            return _take(link, length, deadline)


def _take(link: socket.socket, length: int, deadline_seconds: float) -> bytes:
    data = b""
    while len(data) < length:
        if time.monotonic() > deadline_seconds:
            raise TimeoutError
        part = link.recv(length - len(data))
        if not part:
            raise ValueError
        data += part
    return data


class _TapoMeter(Meter):
    """A plug that speaks KLAP.

    Args:
        session: with the plug.
        where: for messages.
        tapo: whether it speaks the newer set of requests.
    """

    def __init__(self, session: KlapSession, *, where: str, tapo: bool) -> None:
        self._session, self._where, self._tapo = session, where, tapo

    def read(self) -> Reading:
        asked = time.monotonic()
        answer = self._session.ask(_USAGE if self._tapo else _EMETER)
        halfway = (asked + time.monotonic()) / 2
        if self._tapo:
            return Reading(seconds=halfway, watts=read_usage(answer, where=self._where))
        watts, counted = read_emeter(answer, where=self._where)
        return Reading(seconds=halfway, watts=watts, energy_joules=counted)


def _open(settings: Mapping[str, str], _: Remote | None) -> Meter:
    protocol = choice(settings, "protocol", _PORTS)
    host = settings["host"]
    if not host or "/" in host or ":" in host:
        raise SpecError(
            f'the option "host" of a meter is "{host}"; allowed: a host name or IPv4 address',
            hint="correct host in cluster.toml",
        )
    ports = {"port": settings["port"] or _PORTS[protocol]}
    port = whole(ports, "port", least=1, most=65_535)
    if protocol == "xor":
        return _KasaMeter(host, port)
    session = KlapSession(
        host,
        port,
        user=settings["user"],
        password=secret_of(settings, "password"),
        version=2 if protocol == "tapo" else 1,
    )
    return _TapoMeter(session, where=host, tapo=protocol == "tapo")


KIND = MeterKind(
    name="kasa",
    summary="TP-Link Kasa or Tapo plug with energy monitoring",
    coverage=Coverage.WALL,
    accuracy="none stated by the maker",
    integrates=True,
    options=(
        Option(name="host", help="host name or address of the plug"),
        Option(
            name="protocol",
            help="xor (port 9999), klap (Kasa with newer firmware), tapo (Tapo and newest Kasa)",
            default="xor",
        ),
        Option(name="port", help="TCP port; empty: that of the protocol", default=""),
        Option(name="user", help="account of the TP-Link app, for klap and tapo", default=""),
        *secret_options("password", "the account's password"),
        Option(name="accuracy_percent", help="if you know it better", default=""),
    ),
    open=_open,
)
