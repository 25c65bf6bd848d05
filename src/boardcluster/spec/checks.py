"""Checks of single values: each returns the value in our terms or says what is allowed.

Every message has the form ``VALUE is wrong; allowed: ...; did you mean "nearest"?`` so that the
reader of a long list finds the same thing in the same place.
"""

from __future__ import annotations

import difflib
import ipaddress
import math
import re
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

from boardcluster.foreign import json_text
from boardcluster.records import Egress, Role
from boardcluster.units import (
    DURATION_ALLOWED,
    GIB,
    MIB,
    RATE_ALLOWED,
    SIZE_ALLOWED,
    TIB,
    format_bytes_exact,
    format_rate_exact,
    parse_duration,
    parse_rate,
    parse_size,
)

__all__ = [
    "BENCHMARK_NETWORK",
    "CLUSTER_NAME_LENGTH_MAX",
    "DISK_BYTES_MIN",
    "INPUT_SIZE_BYTES_MAX",
    "LINK_BITS_PER_SECOND_MAX",
    "LINK_BITS_PER_SECOND_MIN",
    "MEMORY_BYTES_MAX",
    "MEMORY_BYTES_MIN",
    "NODE_NAME_LENGTH_MAX",
    "REPLICATION_MAX",
    "TIMEOUT_SECONDS_MAX",
    "Allowed",
    "check_address",
    "check_board_subnet",
    "check_campaign_name",
    "check_choice",
    "check_cluster_name",
    "check_dilation",
    "check_disk",
    "check_egress",
    "check_folder",
    "check_host",
    "check_input_size",
    "check_link",
    "check_memory",
    "check_mix",
    "check_name",
    "check_node_name",
    "check_open_port",
    "check_precision",
    "check_role",
    "check_size",
    "check_ssh_from",
    "check_subnet",
    "check_timeout",
    "check_wait",
    "check_word",
    "choices_text",
    "closest",
    "complaint",
    "mix_jobs",
    "refusal",
    "shown",
]

BENCHMARK_NETWORK = ipaddress.IPv4Network("198.18.0.0/15")
"""Reserved for benchmarking by RFC 2544, so it collides with no other network."""

CLUSTER_NAME_LENGTH_MAX = 15
"""Linux interface names hold 15 characters (IFNAMSIZ less the final zero)."""

NODE_NAME_LENGTH_MAX = 63
"""One label of a host name, RFC 1123."""

MEMORY_BYTES_MIN = 256 * MIB
MEMORY_BYTES_MAX = 16 * TIB
DILATION_MAX = 1000
REPLICATION_MAX = 512
"""``dfs.replication.max`` of hdfs-default.xml."""
DISK_BYTES_MIN = GIB
DISK_BYTES_MAX = 16 * TIB
LINK_BITS_PER_SECOND_MIN = 10**6
LINK_BITS_PER_SECOND_MAX = 100 * 10**9
INPUT_SIZE_BYTES_MAX = 1000 * 10**12
MIX_JOBS_MAX = 16
"""Most jobs of a mix: each has a client of its own on the master, of about half a GiB."""

TIMEOUT_SECONDS_MAX = 30 * 24 * 3600
_WAIT_SECONDS_MAX = 24 * 3600
_CAMPAIGN_NAME_LENGTH_MAX = 40

_PREFIX_LENGTH_MIN = 16
_PREFIX_LENGTH_MAX = 28
_RESERVED_NODE_NAMES = ("localhost", "switch")
_NAME = re.compile(r"[a-z](?:[a-z0-9-]*[a-z0-9])?")
_CAMPAIGN_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?")
_PERCENTAGE = re.compile(r"([0-9]{1,2}(?:\.[0-9]{1,6})?) ?%")
_MIX_PART = re.compile(r"([^\s+]+)(?:\s+x\s?([0-9]{1,3}))?")
_SHOWN_CHARACTERS = 60
_HOST = re.compile(
    r"(ssh://)?([A-Za-z0-9_][A-Za-z0-9._-]*@)?(\[[0-9A-Fa-f:.%a-z]+\]|[A-Za-z0-9_][A-Za-z0-9._-]*)"
    r"(?(1)(:[0-9]{1,5})?)"
)
_FOLDER = re.compile(r"(/[A-Za-z0-9_+@-][A-Za-z0-9._+@-]*)+/boardcluster[A-Za-z0-9._+@-]*")
"""The name prevents taking over a user's home or a whole disk: the folder becomes ours."""
_SYSTEM_FOLDERS = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/opt/boardcluster", "/proc", "/root", "/run"),
    *("/sbin", "/sys", "/tmp", "/usr", "/var/tmp"),  # noqa: S108  refused, not used
)
"""Folders that are not for data: the system's own, in memory, cleared, or hidden from services."""

