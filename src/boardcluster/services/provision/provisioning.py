"""Bring boards to what they are to have, show what that would change, and take it back.

Each node gets one request: all that is wanted. The program in ``node/`` compares, and changes what
differs. Its text goes with the request, on standard input: sudo logs argument lists.

Nodes are reached as root. ``deep`` reads every byte of what was copied instead of names and sizes;
``root`` is put before every path, for tests.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from boardcluster.cluster.each_node import each_node, raise_first
from boardcluster.errors import (
    BoardclusterError,
    CapacityError,
    ClusterError,
    InstallError,
    LoginError,
    UnreachableError,
)
from boardcluster.remote.base import Remote
from boardcluster.remote.node_rpc import json_of
from boardcluster.services.provision.node.guards import CONFIRM_SECONDS
from boardcluster.services.provision.resources import Firewall, Resource, Tree, request_of

__all__ = ["COPIES_AT_ONCE", "Change", "apply", "plan", "provision", "uninstall", "unmounted"]

_PACKAGE = "boardcluster.services.provision.node"
_MODULES = (
    *("system", "manifest", "kind", "packages", "owners", "files", "guards", "tree"),
    "program",
)
"""In the order in which they import each other."""

_LOADER = """\
import json, os, sys, types
os.umask(0o022)  # sudo may have a narrower one, and everybody must be able to enter our folders
request = json.load(sys.stdin)
for name, text in request.pop("modules"):
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
json.dump(module.answer(request), sys.stdout)
"""

_ERRORS: dict[str, type[BoardclusterError]] = {
    "install": InstallError,
    "capacity": CapacityError,
    "cluster": ClusterError,
    "login": LoginError,
}

_LOOK_SECONDS = 120.0
_CONFIRM_SECONDS = 60.0
_CHANGE_SECONDS = 5400.0
"""Packages come over the network, and a board's card writes slowly."""

COPIES_AT_ONCE = 4
"""More would only share the driver's link, and each would take longer to be whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that differs, or was changed, on one node."""

    node: str
    """Its name."""
    words: str
    """What is done, in the present tense, without a full stop."""
    detail: str = ""
    """The lines of a file that change, as a unified diff; often empty."""
    remark: str = ""
    """What came of it, if that needs saying."""


def plan(
    remote: Remote, wanted: Sequence[Resource], *, deep: bool = False, root: str = ""
) -> list[Change]:
    """Return what ``apply`` would do to a node, changing nothing.

    Raises:
        InstallError: it cannot be done; says why.
        CapacityError: it does not fit.
    """
    # A slow card takes minutes to be read.
    patience_seconds = _CHANGE_SECONDS if deep else _LOOK_SECONDS
    return _ask(remote, {"do": "plan", **_wanted(wanted, deep=deep)}, root, patience_seconds)[0]


def apply(
    remote: Remote,
    wanted: Sequence[Resource],
    *,
    deep: bool = False,
    root: str = "",
    said: Callable[[str], None] = lambda _: None,
    copying: threading.Semaphore | None = None,
) -> list[Change]:
    """Make a node as wanted; return what was done. Safe to repeat, and after a kill at any point.

    ``said`` is told what takes long, and ``copying`` held during each copy.

    Raises:
        InstallError: it could not be done; says why. What was done stays, and is recorded.
        CapacityError: it does not fit; nothing was changed.
    """
    request = _wanted(wanted, deep=deep)
    changes, answer = _ask(remote, {"do": "apply", **request}, root, _CHANGE_SECONDS)
    if answer.get("confirms"):
        _confirm_anew(remote, [row for row in wanted if isinstance(row, Firewall)], root)
    trees = [
        row for row in wanted if isinstance(row, Tree) and row.path in answer.get("copies", ())
    ]
    for tree in trees:
        said(f"{remote.name}: copying {tree.path}")
        with copying or threading.Semaphore():
            remote.put(tree.source, f"{root}{tree.path}")
    if trees:
        _ask(remote, {"do": "confirm", **_wanted(trees, deep=False)}, root, _LOOK_SECONDS)
    return changes


