"""``boardcluster probe``: where it runs, what it prints, stores, saves and refuses."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.builders import make_live_node, make_samples, make_state, make_telemetry
from typer.testing import CliRunner
from typer.testing import Result as Ran

from boardcluster.campaign import probing
from boardcluster.catalog.entry import read_board
from boardcluster.cli import probe as command
from boardcluster.cli import show_probes
from boardcluster.cli.app import app
from boardcluster.errors import (
    BoardclusterError,
    ClusterNotUpError,
    EmptySelectionError,
    HostError,
    MeterError,
    ProbeOutputError,
    RunError,
    UsageError,
)
from boardcluster.probes.base import NodeTool, Probe, Site
from boardcluster.probes.tagged_remote import PROBE_VARIABLE, PROBING_VARIABLE
from boardcluster.records import ClusterSpec, MeterSpec, ProbeFigure, ProbeMode
from boardcluster.remote.local import LocalRemote
from boardcluster.services import operation
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.store import Store
from boardcluster.telemetry.collector import Target
from boardcluster.telemetry.meters.base import Reading

FIGURE = ProbeFigure(name="stream_copy_bytes_per_second", value=9.8e9, conditions={"threads": "4"})
HERE = socket.gethostname()


def good(_: Site) -> tuple[ProbeFigure, ...]:
    return (FIGURE,)


def make_probe(name: str, **more: Any) -> Probe:
    named: dict[str, Any] = {"measure": good, "tools": (), "area": "cpu", **more}
    return Probe(
        name=name,
        summary=f"what {name} does",
        matches=("A paper, Table 1",),
        quick_seconds=2,
        paper_seconds=200,
        **named,
    )


class Bench:
    """A home, a set of probes, and a cluster that may be up."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.probes: list[Probe] = [make_probe("one"), make_probe("two")]
        self.live: LiveCluster | None = None
        self.marks: list[dict[str, str]] = []

    def __call__(self, *words: str) -> Ran:
        return CliRunner().invoke(
            app,
            ["probe", "--home", str(self.home), "--cache", str(self.home / "cache"), *words],
            catch_exceptions=False,
        )

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json").stdout)

    def refused(self, kind: type[BoardclusterError], *words: str) -> str:
        with pytest.raises(kind) as caught:
            self(*words)
        return str(caught.value)

    def choose(self, names: tuple[str, ...]) -> tuple[Probe, ...]:
        for name in names:
            if name not in {probe.name for probe in self.probes}:
                raise UsageError(f"no probe {name!r}", hint="choose")
        return tuple(
            probe for probe in self.probes if probe.name in names or (not names and probe.default)
        )

    def attach(self, home: Path, **_: object) -> LiveCluster:
        assert home == self.home
        if self.live is None:
            raise ClusterNotUpError("the cluster is not up", hint="run `boardcluster up` first")
        return self.live


@contextlib.contextmanager
def sampled(targets: Mapping[str, Target]) -> Iterator[Any]:
    """What real agents would have seen of idle nodes; they are in campaign/test_probing.py."""
    rows = [make_samples(name, seconds=np.arange(-3.0, 60.0)) for name in targets]
    yield SimpleNamespace(
        settle=lambda: None,
        end=lambda: None,
        telemetry=lambda *, duration_seconds, **_: make_telemetry(
            *rows, duration_seconds=duration_seconds
        ),
        clocks=SimpleNamespace(faults=lambda: ()),
    )


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench(tmp_path / "home")

    def recording_of(targets: Mapping[str, Target], _: Path, mark: dict[str, str]) -> Any:
        bench.marks.append(mark)
        return sampled(targets)

    monkeypatch.setattr(probing, "recording_of", recording_of)
    monkeypatch.setattr(probing, "choose_probes", bench.choose)
    monkeypatch.setattr(command, "choose_probes", bench.choose)
    monkeypatch.setattr(show_probes, "all_probes", lambda: tuple(bench.probes))
    monkeypatch.setattr(operation, "attach", bench.attach)
    return bench


