"""What fio and the programs on nodes say, read."""

import json
from typing import Any

import pytest

from boardcluster.errors import VerificationError
from boardcluster.services.gluster.result import (
    WatchedClient,
    read_audit,
    read_fio,
    read_heal,
    read_watch,
)


def job(**changes: Any) -> dict[str, Any]:
    idle = {"total_ios": 0}
    done = {
        "total_ios": 2048,
        "io_bytes": 8 << 20,
        "runtime": 2000,
        "clat_ns": {
            "percentile": {"50.000000": 1000, "99.000000": 2000, "99.900000": 3000},
            "max": 4000,
        },
    }
    row = {"jobname": "4_kib", "error": 0, "total_err": 0, "read": idle, "write": done}
    return row | changes


def test_a_job_of_fio_is_read() -> None:
    text = json.dumps({"jobs": [job()]})

    found = read_fio(text, phase="random write")["4_kib"]

    assert found.seconds == 2
    assert found.operations_per_second == 1024
    assert found.latency_nanoseconds == {"p50": 1000, "p99": 2000, "p999": 3000}
    assert (found.errors, found.longest_nanoseconds) == (0, 4000)


def test_a_job_that_failed_has_errors() -> None:
    text = json.dumps({"jobs": [job(error=5, total_err=3)]})
    assert read_fio(text, phase="random write")["4_kib"].errors == 3


@pytest.mark.parametrize("text", ["", "{}", '{"jobs": [{}]}', '{"jobs": 3}'])
def test_what_is_not_whole_is_refused(text: str) -> None:
    with pytest.raises(VerificationError, match="random write: what fio wrote cannot be read"):
        read_fio(text, phase="random write")
    with pytest.raises(VerificationError, match="cannot be read"):
        read_audit(text if text != "{}" else "[]", worker="worker1")
    with pytest.raises(VerificationError, match="healing cannot be read"):
        read_heal(text, what="healing")
    with pytest.raises(VerificationError, match="cannot be read"):
        read_watch(text)


def test_a_client_that_lost_a_brick_and_has_it_again() -> None:
    def seen(*changes: tuple[float, int]) -> WatchedClient:
        return read_watch(json.dumps({"bricks": 2, "changes": changes}))

    assert seen((1, 2)).lost_unix is None
    assert seen((1, 2)).back_unix is None
    back = seen((1, 2), (5, 1), (6, 0), (8, 2))
    assert (back.lost_unix, back.back_unix) == (5, 8)
    assert seen((1, 2), (5, 1)).back_unix is None
