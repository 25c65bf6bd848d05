"""The verbs of the HTTP farm."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from boardcluster.errors import CapacityError, UsageError
from boardcluster.fetch.cache import hold_lock, writing
from boardcluster.foreign import start_of
from boardcluster.records import Engine, PlannedFault
from boardcluster.remote.node_rpc import node_program
from boardcluster.services.http.config import BALANCER_TOOLS, FARM_PORTS, SERVER_TOOLS
from boardcluster.services.http.farm import farm_folder, put_pages, serving, target_of
from boardcluster.services.http.loadgen import have_loadgen
from boardcluster.units import format_bytes, parse_size
from boardcluster.workloads.base import (
    Context,
    InputKind,
    Job,
    JobSpec,
    Need,
    Outcomes,
    Parameter,
    Phase,
    Proof,
    StagedInput,
    Workload,
    number_parameter,
)
from boardcluster.workloads.under_load import aside_phase, fault_beside, read_faults
from boardcluster.workloads.webserve.pages import COPIES, Page, pages_of, write_pages
from boardcluster.workloads.webserve.proof import SHARES, FarmRun, load_name, prove

__all__ = ["WORKLOAD"]

_KIB = 1000
_LARGEST_LEAST, _LARGEST_MOST = _KIB, 1 << 36
_RESULT = "result.json"
_PACKAGE = "boardcluster.services.http"
_SERVED = r"(\d+) *\n *Reading"
"""Where nginx's stub_status says how many requests it has had."""
_TIMEOUT_SECONDS, _LOST_SECONDS = 30.0, 5.0
"""So long the client waits while nothing of an answer comes: without a fault a late one is latency,
and only one that never comes fails; in a phase with a fault the second is what a user has patience
for."""
_PAUSE_SECONDS = 0.01
"""So long a connection rests whose request has failed."""
_OPEN_CONNECTIONS = 1024
"""Of an open loop: enough for many seconds in which nothing is answered."""
_WARM_SHARE = 10
_DIRECT_SHARE = 4
"""One of so many requests warms up, or is made for comparison."""
_FAULT_SHARE = 50
"""Percent of what the farm serves at most, at which the fault is looked at in an open loop."""
_FAULT_PHASE = load_name(_FAULT_SHARE)


def _is_size(text: str) -> bool:
    try:
        return _LARGEST_LEAST <= parse_size(text) <= _LARGEST_MOST
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _FarmParameters:
    """The parameters as numbers."""

    requests: int
    connections: int
    seconds: int
    down_seconds: int
    rounds: int
    pages: tuple[Page, ...]


def _asked(spec: JobSpec) -> _FarmParameters:
    given = spec.parameters
    rounds = int(given["rounds"])
    return _FarmParameters(
        requests=int(given["requests"]),
        connections=int(given["connections"]),
        seconds=int(given["seconds"]),
        down_seconds=int(given["down_seconds"]),
        rounds=rounds,
        pages=pages_of(
            computed_percent=int(given["computed_percent"]),
            rounds=rounds,
            largest_bytes=parse_size(given["largest_page"]),
        ),
    )


