"""What a node is to have, as data. How each is compared, changed and taken back is in ``node/``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

from boardcluster.fetch.cache import sha256_of

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
    """Debian packages.

    Attributes:
        wanted: each package as its alternatives; the first that exists is installed if none is.
    """

    wanted: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A system user and its group.

    Attributes:
        name: the name of both.
    """

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder.

    Attributes:
        path: where.
        owner: the user who owns it, with that user's group.
        mode: its permissions.
        own: patterns of the names that we use in it; only those are removed from a folder that
            was there before.
        data: whether it holds the user's data, which ``uninstall`` can be told to keep.
    """

    path: str
    owner: str = "root"
    mode: int = 0o755
    own: tuple[str, ...] = ()
    data: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A small text file of root's.

    Attributes:
        path: where.
        content: what stands in it.
        mode: its permissions.
    """

    path: str
    content: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Symlink:
    """A symbolic link.

    Attributes:
        path: where.
        targets: what it leads to: the first of these that exists.
    """

    path: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """The names of the cluster in the hosts file.

    Attributes:
        rows: address and name of each node.
        path: the file.
    """

    rows: tuple[tuple[str, str], ...]
    path: str = "/etc/hosts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word in a file that is one line.

    Attributes:
        paths: where the file may be; the first that exists is taken.
        word: the word.
    """

    paths: tuple[str, ...]
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sysctl:
    """Settings of the kernel.

    Attributes:
        path: the file that sets them when the node starts.
        values: each setting.
    """

    path: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Firewall:
    """The table ``inet boardcluster`` of nftables.

    Attributes:
        path: the file it is loaded from.
        content: its rules, with SSH_PORT where the port stands by which the node is reached.
    """

    path: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A systemd service that is enabled and runs.

    Attributes:
        names: its alternatives; the first that is installed is meant.
    """

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A file or folder of the driver, copied to a node.

    Attributes:
        source: where it is on the driver.
        path: where it is to be on the node.
        files: each file in it with its size in bytes and its SHA-256; of a single file, the empty
            name.
        digest: of all that; the node keeps it once it has a whole copy.
    """

    source: Path
    path: str
    files: Mapping[str, tuple[int, str]] = field(repr=False)

    @property
    def digest(self) -> str:
        """Digest of names, sizes and content."""
        return hashlib.sha256(json.dumps(self.files, sort_keys=True).encode()).hexdigest()


Resource: TypeAlias = (
    Packages | User | Folder | File | Symlink | Hosts | Word | Sysctl | Firewall | Service | Tree
)


def tree_of(source: Path, path: str, *, sums: Mapping[str, str] | None = None) -> Tree:
    """Return a file or folder as a tree.

    Args:
        source: where it is on the driver.
        path: where it is to be on the node.
        sums: SHA-256 by name in the folder, where it is known; other files are hashed.
    """
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
    """Return a resource as the node-side program takes it.

    Args:
        resource: the resource.
        deep: whether every byte of a copied file is to be looked at.
    """
    values = {row.name: getattr(resource, row.name) for row in fields(resource)}
    request = {"kind": type(resource).__name__.lower(), **values}
    if isinstance(resource, Tree):
        request |= {"digest": resource.digest, "deep": deep}
        del request["source"]
    return request
