"""How the OpenSSH client gets to a host: its options, for every use of it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from boardcluster.errors import HostError, RemoteError, SpecError, UnreachableError
from boardcluster.remote.gate import run_program
from boardcluster.remote.ssh_words import NO_STATUS, connection_failure

__all__ = [
    "CONNECT_SECONDS",
    "Patience",
    "Silence",
    "SshRoute",
    "check_destination",
    "client_settings",
    "ssh_options",
]

CONNECT_SECONDS = 10
_ALIVE_SECONDS = 10
_ALIVE_COUNT = 3
"""A connection over which nothing comes for so many times so long is dead."""

_PERSIST_SECONDS = 60
_SILENT_SECONDS = 10.0
_SOCKET_PATH_BYTES_MAX = 104
_SOCKET_NAME_BYTES = 58
"""A slash, the 40 digits of %C, and the 17 characters that ssh adds while it makes the socket."""

_SLOW_KEY_EXCHANGE = "sntrup761"
"""Begins the names of what OpenSSH 9.0 to 9.8 offer first; its key pair takes six times the
processor time of all the rest of a connection."""

_DESTINATION = re.compile(r"(?!-)(ssh://)?([^\s/@-][^\s/@]*@)?[^\s/@-][^\s/@]*")


@dataclass(slots=True, kw_only=True)
class Patience:
    """How long it may take to reach a host."""

    connect_seconds: int = CONNECT_SECONDS
    """Longest wait for a connection that is not there yet."""


@dataclass(slots=True)
class Silence:
    """What is known of a host that did not answer a moment ago.

    Each try at a dead host takes its whole time-out; a driver that ends a run on one makes many.
    """

    error: UnreachableError | None = None
    """How the last try ended."""
    until_seconds: float = 0.0
    """So long, by the monotonic clock, no other is made."""

    def note(self, error: UnreachableError) -> None:
        """Take note of a try without an answer."""
        self.error = error
        self.until_seconds = time.monotonic() + _SILENT_SECONDS

    def check(self) -> None:
        """Say again at once what the last try said.

        Raises:
            UnreachableError: it was a moment ago.
        """
        if self.error is not None and time.monotonic() < self.until_seconds:
            raise UnreachableError(self.error.message, hint=self.error.hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class SshRoute:
    """How OpenSSH gets to a host.

    Raises:
        SpecError: the host could be taken for an option, or is no destination at all.
        HostError: the path of ``control`` is too long for a socket.
    """

    host: str
    """Any destination OpenSSH takes: ``[USER@]HOST`` or ``ssh://[USER@]HOST[:PORT]``, resolved by
    the user's own configuration."""
    known_hosts: Path
    """File of the host keys to believe; no other key is."""
    control: Path
    """Existing folder that only we may enter, for the sockets of shared connections; a short path,
    because a socket's is limited to 104 bytes."""
    identity: Path | None = None
    """Private key file to offer as well; None for only what the configuration says."""
    patience: Patience = field(default_factory=Patience, compare=False, repr=False)
    """Shared by all routes to the boards of a cluster."""
    silence: Silence = field(default_factory=Silence, compare=False, repr=False)
    """Shared by all who go this way."""
    _settings: dict[str, str] = field(default_factory=dict, init=False, compare=False, repr=False)
    _offers: list[Sequence[str]] = field(
        default_factory=list, init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        check_destination(self.host)
        if len(os.fsencode(self.control)) + _SOCKET_NAME_BYTES > _SOCKET_PATH_BYTES_MAX:
            raise HostError(
                f"the path of {self.control} is too long for the sockets of shared connections",
                hint="set TMPDIR to a folder with a short path, such as /tmp",
            )

    def settings(self) -> dict[str, str]:
        """Return what the user's configuration says of the host, asked once.

        Raises:
            HostError: ssh is missing or does not accept the user's configuration.
            UnreachableError: the host's name cannot be resolved.
        """
        if not self._settings:
            self._settings.update(client_settings(self.host, identity=self.identity))
        return self._settings

    def command(self, *words: str) -> list[str]:
        """Return the ssh command line up to and with the host, further options before it.

        Raises:
            UnreachableError: the host's name cannot be resolved.
        """
        return self._line(*self._key_exchange(), *words)

    def closing_command(self) -> list[str]:
        """Return the command line that ends the shared connection."""
        return self._line("-O", "exit")

    def _line(self, *words: str) -> list[str]:
        return [
            "ssh",
            *("-o", f"ConnectTimeout={self.patience.connect_seconds}"),  # of two it takes the first
            *ssh_options(self.known_hosts, identity=self.identity),
            *("-o", "StrictHostKeyChecking=yes"),
            *("-o", "ControlMaster=auto"),
            *("-o", f"ControlPath={_value(self.control / '%C', tokens=True)}"),
            *("-o", f"ControlPersist={_PERSIST_SECONDS}"),
            *words,
            *("--", self.host),
        ]

    def _key_exchange(self) -> Sequence[str]:
        """Return the option that offers slow key exchanges last, unless the user has chosen any."""
        if not self._offers:
            try:
                names = self.settings().get("kexalgorithms", "").split(",")
            except HostError:  # ssh itself says so when it runs
                return ()
            quick = ",".join(sorted(names, key=lambda name: name.startswith(_SLOW_KEY_EXCHANGE)))
            chosen = quick == ",".join(names) or _offered(self.host, quick) != quick
            self._offers.append(() if chosen else ("-o", f"KexAlgorithms={quick}"))
        return self._offers[0]


def check_destination(host: str) -> None:
    """Refuse what OpenSSH could take for an option, and what is no destination.

    Raises:
        SpecError: it is one of these.
    """
    if not _DESTINATION.fullmatch(host):
        raise SpecError(
            f"{host!r} is not a host that ssh could reach",
            hint="write [USER@]HOST or ssh://[USER@]HOST:PORT; no part may begin with a hyphen",
        )


def ssh_options(known_hosts: Path, *, identity: Path | None = None) -> list[str]:
    """Return what every use of the client has in common.

    It never asks, never forwards, believes only our own file of host keys, and does nothing else
    that the user's configuration may want of an interactive login.
    """
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": str(CONNECT_SECONDS),
        "ServerAliveInterval": str(_ALIVE_SECONDS),
        "ServerAliveCountMax": str(_ALIVE_COUNT),
        "LogLevel": "ERROR",
        "UserKnownHostsFile": _value(known_hosts),
        "GlobalKnownHostsFile": "none",
        "KnownHostsCommand": "none",
        "VerifyHostKeyDNS": "no",
        "UpdateHostKeys": "no",
        "HashKnownHosts": "no",
        "ClearAllForwardings": "yes",
        "ForwardAgent": "no",
        "ForwardX11": "no",
        "PermitLocalCommand": "no",
        "RemoteCommand": "none",
    }
    if identity is not None:
        options["IdentityFile"] = _value(identity)
    words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    return ["-T", *words]


