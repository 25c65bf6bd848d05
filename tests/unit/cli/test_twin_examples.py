"""Every file of examples/twin can be run as it stands, on a machine with 24 GB and two cores."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster.analysis.experiments import FAR_PERCENT
from boardcluster.campaign.plan import plan, workload_facts
from boardcluster.campaign.preflight import check_preflight
from boardcluster.campaign.trial_jobs import variant_of
from boardcluster.campaign.twins import read_twin
from boardcluster.catalog.lookup import find_board, find_part
from boardcluster.services.profile import profile_names
from boardcluster.spec.campaign import load_campaign
from boardcluster.spec.experiment import load_experiment
from boardcluster.spec.variant import apply_variant
from boardcluster.twin.heat import heat_model
from boardcluster.twin.plan import Host, plan_limits

FOLDER = Path(__file__).parents[3] / "examples" / "twin"
GIB = 1 << 30
HOST = Host(
    cores=2,
    events_per_second_per_core=50_900.0,
    memory_available_bytes=21 * GIB,
    disk_free_bytes=60 * 10**9,
    limits_unwritten=True,
)
WANTED = {
    *("1-2-4-8-workers", "microsd-against-nvme", "pcie-2-against-3", "4b-against-5b"),
    *("2400-against-3000-mhz", "with-and-without-cooling", "combined-against-separate-master"),
    "four-at-once-against-in-turn",
}


def having(table: str) -> list[Path]:
    found = (path for path in FOLDER.glob("*.toml") if table in tomllib.loads(path.read_text()))
    return sorted(found)


def stem(path: Path) -> str:
    return path.stem


def test_every_file_is_of_one_kind_and_used() -> None:
    twins, campaigns, experiments = (having(key) for key in ("cluster", "campaign", "experiment"))
    assert sorted((*twins, *campaigns, *experiments)) == sorted(FOLDER.iterdir())
    read = [load_experiment(path) for path in experiments]
    assert {twin for row in read for twin in row.twins} == set(twins)
    assert {row.campaign for row in read} == set(campaigns)
    assert {path.stem for path in experiments} >= WANTED
    assert FOLDER / "rpi5-nvme-8.toml" in twins


@pytest.mark.parametrize("path", having("cluster"), ids=stem)
def test_a_twin_is_named_like_its_file_and_fits(path: Path) -> None:
    spec = read_twin(path)

    assert spec.name == path.stem
    assert len(spec.workers) == int(path.stem.rpartition("-")[2])
    limits = plan_limits(spec, HOST)
    assert limits.dilation > 1
    assert len(limits.limits) == len(spec.workers) + 1
    for twin in {node.twin for node in spec.nodes if node.twin}:
        if twin.cooling:
            heat_model(
                find_board(twin.board), cooling=find_part("cooling", twin.cooling), supply=None
            )


@pytest.mark.parametrize("path", having("experiment"), ids=stem)
def test_an_experiment_is_named_like_its_file_and_its_campaign_can_run(path: Path) -> None:
    experiment = load_experiment(path)
    campaign = load_campaign(
        experiment.campaign, workloads=workload_facts(), profiles=profile_names()
    )

    assert experiment.name == path.stem
    assert experiment.question.endswith("?")
    assert experiment.campaign.stem == f"campaign-{campaign.name}"
    for file in experiment.twins:
        spec = read_twin(file)
        trials = plan(replace(campaign, seed=1), spec, campaign_id="x")
        preflight = check_preflight(
            spec, trials, typical_seconds={}, free=(10**15, {}), lacking=lambda *_: ""
        )
        assert preflight.problems == ()
        for form in {variant_of(trial) for trial in trials}:
            plan_limits(apply_variant(spec, form), HOST)


def test_the_reference_is_right(tmp_path: Path) -> None:
    page = (FOLDER.parents[1] / "docs" / "reference" / "experiment-toml.md").read_text()
    assert f"more than {FAR_PERCENT:.0f} %" in page
    found = re.search(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert found
    (tmp_path / "experiment.toml").write_text(found[1])
    assert len(load_experiment(tmp_path / "experiment.toml").published) == 2


def test_the_guide_names_every_experiment() -> None:
    page = (FOLDER.parents[1] / "docs/how-to/repeat-a-paper-on-one-machine.md").read_text()
    rows = re.findall(r"^\| `([^`]+\.toml)` \|", page, re.MULTILINE)
    assert sorted(rows) == [path.name for path in having("experiment")]
