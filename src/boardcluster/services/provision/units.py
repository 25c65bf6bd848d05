"""systemd units of the daemons on a board: who they are, what they may touch, how much they take.

None is enabled: the driver starts them, so a board that has lost its power comes back without a
cluster and not with half of one.

A daemon opens its log itself, as its own user. systemd would open it as root, and in a folder of
that user's a name can be made to lead anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from boardcluster.records import NodeSpec
from boardcluster.services.daemons import DaemonKind, command_of, daemons_of
from boardcluster.services.jvm import daemon_environment
from boardcluster.services.layout import Layout
from boardcluster.services.provision.firewall import FIREWALL_FILE, TAKE_BACK

__all__ = [
    "FIREWALL_UNIT",
    "NFTABLES_DROP_IN",
    "UNITS_FOLDER",
    "render_firewall_unit",
    "render_nftables_drop_in",
    "render_units",
    "unit_name",
]

UNITS_FOLDER = "/etc/systemd/system"
FIREWALL_UNIT = "boardcluster-firewall.service"
NFTABLES_DROP_IN = "nftables.service.d/boardcluster.conf"

_MIB = 1 << 20
_SYSTEM_LEAST_BYTES = 192 * _MIB
_SYSTEM_SHARE = 0.08
_HANDS_OUT_MEMORY = ("datanode", "nodemanager")
_BEYOND_HEAP_BYTES = 256 * _MIB
"""Classes, code, stacks and buffers of a daemon beside its heap; measured: up to 190 MiB."""

_RESTART_SECONDS = 5
_STOP_SECONDS = 6
"""Some wait half a minute for a master that has ended before them. Killing loses nothing: HDFS
writes down what it answers for, and YARN's jobs are over by then."""

_OOM_ADJUST = {"namenode": -600, "resourcemanager": -600, "datanode": -400}
"""Who the kernel spares when memory runs out: first the containers are ended, which inherit the
NodeManager's value; what they computed can be computed again."""

_START = 'log=$1; shift; exec "$@" >>"$log" 2>&1'

_CLOSED = """\
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
UMask=0027
"""
"""AF_NETLINK: the C library asks the kernel for its addresses by it when it looks up a name.
MemoryDenyWriteExecute is missing because a JVM writes the code that it runs."""


def unit_name(daemon: str) -> str:
    """Return the name of a daemon's unit."""
    return f"boardcluster-{daemon}.service"


def render_firewall_unit() -> str:
    """Return the unit that loads the firewall before the network comes up."""
    take_back = TAKE_BACK.replace("$", "$$")  # systemd's own variables begin with one
    return f"""\
# Written by boardcluster.
[Unit]
Description=Firewall of boardcluster
Documentation=man:nft(8)
DefaultDependencies=no
Wants=network-pre.target
Before=network-pre.target shutdown.target
Conflicts=shutdown.target
# Each of these may clear all rules when it starts, or stops: this one comes after.
After=local-fs.target nftables.service ufw.service firewalld.service
PartOf=nftables.service

[Service]
Type=oneshot
RemainAfterExit=yes
# Rules that waited to be confirmed when the power went are not confirmed by a new start.
ExecStartPre=/bin/sh -c '{take_back}' sh {FIREWALL_FILE}
ExecStart=/usr/sbin/nft -f {FIREWALL_FILE}
ExecReload=/usr/sbin/nft -f {FIREWALL_FILE}
ExecStop=-/usr/sbin/nft delete table inet boardcluster

[Install]
WantedBy=sysinit.target
"""


def render_nftables_drop_in() -> str:
    """Return what loads the firewall again as a part of each start and reload of nftables.

    Debian's file for that begins with ``flush ruleset``. A start on a board that is up is not
    passed on to our unit, which is active already, whatever it depends on. Where it is not active,
    it comes by itself, after it has taken rules back that nobody confirmed, or is not wanted.
    """
    again = f"systemctl -q is-active {FIREWALL_UNIT} && exec /usr/sbin/nft -f {FIREWALL_FILE}"
    return f"""\
# Written by boardcluster.
[Service]
ExecStartPost=-/bin/sh -c '{again}'
ExecReload=-/bin/sh -c '{again}'
"""


