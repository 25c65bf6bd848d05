"""What a campaign will take, and what cannot run, before anything starts."""

import os
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from tests.builders import make_trial
from tests.unit.campaign.fake_workload import FakeWorkload

from boardcluster.campaign.life import preflight_of
from boardcluster.campaign.preflight import Preflight, PreflightRow, check_preflight, free_bytes
from boardcluster.errors import UsageError
from boardcluster.records import (
    Checksum,
    ClusterSpec,
    Engine,
    MasterPlacement,
    NodeTwin,
    Trial,
    TwinSpec,
)
from boardcluster.remote.fake import FakeRemote
from boardcluster.services.operation import LiveCluster
from boardcluster.services.pair import pair_ids
from boardcluster.store import Store
from boardcluster.workloads.base import InputKind, JobSpec, Need

MakeSpec = Callable[..., ClusterSpec]
Workloads = dict[str, FakeWorkload]
PLENTY = 10**15


class Sized(FakeWorkload):
    """Needs its size times its replicas as input, and twice its size to run."""

    def need(self, job_spec: JobSpec) -> Need:
        return Need(
            input_bytes=job_spec.size_bytes * job_spec.replication,
            run_bytes=2 * job_spec.size_bytes,
        )


@pytest.fixture
def workloads(monkeypatch: pytest.MonkeyPatch) -> Workloads:
    found: Workloads = {
        "grep": Sized(name="grep", input_kind=InputKind.TEXT),
        "wordcount": Sized(name="wordcount", input_kind=InputKind.TEXT),
        "sort": Sized(name="sort"),
        "pi": FakeWorkload(
            name="pi", input_kind=InputKind.NOTHING, space=Need(input_bytes=0, run_bytes=0)
        ),
    }
    monkeypatch.setattr("boardcluster.campaign.trial_jobs.load_workload", found.__getitem__)
    return found


def trial_of(workload: str = "grep", **fields: Any) -> Trial:
    return make_trial(workload, **{"engine": Engine.MAPREDUCE, **fields})


def look(
    spec: ClusterSpec,
    *trials: Trial,
    typical: dict[tuple[str, str, int, int], float] | None = None,
    free: int = PLENTY,
    held: Mapping[str, int] = MappingProxyType({}),
    tools: tuple[str, ...] = (),
) -> Preflight:
    return check_preflight(
        spec,
        trials,
        typical_seconds=typical or {},
        free=(free, held),
        lacking=lambda name, nodes: "" if name in tools else nodes[0],
    )


def test_rows_count_cells_and_runs_of_each_workload_and_engine(
    workloads: Workloads, make_spec: MakeSpec
) -> None:
    preflight = look(
        make_spec(),
        trial_of(size_bytes=2000),
        trial_of(),
        trial_of(repetition=2),
        trial_of(warm_up=True),
        trial_of(workers=2),
        trial_of(engine=Engine.SPARK),
        trial_of("pi", size_bytes=0),
    )

    assert preflight.rows == (
        PreflightRow(
            workload="grep",
            engine="mapreduce",
            sizes_bytes=(1000, 2000),
            workers=(2, 4),
            cells=3,
            runs=5,
            known_seconds=0.0,
            known_runs=0,
        ),
        PreflightRow(
            workload="grep",
            engine="spark",
            sizes_bytes=(1000,),
            workers=(4,),
            cells=1,
            runs=1,
            known_seconds=0.0,
            known_runs=0,
        ),
        PreflightRow(
            workload="pi",
            engine="mapreduce",
            sizes_bytes=(0,),
            workers=(4,),
            cells=1,
            runs=1,
            known_seconds=0.0,
            known_runs=0,
        ),
    )
    assert (preflight.runs, preflight.cells, preflight.problems) == (7, 5, ())


@pytest.mark.parametrize(
    "change",
    [
        {"profile": "paper-2021"},
        {"size_bytes": 7},
        {"workers": 3},
        {"concurrency": 2},
        {"replication": 1},
        {"checksum": Checksum.NULL},
        {"master": MasterPlacement.SEPARATE},
        {"input": "/text"},
        {"parameters": {"grep.pattern": "x"}},
        {"engine": Engine.SPARK},
        {"workload": "wordcount"},
    ],
)
def test_what_makes_another_cell(
    change: dict[str, Any], workloads: Workloads, make_spec: MakeSpec
) -> None:
    assert look(make_spec(memory_mib=8192), trial_of(), trial_of(**change)).cells == 2


