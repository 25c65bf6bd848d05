"""Runs ON a worker: what its bricks hold, read from its disk and not through the volume.

    python3 -c THIS RESULT FOLDER...

Writes, for each folder by its name, every file with its size and SHA-256. Standard library only,
like everything that runs on a node.
"""

import hashlib
import json
import os
import stat
import sys

__all__ = ["brick", "digest"]

BUFFER_BYTES = 1 << 20
POINTER_MODE = stat.S_ISVTX
"""Mode of an empty file that says in which other set a file is (GlusterFS, dht-linkfile)."""


def digest(path: str) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with open(path, "rb") as stream:
        while part := stream.read(BUFFER_BYTES):
            found.update(part)
    return found.hexdigest()


def brick(folder: str) -> dict[str, list[object]]:
    """Return size and digest of every file of a brick by its path in the volume."""
    found: dict[str, list[object]] = {}
    for place, names, files in os.walk(folder):
        if place == folder and ".glusterfs" in names:
            names.remove(".glusterfs")
        for name in files:
            path = os.path.join(place, name)
            seen = os.lstat(path)
            if stat.S_IMODE(seen.st_mode) == POINTER_MODE and seen.st_size == 0:
                continue
            found[os.path.relpath(path, folder)] = [seen.st_size, digest(path)]
    return found


if __name__ == "__main__":
    with open(sys.argv[1], "w") as target:
        json.dump({os.path.basename(each): brick(each) for each in sys.argv[2:]}, target)
