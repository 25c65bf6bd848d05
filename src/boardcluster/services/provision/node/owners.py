"""The system user on a node, and the folders it owns."""

from __future__ import annotations

import contextlib
import fnmatch
import grp
import os
import pwd
import shutil
import stat
from typing import Any

from boardcluster.services.provision.node.kind import ResourceKind
from boardcluster.services.provision.node.system import FailedError, insist

__all__ = ["STILL_RUNNING", "FolderKind", "UserKind"]

STILL_RUNNING = (
    "run `boardcluster uninstall --take-over`; or run `sudo pkill -KILL -u {user}` on the node, "
    "then this command again"
)
"""What helps against processes that stand in the way; `boardcluster down` may know of none."""

ADMINISTRATORS = ("adm", "admin", "docker", "lxd", "root", "sudo", "wheel")
DATABASES = ("passwd", "shadow", "group", "gshadow", "subuid", "subgid")
NO_SHELLS = ("/bin/false", "/sbin/nologin", "/usr/bin/false", "/usr/sbin/nologin")


class UserKind(ResourceKind):
    """The system user that runs everything: no password, no shell, no home, no sudo."""

    @property
    def key(self) -> str:
        """The user's name."""
        return f"user:{self.resource['name']}"

    def look(self) -> dict[str, Any]:
        """Return whether user and group are there."""
        return {"user": self.user() is not None, "group": self.group() is not None}

    def user(self) -> pwd.struct_passwd | None:
        """Return the user, if there is one."""
        try:
            return pwd.getpwnam(self.resource["name"])
        except KeyError:
            return None

    def group(self) -> grp.struct_group | None:
        """Return the group, if there is one."""
        try:
            return grp.getgrnam(self.resource["name"])
        except KeyError:
            return None

    def words(self) -> str:
        """Say that the user is created; refuse one with rights of its own."""
        name = self.resource["name"]
        user = self.user()
        if user is None or self.group() is None:
            return f"creates the system user {name}: no password, no shell, no home, no sudo"
        rights = [row.gr_name for row in grp.getgrall() if name in row.gr_mem]
        too_much = [group for group in rights if group in ADMINISTRATORS]
        if user.pw_uid == 0 or user.pw_shell not in NO_SHELLS or too_much:
            raise FailedError(
                f"the user {name} exists and is not just a service account: uid {user.pw_uid}, "
                f"shell {user.pw_shell or '/bin/sh'}, groups {', '.join(rights) or 'none'}",
                hint=f"rename that user, or remove its rights: `sudo usermod -s /usr/sbin/nologin "
                f"-G '' {name}`",
            )
        return ""

    def sweep(self) -> None:
        """Delete the lock files of tools that were killed while they changed users and groups.

        Each such tool makes one with its process id as ending (shadow, lib/commonio.c).
        """
        folder = self.node.at("/etc")
        for entry in os.listdir(folder):
            base, _, pid = entry.rpartition(".")
            if base in DATABASES and pid.isdecimal() and not os.path.exists(f"/proc/{pid}"):
                os.unlink(f"{folder}/{entry}")

    def do(self) -> str:
        """Create the group and the user that are missing."""
        if self.resumed:
            self.sweep()
        name = self.resource["name"]
        if self.group() is None:
            insist(["groupadd", "--system", name])
        if self.user() is None:
            # With a home of its own, whoever gets in as this user could leave a key for sshd.
            words = ["--system", "--gid", name, "--home-dir", "/nonexistent", "--no-create-home"]
            insist(["useradd", *words, "--shell", "/usr/sbin/nologin", name])
        return ""

    def back(self) -> str:
        """Say that the user is removed."""
        return f"removes the user {self.resource['name']}"

    def undo(self) -> str:
        """Remove user and group, unless they were there before."""
        if self.resumed:
            self.sweep()
        name = self.resource["name"]
        if not self.before["user"] and self.user() is not None:
            insist(["userdel", name], hint=STILL_RUNNING.format(user=name))
        if not self.before["group"] and self.group() is not None:
            insist(["groupdel", name])
        return ""


