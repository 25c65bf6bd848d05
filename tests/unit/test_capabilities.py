"""What kinds of nodes declare, and that it fits together."""

import dataclasses

import pytest

from boardcluster.capabilities import Network, capabilities_of, every_kind, kinds_with
from boardcluster.cluster.kinds import load_kind
from boardcluster.errors import UsageError
from boardcluster.records import Security


def test_the_first_kind_is_what_init_proposes() -> None:
    assert list(every_kind()) == ["emulated", "boards", "local"]
    assert load_kind(next(iter(every_kind()))).propose is not None


@pytest.mark.parametrize("name", list(every_kind()))
def test_a_kind_contradicts_itself_nowhere(name: str) -> None:
    kind = capabilities_of(name)
    assert kind.kind == name
    assert set(kind.securities) <= {row.value for row in Security}
    assert bool(kind.mark) == bool(kind.short_mark)
    assert not (kind.over_ssh and kind.on_this_machine)
    assert kind.over_ssh == (kind.network is Network.LAN)
    assert not (kind.limited and not kind.emulated), "only emulated nodes can be held to boards"
    assert kind.nodes_max == 1 or kind.network is not Network.LOOPBACK
    assert (load_kind(name).propose is None) == kind.over_ssh


def test_no_two_kinds_are_told_alike() -> None:
    for name in ("rank", "meaning", "noun", "mark", "short_mark"):
        found = [getattr(row, name) for row in every_kind().values()]
        assert len(set(found)) == len(found), name


def test_flags_are_flags() -> None:
    for row in every_kind().values():
        for item in dataclasses.fields(row):
            if item.type == "bool":
                assert isinstance(getattr(row, item.name), bool), (row.kind, item.name)


def test_an_unknown_kind_is_refused_with_those_that_exist() -> None:
    with pytest.raises(UsageError, match='"cloud" is not a kind of node') as caught:
        capabilities_of("cloud")
    assert "emulated, boards, local" in caught.value.hint


def test_kinds_are_named_by_what_they_can() -> None:
    assert kinds_with("over_ssh") == 'the kind "boards"'
    assert kinds_with("shares_files") == 'the kinds "emulated" and "local"'
    with pytest.raises(RuntimeError, match="swims is no capability"):
        kinds_with("swims")
