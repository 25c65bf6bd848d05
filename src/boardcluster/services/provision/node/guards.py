"""The firewall and the services of a node."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import pwd
import re
from ipaddress import ip_address, ip_network
from typing import Any

from boardcluster.services.provision.node.files import FileKind
from boardcluster.services.provision.node.kind import ResourceKind
from boardcluster.services.provision.node.system import (
    FailedError,
    insist,
    run,
    start_alone,
    text_of,
    write,
)

__all__ = ["CONFIRM_SECONDS", "LOADS_FIREWALL", "FirewallKind", "ServiceKind", "ssh_connection"]

SSH_PORT = 22
KEPT = ("LoadState", "UnitFileState", "ActiveState")
"""What systemd says of a unit that is needed to restore it."""

TABLE = ("inet", "boardcluster")


LOADS_FIREWALL = "loads the firewall"
"""How the words begin by which it is told what that cuts off."""

CONFIRM_SECONDS = 90
"""So long new rules wait for a new connection, before they are taken back."""

GUARD = """\
left=$1 held=
while [ $left -gt 0 ] && [ -e "$2" ]; do
    now=$(wc -c < "$2")
    if [ "$now" != "$held" ]; then held=$now left=$1; fi
    sleep 1
    left=$((left - 1))
done
rm "$2" 2>/dev/null || exit 0
if [ -s "$3.loaded" ]
then nft -f "$3.loaded" || exit 1
else nft delete table inet boardcluster || exit 1
fi
if [ -e "$3.former" ]; then mv "$3.former" "$3"; else rm -f "$3"; fi
rm -f "$3.loaded"
"""
"""Takes rules back that nobody confirmed by removing a file: after how many seconds, that file, and
the file of the rules, beside which stands what was there and what was loaded before. The seconds
begin again whenever that file has grown: something else on the node is still being made ready."""

OWN_USER = "boardcluster"
"""Who runs the cluster's own programs, which its members reach."""

APT_USER = "_apt"
"""Who fetches packages for apt, from a proxy on a member, too."""

OWN_UDP = (68, 546, 5353)
"""What the rules let through anyway: DHCP's answers and multicast DNS."""


