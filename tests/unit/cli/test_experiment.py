"""``experiment``: everything is checked first, twins run in turn, results stand side by side."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.desk import Desk, MakeLayout, bad, good, make_desk
from typer.testing import CliRunner
from typer.testing import Result as Ran

from boardcluster.analysis.experiments import ExperimentTable, tabulate
from boardcluster.campaign import experiment
from boardcluster.campaign.follow import LineProgress
from boardcluster.campaign.upkeep import bring_up
from boardcluster.cli.app import Stopped, app
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import (
    BoardclusterError,
    CapacityError,
    ClusterError,
    HostError,
    RunError,
    SpecError,
    UsageError,
)
from boardcluster.records import AttemptState, ClusterSpec, Result
from boardcluster.services import operation
from boardcluster.services.declaration import read_spec
from boardcluster.services.pair import pair_ids
from boardcluster.store import Store
from boardcluster.twin.plan import Host
from boardcluster.units import format_seconds

GIB = 1 << 30
HOST = Host(
    cores=2,
    events_per_second_per_core=50_000.0,
    memory_available_bytes=20 * GIB,
    disk_free_bytes=100 * GIB,
    limits_unwritten=True,
)
EXPERIMENT = """\
[experiment]
name = "cards"
question = "Which card is faster?"
campaign = "campaign.toml"
twins = ["slow.toml", "fast.toml"]
vary = "twin"

[[published]]
file = "lee-park-2026-table-16"
where = { nodes = "2", storage = "microSD" }
quantity = "execution_time"
of = { workload = "teragen", twin = "slow" }

[[published]]
file = "lee-park-2026-table-16"
where = { nodes = "4", storage = "SSD" }
quantity = "execution_time"
of = { workload = "teragen", twin = "fast" }
"""
CAMPAIGN = """\
[campaign]
name = "small"
repetitions = 1

