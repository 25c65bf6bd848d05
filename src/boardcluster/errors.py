"""Everything boardcluster raises on purpose.

    BoardclusterError                 exit code
    +-- UsageError                    2   wrong option, argument or combination
    +-- SpecError                     3   a TOML file is wrong: line, key, allowed, nearest
    +-- InputError                    4   an input file is missing, empty, binary or unreadable
    +-- HostError                     5   this machine lacks a tool, a right or memory
    |   +-- CapacityError             5   it does not fit; the arithmetic is shown
    |   +-- AddressError              5   a port or address is in use
    +-- InstallError                  6   an engine or data set was not fetched or verified
    +-- ClusterError                  7   the cluster is not in the state the command needs
    |   +-- ClusterNotUpError         7
    |   +-- DaemonError               7   a daemon did not start or died; its last log lines
    |   |   +-- JvmCrashError         7   a daemon's JVM itself crashed
    |   +-- LockedError               7   another driver holds the cluster
    +-- RemoteError                   8   a command on a node failed, or it is out of reach
    |   +-- RemoteTimeoutError        8   a command did not end in time
    |   +-- UnreachableError          8   no connection, or it broke
    |   +-- LoginError                8   refused: no key fits, or sudo asks for a password
    |   +-- HostKeyError              8   the host's key is unknown, or not the known one
    |   +-- ProbeOutputError          8   a tool's output is not what a probe can read
    |   +-- MeterError                8   a power meter does not answer, or not with a reading
    +-- RunError                      9   a job failed, or its output is wrong
    |   +-- StalledError              9   a job did not end in time
    |   +-- VerificationError         9
    |   +-- EmptySelectionError       9   nothing was selected; never a success
    +-- StoreError                   10   the store is damaged or of an unknown version

Ctrl-C and SIGTERM end with 130 and 143 after everything that was started has been stopped. Any
other exception is a defect of ours and ends with 70. Each error says what happened, where, and the
next thing to do: ``hint`` is that next thing, in the imperative, without a full stop.
"""

from __future__ import annotations

__all__ = [
    "EXIT_DEFECT",
    "EXIT_INTERRUPTED",
    "EXIT_TERMINATED",
    "AddressError",
    "BoardclusterError",
    "CapacityError",
    "ClusterError",
    "ClusterNotUpError",
    "DaemonError",
    "EmptySelectionError",
    "HostError",
    "HostKeyError",
    "InputError",
    "InstallError",
    "JvmCrashError",
    "LockedError",
    "LoginError",
    "MeterError",
    "ProbeOutputError",
    "RemoteError",
    "RemoteTimeoutError",
    "RunError",
    "SpecError",
    "StalledError",
    "StoreError",
    "UnreachableError",
    "UsageError",
    "VerificationError",
]

EXIT_DEFECT = 70
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class BoardclusterError(Exception):
    """Base of every error raised on purpose.

    Args:
        message: what happened and where; may span lines.
        hint: the next thing to do.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  -> {self.hint}" if self.hint else self.message


class UsageError(BoardclusterError):
    """A wrong option, argument or combination of them."""

    exit_code = 2


class SpecError(BoardclusterError):
    """A specification file is wrong."""

    exit_code = 3


class InputError(BoardclusterError):
    """An input file is missing, empty, unreadable or not what it should be."""

    exit_code = 4


class HostError(BoardclusterError):
    """This machine lacks a tool, a right or a resource."""

    exit_code = 5


class CapacityError(HostError):
    """What was asked for does not fit; the message shows the arithmetic."""


class AddressError(HostError):
    """A port or an address is already in use."""


class InstallError(BoardclusterError):
    """An engine, a runtime or a data set could not be fetched or did not verify."""

    exit_code = 6


class ClusterError(BoardclusterError):
    """The cluster is not in the state that the command needs."""

    exit_code = 7


class ClusterNotUpError(ClusterError):
    """The command needs a running cluster."""


class DaemonError(ClusterError):
    """A daemon did not start, did not become healthy, or died."""


class JvmCrashError(DaemonError):
    """A daemon's JVM crashed, which is never the daemon's own doing."""


class LockedError(ClusterError):
    """Another driver holds the cluster."""


class RemoteError(BoardclusterError):
    """A command on a node failed or the node cannot be reached."""

    exit_code = 8


class RemoteTimeoutError(RemoteError):
    """A command did not end in time and was ended.

    Args:
        message: what happened and where.
        hint: the next thing to do.
        stderr: what it had written to standard error, if that was captured.
    """

    def __init__(self, message: str, *, hint: str = "", stderr: bytes = b"") -> None:
        super().__init__(message, hint=hint)
        self.stderr = stderr


class UnreachableError(RemoteError):
    """A node does not answer, or the connection to it broke."""


class LoginError(RemoteError):
    """A node answers but refuses us: no key fits, or sudo asks for a password."""


class HostKeyError(RemoteError):
    """A node shows a host key that is unknown, or another one than before."""


class ProbeOutputError(RemoteError):
    """A tool's output is not what a probe can read; the message holds the line."""


class MeterError(RemoteError):
    """A power meter does not answer, or not with a reading."""


class RunError(BoardclusterError):
    """A job failed."""

    exit_code = 9


class StalledError(RunError):
    """A job did not end in time; the message holds the last state seen."""


class VerificationError(RunError):
    """A job ended well but its output is wrong."""


class EmptySelectionError(RunError):
    """Nothing was selected; an empty selection is never a success."""


class StoreError(BoardclusterError):
    """The store is damaged or of an unknown version."""

    exit_code = 10
