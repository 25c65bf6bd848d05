"""From the matrix to an order: repeatable, complete, in blocks."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_campaign
from tests.unit.campaign.planning import plan_trials

from boardcluster.campaign.plan import (
    TRIALS_MAX,
    expand,
    idle_settings,
    spec_digest,
    workload_facts,
)
from boardcluster.errors import EmptySelectionError, UsageError
from boardcluster.factors import FACTORS
from boardcluster.records import (
    Campaign,
    CampaignSpec,
    Checksum,
    ClusterSpec,
    DeclaredComparison,
    Engine,
    MasterPlacement,
    Matrix,
    NodeTwin,
    OnLoss,
    Policy,
    Trial,
)
from boardcluster.services.profile import profile_names
from boardcluster.spec.campaign import WorkloadFacts, load_campaign
from boardcluster.spec.template import propose_cluster
from boardcluster.store.files import check_id

BOTH = (Engine.MAPREDUCE, Engine.SPARK)
ID = "20260801-120000-abcd"
ALIKE = (247, 57406)
"""Sizes in bytes of two cells whose digests begin with the same eight digits."""


def _facts(*engines: Engine, size: bool = True, text: bool = False) -> WorkloadFacts:
    return WorkloadFacts(
        engines=engines, parameters={}, takes_size=size, size_is_optional=False, takes_text=text
    )


WORKLOADS = {
    "wordcount": _facts(*BOTH, text=True),
    "grep": _facts(*BOTH, text=True),
    "terasort": _facts(*BOTH),
    "pi": _facts(*BOTH, size=False),
    "hpl": _facts(Engine.MPI),
    "sparky": _facts(Engine.SPARK),
}


def matrix(*workloads: str, **changes: Any) -> Matrix:
    levels = {
        row.name: changes.pop(row.name) for row in FACTORS if row.is_plain and row.name in changes
    }
    values: dict[str, Any] = {"sizes_bytes": (64,), "repetitions": 1, **changes}
    return Matrix(workloads=workloads, levels=levels, **values)


def plan(
    *matrices: Matrix, seed: int | None = 1, further: int = 0, **fields: Any
) -> tuple[Trial, ...]:
    return expand(
        CampaignSpec(name="test", seed=seed, policy=Policy(), matrices=matrices, **fields),
        campaign_id=ID,
        workloads=WORKLOADS,
        cluster_profile="default",
        cluster_workers=4,
        further=further,
    )


def form(trial: Trial) -> tuple[str, int, MasterPlacement]:
    return trial.profile, trial.workers, trial.master


def test_a_matrix_is_every_combination_of_its_lists() -> None:
    trials = plan(
        matrix(
            "wordcount",
            "grep",
            engines=BOTH,
            profiles=("default", "upstream"),
            sizes_bytes=(1, 2, 3),
            workers=(1, 2),
            replication=(0, 2),
            checksum=tuple(Checksum),
            master=(MasterPlacement.SEPARATE, MasterPlacement.COMBINED),
            repetitions=2,
            parameters={"grep.pattern": ("a", "b", "c")},
        )
    )
    common = 2 * 2 * 3 * 2 * 2 * 2 * 2 * 2
    assert Counter(trial.workload for trial in trials) == {
        "wordcount": common,
        "grep": 3 * common,
    }
    assert len({repr(replace(trial, id="", position=0)) for trial in trials}) == 4 * common
    assert {tuple(trial.parameters.items()) for trial in trials} == {
        (),
        (("grep.pattern", "a"),),
        (("grep.pattern", "b"),),
        (("grep.pattern", "c"),),
    }
    for name, values in {
        "engine": set(BOTH),
        "profile": {"default", "upstream"},
        "size_bytes": {1, 2, 3},
        "workers": {1, 2},
        "replication": {0, 2},
        "checksum": set(Checksum),
        "master": {MasterPlacement.SEPARATE, MasterPlacement.COMBINED},
        "repetition": {1, 2},
        "concurrency": {1},
        "campaign_id": {ID},
        "warm_up": {False},
    }.items():
        assert {getattr(trial, name) for trial in trials} == values, name


def test_what_is_left_out_is_the_workloads_or_the_clusters() -> None:
    (trial,) = plan(matrix("hpl"))
    assert trial == Trial(
        id=trial.id,
        campaign_id=ID,
        position=0,
        workload="hpl",
        engine=Engine.MPI,
        profile="default",
        size_bytes=64,
        workers=4,
        repetition=1,
    )
    assert {trial.engine for trial in plan(matrix("pi"))} == set(BOTH)


def test_an_engine_that_a_workload_lacks_is_left_out_for_it_alone() -> None:
    trials = plan(matrix("pi", "hpl", "sparky", engines=(Engine.SPARK, Engine.MPI)))
    assert {(trial.workload, trial.engine) for trial in trials} == {
        ("pi", Engine.SPARK),
        ("hpl", Engine.MPI),
        ("sparky", Engine.SPARK),
    }


def test_a_mix_runs_on_the_engines_of_all_its_jobs_at_once_and_in_turn() -> None:
    trials = plan(matrix("grep+grep+sparky", "grep"))
    mix = {(t.engine, t.concurrency) for t in trials if t.workload == "grep+grep+sparky"}
    assert mix == {(Engine.SPARK, 3), (Engine.SPARK, 1)}
    assert {t.concurrency for t in trials if t.workload == "grep"} == {1}
    trials = plan(matrix("grep+grep+sparky", "grep", concurrency=(2, 3)))
    assert {t.concurrency for t in trials if t.workload != "grep"} == {2, 3}
    assert {t.concurrency for t in trials if t.workload == "grep"} == {1}


def test_what_a_workload_ignores_does_not_multiply_its_cells() -> None:
    trials = plan(
        matrix(
            "pi",
            engines=(Engine.SPARK,),
            sizes_bytes=(1, 2, 3),
            input="/text",
            parameters={"grep.pattern": ("a", "b")},
        )
    )
    assert [(trial.size_bytes, trial.input, trial.parameters) for trial in trials] == [(0, "", {})]


def test_a_size_that_was_left_out_is_0_and_a_mix_takes_the_size_of_its_jobs() -> None:
    assert {trial.size_bytes for trial in plan(matrix("hpl", sizes_bytes=()))} == {0}
    assert {trial.size_bytes for trial in plan(matrix("pi+grep"))} == {64}


def test_the_input_reaches_only_those_who_read_text() -> None:
    trials = plan(matrix("grep", "terasort", "terasort+grep", input="/text"))
    assert {(trial.workload, trial.input) for trial in trials} == {
        ("grep", "/text"),
        ("terasort", ""),
        ("terasort+grep", "/text"),
    }


def test_equal_cells_of_two_matrices_are_one_with_the_most_repetitions() -> None:
    first = matrix("grep", engines=(Engine.SPARK,), repetitions=2, warm_ups=3)
    second = matrix("grep", engines=(Engine.SPARK,), repetitions=4, profiles=("default",))
    for matrices in ((first, second), (second, first)):
        trials = plan(*matrices)
        assert [(t.warm_up, t.repetition) for t in trials] == [
            *((True, number) for number in (1, 2, 3)),
            *((False, number) for number in (1, 2, 3, 4)),
        ]
        assert len({trial.id.rpartition("-")[0] for trial in trials}) == 1
    assert len(plan(first, replace(second, levels={"workers": (3,)}))) == 5 + 4


def test_positions_and_ids() -> None:
    trials = plan(matrix("grep", "pi", sizes_bytes=(1, 2), repetitions=3, warm_ups=1))
    assert [trial.position for trial in trials] == list(range(len(trials)))
    assert len({trial.id for trial in trials}) == len(trials) == 6 * 4
    for trial in trials:
        check_id(trial.id)
        number = f"w{trial.repetition}" if trial.warm_up else f"{trial.repetition}"
        prefix = f"{ID}-{trial.workload}-{trial.engine}-"
        assert trial.id.startswith(prefix)
        assert trial.id.endswith(f"-{number}")
        assert len(trial.id) == len(prefix) + 8 + 1 + len(number)


def test_ids_depend_on_the_cell_and_on_nothing_else() -> None:
    def ids(*matrices: Matrix, seed: int = 1) -> set[str]:
        return {trial.id for trial in plan(*matrices, seed=seed)}

    one = matrix("grep", repetitions=3)
    assert ids(one) == ids(one, seed=2)
    assert ids(one) < ids(matrix("pi"), replace(one, sizes_bytes=(1, 64), repetitions=9))
    for change in (
        {"profiles": ("upstream",)},
        {"sizes_bytes": (65,)},
        {"workers": (2,)},
        {"replication": (1,)},
        {"checksum": (Checksum.NULL,)},
        {"master": (MasterPlacement.SEPARATE,)},
        {"input": "/text"},
        {"parameters": {"grep.pattern": ("x",)}},
    ):
        assert not ids(one) & ids(matrix("grep", repetitions=3, **change)), change
    in_turn, at_once = (matrix("grep+pi", concurrency=(jobs,)) for jobs in (1, 2))
    assert not ids(in_turn) & ids(at_once)


def test_an_id_stays_short_however_many_jobs_a_mix_has() -> None:
    mix = "+".join(["wordcount", "terasort"] * 8)
    trials = plan(matrix(mix, "+".join(["terasort", "wordcount"] * 8), repetitions=1000))
    assert len({trial.id for trial in trials}) == len(trials)
    for trial in trials:
        check_id(trial.id)
        assert trial.id.startswith(f"{ID}-mix-of-16-")
        assert trial.workload.count("+") == 15


def test_cells_whose_digests_begin_alike_have_different_ids() -> None:
    trials = plan(matrix("terasort", engines=(Engine.SPARK,), sizes_bytes=ALIKE))
    assert len({trial.id for trial in trials}) == 2
    digests = [trial.id.split("-")[-2] for trial in trials]
    assert {len(digest) for digest in digests} == {12}
    assert digests[0][:8] == digests[1][:8]


def test_each_form_of_the_cluster_is_taken_once() -> None:
    trials = plan(
        matrix(
            "grep",
            "pi",
            workers=(1, 2, 4),
            profiles=("default", "upstream"),
            master=(MasterPlacement.SEPARATE, MasterPlacement.COMBINED),
            repetitions=3,
            warm_ups=1,
        )
    )
    changes = [key for key, _ in groupby(trials, key=form)]
    assert len(changes) == len(set(changes)) == 12


def test_in_a_form_blocks_follow_each_other_warm_ups_first() -> None:
    trials = plan(
        matrix("grep", "pi", workers=(1, 2), repetitions=3, warm_ups=2),
        matrix("terasort", workers=(1,), repetitions=4),
    )
    for key, group in groupby(trials, key=form):
        runs = [(t.workload, t.engine, t.warm_up, t.repetition) for t in group]
        blocks = [
            (block, {run[:2] for run in members}, len(members))
            for block, members in (
                (block, list(rows)) for block, rows in groupby(runs, key=lambda run: run[2:])
            )
        ]
        text = {(name, engine) for name in ("grep", "pi") for engine in BOTH}
        sort = {("terasort", engine) for engine in BOTH} if key[1] == 1 else set()
        expected = [((True, number), text, 4) for number in (1, 2)]
        expected += [((False, n), text | sort, len(text | sort)) for n in (1, 2, 3)]
        expected += [((False, 4), sort, 2)] if sort else []
        assert blocks == expected


def test_same_seed_same_order_whatever_the_order_in_the_file() -> None:
    one, other = matrix("grep", "pi", workers=(1, 2, 3), repetitions=5), matrix("terasort")
    turned = replace(one, workloads=("pi", "grep"), levels={"workers": (3, 1, 2)})
    assert plan(one, other, seed=3) == plan(one, other, seed=3) == plan(other, turned, seed=3)
    assert plan(one, other, seed=3) != plan(one, other, seed=4)


def test_the_seed_decides_the_order_of_forms_and_within_blocks() -> None:
    plans = [plan(matrix("grep", workers=(1, 2), repetitions=9), seed=n) for n in range(200)]
    few_first = sum(trials[0].workers == 1 for trials in plans)
    assert 60 < few_first < 140
    spark_first = sum(trials[0].engine is Engine.SPARK for trials in plans)
    assert 60 < spark_first < 140
    assert len({tuple(trial.engine for trial in trials) for trials in plans}) > 190


def test_each_start_runs_every_cell_in_an_order_of_its_own() -> None:
    matrices = (
        matrix("grep", "pi", workers=(1, 2, 4), repetitions=2, warm_ups=1),
        matrix("terasort", workers=(4,), repetitions=3),
    )
    trials = plan(*matrices, starts=4)
    assert [trial.start for trial in trials] == sorted(trial.start for trial in trials)
    assert [trial.position for trial in trials] == list(range(len(trials)))
    assert len({trial.id for trial in trials}) == len(trials)
    orders = []
    for start, group in groupby(trials, key=lambda trial: trial.start):
        rows = list(group)
        changes = [key for key, _ in groupby(rows, key=form)]
        assert len(changes) == 3  # no variant is taken twice in a start
        orders.append(tuple(changes))
        # Blocks are numbered through: that many are in the table with most of them.
        blocks = {trial.repetition for trial in rows if not trial.warm_up}
        assert blocks == {3 * (start - 1) + number for number in (1, 2, 3)}
        assert {trial.repetition for trial in rows if trial.warm_up} == {start}
        assert len(rows) == len(plan(*matrices))
    assert len(set(orders)) > 1
    first = tuple(trial for trial in trials if trial.start == 1)
    assert first == plan(*matrices)


@pytest.mark.parametrize("starts", [1, 3])
def test_further_rounds_leave_what_was_planned_as_it_is(starts: int) -> None:
    matrices = (
        matrix("grep", "pi", repetitions=2, warm_ups=1),
        matrix("terasort", repetitions=3),
    )
    rounds = [
        plan(*matrices, starts=starts, precision=0.1, repetitions_max=99, further=number)
        for number in range(4)
    ]
    for before, after in pairwise(rounds):
        assert after[: len(before)] == before
        added = after[len(before) :]
        cells = Counter((trial.workload, trial.engine) for trial in added if not trial.warm_up)
        if starts == 1:  # one block of every cell
            assert set(cells.values()) == {1}
            assert len({trial.repetition for trial in added}) == 1
        else:  # one start, like the first
            assert len(added) == len(plan(*matrices))
            assert len({trial.start for trial in added}) == 1
        assert len(cells) == 6


def test_blocks_of_several_variants_are_not_added_in_one_start() -> None:
    several = matrix("grep", workers=(1, 2))
    with pytest.raises(UsageError, match="2 variants of the cluster needs several starts"):
        plan(several, precision=0.03, repetitions_max=30)
    assert plan(several, precision=0.03, repetitions_max=30, starts=2)


def test_an_order_needs_a_seed() -> None:
    with pytest.raises(ValueError, match="the seed must be drawn"):
        plan(matrix("grep"), seed=None)


def test_nothing_to_run() -> None:
    for nothing in ((), (matrix("hpl", engines=BOTH),), (matrix("pi", repetitions=0),)):
        with pytest.raises(EmptySelectionError, match="nothing to run") as caught:
            plan(*nothing)
        assert "at least one engine" in caught.value.hint


def test_too_many_trials_are_refused_before_they_are_made() -> None:
    sizes = tuple(range(1, 10**4))
    began = time.monotonic()
    with pytest.raises(UsageError, match=r"plans 39,996,000 runs; allowed: at most 100,000"):
        plan(matrix("grep", sizes_bytes=sizes, engines=BOTH, workers=(1, 2), repetitions=1000))
    assert time.monotonic() - began < 1
    assert len(plan(matrix("hpl", engines=(Engine.MPI,), repetitions=1000))) == 1000
    assert TRIALS_MAX == 100_000


def test_the_digest_is_that_of_the_meaning(make_spec: Callable[..., ClusterSpec]) -> None:
    cluster = make_spec()
    spec = CampaignSpec(name="a", seed=1, policy=Policy(), matrices=(matrix("grep"),))
    same = CampaignSpec(name="a", seed=1, policy=Policy(), matrices=(matrix("grep"),))
    assert spec_digest(spec, cluster) == spec_digest(same, cluster)
    assert spec_digest(spec, cluster) != spec_digest(spec, make_spec(memory_mib=4096))
    assert len(spec_digest(spec, cluster)) == 64
    patient = replace(spec.policy, on_loss=OnLoss.WITHOUT, loss_wait_seconds=7.0)
    assert spec_digest(spec, cluster) == spec_digest(replace(spec, policy=patient), cluster)
    others = (
        replace(spec, name="b"),
        replace(spec, seed=2),
        replace(spec, policy=Policy(timeout_seconds=1.0)),
        replace(spec, matrices=(matrix("grep", warm_ups=1),)),
        replace(spec, matrices=(matrix("grep", parameters={"grep.pattern": ("x",)}),)),
        replace(spec, starts=2),
        replace(spec, precision=0.03),
        replace(spec, repetitions_max=9),
        replace(spec, comparisons=(DeclaredComparison(factor="engine", levels=("a", "b")),)),
    )
    assert len({spec_digest(other, cluster) for other in (spec, *others)}) == 10
    assert spec_digest(replace(spec, seed=None), cluster) == spec_digest(spec, cluster)


def test_the_facts_are_those_of_the_workloads() -> None:
    facts = workload_facts()
    wordcount = facts["wordcount"]
    assert wordcount.engines == BOTH
    assert (wordcount.takes_size, wordcount.size_is_optional, wordcount.takes_text) == (
        True,
        False,
        True,
    )
    for name, fact in facts.items():
        assert fact.engines, name
        assert fact.takes_size or not fact.size_is_optional, name


# A single command: one workload on the running cluster.


def single(
    campaign: Campaign, *, engines: tuple[Engine, ...] = BOTH, repetitions: int = 3
) -> tuple[Trial, ...]:
    return plan_trials(
        campaign,
        workload="wordcount",
        engines=engines,
        profile="default",
        size_bytes=256_000_000,
        workers=4,
        repetitions=repetitions,
    )


def test_every_cell_once_in_numbered_order() -> None:
    trials = single(make_campaign(), repetitions=5)

    assert sorted((t.engine, t.repetition) for t in trials) == [
        (engine, repetition) for engine in BOTH for repetition in range(1, 6)
    ]
    assert [trial.position for trial in trials] == list(range(10))
    assert len({trial.id for trial in trials}) == 10
    assert {t.campaign_id for t in trials} == {"20260801-120000-abcd"}
    assert {(t.workload, t.profile, t.size_bytes, t.workers) for t in trials} == {
        ("wordcount", "default", 256_000_000, 4)
    }


def test_each_repetition_is_a_block_with_every_engine() -> None:
    trials = single(make_campaign(), repetitions=20)

    for first in range(0, 40, 2):
        block = trials[first : first + 2]
        assert {trial.repetition for trial in block} == {first // 2 + 1}
        assert {trial.engine for trial in block} == set(BOTH)


def test_the_campaigns_seed_decides_the_order_and_not_the_ids() -> None:
    plans = [single(make_campaign(seed=seed), repetitions=8) for seed in range(20)]

    assert len({tuple(trial.engine for trial in trials) for trials in plans}) > 10
    assert len({frozenset(trial.id for trial in trials) for trials in plans}) == 1


def test_an_engine_named_twice_runs_once_per_repetition() -> None:
    trials = single(make_campaign(), engines=(Engine.SPARK, Engine.SPARK), repetitions=2)

    assert [(t.engine, t.repetition, t.position) for t in trials] == [
        (Engine.SPARK, 1, 0),
        (Engine.SPARK, 2, 1),
    ]


@pytest.mark.parametrize(("engines", "repetitions"), [((), 3), (BOTH, 0), (BOTH, -1)])
def test_no_engine_or_no_repetition_is_an_error(
    engines: tuple[Engine, ...], repetitions: int
) -> None:
    with pytest.raises(EmptySelectionError, match="nothing to run"):
        single(make_campaign(), engines=engines, repetitions=repetitions)


def test_settings_are_factors_on_top_of_the_clusters() -> None:
    spec = CampaignSpec(
        name="test",
        seed=1,
        policy=Policy(),
        matrices=(
            matrix(
                "terasort",
                engines=(Engine.SPARK,),
                settings={"dfs.blocksize": ("1048576", "2097152"), "spark.executor.cores": ("1",)},
            ),
        ),
    )
    trials = expand(
        spec,
        campaign_id=ID,
        workloads=WORKLOADS,
        cluster_profile="default",
        cluster_workers=4,
        cluster_settings={"dfs.blocksize": "4194304", "yarn.scheduler.minimum-allocation-mb": "64"},
    )
    assert {trial.settings["dfs.blocksize"] for trial in trials} == {"1048576", "2097152"}
    assert len({trial.id for trial in trials}) == 2
    for trial in trials:
        assert trial.settings["spark.executor.cores"] == "1"
        assert trial.settings["yarn.scheduler.minimum-allocation-mb"] == "64"


def test_settings_of_daemons_are_together_those_of_jobs_are_not() -> None:
    def forms(key: str) -> int:
        trials = plan(matrix("grep", repetitions=9, settings={key: ("1", "2")}))
        values = [trial.settings[key] for trial in trials]
        return sum(one != other for one, other in pairwise(values))

    assert forms("dfs.datanode.handler.count") == 1
    assert forms("dfs.blocksize") > 3


CLUSTER = propose_cluster(
    name="c",
    workers=4,
    host_cores=8,
    host_available_bytes=32 << 30,
    engines="hadoop-3.4.2-spark-4.1.4",
    profile="default",
)


@pytest.mark.parametrize(
    ("name", "spec_sha256", "count", "ids_sha256"),
    [
        ("quick", "e6096700428e7911", 38, "3c4c082da3261afd"),
        ("paper-2021", "1f15abf13d2cf696", 705, "68c810c365f7db16"),
        ("paper-2026", "7c5384ad859af891", 1070, "f072d3d7491c65c4"),
        ("paper-2016-hpl", "6eba7c46341a0d42", 132, "1947672d4c662325"),
    ],
)
def test_ids_and_digests_are_those_of_campaigns_that_an_earlier_version_began(
    name: str, spec_sha256: str, count: int, ids_sha256: str
) -> None:
    """As computed at commit b7912e2: an unfinished campaign can be resumed by this version."""
    facts = workload_facts()
    root = Path(__file__).resolve().parents[3]
    begun = root / "tests" / "fixtures" / "begun-b7912e2" / f"{name}.toml"
    # Each new workload is added to the example; what was begun with it stays as it was.
    path = begun if begun.exists() else root / "examples" / f"{name}.toml"
    spec = load_campaign(path, workloads=facts, profiles=profile_names())
    # No seed meant 1 to that version.
    ordered = replace(spec, seed=1 if spec.seed is None else spec.seed)
    trials = expand(
        ordered, campaign_id="X", workloads=facts, cluster_profile="default", cluster_workers=4
    )
    ids = hashlib.sha256("".join(trial.id for trial in trials).encode()).hexdigest()
    digest = spec_digest(spec, CLUSTER)
    assert (digest[:16], len(trials), ids[:16]) == (spec_sha256, count, ids_sha256)


def test_a_digest_changes_with_settings_and_with_the_content_of_ones_own_profile(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("")
    plain = CampaignSpec(name="a", seed=1, policy=Policy(), matrices=(matrix("pi"),))
    varied = replace(plain, matrices=(matrix("pi", settings={"dfs.blocksize": ("1", "2")}),))
    own = replace(plain, matrices=(matrix("pi", profiles=(str(path),)),))
    digests = {spec_digest(spec, CLUSTER) for spec in (plain, varied, own)}
    digests.add(spec_digest(plain, replace(CLUSTER, settings={"dfs.blocksize": "1"})))
    path.write_text("# other\n")
    digests.add(spec_digest(own, CLUSTER))
    assert len(digests) == 5


def test_a_digest_changes_with_the_content_of_ones_own_parts(tmp_path: Path) -> None:
    spec = CampaignSpec(name="a", seed=1, policy=Policy(), matrices=(matrix("pi"),))

    def on(**parts: Any) -> str:
        own = replace(NodeTwin(board="rpi-3b"), **parts)
        nodes = tuple(replace(node, twin=own) for node in CLUSTER.nodes)
        return spec_digest(spec, replace(CLUSTER, nodes=nodes))

    of_catalog = on(cooling="fan")
    for kind in ("board", "medium", "supply", "cooling"):
        path = tmp_path / f"{kind}.toml"
        path.write_text("a = 1\n")
        first = on(**{kind: str(path)})
        assert first == on(**{kind: str(path)})
        path.write_text("a = 2\n")
        assert first != on(**{kind: str(path)}), kind
    assert on(cooling="fan") == of_catalog


def test_settings_multiply_only_the_cells_of_engines_that_read_them() -> None:
    settings = {
        "spark.executor.cores": ("1", "2", "4"),
        "mapreduce.map.output.compress": ("true", "false"),
        "dfs.blocksize": ("1", "2"),
        "dfs.datanode.handler.count": ("3",),
    }
    trials = plan(matrix("terasort", "hpl", engines=tuple(Engine), settings=settings))
    assert Counter(trial.engine for trial in trials) == {
        Engine.SPARK: 6,
        Engine.MAPREDUCE: 4,
        Engine.MPI: 1,
    }
    [alone] = [trial for trial in trials if trial.engine is Engine.MPI]
    assert alone.settings == {"dfs.datanode.handler.count": "3"}


def on_cluster(spec: CampaignSpec, settings: dict[str, str]) -> tuple[Trial, ...]:
    return expand(
        spec,
        campaign_id=ID,
        workloads=WORKLOADS,
        cluster_profile="default",
        cluster_workers=4,
        cluster_settings=settings,
    )


def test_settings_that_no_engine_of_the_runs_reads_are_found() -> None:
    settings = {"spark.executor.cores": ("1", "2"), "dfs.datanode.handler.count": ("3",)}
    spec = CampaignSpec(
        name="a",
        seed=1,
        policy=Policy(),
        matrices=(matrix("grep", engines=(Engine.MAPREDUCE,), settings=settings),),
    )
    assert idle_settings(spec, plan(*spec.matrices)) == ("spark.executor.cores",)
    assert idle_settings(spec, plan(matrix("grep", engines=BOTH, settings=settings))) == ()
    with_clusters = on_cluster(spec, {"spark.executor.cores": "2"})
    assert idle_settings(spec, with_clusters) == ("spark.executor.cores",)


def test_settings_of_the_cluster_are_those_of_every_engine() -> None:
    spec = CampaignSpec(
        name="a",
        seed=1,
        policy=Policy(),
        matrices=(matrix("grep", engines=BOTH, settings={"spark.executor.cores": ("1", "2")}),),
    )
    trials = on_cluster(spec, {"spark.executor.cores": "2"})
    assert sorted((trial.engine, trial.settings["spark.executor.cores"]) for trial in trials) == [
        (Engine.MAPREDUCE, "2"),
        (Engine.SPARK, "1"),
        (Engine.SPARK, "2"),
    ]
