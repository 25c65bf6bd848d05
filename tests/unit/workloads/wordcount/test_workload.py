"""The verbs of WordCount against an HDFS in memory; the counting is real."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from boardcluster.cluster.state import LiveState
from boardcluster.errors import CapacityError, RemoteError, VerificationError
from boardcluster.fetch.cache import no_progress
from boardcluster.records import Dataset, Engine
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.workloads.base import Prepared, Submission
from boardcluster.workloads.wordcount import WORKLOAD
from boardcluster.workloads.wordcount import workload as module
from boardcluster.workloads.wordcount.counting import count_words

TEXT = b"b a b\na b c\n"
COUNT = b"a\t2\nb\t3\nc\t1\n"


class Hdfs(FakeRemote):
    """The master node of a cluster whose HDFS is a dictionary, with HDFS's own rules."""

    def __init__(self) -> None:
        super().__init__("master")
        self.stored: dict[str, bytes] = {}
        self.operations: list[str] = []
        self.free_bytes = 10**9

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_seconds: float = 60.0,
        check: bool = True,
    ) -> Completed:
        request = json.loads(stdin)
        assert request["do"] == "http"
        rows = [self.one(item) for item in request["requests"]]
        return Completed(
            argv=(),
            returncode=0,
            stdout=json.dumps(rows).encode(),
            stderr=b"",
            duration_seconds=0.0,
        )

    def one(self, item: dict[str, Any]) -> dict[str, Any]:
        parts = urlsplit(item["url"])
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/jmx":
            bean = {
                "NumLiveDataNodes": 4,
                "FSState": "Operational",
                "CapacityRemaining": self.free_bytes,
            }
            return answer(200, {"beans": [bean]})
        if not parts.path.startswith("/webhdfs"):
            return answer(0)
        path = unquote(parts.path.removeprefix("/webhdfs/v1"))
        if parts.port == 9864:
            return self.datanode(path, item)
        self.operations.append(query["op"])
        return self.namenode(path, query, item["url"])

    def namenode(self, path: str, query: dict[str, str], url: str) -> dict[str, Any]:
        operation = query["op"]
        inside = {
            key: data for key, data in self.stored.items() if f"{key}/".startswith(f"{path}/")
        }
        if operation in ("CREATE", "OPEN"):
            return {**answer(307), "location": url.replace(":9870", ":9864")}
        if operation == "RENAME":
            done = query["destination"] not in self.stored
            if done:
                self.stored[query["destination"]] = self.stored.pop(path)
            return answer(200, {"boolean": done})
        if operation in ("MKDIRS", "DELETE"):
            for key in inside if operation == "DELETE" else ():
                del self.stored[key]
            return answer(200, {"boolean": True})
        if not inside:
            return answer(404, {"RemoteException": {"message": f"does not exist: {path}"}})
        if operation == "LISTSTATUS":
            rows = [
                {"pathSuffix": key.rpartition("/")[2], "type": "FILE", "length": len(data)}
                for key, data in inside.items()
            ]
            return answer(200, {"FileStatuses": {"FileStatus": rows}})
        length = sum(len(data) for data in inside.values())
        return answer(200, {"ContentSummary": {"length": length}})

    def datanode(self, path: str, item: dict[str, Any]) -> dict[str, Any]:
        if item["method"] == "PUT":
            self.stored[path] = Path(item["source"]).read_bytes()
            return answer(201)
        Path(item["target"]).write_bytes(self.stored[path])
        return answer(200)


def answer(status: int, body: object = "") -> dict[str, Any]:
    return {"status": status, "body": json.dumps(body), "location": None}


@pytest.fixture
def hdfs() -> Hdfs:
    return Hdfs()


@pytest.fixture
def live(layout: Layout, hdfs: Hdfs, tmp_path: Path) -> LiveCluster:
    state = LiveState(identity="1", boot_id="b", phase="up", own_user=False, subnet="198.18.7.0/24")
    return LiveCluster(home=tmp_path, state=state, layout=layout, remotes={"master": hdfs})


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    path = tmp_path / "flights"
    path.write_bytes(TEXT)
    return Dataset(
        name="flights",
        path=path,
        size_bytes=len(TEXT),
        sha256=hashlib.sha256(TEXT).hexdigest(),
        source="made up",
    )


