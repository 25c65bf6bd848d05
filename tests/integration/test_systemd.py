"""The units as systemd itself takes them: read, weighed, running real daemons and a real job."""

from __future__ import annotations

import platform
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster.cluster.kinds.boards.nodes import board_state, stop_units
from boardcluster.cluster.state import Daemon
from boardcluster.records import Role, Security
from boardcluster.remote.base import ProcessRef
from boardcluster.services import lifecycle
from boardcluster.services.boards import board_layout
from boardcluster.services.daemons import DAEMONS
from boardcluster.services.install import find_installation
from boardcluster.services.jvm import daemon_environment
from boardcluster.services.layout import Layout
from boardcluster.services.lifecycle import Health
from boardcluster.services.pair import load_pair, pair_ids
from boardcluster.services.profile import build_profile
from boardcluster.services.provision.desired import Ground, desired
from boardcluster.services.provision.manager import Systemd
from boardcluster.services.provision.provisioning import apply, uninstall
from boardcluster.services.provision.resources import Resource
from boardcluster.services.provision.units import FIREWALL_UNIT, render_units, unit_name
from boardcluster.services.user_timer import UserTimer, write_timer
from tests.builders import make_cluster, make_node
from tests.systemd_node import SystemdNode, cgroup_root
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(cgroup_root() is None, reason="this machine has no cgroup v2"),
]

ADDRESS = "198.18.47.10"
PAIR = pair_ids()[0]
EXPOSURE_MOST = 2.5
"""Of systemd-analyze's scale from 0 (closed) to 10 (open); a unit without any setting has 9.6."""


@pytest.fixture(scope="module")
def layout(cache: Path) -> Layout:
    node = make_node(
        "sd0",
        *Role,
        cores=2,
        memory_bytes=4 << 30,
        host="sd0",
        address=ADDRESS,
        folder="/var/lib/boardcluster",
    )
    spec = make_cluster(
        node,
        name="lab",
        kind="boards",
        engines=PAIR,
        subnet="198.18.47.0/24",
        security=Security.CLOSED,
    )
    engines = find_installation(load_pair(PAIR), cache=cache)
    assert engines is not None, "run an emulated cluster once: it fetches the engines"
    state = board_state(spec, identity="lab")
    return board_layout(spec, build_profile("default", spec), engines, state)


@pytest.fixture(scope="module")
def node(layout: Layout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SystemdNode]:
    share = layout.engines.folder
    place = f"/opt/boardcluster/engines/{PAIR}"
    folder = tmp_path_factory.mktemp("systemd")
    with SystemdNode(folder=folder, address=ADDRESS, share=share, place=place) as made:
        yield made


def wanted(layout: Layout, *, security: Security = Security.CLOSED) -> list[Resource]:
    closed = security is Security.CLOSED
    node = layout.spec.master
    ground = Ground(architecture=platform.machine(), systemd=True)
    spec = replace(layout.spec, security=security)
    return desired(spec, node, ground, units=render_units(layout, node, closed=closed))


class Cluster:
    """The daemons that run on the node."""

    def __init__(self, node: SystemdNode, layout: Layout, staging: Path) -> None:
        self.layout = layout
        self.user = node.remote("boardcluster")
        self.manager = Systemd(node.remote())
        self.staging = staging
        self.daemons: list[Daemon] = []

    @property
    def known(self) -> dict[str, ProcessRef]:
        return {daemon.name: daemon.process for daemon in self.daemons}

    def start(self) -> None:
        remotes = {"sd0": self.user}
        lifecycle.configure(self.layout, remotes, staging=self.staging)
        self.daemons = lifecycle.start(
            self.layout,
            remotes,
            managers={"sd0": self.manager},
            identity="lab",
            started=lambda _: None,
        )
        self.wait_healthy()

    def wait_healthy(self) -> Health:
        seen: list[Health] = []
        lifecycle.wait_healthy(
            self.layout,
            {"sd0": self.user},
            [],
            home=self.staging.parent,
            patience_seconds=120,
            seen=seen.append,
        )
        return seen[-1]