class _WebServe(Workload):
    name = "webserve"
    engines = (Engine.HTTP,)
    input_kind = InputKind.NOTHING
    faults = (PlannedFault.NONE, PlannedFault.KILL, PlannedFault.LINK)
    work_parameters = ("requests", "computed_percent", "rounds", "largest_page")
    parameters: Mapping[str, Parameter] = {
        "requests": number_parameter(
            "requests that are timed, as fast as the farm answers them; their time is the result",
            default=50_000,
            least=100,
            most=100_000_000,
        ),
        "connections": number_parameter(
            "connections that ask at once in a closed loop", default=64, least=1, most=1024
        ),
        "seconds": number_parameter(
            "seconds of load at each fixed rate", default=10, least=1, most=3600
        ),
        "computed_percent": number_parameter(
            "percent of the requests that are for a page that computes",
            default=5,
            least=0,
            most=100,
        ),
        "rounds": number_parameter(
            "digests, one after the other, that a computed page takes",
            default=200,
            least=1,
            most=1_000_000,
        ),
        "largest_page": Parameter(
            default="1 MB",
            allowed="1 kB to 64 GiB, with a unit",
            meaning="size of the largest static page",
            is_allowed=_is_size,
        ),
        "down_seconds": number_parameter(
            "seconds that a fault lasts", default=2, least=1, most=600
        ),
    }
    tools: Mapping[str, str] = SERVER_TOOLS
    master_tools: Mapping[str, str] = {**BALANCER_TOOLS, "gcc": "gcc libc6-dev"}

    def check(self, spec: JobSpec) -> None:
        largest = parse_size(spec.parameters["largest_page"])
        # At the null server two programs of one node hold all of them.
        held = 2 * COPIES * largest
        if held > spec.least_memory_bytes // 4:
            raise CapacityError(
                f"{COPIES} pages of {format_bytes(largest)} in two programs at once, "
                f"{format_bytes(held)}, are more than a quarter of the smallest node's "
                f"{format_bytes(spec.least_memory_bytes)}, beside the cluster's daemons",
                hint="set a smaller webserve.largest_page, or give the nodes more memory",
            )
        if not _asked(spec).pages:
            raise UsageError(
                "there is no page to ask for",
                hint="set webserve.computed_percent below 100, or a larger webserve.largest_page",
            )

    def need(self, spec: JobSpec) -> Need:
        total = sum(page.size_bytes for page in _asked(spec).pages)
        return Need(input_bytes=total * (spec.workers + 1))

    def describe(self, spec: JobSpec) -> str:
        pages = _asked(spec).pages
        total = sum(page.size_bytes * page.weight for page in pages)
        mean = total / sum(page.weight for page in pages)
        return f"{len(pages)} pages, {format_bytes(round(mean))} per request in the mean"

    def prepare(self, context: Context, spec: JobSpec) -> StagedInput:
        asked, live = _asked(spec), context.live
        plan = "".join(f"{page.weight} {page.path} {page.rounds}\n" for page in asked.pages)
        key = hashlib.sha256(plan.encode()).hexdigest()[:16]
        place = context.cache / "webserve" / key
        with writing(place.parent):
            place.parent.mkdir(parents=True, exist_ok=True)
        with hold_lock(place.with_name(f".{key}.lock"), purpose="writing the pages"):
            if not (place / "digest").is_file():
                _write(asked.pages, place)
        put_pages(live, place, digest=(place / "digest").read_text().strip())
        _client(context)
        return StagedInput(expected=place / "digest")

    def serving(
        self, context: Context, staged: StagedInput, job: Job
    ) -> contextlib.AbstractContextManager[None]:
        del staged
        return serving(context.live, mark=context.mark, rounds=_asked(job.spec).rounds)

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        del staged
        return tuple(_Phases(context, job.spec).all())

    def verify(self, context: Context, staged: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
        asked, live = _asked(job.spec), context.live
        folder = farm_folder(live.layout, live.spec.workers[-1])
        records = {name: _fault_record(folder, name) for name in ("saturation", _FAULT_PHASE)}
        faults, ahead = read_faults(live, job.spec, records)
        return prove(
            FarmRun(
                pages=asked.pages,
                digest=staged.answer().read_text().strip(),
                workers=tuple(worker.name for worker in live.spec.workers),
                fault=job.spec.fault,
                fault_texts=faults,
                fault_ahead_seconds=ahead,
                results={
                    name: start_of(outcome.results[_RESULT])
                    for name, outcome in outcomes.items()
                    if _RESULT in outcome.results
                },
                requests=_closed_requests(asked.requests),
                seeds={name: _seed(name) for name in outcomes},
                before=start_of(outcomes["counts before"].stdout),
                after=start_of(outcomes["counts after"].stdout),
            )
        )


def _write(pages: tuple[Page, ...], place: Path) -> None:
    """Write the pages, so that a folder of that name is always whole."""
    with writing(place), tempfile.TemporaryDirectory(dir=place.parent) as work:
        drafts = Path(work) / "pages"
        drafts.mkdir()
        (drafts / "digest").write_text(write_pages(pages, drafts))
        shutil.rmtree(place, ignore_errors=True)
        drafts.rename(place)


def _client(context: Context) -> str:
    live = context.live
    return have_loadgen(
        live.master,
        cache=context.cache,
        folder=farm_folder(live.layout, live.spec.master),
        shared=live.layout.shares_files,
        progress=context.progress,
    )


def _fault_record(folder: str, phase: str) -> str:
    """Return the file of a worker in which the fault of a phase writes down its times."""
    return f"{folder}/fault-{phase.replace(' ', '-')}.json"


def _closed_requests(timed: int) -> dict[str, int]:
    """Return how many requests each phase that is a closed loop makes."""
    return {
        "warm-up": max(100, timed // _WARM_SHARE),
        "saturation": timed,
        **dict.fromkeys(("direct", "null server"), max(100, timed // _DIRECT_SHARE)),
    }


def _seed(name: str) -> int:
    """Return where the sequence of a phase's requests starts: no two phases ask for the same."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6])


class _Phases:
    """Makes the phases of one job."""

    def __init__(self, context: Context, spec: JobSpec) -> None:
        self._live = context.live
        self._client = _client(context)
        self._spec = spec
        self._asked = _asked(spec)
        layout = self._live.layout
        self._folder = farm_folder(layout, self._live.spec.master)
        self._balancer = (target_of(layout, self._live.spec.master, "http-balancer"),)

    def all(self) -> list[Phase]:
        """Return them in order; only the requests of "saturation" are measured."""
        phases = [
            self._closed("warm-up"),
            self._counts("counts before"),
            self._closed("saturation", aside=False, fault=True),
        ]
        shares: tuple[int, ...] = SHARES
        if self._spec.fault is PlannedFault.NONE:
            servers = tuple(
                target_of(self._live.layout, worker, "http-server")
                for worker in self._live.spec.workers
            )
            phases.append(self._closed("direct", targets=servers))
        else:
            shares = (_FAULT_SHARE,)
        phases += [self._open(share) for share in shares]
        return [*phases, self._counts("counts after"), self._null()]

    def _run(
        self, name: str, targets: tuple[str, ...], *options: str, fault: bool = False
    ) -> tuple[str, ...]:
        dilation = self._live.layout.dilation
        is_away = fault and self._spec.fault is not PlannedFault.NONE
        patience_seconds = _LOST_SECONDS if is_away else _TIMEOUT_SECONDS
        return (
            *(self._client, "run", f"plan={self._folder}/plan", f"out={_RESULT}"),
            *(f"seed={_seed(name)}", f"timeout={patience_seconds * dilation:g}"),
            f"pause={_PAUSE_SECONDS * dilation:g}",
            *options,
            *(f"target={target}" for target in targets),
        )

    def _closed(
        self,
        name: str,
        *,
        targets: tuple[str, ...] = (),
        aside: bool = True,
        fault: bool = False,
    ) -> Phase:
        requests = _closed_requests(self._asked.requests)[name]
        options = (f"connections={self._asked.connections}", f"requests={requests}")
        # A quarter of the worker's share is served before the fault.
        after = requests // len(self._live.spec.workers) // 4
        return Phase(
            name=name,
            command=self._run(name, targets or self._balancer, *options, fault=fault),
            servers=self._fault(name, after=after, delay_seconds=0) if fault else (),
            servers_as_root=self._spec.fault is PlannedFault.LINK,
            results=(_RESULT,),
            yarn=False,
            aside=aside,
            outside=True,
        )

    def _open(self, share: int) -> Phase:
        name, dilation = load_name(share), self._live.layout.dilation
        seconds = self._asked.seconds * dilation
        options = (
            *(f"connections={_OPEN_CONNECTIONS}", f"share={share / 100:g}"),
            *(f"of=../saturation/{_RESULT}", f"seconds={seconds:g}"),
        )
        return Phase(
            name=name,
            command=self._run(name, self._balancer, *options, fault=True),
            servers=self._fault(name, after=1, delay_seconds=seconds / 4),
            servers_as_root=self._spec.fault is PlannedFault.LINK,
            results=(_RESULT,),
            yarn=False,
            aside=True,
            outside=True,
        )

    def _null(self) -> Phase:
        """The client against a server that does nothing: what it can make at most."""
        plan, port = f"plan={self._folder}/plan", FARM_PORTS["http-null"]
        options = (
            f"connections={self._asked.connections}",
            f"requests={_closed_requests(self._asked.requests)['null server']}",
        )
        return Phase(
            name="null server",
            command=self._run("null server", (f"127.0.0.1:{port}",), *options, "wait=10"),
            servers=((self._live.spec.master.name, (self._client, "serve", plan, f"port={port}")),),
            results=(_RESULT,),
            yarn=False,
            aside=True,
            outside=True,
        )

    def _counts(self, name: str) -> Phase:
        urls = [
            f"{worker.name}=http://{target_of(self._live.layout, worker, 'http-server')}/status"
            for worker in self._live.spec.workers
        ]
        program = node_program("counting", package=_PACKAGE)
        return aside_phase(name, program, self._folder, *urls)

    def _fault(
        self, phase: str, *, after: int, delay_seconds: float
    ) -> tuple[tuple[str, tuple[str, ...]], ...]:
        layout, worker = self._live.layout, self._live.spec.workers[-1]
        folder = farm_folder(layout, worker)
        asked = {
            "after": after,
            "delay_seconds": delay_seconds,
            "down_seconds": self._asked.down_seconds * layout.dilation,
            "steady_seconds": 0,
            "status": f"http://{target_of(layout, worker, 'http-server')}/status",
            "pattern": _SERVED,
            "pid_file": f"{folder}/nginx.pid",
            "command": f"{folder}/command.json",
            "log": layout.folder(worker, "logs", "http-server.log"),
            "record": _fault_record(folder, phase),
        }
        return fault_beside(self._live, self._spec, asked)


WORKLOAD = _WebServe()
