"""HPL's output, as hpcc 1.5.0 wrote it on two nodes, and what can be wrong with it.

``hpccoutf.txt`` is a real file; its middle part and blanks at the ends of lines are left out.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster.errors import VerificationError
from boardcluster.workloads.hpl.output import HplResult, input_text, parse_output, prove
from boardcluster.workloads.hpl.plan import HplPlan

OUTPUT = Path(__file__).with_name("hpccoutf.txt").read_text()
XHPL = OUTPUT[OUTPUT.index("Begin of HPL section.") : OUTPUT.index("End of HPL section.")]
ROW = "WR11C2R4        1024   128     1     2               0.10              7.198e+00"
PLAN = HplPlan(
    n=1024,
    nb=128,
    p=1,
    q=2,
    ranks_per_node=1,
    workers=2,
    free_bytes=1 << 30,
    memory_words="enough",
)


def judged(text: str, *, hpcc: bool = True) -> HplResult:
    result = parse_output(text, hpcc=hpcc)
    prove(PLAN, result)
    return result


def test_the_sample_has_the_row() -> None:
    assert OUTPUT.count(ROW) == 1


def test_reads_a_real_result_with_the_digits_of_its_summary() -> None:
    result = judged(OUTPUT)

    assert (result.n, result.nb, result.p, result.q) == (1024, 128, 1, 2)
    assert result.solve_seconds == 0.0996649
    assert result.gflops_per_second == pytest.approx(7.19813)
    assert result.residuals == (0.0056144,)
    assert result.passed


def test_reads_the_same_from_hpl_alone() -> None:
    result = judged(XHPL, hpcc=False)

    assert (result.solve_seconds, result.gflops_per_second) == (0.10, 7.198)
    assert result.solve_error_seconds == pytest.approx(0.005)
    assert result.gflops_error_per_second == pytest.approx(0.0005)


def test_reads_the_three_residuals_of_older_versions() -> None:
    line = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0056144 ...... PASSED"
    old = (
        "||Ax-b||_oo / ( eps * ||A||_1  * N        ) =        0.0131446 ...... PASSED\n"
        "||Ax-b||_oo / ( eps * ||A||_1  * ||x||_1  ) =        0.0110442 ...... PASSED\n"
        "||Ax-b||_oo / ( eps * ||A||_oo * ||x||_oo ) =       16.0027411 ...... FAILED"
    )
    assert line in XHPL

    result = parse_output(XHPL.replace(line, old), hpcc=False)

    assert result.residuals == (0.0131446, 0.0110442, 16.0027411)
    assert not result.passed
    with pytest.raises(VerificationError, match=r"16\.0027411"):
        prove(PLAN, result)


def test_the_proof_is_equal_digests_of_the_facts() -> None:
    proof = prove(PLAN, parse_output(OUTPUT, hpcc=True))

    assert proof.expected_sha256 == proof.actual_sha256
    assert proof.records == 7
    other = replace(PLAN, n=1152)
    assert proof.expected_sha256 != prove(other, _result_of(other)).expected_sha256


def _result_of(plan: HplPlan) -> HplResult:
    return HplResult(
        n=plan.n,
        nb=plan.nb,
        p=plan.p,
        q=plan.q,
        solve_seconds=1.0,
        solve_error_seconds=0.0,
        gflops_per_second=plan.operations / 1e9,
        gflops_error_per_second=1e-9,
        residuals=(0.001,),
        passed=True,
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("0.0056144 ...... PASSED", "16.0056144 ...... FAILED", "verdict: expected PASSED"),
        ("0.0056144 ...... PASSED", "16.0056144 ...... PASSED", "below 16.0"),
        ("0.0056144 ...... PASSED", "nan ...... PASSED", "below 16.0"),
        ("  1024   128     1     2   ", "  2048   128     1     2   ", "N: expected 1024"),
        ("  1024   128     1     2   ", "  1024    64     1     2   ", "NB: expected 128"),
        ("  1024   128     1     2   ", "  1024   128     2     1   ", "P: expected 1"),
        ("HPL_Tflops=0.00719813", "HPL_Tflops=0.00719823", "rate is operations divided by time"),
        ("HPL_Tflops=0.00719813", "HPL_Tflops=7.19813", "rate is operations divided by time"),
        ("HPL_time=0.0996649", "HPL_time=0.0996659", "rate is operations divided by time"),
        ("HPL_time=0.0996649", "HPL_time=0.123", "two different times for one solution"),
        ("Success=1", "Success=0", "did not succeed"),
        ("HPL_time=0.0996649\n", "", "did not succeed"),
        (ROW, "", "0 results"),
        (ROW, f"{ROW}\n{ROW}", "2 results"),
        ("End of Tests.", "", "without its last line"),
    ],
)
def test_finds_what_is_wrong(old: str, new: str, says: str) -> None:
    assert old in OUTPUT

    with pytest.raises(VerificationError, match=says):
        judged(OUTPUT.replace(old, new))


@pytest.mark.parametrize("old_new", [("7.198e+00", "8.198e+00"), (" 0.10  ", " 0.12  ")])
def test_finds_a_wrong_rate_without_a_summary(old_new: tuple[str, str]) -> None:
    with pytest.raises(VerificationError, match="rate is operations divided by time"):
        judged(XHPL.replace(*old_new), hpcc=False)


def test_a_time_that_rounds_to_nothing_says_nothing_about_the_rate() -> None:
    judged(XHPL.replace(" 0.10  ", " 0.00  ").replace("7.198e+00", "7.198e+02"), hpcc=False)


def test_a_time_of_hours_has_fewer_decimals_in_the_summary() -> None:
    """The row has two decimals of any time, the summary six digits."""
    row = OUTPUT.replace(ROW, ROW.replace(" 0.10  ", " 10234.57  "))

    result = parse_output(row.replace("HPL_time=0.0996649", "HPL_time=10234.6"), hpcc=True)

    assert result.solve_seconds == 10234.6
    assert result.solve_error_seconds == pytest.approx(0.05)
    with pytest.raises(VerificationError, match=r"different times .*: 10234\.7 s and 10234\.57 s"):
        parse_output(row.replace("HPL_time=0.0996649", "HPL_time=10234.7"), hpcc=True)


def test_a_file_that_was_cut_off_is_no_result() -> None:
    for length in (0, len(OUTPUT) // 2, OUTPUT.index("End of Tests.")):
        with pytest.raises(VerificationError):
            parse_output(OUTPUT[:length], hpcc=True)


def test_the_input_has_what_is_planned_in_hpls_own_lines() -> None:
    lines = input_text(PLAN, hpcc=False).splitlines()

    assert len(lines) == 31
    assert [lines[index].split()[0] for index in (5, 7, 10, 11, 12)] == [
        "1024",
        "128",
        "1",
        "2",
        "16.0",
    ]
    assert lines[3].split()[0] == "6"  # standard output


def test_hpcc_reads_five_more_lines() -> None:
    lines = input_text(PLAN, hpcc=True).splitlines()

    assert lines[:31] == input_text(PLAN, hpcc=False).splitlines()
    assert len(lines) == 36
