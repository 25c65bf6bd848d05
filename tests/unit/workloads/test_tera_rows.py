"""The rows computed here are those of Hadoop's own GenSort, byte for byte."""

import zlib

import pytest

from boardcluster.workloads.tera_rows import ROW_BYTES, checksum_of_rows, checksum_text, rows

# Made by GenSort.generateRecord and Random16.skipAhead of hadoop-mapreduce-examples-3.4.2.jar:
# row number, key, row number again as it stands in the row, the twelve repeated digits.
REAL_ROWS = [
    (0, "4a696d47726179524950", "00000000000000000000000000000000", "202020202001"),
    (1, "95e0e48262b3edfe0447", "00000000000000000000000000000001", "9485C755B646"),
    (1 << 31, "29853455602c8a9a86ab", "00000000000000000000000080000000", "7CBDA0202001"),
    (1 << 32, "00de7f10f7315af7c406", "00000000000000000000000100000000", "D95B20202001"),
    (1 << 64, "7cc5d0c2ed18328d4950", "00000000000000010000000000000000", "202020202001"),
]
# Sum of the CRC-32 of the rows 0 to 1000, made by the same classes.
REAL_CHECKSUM_OF_1001_ROWS = 0x1FA99D7E7A7


def row_of(key: str, number: str, digits: str) -> bytes:
    repeated = "".join(4 * digit for digit in digits)
    return (
        bytes.fromhex(key)
        + b"\x00\x11"
        + number.encode()
        + b"\x88\x99\xaa\xbb"
        + repeated.encode()
        + b"\xcc\xdd\xee\xff"
    )


@pytest.mark.parametrize(("number", "key", "shown", "digits"), REAL_ROWS)
def test_a_row_is_that_of_hadoop(number: int, key: str, shown: str, digits: str) -> None:
    assert rows(number, 1).tobytes() == row_of(key, shown, digits)


@pytest.mark.parametrize("edge", [1 << 31, 1 << 32, 1 << 64])
def test_rows_continue_over_the_edges_of_words(edge: int) -> None:
    together = rows(edge - 3, 6)
    for place in range(6):
        assert together[place].tobytes() == rows(edge - 3 + place, 1).tobytes()


def test_the_checksum_is_that_of_hadoop() -> None:
    assert checksum_of_rows(1001) == REAL_CHECKSUM_OF_1001_ROWS


@pytest.mark.parametrize("count", [0, 1, 2, 32_767, 32_768, 32_769, 70_000])
def test_the_tables_give_the_same_as_the_crc_of_every_row(count: int) -> None:
    data = rows(0, count).tobytes()
    crcs = [zlib.crc32(data[at : at + ROW_BYTES]) for at in range(0, len(data), ROW_BYTES)]

    assert checksum_of_rows(count) == sum(crcs)


@pytest.mark.parametrize(
    ("checksum", "text"), [(0, "0"), (0xABC, "abc"), ((1 << 64) + 10, "1000000000000000a")]
)
def test_a_checksum_is_written_as_hadoop_does(checksum: int, text: str) -> None:
    assert checksum_text(checksum) == text
