"""The verbs of Pi; the counts are real."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest
from tests.unit.workloads.tera_world import World, case_of, job_of

from boardcluster.errors import UsageError, VerificationError
from boardcluster.records import Engine, Variant
from boardcluster.services.layout import Layout
from boardcluster.workloads import commands
from boardcluster.workloads.base import JobSpec, Need, PhaseOutcome, Proof, StagedInput
from boardcluster.workloads.pi import workload as module
from boardcluster.workloads.pi.points import HitRange, halton_inside, likely_inside, random_inside
from boardcluster.workloads.pi.workload import WORKLOAD

SMALL = {"maps": "4", "samples": "2500"}
TOTAL = 10_000


@pytest.fixture
def world(layout: Layout, tmp_path: Path) -> World:
    return World(layout=layout, folder=tmp_path)


def case(engine: Engine, parameters: Mapping[str, str] = SMALL) -> JobSpec:
    return case_of(WORKLOAD, size_bytes=0, engine=engine, parameters=parameters)


def printed(world: World, engine: Engine, inside: int, total: int = TOTAL) -> PhaseOutcome:
    step = Decimal(1).scaleb(-20)
    estimate = (Decimal(4 * inside) / total).quantize(step, rounding=ROUND_HALF_UP)
    lines = [f"inside {inside} of {total}"] if engine is Engine.SPARK else ["Starting Job"]
    stdout = world.folder / "stdout"
    stdout.write_text("\n".join([*lines, f"Estimated value of Pi is {estimate}", ""]))
    return PhaseOutcome(name="estimate", duration_seconds=1.0, stdout=stdout, stderr=stdout)


def judged(world: World, asked: JobSpec, inside: int, total: int = TOTAL) -> Proof:
    staged = WORKLOAD.prepare(world.context, asked)
    outcome = printed(world, asked.engine, inside, total)
    return WORKLOAD.verify(world.context, staged, job_of(asked), {"estimate": outcome})


def right_count(engine: Engine) -> int:
    if engine is Engine.MAPREDUCE:
        return halton_inside(4, 2500).least
    return random_inside(4, 2500, 1).least


@pytest.mark.parametrize("engine", [Engine.MAPREDUCE, Engine.SPARK])
def test_the_right_count_is_proved(world: World, engine: Engine) -> None:
    count = right_count(engine)
    proof = judged(world, case(engine), count)

    digest = hashlib.sha256(f"inside {count} of {TOTAL}".encode()).hexdigest()
    verification = proof.verification
    assert (verification.expected_sha256, verification.actual_sha256) == (digest, digest)
    assert verification.records == 1
    assert "computed independently" in verification.method
    assert proof.output_bytes == 0
    assert world.hdfs.files == {}


@pytest.mark.parametrize("engine", [Engine.MAPREDUCE, Engine.SPARK])
@pytest.mark.parametrize("error", [-1, 1])
def test_a_count_that_is_wrong_by_one_is_not_proved(
    world: World, engine: Engine, error: int
) -> None:
    count = right_count(engine)

    with pytest.raises(VerificationError, match=f"expected: inside {count} of {TOTAL}"):
        judged(world, case(engine), count + error)


def test_the_seed_matters_to_spark_alone(world: World) -> None:
    other = {**SMALL, "seed": "2"}
    judged(world, case(Engine.MAPREDUCE, other), right_count(Engine.MAPREDUCE))

    assert random_inside(4, 2500, 2).least != right_count(Engine.SPARK)
    with pytest.raises(VerificationError):
        judged(world, case(Engine.SPARK, other), right_count(Engine.SPARK))


def test_it_is_counted_once_per_set_of_parameters(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = WORKLOAD.prepare(world.context, case(Engine.SPARK))
    assert first.expected is not None
    monkeypatch.setattr(module, "_count", lambda *_: pytest.fail("counted again"))

    assert WORKLOAD.prepare(world.context, case(Engine.SPARK)) == first


def test_a_spoilt_expected_count_is_made_again(world: World) -> None:
    expected = WORKLOAD.prepare(world.context, case(Engine.SPARK)).expected
    assert expected is not None
    right = expected.read_bytes()
    expected.write_bytes(b"1\t1\t1\n")

    WORKLOAD.prepare(world.context, case(Engine.SPARK))

    assert expected.read_bytes() == right


def test_a_margin_is_allowed_and_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    count = right_count(Engine.MAPREDUCE)
    wide = HitRange(least=count - 1, most=count + 1, total=TOTAL)
    monkeypatch.setattr(module, "halton_inside", lambda *_: wide)

    proof = judged(world, case(Engine.MAPREDUCE), count + 1)

    digest = hashlib.sha256(f"inside {count - 1} to {count + 1} of {TOTAL}".encode()).hexdigest()
    assert proof.verification.expected_sha256 == proof.verification.actual_sha256 == digest
    with pytest.raises(VerificationError, match=f"inside {count - 1} to {count + 1}"):
        judged(world, case(Engine.MAPREDUCE), count + 2)


def test_too_many_points_are_judged_by_the_standard_error_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_RECOMPUTED", TOTAL - 1)
    monkeypatch.setattr(module, "random_inside", lambda *_: pytest.fail("counted"))
    likely = likely_inside(TOTAL)

    proof = judged(world, case(Engine.SPARK), likely.most)

    assert "not computed again" in proof.verification.method
    digest = hashlib.sha256(str(likely).encode()).hexdigest()
    assert proof.verification.expected_sha256 == proof.verification.actual_sha256 == digest
    with pytest.raises(VerificationError, match="expected: inside 7690 to 8018"):
        judged(world, case(Engine.SPARK), likely.least - 1)


def test_the_textbook_program_draws_other_points_in_each_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "random_inside", lambda *_: pytest.fail("counted"))
    textbook = replace(case(Engine.SPARK), variant=Variant.TEXTBOOK)

    proof = judged(world, textbook, right_count(Engine.SPARK) + 5)

    assert "other points in each run" in proof.verification.method
    with pytest.raises(VerificationError, match="expected: inside 7690 to 8018"):
        judged(world, textbook, likely_inside(TOTAL).most + 1)


def test_an_unlikely_count_is_refused_even_where_it_was_expected(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlikely = HitRange(least=9000, most=9000, total=TOTAL)
    monkeypatch.setattr(module, "random_inside", lambda *_: unlikely)

    with pytest.raises(VerificationError, match="more than 4 standard errors") as caught:
        judged(world, case(Engine.SPARK), 9000)
    assert "seed" in caught.value.hint


def test_nothing_is_proved_unprepared(world: World) -> None:
    outcome = printed(world, Engine.SPARK, 1)

    with pytest.raises(VerificationError, match="never computed"):
        WORKLOAD.verify(
            world.context, StagedInput(), job_of(case(Engine.SPARK)), {"estimate": outcome}
        )


def test_mapreduce_runs_the_stock_example(world: World) -> None:
    (phase,) = WORKLOAD.phases(world.context, StagedInput(), job_of(case(Engine.MAPREDUCE)))

    jar = str(world.layout.engines.hadoop_jar("hadoop-mapreduce-examples"))
    assert list(phase.command[-4:]) == [jar, "pi", "4", "2500"]


def test_spark_runs_our_job(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "jobs_jar_on_nodes", lambda layout: "/jobs.jar")
    (phase,) = WORKLOAD.phases(world.context, StagedInput(), job_of(case(Engine.SPARK)))

    assert list(phase.command[-4:]) == ["/jobs.jar", "4", "2500", "1"]
    assert phase.command[phase.command.index("--class") + 1] == "io.boardcluster.jobs.Pi"
    assert "spark.yarn.tags=trial-1" in phase.command


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maps", "0"),
        ("maps", "10001"),
        ("maps", "2.5"),
        ("maps", "\u0663"),
        ("samples", "0"),
        ("samples", "1000000001"),
        ("samples", "-5"),
        ("seed", "-1"),
        ("seed", str(2**63)),
        ("seed", ""),
    ],
)
def test_a_wrong_parameter_is_refused(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=rf"pi\.{name} = "):
        case(Engine.SPARK, {name: value})


def test_it_needs_no_room_and_says_how_many_points() -> None:
    assert WORKLOAD.need(case(Engine.SPARK)) == Need(input_bytes=0, run_bytes=0)
    assert WORKLOAD.describe(case(Engine.SPARK, {})) == "8,000,000 points"
    WORKLOAD.check(case(Engine.SPARK, {"seed": str(2**63 - 1)}))
