"""Plugs that run the firmware Tasmota, over HTTP.

Source: Tasmota documentation, Commands (``Status 8``, web requests) and Power Monitoring
Calibration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from boardcluster.errors import MeterError
from boardcluster.records import Coverage
from boardcluster.remote.base import Remote
from boardcluster.telemetry.meters.base import Meter, MeterKind, Option, Reading
from boardcluster.telemetry.meters.wire.credentials import Secret, secret_of, secret_options
from boardcluster.telemetry.meters.wire.options import whole
from boardcluster.telemetry.meters.wire.web import WebMeter, figure

__all__ = ["KIND", "read_status"]

_JOULES_PER_KILOWATT_HOUR = 3_600_000.0
_STATUS = "/cm?cmnd=Status%208"


def read_status(
    answer: Mapping[str, Any], channel: int, *, where: str
) -> tuple[float, float | None]:
    """Read the answer to ``Status 8``.

    Args:
        answer: parsed JSON.
        channel: of a device with several meters, which gives arrays; from 0.
        where: for messages.

    Returns:
        Watts, and joules counted; None where several meters have one count, as they have unless the
        device's ``SetOption129`` is 1.

    Raises:
        MeterError: it is a refusal, or has no energy sensor.
    """
    if "WARNING" in answer:
        raise MeterError(
            f"{where} requires a password", hint="give password_file in its table of cluster.toml"
        )
    sensors = answer.get("StatusSNS")
    energy = sensors.get("ENERGY") if isinstance(sensors, dict) else None
    if not isinstance(energy, dict):
        raise MeterError(f"{where} has no energy sensor, or is not a Tasmota device")
    picked = dict(energy)
    for name in ("Power", "Total"):
        value = energy.get(name)
        if isinstance(value, list):
            if channel >= len(value):
                raise MeterError(f"{where} has no meter {channel}")
            picked[name] = value[channel]
    watts = figure(picked, "Power", where=where)
    counted = figure(picked, "Total", where=where) * _JOULES_PER_KILOWATT_HOUR
    shared = isinstance(energy["Power"], list) and not isinstance(energy["Total"], list)
    return watts, None if shared else counted


class _TasmotaMeter(Meter):
    """An open Tasmota device."""

    def __init__(self, web: WebMeter, *, user: str, password: Secret, channel: int) -> None:
        self._web = web
        self._user, self._password = user, password
        self._channel = channel

    def read(self) -> Reading:
        secret = ""
        if self._password:
            words = {"user": self._user, "password": self._password.reveal()}
            secret = f"&{urlencode(words)}"
        answer, seconds = self._web.ask(_STATUS, secret_path=secret)
        watts, counted = read_status(answer, self._channel, where=self._web.shown)
        return Reading(seconds=seconds, watts=watts, energy_joules=counted)

    def close(self) -> None:
        self._web.close()


def _open(settings: Mapping[str, str], _: Remote | None) -> Meter:
    return _TasmotaMeter(
        WebMeter(settings["url"]),
        user=settings["user"],
        password=secret_of(settings, "password"),
        channel=whole(settings, "channel", least=0, most=7),
    )


KIND = MeterKind(
    name="tasmota",
    summary="plug with the firmware Tasmota and a power sensor, over HTTP",
    coverage=Coverage.WALL,
    accuracy="none stated: it depends on how the device was calibrated (Tasmota documentation, "
    "Power Monitoring Calibration)",
    integrates=True,
    options=(
        Option(name="url", help="http://HOST of the device"),
        Option(name="channel", help="number of its meter, from 0", default="0"),
        Option(name="user", help="user name, if it requires a password", default="admin"),
        *secret_options("password", "its password"),
        Option(name="accuracy_percent", help="as reached by its calibration", default=""),
    ),
    open=_open,
)