@pytest.fixture
def emulated(
    bench: Bench, make_spec: Callable[..., ClusterSpec], make_layout: Callable[[Any], Layout]
) -> Bench:
    spec = make_spec(workers=2)
    bench.home.mkdir()
    (bench.home / "cluster.toml").touch()
    layout = make_layout(spec)
    folders = {node.name: str(bench.home / "nodes" / node.name) for node in spec.nodes}
    nodes = tuple(
        make_live_node(node.name, address=f"198.18.7.{place}", folder=folders[node.name])
        for place, node in enumerate(spec.nodes, start=2)
    )
    bench.live = LiveCluster(
        home=bench.home,
        state=make_state(*nodes),
        layout=replace(layout, folders=folders),
        remotes={node.name: LocalRemote(node.name) for node in spec.nodes},
    )
    return bench


def test_the_list_says_what_there_is(bench: Bench) -> None:
    bench.probes.append(make_probe("three", pair=True, default=False, needs_root=True))
    printed = bench("--list").stdout
    assert "between two nodes, if named, as root" in printed
    assert [row["name"] for row in bench.json("--list")] == ["one", "two", "three"]
    assert not bench.home.exists()


def test_this_machine_is_probed_without_a_cluster(bench: Bench) -> None:
    sites: list[Site] = []

    def measure(site: Site) -> tuple[ProbeFigure, ...]:
        sites.append(site)
        return (FIGURE,)

    bench.probes = [make_probe("one", measure=measure)]
    printed = bench("--here", "--paper").stdout

    assert "stream copy" in printed
    assert "threads 4" in printed
    assert "9,800" in printed
    assert "MB/s" in printed
    (site,) = sites
    assert (site.node, site.mode, site.address) == (HERE, ProbeMode.PAPER, "127.0.0.1")
    assert site.settings["cache"] == str(bench.home / "cache")
    assert site.cores >= 1
    assert site.memory_bytes > 1 << 27
    with Store.open(bench.home, read_only=True) as store:
        (run,) = store.probe_runs()
    assert (run.node, run.cluster, run.emulated, run.figures) == (HERE, "", False, (FIGURE,))
    assert run.hardware.startswith(f"{HERE}: ")


def test_what_a_killed_probe_of_this_machine_left_is_deleted(bench: Bench) -> None:
    left = bench.home / "scratch" / "fio-1" / "big"
    left.parent.mkdir(parents=True)
    left.write_text("512 MiB")
    bench("--here")
    assert not left.exists()
    assert [set(mark) for mark in bench.marks] == [{PROBE_VARIABLE}] * 2


def test_agents_of_a_cluster_carry_the_mark_by_which_a_killed_probe_is_ended(
    emulated: Bench,
) -> None:
    emulated()
    assert emulated.live is not None
    own = emulated.live.state.identity
    assert {mark[PROBING_VARIABLE] for mark in emulated.marks} == {own}


def test_points_of_curves_are_counted_and_not_listed(bench: Bench) -> None:
    points = tuple(
        ProbeFigure(name="heat_clock_hertz", value=1e9, conditions={"second": str(second)})
        for second in range(7)
    )
    bench.probes = [make_probe("one", measure=lambda site: (FIGURE, *points))]
    printed = bench("--here").stdout
    assert "7 points of its curves are only in --json" in printed
    assert "heat clock" not in printed
    assert len(bench.json("--show")["runs"][0]["figures"]) == 8


def test_json_holds_the_runs(bench: Bench) -> None:
    (first, second) = bench.json("--here")["runs"]
    assert (first["probe"], second["probe"]) == ("one", "two")
    assert first["figures"] == [
        {"name": FIGURE.name, "value": FIGURE.value, "conditions": FIGURE.conditions}
    ]


