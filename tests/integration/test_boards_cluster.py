"""A cluster on boards that are reached by real SSH only: made ready, worked on, attacked, left."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from boardcluster.store.samples import read_telemetry
from boardcluster.web.readings import READINGS
from tests.boards import Boards
from tests.waiting import wait_until

pytestmark = pytest.mark.needs_root

COUNT = 2
SUBNET = "198.18.45.0/24"
INSTALLED = ("/opt/boardcluster", "/etc/boardcluster", "/var/lib/boardcluster")
ARCHIVES = "/opt/boardcluster/archives"
ATTACK = Path(__file__).with_name("attack.py")
SSH_PORT = 22


class Lab:
    """Boards, and the program as a user on the driver runs it."""

    def __init__(self, boards: Boards, home: Path, cache: Path) -> None:
        self.boards = boards
        self.home = home
        self.cache = cache
        self.stderr = ""
        self.untouched = [self.snapshot(index) for index in range(len(boards.nodes))]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.boards.driver_prefix, sys.executable, "-m", "boardcluster", *arguments],
            env={
                **os.environ,
                **self.boards.driver_env,
                "BOARDCLUSTER_HOME": str(self.home),
                "BOARDCLUSTER_CACHE": str(self.cache),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, code: int = 0, timeout: float = 600) -> str:
        with self.start(*arguments) as process:
            out, self.stderr = process.communicate(timeout=timeout)
        assert process.returncode == code, (
            f"{arguments}: {process.returncode}\n{self.stderr}\n{out}"
        )
        return out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))

    def declare(self, *options: str) -> None:
        """Write cluster.toml as ``init`` proposes it, but with the memory of small boards."""
        hosts = ",".join(node.name for node in self.boards.nodes)
        self("init", "--hosts", hosts, "--yes", "--force", *options)
        path = self.home / "cluster.toml"
        path.write_text(re.sub(r'memory = ".*"', 'memory = "4 GiB"', path.read_text()))

    def on(self, index: int, script: str) -> str:
        return self.boards.run_on(index, ["sh", "-c", script], check=False).stdout

    def attack(self, *prefix: str) -> dict[str, Any]:
        """What somebody gets from the boards, from wherever the prefix leads."""
        addresses = [node.address for node in self.boards.nodes]
        done = subprocess.run(
            [*prefix, "python3", "-", *addresses],
            input=ATTACK.read_text(),
            capture_output=True,
            text=True,
            check=True,
            timeout=240,
        )
        got: dict[str, Any] = json.loads(done.stdout)
        return got

    def snapshot(self, index: int) -> dict[str, str]:
        """What an installation could change on a board: users, packages, files, rules."""
        scripts = {
            "users": "cat /etc/passwd /etc/group /etc/shadow",
            "packages": "dpkg -l | sort",
            "hosts": "cat /etc/hosts",
            "etc": "find /etc -type f ! -name '*-' -exec sha256sum {} + | sort -k2",
            "files": "find /opt /var/lib /usr/local -maxdepth 2 | sort",
            "rules": "nft list ruleset",
        }
        return {name: self.on(index, script) for name, script in scripts.items()}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, cache: Path, fetched: None) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("boards")
    with Boards(COUNT, folder=folder, subnet=SUBNET) as boards:
        yield Lab(boards, folder / "home", cache)


@pytest.fixture(scope="module")
def up(lab: Lab) -> Lab:
    """Boards whose cluster is up, as one that was killed half-way leaves them in the end."""
    if not (lab.home / "state.json").exists():
        lab.declare()
    lab("up", "--yes")
    return lab


def test_nobody_is_believed_before_a_person_has_seen_the_keys(lab: Lab) -> None:
    hosts = ",".join(node.name for node in lab.boards.nodes)
    lab("init", "--hosts", hosts, code=8)
    assert "there is no terminal to ask on" in lab.stderr
    assert lab.stderr.count("SHA256:") == COUNT
    assert not (lab.home / "cluster.toml").exists()
    assert not (lab.home / "known_hosts").exists()


def test_init_looks_at_the_boards_and_changes_nothing(lab: Lab) -> None:
    lab.declare()
    assert [lab.snapshot(index) for index in range(COUNT)] == lab.untouched
    text = (lab.home / "cluster.toml").read_text()
    assert 'kind = "boards"' in text
    assert 'security = "closed"' in text
    assert f'address = "{lab.boards.nodes[0].address}"' in text


def test_a_dry_run_shows_each_change_and_makes_none(lab: Lab) -> None:
    lab.declare()
    changes = lab.json("up", "--dry-run")
    assert {row["node"] for row in changes} == {node.name for node in lab.boards.nodes}
    words = " ".join(row["words"] for row in changes if row["node"] == "pi0")
    for part in ("user boardcluster", "/etc/hosts", "firewall", "/opt/boardcluster/engines"):
        assert part in words
    assert lab.snapshot(0) == lab.untouched[0]


def test_a_full_disk_is_refused_before_anything_is_changed(lab: Lab) -> None:
    lab.declare()
    lab.boards.run_on(1, ["mount", "-t", "tmpfs", "-o", "size=50m", "small", "/opt"])
    try:
        before = lab.snapshot(0)
        lab("up", code=5)
        assert "pi1" in lab.stderr
        assert "are free" in lab.stderr
        assert lab.snapshot(0) == before
    finally:
        lab.boards.run_on(1, ["umount", "/opt"])


def test_sudo_that_asks_is_found_before_anything_is_changed(lab: Lab) -> None:
    lab.declare()
    rule = lab.on(1, "cat /etc/sudoers.d/010_pi-nopasswd")
    lab.boards.sudo_asks(1)
    try:
        before = lab.snapshot(0)
        lab("up", code=8)
        assert "sudo" in lab.stderr
        assert "NOPASSWD" in lab.stderr
        assert lab.snapshot(0) == before
    finally:
        lab.on(1, f"umask 226; echo '{rule.strip()}' >/etc/sudoers.d/010_pi-nopasswd")


def test_what_is_killed_half_way_converges(lab: Lab) -> None:
    """That it is taken back exactly: below, of one board."""
    lab.declare()
    with lab.start("up") as killed:
        wait_until(
            lambda: "hadoop" in lab.on(1, "ls /opt/boardcluster/engines/*"),
            seconds=60,
            what="the copy of the engines",
        )
        killed.kill()
    lab("up")
    assert lab.json("status")["phase"] == "up"
    assert lab.json("up", "--dry-run") == []


def test_a_second_up_changes_nothing(up: Lab) -> None:
    identity = json.loads((up.home / "state.json").read_text())["identity"]
    up("up")
    assert "nothing to change" in up.stderr
    assert json.loads((up.home / "state.json").read_text())["identity"] == identity


def test_daemons_share_archives_that_one_board_made(up: Lab) -> None:
    made = [up.on(index, f"cat {ARCHIVES}/made.json") for index in range(COUNT)]
    assert made[0]
    assert set(made) == {made[0]}
    for index in range(COUNT):
        stems = {Path(name).stem for name in up.on(index, f"cd {ARCHIVES} && ls *.jsa").split()}
        assert stems == {"mapreduce", "master", "spark", "worker"}
        daemons = up.on(index, "pgrep -u boardcluster java").split()
        assert daemons
        for pid in daemons:
            assert f"{ARCHIVES}/" in up.on(index, f"cat /proc/{pid}/maps"), pid


def test_daemons_run_without_rights(up: Lab) -> None:
    for index in range(COUNT):
        rows = up.on(index, "ps -eo user:20,comm | grep java").splitlines()
        assert rows
        assert {row.split()[0] for row in rows} == {"boardcluster"}
    assert (
        "password"
        in up.boards.run_on(0, ["sudo", "-n", "true"], user="boardcluster", check=False).stderr
    )


HEAD = """\
[campaign]
name = "everything"
seed = 5
repetitions = 1
repeat_tainted = 0  # this machine has other work; that such runs are repeated is tested elsewhere
"""

BOTH = ("mapreduce", "spark")

ON_EITHER = """
[[matrix]]
workload = {workloads}
engine = {engines}
size = "8 MB"
"""

OTHERS = """
[[matrix]]
workload = "dfsio"
engine = {engines}
size = "8 MB"
parameters.dfsio.files = 2

