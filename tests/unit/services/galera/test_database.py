"""What a database refuses before it starts anything, on nodes that fail on all else."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.services.looked_at import STATE, LookedAt, looked_at

from boardcluster.errors import AddressError, CapacityError, HostError, RunError
from boardcluster.services.galera import database
from boardcluster.services.galera.config import PROVIDER
from boardcluster.services.galera.database import _proof_of, replicated
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster


@pytest.fixture
def live(
    make_spec: Callable[..., Any], make_layout: Callable[..., Layout], tmp_path: Path
) -> LiveCluster:
    layout = make_layout(make_spec(workers=3))
    remotes = {node.name: LookedAt(node.name) for node in layout.spec.nodes}
    return LiveCluster(home=tmp_path, state=STATE, layout=layout, remotes=remotes)


def start(live: LiveCluster) -> None:
    with replicated(live, mark={}):
        raise AssertionError("it must not run")


def test_missing_packages_are_named_with_their_nodes_and_the_command(live: LiveCluster) -> None:
    looked_at(live, "worker2").says = (
        f"lacks {PROVIDER}",
        "lacks /usr/bin/sysbench",
    )
    looked_at(live, "master").says = (
        "lacks /usr/bin/sysbench",
        "lacks /usr/sbin/mariadbd",
    )

    with pytest.raises(HostError) as caught:
        start(live)

    # The master has no data, so that it needs no server; workers need no client.
    assert caught.value.message.endswith(
        f"master lacks /usr/bin/sysbench; worker2 lacks {PROVIDER}"
    )
    assert "apt-get install --no-install-recommends galera-4 sysbench`" in caught.value.hint
    assert "systemctl" not in caught.value.hint  # neither has a service of its own


def test_a_service_that_comes_with_a_missing_package_is_named(live: LiveCluster) -> None:
    looked_at(live, "master").says = ("lacks /usr/sbin/haproxy",)

    with pytest.raises(HostError) as caught:
        start(live)

    words = "if you do not use it, `sudo systemctl disable --now haproxy`"
    assert caught.value.hint.endswith(words)


def test_a_port_in_use_is_named_before_anything_starts(live: LiveCluster) -> None:
    looked_at(live, "master").tell_node_agent("listening", [])
    looked_at(live, "worker1").tell_node_agent("listening", [8012])

    with pytest.raises(AddressError, match=r"on node worker1 another program .* port 8012, which"):
        start(live)


def test_the_server_keeps_a_password_as_mariadb_does() -> None:
    # SELECT PASSWORD('secret') of MariaDB 10.11
    assert _proof_of("secret") == "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"


def test_what_says_if_a_server_is_in_step_knows_how_slow_its_node_is(live: LiveCluster) -> None:
    slow = replace(live, layout=replace(live.layout, dilation=12.5))

    assert database._checker(slow, slow.spec.workers[0], ())[-1] == "12.5"


def test_first_statements_may_take_as_much_longer_as_nodes_are_slower(
    live: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = replace(live, layout=replace(live.layout, dilation=12.5))
    patience: list[float] = []

    def run(*_: object, timeout_seconds: float = 60.0, **__: object) -> None:
        patience.append(timeout_seconds)

    for name in ("_start", "_await", "write_files"):
        monkeypatch.setattr(database, name, lambda *_, **__: None)
    monkeypatch.setattr(looked_at(slow, "worker1"), "run", run)
    database._start_first(slow, ("env",))

    assert patience == [1500.0, 1500.0]


def begun(live: LiveCluster, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have a database begin at once, of which something stays; return the tags that were ended."""
    for name in (
        "_look",
        "check_ports",
        "_configure",
        "_start_first",
        "_start_others",
        "_start_balancer",
    ):
        monkeypatch.setattr(database, name, lambda *_, **__: None)
    ended: list[str] = []

    def end(_: LiveCluster, tag: str, __: object) -> list[str]:
        ended.append(tag)
        return ["worker1: it does not answer"]

    monkeypatch.setattr(database, "_end", end)
    return ended


@pytest.mark.parametrize(("blocks", "kind"), [(100, CapacityError), (1_000_000, RunError)])
def test_what_fails_on_a_full_disk_is_said_to_fail_of_it(
    live: LiveCluster, monkeypatch: pytest.MonkeyPatch, blocks: int, kind: type[Exception]
) -> None:
    ended = begun(live, monkeypatch)
    for worker in live.spec.workers:
        full = worker.name == "worker2"
        looked_at(live, worker.name).tell(
            *("stat", "-f", "-c", "%a %S", database.database_folder(live.layout, worker)),
            stdout=f"{blocks if full else 1_000_000} 4096\n",
        )

    with (
        pytest.raises(kind, match="saturation: exit status 1") as caught,
        replicated(live, mark={}),
    ):
        raise RunError("saturation: exit status 1")

    assert len(ended) == 1
    assert "may still run: worker1: it does not answer" in str(caught.value)
    assert ("is full on worker2;" in str(caught.value)) is (kind is CapacityError)


def test_what_may_still_run_is_told_after_ctrl_c_too(
    live: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(live, monkeypatch)

    with pytest.raises(KeyboardInterrupt) as caught, replicated(live, mark={}):
        raise KeyboardInterrupt

    (note,) = caught.value.__notes__
    assert note.startswith("servers of the database may still run: worker1: it does not answer")