_NAME_ALLOWED = (
    "lower-case letters, digits and hyphens, starting with a letter, not ending in a hyphen, "
    "at most "
)


class Allowed:
    """What is allowed, in words for messages, by the value that is checked."""

    CLUSTER_NAME = f"{_NAME_ALLOWED}{CLUSTER_NAME_LENGTH_MAX} characters"
    NODE_NAME = (
        f"{_NAME_ALLOWED}{NODE_NAME_LENGTH_MAX} characters, except "
        f"{', '.join(_RESERVED_NODE_NAMES)}"
    )
    MEMORY = (
        f"{SIZE_ALLOWED}, from {format_bytes_exact(MEMORY_BYTES_MIN)} to "
        f"{format_bytes_exact(MEMORY_BYTES_MAX)}"
    )
    DISK = (
        f"{SIZE_ALLOWED}, from {format_bytes_exact(DISK_BYTES_MIN)} to "
        f"{format_bytes_exact(DISK_BYTES_MAX)}"
    )
    PRECISION = 'a percentage from "0.1 %" to "50 %"'
    DILATION = f'"auto", or a number from 1 to {DILATION_MAX}'
    LINK = (
        f"{RATE_ALLOWED}, from {format_rate_exact(LINK_BITS_PER_SECOND_MIN)} to "
        f"{format_rate_exact(LINK_BITS_PER_SECOND_MAX)}"
    )
    SUBNET = (
        f"an IPv4 network inside {BENCHMARK_NETWORK} with a prefix from /{_PREFIX_LENGTH_MIN} to "
        f'/{_PREFIX_LENGTH_MAX}, e.g. "198.18.0.0/24"'
    )
    BOARD_SUBNET = (
        'the IPv4 network that the boards are in, e.g. "192.168.1.0/24", with a prefix from /8 to '
        "/30"
    )
    OPEN_PORT = 'a number from 1 to 65535 and the protocol, e.g. "53/udp" or "80/tcp"'
    SSH_FROM = 'an IPv4 or IPv6 address or network, e.g. "192.168.1.5" or "192.168.1.0/24"'
    ADDRESS = 'the IPv4 address of the node in [network] subnet, e.g. "192.168.1.20"'
    HOST = (
        'how `ssh` reaches the node: "HOST", "USER@HOST" or "ssh://USER@HOST:PORT" of letters, '
        "digits and . _ - : [ ] %"
    )
    FOLDER = (
        "an absolute path of letters a-z, digits and . _ / + @ - whose last part begins with "
        "boardcluster, not among the system's own, e.g. "
        '"/var/lib/boardcluster" or "/mnt/nvme/boardcluster"'
    )
    INPUT_SIZE = f"{SIZE_ALLOWED}, from 1 B to {format_bytes_exact(INPUT_SIZE_BYTES_MAX)}"
    TIMEOUT = f"{DURATION_ALLOWED}; from 1 s to {TIMEOUT_SECONDS_MAX // 3600} h"
    WAIT = f"{DURATION_ALLOWED}; from 0 s to {_WAIT_SECONDS_MAX // 3600} h"
    CAMPAIGN_NAME = (
        "letters, digits and hyphens, starting and ending with a letter or a digit, at most "
        f"{_CAMPAIGN_NAME_LENGTH_MAX} characters"
    )
    MIX = (
        'one workload, as "grep", or a mix, as "grep+wordcount" or "grep x4", of at most '
        f"{MIX_JOBS_MAX} jobs"
    )


def shown(value: Any) -> str:
    """Write a value of a TOML file for a message: quoted as there, in one line, not too long."""
    if isinstance(value, str):
        short = value if len(value) <= _SHOWN_CHARACTERS else value[: _SHOWN_CHARACTERS - 1] + "…"
        return json_text(short)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array" if value else "an empty array"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number of more than 64 bits"
    return str(value)


def complaint(what: str, *, allowed: str, nearest: str = "") -> str:
    """Join what is wrong, what is allowed and, if there is one, the nearest valid value."""
    suggestion = f"; did you mean {shown(nearest)}?" if nearest else ""
    return f"{what}; allowed: {allowed}{suggestion}"