def test_forms_are_counted_and_their_changes_take_time(
    workloads: Workloads, make_spec: MakeSpec
) -> None:
    trials = [
        trial_of(),
        trial_of("sort"),
        trial_of(workers=2),
        trial_of(workers=2, master=MasterPlacement.COMBINED),
    ]
    typical = {("grep", "mapreduce", 1000, 4): 10.0}

    preflight = look(make_spec(memory_mib=8192), *trials, typical=typical)

    assert preflight.forms == 3
    # The first variant is not changed to; each further one takes 15 s.
    assert preflight.known_seconds == 10.0 + 2 * 15.0
    assert look(make_spec(), trial_of(), typical=typical).known_seconds == 10.0


def test_time_is_known_as_far_as_something_like_it_was_measured(
    workloads: Workloads, make_spec: MakeSpec
) -> None:
    typical = {
        ("grep", "mapreduce", 1000, 4): 10.0,
        ("grep", "mapreduce", 1000, 2): 99.0,  # another number of workers
        ("grep", "spark", 1000, 4): 77.0,
        ("grep+sort", "mapreduce", 1000, 4): 300.0,
    }
    preflight = look(
        make_spec(),
        trial_of(),
        trial_of(repetition=2),
        trial_of(replication=1),  # pooled with the others
        trial_of(size_bytes=2000),
        trial_of("grep+sort", concurrency=2),
        typical=typical,
    )

    grep, mix = preflight.rows
    assert (grep.known_seconds, grep.known_runs, grep.runs) == (30.0, 3, 4)
    assert (mix.known_seconds, mix.known_runs) == (300.0, 1)
    assert (preflight.known_seconds, preflight.unknown_runs) == (330.0, 1)


def test_space_is_all_inputs_once_and_the_largest_run(
    workloads: Workloads, make_spec: MakeSpec
) -> None:
    preflight = look(
        make_spec(),
        trial_of(),  # text of 1000 twice
        trial_of("wordcount"),  # the same text
        trial_of(engine=Engine.SPARK),  # the same text
        trial_of(size_bytes=3000),  # another text
        trial_of("sort"),  # rows of its own
        trial_of("sort", repetition=2),
        trial_of("grep+sort+sort"),  # the same inputs; runs of 2000 each
    )

    assert preflight.space_bytes == (2000 + 6000 + 2000) + max(2 * 3000, 3 * 2000)


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({"replication": 1}, 1000),
        ({"checksum": Checksum.NULL}, 2000),
        ({"input": "/my/text"}, 2000),
        ({"workers": 3}, 2000),  # a variant of its own, so an HDFS of its own
        ({"concurrency": 1, "parameters": {}}, 0),
    ],
)
def test_inputs_are_shared_only_if_they_are_the_same(
    change: dict[str, Any], more: int, workloads: Workloads, make_spec: MakeSpec
) -> None:
    once = look(make_spec(), trial_of()).space_bytes

    assert look(make_spec(), trial_of(), trial_of(**change)).space_bytes == once + more


def test_rows_in_another_number_of_files_are_an_input_of_their_own(
    workloads: Workloads, make_spec: MakeSpec
) -> None:
    spec, plain = make_spec(engines=pair_ids()[0]), trial_of("sort")
    once = look(spec, plain).space_bytes
    chosen = trial_of("sort", settings={"mapreduce.job.maps": "7"})

    assert look(spec, plain, chosen).space_bytes == once + 2000


def test_what_does_not_fit_is_a_problem_with_the_arithmetic(
    workloads: Workloads, make_spec: MakeSpec
) -> None:
    trials = [trial_of(), trial_of("sort")]  # inputs 2000 + 2000, run 2000

    assert look(make_spec(), *trials, free=6000).problems == ()
    (problem,) = look(make_spec(), *trials, free=5999).problems
    assert problem.startswith("the inputs need 4 KB and the largest run 2 KB, but the nodes'")
    assert "smaller sizes" in problem


def test_no_more_copies_of_an_input_are_counted_than_there_are_workers(
    workloads: Workloads, make_spec: MakeSpec
) -> None:
    """HDFS keeps none beyond: on one local node ``upstream`` asks for 3 and gets 1."""
    four, eight = (
        look(make_spec(workers=4), trial_of(replication=copies)).space_bytes for copies in (4, 8)
    )
    assert four == eight == 4 * 1000 + 2 * 1000


def test_every_problem_is_said_once(workloads: Workloads, make_spec: MakeSpec) -> None:
    workloads["sort"].refuses = UsageError("sort: too small", hint="give a size")
    trials = [
        trial_of(workers=9),
        trial_of(workers=9, repetition=2),
        trial_of("wordcount", workers=9),
        trial_of("sort"),
        trial_of("sort", engine=Engine.SPARK),
        trial_of("sort", size_bytes=2000),
        trial_of(),
    ]

    preflight = look(make_spec(), *trials)

    workers, sort = preflight.problems
    assert workers.startswith("9 workers with the master declared; the cluster demo has 4 workers")
    assert sort == "sort: too small (give a size)"
    assert preflight.runs == 7


