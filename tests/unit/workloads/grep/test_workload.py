"""The verbs of Grep against an HDFS in memory; the search is real."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import make_dataset
from tests.unit.workloads.tera_world import OUTPUT, MemoryHdfs, World, case_of, job_of

from boardcluster.errors import UsageError, VerificationError
from boardcluster.records import Engine
from boardcluster.services.layout import Layout
from boardcluster.workloads import commands
from boardcluster.workloads.base import Context, JobSpec, Need, Proof, StagedInput
from boardcluster.workloads.grep import workload as module
from boardcluster.workloads.grep.workload import WORKLOAD

TEXT = b"1,ATL,ORD\n2,ORD,ATL\n3,ATL,ATL\n4,JFK,LGA\n2,ORD,ATL\n"
PATTERN = "[AO][TR][LD]"
COUNTS = b"5\tATL\n3\tORD\n"
LINES = [b"1,ATL,ORD\n", b"2,ORD,ATL\n", b"3,ATL,ATL\n", b"2,ORD,ATL\n"]


class TextHdfs(MemoryHdfs):
    """Also sizes and folders, which text input needs."""

    def size_bytes(self, path: str) -> int:
        return sum(len(self.files[name]) for name in self._inside(path))

    def make_folder(self, path: str) -> None:
        assert path.startswith("/")


@pytest.fixture
def context(layout: Layout, tmp_path: Path) -> Context:
    path = tmp_path / "text"
    path.write_bytes(TEXT)
    dataset = make_dataset(path, sha256=hashlib.sha256(TEXT).hexdigest())
    world = World(layout=layout, folder=tmp_path, hdfs=TextHdfs())
    return replace(world.context, dataset=dataset)


def case(engine: Engine, pattern: str = PATTERN) -> JobSpec:
    return case_of(WORKLOAD, size_bytes=len(TEXT), engine=engine, parameters={"pattern": pattern})


def judged(context: Context, engine: Engine, *parts: bytes, pattern: str = PATTERN) -> Proof:
    """Prepare, leave these part files behind, and verify them."""
    staged = WORKLOAD.prepare(context, case(engine, pattern))
    assert isinstance(context.hdfs, TextHdfs)
    for number, part in enumerate(parts):
        context.hdfs.files[f"{OUTPUT}/part-{number:05}"] = part
    context.hdfs.files[f"{OUTPUT}/_SUCCESS"] = b""
    return WORKLOAD.verify(context, staged, job_of(case(engine, pattern)), {})


def test_the_text_is_stored_and_searched_once_per_pattern_and_engine(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = WORKLOAD.prepare(context, case(Engine.MAPREDUCE))
    spark = WORKLOAD.prepare(context, case(Engine.SPARK))
    other = WORKLOAD.prepare(context, case(Engine.MAPREDUCE, "ATL"))

    assert first.input_bytes == len(TEXT)
    assert first.expected is not None
    assert sorted(first.expected.read_bytes().splitlines()) == sorted(COUNTS.splitlines())
    assert len({first.expected, spark.expected, other.expected}) == 3
    monkeypatch.setattr(module, "search", lambda *_, **__: pytest.fail("searched again"))
    assert WORKLOAD.prepare(context, case(Engine.MAPREDUCE)) == first


def test_a_spoilt_expected_answer_is_made_again(context: Context) -> None:
    first = WORKLOAD.prepare(context, case(Engine.MAPREDUCE)).expected
    assert first is not None
    right = first.read_bytes()
    first.write_bytes(right.replace(b"5", b"6"))

    WORKLOAD.prepare(context, case(Engine.MAPREDUCE))

    assert first.read_bytes() == right


def test_mapreduce_runs_the_stock_example(context: Context) -> None:
    staged = StagedInput(input_path="/in")
    (phase,) = WORKLOAD.phases(context, staged, job_of(case(Engine.MAPREDUCE)))

    jar = str(context.live.layout.engines.hadoop_jar("hadoop-mapreduce-examples"))
    assert list(phase.command[-5:]) == [jar, "grep", "/in", OUTPUT, PATTERN]


def test_spark_runs_our_job(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "jobs_jar_on_nodes", lambda layout: "/jobs.jar")
    staged = StagedInput(input_path="/in")
    (phase,) = WORKLOAD.phases(context, staged, job_of(case(Engine.SPARK)))

    assert list(phase.command[-4:]) == ["/jobs.jar", "/in", OUTPUT, PATTERN]
    assert phase.command[phase.command.index("--class") + 1] == "io.boardcluster.jobs.Grep"
    assert "spark.yarn.tags=trial-1" in phase.command


def test_right_counts_are_proved(context: Context) -> None:
    proof = judged(context, Engine.MAPREDUCE, COUNTS)

    digest = hashlib.sha256(b"3\tORD\n5\tATL\n").hexdigest()
    verification = proof.verification
    assert (verification.expected_sha256, verification.actual_sha256) == (digest, digest)
    assert (verification.records, proof.output_bytes) == (2, len(COUNTS))


def test_right_lines_are_proved_in_any_order_and_any_number_of_files(context: Context) -> None:
    proof = judged(context, Engine.SPARK, b"".join(LINES[2:]), b"", b"".join(LINES[:2]))

    digest = hashlib.sha256(b"".join(sorted(LINES))).hexdigest()
    assert proof.verification.expected_sha256 == proof.verification.actual_sha256 == digest
    assert (proof.verification.records, proof.output_bytes) == (4, sum(map(len, LINES)))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([b"4\tATL\n3\tORD\n"], r"(?s)1 lines are missing, 1 are not expected.*5\\tATL"),
        ([b"5\tATL\n"], r"missing: '3\\tORD'"),
        ([COUNTS, b"1\tJFK\n"], r"not expected: '1\\tJFK'"),
        ([COUNTS, COUNTS], "2 are not expected"),
        ([b"3\tORD\n5\tATL\n"], "not sorted: line 2 of part-00000 counts 5, the line before it 3"),
        ([b"3\tORD\n", b"5\tATL\n"], "not sorted: line 1 of part-00001"),
        ([b""], "2 lines are missing"),
        ([], "2 lines are missing"),
    ],
)
def test_wrong_counts_are_never_proved(context: Context, parts: list[bytes], message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        judged(context, Engine.MAPREDUCE, *parts)


@pytest.mark.parametrize(
    "parts",
    [
        LINES[:3],  # an equal line is there once, not twice
        [*LINES, LINES[0]],
        [*LINES, b"4,JFK,LGA\n"],
        [LINES[0].replace(b"1", b"7"), *LINES[1:]],
        [],
    ],
)
def test_wrong_lines_are_never_proved(context: Context, parts: list[bytes]) -> None:
    with pytest.raises(VerificationError, match="the output of spark is wrong"):
        judged(context, Engine.SPARK, *parts)


def test_an_output_that_was_not_committed_is_not_looked_at(context: Context) -> None:
    staged = WORKLOAD.prepare(context, case(Engine.SPARK))
    assert isinstance(context.hdfs, TextHdfs)
    context.hdfs.files[f"{OUTPUT}/part-0"] = b"".join(LINES)

    with pytest.raises(VerificationError, match="no _SUCCESS mark"):
        WORKLOAD.verify(context, staged, job_of(case(Engine.SPARK)), {})


def test_nothing_is_proved_unprepared(context: Context) -> None:
    with pytest.raises(VerificationError, match="never computed"):
        WORKLOAD.verify(context, StagedInput(), job_of(case(Engine.SPARK)), {})


def test_what_cannot_run_is_refused_beforehand() -> None:
    with pytest.raises(UsageError, match=r"grep\.pattern = 'a\|b'; allowed: a row of printable"):
        case(Engine.SPARK, "a|b")
    with pytest.raises(UsageError, match="a size of 0 bytes"):
        WORKLOAD.check(replace(case(Engine.SPARK), size_bytes=0))


def test_it_needs_its_input_and_a_quarter_of_it_with_replicas() -> None:
    asked = replace(case(Engine.SPARK), size_bytes=1000)

    assert WORKLOAD.need(asked) == Need(input_bytes=2000, run_bytes=500)
    assert WORKLOAD.describe(asked) == ""
