"""Any text file as input: size, cache and every kind of bad file."""

import bz2
import gzip
import hashlib
import itertools
import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from boardcluster.datasets import text
from boardcluster.datasets.text import from_file, size_label, whole_size_bytes
from boardcluster.errors import CapacityError, HostError, InputError
from boardcluster.fetch.cache import hold_lock

LINES = b"year,carrier\n2013,UA\n2013,AA\n2014,\xc3\xa9\n"


def source(folder: Path, content: bytes, name: str = "flights.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def leftovers(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.glob("*") if path.suffix in (".part", ".txt"))


def test_keeps_a_file_as_it_is(tmp_path: Path) -> None:
    content = LINES + b"no newline"

    dataset = from_file(source(tmp_path, content), size_bytes=None, cache=tmp_path / "cache")

    assert dataset.path.read_bytes() == content
    assert dataset.size_bytes == len(content)
    assert dataset.sha256 == hashlib.sha256(content).hexdigest()
    assert dataset.name == f"flights-{len(content)}B"
    assert dataset.source == "the file flights.csv, unchanged"


@pytest.mark.parametrize("content", [LINES, LINES + b"no newline", b"\n", b"a\n", b"abc"])
@pytest.mark.parametrize("size_bytes", [5, 13, 14, 36, 37, 38, 48, 1000, 3_500_001])
def test_grows_by_repetition_and_crops_at_a_line_end(
    tmp_path: Path, content: bytes, size_bytes: int
) -> None:
    unit = content if content.endswith(b"\n") else content + b"\n"
    longest = max(len(line) for line in unit.splitlines(keepends=True))
    endless = unit * (size_bytes // len(unit) + 1)
    expected = endless[: endless.rfind(b"\n", 0, size_bytes) + 1]
    path = source(tmp_path, content)
    if not expected:
        with pytest.raises(InputError, match=r"first line of .* is longer than the requested"):
            from_file(path, size_bytes=size_bytes, cache=tmp_path / "cache")
        assert leftovers(tmp_path / "cache") == []
        return

    dataset = from_file(path, size_bytes=size_bytes, cache=tmp_path / "cache")

    assert dataset.path.read_bytes() == expected
    assert size_bytes - longest < dataset.size_bytes <= size_bytes
    assert dataset.size_bytes == len(expected)
    assert dataset.sha256 == hashlib.sha256(expected).hexdigest()
    assert leftovers(tmp_path / "cache") == [dataset.path.name]


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7, 64])
def test_pieces_of_any_size_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    monkeypatch.setattr(text, "_CHUNK_BYTES", chunk_bytes)
    path = source(tmp_path, LINES)

    dataset = from_file(path, size_bytes=100, cache=tmp_path / "cache")

    assert dataset.path.read_bytes() == LINES * 2 + LINES[:21]


def test_a_line_longer_than_every_buffer(tmp_path: Path) -> None:
    content = b"short\n" + b"x" * 5_000_000 + b"\nlast\n"

    dataset = from_file(source(tmp_path, content), size_bytes=4_000_000, cache=tmp_path / "cache")

    assert dataset.path.read_bytes() == b"short\n"
    assert dataset.sha256 == hashlib.sha256(b"short\n").hexdigest()


@pytest.mark.parametrize("name", ["flights.csv.bz2", "flights.csv"])
def test_unpacks_bzip2_by_name_or_content(tmp_path: Path, name: str) -> None:
    packed = bz2.compress(LINES[:20]) + bz2.compress(LINES[20:])  # as pbzip2 writes: two streams

    dataset = from_file(source(tmp_path, packed, name), size_bytes=None, cache=tmp_path / "cache")

    assert dataset.path.read_bytes() == LINES
    assert dataset.name == f"flights-{len(LINES)}B"


def test_says_how_the_result_was_made(tmp_path: Path) -> None:
    path = source(tmp_path, b"0123456\n" * 4)

    def made(size_bytes: int) -> str:
        return from_file(
            path, size_bytes=size_bytes, cache=tmp_path / "cache", name="n", origin="numbers"
        ).source

    assert made(16) == "numbers, cropped at a line end"
    assert made(31) == "numbers, cropped at a line end"
    assert made(32) == "numbers, whole"
    path.write_bytes(b"0123456\n" * 3 + b"no end")
    assert made(30) == "numbers, cropped at a line end"
    assert made(31) == "numbers, whole"
    path.write_bytes(b"0123456\n" * 4)
    assert made(80) == "numbers, repeated 2.50 times and cropped at a line end"


