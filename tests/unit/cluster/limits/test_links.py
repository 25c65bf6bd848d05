from __future__ import annotations

import json
from typing import Any

import pytest

from boardcluster.cluster.limits import links
from boardcluster.errors import ClusterError
from boardcluster.remote.gate import Completed


@pytest.mark.parametrize(
    ("rows", "good"),
    [
        ([{"kind": "tbf", "options": {"rate": 125_000_000}}], True),
        ([{"kind": "tbf", "options": {"rate": 12_500_000}}], False),
        ([{"kind": "noqueue", "options": {}}], False),
        ([], False),
    ],
)
def test_a_link_rate_is_read_back(
    rows: list[dict[str, Any]], good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(argv: list[str], **_: Any) -> Completed:
        text = json.dumps(rows).encode()
        return Completed(argv=(), returncode=0, stdout=text, stderr=b"", duration_seconds=0)

    monkeypatch.setattr(links, "run_program", answer)
    if good:
        links.check_rate([], "port0", 10**9)
    else:
        with pytest.raises(ClusterError, match="port0 reads back as"):
            links.check_rate([], "port0", 10**9)


def test_a_rate_may_be_off_by_what_the_kernel_rounds() -> None:
    assert links.is_rate(80_324_000, 80_324_321)
    assert not links.is_rate(80_900_000, 80_324_321)
    assert not links.is_rate(None, 80_324_321)


def test_a_batch_is_one_process_that_reads_all_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[list[str], bytes]] = []
    monkeypatch.setattr(
        links, "run_program", lambda argv, *, stdin: seen.append((list(argv), stdin))
    )
    links.batch(("nsenter", "--"), "ip", ["link set lo up", "link set eth0 up"])
    assert seen == [(["nsenter", "--", "ip", "-batch", "-"], b"link set lo up\nlink set eth0 up\n")]


def test_the_line_for_tc_can_add_and_replace() -> None:
    assert links.shape("eth0", 1000).startswith("qdisc add dev eth0 root tbf rate 1000bit ")
    assert links.shape("eth0", 1000, verb="replace").startswith("qdisc replace dev eth0 ")
