import random
from pathlib import Path

import pytest

from boardcluster.errors import CapacityError, UsageError
from boardcluster.records import ClusterSpec, NetworkSpec, NodeSpec, Role
from boardcluster.services.profile import build_profile
from boardcluster.spec.cluster import load_cluster
from boardcluster.spec.template import propose_cluster, render_cluster, workers_that_fit
from boardcluster.units import GIB, MIB

PAIRS = ("hadoop-3.4.2-spark-4.1.4", "hadoop-3.3.6-spark-3.5.9")
PROFILES = ("default", "upstream", "paper-2026", "paper-2021")


def _render(spec: ClusterSpec) -> str:
    return render_cluster(spec, engine_pairs=PAIRS, profiles=PROFILES)


def _propose(
    *,
    name: str = "demo",
    workers: int = 4,
    host_cores: int = 4,
    host_available_bytes: int = 24 * GIB,
    subnet: str = "198.18.0.0/24",
) -> ClusterSpec:
    return propose_cluster(
        name=name,
        workers=workers,
        host_cores=host_cores,
        host_available_bytes=host_available_bytes,
        engines=PAIRS[0],
        profile="default",
        subnet=subnet,
    )


def _random_spec(rng: random.Random) -> ClusterSpec:
    both = frozenset({Role.MASTER, Role.WORKER})
    worker = frozenset({Role.WORKER})
    return ClusterSpec(
        name=rng.choice(["a", "demo", "lab-3", "a12345678901234"]),
        kind="emulated",
        engines=rng.choice(PAIRS),
        profile=rng.choice(PROFILES),
        network=NetworkSpec(
            subnet=rng.choice(["198.18.0.0/16", "198.19.4.0/24", "198.18.0.64/26"]),
            link_bits_per_second=rng.choice([10**6, 123_456_789, 10**9, 100 * 10**9]),
        ),
        nodes=tuple(
            NodeSpec(
                name=f"n{index}",
                roles=worker if index else both,
                cores=rng.randrange(1, 1025),
                memory_bytes=rng.randrange(256 * MIB, 16 * 2**40),
            )
            for index in range(rng.randrange(1, 60))
        ),
    )


def test_a_rendered_cluster_loads_as_itself(tmp_path: Path) -> None:
    rng = random.Random(42)
    path = tmp_path / "cluster.toml"
    for spec in (_propose(), *(_random_spec(rng) for _ in range(40))):
        path.write_text(_render(spec), encoding="utf-8")
        assert load_cluster(path, engine_pairs=PAIRS, profiles=PROFILES) == spec


def test_the_file_explains_itself() -> None:
    text = _render(_propose(subnet="198.19.8.0/24"))
    for name in (*PAIRS, *PROFILES):
        assert f"#   {name}" in text
    assert "198.19.8.1;" in text
    assert 'memory = "4 GiB"' in text
    assert 'roles = ["master"]' in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert all(line == line.rstrip() for line in text.splitlines())
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_every_key_is_commented() -> None:
    text = _render(_propose())
    comments = " ".join(line for line in text.splitlines() if line.startswith("#"))
    for words in (
        "state folder",
        "namespaces on this machine",
        "Which Hadoop",
        "engines are configured",
    ):
        assert words in comments
    for key in ("name", "roles", "cores", "memory"):
        assert f"#   {key} " in comments


def test_a_roomy_machine_gives_boards_of_4_gib() -> None:
    spec = _propose()
    assert [node.name for node in spec.nodes] == [
        "master",
        "worker1",
        "worker2",
        "worker3",
        "worker4",
    ]
    assert spec.master.memory_bytes == 1536 * MIB
    assert {node.memory_bytes for node in spec.workers} == {4 * GIB}
    assert spec.network == NetworkSpec(subnet="198.18.0.0/24", link_bits_per_second=10**9)


@pytest.mark.parametrize(
    ("host_cores", "workers", "cores"), [(2, 4, 1), (4, 4, 1), (8, 4, 2), (11, 4, 2), (4, 1, 4)]
)
def test_workers_are_promised_no_more_cores_than_there_are_but_at_least_one(
    host_cores: int, workers: int, cores: int
) -> None:
    spec = _propose(host_cores=host_cores, workers=workers)
    assert {node.cores for node in spec.nodes} == {cores}


def test_memory_is_shared_and_rounded_down_and_never_too_much() -> None:
    rng = random.Random(5)
    for _ in range(300):
        available = rng.randrange(4 * GIB, 300 * GIB)
        workers = rng.randrange(1, 64)
        try:
            spec = _propose(workers=workers, host_available_bytes=available)
        except CapacityError:
            assert available * 90 // 100 < (1 + workers) * 1536 * MIB
            continue
        each = {node.memory_bytes for node in spec.workers}
        assert len(each) == 1
        (size,) = each
        assert size % (64 * MIB) == 0
        assert 1536 * MIB <= size <= 4 * GIB
        assert sum(node.memory_bytes for node in spec.nodes) <= available * 90 // 100
        left = available * 90 // 100 - 1536 * MIB - workers * size
        assert size == 4 * GIB or left < workers * 64 * MIB


