import re
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from boardcluster.errors import SpecError, UsageError
from boardcluster.records import ClusterSpec, NetworkSpec, NodeSpec, Role
from boardcluster.spec.cluster import address_of, host_address, load_cluster

PAIRS = ("hadoop-3.4.2-spark-4.1.4", "hadoop-3.3.6-spark-3.5.9")
PROFILES = ("default", "upstream", "paper-2026", "paper-2021")

GOOD = """\
[cluster]
name = "demo"
kind = "emulated"
engines = "hadoop-3.4.2-spark-4.1.4"
profile = "default"

[network]
subnet = "198.18.0.0/24"
link = "1 Gbit/s"

[[node]]
name = "worker1"
roles = ["worker"]
cores = 1
memory = "1.5 GiB"

[[node]]
name = "boss"
roles = ["master"]
cores = 2
memory = "2 GiB"

[[node]]
name = "worker2"
roles = ["worker"]
cores = 1
memory = 1073741824
"""


def _node(name: str, role: str) -> str:
    return f'[[node]]\nname = "{name}"\nroles = ["{role}"]\ncores = 1\nmemory = "1 GiB"\n'


def _with_nodes(*nodes: str, subnet: str = "198.18.0.0/24") -> str:
    head = GOOD[: GOOD.index("[[node]]")].replace("198.18.0.0/24", subnet)
    return head + "".join(nodes)


def _load(folder: Path, text: str) -> ClusterSpec:
    path = folder / "cluster.toml"
    path.write_text(text, encoding="utf-8")
    return load_cluster(path, engine_pairs=PAIRS, profiles=PROFILES)


def _problems(folder: Path, text: str) -> list[str]:
    """The lines of the error, without the folder in front."""
    with pytest.raises(SpecError) as caught:
        _load(folder, text)
    assert caught.value.hint.startswith("correct ")
    lines = caught.value.message.split("\n")
    assert all(line.startswith(f"{folder}/cluster.toml:") for line in lines)
    return [line.removeprefix(f"{folder}/") for line in lines]


def _change(old: str, new: str, text: str = GOOD) -> str:
    """Replace the first occurrence, which must exist."""
    assert old in text
    return text.replace(old, new, 1)


def test_a_good_file_becomes_a_spec_with_the_master_first(tmp_path: Path) -> None:
    worker = frozenset({Role.WORKER})
    assert _load(tmp_path, GOOD) == ClusterSpec(
        name="demo",
        kind="emulated",
        engines="hadoop-3.4.2-spark-4.1.4",
        profile="default",
        network=NetworkSpec(subnet="198.18.0.0/24", link_bits_per_second=10**9),
        nodes=(
            NodeSpec(name="boss", roles=frozenset({Role.MASTER}), cores=2, memory_bytes=2 * 2**30),
            NodeSpec(name="worker1", roles=worker, cores=1, memory_bytes=3 * 2**29),
            NodeSpec(name="worker2", roles=worker, cores=1, memory_bytes=2**30),
        ),
    )


def test_the_network_may_be_left_out_whole_or_in_part(tmp_path: Path) -> None:
    table = GOOD[GOOD.index("[network]") : GOOD.index("[[node]]")]
    default = NetworkSpec(subnet="198.18.0.0/24", link_bits_per_second=10**9)
    assert _load(tmp_path, _change(table, "")).network == default
    spec = _load(tmp_path, _change(table, '[network]\nlink = "100 Mbit/s"\n'))
    assert spec.network == NetworkSpec(subnet="198.18.0.0/24", link_bits_per_second=10**8)


def test_one_node_may_be_master_and_worker(tmp_path: Path) -> None:
    text = _with_nodes(_node("only", "master").replace('"master"', '"worker", "master"'))
    spec = _load(tmp_path, text)
    assert spec.master == spec.workers[0]