class FolderKind(ResourceKind):
    """A folder with owner and mode; one that was there before is given back, not removed."""

    def owners(self) -> tuple[int, int] | None:
        """Return the ids of the owner and its group; None as long as there is no such user."""
        try:
            row = pwd.getpwnam(self.resource["owner"])
        except KeyError:
            return None
        return row.pw_uid, row.pw_gid

    def refuse_loose_parents(self) -> None:
        """Refuse a folder that somebody else could replace by a link to any other.

        Root would then give away, say, ``/etc``. So only root may change what is above it: on the
        path as it is written, and on the one that links of root's lead to.
        """
        trusted = (0, os.geteuid())
        parent = os.path.dirname(self.path)
        for place in dict.fromkeys([*self.above(parent), *self.above(os.path.realpath(parent))]):
            try:
                found = os.stat(place)
            except FileNotFoundError:
                continue  # root makes it
            sticky = found.st_mode & stat.S_ISVTX
            shared = found.st_mode & stat.S_IWGRP and found.st_gid != 0
            loose = (found.st_mode & stat.S_IWOTH or shared) and not sticky
            if found.st_uid not in trusted or loose:
                shown = place.removeprefix(self.node.root)
                raise FailedError(
                    f"{self.resource['path']} is not safe: users other than root may change "
                    f"{shown}, and could put a link to any folder there",
                    hint=f"run `sudo chown root:root {shown} && sudo chmod go-w {shown}` on the "
                    "node, or choose another folder in cluster.toml",
                )

    def above(self, place: str) -> list[str]:
        """Return a folder and all above it, up to the root."""
        found = [place]
        while len(place) > max(1, len(self.node.root)):
            place = os.path.dirname(place)
            found.append(place)
        return [place for place in found if not self.node.root or place != self.node.root]

    def give(self, uid: int, gid: int, mode: int) -> None:
        """Set owner and mode of the folder itself, and of nothing that a link leads to."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            found = os.fstat(descriptor)
            if (found.st_uid, found.st_gid) != (uid, gid):
                os.fchown(descriptor, uid, gid)
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)

    def ours(self) -> list[str]:
        """Return what lies in it under names that we use."""
        patterns = self.resource["own"]
        names = sorted(os.listdir(self.path)) if patterns and os.path.isdir(self.path) else []
        return [name for name in names if any(fnmatch.fnmatchcase(name, p) for p in patterns)]

    def look(self) -> dict[str, Any]:
        """Return owner, mode and our names in it, or the missing folders above it."""
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return {"there": False, "parents": self.missing_parents()}
        if not stat.S_ISDIR(found.st_mode):
            raise FailedError(f"{self.path} is in the way: not a folder", hint="move it away")
        mode = stat.S_IMODE(found.st_mode)
        ids = {"uid": found.st_uid, "gid": found.st_gid, "mode": mode}
        return {"there": True, **ids, "names": self.ours()}

    def missing_parents(self) -> list[str]:
        """Return the folders above that do not exist, outermost first."""
        missing: list[str] = []
        parent = os.path.dirname(self.resource["path"])
        while not os.path.isdir(self.node.at(parent)):
            missing.insert(0, parent)
            parent = os.path.dirname(parent)
        return missing

    def words(self) -> str:
        """Say that it is created, or given to its owner."""
        self.refuse_loose_parents()
        found = self.look()
        path, owner, mode = self.resource["path"], self.resource["owner"], self.resource["mode"]
        if not found["there"]:
            self.refuse_missing_disk()
            return f"creates {path} for {owner}"
        if (found["uid"], found["gid"], found["mode"]) != (*(self.owners() or (-1, -1)), mode):
            return f"gives {path} to {owner} with the mode {mode:o}"
        return ""

    def is_on_another_disk(self) -> bool:
        """Whether it, or what there is above it, is not on the disk of the system."""
        place = self.path
        while not os.path.isdir(place):
            place = os.path.dirname(place)
        return os.stat(place).st_dev != os.stat(self.node.at("/")).st_dev

    def is_unmounted(self) -> bool:
        """Whether it was on a disk of its own that is not mounted now."""
        return bool(self.noted("other_disk", False)) and not self.is_on_another_disk()

    def refuse_missing_disk(self) -> None:
        """Refuse to make it anew on the card when the disk that it was on is not mounted.

        An empty HDFS would begin there, beside workers with the data of the other.
        """
        if self.is_unmounted():
            path = self.resource["path"]
            raise FailedError(
                f"{path} was on a disk of its own, which is not mounted now",
                hint="mount it and run the command again; or give it up with `boardcluster "
                "uninstall`, which begins anew",
            )

    def do(self) -> str:
        """Create it and those above it; give it to its owner."""
        for parent in self.missing_parents():
            os.mkdir(self.node.at(parent), 0o755)
        if not os.path.isdir(self.path):
            os.mkdir(self.path, 0o700)
        self.note("other_disk", self.is_on_another_disk())
        owners = self.owners()
        if owners is None:
            raise FailedError(f"there is no user {self.resource['owner']}")
        self.give(*owners, self.resource["mode"])
        return ""

    def back(self) -> str:
        """Say what becomes of it."""
        path = self.resource["path"]
        if self.is_unmounted():
            return f"leaves {path}, whose disk is not mounted"
        if not self.before["there"]:
            return f"removes {path} and everything in it"
        return f"gives {path} back to its former owner, without boardcluster's files"

    def undo(self) -> str:
        """Remove it; one that was there before loses what is ours, and gets its owner back."""
        if self.is_unmounted():
            return "what is on that disk stays"
        if not self.before["there"]:
            if os.path.isdir(self.path):
                shutil.rmtree(self.path)
            for parent in reversed(self.before["parents"]):
                with contextlib.suppress(OSError):  # somebody else has put something there since
                    os.rmdir(self.node.at(parent))
            return ""
        if not os.path.isdir(self.path):
            return ""
        self.refuse_loose_parents()
        for name in set(self.ours()) - set(self.before["names"]):
            path = os.path.join(self.path, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        self.give(self.before["uid"], self.before["gid"], self.before["mode"])
        return ""
