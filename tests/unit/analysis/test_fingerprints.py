"""What two fingerprints differ in."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from tests.builders import make_board_fingerprint

from boardcluster.analysis.fingerprints import differences, differences_among, setups_among
from boardcluster.records import Fingerprint, Security

SETUP = make_board_fingerprint(
    kernel="6.6.51 aarch64",
    nodes=2,
    hardware=("pi0: a board, firmware 1", "pi1: a board, firmware 1"),
    kernel_command_line="quiet numa=fake=8 rootwait",
    blas="blas/libblas.so.3",
    numa="8 nodes, numa=fake=8",
    governor="performance",
    limits="worker1: 0.5 cores\nworker2: 0.5 cores",
    twin="3 x rpi-5b",
)


def test_equal_ones_differ_in_nothing() -> None:
    assert differences(SETUP, replace(SETUP)) == ()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"kernel": "6.12 aarch64"}, "kernel: 6.6.51 aarch64, 6.12 aarch64"),
        ({"config_sha256": "0"}, "generated configuration"),
        ({"node_memory_bytes": 3 * 2**30}, "memory of the smallest worker: 8 GiB, 3 GiB"),
        ({"link_bits_per_second": 10**8}, "rate of the links: 1 Gbit/s, 100 Mbit/s"),
        ({"emulated": True}, "kind of nodes: boards, emulated"),
        ({"security": Security.INSECURE_LAB}, "security: closed, insecure-lab"),
        ({"blas": "openblas/libblas.so.3"}, "BLAS: blas/libblas.so.3, openblas/libblas.so.3"),
        ({"numa": "1 node"}, "NUMA setting: 8 nodes, numa=fake=8, 1 node"),
        (
            {"kernel_command_line": "quiet rootwait mitigations=off"},
            (
                "kernel command line: numa=fake=8 only in the first, mitigations=off only in the"
                " second"
            ),
        ),
        (
            {"kernel_command_line": "rootwait quiet numa=fake=8"},
            "kernel command line: another order of the same words",
        ),
        (
            {"hardware": ("pi0: a board, firmware 1", "pi1: a board, firmware 2")},
            "board pi1: a board, firmware 1; a board, firmware 2",
        ),
        ({"twin": "3 x rpi-4b"}, "boards that nodes stand for: 3 x rpi-5b; 3 x rpi-4b"),
        ({"twin": ""}, "boards that nodes stand for: 3 x rpi-5b; none"),
        (
            {"limits": "worker1: 0.5 cores\nworker2: 0.2 cores"},
            "limits of worker2: 0.5 cores; 0.2 cores",
        ),
        ({"limits": "worker1: 0.5 cores"}, "limits of worker2: 0.5 cores; not there"),
        (
            {"hardware": ("pi0: a board, firmware 1",)},
            "board pi1: a board, firmware 1; not there",
        ),
    ],
)
def test_what_differs_is_named(change: dict[str, Any], line: str) -> None:
    assert differences(SETUP, replace(SETUP, **change)) == (line,)


def test_every_field_counts() -> None:
    for field in fields(Fingerprint):
        value = getattr(SETUP, field.name)
        other: Any = {
            str: "different",
            int: 7,
            bool: True,
            tuple: ("pi0: another",),
            Security: Security.EMULATED,
        }[type(value)]
        assert differences(SETUP, replace(SETUP, **{field.name: other})), field.name


BOARD = "48,442 events/s of sysbench, 4 cores, 4 GiB memory, link 943 Mbit/s"


def limits_of(quota: str, board: str = BOARD) -> str:
    given = f"{quota} cores of this machine as 4 of the board, 4 GiB memory, link 117 Mbit/s"
    return f"worker1: {given}; of a board with {board}"


def test_two_starts_of_the_same_emulated_boards_are_one_setup() -> None:
    # The quota follows from this machine's speed, which each start measures anew.
    first, second = (replace(SETUP, limits=limits_of(quota)) for quota in ("0.4123", "9.1e-05"))
    assert differences(first, second) == ()
    setups = setups_among({"wordcount": [first, second]})
    assert setups == {("wordcount", first): (), ("wordcount", second): ()}


def test_another_emulated_board_is_another_setup_and_named_without_this_machine() -> None:
    first = replace(SETUP, limits=limits_of("0.4123"))
    slower = BOARD.replace("48,442", "30,000")
    second = replace(SETUP, limits=limits_of("0.4123", slower))
    assert differences(first, second) == (f"limits of worker1: {BOARD}; {slower}",)
    assert setups_among({"wordcount": [first, second]}) == {
        ("wordcount", first): (("limits", f"worker1: {BOARD}"),),
        ("wordcount", second): (("limits", f"worker1: {slower}"),),
    }


@pytest.mark.parametrize("name", ["kernel_command_line", "blas", "numa", "governor"])
def test_what_earlier_versions_did_not_record_is_unknown(name: str) -> None:
    change: dict[str, Any] = {name: ""}
    assert differences(SETUP, replace(SETUP, **change)) == ()
    assert differences(replace(SETUP, **change), SETUP) == ()


def test_several_are_compared_with_the_first() -> None:
    assert differences_among([]) == ()
    assert differences_among([SETUP]) == ()
    newer = replace(SETUP, kernel="6.12 aarch64")
    assert differences_among([SETUP, newer, SETUP, replace(newer, os="Debian 13")]) == (
        "kernel: 6.6.51 aarch64, 6.12 aarch64",
        "operating system: Debian 12, Debian 13",
    )
