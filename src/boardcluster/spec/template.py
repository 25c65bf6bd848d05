"""Write a ``cluster.toml`` for a person, and propose one for this machine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from ipaddress import IPv4Network

from boardcluster.capabilities import Network, every_kind
from boardcluster.errors import CapacityError, UsageError
from boardcluster.records import (
    ClusterSpec,
    Egress,
    NetworkSpec,
    NodeSpec,
    NodeTwin,
    Role,
    TwinSpec,
)
from boardcluster.spec.checks import (
    BENCHMARK_NETWORK,
    CLUSTER_NAME_LENGTH_MAX,
    LINK_BITS_PER_SECOND_MAX,
    LINK_BITS_PER_SECOND_MIN,
    MEMORY_BYTES_MAX,
    MEMORY_BYTES_MIN,
    NODE_NAME_LENGTH_MAX,
    check_cluster_name,
    check_subnet,
)
from boardcluster.spec.cluster import (
    CORES_MAX,
    DEFAULT_FOLDER,
    DEFAULT_LINK_BITS_PER_SECOND,
    DEFAULT_SUBNET,
    LOOPBACK_NAME,
    NODES_MAX,
    host_address,
    nodes_that_fit,
)
from boardcluster.spec.meters import render_meters
from boardcluster.spec.prices import render_prices
from boardcluster.spec.toml import toml_text
from boardcluster.spec.twin import DEFAULT_DISK_BYTES
from boardcluster.units import (
    GIB,
    MIB,
    format_bytes,
    format_bytes_exact,
    format_count,
    format_rate_exact,
)

__all__ = ["propose_cluster", "render_cluster", "workers_that_fit"]

_MASTER_MEMORY_BYTES = 1536 * MIB
_WORKER_MEMORY_BYTES_MAX = 4 * GIB
_WORKER_MEMORY_BYTES_MIN = 1536 * MIB
_MEMORY_STEP_BYTES = 64 * MIB
_USABLE_PERCENT = 90

_PROFILE_MEANINGS = {
    "default": "sized by rule from each node's memory and cores",
    "upstream": "what Hadoop and Spark do without any configuration",
    "paper-2021": "the settings printed in the paper of 2021",
    "paper-2026": "the settings printed in the paper of 2026",
}

_HEADER = """\
# A boardcluster cluster. Change what you like, then run `boardcluster up`.
# The whole file is checked before anything starts; for each mistake you are told its line, its key,
# what is allowed and the nearest valid name.
#
#   sizes   "256 MB" is 256,000,000 bytes; "256 MiB" is 268,435,456 bytes
#   rates   "100 Mbit/s", "1 Gbit/s"
"""


def _choices(names: Collection[str], meanings: dict[str, str]) -> str:
    width = max((len(name) for name in names), default=0)
    rows = (f"#   {name:{width}}  {meanings.get(name, '')}".rstrip() for name in sorted(names))
    return "\n".join(rows)


def _render_node(node: NodeSpec, *, over_ssh: bool) -> str:
    roles = ", ".join(toml_text(role.value) for role in Role if role in node.roles)
    ways = (("host", node.host), ("address", node.address), ("folder", node.folder))
    board = "".join(f"{key} = {toml_text(value)}\n" for key, value in ways if value and over_ssh)
    return (
        "[[node]]\n"
        f"name = {toml_text(node.name)}\n"
        f"roles = [{roles}]\n"
        f"cores = {node.cores}\n"
        f"memory = {toml_text(format_bytes_exact(node.memory_bytes))}\n"
        f"{board}{_render_node_twin(node.twin) if node.twin else ''}"
    )


def _render_node_twin(twin: NodeTwin) -> str:
    parts = {
        "board": twin.board,
        "medium": twin.medium,
        "pcie": twin.pcie,
        "supply": twin.supply,
        "cooling": twin.cooling,
        "disk": format_bytes_exact(twin.disk_bytes) if twin.disk_bytes else "",
    }
    return "".join(f"{key} = {toml_text(value)}\n" for key, value in parts.items() if value)


def _render_twin(twin: TwinSpec) -> str:
    dilation = toml_text("auto") if twin.dilation is None else repr(twin.dilation)
    return f"""\
