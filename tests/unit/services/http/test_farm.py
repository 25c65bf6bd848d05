"""What a farm refuses before it starts anything, on nodes that fail on whatever else is asked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.services.looked_at import STATE, LookedAt, looked_at

from boardcluster.errors import AddressError, HostError, RemoteError
from boardcluster.services.http import farm
from boardcluster.services.http.farm import put_pages, serving, target_of
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster


@pytest.fixture
def live(
    make_spec: Callable[..., Any], make_layout: Callable[..., Layout], tmp_path: Path
) -> LiveCluster:
    layout = make_layout(make_spec(workers=2))
    remotes = {node.name: LookedAt(node.name) for node in layout.spec.nodes}
    return LiveCluster(home=tmp_path, state=STATE, layout=layout, remotes=remotes)


def start(live: LiveCluster) -> None:
    with serving(live, mark={}, rounds=1):
        raise AssertionError("it must not serve")


def test_missing_packages_are_named_with_their_nodes_and_the_command(live: LiveCluster) -> None:
    looked_at(live, "worker2").says = ("lacks /usr/sbin/nginx",)
    looked_at(live, "master").says = (
        "lacks /usr/sbin/haproxy",
        "lacks /usr/sbin/nginx",
    )

    with pytest.raises(HostError) as caught:
        start(live)

    # The master serves no pages, so that it needs no nginx.
    assert caught.value.message.endswith(
        "master lacks /usr/sbin/haproxy; worker2 lacks /usr/sbin/nginx"
    )
    assert "apt-get install -y --no-install-recommends haproxy nginx`" in caught.value.hint


def test_a_port_in_use_is_named_before_anything_starts(live: LiveCluster) -> None:
    looked_at(live, "master").tell_node_agent("listening", [])
    looked_at(live, "worker1").tell_node_agent("listening", [8001])

    with pytest.raises(AddressError, match=r"on node worker1 another program .* port 8001"):
        start(live)


def prepared(live: LiveCluster) -> None:
    """Have everything work until the first server is started."""
    for name in live.remotes:
        remote, folder = looked_at(live, name), f"/nodes/{name}/http"
        remote.tell_node_agent("listening", [])
        remote.tell_node_agent("end_marked", None)
        remote.tell("sh", "-c", 'rm -f "$0"/fault-*.json', folder)
        remote.tell("id", "-u", stdout="1000\n")
        remote.tell("mkdir", "-p", f"{folder}/temporary")
        files = (
            ["haproxy.cfg"] if name == "master" else ["nginx.conf", "compute.js", "command.json"]
        )
        remote.tell("chmod", "644", *(f"{folder}/{file}" for file in files))


def test_faults_of_earlier_runs_are_removed_and_what_stays_is_looked_for_where_it_may_be(
    live: LiveCluster,
) -> None:
    wanted = {"master": [8000, 8002], "worker1": [8001], "worker2": [8001]}
    prepared(live)

    with pytest.raises(RemoteError, match="was not told about: node_agent start"):
        start(live)

    for name, ports in wanted.items():
        removed = ("sh", "-c", 'rm -f "$0"/fault-*.json', f"/nodes/{name}/http")
        assert removed in looked_at(live, name).calls
        asked = [row["ports"] for row in looked_at(live, name).requests if row["do"] == "listening"]
        assert asked == [ports, ports]  # before and after


def test_what_may_still_run_is_in_the_message_of_what_went_wrong(
    live: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial keeps nothing else of it."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(farm, "_GRACE_SECONDS", 0.0)
    prepared(live)
    looked_at(live, "worker1").tell_node_agent("listening", [8001])  # from the second time on

    with pytest.raises(RemoteError) as caught:
        start(live)

    assert (
        "servers of the farm may still run: worker1: something still listens on port 8001; run "
        "`boardcluster down`"
    ) in caught.value.message


def test_pages_that_are_there_are_not_copied_again(live: LiveCluster, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for name in live.remotes:
        looked_at(live, name).tell("cat", f"/nodes/{name}/http/digest", stdout="d\n")

    put_pages(live, pages, digest="d")

    assert {call[0] for name in live.remotes for call in looked_at(live, name).calls} == {"cat"}


def test_the_digest_of_the_pages_is_written_when_they_are_all_there(
    live: LiveCluster, tmp_path: Path
) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for name in ("digest", "plan"):
        (pages / name).write_text("d")
    for name in live.remotes:
        folder, remote = f"/nodes/{name}/http", looked_at(live, name)
        remote.tell("cat", f"{folder}/digest", returncode=1)
        remote.tell("rm", "-rf", folder)
        remote.tell("mkdir", "-p", folder)
        remote.tell("chmod", "-R", "a+rX", folder)
        remote.tell("sh", "-c", 'echo "$0" > "$1"', "d", f"{folder}/digest")

    put_pages(live, pages, digest="d")

    for name in live.remotes:
        assert list(looked_at(live, name).files) == [f"/nodes/{name}/http/plan"]
        assert looked_at(live, name).calls[-1][-1] == f"/nodes/{name}/http/digest"


def test_a_part_of_the_farm_is_found_at_its_nodes_own_address(live: LiveCluster) -> None:
    assert target_of(live.layout, live.spec.master, "http-balancer") == "198.18.7.2:8000"
    assert target_of(live.layout, live.spec.workers[0], "http-server") == "198.18.7.3:8001"
