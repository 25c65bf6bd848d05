"""Bundles that take seconds to make, made once."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.unit.bundle.laboratory import copy_fixture, plant

import boardcluster as bc
from boardcluster.api import WrittenBundle


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> WrittenBundle:
    """A bundle of a store in which people, machines and secrets are everywhere."""
    folder = tmp_path_factory.mktemp("planted")
    plant(folder / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "kontor.example.org")
        patch.setenv("SHELF_METER_PASSWORD", "environment-value-77")
        patch.setenv("SUDO_USER", "ottokar")
        return bc.export_bundle(folder / "planted.zip", home=folder / "home")


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> WrittenBundle:
    """A bundle of three campaigns that an earlier version ran."""
    folder = tmp_path_factory.mktemp("shelf")
    copy_fixture(folder / "home")
    return bc.export_bundle(
        folder / "shelf.zip",
        home=folder / "home",
        authors=("Ada Lovelace 0000-0001-2345-6789", "Grace Hopper"),
        licence="CC-BY-4.0",
    )


@pytest.fixture
def copied(shelf: WrittenBundle, tmp_path: Path) -> Path:
    """A copy of that bundle, to be tampered with."""
    target = tmp_path / "shelf.zip"
    target.write_bytes(shelf.path.read_bytes())
    return target