[twin]
# Nodes are limited to what their boards can do. By how much everything is slower than on the
# boards: "auto" is the least that leaves this machine idle headroom; or a number from 1 to 1000.
dilation = {dilation}
"""


def _render_settings(spec: ClusterSpec) -> Iterable[str]:
    """Return the table of settings; none where there are none."""
    if spec.settings:
        rows = [f"{toml_text(key)} = {toml_text(value)}" for key, value in spec.settings.items()]
        yield "\n".join(
            ["# Properties of the engines, on top of the profile.", "[settings]", *rows, ""]
        )


def _render_board_network(spec: ClusterSpec) -> str:
    return f"""\
[network]
# The IPv4 network that the boards are in, with a prefix from /8 to /30.
subnet = {toml_text(spec.network.subnet)}

# The rate of the slowest link, as it was found or as you know it; it is not enforced on boards.
link = {toml_text(format_rate_exact(spec.network.link_bits_per_second))}
{_render_firewall_keys(spec)}"""


def _render_firewall_keys(spec: ClusterSpec) -> str:
    """Return what the firewall lets through beside SSH from everywhere; nothing if that is all."""
    network = spec.network
    rows = (("open_ports", network.open_ports), ("ssh_from", network.ssh_from))
    lists = "".join(
        f"{key} = [{', '.join(map(toml_text, values))}]\n" for key, values in rows if values
    )
    if network.egress is Egress.ANY:
        return lists
    return f"{lists}egress = {toml_text(network.egress)}\n"


_BOARD_COMMENTS = f"""\
#   host    how ssh reaches it: "HOST", "USER@HOST" or "ssh://USER@HOST:PORT"; your ~/.ssh/config,
#           agent and jump hosts apply
#   address its IPv4 address in the subnet above
#   folder  where data, logs and configuration go, on the fastest medium of the node;
#           leave it out for {toml_text(DEFAULT_FOLDER)}
"""

_TWIN_COMMENTS = f"""\
#
#   board   which board of the catalog the node is limited to; cores and memory are that board's,
#           memory may be less
#   medium  which medium of the catalog its disk is limited to; pcie says by which version of
#           PCI Express, where its figures differ by that
#   disk    size of its disk; leave it out for {toml_text(format_bytes_exact(DEFAULT_DISK_BYTES))}
#   supply  its power supply; cooling  what cools it: both are modelled
"""

_SECURITY = """\

# Who may reach the cluster:
#   closed        only its own nodes; firewall, access lists, tokens, encryption among Spark's parts
#   insecure-lab  anyone in the network may take it over; only to compare with the papers
security = """


def _render_network(spec: ClusterSpec) -> str:
    return f"""\
[network]
# An IPv4 network inside {BENCHMARK_NETWORK}, which is reserved for benchmarking (RFC 2544) and so
# collides with no other network; prefix /16 to /28. This machine has the first address, here
# {host_address(spec)}; the master has the next, and the other nodes follow in the file's order.
# Leave it out for {toml_text(DEFAULT_SUBNET)}.
subnet = {toml_text(spec.network.subnet)}

# Rate of each node's link, in each direction: {format_rate_exact(LINK_BITS_PER_SECOND_MIN)} to \
{format_rate_exact(LINK_BITS_PER_SECOND_MAX)}. A Raspberry Pi 4
# or 5 has 1 Gbit/s. Leave it out for {toml_text(format_rate_exact(DEFAULT_LINK_BITS_PER_SECOND))}.
link = {toml_text(format_rate_exact(spec.network.link_bits_per_second))}
"""


_LOOPBACK_NODE = f"""\
# The one [[node]] is this machine, with both roles.
#
#   name    always {LOOPBACK_NAME}"""


