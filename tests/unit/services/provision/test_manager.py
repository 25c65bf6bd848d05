"""Daemons as plain processes and under systemd, with nodes that only know what they were told."""

import pytest

from boardcluster.errors import DaemonError
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.fake import FakeRemote
from boardcluster.services.provision.manager import DaemonCommand, PlainProcesses, Systemd

DATANODE = DaemonCommand(
    name="datanode", argv=["java", "DataNode"], env={}, cwd="/d/tmp", log="/d/logs/datanode.log"
)
UNIT = "boardcluster-datanode.service"
OTHER = "boardcluster-nodemanager.service"
STAT = "7 (a (b) c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 8 9\n"


@pytest.fixture
def remote() -> FakeRemote:
    return FakeRemote("pi0")


def test_plain_processes_are_started_watched_and_ended(remote: FakeRemote) -> None:
    remote.tell("java", "DataNode")
    manager = PlainProcesses(remote)
    process = manager.start(DATANODE)
    other = ProcessRef(9, 9)
    views = [
        {"alive": True, "resident_bytes": 0, "proportional_bytes": 0},
        {"alive": False, "resident_bytes": 0, "proportional_bytes": 0},
    ]
    remote.tell_node_agent("processes", views)
    known = {"datanode": process, "nodemanager": other}
    assert manager.running(known) == {"datanode": process}
    remote.tell_node_agent("end", {"killed": 1})
    assert manager.stop(known, grace_seconds=2.0) == 1
    assert remote.requests[-1]["processes"] == [[process.pid, process.start_ticks], [9, 9]]


def test_systemd_starts_the_unit_and_its_main_process_is_the_daemon(remote: FakeRemote) -> None:
    remote.tell("systemctl", "reset-failed", UNIT, returncode=1)
    remote.tell("systemctl", "start", UNIT)
    remote.tell("systemctl", "show", "-p", "MainPID", UNIT, stdout="MainPID=7\n")
    remote.tell("cat", "/proc/7/stat", stdout=STAT)
    assert Systemd(remote).start(DATANODE) == ProcessRef(7, 4711)


def test_systemd_says_where_to_look_if_a_unit_does_not_start(remote: FakeRemote) -> None:
    remote.tell("systemctl", "reset-failed", UNIT)
    remote.tell("systemctl", "start", UNIT, returncode=1)
    with pytest.raises(DaemonError, match="datanode on pi0 could not be started") as caught:
        Systemd(remote).start(DATANODE)
    assert "systemctl status boardcluster-datanode.service" in caught.value.hint


def test_a_daemon_that_ends_at_once_is_said(remote: FakeRemote) -> None:
    remote.tell("systemctl", "reset-failed", UNIT)
    remote.tell("systemctl", "start", UNIT)
    remote.tell("systemctl", "show", "-p", "MainPID", UNIT, stdout="MainPID=0\n")
    with pytest.raises(DaemonError, match="ended immediately"):
        Systemd(remote).start(DATANODE)


def test_a_daemon_that_systemd_started_again_has_another_process(remote: FakeRemote) -> None:
    known = {"datanode": ProcessRef(5, 5), "nodemanager": ProcessRef(6, 6)}
    remote.tell(
        *("systemctl", "show", "-p", "MainPID", UNIT, OTHER), stdout="MainPID=7\n\nMainPID=0\n"
    )
    remote.tell("cat", "/proc/7/stat", stdout=STAT)
    assert Systemd(remote).running(known) == {"datanode": ProcessRef(7, 4711)}
    assert Systemd(remote).running({}) == {}


def test_systemd_stops_units_and_says_which_it_had_to_kill(remote: FakeRemote) -> None:
    known = {"datanode": ProcessRef(5, 5), "nodemanager": ProcessRef(6, 6)}
    remote.tell("systemctl", "stop", UNIT, OTHER)
    remote.tell(
        *("systemctl", "show", "-p", "Result", UNIT, OTHER),
        stdout="Result=success\n\nResult=timeout\n",
    )
    assert Systemd(remote).stop(known, grace_seconds=2.0) == 1
    assert Systemd(remote).stop({}, grace_seconds=2.0) == 0
