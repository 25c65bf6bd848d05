"""One cluster of 1 + 4 nodes: up, looked at, worked on, down."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import boardcluster
from boardcluster.campaign.begin import new_campaign, single_spec
from boardcluster.campaign.driver import Watch, run_trials
from boardcluster.campaign.plan import plan, spec_digest
from boardcluster.campaign.trial import Bench
from boardcluster.cluster import processes
from boardcluster.cluster.kinds.emulated import nodes as emulated
from boardcluster.cluster.kinds.emulated.own_names import give_names
from boardcluster.cluster.state import load_state
from boardcluster.datasets.text import from_file
from boardcluster.errors import RemoteError
from boardcluster.fetch.cache import no_progress
from boardcluster.records import Attempt, Engine, Measurement, Policy, Trial
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.netns import enter
from boardcluster.services import operation
from boardcluster.services.operation import LiveCluster
from boardcluster.store import Store
from boardcluster.workloads.base import Context, Job, Outcomes, Proof, StagedInput
from boardcluster.workloads.wordcount.workload import WORKLOAD
from tests.integration.conftest import Cli
from tests.waiting import wait_until

SUBNET = "198.18.201.0/24"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli]) -> Iterator[Cli]:
    program = cli(tmp_path_factory.mktemp("cluster") / "home")
    program("init", "--workers", "4", "--subnet", SUBNET)
    try:
        program("up")
        yield program
    finally:
        program("down", "--wipe")


@pytest.fixture(scope="module")
def live(up: Cli, cache: Path) -> LiveCluster:
    return operation.attach(up.home, cache=cache, progress=no_progress)


def test_status_shows_every_daemon_alive(up: Cli) -> None:
    seen = up.json("status")
    assert seen["phase"] == "up"
    assert seen["health"]["live_datanodes"] == 4
    assert seen["health"]["live_nodemanagers"] == 4
    names = sorted(row["name"] for row in seen["daemons"])
    assert names == sorted(
        ["namenode", "resourcemanager", "jobhistory", "sparkhistory"]
        + ["datanode"] * 4
        + ["nodemanager"] * 4
    )
    assert all(row["alive"] for row in seen["daemons"])
    assert all(row["resident_bytes"] > 50e6 for row in seen["daemons"])
    assert "198.18.201." in up("status")


@pytest.mark.needs_root
def test_web_pages_open_from_the_host(up: Cli) -> None:
    for row in up.json("status")["daemons"]:
        with urllib.request.urlopen(row["url"], timeout=20) as page:
            assert page.status == 200
            assert b"html" in page.read(4096).lower()


@pytest.mark.needs_root
def test_no_other_user_of_this_machine_reaches_the_cluster(up: Cli) -> None:
    """Whoever reaches YARN runs commands there: the kernel must refuse everybody else."""
    url = next(r["url"] for r in up.json("status")["daemons"] if r["name"] == "resourcemanager")
    host, port = url.removeprefix("http://").split(":")
    load, connect = "import os, socket\n", f"socket.socket().connect(('{host}', {port}))"
    # The user is changed in the running interpreter, which may lie where only root may look.
    switch = "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
    other = subprocess.run(
        [sys.executable, "-c", load + switch + connect],
        capture_output=True,
        text=True,
        check=False,
    )
    assert other.returncode == 1
    assert "PermissionError" in other.stderr
    assert subprocess.run([sys.executable, "-c", load + connect], check=False).returncode == 0


@pytest.mark.needs_root
def test_no_other_user_passes_by_binding_to_the_interface(up: Cli) -> None:
    """The kernel sends what is bound to an interface there, even where a rule prohibits it."""
    state = load_state(up.home)
    assert state is not None
    url = next(r["url"] for r in up.json("status")["daemons"] if r["name"] == "resourcemanager")
    host, port = url.removeprefix("http://").split(":")
    for source in ("", "s.bind(('198.18.201.1', 0))\n"):
        connect = (
            "import os, socket\n"
            "if os.environ['OTHER']: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
            "s = socket.socket(); s.settimeout(3)\n"
            f"s.setsockopt(socket.SOL_SOCKET, 25, b'{state.host_link}')\n{source}"
            f"try: s.connect(('{host}', {port}))\n"
            "except OSError: raise SystemExit(7)"
        )
        mine, other = (
            subprocess.run(
                [sys.executable, "-c", connect],
                env={"OTHER": who},
                capture_output=True,
                text=True,
                check=False,
            )
            for who in ("", "1")
        )
        assert mine.returncode == 0, mine.stderr
        assert other.returncode == 7, other.stderr or "another user reached the ResourceManager"
    link = Path("/proc/sys/net/ipv6/conf") / state.host_link / "disable_ipv6"
    assert not link.exists() or link.read_text().strip() == "1"


def users_of_processes(live: LiveCluster) -> set[tuple[int, str]]:
    """The real user of every process on the nodes but the first, with its program's name."""
    first = {node.pid for node in live.state.nodes}
    spaces = {Path(f"/proc/{node.pid}/ns/pid").stat().st_ino for node in live.state.nodes}
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            inside = (entry / "ns" / "pid").stat().st_ino in spaces
            if inside and int(entry.name) not in first:
                status = (entry / "status").read_text()
                ids = next(row for row in status.splitlines() if row.startswith("Uid:"))
                found.add((int(ids.split()[1]), (entry / "comm").read_text().strip()))
    return found


