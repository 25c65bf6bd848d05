"""What HPL reads and prints, and whether it is right.

Source: HPL 2.0, HPL_pdinfo.c (input) and HPL_pdtest.c (output); HPC Challenge 1.5.0, README.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from boardcluster.errors import VerificationError
from boardcluster.records import Verification
from boardcluster.workloads.hpl.plan import HplPlan

__all__ = [
    "THRESHOLD",
    "HplResult",
    "input_text",
    "parse_output",
    "parse_several",
    "prove",
    "several_text",
]

THRESHOLD = 16.0
"""A scaled residual must be below this (HPL's own default)."""

_INPUT = """\
HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{n}          Ns
{nbs}            # of NBs
{nb}         NBs
0            PMAP process mapping (0=Row-,1=Column-major)
{grids}            # of process grids (P x Q)
{p}          Ps
{q}          Qs
{threshold}  threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
"""
_HPCC_INPUT = """\
##### This line is ignored: it separates what only hpcc reads. #####
0            Number of additional problem sizes for PTRANS
0            values of N
0            number of additional blocking sizes for PTRANS
0            values of NB
"""

_NUMBER = r"\d+\.\d+(?:e[+-]\d+)?"
_ROW = re.compile(
    rf"^W[RC]\S+ +(\d+) +(\d+) +(\d+) +(\d+) +({_NUMBER}) +({_NUMBER}) *$", re.MULTILINE
)
_RESIDUAL = re.compile(r"^\|\|Ax-b\|\|_oo */ *\(.*\) *= *(\S+) \.+ (PASSED|FAILED)$", re.MULTILINE)
_SUMMARY = re.compile(r"^(HPL_time|HPL_Tflops|Success)=(\S+)$", re.MULTILINE)
_METHOD = (
    "HPL's scaled residual, computed from the solution and the original matrix, is below "
    f"{THRESHOLD}; N, NB, P and Q are as planned; the rate is the number of operations for N "
    "divided by the time"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HplResult:
    """What HPL says about one system of equations."""

    n: int
    """Order of the matrix."""
    nb: int
    """Order of its blocks."""
    p: int
    """Rows of the grid of processes."""
    q: int
    """Columns of the grid of processes."""
    solve_seconds: float
    """Wall time of the solution, by HPL's own clock on rank 0."""
    solve_error_seconds: float
    """Half of the last digit that was printed of it."""
    gflops_per_second: float
    """Its rate, in 10^9 operations per second."""
    gflops_error_per_second: float
    """Half of the last digit that was printed of it."""
    residuals: tuple[float, ...]
    """Scaled residuals; one since HPL 2.0, three before."""
    passed: bool
    """Whether HPL itself calls all of them small enough."""


def input_text(plan: HplPlan, *, hpcc: bool) -> str:
    """Return ``HPL.dat``, or ``hpccinf.txt``, whose first 31 lines mean the same."""
    return several_text(plan.n, nbs=[plan.nb], grids=[(plan.p, plan.q)]) + (
        _HPCC_INPUT if hpcc else ""
    )


def several_text(n: int, *, nbs: Sequence[int], grids: Sequence[tuple[int, int]]) -> str:
    """Return ``HPL.dat`` for one order with every block size on every grid, one after the other."""
    return _INPUT.format(
        n=n,
        nbs=len(nbs),
        nb=" ".join(map(str, nbs)),
        grids=len(grids),
        p=" ".join(str(p) for p, _ in grids),
        q=" ".join(str(q) for _, q in grids),
        threshold=THRESHOLD,
    )


def parse_several(text: str, *, n: int, solutions: int) -> tuple[tuple[int, int, int, float], ...]:
    """Read the output of several solutions of systems of one order.

    Returns:
        NB, P, Q and rate in 10^9 operations per second of each, in their order.

    Raises:
        VerificationError: it is not whole, of another order, or a residual is too large.
    """
    rows = _ROW.findall(text)
    verdicts = _RESIDUAL.findall(text)
    right = all(verdict == "PASSED" and float(value) < THRESHOLD for value, verdict in verdicts)
    whole = len(rows) == len(verdicts) == solutions and "End of Tests." in text
    if not (whole and right and {int(row[0]) for row in rows} == {n}):
        raise VerificationError(
            f"the search of HPL did not give {solutions} right solutions of N {n}: {len(rows)} "
            f"results, {sum(verdict == 'PASSED' for _, verdict in verdicts)} residuals passed",
            hint="look at the attempt's folder; hpl.search = 0 leaves the search out",
        )
    return tuple((int(row[1]), int(row[2]), int(row[3]), float(row[5])) for row in rows)


def parse_output(text: str, *, hpcc: bool) -> HplResult:
    """Read the output of one solution.

    With hpcc and the HPL that is built here, time and rate are taken from the summary, which has
    more digits.

    Raises:
        VerificationError: it is not whole, or holds more than one solution.
    """
    rows = _ROW.findall(text)
    verdicts = _RESIDUAL.findall(text)
    finished = "End of Tests." in text
    if len(rows) != 1 or not verdicts or not finished:
        raise VerificationError(
            f"HPL did not print exactly one finished solution: {len(rows)} results, "
            f"{len(verdicts)} residuals, {'with' if finished else 'without'} its last line",
            hint="look at the attempt's folder",
        )
    n, nb, p, q = (int(word) for word in rows[0][:4])
    seconds, gflops = rows[0][4:]
    scale = 1.0
    if hpcc:
        summary = dict(_SUMMARY.findall(text))
        if set(summary) != {"HPL_time", "HPL_Tflops", "Success"} or summary["Success"] != "1":
            raise VerificationError(
                f"HPL did not succeed; its summary says {summary or 'nothing'}",
                hint="look at hpccoutf.txt in the attempt's folder",
            )
        _check_same(summary["HPL_time"], seconds)
        seconds, gflops, scale = summary["HPL_time"], summary["HPL_Tflops"], 1e3
    return HplResult(
        n=n,
        nb=nb,
        p=p,
        q=q,
        solve_seconds=float(seconds),
        solve_error_seconds=_half_digit(seconds, significant=6 if hpcc else 0),
        gflops_per_second=float(gflops) * scale,
        gflops_error_per_second=_half_digit(gflops, significant=6 if hpcc else 0) * scale,
        residuals=tuple(float(residual) for residual, _ in verdicts),
        passed=all(verdict == "PASSED" for _, verdict in verdicts),
    )


def _check_same(summary: str, printed: str) -> None:
    """Compare the time of the summary with that of the row, in seconds; both are rounded."""
    error_seconds = (_half_digit(printed) + _half_digit(summary, significant=6)) * 1.01
    if abs(float(summary) - float(printed)) > error_seconds:
        raise VerificationError(
            f"HPL reports two different times for one solution: {summary} s and {printed} s",
            hint="look at hpccoutf.txt in the attempt's folder",
        )


def _half_digit(text: str, *, significant: int = 0) -> float:
    """Return half of the last digit of a printed number.

    Args:
        text: the number.
        significant: digits that were printed where trailing zeros are left out (``%g``).
    """
    mantissa, _, exponent = text.partition("e")
    digits = mantissa.replace(".", "").lstrip("0")
    decimals = len(mantissa.partition(".")[2]) + max(0, significant - len(digits))
    return float(0.5 * 10.0 ** (int(exponent or 0) - decimals))


def prove(plan: HplPlan, result: HplResult) -> Verification:
    """Check a result against what was planned.

    Raises:
        VerificationError: it is wrong; says what was expected.
    """
    early = plan.operations / (result.solve_seconds + result.solve_error_seconds) / 1e9
    shortest = result.solve_seconds - result.solve_error_seconds
    late = plan.operations / shortest / 1e9 if shortest > 0 else inf
    error = result.gflops_error_per_second * 1.01
    agrees = early - error <= result.gflops_per_second <= late + error
    facts = [
        ("N", plan.n, result.n),
        ("NB", plan.nb, result.nb),
        ("P", plan.p, result.p),
        ("Q", plan.q, result.q),
        (
            f"scaled residuals below {THRESHOLD}",
            "yes",
            "yes" if all(one < THRESHOLD for one in result.residuals) else f"{result.residuals}",
        ),
        ("HPL's own verdict", "PASSED", "PASSED" if result.passed else "FAILED"),
        (
            "rate is operations divided by time",
            "yes",
            "yes"
            if agrees
            else f"{result.gflops_per_second:g} Gflop/s, but {early:g} to {late:g} follow from "
            f"{result.solve_seconds:g} s",
        ),
    ]
    wrong = [
        f"{name}: expected {right}, found {seen}" for name, right, seen in facts if right != seen
    ]
    if wrong:
        raise VerificationError(
            "the result of HPL is wrong: " + "; ".join(wrong), hint="look at the attempt's folder"
        )
    return Verification(
        method=_METHOD,
        expected_sha256=_digest([(name, right) for name, right, _ in facts]),
        actual_sha256=_digest([(name, seen) for name, _, seen in facts]),
        records=len(facts),
    )


def _digest(facts: list[tuple[str, object]]) -> str:
    text = "".join(f"{name}: {value}\n" for name, value in facts)
    return hashlib.sha256(text.encode()).hexdigest()
