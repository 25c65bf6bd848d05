"""``inventory``: what it prints is what Ansible reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from boardcluster.cli.app import app
from boardcluster.errors import SpecError, UsageError
from boardcluster.records import ClusterSpec
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.spec.template import render_cluster

HOSTS = ("pi@pi0", "ssh://pi@10.0.0.2:2222", "pi2")


def declare(home: Path, spec: ClusterSpec) -> None:
    text = render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names())
    (home / "cluster.toml").write_text(text)


def printed(home: Path) -> str:
    ran = CliRunner().invoke(app, ["inventory", "--home", str(home)], catch_exceptions=False)
    assert (ran.exit_code, ran.stderr) == (0, "")
    return ran.stdout


def test_what_is_printed_leads_to_the_same_boards(board_spec: ClusterSpec, tmp_path: Path) -> None:
    rows = zip(board_spec.nodes, HOSTS, strict=True)
    nodes = tuple(replace(node, host=host) for node, host in rows)
    declare(tmp_path, replace(board_spec, nodes=nodes))

    hosts = yaml.safe_load(printed(tmp_path))["all"]["hosts"]

    assert hosts == {
        "master": {"ansible_host": "pi0", "ansible_user": "pi"},
        "worker1": {"ansible_host": "10.0.0.2", "ansible_user": "pi", "ansible_port": 2222},
        "worker2": {"ansible_host": "pi2"},
    }


def test_emulated_nodes_are_in_no_inventory(
    make_spec: Callable[..., ClusterSpec], tmp_path: Path
) -> None:
    declare(tmp_path, make_spec(engines=pair_ids()[0]))

    with pytest.raises(UsageError, match="emulated") as caught:
        printed(tmp_path)

    assert caught.value.hint


def test_a_home_without_a_cluster_is_said(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"cluster\.toml"):
        printed(tmp_path)
