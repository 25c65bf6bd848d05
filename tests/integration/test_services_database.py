"""The replicated database on a real cluster: what it holds is proved, what is wrong is found."""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boardcluster.services.galera.config import GALERA_PORTS
from tests.integration.conftest import NOBODY, Cli, as_nobody
from tests.integration.services import (
    figures_of_fault,
    held_port,
    kill_while_it_serves,
    latest,
    reaching,
    serving,
    state_of,
)
from tests.waiting import wait_until

CAMPAIGN = """\
[campaign]
name = "{name}"
repeat_tainted = 0  # this machine has other work
repetitions = 1

[[matrix]]
workload = "oltp"
workers = {workers}
fault = "{fault}"
parameters.oltp.mode = "{mode}"
parameters.oltp.transactions = {transactions}
parameters.oltp.threads = 4
parameters.oltp.tables = 2
parameters.oltp.rows = 2000
parameters.oltp.seconds = {seconds}
parameters.oltp.down_seconds = {down_seconds}
"""

PORTS = sorted(GALERA_PORTS.values())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli]) -> Iterator[Cli]:
    """One cluster for all."""
    program = cli(tmp_path_factory.mktemp("database") / "home")
    program("init", "--workers", "3", "--subnet", "198.18.212.0/24")
    try:
        program("up")
        yield program
    finally:
        program("down", "--wipe")


def written(
    folder: Path,
    name: str,
    *,
    fault: str = "none",
    mode: str = "read_write",
    transactions: int = 200,
    seconds: int = 2,
    workers: int = 3,
    down_seconds: int = 1,
) -> str:
    path = folder / f"{name}.toml"
    path.write_text(
        CAMPAIGN.format(
            name=name,
            fault=fault,
            mode=mode,
            transactions=transactions,
            seconds=seconds,
            workers=workers,
            down_seconds=down_seconds,
        )
    )
    return str(path)


def left_on_nodes(program: Cli) -> list[Path]:
    return sorted(program.home.glob("nodes/*/galera"))


@contextlib.contextmanager
def watching(program: Cli) -> Iterator[tuple[set[bytes], set[bytes]]]:
    """Collect the database's passwords while it runs, and arguments of processes that hold one."""
    file = program.home / "nodes" / "master" / "galera" / "client.cnf"
    passwords: set[bytes] = set()
    seen: set[bytes] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            with contextlib.suppress(OSError):
                passwords.update(re.findall(rb"password=(\S+)", file.read_bytes()))
            for each in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    words = each.read_bytes()
                    seen.update(words for password in passwords if password in words)

    other = threading.Thread(target=look)
    other.start()
    try:
        yield passwords, seen
    finally:
        over.set()
        other.join()


@pytest.mark.needs_root
def test_a_database_is_proved_and_leaves_nothing(site: Cli, tmp_path: Path) -> None:
    with watching(site) as (passwords, seen):
        done = site.json("run", written(tmp_path, "plain"))
    (row,) = done["results"]
    assert row["attempt"]["state"] == "ok", row["attempt"]["reason"]
    figures, measured = row["measurement"]["figures"], row["measurement"]
    # The time is that of the timed transactions, as the client and the driver measure it.
    assert measured["duration_seconds"] >= 200 / figures["transactions_per_second"]
    for share in (25, 50, 75, 90):
        names = [f"load_{share}_latency_{p}_microseconds" for p in ("p50", "p95", "p99", "p999")]
        order = [figures[name] for name in names]
        assert 0 < order[0] <= order[1] <= order[2] <= order[3]
    folder = site.home / row["attempt"]["artefacts"]
    kept = json.loads((folder / "load-90-percent" / "result.json").read_text())
    assert sum(count for _, count in kept["latency_microseconds"]) == kept["transactions"] > 0
    assert serving(site, PORTS) == {}
    assert left_on_nodes(site) == []
    # Whoever reads arguments, logs or the store sees no password.
    assert len(passwords) == 1
    assert seen == set()
    (password,) = passwords
    for path in site.home.rglob("*"):
        if path.is_file():
            assert password not in path.read_bytes(), path