# Old text, new text, the one line expected after the file's name; "..." stands for anything.
SINGLE_MISTAKES = {
    "cluster name": (
        '"demo"',
        '"Demo_1"',
        (
            '2: cluster.name: "Demo_1" is not a valid name; allowed: lower-case letters, '
            'digits and hyphens, ... at most 15 characters; did you mean "demo-1"?'
        ),
    ),
    "cluster name of 16": (
        '"demo"',
        '"a123456789012345"',
        '2: cluster.name: "a123456789012345" ... did you mean "a12345678901234"?',
    ),
    "cluster name that starts with a digit": (
        '"demo"',
        '"1demo"',
        '2: cluster.name: "1demo" is not ... did you mean "demo"?',
    ),
    "cluster name that ends in a hyphen": (
        '"demo"',
        '"demo-"',
        '2: cluster.name: "demo-" is not ... did you mean "demo"?',
    ),
    "cluster name that climbs out of its folder": (
        '"demo"',
        '"../../etc"',
        '2: cluster.name: "../../etc" is not ... did you mean "etc"?',
    ),
    "empty cluster name": ('"demo"', '""', '2: cluster.name: "" is not a valid ...'),
    "cluster name with a line end": (
        '"demo"',
        '"demo\\n"',
        '2: cluster.name: "demo\\n" is not a valid name; ...',
    ),
    "cluster name in other letters": (
        '"demo"',
        '"dém٣"',
        '2: cluster.name: "dém٣" is not a valid name; ...',
    ),
    "cluster name that is a number": (
        '"demo"',
        "7",
        "2: cluster.name: 7 is not allowed; allowed: lower-case letters, ...",
    ),
    "kind": (
        '"emulated"',
        '"emulate"',
        (
            '3: cluster.kind: "emulate" is not a kind of cluster; allowed: boards, emulated, '
            'local; did you mean "emulated"?'
        ),
    ),
    "engines": (
        "hadoop-3.4.2-spark-4.1.4",
        "hadoop-3.4.2",
        (
            '4: cluster.engines: "hadoop-3.4.2" is not an engine pair; allowed: '
            "hadoop-3.3.6-spark-3.5.9, hadoop-3.4.2-spark-4.1.4; did you mean "
            '"hadoop-3.4.2-spark-4.1.4"?'
        ),
    ),
    "profile": (
        '"default"',
        '"Paper2026"',
        (
            '5: cluster.profile: "Paper2026" is not a profile; allowed: default, '
            'paper-2021, paper-2026, upstream; did you mean "paper-2026"?'
        ),
    ),
    "profile in capitals": (
        '"default"',
        '"DEFAULT"',
        '5: cluster.profile: "DEFAULT" is not a profile; allowed: ...; did you mean "default"?',
    ),
    "profile like none": (
        '"default"',
        '"zzz"',
        (
            '5: cluster.profile: "zzz" is not a profile; allowed: default, paper-2021, '
            "paper-2026, upstream"
        ),
    ),
    "profile of another type": (
        '"default"',
        "true",
        (
            "5: cluster.profile: true is not allowed; allowed: default, paper-2021, "
            "paper-2026, upstream, or the path of a .toml file of your own"
        ),
    ),
    "missing profile": (
        'profile = "default"',
        "",
        (
            "1: cluster.profile: missing; allowed: default, paper-2021, paper-2026, upstream, or "
            "the path of a .toml file of your own"
        ),
    ),
    "unknown key in cluster": (
        'kind = "emulated"',
        'kind = "emulated"\nprofil = "x"',
        (
            "4: cluster.profil: unknown key; allowed: name, kind, engines, profile, security; did "
            'you mean "profile"?'
        ),
    ),
    "unknown key in a node": (
        'roles = ["master"]',
        'roles = ["master"]\n"disk size" = 3',
        '20: node[1]."disk size": unknown key; allowed: name, roles, cores, memory, ...',
    ),
    "unknown table": (
        "[network]",
        "[nodes]\nx = 1\n[network]",
        '7: nodes: unknown key; allowed: cluster, network, node, meter, ...did you mean "node"?',
    ),
    "subnet": (
        '"198.18.0.0/24"',
        '"demo"',
        (
            '8: network.subnet: "demo" is not an IPv4 network; allowed: an IPv4 network '
            "inside 198.18.0.0/15 with a prefix from /16 to /28, ..."
        ),
    ),
    "IPv6 subnet": (
        '"198.18.0.0/24"',
        '"fd00::/64"',
        '8: network.subnet: "fd00::/64" is not an IPv4 network; allowed: ...',
    ),
    "subnet of somebody's LAN": (
        '"198.18.0.0/24"',
        '"192.168.0.0/24"',
        '8: network.subnet: "192.168.0.0/24" is outside 198.18.0.0/15; allowed: ...',
    ),
    "subnet next to the allowed range": (
        '"198.18.0.0/24"',
        '"198.20.0.0/24"',
        '8: network.subnet: "198.20.0.0/24" is outside 198.18.0.0/15; allowed: ...',
    ),
    "subnet around the allowed range": (
        '"198.18.0.0/24"',
        '"198.0.0.0/8"',
        '8: network.subnet: "198.0.0.0/8" is outside 198.18.0.0/15; allowed: ...',
    ),
    "subnet too large": (
        '"198.18.0.0/24"',
        '"198.18.0.0/15"',
        '8: network.subnet: "198.18.0.0/15" has the prefix /15; allowed: ...',
    ),
    "subnet too small": (
        '"198.18.0.0/24"',
        '"198.18.0.0/29"',
        '8: network.subnet: "198.18.0.0/29" has the prefix /29; allowed: ...',
    ),
    "subnet without prefix": (
        '"198.18.0.0/24"',
        '"198.18.0.0"',
        '8: network.subnet: "198.18.0.0" has the prefix /32; allowed: ...',
    ),
    "subnet with host bits": (
        '"198.18.0.0/24"',
        '"198.18.7.9/24"',
        (
            '8: network.subnet: "198.18.7.9/24" is an address inside a network, not the '
            'network; allowed: ...; did you mean "198.18.7.0/24"?'
        ),
    ),
    "subnet that is a number": (
        '"198.18.0.0/24"',
        "3323068416",
        "8: network.subnet: 3323068416 is not allowed; allowed: an IPv4 network ...",
    ),
    "link": (
        '"1 Gbit/s"',
        '"1 Gbps"',
        (
            '9: network.link: "1 Gbps" is not a rate; allowed: a number and bit/s, '
            'kbit/s, Mbit/s, Gbit/s, e.g. "1 Gbit/s"'
        ),
    ),
    "link without unit": (
        '"1 Gbit/s"',
        "1000",
        ("9: network.link: 1000 is not a rate; allowed: ... from 1 Mbit/s to 100 Gbit/s"),
    ),
    "link too slow": (
        '"1 Gbit/s"',
        '"999 kbit/s"',
        '9: network.link: "999 kbit/s" is too slow; allowed: ...',
    ),
    "link too fast": (
        '"1 Gbit/s"',
        '"101 Gbit/s"',
        '9: network.link: "101 Gbit/s" is too fast; allowed: ...',
    ),
    "node name": (
        '"boss"',
        '"the boss"',
        (
            '18: node[1].name: "the boss" is not a valid name; allowed: ... at most 63 '
            'characters, except localhost, switch; did you mean "the-boss"?'
        ),
    ),
    "node name localhost": (
        '"boss"',
        '"localhost"',
        ('18: node[1].name: "localhost" is reserved; allowed: ... except localhost, switch'),
    ),
    "node name switch": (
        '"boss"',
        '"switch"',
        '18: node[1].name: "switch" is reserved; allowed: ...',
    ),
    "node name host": (
        '"boss"',
        '"host"',
        "18: node[1].name: a node called 'host': what is measured of this machine ...",
    ),
    "node name of 64": (
        '"boss"',
        f'"{"b" * 64}"',
        f'18: node[1].name: "{"b" * 59}…" is not a valid name; allowed: ...',
    ),
    "node name twice": (
        '"worker2"',
        '"worker1"',
        (
            '24: node[2].name: "worker1" is already the name of node[0] in line 12; '
            "allowed: a name that no other node has"
        ),
    ),
    "role": (
        '["master"]',
        '["mastr"]',
        (
            '19: node[1].roles[0]: "mastr" is not a role; allowed: master, worker; did '
            'you mean "master"?'
        ),
    ),
    "role of another type": (
        '["master"]',
        "[[]]",
        "19: node[1].roles[0]: an empty array is not a role; allowed: master, worker",
    ),
    "roles that are no array": (
        '["master"]',
        '"master"',
        (
            '19: node[1].roles: "master" is not allowed; allowed: an array with one or '
            'more of master, worker, e.g. ["worker"]'
        ),
    ),
    "no role": (
        '["master"]',
        "[]",
        "19: node[1].roles: an empty array is not allowed; allowed: an array with ...",
    ),
    "two masters": (
        '["worker"]',
        '["worker", "master"]',
        (
            '19: node[1].roles: a second "master", the first is node[0] in line 13; '
            "allowed: exactly one node with the role master"
        ),
    ),
    "no master": (
        '["master"]',
        '["worker"]',
        ('11: node: no node has the role "master"; allowed: exactly one node with the role master'),
    ),
    "no cores": (
        "cores = 2",
        "cores = 0",
        "20: node[1].cores: 0 is not allowed; allowed: a whole number from 1 to 1024",
    ),
    "too many cores": ("cores = 2", "cores = 1025", "20: node[1].cores: 1025 is ..."),
    "half a core": ("cores = 2", "cores = 2.5", "20: node[1].cores: 2.5 is not ..."),
    "cores as text": ("cores = 2", 'cores = "2"', '20: node[1].cores: "2" is not ...'),
    "cores as truth": ("cores = 2", "cores = true", "20: node[1].cores: true is ..."),
    "cores beyond counting": (
        "cores = 2",
        f"cores = 0x{'f' * 9000}",
        "20: node[1].cores: a number of more than 64 bits is not allowed; ...",
    ),
    "memory": (
        '"2 GiB"',
        '"4 XB"',
        (
            '21: node[1].memory: "4 XB" is not a size; allowed: a number and B, KB, MB, '
            'GB, TB, KiB, MiB, GiB, TiB, e.g. "4 GiB"'
        ),
    ),
    "memory of another type": (
        '"2 GiB"',
        "2.5",
        "21: node[1].memory: 2.5 is not a size; allowed: ... from 256 MiB to 16 TiB",
    ),
    "memory as truth": (
        '"2 GiB"',
        "true",
        "21: node[1].memory: true is not a size; allowed: ...",
    ),
    "memory too small": (
        '"2 GiB"',
        '"255 MiB"',
        ('21: node[1].memory: "255 MiB" is too small; allowed: ... from 256 MiB to 16 TiB'),
    ),
    "memory too large": (
        '"2 GiB"',
        '"17 TiB"',
        '21: node[1].memory: "17 TiB" is too large; allowed: ...',
    ),
    "memory forgotten a unit": (
        '"2 GiB"',
        "2048",
        "21: node[1].memory: 2048 is too small; allowed: ...",
    ),
    "missing memory": (
        'memory = "2 GiB"',
        "",
        "17: node[1].memory: missing; allowed: a number and B, ...",
    ),
}


