"""The load generator: built once for each kind of processor, kept in the driver's cache.

It is one static program, so what was built on a machine runs on every other of its kind.
"""

from __future__ import annotations

import hashlib
import secrets
from importlib import resources
from pathlib import Path

from boardcluster.errors import HostError, RemoteError
from boardcluster.fetch.cache import Progress, hold_lock, writing
from boardcluster.remote.base import Remote
from boardcluster.remote.local import LocalRemote

__all__ = ["CONNECTIONS_MOST", "SOURCE", "have_loadgen"]

SOURCE = "loadgen.c"
"""The program's text, beside this module."""

CONNECTIONS_MOST = 4096
"""Connections that it can hold, as its source says."""

_COMPILER = ("gcc", "-std=gnu11", "-O2", "-static")
_SECONDS = 120.0


def have_loadgen(
    remote: Remote, *, cache: Path, folder: str, shared: bool, progress: Progress
) -> str:
    """Return the path of the load generator on a node; build and copy it if it is not there.

    Args:
        remote: the node.
        cache: the driver's cache folder.
        folder: a folder of the node for a copy, if it does not see the cache.
        shared: whether it sees this machine's files.
        progress: told what is being done.

    Raises:
        HostError: it cannot be built; says what is missing and what helps.
    """
    text = resources.files(__package__).joinpath(SOURCE).read_bytes()
    machine = remote.run(["uname", "-m"]).text.strip()
    if not machine.isidentifier():  # becomes part of a path on this machine
        raise RemoteError(f"{remote.name}: `uname -m` says {machine[:80]!r}")
    recipe = hashlib.sha256(text + " ".join(_COMPILER).encode()).hexdigest()[:12]
    place = cache.absolute() / "loadgen" / f"{machine}-{recipe}"
    with writing(place.parent):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.parent.chmod(0o755)  # whatever the umask: jobs of emulated nodes have another user
    with hold_lock(place.with_name(f".{place.name}.lock"), purpose="building the load generator"):
        if not place.is_file() or not place.stat().st_size:  # a power cut may leave it empty
            here = LocalRemote("this machine")
            is_kind = here.run(["uname", "-m"]).text.strip() == machine
            progress("building the load generator", 0, 0)
            _build(here if is_kind else remote, place)
    if shared:
        return str(place)
    there = f"{folder}/{place.name}"
    if remote.run(["test", "-x", there, "-a", "-s", there], check=False).returncode != 0:
        partial = f"{there}.{secrets.token_hex(4)}"
        remote.put(place, partial)
        remote.run(["sh", "-c", 'chmod 755 "$0" && mv "$0" "$1"', partial, there])
    return there


def _build(builder: Remote, place: Path) -> None:
    work = builder.run(["mktemp", "-d"]).text.strip()
    try:
        with resources.as_file(resources.files(__package__).joinpath(SOURCE)) as path:
            builder.put(path, f"{work}/{SOURCE}")
        builder.run(
            [*_COMPILER, "-o", f"{work}/loadgen", f"{work}/{SOURCE}"], timeout_seconds=_SECONDS
        )
        partial = place.with_name(f".partial-{secrets.token_hex(4)}")
        builder.get(f"{work}/loadgen", partial)
        partial.chmod(0o755)
        partial.replace(place)
    except (RemoteError, HostError) as error:
        said = (error.message.strip().splitlines() or ["no word"])[-1][-300:]
        raise HostError(
            f"the load generator cannot be built on {builder.name}: {said}",
            hint=f"run `sudo apt-get install -y gcc libc6-dev` on {builder.name}",
        ) from error
    finally:
        builder.run(["rm", "-rf", work], check=False)
