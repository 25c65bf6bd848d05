"""The order in which ``down`` works: first end and free, the store last."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from boardcluster.cli import app
from boardcluster.cli import down as command
from boardcluster.errors import StoreError
from boardcluster.store import Store


def test_a_full_disk_is_freed_and_said_before_the_store_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(tmp_path):
        pass
    (tmp_path / "nodes").mkdir()
    seen: list[bool] = []

    def full(*_: object) -> None:
        seen.append((tmp_path / "nodes").exists())
        raise StoreError("database or disk is full")

    monkeypatch.setattr("boardcluster.services.operation.down", lambda _: 7)
    monkeypatch.setattr(command, "recover", full)
    result = CliRunner().invoke(app, ["down", "--wipe", "--home", str(tmp_path)])
    assert seen == [False]
    assert "HDFS was deleted" in result.stdout
    assert isinstance(result.exception, StoreError)