@pytest.mark.parametrize("content", [LINES, LINES + b"no newline", b"abc"])
def test_at_its_whole_size_nothing_of_a_text_is_cut(tmp_path: Path, content: bytes) -> None:
    path, cache = source(tmp_path, content), tmp_path / "cache"
    whole = from_file(path, size_bytes=whole_size_bytes(path, cache=cache), cache=cache)
    assert whole.path.read_bytes() == content.removesuffix(b"\n") + b"\n"


def test_a_second_call_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = source(tmp_path, LINES)
    first = from_file(path, size_bytes=100, cache=tmp_path / "cache")

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("content was read again")

    monkeypatch.setattr(text, "_checked_text", refuse)
    monkeypatch.setattr("boardcluster.datasets.text.sha256_of", refuse)
    monkeypatch.setattr("boardcluster.fetch.cache.sha256_of", refuse)

    assert from_file(path, size_bytes=100, cache=tmp_path / "cache") == first


def test_the_same_content_under_another_name_is_prepared_once(tmp_path: Path) -> None:
    first = from_file(source(tmp_path, LINES, "a"), size_bytes=100, cache=tmp_path / "cache")
    second = from_file(source(tmp_path, LINES, "b"), size_bytes=100, cache=tmp_path / "cache")

    assert first.path == second.path


def test_a_changed_source_is_another_dataset(tmp_path: Path) -> None:
    path = source(tmp_path, LINES)
    first = from_file(path, size_bytes=None, cache=tmp_path / "cache")
    path.write_bytes(LINES + b"2015,DL\n")

    second = from_file(path, size_bytes=None, cache=tmp_path / "cache")

    assert second.path != first.path
    assert second.path.read_bytes() == LINES + b"2015,DL\n"


def test_a_damaged_cache_is_mended(tmp_path: Path) -> None:
    path = source(tmp_path, LINES)
    first = from_file(path, size_bytes=100, cache=tmp_path / "cache")
    whole = first.path.read_bytes()
    for damage in (whole[:-1], whole.replace(b"UA", b"XX"), b""):
        first.path.write_bytes(damage)

        assert from_file(path, size_bytes=100, cache=tmp_path / "cache") == first
        assert first.path.read_bytes() == whole


def test_a_touched_cache_is_checked_and_kept(tmp_path: Path) -> None:
    path = source(tmp_path, LINES)
    first = from_file(path, size_bytes=100, cache=tmp_path / "cache")
    os.utime(first.path, ns=(1, 1))
    inode = first.path.stat().st_ino

    assert from_file(path, size_bytes=100, cache=tmp_path / "cache") == first
    assert first.path.stat().st_ino == inode


@pytest.mark.parametrize("sidecar", [b"", b"{", b"[]", b'{"sha256": "x"}', None])
def test_a_lost_sidecar_is_rebuilt(tmp_path: Path, sidecar: bytes | None) -> None:
    path = source(tmp_path, LINES)
    first = from_file(path, size_bytes=100, cache=tmp_path / "cache")
    place = first.path.with_name(f"{first.path.name}.json")
    if sidecar is None:
        place.unlink()
    else:
        place.write_bytes(sidecar)

    assert from_file(path, size_bytes=100, cache=tmp_path / "cache") == first
    assert json.loads(place.read_text())["sha256"] == first.sha256


def test_what_a_killed_run_left_does_no_harm(tmp_path: Path) -> None:
    path = source(tmp_path, LINES)
    first = from_file(path, size_bytes=100, cache=tmp_path / "cache")
    first.path.rename(first.path.with_name(f"{first.path.name}.part"))

    assert from_file(path, size_bytes=100, cache=tmp_path / "cache") == first
    assert leftovers(tmp_path / "cache") == [first.path.name]


