"""``cluster.toml`` -> a validated ClusterSpec, and the addresses that follow from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from boardcluster.capabilities import (
    Capabilities,
    Network,
    capabilities_of,
    every_kind,
    kinds_with,
)
from boardcluster.errors import UsageError
from boardcluster.records import (
    HOST,
    ClusterSpec,
    Egress,
    NetworkSpec,
    NodeSpec,
    NodeTwin,
    Role,
    Security,
    TwinSpec,
)
from boardcluster.spec.checks import (
    Allowed,
    check_address,
    check_board_subnet,
    check_choice,
    check_cluster_name,
    check_disk,
    check_egress,
    check_folder,
    check_host,
    check_link,
    check_memory,
    check_node_name,
    check_open_port,
    check_role,
    check_ssh_from,
    check_subnet,
    choices_text,
)
from boardcluster.spec.meters import (
    METER_TABLE,
    POWER_TABLE,
    MeterFacts,
    MeterTable,
    PowerTable,
    meter_problems,
    meter_specs,
    power_models,
)
from boardcluster.spec.prices import PRICES_TABLE, PricesTable, price_problems, prices_of
from boardcluster.spec.problems import (
    Problem,
    StrictTable,
    key_text,
    repeated,
    spec_error,
    validate,
)
from boardcluster.spec.settings import (
    SETTINGS_TABLE,
    CheckSetting,
    check_profile,
    profiles_allowed,
    read_settings,
)
from boardcluster.spec.toml import KeyPath, TomlDocument, read_toml
from boardcluster.spec.twin import (
    BOARD_ALLOWED,
    COOLING_ALLOWED,
    DEFAULT_DISK_BYTES,
    MEDIUM_ALLOWED,
    PCIE_ALLOWED,
    SUPPLY_ALLOWED,
    TWIN_TABLE,
    TwinParts,
    TwinTable,
    part_name,
    twin_problems,
)
from boardcluster.units import format_count

__all__ = [
    "BOARDS_MAX",
    "CORES_MAX",
    "DEFAULT_FOLDER",
    "DEFAULT_LINK_BITS_PER_SECOND",
    "DEFAULT_SUBNET",
    "LOOPBACK_ADDRESS",
    "LOOPBACK_NAME",
    "LOOPBACK_SUBNET",
    "NODES_MAX",
    "address_of",
    "host_address",
    "load_cluster",
    "nodes_that_fit",
]

_SECURITIES = [
    name for row in every_kind().values() if len(row.securities) > 1 for name in row.securities
]
DEFAULT_FOLDER = "/var/lib/boardcluster"
DEFAULT_SUBNET = "198.18.0.0/24"
DEFAULT_LINK_BITS_PER_SECOND = 10**9
LOOPBACK_ADDRESS = "127.0.0.1"
LOOPBACK_NAME = "localhost"
"""The one name that every machine gives that address, without anybody's help."""

LOOPBACK_SUBNET = "127.0.0.0/8"
NODES_MAX = capabilities_of("emulated").nodes_max
"""Most nodes of an emulated cluster."""

BOARDS_MAX = capabilities_of("boards").nodes_max
"""Most boards of a cluster."""

CORES_MAX = 1024
_CORES_ALLOWED = f"a whole number from 1 to {CORES_MAX}"

_CREATE_HINT = "run `boardcluster init` to write one, or name another file"


def _choice_from(context_key: str, what: str) -> AfterValidator:
    def check(value: str, info: ValidationInfo[Mapping[str, Collection[str]]]) -> str:
        return check_choice(value, info.context[context_key], what=what)

    return AfterValidator(check)


def _check_kind(value: str) -> str:
    return check_choice(value, every_kind(), what="a kind of cluster")


def _check_security(value: str, info: ValidationInfo[Mapping[str, Any]]) -> str:
    allowed = info.context["kind"].securities
    if len(allowed) == 1:
        return value  # there is nothing to choose, so the key is refused: see _misplaced_problems
    return check_choice(value, allowed, what="a security level of boards")


def _check_subnet_of_kind(value: str, info: ValidationInfo[Mapping[str, Any]]) -> str:
    lan = info.context["kind"].network is Network.LAN
    return check_board_subnet(value) if lan else check_subnet(value)