@pytest.mark.needs_root
def test_neither_daemons_nor_jobs_of_roots_cluster_run_as_root(
    up: Cli, live: LiveCluster, tmp_path: Path
) -> None:
    """A job, in its driver and in its containers, reads no file that only root may read."""
    secret = tmp_path / "secret"
    secret.write_text("of root's")
    secret.chmod(0o600)
    program = tmp_path / "reads.py"
    program.write_text(
        "import os\n"
        "from pyspark import SparkContext\n"
        f"places = ['/etc/shadow', '{secret}', '{up.home}/state.json', '{Path.home()}/.bashrc']\n"
        "def look(_):\n"
        "    found = [('user', os.getuid())]\n"
        "    for place in places:\n"
        "        try:\n"
        "            found.append((place, len(open(place).read())))\n"
        "        except OSError as error:\n"
        "            found.append((place, type(error).__name__))\n"
        "    return found\n"
        "context = SparkContext()\n"
        "for found in (look(0), context.parallelize([0], 1).map(look).collect()[0]):\n"
        "    print('FOUND', found)\n"
        "context.stop()\n"
    )
    with up.start("submit", "spark", "--", str(program)) as running:
        seen: set[tuple[int, str]] = set()
        while running.poll() is None:
            seen |= users_of_processes(live)
            time.sleep(0.2)
        out, err = running.communicate()
    assert running.returncode == 0, out + err

    said = [row for row in out.splitlines() if row.startswith("FOUND")]
    assert len(said) == 2, out
    for row in said:
        assert f"('user', {live.state.service_uid})" in row
        assert row.count("Error") == 4, row
    # What the driver itself asks of nodes enters them as root first, and then becomes the user.
    # Before a job it deletes what GlusterFS, which runs as root, may have left.
    allowed = {"nsenter", "setpriv", "sh", "env", "unshare", "tc", "ip", "rm"}
    assert {name for user, name in seen if user == 0} <= allowed, seen
    assert {user for user, _ in seen} <= {0, live.state.service_uid}
    assert (live.state.service_uid, "java") in seen


