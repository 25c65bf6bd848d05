"""What identifies people and machines, as far as this machine and a cluster's home know it."""

from __future__ import annotations

import contextlib
import getpass
import ipaddress
import json
import os
import pwd
import re
import socket
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boardcluster.records import ClusterSpec
from boardcluster.redaction import names_secret

__all__ = ["KnownNames", "known_names"]

_SHORTEST = 3
_SECRET_SHORTEST = 8
_EMULATED = ipaddress.IPv4Network("198.18.0.0/15")
_COMMON = frozenset(
    {
        *("admin", "boardcluster", "daemon", "debian", "guest", "hadoop", "hdfs", "localhost"),
        *("mapred", "mapreduce", "nobody", "raspberrypi", "root", "spark", "ubuntu", "user"),
        *("yarn", "host", "cluster", "default", "test", "local", "linux", "localdomain"),
    }
)
"""Names that many have, and that logs are full of: they identify nobody."""
_PLACE = re.compile(r"(?:[a-z]+://)?(?P<host>(?:[^/@:\s]+@)?[A-Za-z][\w.-]*)(?:[:/]|$)")
_NUMBERED = re.compile(r"(?:master|slave|worker|node|board|pi|rpi|raspberrypi|host)-?\d*")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNames:
    """What is to be replaced wherever it stands."""

    hosts: tuple[str, ...] = ()
    """Names of machines, whole and without their domain."""
    users: tuple[str, ...] = ()
    """Names of accounts."""
    folders: tuple[tuple[str, str], ...] = ()
    """Paths of this machine, each with what is written instead; a folder before those above it."""
    networks: tuple[str, ...] = ()
    """Networks of boards, as ``192.168.1.0/24``."""
    secrets: tuple[str, ...] = ()
    """Values of secrets in the environment of this process."""


def known_names(
    home: Path,
    spec: ClusterSpec | None,
    *,
    cache: Path | None = None,
    words: Iterable[str] = (),
) -> KnownNames:
    """Gather what identifies people and machines.

    That is this machine's name, the user and whoever owns the home, their folders, what
    ``cluster.toml`` says of hosts and meters, the boards' own names as they were found, and the
    values of environment variables that are named like a secret. Names that many have, such as
    ``root``, ``pi`` and ``worker1``, stay.

    Args:
        home: state folder of the cluster.
        spec: the cluster as it last ran; None if that is not known.
        cache: the cache folder.
        words: words of the records that are nobody's name, such as workloads.
    """
    ordinary = {*_COMMON, *words}
    hosts = [*_of_this_machine(), *_of_boards(home)]
    users = list(_accounts(home))
    for word in _hosts_of(spec):
        user, _, host = word.rpartition("@")
        users.append(user)
        hosts.append(host)
    folders = {str(home): "(home)", str(home.resolve()): "(home)"}
    if cache is not None:
        folders |= {str(cache): "(cache)"}
    own = str(Path("~").expanduser())
    if own not in {"/", "~"}:
        folders.setdefault(own, "(user)")
    return KnownNames(
        hosts=tuple(_told_apart(_with_labels(hosts), ordinary)),
        users=tuple(_told_apart(users, ordinary)),
        folders=tuple(sorted(folders.items(), key=lambda row: -len(row[0]))),
        networks=_networks(spec),
        secrets=tuple(
            sorted(
                {
                    value
                    for name, value in os.environ.items()
                    if names_secret(name) and len(value) >= _SECRET_SHORTEST and not _is_path(value)
                },
                # One that begins with another is to be hidden whole.
                key=lambda value: (-len(value), value),
            )
        ),
    )


def _is_path(value: str) -> bool:
    """Whether it names a file, in which a secret may be, and is none itself."""
    return value.startswith("/") and os.path.lexists(value)


def _of_this_machine() -> Iterator[str]:
    yield socket.gethostname()
    yield os.uname().nodename


def _of_boards(home: Path) -> Iterator[str]:
    """Yield the names by which boards call themselves, as they were found."""
    with contextlib.suppress(OSError, ValueError):
        yield from _members(json.loads((home / "nodes.json").read_bytes()), "name")


def _members(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        found = value.get(name)
        if isinstance(found, str) and "memory_bytes" in value:  # facts of a node, not of its links
            yield found
        for each in value.values():
            yield from _members(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from _members(each, name)


def _accounts(home: Path) -> Iterator[str]:
    with contextlib.suppress(KeyError, OSError):
        yield getpass.getuser()
    with contextlib.suppress(KeyError, OSError):
        yield pwd.getpwuid(home.stat().st_uid).pw_name
    yield os.environ.get("SUDO_USER", "")


def _hosts_of(spec: ClusterSpec | None) -> Iterator[str]:
    """Yield what a declaration says of machines, as ``[USER@]HOST``."""
    if spec is None:
        return
    for node in spec.nodes:
        host = node.host.removeprefix("ssh://")
        yield host if host == node.host else re.sub(r":\d+$", "", host)
    for meter in spec.meters:
        for value in meter.options.values():
            found = _PLACE.match(value)
            if found and ("." in found["host"] or "://" in value):
                yield found["host"]


def _with_labels(hosts: Iterable[str]) -> Iterator[str]:
    """Yield each name of a machine, and its first part; addresses are no names."""
    for host in hosts:
        bare = host.strip("[]")
        with contextlib.suppress(ValueError):
            ipaddress.ip_address(bare)
            continue
        yield bare
        yield bare.partition(".")[0]


def _told_apart(names: Iterable[str], ordinary: Collection[str]) -> Iterator[str]:
    """Yield names that identify somebody, each once, in lower case; no numbers, as counts are."""
    for name in dict.fromkeys(name.strip().lower() for name in names):
        if name.isdecimal():
            continue
        if len(name) >= _SHORTEST and name not in ordinary and not _NUMBERED.fullmatch(name):
            yield name


def _networks(spec: ClusterSpec | None) -> tuple[str, ...]:
    if spec is None:
        return ()
    network = ipaddress.IPv4Network(spec.network.subnet, strict=False)
    return () if network.is_loopback or network.subnet_of(_EMULATED) else (str(network),)
