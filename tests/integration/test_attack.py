"""The attack of the closed boards' tests works: it gets what nothing closes on emulated nodes.

Those are closed to web pages alone, which can submit nothing and change nothing.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boardcluster.cluster.kinds.emulated import KIND
from boardcluster.cluster.state import load_state
from boardcluster.remote.netns import enter
from boardcluster.services.daemons import daemons_of, ports_of
from boardcluster.services.declaration import read_spec
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


def test_whoever_is_on_a_node_gets_everything_but_submission_by_web(up: Cli) -> None:
    state = load_state(up.home)
    assert state is not None
    worker = state.nodes[-1]
    done = subprocess.run(
        [
            *enter(worker.pid, own_user=state.own_user, kinds="n"),
            *(sys.executable, "-I", "-S", str(Path(__file__).with_name("attack.py"))),
            *("--user", KIND.user(state)),  # the owner of its HDFS
            *(node.address for node in state.nodes),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)

    got = {row["what"] for row in found["got"]}
    submission = {"rest_application", "rest_submission"}
    assert got == {attack.__name__ for attack in ATTACKS} - submission | {"web_page"}
    refused = {row["evidence"][:8] for row in found["refused"] if row["what"] in submission}
    assert refused <= {"HTTP 403", "[Errno 1"}, found["refused"]  # workers serve no such page
    assert "HTTP 403" in refused
    addresses = {node.name: node.address for node in state.nodes}
    for kind, node in daemons_of(read_spec(up.home / "cluster.toml")):
        assert set(ports_of(kind)) <= set(found["open"][addresses[node.name]]), kind.name


def test_who_did_it_is_written_down(up: Cli) -> None:
    """In HDFS, under the name that was stated; YARN's file is there, and nothing was submitted."""
    state = load_state(up.home)
    assert state is not None
    logs = up.home / "nodes" / "master" / "logs"
    before = len((logs / "namenode-audit.log").read_text().splitlines())
    place = "/webhdfs/v1/audited?op=MKDIRS&user.name=mallory"
    program = (
        "import http.client, sys\n"
        "line = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=10)\n"
        "line.request('PUT', sys.argv[3], headers={'X-XSRF-HEADER': 'x'})\n"
        "print(line.getresponse().status)"
    )
    prefix = enter(state.nodes[0].pid, own_user=state.own_user, kinds="n")
    words = [*prefix, sys.executable, "-I", "-S", "-c", program, state.nodes[0].address]
    subprocess.run([*words, "9870", place], check=True, capture_output=True)
    rows = (logs / "namenode-audit.log").read_text().splitlines()[before:]
    assert any("ugi=mallory" in row and "cmd=mkdirs" in row for row in rows), rows
    assert "FSNamesystem.audit" not in (logs / "namenode.log").read_text()
    assert (logs / "resourcemanager-audit.log").exists()
    assert not list(up.home.rglob("unused.log"))


BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux) Gecko/20100101 Firefox/140.0"}
REQUESTS = (
    ("PUT", 9870, "/webhdfs/v1/page?op=MKDIRS&user.name=root", 400),
    ("DELETE", 9870, "/webhdfs/v1/user?op=DELETE&recursive=true&user.name=root", 400),
    ("POST", 8088, "/ws/v1/cluster/apps/new-application", 400),
    ("PUT", 8088, "/ws/v1/cluster/apps/application_1_0001/state?user.name=root", 400),
)
"""What a page makes a browser ask for, and the refusal of what lacks a header that pages cannot set
for another host."""
_ASK = """
import http.client, json, sys
address, browser, rows = json.loads(sys.argv[1])
for method, port, path, _ in rows:
    line = http.client.HTTPConnection(address, port, timeout=10)
    line.request(method, path, headers=browser)
    print(line.getresponse().status)
"""


def test_a_web_page_changes_nothing(up: Cli) -> None:
    state = load_state(up.home)
    assert state is not None
    master = state.nodes[0]
    done = subprocess.run(
        [
            *enter(master.pid, own_user=state.own_user, kinds="n"),
            *(sys.executable, "-I", "-S", "-c", _ASK),
            json.dumps([master.address, BROWSER, REQUESTS]),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [int(line) for line in done.stdout.split()] == [row[3] for row in REQUESTS]