[[matrix]]
workload = "hpl"
size = "8 MB"
parameters.hpl.ranks_per_node = 1
parameters.hpl.binary = "hpcc"  # fetches nothing; what is built here is in test_local.py

[[matrix]]
workload = "netpipe"
parameters.netpipe.largest_bytes = "1 MiB"
parameters.netpipe.repeats = 1
parameters.netpipe.transport = ["tcp", "mpi"]

[[matrix]]
workload = "teragen+pi"
engine = "mapreduce"
size = "1 MB"
concurrency = 2
parameters.pi.maps = 1
parameters.pi.samples = 100000
"""

ON_SPARK = """
# On MapReduce these two run in the mix.
[[matrix]]
workload = "teragen"
engine = "spark"
size = "8 MB"

[[matrix]]
workload = "pi"
engine = "spark"
parameters.pi.maps = 2
parameters.pi.samples = 100000
"""


def either(*workloads: str, engines: Sequence[str] = BOTH) -> str:
    return ON_EITHER.format(workloads=json.dumps(workloads), engines=json.dumps(engines))


EVERY_WORKLOAD = (
    HEAD
    + either("terasort", "grep", engines=["spark"])
    + either("teravalidate", engines=["mapreduce"])
    + OTHERS.format(engines=json.dumps(["mapreduce"]))
)
"""Each on one engine, and each engine with several; WordCount is in test_cluster.py."""

EVERYTHING = (
    HEAD
    + either("terasort", "teravalidate", "grep")
    + OTHERS.format(engines=json.dumps(BOTH))
    + ON_SPARK
)
"""Each on every engine that it is for."""


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("campaign", "planned"),
    [(EVERY_WORKLOAD, 8), pytest.param(EVERYTHING, 14, marks=pytest.mark.soak)],
    ids=["one-engine-each", "every-engine"],
)
def test_every_workload_killed_twice_and_resumed(
    up: Lab, tmp_path: Path, campaign: str, planned: int
) -> None:
    """On a closed cluster, and with a driver that dies at any moment: I1 to I4, over SSH."""
    file = tmp_path / "campaign.toml"
    file.write_text(campaign)
    seed = time.time_ns()
    draw = random.Random(seed)
    for resume in ((), ("--resume",)):
        with up.start("run", str(file), *resume) as process:
            patience = draw.uniform(8, 20)
            try:
                process.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            assert process.returncode == -signal.SIGKILL, f"seed {seed}: it ended by itself"
    # An invalid attempt says nothing about its trial (this machine may be too busy for agents to
    # watch a run of three seconds), so a resume tries again; a job that failed is a fault at once.
    for _ in range(3):
        with up.start("run", str(file), "--resume", "--json") as process:
            out, told = process.communicate(timeout=1500)
        done = json.loads(out)
        attempts = [row["attempt"] for row in done["results"]]
        failed = [
            (each["trial_id"], each["state"], each["reason"])
            for each in attempts
            if each["state"] != "ok"
        ]
        if not any(state == "invalid" for _, state, _ in failed):
            break
    assert not failed, f"seed {seed}: {failed} {told}"
    assert done["summary"]["ok"] == done["summary"]["planned"] == planned, f"seed {seed}: {told}"
    names = {node.name for node in up.boards.nodes}
    for row in done["results"]:
        proof = row["measurement"]["verification"]
        assert proof["expected_sha256"] == proof["actual_sha256"]
        assert row["measurement"]["phases_seconds"]
        assert set(row["measurement"]["node_written_bytes"]) == names
        fingerprint = row["attempt"]["fingerprint"]
        assert fingerprint["security"] == "closed"
        assert not fingerprint["emulated"]
        assert {line.split(":")[0] for line in fingerprint["hardware"]} == names
        assert row["measurement"]["verdict"] in ("valid", "tainted")
        reasons = row["measurement"]["verdict_reasons"]
        # What the driver and the job themselves do on a board is not others' work.
        own = ("java", "sshd", "sudo", "python3")
        found = [each for each in reasons if "other programs" in each]
        assert not [each for each in found for name in own if name in each], reasons
        telemetry = read_telemetry(up.home / row["attempt"]["artefacts"])
        assert telemetry is not None
        assert {node.node for node in telemetry.nodes} == names
        for node in telemetry.nodes:
            assert node.scope == "machine"
            assert {"cpu_iowait_seconds", "group_cpu_seconds/jobs"} <= set(node.columns)
    stored = up.json("results", "--campaign", done["campaign"]["id"])["results"]
    assert {row["trial"]["id"] for row in stored} == {row["trial"]["id"] for row in done["results"]}
    assert len(stored) == done["summary"]["planned"]


def test_boards_are_probed_over_ssh(up: Lab) -> None:
    found = json.loads(
        up("probe", "stream", "tcp-latency", "--node", "pi0", "--node", "pi1", "--json")
    )
    runs = {(row["probe"], row["node"], row["peer"]): row for row in found["runs"]}
    assert set(runs) == {
        *(("stream", node, "") for node in ("pi0", "pi1")),
        *(("tcp-latency", node, peer) for node, peer in (("pi0", "pi1"), ("pi1", "pi0"))),
    }
    for row in runs.values():
        assert row["reason"] == ""
        assert row["figures"]
        assert not row["emulated"]
        assert all(figure["value"] > 0 for figure in row["figures"])


def test_a_job_goes_on_while_connections_drop_and_outside_gets_nothing_but_ssh(up: Lab) -> None:
    with up.start("run", "pi", "--engine", "spark", "--repetitions", "1") as job:
        wait_until(
            lambda: "CoarseGrained" in up.on(0, "ps -eo args") + up.on(1, "ps -eo args"),
            seconds=120,
            what="a Spark executor",
        )
        mapped = (
            f"grep -l {ARCHIVES}/spark.jsa $(pgrep -f CoarseGrained | sed 's:.*:/proc/&/maps:')"
        )
        wait_until(
            lambda: "maps" in up.on(0, mapped) + up.on(1, mapped),
            seconds=90,
            what="an executor that shares an archive",
        )
        # Every session of the driver ends; the server itself stays.
        up.on(0, "kill $(pgrep -f 'sshd: pi')")
        outside = up.attack(*up.boards.outside_prefix)
        inside = up.attack(
            "nsenter", "--target", str(up.boards.nodes[1].pid), "--net", "--mount", "--"
        )
        out, err = job.communicate(timeout=240)
    assert job.returncode == 0, out + err
    assert "1 of 1: ok" in err
    for node in up.boards.nodes:
        assert outside["open"][node.address] == [SSH_PORT]
    assert outside["got"] == []
    # The same attack, from where it gets through the firewall: it can find what is there.
    assert {8020, 8032, 9870} <= set(inside["open"][up.boards.nodes[0].address])


def test_a_second_driver_is_refused_and_disturbs_nothing(up: Lab) -> None:
    other = Lab(up.boards, up.home.with_name("other"), up.cache)
    other.declare()
    before = up.snapshot(0)
    for words in (("up",), ("uninstall", "--yes"), ("down", "--wipe", "--yes")):
        other(*words, code=7)
        assert "another driver" in other.stderr
        assert str(up.home) in other.stderr
    assert up.snapshot(0) == before
    assert up.json("status")["phase"] == "up"


def test_web_pages_open_through_a_tunnel(up: Lab) -> None:
    tunnel = up.start("tunnel", "--offset", "20000")
    try:
        page = ["python3", "-c", _PAGE, "http://127.0.0.1:29870/jmx"]

        def opened() -> bool:
            return "FSNamesystemState" in up.boards.on_driver(page, check=False).stdout

        wait_until(opened, seconds=90, what="the NameNode's page")
        direct = f"http://{up.boards.nodes[0].address}:9870/jmx"
        assert up.boards.on_driver(["python3", "-c", _PAGE, direct], check=False).returncode != 0
    finally:
        tunnel.send_signal(signal.SIGINT)
        assert tunnel.wait(20) == 130
        tunnel.communicate()


_PAGE = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=3).read().decode())"


def test_the_dashboard_shows_the_boards_and_a_run_on_them(up: Lab, tmp_path: Path) -> None:
    """The driver reaches the boards by SSH alone; the page only what the dashboard tells it."""
    names = {node.name for node in up.boards.nodes}
    page = tmp_path / "page"

    def told(kind: str) -> list[Any]:
        events = re.findall(rf"event: {kind}\ndata: (.*)\n", page.read_text())
        return [json.loads(event) for event in events]

    served = up.start("dashboard", "--no-browser", "--port", "8573")
    listener = None
    try:
        assert served.stdout is not None
        address = next(
            found[0] for line in served.stdout if (found := re.findall(r"http://\S+", line))
        )
        with page.open("w") as out:
            listener = subprocess.Popen(
                [*up.boards.driver_prefix, "python3", "-uc", _EVENTS, f"{address}events"],
                stdout=out,
            )

        def sampled() -> set[str]:
            user = 1 + READINGS.index("user")
            rows = [row for event in told("nodes") for row in event["nodes"].items()]
            return {name for name, row in rows if row[user] is not None}

        wait_until(lambda: names <= sampled(), seconds=60, what="a sample of each board")
        *_, state = [hello["state"] for hello in told("hello")] + told("state")
        assert {row["name"] for row in state["nodes"]} == names
        for row in state["nodes"]:
            assert row["daemons"], row
            assert all(daemon["up"] for daemon in row["daemons"]), row
        done = up.json("run", "pi", "--engine", "mapreduce", "--repetitions", "1")["results"][0]
        attempt = f"{done['trial']['id']}/{done['attempt']['number']}"
        [latest, *_] = wait_until(
            lambda: [
                row
                for event in told("campaign")
                for row in (event or {}).get("latest", ())
                if row["run"] == attempt
            ],
            seconds=90,
            what="the verdict",
        )
        assert latest["state"] == "ok"
        assert latest["verdict"] in ("valid", "tainted")
        assert "It took" in latest["words"]
        jobs = [event for event in told("job") if event and event["run"] == attempt]
        parts = [part for event in jobs if event["engine"] for part in event["engine"]["parts"]]
        assert any(part["done"] for part in parts), jobs
        # While the run was measured, what was shown is what its own agents wrote.
        sources = [row for event in told("state") for row in event["nodes"]]
        assert {row["name"] for row in sources if row["source"] == "run"} == names
        assert not [row["error"] for row in sources if row["error"]]
    finally:
        served.send_signal(signal.SIGINT)
        served.communicate(timeout=20)
        if listener is not None:
            listener.wait(20)
    for index in range(COUNT):
        assert "boardcl-relay" not in up.on(index, "ps -eo comm")


_EVENTS = """\
import sys, urllib.request as u
for line in u.urlopen(sys.argv[1], timeout=60):
    sys.stdout.write(line.decode())
