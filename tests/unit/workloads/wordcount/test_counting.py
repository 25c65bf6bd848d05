"""The independent count against a second, in-memory one, and every way an output can be wrong."""

import random
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from boardcluster.errors import CapacityError, InputError, RemoteError, VerificationError
from boardcluster.workloads.wordcount import counting
from boardcluster.workloads.wordcount.counting import (
    Counted,
    Deviation,
    Kind,
    canonical_output,
    compare,
    count_words,
)

ADVERSARIAL = {
    "plain": b"to be or not to be\n",
    "empty": b"",
    "only delimiters": b" \t\r\n\f\n  \n",
    "delimiter first": b"\n\n a a b\n",
    "space first": b" a",
    "empty lines": b"a\n\n\n\nb\n\na\n",
    "no newline at the end": b"a b\nb c",
    "CRLF": b"a b\r\nb c\r\n\r\n",
    "CR alone": b"a\rb\ra",
    "form feed": b"a\fb\f\fa\n",
    "vertical tab is no delimiter": b"a\vb a\vb \v\n",
    "next line, file separators are no delimiters": "a\x85b\x1ca\x1db\x1e\x1f\n".encode(),
    "Unicode spaces are no delimiters": (
        "a\u2028b a\u2029b a\u00a0b \u00a0 \u3000x a\u2028b\n".encode()
    ),
    "byte order is not alphabetical": "é e E z Z \u4e2d \U0001f680 é\n".encode(),
    "bytes below the tab": b"a a\x01 a\x01 a\x08 ab a\n",
    "looks like uniq's output": b"1 12 12 3\n7\n",
    "looks like escapes": rb"\n \t \1 & / - -- -k 100% %b" + b"\n",
    "one very long line": b"x" * 5_000_000 + b" y " + b"x" * 5_000_000,
    "long line of many words": b"ab cde f " * 300_000,
}


def tokens(content: bytes) -> Counter[bytes]:
    return Counter(word for word in re.split(rb"[ \t\n\r\f]+", content) if word)


def canonical(counts: Mapping[bytes, int]) -> bytes:
    return b"".join(b"%b\t%d\n" % (word, counts[word]) for word in sorted(counts))


def count(folder: Path, content: bytes) -> Counted:
    source = folder / "source.txt"
    source.write_bytes(content)
    return count_words(source, target=folder / "expected", work=folder)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("content", ADVERSARIAL.values(), ids=ADVERSARIAL.keys())
def test_counts_as_the_string_tokenizer_does(tmp_path: Path, content: bytes) -> None:
    counted = count(tmp_path, content)

    expected = tokens(content)
    assert counted.path.read_bytes() == canonical(expected)
    assert (counted.records, counted.words) == (len(expected), expected.total())


def test_counts_random_text_in_any_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A user's locale would sort and classify differently.
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LC_COLLATE", "de_DE.UTF-8")
    rng = random.Random(20260101)
    letters = "aäAB\u00a0\u2028-.,1\v\x01"
    text = "".join(rng.choice(letters + " \n\t\r\f") for _ in range(200_000))

    counted = count(tmp_path, text.encode())

    assert counted.path.read_bytes() == canonical(tokens(text.encode()))


def test_drops_a_byte_order_mark_only_at_the_start(tmp_path: Path) -> None:
    counted = count(tmp_path, b"\xef\xbb\xbfa b\n\xef\xbb\xbfa\n")

    assert counted.path.read_bytes() == b"a\t1\nb\t1\n\xef\xbb\xbfa\t1\n"


