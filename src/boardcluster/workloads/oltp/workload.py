"""The verbs of the replicated database."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from boardcluster.errors import CapacityError, UsageError
from boardcluster.foreign import start_of
from boardcluster.records import Engine, NodeSpec, PlannedFault
from boardcluster.remote.node_rpc import node_program
from boardcluster.services.galera.config import GALERA_PORTS, SERVER_PROGRAMS
from boardcluster.services.galera.database import (
    CLIENT_FILE,
    DATABASE,
    MASTER_PROGRAMS,
    SYSBENCH_FILE,
    check_url,
    database_folder,
    replicated,
)
from boardcluster.spec.cluster import address_of
from boardcluster.units import format_bytes
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
from boardcluster.workloads.oltp.proof import (
    LEDGERED,
    PLAIN,
    SATURATION,
    SHARES,
    DatabaseRun,
    load_name,
    prove,
)
from boardcluster.workloads.under_load import PYTHON, aside_phase, fault_beside, read_faults

__all__ = ["WORKLOAD"]

_MODES = ("read_only", "read_write", "write_only")
_RESULT = "result.json"
_LEDGER = "ledger.lua"
_PACKAGE = "boardcluster.services.galera"
_FARM = "boardcluster.services.http"
_ASKED = r"Questions (\d+)"
"""Where ``checking.py`` says how many statements a server has had."""
_STATEMENTS_OF_A_TABLE = {"read_only": 5, "write_only": 4, "read_write": 9}
"""That sysbench prepares for each table in each thread (oltp_common.lua), with two for all."""

_STATEMENTS_MOST = 16_382
"""MariaDB's max_prepared_stmt_count."""