"""


def test_a_node_that_loses_its_network_invalidates_the_run_and_is_named(up: Lab) -> None:
    with up.start("run", "pi", "--engine", "mapreduce", "--repetitions", "1") as job:
        wait_until(lambda: "RunJar" in up.on(0, "ps -eo args"), seconds=60, what="the submission")
        up.boards.cut(1)
        began = time.monotonic()
        try:
            _, err = job.communicate(timeout=240)
        finally:
            up.boards.mend(1)
    # HDFS would take 630 s and YARN 600 s. The end includes giving up on connections to the node.
    assert time.monotonic() - began < 240
    assert job.returncode == 7, err
    assert "node_lost" in err
    assert "pi1" in err
    up("down")
    for index in range(COUNT):
        assert "java" not in up.on(index, "ps -eo comm")
    up("up")
    assert "nothing to change" in up.stderr
    assert "class-data" not in up.stderr
    assert "copying" not in up.stderr


@pytest.mark.soak
def test_a_campaign_outlives_a_link_that_is_cut_for_half_a_minute(up: Lab, tmp_path: Path) -> None:
    """The driver loses the board, too, by real SSH; nobody types anything."""
    file = tmp_path / "alone.toml"
    file.write_text(
        '[campaign]\nname = "alone"\nrepetitions = 2\nrepeat_tainted = 0\nloss_wait = "3 min"\n'
        '[[matrix]]\nworkload = "pi"\nengine = "mapreduce"\n'
    )
    with up.start("run", str(file), "--yes") as job:
        wait_until(lambda: "RunJar" in up.on(0, "ps -eo args"), seconds=90, what="the submission")
        up.boards.cut(1)
        try:
            time.sleep(30)
        finally:
            up.boards.mend(1)
        _, err = job.communicate(timeout=400)
    assert job.returncode == 0, err
    latest = max(row["trial"]["campaign_id"] for row in up.json("results")["results"])
    rows = up.json("results", "--all", "--campaign", latest)["results"]
    ended = [(row["attempt"]["state"], row["attempt"]["reason"]) for row in rows]
    assert [state for state, _ in ended] == ["invalid", "ok", "ok"], ended
    assert "node_lost" in ended[0][1]
    assert "pi1" in ended[0][1]


def test_a_changed_host_key_stops_everything(up: Lab) -> None:
    known = (up.home / "known_hosts").read_text()
    up.boards.new_host_key(1)
    up("up", code=8)
    assert "pi1" in up.stderr
    assert "ssh-keygen" in up.stderr
    assert (up.home / "known_hosts").read_text() == known
    up("status")
    address = up.boards.nodes[1].address
    subprocess.run(
        ["ssh-keygen", "-f", str(up.home / "known_hosts"), "-R", address],
        check=True,
        capture_output=True,
    )
    up("up", "--yes")
    assert up.json("status")["phase"] == "up"


def test_a_board_that_loses_its_power_is_named_and_can_be_left_behind(up: Lab) -> None:
    with up.start("run", "pi", "--engine", "mapreduce", "--repetitions", "1") as job:
        wait_until(lambda: "RunJar" in up.on(0, "ps -eo args"), seconds=60, what="the submission")
        up.boards.power_off(1)
        _, err = job.communicate(timeout=240)
    assert job.returncode == 7, err
    assert "node_lost" in err
    assert "pi1" in err
    assert up.json("status")["phase"] == "degraded"
    up("down", code=7)
    assert "--without pi1" in up.stderr
    up("down", "--without", "pi1")
    up("uninstall", "--without", "pi1", "--yes")
    assert up.snapshot(0) == up.untouched[0]
    for place in INSTALLED:
        assert not up.on(0, f"ls -d {place}")


def test_a_board_that_is_off_is_named_before_anything_is_changed(lab: Lab) -> None:
    before = lab.snapshot(0)
    lab("up", code=8)
    assert "pi1" in lab.stderr
    assert "cannot reach" in lab.stderr
    assert lab.snapshot(0) == before