@pytest.mark.parametrize("name", SINGLE_MISTAKES)
def test_one_mistake_gives_one_line_that_says_it_all(tmp_path: Path, name: str) -> None:
    old, new, expected = SINGLE_MISTAKES[name]
    (line,) = _problems(tmp_path, _change(old, new))
    pattern = re.escape(f"cluster.toml:{expected}").replace(re.escape("..."), ".*")
    assert re.fullmatch(pattern, line), line


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"demo"', '"a12345678901234"'),
        ('"demo"', '"a"'),
        ('"boss"', f'"{"b" * 63}"'),
        ('"boss"', '"my-switch"'),
        ("cores = 2", "cores = 1"),
        ("cores = 2", "cores = 1024"),
        ('"2 GiB"', '"256 MiB"'),
        ('"2 GiB"', '"16 TiB"'),
        ('"1 Gbit/s"', '"1 Mbit/s"'),
        ('"1 Gbit/s"', '"100 Gbit/s"'),
        ('"198.18.0.0/24"', '"198.19.0.0/16"'),
        ('"198.18.0.0/24"', '"198.19.255.240/28"'),
    ],
)
def test_the_limits_themselves_are_allowed(tmp_path: Path, old: str, new: str) -> None:
    _load(tmp_path, _change(old, new))