def _several_nodes(most: int) -> str:
    return f"""\
# One [[node]] for each node, at most {most}: exactly one master, one or more workers.
# A node may be both: roles = ["master", "worker"].
#
#   name    its host name inside the cluster, at most {NODE_NAME_LENGTH_MAX} characters"""


_NETWORKS: dict[Network, Callable[[ClusterSpec], str]] = {
    Network.OWN: _render_network,
    Network.LAN: _render_board_network,
    Network.LOOPBACK: lambda _: "",
}


def render_cluster(
    spec: ClusterSpec, *, engine_pairs: Collection[str], profiles: Collection[str]
) -> str:
    """Write a commented ``cluster.toml``; loading it gives back the same spec.

    The ids of the known engine pairs and the names of the profiles are for the comments.
    """
    known = spec.capabilities
    boards = known.over_ssh
    cluster = f"""\
[cluster]
# Also the name of its state folder: lower-case letters, digits and hyphens, at most \
{CLUSTER_NAME_LENGTH_MAX}.
name = {toml_text(spec.name)}

# What the nodes are:
{_choices(every_kind(), {name: row.meaning for name, row in every_kind().items()})}
kind = {toml_text(spec.kind)}

# Which Hadoop with which Spark:
{_choices(engine_pairs, {})}
engines = {toml_text(spec.engines)}

# How the engines are configured:
{_choices(profiles, _PROFILE_MEANINGS)}
profile = {toml_text(spec.profile)}
{_SECURITY + toml_text(spec.security) + chr(10) if boards else ""}"""
    nodes_comment = f"""\
{_LOOPBACK_NODE if known.network is Network.LOOPBACK else _several_nodes(known.nodes_max)}
#   roles   master: NameNode, ResourceManager, history servers; worker: DataNode, NodeManager
#   cores   CPU cores the profile may count on, 1 to {CORES_MAX}
#   memory  memory the profile may count on, {format_bytes_exact(MEMORY_BYTES_MIN)} to \
{format_bytes_exact(MEMORY_BYTES_MAX)}
{_BOARD_COMMENTS if boards else ""}{_TWIN_COMMENTS if spec.twin else ""}"""
    nodes = "\n".join(_render_node(node, over_ssh=boards) for node in spec.nodes)
    network = _NETWORKS[known.network](spec)
    twin = (_render_twin(spec.twin),) if spec.twin else ()
    parts = (
        _HEADER,
        cluster,
        *([network] if network else []),
        *twin,
        nodes_comment,
        nodes,
        *render_meters(spec),
        *render_prices(spec),
        *_render_settings(spec),
    )
    return "\n".join(parts)


def _checked(check: Callable[[str], str], value: str, option: str) -> str:
    try:
        return check(value)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", hint=f"choose another {option}") from error


