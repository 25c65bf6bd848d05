"""What the client was told is held against what every node holds, and what is then refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from boardcluster.analysis.twins import undilated_value
from boardcluster.errors import MeasuringLimitError, VerificationError
from boardcluster.records import PlannedFault
from boardcluster.workloads.oltp.proof import (
    LEDGERED,
    PLAIN,
    SATURATION,
    SHARES,
    DatabaseRun,
    load_name,
    prove,
)

WORKERS = ("worker1", "worker2", "worker3")
PHASES = ("warm-up", SATURATION, "direct", PLAIN, *map(load_name, SHARES))


def result(**changes: Any) -> dict[str, Any]:
    """Two clients made 100 transactions in a second; number 7 of the first one was undone once."""
    row: dict[str, Any] = {
        "transactions": 100,
        "reads": 1400,
        "writes": 400,
        "others": 200,
        "repeated": 1,
        "seconds": 1.0,
        "cpu_seconds": 0.1,
        "rate": 0.0,
        "errors": {"1213": 1},
        "latency_microseconds": [[500, 99], [90_000, 1]],
        "threads": {
            "0": {"committed": [[1, 6], [8, 51]], "unknown": [], "last": 51},
            "1": {"committed": [[1, 50]], "unknown": [], "last": 50},
        },
        "began_unix": 1000.0,
        "series": [[50, 0], [0, 0], [0, 0], [50, 0]],
        "series_began_unix": 1000.0,
    }
    return row | changes


def ledger(phases: tuple[str, ...] = PHASES) -> dict[str, list[list[int]]]:
    numbers = [LEDGERED.index(name) for name in phases if name in LEDGERED]
    return {
        f"{number}:{thread}": rows
        for number in numbers
        for thread, rows in enumerate([[[1, 6], [8, 51]], [[1, 50]]])
    }


def audit(rows: dict[str, list[list[int]]], *, busy: bool, **changes: Any) -> dict[str, Any]:
    """What one server holds: two tables of ten rows; the first audit itself read three times."""
    counters = {
        "Com_select": str(4000 if busy else 0),
        "wsrep_cluster_size": "3",
        "wsrep_cluster_status": "Primary",
        "wsrep_cluster_state_uuid": "u",
        "wsrep_last_committed": str(805 if busy else 0),
        "wsrep_local_state_comment": "Synced",
    }
    tables = [["10", "55", str(busy), "1", "2"], ["10", "55", "3", "4", "5"]]
    return {"counters": counters | changes, "tables": tables, "ledger": rows}


def audits(
    rows: dict[str, list[list[int]]], *, busy: bool = True, reads: int = 8 * 1400
) -> dict[str, Any]:
    found = {name: audit(rows, busy=busy) for name in WORKERS}
    if busy:  # each server read three times for the first audit
        found["worker1"]["counters"]["Com_select"] = str(reads + 3 * 3 - 2 * 4000)
    return found


def counts(*, down: int = 0, status: str = "UP", whose: str = "worker3") -> str:
    servers = {
        name: {
            "hrsp_2xx": 0,
            "chkdown": down if name == whose else 0,
            "status": status if name == whose else "UP",
        }
        for name in WORKERS
    }
    return json.dumps({"servers": {}, "balancer": {"FRONTEND": {"req_tot": 0}, **servers}})


def run(**changes: Any) -> DatabaseRun:
    whole = DatabaseRun(
        writes=True,
        tables=2,
        rows=10,
        workers=WORKERS,
        master_cores=1,
        fault=PlannedFault.NONE,
        fault_texts={},
        fault_ahead_seconds=0.0,
        results={name: json.dumps(result()) for name in PHASES},
        transactions=dict.fromkeys((SATURATION, "warm-up", "direct", PLAIN), 100),
        audits=(json.dumps(audits({}, busy=False)), json.dumps(audits(ledger()))),
        counts=(counts(), counts()),
    )
    return replace(whole, **changes)


def faulted(**changes: Any) -> DatabaseRun:
    """The last server goes away and comes back in two phases; one answer was lost in each."""
    phases = ("warm-up", SATURATION, load_name(50))
    threads = {
        "0": {"committed": [[1, 6], [8, 51]], "unknown": [7], "last": 51},
        "1": {"committed": [[1, 50]], "unknown": [], "last": 50},
    }
    lost = result(threads=threads, errors={"2013": 1}, series=[[50, 0], [50, 1]])
    times = json.dumps({"down_unix": 1000.0, "up_unix": 1000.5, "answers_unix": 1000.1})
    whole = run(
        fault=PlannedFault.KILL,
        fault_texts=dict.fromkeys(phases[1:], times),
        results={"warm-up": json.dumps(result()), **dict.fromkeys(phases[1:], json.dumps(lost))},
        transactions=dict.fromkeys(("warm-up", SATURATION), 100),
        audits=(json.dumps(audits({}, busy=False)), json.dumps(audits(ledger(phases)))),
        counts=(counts(), counts(down=2)),
    )
    return replace(whole, **changes)


def after(change: Callable[[dict[str, Any]], None], made: DatabaseRun | None = None) -> DatabaseRun:
    """The same run, with something else on the nodes afterwards."""
    whole = made or run()
    found = json.loads(whole.audits[1])
    change(found)
    return replace(whole, audits=(whole.audits[0], json.dumps(found)))


def with_result(name: str, made: DatabaseRun | None = None, **changes: Any) -> DatabaseRun:
    whole = made or run()
    row = json.loads(whole.results[name]) | changes
    return replace(whole, results={**whole.results, name: json.dumps(row)})


def test_what_is_right_is_proved_with_its_figures() -> None:
    proof = prove(run())

    assert proof.verification.records == 700  # "plain" is in no ledger
    assert proof.verification.expected_sha256 == proof.verification.actual_sha256
    figures = proof.figures
    assert (figures["transactions_per_second"], figures["timed_transactions"]) == (100.0, 100.0)
    assert figures["saturation_latency_p99_microseconds"] == 500.0
    assert figures["saturation_latency_p999_microseconds"] == 90_000.0
    assert (figures["balancer_overhead_percent"], figures["ledger_overhead_percent"]) == (0.0, 0.0)
    assert figures["repeated_transactions"] == 8.0


def test_a_fault_is_told_with_what_it_cost() -> None:
    figures = prove(faulted()).figures

    assert figures["saturation_failed_transactions"] == 1.0
    assert figures["saturation_unknown_transactions"] == 1.0
    assert figures["saturation_server_away_seconds"] == pytest.approx(0.1)
    assert figures["saturation_recovery_seconds"] == pytest.approx(0.2)  # the last loss came later
    assert figures["load_50_percent_longest_pause_seconds"] == 0.0


def test_times_of_a_fault_are_those_of_the_client() -> None:
    times = json.dumps({"down_unix": 1100.0, "up_unix": 1100.5, "answers_unix": 1100.1})
    names = (SATURATION, load_name(50))
    ahead = faulted(fault_texts=dict.fromkeys(names, times), fault_ahead_seconds=100.0)

    assert prove(ahead).figures == pytest.approx(prove(faulted()).figures)


def test_more_may_be_made_until_a_lost_server_is_back_and_none_less() -> None:
    made = {SATURATION: 99, "warm-up": 100}
    assert prove(faulted(transactions=made)).figures["timed_transactions"] == 100.0
    with pytest.raises(VerificationError, match="100 transactions were committed instead of 99"):
        prove(run(transactions=made))
    with pytest.raises(VerificationError, match="100 transactions were committed instead of 101"):
        prove(faulted(transactions={SATURATION: 101}))


def test_a_server_that_lends_its_data_may_be_away_meanwhile_and_that_is_told() -> None:
    lent = json.loads(counts(down=2))
    lent["balancer"]["worker2"]["chkdown"] = 1
    (remark,) = prove(faulted(counts=(counts(), json.dumps(lent)))).remarks
    assert "also without the database on worker2, 1 time:" in remark

    lent["balancer"]["worker2"]["status"] = "DOWN"
    with pytest.raises(VerificationError, match="worker2 was not in the balancer all the time"):
        prove(faulted(counts=(counts(), json.dumps(lent))))


def test_a_load_that_fell_behind_is_told() -> None:
    assert prove(run()).remarks == ()
    # Of so many that are due at random moments, 50 are missing by no chance, and 20 are.
    (remark,) = prove(with_result(load_name(90), rate=150.0)).remarks
    assert remark.startswith("load 90 percent: only 67 % of the rate that was asked for")
    assert prove(with_result(load_name(90), rate=120.0)).remarks == ()
    assert prove(with_result(load_name(50), faulted(), rate=150.0)).remarks == ()


@pytest.mark.parametrize("exact", [9.0, 11.0])
def test_a_rate_that_a_whole_number_is_far_from_is_told(exact: float) -> None:
    (remark,) = prove(with_result(load_name(25), rate=10.0, exact_rate=exact)).remarks
    assert remark == (
        "load 25 percent: sysbench takes whole transactions per second, so it was asked for "
        f"{250 / exact:.0f} percent"
    )
    assert prove(with_result(load_name(25), rate=10.0, exact_rate=10.4)).remarks == ()


def test_an_answer_that_was_lost_may_have_been_either() -> None:
    def commit(found: dict[str, Any]) -> None:
        for row in found.values():
            row["ledger"]["1:0"] = [[1, 51]]

    prove(after(commit, faulted()))
    with pytest.raises(VerificationError, match=r"transaction 7 of client 0 was told as undone"):
        prove(after(commit))


@pytest.mark.parametrize("made", [run, faulted], ids=["none", "fault"])
def test_every_figure_has_a_unit_that_says_what_it_is_on_slower_nodes(
    made: Callable[[], DatabaseRun],
) -> None:
    for name in prove(made()).figures:
        assert undilated_value(name, 1.0, 2.0) is not None, name


def everywhere(key: str, rows: list[list[int]]) -> DatabaseRun:
    def change(found: dict[str, Any]) -> None:
        for row in found.values():
            row["ledger"][key] = rows

    return after(change)


def on(name: str, change: Callable[[dict[str, Any]], None]) -> DatabaseRun:
    return after(lambda found: change(found[name]))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            everywhere("1:0", [[1, 6], [8, 40], [42, 51]]),
            r"saturation: transaction 41 of client 0 was told as committed, and is not",
        ),
        (everywhere("1:1", []), r"saturation: transaction 1 of client 1 was told as committed"),
        (everywhere("1:1", [[1, 51]]), r"transaction 51 of client 1 was told as undone, and is"),
        (everywhere("1:5", [[1, 1]]), r"transactions of client 5 in phase 1, which made none"),
        (
            on("worker2", lambda row: row["ledger"].update({"1:1": [[1, 49]]})),
            r"the ledger differs between worker1 and worker2",
        ),
        (
            on("worker3", lambda row: row["tables"].__setitem__(1, ["10", "55", "3", "4", "6"])),
            r"table 2 differs between worker1 and worker3: sums 10, 55, 3, 4, 5 and 10, 55, 3, 4",
        ),
        (
            on("worker1", lambda row: row["tables"].__setitem__(0, ["9", "55", "3", "4", "5"])),
            r"table 1 on worker1 has 9 rows with the sum 55, instead of 10 with 55",
        ),
        (
            on("worker2", lambda row: row["counters"].update(wsrep_cluster_size="2")),
            r"after the run the database on worker2 was Primary Synced in a group of 2",
        ),
        (
            on("worker2", lambda row: row["counters"].update(wsrep_cluster_status="non-Primary")),
            r"worker2 was non-Primary Synced",
        ),
        (
            on("worker2", lambda row: row["counters"].update(wsrep_cluster_state_uuid="v")),
            r"after the run the database on worker1 was",
        ),
        (
            on("worker2", lambda row: row["counters"].update(wsrep_last_committed="799")),
            r"told of 800 committed transactions, and the database on worker2 ordered 799; 8 ",
        ),
        (
            on("worker2", lambda row: row["counters"].update(Com_select="3999")),
            r"the client read 11200 times, and the databases counted 11199 statements",
        ),
        (with_result(SATURATION, errors={"1047": 3}), r"failed without a fault \(error 1047: 3 "),
        (
            replace(run(), transactions={SATURATION: 101}),
            r"saturation: 100 transactions were committed instead of 101",
        ),
        (
            with_result(SATURATION, transactions=99),
            r"sysbench counts 99 transactions and 100 latencies in 1 s, and its account has 100",
        ),
        (replace(run(), counts=(counts(), counts(down=1))), r"worker3 was not in the balancer all"),
        (
            replace(run(), counts=(counts(), counts(status="DOWN", whose="worker1"))),
            r"worker1 was not in the balancer all the time: found down 0 times, UP before and DOWN",
        ),
        (
            faulted(
                counts=(counts(), counts()),
                fault_texts={SATURATION: json.dumps({"error": "not permitted"})},
            ),
            r"the fault failed: not permitted",
        ),
        (
            faulted(counts=(counts(), counts())),
            r"the balancer never noticed that the database on worker3 was away",
        ),
        (
            faulted(counts=(counts(), counts(down=1, status="DOWN"))),
            r"the balancer has not taken the database on worker3 back: DOWN",
        ),
        (
            faulted(fault_texts={SATURATION: "", load_name(50): ""}),
            r"saturation: it was over before the fault had come and gone",
        ),
        (
            with_result(SATURATION, faulted(), began_unix=1010.0),
            r"the fault came -10.0 s after the phase began",
        ),
        (replace(run(), audits=("{", "{}")), r"what the servers hold cannot be read"),
        (
            replace(run(), results={SATURATION: "{}"}),
            r"saturation: what sysbench came to cannot be read",
        ),
    ],
)
def test_what_is_wrong_is_refused_and_named(wrong: DatabaseRun, words: str) -> None:
    with pytest.raises(VerificationError, match=words):
        prove(wrong)


def test_a_client_that_may_be_the_limit_is_no_result() -> None:
    with pytest.raises(MeasuringLimitError, match=r"the client took 0.90 of the master's 1 cores"):
        prove(with_result(SATURATION, cpu_seconds=0.9))


def test_a_client_that_only_read_must_leave_every_table_as_it_was() -> None:
    reading = run(
        writes=False,
        results={name: json.dumps(result()) for name in PHASES if name != PLAIN},
    )
    quiet = audits({}, busy=False)
    read = audits({}, reads=7 * 1400)
    for name, row in read.items():
        row["tables"] = quiet[name]["tables"]
        row["counters"]["wsrep_last_committed"] = "0"
    texts = (json.dumps(quiet), json.dumps(read))
    proved = prove(replace(reading, audits=texts)).verification
    assert proved.records == 700
    assert "ledger" not in proved.method
    assert "reads are counted" in proved.method

    for row in read.values():
        row["tables"] = [["10", "55", "9", "9", "9"], *row["tables"][1:]]
    with pytest.raises(VerificationError, match="changed, though the client only read"):
        prove(replace(reading, audits=(texts[0], json.dumps(read))))
