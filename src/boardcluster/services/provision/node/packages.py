"""Debian packages on a node."""

from __future__ import annotations

import os
import re
from typing import Any

from boardcluster.services.provision.node.kind import ResourceKind
from boardcluster.services.provision.node.system import FailedError, run, tail
from boardcluster.waiting import wait_until

__all__ = ["PackagesKind"]

LOCK_SECONDS_MOST = 600
APT_SECONDS = 3600.0

CUT_SHORT = ("half-installed", "unpacked", "half-configured")
"""States of dpkg(1) in which a package is left when the machine stops in mid-way."""


class PackagesKind(ResourceKind):
    """Debian packages, each with alternatives, and all that they need."""

    @property
    def key(self) -> str:
        """There is one list of them."""
        return "packages"

    def states(self) -> dict[str, str]:
        """Return the state of each package that dpkg knows."""
        status, text = run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\\n"])
        if status == 127:
            raise FailedError(
                "this system has no dpkg", hint="use Debian, Raspberry Pi OS or Ubuntu on the node"
            )
        rows = [line.split() for line in text.splitlines()]
        found: dict[str, str] = {}
        for name, state in [row for row in rows if len(row) == 2]:
            if found.get(name) != "installed":  # of several architectures, the installed one
                found[name] = state
        return found

    def missing(self) -> list[list[str]]:
        """Return the packages of which no alternative is installed.

        Optional ones are missing where apt could install them.
        """
        there = self.states()
        optional = [
            name
            for name in self.resource.get("optional", ())
            if there.get(name) != "installed" and self.has_candidate(name)
        ]
        return [
            names
            for names in (*self.resource["wanted"], *([name] for name in optional))
            if not any(there.get(name) == "installed" for name in names)
        ]

    def look(self) -> dict[str, Any]:
        """Nothing: what will be new is written down when apt has said it."""
        return {}

    def words(self) -> str:
        """Name the packages that are missing."""
        missing = [" or ".join(names) for names in self.missing()]
        return f"installs {', '.join(missing)} and their dependencies" if missing else ""

    def has_candidate(self, name: str) -> bool:
        """Whether apt can install a package, by the lists that are there."""
        _, text = run(["apt-cache", "policy", name])
        found = re.search(r"Candidate: (\S+)", text)
        return bool(found and found[1] != "(none)")

    def choose(self, names: list[str]) -> str:
        """Return the first alternative that apt can install."""
        found = (name for name in names if len(names) == 1 or self.has_candidate(name))
        return next(found, names[0])

    def dpkg(self, *arguments: str, before: tuple[str, ...] = ()) -> tuple[int, str]:
        """Run dpkg, after other words, as soon as no other package manager is at work."""
        return wait_until(
            lambda: run([*before, "dpkg", *arguments], timeout_seconds=APT_SECONDS),
            ready=lambda seen: not seen[0] or "lock" not in seen[1],
            timeout_seconds=LOCK_SECONDS_MOST,
            poll_seconds=2.0,
        )

    def mend(self) -> None:
        """Finish what was cut short; what cannot be finished and came with us is taken out whole.

        A package whose unpacking was cut short can neither be configured nor, without force,
        removed, and stands in the way of those that need it.
        """
        self.dpkg("--configure", "-a")
        now = self.states()
        broken = [
            name for name in self.noted("new", {}) if now.get(name.split(":")[0]) in CUT_SHORT
        ]
        if broken:
            self.dpkg("--remove", "--force-remove-reinstreq", "--force-depends", *broken)

    def do(self) -> str:
        """Install what is missing; refuses to remove any package in exchange."""
        if self.resumed:
            self.mend()
        if not self.missing():
            return ""
        # What cannot be reached is passed over: the lists that are there may do.
        update = ["apt-get", "-q", "-o", "Acquire::Retries=1", "update"]
        _, updated = run(update, timeout_seconds=APT_SECONDS)
        names = [self.choose(names) for names in self.missing()]
        options = [
            *("-q", "-y", "--no-install-recommends", "--no-remove"),
            *("-o", f"DPkg::Lock::Timeout={LOCK_SECONDS_MOST}"),
            *("-o", "APT::Keep-Downloaded-Packages=false"),
            *("-o", "Dpkg::Options::=--force-confdef"),
            *("-o", "Dpkg::Options::=--force-confold"),
        ]
        status, text = run(["apt-get", *options, "-s", "install", *names])
        if not status:
            self.note_new(text)
            install = ["apt-get", *options, "install", *names]
            status, text = run(install, timeout_seconds=APT_SECONDS)
        if status or self.missing():
            raise FailedError(
                f"apt-get could not install {', '.join(names)}: {tail(text)}\n"
                f"the package lists: {tail(updated, 3)}",
                hint="let the node reach its package mirrors (set a proxy in its "
                f"/etc/apt/apt.conf), or run on it `sudo apt-get install {' '.join(names)}`",
            )
        upgraded = self.noted("upgraded", [])
        listed = ", ".join(upgraded)
        return f"also upgraded, which uninstall does not undo: {listed}" if upgraded else ""

    def note_new(self, simulated: str) -> None:
        """Write down what apt is about to unpack: what is new, and what replaces an older one."""
        before = self.states()
        new = dict(self.noted("new", {}))
        rows = re.findall(r"^Inst (\S+) (\[?)", simulated, re.MULTILINE)
        for name, old in rows:
            if not old:
                new.setdefault(name, before.get(name, ""))
        self.note("upgraded", [name for name, old in rows if old])
        self.note("new", new)

    def removable(self) -> list[str]:
        """Return the packages that came with us and are still there in any form."""
        now = self.states()
        return [
            name
            for name, before in self.noted("new", {}).items()
            if now.get(name.split(":")[0], "not-installed") not in ("not-installed", before)
        ]

    def back(self) -> str:
        """Name the packages that are purged."""
        names = self.removable()
        return f"purges {', '.join(names)}" if names else "removes no packages"

    def undo(self) -> str:
        """Purge what came with us; a package that another one needs by now is left.

        sudo does not go by itself where root has no password, as where root logs in with a key.
        Whoever came here through it would have no way back, so then it stays.
        """
        if self.resumed:
            self.mend()
        new = self.noted("new", {})
        names = self.removable()
        by_root = "SUDO_UID" not in os.environ
        before = ("env", "SUDO_FORCE_REMOVE=yes") if "sudo" in names and by_root else ()
        text = ""
        for action in ("--remove", "--purge"):
            # A package of which only settings were left before gets back to that.
            chosen = [name for name in names if (action == "--remove") == bool(new[name])]
            if chosen:
                text += self.dpkg(action, *chosen, before=before)[1]
        left = [name for name in self.removable() if name in names]
        needed = [name for name in left if self.states().get(name.split(":")[0]) == "installed"]
        if left != needed:
            raise FailedError(f"dpkg could not remove {', '.join(left)}: {tail(text)}")
        why = "left, because other packages or your login need them"
        return f"{why}: {', '.join(left)}" if left else ""
