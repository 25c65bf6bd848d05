"""Whether what the database holds is what its client was told, and what it came to. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from boardcluster.errors import MeasuringLimitError, VerificationError
from boardcluster.records import PlannedFault, Verification
from boardcluster.services.galera.result import (
    Audit,
    Numbers,
    OltpResult,
    read_audits,
    read_result,
)
from boardcluster.services.http.result import (
    FarmCounts,
    FaultTimes,
    behind_words,
    check_faults,
    check_gone,
    percentile_microseconds,
    read_counts,
    read_fault,
)
from boardcluster.units import format_count
from boardcluster.workloads.base import Proof

__all__ = ["LEDGERED", "PLAIN", "SATURATION", "SHARES", "DatabaseRun", "load_name", "prove"]

SHARES = (25, 50, 75, 90)
"""Percent of what the database does at most, at which latency is measured."""

SATURATION = "saturation"
"""The phase that is timed."""

PLAIN = "plain"
"""The phase without the ledger, for comparison."""


def load_name(share: int) -> str:
    """Return the name of the phase at a percent of what the database does at most."""
    return f"load {share} percent"


LEDGERED = ("warm-up", SATURATION, "direct", *map(load_name, SHARES))
"""Phases whose transactions are in the ledger, which knows them by their place here."""

_BUSY_SHARE = 0.8
"""A client that takes more of the master's cores than this may be what holds the rate back."""

_ROUNDED_SHARE = 0.05
"""A rate that is off by more than this share of it is told."""

_SKEW_SECONDS = 2.0
"""So much before or after its phase a fault may seem to come: clocks are compared after the run."""

_UNDONE = frozenset({1213, 1205, 1020})
"""MariaDB's numbers for a transaction that another one undid, as it may."""

_SYNCED = "Primary Synced"
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_HINT = "see the attempt's folder"
_LONGER = "see the server's log on that node; or set a larger oltp.transactions and oltp.seconds"
_LOGS = "see the servers' logs under the cluster's folder, nodes/*/logs/galera-*.log"
_METHOD = (
    "every transaction that the client was told as committed, and none that it was told as undone, "
    "is in the ledger of every node; rows, sums and checksums of every table are equal on every "
    "node"
)
_READ_METHOD = (
    "rows, sums and checksums of every table are unchanged and equal on every node; {reads}what "
    "the client read was not compared"
)
_READS_COUNTED = "its reads are counted by the servers, too; "


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseRun:
    """What a job left behind."""

    writes: bool
    """Whether its transactions write."""
    tables: int
    """Number of tables."""
    rows: int
    """Rows of each."""
    workers: Sequence[str]
    """Names of the workers."""
    master_cores: int
    """Cores of the node with the client."""
    fault: PlannedFault
    """What happened to the last worker."""
    fault_texts: Mapping[str, str]
    """By phase, what the fault wrote down; empty texts where it never ended."""
    fault_ahead_seconds: float
    """How far the clock that it wrote down is ahead of the client's."""
    results: Mapping[str, str]
    """By phase, what the client wrote."""
    transactions: Mapping[str, int]
    """By phase that is a closed loop, how many transactions it was to make."""
    audits: Sequence[str]
    """What the servers held before and after."""
    counts: Sequence[str]
    """What the balancer had counted before and after."""


def prove(run: DatabaseRun) -> Proof:
    """Hold everything against everything else.

    Raises:
        VerificationError: a committed transaction is missing, nodes differ, or a transaction failed
            without a fault; says which and where.
        MeasuringLimitError: the client held the database back.
    """
    check_faults(run.fault_texts)  # before all that a fault that failed has led to
    results = {name: read_result(text, phase=name) for name, text in run.results.items()}
    before, after = map(read_audits, run.audits)
    for name, result in results.items():
        _check_phase(run, name, result)
    for moment, audits in (("before", before), ("after", after)):
        _check_members(run, moment, audits)
        _check_tables(run, moment, audits)
    if not run.writes:
        _check_untouched(run, before, after)
    expected, actual = _check_ledger(run, results, after)
    if run.fault is PlannedFault.NONE:
        _check_counts(run, results, before, after)
    first, last = map(read_counts, run.counts)
    _check_balancer(run, first, last)
    _check_client(run, results)
    figures = _figures(results)
    if run.fault is not PlannedFault.NONE:
        figures |= _fault_figures(run, results)
    held = after[run.workers[0]]
    return Proof(
        verification=Verification(
            method=_method(run),
            expected_sha256=_digest(run, expected, held),
            actual_sha256=_digest(run, actual, after[run.workers[-1]]),
            records=sum(
                each.transactions
                for name, each in results.items()
                if name in LEDGERED or not run.writes
            ),
        ),
        figures=figures,
        remarks=(
            *behind_words(
                {
                    name: (results[name].transactions, results[name].rate * results[name].seconds)
                    for name in map(load_name, SHARES)
                    if name in results and name not in run.fault_texts
                },
                random_arrivals=True,
            ),
            *_rounded(results),
            *_lent(run, first, last),
        ),
    )