def test_what_killed_runs_left_takes_no_room_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    path = source(tmp_path, LINES)
    first = from_file(path, size_bytes=100, cache=cache)
    for size in (100, 2000):  # of the same size, and of another one
        first.path.with_name(f"{first.path.stem.split('-')[0]}-{size}.txt.part").write_bytes(b"x")
    busy = cache / "0123456789abcdef-5.txt.part"
    busy.write_bytes(b"being written")
    seen: list[list[str]] = []
    monkeypatch.setattr(
        text, "require_space", lambda *_, **__: seen.append(sorted(map(str, cache.glob("*.part"))))
    )
    first.path.unlink()
    with hold_lock(cache / "0123456789abcdef-5.txt.lock", purpose="another process"):
        assert from_file(path, size_bytes=100, cache=cache) == first
    assert seen == [[str(busy)]]


def test_two_at_once_give_one_whole_result(tmp_path: Path) -> None:
    path = source(tmp_path, LINES)
    found = []

    def prepare() -> None:
        found.append(from_file(path, size_bytes=8_000_000, cache=tmp_path / "cache"))

    threads = [threading.Thread(target=prepare) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    assert len(set(found)) == 1
    assert hashlib.sha256(found[0].path.read_bytes()).hexdigest() == found[0].sha256


def refused(path: Path, cache: Path, *, size_bytes: int | None = None) -> InputError:
    with pytest.raises(InputError) as caught:
        from_file(path, size_bytes=size_bytes, cache=cache)
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert leftovers(cache) == []
    return caught.value


def test_missing_empty_and_folder(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "absent", tmp_path / "cache").message
    beneath = source(tmp_path, b"a") / "x"
    assert "no such file" in refused(beneath, tmp_path / "cache").message
    assert "is empty" in refused(source(tmp_path, b"", "empty"), tmp_path / "cache").message
    assert "is a folder" in refused(tmp_path, tmp_path / "cache").message
    os.mkfifo(tmp_path / "fifo")
    assert "not a regular file" in refused(tmp_path / "fifo", tmp_path / "cache").message


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = source(tmp_path, LINES)
    original = Path.open

    def denied(self: Path, *args: Any, **kwargs: Any) -> Any:
        # A mode of 000 would not stop root, and tests run as root too.
        if self == path:
            raise PermissionError(13, "Permission denied", str(self))
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", denied)

    error = refused(path, tmp_path / "cache")

    assert "no permission to read" in error.message
    assert error.hint == f"run: chmod u+r {path}"


@pytest.mark.parametrize(
    ("content", "place_and_what"),
    [
        (b"ab\ncd\0e\n", "line 2, offset 5: a NUL byte"),
        (b"ab\ncd\xe4e\n", "line 2, offset 5: bytes that are not UTF-8"),
        (b"\xc3\xa9\n\n\xc3(\n", "line 3, offset 4: bytes that are not UTF-8"),
        (b"ab\n\xe2\x82", "line 2, offset 3: bytes that are not UTF-8"),
        (b"\xed\xa0\x80\n", "line 1, offset 0: bytes that are not UTF-8"),
        (b"\xc0\xafx\n", "line 1, offset 0: bytes that are not UTF-8"),
    ],
)
@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 1 << 20])
def test_binary_is_refused_with_its_place(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes,
    place_and_what: str,
    chunk_bytes: int,
) -> None:
    monkeypatch.setattr(text, "_CHUNK_BYTES", chunk_bytes)

    error = refused(source(tmp_path, content), tmp_path / "cache", size_bytes=1000)

    assert error.message.endswith(place_and_what)


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (gzip.compress(LINES, mtime=0), "unpack it with gunzip"),
        (b"PK\x03\x04\x14\0\0\0", "unpack it with unzip"),
        ("über\n".encode("utf-16"), "convert it with iconv -f UTF-16 -t UTF-8"),
        ("über\n".encode("latin-1"), "name a text file, or convert it"),
    ],
)
def test_the_hint_knows_common_formats(tmp_path: Path, content: bytes, hint: str) -> None:
    assert refused(source(tmp_path, content), tmp_path / "cache").hint.startswith(hint)


