"""A made-up running cluster, as fixtures; what it does is in world.py."""

from pathlib import Path

import pytest
from tests.unit.campaign.world import World, live_cluster

from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.telemetry.collector import Recording


@pytest.fixture(autouse=True)
def _no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recording, "settle", lambda _: None)
    # How long the end of an agent is put off where a node does not answer; here it never will.
    monkeypatch.setattr("boardcluster.telemetry.collector._RETRY_SECONDS", 0.1)


@pytest.fixture(autouse=True)
def _sees_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run in a container, where runs have a remark that says so."""
    monkeypatch.setattr(
        "boardcluster.telemetry.collector._FIRST_NAMESPACE",
        Path("/proc/self/ns/pid").stat().st_ino,
    )
    monkeypatch.setattr("boardcluster.telemetry.collector._FIRST_PROCESS", Path("/proc/self/stat"))


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def live(layout: Layout, world: World, tmp_path: Path) -> LiveCluster:
    return live_cluster(layout, world, tmp_path / "home")