@pytest.mark.needs_root
def test_the_user_of_jobs_cannot_become_another(live: LiveCluster) -> None:
    worker = live.remotes["worker1"]
    status = worker.run(["cat", "/proc/self/status"]).text
    rows = dict(row.split(":\t", 1) for row in status.splitlines() if ":\t" in row)
    assert (rows["CapEff"], rows["CapPrm"], rows["CapInh"]) == ("0" * 16,) * 3
    assert rows["NoNewPrivs"] == "1"
    forbidden = (
        ["mount", "-t", "tmpfs", "x", "/mnt"],
        ["ip", "link", "set", "eth0", "down"],
        ["touch", "/etc/hosts"],
        ["touch", f"{live.state.nodes[1].folder}/../of-another"],
    )
    for command in forbidden:
        assert worker.run(command, check=False).returncode != 0, command


@pytest.mark.needs_root
def test_a_job_cannot_trace_the_process_by_which_root_enters(live: LiveCluster) -> None:
    """Whoever traces a node's first process chooses the namespaces that root enters."""
    trace = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for name, request in (('attach', 16), ('seize', 0x4206)):\n"
        "    done = libc.ptrace(ctypes.c_long(request), 1, None, None)\n"
        "    print(name, done, ctypes.get_errno())\n"
        "print('owner', os.stat('/proc/1').st_uid)\n"
    )
    for node in live.state.nodes:
        said = live.remotes[node.name].run(["python3", "-c", trace]).text.splitlines()
        assert said == [f"attach -1 {errno.EPERM}", f"seize -1 {errno.EPERM}", "owner 0"]


@pytest.mark.needs_root
def test_what_a_job_leaves_leads_the_driver_nowhere(live: LiveCluster, tmp_path: Path) -> None:
    """Links to what only root may read or write, where the driver copies from and to."""
    worker, folder = live.remotes["worker1"], f"{live.state.nodes[1].folder}/tmp/left"
    victim, own = tmp_path / "victim", tmp_path / "own"
    victim.write_text("of root's")
    own.write_text("of the driver's")
    own.chmod(0o600)
    worker.run(["mkdir", "-p", folder])
    worker.run(["ln", "-s", "/etc/shadow", f"{folder}/read"])
    worker.run(["ln", "-s", str(victim), f"{folder}/written"])

    with pytest.raises(RemoteError, match="tar"):
        worker.get(folder, tmp_path / "got")
    assert not (tmp_path / "got").exists()
    worker.put(own, f"{folder}/written")
    assert victim.read_text() == "of root's"
    assert worker.run(["cat", f"{folder}/written"]).text == "of the driver's"
    with worker.temporary_upload(own) as place:
        assert worker.run(["cat", place]).text == "of the driver's"
    assert worker.run(["test", "-e", place], check=False).returncode != 0
    worker.run(["rm", "-r", folder])


def test_up_again_changes_nothing(up: Cli) -> None:
    before = (up.home / "state.json").read_text()
    up("up")
    assert (up.home / "state.json").read_text() == before


def test_links_are_shaped_both_ways(live: LiveCluster) -> None:
    """A worker moves data no faster than its 1 Gbit/s link; measured, not only configured."""
    rows = json.loads(
        live.remotes["worker1"].run(["tc", "-j", "qdisc", "show", "dev", "eth0"]).text
    )
    assert [row["options"]["rate"] * 8 for row in rows if row["kind"] == "tbf"] == [10**9]
    receiver = (
        "import socket,sys;s=socket.create_server(('',5999));print(flush=True);c,_=s.accept()\n"
        "n=0\nwhile b:=c.recv(1<<20): n+=len(b)"
    )
    sender = (
        "import socket,time\nfor _ in range(100):\n"
        " try: s=socket.create_connection(('worker2',5999));break\n"
        " except OSError: time.sleep(0.05)\n"
        "b=bytes(1<<20);t=time.monotonic()\nfor _ in range(120): s.sendall(b)\n"
        "s.shutdown(1);s.recv(1)\nprint(120*2**20*8/(time.monotonic()-t))"
    )
    node = next(node for node in live.state.nodes if node.name == "worker2")
    remote = emulated.remote_of(node, live.state)
    ref = remote.start(["python3", "-c", receiver], log=f"{node.folder}/tmp/receiver.log")
    assert isinstance(ref, ProcessRef)
    rate = float(live.remotes["worker1"].run(["python3", "-c", sender]).text)
    assert rate < 1.05e9


