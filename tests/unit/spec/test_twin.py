"""Keys that make emulated nodes behave like boards; the catalog is a small one of the tests."""

from pathlib import Path

import pytest

from boardcluster.errors import SpecError
from boardcluster.records import ClusterSpec, NodeTwin, TwinSpec
from boardcluster.spec.cluster import load_cluster
from boardcluster.spec.template import render_cluster
from boardcluster.spec.twin import BoardFacts, MediumFacts, TwinParts
from boardcluster.units import GIB

PAIRS = ("hadoop-3.4.2-spark-4.1.4",)
PROFILES = ("default",)

HEAD = """\
[cluster]
name = "twins"
kind = "emulated"
engines = "hadoop-3.4.2-spark-4.1.4"
profile = "default"
"""
MASTER = """
[[node]]
name = "master"
roles = ["master"]
board = "five"
"""
WORKER = """
[[node]]
name = "worker1"
roles = ["worker"]
board = "five"
medium = "nvme"
pcie = "3.0"
supply = "plug"
cooling = "fan"
disk = "4GiB"
memory = "2 GiB"
"""
GOOD = HEAD + MASTER + WORKER


def _board(name: str) -> BoardFacts:
    if Path(name).name not in ("five", "own.toml"):
        raise ValueError(f'"{name}" is not a board of the catalog; did you mean "five"?')
    return BoardFacts(cores=4, memory_bytes=8 * GIB)


def _medium(name: str) -> MediumFacts:
    if name not in ("nvme", "card"):
        raise ValueError(f'"{name}" is not a medium of the catalog')
    versions = ("2.0", "3.0") if name == "nvme" else ()
    return MediumFacts(pcie=versions, capacity_bytes=16 * GIB if name == "card" else None)


def _check(kind: str, name: str) -> None:
    if (kind, name) not in (("supplies", "plug"), ("cooling", "fan")):
        raise ValueError(f'"{name}" is not among the {kind}')


PARTS = TwinParts(board=_board, medium=_medium, check=_check)


def _load(folder: Path, text: str, parts: TwinParts | None = PARTS) -> ClusterSpec:
    path = folder / "cluster.toml"
    path.write_text(text)
    return load_cluster(path, engine_pairs=PAIRS, profiles=PROFILES, parts=parts)


def _problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        _load(folder, text)
    return [line.rpartition("cluster.toml:")[2] for line in caught.value.message.split("\n")]


def _change(old: str, new: str, text: str = GOOD) -> str:
    assert old in text
    return text.replace(old, new, 1)


def test_cores_and_memory_are_the_boards_unless_memory_is_said(tmp_path: Path) -> None:
    spec = _load(tmp_path, GOOD)
    assert spec.twin == TwinSpec(dilation=None)
    assert [(node.cores, node.memory_bytes) for node in spec.nodes] == [(4, 8 * GIB), (4, 2 * GIB)]
    assert spec.master.twin == NodeTwin(board="five")
    assert spec.workers[0].twin == NodeTwin(
        board="five",
        medium="nvme",
        pcie="3.0",
        supply="plug",
        cooling="fan",
        disk_bytes=4 * GIB,
    )


def test_a_disk_has_8_gib_and_there_is_none_without_a_medium(tmp_path: Path) -> None:
    spec = _load(tmp_path, _change('disk = "4GiB"\n', ""))
    assert [node.twin.disk_bytes for node in spec.nodes if node.twin] == [0, 8 * GIB]


@pytest.mark.parametrize(
    ("written", "dilation"), [('"auto"', None), ("1", 1.0), ("2.5", 2.5), ("1000", 1000.0)]
)
def test_the_dilation_is_declared_or_worked_out(
    tmp_path: Path, written: str, dilation: float | None
) -> None:
    spec = _load(tmp_path, f"{GOOD}\n[twin]\ndilation = {written}\n")
    assert spec.twin == TwinSpec(dilation=dilation)


def test_a_cluster_without_boards_is_no_twin(tmp_path: Path) -> None:
    plain = 'cores = 1\nmemory = "1 GiB"\n'
    text = GOOD.replace('board = "five"\n', plain)
    text = text[: text.index("medium")]
    spec = _load(tmp_path, text)
    assert spec.twin is None
    assert all(node.twin is None for node in spec.nodes)