@pytest.fixture(scope="module")
def cluster(node: SystemdNode, layout: Layout, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    apply(node.remote(), wanted(layout))
    made = Cluster(node, layout, tmp_path_factory.mktemp("staging") / "conf")
    made.start()
    return made


def test_provisioning_is_done_once(node: SystemdNode, layout: Layout) -> None:
    done = [change.words for change in apply(node.remote(), wanted(layout))]
    assert f"enables and starts {FIREWALL_UNIT}" in done
    assert apply(node.remote(), wanted(layout)) == []
    assert "policy drop" in node.run("nft list table inet boardcluster")


def test_systemd_understands_every_unit(node: SystemdNode, layout: Layout) -> None:
    apply(node.remote(), wanted(layout))
    units = [unit_name(kind.name) for kind in DAEMONS]
    said = node.run(f"systemd-analyze verify --man=no {' '.join(units)} {FIREWALL_UNIT} 2>&1")
    assert [line for line in said.splitlines() if "boardcluster" in line] == []
    shown = node.run(f"systemctl show -p LoadState -p NeedDaemonReload {' '.join(units)}")
    assert shown.count("LoadState=loaded") == shown.count("NeedDaemonReload=no") == len(units)


@pytest.mark.parametrize("kind", DAEMONS, ids=lambda kind: kind.name)
def test_a_daemon_may_do_little(node: SystemdNode, layout: Layout, kind: object) -> None:
    name = unit_name(getattr(kind, "name", ""))
    said = node.run(f"systemd-analyze security --no-pager {name} | tail -n 1")
    assert float(said.partition("level for ")[2].split()[1]) <= EXPOSURE_MOST, said


def test_daemons_run_a_job_in_spite_of_all_they_may_not(
    node: SystemdNode, cluster: Cluster
) -> None:
    layout = cluster.layout
    master = layout.spec.master
    jar = layout.engines.hadoop_jar("hadoop-mapreduce-examples")
    done = cluster.user.run(
        [
            str(layout.java.program),
            "-Xmx256m",
            *("-cp", f"{layout.class_path(master)}:{jar}"),
            "org.apache.hadoop.examples.ExampleDriver",
            *("pi", "1", "1000"),
        ],
        env=daemon_environment(layout, master),
        cwd=layout.folder(master, "tmp"),
        timeout_seconds=240,
    )
    assert "Estimated value of Pi is 3" in done.text
    assert set(cluster.manager.running(cluster.known)) == {kind.name for kind in DAEMONS}
    owner = node.run("stat -c %U /var/lib/boardcluster/logs/*.log | sort -u")
    assert owner == "boardcluster\n"
    pid = cluster.known["nodemanager"].pid
    status = node.run(f"cat /proc/{pid}/status")
    assert "NoNewPrivs:\t1" in status
    assert "CapBnd:\t0000000000000000" in status
    assert "Seccomp:\t2" in status
    open_files = node.run(f"grep 'Max open files' /proc/{pid}/limits").split()[3:5]
    most = min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])  # this machine's own limit
    assert open_files == [str(most), str(most)]
    # What it may write, seen from inside of its own mounts.
    script = f"nsenter --target {pid} --mount -- sh -c 'touch /opt/x /etc/x /usr/x /home/x' 2>&1"
    assert node.run(script, check=False).count("Read-only file system") >= 3


def test_a_daemon_that_dies_is_started_again_and_found(node: SystemdNode, cluster: Cluster) -> None:
    cluster.wait_healthy()
    dead = cluster.known["datanode"]
    node.run(f"kill -9 {dead.pid}")

    def back() -> bool:
        found = cluster.manager.running({"datanode": dead}).get("datanode")
        return found not in (None, dead)

    wait_until(back, "the daemon", seconds=120, pause_seconds=0.3)
    assert cluster.wait_healthy().live_datanodes == 1


def test_daemons_end_with_all_they_started(node: SystemdNode, cluster: Cluster) -> None:
    started = time.monotonic()
    cluster.manager.stop(cluster.known, grace_seconds=2.0)
    assert time.monotonic() - started < 80  # systemd itself would wait 90 s
    assert cluster.manager.running(cluster.known) == {}
    assert node.run("pgrep -lu boardcluster", check=False) == ""


def test_without_the_firewall_no_daemon_runs(node: SystemdNode, cluster: Cluster) -> None:
    known = {"datanode": cluster.known["datanode"]}
    node.run(f"systemctl stop {FIREWALL_UNIT}")
    assert node.run("nft list tables") == ""
    node.run(f"systemctl start {unit_name('datanode')}")
    assert "policy drop" in node.run("nft list table inet boardcluster")
    assert list(cluster.manager.running(known)) == ["datanode"]
    node.run(f"systemctl stop {FIREWALL_UNIT}")
    assert cluster.manager.running(known) == {}
    node.run(f"systemctl start {unit_name('datanode')}")
    stop_units(node.remote())
    assert cluster.manager.running(known) == {}


def test_the_firewall_outlives_nftables_of_the_boards_own(
    node: SystemdNode, layout: Layout
) -> None:
    """It begins with ``flush ruleset``, also where somebody starts it on a board that is up."""
    apply(node.remote(), wanted(layout))
    for verb in ("start", "reload", "restart"):
        node.run(f"nft add table inet other && systemctl {verb} nftables")
        assert "table inet other" not in node.run("nft list tables")  # it has cleared all rules
        if verb != "restart":  # with which our unit starts anew, after nftables
            assert "ip saddr @members" in node.run("nft list ruleset")
        wait_until(
            lambda: node.run(f"systemctl is-active {FIREWALL_UNIT}", check=False) == "active\n",
            "our unit",
            seconds=30,
        )
        assert "ip saddr @members" in node.run("nft list ruleset")
    node.run("systemctl stop nftables")
    assert node.run(f"systemctl is-active {FIREWALL_UNIT}", check=False) == "inactive\n"
    node.run("systemctl start nftables")
    assert "table inet boardcluster" not in node.run("nft list tables"), "nor rules not confirmed"
    node.run("systemctl stop nftables")


