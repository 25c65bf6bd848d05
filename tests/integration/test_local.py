"""This machine itself as the one node, by an ordinary user to whom namespaces are forbidden."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boardcluster.cluster.processes import leftover_processes
from boardcluster.cluster.state import load_state
from boardcluster.store import Store
from tests.integration.conftest import Cli
from tests.waiting import wait_until

_FORBID = "echo 0 >/proc/sys/user/max_user_namespaces && echo ready && exec sleep infinity"
_SHUFFLE = 13562
"""Hadoop's ShuffleHandler has no setting for its address; it asks for the job's token."""

_LISTENING = "0A"


@pytest.fixture(scope="module")
def forbidden() -> Iterator[tuple[str, ...]]:
    """What carries a program into a user namespace, as an ordinary user who can make no other."""
    user = ("unshare", "--user", "--map-user=65534", "--map-group=65534", "--keep-caps")
    with subprocess.Popen([*user, "sh", "-c", _FORBID], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        yield ("nsenter", "-t", str(holder.pid), "--user", "--preserve-credentials", "--")
        holder.kill()


@pytest.fixture(scope="module")
def up(
    tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli], forbidden: tuple[str, ...]
) -> Iterator[Cli]:
    program = cli(tmp_path_factory.mktemp("local") / "home", prefix=forbidden)
    program("init", "--kind", "local")
    try:
        program("up")
        yield program
    finally:
        program("down", "--wipe")


def identity(program: Cli) -> str:
    state = load_state(program.home)
    assert state is not None
    return state.identity


def test_namespaces_are_really_forbidden_here(forbidden: tuple[str, ...]) -> None:
    for kinds in (["--user"], ["--net"]):
        done = subprocess.run(
            [*forbidden, "unshare", *kinds, "true"], capture_output=True, text=True, check=False
        )
        assert done.returncode != 0
        assert "unshare failed" in done.stderr
    user = subprocess.run([*forbidden, "id", "-u"], capture_output=True, text=True, check=True)
    assert user.stdout.strip() == "65534"


def test_every_daemon_is_alive_and_its_page_opens_here(up: Cli) -> None:
    seen = up.json("status")
    assert (seen["phase"], seen["kind"], seen["browsable"]) == ("up", "local", True)
    assert sorted(row["name"] for row in seen["daemons"]) == [
        *("datanode", "jobhistory", "namenode", "nodemanager", "resourcemanager", "sparkhistory")
    ]
    for row in seen["daemons"]:
        assert row["alive"]
        with urllib.request.urlopen(row["url"], timeout=20) as page:
            assert page.status == 200


def test_daemons_listen_on_the_loopback_address_alone(up: Cli) -> None:
    sockets = set()
    for row in up.json("status")["daemons"]:
        for entry in Path(f"/proc/{row['pid']}/fd").iterdir():
            with contextlib.suppress(OSError):
                sockets.add(str(entry.readlink()))
    listening = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and f"socket:[{fields[9]}]" in sockets:
                address, port = fields[1].rsplit(":", 1)
                listening.append((address, int(port, 16)))
    assert len(listening) > 15
    assert [port for address, port in listening if address != "0100007F"] == [_SHUFFLE]


def test_another_cluster_is_refused_and_the_ports_are_named(
    up: Cli, tmp_path: Path, cli: Callable[..., Cli]
) -> None:
    other = cli(tmp_path / "home", prefix=up.prefix)
    other("init", "--kind", "local")
    other("up", code=5)
    assert "another program already listens on port" in other.stderr
    assert "8088 (resourcemanager-web)" in other.stderr
    assert load_state(other.home) is None
    assert up.json("status")["phase"] == "up"


def test_results_say_where_they_come_from(up: Cli, tmp_path: Path) -> None:
    small = ("--size", "1MB", "--repetitions", "1")
    done = up.json("run", "wordcount", "--engine", "mapreduce", *small)
    (result,) = done["results"]
    fingerprint = result["attempt"]["fingerprint"]
    assert (fingerprint["kind"], fingerprint["emulated"]) == ("local", False)
    assert fingerprint["security"] == "local"
    assert result["measurement"]["verification"]["records"] > 0
    up("report", "--tainted", "--output", str(tmp_path / "report"))
    text = (tmp_path / "report" / "report.md").read_text()
    assert "**local: the one node is the driver's own machine, not a board**" in text
    assert "namespaces" not in text


def test_hpl_is_built_with_openblas_and_dates_its_core_phase(up: Cli) -> None:
    """By an ordinary user, without installing anything; a small system, so nothing is searched."""
    up("run", "hpl", "--size", "8MB", "--repetitions", "1")

    with Store.open(up.home, read_only=True) as store:
        rows = [row for campaign in store.campaigns() for row in store.results(campaign.id)]
    (found,) = (row for row in rows if row.trial.workload == "hpl")
    assert found.attempt is not None
    assert found.measurement is not None, found.attempt.reason
    assert found.attempt.fingerprint.blas.startswith("OpenBLAS ")
    assert "kernels for" in found.attempt.fingerprint.blas
    figures, phases = found.measurement.figures, found.measurement.phases_seconds
    assert (figures["n"], figures["nb"]) == (896, 128)
    assert phases["solve/core"] == pytest.approx(figures["solve_seconds"], rel=0.2, abs=0.02)
    assert phases["solve/core"] < phases["solve"]


def test_down_finds_the_containers_of_a_killed_driver(up: Cli) -> None:
    mark = identity(up)

    def containers() -> int:
        found = 0
        for pid in leftover_processes(mark):
            with contextlib.suppress(OSError):
                found += b"CONTAINER_ID=" in Path(f"/proc/{pid}/environ").read_bytes()
        return found

    wait_until(lambda: containers() == 0, "the end of earlier containers", seconds=60)
    with up.start("run", "pi", "--engine", "mapreduce", "--repetitions", "1") as driver:
        wait_until(lambda: containers() > 0, "a container", seconds=120, pause_seconds=0.2)
        driver.kill()
        driver.communicate()
    assert containers() > 0
    up("down")
    assert leftover_processes(mark) == []
    assert load_state(up.home) is None


def test_the_demo_takes_a_local_node_and_says_so(
    tmp_path: Path, cli: Callable[..., Cli], forbidden: tuple[str, ...]
) -> None:
    program = cli(tmp_path / "home", prefix=forbidden)
    program("demo", "--workers", "2", "--size", "1MB", code=5)
    assert "namespaces" in program.stderr

    said, mark = "", ""
    with program.start("demo", "--size", "1MB", "--repetitions", "1") as demo:
        assert demo.stderr is not None
        for line in demo.stderr:
            said += line
            if "up: 1 node" in line:
                mark = identity(program)
                demo.send_signal(signal.SIGINT)
        demo.communicate()
    assert demo.returncode == 130, said
    assert mark, said
    assert "so the demo runs on one local node, which is this machine itself" in said
    assert leftover_processes(mark) == []
    assert load_state(program.home) is None
    assert not (program.home / "nodes").exists()
