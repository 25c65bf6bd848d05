"""What a volume refuses before it starts anything, on nodes that fail on whatever else is asked."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.services.looked_at import STATE, LookedAt, looked_at

from boardcluster.errors import AddressError, CapacityError, HostError, RemoteError
from boardcluster.services.gluster import volume
from boardcluster.services.gluster.volume import VolumeRequest, in_client, serving
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster

SAID: list[str] = []
"""Remarks of the volumes that were begun."""


@pytest.fixture
def live(
    make_spec: Callable[..., Any], make_layout: Callable[..., Layout], tmp_path: Path
) -> LiveCluster:
    layout = make_layout(make_spec(workers=2))
    remotes = {node.name: LookedAt(node.name) for node in layout.spec.nodes}
    return LiveCluster(home=tmp_path, state=STATE, layout=layout, remotes=remotes)


def start(live: LiveCluster) -> None:
    request = VolumeRequest(replicas=2, size_bytes=100_000_000, ping_seconds=42)
    with serving(live, request, mark={}, remark=SAID.append):
        raise AssertionError("it must not serve")


def test_without_root_it_is_refused_and_says_why(live: LiveCluster) -> None:
    for name in live.remotes:
        looked_at(live, name).says = ("no root", "lacks /usr/sbin/glusterd")

    with pytest.raises(HostError, match="needs root, and on master, worker1, worker2") as caught:
        start(live)

    assert "trusted" in caught.value.message
    assert "sudo" in caught.value.hint


def test_boards_are_refused_before_anything_is_asked(live: LiveCluster) -> None:
    boards = replace(live.spec, kind="boards")
    live = replace(live, layout=replace(live.layout, spec=boards))

    with pytest.raises(HostError, match="runs on nodes of this machine only"):
        start(live)


def test_daemons_are_started_by_the_way_of_root(live: LiveCluster) -> None:
    admins = {name: LookedAt(name) for name in live.remotes}
    live = replace(live, admins=admins)

    # The other way is asked for nothing, or its node would fail with another name.
    with pytest.raises(RemoteError, match="was not told about: node_agent end_marked"):
        start(live)

    assert all(len(remote.requests) == 1 for remote in admins.values())
    assert not any(looked_at(live, name).calls for name in live.remotes)


def test_missing_packages_are_named_with_their_nodes_and_the_command(live: LiveCluster) -> None:
    looked_at(live, "worker2").says = ("lacks /usr/sbin/glusterd",)
    looked_at(live, "master").says = ("lacks /usr/bin/fio", "lacks /usr/sbin/glusterd")

    with pytest.raises(HostError) as caught:
        start(live)

    # The master is a client alone.
    assert caught.value.message.endswith(
        "master lacks /usr/bin/fio; worker2 lacks /usr/sbin/glusterd"
    )
    assert "--no-install-recommends fio glusterfs-server`" in caught.value.hint


def test_without_fuse_it_is_refused(live: LiveCluster) -> None:
    looked_at(live, "master").says = ("no fuse",)

    with pytest.raises(HostError, match="master has no /dev/fuse that may be opened") as caught:
        start(live)

    assert "modprobe fuse" in caught.value.hint


def test_a_port_in_use_is_named_before_anything_starts(live: LiveCluster) -> None:
    for name in live.remotes:
        looked_at(live, name).tell_node_agent("end_marked", None)  # what a killed driver left
    looked_at(live, "worker1").tell_node_agent("listening", [24007])

    with pytest.raises(AddressError, match=r"on node worker1 another program .* port 24007"):
        start(live)


def prepared(live: LiveCluster, *, free_bytes: int) -> None:
    for name in live.remotes:
        remote, folder = looked_at(live, name), f"/nodes/{name}/gluster"
        part = "client" if name == "master" else "server"
        places = [f"{folder}/{part}/{each}" for each in ("lib", "run", "log")]
        remote.tell_node_agent("listening", [])
        remote.tell_node_agent("end_marked", None)
        remote.tell("rm", "-rf", folder)
        remote.tell("mkdir", "-m", "700", folder)
        remote.tell("mkdir", "-p", *places, f"{folder}/client/mount")
        remote.tell("df", "-B1", "--output=avail", folder, stdout=f"Avail\n{free_bytes}\n")
        remote.tell("sh", "-c", 'rm -rf "$0"/brick-*', folder)


def test_a_disk_that_is_too_small_is_refused_with_the_arithmetic(live: LiveCluster) -> None:
    """Two workers with two copies of 100 MB: each has all of it, and a quarter and 64 MiB spare."""
    prepared(live, free_bytes=192_000_000)

    with pytest.raises(CapacityError) as caught:
        start(live)

    assert (
        "the disk of worker1 is too small: its share of the files with their replicas is 100 MB, "
        "and with what is kept beside them and unequal shares 192 MB; 192 MB are free"
    ) in caught.value.message


def test_what_was_begun_is_ended_and_its_bricks_are_deleted(live: LiveCluster) -> None:
    prepared(live, free_bytes=10**12)

    with pytest.raises(RemoteError, match=r"was not told about: .*glusterfs.*--version"):
        start(live)

    for name in live.remotes:
        last = looked_at(live, name).requests[-1]["do"]
        assert last in ("end_marked", "listening")
        assert looked_at(live, name).calls[-1] == (
            *("sh", "-c", 'rm -rf "$0"/brick-*'),
            f"/nodes/{name}/gluster",
        )


def test_a_folder_that_a_job_made_meanwhile_is_not_taken_for_roots_own(live: LiveCluster) -> None:
    prepared(live, free_bytes=10**12)
    refused = looked_at(live, "worker1")
    refused._answers["mkdir", "-m", "700", "/nodes/worker1/gluster"] = [(1, b"")]

    with pytest.raises(RemoteError, match="command failed with status 1"):
        start(live)

    assert refused.calls[-1] == ("mkdir", "-m", "700", "/nodes/worker1/gluster")


def test_what_may_still_run_is_added_to_the_error_under_way(
    live: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(volume, "_GRACE_SECONDS", 0.0)
    prepared(live, free_bytes=10**12)
    looked_at(live, "worker2")._answers["node_agent", "listening"] = [(0, b"[]"), (0, b"[24007]")]

    with pytest.raises(RemoteError) as caught:
        start(live)

    assert "may still run: worker2: something still listens on port 24007" in caught.value.message


def test_files_that_cannot_be_deleted_are_a_remark(live: LiveCluster) -> None:
    SAID.clear()
    prepared(live, free_bytes=10**12)
    command = ("sh", "-c", 'rm -rf "$0"/brick-*', "/nodes/worker2/gluster")
    looked_at(live, "worker2")._answers[command] = [(1, b"")]

    with pytest.raises(RemoteError, match="was not told about") as caught:
        start(live)

    assert "may still run" not in caught.value.message
    assert [words.split(":")[0] for words in SAID] == [
        "files of the volume are left in /nodes/worker2/gluster"
    ]


def test_a_command_beside_the_mount_keeps_its_words(live: LiveCluster) -> None:
    command = in_client(live.layout, "fio", "a b")

    assert command[3:] == ("/nodes/master/gluster/client/pid", "fio", "a b")
