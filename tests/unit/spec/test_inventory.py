"""Ansible inventories in and out."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from boardcluster.errors import SpecError
from boardcluster.records import ClusterSpec
from boardcluster.spec.inventory import Inventory, parse_inventory, render_inventory

PATH = Path("inventory.json")


def listed(hostvars: dict[str, Any], **groups: Any) -> dict[str, Any]:
    """What ``ansible-inventory --list`` prints; without groups every host is ungrouped."""
    groups = groups or {"all": {"children": ["ungrouped"]}, "ungrouped": {"hosts": [*hostvars]}}
    return {"_meta": {"hostvars": hostvars, "profile": "inventory_legacy"}, **groups}


def parse(document: Any) -> Inventory:
    return parse_inventory(json.dumps(document), path=PATH)


def destinations(inventory: Inventory) -> dict[str, str]:
    return {host.name: host.destination for host in inventory.hosts}


def test_hosts_groups_and_variables() -> None:
    found = parse(
        listed(
            {
                "desk": {"ansible_host": "192.168.1.5", "ansible_user": "anyone"},
                "pi0": {"ansible_host": "192.168.1.10", "ansible_user": "admin"},
                "pi1": {"ansible_user": "worker", "ansible_become": True},
                "pi09": {"ansible_user": "worker", "ansible_port": 2222, "ansible_become": True},
                "big": {"ansible_ssh_private_key_file": "~/.ssh/a key", "ansible_port": "22"},
            },
            all={"children": ["ungrouped", "boards"]},
            ungrouped={"hosts": ["desk"]},
            boards={"children": ["master", "workers"]},
            master={"hosts": ["pi0"]},
            workers={"hosts": ["pi1", "pi09", "big", "bare"]},
        )
    )

    assert destinations(found) == {
        "desk": "anyone@192.168.1.5",
        "pi0": "admin@192.168.1.10",
        "pi1": "worker@pi1",
        "pi09": "ssh://worker@pi09:2222",
        "big": "ssh://big:22",
        "bare": "bare",
    }
    groups = {host.name: host.groups for host in found.hosts}
    assert groups["desk"] == frozenset()
    assert groups["pi0"] == {"master", "boards"}
    assert groups["pi09"] == {"workers", "boards"}
    assert found.hosts[4].identity == "~/.ssh/a key"
    become, key = found.remarks
    assert become == '"ansible_become" is ignored'
    assert key.startswith('"big": ')
    assert 'IdentityFile "~/.ssh/a key"' in key


def test_a_host_in_two_groups_is_one_host() -> None:
    groups = {"all": {"children": ["a", "b"]}, "a": {"hosts": ["pi0", "pi1"]}}
    found = parse(listed({}, **groups, b={"hosts": ["pi0"]}))

    assert [host.name for host in found.hosts] == ["pi0", "pi1"]
    assert found.hosts[0].groups == {"a", "b"}


def test_hosts_keep_the_order_of_their_groups() -> None:
    found = parse(
        listed(
            {},
            all={"children": ["a", "b"]},
            a={"hosts": ["pi3"], "children": ["c", "d"]},
            b={"hosts": ["pi0"], "children": ["c"]},
            c={"hosts": ["pi2"], "children": ["d"]},
            d={"hosts": ["pi1", "pi3"]},
        )
    )

    assert [(host.name, "".join(sorted(host.groups))) for host in found.hosts] == [
        ("pi3", "abcd"),
        ("pi2", "abc"),
        ("pi1", "abcd"),
        ("pi0", "b"),
    ]


@pytest.mark.parametrize(
    ("depth", "children"),
    [(3000, ("g{}",)), (30, ("g{}", "g{}")), (30, ("g{}", "h{}"))],
    ids=["chain", "named twice", "diamonds"],
)
def test_each_group_is_visited_once(depth: int, children: tuple[str, ...]) -> None:
    groups: dict[str, Any] = {"all": {"children": ["g0"]}, f"g{depth}": {"hosts": ["pi0"]}}
    for level in range(depth):
        below = {"children": [child.format(level + 1) for child in children]}
        groups |= {f"g{level}": below, f"h{level}": below}

    (host,) = parse(listed({}, **groups)).hosts

    assert {f"g{level}" for level in range(depth + 1)} <= host.groups


def test_control_characters_are_not_repeated() -> None:
    name, variable, identity = "pi\x1b[2J", "a\x1b]0;b\x07", "~/\x1b[1mkey"
    own = {"ansible_host": "pi0", "ansible_ssh_private_key_file": identity, variable: 1}
    remarks = " ".join(parse(listed({name: own})).remarks)
    assert remarks.isprintable()
    assert r"pi\u001b[2J" in remarks
    assert r"a\u001b]0;b\u0007" in remarks
    assert r"~/\u001b[1mkey" in remarks

    wrongs: list[dict[str, Any]] = [{"ansible_port": 0}, {"ansible_host": []}]
    for wrong in wrongs:
        with pytest.raises(SpecError) as caught:
            parse(listed({name: wrong}))
        assert caught.value.message.isprintable()


def test_older_names_and_addresses_of_ipv6() -> None:
    found = parse(
        listed(
            {
                "pi0": {"ansible_ssh_host": "fe80::1%eth0", "ansible_ssh_user": "pi"},
                "pi1": {
                    "ansible_host": "::1",
                    "ansible_ssh_port": 2222,
                    "ansible_private_key_file": "/k",
                },
            }
        )
    )

    assert destinations(found) == {"pi0": "ssh://pi@[fe80::1%eth0]", "pi1": "ssh://[::1]:2222"}
    assert [host.identity for host in found.hosts] == ["", "/k"]


def test_what_is_ignored_is_said_once_and_without_its_value() -> None:
    found = parse(
        listed(
            {
                "pi0": {
                    "ansible_ssh_common_args": "-o ProxyJump=gate",
                    "ansible_password": {"__ansible_vault": "6162"},
                },
                "pi1": {"ansible_password": "secret", "disks": ["a", {"b": "{{ c }}"}]},
            }
        )
    )

    assert found.remarks == (
        '"ansible_ssh_common_args" is ignored: put such options into ~/.ssh/config',
        '"ansible_password" is ignored',
        '"disks" is ignored',
    )


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"ansible_port": "ssh"}, '"pi0": port "ssh"; allowed: 1 to 65535'),
        ({"ansible_port": 70000}, '"pi0": port "70000"'),
        ({"ansible_port": "9" * 5000}, "allowed: 1 to 65535"),
        ({"ansible_port": "0" * 5000}, "allowed: 1 to 65535"),
        ({"ansible_host": "-oProxyCommand=x"}, '"pi0": .* is not a host; allowed'),
        ({"ansible_user": "a b"}, '"pi0": .* is not a host'),
        ({"ansible_host": "{{ x }}"}, '"pi0": ansible_host: .*allowed: plain text; templates'),
        ({"ansible_host": ["a"]}, '"pi0": ansible_host: .*allowed: plain text'),
        ({"ansible_user": {"__ansible_vault": "1"}}, '"pi0": ansible_user: .*allowed: plain text'),
        ({"ansible_connection": "local"}, '"pi0": reached not by ssh but by "local"; allowed: ssh'),
    ],
)
def test_what_is_wrong_with_a_host(variables: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        parse(listed({"pi0": variables}))

    assert caught.value.message.startswith('inventory.json: "pi0"')
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not the JSON of `ansible-inventory --list`"),
        ('{"all": {"hosts": {"pi0": null}}}', "not the JSON of `ansible-inventory --list`"),
        ('{"_meta": {}, "all": []}', "not the JSON of `ansible-inventory --list`"),
        ('{"_meta": {}, "all": {"hosts": 3}}', "not the JSON of `ansible-inventory --list`"),
        ('{"_meta": {"hostvars": []}, "all": {"hosts": ["a"]}}', "hostvars: .*allowed: a table"),
        (
            '{"_meta": {"hostvars": {"n1": "ab x"}}, "all": {"hosts": ["n1"]}}',
            'variables of "n1": "ab x"; allowed: a table',
        ),
        (
            '{"_meta": {}, "all": {"hosts": "abc"}}',
            'hosts of group "all"; allowed: a list of names',
        ),
        ('{"_meta": {}, "all": {"hosts": [1]}}', 'hosts of group "all"; allowed: a list of names'),
        ('{"_meta": {}, "all": {"children": "abc"}}', 'children of group "all"; allowed: a list'),
        ('{"_meta": {}, "all": {"children": [[]]}}', 'children of group "all"; allowed: a list'),
        (
            json.dumps(
                listed({}, all={"children": ["a"]}, a={"children": ["b"]}, b={"children": ["a"]})
            ),
            'the group "[ab]" is inside itself',
        ),
        ('{"_meta": {}, "all": {"children": ["all"]}}', 'the group "all" is inside itself'),
        ('{"_meta": {"hostvars": {}}, "all": {"children": ["ungrouped"]}}', "no host"),
        (
            '{"_meta": {}, "all": {"hosts": ["a"], "vars": {"ansible_user": "pi"}}}',
            "variables of groups are not merged into their hosts",
        ),
        (json.dumps(listed({f"pi{n}": {} for n in range(1025)})), "1025 hosts; allowed: at most"),
    ],
)
def test_what_is_no_list_of_hosts(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        parse_inventory(text, path=PATH)

    assert caught.value.message.startswith("inventory.json: ")
    assert caught.value.hint


def test_what_is_written(make_spec: Callable[..., ClusterSpec]) -> None:
    hosts = ("pi@pi0", "ssh://admin@10.0.0.2:2222", "ssh://[fe80::1]", "board3")
    spec = make_spec(workers=4, combined=True)
    nodes = (replace(node, host=host) for node, host in zip(spec.nodes, hosts, strict=True))

    text = render_inventory(replace(spec, kind="boards", nodes=tuple(nodes)))

    assert text.startswith("# The boards of demo, written by boardcluster.\nall:\n")
    names = ("master", "worker1", "worker2", "worker3")
    assert yaml.safe_load(text) == {
        "all": {
            "hosts": {
                "master": {"ansible_host": "pi0", "ansible_user": "pi"},
                "worker1": {
                    "ansible_host": "10.0.0.2",
                    "ansible_user": "admin",
                    "ansible_port": 2222,
                },
                "worker2": {"ansible_host": "fe80::1"},
                "worker3": {"ansible_host": "board3"},
            },
            "children": {
                "boardcluster_master": {"hosts": {"master": None}},
                "boardcluster_workers": {"hosts": dict.fromkeys(names)},
            },
        }
    }


def test_emulated_nodes_have_no_inventory(make_spec: Callable[..., ClusterSpec]) -> None:
    with pytest.raises(SpecError, match="nodes of demo are of the kind emulated"):
        render_inventory(make_spec())
