"""Exactly two faults are planted, and the report follows from them."""

import zlib
from pathlib import Path

import pytest

from boardcluster.errors import VerificationError
from boardcluster.workloads.tera_reading import PartReader, Totals
from boardcluster.workloads.tera_rows import checksum_of_rows, rows
from boardcluster.workloads.teravalidate import planting
from boardcluster.workloads.teravalidate.planting import plant_faults


def write(tmp_path: Path, content: list[bytes]) -> Path:
    path = tmp_path / "part-r-00003"
    path.write_bytes(b"".join(content))
    return path


@pytest.mark.parametrize("chunk_bytes", [1, 250, 1 << 20])
@pytest.mark.parametrize("count", [5, 6, 100, 1001])
def test_one_row_is_lost_and_two_are_exchanged(
    count: int, chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planting, "_CHUNK_BYTES", chunk_bytes)
    content = sorted(row.tobytes() for row in rows(0, count))
    target = tmp_path / "faulty"

    planted = plant_faults(write(tmp_path, content), target=target)

    lost, first = count // 4, count // 2
    left, right = content[first], content[first + 1]
    content[first : first + 2] = [right, left]
    del content[lost]
    assert target.read_bytes() == b"".join(content)
    assert (planted.larger, planted.smaller) == (right[:10], left[:10])
    reader = PartReader()
    reader.read(target)
    assert reader.misorders == 1
    assert reader.first_misorders[0].before == planted.larger
    assert reader.totals.checksum == checksum_of_rows(count) - planted.lost_crc


def test_equal_keys_are_never_the_pair(tmp_path: Path) -> None:
    content = sorted(row.tobytes() for row in rows(0, 20))
    for place in range(11, 15):
        content[place] = content[10][:10] + content[place][10:]
    target = tmp_path / "faulty"

    planted = plant_faults(write(tmp_path, content), target=target)

    assert (planted.larger, planted.smaller) == (content[15][:10], content[14][:10])
    assert planted.lost_crc == zlib.crc32(content[5])
    reader = PartReader()
    reader.read(target)
    assert reader.misorders == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([bytes([value]) * 100 for value in range(4)], "4 rows; planting faults needs at least 5"),
        ([bytes(100)] * 40, "no two neighbours"),
    ],
)
def test_what_has_no_place_for_faults_is_refused(
    content: list[bytes], words: str, tmp_path: Path
) -> None:
    with pytest.raises(VerificationError, match=words):
        plant_faults(write(tmp_path, content), target=tmp_path / "faulty")


def test_the_report_is_in_the_stock_form() -> None:
    planted = planting.Planted(
        part="part-r-00003",
        larger=bytes(range(10, 20)),
        smaller=bytes(10),
        lost_crc=0x10,
    )

    assert planted.report(Totals(rows=9, checksum=0x1A0)) == (
        "checksum\t190\n"
        "error\tmisorder in part-r-00003 between 0a 0b 0c 0d 0e 0f 10 11 12 13 and "
        "00 00 00 00 00 00 00 00 00 00\n"
    )
