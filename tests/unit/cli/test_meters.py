"""``meters``: what each meter says, or why it says nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.telemetry.meters.serving import Answer, Request, free_port, recorded, web
from typer.testing import CliRunner, Result

from boardcluster.cli.app import app
from boardcluster.errors import SpecError
from boardcluster.records import ClusterSpec, MeterSpec
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.spec.template import render_cluster
from boardcluster.telemetry.meters.registry import kinds


def declare(home: Path, spec: ClusterSpec, *meters: MeterSpec) -> None:
    known = replace(spec, engines=pair_ids()[0], meters=meters)
    text = render_cluster(known, engine_pairs=pair_ids(), profiles=profile_names())
    (home / "cluster.toml").write_text(text)


def ran(home: Path, *options: str) -> Result:
    words = ["meters", "--home", str(home), *options]
    return CliRunner().invoke(app, words, catch_exceptions=False)


def plug(spec: ClusterSpec, name: str, url: str, **options: str) -> MeterSpec:
    nodes = tuple(node.name for node in spec.nodes)
    settings = {"url": url, **options}
    return MeterSpec(name=name, kind="tasmota", nodes=nodes, switch=True, options=settings)


def tasmota(request: Request) -> Answer:
    return Answer.of(recorded("tasmota")["status8"])


def test_each_meter_is_read_and_said(board_spec: ClusterSpec, tmp_path: Path) -> None:
    with web(tasmota) as server:
        declare(tmp_path, board_spec, plug(board_spec, "plug", server.url, accuracy_percent="1.5"))
        shown = ran(tmp_path)
        assert (shown.exit_code, shown.stderr) == (0, "")
        assert "26.00" in shown.stdout
        assert "wall" in shown.stdout
        assert "the switch" in shown.stdout
        assert "1.5 % according to cluster.toml" in shown.stdout
        (row,) = json.loads(ran(tmp_path, "--json").stdout)
    assert row["watts"] == 26
    assert row["counted_joules"] == pytest.approx(10_800)
    assert row["accuracy_percent"] == 1.5
    assert row["error"] == ""


def test_one_that_does_not_answer_is_said_and_the_others_are_read(
    board_spec: ClusterSpec, tmp_path: Path
) -> None:
    away = plug(board_spec, "away", f"http://127.0.0.1:{free_port()}")
    with web(tasmota) as server:
        declare(tmp_path, board_spec, plug(board_spec, "plug", server.url), away)
        shown = ran(tmp_path)
    assert shown.exit_code == 8
    assert "26.00" in shown.stdout
    assert "Connection refused" in shown.stdout
    assert "away: check that it is on" in shown.stdout


def test_a_cluster_without_meters_says_so(board_spec: ClusterSpec, tmp_path: Path) -> None:
    declare(tmp_path, board_spec)
    assert "declares no meters" in ran(tmp_path).stdout
    assert json.loads(ran(tmp_path, "--json").stdout) == []


def test_a_mistake_is_said_with_its_line(board_spec: ClusterSpec, tmp_path: Path) -> None:
    declare(tmp_path, board_spec, plug(board_spec, "plug", "http://plug"))
    path = tmp_path / "cluster.toml"
    path.write_text(path.read_text().replace('kind = "tasmota"', 'kind = "tasmotta"'))
    with pytest.raises(SpecError, match=r'meter.0..kind: "tasmotta" is not .*"tasmota"'):
        ran(tmp_path)


def test_the_kinds_are_shown_without_a_cluster(tmp_path: Path) -> None:
    text = ran(tmp_path, "--kinds").stdout
    rows = json.loads(ran(tmp_path, "--kinds", "--json").stdout)
    assert [row["name"] for row in rows] == list(kinds())
    for kind in kinds().values():
        assert f"{kind.name}: {kind.summary}" in text
        assert kind.accuracy in text
        assert all(f"  {option.name}: {option.help}" in text for option in kind.options)
