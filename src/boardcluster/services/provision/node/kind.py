"""What every kind of resource can do."""

from __future__ import annotations

from typing import Any

from boardcluster.services.provision.node.manifest import Manifest
from boardcluster.services.provision.node.system import Node

__all__ = ["ResourceKind"]

BULKY = ("content", "files", "deep")
"""What the manifest need not keep of a resource."""


class ResourceKind:
    """One resource: how it is compared, changed and taken back.

    ``entry`` is its entry in the manifest; None as long as it was never touched. ``resumed`` is
    whether a run that was killed or failed may have changed it half-way.
    """

    copied_later = False
    """Whether the driver copies it after the answer."""
    confirmed_later = False
    """Whether it is done only when the driver has come back and said so."""

    def __init__(self, node: Node, manifest: Manifest, resource: dict[str, Any]) -> None:
        self.node = node
        self.manifest = manifest
        self.resource = resource
        self.entry = manifest.entry(self.key)
        self.resumed = self.entry is not None and not self.entry["done"]

    @property
    def key(self) -> str:
        """What stays the same when the rest of the resource changes."""
        return f"{self.resource['kind']}:{self.resource['path']}"

    @property
    def path(self) -> str:
        """Where it is."""
        return self.node.at(self.resource["path"])

    @property
    def is_unit(self) -> bool:
        """Whether systemd has to be told of it."""
        return False

    @property
    def before(self) -> dict[str, Any]:
        """What was there before it was first touched."""
        found: dict[str, Any] = (self.entry or {})["before"]
        return found

    def note(self, name: str, value: Any) -> None:
        """Write something down in its entry before going on."""
        if self.entry is None:
            raise AssertionError(self.key)
        self.entry[name] = value
        self.manifest.save()

    def noted(self, name: str, otherwise: Any) -> Any:
        """Return what was written down."""
        return (self.entry or {}).get(name, otherwise)

    def look(self) -> dict[str, Any]:
        """Return what is needed to restore what is there now."""
        raise NotImplementedError

    def words(self) -> str:
        """Say what is to be done; nothing if it is as wanted."""
        raise NotImplementedError

    def detail(self) -> str:
        """Return the lines that would change."""
        return ""

    def do(self) -> str:
        """Make it as wanted; return a remark, if any."""
        raise NotImplementedError

    def hold(self) -> None:
        """Go on waiting to be confirmed: the answer takes its time."""

    def confirm(self) -> None:
        """Check what came of it after the answer, and note that it is done."""
        raise NotImplementedError

    def back(self) -> str:
        """Say what taking it back does."""
        raise NotImplementedError

    def undo(self) -> str:
        """Restore what was there before; return a remark, if any."""
        raise NotImplementedError

    def kept(self) -> dict[str, Any]:
        """Return what the manifest keeps of the resource."""
        return {name: value for name, value in self.resource.items() if name not in BULKY}