def test_node_has_its_own_name_processes_and_hosts(live: LiveCluster) -> None:
    worker = live.remotes["worker3"]
    assert worker.run(["hostname"]).text.strip() == "worker3"
    assert "198.18.201.2 master" in worker.run(["cat", "/etc/hosts"]).text
    assert "worker1" not in worker.run(["ps", "-eo", "args"]).text.replace("-cp", "")
    # Not mounted over files, which whoever replaces them outside would take away.
    assert "overlay" in worker.run(["findmnt", "-n", "-o", "FSTYPE", "/etc"]).text
    if live.state.service_uid:
        assert worker.run(["id", "-un"]).text.strip() == "boardcluster"


@pytest.mark.parametrize("layers", [True, False])
def test_a_node_keeps_its_names_when_files_of_the_machine_are_replaced(
    layers: bool, tmp_path: Path
) -> None:
    """As ``useradd`` replaces /etc/passwd; on kernels without layers a replaced file is lost."""
    etc, own, programs = tmp_path / "of-machine", tmp_path / "a, b:c/etc", tmp_path / "programs"
    for folder in (etc, own, programs):
        folder.mkdir(parents=True)
    (etc / "passwd").write_text("outside")
    (etc / "other").write_text("other")
    (own / "passwd").write_text("node's")
    mount = programs / "mount"
    refuse = "" if layers else 'case "$*" in *overlay*) exit 32;; esac\n'
    mount.write_text(f'#!/bin/sh\n{refuse}exec {shutil.which("mount")} "$@"\n')
    mount.chmod(0o755)
    mapped = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    anchor = subprocess.Popen(["unshare", *mapped, "--mount", "sleep", "infinity"])
    try:
        wait_until(
            lambda: Path(f"/proc/{anchor.pid}/comm").read_text() == "sleep\n", what="the namespace"
        )
        path = f"PATH={programs}:{os.environ['PATH']}"
        node = LocalRemote(
            "node",
            prefix=(*enter(anchor.pid, own_user=os.geteuid() != 0, kinds="m"), "env", path),
        )
        give_names(node, own, etc)
        assert node.run(["cat", f"{etc}/passwd", f"{etc}/other"]).text == "node'sother"

        (etc / "new").write_text("replaced")
        (etc / "new").replace(etc / "passwd")
        kept = node.run(["cat", f"{etc}/passwd"]).text
        assert kept == ("node's" if layers else "replaced")
        assert (etc / "passwd").read_text() == "replaced"
    finally:
        anchor.kill()
        anchor.wait()


def test_wordcount_is_verified_on_both_engines_and_reported(up: Cli, tmp_path: Path) -> None:
    done = up.json("run", "wordcount", "--size", "16MB", "--repetitions", "1", "--seed", "7")
    assert done["summary"] == {
        "campaign_id": done["campaign"]["id"],
        "planned": 2,
        "ok": 2,
        "failed": 0,
        "invalid": 0,
        "pending": 0,
    }
    assert done["campaign"]["emulated"] is True
    outputs = set()
    for row in done["results"]:
        proof = row["measurement"]["verification"]
        assert proof["expected_sha256"] == proof["actual_sha256"]
        assert proof["records"] > 100_000
        outputs.add(proof["actual_sha256"])
        assert row["measurement"]["counters"]
        folder = up.home / row["attempt"]["artefacts"]
        assert (folder / "conf" / "mapred-site.xml").is_file()
        assert list((folder / "count" / "containers").rglob("stderr")), (
            "container logs were not collected"
        )
    assert len(outputs) == 1
    counters = {row["trial"]["engine"]: row["measurement"]["counters"] for row in done["results"]}
    maps = "org.apache.hadoop.mapreduce.TaskCounter/MAP_INPUT_RECORDS"
    assert counters["mapreduce"][maps] == counters["spark"]["spark/inputRecords"]
    # Whatever else this machine did meanwhile: those runs count here, too.
    paths = up.json("report", "--tainted", "-o", str(tmp_path))
    text = Path(paths["html"]).read_text()
    assert "emulated" in text
    assert done["results"][0]["measurement"]["application_id"] in text
    assert up.json("results")["results"][0]["attempt"]["state"] == "ok"
    check_bundle(up, tmp_path, campaign=done["campaign"]["id"])


