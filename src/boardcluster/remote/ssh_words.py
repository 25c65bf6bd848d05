"""What OpenSSH, sudo and env say when something goes wrong, turned into our errors.

Only for words that are theirs: ssh's when no command was reached, the others' by their exit status.
Written down from OpenSSH 8.9 to 10.0 and sudo 1.9, in the C locale.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from boardcluster.errors import (
    BoardclusterError,
    HostError,
    HostKeyError,
    LoginError,
    RemoteError,
    UnreachableError,
)

__all__ = ["NO_STATUS", "command_failure", "connection_failure", "forget_command", "is_silence"]

NO_STATUS = 255
"""ssh's own exit status when something is wrong with the connection."""

_SUDO_FAILED = 1
_NOT_FOUND = 127
_LINES_SHOWN = 3

_CHANGED_KEY = re.compile(r"Host key for (\S+) has changed")
_UNKNOWN_KEY = re.compile(r"No \S+ host key is known for (\S+) and you have requested strict")
_OTHER_KEY = re.compile(r"Host key verification failed|REVOKED HOST KEY")
_REFUSED_LOGIN = re.compile(r"Permission denied \(|Too many authentication failures")
_OWN_CONFIGURATION = re.compile(
    r"Bad configuration option|bad configuration options|Bad owner or permissions on"
    r"|too long for Unix domain socket|^command-line|keyword .* extra arguments"
)
_SUDO_REFUSES = re.compile(
    r"a password is required|a terminal is required|not in the sudoers file|may not run sudo"
    r"|is not allowed to (?:execute|run)|must have a tty"
)
_NO_SUCH_USER = re.compile(r"^sudo: unknown user", re.M)
_NO_SUDO = re.compile(r"\bsudo: (?:command )?not found")


def connection_failure(
    node: str, host: str, words: str, *, status: int, known_hosts: Path
) -> BoardclusterError:
    """Return what an ssh that reached no command wrote to standard error, as an error of ours."""
    lines = [line.strip() for line in words.splitlines() if line.strip(" @\t\r\n")]
    text = "; ".join(lines[-_LINES_SHOWN:]) or f"ssh ended with status {status}"
    if error := _key_failure(node, host, words, text, known_hosts):
        return error
    if _REFUSED_LOGIN.search(words):
        return LoginError(
            f"{node}: {host} accepts none of your keys: {text}",
            hint=f"run `ssh-copy-id {host}`, or load the right key with ssh-add",
        )
    if _OWN_CONFIGURATION.search(words):
        return HostError(
            f"ssh does not accept its configuration: {text}", hint="correct ~/.ssh/config"
        )
    if status != NO_STATUS:
        return LoginError(
            f"{node}: {host} accepts the login but runs no command: {text}",
            hint="give that user a POSIX shell and no forced command",
        )
    return UnreachableError(
        f"{node}: cannot reach {host}: {text}",
        hint=f"check that it is on, and that `ssh {host} true` works",
    )


def is_silence(words: bytes) -> bool:
    """Say whether nobody answered, and not somebody who refused."""
    return re.search(rb"timed out|No route to host|Host is down", words) is not None


def _key_failure(
    node: str, host: str, words: str, text: str, known_hosts: Path
) -> HostKeyError | None:
    if found := _CHANGED_KEY.search(words):
        return HostKeyError(
            f"{node}: {host} presents another host key than before: its system was reinstalled, "
            "or another machine answers in its place",
            hint=f"if you know why, run {forget_command(known_hosts, found[1])}, then "
            "`boardcluster up` to see and accept the new one",
        )
    if found := _UNKNOWN_KEY.search(words):
        return HostKeyError(
            f"{node}: the host key of {host} ({found[1]}) is not known",
            hint="run `boardcluster up` to see its fingerprint and accept it",
        )
    if _OTHER_KEY.search(words):
        return HostKeyError(
            f"{node}: {host}: {text}",
            hint=f"look at {known_hosts}; log in once yourself to a jump host",
        )
    return None


def forget_command(known_hosts: Path, name: str) -> str:
    """Return the command that takes a host's keys out of a file."""
    return shlex.join(["ssh-keygen", "-f", str(known_hosts), "-R", name])


def command_failure(
    node: str, argv: Sequence[str], status: int, words: str, *, user: str, login: str
) -> RemoteError | None:
    """Return why a command was not run at all, by its status and standard error; None if it was.

    ``user`` is whom sudo was asked to become, empty if it was not asked; ``login`` who logged in.
    """
    if user and status == _NOT_FOUND and _NO_SUDO.search(words):
        return LoginError(
            f"{node}: sudo is not installed", hint=f"install sudo on {node}, or log in as root"
        )
    last = words.rstrip().rpartition("\n")[2]
    if user and status == _SUDO_FAILED and _SUDO_REFUSES.search(last):
        return LoginError(
            f"{node}: {login} cannot become {user} without a password: {last}",
            hint=f"on {node}: echo '{login} ALL=(ALL) NOPASSWD: ALL' "
            "| sudo tee /etc/sudoers.d/010_boardcluster",
        )
    if user and status == _SUDO_FAILED and _NO_SUCH_USER.search(words):
        return RemoteError(
            f"{node}: there is no user {user}", hint="run `boardcluster up`, which creates it"
        )
    if status == _NOT_FOUND and re.search(rf"^env: \W?{re.escape(argv[0])}\W", words, re.M):
        return RemoteError(
            f"{node}: program not found: {argv[0]}", hint=f"install {argv[0]} on {node}"
        )
    return None
