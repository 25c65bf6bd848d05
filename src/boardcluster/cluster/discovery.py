"""Look at a machine that may become a node: what it is, whether it can, where its data belongs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from boardcluster.cluster.facts import parse_facts
from boardcluster.cluster.owner import SERVICE_USER
from boardcluster.errors import HostError
from boardcluster.records import Link, Medium, Mount, NodeFacts, Sudo
from boardcluster.remote.base import Remote
from boardcluster.remote.node_clock import CLOCK_ERROR_MOST_SECONDS, compare_clocks
from boardcluster.remote.node_rpc import rpc
from boardcluster.spec.checks import check_folder
from boardcluster.spec.cluster import DEFAULT_FOLDER
from boardcluster.units import GIB, MIB, format_bytes, format_rate, format_seconds

__all__ = [
    "SERVICE_LOGIN",
    "SKEW_MOST_SECONDS",
    "Refusal",
    "discover",
    "facts_table",
    "faster_folder",
    "refusals",
    "refuse_memory",
    "refuse_processor",
    "refuse_sudo",
    "require_nodes",
    "skews",
    "suggest_folder",
    "vague_clocks",
]

SKEW_MOST_SECONDS = 1.0
"""More between the clocks of two nodes blocks a start: durations that start on one node and end on
another, such as YARN's, would be wrong by that much."""

_PATIENCE_SECONDS = 30.0
_ARCHITECTURES = ("x86_64", "aarch64")
_LEAST_MEMORY_BYTES = 832 * MIB
"""The least a worker can be: system, DataNode, NodeManager and one task (services/sizing.py)."""

_LEAST_MEDIUM_BYTES = 8 * GIB
"""Free space from which another medium is worth a folder of its own."""

_FILE_SYSTEMS = frozenset({"ext4", "xfs", "btrfs", "f2fs"})
"""With owners, permissions and names as daemons need them."""

_WORDS = {
    "sd": "SD card",
    "usb": "USB stick or disk",
    "emmc": "eMMC",
    "hdd": "hard disk",
    "virtual": "virtual disk",
    "usb-ssd": "USB SSD",
    "ssd": "SSD",
    "nvme": "NVMe SSD",
}
"""Kinds of media from the slowest under small, mixed reads and writes to the fastest."""

_RANKS = tuple(_WORDS)

_Clock = tuple[float, str, float]
"""How far a clock is ahead of ours in seconds, whose it is, and how wrong that may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a machine cannot be a node."""

    reason: str
    """What is wrong, and why it matters."""
    fix: str
    """What to do, in one line."""


SERVICE_LOGIN = Refusal(
    reason=f"{SERVICE_USER} is the name of the account that boardcluster makes for its services; "
    "it ends all processes of that account",
    fix="log in as another user who may use sudo without a password, and name that one in `host` "
    "of cluster.toml",
)
"""To log in as the service user."""


def discover(remote: Remote, *, folder: str = "") -> NodeFacts:
    """Look at a machine; changes nothing, and needs nothing there but python3.

    With sudo that asks it sees all but the kernel's log and, on some systems, ``vcgencmd``.

    Args:
        remote: reaches it, as the login user or as root.
        folder: the folder for data; empty for the usual one.

    Raises:
        RemoteError: it cannot be reached, or has no python3.
    """
    folder = folder or DEFAULT_FOLDER
    asked = time.time()
    began = time.monotonic()
    raw = rpc(
        remote,
        {"do": "facts", "root": "/", "folder": folder},
        program="nodefacts",
        timeout_seconds=_PATIENCE_SECONDS,
    )
    took = time.monotonic() - began
    facts = parse_facts(raw, folder=folder, asked_seconds=asked, answered_seconds=asked + took)
    if facts.clock_error_seconds <= CLOCK_ERROR_MOST_SECONDS / 2:
        return facts
    better = compare_clocks(remote)  # the first answer carries a whole program and its findings
    return replace(
        facts,
        clock_offset_seconds=better.wall_offset_seconds,
        clock_error_seconds=better.error_seconds,
    )