class FirewallKind(FileKind):
    """The file of our nftables table, and the table as the kernel has it.

    New rules stay if the driver comes back over a new connection and says so. If it does not, what
    was there before is loaded again, so that nobody is locked out.
    """

    confirmed_later = True

    def content(self) -> str:
        """Return the rules; the port by which we are here stays open, whichever it is.

        Users are numbers in them: a name that cannot be looked up early in the start of the node
        would keep the whole file from being loaded.
        """
        route = ssh_connection()
        service = _number_of(self.resource["service_user"])
        trusted = dict.fromkeys(["0", service, os.environ.get("SUDO_UID", "0"), *_apt_number()])
        port = route[1] if route else SSH_PORT
        ports = ", ".join(map(str, dict.fromkeys([port, SSH_PORT])))
        rules = super().content().replace("SSH_PORT", str(port)).replace("SSH_OF_ALL", ports)
        return rules.replace("SERVICE_USER", service).replace("TRUSTED_USERS", ", ".join(trusted))

    def listing(self) -> str:
        """Return a digest of the loaded rules without counters; empty if there is no table."""
        text = self.loaded()
        return hashlib.sha256(text.encode()).hexdigest() if text else ""

    def loaded(self) -> str:
        """Return the loaded rules; empty if there is no table."""
        status, text = run(["nft", "-s", "list", "table", *TABLE])
        return "" if status else text

    def is_wanted(self) -> bool:
        """Whether file and loaded rules are as wanted; those changed by hand are not."""
        listing = self.listing()
        return super().is_wanted() and bool(listing) and listing == self.noted("listing", "")

    def words(self) -> str:
        """Say that the firewall is loaded, and what that cuts off, unless it is."""
        if not super().words():
            return ""
        self.refuse_to_lock_out()
        opened = ", ".join(self.resource["open_ports"])
        names = ["root", os.environ.get("SUDO_USER", "root"), self.resource["service_user"]]
        *trusted, last = dict.fromkeys([*names, *([APT_USER] if _apt_number() else [])])
        words = f"{LOADS_FIREWALL}: others reach SSH{f', {opened}' if opened else ''} only; of"
        words += f" this board's accounts only {', '.join(trusted)} and {last} reach the cluster"
        if self.resource["egress"] == "members":
            words += "; daemons and jobs reach nothing but members"
        if cut := self.cut_off():
            words += f"; it closes {', '.join(cut)} to others (open_ports leaves a port open)"
        if _forwards():
            words += "; of what this node forwards, guests reach members by SSH and open_ports only"
        return words

    def cut_off(self) -> list[str]:
        """Return what listens now and others could not reach any more, with its program."""
        route = ssh_connection()
        kept = {f"{route[1] if route else SSH_PORT}/tcp", *(f"{port}/udp" for port in OWN_UDP)}
        kept |= set(self.resource["open_ports"])
        return [row for row in _listeners() if row.partition(" ")[0] not in kept]

    def do(self) -> str:
        """Load the rules, and have them taken back unless they are confirmed.

        After rules that nobody confirmed yet, what was before those is what to go back to.
        """
        self.refuse_to_lock_out()
        earlier = self.pending()
        if not earlier or not os.path.exists(f"{self.path}.loaded"):
            self.remember_former()
        pending = f"{self.path}.pending-{_boot()}-{os.getpid()}"
        write(pending, b"", mode=0o600)
        # Only now: without any mark, a loss of power would leave rules that nobody confirmed.
        for mark in earlier:
            if mark != pending:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(mark)
        write(self.path, self.content().encode(), mode=self.mode())
        start_alone(["sh", "-c", GUARD, "sh", str(CONFIRM_SECONDS), pending, self.path])
        try:
            insist(
                ["nft", "-f", self.path],
                hint="start a kernel that has nf_tables: `sudo apt-get upgrade`, then reboot",
            )
        except FailedError:
            self.bring_former_file_back()
            raise
        self.note("listing", self.listing())
        return "" if self.node.systemd else "without systemd it is not loaded again after a restart"

    def remember_former(self) -> None:
        """Keep what to go back to."""
        self.forget_pending()
        loaded = self.loaded()
        head = f"table {' '.join(TABLE)} {{}}\ndelete table {' '.join(TABLE)}\n"
        write(f"{self.path}.loaded", (head + loaded if loaded else "").encode(), mode=0o600)
        if former := text_of(self.path):
            write(f"{self.path}.former", former.encode(), mode=self.mode())

    def bring_former_file_back(self) -> None:
        """Give up rules that were not loaded; those that were are still in the kernel."""
        if os.path.exists(f"{self.path}.former"):
            os.replace(f"{self.path}.former", self.path)
        else:
            os.unlink(self.path)
        self.forget_pending()

    def hold(self) -> None:
        """Let the time for a confirmation begin again."""
        for mark in self.pending():
            with contextlib.suppress(FileNotFoundError), open(mark, "ab") as stream:
                stream.write(b".")

    def refuse_to_lock_out(self) -> None:
        """Refuse rules that would not let the driver in."""
        route, networks = ssh_connection(), self.resource["ssh_from"]
        if not networks or route is None:
            return
        address = ip_address(route[0])
        peer = getattr(address, "ipv4_mapped", None) or address
        if not any(peer in ip_network(network) for network in networks):
            raise FailedError(
                f"ssh_from is {', '.join(networks)}, which leaves out {peer}, from which you are "
                "connected: the firewall would lock you out",
                hint="add that address to ssh_from in [network] of cluster.toml",
                kind="cluster",
            )

    def pending(self) -> list[str]:
        """Return the marks of rules that wait for a confirmation; at most one."""
        return sorted(glob.glob(f"{glob.escape(self.path)}.pending-*"))

    def forget_pending(self) -> None:
        """Give up what an earlier attempt left to wait; its guard then ends."""
        for path in (*self.pending(), f"{self.path}.loaded", f"{self.path}.former"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def confirm(self) -> None:
        """Keep the rules: this call came over a new connection."""
        try:
            (mark,) = self.pending()
            os.unlink(mark)
        except (ValueError, FileNotFoundError) as error:
            raise FailedError(
                f"the firewall was taken back: no new connection came through it within"
                f" {CONFIRM_SECONDS} s",
                hint="check the network between you and the node, then run `boardcluster up`",
                kind="cluster",
            ) from error
        self.forget_pending()
        self.note("done", True)

    def back(self) -> str:
        """Say that the firewall is removed."""
        return "removes the firewall"

    def undo(self) -> str:
        """Delete the table from the kernel, and restore the file."""
        self.forget_pending()
        if self.listing():
            insist(["nft", "delete", "table", *TABLE])
        return super().undo()


def _boot() -> str:
    """Return the id of this boot: what waits for a confirmation does not outlive it."""
    with open("/proc/sys/kernel/random/boot_id") as stream:
        return stream.read().strip()


def _apt_number() -> list[str]:
    """Return apt's number; empty on systems without that account."""
    number = _number_of(APT_USER)
    return [number] if number != APT_USER else []


def _number_of(user: str) -> str:
    """Return a user's number; the name while there is no such user yet, as in a dry run."""
    try:
        return str(pwd.getpwnam(user).pw_uid)
    except KeyError:
        return user


def ssh_connection() -> tuple[str, int] | None:
    """Return who reached this machine, and by which port of it, from sshd's own variable.

    sudo takes it out of our environment, so the processes above us are asked.
    """
    pid = os.getpid()
    for _ in range(32):
        try:
            with open(f"/proc/{pid}/environ", "rb") as stream:
                found = re.search(rb"(?:^|\0)SSH_CONNECTION=([^\0]*)", stream.read())
            if found:
                peer, _, _, port = found[1].decode().split()
                return peer.partition("%")[0], int(port)
            with open(f"/proc/{pid}/stat", "rb") as stream:
                pid = int(stream.read().rsplit(b")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            return None
    return None


def _listeners() -> list[str]:
    """Return what listens on another address than the loopback: ``"53/udp (dnsmasq)"``."""
    status, text = run(["ss", "-Hlntup"])
    found: dict[str, str] = {}
    for line in () if status else text.splitlines():
        fields = line.split(None, 6)
        if len(fields) < 6 or fields[0] not in ("tcp", "udp"):
            continue
        address, _, port = fields[4].rpartition(":")
        if address.strip("[]").partition("%")[0].startswith(("127.", "::1", "::ffff:127.")):
            continue
        program = re.search(r'\(\("([^"]*)",pid=(\d+)', fields[6] if len(fields) > 6 else "")
        if program is None or _owner(program[2]) != OWN_USER:
            found[f"{port}/{fields[0]}"] = f" ({program[1]})" if program else ""
    order = sorted(found, key=lambda row: (int(row.partition("/")[0]), row))
    return [f"{row}{found[row]}" for row in order]


def _owner(pid: str) -> str:
    """Return the name of a process's user; empty if it has ended or its user has no name."""
    try:
        return pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name
    except (OSError, KeyError):
        return ""


def _forwards() -> bool:
    """Whether this machine passes packets of others on."""
    try:
        with open("/proc/sys/net/ipv4/ip_forward") as stream:
            return stream.read().strip() == "1"
    except OSError:
        return False


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