def _check_name_of_kind(value: str, info: ValidationInfo[Mapping[str, Any]]) -> str:
    if info.context["kind"].network is Network.LOOPBACK:
        return check_choice(value, [LOOPBACK_NAME], what="the name of this machine as a node")
    if info.context["kind"].emulated and value == HOST:
        raise ValueError(
            f"a node called {HOST!r}: what is measured of this machine as a whole is recorded "
            "under that name; choose another one"
        )
    return check_node_name(value)


class _Cluster(StrictTable):
    name: Annotated[str, AfterValidator(check_cluster_name)] = Field(
        description=Allowed.CLUSTER_NAME
    )
    kind: Annotated[str, AfterValidator(_check_kind)] = Field(description=", ".join(every_kind()))
    engines: Annotated[str, _choice_from("engine_pairs", "an engine pair")]
    profile: Annotated[str, AfterValidator(check_profile)]
    security: Annotated[str, AfterValidator(_check_security)] = Field(
        default="", description=", ".join(_SECURITIES)
    )


class _Network(StrictTable):
    subnet: Annotated[str, AfterValidator(_check_subnet_of_kind)] = Field(
        default=DEFAULT_SUBNET, description=f"{Allowed.SUBNET}; of boards, {Allowed.BOARD_SUBNET}"
    )
    link: Annotated[int, BeforeValidator(check_link)] = Field(
        default=DEFAULT_LINK_BITS_PER_SECOND, description=Allowed.LINK
    )
    open_ports: list[Annotated[str, AfterValidator(check_open_port)]] = Field(
        default_factory=list, description=f"an array, each {Allowed.OPEN_PORT}"
    )
    ssh_from: list[Annotated[str, AfterValidator(check_ssh_from)]] = Field(
        default_factory=list, description=f"an array, each {Allowed.SSH_FROM}"
    )
    egress: Annotated[Egress, BeforeValidator(check_egress)] = Field(
        default=Egress.ANY, description=", ".join(Egress)
    )


class _NodeTable(StrictTable):
    name: Annotated[str, AfterValidator(_check_name_of_kind)] = Field(description=Allowed.NODE_NAME)
    roles: list[Annotated[Role, BeforeValidator(check_role)]] = Field(
        min_length=1,
        description=f'an array with one or more of {", ".join(Role)}, e.g. ["worker"]',
    )
    # Needed, except where the node has a board: see _missing_problems.
    cores: int | None = Field(default=None, ge=1, le=CORES_MAX, description=_CORES_ALLOWED)
    memory: Annotated[int | None, BeforeValidator(check_memory)] = Field(
        default=None, description=Allowed.MEMORY
    )
    host: Annotated[str, AfterValidator(check_host)] = Field(default="", description=Allowed.HOST)
    address: Annotated[str, AfterValidator(check_address)] = Field(
        default="", description=Allowed.ADDRESS
    )
    folder: Annotated[str, AfterValidator(check_folder)] = Field(
        default="", description=Allowed.FOLDER
    )
    board: str = Field(default="", min_length=1, description=BOARD_ALLOWED)
    medium: str = Field(default="", min_length=1, description=MEDIUM_ALLOWED)
    pcie: str = Field(default="", min_length=1, description=PCIE_ALLOWED)
    supply: str = Field(default="", min_length=1, description=SUPPLY_ALLOWED)
    cooling: str = Field(default="", min_length=1, description=COOLING_ALLOWED)
    disk: Annotated[int, BeforeValidator(check_disk)] = Field(
        default=DEFAULT_DISK_BYTES, description=Allowed.DISK
    )


class _ClusterFile(StrictTable):
    cluster: _Cluster = Field(description="one [cluster] table with name, kind, engines, profile")
    network: _Network = Field(
        default_factory=_Network, description="one [network] table with subnet, link"
    )
    node: list[_NodeTable] = Field(
        min_length=1,
        description="one [[node]] table per node, each with name, roles, cores, memory",
    )
    meter: list[MeterTable] = Field(default_factory=list, description=METER_TABLE)
    power: list[PowerTable] = Field(default_factory=list, description=POWER_TABLE)
    twin: TwinTable = Field(default_factory=TwinTable, description=TWIN_TABLE)
    prices: PricesTable | None = Field(default=None, description=PRICES_TABLE)
    settings: dict[str, Any] = Field(default_factory=dict, description=SETTINGS_TABLE)


