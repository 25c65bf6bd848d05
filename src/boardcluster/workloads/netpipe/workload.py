"""The verbs of NetPIPE."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean

from boardcluster.errors import UsageError
from boardcluster.foreign import start_of
from boardcluster.records import Engine, Verification
from boardcluster.services.beside import check_ports
from boardcluster.services.layout import Layout
from boardcluster.services.mpi import mpirun_command
from boardcluster.services.netpipe import (
    NETPIPE_PORT,
    Curve,
    check_integrity,
    parse_curve,
    sizes_up_to,
)
from boardcluster.units import format_bytes, format_count, parse_size
from boardcluster.workloads.base import (
    Context,
    InputKind,
    Job,
    JobSpec,
    Outcomes,
    Parameter,
    Phase,
    Proof,
    StagedInput,
    Workload,
    number_parameter,
)

__all__ = ["WORKLOAD"]

_TCP = "tcp"
_MPI = "mpi"
_LEAST_BYTES = 1 << 16
_MOST_BYTES = 1 << 28
_OUTPUT = "np.out"
_CHECK = " check"
_METHOD = (
    "NetPIPE's integrity check compared every byte received, between each pair of workers and at "
    "every size until NetPIPE ended; in the measured run no size until then is missing, and every "
    "rate follows from its size and time"
)
_TRANSMIT = """\
import subprocess, sys, time
deadline = time.monotonic() + float(sys.argv[1])
while True:
    status = subprocess.run(sys.argv[2:]).returncode
    if status != 246 or time.monotonic() > deadline:
        sys.exit(status)
    time.sleep(0.05)
