"""What TestDFSIO's files must hold: bytes 48 to 97, again and again.

Its tasks write a buffer of 1,000,000 bytes, each ``'0' + i % 50``, as often as the size asks for; 50
divides the buffer, so the row of 50 goes through the whole file.
Source: Apache Hadoop 3.4.2, ``TestDFSIO.WriteMapper`` and ``IOMapperBase``.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from boardcluster.errors import VerificationError

__all__ = ["digest_of_content", "read_content"]

_BUFFER = bytes(range(48, 98)) * 20_000
_HINT = "look at the logs of the job's tasks and of the DataNodes"


def digest_of_content(size_bytes: int) -> str:
    """Return the SHA-256 of a right file of a size."""
    digest = hashlib.sha256()
    for _ in range(size_bytes // len(_BUFFER)):
        digest.update(_BUFFER)
    digest.update(_BUFFER[: size_bytes % len(_BUFFER)])
    return digest.hexdigest()


def read_content(path: Path, *, name: str, size_bytes: int) -> str:
    """Compare a file with what it must hold; return the SHA-256 of what it does hold.

    Args:
        path: the file.
        name: what to call it in a message.
        size_bytes: the size it must have.

    Raises:
        VerificationError: it has another size or another byte; names the first.
    """
    actual_bytes = path.stat().st_size
    if actual_bytes != size_bytes:
        raise VerificationError(
            f"{name} has {actual_bytes} bytes; expected: {size_bytes}", hint=_HINT
        )
    digest = hashlib.sha256()
    offset = 0
    with path.open("rb") as stream:
        while chunk := stream.read(len(_BUFFER)):
            if chunk != _BUFFER[: len(chunk)]:
                place = next(at for at, byte in enumerate(chunk) if byte != _BUFFER[at])
                raise VerificationError(
                    f"{name}: byte {offset + place} is {chunk[place]}; expected: {_BUFFER[place]}",
                    hint=_HINT,
                )
            digest.update(chunk)
            offset += len(chunk)
    return digest.hexdigest()