def load_cluster(
    path: Path,
    *,
    engine_pairs: Collection[str],
    profiles: Collection[str],
    meter_kinds: Mapping[str, MeterFacts] | None = None,
    parts: TwinParts | None = None,
    check_setting: CheckSetting | None = None,
) -> ClusterSpec:
    """Read and validate a ``cluster.toml``.

    Args:
        path: the file.
        engine_pairs: ids of the known engine pairs.
        profiles: names of the known profiles.
        meter_kinds: the known kinds of power meters; None leaves kinds and their options unchecked,
            for callers below the room that knows them.
        parts: the catalog of boards and media; None leaves their names unchecked, and then a node
            with a board needs ``cores`` and ``memory`` like any other.
        check_setting: returns the value of an engine's property as the engines read it, or raises
            ValueError; None takes values as they are.

    Returns:
        The cluster, its master first and its other nodes in file order.

    Raises:
        SpecError: the file cannot be read, is not TOML, or is wrong; lists every problem with its
            line, key, value, what is allowed and the nearest valid name.
    """
    document = read_toml(path, create_hint=_CREATE_HINT)
    kind = _kind_in(document.data)
    model, problems = validate(
        _ClusterFile,
        document.data,
        context={
            "engine_pairs": engine_pairs,
            "profiles": profiles,
            "kind": kind,
            "folder": path.parent,
        },
        allowed_words={
            ("cluster", "engines"): choices_text(engine_pairs),
            ("cluster", "profile"): profiles_allowed(profiles),
        },
    )
    wrong = {problem.path for problem in problems}
    problems += _whole_problems(document, wrong, kind)
    problems += _missing_problems(document, wrong, parts if kind.limited else None)
    problems += twin_problems(document, wrong, parts, limited=kind.limited)
    problems += meter_problems(document, wrong, meter_kinds, shared=kind.emulated)
    problems += price_problems(document, wrong)
    settings, found = read_settings(("settings",), document.data.get("settings"), check_setting)
    problems += found
    if model is None or problems:
        raise spec_error(document, problems)
    record = _to_record(model, path.parent, parts)
    return replace(record, settings={key: values[0] for key, values in settings.items()})


def _kind_in(data: Mapping[str, Any]) -> Capabilities:
    """Return what the named kind can do; of none or an unknown one, what the first kind can."""
    cluster = data.get("cluster")
    name = cluster.get("kind") if isinstance(cluster, dict) else None
    known = every_kind()
    return known.get(str(name), next(iter(known.values())))


def _missing_problems(
    document: TomlDocument, wrong: Collection[KeyPath], parts: TwinParts | None
) -> list[Problem]:
    """Find nodes that say neither their cores or memory nor a board of the catalog.

    ``parts`` is None where nodes take nothing from the catalog.
    """
    nodes = document.data.get("node")
    problems = []
    for index, node in enumerate(nodes if isinstance(nodes, list) else []):
        if ("node", index) in wrong or ("node",) in wrong:
            continue
        if "board" in node and parts is not None:
            continue
        problems += [
            Problem(path=("node", index, key), text=f"missing; allowed: {allowed}")
            for key, allowed in (("cores", _CORES_ALLOWED), ("memory", Allowed.MEMORY))
            if key not in node
        ]
    return problems


def _node(
    node: _NodeTable, *, kind: Capabilities, folder: Path, parts: TwinParts | None
) -> NodeSpec:
    cores, memory_bytes, twin = node.cores, node.memory, None
    if node.board:
        twin = NodeTwin(
            board=part_name(node.board, folder),
            medium=part_name(node.medium, folder),
            pcie=node.pcie,
            supply=part_name(node.supply, folder),
            cooling=part_name(node.cooling, folder),
            disk_bytes=node.disk if node.medium else 0,
        )
        if parts is not None:
            facts = parts.board(twin.board)
            cores = cores or facts.cores
            memory_bytes = memory_bytes or facts.memory_bytes
    if cores is None or memory_bytes is None:
        raise RuntimeError(f"{node.name}: cores or memory are missing, which no check noticed")
    return NodeSpec(
        name=node.name,
        roles=frozenset(node.roles),
        cores=cores,
        memory_bytes=memory_bytes,
        host=node.host,
        address=LOOPBACK_ADDRESS if kind.network is Network.LOOPBACK else node.address,
        folder=node.folder or (DEFAULT_FOLDER if kind.over_ssh else ""),
        twin=twin,
    )


