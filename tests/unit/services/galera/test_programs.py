"""Programs that run on nodes: what they read, what they say, and what they ask."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from boardcluster.services.galera import auditing, checking, driving

REPORT = """\
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       1.759 |*****                                    12
      44.984 |                                         1

SQL statistics:
    queries performed:
        read:                            182
        write:                           65
        other:                           26
        total:                           273
    transactions:                        13     (110.52 per sec.)
    queries:                             273    (2321.00 per sec.)
    ignored errors:                      2      (1.10 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          0.1176s
    total number of events:              13
"""
ASKED = {
    "mode": "read_write",
    "phase": 1,
    "ledger": True,
    "config": "/srv/sysbench.cnf",
    "database": "bench",
    "hosts": ["198.18.0.3", "198.18.0.4"],
    "port": 8011,
    "tables": 2,
    "rows": 100,
    "threads": 2,
    "seed": 7,
    "pause_milliseconds": 50,
    "transactions": 13,
}


def test_a_report_is_read() -> None:
    assert driving.read_report(REPORT) == {
        "reads": 182,
        "writes": 65,
        "others": 26,
        "transactions": 13,
        "repeated": 2,
        "seconds": 0.1176,
        "latency_microseconds": [[1759, 12], [44984, 1]],
    }
    with pytest.raises(ValueError, match="no time"):
        driving.read_report(REPORT.replace("total time", "time"))
    with pytest.raises(ValueError, match="no repeated"):
        driving.read_report(REPORT.replace("ignored", "other"))


def test_accounts_of_threads_are_put_together() -> None:
    first = "committed 1 3\nunknown 4\ncommitted 5 6\ngood 17 5\nlost 19 1\nkind 2013 1\nlast 6\n"
    found = driving.read_ledgers({0: first, 1: "committed 1 2\ngood 17 1\ngood 18 1\nlast 2\n"})

    assert found["threads"] == {
        "0": {"committed": [[1, 3], [5, 6]], "unknown": [4], "last": 6},
        "1": {"committed": [[1, 2]], "unknown": [], "last": 2},
    }
    assert found["errors"] == {"2013": 1}
    assert (found["series_began_unix"], found["series"]) == (1.7, [[6, 0], [1, 0], [0, 1]])


def test_the_command_has_no_password_and_names_every_server() -> None:
    command = driving.command_of(ASKED, 12.6)

    assert "--mysql-host=198.18.0.3,198.18.0.4" in command
    assert "--rate=13" in command
    assert "--auto-inc=off" in command
    assert not any("password" in word for word in command)


def run_with(folder: Path, program: str, **asked: Any) -> subprocess.CompletedProcess[str]:
    """Run the driving program with another sysbench."""
    sysbench = folder / "sysbench"
    sysbench.write_text(f"#!/bin/sh\n{program}\n")
    sysbench.chmod(0o755)
    text = Path(driving.__file__).read_text()
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", text, json.dumps(ASKED | asked)],
        cwd=folder,
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_run_leaves_one_result_and_a_share_of_its_rate_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "report").write_text(REPORT)
    program = 'cat report; echo "committed 1 13" > ledger-0.txt; echo "$@" > said; env > variables'

    done = run_with(tmp_path, program)

    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["transactions"], result["seconds"], result["rate"]) == (13, 0.1176, 0.0)
    variables = (tmp_path / "variables").read_text()
    assert "LEDGER_MODE=read_write\n" in variables
    assert "LEDGER_PHASE=1\n" in variables
    assert "LEDGER_WRITES=yes\n" in variables
    assert "LEDGER_PAUSE_MILLISECONDS=50\n" in variables

    run_with(tmp_path, program, of="result.json", share=50)
    assert "--rate=55 " in (tmp_path / "said").read_text()  # half of 13 in 0.1176 s


def test_the_rate_that_is_recorded_is_the_one_that_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "report").write_text(REPORT)
    (tmp_path / "earlier.json").write_text('{"transactions": 100, "seconds": 20.0}')
    program = 'cat report; echo "committed 1 13" > ledger-0.txt; echo "$@" > said'

    done = run_with(tmp_path, program, of="earlier.json", share=25)  # 1.25 per second

    assert done.returncode == 0, done.stderr
    assert "--rate=1 " in (tmp_path / "said").read_text()
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["rate"] == 1.0
    assert result["exact_rate"] == 1.25


def test_what_sysbench_died_of_is_said(tmp_path: Path) -> None:
    words = "FATAL: mysql_stmt_execute() returned error 1114 (The table 'ledger' is full)"
    done = run_with(tmp_path, f'echo ok; echo "{words}"; exit 1')

    assert done.returncode == 1
    assert done.stderr.strip() == words
    assert not (tmp_path / "result.json").exists()


def test_a_ledger_is_read_row_by_row_and_an_error_is_told(tmp_path: Path) -> None:
    client = tmp_path / "client"
    client.write_text("#!/bin/sh\ncat >/dev/null\nprintf '1\\t0\\t1\\n1\\t0\\t2\\n'\n")
    client.chmod(0o755)
    assert list(auditing.stream([str(client), "host", "db"], "?")) == [
        ["1", "0", "1"],
        ["1", "0", "2"],
    ]
    client.write_text("#!/bin/sh\ncat >/dev/null\necho it is gone >&2\nexit 3\n")
    with pytest.raises(SystemExit, match="host: it is gone"):
        list(auditing.stream([str(client), "host", "db"], "?"))


def test_numbers_in_order_become_ranges() -> None:
    rows = [["1", "0", "1"], ["1", "0", "2"], ["1", "0", "4"], ["1", "3", "1"]]
    assert auditing.ranges(rows) == {"1:0": [[1, 2], [4, 4]], "1:3": [[1, 1]]}


CLIENT = """\
import sys
for line in sys.stdin:
    if {state!r} == "gone":
        sys.exit()
    print("Questions\\t9\\nwsrep_cluster_size\\t3\\nwsrep_cluster_status\\tPrimary")
    print("wsrep_local_state\\t{state}", flush=True)
"""


@pytest.mark.parametrize(
    ("state", "status", "words"),
    [
        ("4", b"200 OK", b"Questions 9\n"),
        ("2", b"200 OK", b"wsrep_local_state 2 "),  # a donor of what another one missed
        ("3", b"503 Service Unavailable", b"wsrep_local_state 3 "),
        ("gone", b"503 Service Unavailable", b"wsrep_local_state - "),
    ],
)
def test_only_a_server_in_step_may_have_work(state: str, status: bytes, words: bytes) -> None:
    database = checking.Database((sys.executable, "-c", CLIENT.format(state=state)))
    try:
        for _ in range(2):  # the connection stays, or is made again
            answer = checking.answer_of(database.ask())
            assert answer.startswith(b"HTTP/1.0 " + status)
            assert words in answer
    finally:
        database.close()


def test_a_client_that_is_late_is_waited_for_as_long_as_its_node_is_slow() -> None:
    late = f"import time; time.sleep(0.2)\n{CLIENT.format(state='4')}"
    for patience_seconds, status in ((0.01, b"503"), (60.0, b"200")):
        database = checking.Database(
            (sys.executable, "-c", late), patience_seconds=patience_seconds
        )
        try:
            assert checking.answer_of(database.ask()).startswith(b"HTTP/1.0 " + status)
        finally:
            database.close()


def test_a_donor_of_everything_gets_no_work_until_that_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "7" / "cmdline"
    place.parent.mkdir()
    copy = ["/bin/bash", "/usr/bin/wsrep_sst_rsync", "--role", "donor", "--address", "198.18.0.5"]
    for words, copies in (
        (copy, True),
        ([*copy, "--bypass"], False),
        (["python3", "-c", "wsrep_sst_rsync donor"], False),
        (["/bin/bash", "/usr/bin/wsrep_sst_rsync", "--role", "joiner"], False),
    ):
        place.write_text("\0".join([*words, ""]))
        assert checking.copies_everything(str(tmp_path)) is copies, words
    monkeypatch.setattr(checking, "copies_everything", lambda: True)
    donor = {"wsrep_local_state": "2", "wsrep_cluster_status": "Primary"}
    assert checking.answer_of(donor).startswith(b"HTTP/1.0 503")
    assert checking.answer_of(donor | {"wsrep_local_state": "4"}).startswith(b"HTTP/1.0 200")


def test_a_client_that_says_nothing_does_not_hold_the_check() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        database = checking.Database(("false",))
        server = threading.Thread(target=_serve, args=(listener, database), daemon=True)
        server.start()
        socket.create_connection(listener.getsockname()).close()
        with socket.create_connection(listener.getsockname(), timeout=10) as link:
            link.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert link.recv(100).startswith(b"HTTP/1.0 503")
        listener.shutdown(socket.SHUT_RDWR)
        server.join(timeout=10)
        assert not server.is_alive()
        database.close()


def _serve(listener: socket.socket, database: checking.Database) -> None:
    """Answer until the listener is closed."""
    try:
        checking.serve(listener, database)
    except OSError:
        return


def test_a_server_waits_before_it_is_asked_what_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    questions: list[str] = []

    def ask(_: list[str], question: str) -> list[list[str]]:
        questions.append(question)
        return [["1", "1", "1"]]

    monkeypatch.setattr(auditing, "ask", ask)
    monkeypatch.setattr(auditing, "stream", ask)
    auditing.audit([], 1)

    waits = "SET SESSION wsrep_sync_wait = 1; START TRANSACTION; COMMIT; SHOW GLOBAL STATUS"
    assert questions[0].startswith(waits)


RETURNS = {"folder": "", "server": "worker3", "steady_seconds": 1.5, "patience_seconds": 5}


def watched(monkeypatch: pytest.MonkeyPatch, seen: list[tuple[int, bool]]) -> None:
    """Have the balancer say one after the other, the last one on and on, each half a second."""
    clock = iter(range(10_000))
    monkeypatch.setattr(
        driving, "seen_by_balancer", lambda *_: seen.pop(0) if len(seen) > 1 else seen[0]
    )
    monkeypatch.setattr(time, "monotonic", lambda: next(clock) * driving.POLL_SECONDS)
    monkeypatch.setattr(time, "sleep", lambda _: None)


def test_a_load_lasts_until_the_balancer_has_the_server_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    back = [(4, True)] * 4  # for as long as it must be steady
    seen = [(3, True), (3, True), (4, False), (4, True), (4, False), *back]
    watched(monkeypatch, seen)

    assert driving.await_return({"returns": RETURNS, "seconds": 0}, 3) == ""
    assert seen == [(4, True)]


@pytest.mark.parametrize(("seen", "what"), [((3, True), "lost"), ((4, False), "taken back")])
def test_a_load_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seen: tuple[int, bool], what: str
) -> None:
    watched(monkeypatch, [seen])
    monkeypatch.chdir(tmp_path)
    asked = {"returns": RETURNS, "transactions": 100, "threads": 2}

    for name in ("share-0", "share-1"):  # only then the load that was asked for has been made
        (tmp_path / name).touch()
    words = driving.await_return(asked, 3)

    assert words == f"the balancer has not {what} worker3 until 5 s after the load"


def test_a_server_that_does_not_come_back_is_the_reason_of_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not what the next phases say of a server that they do not reach."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(driving, "seen_by_balancer", lambda *_: (4, False))
    monkeypatch.setattr(driving, "await_return", lambda *_: "the balancer has not taken it back")
    wait = "import os, time\nwhile not os.path.exists('over'): time.sleep(0.01)"
    monkeypatch.setattr(driving, "command_of", lambda *_: [sys.executable, "-c", wait])

    assert driving.main(ASKED | {"returns": RETURNS, "threads": 1}) == 1
    assert (
        capsys.readouterr().err == "the balancer has not taken it back; see the logs on that node\n"
    )


def test_with_a_fault_it_is_not_sysbench_that_ends_the_load() -> None:
    command = driving.command_of(ASKED | {"returns": RETURNS}, 0.0)

    assert {"--events=0", "--time=0"} <= set(command)
    assert "--events=13" in driving.command_of(ASKED, 0.0)


def test_the_balancer_is_asked_through_a_socket_of_any_path(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    text = "# pxname,svname,status,chkdown\nservers,worker3,UP 1/2,4\nservers,worker1,DOWN,5\n"

    def answer() -> None:
        link, _ = listener.accept()
        with link:
            link.recv(100)
            link.sendall(text.encode())

    with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(folder):
        listener.bind("haproxy.sock")
        listener.listen()
        for name, found in (("worker3", (4, True)), ("worker1", (5, False))):
            other = threading.Thread(target=answer)
            other.start()
            assert driving.seen_by_balancer(str(folder), name) == found
            other.join()