def refusal(what: str, *, allowed: str, nearest: str = "") -> ValueError:
    """Build the error that a check raises; always a ValueError, the kind that Pydantic collects."""
    return ValueError(complaint(what, allowed=allowed, nearest=nearest))


def choices_text(choices: Collection[str]) -> str:
    """Write the names among which a value must be, for a message."""
    return ", ".join(sorted(choices)) or "nothing, since none is known"


def closest(value: str, choices: Iterable[str]) -> str:
    """Return the choice that is most like a value, whatever its case; empty if none is."""
    by_lower_case = {choice.lower(): choice for choice in sorted(choices)}
    near = difflib.get_close_matches(value.lower(), by_lower_case, n=1)
    return by_lower_case[near[0]] if near else ""


def check_choice(value: str, choices: Collection[str], *, what: str) -> str:
    """Return the value if it is one of the choices.

    Args:
        value: what the file says.
        choices: what is allowed.
        what: what a choice is, with its article, for the message.

    Raises:
        ValueError: it is none of them; names them and the nearest.
    """
    if value in choices:
        return value
    raise refusal(
        f"{shown(value)} is not {what}",
        allowed=choices_text(choices),
        nearest=closest(value, choices),
    )


def check_name(value: str, *, length_max: int, allowed: str, reserved: Collection[str] = ()) -> str:
    """Return the value if it can name a cluster or a node.

    Args:
        value: what the file says.
        length_max: characters.
        allowed: the rule in words.
        reserved: names that are taken.

    Raises:
        ValueError: it cannot; names the rule and, where there is one, a valid name like it.
    """
    if _NAME.fullmatch(value) and len(value) <= length_max and value not in reserved:
        return value
    near = re.sub(r"[^a-z0-9]+", "-", value[:1000].lower()).lstrip("-0123456789")
    near = near[:length_max].rstrip("-")
    reason = "is reserved" if value in reserved else "is not a valid name"
    raise refusal(
        f"{shown(value)} {reason}", allowed=allowed, nearest="" if near in reserved else near
    )


check_cluster_name = partial(
    check_name, length_max=CLUSTER_NAME_LENGTH_MAX, allowed=Allowed.CLUSTER_NAME
)
check_node_name = partial(
    check_name,
    length_max=NODE_NAME_LENGTH_MAX,
    allowed=Allowed.NODE_NAME,
    reserved=_RESERVED_NODE_NAMES,
)


def check_role(value: Any) -> Role:
    """Return the role of that name.

    Raises:
        ValueError: there is none; names all and the nearest.
    """
    return Role(check_word(value, [role.value for role in Role], what="a role"))


def check_egress(value: Any) -> Egress:
    """Return what daemons and jobs may reach, by its name.

    Raises:
        ValueError: there is none; names all and the nearest.
    """
    words = [egress.value for egress in Egress]
    return Egress(check_word(value, words, what="what daemons and jobs may reach"))


def check_word(value: Any, choices: Collection[str], *, what: str) -> str:
    """Return the value if it is text and one of the choices; else as ``check_choice``."""
    if not isinstance(value, str):
        raise refusal(f"{shown(value)} is not {what}", allowed=choices_text(choices))
    return check_choice(value, choices, what=what)


def check_campaign_name(value: Any) -> str:
    """Return the value if it can name a campaign.

    Raises:
        ValueError: it cannot; names the rule and, where there is one, a valid name like it.
    """
    text = value if isinstance(value, str) else ""
    if _CAMPAIGN_NAME.fullmatch(text) and len(text) <= _CAMPAIGN_NAME_LENGTH_MAX:
        return text
    near = re.sub(r"[^A-Za-z0-9]+", "-", text[:1000]).strip("-")
    near = near[:_CAMPAIGN_NAME_LENGTH_MAX].rstrip("-")
    raise refusal(
        f"{shown(value)} is not a valid name", allowed=Allowed.CAMPAIGN_NAME, nearest=near
    )


def mix_jobs(text: str) -> tuple[str, ...]:
    """Return the workloads of a mix in order: ``"grep x2+pi"`` is grep, grep, pi.

    Raises:
        ValueError: it is not written as a mix is, or has too many jobs.
    """
    jobs: list[str] = []
    for part in text.split("+"):
        match = _MIX_PART.fullmatch(part.strip())
        times = int(match[2] or 1) if match else 0
        if match is None or times < 1:
            raise refusal(f"{shown(text)} is not a workload or a mix", allowed=Allowed.MIX)
        jobs += [match[1]] * times
        if len(jobs) > MIX_JOBS_MAX:
            raise refusal(f"{shown(text)} has too many jobs", allowed=Allowed.MIX)
    return tuple(jobs)


