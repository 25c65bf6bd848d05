"""The file of host keys of our own: first contact, looking up, writing down.

A key is fetched by ssh itself, up to the point where it would log in. So jump hosts and the user's
configuration apply, and the key is found again under the name under which ssh will look for it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from boardcluster.errors import HostKeyError, RemoteError, RemoteTimeoutError, UnreachableError
from boardcluster.remote.gate import run_program
from boardcluster.remote.ssh_route import check_destination, client_settings, ssh_options
from boardcluster.remote.ssh_words import connection_failure, forget_command

__all__ = ["HostKey", "known", "learn", "trust"]

_AT_ONCE = 16
_LEARN_SECONDS = 60.0
_SSH_PORT = "22"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostKey:
    """A host key."""

    host: str
    """The destination it was asked for."""
    name: str
    """The name under which ssh looks for it: ``pi0`` or ``[pi0]:2222``."""
    kind: str
    """Its type, such as ``ssh-ed25519``."""
    key: str
    """The public key, base64."""
    fingerprint: str
    """What people compare, ``SHA256:`` and 43 characters."""

    @property
    def line(self) -> str:
        """The line of a known-hosts file."""
        return f"{self.name} {self.kind} {self.key}"


def learn(
    hosts: Sequence[str], *, identity: Path | None = None
) -> dict[str, HostKey | RemoteError]:
    """Ask hosts for their keys, several at once, without trusting them and without logging in.

    Returns:
        For each host the key it shows, or why it shows none.

    Raises:
        SpecError: a host is no destination.
        HostError: ssh is missing or does not accept the user's configuration.
    """
    for host in hosts:
        check_destination(host)

    def one(host: str) -> HostKey | RemoteError:
        try:
            return _learn(host, identity)
        except RemoteTimeoutError:
            return UnreachableError(
                f"{host}: no answer within {_LEARN_SECONDS:g} s",
                hint=f"check that `ssh {host} true` works",
            )
        except RemoteError as error:
            return error

    unique = list(dict.fromkeys(hosts))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(unique, pool.map(one, unique), strict=True))


def _learn(host: str, identity: Path | None) -> HostKey:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "known_hosts"
        done = run_program(
            [
                "ssh",
                *ssh_options(file, identity=identity),
                *("-o", "StrictHostKeyChecking=accept-new"),
                *("-o", "ControlPath=none"),
                *("-o", "PreferredAuthentications=none"),
                *("--", host, "true"),
            ],
            timeout_seconds=_LEARN_SECONDS,
            check=False,
        )
        if not file.exists():
            raise connection_failure(
                host,
                host,
                done.stderr.decode(errors="replace"),
                status=done.returncode,
                known_hosts=file,
            )
        (found, *_) = _read(file, host)
        return found


def known(known_hosts: Path, host: str, *, identity: Path | None = None) -> tuple[HostKey, ...]:
    """Return the keys that our file has for a host; none if there is no file yet.

    Raises:
        SpecError: the host is no destination.
        HostError: ssh is missing or does not accept the user's configuration.
    """
    check_destination(host)
    if not known_hosts.exists():
        return ()
    return _find(known_hosts, _name_of(host, identity), host)


def _find(known_hosts: Path, name: str, host: str) -> tuple[HostKey, ...]:
    """Return what a file has under a name, be the name hashed or one of several."""
    done = run_program(["ssh-keygen", "-F", name, "-f", str(known_hosts)], check=False)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "known_hosts"
        file.write_bytes(done.stdout)
        return _read(file, host)


def _name_of(host: str, identity: Path | None) -> str:
    """Return the name under which ssh looks for a host's key, by the user's configuration."""
    settings = client_settings(host, identity=identity)
    alias = settings.get("hostkeyalias", "none")
    if alias != "none":
        return alias
    name = settings["hostname"].lower()
    return name if settings["port"] == _SSH_PORT else f"[{name}]:{settings['port']}"


def _read(file: Path, host: str) -> tuple[HostKey, ...]:
    """Read plain lines of a known-hosts file, each with its fingerprint."""
    keys = []
    for line in file.read_text().splitlines():
        words = line.split()
        if len(words) < 3 or line.startswith(("#", "@")):
            continue
        shown = run_program(["ssh-keygen", "-lf", "-"], stdin=" ".join(words[1:3]).encode())
        keys.append(
            HostKey(
                host=host,
                name=words[0],
                kind=words[1],
                key=words[2],
                fingerprint=shown.text.split()[1],
            )
        )
    return tuple(keys)


def trust(known_hosts: Path, learned: Sequence[HostKey]) -> None:
    """Write accepted keys down, all or none; from now on their hosts are believed with them.

    Raises:
        HostKeyError: the file has another key for a host. It stays as it is.
    """
    text = known_hosts.read_text() if known_hosts.exists() else ""
    if text and not text.endswith("\n"):  # as an editor may leave it
        text += "\n"
    for key in {key.line: key for key in learned}.values():
        mine = _find(known_hosts, key.name, key.host) if text else ()
        if not mine:
            text += f"{key.line}\n"
        elif key.key not in {other.key for other in mine}:
            raise HostKeyError(
                f"{key.host}: {known_hosts} holds another key for {key.name} than "
                f"{key.fingerprint}",
                hint="if you know why it changed, run "
                f"{forget_command(known_hosts, key.name)}, and accept the new one",
            )
    known_hosts.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(  # made with mode 0600
        "w", dir=known_hosts.parent, prefix=".known_hosts-", delete=False
    ) as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    Path(stream.name).replace(known_hosts)
