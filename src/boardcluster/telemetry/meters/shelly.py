"""Shelly plugs and relays with a meter, over their own web interface in the local network.

Sources: Shelly API documentation, first generation (``/shelly``, ``/status``) and second and later
ones (``Switch.GetStatus``, ``PM1.GetStatus``, authentication by digest).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boardcluster.errors import MeterError
from boardcluster.records import Coverage
from boardcluster.remote.base import Remote
from boardcluster.telemetry.meters.base import Meter, MeterKind, Option, Reading
from boardcluster.telemetry.meters.wire.credentials import secret_of, secret_options
from boardcluster.telemetry.meters.wire.options import choice, whole
from boardcluster.telemetry.meters.wire.web import WebMeter, figure

__all__ = ["KIND", "read_first", "read_second"]

_COMPONENTS = {"switch": "Switch", "pm1": "PM1"}
_JOULES_PER_WATT_MINUTE = 60.0
_JOULES_PER_WATT_HOUR = 3600.0


def read_first(status: Mapping[str, Any], channel: int, *, where: str) -> tuple[float, float]:
    """Read ``/status`` of the first generation.

    Returns:
        Watts, and joules counted since the device started.

    Raises:
        MeterError: it holds no such channel, or its meter says of itself that it is not valid.
    """
    meters = status.get("meters")
    if not isinstance(meters, list) or len(meters) <= channel:
        raise MeterError(f"{where} has no meter {channel}", hint="correct channel in cluster.toml")
    meter = meters[channel]
    if not isinstance(meter, dict) or meter.get("is_valid") is not True:
        raise MeterError(f"{where} says that its meter {channel} is not valid")
    counted = figure(meter, "total", where=where) * _JOULES_PER_WATT_MINUTE
    return figure(meter, "power", where=where), counted


def read_second(status: Mapping[str, Any], *, where: str) -> tuple[float, float]:
    """Read ``Switch.GetStatus`` or ``PM1.GetStatus`` of the second and later generations.

    Returns:
        Watts, and joules counted.

    Raises:
        MeterError: it holds no meter, or the device reports a failure.
    """
    if failures := status.get("errors"):
        raise MeterError(f"{where} reports a failure: {str(failures)[:80]}")
    if "apower" not in status or not isinstance(status.get("aenergy"), dict):
        raise MeterError(
            f"{where} has no meter", hint="name a Shelly with power metering, such as a Plug S"
        )
    counted = figure(status["aenergy"], "total", where=where) * _JOULES_PER_WATT_HOUR
    return figure(status, "apower", where=where), counted


class _ShellyMeter(Meter):
    """An open Shelly; which generation it is, it is asked once."""

    def __init__(self, web: WebMeter, *, channel: int, component: str) -> None:
        self._web = web
        self._channel = channel
        self._component = component
        self._generation = 0

    def _find_generation(self) -> int:
        about, _ = self._web.ask("/shelly")
        generation = about.get("gen", 1 if "type" in about else 0)
        if not isinstance(generation, int) or generation < 1:
            raise MeterError(
                f"{self._web.shown} is not a Shelly", hint="correct url in cluster.toml"
            )
        return generation

    def read(self) -> Reading:
        self._generation = self._generation or self._find_generation()
        where = self._web.shown
        if self._generation == 1:
            status, seconds = self._web.ask("/status")
            watts, counted = read_first(status, self._channel, where=where)
        else:
            method = f"{_COMPONENTS[self._component]}.GetStatus"
            status, seconds = self._web.ask(f"/rpc/{method}?id={self._channel}")
            watts, counted = read_second(status, where=where)
        return Reading(seconds=seconds, watts=watts, energy_joules=counted)

    def close(self) -> None:
        self._web.close()


def _open(settings: Mapping[str, str], _: Remote | None) -> Meter:
    password = secret_of(settings, "password")
    return _ShellyMeter(
        WebMeter(settings["url"], user=settings["user"], password=password),
        channel=whole(settings, "channel", least=0, most=63),
        component=choice(settings, "component", _COMPONENTS),
    )


KIND = MeterKind(
    name="shelly",
    summary="Shelly plug or relay with power metering, first to fourth generation, over HTTP",
    coverage=Coverage.WALL,
    accuracy="not stated in the maker's API documentation; give what the device's data sheet says",
    integrates=True,
    options=(
        Option(name="url", help="http://HOST of the device"),
        Option(name="channel", help="number of its relay, from 0", default="0"),
        Option(name="component", help="switch, or pm1 for a Mini without relay", default="switch"),
        Option(name="user", help="user name, if it requires a password", default="admin"),
        *secret_options("password", "its password"),
        Option(name="accuracy_percent", help="of its data sheet; empty: none", default=""),
    ),
    open=_open,
)
