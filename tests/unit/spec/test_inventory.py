"""Ansible inventories in and out."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster.errors import SpecError
from boardcluster.records import ClusterSpec
from boardcluster.spec.inventory import Inventory, InventoryHost, read_inventory, render_inventory

Read = Callable[..., Inventory]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def one(text: str, *, name: str = "hosts") -> Inventory:
        path = tmp_path / name
        path.write_text(text)
        return read_inventory(path)

    return one


def destinations(inventory: Inventory) -> dict[str, str]:
    return {host.name: host.destination for host in inventory.hosts}


INI = """\
# boards on the desk
desk ansible_host=192.168.1.5  # a comment

[master]
pi0 ansible_host=192.168.1.10 ansible_user=admin

[workers]
pi[1:2]
pi09:2222
; the last one
big ansible_ssh_private_key_file="~/.ssh/a key" ansible_port=22

[boards:children]
master
workers

[boards:vars]
ansible_user = pi

[workers:vars]
ansible_user="worker"
ansible_become=yes

[all:vars]
ansible_user=anyone
"""

YAML = """\
---
all:
  hosts:
    desk: {ansible_host: 192.168.1.5}
  vars:
    ansible_user: anyone
  children:
    boards:
      vars: {ansible_user: pi}
      children:
        master:
          hosts:
            pi0:
              ansible_host: 192.168.1.10
              ansible_user: admin
        workers:
          hosts:
            pi[1:2]:
            pi09:
              ansible_port: 2222
            big:
              ansible_ssh_private_key_file: ~/.ssh/a key
              ansible_port: 22
          vars:
            ansible_user: worker
            ansible_become: yes