def _rounded(results: Mapping[str, OltpResult]) -> list[str]:
    """Say which loads were of another share than they are called, for their rate is a whole number.

    Rates are small where the dilation is large: it is a number per second of this machine.
    """
    loads = {share: results[load_name(share)] for share in SHARES if load_name(share) in results}
    return [
        f"{load_name(share)}: sysbench takes whole transactions per second, so it was asked for "
        f"{share * result.rate / result.exact_rate:.0f} percent"
        for share, result in loads.items()
        if abs(result.rate - result.exact_rate) > _ROUNDED_SHARE * result.exact_rate
    ]


def _lent(run: DatabaseRun, before: FarmCounts, after: FarmCounts) -> list[str]:
    """Say which servers that nobody took away the balancer was without for a while."""
    times = {name: after.noticed[name] - before.noticed[name] for name in run.workers[:-1]}
    return [
        f"the balancer was also without the database on {name}, {format_count(count, 'time')}: "
        f"it may have copied all of its data to {run.workers[-1]}, and is closed to writes then"
        for name, count in times.items()
        if count
    ]


def _method(run: DatabaseRun) -> str:
    """Return how it was proved: without writes there is no ledger, with a fault no count holds."""
    if run.writes:
        return _METHOD
    return _READ_METHOD.format(reads=_READS_COUNTED if run.fault is PlannedFault.NONE else "")


def _digest(run: DatabaseRun, ledger: Mapping[tuple[int, int], Numbers], audit: Audit) -> str:
    text = f"{run.writes} {sorted(ledger.items())} {audit.tables}"
    return hashlib.sha256(text.encode()).hexdigest()


def _check_phase(run: DatabaseRun, name: str, result: OltpResult) -> None:
    asked = run.transactions.get(name, result.transactions)
    faulted = name in run.fault_texts  # more are made then, until the server is back
    if result.transactions < asked or (result.transactions > asked and not faulted):
        raise VerificationError(
            f"{name}: {result.transactions} transactions were committed instead of {asked}",
            hint=_HINT,
        )
    if faulted:
        return
    if strange := _strange(result):
        kinds = ", ".join(f"error {code}: {count} times" for code, count in strange.items())
        raise VerificationError(
            f"{name}: transactions failed without a fault ({kinds})",
            hint=_LOGS,
        )


def _strange(result: OltpResult) -> dict[int, int]:
    """Return what ended transactions, besides other transactions: how often, by its number."""
    return {code: count for code, count in result.errors.items() if code not in _UNDONE}


def _check_members(run: DatabaseRun, moment: str, audits: Mapping[str, Audit]) -> None:
    groups = {audit.group for audit in audits.values()}
    for name in run.workers:
        audit = audits[name]
        if audit.state != _SYNCED or audit.members != len(run.workers) or len(groups) != 1:
            raise VerificationError(
                f"{moment} the run the database on {name} was {audit.state} in a group of "
                f"{audit.members}, instead of {_SYNCED} in one of {len(run.workers)}",
                hint=_LOGS,
            )