def test_what_needs_two_nodes_is_left_out_and_said(bench: Bench) -> None:
    bench.probes.append(make_probe("between", pair=True))
    done = bench("--here")
    assert "left out, because they need two nodes: between" in done.stderr
    assert "between needs two nodes" in bench.refused(UsageError, "--here", "between")


def test_a_cluster_that_is_not_up_is_said_with_the_other_way(bench: Bench) -> None:
    assert "--here" in bench.refused(ClusterNotUpError)
    assert not bench.home.exists()
    bench.home.mkdir()
    (bench.home / "cluster.toml").touch()
    assert "--here" in bench.refused(ClusterNotUpError)


def test_a_missing_tool_is_refused_or_skipped(bench: Bench) -> None:
    absent = NodeTool(program="no-such-tool", package="no-such-package")
    bench.probes = [make_probe("one", tools=(absent,)), make_probe("two")]
    words = bench.refused(HostError, "--here")
    assert "one needs no-such-tool (package no-such-package)" in words
    assert f"`sudo apt-get install -y no-such-package` on {HERE}" in words

    printed = bench("--here", "--skip-missing").stdout
    assert f"{HERE}: one: skipped: {HERE} lacks no-such-tool" in printed
    with Store.open(bench.home, read_only=True) as store:
        assert [bool(run.reason) for run in store.probe_runs()] == [True, False]


def test_a_probe_that_fails_is_stored_shown_and_an_error(bench: Bench) -> None:
    def garbled(_: Site) -> tuple[ProbeFigure, ...]:
        raise ProbeOutputError("nonsense was printed")

    bench.probes = [make_probe("one", measure=garbled), make_probe("two")]
    assert "1 of 2 probes measured nothing: one on" in bench.refused(RunError, "--here")
    printed = bench("--show").stdout
    assert "nonsense was printed" in printed
    assert "9,800" in printed


def test_what_is_stored_is_shown(bench: Bench) -> None:
    assert "no run of a probe is stored" in bench.refused(EmptySelectionError, "--show")
    bench("--here")
    bench("--here", "one")
    printed = bench("--show", "one").stdout
    assert printed.count("stream copy") == 1
    assert "two" not in printed
    assert len(bench.json("--show")["runs"]) == 3
    assert "no such run of a probe" in bench.refused(EmptySelectionError, "--show", "--node", "pi9")


def test_a_board_is_saved_and_can_be_read(bench: Bench, tmp_path: Path) -> None:
    bench("--here", "--save-board", str(tmp_path / "board.toml"), "one")
    entry = read_board(tmp_path / "board.toml")
    (row,) = entry.figures
    assert row.figure == FIGURE
    assert row.source.startswith("probe ")
    assert not entry.emulated
    assert entry.cores >= 1


def test_emulated_nodes_run_one_by_one_and_say_what_they_are(emulated: Bench) -> None:
    done = emulated("one")
    assert "worker1 (emulated)" in done.stdout
    with Store.open(emulated.home, read_only=True) as store:
        runs = store.probe_runs()
    assert [run.node for run in runs] == ["master", "worker1", "worker2"]
    assert {(run.cluster, run.emulated) for run in runs} == {("demo", True)}
    assert runs[1].hardware.startswith("worker1: emulated, 4 cores and 2 GiB of ")
    assert "share" in emulated.refused(UsageError, "--at-once")


def test_pairs_know_the_cluster_s_addresses(emulated: Bench) -> None:
    seen = []

    def measure(site: Site) -> tuple[ProbeFigure, ...]:
        assert site.peer is not None
        seen.append((site.address, site.peer.address))
        return (FIGURE,)

    emulated.probes = [make_probe("between", measure=measure, pair=True)]
    emulated("--node", "worker1", "--node", "worker2")
    assert seen == [("198.18.7.3", "198.18.7.4"), ("198.18.7.4", "198.18.7.3")]
    printed = emulated("--show").stdout
    assert "worker1 to worker2 (emulated)" in printed