"""
"""Runs on the transmitter's node, until the receiver listens: NPtcp tries only once, and then ends
with 246 (-10). Nobody else may try the receiver's port: it serves its first caller and no other.
"""

_LISTEN_SECONDS = 30


def _is_size(text: str) -> bool:
    try:
        return _LEAST_BYTES <= parse_size(text) <= _MOST_BYTES
    except ValueError:
        return False


class _NetPipe(Workload):
    name = "netpipe"
    engines = (Engine.MPI,)
    input_kind = InputKind.NOTHING
    workers_least = 2
    predicted_instead = "latency and throughput"
    work_parameters = ("largest_bytes", "repeats")
    parameters: Mapping[str, Parameter] = {
        "transport": Parameter(
            default=_TCP,
            allowed=f"{_TCP} or {_MPI}",
            meaning="what carries the messages: TCP alone, or Open MPI over TCP",
            is_allowed=lambda text: text in (_TCP, _MPI),
        ),
        "largest_bytes": Parameter(
            default="4 MiB",
            allowed="a size from 64 KiB to 256 MiB",
            meaning="largest message; small ones fit into buffers and exceed the link's rate",
            is_allowed=_is_size,
        ),
        "repeats": number_parameter(
            "round trips per trial; 0 lets NetPIPE choose, about half a second per size",
            default=7,
            least=0,
            most=100_000,
        ),
    }
    tools: Mapping[str, str] = {
        "NPtcp": "netpipe-tcp",
        "NPopenmpi": "netpipe-openmpi",
        "mpirun": "openmpi-bin",
    }

    def check(self, spec: JobSpec) -> None:
        if spec.workers < self.workers_least:
            raise UsageError(
                f"netpipe needs at least two workers, but there is only {spec.workers}",
                hint="run it with workers = [2] or more; add a worker to cluster.toml",
            )

    def serving(
        self, context: Context, staged: StagedInput, job: Job
    ) -> contextlib.AbstractContextManager[object]:
        """Start nothing, but refuse a port that is taken: the transmitter would ask who has it."""
        del staged
        if job.spec.parameters["transport"] == _TCP:
            live = context.live
            receivers = sorted({receiver for _, receiver in _pairs(live.layout)})
            ports = {name: [NETPIPE_PORT] for name in receivers}
            check_ports(live.remotes, ports, what="NetPIPE")
        return contextlib.nullcontext()

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        del staged
        layout = context.live.layout
        phases = []
        for pair in _pairs(layout):  # checked, then measured; never two pairs at once
            for check in (True, False):
                name = _name(job.spec, pair) + (_CHECK if check else "")
                options = _options(job.spec, check=check)
                if job.spec.parameters["transport"] == _TCP:
                    phases.append(_tcp_phase(layout, name, pair, options))
                else:
                    phases.append(_mpi_phase(layout, name, pair, options))
        return tuple(phases)

    def verify(self, context: Context, staged: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
        del staged
        largest = parse_size(job.spec.parameters["largest_bytes"])
        curves: dict[str, Curve] = {}
        unchecked = []
        facts = []
        for pair in _pairs(context.live.layout):
            name = _name(job.spec, pair)
            checked = outcomes[name + _CHECK]
            printed = start_of(checked.stdout)
            printed += start_of(checked.stderr)
            passed = check_integrity(printed, largest_bytes=largest, pair=name)
            if passed < len([size for size in sizes_up_to(largest - 1) if size >= 4]):
                unchecked.append("-".join(pair))
            text = start_of(outcomes[name].results[_OUTPUT])
            curves["-".join(pair)] = curve = parse_curve(text, largest_bytes=largest, pair=name)
            facts.append(f"{name}: {passed} sizes intact, {len(curve.points)} sizes measured\n")
        # Each fact was held against what NetPIPE must do, so the two digests are of the same text.
        digest = hashlib.sha256("".join(facts).encode()).hexdigest()
        verification = Verification(
            method=_METHOD,
            expected_sha256=digest,
            actual_sha256=digest,
            records=sum(len(curve.points) for curve in curves.values()),
        )
        return Proof(
            verification=verification,
            figures=_figures(curves),
            remarks=(*_early(curves, largest), *_unchecked(unchecked)),
        )


def _early(curves: Mapping[str, Curve], largest_bytes: int) -> tuple[str, ...]:
    """Say that NetPIPE ended before the largest message, because one took so long."""
    asked = sizes_up_to(largest_bytes)[-1]
    ends = {name: curve.points[-1].size_bytes for name, curve in curves.items()}
    early = [name for name, size_bytes in ends.items() if size_bytes < asked]
    if not early:
        return ()
    least = format_bytes(min(ends[name] for name in early), binary=True)
    sizes = f"{least} or more" if len(early) > 1 else least
    words = f"between {_some(early)} the largest had {sizes}"
    return (f"NetPIPE ended early, as a message took long: {words}, and figures are of these",)


def _unchecked(names: Sequence[str]) -> tuple[str, ...]:
    """Say that the integrity check ended before the largest message."""
    if not names:
        return ()
    return (f"NetPIPE's integrity check ended before the largest message between {_some(names)}",)


def _some(names: Sequence[str]) -> str:
    """Name the first of some pairs, and say how many more there are."""
    more = f" and {format_count(len(names) - 1, 'other pair')}" if len(names) > 1 else ""
    return f"{names[0]}{more}"


def _pairs(layout: Layout) -> list[tuple[str, str]]:
    return list(combinations([worker.name for worker in layout.spec.workers], 2))


def _name(spec: JobSpec, pair: tuple[str, str]) -> str:
    return f"{spec.parameters['transport']} {pair[0]}-{pair[1]}"


def _options(spec: JobSpec, *, check: bool) -> tuple[str, ...]:
    """Return what both ends must be given alike."""
    repeats = spec.parameters["repeats"]
    return (
        *("-p", "0"),
        *("-u", str(parse_size(spec.parameters["largest_bytes"]))),
        *(("-n", repeats) if int(repeats) else ()),
        *(("-i",) if check else ()),
    )


def _tcp_phase(layout: Layout, name: str, pair: tuple[str, str], options: Sequence[str]) -> Phase:
    transmitter, receiver = pair
    patience = f"{_LISTEN_SECONDS * layout.dilation:g}"
    program = ("NPtcp", "-h", receiver, *options, "-o", _OUTPUT)
    return Phase(
        name=name,
        command=("python3", "-I", "-S", "-c", _TRANSMIT, patience, *program),
        node=transmitter,
        servers=((receiver, ("NPtcp", *options)),),
        results=(_OUTPUT,),
        yarn=False,
    )


def _mpi_phase(layout: Layout, name: str, pair: tuple[str, str], options: Sequence[str]) -> Phase:
    command = mpirun_command(
        layout.spec.network.subnet,
        hosts=pair,
        ranks_per_host=1,
        program=["NPopenmpi", *options, "-o", _OUTPUT],
    )
    return Phase(
        name=name,
        command=tuple(command),
        node=pair[0],
        mpi_hosts=pair,
        results=(_OUTPUT,),
        yarn=False,
    )


def _figures(curves: Mapping[str, Curve]) -> dict[str, float]:
    """Return the figures of each pair, and their mean, least and most over all pairs."""
    measures = (
        "latency_{}microseconds",
        "throughput_{}megabits_per_second",
        "peak_throughput_{}megabits_per_second",
    )
    figures: dict[str, float] = {}
    for name in measures:
        values = {pair: getattr(curve, name.format("")) for pair, curve in curves.items()}
        figures[name.format("mean_")] = fmean(values.values())
        figures[name.format("min_")] = min(values.values())
        figures[name.format("max_")] = max(values.values())
        figures |= {f"{pair}_{name.format('')}": value for pair, value in values.items()}
    return figures


WORKLOAD = _NetPipe()
