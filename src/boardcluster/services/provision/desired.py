"""What a board is to have, from what it is and what the cluster wants of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boardcluster.cluster.kinds.boards.nodes import SERVICE_USER
from boardcluster.records import ClusterSpec, NodeFacts, NodeSpec, Security
from boardcluster.services.layout import PORTS
from boardcluster.services.provision.firewall import FIREWALL_FILE, render_firewall
from boardcluster.services.provision.resources import (
    File,
    Firewall,
    Folder,
    Hosts,
    Packages,
    Resource,
    Service,
    Symlink,
    Sysctl,
    Tree,
    User,
    Word,
)
from boardcluster.services.provision.units import (
    FIREWALL_UNIT,
    NFTABLES_DROP_IN,
    UNITS_FOLDER,
    render_firewall_unit,
    render_nftables_drop_in,
)

__all__ = [
    "ARCHIVES_WORK",
    "INSTALLED_FOLDER",
    "JAVA_LINK",
    "OWN",
    "Ground",
    "desired",
    "ground_of",
]

INSTALLED_FOLDER = "/opt/boardcluster"
"""Folder on every board of the engines, the jobs and the link to its Java; root's."""

JAVA_LINK = f"{INSTALLED_FOLDER}/java"

ARCHIVES_WORK = f"{INSTALLED_FOLDER}/.archives"
"""Folder of class-data archives while they are made; nobody else's even if the folder above is."""

_ALWAYS = ("python3", "rsync", "sudo")
"""Debian leaves sudo out where root has a password; who logs in as root needs it for the rest."""

_TIME_PACKAGES = ("systemd-timesyncd", "chrony", "ntpsec", "openntpd", "ntp")
_TIME_SERVICES = ("chrony", "ntpsec", "openntpd", "ntp", "systemd-timesyncd")
_JAVA_FEATURES = (17, 21)
"""Those that Debian and Ubuntu package."""

_HOMES = tuple(f"/{name}/" for name in ("home", "root"))
"""Where services may not look; see units.py."""

_DEBIAN_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
_SYSCTL_FILE = "/etc/sysctl.d/60-boardcluster.conf"
_SYSCTL = {"vm.swappiness": "1"}
"""A daemon that is swapped out answers too late, and swap wears SD cards out."""

_COMMAND_LINES = ("/boot/firmware/cmdline.txt", "/boot/cmdline.txt")
OWN = (
    *("conf", "data", "data-*", "galera", "gluster", "http", "logs", "root-*", "scratch"),
    *("spark-events", "tmp"),
)
"""What we make in a node's folder; see Layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a node already is, as far as it decides what is done to it."""

    architecture: str
    """As ``uname -m`` says it."""
    systemd: bool
    """Whether systemd runs it."""
    java_home: str = ""
    """A Java that runs the engines; empty if one has to be installed."""
    lacks_memory_controller: bool = False
    """Whether it is a Raspberry Pi whose kernel must be told to account for memory."""


def ground_of(facts: NodeFacts, *, java_oldest: int, java_newest: int) -> Ground:
    """Return what provisioning must know of a node."""
    fitting = [
        java.home
        for java in facts.javas
        if java.feature is not None
        and java_oldest <= java.feature <= java_newest
        and java.architecture in ("", facts.architecture)
        and not java.home.startswith(_HOMES)
    ]
    pi = "raspberry pi" in facts.board.lower()
    return Ground(
        architecture=facts.architecture,
        systemd=facts.service_manager == "systemd",
        java_home=fitting[0] if fitting else "",
        lacks_memory_controller=pi and not facts.memory_controller,
    )


