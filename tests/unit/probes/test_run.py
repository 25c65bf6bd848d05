"""Running probes: what is refused, kept, skipped, ended and cleaned up. On this machine itself."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_until

from boardcluster.errors import (
    HostError,
    ProbeOutputError,
    RemoteError,
    UnreachableError,
    UsageError,
)
from boardcluster.probes.base import Measure, NodeTool, Probe, Site
from boardcluster.probes.run import Judge, LiveSite, check_figures, plan_probes, run_probes
from boardcluster.probes.tagged_remote import PROBE_VARIABLE
from boardcluster.probes.tools import lacks_of, tool_versions
from boardcluster.records import ProbeFigure, ProbeMode, ProbeRun, Verdict
from boardcluster.remote.local import LocalRemote
from boardcluster.store.probes import check_probe_run

FIGURE = ProbeFigure(name="made_up_seconds", value=1.5, conditions={"threads": "1"})
PYTHON = NodeTool(program="python3", package="python3")
ABSENT = NodeTool(program="no-such-tool", package="no-such-package")


def good(site: Site) -> tuple[ProbeFigure, ...]:
    return (FIGURE,)


def make_probe(name: str = "made-up", measure: Measure = good, **more: Any) -> Probe:
    named: dict[str, Any] = {"tools": (PYTHON,), **more}
    return Probe(
        name=name,
        area="cpu",
        summary="",
        matches=(),
        measure=measure,
        quick_seconds=1,
        paper_seconds=10,
        **named,
    )


class Desk:
    """Nodes that are all this machine, and what was kept and said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: list[ProbeRun] = []
        self.said: list[str] = []

    def site(self, name: str = "pi1", **more: Any) -> LiveSite:
        remote = more.pop("remote", LocalRemote(name))
        return LiveSite(
            node=name,
            remote=remote,
            admin=more.pop("admin", remote),
            cores=2,
            memory_bytes=1 << 30,
            folder=str(self.folder / name),
            address="127.0.0.1",
            hardware=f"{name}: a machine",
            cluster="lab",
            emulated=False,
            **more,
        )

    def run(self, *probes: Probe, nodes: tuple[str, ...] = ("pi1",), **more: Any) -> None:
        plan = plan_probes([self.site(name) for name in nodes], probes, named=True)
        run_probes(
            plan,
            mode=ProbeMode.QUICK,
            keep=self.kept.append,
            tell=self.said.append,
            settings={"cache": "/cache"},
            **more,
        )

    def left(self) -> list[Path]:
        """What lies in the nodes' folders."""
        return list(self.folder.glob("*/*"))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def marked() -> list[str]:
    """Command lines of processes that carry the mark of a probe."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"{PROBE_VARIABLE}=".encode() in (path / "environ").read_bytes():
                found.append((path / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def test_a_run_is_kept_with_all_that_describes_it(desk: Desk) -> None:
    sites: list[Site] = []

    def measure(site: Site) -> tuple[ProbeFigure, ...]:
        sites.append(site)
        assert not list(Path(site.folder).iterdir())
        Path(site.folder, "left").touch()
        return (FIGURE,)

    desk.run(make_probe(measure=measure))

    (run,) = desk.kept
    assert (run.probe, run.node, run.peer, run.mode) == ("made-up", "pi1", "", ProbeMode.QUICK)
    assert (run.cluster, run.emulated, run.hardware) == ("lab", False, "pi1: a machine")
    assert (run.figures, run.reason) == ((FIGURE,), "")
    assert run.versions[0].lower().startswith("python3: python 3.")
    assert run.duration_seconds > 0
    assert sites[0].settings == {"cache": "/cache"}
    assert sites[0].folder.endswith(run.id)
    assert desk.left() == []


def test_ids_are_unique_and_sort_by_time(desk: Desk) -> None:
    desk.run(*(make_probe(f"p{number}") for number in range(5)))
    ids = [run.id for run in desk.kept]
    assert len(set(ids)) == 5
    assert [one[:19] for one in ids] == sorted(one[:19] for one in ids)


def test_a_missing_tool_is_named_before_anything_runs(desk: Desk) -> None:
    ran: list[Site] = []

    def measure(site: Site) -> tuple[ProbeFigure, ...]:
        ran.append(site)
        return (FIGURE,)

    probes = (
        make_probe("fine", measure=measure),
        make_probe("poor", tools=(PYTHON, ABSENT)),
    )
    with pytest.raises(HostError, match="pi1: poor needs no-such-tool") as caught:
        desk.run(*probes, nodes=("pi1", "pi2"))
    assert "`sudo apt-get install -y no-such-package` on pi1, pi2" in caught.value.hint
    assert "--skip-missing" in caught.value.hint
    assert (ran, desk.kept) == ([], [])


def test_what_is_skipped_is_kept_with_the_reason(desk: Desk) -> None:
    desk.run(make_probe("poor", tools=(ABSENT,)), make_probe("fine"), skip_missing=True)

    assert [(run.probe, run.reason) for run in desk.kept] == [
        ("poor", "skipped: pi1 lacks no-such-tool (package no-such-package)"),
        ("fine", ""),
    ]


def test_a_peer_that_lacks_a_tool_is_named(desk: Desk) -> None:
    class Poor(LocalRemote):
        def run(self, argv: Any, **named: Any) -> Any:
            return super().run([word for word in argv if word != "sort"], **named)

    poor = desk.site("pi2", remote=Poor("pi2"))
    probe = make_probe(pair=True, tools=(NodeTool(program="sort", package="coreutils"),))
    plan = plan_probes([desk.site(), poor], [probe], named=True)
    run_probes(
        plan,
        mode=ProbeMode.QUICK,
        keep=desk.kept.append,
        tell=desk.said.append,
        settings={},
        skip_missing=True,
    )
    assert {run.reason for run in desk.kept} == {"skipped: pi2 lacks sort (package coreutils)"}


def test_root_is_asked_of_the_way_that_may_be_root() -> None:
    class Nobody(LocalRemote):
        def run(self, argv: Any, **named: Any) -> Any:
            return super().run([word.replace("os.geteuid() == 0", "False") for word in argv])

    class Root(LocalRemote):
        def run(self, argv: Any, **named: Any) -> Any:
            return super().run([word.replace("os.geteuid() == 0", "True") for word in argv])

    probe = make_probe(needs_root=True)
    assert lacks_of("pi1", Nobody(), Root(), [probe]) == []
    (lack,) = lacks_of("pi1", Nobody(), Nobody(), [probe])
    assert (lack.words, lack.packages) == ("root", ())
    assert lacks_of("pi1", Nobody(), Nobody(), [make_probe()]) == []


def test_a_probe_that_fails_is_kept_and_the_next_one_runs(desk: Desk) -> None:
    def garbled(site: Site) -> tuple[ProbeFigure, ...]:
        raise ProbeOutputError("the tool printed\n  nonsense")

    desk.run(make_probe("bad", measure=garbled), make_probe("fine"))

    assert [(run.probe, run.reason) for run in desk.kept] == [
        ("bad", "the tool printed nonsense"),
        ("fine", ""),
    ]
    assert desk.kept[0].figures == ()
    assert "pi1: bad: the tool printed nonsense" in desk.said
    assert desk.left() == []


def test_a_tool_that_hangs_is_ended_and_said(desk: Desk) -> None:
    def hangs(site: Site) -> tuple[ProbeFigure, ...]:
        site.remote.run(["sleep", "61.5"], timeout_seconds=0.3)
        return (FIGURE,)

    desk.run(make_probe(measure=hangs))
    assert "sleep 61.5" in desk.kept[0].reason
    assert not [line for line in marked() if "61.5" in line]


def test_a_server_that_a_probe_left_is_ended(desk: Desk) -> None:
    def leaves(site: Site) -> tuple[ProbeFigure, ...]:
        site.remote.start(["sleep", "62.5"], log=f"{site.folder}/log")
        wait_until(lambda: [line for line in marked() if "62.5" in line], "the server")
        raise RemoteError("and then it failed")

    desk.run(make_probe(measure=leaves))
    assert desk.kept[0].reason == "and then it failed"
    assert not [line for line in marked() if "62.5" in line]
    assert desk.left() == []


def test_an_interrupt_cleans_up_and_goes_on_upwards(desk: Desk) -> None:
    def interrupted(site: Site) -> tuple[ProbeFigure, ...]:
        site.remote.start(["sleep", "63.5"], log=f"{site.folder}/log")
        raise SystemExit(130)

    with pytest.raises(SystemExit):
        desk.run(make_probe("first"), make_probe(measure=interrupted), make_probe("last"))
    assert [run.probe for run in desk.kept] == ["first"]
    assert not [line for line in marked() if "63.5" in line]
    assert desk.left() == []


def test_a_node_that_goes_away_is_said_with_what_may_be_left(desk: Desk) -> None:
    class Gone(LocalRemote):
        def run(self, argv: Any, **named: Any) -> Any:
            raise UnreachableError("pi1: no route to host")

    def measure(site: Site) -> tuple[ProbeFigure, ...]:
        return (FIGURE,)

    site = desk.site()
    plan = plan_probes(
        [replace(site, admin=Gone("pi1"))], [make_probe(measure=measure)], named=True
    )
    run_probes(
        plan, mode=ProbeMode.QUICK, keep=desk.kept.append, tell=desk.said.append, settings={}
    )
    assert desk.kept[0].figures == (FIGURE,)
    assert "may have been left behind: pi1: no route to host" in desk.said[-1]


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ((), "measured nothing"),
        ((replace(FIGURE, value=float("nan")),), "made_up_seconds is nan"),
        ((FIGURE, replace(FIGURE, value=2.0)), "made_up_seconds twice"),
    ],
)
def test_figures_that_are_none_are_a_failure(
    desk: Desk, figures: tuple[ProbeFigure, ...], words: str
) -> None:
    with pytest.raises(ProbeOutputError, match=words):
        check_figures(figures, probe="made-up")
    desk.run(make_probe(measure=lambda site: figures))
    assert words in desk.kept[0].reason


def test_a_probe_of_which_nothing_applies_to_dilated_nodes_is_kept_with_the_reason(
    desk: Desk,
) -> None:
    clock = replace(FIGURE, name="made_up_clock_hertz")
    site = replace(desk.site(), dilation=2.0)
    probes = [make_probe("clock", lambda _: (clock,)), make_probe("time")]
    run_probes(
        plan_probes([site], probes, named=True),
        mode=ProbeMode.QUICK,
        keep=desk.kept.append,
        tell=desk.said.append,
        settings={},
    )
    first, second = desk.kept
    assert (first.figures, bool(first.reason)) == ((), True)
    assert first.reason in "".join(desk.said)
    check_probe_run(first)
    assert [figure.value for figure in second.figures] == [FIGURE.value / 2]


def test_pairs_run_in_both_directions_and_know_each_other(desk: Desk) -> None:
    seen = []

    def measure(site: Site) -> tuple[ProbeFigure, ...]:
        assert site.peer is not None
        assert Path(site.folder).is_dir()
        assert Path(site.peer.folder).is_dir()
        seen.append((site.node, site.peer.node))
        return (FIGURE,)

    desk.run(make_probe("pair", measure=measure, pair=True), nodes=("a", "b", "c"))
    assert seen == [("a", "b"), ("a", "c"), ("b", "a"), ("b", "c"), ("c", "a"), ("c", "b")]
    assert [(run.node, run.peer) for run in desk.kept] == seen
    assert desk.left() == []


def test_one_node_has_no_pairs() -> None:
    desk = Desk(Path("unused"))
    pair, single = make_probe("pair", pair=True), make_probe("single")
    plan = plan_probes([desk.site()], [pair, single], named=False)
    assert (plan.probes, plan.left_out) == ((single,), (pair,))
    assert plan.about_seconds(ProbeMode.PAPER) == 10
    with pytest.raises(UsageError, match="pair needs two nodes"):
        plan_probes([desk.site()], [pair], named=True)


def test_nodes_run_one_after_the_other_unless_at_once(desk: Desk) -> None:
    busy: list[str] = []
    most: list[int] = []
    guard = threading.Lock()

    def measure(site: Site) -> tuple[ProbeFigure, ...]:
        with guard:
            busy.append(site.node)
            most.append(len(busy))
        time.sleep(0.3)
        with guard:
            busy.remove(site.node)
        return (FIGURE,)

    desk.run(make_probe(measure=measure), nodes=("a", "b", "c"))
    assert max(most) == 1
    most.clear()
    desk.run(make_probe(measure=measure), nodes=("a", "b", "c"), at_once=True)
    assert max(most) > 1
    assert len(desk.kept) == 6
    assert desk.left() == []


def test_an_interrupt_while_at_once_ends_what_runs_everywhere(desk: Desk) -> None:
    def measure(site: Site) -> tuple[ProbeFigure, ...]:
        if site.node == "a":
            return (FIGURE,)
        site.remote.run(["sleep", "64.5"], timeout_seconds=60)
        return (FIGURE,)

    def interrupt(run: ProbeRun) -> None:
        time.sleep(1)
        raise SystemExit(130)

    plan = plan_probes([desk.site("a"), desk.site("b")], [make_probe(measure=measure)], named=True)
    began = time.monotonic()
    with pytest.raises(SystemExit):
        run_probes(
            plan,
            mode=ProbeMode.QUICK,
            keep=interrupt,
            tell=desk.said.append,
            settings={},
            at_once=True,
        )
    assert time.monotonic() - began < 20
    assert not [line for line in marked() if "64.5" in line]
    assert desk.left() == []


def test_a_defect_at_once_is_not_swallowed(desk: Desk) -> None:
    def broken(site: Site) -> tuple[ProbeFigure, ...]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        desk.run(make_probe(measure=broken), nodes=("a", "b"), at_once=True)
    assert desk.left() == []


def test_versions_are_the_first_line_with_a_number(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text(
        "#!/bin/sh\necho; echo 'A tool'; printf '\\033[1mrelease 4.2\\033[0m\\n'\nexit 3"
    )
    script.chmod(0o755)
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\n")
    silent.chmod(0o755)
    tools = [
        NodeTool(program=sys.executable, package="python3"),
        NodeTool(program=str(script), package="x"),
        NodeTool(program=str(silent), package="x"),
        NodeTool(program=str(tmp_path / "gone"), package="x"),
    ]
    said = tool_versions(LocalRemote(), tools)
    assert said[sys.executable].startswith(f"{sys.executable}: Python 3.")
    assert said[str(script)] == f"{script}: release 4.2"
    assert said[str(silent)] == f"{silent}: version unknown"
    assert said[str(tmp_path / "gone")].endswith("version unknown")


def test_a_run_is_watched_while_it_measures_and_keeps_its_verdict(desk: Desk) -> None:
    happened: list[str] = []

    def measure(site: Site) -> tuple[ProbeFigure, ...]:
        happened.append("measured")
        return (FIGURE,)

    @contextlib.contextmanager
    def watch(probe: Probe, sites: Sequence[LiveSite], identity: str) -> Iterator[Judge]:
        happened.append(f"watching {', '.join(site.node for site in sites)} for {probe.name}")
        yield lambda began, ended: {
            "verdict": Verdict.TAINTED,
            "verdict_reasons": (f"{identity} took {ended >= began}",),
        }
        happened.append("no longer")

    desk.run(make_probe(measure=measure), watch=watch)
    desk.run(make_probe(measure=measure))

    watched, alone = desk.kept
    assert happened == ["watching pi1 for made-up", "measured", "no longer", "measured"]
    assert watched.verdict is Verdict.TAINTED
    assert watched.verdict_reasons == (f"{watched.id} took True",)
    assert (alone.verdict, alone.verdict_reasons) == (Verdict.UNJUDGED, ())


def test_a_run_that_measured_nothing_is_not_judged(desk: Desk) -> None:
    def fail(site: Site) -> tuple[ProbeFigure, ...]:
        raise ProbeOutputError("it hung")

    @contextlib.contextmanager
    def watch(*_: object) -> Iterator[Judge]:
        yield lambda *_: {"verdict": Verdict.VALID}

    desk.run(make_probe(measure=fail), watch=watch)
    assert [(run.reason, run.verdict) for run in desk.kept] == [("it hung", Verdict.UNJUDGED)]
