"""Part files are counted and summed up, and every misplaced key is found, with its place."""

from itertools import pairwise
from pathlib import Path

import pytest

from boardcluster.errors import VerificationError
from boardcluster.workloads import tera_reading
from boardcluster.workloads.tera_reading import Misorder, PartReader, Totals
from boardcluster.workloads.tera_rows import checksum_of_rows, rows

COUNT = 300
UNSORTED = [row.tobytes() for row in rows(0, COUNT)]
SORTED = sorted(UNSORTED)


def read(tmp_path: Path, *parts: list[bytes]) -> PartReader:
    reader = PartReader()
    for number, part in enumerate(parts):
        path = tmp_path / f"part-r-{number:05}"
        path.write_bytes(b"".join(part))
        reader.read(path)
    return reader


@pytest.fixture(params=[1, 7, 40_960])
def _chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in memory at a time: an answer must not depend on it."""
    monkeypatch.setattr(tera_reading, "_CHUNK_ROWS", request.param)


@pytest.mark.usefixtures("_chunk")
def test_totals_are_the_same_for_every_order_and_every_division(tmp_path: Path) -> None:
    expected = Totals(rows=COUNT, checksum=checksum_of_rows(COUNT))

    assert read(tmp_path, UNSORTED).totals == expected
    assert read(tmp_path, SORTED[:100], [], SORTED[100:]).totals == expected


@pytest.mark.usefixtures("_chunk")
def test_sorted_files_have_no_misorder(tmp_path: Path) -> None:
    reader = read(tmp_path, [], SORTED[:100], [], SORTED[100:])

    assert (reader.misorders, reader.first_misorders) == (0, [])


@pytest.mark.usefixtures("_chunk")
def test_two_exchanged_rows_are_one_misorder(tmp_path: Path) -> None:
    changed = [*SORTED]
    changed[123], changed[124] = changed[124], changed[123]

    reader = read(tmp_path, changed)

    assert reader.misorders == 1
    assert tuple(reader.first_misorders) == (
        Misorder(part="part-r-00000", row=124, before=SORTED[124][:10], key=SORTED[123][:10]),
    )


@pytest.mark.usefixtures("_chunk")
def test_files_in_the_wrong_order_are_a_misorder_at_the_boundary(tmp_path: Path) -> None:
    reader = read(tmp_path, SORTED[100:], [], SORTED[:100])

    assert reader.misorders == 1
    assert tuple(reader.first_misorders) == (
        Misorder(part="part-r-00002", row=0, before=SORTED[-1][:10], key=SORTED[0][:10]),
    )


@pytest.mark.usefixtures("_chunk")
def test_every_misorder_is_counted_but_only_the_first_are_shown(tmp_path: Path) -> None:
    wanted = sum(right[:10] < left[:10] for left, right in pairwise(UNSORTED))

    reader = read(tmp_path, UNSORTED)

    assert reader.misorders == wanted
    assert len(reader.first_misorders) == 5
    shown = [misorder.row for misorder in reader.first_misorders]
    assert (
        shown
        == [place for place in range(1, COUNT) if UNSORTED[place][:10] < UNSORTED[place - 1][:10]][
            :5
        ]
    )


@pytest.mark.parametrize("byte", [0, 7, 8, 9])
def test_every_byte_of_the_key_counts_and_none_is_signed(byte: int, tmp_path: Path) -> None:
    small, large = bytearray(100), bytearray(100)
    small[byte], large[byte] = 0x7F, 0x80

    assert read(tmp_path, [bytes(small), bytes(large)]).misorders == 0
    assert read(tmp_path, [bytes(large), bytes(small)]).misorders == 1


def test_equal_keys_are_in_order_whatever_follows_them(tmp_path: Path) -> None:
    left, right = bytearray(100), bytearray(100)
    left[10] = 1

    assert read(tmp_path, [bytes(left), bytes(right)]).misorders == 0


def test_a_torn_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="part-r-00000 has 150 bytes"):
        read(tmp_path, [SORTED[0], SORTED[1][:50]])


def test_a_flipped_bit_changes_the_checksum(tmp_path: Path) -> None:
    changed = bytearray(SORTED[5])
    changed[50] ^= 1

    reader = read(tmp_path, [*SORTED[:5], bytes(changed), *SORTED[6:]])

    assert reader.totals.rows == COUNT
    assert reader.totals.checksum != checksum_of_rows(COUNT)


def test_misorders_and_totals_are_shown_as_people_need_them() -> None:
    misorder = Misorder(part="part-r-00007", row=3, before=b"\xff" * 10, key=b"\x01" * 10)

    assert str(misorder) == (f"row 3 of part-r-00007 has the key {'01 ' * 9}01 after {'ff ' * 9}ff")
    assert str(Totals(rows=2, checksum=255)) == "2 rows with the checksum ff"
    assert Totals(rows=2, checksum=255).text == "rows\t2\nchecksum\tff\n"