def test_every_problem_is_listed_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = GOOD
    for old, new in (
        ('"demo"', '"Demo"'),
        ('"default"', '"defualt"'),
        ('"1 Gbit/s"', '"fast"'),
        ('"1.5 GiB"', '"1.5 Gib"'),
        ('"boss"', '"worker1"'),
        ("cores = 2", "cores = -2"),
        ('"worker2"', '"worker1"'),
    ):
        text = _change(old, new, text)
    text += "spare = true\n"
    places = [line.split(": ")[:2] for line in _problems(tmp_path, text)]
    assert places == [
        ["cluster.toml:2", "cluster.name"],
        ["cluster.toml:5", "cluster.profile"],
        ["cluster.toml:9", "network.link"],
        ["cluster.toml:15", "node[0].memory"],
        ["cluster.toml:18", "node[1].name"],
        ["cluster.toml:20", "node[1].cores"],
        ["cluster.toml:24", "node[2].name"],
        ["cluster.toml:28", "node[2].spare"],
    ]


def test_no_worker_is_said_with_the_way_out(tmp_path: Path) -> None:
    (line,) = _problems(tmp_path, _with_nodes(_node("boss", "master")))
    assert 'node: no node has the role "worker"' in line
    assert '["master", "worker"]' in line


def test_a_wrong_role_is_not_also_a_missing_master(tmp_path: Path) -> None:
    text = _with_nodes(_node("boss", "mastre"), _node("w", "worker"))
    assert len(_problems(tmp_path, text)) == 1


