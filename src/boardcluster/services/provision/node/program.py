"""Runs ON a node as root: compares what is wanted with what is there, changes it, takes it back.

One request, ``{"do": VERB, "root": PREFIX, ...}``, becomes one answer: the changes, what is left
for the driver to copy, and an error, if any. This package is standard library only and imports
nothing but itself, because the driver sends its text (see provisioning.py).

Everything that is touched has an entry in the manifest, written before the thing itself: what it is
and what was there before. So a run that was killed at any point is finished by the next one, and
``uninstall`` restores exactly, in reverse order. ``root`` is put before every path; a test gives a
folder of its own.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Any

from boardcluster.services.provision.node.files import (
    SYSTEMD_UNITS,
    FileKind,
    HostsKind,
    SymlinkKind,
    SysctlKind,
    WordKind,
)
from boardcluster.services.provision.node.guards import FirewallKind, ServiceKind
from boardcluster.services.provision.node.kind import ResourceKind
from boardcluster.services.provision.node.manifest import Manifest, one_at_a_time
from boardcluster.services.provision.node.owners import STILL_RUNNING, FolderKind, UserKind
from boardcluster.services.provision.node.packages import PackagesKind
from boardcluster.services.provision.node.system import FailedError, Node, insist
from boardcluster.services.provision.node.tree import TreeKind

__all__ = ["answer"]


KINDS: dict[str, type[ResourceKind]] = {
    "packages": PackagesKind,
    "user": UserKind,
    "folder": FolderKind,
    "file": FileKind,
    "symlink": SymlinkKind,
    "hosts": HostsKind,
    "word": WordKind,
    "sysctl": SysctlKind,
    "firewall": FirewallKind,
    "service": ServiceKind,
    "tree": TreeKind,
}


def _kind_of(node: Node, manifest: Manifest, resource: dict[str, Any]) -> ResourceKind:
    """Return a resource with its entry."""
    return KINDS[resource["kind"]](node, manifest, resource)


_OURS = (
    f"file:{SYSTEMD_UNITS}boardcluster-",
    f"file:{SYSTEMD_UNITS}nftables.service.d/boardcluster",
    "service:boardcluster-",
)
"""Beginnings of the keys of what no other program installs."""


def _unwanted(node: Node, manifest: Manifest, wanted: list[ResourceKind]) -> list[ResourceKind]:
    """Return what was installed but is not asked for any more, latest first.

    Only what is ours alone: a Java or a word on the kernel's command line is no longer asked for
    just because it is there now.
    """
    keys = {kind.key for kind in wanted}
    found = []
    for entry in reversed(manifest.entries):
        key = entry["key"]
        ours = key.startswith(_OURS)
        if key not in keys and (ours or key.startswith("firewall:")):
            found.append(_kind_of(node, manifest, entry["resource"]))
    return found


def _check_room(todo: list[ResourceKind]) -> None:
    """Refuse to begin what would fill the disk."""
    trees = [kind for kind in todo if isinstance(kind, TreeKind)]
    need = sum(tree.missing_bytes() for tree in trees)
    if not need:
        return
    place = trees[0].path
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    found = os.statvfs(place)
    free = found.f_bavail * found.f_frsize
    if need > free:
        raise FailedError(
            f"{need / 1e6:,.0f} MB are to be copied to {trees[0].resource['path']}, but only "
            f"{free / 1e6:,.0f} MB are free there",
            hint=f"free {(need - free) / 1e6:,.0f} MB on that disk of the node",
            kind="capacity",
        )


def _row_of(
    kind: ResourceKind, words: str, *, detail: str = "", remark: str = ""
) -> dict[str, str]:
    """Return one change for the answer."""
    return {"key": kind.key, "words": words, "detail": detail, "remark": remark}


def _compare(
    node: Node, manifest: Manifest, request: dict[str, Any]
) -> tuple[list[ResourceKind], list[tuple[ResourceKind, dict[str, str]]]]:
    """Return what is to be taken back and what is to be done, changing nothing."""
    wanted = [_kind_of(node, manifest, resource) for resource in request["resources"]]
    todo = [
        (kind, _row_of(kind, words, detail=kind.detail()))
        for kind in wanted
        if (words := kind.words())
    ]
    _check_room([kind for kind, _ in todo])
    return _unwanted(node, manifest, wanted), todo


def _plan(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    """Answer what ``apply`` would do."""
    gone, todo = _compare(node, Manifest(node), request)
    return {"changes": [_row_of(kind, kind.back()) for kind in gone] + [row for _, row in todo]}


def _apply(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    """Make the node as wanted; answer what was done, and what the driver is to copy."""
    with one_at_a_time(node):
        manifest = Manifest(node)
        gone, todo = _compare(node, manifest, request)
        changes = [_take_back(manifest, kind) for kind in gone]
        units: list[ResourceKind] = []
        for kind, row in todo:
            with _said(row["words"]):
                if not kind.is_unit:
                    units = _settle(node, units)
                _begin(kind)
                row["remark"] = kind.do()
                changes.append(row)
                for waiting in (kind for kind, _ in todo if kind.confirmed_later):
                    waiting.hold()
                if kind.is_unit:
                    units.append(kind)
                elif not (kind.copied_later or kind.confirmed_later):
                    kind.note("done", True)
        _settle(node, units)
    copies = [kind.resource["path"] for kind, _ in todo if kind.copied_later]
    confirms = [kind.resource["path"] for kind, _ in todo if kind.confirmed_later]
    return {"changes": changes, "copies": copies, "confirms": confirms}


def _settle(node: Node, units: list[ResourceKind]) -> list[ResourceKind]:
    """Let systemd read its units again if any changed; then they are done, and none is waiting."""
    if node.units_changed:
        insist(["systemctl", "daemon-reload"])
        node.units_changed = False
    for unit in units:
        unit.note("done", True)
    return []


def _begin(kind: ResourceKind) -> None:
    """Write down what is about to be touched, and what is there before it."""
    if kind.entry is None:
        kind.entry = {"key": kind.key, "before": kind.look()}
        kind.manifest.entries.append(kind.entry)
    kind.entry["resource"] = kind.kept()
    kind.note("done", False)


def _confirm(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    """Check what the driver copied, and keep what waits for it to come back."""
    with one_at_a_time(node):
        manifest = Manifest(node)
        for resource in request["resources"]:
            kind = _kind_of(node, manifest, resource)
            if (kind.copied_later or kind.confirmed_later) and kind.resumed:
                kind.confirm()
    return {"changes": []}


@contextlib.contextmanager
def _said(words: str) -> Iterator[None]:
    """Say what was being done when the system refused."""
    try:
        yield
    except OSError as error:
        why = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        hint = "free space on the node" if error.errno == errno.ENOSPC else ""
        raise FailedError(f"{words}: {why}", hint=hint) from error


def _take_back(manifest: Manifest, kind: ResourceKind) -> dict[str, str]:
    """Restore what was there before one resource, and forget it."""
    row = _row_of(kind, kind.back())
    with _said(row["words"]):
        row["remark"] = kind.undo()
    manifest.entries.remove(kind.entry or {})
    manifest.save()
    return row


def _installed(node: Node, manifest: Manifest, *, keep_data: bool) -> list[ResourceKind]:
    """Return what ``uninstall`` takes back, latest first."""
    found = []
    for entry in reversed(manifest.entries):
        resource = entry["resource"]
        is_data = resource["kind"] == "user" or resource.get("data", False)
        if not (keep_data and is_data):
            found.append(_kind_of(node, manifest, resource))
    return found


def _plan_uninstall(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    """Answer what ``uninstall`` would do."""
    kinds = _installed(node, Manifest(node), keep_data=request["keep_data"])
    return {"changes": [_row_of(kind, kind.back()) for kind in kinds]}


def _refuse_while_running(node: Node, manifest: Manifest) -> None:
    """Refuse to take away what processes of the cluster still use."""
    processes = node.at("/proc")
    for entry in manifest.entries:
        kind = _kind_of(node, manifest, entry["resource"])
        user = kind.user() if isinstance(kind, UserKind) else None
        for pid in os.listdir(processes) if user is not None and user.pw_uid else []:
            with contextlib.suppress(OSError):
                path = f"{processes}/{pid}"
                if user and pid.isdecimal() and os.stat(path).st_uid == user.pw_uid:
                    raise FailedError(
                        f"processes of the user {user.pw_name} still run, such as {pid}",
                        hint=STILL_RUNNING.format(user=user.pw_name),
                        kind="cluster",
                    )


def _uninstall(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    """Take everything back, latest first; answer what was done."""
    with one_at_a_time(node):
        manifest = Manifest(node)
        kinds = _installed(node, manifest, keep_data=request["keep_data"])
        _refuse_while_running(node, manifest)
        changes = [_take_back(manifest, kind) for kind in kinds]
        _settle(node, [])
        if not manifest.entries:
            manifest.remove()
    return {"changes": changes}


def _unmounted(node: Node, _request: dict[str, Any]) -> dict[str, Any]:
    """Answer which folders were on a disk of their own that is not mounted now."""
    manifest = Manifest(node)
    kinds = [_kind_of(node, manifest, entry["resource"]) for entry in manifest.entries]
    folders = [kind for kind in kinds if isinstance(kind, FolderKind) and kind.is_unmounted()]
    return {"changes": [], "folders": [kind.resource["path"] for kind in folders]}


VERBS = {
    "plan": _plan,
    "apply": _apply,
    "confirm": _confirm,
    "plan_uninstall": _plan_uninstall,
    "uninstall": _uninstall,
    "unmounted": _unmounted,
}


def _require_root(node: Node) -> None:
    """Refuse to work as anybody else on a real node."""
    if not node.root and os.geteuid() != 0:
        raise FailedError(
            "this needs root on the node", hint="let the login user use sudo", kind="login"
        )


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do what a request asks for."""
    node = Node(request["root"])
    try:
        _require_root(node)
        with _said("the node was not changed"):
            return VERBS[request["do"]](node, request)
    except FailedError as error:
        return {"changes": [], "error": error.answer}
