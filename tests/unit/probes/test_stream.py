"""The kernels of STREAM: what the program prints, compiled here, and what it must not print."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from boardcluster.errors import CapacityError, ProbeOutputError
from boardcluster.probes.stream import KERNELS, PROBE, elements_for, parse_stream
from boardcluster.probes.stream import __file__ as module
from boardcluster.remote.gate import run_program

RECORDED = (Path(__file__).parent / "recordings" / "stream.txt").read_text()
MIB = 1 << 20


def read(text: str) -> dict[str, float]:
    return parse_stream(text, threads=2, elements=10_000_000)


def test_the_recorded_output_is_read() -> None:
    rates = read(RECORDED)
    assert tuple(rates) == KERNELS
    assert rates["copy"] == float(re.findall(r"copy (\d+)", RECORDED)[0])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("the arrays are right", "the arrays are wrong"),
        ("threads 2", "threads 1"),
        ("elements 10000000", "elements 1000000"),
        ("times 10", "times 11"),
        ("scale ", "skale "),
        ("best of 9 in 0.", "best of 9 in 1."),
        ("best of 9", "best of 8"),
        (RECORDED, ""),
        (RECORDED, "Killed\n"),
        (RECORDED, RECORDED[:120]),
        (RECORDED, RECORDED + RECORDED),
        (".", ","),
    ],
)
def test_what_is_no_such_output_is_refused(old: str, new: str) -> None:
    assert old in RECORDED
    with pytest.raises(ProbeOutputError):
        read(RECORDED.replace(old, new))


def test_small_memory_means_shorter_arrays_down_to_a_limit() -> None:
    assert elements_for(8192 * MIB) == 10_000_000
    assert elements_for(512 * MIB) == 512 * MIB // 96
    with pytest.raises(CapacityError, match="64 MiB"):
        elements_for(64 * MIB)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler here")
@pytest.mark.parametrize("threads", [1, 2])
def test_the_program_compiles_without_a_warning_and_is_right(tmp_path: Path, threads: int) -> None:
    source, program = Path(module).with_name("stream_kernels.c"), tmp_path / "kernels"
    warnings = ["-Wall", "-Wextra", "-Werror"]
    size = ["-DELEMENTS=100000", "-DTIMES=3"]
    options = ["-std=gnu11", "-O1", "-fopenmp", *warnings, *size]
    run_program(["gcc", *options, str(source), "-lm", "-o", str(program)])

    done = run_program([str(program)], env={"OMP_NUM_THREADS": str(threads)})

    rates = parse_stream(done.text, threads=threads, elements=100_000, times=3)
    assert all(rate > 1e6 for rate in rates.values())


def test_it_needs_a_compiler_only() -> None:
    assert [tool.package for tool in PROBE.tools] == ["build-essential"]