def test_a_profile_that_cannot_place_a_map_is_a_problem(
    workloads: Workloads, make_spec: MakeSpec
) -> None:
    # paper-2021 has one size for 4 GB boards: with one worker no map fits beside its master.
    trials = [trial_of(profile="paper-2021", workers=workers) for workers in (1, 2)]

    preflight = look(make_spec(), *trials, trial_of())

    (problem,) = preflight.problems
    assert "profile paper-2021: application master 3072 MB" in problem
    assert "with one worker no map task could ever start" in problem


def test_spark_that_does_not_fit_is_a_problem(workloads: Workloads, make_spec: MakeSpec) -> None:
    small = make_spec(memory_mib=1024, master_memory_mib=2048)

    assert look(small, trial_of()).problems == ()
    (problem,) = look(small, trial_of(engine=Engine.SPARK)).problems
    assert problem.startswith("Spark does not fit on these nodes: ")


def test_a_missing_program_is_a_problem_with_its_package(
    workloads: Workloads, make_spec: MakeSpec
) -> None:
    workloads["pi"].tools = {"mpirun": "openmpi-bin", "xhpl": "hpcc"}

    preflight = look(make_spec(), trial_of("pi"), trial_of("pi", workers=2), tools=("mpirun",))

    assert preflight.problems == (
        "pi needs the program xhpl, which is not on worker1 (install the package hpcc there)",
    )
    assert look(make_spec(), trial_of("pi"), tools=("mpirun", "xhpl")).problems == ()
    workloads["pi"].master_tools = {"haproxy": "haproxy"}
    (problem,) = look(make_spec(), trial_of("pi"), tools=("mpirun", "xhpl")).problems
    assert problem.startswith("pi needs the program haproxy, which is not on master ")
    combined = trial_of("pi", master=MasterPlacement.COMBINED)
    (problem,) = look(make_spec(memory_mib=4096), combined, tools=("mpirun", "xhpl")).problems
    assert "haproxy, which is not on worker1 " in problem


def plenty(*_: object, **__: object) -> tuple[int, dict[str, int]]:
    """There is room for everything on boards."""
    return 10**12, {}


def test_boards_are_asked_for_their_space_as_far_as_the_chosen_runs_need_them(
    tmp_path: Path, board_spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[set[str], bool]] = []

    def free(
        home: Path, spec: ClusterSpec, *, of: Collection[str], may_lack: bool
    ) -> tuple[int, dict[str, int]]:
        asked.append((set(of), may_lack))
        return plenty()

    monkeypatch.setattr("boardcluster.campaign.life.boards_free_bytes", free)
    trials = {workers: trial_of("grep", workers=workers) for workers in (1, 2, 9)}
    with Store.open(tmp_path / "home") as store:
        for chosen, may_lack in (((1,), False), ((1, 2), True), ((9,), False)):
            preflight_of(
                tmp_path / "home",
                board_spec,
                store,
                [trials[workers] for workers in chosen],
                may_lack=may_lack,
            )

    both = {"worker1", "worker2"}
    assert asked == [({"worker1"}, False), (both, True), (both, False)]