[[matrix]]
workload = ["teragen", "pi"]
engine = "mapreduce"
size = "1 MB"
"""
SLOW = ("samsung-pro-plus-256gb", "")
FAST = ("sk-hynix-gold-p31-500gb", 'pcie = "3.0"\n')


def twin(name: str, medium: tuple[str, str], *, memory: str = "2 GiB", workers: int = 2) -> str:
    head = f'[cluster]\nname = "{name}"\nkind = "emulated"\nprofile = "default"\n'
    nodes = "".join(
        f'\n[[node]]\nname = "n{place}"\nroles = ["{"worker" if place else "master"}"]\n'
        f'board = "rpi-5b-8gb-2400mhz"\nmedium = "{medium[0]}"\n{medium[1]}memory = "{memory}"\n'
        for place in range(workers + 1)
    )
    return f'{head}engines = "{pair_ids()[0]}"\n{nodes}'


def no_root(*_: object, **__: object) -> Host:
    raise HostError("not root", hint="use sudo")


class TwinDesk:
    """A folder with an experiment, and a machine on which its clusters only seem to run.

    Attributes:
        folder: of the experiment's files.
        root: of the twins' homes.
        desk: what seems to run; its home is that of the last twin that was touched.
        brought: homes and what was done to them, in order.
    """

    def __init__(self, folder: Path, desk: Desk) -> None:
        self.folder = folder
        self.root = folder / "homes"
        self.desk = desk
        self.brought: list[tuple[str, str]] = []

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.folder / f"{name}.toml").write_text(text)

    def __call__(self, *words: str) -> Ran:
        arguments = ["experiment", str(self.folder / "experiment.toml")]
        arguments += ["--home-root", str(self.root), "--cache", str(self.folder / "cache"), *words]
        return CliRunner().invoke(app, arguments, catch_exceptions=False)

    def json(self, *words: str) -> Any:
        return json.loads(self("--json", *words).stdout)

    def doing(self, what: str) -> Callable[..., Any]:
        act = getattr(self.desk, what)

        def done(home: Path, **named: Any) -> Any:
            self.desk.home, self.desk.declared = home, read_spec(home / "cluster.toml")
            if what != "attach":
                self.brought.append((home.name, what))
                (home / "nodes" / "n1").mkdir(parents=True, exist_ok=True)
            return act(home, **named)

        return done

    def results(self, name: str) -> tuple[Result, ...]:
        with Store.open(self.root / name, read_only=True) as store:
            return store.results()

    def ran(self) -> list[str]:
        return sorted(trial.workload for trial in self.desk.ran)


@pytest.fixture
def lab(
    tmp_path: Path,
    make_spec: Callable[..., ClusterSpec],
    make_layout: MakeLayout,
    monkeypatch: pytest.MonkeyPatch,
) -> TwinDesk:
    desk = make_desk(tmp_path / "desk", make_spec(engines=pair_ids()[0]), make_layout, monkeypatch)
    made = TwinDesk(tmp_path, desk)
    for what in ("attach", "up", "down"):
        monkeypatch.setattr(operation, what, made.doing(what))
    monkeypatch.setattr("boardcluster.campaign.experiment.look_at_host", lambda *_, **__: HOST)
    made.write(
        experiment=EXPERIMENT,
        campaign=CAMPAIGN,
        slow=twin("slow", SLOW),
        fast=twin("fast", FAST),
    )
    return made


def test_each_twin_is_brought_up_runs_the_campaign_and_is_brought_down(lab: TwinDesk) -> None:
    ran = lab()

    assert lab.brought == [("slow", "up"), ("slow", "down"), ("fast", "up"), ("fast", "down")]
    assert lab.ran() == ["pi", "pi", "teragen", "teragen"]
    for name in ("slow", "fast"):
        assert len(lab.results(name)) == 2
        assert (lab.root / name / "cluster.toml").read_text() == (
            lab.folder / f"{name}.toml"
        ).read_text()
        assert not (lab.root / name / "nodes").exists()
    assert "cards: Which card is faster?" in ran.stdout
    assert "emulated boards" in ran.stdout
    assert "published: lee-park-2026, Table 16: maps 100, samples 10000" in ran.stdout


def test_ratios_stand_beside_published_ones(lab: TwinDesk) -> None:
    lab.desk.ends["teragen"] = good(40.0)

    table = lab.json()["table"]

    assert (table["vary"], table["columns"]) == ("twin", ["slow", "fast"])
    assert [row["workload"] for row in table["rows"]] == ["pi", "teragen"]
    slow, fast = table["rows"][1]["entries"]
    assert (slow["mean_seconds"], fast["mean_seconds"], fast["ratio"]) == (40, 40, 1)
    assert (slow["published_seconds"], fast["published_seconds"]) == (132, 76)
    assert fast["published_ratio"] == pytest.approx(132 / 76)
    assert fast["is_far"]


def test_tainted_runs_in_a_mean_are_shown_as_such(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tabulated(*given: Any, **more: Any) -> ExperimentTable:
        table = tabulate(*given, **more)
        rows = [
            replace(row, entries=tuple(replace(entry, tainted=1) for entry in row.entries))
            for row in table.rows
        ]
        return replace(table, rows=tuple(rows))

    assert "tainted" not in lab().stdout
    assert [row["entries"][0]["tainted"] for row in lab.json()["table"]["rows"]] == [0, 0]
    monkeypatch.setattr("boardcluster.cli.experiment.tabulate", tabulated)
    assert lab().stdout.count("1 (1 tainted)") == 4


def test_a_second_run_shows_the_same_and_needs_nothing_of_the_machine(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lab.json()
    lab.brought.clear()
    monkeypatch.setattr("boardcluster.campaign.experiment.look_at_host", no_root)
    lab.desk.is_up = True

    assert lab.json() == first
    assert (lab.brought, len(lab.desk.ran)) == ([], 4)


def test_an_experiment_that_was_stopped_goes_on_where_it_was(lab: TwinDesk) -> None:
    lab.desk.ends["pi"] = Stopped(130)
    assert lab().exit_code == 130
    assert lab.brought == [("slow", "up"), ("slow", "down")]
    assert not (lab.root / "slow" / "nodes").exists()
    done = {r.trial.id for r in lab.results("slow") if r.attempt and r.attempt.state == "ok"}
    del lab.desk.ends["pi"]
    lab.desk.ran.clear()

    lab()

    assert done.isdisjoint({trial.id for trial in lab.desk.ran})
    assert len(done) + len(lab.desk.ran) == 4
    assert {row.attempt and row.attempt.state for row in lab.results("slow")} == {AttemptState.OK}


def test_runs_that_fail_are_listed_with_their_reason(lab: TwinDesk) -> None:
    lab.desk.ends["pi"] = bad()

    with pytest.raises(RunError, match="2 runs have no verified result"):
        lab()

    table = CliRunner().invoke(
        app,
        [
            *("experiment", str(lab.folder / "experiment.toml"), "--json"),
            *("--home-root", str(lab.root)),
        ],
    )
    left = json.loads(table.stdout)["table"]["left_out"]
    assert [(row["twin"], row["state"], row["reason"]) for row in left] == [
        ("slow", "failed", "because"),
        ("fast", "failed", "because"),
    ]


def test_a_twin_that_cannot_run_does_not_keep_the_others_from_it(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = experiment.run_stand

    def run_stand(stand: experiment.Stand, *given: Any, **more: Any) -> tuple[Result, ...]:
        if stand.name == "slow":
            raise HostError("no loop device is free")
        return run(stand, *given, **more)

    monkeypatch.setattr(experiment, "run_stand", run_stand)
    with pytest.raises(RunError, match="no loop device is free"):
        lab()
    assert len(lab.results("fast")) == 2

    monkeypatch.setattr(experiment, "run_stand", run)
    lab()
    assert lab.ran() == ["pi", "pi", "teragen", "teragen"]


@pytest.mark.parametrize("full", [False, True])
def test_only_a_full_disk_keeps_the_next_twin_from_running(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch, *, full: bool
) -> None:
    up = operation.up

    def too_slow(home: Path, **named: Any) -> Any:
        if home.name == "slow":
            raise CapacityError("the least dilation is 7.5")
        return up(home, **named)

    def require_disk_space(_: Path) -> None:
        if full:
            raise CapacityError("the disk is 97 % full")

    monkeypatch.setattr(operation, "up", too_slow)
    monkeypatch.setattr(experiment, "require_disk_space", require_disk_space)
    with pytest.raises(BoardclusterError, match="the least dilation is 7") as caught:
        lab()
    assert type(caught.value) is (CapacityError if full else RunError)
    assert lab.ran() == ([] if full else ["pi", "teragen"])


def test_runs_of_a_twin_that_broke_off_are_in_the_table(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = experiment.run_stand

    def run_stand(stand: experiment.Stand, *given: Any, **more: Any) -> tuple[Result, ...]:
        results = run(stand, *given, **more)
        if stand.name == "slow":
            raise ClusterError("three trials in a row failed")
        return results

    monkeypatch.setattr(experiment, "run_stand", run_stand)
    shown: list[str] = []
    monkeypatch.setattr(
        "boardcluster.cli.experiment.print_experiment",
        lambda _, table, results, **__: shown.extend(results),
    )
    with pytest.raises(RunError, match="three trials in a row"):
        lab()
    assert shown == ["slow", "fast"]


def test_what_is_left_is_said_with_its_time_on_this_machine(lab: TwinDesk) -> None:
    first = lab()
    assert "twin slow: 2 runs of unknown length" in first.stderr
    assert "; then 2 runs on 1 twin of unknown length" in first.stderr
    campaign = lab.folder / "campaign.toml"
    campaign.write_text(campaign.read_text().replace("repetitions = 1", "repetitions = 3"))

    again = lab()

    took = format_seconds(120.0)  # 20 s each, as measured here: what dilation made of them is in it
    assert (
        f"twin slow: 6 runs, about {took} of this machine; then 6 runs on 1 twin, about {took} of "
        "this machine"
    ) in again.stderr


def test_an_edited_twin_begins_anew(lab: TwinDesk) -> None:
    lab()
    lab.desk.ran.clear()
    lab.write(fast=twin("fast", FAST, memory="3 GiB"))

    lab()

    assert len(lab.desk.ran) == 2
    assert len(lab.results("fast")) == 4


def killed(lab: TwinDesk) -> Path:
    """Return the state folder of the first twin, as an experiment that was killed leaves it."""
    home = lab.root / "slow"
    (home / "nodes" / "n1").mkdir(parents=True)
    (home / "cluster.toml").write_text(twin("slow", SLOW))
    (home / "of-experiment").touch()
    return home


def test_what_a_killed_experiment_left_is_ended_first_and_deleted_in_the_end(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = killed(lab)
    left = {"identity": "1", "boot_id": "b", "phase": "up", "own_user": False, "temporary": True}
    (home / "state.json").write_text(json.dumps({**left, "subnet": "", "nodes": [], "daemons": []}))
    down = operation.down

    def ended(folder: Path, **named: Any) -> int:
        (folder / "state.json").unlink(missing_ok=True)
        return down(folder, **named)

    def look(*_: object, **__: object) -> Host:
        lab.brought.append(("host", "looked at"))
        return HOST

    monkeypatch.setattr(operation, "down", ended)
    monkeypatch.setattr("boardcluster.campaign.experiment.look_at_host", look)
    lab("--dry-run")
    assert ("slow", "down") not in lab.brought
    lab.brought.clear()

    assert lab().exit_code == 0

    assert lab.brought[:2] == [("slow", "down"), ("host", "looked at")]
    assert not (home / "nodes").exists()
    assert not (home / "of-experiment").exists()


def test_what_is_left_of_a_twin_with_another_name_is_ended_too(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = {"identity": "1", "boot_id": "b", "phase": "up", "own_user": False, "temporary": True}
    state = json.dumps({**left, "subnet": "", "nodes": [], "daemons": []})
    for name, text in {"former": state, "others": state, "at-work": state, "broken": "{"}.items():
        home = lab.root / name
        home.mkdir(parents=True)
        (home / "state.json").write_text(text)
        if name != "others":
            (home / "of-experiment").touch()
    ended: list[str] = []
    down = operation.down

    def noted(folder: Path, **named: Any) -> int:
        if not (folder / "cluster.toml").exists():
            ended.append(folder.name)
            return 1
        return down(folder, **named)

    monkeypatch.setattr(operation, "down", noted)
    with driver_lock(lab.root / "at-work", doing="experiment"):
        lab("--dry-run")
        assert ended == []
        assert lab().exit_code == 0
    assert ended == ["former"]


def test_what_a_user_loads_after_a_killed_experiment_is_theirs(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = killed(lab)
    bring_up(home, cache=lab.folder / "cache", follow=LineProgress())
    operation.down(home)
    lab()
    assert (home / "nodes" / "n1").is_dir()


def test_disks_of_a_killed_experiment_are_room_for_its_twins(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[Path] = []

    def with_own_disks(host: Host, nodes: Path, names: Any) -> Host:
        held.append(nodes)
        return host

    (lab.root / "slow" / "nodes" / "n1").mkdir(parents=True)
    (lab.root / "slow" / "of-experiment").touch()
    monkeypatch.setattr("boardcluster.campaign.experiment.with_own_disks", with_own_disks)
    lab("--dry-run")
    slow, fast = lab.root / "slow" / "nodes", lab.root / "fast" / "nodes"
    assert held == [slow, slow, fast]
    held.clear()
    lab("--dry-run", "--keep")
    assert held == [slow, fast]


def test_disks_of_a_twin_that_is_done_are_deleted_and_room_for_the_next(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab()
    lab.write(fast=twin("fast", FAST, memory="3 GiB"))
    home = lab.root / "slow"
    image = home / "nodes" / "gone" / "disk.img"  # of a node that the twin has no more
    image.parent.mkdir(parents=True)
    image.write_bytes(b"x" * 100_000)
    taken_bytes = image.stat().st_blocks * 512
    (home / "of-experiment").touch()
    freed: list[int] = []
    held: list[Path] = []

    def free_bytes(home: Path, spec: ClusterSpec, freed_bytes: int = 0) -> tuple[int, Any]:
        freed.append(freed_bytes)
        return 10**15, {}

    def with_own_disks(host: Host, nodes: Path, names: Any) -> Host:
        held.append(nodes)
        return host

    monkeypatch.setattr("boardcluster.campaign.life.free_bytes", free_bytes)
    monkeypatch.setattr("boardcluster.campaign.experiment.with_own_disks", with_own_disks)
    lab("--keep")
    assert image.exists()
    assert (freed, held) == ([0, 0], [lab.root / "fast" / "nodes"])
    freed.clear()
    held.clear()
    lab.write(fast=twin("fast", FAST, memory="2560 MiB"))

    lab()

    assert freed == [taken_bytes, 0]
    assert held == [home / "nodes", lab.root / "fast" / "nodes"]
    assert not (home / "nodes").exists()
    assert not (home / "of-experiment").exists()


def test_a_finished_twin_that_another_driver_uses_is_shown_as_it_is(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lab.json()
    home = killed(lab)
    with driver_lock(home, doing="up"):
        assert lab.json() == first
    assert (home / "nodes" / "n1").is_dir()


def test_disks_of_a_killed_experiment_go_before_an_edited_twin_begins(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[bool] = []
    home = killed(lab)
    up = operation.up

    def noted(folder: Path, **named: Any) -> Any:
        there.append((folder / "nodes").exists())
        return up(folder, **named)

    monkeypatch.setattr(operation, "up", noted)
    lab.desk.ends["pi"] = Stopped(130)
    lab.write(slow=twin("slow", SLOW, workers=1))

    lab()

    assert there == [False]
    assert not (home / "nodes").exists()


def test_disks_of_a_killed_experiment_serve_the_campaign_that_goes_on(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.desk.ends["pi"] = Stopped(130)
    lab()
    del lab.desk.ends["pi"]
    data = lab.root / "slow" / "nodes" / "n1" / "data"
    data.parent.mkdir(parents=True)
    data.touch()
    (lab.root / "slow" / "of-experiment").touch()
    there: list[bool] = []
    up = operation.up

    def noted(folder: Path, **named: Any) -> Any:
        there.append(data.exists())
        return up(folder, **named)

    monkeypatch.setattr(operation, "up", noted)
    lab()
    assert there == [True, False]


def test_what_an_up_of_the_same_twin_begins_is_never_marked_for_deletion(lab: TwinDesk) -> None:
    home = lab.root / "slow"
    checked: list[bool] = []
    with driver_lock(home, doing="up"):
        with pytest.raises(RunError, match="another boardcluster is using this cluster"):
            lab()
        checked.append((home / "of-experiment").exists())
    (home / "nodes" / "n1").mkdir(parents=True)

    lab()

    assert checked == [False]
    assert (home / "nodes" / "n1").is_dir()


def test_keep_leaves_the_nodes_data(lab: TwinDesk) -> None:
    lab("--keep")

    assert (lab.root / "slow" / "nodes" / "n1").is_dir()


def test_data_that_was_there_before_is_left(lab: TwinDesk) -> None:
    (lab.root / "slow" / "nodes" / "n1").mkdir(parents=True)

    lab()

    assert (lab.root / "slow" / "nodes" / "n1").is_dir()
    assert not (lab.root / "fast" / "nodes").exists()


def test_a_dry_run_shows_what_would_run_and_writes_nothing(lab: TwinDesk) -> None:
    shown = lab("--dry-run").stdout

    assert "twin slow: 2 runs" in shown
    assert re.search(r"3 nodes need \d", shown)
    assert "columns: slow, fast; 2 published numbers" in shown
    assert (lab.root.exists(), lab.brought) == (False, [])


def test_a_dry_run_as_json(lab: TwinDesk) -> None:
    plan = lab.json("--dry-run")

    assert plan["columns"] == ["slow", "fast"]
    assert [(row["twin"], len(row["left"])) for row in plan["twins"]] == [("slow", 2), ("fast", 2)]


@pytest.mark.parametrize(
    ("vary", "matrix", "columns"),
    [
        ("workers", "workers = [2, 1]", ["2", "1"]),
        ("workers", "", ["2"]),
        ("master", 'master = ["separate", "declared"]', ["separate", "declared"]),
        ("profile", 'profile = ["upstream", "default"]', ["upstream", "default"]),
        ("concurrency", "", ["1", "2"]),
    ],
)
def test_columns_are_in_the_order_of_the_file(
    vary: str, matrix: str, columns: list[str], lab: TwinDesk
) -> None:
    lab.write(
        experiment=EXPERIMENT.partition("[[")[0].replace('"twin"', f'"{vary}"'),
        campaign=CAMPAIGN.replace('["teragen", "pi"]', '"teragen+pi"') + matrix,
    )

    assert lab.json("--dry-run")["columns"] == columns


def refused(lab: TwinDesk, kind: type[BoardclusterError]) -> str:
    with pytest.raises(kind) as caught:
        lab()
    assert (lab.brought, lab.root.exists()) == ([], False)
    return caught.value.message


def test_all_that_is_wrong_in_the_files_is_said_at_once(lab: TwinDesk) -> None:
    lab.write(
        campaign=CAMPAIGN.replace('"pi"', '"pie"'),
        slow=twin("slow", ("samsung-pro-plus", "")),
        fast=twin("fast", FAST).replace("2400mhz", "2500mhz"),
        experiment=EXPERIMENT.replace("table-16", "table-160").replace('nodes = "4"', 'node = "4"'),
    )

    said = refused(lab, SpecError)

    for words in (
        '"pie" is not a workload',
        '"samsung-pro-plus" is not a medium',
        '"rpi-5b-8gb-2500mhz" is not a board',
        "experiment.toml:8: published[0]: the catalog has no published table",
        "experiment.toml:14: published[1]: ",
    ):
        assert words in said


def test_what_does_not_fit_is_said_for_each_twin(lab: TwinDesk) -> None:
    lab.write(slow=twin("slow", SLOW, memory="8 GiB"), fast=twin("fast", FAST, memory="7 GiB"))

    said = refused(lab, CapacityError)

    assert re.search(r"slow: this machine is too small.*\n.*\n?.*fast: this", said, re.DOTALL)


def test_disks_that_are_kept_must_all_have_room(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = read_spec(lab.folder / "slow.toml").nodes
    one = sum(node.twin.disk_bytes for node in nodes if node.twin)
    host = replace(HOST, disk_free_bytes=int(1.9 * one))
    monkeypatch.setattr("boardcluster.campaign.experiment.look_at_host", lambda *_, **__: host)
    assert lab("--dry-run").exit_code == 0
    with pytest.raises(CapacityError, match=r"^fast: this machine is too small"):
        lab("--dry-run", "--keep")


def test_a_campaign_that_a_twin_cannot_run_is_refused(lab: TwinDesk) -> None:
    lab.write(campaign=CAMPAIGN + "workers = 3\n")

    said = refused(lab, CapacityError)

    assert "slow: 3 workers" in said
    assert "fast: 3 workers" in said


def test_a_machine_that_cannot_limit_nodes_is_refused(
    lab: TwinDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boardcluster.campaign.experiment.look_at_host", no_root)

    assert refused(lab, HostError) == "not root"


def test_a_plain_cluster_is_no_twin(lab: TwinDesk) -> None:
    plain = twin("slow", SLOW)
    for key in ("board", "medium"):
        plain = re.sub(rf"{key} = .*\n", "", plain)
    lab.write(slow=plain.replace("memory", "cores = 2\nmemory"))

    assert "not a twin of boards" in refused(lab, UsageError)


def test_two_twins_need_two_names(lab: TwinDesk) -> None:
    lab.write(fast=twin("slow", FAST))

    assert "is also the name of another twin" in refused(lab, SpecError)


def test_imported_results_are_not_taken_for_those_of_a_twin(lab: TwinDesk) -> None:
    lab()
    lab.brought.clear()
    (lab.root / "slow" / "imported.json").write_text("{}")

    for words in ((), ("--dry-run",)):
        with pytest.raises(ClusterError, match=r"^slow: .*holds imported results") as caught:
            lab(*words)
        assert "--home-root" in caught.value.hint
    assert lab.brought == []


def test_a_twin_that_is_up_is_refused(lab: TwinDesk) -> None:
    lab.desk.is_up = True

    with pytest.raises(ClusterError, match="slow: its cluster is up"):
        lab()

    assert lab.brought == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('twin = "fast"', "workers = 2", "published.1.: of: 2 cells of the experiment"),
        ('"teragen", twin = "fast"', '"grep", twin = "fast"', "published.1.: of: 0 cells"),
        (
            'twin = "fast"',
            'twin = "slow"',
            "published.1.: of: that cell already has .*published.0.",
        ),
        ('"execution_time"', '"execution"', "published.0.: .*no cells of 'execution'"),
        ("table-16", "table-15", "published.0.: .*no column 'nodes'"),
    ],
)
def test_a_citation_must_be_of_one_cell(old: str, new: str, said: str, lab: TwinDesk) -> None:
    lab.write(experiment=EXPERIMENT.replace(old, new))

    assert re.search(said, refused(lab, BoardclusterError))


def test_a_number_that_is_no_time_is_refused(lab: TwinDesk) -> None:
    cited = 'file = "lee-park-2026-table-03"\nwhere = { mode = "idle", board = "RPi 4B" }\n'
    lab.write(
        experiment=EXPERIMENT.partition("[[")[0]
        + f'[[published]]\n{cited}quantity = "power"\nof = {{ twin = "slow", workload = "pi" }}\n'
    )

    assert "power '3.75' W is not a time in s" in refused(lab, UsageError)


def test_a_stated_ratio_is_cited_by_its_id(lab: TwinDesk) -> None:
    cited = EXPERIMENT.partition("[[")[0] + (
        '[[published]]\nratio = "lee-park-2026-pcie-terasort-hadoop"\n'
        'of = { twin = "fast", workload = "pi" }\n'
    )
    lab.write(experiment=cited)

    (entry,) = [row["entries"][1] for row in lab.json()["table"]["rows"] if row["workload"] == "pi"]
    assert entry["published_ratio"] == 1.01
    assert "PCIe Version" in entry["published_source"]

    lab.write(
        experiment=cited.replace("lee-park-2026-pcie-terasort-hadoop", "lee-oh-park-2021-crc")
    )
    with pytest.raises(UsageError, match="'lee-oh-park-2021-crc' is no ratio that can be compared"):
        lab()

    lab.write(experiment=cited.replace("terasort-hadoop", "terasort-hadop"))
    with pytest.raises(UsageError, match=r'no ratio .*mean "lee-park-2026-pcie-terasort-hadoop"'):
        lab()
