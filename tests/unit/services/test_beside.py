"""How a service ends: what it left is named, and what follows its end waits for that."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.services.looked_at import LookedAt

from boardcluster.errors import RemoteError
from boardcluster.records import NodeSpec
from boardcluster.services.beside import end_service, ending, missing_programs


def test_only_where_a_service_has_ended_goes_on_what_follows(
    make_spec: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = make_spec(workers=2).nodes
    remotes = {node.name: LookedAt(node.name) for node in nodes}
    for name in ("master", "worker1"):
        remotes[name].tell_node_agent("end_marked", None)
    remotes["worker1"].tell_node_agent("listening", [8001])
    monkeypatch.setattr(time, "sleep", lambda _: None)
    followed: list[NodeSpec] = []

    left = end_service(
        remotes,
        nodes,
        "MARK=1",
        ports={"worker1": [8001], "worker2": [8001]},
        grace_seconds=0.01,
        dilation=1.0,
        then=followed.append,
    )

    # The master has no port of it; the second worker was told nothing, and fails.
    assert [node.name for node in followed] == ["master"]
    assert sorted(words.partition(":")[0] for words in left) == ["worker1", "worker2"]
    assert "worker1: something still listens on port 8001" in left


def test_what_may_still_run_is_told_where_an_error_is_read() -> None:
    ours, ctrl_c = RemoteError("out of reach", hint="a hint"), KeyboardInterrupt()

    for error in (ours, ctrl_c):
        with pytest.raises(type(error)), ending(lambda: ["worker1"], "servers"):
            raise error

    words = "servers may still run: worker1; run `boardcluster down`, which ends everything"
    assert (ours.message, ours.hint) == (f"out of reach; {words}", "a hint")
    assert not hasattr(ours, "__notes__")
    assert ctrl_c.__notes__ == [words]


def test_what_is_missing_is_named_by_node_with_each_package_once() -> None:
    said = {"master": ["root"], "worker1": ["lacks /a", "lacks /b"], "worker2": ["lacks /a"]}

    words, packages = missing_programs(said, {"/a": "one", "/b": "one"})

    assert words == "worker1 lacks /a, /b; worker2 lacks /a"
    assert packages == ["one"]
    assert missing_programs({"master": ["root"]}, {}) == ("", [])
