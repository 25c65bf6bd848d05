"""[[meter]] and [[power]] tables of a cluster.toml."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster.errors import SpecError
from boardcluster.records import ClusterSpec, MasterPlacement, MeterSpec, PowerModel
from boardcluster.spec.cluster import load_cluster
from boardcluster.spec.meters import MeterFacts
from boardcluster.spec.template import render_cluster
from boardcluster.spec.variant import ClusterVariant, apply_variant

PAIRS, PROFILES = ("pair",), ("default",)
KINDS = {
    "shelly": MeterFacts(options={"url": True, "channel": False}, on_node=False),
    "rapl": MeterFacts(options={"zone": False}, on_node=True),
}


def boards(*tables: str) -> str:
    head = """\
[cluster]
name = "pis"
kind = "boards"
engines = "pair"
profile = "default"

[network]
subnet = "192.168.1.0/24"
"""
    nodes = [
        f'[[node]]\nname = "pi{number}"\nroles = ["{role}"]\ncores = 4\nmemory = "4 GiB"\n'
        f'host = "pi{number}"\naddress = "192.168.1.2{number}"\n'
        for number, role in ((1, "worker"), (0, "master"), (2, "worker"))
    ]
    return "\n".join([head, *nodes, *tables])


def emulated(*tables: str) -> str:
    text = boards(*tables).replace('"boards"', '"emulated"')
    text = text.replace('[network]\nsubnet = "192.168.1.0/24"\n', "")
    return "\n".join(row for row in text.split("\n") if not row.startswith(("host", "address")))


def load(folder: Path, text: str, kinds: dict[str, MeterFacts] | None = KINDS) -> ClusterSpec:
    (folder / "cluster.toml").write_text(text)
    return load_cluster(
        folder / "cluster.toml", engine_pairs=PAIRS, profiles=PROFILES, meter_kinds=kinds
    )


PLUG = """\
[[meter]]
name = "plug"
kind = "shelly"
nodes = "all"
switch = true
url = "http://192.168.1.50"
channel = 1
"""
RAPL = '[[meter]]\nname = "cpu"\nkind = "rapl"\nnodes = ["pi1"]\n'
POWER = '[[power]]\nnodes = ["pi1", "pi2"]\nidle_watts = 2.7\nstress_watts = 6\n'


def test_meters_and_models_are_read_in_the_order_of_the_nodes(tmp_path: Path) -> None:
    spec = load(tmp_path, boards(PLUG, RAPL, POWER))
    assert spec.meters == (
        MeterSpec(
            name="plug",
            kind="shelly",
            nodes=("pi0", "pi1", "pi2"),
            switch=True,
            options={"url": "http://192.168.1.50", "channel": "1"},
        ),
        MeterSpec(name="cpu", kind="rapl", nodes=("pi1",)),
    )
    assert spec.power_models == (
        PowerModel(node="pi1", idle_watts=2.7, stress_watts=6.0),
        PowerModel(node="pi2", idle_watts=2.7, stress_watts=6.0),
    )


def test_a_file_without_them_has_none(tmp_path: Path) -> None:
    spec = load(tmp_path, boards())
    assert (spec.meters, spec.power_models) == ((), ())


@pytest.mark.parametrize("text", [boards(PLUG, RAPL, POWER), emulated(PLUG)])
def test_what_is_written_is_read_back(tmp_path: Path, text: str) -> None:
    spec = load(tmp_path, text)
    odd = replace(spec.meters[0], name="odd", options={"url": 'a "b"\n\\', "channel": "é"})
    for one in (spec, replace(spec, meters=(*spec.meters, odd))):
        written = render_cluster(one, engine_pairs=PAIRS, profiles=PROFILES)
        assert load(tmp_path, written) == one


def test_kinds_are_left_unchecked_below_the_room_that_knows_them(tmp_path: Path) -> None:
    text = boards(PLUG.replace("shelly", "unheard-of"))
    assert load(tmp_path, text, None).meters[0].kind == "unheard-of"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"shelly"', '"shely"', 'kind: "shely" is not a kind of meter; .*did you mean "shelly"'),
        ("url =", "ulr =", 'meter[0].ulr: unknown key; .* did you mean "url"'),
        ("url =", "# url =", "meter[0].url: missing"),
        ('nodes = "all"', "", "meter[0].nodes: missing"),
        ('nodes = "all"', 'nodes = ["pi7"]', 'nodes[0]: "pi7" is not a node of this cluster'),
        ('nodes = "all"', 'nodes = ["pi0", "pi0"]', "names a node twice"),
        ('nodes = "all"\nswitch = true', "nodes = []", "nodes: no nodes; allowed"),
        ('nodes = "all"', 'nodes = "pi0"', "does not name nodes"),
        ("switch = true", 'switch = "yes"', "meter[0].switch"),
        ("channel = 1", "channel = [1]", "is not an option; allowed: text in quotes"),
        ("http://", "http://anna:horse@", "it contains a user or a password"),
        ('"plug"', '"Plug 1"', 'did you mean "plug-1"'),
        ("[[meter]]", "[meter]", "meter: "),
    ],
)
def test_mistakes_are_said_with_line_and_key(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    assert old in PLUG
    with pytest.raises(SpecError) as caught:
        load(tmp_path, boards(PLUG.replace(old, new, 1)))
    plain = words.replace("[", r"\[").replace("]", r"\]").replace("(", r"\(")
    assert re.search(plain, caught.value.message), caught.value.message
    assert all(":" in line for line in caught.value.message.split("\n"))
    assert "horse" not in caught.value.message


def test_where_a_secret_is_does_not_depend_on_where_a_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    home = tmp_path / "home"
    home.mkdir()
    table = '[[meter]]\nname = "plug"\nkind = "shelly"\nnodes = "all"\nurl = "http://plug"\n'
    for written, meant in (
        ("plug.secret", f"{home}/plug.secret"),
        ("/etc/plug", "/etc/plug"),
        ("~/plug", "~/plug"),
    ):
        text = boards(f'{table}password_file = "{written}"\n')
        spec = load(home, text, kinds=None)
        assert spec.meters[0].options["password_file"] == meant
        again = load(home, render_cluster(spec, engine_pairs=PAIRS, profiles=PROFILES), kinds=None)
        assert again == spec


def test_the_file_of_a_logger_is_looked_for_beside_the_declaration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    table = '[[meter]]\nname = "log"\nkind = "logger-csv"\nnodes = "all"\npath = "power.csv"\n'
    spec = load(tmp_path, boards(table), kinds=None)
    assert spec.meters[0].options["path"] == f"{tmp_path}/power.csv"


def test_a_meter_of_the_switch_alone(tmp_path: Path) -> None:
    spec = load(tmp_path, boards(PLUG.replace('"all"', "[]")))
    assert (spec.meters[0].nodes, spec.meters[0].switch) == ((), True)
    assert load(tmp_path, render_cluster(spec, engine_pairs=PAIRS, profiles=PROFILES)) == spec


def test_two_meters_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match='"plug" is already the name of the meter in line'):
        load(tmp_path, boards(PLUG, PLUG))


def test_a_meter_on_a_node_measures_one_board(tmp_path: Path) -> None:
    for nodes in ('"all"', '["pi1", "pi2"]'):
        with pytest.raises(SpecError, match="read on the node it measures"):
            load(tmp_path, boards(RAPL.replace('["pi1"]', nodes)))


def test_a_meter_on_an_emulated_node_measures_the_whole_machine(tmp_path: Path) -> None:
    assert load(tmp_path, emulated(RAPL.replace('["pi1"]', '"all"'))).meters[0].nodes
    with pytest.raises(SpecError, match="share one machine"):
        load(tmp_path, emulated(RAPL))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("idle_watts = 2.7", "idle_watts = 0", "is not a power in watts"),
        ("idle_watts = 2.7", "idle_watts = -1.0", "is not a power in watts"),
        ("idle_watts = 2.7", "idle_watts = nan", "is not a power in watts"),
        ("idle_watts = 2.7", 'idle_watts = "3 W"', "is not a power in watts"),
        ("idle_watts = 2.7", "idle_watts = 7.0", "below idle_watts"),
        ("stress_watts = 6", "", "missing"),
        ("stress_watts = 6", "stress_watt = 6", "unknown key"),
        ('"pi2"]', '"pi9"]', "not a node"),
    ],
)
def test_models_that_cannot_be_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in POWER
    with pytest.raises(SpecError, match=words):
        load(tmp_path, boards(POWER.replace(old, new)))


def test_a_node_has_one_model(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"pi1 has a \[\[power\]\] table already"):
        load(tmp_path, boards(POWER, POWER.replace('["pi1", "pi2"]', '"all"')))


def test_a_board_that_is_left_out_takes_its_meters_with_it(tmp_path: Path) -> None:
    form = ClusterVariant(profile="default", workers=1, master=MasterPlacement.DECLARED)
    spec = apply_variant(load(tmp_path, boards(PLUG, RAPL, POWER)), form)
    assert [meter.name for meter in spec.meters] == ["cpu"]
    assert [model.node for model in spec.power_models] == ["pi1"]
    assert load(tmp_path, render_cluster(spec, engine_pairs=PAIRS, profiles=PROFILES)) == spec
    whole = apply_variant(load(tmp_path, emulated(PLUG)), form)
    assert whole.meters[0].nodes == ("pi0", "pi1")
