"""A made-up cluster for every room: declared nodes, tiny engines on disk, no daemons."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import make_cluster, make_node
from tests.unit.cli.desk import Desk, MakeLayout, make_desk

from boardcluster.records import ClusterSpec, NodeSpec, Role, Security
from boardcluster.services.archive import ARCHIVES
from boardcluster.services.install import Installation
from boardcluster.services.java import Java
from boardcluster.services.layout import Layout
from boardcluster.services.pair import EnginePair, pair_ids
from boardcluster.services.profile import build_profile

MIB = 1 << 20
PAIR = EnginePair(
    id="hadoop-9.8.7-spark-6.5.4",
    hadoop="9.8.7",
    spark="6.5.4",
    java_oldest=17,
    java_newest=21,
    pyspark_requirement="pyspark==6.5.4",
    pyspark_sha256="0" * 64,
    pyspark_size_bytes=1,
    jars=(),
)
JARS = (
    "hadoop/hadoop-common-9.8.7.jar",
    "hadoop/hadoop-mapreduce-examples-9.8.7.jar",
    "hadoop/tests/hadoop-hdfs-9.8.7-tests.jar",
    "spark/jars/spark-core.jar",
    "spark/jars/ivy-2.5.3.jar",
)


@pytest.fixture
def make_spec() -> Callable[..., ClusterSpec]:
    def make(
        *,
        workers: int = 4,
        memory_mib: int = 2048,
        master_memory_mib: int | None = None,  # None: as the workers
        cores: int = 4,
        combined: bool = False,
        profile: str = "default",
        engines: str = PAIR.id,
    ) -> ClusterSpec:
        def node(name: str, *roles: Role) -> NodeSpec:
            own = master_memory_mib if Role.MASTER in roles else None
            memory_bytes = (memory_mib if own is None else own) * MIB
            return make_node(name, *roles, cores=cores, memory_bytes=memory_bytes)

        if combined:
            nodes = [node("master", Role.MASTER, Role.WORKER)]
            nodes += [node(f"worker{number}", Role.WORKER) for number in range(1, workers)]
        else:
            nodes = [node("master", Role.MASTER)]
            nodes += [node(f"worker{number}", Role.WORKER) for number in range(1, workers + 1)]
        return make_cluster(*nodes, engines=engines, profile=profile, subnet="198.18.7.0/24")

    return make


@pytest.fixture
def board_spec(make_spec: Callable[..., ClusterSpec]) -> ClusterSpec:
    """A closed cluster of three boards that a ``cluster.toml`` may declare."""
    plain = make_spec(workers=2, engines=pair_ids()[0])
    nodes = tuple(
        replace(
            node, host=f"pi@{node.name}", address=f"10.0.0.{place}", folder="/mnt/ssd/boardcluster"
        )
        for place, node in enumerate(plain.nodes, start=1)
    )
    network = replace(plain.network, subnet="10.0.0.0/24")
    return replace(plain, kind="boards", security=Security.CLOSED, nodes=nodes, network=network)


@pytest.fixture
def make_layout(
    tmp_path: Path, make_spec: Callable[..., ClusterSpec]
) -> Callable[[ClusterSpec], Layout]:
    def make(spec: ClusterSpec) -> Layout:
        folder = tmp_path / "engines"
        for jar in JARS:
            (folder / jar).parent.mkdir(parents=True, exist_ok=True)
            (folder / jar).touch()
        return Layout(
            spec=spec,
            profile=build_profile(spec.profile, spec),
            engines=Installation(pair=PAIR, folder=folder),
            java=Java(program=Path("/java/bin/java"), feature=17, version="17.0.1", vendor="Maker"),
            archives=tmp_path / "archives",
            # On this machine, files that are there decide.
            archived={node.name: frozenset(ARCHIVES) for node in spec.nodes}
            if spec.capabilities.shares_files
            else {},
            folders={node.name: f"/nodes/{node.name}" for node in spec.nodes},
            user="root",
        )

    return make


@pytest.fixture
def layout(
    make_spec: Callable[..., ClusterSpec], make_layout: Callable[[ClusterSpec], Layout]
) -> Layout:
    return make_layout(make_spec())


@pytest.fixture
def desk(
    tmp_path: Path,
    make_spec: Callable[..., ClusterSpec],
    make_layout: MakeLayout,
    monkeypatch: pytest.MonkeyPatch,
) -> Desk:
    """The command line on a made-up cluster; a module may have one of its own."""
    return make_desk(tmp_path / "home", make_spec(engines=pair_ids()[0]), make_layout, monkeypatch)
