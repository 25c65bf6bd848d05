"""A PoE switch that tells by SNMP what it delivers: as a whole, or its vendor's figures per port.

Sources: RFC 3621, POWER-ETHERNET-MIB, ``pethMainPseConsumptionPower`` (whole watts, all ports of a
group); per port the standard has no measured power, vendors do, for instance
CISCO-POWER-ETHERNET-EXT-MIB, ``cpeExtPsePortPwrConsumption`` (milliwatts).

The community of version 2c goes over the network as it is; a secret in an argument list would be
seen by every user, so a library asks and no program (docs/decisions/0020).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from boardcluster.errors import HostError, MeterError, SpecError, extra_hint
from boardcluster.records import Coverage
from boardcluster.remote.base import Remote
from boardcluster.telemetry.meters.base import Meter, MeterKind, Option, Reading
from boardcluster.telemetry.meters.wire.credentials import Secret, secret_of, secret_options
from boardcluster.telemetry.meters.wire.options import choice, whole

__all__ = ["KIND", "sum_of"]

_WHOLE_SWITCH = "1.3.6.1.2.1.105.1.3.1.1.4.1"
_OID = re.compile(r"\d+(\.\d+)+")
_WATTS_PER_UNIT = {"W": 1.0, "dW": 0.1, "mW": 0.001}
_TIMEOUT_SECONDS = 2.0
_AUTHENTICATION = {"sha1": "Sha1Key", "sha256": "Sha256Key", "sha512": "Sha512Key", "md5": "Md5Key"}
_PRIVACY = {"none": "", "aes128": "Aes128Key", "aes256": "Aes256Key", "des": "DesKey"}


def _library() -> tuple[Any, Any]:
    try:
        return import_module("gufo.snmp"), import_module("gufo.snmp.sync")
    except ImportError as error:
        raise HostError(
            "reading a switch by SNMP requires the Python package gufo-snmp",
            hint=extra_hint("meters"),
        ) from error


def sum_of(answer: Mapping[str, Any], oids: tuple[str, ...], *, unit: str, where: str) -> float:
    """Sum the answered values.

    Returns:
        Watts.

    Raises:
        MeterError: one is missing or no number.
    """
    watts = 0.0
    for oid in oids:
        value = answer.get(oid)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise MeterError(
                f"{where} reports no number for {oid}",
                hint="correct oids in cluster.toml; `snmpwalk` shows what the switch has",
            )
        watts += value * _WATTS_PER_UNIT[unit]
    return watts


class _PoeMeter(Meter):
    """An open switch.

    Args:
        host: its name or address.
        port: UDP port.
        oids: what to sum.
        unit: of the values.
        identity: arguments for the library's session that say who asks.
    """

    def __init__(
        self, host: str, port: int, *, oids: tuple[str, ...], unit: str, identity: dict[str, Any]
    ) -> None:
        self._library, self._sync = _library()
        self._host, self._port = host, port
        self._oids, self._unit = oids, unit
        self._identity = identity
        self._session: Any = None

    def read(self) -> Reading:
        where = f"{self._host}:{self._port}"
        asked = time.monotonic()
        try:
            if self._session is None:
                session = self._sync.SnmpSession(
                    self._host, port=self._port, timeout=_TIMEOUT_SECONDS, **self._identity
                )
                session.refresh()
                self._session = session
                asked = time.monotonic()
            answer = self._session.get_many(self._oids)
        except TimeoutError as error:
            self._session = None
            raise MeterError(
                f"{where} did not answer within {_TIMEOUT_SECONDS:g} s",
                hint="a switch does not answer if the community is wrong; check it, and what the "
                "switch lets this machine see",
            ) from error
        except self._library.SnmpAuthError as error:
            self._session = None
            raise MeterError(f"{where} rejects the user name or the passwords") from error
        except (self._library.SnmpError, OSError, ValueError, RuntimeError) as error:
            self._session = None
            raise MeterError(f"{where} cannot be read: {type(error).__name__}") from error
        halfway = (asked + time.monotonic()) / 2
        watts = sum_of(answer, self._oids, unit=self._unit, where=where)
        return Reading(seconds=halfway, watts=watts)

    def close(self) -> None:
        self._session = None


def _identity(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return who asks, as arguments for the library's session.

    Raises:
        SpecError: an option has a wrong value, or there is no secret.
    """
    library, _ = _library()
    if choice(settings, "version", ("2c", "3")) == "2c":
        community = _needed(settings, "community")
        return {"community": community.reveal(), "version": library.SnmpVersion.v2c}
    if not settings["user"]:
        raise SpecError(
            'a meter with version = "3" has no user', hint="give user in its table of cluster.toml"
        )
    key = getattr(library, _AUTHENTICATION[choice(settings, "authentication", _AUTHENTICATION)])
    authentication = key(_needed(settings, "password").reveal().encode())
    privacy = None
    if name := _PRIVACY[choice(settings, "privacy", _PRIVACY)]:
        privacy = getattr(library, name)(_needed(settings, "privacy_password").reveal().encode())
    user = library.User(settings["user"], auth_key=authentication, priv_key=privacy)
    return {"user": user, "version": library.SnmpVersion.v3}


def _needed(settings: Mapping[str, str], name: str) -> Secret:
    secret = secret_of(settings, name)
    if not secret:
        raise SpecError(
            f"reading a switch by SNMP requires {name}_file or {name}_variable",
            hint=f"write the secret into a file that only you may read and name it as {name}_file",
        )
    return secret


def _open(settings: Mapping[str, str], _: Remote | None) -> Meter:
    oids = tuple(word.strip().lstrip(".") for word in settings["oids"].split(","))
    for oid in oids:
        if not _OID.fullmatch(oid):
            raise SpecError(
                f'the option "oids" of a meter holds "{oid}"; allowed: numbers with dots, several '
                "joined by commas",
                hint="correct oids in cluster.toml",
            )
    return _PoeMeter(
        settings["host"],
        whole(settings, "port", least=1, most=65_535),
        oids=oids,
        unit=choice(settings, "unit", _WATTS_PER_UNIT),
        identity=_identity(settings),
    )


KIND = MeterKind(
    name="poe-snmp",
    summary="PoE switch by SNMP v2c or v3: power of all its ports, or of chosen ones",
    coverage=Coverage.PORT,
    accuracy="none stated in RFC 3621, which gives whole watts; give what the switch's data sheet "
    "says",
    interval_seconds=5.0,
    options=(
        Option(name="host", help="host name or address of the switch"),
        Option(name="port", help="UDP port", default="161"),
        Option(name="oids", help="values to sum, joined by commas", default=_WHOLE_SWITCH),
        Option(name="unit", help="of the values: W, dW, mW", default="W"),
        Option(name="version", help="2c or 3", default="2c"),
        *secret_options("community", "the community, for version 2c"),
        Option(name="user", help="user name, for version 3", default=""),
        Option(name="authentication", help="sha1, sha256, sha512, md5", default="sha1"),
        *secret_options("password", "the user's password, for version 3"),
        Option(name="privacy", help="aes128, aes256, des, none", default="aes128"),
        *secret_options("privacy_password", "the password that encrypts, for version 3"),
        Option(name="accuracy_percent", help="of its data sheet; empty: none", default=""),
    ),
    open=_open,
)