def test_without_the_catalog_names_are_unchecked_but_nodes_need_their_sizes(tmp_path: Path) -> None:
    plain = 'board = "unheard-of"\ncores = 3\nmemory = "1 GiB"\n'
    text = HEAD + MASTER.replace('board = "five"\n', plain).replace(
        '["master"]', '["master", "worker"]'
    )
    spec = _load(tmp_path, text, parts=None)
    assert spec.master.twin == NodeTwin(board="unheard-of")
    assert spec.master.cores == 3
    with pytest.raises(SpecError, match=r"node\[0\]\.cores: missing"):
        _load(tmp_path, GOOD, parts=None)


def test_a_relative_path_begins_at_the_file(tmp_path: Path) -> None:
    spec = _load(tmp_path, _change('board = "five"', 'board = "boards/own.toml"'))
    assert spec.master.twin == NodeTwin(board=str((tmp_path / "boards/own.toml").resolve()))


@pytest.mark.parametrize("dilation", ["", "[twin]\ndilation = 4\n", "[twin]\ndilation = 1.7\n"])
def test_a_rendered_twin_loads_as_itself(tmp_path: Path, dilation: str) -> None:
    own = _change('board = "five"', 'board = "own.toml"')
    spec = _load(tmp_path, f"{own}\n{dilation}")
    text = render_cluster(spec, engine_pairs=PAIRS, profiles=PROFILES)
    (tmp_path / "elsewhere").mkdir()
    assert _load(tmp_path / "elsewhere", text) == spec
    assert all(len(line) <= 100 for line in text.splitlines() if tmp_path.name not in line)
    for key in ("board", "medium", "disk", "supply"):
        assert f"#   {key} " in text


def test_a_plain_cluster_is_rendered_without_keys_of_twins(tmp_path: Path) -> None:
    plain = 'cores = 1\nmemory = "1 GiB"\n'
    text = HEAD + MASTER.replace('board = "five"\n', plain).replace(
        '["master"]', '["master", "worker"]'
    )
    rendered = render_cluster(_load(tmp_path, text), engine_pairs=PAIRS, profiles=PROFILES)
    assert "twin]" not in rendered
    assert "board " not in rendered
    assert "disk" not in rendered


# Old text, new text, the one line expected after the file's name.
SINGLE_MISTAKES = {
    "board": (
        'board = "five"',
        'board = "fife"',
        '10: node[0].board: "fife" is not a board of the catalog; did you mean "five"?',
    ),
    "board of another type": (
        'board = "five"',
        "board = 5",
        (
            "10: node[0].board: 5 is not allowed; allowed: a name that `boardcluster catalog "
            "boards` shows, or the path of a .toml file"
        ),
    ),
    "medium": ('"nvme"', '"nvm"', '16: node[1].medium: "nvm" is not a medium of the catalog'),
    "supply": ('"plug"', '"plag"', '18: node[1].supply: "plag" is not among the supplies'),
    "cooling": ('"fan"', '"fun"', '19: node[1].cooling: "fun" is not among the cooling'),
    "no board for one node": (
        'board = "five"\n',
        'cores = 4\nmemory = "2 GiB"\n',
        (
            "7: node[0].board: missing, but node[1] in line 13 has one; allowed: a board for "
            "every node, or for none"
        ),
    ),
    "other cores": (
        'board = "five"\n',
        'board = "five"\ncores = 2\n',
        '11: node[0].cores: 2, but the board "five" has 4; allowed: 4, or leave it out',
    ),
    "more memory": (
        '"2 GiB"',
        '"9 GiB"',
        (
            '21: node[1].memory: "9 GiB", but the board "five" has 8 GiB; allowed: at most that; '
            "leave it out for 8 GiB"
        ),
    ),
    "no pcie": (
        'pcie = "3.0"\n',
        "",
        '12: node[1].pcie: missing; figures of "nvme" differ by it; allowed: "2.0", "3.0"',
    ),
    "other pcie": (
        '"3.0"',
        '"4.0"',
        (
            '17: node[1].pcie: "4.0" is not a version with which "nvme" was measured; allowed: '
            '2.0, 3.0; did you mean "3.0"?'
        ),
    ),
    "pcie as a number": (
        '"3.0"',
        "3.0",
        (
            "17: node[1].pcie: 3.0 is not allowed; allowed: a version of PCI Express in quotes, "
            'e.g. "3.0"'
        ),
    ),
    "pcie of a card": (
        '"nvme"',
        '"card"',
        ('17: node[1].pcie: "3.0"; allowed: leave it out; figures of "card" do not differ by it'),
    ),
    "disk too small": (
        '"4GiB"',
        '"4 MiB"',
        (
            '20: node[1].disk: "4 MiB" is too small; allowed: a number and B, KB, MB, GB, TB, '
            'KiB, MiB, GiB, TiB, e.g. "4 GiB", from 1 GiB to 16 TiB'
        ),
    ),
    "medium without a medium's keys": (
        'medium = "nvme"\npcie = "3.0"\n',
        "",
        "18: node[1].disk: it has no effect without `medium`; allowed: with a medium only",
    ),
    "unknown key of twin": (
        "[[node]]",
        "[twin]\ndilatation = 2\n[[node]]",
        '8: twin.dilatation: unknown key; allowed: dilation; did you mean "dilation"?',
    ),
    "dilation": (
        "[[node]]",
        "[twin]\ndilation = 0.9\n[[node]]",
        '8: twin.dilation: 0.9 is out of range; allowed: "auto", or a number from 1 to 1000',
    ),
    "dilation as text": (
        "[[node]]",
        '[twin]\ndilation = "2"\n[[node]]',
        '8: twin.dilation: "2" is not a dilation; allowed: "auto", or a number from 1 to 1000',
    ),
    "dilation as truth": (
        "[[node]]",
        "[twin]\ndilation = true\n[[node]]",
        '8: twin.dilation: true is not a dilation; allowed: "auto", or a number from 1 to 1000',
    ),
    "dilation that is no number": (
        "[[node]]",
        "[twin]\ndilation = nan\n[[node]]",
        '8: twin.dilation: nan is out of range; allowed: "auto", or a number from 1 to 1000',
    ),
}