def test_nodes_that_are_no_tables(tmp_path: Path) -> None:
    head = _with_nodes()
    for value in ("node = 3\n", "node = []\n", "[node]\nname = 'x'\n"):
        (line,) = _problems(tmp_path, value + head if value.startswith("node") else head + value)
        assert "node: " in line
        assert "one [[node]] table per node, each with name, roles, cores, memory" in line
    (line,) = _problems(tmp_path, "node = [3]\n" + head)
    assert line.startswith("cluster.toml:1: node[0]: 3 is not allowed; allowed: one [[node]] table")


def test_tables_that_are_no_tables(tmp_path: Path) -> None:
    lines = _problems(tmp_path, "cluster = 1\nnetwork = []\n" + _node("boss", "master"))
    assert "cluster.toml:1: cluster: 1 is not allowed; allowed: one [cluster] table" in lines[0]
    assert "cluster.toml:2: network: an empty array is not allowed" in lines[1]
    assert 'no node has the role "worker"' in lines[2]


def test_only_comments_means_everything_is_missing(tmp_path: Path) -> None:
    assert [line.split("; ")[0] for line in _problems(tmp_path, "# nothing yet\n")] == [
        "cluster.toml:1: cluster: missing",
        "cluster.toml:1: node: missing",
    ]


def test_inline_tables_have_lines_too(tmp_path: Path) -> None:
    text = (
        'node = [\n  { name = "a", roles = ["master", "worker"], cores = 1, memory = "1 GiB" },\n'
        '  { name = "b", roles = ["worker"], cores = 0, memory = "1 GiB" },\n]\n' + _with_nodes()
    )
    (line,) = _problems(tmp_path, text)
    assert line.startswith("cluster.toml:3: node[1].cores: 0 is not allowed")


