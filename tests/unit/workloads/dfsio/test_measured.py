"""What the engines print, in one form; the files of TestDFSIO are of a real run."""

import json
from pathlib import Path
from typing import Any

import pytest

from boardcluster.errors import VerificationError
from boardcluster.workloads.dfsio.measured import Measured, of_mapreduce, of_spark

TOTALS = "f:rate\t354498.5\nf:sqrate\t6.7380208E7\nl:size\t25000000\nl:tasks\t2\nl:time\t145\n"
RESULT = """\
----- TestDFSIO ----- : read
            Date & time: Sat Nov 21 10:35:24 UTC 2026
        Number of files: 2
 Total MBytes processed: 23.84
      Throughput mb/sec: 164.43
 Average IO rate mb/sec: 177.25
  IO rate std deviation: 47.67
     Test exec time sec: 21.66

"""


def of_hadoop(tmp_path: Path, totals: str = TOTALS, result: str = RESULT) -> Measured:
    (tmp_path / "io_read").write_text(totals)
    (tmp_path / "read.txt").write_text(result)
    return of_mapreduce(tmp_path / "io_read", tmp_path / "read.txt")


def test_the_figures_are_those_that_testdfsio_rounds(tmp_path: Path) -> None:
    measured = of_hadoop(tmp_path)

    assert (measured.files, measured.total_bytes) == (2, 25_000_000)
    assert round(measured.throughput_mebibytes_per_second, 2) == 164.43
    assert round(measured.average_io_rate_mebibytes_per_second, 2) == 177.25
    assert round(measured.io_rate_deviation_mebibytes_per_second, 2) == 47.67
    assert measured.execution_seconds == 21.66


def test_the_names_of_figures_say_half_and_unit(tmp_path: Path) -> None:
    assert list(of_hadoop(tmp_path).figures("read")) == [
        "read_throughput_mebibytes_per_second",
        "read_average_io_rate_mebibytes_per_second",
        "read_io_rate_deviation_mebibytes_per_second",
        "read_execution_seconds",
    ]


@pytest.mark.parametrize("time", ["21", ".5"])
def test_java_leaves_zeros_out_of_times(tmp_path: Path, time: str) -> None:
    assert of_hadoop(tmp_path, result=RESULT.replace("21.66", time)).execution_seconds == float(
        time
    )


@pytest.mark.parametrize(
    ("totals", "result"),
    [
        ("", RESULT),
        (TOTALS.replace("l:time\t145\n", ""), RESULT),
        (TOTALS.replace("145", "x"), RESULT),
        (TOTALS, ""),
        (TOTALS, RESULT + RESULT),  # the file of two halves
    ],
)
def test_files_of_another_form_are_refused(tmp_path: Path, totals: str, result: str) -> None:
    with pytest.raises(VerificationError, match="not in TestDFSIO's format"):
        of_hadoop(tmp_path, totals, result)


@pytest.mark.parametrize(
    "totals",
    [
        TOTALS.replace("\t145", "\t0"),
        TOTALS.replace("354498.5", "Infinity"),
        TOTALS.replace("6.7380208E7", "NaN"),
        TOTALS.replace("l:tasks\t2", "l:tasks\t0"),
    ],
)
def test_a_rate_without_a_time_is_refused(tmp_path: Path, totals: str) -> None:
    with pytest.raises(VerificationError, match="less than a millisecond"):
        of_hadoop(tmp_path, totals)


ROW: dict[str, Any] = {
    "operation": "write",
    "files": 2,
    "total_bytes": 4_194_304,
    "throughput_mebibytes_per_second": 2.0,
    "average_io_rate_mebibytes_per_second": 2.5,
    "io_rate_deviation_mebibytes_per_second": 1.5,
    "execution_seconds": 3.25,
    "files_bytes": [2_097_152, 2_097_152],
    "files_milliseconds": [500, 1500],
}


def spark(tmp_path: Path, *rows: dict[str, Any]) -> Measured:
    lines = ["a warning", *(json.dumps(row, separators=(",", ":")) for row in rows)]
    (tmp_path / "stdout").write_text("\n".join(lines))
    return of_spark(tmp_path / "stdout", half="write")


def test_the_result_of_spark_is_found_among_other_lines(tmp_path: Path) -> None:
    assert spark(tmp_path, ROW) == Measured(
        files=2,
        total_bytes=4_194_304,
        throughput_mebibytes_per_second=2.0,
        average_io_rate_mebibytes_per_second=2.5,
        io_rate_deviation_mebibytes_per_second=1.5,
        execution_seconds=3.25,
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "0 results"),
        ([ROW, ROW], "2 results"),
        ([{**ROW, "operation": "read"}], "lists read"),
        ([{**ROW, "files": 3}], "write of 3 files"),
        ([{**ROW, "total_bytes": 1}], "with 1 bytes"),
        ([{**ROW, "files_bytes": None}], "not have the expected format"),
        ([{**ROW, "execution_seconds": "soon"}], "not have the expected format"),
        ([{"operation": "write"}], "not have the expected format"),
        ([{**ROW, "average_io_rate_mebibytes_per_second": float("inf")}], "infinite"),
    ],
)
def test_a_wrong_result_of_spark_is_refused(
    tmp_path: Path, rows: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(VerificationError, match=message):
        spark(tmp_path, *rows)
