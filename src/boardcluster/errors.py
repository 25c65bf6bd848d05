"""Everything boardcluster raises on purpose, as one tree, and the exit codes.

Ctrl-C and SIGTERM end with 130 and 143 after everything that was started has been stopped. Any
other exception is a defect of ours and ends with 70. Each error says what happened, where, and the
next thing to do: ``hint`` is that next thing, in the imperative, without a full stop. The pages
errors.md and exit-codes.md of the reference are written from this file.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping

__all__ = [
    "EXIT_CODES",
    "EXIT_DEFECT",
    "EXIT_INTERRUPTED",
    "EXIT_TERMINATED",
    "AddressError",
    "BoardclusterError",
    "CapacityError",
    "ClusterError",
    "ClusterNotUpError",
    "DaemonError",
    "DriverSpaceError",
    "EmptySelectionError",
    "HostError",
    "HostKeyError",
    "InputError",
    "InstallError",
    "JvmCrashError",
    "LockedError",
    "LoginError",
    "MeasuringLimitError",
    "MeterError",
    "NotThereError",
    "OutOfLimitsError",
    "PredictionUnknownError",
    "ProbeOutputError",
    "RemoteError",
    "RemoteTimeoutError",
    "RunError",
    "SpecError",
    "StalledError",
    "StoreError",
    "UnreachableError",
    "UnreadyNameNodeError",
    "UnwatchedError",
    "UsageError",
    "VerificationError",
    "extra_hint",
]

EXIT_DEFECT = 70
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

EXIT_CODES: Mapping[int, str] = {
    0: "done; `status` also when the cluster is down, `doctor` also with warnings",
    2: "wrong option, argument or combination of them",
    3: "a TOML file is wrong",
    4: "an input file is missing, empty, binary or unreadable",
    5: "this machine lacks a tool, a right, memory or disk space; an address or port is in use",
    6: "an engine, a runtime or a data set was not fetched or did not verify",
    7: "the cluster is not in the state that the command needs",
    8: "a command on a node failed or did not end in time, or the node cannot be reached",
    9: "a run failed, an output is wrong, or nothing was selected",
    10: "the store is damaged or of an unknown version",
    11: "a prediction is too uncertain; why, and the run that would help, are shown",
    12: "a cell of `watch-performance` is out of its limits; what it measured is stored",
    EXIT_DEFECT: "a defect of boardcluster; please report it with the lines shown",
    EXIT_INTERRUPTED: "Ctrl-C; everything that the command started has been ended",
    EXIT_TERMINATED: "SIGTERM or SIGHUP; the same",
}
"""What each exit code means."""


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
    """A wrong option, argument or combination of them.

    What to do: see `boardcluster COMMAND --help`.
    """

    exit_code = 2


class SpecError(BoardclusterError):
    """A TOML file is missing or wrong.

    Every problem is listed with line, key, what is allowed and the nearest valid name.

    What to do: edit the file; see the page of its format.
    """

    exit_code = 3


class InputError(BoardclusterError):
    """An input file or program is missing, empty, unreadable, damaged or not text.

    What to do: name another file, or convert it as the hint says.
    """

    exit_code = 4


class HostError(BoardclusterError):
    """This machine lacks a tool or a right: namespaces are not allowed, a folder cannot be written.

    What to do: do what the hint says; `boardcluster doctor` checks more.
    """

    exit_code = 5


class CapacityError(HostError):
    """Memory or disk cannot hold what is asked for; the arithmetic is shown.

    What to do: use fewer workers or a smaller input, or free space.
    """


class DriverSpaceError(CapacityError):
    """The disk of the machine that runs boardcluster cannot hold what is asked for.

    What to do: free space there, or use a larger disk.
    """


class AddressError(HostError):
    """The subnet or a port is in use.

    What to do: end the other cluster, or choose another `subnet`.
    """


class UnwatchedError(HostError):
    """A node or its clock could not be watched as a run began, as in a break of the network.

    What to do: check the network to the node that is named; a campaign repeats the run.
    """


class InstallError(BoardclusterError):
    """Something could not be fetched, or its SHA-256 is not the expected one.

    That may be an engine, a runtime or a data set.

    What to do: check the network and run the command again; what was fetched is kept.
    """

    exit_code = 6


class ClusterError(BoardclusterError):
    """The cluster is not in the state that the command needs, or a node was lost during a campaign.

    What to do: `boardcluster status`, then `down` and `up`.
    """

    exit_code = 7


class ClusterNotUpError(ClusterError):
    """The command needs a running cluster.

    What to do: `boardcluster up`.
    """


class DaemonError(ClusterError):
    """A daemon did not start, stood still while it started, or died.

    The lines of its log that matter are shown.

    What to do: read the log that is named.
    """


class JvmCrashError(DaemonError):
    """The JVM of a daemon itself crashed while starting, twice.

    The second time it ran without class-data archives.

    What to do: try another Java, 17 or 21.
    """


class UnreadyNameNodeError(DaemonError):
    """A daemon gave up because the NameNode took calls but had not finished starting, twice.

    What to do: run `boardcluster up` again.
    """


class LockedError(ClusterError):
    """Another `boardcluster` is busy with this cluster; its command and process are named.

    What to do: wait for it, or end it.
    """


class RemoteError(BoardclusterError):
    """A command on a node failed, or a daemon does not answer.

    What to do: `boardcluster status`.
    """

    exit_code = 8


class RemoteTimeoutError(RemoteError):
    """A command did not end in time, and was ended.

    What to do: `boardcluster status`.

    Args:
        message: what happened and where.
        hint: the next thing to do.
        stderr: what it had written to standard error, if that was captured.
    """

    def __init__(self, message: str, *, hint: str = "", stderr: bytes = b"") -> None:
        super().__init__(message, hint=hint)
        self.stderr = stderr


class NotThereError(RemoteError):
    """A file or folder does not exist on a node or in HDFS, such as what a job should have written.

    What to do: see the log of whatever should have made it.
    """


class UnreachableError(RemoteError):
    """A board does not answer, or a connection was lost for too long.

    What to do: check that it is on and that `ssh HOST true` works.
    """


class LoginError(RemoteError):
    """A board accepts none of your keys, or sudo there asks for a password.

    What to do: load the key, or add the line for sudo in the hint.
    """


class HostKeyError(RemoteError):
    """The host key of a board is unknown, was not accepted, or has changed.

    What to do: `boardcluster init` shows it; for a changed one run the command in the hint, if
    you know why it changed.
    """


class ProbeOutputError(RemoteError):
    """A benchmark program on a node printed something that its probe cannot read.

    The message holds the line.

    What to do: compare the program's version with the probe's page.
    """


class MeterError(RemoteError):
    """A power meter does not answer, or gives no reading; a run continues without energy.

    What to do: check its address and power.
    """


class RunError(BoardclusterError):
    """A job failed, or some runs of a campaign have no verified result.

    What to do: see the reason, and the attempt's folder.
    """

    exit_code = 9


class StalledError(RunError):
    """A job did not end within `--timeout` and was killed; with the last state seen.

    What to do: see that state; give a longer `--timeout`.
    """


class MeasuringLimitError(RunError):
    """The program that measures may have been the limit, so the number is not the cluster's.

    What to do: as the hint says; `boardcluster run FILE --resume` tries the run again.
    """


class VerificationError(RunError):
    """A job succeeded, but its output is wrong; where it differs is shown.

    What to do: keep the attempt's folder: the job or the cluster has a defect.
    """


class EmptySelectionError(RunError):
    """Nothing was selected, which is never a success.

    What to do: see `boardcluster results` for the ids there are.
    """


class PredictionUnknownError(BoardclusterError):
    """What is asked is too far from what was measured, or nothing like it was.

    What to do: make the run that is named, and ask again.
    """

    exit_code = 11


class StoreError(BoardclusterError):
    """The store is damaged, of a newer version, or cannot be written.

    What to do: the hint says which; `boardcluster results --rebuild` for a damaged one.
    """

    exit_code = 10


class OutOfLimitsError(BoardclusterError):
    """A cell of `watch-performance` takes more or less than its limits allow.

    The round itself went well, and is stored.

    What to do: see what changed between the rounds that are named; undo it, or accept it with
    `--new`, which starts a new baseline.
    """

    exit_code = 12


def extra_hint(extra: str) -> str:
    """Say how to install an extra of boardcluster, into the environment that runs it."""
    return f"run {shlex.quote(sys.executable)} -m pip install 'boardcluster[{extra}]'"
