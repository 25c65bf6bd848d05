"""A board for the tests of this folder."""

from pathlib import Path

import pytest
from tests.unit.services.provision.board import Board


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    root = tmp_path / "board"
    root.mkdir()
    made = Board(root)
    made.install(monkeypatch)
    return made