def test_64_nodes_are_allowed_and_65_are_not(tmp_path: Path) -> None:
    nodes = [_node("boss", "master"), *(_node(f"w{number}", "worker") for number in range(64))]
    assert len(_load(tmp_path, _with_nodes(*nodes[:64])).nodes) == 64
    (line,) = _problems(tmp_path, _with_nodes(*nodes))
    first_line = 11 + 64 * 5
    expected = (
        f"cluster.toml:{first_line}: node[64]: 65 nodes; allowed: at most 64 nodes of the kind "
        '"emulated"'
    )
    assert line == expected


def test_a_subnet_must_have_room_for_the_host_and_all_nodes(tmp_path: Path) -> None:
    nodes = [_node("boss", "master"), *(_node(f"w{number}", "worker") for number in range(13))]
    spec = _load(tmp_path, _with_nodes(*nodes[:13], subnet="198.18.0.16/28"))
    assert str(address_of(spec, "w11")) == "198.18.0.30"
    (line,) = _problems(tmp_path, _with_nodes(*nodes, subnet="198.18.0.16/28"))
    assert line == (
        'cluster.toml:8: network.subnet: "198.18.0.16/28" has addresses for this machine and '
        "13 nodes, but there are 14; allowed: a network with a shorter prefix, or fewer nodes"
    )


def test_a_flood_of_problems_is_cut_with_a_count(tmp_path: Path) -> None:
    text = f"node = [{'1, ' * 200}]\n" + _with_nodes()
    lines = _problems(tmp_path, text)
    assert len(lines) == 101
    # One for each element that is no table, and one because there are more than 64.
    assert lines[-1] == "cluster.toml: and 101 more"


def test_without_known_pairs_the_message_says_so(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(GOOD)
    with pytest.raises(SpecError, match="allowed: nothing, since none is known"):
        load_cluster(path, engine_pairs=(), profiles=PROFILES)


def test_a_missing_or_empty_file_points_to_init(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    for content in (None, ""):
        if content is not None:
            path.write_text(content)
        with pytest.raises(SpecError, match=re.escape(str(path))) as caught:
            load_cluster(path, engine_pairs=PAIRS, profiles=PROFILES)
        assert "boardcluster init" in caught.value.hint


def test_a_syntax_error_has_line_and_column(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"cluster\.toml:2:8: not TOML"):
        _load(tmp_path, _change('"demo"', "demo"))


def test_addresses_follow_the_host_in_order_master_first(tmp_path: Path) -> None:
    spec = _load(tmp_path, GOOD)
    assert host_address(spec) == IPv4Address("198.18.0.1")
    assert [str(address_of(spec, node.name)) for node in spec.nodes] == [
        "198.18.0.2",
        "198.18.0.3",
        "198.18.0.4",
    ]
    assert address_of(spec, "boss") == IPv4Address("198.18.0.2")


@pytest.mark.parametrize("subnet", ["198.18.0.0/16", "198.19.3.0/24", "198.19.255.240/28"])
def test_all_addresses_differ_and_are_usable(tmp_path: Path, subnet: str) -> None:
    nodes = [_node("boss", "master"), *(_node(f"w{number}", "worker") for number in range(12))]
    spec = _load(tmp_path, _with_nodes(*nodes, subnet=subnet))
    addresses = [host_address(spec), *(address_of(spec, node.name) for node in spec.nodes)]
    assert len(set(addresses)) == 14
    assert set(addresses) <= set(IPv4Network(subnet).hosts())


def test_the_address_of_an_unknown_node_names_the_nearest(tmp_path: Path) -> None:
    spec = _load(tmp_path, GOOD)
    with pytest.raises(UsageError, match=r'"worker3" is not a node .* did you mean "worker[12]"'):
        address_of(spec, "worker3")
