"""What sysbench, its account and the servers say, read once at the edge."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boardcluster.errors import VerificationError

__all__ = ["Account", "Audit", "Numbers", "OltpResult", "read_audits", "read_result"]

Numbers = tuple[tuple[int, int], ...]
"""Whole numbers as ranges without gaps: first, last."""

_HINT = "see the attempt's folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What one thread of the client was told of its transactions, each of which has a number."""

    committed: Numbers
    """Those that were told as committed."""
    unknown: tuple[int, ...]
    """Those whose answer was lost."""
    last: int
    """The last number that it gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OltpResult:
    """What one run of sysbench came to."""

    transactions: int
    """Transactions that were told as committed."""
    reads: int
    """Statements that read."""
    repeated: int
    """Transactions that were not committed, and were tried again."""
    seconds: float
    """From the first transaction to the last, by the client's monotonic clock."""
    cpu_seconds: float
    """CPU time of the client."""
    rate: float
    """Transactions per second that were asked for; 0 in a closed loop."""
    exact_rate: float
    """What was meant, of which ``rate`` is the nearest whole number from 1."""
    errors: Mapping[int, int]
    """What ended transactions that were tried again: how often, by MariaDB's number."""
    latency: Numbers
    """Histogram of latencies: edge in microseconds, count; each bucket is 1.8 % wide."""
    accounts: Mapping[int, Account]
    """By thread."""
    began_unix: float
    """When it began, by its node's clock."""
    series: Numbers
    """For each tenth of a second, transactions that were committed, and those that a loss ended."""
    series_began_unix: float
    """When the series begins."""

    @property
    def transactions_per_second(self) -> float:
        """Committed transactions per second."""
        return self.transactions / self.seconds

    @property
    def cpu_cores(self) -> float:
        """How many cores the client took in the mean."""
        return self.cpu_seconds / self.seconds

    @property
    def longest_pause_seconds(self) -> float:
        """The longest time without a committed transaction, in tenths of a second."""
        longest = here = 0
        for good, _ in self.series:
            here = 0 if good else here + 1
            longest = max(longest, here)
        return longest / 10

    @property
    def last_loss_unix(self) -> float | None:
        """The end of the last tenth in which a transaction was lost; None if none was."""
        places = [place for place, (_, lost) in enumerate(self.series, start=1) if lost]
        return self.series_began_unix + places[-1] / 10 if places else None


def _pairs(rows: Sequence[Sequence[int]]) -> Numbers:
    return tuple((int(first), int(second)) for first, second in rows)


def read_result(text: str, *, phase: str) -> OltpResult:
    """Read what ``driving.py`` wrote, and hold it against itself.

    Raises:
        VerificationError: it is not whole, or its numbers contradict each other.
    """
    try:
        row = json.loads(text)
        found = OltpResult(
            transactions=int(row["transactions"]),
            reads=int(row["reads"]),
            repeated=int(row["repeated"]),
            seconds=float(row["seconds"]),
            cpu_seconds=float(row["cpu_seconds"]),
            rate=float(row["rate"]),
            exact_rate=float(row.get("exact_rate", row["rate"])),  # earlier versions left it out
            errors={int(code): int(count) for code, count in row["errors"].items()},
            latency=_pairs(row["latency_microseconds"]),
            accounts={
                int(thread): Account(
                    committed=_pairs(own["committed"]),
                    unknown=tuple(map(int, own["unknown"])),
                    last=int(own["last"]),
                )
                for thread, own in row["threads"].items()
            },
            began_unix=float(row["began_unix"]),
            series=_pairs(row["series"]),
            series_began_unix=float(row["series_began_unix"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise VerificationError(
            f"{phase}: what sysbench came to cannot be read: {error!r}", hint=_HINT
        ) from error
    told = sum(
        last - first + 1 for each in found.accounts.values() for first, last in each.committed
    )
    measured = sum(count for _, count in found.latency)
    if not (found.seconds > 0 and found.transactions == told == measured):
        raise VerificationError(
            f"{phase}: sysbench counts {found.transactions} transactions and {measured} latencies "
            f"in {found.seconds:g} s, and its account has {told}",
            hint=_HINT,
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What one server holds, and what it has counted since it started."""

    selects: int
    """Statements that read."""
    ordered: int
    """Writing transactions that the group has put in order, those included that it refused then."""
    members: int
    """Servers of its group."""
    state: str
    """``Primary`` and ``Synced`` if it is in step with the majority."""
    group: str
    """Identity of the history that it follows."""
    tables: tuple[tuple[str, ...], ...]
    """Of each table: rows, sum of its numbers, sum of k, and two checksums of all its content."""
    ledger: Mapping[tuple[int, int], Numbers]
    """Numbers of committed transactions by phase and thread."""


def read_audits(text: str) -> dict[str, Audit]:
    """Read what ``auditing.py`` printed, by the name of the worker.

    Raises:
        VerificationError: it is not whole.
    """
    try:
        return {
            str(name): Audit(
                selects=int(row["counters"]["Com_select"]),
                ordered=int(row["counters"]["wsrep_last_committed"]),
                members=int(row["counters"]["wsrep_cluster_size"]),
                state=f"{row['counters']['wsrep_cluster_status']} "
                f"{row['counters']['wsrep_local_state_comment']}",
                group=str(row["counters"]["wsrep_cluster_state_uuid"]),
                tables=tuple(tuple(map(str, sums)) for sums in row["tables"]),
                ledger={
                    (int(key.split(":")[0]), int(key.split(":")[1])): _pairs(pairs)
                    for key, pairs in row["ledger"].items()
                },
            )
            for name, row in json.loads(text).items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise VerificationError(
            f"what the servers hold cannot be read: {error!r}", hint=_HINT
        ) from error