def test_a_board_is_asked_only_for_programs_of_its_role(
    tmp_path: Path, board_spec: ClusterSpec, live: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boardcluster.campaign.life.boards_free_bytes", plenty)
    remotes = {node.name: FakeRemote(node.name) for node in board_spec.nodes}
    for worker in board_spec.workers:
        remotes[worker.name].tell("sh", "-c", 'command -v "$0"', "/usr/sbin/nginx")
    master = remotes[board_spec.master.name]
    for program, code in (("/usr/sbin/haproxy", 1), ("gcc", 0)):
        master.tell("sh", "-c", 'command -v "$0"', program, returncode=code)
    up = replace(live, layout=replace(live.layout, spec=board_spec), remotes=remotes)
    trial = trial_of("webserve", engine=Engine.HTTP, workers=2, size_bytes=0)
    with Store.open(tmp_path / "home") as store:
        home, cache = tmp_path / "home", tmp_path / "cache"
        preflight = preflight_of(home, board_spec, store, [trial], cache=cache, live=up)
    (problem,) = preflight.problems
    assert problem.startswith(
        f"webserve needs the program /usr/sbin/haproxy, which is not on {board_spec.master.name} "
    )


def hpl_problems(
    tmp_path: Path, spec: ClusterSpec, live: LiveCluster | None = None
) -> tuple[str, ...]:
    trial = trial_of("hpl", engine=Engine.MPI, workers=2, size_bytes=0)
    with Store.open(tmp_path / "home") as store:
        home, cache = tmp_path / "home", tmp_path / "cache"
        return preflight_of(home, spec, store, [trial], cache=cache, live=live).problems


def test_the_compiler_that_hpl_is_built_with_is_asked_for_until_it_is_built(
    tmp_path: Path, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "gcc" else f"/bin/{name}")
    spec = make_spec()
    (problem,) = hpl_problems(tmp_path, spec)
    assert problem.startswith("hpl needs the program gcc, which is not on this machine ")
    assert problem.endswith("(install the packages gcc libc6-dev there)")
    monkeypatch.setattr("boardcluster.campaign.life.is_built", lambda cache: cache.name == "cache")
    assert hpl_problems(tmp_path, spec) == ()


def test_boards_that_are_up_are_asked_for_programs_by_name(
    tmp_path: Path, board_spec: ClusterSpec, live: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boardcluster.campaign.life.boards_free_bytes", plenty)
    spec = board_spec
    assert hpl_problems(tmp_path, spec) == (), "boards that are down get what they lack from `up`"
    remotes = {worker.name: FakeRemote(worker.name) for worker in spec.workers}
    for name, remote in remotes.items():
        for program in ("mpirun", "gcc", "/usr/lib/apt/apt-helper"):
            lacks = (name, program) == ("worker2", "gcc")
            remote.tell("sh", "-c", 'command -v "$0"', program, returncode=int(lacks))
    up = replace(live, layout=replace(live.layout, spec=spec), remotes=remotes)
    (problem,) = hpl_problems(tmp_path, spec, up)
    assert problem.startswith("hpl needs the program gcc, which is not on worker2 (install")


def test_what_a_case_says_of_itself_is_noted_once(
    workloads: Workloads, make_spec: MakeSpec
) -> None:
    workloads["sort"].words = "N is 2,800"

    preflight = look(make_spec(), trial_of("sort"), trial_of("sort+grep"), trial_of())

    assert preflight.notes == ("sort: N is 2,800",)


def test_free_space_is_what_yarn_leaves_and_what_inputs_hold_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_spec: MakeSpec
) -> None:
    spec = make_spec()
    seen = SimpleNamespace(f_frsize=10, f_blocks=1000, f_bavail=300)
    monkeypatch.setattr(os, "statvfs", lambda _: seen)
    assert free_bytes(tmp_path, spec) == (3000 - 1000, {})  # a tenth of 10000 bytes stays

    for place, size in (
        ("nodes/worker1/data/datanode/current/blk_1", 5),
        ("nodes/worker2/data-2w/datanode/blk_2", 60),
        ("nodes/worker2/data/nodemanager/spill", 1000),  # no input
        ("nodes/worker2/logs/datanode/log", 1000),
        ("attempts/t/1/out", 1000),
    ):
        path = tmp_path / place
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * size)
    assert free_bytes(tmp_path, spec) == (2000, {"data": 5, "data-2w": 60})

    seen.f_bavail = 50
    assert free_bytes(tmp_path, spec) == (0, {"data": 5, "data-2w": 60})
    assert free_bytes(tmp_path, spec, 700) == (200, {"data": 5, "data-2w": 60})


def test_emulated_boards_have_the_room_of_their_own_disks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_spec: MakeSpec
) -> None:
    seen = SimpleNamespace(f_frsize=10, f_blocks=10**9, f_bavail=10**9)
    monkeypatch.setattr(os, "statvfs", lambda _: seen)
    plain = make_spec(workers=2)
    card = NodeTwin(board="rpi-4b-4gb-1500mhz", medium="a-card", disk_bytes=10**6)
    nodes = tuple(
        node if node.name == "master" else replace(node, twin=card) for node in plain.nodes
    )
    spec = replace(plain, nodes=nodes, twin=TwinSpec())
    assert free_bytes(tmp_path, spec) == (1_800_000, {})

    image = tmp_path / "nodes" / "worker1" / "disk.img"
    image.parent.mkdir(parents=True)
    image.write_bytes(b"x" * 81_920)
    assert free_bytes(tmp_path, spec) == (1_800_000, {}), "what it has taken is used again"
    taken = image.lstat().st_blocks * 512
    seen.f_bavail = 10**8
    assert free_bytes(tmp_path, spec) == (taken, {})
    seen.f_bavail = 10**9

    without = replace(card, medium="", disk_bytes=0)  # on this machine's disk
    spec = replace(spec, nodes=(nodes[0], nodes[1], replace(nodes[2], twin=without)))
    block = tmp_path / "nodes" / "worker2" / "disk" / "data" / "datanode" / "blk_1"
    block.parent.mkdir(parents=True)
    block.write_bytes(b"x" * 7)
    assert free_bytes(tmp_path, spec) == (9 * 10**9, {"data": 7})