"""


@pytest.mark.parametrize(("text", "name"), [(INI, "hosts"), (YAML, "hosts.yml"), (YAML, "hosts")])
def test_both_forms_say_the_same(read: Read, text: str, name: str) -> None:
    found = read(text, name=name)

    assert destinations(found) == {
        "desk": "anyone@192.168.1.5",
        "pi0": "admin@192.168.1.10",
        "pi1": "worker@pi1",
        "pi2": "worker@pi2",
        "pi09": "ssh://worker@pi09:2222",
        "big": "ssh://worker@big:22",
    }
    assert [host.name for host in found.hosts][:2] == ["desk", "pi0"]
    groups = {host.name: host.groups for host in found.hosts}
    assert groups["desk"] == frozenset()
    assert groups["pi0"] == {"master", "boards"}
    assert groups["pi09"] == {"workers", "boards"}
    assert found.hosts[-1].identity == "~/.ssh/a key"
    become, key = found.remarks
    assert "ansible_become is ignored" in become
    assert key.startswith("big: ")
    assert "IdentityFile ~/.ssh/a key" in key


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("pi[0:3]", ["pi0", "pi1", "pi2", "pi3"]),
        ("pi[08:10]", ["pi08", "pi09", "pi10"]),
        ("pi[8:10].lab", ["pi8.lab", "pi9.lab", "pi10.lab"]),
        ("n[0:4:2]", ["n0", "n2", "n4"]),
        ("rack-[a:c]", ["rack-a", "rack-b", "rack-c"]),
        ("r[1:2]n[1:2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("pi[5:5]", ["pi5"]),
    ],
)
def test_ranges(read: Read, pattern: str, names: list[str]) -> None:
    assert [host.name for host in read(f"{pattern}\n").hosts] == names
    assert [host.name for host in read(f"all:\n  hosts:\n    {pattern}:\n").hosts] == names


@pytest.mark.parametrize(
    "pattern",
    ["pi[3:0]", "pi[0:c]", "pi[01:100]", "pi[0:]", "pi[0:3", "pi[0-3]", "pi[0:9:0]", "p[0:99999]"],
)
def test_ranges_that_are_none(read: Read, pattern: str) -> None:
    with pytest.raises(SpecError, match=r"hosts:2: range .*; allowed: \[0:3\], \[01:10\]"):
        read(f"# one\n{pattern}\n")


def test_a_range_of_too_many_hosts_is_refused_and_not_written_out(read: Read) -> None:
    with pytest.raises(SpecError, match="too many hosts; allowed: at most 1024"):
        read("a[0:999]b[0:999]c[0:999]d[0:999]\n")


def test_variables_of_a_host_apply_to_its_whole_range(read: Read) -> None:
    found = read("pi[1:2]:2022 ansible_user=pi\n")

    assert destinations(found) == {"pi1": "ssh://pi@pi1:2022", "pi2": "ssh://pi@pi2:2022"}


def test_a_host_named_twice_is_one_host(read: Read) -> None:
    found = read("[a]\npi0 ansible_user=one\npi1\n[b]\npi0 ansible_user=two\n")

    assert destinations(found) == {"pi0": "two@pi0", "pi1": "pi1"}
    assert found.hosts[0].groups == {"a", "b"}


def test_a_deeper_group_wins_and_among_equals_the_later_by_name(read: Read) -> None:
    text = (
        "[z]\npi0\n[a]\npi0\npi1\n[top:children]\na\n"
        "[z:vars]\nansible_user=z\n[a:vars]\nansible_user=a\n[top:vars]\nansible_user=top\n"
    )
    assert destinations(read(text)) == {"pi0": "a@pi0", "pi1": "a@pi1"}
    level = text.replace("[top:children]\na\n", "[top]\npi9\n")
    assert destinations(read(level)) == {"pi0": "z@pi0", "pi1": "a@pi1", "pi9": "top@pi9"}


def test_older_names_and_addresses_of_ipv6(read: Read) -> None:
    found = read(
        "pi0 ansible_ssh_host=fe80::1%eth0 ansible_ssh_user=pi\n"
        "pi1 ansible_host=::1 ansible_ssh_port=2222 ansible_private_key_file=/k\n"
    )

    assert destinations(found) == {"pi0": "ssh://pi@[fe80::1%eth0]", "pi1": "ssh://[::1]:2222"}
    assert [host.identity for host in found.hosts] == ["", "/k"]


def test_what_is_ignored_is_said_once_and_without_its_value(read: Read) -> None:
    found = read(
        "pi0 ansible_ssh_common_args='-o ProxyJump=gate' ansible_password=secret\n"
        "pi1 ansible_password=secret rack=3\n"
    )

    assert found.remarks == (
        "line 1: ansible_ssh_common_args is ignored: put such options into ~/.ssh/config",
        "line 1: ansible_password is ignored",
        "line 2: rack is ignored",
    )


def test_ignored_values_of_yaml_may_be_anything(read: Read) -> None:
    found = read(
        "all:\n  hosts:\n    pi0:\n"
        "      ansible_become_password: !vault |\n        $ANSIBLE_VAULT;1.1;AES256\n        6162\n"
        "      disks: [a, {b: c}]\n"
        "      greeting: '{{ name }}'\n",
        name="hosts.yaml",
    )

    assert destinations(found) == {"pi0": "pi0"}
    assert len(found.remarks) == 3


def test_merge_keys_and_anchors_of_yaml(read: Read) -> None:
    found = read(
        "all:\n  vars: &common {ansible_user: pi, ansible_port: 22}\n  hosts:\n"
        "    pi0: {<<: *common, ansible_port: 2022}\n"
        "    pi1: {<<: [{ansible_user: first}, *common]}\n",
        name="hosts.yml",
    )

    assert destinations(found) == {"pi0": "ssh://pi@pi0:2022", "pi1": "ssh://first@pi1:22"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "hosts: no host"),
        ("# nothing\n", "hosts: no host"),
        ("pi0 user pi\n", 'hosts:1: "user"; allowed: HOST VARIABLE=VALUE'),
        ("pi0 a='b\n", "hosts:1: .*No closing quotation"),
        ("[workers:childs]\n", r"hosts:1: section .*allowed: \[GROUP\], \[GROUP:children\]"),
        ("[workers:vars]\nansible_user\n", 'hosts:2: "ansible_user"; allowed: VARIABLE=VALUE'),
        ("pi0\n[a:children]\nb c\n", 'hosts:3: "b c"; allowed: the name of a group'),
        (
            "[workers]\npi0\n[worker:vars]\nansible_user=pi\n",
            'hosts:3: group "worker" is nowhere declared; .*did you mean "workers"',
        ),
        ("[a:children]\nb\n[c]\npi0\n", 'hosts:2: group "b" is nowhere declared'),
        ("[a]\npi0\n[a:children]\nb\n[b:children]\na\n", "hosts: groups in a ring: a in b in a"),
        ("pi0 ansible_port=ssh\n", 'hosts:1: port "ssh"; allowed: 1 to 65535'),
        ("pi0 ansible_port=70000\n", 'hosts:1: port "70000"'),
        ("pi0 ansible_host=-oProxyCommand=x\n", "hosts:1: .* is not a host; allowed"),
        ("pi0\n-x ansible_user=pi\n", "hosts:2: .* is not a host"),
        ("pi0 'ansible_user=a b'\n", "hosts:1: .* is not a host"),
        ("pi0 ansible_host='{{ x }}'\n", "hosts:1: ansible_host: .* is a template"),
        (
            "pi0 ansible_connection=local\n",
            'hosts:1: pi0 is not reached by ssh but by "local"; allowed: ssh, smart',
        ),
    ],
)
def test_what_is_wrong_in_ini(read: Read, text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        read(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "hosts.yml: no host"),
        ("all: [\n", "hosts.yml:2: not YAML"),
        ("- pi0\n", "hosts.yml:1: groups: not a mapping"),
        ("all:\n  hosts: [pi0]\n", "hosts.yml:2: hosts: not a mapping; allowed: names, each with"),
        ("all:\n  hosts:\n    pi0: pi1\n", "hosts.yml:3: variables: not a mapping"),
        (
            "all:\n  host:\n    pi0:\n",
            'hosts.yml:2: "host" in group "all"; allowed: hosts, vars, children; .*"hosts"',
        ),
        ("all:\n  hosts:\n    pi0:\n    pi0:\n", 'hosts.yml:4: hosts: "pi0" stands there twice'),
        ("all:\n  hosts:\n    [a, b]:\n", "hosts.yml:3: hosts: a key is not a name"),
        (
            "all:\n  hosts:\n    pi0:\n      ansible_host: [a]\n",
            "hosts.yml:4: ansible_host is not plain text",
        ),
        (
            "all:\n  hosts:\n    pi0:\n      ansible_user: !vault x\n",
            "hosts.yml:4: ansible_user is not plain text",
        ),
        (
            "a: &a\n  children:\n    b:\n      children:\n        a: *a\n",
            'group "a" is inside itself',
        ),
        ("all: " + "[" * 5000, "nested too deeply"),
        ("all: \x00\n", "hosts.yml: not YAML"),
    ],
)
def test_what_is_wrong_in_yaml(read: Read, text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        read(text, name="hosts.yml")


def test_files_that_are_no_inventory(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"absent: cannot be read: No such file"):
        read_inventory(tmp_path / "absent")
    with pytest.raises(SpecError, match="a folder"):
        read_inventory(tmp_path)
    path = tmp_path / "hosts"
    path.write_text("#!/usr/bin/env python3\n")
    with pytest.raises(SpecError, match="a program, and none is run") as caught:
        read_inventory(path)
    assert f"ansible-inventory -i {path} --list --yaml" in caught.value.hint
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="not text in UTF-8"):
        read_inventory(path)
    path.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(SpecError, match="larger than 1 MiB"):
        read_inventory(path)


def test_what_is_written_reads_back(make_spec: Callable[..., ClusterSpec], tmp_path: Path) -> None:
    hosts = ("pi@pi0", "ssh://admin@10.0.0.2:2222", "ssh://[fe80::1]", "board3")
    spec = make_spec(workers=4, combined=True)
    nodes = (replace(node, host=host) for node, host in zip(spec.nodes, hosts, strict=True))
    path = tmp_path / "inventory.yml"

    path.write_text(render_inventory(replace(spec, kind="boards", nodes=tuple(nodes))))

    assert path.read_text().startswith("# The boards of demo, written by boardcluster.\nall:\n")
    both = frozenset({"boardcluster_master", "boardcluster_workers"})
    worker = frozenset({"boardcluster_workers"})
    assert read_inventory(path) == Inventory(
        hosts=tuple(
            InventoryHost(name=name, destination=host, groups=groups, identity="")
            for name, host, groups in zip(
                ("master", "worker1", "worker2", "worker3"),
                hosts,
                (both, worker, worker, worker),
                strict=True,
            )
        ),
        remarks=(),
    )


def test_emulated_nodes_have_no_inventory(make_spec: Callable[..., ClusterSpec]) -> None:
    with pytest.raises(SpecError, match="nodes of demo are of the kind emulated"):
        render_inventory(make_spec())
