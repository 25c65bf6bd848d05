"""A replicated volume on a real cluster: what its bricks hold is proved, and faults are found."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boardcluster.campaign.execution import ATTEMPT_VARIABLE
from boardcluster.cluster.kinds.emulated import nodes as emulated
from tests.integration.conftest import Cli
from tests.integration.services import (
    held_port,
    kill_while_it_serves,
    latest,
    reaching,
    serving,
    state_of,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.needs_root

CAMPAIGN = """\
[campaign]
name = "{name}"
repeat_tainted = 0  # this machine has other work
repetitions = 1

[[matrix]]
workload = "filestore"
size = "128 MiB"
replication = {replication}
fault = "{fault}"
parameters.filestore.files = 120
parameters.filestore.ping_seconds = {ping}
parameters.filestore.down_seconds = {down}
"""

PORT = 24007


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli]) -> Iterator[Cli]:
    """One cluster for all."""
    program = cli(tmp_path_factory.mktemp("filestore") / "home")
    program("init", "--workers", "2", "--subnet", "198.18.221.0/24")
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
    replication: int = 2,
    ping: int = 42,
    down: int = 3,
) -> str:
    path = folder / "campaign.toml"
    path.write_text(
        CAMPAIGN.format(name=name, fault=fault, replication=replication, ping=ping, down=down)
    )
    return str(path)


def mounted(program: Cli) -> bool:
    """Whether the master, or this machine, still has a volume mounted."""
    own = Path("/proc/self/mounts").read_text()
    return "fuse.glusterfs" in own + reaching(program, "master").run(["cat", "/proc/mounts"]).text


def marked(program: Cli, mark: str) -> list[str]:
    """Processes of nodes, also root's, whose environment holds a mark."""
    look = f"grep -l -a -s -e {mark} /proc/[0-9]*/environ; true"
    state, found = state_of(program), []
    for node in state.nodes:
        admin = emulated.admin_of(node, state)
        own = admin.run(["sh", "-c", look]).text.split()
        found += [f"{node.name} {place}" for place in own]
    return found


def test_a_volume_survives_a_killed_worker_and_is_proved_on_every_brick(
    site: Cli, tmp_path: Path
) -> None:
    site("run", written(tmp_path, "kill", fault="kill"))
    row = latest(site)
    assert row["attempt"]["state"] == "ok", row["attempt"]["reason"]
    figures = row["measurement"]["figures"]
    assert figures["worker_away_seconds"] >= 3
    assert figures["client_without_it_seconds"] > 0
    assert figures["recovery_seconds"] > figures["heal_seconds"] > 0
    assert figures["failed_operations"] == 0
    for name in ("sequential_write_4_kib", "random_read_16_mib"):
        order = [figures[f"{name}_latency_{p}_microseconds"] for p in ("p50", "p99", "p999")]
        assert 0 < order[0] <= order[1] <= order[2]
        assert figures[f"{name}_megabytes_per_second"] > 0
    assert row["measurement"]["verification"]["records"] == 12 + 120
    folder = site.home / row["attempt"]["artefacts"]
    kept = json.loads((folder / "random-write" / "fio.json").read_text())
    assert sum(kept["jobs"][0]["write"]["clat_ns"]["bins"].values()) == 2048
    assert serving(site, [PORT]) == {}
    assert not mounted(site)
    assert not list((site.home / "nodes").glob("*/gluster/brick-*"))


@pytest.mark.soak
def test_a_byte_that_one_brick_changed_is_found(site: Cli, tmp_path: Path) -> None:
    """Behind the volume's back, when the last file was written and before the bricks are read."""
    attempts, bricks = site.home / "attempts", site.home / "nodes" / "worker2" / "gluster"
    before = set(attempts.glob("*/*/tree-make"))

    def spoil() -> None:
        wait_until(
            lambda: set(attempts.glob("*/*/tree-make")) - before,
            seconds=240,
            what="the small files",
        )
        with next(bricks.glob("brick-*/512_kib-0")).open("r+b") as stream:
            stream.seek(700_000)
            byte = stream.read(1)
            stream.seek(700_000)
            stream.write(bytes([byte[0] ^ 1]))

    other = threading.Thread(target=spoil)
    other.start()
    try:
        site("run", written(tmp_path, "spoilt"), code=9)
    finally:
        other.join()
    attempt = latest(site)["attempt"]
    assert attempt["state"] == "failed"
    assert "512_kib-0 on worker2, brick-0 is not what was written" in attempt["reason"]
    assert serving(site, [PORT]) == {}


def test_more_replicas_than_workers_and_a_port_in_use_are_refused(
    site: Cli, tmp_path: Path
) -> None:
    site("run", written(tmp_path, "many", replication=3), code=5)
    assert "replication" in site.stderr
    with held_port(reaching(site, "worker1"), PORT):
        site("run", written(tmp_path, "taken"), code=9)
        reason = latest(site)["attempt"]["reason"]
        assert f"on node worker1 another program already listens on port {PORT}" in reason


@pytest.mark.soak
def test_a_link_that_is_cut_and_back_leaves_every_brick_healed(site: Cli, tmp_path: Path) -> None:
    site("run", written(tmp_path, "link", fault="link", ping=1, down=4))
    row = latest(site)
    assert row["attempt"]["state"] == "ok", row["attempt"]["reason"]
    figures = row["measurement"]["figures"]
    assert figures["client_without_it_seconds"] > 0
    assert serving(site, [PORT]) == {}


@pytest.mark.soak
def test_a_volume_of_a_killed_driver_is_found_and_ended(site: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, "driver")
    kill_while_it_serves(site, file)
    assert serving(site, [PORT]) == {"worker1": [PORT], "worker2": [PORT]}
    kept = (site.home / "attempts").glob("*/*/sequential-write/command.json")
    latest_one = max(kept, key=lambda path: path.stat().st_mtime)
    environment = json.loads(latest_one.read_text())["env"]
    mark = f"{ATTEMPT_VARIABLE}={environment[ATTEMPT_VARIABLE]}"
    assert marked(site, mark)

    site("run", "pi", "--engine", "spark", "--repetitions", "1")

    assert marked(site, mark) == []
    assert serving(site, [PORT]) == {}

    summary = site.json("run", file, "--resume")["summary"]

    assert (summary["ok"], summary["planned"]) == (1, 1)
    assert serving(site, [PORT]) == {}
    assert not mounted(site)
