"""NetPIPE: latency and throughput between two nodes by message size, over TCP and over Open MPI.

Source: NetPIPE 3.7.2, netpipe(1); Baun 2016, section "Network performance" and Fig. 3; Snell,
Mikler and Gustafson 1996, NetPIPE.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from boardcluster.errors import ProbeOutputError, UsageError, VerificationError
from boardcluster.probes.background import free_port, serving
from boardcluster.probes.base import NodeTool, Probe, Site, figures_from
from boardcluster.records import ProbeFigure, ProbeMode
from boardcluster.services.mpi import mpirun_command, serving_in
from boardcluster.services.netpipe import NETPIPE_PORT, Curve, parse_curve
from boardcluster.units import MIB

__all__ = ["PROBE", "figures_of", "measure", "smallest_subnet"]

_LARGEST_BYTES = {ProbeMode.QUICK: MIB, ProbeMode.PAPER: 8 * MIB}
_QUICK_REPEATS = 7
_TIMEOUT_SECONDS = {ProbeMode.QUICK: 120.0, ProbeMode.PAPER: 900.0}
_MEGABIT = 1e6


def smallest_subnet(first: str, second: str) -> str:
    """Return the smallest subnet that holds two addresses.

    Raises:
        UsageError: they are not addresses of one kind.
    """
    try:
        one, other = ip_address(first), ip_address(second)
    except ValueError as error:
        raise UsageError(f"netpipe: {error}", hint="give the nodes addresses") from error
    if one.version != other.version:
        raise UsageError(
            f"netpipe: {first} and {second} are not in one network",
            hint="give both nodes addresses of the same kind",
        )
    length = one.max_prefixlen - (int(one) ^ int(other)).bit_length()
    return str(ip_network(f"{first}/{length}", strict=False))


def figures_of(curve: Curve, transport: str) -> list[ProbeFigure]:
    """Return a curve's figures: its ends, its peak, and its points at powers of two."""
    values = {
        "netpipe_latency_seconds": curve.points[0].seconds,
        "netpipe_largest_bits_per_second": curve.throughput_megabits_per_second * _MEGABIT,
        "netpipe_peak_bits_per_second": curve.peak_throughput_megabits_per_second * _MEGABIT,
    }
    own = {"transport": transport}
    figures = figures_from(values, own)
    for point in curve.points:
        if point.size_bytes.bit_count() == 1:
            values = {
                "netpipe_bits_per_second": point.megabits_per_second * _MEGABIT,
                "netpipe_one_way_seconds": point.seconds,
            }
            figures += figures_from(values, {**own, "message_bytes": str(point.size_bytes)})
    return figures


def _options(mode: ProbeMode) -> list[str]:
    """Return what both ends must be given alike."""
    repeats = ("-n", str(_QUICK_REPEATS)) if mode is ProbeMode.QUICK else ()
    return ["-p", "0", "-u", str(_LARGEST_BYTES[mode]), *repeats]


def _over_tcp(site: Site, peer: Site, output: str) -> None:
    port = free_port(peer.remote, NETPIPE_PORT)
    options = [*_options(site.mode), "-P", str(port)]
    timeout_seconds = _TIMEOUT_SECONDS[site.mode]
    with serving(
        peer.remote,
        ["NPtcp", *options],
        port=port,
        log=f"{peer.folder}/netpipe.log",
        longest_seconds=(timeout_seconds + 60) * peer.dilation,
    ):
        site.remote.run(
            ["NPtcp", "-h", peer.address, *options, "-o", output],
            cwd=site.folder,
            timeout_seconds=timeout_seconds,
        )


def _over_mpi(site: Site, peer: Site, output: str) -> None:
    command = mpirun_command(
        smallest_subnet(site.address, peer.address),
        hosts=(site.node, peer.node),
        ranks_per_host=1,
        program=["NPopenmpi", *_options(site.mode), "-o", output],
    )
    places = {row.node: (row.remote, row.folder) for row in (site, peer)}
    timeout_seconds = _TIMEOUT_SECONDS[site.mode]
    with serving_in(places, folder=site.folder, environment={}) as variables:
        # Under timeout, so that it ends by itself if the driver is killed.
        longest_seconds = (timeout_seconds + 60) * site.dilation
        bounded = ["timeout", str(round(longest_seconds)), *command]
        site.remote.run(bounded, env=variables, cwd=site.folder, timeout_seconds=timeout_seconds)


def measure(site: Site) -> tuple[ProbeFigure, ...]:
    """Measure over TCP and, in paper mode, over MPI.

    Raises:
        AddressError: no port is free.
        UsageError: there is no peer.
    """
    if site.peer is None:
        raise UsageError("netpipe needs two nodes", hint="run it on a cluster of two nodes or more")
    ways = {"tcp": _over_tcp}
    if site.mode is ProbeMode.PAPER:
        ways["mpi"] = _over_mpi
    figures = []
    for transport, run in ways.items():
        site.tell(f"NetPIPE over {transport.upper()} to {site.peer.node}")
        output = f"{site.folder}/netpipe-{transport}.out"
        run(site, site.peer, output)
        text = site.remote.run(["cat", output]).text
        try:
            curve = parse_curve(
                text,
                largest_bytes=_LARGEST_BYTES[site.mode],
                pair=f"{transport} {site.node}-{site.peer.node}",
            )
        except VerificationError as error:
            raise ProbeOutputError(
                error.message, hint="run the same NetPIPE by hand between the nodes"
            ) from error
        figures += figures_of(curve, transport)
    return tuple(figures)


PROBE = Probe(
    name="netpipe",
    area="network",
    summary="latency and throughput by message size, over TCP and (paper mode) over MPI",
    matches=('Baun 2016, section "Network performance" and Fig. 3',),
    tools=(
        # NetPIPE tells nobody its version; without arguments it would wait for a transmitter.
        NodeTool(program="NPtcp", package="netpipe-tcp", version=()),
        NodeTool(program="NPopenmpi", package="netpipe-openmpi", version=()),
        NodeTool(program="mpirun", package="openmpi-bin"),
    ),
    measure=measure,
    pair=True,
    quick_seconds=5.0,
    paper_seconds=120.0,
)
