"""How large a system HPL is given, and on which grid."""

from dataclasses import replace

import pytest

from boardcluster.errors import CapacityError, UsageError
from boardcluster.records import Checksum, Engine, Role
from boardcluster.workloads.base import JobSpec, check_parameters
from boardcluster.workloads.hpl.plan import plan, process_grid
from boardcluster.workloads.hpl.workload import WORKLOAD

MIB = 1 << 20


def case(
    size_bytes: int = 0,
    *,
    workers: int = 2,
    memory_mib: int = 1024,
    cores: int = 1,
    **given: str,
) -> JobSpec:
    return JobSpec(
        engine=Engine.MPI,
        size_bytes=size_bytes,
        replication=1,
        checksum=Checksum.CRC32C,
        parameters=check_parameters(WORKLOAD, given),
        workers=workers,
        least_memory_bytes=memory_mib * MIB,
        smallest_memory_bytes=memory_mib * MIB,
        worker_cores=cores,
    )


@pytest.mark.parametrize(
    ("ranks", "grid"),
    [(1, (1, 1)), (2, (1, 2)), (4, (2, 2)), (6, (2, 3)), (7, (1, 7)), (8, (2, 4)), (12, (3, 4))],
)
def test_the_grid_is_nearly_square_with_more_columns(ranks: int, grid: tuple[int, int]) -> None:
    assert process_grid(ranks) == grid


@pytest.mark.parametrize("n", [5696, 8064, 11392, 16128, 13024])
def test_the_size_of_a_published_matrix_gives_its_order(n: int) -> None:
    """Baun 2016, Table 7 and the example of Eq. 2: NB 32."""
    planned = plan(case(8 * n * n, nb="32", workers=8))

    assert planned.n == n
    assert planned.matrix_bytes == 8 * n * n


def test_a_size_is_rounded_down_to_whole_blocks() -> None:
    planned = plan(case(8 * 1151 * 1151, nb="128"))

    assert (planned.n, planned.nb) == (1024, 128)


def test_without_a_size_the_matrix_takes_its_share_of_what_is_free() -> None:
    planned = plan(case(0, memory_share="80"))

    free_bytes = 576 * MIB  # 1024 - 192 - 256, docs/reference/profiles.md
    assert planned.free_bytes == free_bytes
    wanted = 0.8 * 2 * free_bytes
    assert planned.n % 128 == 0
    assert planned.matrix_bytes <= wanted < 8 * (planned.n + 128) ** 2
    assert "1024 MiB - 192 system - 256 daemons = 576 MiB" in str(planned)


def test_a_worker_that_is_the_master_too_has_less_for_the_matrix() -> None:
    both = frozenset({Role.MASTER, Role.WORKER})
    planned = plan(replace(case(0, workers=1, memory_mib=4096), smallest_roles=both))

    assert planned.free_bytes == 2208 * MIB
    assert planned.matrix_bytes <= 0.8 * 2208 * MIB
    assert "4096 MiB - 327 system - 1536 daemons = 2208 MiB" in str(planned)


def test_memory_and_roles_are_those_of_one_worker() -> None:
    """Beside a board with less memory that is not the master, and so has more for the matrix."""
    both = frozenset({Role.MASTER, Role.WORKER})
    spec = replace(case(0, memory_mib=4096), least_memory_bytes=3072 * MIB, smallest_roles=both)

    assert plan(spec).free_bytes == 2208 * MIB


def test_the_fullest_worker_counts_not_the_average() -> None:
    # 3 blocks over 2 columns: one process has 2 of them.
    planned = plan(case(8 * 384 * 384))

    assert (planned.p, planned.q) == (1, 2)
    assert planned.fullest_bytes == 8 * 384 * 256


def test_two_rows_on_two_workers_share_the_matrix_evenly() -> None:
    planned = plan(case(8 * 512 * 512, cores=2))

    assert (planned.p, planned.q, planned.ranks_per_node) == (2, 2, 2)
    assert planned.fullest_bytes == planned.matrix_bytes // 2


def test_uneven_blocks_never_fill_a_worker_beyond_what_is_free() -> None:
    planned = plan(case(0, memory_share="95", nb="1024", workers=3))

    assert planned.n > 0
    assert planned.fullest_bytes <= planned.free_bytes


def test_says_what_will_be_solved() -> None:
    assert str(plan(case(8 * 2816 * 2816))).startswith(
        "N 2816, NB 128, 1 x 2 processes, 1 on each of 2 workers, 63.4 MB matrix, at most 30.2 MiB "
    )


def test_rows_can_be_given_as_the_paper_did() -> None:
    planned = plan(case(0, workers=4, p="1"))

    assert (planned.p, planned.q) == (1, 4)


def test_rows_must_divide_the_processes() -> None:
    with pytest.raises(UsageError, match="4 processes cannot form 3 rows"):
        plan(case(0, workers=4, p="3"))


def test_refuses_less_than_one_block() -> None:
    with pytest.raises(UsageError, match="N = 127, less than one block of NB = 128") as caught:
        WORKLOAD.check(case(8 * 127 * 127))

    assert f"at least {8 * 128 * 128} bytes" in caught.value.hint
    WORKLOAD.check(case(8 * 128 * 128))


def test_refuses_what_does_not_fit_and_shows_the_arithmetic() -> None:
    fits = 2 * 576 * MIB
    with pytest.raises(CapacityError) as caught:
        WORKLOAD.check(case(fits + 8 * 128 * 128 * 300))

    assert "1024 MiB - 192 system - 256 daemons = 576 MiB" in caught.value.message
    assert "on one worker" in caught.value.message


def test_refuses_a_worker_without_free_memory() -> None:
    with pytest.raises(CapacityError, match="= 0 MiB"):
        WORKLOAD.check(case(0, memory_mib=448))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("search", "-1"),
        ("search", "86401"),
        ("nb", "1025"),
        ("nb", "x"),
        ("memory_share", "69"),
        ("memory_share", "96"),
        ("ranks_per_node", "-1"),
        ("ranks_per_node", "257"),
        ("p", "²"),
        ("binary", ""),
        ("binary", "xhpl --fast"),
        ("threads", "2"),
    ],
)
def test_refuses_parameters_that_make_no_sense(name: str, value: str) -> None:
    with pytest.raises(UsageError):
        check_parameters(WORKLOAD, {name: value})
