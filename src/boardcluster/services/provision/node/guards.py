"""The firewall and the services of a node."""

from __future__ import annotations

import hashlib
import os
import re
from typing import Any

from boardcluster.services.provision.node.files import FileKind
from boardcluster.services.provision.node.kind import ResourceKind
from boardcluster.services.provision.node.system import insist, run, write

__all__ = ["FirewallKind", "ServiceKind", "ssh_port"]

SSH_PORT = 22
KEPT = ("LoadState", "UnitFileState", "ActiveState")
"""What systemd says of a unit that is needed to restore it."""

TABLE = ("inet", "boardcluster")


class FirewallKind(FileKind):
    """The file of our nftables table, and the table as the kernel has it."""

    def content(self) -> str:
        """Return the rules; the port by which we are here stays open, whichever it is."""
        return super().content().replace("SSH_PORT", str(ssh_port() or SSH_PORT))

    def listing(self) -> str:
        """Return a digest of the loaded rules without counters; empty if there is no table."""
        status, text = run(["nft", "-s", "list", "table", *TABLE])
        return "" if status else hashlib.sha256(text.encode()).hexdigest()

    def is_wanted(self) -> bool:
        """Whether file and loaded rules are as wanted; those changed by hand are not."""
        listing = self.listing()
        return super().is_wanted() and bool(listing) and listing == self.noted("listing", "")

    def words(self) -> str:
        """Say that the firewall is loaded, unless it is."""
        if not super().words():
            return ""
        return "loads the firewall: only SSH and the cluster's own addresses get through"

    def do(self) -> str:
        """Write the file, load it, and note what the kernel made of it."""
        write(self.path, self.content().encode(), mode=self.mode())
        insist(
            ["nft", "-f", self.path],
            hint="start a kernel that has nf_tables: `sudo apt-get upgrade`, then reboot",
        )
        self.note("listing", self.listing())
        return "" if self.node.systemd else "without systemd it is not loaded again after a restart"

    def back(self) -> str:
        """Say that the firewall is removed."""
        return "removes the firewall"

    def undo(self) -> str:
        """Delete the table from the kernel, and restore the file."""
        if self.listing():
            insist(["nft", "delete", "table", *TABLE])
        return super().undo()


def ssh_port() -> int | None:
    """Return the port of this machine by which we were reached, from sshd's own variable.

    sudo takes it out of our environment, so the processes above us are asked.
    """
    pid = os.getpid()
    for _ in range(32):
        try:
            with open(f"/proc/{pid}/environ", "rb") as stream:
                found = re.search(rb"(?:^|\0)SSH_CONNECTION=([^\0]*)", stream.read())
            if found:
                return int(found[1].split()[3])
            with open(f"/proc/{pid}/stat", "rb") as stream:
                pid = int(stream.read().rsplit(b")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            return None
    return None


class ServiceKind(ResourceKind):
    """The first of some systemd services that is installed: enabled and running."""

    @property
    def key(self) -> str:
        """The first of its names: the others are alternatives."""
        return f"service:{self.resource['names'][0]}"

    def state(self, name: str) -> dict[str, str]:
        """Return what systemd says of a unit."""
        fields = (*KEPT, "ConditionResult", "ConditionTimestampMonotonic")
        words = [word for field in fields for word in ("-p", field)]
        _, text = run(["systemctl", "show", *words, name])
        rows = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        return {field: rows.get(field, "") for field in fields}

    def unit(self) -> str:
        """Return the service; the first name if none is installed yet."""
        names: list[str] = self.resource["names"]
        there = [n for n in names if self.state(n)["LoadState"] not in ("", "not-found")]
        return there[0] if there else names[0]

    def look(self) -> dict[str, Any]:
        """Return the state of the unit that is meant."""
        name = self.unit()
        found = self.state(name)
        return {"unit": name, **{field: found[field] for field in KEPT}}

    def words(self) -> str:
        """Say what is to be done. A masked service stays so; some do not run in a container."""
        name = self.unit()
        found = self.state(name)
        asked = found["ConditionTimestampMonotonic"] not in ("", "0")
        runs = found["ActiveState"] == "active" or (asked and found["ConditionResult"] == "no")
        if found["LoadState"] == "masked" or (found["UnitFileState"] == "enabled" and runs):
            return ""
        return f"enables and starts {name}"

    def do(self) -> str:
        """Enable and start it."""
        insist(["systemctl", "enable", "--now", self.unit()])
        return ""

    def back(self) -> str:
        """Say that its former state is restored."""
        return f"restores the former state of {self.before['unit']}"

    def undo(self) -> str:
        """Disable and stop it, as far as it was so before."""
        name = self.before["unit"]
        if self.state(name)["LoadState"] == "not-found":
            return ""
        if self.before["UnitFileState"] != "enabled":
            insist(["systemctl", "disable", name])
        if self.before["ActiveState"] != "active":
            insist(["systemctl", "stop", name])
        return ""