def client_settings(host: str, *, identity: Path | None = None) -> dict[str, str]:
    """Return what the user's configuration says of a host, as ``ssh -G`` does; connects to nobody.

    Raises:
        HostError: ssh is missing or does not accept the user's configuration.
    """
    none = Path("none")
    done = run_program(
        ["ssh", *ssh_options(none, identity=identity), "-G", "--", host], check=False
    )
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace")
        raise connection_failure(host, host, words, status=NO_STATUS, known_hosts=none)
    return _rows(done.text)


def _offered(host: str, otherwise: str) -> str:
    """Return the key exchanges of ssh's own configuration files, of those without any others.

    Of a setting that is there several times ssh takes the first (ssh_config(5)).
    """
    files = "Include ~/.ssh/config\nInclude /etc/ssh/ssh_config\n"
    done = run_program(
        ["ssh", "-F", "/dev/stdin", "-G", "--", host],
        stdin=f"{files}Host *\n  KexAlgorithms {otherwise}\n".encode(),
        check=False,
    )
    if done.returncode < 0:  # Ctrl-C: nothing may be started after it
        raise RemoteError(f"{host}: ssh was ended while it read its configuration")
    return _rows(done.text).get("kexalgorithms", "")


def _rows(text: str) -> dict[str, str]:
    return dict(line.partition(" ")[::2] for line in text.splitlines())


def _value(path: Path, *, tokens: bool = False) -> str:
    """Quote a path as an option's value; only with ``tokens`` does a per cent sign mean one."""
    folder, name = (path.parent, path.name) if tokens else (path, "")
    text = re.sub(r'(["\\])', r"\\\1", str(folder)).replace("%", "%%")
    return f'"{text}/{name}"' if name else f'"{text}"'