@pytest.mark.needs_root
def test_a_killed_server_costs_no_committed_transaction(site: Cli, tmp_path: Path) -> None:
    # However short the load that is asked for, it lasts until the server is back.
    file = written(tmp_path, "kill", fault="kill", mode="write_only", transactions=400)
    figures = figures_of_fault(site, file, "saturation", "load_50_percent")
    assert figures["timed_transactions"] >= 400
    assert serving(site, PORTS) == {}


@pytest.mark.needs_root
@pytest.mark.soak
def test_a_committed_transaction_that_is_gone_is_found(site: Cli, tmp_path: Path) -> None:
    """Somebody deletes one row of the ledger behind the client's back."""
    attempts = site.home / "attempts"
    before = set(attempts.glob("*/*/load-25-percent"))
    address = next(row.address for row in state_of(site).nodes if row.name == "worker2")
    file = site.home / "nodes" / "master" / "galera" / "client.cnf"
    client = ("mariadb", f"--defaults-file={file}", f"--host={address}", "--port=8011", "bench")
    statement = "DELETE FROM ledger WHERE phase = 1 AND thread = 2 ORDER BY number LIMIT 1"

    def delete() -> None:
        wait_until(
            lambda: set(attempts.glob("*/*/load-25-percent")) - before, seconds=120, what="load"
        )
        reaching(site, "master").run([*client, "-e", statement])

    other = threading.Thread(target=delete)
    other.start()
    try:
        site("run", written(tmp_path, "gone", seconds=3), code=9)
    finally:
        other.join()
    attempt = latest(site)["attempt"]
    assert attempt["state"] == "failed"
    words = (
        r"saturation: transaction \d+ of client 2 was told as committed, and is not in the ledger"
    )
    assert re.match(words, attempt["reason"]), attempt["reason"]
    assert serving(site, PORTS) == {}


@pytest.mark.needs_root
@pytest.mark.soak
def test_a_database_of_a_killed_driver_is_found_and_ended(site: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, "killed", mode="read_only")
    kill_while_it_serves(site, file)
    assert set(serving(site, PORTS)) == {"master", "worker1", "worker2", "worker3"}

    summary = site.json("run", file, "--resume")["summary"]

    assert (summary["ok"], summary["planned"]) == (1, 1)
    assert serving(site, PORTS) == {}


def test_too_few_workers_and_tables_larger_than_the_disk_are_refused(
    site: Cli, tmp_path: Path
) -> None:
    site("run", written(tmp_path, "two", workers=2), code=5)
    assert "at least 3 workers, not 2" in site.stderr
    large = Path(written(tmp_path, "large"))
    large.write_text(large.read_text().replace("rows = 2000", "rows = 2000000000"))
    site("run", str(large), code=5)
    assert "but the nodes' disk has" in site.stderr


@pytest.mark.soak
def test_a_port_in_use_is_refused(site: Cli, tmp_path: Path) -> None:
    with held_port(reaching(site, "worker1"), 8012):
        site("run", written(tmp_path, "taken"), code=9)
        reason = latest(site)["attempt"]["reason"]
        assert "on node worker1 another program already listens on port 8012" in reason


@pytest.mark.needs_root
@pytest.mark.soak
def test_a_server_without_its_network_costs_no_committed_transaction(
    site: Cli, tmp_path: Path
) -> None:
    # Longer than the balancer's three checks and Galera's patience: all must notice it.
    file = written(tmp_path, "link", fault="link", down_seconds=5)
    figures_of_fault(site, file, "saturation")
    assert serving(site, PORTS) == {}


@pytest.mark.soak
@pytest.mark.usefixtures("fetched")
def test_an_ordinary_user_is_told_why_there_is_no_database_without_root(
    open_folder: Path, cache: Path, java_home: Path, tmp_path: Path
) -> None:
    home, is_root = open_folder / "home", os.geteuid() == 0
    home.mkdir()
    if is_root:
        os.chown(home, NOBODY, NOBODY)
    file = open_folder / "campaign.toml"
    file.write_text(Path(written(tmp_path, "nobody", fault="kill")).read_text())
    with as_nobody(cache, open_folder) as user:
        program = Cli(home, cache, java_home, prefix=user)
        program("init", "--workers", "3", "--subnet", "198.18.213.0/24")
        try:
            program("up")
            program("run", str(file), code=9)
            assert "rsync, which copies the data" in latest(program)["attempt"]["reason"]
        finally:
            program("down", "--wipe")
