"""Lines in one order, and how two sets of them differ."""

from pathlib import Path

import pytest

from boardcluster.errors import CapacityError
from boardcluster.workloads import compare
from boardcluster.workloads.compare import LineDifference, compare_lines, sort_lines


def difference(tmp_path: Path, expected: bytes, actual: bytes) -> LineDifference | None:
    left, right = tmp_path / "left", tmp_path / "right"
    left.write_bytes(expected)
    right.write_bytes(actual)
    return compare_lines(left, right)


@pytest.mark.parametrize("text", [b"", b"a\n", b"a\na\nb\n", b"a\x01\na\tb\n"])
def test_equal_files_do_not_differ(tmp_path: Path, text: bytes) -> None:
    assert difference(tmp_path, text, text) is None


@pytest.mark.parametrize(
    ("expected", "actual", "counts", "first"),
    [
        (b"a\nb\nc\n", b"a\nc\n", (1, 0), ("missing: 'b'",)),
        (b"a\nc\n", b"a\nb\nc\n", (0, 1), ("not expected: 'b'",)),
        (b"a\n", b"a\na\n", (0, 1), ("not expected: 'a'",)),
        (b"a\na\n", b"a\n", (1, 0), ("missing: 'a'",)),
        (b"", b"a\n", (0, 1), ("not expected: 'a'",)),
        (b"a\n", b"", (1, 0), ("missing: 'a'",)),
        (b"a\n", b"b\n", (1, 1), ("missing: 'a'", "not expected: 'b'")),
        # A byte below LF: a prefix still comes first, as sort has it.
        (b"a\na\tb\n", b"a\tb\n", (1, 0), ("missing: 'a'",)),
        (b"\xff\n", b"", (1, 0), (r"missing: '\\xff'",)),
    ],
)
def test_differences_are_counted_and_named(
    tmp_path: Path, expected: bytes, actual: bytes, counts: tuple[int, int], first: tuple[str]
) -> None:
    assert difference(tmp_path, expected, actual) == LineDifference(
        missing=counts[0], extra=counts[1], first=first
    )


def test_the_message_is_bounded(tmp_path: Path) -> None:
    expected = b"".join(b"%04d" % number + b"x" * 5000 + b"\n" for number in range(100))
    found = str(difference(tmp_path, expected, b"y\n"))

    assert "100 lines are missing, 1 are not expected" in found
    assert "'0004xxx" in found
    assert "'0005xxx" not in found
    assert "... (5004 bytes)" in found
    assert len(found) < 1500


def test_sorting_takes_all_files_and_keeps_what_occurs_twice(tmp_path: Path) -> None:
    parts = [tmp_path / "-a", tmp_path / "b"]
    parts[0].write_bytes(b"b\n\xc3\xa9\nB\n")
    parts[1].write_bytes(b"a\tc\nb\na")

    sort_lines(parts, target=tmp_path / "sorted", work=tmp_path)

    assert (tmp_path / "sorted").read_bytes() == b"B\na\na\tc\nb\nb\n\xc3\xa9\n"


def test_more_files_are_sorted_than_a_command_line_holds(tmp_path: Path) -> None:
    # A part for each 16 MiB: the names of 200 GB are longer than Linux takes as arguments.
    folder = tmp_path / ("x" * 200)
    folder.mkdir()
    parts = [folder / f"part-r-{number:05}" for number in range(12_000)]
    assert sum(len(str(part)) + 1 for part in parts) > 2 << 20
    for number, part in enumerate(parts):
        part.write_text(f"{11_999 - number:05}\n")

    sort_lines(parts, target=tmp_path / "sorted", work=tmp_path)

    lines = (tmp_path / "sorted").read_text().split()
    assert lines == [f"{number:05}" for number in range(12_000)]
    assert {path.name for path in tmp_path.iterdir()} == {folder.name, "sorted"}


def test_nothing_sorted_is_empty(tmp_path: Path) -> None:
    sort_lines([], target=tmp_path / "sorted", work=tmp_path)

    assert (tmp_path / "sorted").read_bytes() == b""


def test_a_full_disk_is_refused_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def refuse(folder: Path, *, need_bytes: int, purpose: str) -> None:
        asked.append(need_bytes)
        raise CapacityError(f"{folder}: {purpose}")

    monkeypatch.setattr(compare, "require_space", refuse)
    part = tmp_path / "part"
    part.write_bytes(b"a\n" * 10)

    with pytest.raises(CapacityError):
        sort_lines([part], target=tmp_path / "sorted", work=tmp_path)
    assert asked == [40]