@pytest.fixture
def prepare(live: LiveCluster, dataset: Dataset, tmp_path: Path) -> Callable[[], Prepared]:
    return lambda: WORKLOAD.prepare(live, dataset, cache=tmp_path / "cache", progress=no_progress)


def job_of(engine: Engine = Engine.SPARK) -> Submission:
    return Submission(engine=engine, conf="/attempt/conf", tag="trial-1", output_path="/out/x")


def test_prepare_stores_the_input_and_counts_independently(
    prepare: Callable[[], Prepared], hdfs: Hdfs, dataset: Dataset
) -> None:
    prepared = prepare()

    assert prepared.input_path == f"/boardcluster/input/{dataset.sha256[:32]}"
    assert hdfs.stored == {f"{prepared.input_path}/part-0": TEXT}
    assert prepared.expected.read_bytes() == COUNT


def test_prepare_does_one_thing_after_the_other_and_says_which(
    live: LiveCluster,
    hdfs: Hdfs,
    dataset: Dataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    happened: list[tuple[str, int]] = []

    def counted(*arguments: Any, **named: Any) -> Any:
        assert list(hdfs.stored.values()) == [TEXT]
        happened.append(("count", 0))
        return count_words(*arguments, **named)

    def progress(what: str, done: int, total: int) -> None:
        happened.append((what, done))

    monkeypatch.setattr(module, "count_words", counted)
    WORKLOAD.prepare(live, dataset, cache=tmp_path / "cache", progress=progress)

    assert happened == [
        ("putting the input into HDFS", 0),
        ("putting the input into HDFS", len(TEXT)),
        ("counting the words independently", 0),
        ("count", 0),
    ]


def test_nothing_is_counted_for_an_input_that_does_not_fit(
    prepare: Callable[[], Prepared], hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    hdfs.free_bytes = 1
    monkeypatch.setattr(module, "count_words", lambda *_, **__: pytest.fail("counted"))

    with pytest.raises(CapacityError):
        prepare()


def test_prepare_again_stores_and_counts_nothing(
    prepare: Callable[[], Prepared], hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare()
    hdfs.operations.clear()
    monkeypatch.setattr(module, "count_words", lambda *_, **__: pytest.fail("counted again"))

    assert prepare() == first
    assert "CREATE" not in hdfs.operations


def test_a_corrupt_expected_count_is_counted_again(prepare: Callable[[], Prepared]) -> None:
    expected = prepare().expected
    expected.write_bytes(b"a\t2\nb\t2\nc\t1\n")

    assert prepare().expected.read_bytes() == COUNT


def test_input_of_the_wrong_size_is_replaced(
    prepare: Callable[[], Prepared], hdfs: Hdfs, dataset: Dataset
) -> None:
    path = f"/boardcluster/input/{dataset.sha256[:32]}/part-0"
    hdfs.stored[path] = TEXT[:-3]

    prepare()

    assert hdfs.stored == {path: TEXT}


def test_refuses_what_hdfs_cannot_hold_with_the_arithmetic(
    prepare: Callable[[], Prepared], hdfs: Hdfs
) -> None:
    hdfs.free_bytes = 7 * len(TEXT) - 1

    with pytest.raises(CapacityError, match=r"12 B x \(2 replicas \+ 5 .* = 84 B.* 83 B") as caught:
        prepare()
    assert "--size" in caught.value.hint
    assert hdfs.stored == {}

    hdfs.free_bytes += 1
    prepare()


def test_a_larger_replication_needs_more_space_but_no_more_copies_than_workers(
    live: LiveCluster, hdfs: Hdfs, dataset: Dataset, tmp_path: Path
) -> None:
    properties = {**live.layout.profile.properties, "hdfs-site": {"dfs.replication": "9"}}
    profile = replace(live.layout.profile, properties=properties)
    wide = replace(live, layout=replace(live.layout, profile=profile))
    hdfs.free_bytes = 8 * len(TEXT)

    with pytest.raises(CapacityError, match="4 replicas"):
        WORKLOAD.prepare(wide, dataset, cache=tmp_path / "cache", progress=no_progress)


def test_a_dead_hdfs_is_a_remote_error(
    prepare: Callable[[], Prepared], hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hdfs, "one", lambda _: answer(0, "refused"))

    with pytest.raises(RemoteError, match="looking at /boardcluster/input"):
        prepare()


def test_mapreduce_runs_the_stock_example(
    prepare: Callable[[], Prepared], live: LiveCluster
) -> None:
    prepared = prepare()
    command = WORKLOAD.command(live, prepared, job_of(Engine.MAPREDUCE))

    jar = f"{live.layout.engines.hadoop_jars}/hadoop-mapreduce-examples-9.8.7.jar"
    assert command[-4:] == [jar, "wordcount", prepared.input_path, "/out/x"]
    assert command[command.index("-cp") + 1].endswith(":/attempt/conf")


def test_spark_runs_our_job(
    prepare: Callable[[], Prepared], live: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "jobs_jar", lambda: Path("/jobs.jar"))
    prepared = prepare()
    command = WORKLOAD.command(live, prepared, job_of(Engine.SPARK))

    assert command[-3:] == ["/jobs.jar", prepared.input_path, "/out/x"]
    assert command[command.index("--class") + 1] == "io.boardcluster.jobs.WordCount"
    assert "spark.yarn.tags=trial-1" in command


def output(hdfs: Hdfs, **files: bytes) -> None:
    for name, data in files.items():
        hdfs.stored[f"/out/x/{name.replace('part_', 'part-')}"] = data


def test_a_right_output_is_proved(
    prepare: Callable[[], Prepared], live: LiveCluster, hdfs: Hdfs, tmp_path: Path
) -> None:
    prepared = prepare()
    output(hdfs, _SUCCESS=b"", part_0=b"c\t1\nb\t3\n", part_1=b"a\t2\n", part_2=b"")
    work = tmp_path / "work"

    proof = WORKLOAD.verify(live, prepared, job_of(), work=work)

    digest = hashlib.sha256(COUNT).hexdigest()
    assert (proof.expected_sha256, proof.actual_sha256, proof.records) == (digest, digest, 3)
    assert "independent count" in proof.method
    assert list(work.iterdir()) == []


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
def test_a_wrong_output_is_never_proved(
    parts: list[bytes],
    prepare: Callable[[], Prepared],
    live: LiveCluster,
    hdfs: Hdfs,
    tmp_path: Path,
) -> None:
    prepared = prepare()
    files = {f"part_{number}": data for number, data in enumerate(parts)}
    output(hdfs, _SUCCESS=b"", **files)

    with pytest.raises(VerificationError):
        WORKLOAD.verify(live, prepared, job_of(), work=tmp_path / "work")


def test_an_output_that_was_not_committed_is_not_looked_at(
    prepare: Callable[[], Prepared], live: LiveCluster, hdfs: Hdfs, tmp_path: Path
) -> None:
    prepared = prepare()
    output(hdfs, part_0=COUNT)

    with pytest.raises(VerificationError, match="no _SUCCESS mark"):
        WORKLOAD.verify(live, prepared, job_of(), work=tmp_path / "work")


def test_a_second_proof_is_not_misled_by_files_of_the_first(
    prepare: Callable[[], Prepared], live: LiveCluster, hdfs: Hdfs, tmp_path: Path
) -> None:
    prepared = prepare()
    output(hdfs, _SUCCESS=b"", part_0=COUNT)
    stale = tmp_path / "work" / "output"
    stale.mkdir(parents=True)
    (stale / "part-1").write_bytes(b"a\t1\n")

    assert WORKLOAD.verify(live, prepared, job_of(), work=tmp_path / "work").records == 3