def _to_record(model: _ClusterFile, folder: Path, parts: TwinParts | None) -> ClusterSpec:
    kind = capabilities_of(model.cluster.kind)
    nodes = [_node(node, kind=kind, folder=folder, parts=parts) for node in model.node]
    nodes.sort(key=lambda node: Role.MASTER not in node.roles)
    names = [node.name for node in nodes]
    twin = TwinSpec(dilation=model.twin.dilation) if nodes[0].twin is not None else None
    return ClusterSpec(
        name=model.cluster.name,
        kind=model.cluster.kind,
        engines=model.cluster.engines,
        profile=part_name(model.cluster.profile, folder),
        network=NetworkSpec(subnet=LOOPBACK_SUBNET, link_bits_per_second=0)
        if kind.network is Network.LOOPBACK
        else NetworkSpec(
            subnet=model.network.subnet,
            link_bits_per_second=model.network.link,
            open_ports=tuple(dict.fromkeys(model.network.open_ports)),
            ssh_from=tuple(dict.fromkeys(model.network.ssh_from)),
            egress=model.network.egress,
        ),
        nodes=tuple(nodes),
        security=Security(model.cluster.security or kind.securities[0]),
        meters=meter_specs(model.meter, names, folder),
        power_models=power_models(model.power, names),
        twin=twin,
        prices=prices_of(model.prices),
    )


def _whole_problems(
    document: TomlDocument, wrong: Collection[KeyPath], kind: Capabilities
) -> list[Problem]:
    """Find what is wrong with the nodes as a whole, as far as their own values allow to say.

    These rules run on the file's data, not on the model, so that one wrong size somewhere does not
    hide that there are two masters. A rule whose own input is already known to be wrong is left
    out: a misspelt "master" is one mistake and not also a missing master.
    """
    nodes = document.data.get("node")
    if not isinstance(nodes, list) or not nodes:
        return []
    problems = _name_problems(document, nodes, wrong)
    if not any(path[0] == "node" and path[2:3] in ((), ("roles",)) for path in wrong):
        problems += _role_problems(document, nodes)
    problems += _misplaced_problems(document.data, nodes, kind)
    if len(nodes) > kind.nodes_max:
        most = format_count(kind.nodes_max, "node")
        text = f'{len(nodes)} nodes; allowed: at most {most} of the kind "{kind.kind}"'
        problems.append(Problem(path=("node", kind.nodes_max), text=text))
    if kind.over_ssh:
        return problems + _board_problems(document, nodes, wrong)
    if kind.network is Network.OWN:
        problems += _size_problems(document.data, len(nodes), wrong)
    return problems


def _misplaced_problems(
    data: Mapping[str, Any], nodes: list[Any], kind: Capabilities
) -> list[Problem]:
    """Find keys and tables that only other kinds have."""
    problems = []
    if not kind.over_ssh:
        text = f"only for {kinds_with('over_ssh')}; allowed: leave it out"
        paths: list[KeyPath] = [
            ("node", index, key)
            for index, node in enumerate(nodes)
            if isinstance(node, dict)
            for key in ("host", "address", "folder")
            if key in node
        ]
        if isinstance(data.get("cluster"), dict) and "security" in data["cluster"]:
            paths.append(("cluster", "security"))
        paths += [path for path in _firewall_keys(data) if kind.network is not Network.LOOPBACK]
        problems += [Problem(path=path, text=text) for path in paths]
    if kind.network is Network.LOOPBACK and "network" in data:
        text = f'the kind "{kind.kind}" has no network but {LOOPBACK_NAME}; allowed: leave it out'
        problems.append(Problem(path=("network",), text=text))
    return problems


_FIREWALL_KEYS = ("open_ports", "ssh_from", "egress")


def _firewall_keys(data: Mapping[str, Any]) -> list[KeyPath]:
    network = data.get("network")
    there = network if isinstance(network, dict) else {}
    return [("network", key) for key in _FIREWALL_KEYS if key in there]


