"""What a volume's run is held against, and what that finds."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from boardcluster.analysis.twins import undilated_value
from boardcluster.errors import VerificationError
from boardcluster.records import PlannedFault
from boardcluster.services.gluster.config import place_bricks
from boardcluster.workloads.filestore.load import (
    CLASSES,
    PASSES,
    STEP_BYTES,
    block_files,
    expected_files,
)
from boardcluster.workloads.filestore.proof import TREE_PASSES, StoreRun, TreeResult, prove

WORKERS = ("worker1", "worker2", "worker3")
FILES = expected_files(size_bytes=STEP_BYTES, files=3, file_bytes=100)
HEALED = {"healed": True, "healed_unix": 30.0, "seen": "bricks Connected"}


def fio(*, errors: int = 0) -> str:
    rows = []
    for block in CLASSES:
        size = sum(block_files(block, STEP_BYTES).values())
        way = {
            "total_ios": size // block.block_bytes,
            "io_bytes": size,
            "runtime": 1000,
            "clat_ns": {
                "percentile": {"50.000000": 1e3, "99.000000": 2e3, "99.900000": 3e3},
                "max": 7e9,
            },
        }
        row = {"jobname": block.name, "error": errors, "total_err": errors}
        rows.append({**row, "read": {"total_ios": 0}, "write": way})
    return json.dumps({"jobs": rows})


def tree(*, files: int = 3) -> str:
    taken = [100] * files
    row = {"files": files, "seconds": 2.0, "ended_unix": 20.0, "latency_microseconds": taken}
    return json.dumps(row)


def held(change: Callable[[dict[str, Any]], None] | None = None) -> dict[str, str]:
    """Three sets of two bricks over three workers; files are spread over the sets."""
    bricks = place_bricks(WORKERS, 2)
    found: dict[str, Any] = {name: {} for name in WORKERS}
    for brick in bricks:
        found[brick.worker][brick.name] = {
            path: list(row)
            for number, (path, row) in enumerate(FILES.items())
            if number % 3 == brick.group
        }
    if change:
        change(found)
    return {name: json.dumps(row) for name, row in found.items()}


def run(**changes: Any) -> StoreRun:
    plain = StoreRun(
        size_bytes=STEP_BYTES,
        files=3,
        file_bytes=100,
        bricks=place_bricks(WORKERS, 2),
        fault=PlannedFault.NONE,
        ping_seconds=1,
        blocks={each.name: fio() for each in PASSES},
        trees={name: tree() for name in TREE_PASSES},
        audits=held(),
        healed=json.dumps(HEALED),
        fault_text="",
        watched="",
    )
    return replace(plain, **changes)


FAULT = {
    "fault": PlannedFault.KILL,
    "fault_text": json.dumps({**HEALED, "down_unix": 10.0, "up_unix": 14.0, "ended": 3}),
    "watched": json.dumps({"bricks": 2, "changes": [[1, 2], [10.5, 0], [16.5, 2]]}),
}


def test_a_right_run_is_proved_with_every_file() -> None:
    proof = prove(run())

    assert proof.verification.records == len(FILES) == 15
    assert proof.verification.expected_sha256 == proof.verification.actual_sha256
    assert proof.output_bytes == STEP_BYTES + 300
    assert proof.figures["random_write_4_kib_operations_per_second"] == 2048
    assert proof.figures["sequential_read_16_mib_megabytes_per_second"] == 64 * 2**20 / 1e6
    assert proof.figures["tree_make_files_per_second"] == 1.5
    assert proof.figures["longest_operation_seconds"] == 7


def test_a_fault_costs_what_each_clock_says() -> None:
    figures = prove(run(**FAULT)).figures

    assert figures["worker_away_seconds"] == 4
    assert figures["client_without_it_seconds"] == 6
    assert figures["heal_seconds"] == 16
    assert figures["recovery_seconds"] == 20


def test_a_client_with_more_patience_than_a_cut_link_need_not_notice_it() -> None:
    unseen = json.dumps({"bricks": 2, "changes": [[1, 2]]})
    changes = {**FAULT, "fault": PlannedFault.LINK, "watched": unseen, "ping_seconds": 42}

    assert prove(run(**changes)).figures["client_without_it_seconds"] == 0


@pytest.mark.parametrize("changes", [{}, FAULT])
def test_every_figure_can_be_converted_from_slower_nodes(changes: dict[str, Any]) -> None:
    for name in prove(run(**changes)).figures:
        assert undilated_value(name, 1.0, 2.0) is not None, name


def spoilt(found: dict[str, Any]) -> None:
    found["worker2"]["brick-0"]["4_kib-0"][1] = "0" * 64


def lost(found: dict[str, Any]) -> None:
    del found["worker2"]["brick-0"]["4_kib-0"]


def vanished(found: dict[str, Any]) -> None:
    del found["worker2"]["brick-0"]


def foreign(found: dict[str, Any]) -> None:
    for name in ("worker1", "worker2"):
        found[name]["brick-0"]["strange"] = [1, "0"]


def twice(found: dict[str, Any]) -> None:
    for name in ("worker2", "worker3"):
        found[name]["brick-1"]["4_kib-0"] = found["worker1"]["brick-0"]["4_kib-0"]


def nowhere(found: dict[str, Any]) -> None:
    for name in ("worker1", "worker2"):
        del found[name]["brick-0"]["4_kib-0"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (spoilt, "4_kib-0 on worker2, brick-0 is not what was written"),
        (lost, "4_kib-0 is missing on worker2, brick-0"),
        (vanished, "worker2 has no brick brick-0 any more"),
        (foreign, "strange on worker1, brick-0 was never written"),
        (twice, "4_kib-0 is in two sets of bricks"),
        (nowhere, "1 of 15 files are on no brick; first 4_kib-0"),
    ],
)
def test_what_is_wrong_on_one_brick_is_named(
    change: Callable[[dict[str, Any]], None], words: str
) -> None:
    with pytest.raises(VerificationError, match=words):
        prove(run(audits=held(change)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"healed": json.dumps({**HEALED, "healed": False})}, "the volume is not healed"),
        (
            {"blocks": {each.name: fio(errors=2) for each in PASSES}},
            "sequential write, blocks of 4 kib: fio reports 8388608 bytes and 2 errors",
        ),
        ({"blocks": {}}, "fio reports nothing where 8388608 bytes"),
        ({"trees": {name: tree(files=2) for name in TREE_PASSES}}, "2 files and 2 times where 3"),
        ({**FAULT, "fault_text": ""}, "over before the fault had come and gone"),
        (  # before what that led to
            {**FAULT, "fault_text": "", "healed": json.dumps({**HEALED, "healed": False})},
            "over before the fault had come and gone",
        ),
        (
            {**FAULT, "watched": json.dumps({"bricks": 2, "changes": [[1, 2]]})},
            "the client never lost",
        ),
        (
            {
                **FAULT,
                "fault": PlannedFault.LINK,
                "watched": json.dumps({"bricks": 2, "changes": [[1, 2]]}),
            },
            "bricks, which were away for 4.0 s; it should after 1 s",
        ),
        (
            {**FAULT, "watched": json.dumps({"bricks": 2, "changes": [[1, 2], [2, 0]]})},
            "has not got the last worker's bricks back",
        ),
        (
            {**FAULT, "watched": json.dumps({"bricks": 2, "changes": [[1, 2], [21, 0], [22, 2]]})},
            "the fault came when the last file was done",
        ),
        (
            {
                **FAULT,
                "fault_text": json.dumps(
                    {**HEALED, "healed": False, "down_unix": 10.0, "up_unix": 14.0}
                ),
            },
            "the fault was not healed",
        ),
    ],
)
def test_a_run_that_is_not_what_was_asked_is_no_result(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(VerificationError, match=words):
        prove(run(**changes))


@pytest.mark.parametrize(
    ("count", "share", "value"), [(100, 0.99, 99), (100, 0.5, 50), (1, 0.99, 1), (3, 0.5, 2)]
)
def test_a_percentile_is_the_time_that_so_many_files_stay_within(
    count: int, share: float, value: float
) -> None:
    times = tuple(range(1, count + 1))
    found = TreeResult(files=count, seconds=1.0, ended_unix=0.0, latency_microseconds=times)
    assert found.percentile(share) == value
