"""Which bytes are right."""

import hashlib
from pathlib import Path

import pytest

from boardcluster.errors import VerificationError
from boardcluster.records import Engine
from boardcluster.workloads.dfsio.content import digest_of_content, read_content

SIZE = 2_000_007


def right(engine: Engine, size: int = SIZE) -> bytes:
    if engine is Engine.MAPREDUCE:
        return bytes(size)
    return bytes(ord("0") + at % 50 for at in range(size))


@pytest.mark.parametrize("engine", [Engine.MAPREDUCE, Engine.SPARK])
@pytest.mark.parametrize("size", [1, 1_000_000, SIZE])
def test_a_right_file_has_the_right_digest(tmp_path: Path, engine: Engine, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(right(engine, size))
    digest = hashlib.sha256(right(engine, size)).hexdigest()

    assert digest_of_content(engine, size) == digest
    assert read_content(path, name="file", engine=engine, size_bytes=size) == digest


@pytest.mark.parametrize("engine", [Engine.MAPREDUCE, Engine.SPARK])
@pytest.mark.parametrize("place", [0, 999_999, 1_000_000, SIZE - 1])
def test_one_wrong_byte_is_found_and_named(tmp_path: Path, engine: Engine, place: int) -> None:
    data = bytearray(right(engine))
    before = data[place]
    data[place] ^= 1
    path = tmp_path / "file"
    path.write_bytes(data)

    message = f"test_io_0: byte {place} is {before ^ 1}; expected: {before}"
    with pytest.raises(VerificationError, match=message):
        read_content(path, name="test_io_0", engine=engine, size_bytes=SIZE)


@pytest.mark.parametrize("size", [0, SIZE - 1, SIZE + 1])
def test_a_wrong_size_is_named(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(right(Engine.SPARK, size))

    with pytest.raises(VerificationError, match=f"has {size} bytes; expected: {SIZE}"):
        read_content(path, name="file", engine=Engine.SPARK, size_bytes=SIZE)