def _check_tables(run: DatabaseRun, moment: str, audits: Mapping[str, Audit]) -> None:
    first = audits[run.workers[0]]
    numbers = run.rows * (run.rows + 1) // 2
    for name in run.workers:
        tables = audits[name].tables
        for number, (sums, other) in enumerate(zip(tables, first.tables, strict=True), start=1):
            if sums[:2] != (str(run.rows), str(numbers)):
                raise VerificationError(
                    f"{moment} the run table {number} on {name} has {sums[0]} rows with the sum "
                    f"{sums[1]}, instead of {run.rows} with {numbers}",
                    hint=_HINT,
                )
            if sums != other:
                raise VerificationError(
                    f"{moment} the run table {number} differs between {run.workers[0]} and {name}: "
                    f"sums {', '.join(other)} and {', '.join(sums)}",
                    hint=_LOGS,
                )
        if audits[name].ledger != first.ledger:
            raise VerificationError(
                f"{moment} the run the ledger differs between {run.workers[0]} and {name}",
                hint=_LOGS,
            )


def _check_untouched(
    run: DatabaseRun, before: Mapping[str, Audit], after: Mapping[str, Audit]
) -> None:
    for name in run.workers:
        if before[name].tables != after[name].tables:
            raise VerificationError(
                f"the tables on {name} changed, though the client only read", hint=_HINT
            )


def _without(ranges: Numbers, numbers: Iterable[int]) -> Numbers:
    """Return ranges, in order, without some numbers."""
    left = list(ranges)
    for number in numbers:
        for place, (first, last) in enumerate(left):
            if first <= number <= last:
                parts = [(first, number - 1), (number + 1, last)]
                left[place : place + 1] = [part for part in parts if part[0] <= part[1]]
                break
    return tuple(left)


def _first_beside(these: Numbers, those: Numbers) -> int | None:
    """Return the first number that is in these ranges and not in those."""
    for first, last in these:
        at = first
        for begin, end in those:
            if begin <= at <= end:
                at = end + 1
        if at <= last:
            return at
    return None


def _check_ledger(
    run: DatabaseRun, results: Mapping[str, OltpResult], after: Mapping[str, Audit]
) -> tuple[dict[tuple[int, int], Numbers], dict[tuple[int, int], Numbers]]:
    """Compare what the client was told with what the last worker holds, which all others do, too.

    Returns:
        The committed transactions by phase and thread, as the client and as the server have them.
    """
    name = run.workers[-1]
    held = after[name].ledger
    expected: dict[tuple[int, int], Numbers] = {}
    actual: dict[tuple[int, int], Numbers] = {}
    for phase, result in results.items() if run.writes else ():
        if phase not in LEDGERED:
            continue
        for thread, account in result.accounts.items():
            key = (LEDGERED.index(phase), thread)
            told, rows = account.committed, _without(held.get(key, ()), account.unknown)
            if (lost := _first_beside(told, rows)) is not None:
                raise VerificationError(
                    f"{phase}: transaction {lost} of client {thread} was told as committed, and is "
                    f"not in the ledger on {name}",
                    hint=_LOGS,
                )
            if (extra := _first_beside(rows, told)) is not None:
                raise VerificationError(
                    f"{phase}: transaction {extra} of client {thread} was told as undone, and is "
                    f"in the ledger on {name}",
                    hint=_LOGS,
                )
            expected[key], actual[key] = told, rows
    if strange := sorted(set(held) - set(expected)):
        phase_number, thread = strange[0]
        raise VerificationError(
            f"the ledger on {name} has transactions of client {thread} in phase {phase_number}, "
            "which made none",
            hint=_HINT,
        )
    return expected, actual


def _check_counts(
    run: DatabaseRun,
    results: Mapping[str, OltpResult],
    before: Mapping[str, Audit],
    after: Mapping[str, Audit],
) -> None:
    """Hold what the servers counted against what the client did.

    A transaction that was undone may have been ordered, and one statement of it failed.
    """
    repeated = sum(each.repeated for each in results.values())
    reads = sum(each.reads for each in results.values())
    own = len(run.workers) * (run.tables + 1)  # of the first audit itself
    selects = sum(after[name].selects - before[name].selects for name in run.workers) - own
    if not reads <= selects <= reads + repeated:
        raise VerificationError(
            f"the client read {reads} times, and the databases counted {selects} statements that "
            f"read; {repeated} transactions were repeated",
            hint=_HINT,
        )
    committed = sum(each.transactions for each in results.values()) if run.writes else 0
    for name in run.workers:
        ordered = after[name].ordered - before[name].ordered
        if not committed <= ordered <= committed + repeated:
            raise VerificationError(
                f"the client was told of {committed} committed transactions, and the database on "
                f"{name} ordered {ordered}; {repeated} transactions were repeated",
                hint=_HINT,
            )


