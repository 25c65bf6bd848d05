"""The count is found again from what was printed, or the print is refused."""

from pathlib import Path

import pytest

from boardcluster.errors import VerificationError
from boardcluster.workloads.pi.printed import inside_of_estimate, inside_of_spark


def printed(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "stdout"
    path.write_text(text, encoding="utf-8")
    return path


HADOOP = (
    "Number of Maps  = 3\nSamples per Map = 200000\nWrote input for Map #0\nStarting Job\n"
    "Job Finished in 34.114 seconds\nEstimated value of Pi is 3.14164666666666666667\n"
)


def test_the_count_of_hadoops_estimate(tmp_path: Path) -> None:
    assert inside_of_estimate(printed(tmp_path, HADOOP), total=600_000) == 471_247


@pytest.mark.parametrize(
    ("estimate", "total", "inside"),
    [
        ("4.00000000000000000000", 7, 7),
        ("0E-20", 7, 0),
        ("1.33333333333333333333", 3, 1),
        ("2.66666666666666666667", 3, 2),
        ("0.00000000000004000000", 10**14, 1),
        ("3.14159265358960000000", 10**13, 7_853_981_633_974),
    ],
)
def test_every_count_is_found_again(tmp_path: Path, estimate: str, total: int, inside: int) -> None:
    path = printed(tmp_path, f"Estimated value of Pi is {estimate}\n")
    assert inside_of_estimate(path, total=total) == inside


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "0 estimates"),
        (f"{HADOOP}{HADOOP}", "2 estimates"),
        (HADOOP.replace("66667", "66668"), "no number of points"),
        (HADOOP.replace("3.14164666666666666667", "4.00000000000000000001"), "no number of points"),
        (HADOOP.replace("3.14164666666666666667", "4.00000666666666666667"), "no number of points"),
        (HADOOP.replace("66667", "666671"), "not an estimate"),
        (HADOOP.replace("3.14164666666666666667", "3..1"), "not an estimate"),
        (HADOOP.replace("3.14164666666666666667", "1E+999999999"), "not an estimate"),
        (HADOOP.replace("Estimated", " Estimated"), "0 estimates"),
    ],
)
def test_a_wrong_estimate_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        inside_of_estimate(printed(tmp_path, text), total=600_000)


SPARK = "inside 471247 of 600000\nEstimated value of Pi is 3.14164666666666666667\n"


def test_the_count_of_spark(tmp_path: Path) -> None:
    assert inside_of_spark(printed(tmp_path, SPARK), total=600_000) == 471_247


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SPARK.replace("inside", "outside"), "0 counts"),
        (SPARK + SPARK, "2 counts"),
        (SPARK.replace("600000", "600001"), "600001 points were drawn, not 600000"),
        (SPARK.replace("471247", "471248"), "count is 471248, but the estimate is that of 471247"),
        (SPARK.splitlines()[0], "0 estimates"),
    ],
)
def test_a_wrong_count_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        inside_of_spark(printed(tmp_path, text), total=600_000)
