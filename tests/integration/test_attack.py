"""The attack of the closed boards' tests works: where nothing is closed, it gets everything."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boardcluster.cluster.state import load_state
from boardcluster.remote.netns import enter
from boardcluster.services.daemons import daemons_of, ports_of
from boardcluster.services.operation import read_spec
from tests.integration.attack import ATTACKS
from tests.integration.conftest import Cli

SUBNET = "198.18.48.0/24"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli]) -> Iterator[Cli]:
    program = cli(tmp_path_factory.mktemp("attack") / "home")
    program("init", "--workers", "1", "--subnet", SUBNET)
    program("up")
    yield program
    program("down", "--wipe")


def test_an_open_cluster_loses_everything(up: Cli) -> None:
    state = load_state(up.home)
    assert state is not None
    worker = state.nodes[-1]
    done = subprocess.run(
        [
            *enter(worker.pid, own_user=state.own_user, kinds="n"),
            *(sys.executable, "-I", "-S", str(Path(__file__).with_name("attack.py"))),
            *("--user", "root"),  # the owner of an emulated cluster's HDFS
            *(node.address for node in state.nodes),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)

    got = {row["what"] for row in found["got"]}
    assert got == {attack.__name__ for attack in ATTACKS} | {"web_page"}, found["refused"]
    addresses = {node.name: node.address for node in state.nodes}
    for kind, node in daemons_of(read_spec(up.home / "cluster.toml")):
        assert set(ports_of(kind)) <= set(found["open"][addresses[node.name]]), kind.name