def test_warm_ups_at_full_speed_take_no_time_worth_adding(
    workloads: Workloads, make_spec: MakeSpec
) -> None:
    plain = make_spec(workers=2)
    trials = [trial_of(workers=2, warm_up=True), trial_of(workers=2)]
    typical = {("grep", "mapreduce", 1000, 2): 100.0}
    board = NodeTwin(board="rpi-4b-4gb-1500mhz")
    twin = replace(
        plain, nodes=tuple(replace(node, twin=board) for node in plain.nodes), twin=TwinSpec()
    )
    times = [look(spec, *trials, typical=typical).rows[0] for spec in (plain, twin)]
    assert [(row.known_seconds, row.known_runs) for row in times] == [(200.0, 2), (100.0, 2)]


def test_what_is_remarkable_of_another_profile_is_said(
    workloads: Workloads, make_spec: MakeSpec, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('base = "default"\n[tuned]\nkind = "boards"\nworkers = 2\n')
    trial, plain = trial_of(profile=str(mine)), make_spec(engines=pair_ids()[0])
    (note,) = [row for row in look(plain, trial).notes if "tuned" in row]
    assert note.startswith("profile mine.toml: it was tuned on 2 workers of the kind boards")
    own = replace(plain, profile=str(mine))
    assert not any("tuned" in row for row in look(own, trial).notes)


def test_fewer_workers_have_fewer_disks(workloads: Workloads, make_spec: MakeSpec) -> None:
    plain = make_spec(workers=2)
    one, both = trial_of(workers=1), trial_of(workers=2)
    need = look(plain, one).space_bytes
    card = NodeTwin(board="rpi-4b-4gb-1500mhz", medium="a-card", disk_bytes=int(need / 0.9) - 1)
    nodes = (plain.nodes[0], *(replace(node, twin=card) for node in plain.workers))
    twin = replace(plain, nodes=nodes, twin=TwinSpec())
    assert look(twin, both).problems == ()
    (problem,) = look(twin, one).problems
    assert problem.startswith("with 1 of 2 workers the inputs need ")

    boards = replace(plain, kind="boards")
    assert look(boards, both, free=2 * need - 1).problems == ()
    assert look(boards, one, free=2 * need - 1).problems == (problem,)
    assert look(boards, one, free=2 * need).problems == ()


def test_what_is_held_may_be_inputs_and_is_never_room_for_a_run(
    workloads: Workloads, make_spec: MakeSpec
) -> None:
    need = look(make_spec(), trial_of()).space_bytes
    assert look(make_spec(), trial_of(), free=0, held={"data": 10 * need}).problems != ()
    assert look(make_spec(), trial_of(), free=need).problems == ()


def test_what_another_storage_holds_is_no_input_of_this_one(
    workloads: Workloads, make_spec: MakeSpec
) -> None:
    trial = trial_of()
    space, run = look(make_spec(), trial).space_bytes, 2 * trial.size_bytes
    assert look(make_spec(), trial, free=run, held={"data": space - run}).problems == ()
    assert look(make_spec(), trial, free=run, held={"data-2w": space - run}).problems != ()


def test_a_block_that_vanishes_meanwhile_counts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_spec: MakeSpec
) -> None:
    seen = SimpleNamespace(f_frsize=10, f_blocks=1000, f_bavail=300)
    folder = tmp_path / "nodes/worker1/data/datanode"
    folder.mkdir(parents=True)
    monkeypatch.setattr(os, "statvfs", lambda _: seen)
    monkeypatch.setattr(os, "walk", lambda _: [(os.fspath(folder), [], ["gone"])])

    assert free_bytes(tmp_path, make_spec()) == (2000, {})


def test_settings_without_effect_are_named_before_anything_else(
    workloads: Workloads, make_spec: MakeSpec
) -> None:
    preflight = check_preflight(
        make_spec(),
        (trial_of(),),
        typical_seconds={},
        free=(PLENTY, {}),
        lacking=lambda *_: "",
        idle=("spark.executor.cores", "spark.locality.wait"),
    )
    assert preflight.notes[0] == (
        "settings without effect, which no engine of these runs reads: spark.executor.cores, "
        "spark.locality.wait"
    )
    assert look(make_spec(), trial_of()).notes == preflight.notes[1:]
