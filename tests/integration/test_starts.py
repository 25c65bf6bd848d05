"""Starts of the cluster as replicates, and a campaign that runs until its interval is narrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boardcluster.cluster.state import load_state
from boardcluster.remote.base import ProcessRef
from boardcluster.store import Store
from tests.integration.conftest import Cli, finish

NETPIPE = """\
[campaign]
name = "{name}"
repeat_tainted = 0  # this machine has other work
seed = 3
{more}

[[matrix]]
workload = "netpipe"
parameters.netpipe.largest_bytes = "64 KiB"
parameters.netpipe.repeats = 1
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli]) -> Iterator[Cli]:
    program = cli(tmp_path_factory.mktemp("starts") / "home")
    program("init", "--workers", "2", "--subnet", "198.18.220.0/24")
    try:
        yield program
    finally:
        program("down", "--wipe")


def written(folder: Path, name: str, more: str) -> str:
    path = folder / f"{name}.toml"
    path.write_text(NETPIPE.format(name=name, more=more))
    return str(path)


def daemons(program: Cli) -> dict[tuple[str, str], ProcessRef]:
    """The process of every daemon that is up, with the time at which it started."""
    state = load_state(program.home)
    assert state is not None
    return {(row.name, row.node): row.process for row in state.daemons}


def test_each_start_has_daemons_of_its_own(site: Cli, tmp_path: Path) -> None:
    site("up")
    before = daemons(site)
    up_id = load_state(site.home)

    done = site.json("run", written(tmp_path, "two", "starts = 2\nrepetitions = 2"))

    after, last = daemons(site), load_state(site.home)  # it was up, and is again
    assert after.keys() == before.keys()
    assert all(after[name] != before[name] for name in before)  # nodes count processes alone
    with Store.open(site.home, read_only=True) as store:
        found = [
            (row.trial.start, row.trial.repetition, row.attempt.start_id)
            for row in store.results(done["campaign"]["id"])
            if row.attempt and row.attempt.state == "ok"
        ]
    ids = {start: {one for number, _, one in found if number == start} for start in (1, 2)}
    assert [row[:2] for row in found] == [(1, 1), (1, 2), (2, 3), (2, 4)]
    assert [len(one) for one in ids.values()] == [1, 1]
    assert up_id is not None
    assert last is not None
    assert len({up_id.identity, *ids[1], *ids[2]}) == 3
    assert ids[2] == {last.identity}


@pytest.mark.soak
def test_a_campaign_stops_when_its_interval_is_narrow(site: Cli, tmp_path: Path) -> None:
    site("up")
    more = 'repetitions = 3\nuntil = "50 %"\nat_most = 12'

    done, words = finish(site, written(tmp_path, "until", more))

    runs = done["summary"]["planned"]
    assert 4 <= runs <= 12  # the planned 3 have no interval yet
    assert done["summary"]["ok"] == runs
    assert "another round: wanted ±50 %" in words
    assert ("every 95 % interval is within ±50 %" in words) or (
        runs == 12 and "stopped at 12 runs of each cell" in words
    )
    assert "nothing is left to run" in site("run", str(tmp_path / "until.toml"), "--continue")
    forecast = site("run", str(tmp_path / "until.toml"), "--new", "--dry-run", "--until", "20 %")
    assert "what 95 % intervals within ±20 % need" in forecast
