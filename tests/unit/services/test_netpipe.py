"""NetPIPE's output, as NPtcp and NPopenmpi 3.7.2 wrote it between two nodes, and wrong ones.

The files, which the workload's tests use too, are real; blanks at the ends of lines are left out.
"""

from pathlib import Path

import pytest

from boardcluster.errors import VerificationError
from boardcluster.services.netpipe import (
    Curve,
    check_integrity,
    parse_curve,
    sizes_up_to,
)

HERE = Path(__file__).parents[1] / "workloads" / "netpipe"
TCP = (HERE / "tcp.out").read_text()
TCP_LINES = [line for line in TCP.splitlines() if line.strip()]
MPI = (HERE / "mpi.out").read_text()
CHECKS = {name: (HERE / f"{name}-check.txt").read_text() for name in ("tcp", "mpi")}
LARGEST = 4 << 20


def read(text: str, largest_bytes: int = LARGEST) -> Curve:
    return parse_curve(text, largest_bytes=largest_bytes, pair="a-b")


def test_the_sizes_are_those_of_a_real_file() -> None:
    assert sizes_up_to(LARGEST) == [int(line.split()[0]) for line in TCP_LINES]
    assert sizes_up_to(6) == [1, 2, 3, 4, 6]
    assert sizes_up_to(5) == [1, 2, 3, 4]


def test_reads_a_curve() -> None:
    curve = read(TCP)

    first, last = (line.split() for line in (TCP_LINES[0], TCP_LINES[-1]))
    assert len(curve.points) == len(TCP_LINES) == 44
    assert curve.latency_microseconds == pytest.approx(float(first[2]) * 1e6)
    # NetPIPE's "Mbps" are 2^20 bits; 4 MiB in so many seconds, in 10^6 bits:
    expected = LARGEST * 8 / float(last[2]) / 1e6
    assert curve.throughput_megabits_per_second == pytest.approx(expected, rel=1e-5)
    assert curve.peak_throughput_megabits_per_second == pytest.approx(
        max(float(line.split()[1]) for line in TCP_LINES) * 1.048576
    )


def test_reads_what_mpi_writes_too() -> None:
    assert read(MPI).latency_microseconds > read(TCP).latency_microseconds


def test_a_slow_network_may_end_early() -> None:
    lines = TCP_LINES[:-3]
    size = int(lines[-1].split()[0])
    lines[-1] = f"{size} {size * 8 / 2**20 / 1.25:.6f} 1.25000000"

    assert read("\n".join(lines)).points[-1].seconds == 1.25
    with pytest.raises(VerificationError, match="41 message sizes up to"):
        read("\n".join(TCP_LINES[:-3]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n".join(TCP_LINES[1:]),
        "\n".join(TCP_LINES[:10] + TCP_LINES[11:]),
        "\n".join([*TCP_LINES, TCP_LINES[-1]]),
        "\n".join(reversed(TCP_LINES)),
    ],
)
def test_finds_missing_and_surplus_sizes(text: str) -> None:
    with pytest.raises(VerificationError, match="message sizes up to"):
        read(text)


def test_finds_a_line_that_was_cut_off() -> None:
    with pytest.raises(VerificationError, match="not a line of NetPIPE's output"):
        read(TCP[:-12])


@pytest.mark.parametrize("rate", ["950.000000", "0.000000"])
def test_finds_a_rate_that_does_not_follow_from_its_time(rate: str) -> None:
    size, _, seconds = TCP_LINES[-1].split()
    with pytest.raises(VerificationError, match=r"4194304 bytes in .* are not"):
        read("\n".join([*TCP_LINES[:-1], f"{size} {rate} {seconds}"]))


def test_a_pause_while_one_byte_is_sent_is_no_fault() -> None:
    """On a busy machine one size may take milliseconds, and tells nothing about the others."""
    seconds = 1.0
    first = f"1 {8 / 2**20 / seconds:.6f} {seconds:.8f}"
    assert read("\n".join([first, *TCP_LINES[1:]])).points[0].seconds == seconds


def test_finds_a_large_message_that_took_no_time() -> None:
    seconds = 1e-6
    last = f"{LARGEST} {LARGEST * 8 / 2**20 / seconds:.6f} {seconds:.8f}"
    with pytest.raises(VerificationError, match="no longer than any message up to 1024 bytes"):
        read("\n".join([*TCP_LINES[:-1], last]))


@pytest.mark.parametrize("name", ["tcp", "mpi"])
def test_reads_the_integrity_check(name: str) -> None:
    assert check_integrity(CHECKS[name], largest_bytes=LARGEST, pair="a-b") == 40


def test_a_slow_check_may_end_early_but_not_before_64_kib() -> None:
    lines = CHECKS["tcp"].splitlines(keepends=True)
    end = next(index for index, line in enumerate(lines) if " 65537 bytes" in line)

    passed = check_integrity("".join(lines[: end + 1]), largest_bytes=LARGEST, pair="a-b")

    assert passed == 29
    with pytest.raises(VerificationError, match="covers 28 sizes up to 49153 bytes"):
        check_integrity("".join(lines[:end]), largest_bytes=LARGEST, pair="a-b")


def test_finds_a_byte_that_changed_on_its_way() -> None:
    wrong = CHECKS["mpi"].replace(
        "12289 bytes      7 times -->  Integrity check passed",
        "12289 bytes      7 times -->  Integrity check failed: Expecting 13 but received 12",
    )
    assert wrong != CHECKS["mpi"]

    with pytest.raises(VerificationError, match=r"12289 bytes did not arrive .*received 12"):
        check_integrity(wrong, largest_bytes=LARGEST, pair="a-b")


@pytest.mark.parametrize("text", ["", "Now starting the main loop\n"])
def test_no_check_is_no_proof(text: str) -> None:
    with pytest.raises(VerificationError, match="covers 0 sizes"):
        check_integrity(text, largest_bytes=LARGEST, pair="a-b")


def test_finds_a_check_that_left_out_a_size() -> None:
    lines = CHECKS["tcp"].splitlines(keepends=True)
    with pytest.raises(VerificationError, match="covers 39 sizes"):
        check_integrity("".join(lines[:10] + lines[11:]), largest_bytes=LARGEST, pair="a-b")