def test_a_separator_of_unicode_and_a_byte_order_mark_are_text(tmp_path: Path) -> None:
    content = "\ufeffa\u2028b\u00a0\v\n".encode()

    dataset = from_file(source(tmp_path, content), size_bytes=None, cache=tmp_path / "cache")

    assert dataset.path.read_bytes() == content


def test_bad_bzip2(tmp_path: Path) -> None:
    packed = bz2.compress(os.urandom(300_000).hex().encode())
    cache = tmp_path / "cache"

    truncated = refused(source(tmp_path, packed[:-9], "t.bz2"), cache)
    assert "truncated bzip2" in truncated.message
    corrupt = refused(source(tmp_path, packed[:9000] + b"xxxx" + packed[9004:], "c.bz2"), cache)
    assert "not a valid bzip2 file" in corrupt.message
    assert "not a valid bzip2" in refused(source(tmp_path, LINES, "plain.bz2"), cache).message
    empty = refused(source(tmp_path, bz2.compress(b""), "e.bz2"), cache)
    assert "empty after unpacking" in empty.message


def test_a_size_that_makes_no_sense(tmp_path: Path) -> None:
    for size_bytes in (0, -5):
        with pytest.raises(InputError, match="not a size"):
            from_file(source(tmp_path, LINES), size_bytes=size_bytes, cache=tmp_path / "cache")


def test_a_full_disk_is_foreseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type(shutil.disk_usage(tmp_path))(total=10**9, used=0, free=100_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)

    with pytest.raises(CapacityError) as caught:
        from_file(source(tmp_path, LINES), size_bytes=50_000_000, cache=tmp_path / "cache")

    assert "needs 50 MB + 64 MB in reserve" in caught.value.message
    assert "100 MB free: 14 MB missing" in caught.value.message
    assert leftovers(tmp_path / "cache") == []


def test_what_unpacks_to_more_than_the_disk_holds_stops_before_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How large it becomes is known only once it is unpacked."""
    packed = source(tmp_path, bz2.compress(LINES * 200_000), "flights.bz2")
    frees = itertools.chain([70_000_000], itertools.repeat(64_000_000))
    usage = type(shutil.disk_usage(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10**9, 0, next(frees)))

    with pytest.raises(CapacityError, match="64 MB in reserve"):
        from_file(packed, size_bytes=None, cache=tmp_path / "cache")

    assert leftovers(tmp_path / "cache") == []


def test_a_full_disk_in_mid_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **kwargs: Any) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pread", full)

    with pytest.raises(CapacityError, match="the disk became full"):
        from_file(source(tmp_path, LINES), size_bytes=1000, cache=tmp_path / "cache")

    assert leftovers(tmp_path / "cache") == []


def test_a_source_that_changes_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = source(tmp_path, LINES)

    def interfere(what: str, done_bytes: int, total_bytes: int) -> None:
        if what.startswith("preparing"):
            path.write_bytes(LINES + LINES)

    with pytest.raises(InputError, match="changed while it was read"):
        from_file(path, size_bytes=None, cache=tmp_path / "cache", progress=interfere)

    assert leftovers(tmp_path / "cache") == []


def test_a_cache_that_cannot_be(tmp_path: Path) -> None:
    blocked = source(tmp_path, b"a file", "file")

    with pytest.raises(HostError, match="cannot create the folder"):
        from_file(source(tmp_path, LINES), size_bytes=None, cache=blocked / "cache")


def test_progress_reaches_the_size(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []

    from_file(
        source(tmp_path, LINES),
        size_bytes=3_000_000,
        cache=tmp_path / "cache",
        progress=lambda *step: seen.append(step),
    )

    assert ("checking flights.csv", len(LINES), len(LINES)) in seen
    assert seen[-1] == ("preparing flights.csv", 3_000_000, 3_000_000)


@pytest.mark.parametrize(
    ("size_bytes", "label"),
    [
        (256_000_000, "256MB"),
        (3_000_000_000, "3GB"),
        (64 << 20, "64MiB"),
        (1 << 30, "1GiB"),
        (678_123_456, "678MB"),
        (999, "999B"),
    ],
)
def test_size_labels(size_bytes: int, label: str) -> None:
    assert size_label(size_bytes) == label