def check_mix(value: Any, workloads: Collection[str]) -> str:
    """Return a workload, or a mix in its plain form: names joined by ``+``.

    Raises:
        ValueError: it is neither, or names an unknown workload; names all and the nearest.
    """
    if not isinstance(value, str):
        raise refusal(f"{shown(value)} is not a workload", allowed=choices_text(workloads))
    jobs = mix_jobs(value)
    for job in jobs:
        check_choice(job, workloads, what="a workload")
    return "+".join(jobs)


def check_size(value: Any, *, least_bytes: int, most_bytes: int, allowed: str) -> int:
    """Return the bytes of a size in a range.

    Args:
        value: what the file says.
        least_bytes: the smallest.
        most_bytes: the largest.
        allowed: the range in words, for messages.

    Raises:
        ValueError: it is no size, or outside the range.
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise refusal(f"{shown(value)} is not a size", allowed=allowed)
    size_bytes = parse_size(value)
    if size_bytes < least_bytes:
        raise refusal(f"{shown(value)} is too small", allowed=allowed)
    if size_bytes > most_bytes:
        raise refusal(f"{shown(value)} is too large", allowed=allowed)
    return size_bytes


check_input_size = partial(
    check_size, least_bytes=1, most_bytes=INPUT_SIZE_BYTES_MAX, allowed=Allowed.INPUT_SIZE
)
check_memory = partial(
    check_size, least_bytes=MEMORY_BYTES_MIN, most_bytes=MEMORY_BYTES_MAX, allowed=Allowed.MEMORY
)
check_disk = partial(
    check_size, least_bytes=DISK_BYTES_MIN, most_bytes=DISK_BYTES_MAX, allowed=Allowed.DISK
)


def _check_duration(
    value: Any, *, least_seconds: float, most_seconds: float, allowed: str
) -> float:
    """Return the seconds of a duration in a range, or raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise refusal(f"{shown(value)} is not a duration", allowed=allowed)
    seconds = parse_duration(value)
    if seconds < least_seconds:
        raise refusal(f"{shown(value)} is too short", allowed=allowed)
    if seconds > most_seconds:
        raise refusal(f"{shown(value)} is too long", allowed=allowed)
    return seconds


check_timeout = partial(
    _check_duration, least_seconds=1, most_seconds=TIMEOUT_SECONDS_MAX, allowed=Allowed.TIMEOUT
)
check_wait = partial(
    _check_duration, least_seconds=0, most_seconds=_WAIT_SECONDS_MAX, allowed=Allowed.WAIT
)


def check_precision(value: Any) -> float:
    """Return the share of a result that an interval may reach: ``"3 %"`` is 0.03.

    Raises:
        ValueError: it is not a percentage from 0.1 to 50.
    """
    found = _PERCENTAGE.fullmatch(value) if isinstance(value, str) else None
    percent = float(found[1]) if found else math.nan
    if not 0.1 <= percent <= 50:
        raise refusal(f"{shown(value)} is not valid", allowed=Allowed.PRECISION)
    return percent / 100


def check_dilation(value: Any) -> float | None:
    """Return by how much emulated boards are slower than real ones; None stands for ``"auto"``.

    Raises:
        ValueError: neither ``"auto"`` nor a number in range.
    """
    if value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refusal(f"{shown(value)} is not a dilation", allowed=Allowed.DILATION)
    if not 1 <= value <= DILATION_MAX:
        raise refusal(f"{shown(value)} is out of range", allowed=Allowed.DILATION)
    return float(value)


def check_link(value: Any) -> int:
    """Return the bits per second of a link.

    Raises:
        ValueError: no rate, or out of range.
    """
    if not isinstance(value, str):
        raise refusal(f"{shown(value)} is not a rate", allowed=Allowed.LINK)
    bits_per_second = parse_rate(value)
    if bits_per_second < LINK_BITS_PER_SECOND_MIN:
        raise refusal(f"{shown(value)} is too slow", allowed=Allowed.LINK)
    if bits_per_second > LINK_BITS_PER_SECOND_MAX:
        raise refusal(f"{shown(value)} is too fast", allowed=Allowed.LINK)
    return bits_per_second