def desired(
    spec: ClusterSpec,
    node: NodeSpec,
    ground: Ground,
    *,
    packages: Sequence[str] = (),
    optional: Sequence[str] = (),
    trees: Sequence[Tree] = (),
    units: Mapping[str, str] | None = None,
) -> list[Resource]:
    """Return what a node is to have, in the order in which it is made.

    Nothing listens before the firewall is loaded.

    Args:
        spec: the cluster.
        node: the node.
        ground: what it already is.
        packages: Debian packages that workloads need, such as ``openmpi-bin``.
        optional: likewise those that not every system has.
        trees: engines and jobs, under INSTALLED_FOLDER.
        units: systemd units of its daemons, see ``render_units``; used where systemd is.
    """
    closed = spec.security is Security.CLOSED
    guards = {FIREWALL_UNIT: render_firewall_unit(), NFTABLES_DROP_IN: render_nftables_drop_in()}
    unit_files = {**(guards if closed else {}), **(units or {})}
    return [
        Packages(wanted=_packages(ground, packages, closed=closed), optional=tuple(optional)),
        User(name=SERVICE_USER),
        Folder(path=INSTALLED_FOLDER, own=(ARCHIVES_WORK.rpartition("/")[2],)),
        Folder(path=f"{INSTALLED_FOLDER}/engines"),
        *(Folder(path=path) for path in _parents(trees)),
        Folder(path=node.folder, owner=SERVICE_USER, mode=0o750, own=OWN, data=True),
        Symlink(path=JAVA_LINK, targets=_java_targets(ground)),
        Hosts(rows=tuple((other.address, other.name) for other in spec.nodes)),
        Sysctl(path=_SYSCTL_FILE, values=_SYSCTL),
        *_memory_controller(ground),
        *_firewall(spec),
        *(
            File(path=f"{UNITS_FOLDER}/{name}", content=text)
            for name, text in (unit_files if ground.systemd else {}).items()
        ),
        *_services(ground, closed=closed),
        *trees,
    ]


def _parents(trees: Sequence[Tree]) -> list[str]:
    """Return the folders that trees lie in, beside those that every board has."""
    usual = (INSTALLED_FOLDER, f"{INSTALLED_FOLDER}/engines")
    parents = dict.fromkeys(tree.path.rpartition("/")[0] for tree in trees)
    return [path for path in parents if path not in usual]


def _packages(
    ground: Ground, packages: Sequence[str], *, closed: bool
) -> tuple[tuple[str, ...], ...]:
    names = [*_ALWAYS, *(["nftables"] if closed else []), *packages]
    wanted = [(name,) for name in dict.fromkeys(names)]
    java = tuple(f"openjdk-{feature}-jre-headless" for feature in _JAVA_FEATURES)
    return (
        *wanted,
        *([] if ground.java_home else [java]),
        *([_TIME_PACKAGES] if ground.systemd else []),
    )


def _java_targets(ground: Ground) -> tuple[str, ...]:
    if ground.java_home:
        return (ground.java_home,)
    name = _DEBIAN_NAMES.get(ground.architecture, ground.architecture)
    return tuple(f"/usr/lib/jvm/java-{feature}-openjdk-{name}" for feature in _JAVA_FEATURES)


def _memory_controller(ground: Ground) -> list[Resource]:
    """The firmware of Raspberry Pis switches this controller off unless the word is there."""
    if not ground.lacks_memory_controller:
        return []
    return [Word(paths=_COMMAND_LINES, word="cgroup_enable=memory")]


def _firewall(spec: ClusterSpec) -> list[Resource]:
    if spec.security is not Security.CLOSED:
        return []
    network = spec.network
    rules = render_firewall(
        [node.address for node in spec.nodes],
        service_ports=tuple(PORTS.values()),
        open_ports=network.open_ports,
        ssh_from=network.ssh_from,
        egress=network.egress,
    )
    return [
        Firewall(
            path=FIREWALL_FILE,
            content=rules,
            open_ports=network.open_ports,
            ssh_from=network.ssh_from,
            service_user=SERVICE_USER,
            egress=network.egress,
        )
    ]


def _services(ground: Ground, *, closed: bool) -> list[Resource]:
    if not ground.systemd:
        return []
    time = Service(names=tuple(f"{name}.service" for name in _TIME_SERVICES))
    return [*([Service(names=(FIREWALL_UNIT,))] if closed else []), time]