def test_leaves_nothing_but_the_result(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    source = write(tmp_path / "source", b"b a\n")

    count_words(source, target=tmp_path / "expected", work=work)

    assert list(work.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"work", "source", "expected"}


def test_sorts_on_disk_when_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_SORT_MEMORY", "1M")
    content = b"".join(b"word%d\n" % (index * 7919 % 300_007) for index in range(400_000))

    counted = count(tmp_path, content)

    assert counted.path.read_bytes() == canonical(tokens(content))


def test_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*absent"):
        count_words(tmp_path / "absent", target=tmp_path / "expected", work=tmp_path)


def test_refuses_beforehand_what_the_disk_cannot_hold(tmp_path: Path) -> None:
    source = tmp_path / "sparse"
    with source.open("wb") as stream:
        stream.truncate(1 << 42)

    with pytest.raises(CapacityError, match=r"11 TB"):
        count_words(source, target=tmp_path / "expected", work=tmp_path)


def test_parts_of_an_engine_become_the_same_canonical_file(tmp_path: Path) -> None:
    content = b"".join(ADVERSARIAL.values())
    expected = count(tmp_path, content)
    lines = expected.path.read_bytes().split(b"\n")[:-1]
    random.Random(3).shuffle(lines)
    parts = [
        write(tmp_path / "part-r-00000", b"\n".join(lines[::2]) + b"\n"),
        write(tmp_path / "part-r-00001", b""),
        write(tmp_path / "part-r-00002", b"\n".join(lines[1::2])),
    ]

    actual = canonical_output(parts, target=tmp_path / "actual", work=tmp_path)

    assert actual.path.read_bytes() == expected.path.read_bytes()
    assert (actual.sha256, actual.records, actual.words) == (
        expected.sha256,
        expected.records,
        expected.words,
    )
    assert compare(expected.path, actual.path) is None


def test_part_names_are_never_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    part = write(Path("-o"), b"a\t1\n")

    actual = canonical_output([part], target=tmp_path / "actual", work=tmp_path)

    assert actual.records == 1


@pytest.mark.parametrize(
    "line",
    [
        b"word",
        b"word 3",
        b"(word,3)",
        b"word\t",
        b"word\t0",
        b"word\t-1",
        b"w\tx\t1",
        b"w\t1 ",
        b"",
    ],
)
def test_a_line_of_another_form_is_an_error(tmp_path: Path, line: bytes) -> None:
    part = write(tmp_path / "part", b"a\t1\n" + line + b"\nz\t1\n")

    with pytest.raises(VerificationError, match="is not a word, a tab and a count"):
        canonical_output([part], target=tmp_path / "actual", work=tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["part"]


def test_no_output_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="no part files"):
        canonical_output([], target=tmp_path / "actual", work=tmp_path)
    with pytest.raises(VerificationError, match="part-9"):
        canonical_output([tmp_path / "part-9"], target=tmp_path / "actual", work=tmp_path)


def difference(folder: Path, expected: bytes, actual: bytes) -> list[Deviation]:
    found = compare(write(folder / "left", expected), write(folder / "right", actual))
    assert found is not None
    assert sum(found.deviations.values()) == len(found.first)
    return list(found.first)


RIGHT = b"a\t1\nb\t2\nc\t3\n"


@pytest.mark.parametrize(
    ("actual", "deviations"),
    [
        (b"b\t2\nc\t3\n", [(Kind.MISSING, b"a", 1, 0)]),
        (b"a\t1\nb\t2\n", [(Kind.MISSING, b"c", 3, 0)]),
        (b"", [(Kind.MISSING, b"a", 1, 0), (Kind.MISSING, b"b", 2, 0), (Kind.MISSING, b"c", 3, 0)]),
        (b"\t4\n" + RIGHT, [(Kind.EXTRA, b"", 0, 4)]),
        (RIGHT + b"d\t1\n", [(Kind.EXTRA, b"d", 0, 1)]),
        (b"a\t1\na\x01\t1\nb\t2\nc\t3\n", [(Kind.EXTRA, b"a\x01", 0, 1)]),
        (b"a\t1\nb\t1\nc\t3\n", [(Kind.WRONG_COUNT, b"b", 2, 1)]),
        (
            b"a\t1\nb\t1\nb\t1\nc\t3\n",
            [(Kind.WRONG_COUNT, b"b", 2, 1), (Kind.DUPLICATE, b"b", 2, 1)],
        ),
        (b"a\t1\na\t1\nb\t2\nc\t3\n", [(Kind.DUPLICATE, b"a", 1, 1)]),
        (RIGHT + b"c\t3\n", [(Kind.DUPLICATE, b"c", 3, 3)]),
        (RIGHT + b"d\t1\nd\t1\n", [(Kind.EXTRA, b"d", 0, 1), (Kind.DUPLICATE, b"d", 0, 1)]),
    ],
)  # fmt: skip
def test_every_deviation_is_found(
    tmp_path: Path, actual: bytes, deviations: list[tuple[Kind, bytes, int, int]]
) -> None:
    assert difference(tmp_path, RIGHT, actual) == [
        Deviation(kind=kind, word=word, expected=expected, actual=found)
        for kind, word, expected, found in deviations
    ]


def test_one_changed_digit_among_many_words_is_found(tmp_path: Path) -> None:
    right = canonical({b"w%06d" % index: 5 for index in range(50_000)})
    wrong = right.replace(b"w031415\t5", b"w031415\t6")

    assert difference(tmp_path, right, wrong) == [
        Deviation(kind=Kind.WRONG_COUNT, word=b"w031415", expected=5, actual=6)
    ]


def test_a_difference_is_shown_in_bounded_size(tmp_path: Path) -> None:
    right = canonical({b"%d" % index + b"x" * 10_000: 1 for index in range(100)})

    found = compare(write(tmp_path / "left", right), write(tmp_path / "right", b""))

    assert found is not None
    assert found.deviations == {Kind.MISSING: 100}
    assert str(found).startswith("100 missing; first in byte order:\n  missing '0xxx")
    assert len(str(found)) < 1000


def test_files_out_of_order_are_refused(tmp_path: Path) -> None:
    left = write(tmp_path / "left", b"a\t1\nb\t1\n")
    right = write(tmp_path / "right", b"b\t1\na\t1\n")

    with pytest.raises(VerificationError, match="line 2 of right is not in byte order"):
        compare(left, right)


def test_a_failing_tool_leaves_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(stages: object, *, target: Path, **options: object) -> None:
        target.write_bytes(b"half")
        raise RemoteError("command failed with status 2: sort")

    part = write(tmp_path / "part", b"a\t1\n")
    monkeypatch.setattr(counting, "pipe", fail)

    with pytest.raises(RemoteError):
        count_words(part, target=tmp_path / "expected", work=tmp_path)
    with pytest.raises(RemoteError):
        canonical_output([part], target=tmp_path / "actual", work=tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["part"]
