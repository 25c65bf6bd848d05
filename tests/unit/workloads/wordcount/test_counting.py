"""The independent count against a second, in-memory one, and every way an output can be wrong."""

import random
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from boardcluster.errors import CapacityError, InputError
from boardcluster.workloads import compare
from boardcluster.workloads.compare import compare_lines, sort_lines
from boardcluster.workloads.wordcount.counting import count_words

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


def count(folder: Path, content: bytes) -> Path:
    source = folder / "source.txt"
    source.write_bytes(content)
    count_words(source, target=folder / "expected", work=folder)
    return folder / "expected"


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("content", ADVERSARIAL.values(), ids=ADVERSARIAL.keys())
def test_counts_as_the_string_tokenizer_does(tmp_path: Path, content: bytes) -> None:
    counted = count(tmp_path, content)

    assert counted.read_bytes() == canonical(tokens(content))


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

    assert counted.read_bytes() == canonical(tokens(text.encode()))


def test_drops_a_byte_order_mark_only_at_the_start(tmp_path: Path) -> None:
    counted = count(tmp_path, b"\xef\xbb\xbfa b\n\xef\xbb\xbfa\n")

    assert counted.read_bytes() == b"a\t1\nb\t1\n\xef\xbb\xbfa\t1\n"


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
    monkeypatch.setattr(compare, "_SORT_MEMORY", "1M")
    content = b"".join(b"word%d\n" % (index * 7919 % 300_007) for index in range(400_000))

    counted = count(tmp_path, content)

    assert counted.read_bytes() == canonical(tokens(content))


def test_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*absent"):
        count_words(tmp_path / "absent", target=tmp_path / "expected", work=tmp_path)


def test_refuses_beforehand_what_the_disk_cannot_hold(tmp_path: Path) -> None:
    source = tmp_path / "sparse"
    with source.open("wb") as stream:
        stream.truncate(1 << 42)

    with pytest.raises(CapacityError, match=r"11 TB"):
        count_words(source, target=tmp_path / "expected", work=tmp_path)


def judged(folder: Path, expected: bytes, *parts: bytes) -> str:
    """Say how the parts of an output differ from a count; empty if they do not."""
    right = write(folder / "right", expected)
    files = [write(folder / f"part-{number}", part) for number, part in enumerate(parts)]
    sort_lines(files, target=folder / "actual", work=folder, by_word=True)
    return str(compare_lines(right, folder / "actual", by_word=True) or "")


def test_parts_of_an_engine_in_any_order_are_right(tmp_path: Path) -> None:
    expected = count(tmp_path, b"".join(ADVERSARIAL.values())).read_bytes()
    lines = expected.split(b"\n")[:-1]
    random.Random(3).shuffle(lines)
    first, last = b"\n".join(lines[::2]) + b"\n", b"\n".join(lines[1::2])

    assert judged(tmp_path, expected, first, b"", last) == ""


RIGHT = b"a\t1\na\x01\t2\nb\t2\nc\t3\n"


@pytest.mark.parametrize(
    ("actual", "missing", "extra"),
    [
        (RIGHT.replace(b"a\t1\n", b""), [r"'a\t1'"], []),
        (RIGHT.replace(b"c\t3\n", b""), [r"'c\t3'"], []),
        (b"", [r"'a\t1'", r"'a\x01\t2'", r"'b\t2'", r"'c\t3'"], []),
        (RIGHT + b"\t4\n", [], [r"'\t4'"]),
        (RIGHT + b"d\t1\n", [], [r"'d\t1'"]),
        (RIGHT + b"a\x02\t1\n", [], [r"'a\x02\t1'"]),
        (RIGHT.replace(b"b\t2", b"b\t1"), [r"'b\t2'"], [r"'b\t1'"]),
        (RIGHT.replace(b"b\t2", b"b\t1\nb\t1"), [r"'b\t2'"], [r"'b\t1'", r"'b\t1'"]),
        (RIGHT + b"a\t1\n", [], [r"'a\t1'"]),
        (RIGHT + b"b 2\n", [], ["'b 2'"]),
        (RIGHT + b"\n", [], ["''"]),
        (RIGHT.replace(b"c\t3", b"(c,3)"), [r"'c\t3'"], ["'(c,3)'"]),
    ],
)
def test_every_deviation_is_found(
    tmp_path: Path, actual: bytes, missing: list[str], extra: list[str]
) -> None:
    said = judged(tmp_path, RIGHT, actual).splitlines()

    assert said[0].startswith(f"{len(missing)} lines are missing, {len(extra)} are not expected;")
    assert sorted(said[1:]) == sorted(
        [f"  missing: {line}" for line in missing] + [f"  not expected: {line}" for line in extra]
    )


def test_one_changed_digit_among_many_words_is_found(tmp_path: Path) -> None:
    right = canonical({b"w%06d" % index: 5 for index in range(50_000)})

    said = judged(tmp_path, right, right.replace(b"w031415\t5", b"w031415\t6"))

    assert said.splitlines()[1:] == [r"  missing: 'w031415\t5'", r"  not expected: 'w031415\t6'"]