def check_bundle(up: Cli, folder: Path, *, campaign: str) -> None:
    """Real logs and samples go into a bundle without this machine's names, and come back."""
    file, theirs = folder / "bundle.zip", folder / "theirs"
    # Whether its runs are tainted is up to what else this machine did.
    options = ["--campaign", campaign, "--tainted", "-o", str(file)]
    written = up.json("export", "--bundle", *options)
    assert (written["runs"], written["unread"], written["left_out"]) == (2, [], [])
    with zipfile.ZipFile(file) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for kind in ("containers/", "telemetry.npz", ".history.json", ".events.jsonl", "case.json"):
        assert [name for name in content if kind in name], kind
    machine = socket.gethostname().encode()
    for name, data in content.items():
        assert str(up.home).encode() not in data, name
        assert len(machine) < 3 or machine not in data, name
    up("import", str(file), "--home", str(theirs), "--sha256", written["sha256"])
    sides = (f"cluster:{up.home}/{campaign}", f"bundle:{file}")
    compared = up.json("compare", *sides, "--tainted")
    assert {row["ratio"] for row in compared["rows"]} == {1.0}
    again = boardcluster.recompute(file)
    assert again.different == 0, again.differences
    assert again.numbers > 100


def falsified(context: Context, prepared: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
    """Change one record of the output before it is verified."""
    hdfs = context.hdfs
    part = next(e.name for e in hdfs.list(job.output_path) if e.name.startswith("part-"))
    copy = context.work / "falsified"
    hdfs.get(f"{job.output_path}/{part}", copy)
    lines = copy.read_bytes().splitlines()
    word, _, count = lines[0].partition(b"\t")
    lines[0] = word + b"\t" + str(int(count) + 1).encode()
    copy.write_bytes(b"\n".join(lines) + b"\n")
    hdfs.delete(f"{job.output_path}/{part}")
    hdfs.put(copy, f"{job.output_path}/{part}")
    copy.unlink()
    return type(WORKLOAD).verify(WORKLOAD, context, prepared, job, outcomes)


def test_a_falsified_output_is_failed_and_never_ok(
    live: LiveCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WORKLOAD, "verify", falsified)
    source = tmp_path / "words.txt"
    source.write_text("to be or not to be\n" * 1000)
    dataset = from_file(source, size_bytes=None, cache=tmp_path / "cache", progress=no_progress)
    spec = single_spec(
        "wordcount",
        engines=[Engine.MAPREDUCE],
        size_bytes=dataset.size_bytes,
        repetitions=1,
        seed=1,
        policy=Policy(timeout_seconds=300),
    )
    trials = plan(spec, live.spec, campaign_id="falsified")
    campaign = new_campaign(
        spec,
        live.spec,
        trials,
        campaign_id="falsified",
        texts=lambda _: dataset,
        spec_sha256=spec_digest(spec, live.spec),
    )
    ended: list[tuple[Trial, Attempt, Measurement | None]] = []
    with Store.open(tmp_path) as store:
        store.add_campaign(campaign, trials)
        run_trials(
            store,
            campaign,
            trials,
            cluster=lambda _: live,
            bench=Bench(
                policy=spec.policy, cache=tmp_path, progress=no_progress, text=lambda _: dataset
            ),
            watch=Watch(began=lambda trial: None, ended=lambda *row: ended.append(row)),
        )
        assert store.summary(campaign.id).failed == 1
    ((_, attempt, measurement),) = ended
    assert attempt.state == "failed"
    assert measurement is None
    assert "wrong" in attempt.reason


APP = """\
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("squares").getOrCreate()
print("sum of squares:", spark.sparkContext.range(int(sys.argv[1])).map(lambda x: x * x).sum())
spark.stop()
"""


def test_submit_runs_a_spark_program_of_the_user(up: Cli, tmp_path: Path) -> None:
    app = tmp_path / "squares.py"
    app.write_text(APP)
    out = up("submit", "spark", "--", str(app), "100", "--password", "hunter2")
    assert "sum of squares: 328350" in out
    row = [r for r in up.json("results")["results"] if r["trial"]["workload"] == "submit"][-1]
    assert row["attempt"]["state"] == "ok"
    assert row["measurement"]["exit_status"] == 0
    assert row["measurement"]["counters"]["spark/tasks"] > 0
    assert row["trial"]["arguments"] == [str(app), "100", "--password", "(hidden)"]
    assert b"hunter2" not in (up.home / "store.sqlite").read_bytes()


def test_submit_runs_a_mapreduce_jar_of_the_user(up: Cli, live: LiveCluster) -> None:
    jar = live.layout.engines.hadoop_jar("hadoop-mapreduce-examples")
    out = up("submit", "mapreduce", "--", str(jar), "pi", "2", "1000")
    assert "Estimated value of Pi is 3.1" in out


def test_a_failing_program_is_recorded_with_its_exit_status(up: Cli, tmp_path: Path) -> None:
    app = tmp_path / "broken.py"
    app.write_text("raise SystemExit(3)\n")
    up("submit", "spark", "--", str(app), code=9)
    row = up.json("results")["results"][-1]
    assert row["attempt"]["state"] == "failed"
    assert row["measurement"]["exit_status"] == 3


@pytest.mark.needs_root
def test_the_subnet_of_a_running_cluster_is_refused_to_another(
    up: Cli, cli: Callable[..., Cli], tmp_path: Path
) -> None:
    other = cli(tmp_path / "other")
    other("init", "--workers", "1", "--subnet", "198.18.201.128/25")
    other("up", code=5)
    assert "198.18.201.0/24" in other.stderr
    assert load_state(other.home) is None


def test_an_edited_specification_is_not_ignored(up: Cli) -> None:
    path = up.home / "cluster.toml"
    text = path.read_text()
    path.write_text(text.replace('profile = "default"', 'profile = "upstream"'))
    try:
        up("up", code=7)
        assert "edited" in up.stderr
    finally:
        path.write_text(text)


def test_a_taken_port_is_named(up: Cli, live: LiveCluster) -> None:
    """The check that runs before daemons start finds whoever listens, here the daemons."""
    from boardcluster.errors import AddressError
    from boardcluster.services import lifecycle
    from boardcluster.services.provision.manager import PlainProcesses

    with pytest.raises(AddressError, match=r"on node master .*8020 \(namenode\)"):
        lifecycle.start(
            live.layout,
            live.remotes,
            managers={name: PlainProcesses(remote) for name, remote in live.remotes.items()},
            identity=live.state.identity,
            started=lambda daemon: None,
        )


def test_processes_of_the_cluster_carry_its_identity_only(up: Cli) -> None:
    state = load_state(up.home)
    assert state is not None
    assert processes.leftover_processes(state.identity)
    assert not processes.leftover_processes("another-identity")
    links = {path.name for path in Path("/sys/class/net").iterdir()}
    assert bool(state.host_link) == (os.geteuid() == 0)
    assert not state.host_link or state.host_link in links
