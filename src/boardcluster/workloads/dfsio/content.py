"""What the files must hold.

TestDFSIO means to write the bytes ``'0' + i % 50``, 48 to 97 again and again, but a task fills its
buffer before the buffer exists (in the constructor of ``WriteMapper``; ``IOMapperBase.configure``
makes the buffer afterwards), so what it writes is zeros. Our Spark job writes the bytes that were
meant. The buffer's 1,000,000 bytes are a multiple of 50, so either row goes through a whole file.
Source: Apache Hadoop 3.4.2, ``TestDFSIO.WriteMapper`` and ``IOMapperBase``, and files it wrote.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from boardcluster.errors import VerificationError
from boardcluster.records import Engine

__all__ = ["digest_of_content", "read_content"]

_BUFFER_BYTES = 1_000_000
_BUFFERS = {
    Engine.MAPREDUCE: bytes(_BUFFER_BYTES),
    Engine.SPARK: bytes(range(48, 98)) * (_BUFFER_BYTES // 50),
}
_HINT = "look at the logs of the job's tasks and of the DataNodes"


def digest_of_content(engine: Engine, size_bytes: int) -> str:
    """Return the SHA-256 of a right file of a size, written by an engine."""
    buffer = _BUFFERS[engine]
    digest = hashlib.sha256()
    for _ in range(size_bytes // _BUFFER_BYTES):
        digest.update(buffer)
    digest.update(buffer[: size_bytes % _BUFFER_BYTES])
    return digest.hexdigest()


def read_content(path: Path, *, name: str, engine: Engine, size_bytes: int) -> str:
    """Compare a file with what it must hold; return the SHA-256 of what it does hold.

    Args:
        path: the file.
        name: what to call it in a message.
        engine: the engine that wrote it.
        size_bytes: the size it must have.

    Raises:
        VerificationError: it has another size or another byte; names the first.
    """
    actual_bytes = path.stat().st_size
    if actual_bytes != size_bytes:
        raise VerificationError(
            f"{name} has {actual_bytes} bytes; expected: {size_bytes}", hint=_HINT
        )
    buffer = _BUFFERS[engine]
    digest = hashlib.sha256()
    offset = 0
    with path.open("rb") as stream:
        while chunk := stream.read(_BUFFER_BYTES):
            if chunk != buffer[: len(chunk)]:
                place = next(at for at, byte in enumerate(chunk) if byte != buffer[at])
                raise VerificationError(
                    f"{name}: byte {offset + place} is {chunk[place]}; expected: {buffer[place]}",
                    hint=_HINT,
                )
            digest.update(chunk)
            offset += len(chunk)
    return digest.hexdigest()
