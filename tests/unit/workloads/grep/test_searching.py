"""The independent search: real grep, sort and uniq on small texts."""

from pathlib import Path

import pytest

from boardcluster.errors import CapacityError, InputError, RemoteError, UsageError
from boardcluster.workloads.grep import searching
from boardcluster.workloads.grep.searching import GrepOutput, search


def found(tmp_path: Path, text: bytes, pattern: str, form: GrepOutput) -> bytes:
    source, folder = tmp_path / "source", tmp_path / "folder"
    folder.mkdir(exist_ok=True)
    source.write_bytes(text)
    search(source, pattern=pattern, form=form, target=folder / "found")
    assert [path.name for path in folder.iterdir()] == ["found"]
    return (folder / "found").read_bytes()


def test_counts_every_text_found(tmp_path: Path) -> None:
    text = b"x1 y22 x1\n\nx3\nx1\nnothing\n"

    assert found(tmp_path, text, "x[0-9]", GrepOutput.COUNTS) == b"1\tx3\n3\tx1\n"


def test_counts_are_whole_whatever_the_text_begins_with(tmp_path: Path) -> None:
    text = b" 12 a\n 12 a\n  7\n"

    assert found(tmp_path, text, "^.+$", GrepOutput.COUNTS) == b"1\t  7\n2\t 12 a\n"


def test_keeps_equal_lines(tmp_path: Path) -> None:
    text = b"b ATL\na ATL\nb\nb ATL\n"

    assert found(tmp_path, text, "ATL", GrepOutput.LINES) == b"a ATL\nb ATL\nb ATL\n"


def test_the_order_is_that_of_bytes(tmp_path: Path) -> None:
    text = "x\u00e9\nxZ\nxa\n".encode()

    assert found(tmp_path, text, "x.", GrepOutput.LINES) == "xZ\nxa\nx\u00e9\n".encode()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"a\r\nab\rb\na\n", b"a\na\n"),  # Hadoop ends lines at CR LF, CR and LF
        (b"\xef\xbb\xbfa\n", b"a\n"),  # and drops a byte order mark
        (b"\xef\xbb\xbfa\r", b"a\n"),
        (b"a", b"a\n"),
        (b"b\n\xef\xbb\xbfa\nab\na\n", b"a\n"),  # but not inside a text
    ],
)
def test_lines_are_those_of_hadoop(tmp_path: Path, text: bytes, lines: bytes) -> None:
    assert found(tmp_path, text, "^a$", GrepOutput.LINES) == lines


def test_a_pattern_may_begin_like_an_option(tmp_path: Path) -> None:
    assert found(tmp_path, b"a -v\nb\n", "-v", GrepOutput.LINES) == b"a -v\n"


def test_a_dot_is_one_character_not_one_byte(tmp_path: Path) -> None:
    text = "a\U0001f600b\u00e9c\n".encode()

    assert found(tmp_path, text, "a.b.c", GrepOutput.COUNTS) == b"1\t" + text


@pytest.mark.parametrize("end", ["\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("before", [0, (1 << 20) - 1, (1 << 20) - 2])
def test_a_line_end_of_java_alone_is_refused_wherever_it_is(
    tmp_path: Path, end: str, before: int
) -> None:
    text = b"x" * before + end.encode() + b"y\n"

    with pytest.raises(InputError, match=rf"U\+{ord(end):04X}"):
        found(tmp_path, text, "y", GrepOutput.LINES)


def test_a_pattern_that_finds_nothing_proves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="matches nothing"):
        found(tmp_path, b"b\n", "a", GrepOutput.COUNTS)


def test_a_failing_grep_is_not_an_empty_result(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="status 2"):
        found(tmp_path, b"a\n", "a(", GrepOutput.LINES)


def test_a_source_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        search(tmp_path / "gone", pattern="a", form=GrepOutput.LINES, target=tmp_path / "found")


def test_a_full_disk_is_refused_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def refuse(folder: Path, *, need_bytes: int, purpose: str) -> None:
        asked.append(need_bytes)
        raise CapacityError(f"{folder}: {purpose}")

    monkeypatch.setattr(searching, "require_space", refuse)
    with pytest.raises(CapacityError):
        found(tmp_path, b"a\n" * 50, "a", GrepOutput.LINES)
    assert asked == [400]
