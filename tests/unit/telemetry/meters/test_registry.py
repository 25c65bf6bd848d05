import re
from importlib import resources
from pathlib import Path

import pytest

from boardcluster.errors import SpecError
from boardcluster.records import MeterSpec
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.spec.cluster import load_cluster
from boardcluster.telemetry import meters
from boardcluster.telemetry.meters.registry import kind_of, kinds, meter_facts, settings_of
from boardcluster.telemetry.meters.wire.credentials import Secret


def test_every_file_is_a_kind_of_the_same_name() -> None:
    files = {entry.name for entry in resources.files(meters).iterdir() if entry.is_file()}
    names = {name.removesuffix(".py").replace("_", "-") for name in files}
    assert set(kinds()) == names - {"--init--", "base", "registry"}
    assert len(kinds()) >= 9


@pytest.mark.parametrize("name", list(kinds()))
def test_every_kind_states_what_it_is(name: str) -> None:
    kind = kinds()[name]
    assert kind.summary
    assert kind.accuracy
    assert 0.1 <= kind.interval_seconds <= 10
    keys = [option.name for option in kind.options]
    assert len(set(keys)) == len(keys)
    assert not {"name", "kind", "nodes", "switch"} & set(keys)
    assert not {"password", "community", "token"} & set(keys), "a secret is never an option"
    assert all(option.help for option in kind.options)


DOCS = Path(__file__).parents[4] / "docs"


def test_the_tables_of_the_guide_are_valid(tmp_path: Path) -> None:
    text = (DOCS / "reference" / "cluster-toml.md").read_text()
    boards = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]
    guide = (DOCS / "how-to" / "measure-energy.md").read_text()
    tables = re.findall(r"^```toml\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert len(tables) >= 4
    for table in tables:
        (tmp_path / "cluster.toml").write_text(f"{boards}\n{table}")
        spec = load_cluster(
            tmp_path / "cluster.toml",
            engine_pairs=pair_ids(),
            profiles=profile_names(),
            meter_kinds=meter_facts(),
        )
        assert spec.meters or spec.power_models
        for meter in spec.meters:
            assert set(settings_of(meter)) >= set(meter.options)


def test_settings_are_defaults_and_what_was_given() -> None:
    spec = MeterSpec(name="m", kind="tasmota", nodes=("a",), options={"url": "http://plug"})
    assert settings_of(spec)["channel"] == "0"
    assert settings_of(spec)["url"] == "http://plug"


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("tasmotta", {}, "not a kind"),
        ("tasmota", {}, '"url" is missing'),
        ("rapl", {"core": "1"}, "no option"),
    ],
)
def test_what_is_wrong_is_said(kind: str, options: dict[str, str], words: str) -> None:
    spec = MeterSpec(name="m", kind=kind, nodes=("a",), options=options)
    with pytest.raises(SpecError, match=words):
        settings_of(spec)


def test_facts_are_what_kinds_say() -> None:
    facts = meter_facts()
    assert facts["shelly"].options["url"] is True
    assert facts["shelly"].options["channel"] is False
    assert facts["rapl"].on_node
    assert kind_of(MeterSpec(name="m", kind="rapl", nodes=())).name == "rapl"


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret("horse")
    assert "horse" not in f"{secret} {secret!r} {[secret]}"
    assert secret.reveal() == "horse"
    assert secret
    assert not Secret("")