def suggest_folder(facts: NodeFacts) -> str:
    """Return the folder for data on the fastest medium that is mounted, writable and large.

    The usual folder if its own medium is as fast as any.
    """
    usual = facts.mount(DEFAULT_FOLDER)
    best = max(
        (row for row in facts.mounts if _suits(row)),
        key=lambda row: (_rank(facts, row), row.available_bytes or 0),
        default=None,
    )
    if best is None or _rank(facts, best) <= _rank(facts, usual):
        return DEFAULT_FOLDER
    if usual is not None and best.folder == usual.folder:
        return DEFAULT_FOLDER
    return _folder_on(best)


def faster_folder(facts: NodeFacts) -> str:
    """Return a folder on a faster medium than the one in use; empty if there is none."""
    folder = suggest_folder(facts)
    used = facts.mount(facts.folder_mount) if facts.folder_mount else None
    return folder if _rank(facts, facts.mount(folder)) > _rank(facts, used) >= 0 else ""


def _suits(mount: Mount) -> bool:
    options = mount.options.split(",")
    return (
        mount.file_system in _FILE_SYSTEMS
        and not mount.read_only
        and "noexec" not in options
        and (mount.available_bytes or 0) >= _LEAST_MEDIUM_BYTES
        and _is_allowed(_folder_on(mount))
    )


def _folder_on(mount: Mount) -> str:
    return f"{mount.folder.rstrip('/')}/boardcluster"


def _is_allowed(folder: str) -> bool:
    """Whether cluster.toml may say it."""
    try:
        check_folder(folder)
    except ValueError:
        return False
    return True


def _rank(facts: NodeFacts, mount: Mount | None) -> int:
    medium = facts.medium(mount.medium) if mount else None
    return _RANKS.index(medium.kind) if medium else -1


def refusals(facts: NodeFacts) -> list[Refusal]:
    """Return why this machine cannot be a node; empty if it can."""
    found = (refuse_processor(facts), refuse_sudo(facts), refuse_memory(facts))
    return [refusal for refusal in found if refusal is not None]


def require_nodes(boards: Mapping[str, NodeFacts], *, hint: str) -> None:
    """Refuse boards that cannot be nodes.

    Raises:
        HostError: with the reasons of each board and what mends them.
    """
    lines = [
        f"{name}: {refusal.reason}\n  -> {refusal.fix}"
        for name, facts in boards.items()
        for refusal in refusals(facts)
    ]
    if lines:
        raise HostError("\n".join(lines), hint=hint)


def refuse_processor(facts: NodeFacts) -> Refusal | None:
    """Refuse what the engines do not run on: other processors, and 32-bit programs."""
    known = facts.architecture in _ARCHITECTURES
    if facts.userland_bits == 64:
        if known:
            return None
        return Refusal(
            reason=f"its processor is {facts.architecture}: the engines' native libraries and "
            "their Java exist for x86-64 and arm64",
            fix="use a board with a 64-bit ARM or x86-64 processor",
        )
    kernel = (
        f"; its kernel is 64-bit ({facts.architecture}), but programs run on the "
        f"{facts.userland_bits}-bit libraries that are installed"
        if known
        else f" on {facts.architecture}"
    )
    return Refusal(
        reason=f"its programs are {facts.userland_bits}-bit{kernel}. The engines' Java, their "
        "native libraries and heaps over 1.5 GB need 64 bits",
        fix="write the 64-bit Raspberry Pi OS (or Debian arm64) to its card: an installed system "
        "cannot be converted",
    )


def refuse_sudo(facts: NodeFacts) -> Refusal | None:
    """Refuse a login user who cannot become root unasked."""
    user = facts.login_user
    if user == SERVICE_USER:
        return SERVICE_LOGIN
    if facts.sudo is Sudo.ASKS:
        return Refusal(
            reason=f"sudo asks {user} for a password, which cannot be typed on many nodes",
            fix=f"on the node: echo '{user} ALL=(ALL) NOPASSWD: ALL' | "
            "sudo tee /etc/sudoers.d/010_boardcluster",
        )
    if facts.sudo is Sudo.SILENT:
        return Refusal(
            reason="sudo does not answer within seconds, as where a node cannot look up its own "
            "name",
            fix='on the node: echo "127.0.1.1 $(hostname)" | sudo tee -a /etc/hosts',
        )
    if facts.sudo is Sudo.MISSING:
        return Refusal(
            reason=f"{user} is not root, and sudo is not installed",
            fix=f"on the node, as root: apt-get install sudo && adduser {user} sudo, then allow "
            "it without a password",
        )
    return None