_ROW_BYTES = 280
_TABLE_BYTES = 8 << 20
"""A row of sysbench with its index, and the room that MariaDB keeps free in each table: two tables
of 25,000 rows took 30 MB."""
_SERVER_BYTES = 400 << 20
"""What an empty server takes, which were 254 MB: redo log, the cache of writes that others missed,
temporary tables; and undo, which grows."""
_LEDGER_BYTES = 60
_LEDGERED_SHARE = 5
"""All phases together write about so many times the timed transactions into the ledger."""
_WARM_SHARE = 10
_ASIDE_SHARE = 4
"""One of so many transactions warms up, or is made for comparison."""
_LOADED_STATEMENTS = 20
"""So many statements tell the load from the balancer's checks, 2.5 in a second, until it begins."""
_RETURN_SECONDS = 90.0
"""So long a server that was away may take to be in step: as long as it may to start."""
_STEADY_SECONDS = 2.0
"""So long a server that was away must say that it is in step. One whose link is back says so at
once, and then finds that the group has dropped it."""
_PAUSE_MILLISECONDS = 20
"""So long a client waits between two tries to connect, and after a server that refuses at once."""
_FAULT_SHARE = 50
"""Percent of what the database does at most, at which the fault is looked at in an open loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OltpParameters:
    """The parameters as numbers."""

    mode: str
    transactions: int
    threads: int
    tables: int
    rows: int
    seconds: int
    down_seconds: int

    def timed(self, name: str) -> int:
        """Return how many transactions a phase makes that is a closed loop."""
        share = {SATURATION: 1, "warm-up": _WARM_SHARE}.get(name, _ASIDE_SHARE)
        return max(100, self.transactions // share)


def _asked(spec: JobSpec) -> _OltpParameters:
    given = spec.parameters
    return _OltpParameters(
        mode=given["mode"],
        **{
            name: int(given[name])
            for name in ("transactions", "threads", "tables", "rows", "seconds", "down_seconds")
        },
    )


class _Oltp(Workload):
    name = "oltp"
    engines = (Engine.GALERA,)
    input_kind = InputKind.NOTHING
    workers_least = 3
    faults = (PlannedFault.NONE, PlannedFault.KILL, PlannedFault.LINK)
    work_parameters = ("mode", "transactions", "tables", "rows")
    parameters: Mapping[str, Parameter] = {
        "mode": Parameter(
            default="read_write",
            allowed="read_only, read_write or write_only",
            meaning="which of sysbench's transactions are made",
            is_allowed=_MODES.__contains__,
        ),
        "transactions": number_parameter(
            "transactions that are timed, as fast as they are committed; their time is the result",
            default=20_000,
            least=100,
            most=100_000_000,
        ),
        "threads": number_parameter(
            "clients that ask at once, each with its own connection", default=16, least=1, most=1000
        ),
        "tables": number_parameter("tables", default=4, least=1, most=1000),
        "rows": number_parameter(
            "rows of each table", default=25_000, least=100, most=2_000_000_000
        ),
        "seconds": number_parameter(
            "seconds of load at each fixed rate", default=10, least=1, most=3600
        ),
        "down_seconds": number_parameter(
            "seconds that a fault lasts", default=3, least=1, most=600
        ),
    }
    tools: Mapping[str, str] = {
        program: package
        for program, package in SERVER_PROGRAMS.items()
        if "/bin/" in program or "/sbin/" in program
    }
    master_tools: Mapping[str, str] = MASTER_PROGRAMS

    def check(self, spec: JobSpec) -> None:
        if spec.workers < self.workers_least:
            raise CapacityError(
                f"the database needs at least {self.workers_least} workers, not {spec.workers}: "
                "only then do two agree on what is right while the third is away",
                hint="declare more workers, or set workers = 3 in the campaign",
            )
        if spec.workers % 2 == 0:
            half = spec.workers // 2
            raise UsageError(
                f"the database needs an odd number of workers, not {spec.workers}: if the network "
                f"parts them into {half} and {half}, neither side has the majority, and both stop "
                "(split brain)",
                hint=f"set workers = {spec.workers - 1} or {spec.workers + 1} in the campaign",
            )

        asked = _asked(spec)
        serving = spec.workers - (spec.fault is not PlannedFault.NONE)
        each = _STATEMENTS_OF_A_TABLE[asked.mode] * asked.tables + 2
        statements = -(-asked.threads // serving) * each
        if statements > _STATEMENTS_MOST:
            raise UsageError(
                f"{asked.threads} threads on {serving} servers prepare {statements:,} statements "
                f"for {asked.tables} tables on each; MariaDB holds {_STATEMENTS_MOST:,}",
                hint="set fewer oltp.tables or oltp.threads",
            )

    def need(self, spec: JobSpec) -> Need:
        asked = _asked(spec)
        data = asked.tables * (asked.rows * _ROW_BYTES + _TABLE_BYTES)
        writes = 0 if asked.mode == "read_only" else _LEDGERED_SHARE * asked.transactions
        each = data + _SERVER_BYTES + writes * _LEDGER_BYTES
        return Need(run_bytes=each * spec.workers)

    def describe(self, spec: JobSpec) -> str:
        asked = _asked(spec)
        size = format_bytes(asked.tables * asked.rows * _ROW_BYTES)
        return f"{asked.tables} tables of {asked.rows} rows, about {size} on each worker"

    def serving(
        self, context: Context, staged: StagedInput, job: Job
    ) -> contextlib.AbstractContextManager[None]:
        del staged, job
        return replicated(context.live, mark=context.mark)

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        del staged
        return tuple(_OltpPhases(context, job.spec).all())

    def verify(self, context: Context, staged: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
        del staged
        asked, live = _asked(job.spec), context.live
        worker, phases = live.spec.workers[-1], (SATURATION, load_name(_FAULT_SHARE))
        records = {name: _fault_record(context, worker, name) for name in phases}
        faults, ahead = read_faults(live, job.spec, records)
        return prove(
            DatabaseRun(
                writes=asked.mode != "read_only",
                tables=asked.tables,
                rows=asked.rows,
                workers=tuple(node.name for node in live.spec.workers),
                master_cores=live.spec.master.cores,
                fault=job.spec.fault,
                fault_texts=faults,
                fault_ahead_seconds=ahead,
                results={
                    name: start_of(outcome.results[_RESULT])
                    for name, outcome in outcomes.items()
                    if _RESULT in outcome.results
                },
                transactions={
                    name: asked.timed(name) for name in outcomes if not name.startswith("load ")
                },
                audits=tuple(
                    start_of(outcomes[f"audit {moment}"].stdout) for moment in ("before", "after")
                ),
                counts=tuple(
                    start_of(outcomes[f"counts {moment}"].stdout) for moment in ("before", "after")
                ),
            )
        )


def _fault_record(context: Context, node: NodeSpec, phase: str) -> str:
    """Return the file of a worker in which the fault of a phase writes down its times."""
    tag = context.mark["BOARDCLUSTER_ATTEMPT"]
    name = f"{tag}-fault-{phase.replace(' ', '-')}.json"
    return context.live.layout.folder(node, "logs", name)


def _seed(name: str) -> int:
    """Return where a phase's random numbers start: no two phases make the same transactions."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:3])