def _board_problems(
    document: TomlDocument, nodes: list[Any], wrong: Collection[KeyPath]
) -> list[Problem]:
    """Find what is missing or twice among boards, and addresses outside of their network."""
    problems = []
    network = document.data.get("network", {})
    subnet = network.get("subnet", "") if isinstance(network, dict) else ""
    if not subnet and ("network",) not in wrong:
        path: KeyPath = ("network", "subnet") if network else ("network",)
        problems.append(Problem(path=path, text=f"missing; allowed: {Allowed.BOARD_SUBNET}"))
    cluster = document.data.get("cluster")
    if isinstance(cluster, dict) and cluster.get("security") == Security.INSECURE_LAB:
        text = "there is no firewall with security = insecure-lab; allowed: leave it out"
        problems += [Problem(path=path, text=text) for path in _firewall_keys(document.data)]
    known = bool(subnet) and not {("network",), ("network", "subnet")} & set(wrong)
    first_with: dict[str, KeyPath] = {}
    for index, node in enumerate(nodes):
        for key, allowed in (("host", Allowed.HOST), ("address", Allowed.ADDRESS)):
            path = ("node", index, key)
            if path in wrong or path[:2] in wrong:
                continue
            if not node.get(key):
                problems.append(Problem(path=path, text=f"missing; allowed: {allowed}"))
                continue
            first = first_with.setdefault(f"{key} {node[key]}", path)
            if first != path:
                text = (
                    f'"{node[key]}" is already the {key} of {key_text(first[:2])} in line '
                    f"{document.line_of(first)}; allowed: a board of its own for each node"
                )
                problems.append(Problem(path=path, text=text))
            elif key == "address" and known and IPv4Address(node[key]) not in IPv4Network(subnet):
                text = f'"{node[key]}" is not in the subnet "{subnet}"; allowed: {Allowed.ADDRESS}'
                problems.append(Problem(path=path, text=text))
    return problems


def _name_problems(
    document: TomlDocument, nodes: list[Any], wrong: Collection[KeyPath]
) -> list[Problem]:
    rows: list[tuple[KeyPath, str]] = [
        (("node", index, "name"), node["name"])
        for index, node in enumerate(nodes)
        if not {("node", index), ("node", index, "name")} & set(wrong)
    ]
    return [
        Problem(
            path=path,
            text=f'"{dict(rows)[path]}" is already the name of {key_text(first[:2])} in line '
            f"{document.line_of(first)}; allowed: a name that no other node has",
        )
        for path, first in repeated(rows)
    ]


def _role_problems(document: TomlDocument, nodes: list[Any]) -> list[Problem]:
    paths: dict[str, list[KeyPath]] = {
        role.value: [
            ("node", index, "roles") for index, node in enumerate(nodes) if role in node["roles"]
        ]
        for role in Role
    }
    problems = [
        Problem(
            path=path,
            text=f'a second "master", the first is {key_text(paths["master"][0][:2])} in line '
            f"{document.line_of(paths['master'][0])}; allowed: exactly one node with the role "
            "master",
        )
        for path in paths["master"][1:]
    ]
    if not paths["master"]:
        text = 'no node has the role "master"; allowed: exactly one node with the role master'
        problems.append(Problem(path=("node",), text=text))
    if not paths["worker"]:
        text = (
            'no node has the role "worker"; allowed: one or more nodes with the role worker; '
            'a single node may have both, roles = ["master", "worker"]'
        )
        problems.append(Problem(path=("node",), text=text))
    return problems


def _size_problems(
    data: Mapping[str, Any], count: int, wrong: Collection[KeyPath]
) -> list[Problem]:
    if ("network",) in wrong or ("network", "subnet") in wrong:
        return []
    subnet = data.get("network", {}).get("subnet", DEFAULT_SUBNET)
    most = nodes_that_fit(subnet)
    if count <= most:
        return []
    text = (
        f'"{subnet}" has addresses for this machine and {most} nodes, but there are {count}; '
        "allowed: a network with a shorter prefix, or fewer nodes"
    )
    return [Problem(path=("network", "subnet"), text=text)]


def nodes_that_fit(subnet: str) -> int:
    """Return how many nodes have an address in an IPv4 network in CIDR form.

    Not for nodes are the network's own address, the broadcast address and this machine's.
    """
    return IPv4Network(subnet).num_addresses - 3


def host_address(spec: ClusterSpec) -> IPv4Address:
    """Return the address of this machine in the cluster's network: the first usable one."""
    return IPv4Network(spec.network.subnet)[1]


def address_of(spec: ClusterSpec, node_name: str) -> IPv4Address:
    """Return the address of a node.

    A board has the address that its table says, and a local node the loopback address. Among
    emulated nodes, this machine has the first usable address and the nodes have the following ones
    in their order, so the master has the second. One rule for every size of network.

    Raises:
        UsageError: the cluster has no such node; names those it has.
    """
    names = [node.name for node in spec.nodes]
    try:
        check_choice(node_name, names, what=f'a node of the cluster "{spec.name}"')
    except ValueError as error:
        raise UsageError(str(error), hint="name one of the cluster's nodes") from error
    place = names.index(node_name)
    if spec.nodes[place].address:
        return IPv4Address(spec.nodes[place].address)
    return host_address(spec) + 1 + place
