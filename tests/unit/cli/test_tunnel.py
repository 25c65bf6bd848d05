"""``tunnel``: which ports it takes on this machine; see test_boards.py for the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner
from typer.testing import Result as Ran

from boardcluster.cli import tunnel as module
from boardcluster.cli.app import app
from boardcluster.errors import UnreachableError, UsageError
from boardcluster.records import ClusterSpec
from boardcluster.services.boards import WEB_PAGES
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.spec.template import render_cluster


class Desk:
    """Where somebody sits in front of boards.

    Attributes:
        free: ports that were asked for before the tunnel.
        held: the tunnels: their pages and their proxy.
        fails: what becomes of a tunnel.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.free: list[list[int]] = []
        self.held: list[tuple[dict[str, int], int]] = []
        self.fails: Exception | None = None

    def __call__(self, *words: str) -> Ran:
        arguments = ["tunnel", "--home", str(self.home), *words]
        return CliRunner().invoke(app, arguments, catch_exceptions=False)

    def hold(self, home: Path, spec: ClusterSpec, *, pages: dict[str, int], socks: int) -> None:
        assert (home, spec.kind) == (self.home, "boards")
        self.held.append((pages, socks))
        if self.fails:
            raise self.fails


@pytest.fixture
def desk(tmp_path: Path, board_spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> Desk:
    text = render_cluster(board_spec, engine_pairs=pair_ids(), profiles=profile_names())
    (tmp_path / "cluster.toml").write_text(text)
    made = Desk(tmp_path)
    monkeypatch.setattr(module, "hold_tunnel", made.hold)
    monkeypatch.setattr(module, "_require_free", made.free.append)
    return made


def test_pages_keep_their_ports_and_no_proxy_is_opened_unasked(desk: Desk) -> None:
    ran = desk()

    assert desk.held == [(WEB_PAGES, 0)]
    assert desk.free == [list(WEB_PAGES.values())]
    assert "http://127.0.0.1:9870" in ran.stdout
    assert "socks" not in ran.stdout


def test_the_port_of_the_proxy_is_looked_at_too(desk: Desk) -> None:
    desk("--socks", "1080", "--offset", "1")

    assert desk.free == [[*(port + 1 for port in WEB_PAGES.values()), 1080]]


@pytest.mark.parametrize("offset", [0, 1000])
def test_a_page_and_the_proxy_cannot_have_one_port(offset: int, desk: Desk) -> None:
    socks = WEB_PAGES["sparkhistory"] + offset

    with pytest.raises(UsageError, match=f"--socks {socks}"):
        desk("--offset", str(offset), "--socks", str(socks))

    assert desk.held == []


def test_every_offset_leaves_ports_that_exist(desk: Desk) -> None:
    assert desk("--offset", "40000").exit_code == 0
    ((pages, _),) = desk.held
    assert max(pages.values()) < 2**16
    assert desk("--offset", "40001").exit_code == 2
    assert desk("--offset", "-1").exit_code == 2
    assert desk("--socks", "65536").exit_code == 2
    assert len(desk.held) == 1


def test_a_master_that_cannot_be_reached_is_said(desk: Desk) -> None:
    desk.fails = UnreachableError("master: out of reach")

    with pytest.raises(UnreachableError):
        desk()