def _network(value: str, *, allowed: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(value, strict=False)
    except ValueError as error:
        raise refusal(f"{shown(value)} is not an IPv4 network", allowed=allowed) from error


def check_subnet(value: str) -> str:
    """Return the network in CIDR form.

    Raises:
        ValueError: no IPv4 network, outside the benchmarking range, or of an unsuitable size.
    """
    network = _network(value, allowed=Allowed.SUBNET)
    if not network.subnet_of(BENCHMARK_NETWORK):
        what = f"{shown(value)} is outside {BENCHMARK_NETWORK}"
        raise refusal(what, allowed=Allowed.SUBNET)
    if not _PREFIX_LENGTH_MIN <= network.prefixlen <= _PREFIX_LENGTH_MAX:
        what = f"{shown(value)} has the prefix /{network.prefixlen}"
        raise refusal(what, allowed=Allowed.SUBNET)
    if str(network.network_address) != value.partition("/")[0]:
        what = f"{shown(value)} is an address inside a network, not the network"
        raise refusal(what, allowed=Allowed.SUBNET, nearest=str(network))
    return str(network)


def check_board_subnet(value: str) -> str:
    """Return the network of real boards in CIDR form.

    Raises:
        ValueError: no IPv4 network, or of an unsuitable size.
    """
    network = _network(value, allowed=Allowed.BOARD_SUBNET)
    if not 8 <= network.prefixlen <= 30 or network.is_loopback or network.is_multicast:
        raise refusal(f"{shown(value)} cannot be a network of boards", allowed=Allowed.BOARD_SUBNET)
    if str(network) != value:
        what = f"{shown(value)} is not written as a network"
        raise refusal(what, allowed=Allowed.BOARD_SUBNET, nearest=str(network))
    return value


def check_open_port(value: str) -> str:
    """Return a port with its protocol.

    Raises:
        ValueError: it is no port, or names no protocol.
    """
    number, _, protocol = value.partition("/")
    digits = number.isascii() and number.isdigit() and len(number) <= 5
    if not digits or not 1 <= int(number) <= 65535:
        raise refusal(f"{shown(value)} is not a port", allowed=Allowed.OPEN_PORT)
    if protocol not in ("tcp", "udp"):
        nearest = f"{int(number)}/tcp" if not protocol else ""
        what = f"{shown(value)} names no protocol"
        raise refusal(what, allowed=Allowed.OPEN_PORT, nearest=nearest)
    return f"{int(number)}/{protocol}"


def check_ssh_from(value: str) -> str:
    """Return a network in CIDR form; an address is the network of itself alone.

    Raises:
        ValueError: it is neither, names an interface, or is an address inside a network instead of
            the network.
    """
    if "%" in value:
        raise refusal(f"{shown(value)} names an interface", allowed=Allowed.SSH_FROM)
    try:
        return str(ipaddress.ip_network(value))
    except ValueError as error:
        try:
            nearest = str(ipaddress.ip_network(value, strict=False))
        except ValueError:
            nearest = ""
        what = f"{shown(value)} is not an address or a network"
        raise refusal(what, allowed=Allowed.SSH_FROM, nearest=nearest) from error


def check_address(value: str) -> str:
    """Return an IPv4 address.

    Raises:
        ValueError: it is none, or not one of a single machine.
    """
    try:
        address = ipaddress.IPv4Address(value)
    except ValueError as error:
        what = f"{shown(value)} is not an IPv4 address"
        raise refusal(what, allowed=Allowed.ADDRESS) from error
    if address.is_loopback or address.is_multicast or address.is_unspecified:
        what = f"{shown(value)} is not the address of a machine in a network"
        raise refusal(what, allowed=Allowed.ADDRESS)
    return str(address)


def check_host(value: str) -> str:
    """Return a destination for OpenSSH; one that ssh could take for an option is refused.

    Raises:
        ValueError: it is none.
    """
    if not _HOST.fullmatch(value):
        raise refusal(f"{shown(value)} is not a host", allowed=Allowed.HOST)
    return value


def check_folder(value: str) -> str:
    """Return the folder of a node for data, logs and configuration.

    Raises:
        ValueError: Hadoop and Spark cannot work there, or it is the system's.
    """
    if not _FOLDER.fullmatch(value):
        raise refusal(f"{shown(value)} is not a usable path", allowed=Allowed.FOLDER)
    if any(value == place or value.startswith(f"{place}/") for place in _SYSTEM_FOLDERS):
        raise refusal(f"{shown(value)} is a folder of the system", allowed=Allowed.FOLDER)
    return value
