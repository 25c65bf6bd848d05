"""``metrics``: what it starts, where it listens, and that it leaves nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from boardcluster.cli import metrics as module
from boardcluster.cli.app import Stopped, app
from boardcluster.errors import AddressError, ClusterNotUpError
from boardcluster.remote.local import LocalRemote
from boardcluster.services import operation
from boardcluster.telemetry.collector import Target
from boardcluster.telemetry.metrics import Exporter, Server


@pytest.fixture
def port() -> int:
    server = Server(0)
    server.server_close()
    return server.port


def run(home: Path, *words: str) -> Any:
    return CliRunner().invoke(app, ["metrics", "--home", str(home), *words], catch_exceptions=False)


def test_it_serves_until_it_is_stopped_and_ends_its_agents(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target(
        remote=LocalRemote("pi1"),
        request={"scope": "machine", "groups": {}},
        folder=str(tmp_path),
        cores=2,
    )
    monkeypatch.setattr(operation, "attach", lambda home, **_: "live")
    monkeypatch.setattr(module, "node_targets", lambda live, home: {"pi1": target})
    seen: list[str] = []

    def serve(server: Server, exporter: Exporter) -> None:
        seen.append(exporter.look())
        assert list(tmp_path.glob("metrics-*.txt"))
        raise Stopped(130)

    monkeypatch.setattr(Server, "serve", serve)
    ran = run(tmp_path, "--port", str(port), "--interval", "1")
    assert ran.exit_code == 130
    assert f"http://127.0.0.1:{port}/metrics, until Ctrl-C" in ran.stdout
    assert 'boardcluster_up{node="pi1"} 1' in seen[0]
    assert not list(tmp_path.glob("metrics-*"))
    Server(port).server_close()


def test_a_cluster_that_is_not_up_starts_nothing_and_gives_the_port_back(
    tmp_path: Path, port: int
) -> None:
    with pytest.raises(ClusterNotUpError):
        run(tmp_path, "--port", str(port))
    Server(port).server_close()


def test_a_port_in_use_is_said_before_anything_starts(tmp_path: Path) -> None:
    server = Server(0)
    try:
        with pytest.raises(AddressError, match=str(server.port)):
            run(tmp_path, "--port", str(server.port))
    finally:
        server.server_close()