def _confirm_anew(remote: Remote, wanted: Sequence[Resource], root: str) -> None:
    """Confirm over a new connection: a firewall lets those go on that were there before it."""
    remote.close()
    try:
        _ask(remote, {"do": "confirm", **_wanted(wanted, deep=False)}, root, _CONFIRM_SECONDS)
    except UnreachableError as error:
        raise UnreachableError(
            f"{error.message}; its new firewall lets no new connection in, and is taken back"
            f" {CONFIRM_SECONDS} s after it was loaded",
            hint="check ssh_from in [network] of cluster.toml, and what is between you and "
            f"{remote.name}",
        ) from error


def provision(
    remotes: Mapping[str, Remote],
    wanted: Mapping[str, Sequence[Resource]],
    *,
    deep: bool = False,
    said: Callable[[str], None] = lambda _: None,
) -> list[Change]:
    """Make every node as wanted, several at once; return what was done, node by node.

    Raises:
        BoardclusterError: of the first kind that a node failed with; names every node.
    """
    copying = threading.Semaphore(COPIES_AT_ONCE)
    changes, errors = each_node(
        wanted,
        lambda name: apply(remotes[name], wanted[name], deep=deep, said=said, copying=copying),
    )
    raise_first(errors)
    return [change for rows in changes.values() for change in rows]


def uninstall(
    remote: Remote, *, keep_data: bool, dry_run: bool = False, root: str = ""
) -> list[Change]:
    """Take back everything that was installed on a node, latest first; return what was done.

    With ``keep_data`` the folder with the user's data, and the user who owns it, are left, and stay
    recorded for a later call.

    Raises:
        ClusterError: daemons or jobs still run there; nothing was changed.
        InstallError: something could not be taken back; the rest can be tried again.
    """
    verb = "plan_uninstall" if dry_run else "uninstall"
    return _ask(remote, {"do": verb, "keep_data": keep_data}, root, _CHANGE_SECONDS)[0]


def unmounted(remote: Remote, *, root: str = "") -> list[str]:
    """Return the folders of a node that were on a disk of their own which is not mounted now.

    Raises:
        InstallError: the record of what was installed is damaged.
    """
    folders: list[str] = _ask(remote, {"do": "unmounted"}, root, _LOOK_SECONDS)[1]["folders"]
    return folders


def _wanted(wanted: Sequence[Resource], *, deep: bool) -> dict[str, Any]:
    return {"resources": [request_of(resource, deep=deep) for resource in wanted]}


@functools.cache
def _modules() -> list[tuple[str, str]]:
    folders = {_PACKAGE: _MODULES, "boardcluster": ("waiting",)}
    return [
        (f"{package}.{name}", (resources.files(package) / f"{name}.py").read_text())
        for package, names in reversed(folders.items())
        for name in names
    ]


def _ask(
    remote: Remote, request: dict[str, Any], root: str, timeout_seconds: float
) -> tuple[list[Change], dict[str, Any]]:
    """Send one request; return the changes, and the whole answer.

    Raises:
        RemoteError: a login script of the node writes into its answer.
        BoardclusterError: what the program says that is wrong.
    """
    done = remote.run(
        ["python3", "-I", "-S", "-c", _LOADER],
        stdin=json.dumps({**request, "root": root, "modules": _modules()}).encode(),
        timeout_seconds=timeout_seconds,
    )
    answer = json_of(remote, done)
    if wrong := answer.get("error"):
        raise _ERRORS[wrong["kind"]](f"{remote.name}: {wrong['message']}", hint=wrong["hint"])
    changes = [
        Change(node=remote.name, words=row["words"], detail=row["detail"], remark=row["remark"])
        for row in answer["changes"]
    ]
    return changes, answer