def refuse_memory(facts: NodeFacts) -> Refusal | None:
    """Refuse what could not hold the daemons of a worker and one task."""
    if facts.memory_bytes >= _LEAST_MEMORY_BYTES:
        return None
    return Refusal(
        reason=f"{format_bytes(facts.memory_bytes, binary=True)} of memory: system, DataNode, "
        f"NodeManager and one task need {format_bytes(_LEAST_MEMORY_BYTES, binary=True)}",
        fix="use a board with at least 1 GB",
    )


def skews(nodes: Mapping[str, NodeFacts]) -> list[str]:
    """Describe which clocks are surely more than a second apart, in one line each.

    Each pair of neighbours, by clock, this machine among them: boards may all be wrong alike. Where
    no step is that long it is the pair that is furthest apart.
    """
    ordered = sorted(
        [
            *(
                (row.clock_offset_seconds, name, row.clock_error_seconds)
                for name, row in nodes.items()
            ),
            (0.0, "this machine", 0.0),
        ]
    )
    far = [pair for pair in pairwise(ordered) if _surely_apart_seconds(pair) > SKEW_MOST_SECONDS]
    if not far:  # small steps may add up
        widest = max(combinations(ordered, 2), key=_surely_apart_seconds, default=None)
        if widest is not None and _surely_apart_seconds(widest) > SKEW_MOST_SECONDS:
            far = [widest]
    return [
        f"the clock of {second} is {format_seconds(ahead - behind)} ahead of {first}'s"
        for (behind, first, _), (ahead, second, _) in far
    ]


def vague_clocks(nodes: Mapping[str, NodeFacts]) -> dict[str, str]:
    """Describe each clock that is not known well enough to tell whether it is apart, by node."""
    return {
        name: f"the clock of {name} is known only to within "
        f"{format_seconds(row.clock_error_seconds)}: its answers take too long"
        for name, row in nodes.items()
        if row.clock_error_seconds > CLOCK_ERROR_MOST_SECONDS
    }


def _surely_apart_seconds(pair: tuple[_Clock, _Clock]) -> float:
    """Return how far two clocks are apart at least, the one that is behind first."""
    (behind, _, error), (ahead, _, other_error) = pair
    return ahead - behind - error - other_error


def facts_table(nodes: Mapping[str, NodeFacts]) -> tuple[list[str], list[list[str]]]:
    """Return headings and one row for each node, for people."""
    columns = ["node", "board", "cpu", "memory", "data on", "link", "system", "java"]
    rows = [
        [
            name,
            facts.board or facts.architecture,
            _cpu_words(facts),
            format_bytes(facts.memory_bytes, binary=True),
            _medium_words(facts),
            _link_words(facts.links),
            f"{facts.os}, {facts.userland_bits} bit, {facts.page_size_bytes // 1024} KiB pages",
            ", ".join(java.version for java in facts.javas) or "none",
        ]
        for name, facts in nodes.items()
    ]
    return columns, rows


def _cpu_words(facts: NodeFacts) -> str:
    words = f"{facts.cores} x {facts.cpu or facts.architecture}"
    if facts.clock_most_hertz:
        words += f", {facts.clock_most_hertz / 1e9:.1f} GHz"
    return words


def _medium_words(facts: NodeFacts) -> str:
    mount = facts.mount(suggest_folder(facts))
    if mount is None:
        return "unknown"
    medium = facts.medium(mount.medium)
    words = _kind_words(medium) if medium else mount.file_system
    free = "" if mount.available_bytes is None else f", {format_bytes(mount.available_bytes)} free"
    return f"{words}{free}"


def _kind_words(medium: Medium) -> str:
    words = _WORDS[medium.kind]
    if medium.pcie_generation:
        words += f", PCIe {medium.pcie_generation} x{medium.pcie_lanes}"
    if medium.usb_bits_per_second:
        words += f" at {format_rate(medium.usb_bits_per_second)}"
    return words


def _link_words(links: tuple[Link, ...]) -> str:
    words = []
    for link in links:
        if link.up:
            rate = format_rate(link.speed_bits_per_second) if link.speed_bits_per_second else ""
            words.append(f"{link.name} {'wireless' if link.wireless else rate}".strip())
    return ", ".join(words) or "none"