@pytest.mark.parametrize("name", SINGLE_MISTAKES)
def test_one_mistake_gives_one_line_that_says_it_all(tmp_path: Path, name: str) -> None:
    old, new, expected = SINGLE_MISTAKES[name]
    assert _problems(tmp_path, _change(old, new)) == [expected]


def test_a_disk_larger_than_the_medium_is_refused(tmp_path: Path) -> None:
    text = _change('medium = "nvme"\npcie = "3.0"', 'medium = "card"')
    assert _problems(tmp_path, _change('"4GiB"', '"17 GiB"', text)) == [
        '19: node[1].disk: 17 GiB, but "card" holds 16 GiB; allowed: at most 16 GiB'
    ]


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    text = _change('"five"', '"fife"')
    for old, new in (('"nvme"', '"nvm"'), ('"plug"', '"plag"'), ('"2 GiB"', '"9 GiB"')):
        text = _change(old, new, text)
    keys = [line.split(": ")[1] for line in _problems(tmp_path, text)]
    assert keys == ["node[0].board", "node[1].medium", "node[1].supply", "node[1].memory"]


def test_keys_without_any_board_are_refused(tmp_path: Path) -> None:
    sizes = 'cores = 1\nmemory = "1 GiB"\n'
    text = HEAD + "[twin]\ndilation = 2\n" + MASTER.replace('board = "five"\n', sizes)
    text += '[[node]]\nname = "w"\nroles = ["worker"]\nmedium = "nvme"\npcie = "3.0"\n' + sizes
    assert _problems(tmp_path, text) == [
        "6: twin: no node has a board; allowed: a [twin] table only with boards",
        "17: node[1].medium: it has no effect without `board`; allowed: with a board only",
    ]


def test_real_boards_refuse_every_key(tmp_path: Path) -> None:
    text = _change('"emulated"', '"boards"')
    text += '\n[network]\nsubnet = "10.0.0.0/24"\n[twin]\ndilation = "auto"\n'
    sizes = 'cores = 4\nmemory = "2 GiB"\nhost = "a{}"\naddress = "10.0.0.{}"\n'
    text = text.replace('memory = "2 GiB"\n', "")
    text = text.replace('board = "five"\n', sizes.format(1, 1) + 'board = "five"\n', 1)
    text = text.replace('board = "five"\nmed', sizes.format(2, 2) + 'board = "five"\nmed', 1)
    lines = _problems(tmp_path, text)
    assert [line.split(": ")[1] for line in lines] == [
        "node[0].board",
        *(f"node[1].{key}" for key in ("board", "medium", "pcie", "supply", "cooling", "disk")),
        "twin",
    ]
    assert all(
        line.endswith('only for the kind "emulated"; allowed: leave it out') for line in lines
    )


def test_real_boards_cannot_take_sizes_from_a_board(tmp_path: Path) -> None:
    lines = _problems(tmp_path, _change('"emulated"', '"boards"'))
    for key in ("node[0].cores", "node[0].memory", "node[1].cores"):
        assert any(f": {key}: missing; allowed: a" in line for line in lines), key
