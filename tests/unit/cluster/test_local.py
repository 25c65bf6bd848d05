"""This machine itself as the one node."""

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.waiting import wait_until

from boardcluster.cluster.cores import available_cores
from boardcluster.cluster.kinds.local import KIND
from boardcluster.cluster.kinds.local import nodes as local
from boardcluster.cluster.kinds.local.propose import propose_local
from boardcluster.cluster.nodes import Wish
from boardcluster.cluster.processes import leftover_processes
from boardcluster.errors import CapacityError, HostError, SpecError, UsageError
from boardcluster.records import ClusterSpec, Role, Security
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.spec.cluster import load_cluster
from boardcluster.spec.template import render_cluster
from boardcluster.units import GIB

WISH = Wish(
    name="here",
    engines=pair_ids()[0],
    profile="default",
    workers=4,
    subnet="198.18.0.0/24",
    cores=64,
    memory_bytes=10 * GIB,
)


def load(path: Path) -> ClusterSpec:
    return load_cluster(path, engine_pairs=pair_ids(), profiles=profile_names())


def written(folder: Path, spec: ClusterSpec) -> Path:
    path = folder / "cluster.toml"
    path.write_text(render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names()))
    return path


def test_the_proposal_is_this_machine_alone(tmp_path: Path) -> None:
    spec = propose_local(WISH)
    (node,) = spec.nodes
    assert (node.name, node.address) == ("localhost", "127.0.0.1")
    assert node.roles == {Role.MASTER, Role.WORKER}
    assert node.cores == available_cores(), "not the cores that a container may not use"
    assert node.memory_bytes == 9 * GIB
    assert (spec.kind, spec.security) == ("local", Security.LOCAL)
    assert load(written(tmp_path, spec)) == spec


def test_too_little_memory_is_refused_with_the_arithmetic() -> None:
    with pytest.raises(CapacityError, match=r"3 GiB available x 90 % = 2\.7 GiB usable"):
        propose_local(replace(WISH, memory_bytes=3 * GIB))
    with pytest.raises(UsageError, match="name"):
        propose_local(replace(WISH, name="No Name"))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "localhost"', 'name = "node"', "allowed: localhost"),
        ("[[node]]", '[network]\nsubnet = "198.18.0.0/24"\n[[node]]', 'the kind "local" has no'),
        ("[[node]]", '[[node]]\nhost = "pi@pi0"', 'only for the kind "boards"'),
        ("[[node]]", '[[node]]\nboard = "rpi-5b"', 'only for the kind "emulated"'),
        ('kind = "local"', 'kind = "local"\nsecurity = "closed"', 'only for the kind "boards"'),
        ('["master", "worker"]', '["master"]', 'no node has the role "worker"'),
    ],
)
def test_what_a_local_node_cannot_be_told(old: str, new: str, words: str, tmp_path: Path) -> None:
    path = written(tmp_path, propose_local(WISH))
    path.write_text(
        path.read_text().replace(f"\n{old}", f"\n{new}").replace(f"= {old}", f"= {new}")
    )
    with pytest.raises(SpecError) as caught:
        load(path)
    assert words in caught.value.message


def test_there_is_one_node(tmp_path: Path) -> None:
    path = written(tmp_path, propose_local(WISH))
    text = path.read_text()
    path.write_text(text + text[text.index("\n[[node]]") :])
    with pytest.raises(SpecError, match='2 nodes; allowed: at most 1 node of the kind "local"'):
        load(path)


def test_everything_on_the_node_is_found_by_its_mark_and_ended(tmp_path: Path) -> None:
    nodes = KIND.nodes(tmp_path)
    spec = propose_local(WISH)
    state = nodes.create(spec, nodes.new_state(spec, identity="mark-of-a-test"))
    (node,) = state.nodes
    assert nodes.alive(state) == [], "nothing runs on it yet"
    remote = nodes.remote_of(node, state)
    remote.start(["sh", "-c", "env -u HOME sleep 600 & wait"], log=str(tmp_path / "log"))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        wait_until(lambda: len(leftover_processes(state.identity)) >= 2, "both processes")
        assert nodes.alive(state) == [node]
        assert nodes.alive(replace(state, boot_id="another")) == []
        assert other.pid not in leftover_processes(state.identity)
        assert nodes.destroy(state) >= 2
        assert other.poll() is None
        other.kill()
    assert not nodes.has_leftovers(state)
    assert (nodes.limiter(spec, state), nodes.page_hint(state)) == (None, "")


def test_a_user_without_a_name_cannot_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
    with pytest.raises(HostError, match="user ID 4000000000 has no name") as caught:
        local.check_machine()
    assert "/etc/passwd" in caught.value.hint


def test_a_machine_whose_own_name_is_unknown_cannot_be_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "nobody-knows.invalid")
    with pytest.raises(HostError, match=r"nobody-knows\.invalid, has no IPv4 address") as caught:
        local.check_machine()
    assert "/etc/hosts" in caught.value.hint