def render_units(layout: Layout, node: NodeSpec, *, closed: bool) -> dict[str, str]:
    """Return the units of a node's daemons, name to content; ``closed`` ones need the firewall."""
    kinds = [kind for kind, owner in daemons_of(layout.spec) if owner.name == node.name]
    return {unit_name(kind.name): _unit(layout, node, kind, closed=closed) for kind in kinds}


def _unit(layout: Layout, node: NodeSpec, kind: DaemonKind, *, closed: bool) -> str:
    command = command_of(layout, node, kind)
    environment = daemon_environment(layout, node)
    words = [
        *("/bin/sh", "-c", _START, "sh"),
        layout.folder(node, "logs", f"{kind.name}.log"),
        *command,
    ]
    guard = f" {FIREWALL_UNIT}" if closed else ""
    rows = [
        "# Written by boardcluster; `boardcluster up` writes it again.",
        "[Unit]",
        f"Description=boardcluster {layout.spec.name}: {kind.name}",
        f"After=network-online.target{guard}",
        "Wants=network-online.target",
        *([f"Requires={FIREWALL_UNIT}"] if closed else []),
        "StartLimitIntervalSec=300",
        "StartLimitBurst=3",
        "",
        "[Service]",
        "Type=exec",
        f"User={layout.user}",
        f"Group={layout.user}",
        *_environment(environment),
        f"WorkingDirectory={_escaped(layout.folder(node, 'tmp'))}",
        f"ExecStart={' '.join(_word(word) for word in words)}",
        "Restart=on-failure",
        f"RestartSec={_RESTART_SECONDS}",
        "# the JVM's answer to SIGTERM",
        "SuccessExitStatus=143",
        "# SIGTERM to the daemon alone, so that it ends its containers itself; then SIGKILL to all",
        "KillMode=mixed",
        f"TimeoutStopSec={_STOP_SECONDS}",
        "LimitNOFILE=65536",
        "TasksMax=infinity",
        *_memory(node, kind, command),
        f"OOMScoreAdjust={_OOM_ADJUST.get(kind.name, 0)}",
        "# a container that is ended for lack of memory must not take the daemon with it",
        "OOMPolicy=continue",
        f"ReadWritePaths={_escaped(layout.folders[node.name])}",
        *_homes(layout.folders[node.name]),
    ]
    return "\n".join([*rows, _CLOSED])


def _memory(node: NodeSpec, kind: DaemonKind, command: list[str]) -> list[str]:
    """Return the limits of a daemon with everything it starts.

    What a DataNode reads and what containers write stays in the page cache, which counts; so those
    are only kept from taking what the system itself needs. The others are bounded by their heap.
    """
    whole = node.memory_bytes - max(_SYSTEM_LEAST_BYTES, int(node.memory_bytes * _SYSTEM_SHARE))
    if kind.name in _HANDS_OUT_MEMORY:
        return [f"MemoryMax={whole}"]
    heap = next(int(found[1]) for word in command if (found := re.fullmatch(r"-Xmx(\d+)m", word)))
    high = heap * _MIB * 5 // 4 + _BEYOND_HEAP_BYTES
    return [f"MemoryHigh={min(high, whole)}", f"MemoryMax={min(high * 3 // 2, whole)}"]


def _homes(folder: str) -> list[str]:
    """Hide the homes of people, unless the data is in one."""
    return [f"ProtectHome={'read-only' if folder.split('/')[1] in ('home', 'root') else 'yes'}"]


def _environment(values: Mapping[str, str]) -> list[str]:
    return [
        f"Environment={_word(f'{name}={value}', command=False)}" for name, value in values.items()
    ]


def _escaped(text: str) -> str:
    """Return a text in which systemd sees no specifier."""
    return text.replace("%", "%%")


def _word(text: str, *, command: bool = True) -> str:
    """Return one word for systemd, quoted only where it has to be (systemd.syntax(7))."""
    plain = _escaped(text)
    if command:
        plain = plain.replace("$", "$$")
    if re.fullmatch(r"[\w%$+,./:@=*-]+", plain):
        return plain
    for raw, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        plain = plain.replace(raw, escaped)
    return f'"{plain}"'