def test_nodes_are_chosen_and_checked(emulated: Bench, tmp_path: Path) -> None:
    file = tmp_path / "board.toml"
    assert {run["node"] for run in emulated.json("--node", "worker2")["runs"]} == {"worker2"}
    assert "no node 'pi7'" in emulated.refused(UsageError, "--node", "pi7")
    assert "name one with --node: master" in emulated.refused(UsageError, "--save-board", str(file))
    emulated("--node", "worker2", "--save-board", str(file))
    entry = read_board(file)
    assert (entry.name, entry.cores, entry.emulated) == ("Emulated node worker2", 4, True)


def test_the_meter_of_a_node_is_read_and_closed(
    emulated: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []

    class Opened:
        def __init__(self, name: str) -> None:
            self.name = name

        def read(self) -> Any:
            class Reading:
                watts = 4.5

            return Reading

        def close(self) -> None:
            closed.append(self.name)

    def measure(site: Site) -> tuple[ProbeFigure, ...]:
        watts = site.watts() if site.watts else 0.0
        assert watts is not None
        return (ProbeFigure(name="power_idle_watts", value=watts),)

    monkeypatch.setattr(probing, "open_meter", lambda spec, _: Opened(spec.name))
    assert emulated.live is not None
    meters = (
        MeterSpec(name="own", kind="shelly", nodes=("worker1",)),
        MeterSpec(name="all", kind="shelly", nodes=("master", "worker1", "worker2")),
        MeterSpec(name="switch", kind="shelly", nodes=("worker2",), switch=True),
    )
    layout = emulated.live.layout
    emulated.live = replace(
        emulated.live, layout=replace(layout, spec=replace(layout.spec, meters=meters))
    )
    emulated.probes = [make_probe("power", area="power", measure=measure, default=False)]
    runs = emulated.json("power")["runs"]
    assert [run["figures"][0]["value"] for run in runs] == [0.0, 4.5, 0.0]
    assert closed == ["own"]


def test_a_meter_that_only_counts_gives_the_power_since_it_was_read_before() -> None:
    rows: Iterator[Reading | MeterError] = iter(
        [
            Reading(seconds=10.0, watts=None, energy_joules=70.0, wraps_at_joules=100.0),
            Reading(seconds=12.0, watts=None, energy_joules=90.0, wraps_at_joules=100.0),
            Reading(seconds=14.0, watts=None, energy_joules=10.0, wraps_at_joules=100.0),
            MeterError("timed out"),
            Reading(seconds=18.0, watts=None, energy_joules=50.0, wraps_at_joules=100.0),
            Reading(seconds=18.0, watts=None, energy_joules=50.0, wraps_at_joules=100.0),
            Reading(seconds=19.0, watts=None),
            Reading(seconds=20.0, watts=3.0, energy_joules=55.0),
        ]
    )

    class Counts:
        def read(self) -> Reading:
            row = next(rows)
            if isinstance(row, MeterError):
                raise row
            return row

        def close(self) -> None: ...

    watts = probing._WattsNow(Counts())
    assert [watts(), watts(), watts()] == [None, 10.0, 10.0]
    with pytest.raises(MeterError):
        watts()
    assert [watts(), watts(), watts(), watts()] == [10.0, None, None, 3.0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nonsense",), "no probe 'nonsense'"),
        (("--here", "--node", "a"), "--here probes only this machine"),
        (("--here", "--at-once"), "--here probes only this machine"),
        (("--here", "--save-board", "."), "is a folder"),
        (("--show", "--save-board", "x.toml"), "measured now"),
        (("--show", "--paper"), "--paper cannot be used with --show"),
        (("--show", "--here", "--skip-missing"), "--here, --skip-missing cannot be used"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    bench: Bench, words: tuple[str, ...], message: str
) -> None:
    assert message in bench.refused(UsageError, *words)