def workers_that_fit(host_available_bytes: int) -> int:
    """Return the largest number of workers that ``propose_cluster`` can place; 0 if none."""
    usable_bytes = host_available_bytes * _USABLE_PERCENT // 100
    shared_bytes = max(0, usable_bytes - _MASTER_MEMORY_BYTES)
    return min(NODES_MAX - 1, shared_bytes // _WORKER_MEMORY_BYTES_MIN)


def _worker_memory_bytes(*, workers: int, host_available_bytes: int) -> int:
    """Share out the usable memory, or refuse with the arithmetic."""
    usable_bytes = host_available_bytes * _USABLE_PERCENT // 100
    shared_bytes = usable_bytes - _MASTER_MEMORY_BYTES
    each_bytes = min(_WORKER_MEMORY_BYTES_MAX, shared_bytes // workers)
    if each_bytes >= _WORKER_MEMORY_BYTES_MIN:
        return each_bytes // _MEMORY_STEP_BYTES * _MEMORY_STEP_BYTES
    master, least = _binary(_MASTER_MEMORY_BYTES), _binary(_WORKER_MEMORY_BYTES_MIN)
    needed_bytes = _MASTER_MEMORY_BYTES + workers * _WORKER_MEMORY_BYTES_MIN
    available_needed_bytes = -(-needed_bytes * 100 // _USABLE_PERCENT)
    largest = workers_that_fit(host_available_bytes)
    message = (
        f"not enough memory for a master and {format_count(workers, 'worker')}: "
        f"{_binary(host_available_bytes)} available x {_USABLE_PERCENT} % = "
        f"{_binary(usable_bytes)} usable; needed are {master} (master) + {workers} x {least} "
        f"(the least per worker) = {_binary(needed_bytes)}, for which "
        f"{_binary(available_needed_bytes)} must be available; the largest number of workers that "
        f"fits is {largest}"
    )
    fewer = f"ask for at most {format_count(largest, 'worker')}, or free memory"
    hint = fewer if largest else "free memory"
    raise CapacityError(message, hint=hint)


def _binary(size_bytes: int) -> str:
    return format_bytes(size_bytes, binary=True)


def propose_cluster(
    *,
    name: str,
    workers: int,
    host_cores: int,
    host_available_bytes: int,
    engines: str,
    profile: str,
    subnet: str = DEFAULT_SUBNET,
) -> ClusterSpec:
    """Propose an emulated cluster that fits this machine.

    Memory: 90 % of what is available is shared out, the rest stays for the driver and the page
    cache. The master gets 1.5 GiB for its four daemons and the client of one job. The workers share
    the remainder evenly, rounded down to 64 MiB, each at least 1.5 GiB, in which the profile
    ``default`` places a Spark executor, and at most 4 GiB, the size of a common board.

    Cores: each node gets ``host_cores // workers``, at least 1. Tasks run on workers only, so the
    workers together are promised no more cores than the machine has, except for the one core
    without which a worker can run nothing; rounding up instead would schedule more tasks than
    cores and so measure contention. The master runs no tasks; it gets the same number because the
    boards of a cluster are usually alike.

    Args:
        name: the cluster's name.
        workers: number of workers, from 1.
        host_cores: cores of this machine, from 1.
        host_available_bytes: memory available now.
        engines: id of the engine pair.
        profile: name of the engine configuration.
        subnet: the cluster's IPv4 network in CIDR form.

    Returns:
        One node ``master`` and the nodes ``worker1`` and so on.

    Raises:
        UsageError: the name, the number of workers or the subnet is not allowed.
        CapacityError: a worker would get less than 1.5 GiB; shows the arithmetic and the largest
            number of workers that fits.
    """
    _checked(check_cluster_name, name, "name")
    network = IPv4Network(_checked(check_subnet, subnet, "subnet"))
    workers_max = min(NODES_MAX, nodes_that_fit(str(network))) - 1
    if not 1 <= workers <= workers_max:
        raise UsageError(
            f"workers: {workers} is not allowed; allowed: 1 to {workers_max} in {network}",
            hint=f"ask for 1 to {workers_max} workers",
        )
    worker_memory_bytes = _worker_memory_bytes(
        workers=workers, host_available_bytes=host_available_bytes
    )
    cores = min(CORES_MAX, max(1, host_cores // workers))
    return ClusterSpec(
        name=name,
        kind="emulated",
        engines=engines,
        profile=profile,
        network=NetworkSpec(subnet=str(network), link_bits_per_second=DEFAULT_LINK_BITS_PER_SECOND),
        nodes=tuple(_proposed_nodes(workers, cores, worker_memory_bytes)),
    )


def _proposed_nodes(workers: int, cores: int, worker_memory_bytes: int) -> Iterable[NodeSpec]:
    yield NodeSpec(
        name="master",
        roles=frozenset({Role.MASTER}),
        cores=cores,
        memory_bytes=_MASTER_MEMORY_BYTES,
    )
    for number in range(1, workers + 1):
        yield NodeSpec(
            name=f"worker{number}",
            roles=frozenset({Role.WORKER}),
            cores=cores,
            memory_bytes=worker_memory_bytes,
        )
