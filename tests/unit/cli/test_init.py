"""``init``: which kind of cluster it writes, and that no option is left unheard."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from typer.testing import Result as Ran

from boardcluster.cli import init as module
from boardcluster.cli.app import app
from boardcluster.errors import HostError, UsageError
from boardcluster.records import ClusterSpec, Security
from boardcluster.services.declaration import read_spec
from boardcluster.services.pair import pair_ids
from boardcluster.services.security import INSECURE_WARNING

GIB = 1 << 30


def init(*words: str) -> Ran:
    """Run the program; what it raises on purpose is raised."""
    return CliRunner().invoke(app, ["init", *words], catch_exceptions=False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a cluster on a machine with memory enough; no board is ever reached."""
    monkeypatch.setattr("boardcluster.campaign.propose.available_memory_bytes", lambda: 64 * GIB)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    for name in ("campaign.propose", "cluster.kinds.local.propose"):  # as in a container
        monkeypatch.setattr(f"boardcluster.{name}.available_cores", lambda: 8)
    monkeypatch.setattr(module, "look_at_boards", lambda *_, **__: pytest.fail("looked at boards"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "home"


@pytest.fixture
def looked(
    home: Path, board_spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch
) -> list[dict[str, Any]]:
    """What was asked of each look at boards."""
    seen: list[dict[str, Any]] = []

    def look(hosts: list[str], **named: Any) -> ClusterSpec:
        seen.append({"hosts": hosts, **named})
        return replace(board_spec, name=named["name"], security=named["security"])

    monkeypatch.setattr(module, "look_at_boards", look)
    return seen


def test_without_hosts_the_nodes_are_on_this_machine(home: Path) -> None:
    ran = init("--home", str(home), "--workers", "2", "--subnet", "198.18.9.0/24")

    spec = read_spec(home / "cluster.toml")
    assert (spec.kind, len(spec.workers), spec.network.subnet) == ("emulated", 2, "198.18.9.0/24")
    assert {node.cores for node in spec.nodes} == {4}
    assert spec.security is Security.EMULATED
    assert ran.stdout.splitlines() == [
        f"wrote {home}/cluster.toml",
        f"next: edit it if you like, then run `boardcluster up --home {home}`",
    ]


def test_a_local_node_is_this_machine_itself(home: Path) -> None:
    init("--home", str(home), "--kind", "local")

    spec = read_spec(home / "cluster.toml")
    assert (spec.kind, [node.name for node in spec.nodes]) == ("local", ["localhost"])
    assert spec.security is Security.LOCAL


def test_what_is_given_arrives_where_boards_are_looked_at(
    home: Path, looked: list[dict[str, Any]]
) -> None:
    ran = init(
        *("--home", str(home), "--hosts", "a, b", "--master", "b", "--profile", "upstream"),
        *("--engines", pair_ids()[-1], "--insecure-lab", "--yes", "--subnet", "10.9.0.0/24"),
    )

    (asked,) = looked
    del asked["reporter"]
    assert asked == {
        "hosts": ["a", "b"],
        "home": home,
        "name": "default",
        "engines": pair_ids()[-1],
        "profile": "upstream",
        "security": Security.INSECURE_LAB,
        "master": "b",
        "subnet": "10.9.0.0/24",
        "accept": True,
    }
    spec = read_spec(home / "cluster.toml")
    assert (spec.kind, spec.security) == ("boards", Security.INSECURE_LAB)
    assert INSECURE_WARNING in ran.stdout.splitlines()


def test_boards_are_closed_and_unseen_keys_not_accepted_unless_asked_for(
    tmp_path: Path, looked: list[dict[str, Any]]
) -> None:
    ran = init("--cluster", "pis", "--hosts", "a")

    assert INSECURE_WARNING not in ran.stdout
    (asked,) = looked
    assert (asked["security"], asked["accept"]) == (Security.CLOSED, False)
    assert asked["subnet"] == ""
    assert asked["name"] == "pis"
    assert read_spec(tmp_path / "boardcluster" / "pis" / "cluster.toml").name == "pis"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        # Also with the value that it has anyway: who gives it means something.
        (["--hosts", "a", "--workers", "4"], "--workers can only be used with emulated nodes"),
        (["--insecure-lab"], "--insecure-lab can only be used with boards"),
        (
            ["--master", "a", "--insecure-lab"],
            "--insecure-lab and --master can only be used with boards",
        ),
        (["--kind", "local", "--workers", "2"], "--workers cannot be used with --kind local"),
        (
            ["--kind", "local", "--subnet", "198.18.0.0/24", "--master", "a"],
            "--subnet and --master cannot be used with --kind local",
        ),
        (["--kind", "local", "--hosts", "a"], "--hosts cannot be used with --kind local"),
        (["--kind", "boards"], "--kind boards needs the names of the nodes"),
        (["--kind", "cloud"], '"cloud" is not a kind of node'),
    ],
)
def test_an_option_that_would_be_left_unheard_is_refused(
    words: list[str], message: str, home: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        init("--home", str(home), *words)

    assert caught.value.message == message
    assert caught.value.hint
    assert not home.exists()


def test_boards_that_are_refused_leave_the_file_as_it_was(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init("--home", str(home))
    before = (home / "cluster.toml").read_text()

    def refuse(*_: object, **__: object) -> None:
        raise HostError("a: 32-bit")

    monkeypatch.setattr(module, "look_at_boards", refuse)
    with pytest.raises(HostError):
        init("--home", str(home), "--hosts", "a", "--force")

    assert (home / "cluster.toml").read_text() == before


def test_a_file_is_replaced_only_by_force(home: Path, looked: list[dict[str, Any]]) -> None:
    init("--home", str(home))

    with pytest.raises(UsageError, match="already exists") as caught:
        init("--home", str(home), "--hosts", "a")

    assert f"boardcluster init --home {home} --force" in caught.value.hint
    assert looked == []
    init("--home", str(home), "--hosts", "a", "--force")
    assert read_spec(home / "cluster.toml").kind == "boards"
