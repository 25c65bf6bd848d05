"""The verbs of WordCount against an HDFS in memory; the counting is real."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_dataset
from tests.unit.workloads.text_world import OUTPUT, TextWorld, case_of, job_of

from boardcluster.errors import (
    CapacityError,
    InputError,
    UsageError,
    VerificationError,
)
from boardcluster.records import Checksum, Engine, Variant
from boardcluster.services.layout import Layout
from boardcluster.workloads import commands
from boardcluster.workloads.base import Need, Phase, Proof, StagedInput
from boardcluster.workloads.wordcount import workload as module
from boardcluster.workloads.wordcount.counting import count_words
from boardcluster.workloads.wordcount.workload import WORKLOAD

TEXT = b"b a b\na b c\n"
COUNT = b"a\t2\nb\t3\nc\t1\n"
SHA256 = hashlib.sha256(TEXT).hexdigest()


@pytest.fixture
def world(layout: Layout, tmp_path: Path) -> TextWorld:
    path = tmp_path / "flights"
    path.write_bytes(TEXT)
    return TextWorld(layout, tmp_path, make_dataset(path, sha256=SHA256))


def prepare(world: TextWorld) -> StagedInput:
    return WORKLOAD.prepare(world.context, case_of())


def expected_of(staged: StagedInput) -> Path:
    assert staged.expected is not None
    return staged.expected


def phase_of(world: TextWorld, engine: Engine) -> Phase:
    staged = prepare(world)
    (phase,) = WORKLOAD.phases(world.context, staged, job_of(case_of(engine)))
    return phase


def proof_of(world: TextWorld, staged: StagedInput) -> Proof:
    return WORKLOAD.verify(world.context, staged, job_of(case_of()), {})


def test_prepare_stores_the_input_and_counts_independently(world: TextWorld) -> None:
    staged = prepare(world)

    assert staged.input_path == f"/boardcluster/input/{SHA256[:32]}-r2-crc32c-b128m"
    assert staged.input_bytes == len(TEXT)
    assert world.hdfs.stored == {f"{staged.input_path}/part-0": TEXT}
    assert expected_of(staged).read_bytes() == COUNT


def test_prepare_does_one_thing_after_the_other_and_says_which(
    world: TextWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted(*arguments: Any, **named: Any) -> Any:
        world.said.append(("count", 0))
        return count_words(*arguments, **named)

    monkeypatch.setattr(module, "count_words", counted)
    prepare(world)

    assert world.said == [
        ("counting the words independently", 0),
        ("count", 0),
        ("putting the input into HDFS", 0),
        ("putting the input into HDFS", len(TEXT)),
    ]


def test_nothing_is_sent_that_this_machine_cannot_count(
    world: TextWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted(*_: Any, **__: Any) -> None:
        raise CapacityError("counting flights needs more room", hint="free some")

    monkeypatch.setattr(module, "count_words", counted)
    with pytest.raises(CapacityError, match="counting flights needs more room"):
        prepare(world)
    assert world.hdfs.operations == []


def test_prepare_again_stores_and_counts_nothing(
    world: TextWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare(world)
    world.hdfs.operations.clear()
    monkeypatch.setattr(module, "count_words", lambda *_, **__: pytest.fail("counted again"))

    assert prepare(world) == first
    assert "CREATE" not in world.hdfs.operations


def test_a_text_without_a_word_is_refused(layout: Layout, tmp_path: Path) -> None:
    path = tmp_path / "blanks"
    path.write_bytes(b" \t\n\r\f\n")
    dataset = make_dataset(path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    for _ in range(2):  # also once it is counted
        with pytest.raises(InputError, match="holds no word; an empty output proves nothing"):
            prepare(TextWorld(layout, tmp_path, dataset))


def test_one_count_serves_every_number_of_copies(
    world: TextWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare(world)
    monkeypatch.setattr(module, "count_words", lambda *_, **__: pytest.fail("counted again"))

    other = WORKLOAD.prepare(world.context, case_of(replication=3))

    assert other.expected == first.expected
    assert other.input_path != first.input_path


def test_a_corrupt_expected_count_is_counted_again(world: TextWorld) -> None:
    expected_of(prepare(world)).write_bytes(b"a\t2\nb\t2\nc\t1\n")

    assert expected_of(prepare(world)).read_bytes() == COUNT


def test_the_space_it_needs_is_input_and_output_with_copies_and_four_times_the_input(
    world: TextWorld,
) -> None:
    need = WORKLOAD.need(case_of(size_bytes=1000, replication=3))

    assert need == Need(input_bytes=3000, run_bytes=7000)


def test_a_case_without_a_size_is_refused() -> None:
    WORKLOAD.check(case_of(size_bytes=1))
    with pytest.raises(UsageError, match=r"wordcount: a size of 0 bytes.*one byte"):
        WORKLOAD.check(case_of(size_bytes=0))


def test_it_has_nothing_to_say_of_a_case() -> None:
    assert WORKLOAD.describe(case_of()) == ""


def test_mapreduce_runs_the_stock_example(world: TextWorld) -> None:
    phase = phase_of(world, Engine.MAPREDUCE)

    jar = f"{world.layout.engines.hadoop_jars}/hadoop-mapreduce-examples-9.8.7.jar"
    source = f"/boardcluster/input/{SHA256[:32]}-r2-crc32c-b128m"
    assert phase.command[-4:] == (jar, "wordcount", source, OUTPUT)
    assert phase.command[phase.command.index("-cp") + 1].endswith(":/attempt/conf")
    assert (phase.name, phase.yarn, phase.node) == ("count", True, "")


def test_the_fast_form_is_ours_on_mapreduce_only(
    world: TextWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "jobs_jar_on_nodes", lambda layout: "/jobs.jar")
    fast = replace(case_of(Engine.MAPREDUCE), parameters={"form": "fast"})

    (phase,) = WORKLOAD.phases(world.context, prepare(world), job_of(fast))

    source = f"/boardcluster/input/{SHA256[:32]}-r2-crc32c-b128m"
    main = "io.boardcluster.jobs.FastWordCount"
    assert phase.command[-4:] == ("/jobs.jar", main, source, OUTPUT)
    with pytest.raises(UsageError, match="'fast' is a MapReduce program"):
        WORKLOAD.check(replace(fast, engine=Engine.SPARK))


def test_spark_runs_our_job(world: TextWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "jobs_jar_on_nodes", lambda layout: "/jobs.jar")

    phase = phase_of(world, Engine.SPARK)

    source = f"/boardcluster/input/{SHA256[:32]}-r2-crc32c-b128m"
    assert phase.command[-3:] == ("/jobs.jar", source, OUTPUT)
    assert phase.command[phase.command.index("--class") + 1] == "io.boardcluster.jobs.WordCount"
    assert "spark.yarn.tags=trial-1" in phase.command
    assert (phase.name, phase.yarn) == ("count", True)


def test_the_textbook_variant_is_another_program_on_spark_and_the_stock_one_on_mapreduce(
    world: TextWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "jobs_jar_on_nodes", lambda layout: "/jobs.jar")
    spark, mapreduce = (
        replace(case_of(engine), variant=Variant.TEXTBOOK)
        for engine in (Engine.SPARK, Engine.MAPREDUCE)
    )

    (phase,) = WORKLOAD.phases(world.context, prepare(world), job_of(spark))
    (stock,) = WORKLOAD.phases(world.context, prepare(world), job_of(mapreduce))

    main = phase.command[phase.command.index("--class") + 1]
    assert main == "io.boardcluster.textbook.WordCount"
    assert stock.command[-3] == "wordcount"
    with pytest.raises(UsageError, match='contradicts variant = "textbook"'):
        WORKLOAD.check(replace(mapreduce, parameters={"form": "fast"}))


def test_input_without_checksums_is_what_such_a_case_reads(
    world: TextWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "jobs_jar_on_nodes", lambda layout: "/jobs.jar")
    spec = case_of(checksum=Checksum.NULL)

    staged = WORKLOAD.prepare(world.context, spec)
    (phase,) = WORKLOAD.phases(world.context, staged, job_of(spec))

    assert phase.command[-2] == f"/boardcluster/input/{SHA256[:32]}-r2-null-b128m"


def output(world: TextWorld, **files: bytes) -> None:
    for name, data in files.items():
        world.hdfs.stored[f"{OUTPUT}/{name.replace('part_', 'part-')}"] = data


def test_a_right_output_is_proved(world: TextWorld) -> None:
    staged = prepare(world)
    output(world, _SUCCESS=b"", part_0=b"c\t1\nb\t3\n", part_1=b"a\t2\n", part_2=b"")

    proof = proof_of(world, staged)

    digest = hashlib.sha256(COUNT).hexdigest()
    found = proof.verification
    assert (found.expected_sha256, found.actual_sha256, found.records) == (digest, digest, 3)
    assert "independent count" in found.method
    assert proof.output_bytes == len(COUNT)
    assert proof.figures == {}


@pytest.mark.parametrize(
    "parts",
    [
        [b"a\t2\nb\t3\n"],  # a word is missing
        [b"a\t2\nb\t3\nc\t1\nd\t1\n"],
        [b"a\t2\nb\t2\nc\t1\n"],
        [b"a\t2\nb\t3\nc\t1\n", b"a\t2\n"],  # a word came out of two reducers
        [b"a\t2\nb\t3\nc\t1\n", b"not a count\n"],
        [b""],
        [],
    ],
)
def test_a_wrong_output_is_never_proved(parts: list[bytes], world: TextWorld) -> None:
    staged = prepare(world)
    files = {f"part_{number}": data for number, data in enumerate(parts)}
    output(world, _SUCCESS=b"", **files)

    with pytest.raises(VerificationError):
        proof_of(world, staged)


def test_an_output_that_was_not_committed_is_not_looked_at(world: TextWorld) -> None:
    staged = prepare(world)
    output(world, part_0=COUNT)

    with pytest.raises(VerificationError, match="no _SUCCESS mark"):
        proof_of(world, staged)


def test_an_output_that_nobody_counted_for_is_never_proved(world: TextWorld) -> None:
    output(world, _SUCCESS=b"", part_0=COUNT)

    with pytest.raises(VerificationError, match="never computed"):
        proof_of(world, StagedInput(input_path="/in", input_bytes=len(TEXT)))


def test_a_second_proof_is_not_misled_by_files_of_the_first(world: TextWorld) -> None:
    staged = prepare(world)
    output(world, _SUCCESS=b"", part_0=COUNT)
    assert proof_of(world, staged).verification.records == 3
    del world.hdfs.stored[f"{OUTPUT}/part-0"]
    output(world, part_1=COUNT)

    assert proof_of(world, staged).verification.records == 3
