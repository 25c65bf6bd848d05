"""Discovery and the doctor on boards that are reached by real SSH, with faults that are real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boardcluster.doctor import Where, check_names, load_check
from tests.boards import LOGIN, Boards

pytestmark = pytest.mark.needs_root

FOLDER = "/var/lib/boardcluster"
KEYS = f"/home/{LOGIN}/.ssh/authorized_keys"
BOARD_CHECKS = {
    check.name_on_boards or name
    for name in check_names()
    if (check := load_check(name)).where in (Where.BOARDS, Where.NODES)
}
"""Names of what the doctor finds on boards."""

LOOK = """
import json, sys
from boardcluster.cluster.kinds.boards.nodes import BoardNodes
from boardcluster.cluster.discovery import discover
from boardcluster.store import to_json
from pathlib import Path
remote = BoardNodes(Path(sys.argv[1])).reach("pi0", "pi0", user=sys.argv[2], folder="")
print(json.dumps(to_json(discover(remote))))
"""


class Lab:
    """Four boards and a cluster.toml of them; nothing is installed there."""

    def __init__(self, boards: Boards, home: Path) -> None:
        self.boards = boards
        self.home = home

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the program on the driver."""
        command = [sys.executable, "-m", "boardcluster", *arguments, "--home", str(self.home)]
        return self.boards.on_driver(command, check=False)

    def doctor(self, *arguments: str) -> list[dict[str, Any]]:
        """What the doctor finds."""
        done = self.run("doctor", "--json", *arguments)
        assert done.returncode in (0, 5), done.stderr
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        return rows

    def faults(self, *arguments: str) -> set[tuple[str, str, str]]:
        """Check, board and severity of what is wrong with boards."""
        return {
            (row["check"], row["node"], row["severity"])
            for row in self.doctor(*arguments)
            if not row["ok"] and row["check"] in BOARD_CHECKS
        }

    def look(self, user: str) -> dict[str, Any]:
        """What discovery finds on pi0, asked as a user."""
        command = [sys.executable, "-c", LOOK, str(self.home), user]
        facts: dict[str, Any] = json.loads(self.boards.on_driver(command).stdout)
        return facts

    def sh(self, index: int, program: str) -> None:
        """Plant a fault on a board, not over SSH."""
        self.boards.run_on(index, ["sh", "-ec", program])


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("doctor")
    with Boards(4, folder=folder / "run", subnet="198.18.46.0/24") as boards:
        made = Lab(boards, folder / "home")
        hosts = ",".join(f"pi@{node.name}" for node in boards.nodes)
        done = made.run("init", "--hosts", hosts, "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        yield made


@pytest.mark.parametrize("user", ["", "root"])
def test_discovery_of_a_board(lab: Lab, user: str) -> None:
    facts = lab.look(user)
    assert (facts["name"], facts["login_user"], facts["sudo"]) == ("pi0", "pi", "works")
    assert facts["own_addresses"] == ["127.0.1.1"]
    assert [link["addresses"] for link in facts["links"]] == [[f"{lab.boards.nodes[0].address}/24"]]
    assert facts["service_manager"] == "none"
    assert facts["architecture"] == os.uname().machine
    assert any(java["feature"] == 17 for java in facts["javas"])
    assert facts["folder_mount"] == "/"
    assert len(facts["host_keys"]) == 2
    assert abs(facts["clock_offset_seconds"]) <= facts["clock_error_seconds"] + 0.05


def test_fresh_boards_and_nothing_is_changed(lab: Lab) -> None:
    lab.sh(1, "touch /tmp/before")
    rows = lab.doctor()
    assert {row["check"] for row in rows} >= BOARD_CHECKS
    assert not [row for row in rows if "itself failed" in row["seen"]]
    errors = {row["check"] for row in rows if not row["ok"] and row["severity"] == "error"}
    assert not errors & BOARD_CHECKS
    named = {row["node"] for row in rows if row["check"] == "own_name" and not row["ok"]}
    assert named == {"pi0", "pi1", "pi2", "pi3"}
    places = "/etc /opt /usr /var/lib /home -xdev"
    done = lab.boards.run_on(1, ["sh", "-c", f"find {places} -newer /tmp/before"])
    assert done.stdout == ""


def test_planted_faults_are_found_and_the_harmless_one_is_mended(lab: Lab) -> None:
    before = lab.faults()
    version = "current/VERSION"
    lab.sh(0, f"mkdir -p {FOLDER}/data/namenode/current")
    lab.sh(0, f"echo clusterID=CID-1 > {FOLDER}/data/namenode/{version}")
    lab.sh(1, f"mkdir -p {FOLDER}/data/datanode/current")
    lab.sh(1, f"echo clusterID=CID-2 > {FOLDER}/data/datanode/{version}")
    lab.sh(1, "echo StrictModes no >> /etc/ssh/sshd_config; kill -HUP $(cat /run/sshd.pid)")
    lab.sh(1, f"chmod g+w {KEYS}")
    listen = "import socket, time; s = socket.create_server(('', 8088)); time.sleep(600)"
    lab.sh(2, f'setsid python3 -c "{listen}" > /dev/null 2>&1 &')
    lab.sh(2, "setsid bash -c 'exec -a apt-get sleep 600' > /dev/null 2>&1 &")
    lab.sh(2, "ip link add second type veth peer name other; ip link set second up")
    lab.sh(2, "ip address add 198.18.46.78/24 dev second noprefixroute")
    lab.sh(3, f"mkdir -p {FOLDER}; mount -t tmpfs -o size=8m full {FOLDER}")
    lab.sh(3, f"head -c 7900000 /dev/zero > {FOLDER}/filling")
    machine_id = (lab.boards.nodes[0].root / "etc/machine-id").read_text()
    lab.sh(3, f"echo {machine_id.strip()} > /etc/machine-id")
    found = lab.faults()
    assert found - before == {
        ("cluster_ids", "pi1", "error"),
        ("ssh_permissions", "pi1", "warning"),
        ("open_ports", "pi2", "warning"),
        ("board_updates", "pi2", "warning"),
        ("interfaces", "pi2", "error"),
        ("data_in_memory", "pi3", "error"),
        ("board_disk", "pi3", "error"),
        ("machine_ids", "", "warning"),
    }
    mended = lab.faults("--fix", "--yes")
    assert found - mended == {("ssh_permissions", "pi1", "warning")}
    assert mended <= found
    mode = lab.boards.run_on(1, ["stat", "--format=%a", KEYS]).stdout
    assert mode == "600\n"
    for index, command in ((2, "ip link del second"), (3, f"umount {FOLDER}")):
        lab.sh(index, command)


def test_boards_that_refuse_or_do_not_answer_are_named_and_the_others_examined(lab: Lab) -> None:
    lab.boards.sudo_asks(1)
    lab.boards.new_host_key(2)
    lab.boards.cut(3)
    rows = [row for row in lab.doctor() if not row["ok"]]
    assert [row["node"] for row in rows if row["check"] == "sudo_asks"] == ["pi1"]
    reachable = {row["node"]: row for row in rows if row["check"] == "reachable"}
    assert set(reachable) == {"pi2", "pi3"}
    assert "host key" in reachable["pi2"]["seen"]
    assert all(row["fix"] for row in reachable.values())
    assert {row["node"] for row in rows if row["check"] == "own_name"} == {"pi0"}
