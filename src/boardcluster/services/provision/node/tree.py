"""Files that the driver copies to a node."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from typing import Any

from boardcluster.services.provision.node.kind import ResourceKind
from boardcluster.services.provision.node.system import FailedError

__all__ = ["TreeKind", "own", "sha256_of"]


class TreeKind(ResourceKind):
    """Files that the driver copies: they are recorded here before, and looked at after."""

    copied_later = True

    def files(self) -> dict[str, list[Any]]:
        """Return each wanted file with its size and SHA-256; the empty name is ``path`` itself."""
        wanted: dict[str, list[Any]] = self.resource["files"]
        return wanted

    def where(self, name: str) -> str:
        """Return the path of a file."""
        return f"{self.path}/{name}" if name else self.path

    def there(self) -> dict[str, int]:
        """Return each regular file with its size; of anything else, -1."""
        if not os.path.isdir(self.path) or os.path.islink(self.path):
            names = [""] if os.path.lexists(self.path) else []
        else:
            names = [
                os.path.relpath(os.path.join(folder, name), self.path)
                for folder, folders, files in os.walk(self.path)
                for name in [*files, *(n for n in folders if os.path.islink(f"{folder}/{n}"))]
            ]
        found = {}
        for name in names:
            # The copy of a killed driver may still be ending, and its temporary files with it.
            with contextlib.suppress(FileNotFoundError):
                row = os.lstat(self.where(name))
                found[name] = row.st_size if stat.S_ISREG(row.st_mode) else -1
        return found

    def wrong(self) -> list[str]:
        """Return the files that are missing, too many or not what they should be."""
        wanted, there = self.files(), self.there()
        names = [n for n, (size, _) in wanted.items() if there.get(n) != size]
        names += [n for n in there if n not in wanted]
        if self.resource["deep"]:
            names += [
                n
                for n, (_, digest) in wanted.items()
                if n not in names and sha256_of(self.where(n)) != digest
            ]
        return names

    def missing_bytes(self) -> int:
        """Return how much would be written."""
        wanted, there = self.files(), self.there()
        return sum(size for name, (size, _) in wanted.items() if there.get(name) != size)

    def look(self) -> dict[str, Any]:
        """Return whether anything is at its path."""
        return {"there": os.path.lexists(self.path)}

    def words(self) -> str:
        """Say what is copied, unless the copy was confirmed and is still whole."""
        if self.noted("digest", "") == self.resource["digest"] and not self.wrong():
            return ""
        count = len(self.files())
        size = sum(row[0] for row in self.files().values()) / 1e6
        what = f"{count} file{'' if count == 1 else 's'}, {size:,.1f} MB"
        return f"copies {self.resource['path']} from this machine ({what})"

    def do(self) -> str:
        """Make room for the copy: a file of the right size may hold the wrong bytes."""
        self.note("digest", "")
        if self.resource["deep"]:
            for name in self.wrong():
                with contextlib.suppress(OSError):
                    os.unlink(self.where(name))
        return ""

    def confirm(self) -> None:
        """Check what the driver copied, make it root's, then write down that it is whole."""
        if wrong := self.wrong():
            raise FailedError(
                f"{self.path} is not whole after copying: {len(wrong)} files differ, the first is "
                f"{self.where(wrong[0])}",
                hint="run it again",
            )
        for name in self.there():
            own(self.where(name))
        for folder, _, _ in os.walk(self.path):
            own(folder)
        self.note("digest", self.resource["digest"])
        self.note("done", True)

    def back(self) -> str:
        """Say what becomes of the copy."""
        path = self.resource["path"]
        return f"leaves {path}, which existed before" if self.before["there"] else f"removes {path}"

    def undo(self) -> str:
        """Remove the copy, unless something was there before it."""
        if not self.before["there"]:
            if os.path.isdir(self.path):
                shutil.rmtree(self.path)
            elif os.path.lexists(self.path):
                os.unlink(self.path)
        return ""


def own(path: str) -> None:
    """Make a file ours, whoever it belonged to on the driver: everybody may read, nobody write."""
    found = os.lstat(path)
    mine = (os.geteuid(), os.getegid())
    if (found.st_uid, found.st_gid) != mine:
        os.chown(path, *mine)
    mode = 0o755 if found.st_mode & 0o100 or stat.S_ISDIR(found.st_mode) else 0o644
    if stat.S_IMODE(found.st_mode) != mode:
        os.chmod(path, mode)


def sha256_of(path: str) -> str:
    """Hash a file of any size."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
