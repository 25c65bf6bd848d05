"""What a node is to have, as data. How each is compared, changed and taken back is in ``node/``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

from boardcluster.fetch.cache import sha256_of
from boardcluster.records import Egress

__all__ = [
    "File",
    "Firewall",
    "Folder",
    "Hosts",
    "Packages",
    "Resource",
    "Service",
    "Symlink",
    "Sysctl",
    "Tree",
    "User",
    "Word",
    "request_of",
    "tree_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packages:
    """Debian packages."""

    wanted: tuple[tuple[str, ...], ...]
    """Each package as its alternatives; the first that exists is installed if none is."""
    optional: tuple[str, ...] = ()
    """Packages that are left out where the system has none of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A system user and its group."""

    name: str
    """The name of both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder."""

    path: str
    """Where."""
    owner: str = "root"
    """The user who owns it, with that user's group."""
    mode: int = 0o755
    """Its permissions."""
    own: tuple[str, ...] = ()
    """Patterns of the names that we use in it; only those are removed from a folder that was there
    before."""
    data: bool = False
    """Whether it holds the user's data, which ``uninstall`` can be told to keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A small text file of root's."""

    path: str
    """Where."""
    content: str
    """What stands in it."""
    mode: int = 0o644
    """Its permissions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symlink:
    """A symbolic link."""

    path: str
    """Where."""
    targets: tuple[str, ...]
    """What it leads to: the first of these that exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """The names of the cluster in the hosts file."""

    rows: tuple[tuple[str, str], ...]
    """Address and name of each node."""
    path: str = "/etc/hosts"
    """The file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word in a file that is one line."""

    paths: tuple[str, ...]
    """Where the file may be; the first that exists is taken."""
    word: str
    """The word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sysctl:
    """Settings of the kernel."""

    path: str
    """The file that sets them when the node starts."""
    values: Mapping[str, str]
    """Each setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Firewall:
    """The table ``inet boardcluster`` of nftables."""

    path: str
    """The file it is loaded from."""
    content: str
    """Its rules, with SSH_PORT where the port stands by which the node is reached, and with
    SERVICE_USER and TRUSTED_USERS for numbers of users."""
    open_ports: tuple[str, ...] = ()
    """What it leaves open beside SSH: ``"53/udp"``."""
    ssh_from: tuple[str, ...] = ()
    """Networks that it lets in by SSH; empty for all."""
    service_user: str = "boardcluster"
    """Who runs the cluster."""
    egress: Egress = Egress.ANY
    """What that user may reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A systemd service that is enabled and runs."""

    names: tuple[str, ...]
    """Its alternatives; the first that is installed is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A file or folder of the driver, copied to a node."""

    source: Path
    """Where it is on the driver."""
    path: str
    """Where it is to be on the node."""
    files: Mapping[str, tuple[int, str]] = field(repr=False)
    """Each file in it with its size in bytes and its SHA-256; of a single file, the empty name."""

    @property
    def digest(self) -> str:
        """Digest of names, sizes and content; the node keeps it once it has a whole copy."""
        return hashlib.sha256(json.dumps(self.files, sort_keys=True).encode()).hexdigest()


Resource: TypeAlias = (
    Packages | User | Folder | File | Symlink | Hosts | Word | Sysctl | Firewall | Service | Tree
)


def tree_of(source: Path, path: str, *, sums: Mapping[str, str] | None = None) -> Tree:
    """Return a file or folder of the driver as a tree; files without a known sum are hashed."""
    if source.is_file():
        return Tree(
            source=source, path=path, files={"": (source.stat().st_size, sha256_of(source))}
        )
    files = {}
    for place in sorted(source.rglob("*")):
        if place.is_file():
            name = place.relative_to(source).as_posix()
            files[name] = (place.stat().st_size, (sums or {}).get(name) or sha256_of(place))
    return Tree(source=source, path=path, files=files)


def request_of(resource: Resource, *, deep: bool = False) -> dict[str, Any]:
    """Return a resource as the node-side program takes it; ``deep`` looks at every copied byte."""
    values = {row.name: getattr(resource, row.name) for row in fields(resource)}
    request = {"kind": type(resource).__name__.lower(), **values}
    if isinstance(resource, Tree):
        request |= {"digest": resource.digest, "deep": deep}
        del request["source"]
    return request