class _OltpPhases:
    """Makes the phases of one job."""

    def __init__(self, context: Context, spec: JobSpec) -> None:
        self._context = context
        self._live = context.live
        self._spec = spec
        self._asked = _asked(spec)
        self._as_root = spec.fault is PlannedFault.LINK
        self._folder = database_folder(self._live.layout, self._live.spec.master)
        self._servers = {
            worker.name: str(address_of(self._live.spec, worker.name))
            for worker in self._live.spec.workers
        }

    def all(self) -> list[Phase]:
        """Return them in order; only the transactions of "saturation" are measured."""
        whole = self._spec.fault is PlannedFault.NONE
        phases = [
            self._prepare(),
            self._counts("counts before"),
            self._audit("audit before"),
            self._closed("warm-up"),
            self._closed(SATURATION, aside=False, fault=True),
        ]
        if whole:
            phases.append(self._closed("direct", direct=True))
            if self._asked.mode != "read_only":
                phases.append(self._closed(PLAIN))
        shares = SHARES if whole else (_FAULT_SHARE,)
        phases += [self._open(share) for share in shares]
        return [*phases, self._audit("audit after"), self._counts("counts after")]

    def _run(
        self, name: str, *, direct: bool = False, files: bool = True, **asked: object
    ) -> Phase:
        master = str(address_of(self._live.spec, self._live.spec.master.name))
        port = GALERA_PORTS["galera-server" if direct else "galera-balancer"]
        request: dict[str, Any] = {
            "mode": self._asked.mode,
            "phase": LEDGERED.index(name) if name in LEDGERED else -1,
            "ledger": name in LEDGERED and self._asked.mode != "read_only",
            "config": f"{self._folder}/{SYSBENCH_FILE}",
            "database": DATABASE,
            "hosts": list(self._servers.values()) if direct else [master],
            "port": port,
            "tables": self._asked.tables,
            "rows": self._asked.rows,
            "threads": self._asked.threads,
            "seed": _seed(name),
            "pause_milliseconds": round(_PAUSE_MILLISECONDS * self._live.layout.dilation),
            **asked,
        }
        program = node_program("driving", package=_PACKAGE)
        ledger = resources.files(_PACKAGE).joinpath(_LEDGER).read_text(encoding="utf-8")
        return Phase(
            name=name,
            command=(*PYTHON, program, json.dumps(request)),
            files={_LEDGER: ledger},
            results=(_RESULT,) if files else (),
            yarn=False,
            aside=True,
            outside=True,
        )

    def _prepare(self) -> Phase:
        threads = min(self._asked.tables, self._asked.threads)
        return self._run("prepare", files=False, do="prepare", threads=threads)

    def _closed(
        self, name: str, *, direct: bool = False, aside: bool = True, fault: bool = False
    ) -> Phase:
        transactions = self._asked.timed(name)
        returns = self._returns() if fault else {}
        phase = self._run(name, direct=direct, transactions=transactions, returns=returns)
        # A small part of the worker's share, by its statements, comes before the fault.
        after = transactions // len(self._servers) // 2
        servers = self._fault(name, after=after, delay_seconds=0) if fault else ()
        return replace(phase, aside=aside, servers=servers, servers_as_root=self._as_root)

    def _open(self, share: int) -> Phase:
        name, seconds = load_name(share), self._asked.seconds * self._live.layout.dilation
        of = f"../{SATURATION}/{_RESULT}"
        phase = self._run(name, seconds=round(seconds), share=share, of=of, returns=self._returns())
        servers = self._fault(name, after=_LOADED_STATEMENTS, delay_seconds=seconds / 4)
        return replace(phase, servers=servers, servers_as_root=self._as_root)

    def _returns(self) -> dict[str, Any]:
        """Return what the load waits for; empty without a fault."""
        if self._spec.fault is PlannedFault.NONE:
            return {}
        dilation = self._live.layout.dilation
        return {
            "folder": self._folder,
            "server": self._live.spec.workers[-1].name,
            # Longer than the fault itself looks, which must end before the load does.
            "steady_seconds": 3 * _STEADY_SECONDS * dilation,
            "patience_seconds": (self._asked.down_seconds + _RETURN_SECONDS) * dilation,
        }

    def _audit(self, name: str) -> Phase:
        program = node_program("auditing", package=_PACKAGE)
        file, port = f"{self._folder}/{CLIENT_FILE}", str(GALERA_PORTS["galera-server"])
        named = [f"{worker}={address}" for worker, address in self._servers.items()]
        words = (file, DATABASE, str(self._asked.tables), port, *named)
        return aside_phase(name, program, *words)

    def _counts(self, name: str) -> Phase:
        return aside_phase(name, node_program("counting", package=_FARM), self._folder)

    def _fault(
        self, phase: str, *, after: int, delay_seconds: float
    ) -> tuple[tuple[str, tuple[str, ...]], ...]:
        layout, worker = self._live.layout, self._live.spec.workers[-1]
        folder = database_folder(layout, worker)
        asked = {
            "after": after,
            "delay_seconds": delay_seconds,
            "down_seconds": self._asked.down_seconds * layout.dilation,
            "steady_seconds": _STEADY_SECONDS * layout.dilation,
            "status": check_url(layout, worker),
            "pattern": _ASKED,
            "pid_file": f"{folder}/data/mariadbd.pid",
            "command": f"{folder}/command.json",
            "log": layout.folder(worker, "logs", "galera-server.log"),
            "record": _fault_record(self._context, worker, phase),
        }
        return fault_beside(self._live, self._spec, asked)


WORKLOAD = _Oltp()