def test_too_many_workers_are_refused_with_the_arithmetic_and_the_number_that_fits() -> None:
    with pytest.raises(CapacityError) as caught:
        _propose(workers=6, host_available_bytes=8 * GIB)
    assert caught.value.message == (
        "not enough memory for a master and 6 workers: 8 GiB available x 90 % = 7.2 GiB usable; "
        "needed are 1.5 GiB (master) + 6 x 1.5 GiB (the least per worker) = 10.5 GiB, for which "
        "11.7 GiB must be available; the largest number of workers that fits is 3"
    )
    assert caught.value.hint == "ask for at most 3 workers, or free memory"
    assert len(_propose(workers=3, host_available_bytes=8 * GIB).workers) == 3


def test_a_machine_too_small_for_any_worker_says_so() -> None:
    with pytest.raises(CapacityError, match="workers that fits is 0") as caught:
        _propose(workers=1, host_available_bytes=1 * GIB)
    assert caught.value.hint == "free memory"


def test_the_number_that_fits_always_fits_and_one_more_does_not() -> None:
    for available in range(4 * GIB, 40 * GIB, 777 * MIB):
        with pytest.raises(CapacityError) as caught:
            _propose(workers=63, host_available_bytes=available)
        fits = int(caught.value.message.rsplit(" ", 1)[1])
        assert len(_propose(workers=fits, host_available_bytes=available).workers) == fits
        with pytest.raises(CapacityError):
            _propose(workers=fits + 1, host_available_bytes=available)


@pytest.mark.parametrize(
    ("available_bytes", "workers"),
    [
        (0, 0),
        (GIB, 0),
        # Usable are 90 %; a master and one worker take 3 GiB: 3 GiB / 0.9 = 3,579,139,413.3 bytes.
        (3_579_139_413, 0),
        (3_579_139_414, 1),
        # 1.5 + 2 x 1.5 = 4.5 GiB usable: 5 GiB to the byte.
        (5 * GIB - 1, 1),
        (5 * GIB, 2),
        # 1.5 + 3 x 1.5 = 6 GiB: 7,158,278,826.7 bytes; a board of 8 GB has about 7 GiB available.
        (7_158_278_826, 2),
        (7_158_278_827, 3),
        (7 * GIB, 3),
        # 1.5 + 4 x 1.5 = 7.5 GiB: 8,947,848,533.3 bytes.
        (8_947_848_533, 3),
        (8_947_848_534, 4),
        # However much there is: 64 nodes, one of them the master.
        (10**15, 63),
    ],
)
def test_workers_that_fit(available_bytes: int, workers: int) -> None:
    assert workers_that_fit(available_bytes) == workers


def test_exactly_the_workers_that_fit_are_accepted() -> None:
    rng = random.Random(11)
    for available in (rng.randrange(0, 120 * GIB) for _ in range(60)):
        fits = workers_that_fit(available)
        for workers in range(1, 64):
            if workers <= fits:
                spec = _propose(workers=workers, host_available_bytes=available)
                assert len(spec.workers) == workers
            else:
                with pytest.raises(CapacityError) as caught:
                    _propose(workers=workers, host_available_bytes=available)
                assert caught.value.message.endswith(f" workers that fits is {fits}")


def test_a_proposed_cluster_always_runs_spark() -> None:
    """The least worker of a proposal is one on which ``default`` places a Spark executor."""
    rng = random.Random(17)
    edges = [-(-(1 + workers) * 1536 * MIB * 100 // 90) for workers in range(1, 64)]
    sizes = edges + [rng.randrange(edges[0], 300 * GIB) for _ in range(300)]
    least = set()
    for available in sizes:
        fits = workers_that_fit(available)
        for workers in {1, rng.randrange(1, fits + 1), fits}:
            cores = rng.randrange(1, 129)
            spec = _propose(workers=workers, host_cores=cores, host_available_bytes=available)
            profile = build_profile("default", spec)
            assert profile.spark_refusal == "", (available, workers, cores)
            assert "spark.executor.memory" in profile.properties["spark-defaults"]
            least.add(spec.workers[0].memory_bytes)
    assert min(least) == 1536 * MIB


@pytest.mark.parametrize("workers", [-1, 0, 64, 10**6])
def test_a_number_of_workers_that_no_cluster_can_have(workers: int) -> None:
    with pytest.raises(UsageError, match=f"workers: {workers} is not allowed; allowed: 1 to 63"):
        _propose(workers=workers, host_available_bytes=10**15)


def test_a_small_subnet_limits_the_workers() -> None:
    with pytest.raises(UsageError, match=r"allowed: 1 to 12 in 198\.18\.0\.0/28"):
        _propose(workers=13, subnet="198.18.0.0/28", host_available_bytes=10**15)
    assert len(_propose(workers=12, subnet="198.18.0.0/28").workers) == 12


def test_a_wrong_name_or_subnet_is_refused_as_in_a_file() -> None:
    with pytest.raises(UsageError, match=r'name: "My Lab" is not a valid name; .* mean "my-lab"'):
        _propose(name="My Lab")
    with pytest.raises(UsageError, match=r'subnet: "10\.0\.0\.0/24" is outside'):
        _propose(subnet="10.0.0.0/24")