def _check_balancer(run: DatabaseRun, before: FarmCounts, after: FarmCounts) -> None:
    """Refuse a measurement without a server that nobody took away, or with a fault unnoticed.

    With a fault a server may be away that lends its data to the one that comes back.
    """
    lost = run.fault is not PlannedFault.NONE
    for name in run.workers:
        times = after.noticed[name] - before.noticed[name]
        states = (before.status[name], after.status[name])
        if lost and name == run.workers[-1]:
            if not times:
                raise VerificationError(
                    f"the balancer never noticed that the database on {name} was away",
                    hint="set a larger oltp.down_seconds",
                )
            if not states[1].startswith("UP"):
                raise VerificationError(
                    f"the balancer has not taken the database on {name} back: {states[1]}",
                    hint="see the server's log on that node",
                )
        elif (times and not lost) or not all(state.startswith("UP") for state in states):
            raise VerificationError(
                f"the database on {name} was not in the balancer all the time: found down {times} "
                f"times, {states[0]} before and {states[1]} after",
                hint=_LOGS,
            )


def _check_client(run: DatabaseRun, results: Mapping[str, OltpResult]) -> None:
    """Refuse a result of the client instead of the database's."""
    for name in (SATURATION, *map(load_name, SHARES)):
        if name in results and results[name].cpu_cores > _BUSY_SHARE * run.master_cores:
            raise MeasuringLimitError(
                f"{name}: the client took {results[name].cpu_cores:.2f} of the master's "
                f"{run.master_cores} cores, so the rate may be the most that it can make",
                hint="use a faster master, or fewer oltp.threads",
            )


def _fault_figures(run: DatabaseRun, results: Mapping[str, OltpResult]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, text in run.fault_texts.items():
        check_gone(name, text, hint=_LONGER)
        times, result = read_fault(text, ahead_seconds=run.fault_ahead_seconds), results[name]
        late = times.down_unix - result.began_unix
        if not -_SKEW_SECONDS <= late <= result.seconds + _SKEW_SECONDS:
            raise VerificationError(
                f"{name}: the fault came {late:.1f} s after the phase began, which took "
                f"{result.seconds:.1f} s",
                hint="set the clocks of the nodes; `boardcluster doctor` compares them",
            )
        own = {
            "failed_transactions": float(sum(_strange(result).values())),
            "unknown_transactions": float(
                sum(len(account.unknown) for account in result.accounts.values())
            ),
            "longest_pause_seconds": result.longest_pause_seconds,
            "server_away_seconds": times.answers_unix - times.down_unix,
            "recovery_seconds": _recovery_seconds(times, result),
        }
        figures |= {f"{name}_{key}".replace(" ", "_"): value for key, value in own.items()}
    return figures


def _recovery_seconds(times: FaultTimes, result: OltpResult) -> float:
    """Return the time from the loss until nothing is lost any more and the server is in step."""
    return max(times.answers_unix, result.last_loss_unix or 0.0) - times.down_unix


def _figures(results: Mapping[str, OltpResult]) -> dict[str, float]:
    most = results[SATURATION]
    figures = {
        "transactions_per_second": most.transactions_per_second,
        "timed_transactions": float(most.transactions),
    }
    for name, part in _PERCENTILES.items():
        value = percentile_microseconds(most.latency, part)
        figures[f"saturation_latency_{name}_microseconds"] = value
    if "direct" in results:
        direct = results["direct"].transactions_per_second
        figures["direct_transactions_per_second"] = direct
        figures["balancer_overhead_percent"] = 100 * (1 - most.transactions_per_second / direct)
    if PLAIN in results:
        plain = results[PLAIN].transactions_per_second
        figures["plain_transactions_per_second"] = plain
        figures["ledger_overhead_percent"] = 100 * (1 - most.transactions_per_second / plain)
    for share in SHARES:
        if (result := results.get(load_name(share))) is None:
            continue
        figures[f"load_{share}_transactions_per_second"] = result.transactions_per_second
        for name, part in _PERCENTILES.items():
            value = percentile_microseconds(result.latency, part)
            figures[f"load_{share}_latency_{name}_microseconds"] = value
    figures["repeated_transactions"] = float(sum(each.repeated for each in results.values()))
    figures["client_cpu_percent"] = 100 * most.cpu_cores
    return figures