def test_unconfirmed_rules_are_gone_after_a_loss_of_power(
    node: SystemdNode, layout: Layout
) -> None:
    """The mark of a boot that ended before anybody came back through the new rules."""
    apply(node.remote(), wanted(layout))
    rules = "/etc/boardcluster/firewall.nft"
    wait = f"touch {rules}.pending-$(cat /proc/sys/kernel/random/boot_id)-7"
    node.run(f"cp {rules} {rules}.former && echo 'table inet locked {{}}' >> {rules} && {wait}")
    node.run(f"systemctl restart {FIREWALL_UNIT}")
    assert "table inet locked" in node.run("nft list tables"), "in the same boot they wait on"

    node.run(f"mv {rules}.pending-* {rules}.pending-another-boot-7 && nft delete table inet locked")
    node.run(f"systemctl restart {FIREWALL_UNIT}")
    assert node.run("nft list tables") == "table inet boardcluster\n"
    assert node.run("ls /etc/boardcluster | grep firewall") == "firewall.nft\n"


def test_units_and_firewall_go_when_they_are_not_wanted(node: SystemdNode, layout: Layout) -> None:
    apply(node.remote(), wanted(layout))
    open_lab = wanted(layout, security=Security.INSECURE_LAB)
    gone = [change.words for change in apply(node.remote(), open_lab)]
    assert "removes the firewall" in gone
    assert node.run("nft list tables") == ""
    assert apply(node.remote(), open_lab) == []

    uninstall(node.remote(), keep_data=False)
    listed = node.run("systemctl list-unit-files --no-legend 'boardcluster*'", check=False)
    assert listed == ""
    assert node.run("ls /etc/boardcluster /var/lib/boardcluster", check=False) == ""


ROUND = """\
#!/bin/sh
printf '%s\\n' "$@" "$PWD" "$BOARDCLUSTER_HOME" >"$HOME/ran"
exit 12
"""


def test_a_users_own_timer_runs_a_round_that_was_missed(
    node: SystemdNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ``watch-performance --timer`` writes, under a user's real systemd: words stay whole."""
    words = ("100 % of $HOME", 'a "quoted" word', "it's")
    timer = UserTimer(
        about="night: 5 % slower?",
        title="night watch",
        key="night.toml",
        command=("/srv/tim/a round", *words),
        folder=Path("/srv/tim/my files"),
        environment={"BOARDCLUSTER_HOME": "/srv/tim/a $home"},
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    units = write_timer(timer, "daily").files
    program = tmp_path / "round"
    program.write_text(ROUND)
    node.run(
        "useradd --create-home --home-dir /srv/tim --shell /bin/sh tim && mkdir '/srv/tim/my files'"
    )
    root = node.remote()
    root.put(program, "/srv/tim/a round")
    root.put(next(iter(units)).parent, "/srv/tim/.config/systemd/user")
    stamps = "/srv/tim/.local/share/systemd/timers"
    run_folder = f"/run/user/{node.run('id -u tim').strip()}"
    node.run(
        f"""chmod 755 '/srv/tim/a round'
        mkdir -p {stamps} {run_folder}
        touch -d '2 days ago' {stamps}/stamp-{timer.name}.timer
        chown -R tim: /srv/tim {run_folder}
        systemd-run --unit tims --uid tim -p Type=notify -p Delegate=yes -p PAMName= \
            -E XDG_RUNTIME_DIR={run_folder} -E HOME=/srv/tim /lib/systemd/systemd --user"""
    )
    as_tim = ["env", f"XDG_RUNTIME_DIR={run_folder}", "HOME=/srv/tim", "systemctl", "--user"]
    tim = node.remote("tim")
    try:
        tim.run([*as_tim, "enable", "--now", f"{timer.name}.timer"])
        service = f"{timer.name}.service"
        wait_until(
            lambda: "failed" in tim.run([*as_tim, "is-failed", service], check=False).text,
            "a round that says that a cell is out of its limits",
            seconds=60,
        )
        shown = tim.run([*as_tim, "show", service, "-p", "ExecMainStatus"]).text
        assert shown.strip() == "ExecMainStatus=12"
        ran = node.run("cat /srv/tim/ran").splitlines()
        assert ran == [*words, "/srv/tim/my files", "/srv/tim/a $home"]
        due = tim.run([*as_tim, "show", f"{timer.name}.timer", "-p", "NextElapseUSecRealtime"]).text
        assert due.strip().partition("=")[2], "the next round has no time"
    finally:
        node.run("systemctl stop tims")
