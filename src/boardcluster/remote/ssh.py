"""A node on the other end of the OpenSSH client.

The user's own configuration, agent and jump hosts apply. Every command runs inside a few words of
shell on the node that write a token before it, and the token with its exit status after it. So the
command's own words and status are told from ssh's, and a command that ends with 255 from a
connection that broke. The token is in the command's environment as well: what has to be ended on
the node is found by it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import re
import shlex
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from boardcluster.errors import (
    BoardclusterError,
    CapacityError,
    DriverSpaceError,
    HostKeyError,
    LoginError,
    NotThereError,
    RemoteError,
    RemoteTimeoutError,
    UnreachableError,
)
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.gate import (
    Completed,
    Piped,
    beside,
    cleaning_up,
    run_program,
    shown,
    streaming,
    tail_text,
)
from boardcluster.remote.node_rpc import node_program, start_detached
from boardcluster.remote.ssh_job import run_job
from boardcluster.remote.ssh_route import CONNECT_SECONDS, SshRoute
from boardcluster.remote.ssh_words import command_failure, connection_failure, is_silence
from boardcluster.waiting import DATA_SECONDS_MOST

__all__ = ["SshRemote", "SshRoute"]

JOBS_FOLDER = "/var/lib/boardcluster/tmp"
"""Where a node keeps what is there only while a command runs."""

_MARK = "BOARDCLUSTER_RUN"
"""As in node_agent.py, which takes it off what is to outlive the command."""

_WRAPPER = 'LC_ALL=C.UTF-8; export LC_ALL; echo "$0" >&2; "$@"; echo "$0 $?" >&2'
_PYTHON = ("python3", "-I", "-S", "-c")
_LOADER = "import sys; exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))"
_ARGUMENT_CHARACTERS_MAX = 512
"""Sudo writes every command line into the node's log, which lies on its card: a program given as
text that is longer than this goes by standard input instead, before what stands there."""

_GRACE_SECONDS = 3.0
_CLEANUP_SECONDS = 15.0
_CLOSE_SECONDS = 10.0
_STALLED_COPY_SECONDS = 60
_LARGE_BYTES = 64 << 20
_SPARE_BYTES = 500_000_000
"""With less than 100 MB the NameNode stops writing (dfs.namenode.resource.du.reserved)."""

_PUT_FLAGS = ("-rlpt", "--copy-unsafe-links")
"""Links stay links, unless what they lead to is not copied. Owners are whoever writes."""

_GET_FLAGS = ("-rLpt", "--chmod=ug-s,go-w")
"""No links: nothing that a node sends points at something of the driver's. And no program that runs
as who fetches it, perhaps root: a file that a job made keeps its mode, and becomes the driver's."""

_BROKEN_STATUSES = frozenset({10, 12, 30, 35, 255})
"""Of rsync whose connection broke (rsync(1), EXIT VALUES); the last is ssh's own."""

_SYSTEM_ERROR = re.compile(r"^rsync: .* \((\d+)\)$", re.M)
_BROKEN_ERRORS = frozenset({errno.EPIPE, errno.ECONNRESET, errno.ETIMEDOUT})
"""What rsync gets from the system then; any other error is one of a file, and its reason."""

_COMPARE_NANOSECONDS = "--modify-window=-1"
"""Two versions of a small file may have the same size and be made within one second."""


class _NotBegunError(RemoteError):
    """The ssh of a command was ended by us before the command began."""


class SshRemote:
    """A node that is reached by ssh.

    Args:
        name: the node's name, for messages.
        route: how to get there.
        user: who runs the commands, through ``sudo -n``; empty for the user who logs in.
        jobs: folder of the node for what is there only while something runs; made if missing.
        lost_seconds: for so long a node may be out of reach before a job on it is given up.
    """

    def __init__(
        self,
        name: str,
        route: SshRoute,
        *,
        user: str = "",
        jobs: str = JOBS_FOLDER,
        lost_seconds: float = 120.0,
    ) -> None:
        self._name = name
        self._route = route
        self._user = user
        self._jobs = jobs
        self._lost_seconds = lost_seconds
        self._login = ""

    @property
    def name(self) -> str:
        """The node's name, for messages."""
        return self._name

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_seconds: float = 60.0,
        check: bool = True,
    ) -> Completed:
        """Run a program, in ``/`` unless given; a status above 128 is a signal."""
        become = self._become()
        token = _new_token()
        try:
            done = self._attempt(
                argv,
                token=token,
                become=become,
                stdin=stdin,
                env=env,
                cwd=cwd,
                timeout_seconds=timeout_seconds,
            )
        except (UnreachableError, HostKeyError, LoginError, _NotBegunError):
            raise  # nothing began, and a refused login that is tried twice counts twice there
        except BaseException:
            self._end(token, become)
            raise
        if check and done.returncode != 0:
            raise RemoteError(
                f"{self._name}: command failed with status {done.returncode}: {shown(argv)}\n"
                f"{tail_text(done.stderr or done.stdout)}"
            )
        return done

    def _become(self) -> tuple[str, ...]:
        """Return the prefix that makes the login user the one who is to run commands.

        Others than root gain no rights by set-user-ID or set-group-ID programs, as daemons do not:
        by ``crontab`` or ``at`` a job could start again after everything of its user was ended.
        """
        if not self._user:
            return ()
        if not self._login:
            # The configuration knows: asking the node would cost a round trip for each of them.
            self._login = self._route.settings()["user"]
        if self._login == self._user:
            return ()
        prefix = ("sudo", "-n", "-u", self._user, "--")
        return prefix if self._user == "root" else (*prefix, "setpriv", "--no-new-privs", "--")

    def _attempt(
        self,
        argv: Sequence[str],
        *,
        token: str,
        become: tuple[str, ...],
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_seconds: float = 60.0,
    ) -> Completed:
        """Run a command; raise if it did not run or did not end in time."""
        self._route.silence.check()
        words, data = _shortened(argv, stdin)
        variables = {"LC_ALL": "C.UTF-8", _MARK: token, **(env or {})}
        inside = ["env", f"--chdir={cwd or '/'}", "--", *(f"{k}={v}" for k, v in variables.items())]
        command = shlex.join(["sh", "-c", _WRAPPER, token, *become, *inside, *words])
        try:
            done = run_program(
                [*self._route.command(), command],
                stdin=data,
                timeout_seconds=timeout_seconds,
                check=False,
            )
        except RemoteTimeoutError as error:
            raise self._timed_out(argv, token, error.stderr, timeout_seconds) from error
        before, began, after = done.stderr.partition(f"{token}\n".encode())
        ended = re.search(rb"%b (\d+)\n" % token.encode(), after)
        if ended is None and done.ended_by_us:
            kind = RemoteError if began else _NotBegunError
            raise kind(f"{self._name}: boardcluster ended it, as it stops: {shown(argv)}")
        if not began:
            raise self._no_connection(before, done.returncode)
        self._route.silence.error = None
        if ended is None:
            last = tail_text(after, lines=1) or f"ssh ended with status {done.returncode}"
            raise UnreachableError(
                f"{self._name}: the connection broke while a command ran: {shown(argv)}: {last}",
                hint=f"check power and network of {self._name}",
            )
        status, own_words = int(ended[1]), after[: ended.start()]
        failure = command_failure(
            self._name,
            argv,
            status,
            own_words.decode(errors="replace"),
            user=self._user if become else "",
            login=self._login,
        )
        if failure is not None:
            raise failure
        return Completed(
            argv=tuple(argv),
            returncode=status,
            stdout=done.stdout,
            stderr=own_words,
            duration_seconds=done.duration_seconds,
        )

    def _no_connection(self, words: bytes, status: int) -> BoardclusterError:
        error = connection_failure(
            self._name,
            self._route.host,
            words.decode(errors="replace"),
            status=status,
            known_hosts=self._route.known_hosts,
        )
        if isinstance(error, UnreachableError) and is_silence(words):
            self._route.silence.note(error)
        return error

    def _timed_out(
        self, argv: Sequence[str], token: str, stderr: bytes, timeout_seconds: float
    ) -> RemoteError:
        _, began, words = stderr.partition(f"{token}\n".encode())
        if not began:
            error = UnreachableError(
                f"{self._name}: no connection to {self._route.host} within {timeout_seconds:g} s",
                hint=f"check power and network of {self._name}",
            )
            if timeout_seconds >= CONNECT_SECONDS:  # after less the board may only be busy
                self._route.silence.note(error)
            return error
        return RemoteTimeoutError(
            f"{self._name}: command did not end within {timeout_seconds:g} s: {shown(argv)}\n"
            f"{tail_text(words)}".rstrip(),
            stderr=words,
        )

    def _end(self, token: str, become: tuple[str, ...]) -> None:
        """End a command on the node, as far as the node can be reached."""
        request = {"do": "end_marked", "mark": f"{_MARK}={token}", "grace_seconds": _GRACE_SECONDS}
        with contextlib.suppress(BoardclusterError), cleaning_up():
            self._attempt(
                [*_PYTHON, node_program()],
                token=_new_token(),
                become=become,
                stdin=json.dumps(request).encode(),
                timeout_seconds=_CLEANUP_SECONDS,
            )

    def run_logged(
        self,
        argv: Sequence[str],
        *,
        stdout: Path,
        stderr: Path,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_seconds: float,
    ) -> Completed:
        """Run a long program as ``ssh_job.run_job`` does."""
        return run_job(
            self,
            argv,
            jobs=self._jobs,
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=cwd or "/",
            timeout_seconds=timeout_seconds,
            lost_seconds=self._lost_seconds,
        )

    def streaming(
        self, argv: Sequence[str], *, stdin: bytes = b""
    ) -> contextlib.AbstractContextManager[Piped]:
        """Run a program over the shared connection beside the block."""
        words, data = _shortened(argv, stdin)
        inside = ["env", "--chdir=/", "LC_ALL=C.UTF-8", *words]
        command = shlex.join([*self._become(), *inside])
        return streaming([*self._route.command(), command], stdin=data)

    def start(
        self, argv: Sequence[str], *, log: str, env: Mapping[str, str] | None = None, cwd: str = "/"
    ) -> ProcessRef:
        """Start a program that outlives the connection."""
        return start_detached(self, argv, log=log, env=env, cwd=cwd)

    def put(self, source: Path, target: str) -> None:
        """Copy with rsync; what is put belongs to the user who runs commands."""
        here = str(source.resolve())
        if source.is_dir():
            done = self._copy(*_PUT_FLAGS, "--delete", "--", f"{here}/", f"node:{target}/")
        else:
            done = self._copy(*_PUT_FLAGS, "--", here, f"node:{target}")
        if done.returncode != 0:
            raise self._copy_failure(f"{source} cannot be copied to {target}", done)

    def get(self, source: str, target: Path) -> None:
        """Copy with rsync; the target's name appears only when all of it is there."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".get-") as folder:
            done = self._copy(*_GET_FLAGS, "--", f"node:{PurePosixPath(source)}", f"{folder}/")
            copy = Path(folder, PurePosixPath(source).name)
            if done.returncode != 0 or not copy.exists():
                what = f"{source} cannot be copied from there"
                raise self._copy_failure(what, done, here=True)
            if target.is_dir():
                shutil.rmtree(target)
            copy.replace(target)

    def _copy(self, *words: str) -> Completed:
        """Run rsync; its remote shell is our ssh, its host name a word that we drop."""
        become = shlex.join(self._become())
        shell = f'shift; exec {shlex.join(self._route.command())} "$@"'
        options = [
            f"--rsh=sh -c {_rsync_word(shell)} rsh",
            f"--rsync-path=cd / && {become} rsync",
            f"--timeout={_STALLED_COPY_SECONDS}",
            *("-s", "--mkpath", "--whole-file", _COMPARE_NANOSECONDS),
        ]
        return run_program(
            ["rsync", *options, *words], timeout_seconds=DATA_SECONDS_MOST, check=False
        )

    def _copy_failure(self, what: str, done: Completed, *, here: bool = False) -> BoardclusterError:
        """Say why a copy failed; if it is the way to the node, by the error of a command.

        With ``here`` it was to this machine, whose disk it is then that may be full.
        """
        said, words = tail_text(done.stderr), tail_text(done.stderr, lines=3)
        if done.ended_by_us:
            return RemoteError(f"{self._name}: {what}: boardcluster ended it, as it stops")
        if re.search(r"(link_stat|change_dir) .* failed: No such file or directory", words):
            return NotThereError(f"{self._name}: {what}: it does not exist")
        if "No space left on device" in said:  # often above what a lost connection makes it say
            kind = DriverSpaceError if here else CapacityError
            return kind(
                f"{self._name}: {what}: a disk is full: {said}",
                hint="free space there, or use a larger disk",
            )
        self.run(["rsync", "--version"])
        of_files = {int(each) for each in _SYSTEM_ERROR.findall(said)} - _BROKEN_ERRORS
        if done.returncode in _BROKEN_STATUSES and not of_files:
            return UnreachableError(
                f"{self._name}: {what}: the connection broke: {words}",
                hint=f"check power and network of {self._name}",
            )
        return RemoteError(f"{self._name}: {what}: {words}")

    @contextlib.contextmanager
    def temporary_upload(self, source: Path) -> Iterator[str]:
        """Yield the path of a copy on the node."""
        with self._folder() as folder:
            path = f"{folder}/{source.name}"
            self._require_room(folder, source)
            self.put(source, path)
            yield path

    def _require_room(self, folder: str, source: Path) -> None:
        """Refuse a large file that the node's disk cannot hold, before an hour is spent on it.

        Raises:
            CapacityError: it cannot, or with so little to spare that daemons there would stop.
        """
        size_bytes = source.stat().st_size
        if size_bytes < _LARGE_BYTES:
            return
        shown = self.run(["df", "--block-size=1", "--output=avail", "--", folder]).text
        free_bytes = int(shown.split()[-1])
        if size_bytes + _SPARE_BYTES > free_bytes:
            raise CapacityError(
                f"{self._name}: {source.name} has {size_bytes:,} bytes, and {_SPARE_BYTES:,} must "
                f"stay free, but {folder.rpartition('/')[0]} has {free_bytes:,} bytes free",
                hint=f"free space on {self._name}, or use a smaller input or a larger disk there",
            )

    @contextlib.contextmanager
    def download_on_exit(self, target: Path) -> Iterator[str]:
        """Yield a path on the node; the file is fetched when the block ends well."""
        with self._folder() as folder:
            path = f"{folder}/{target.name}"
            yield path
            self.get(path, target)

    @contextlib.contextmanager
    def _folder(self) -> Iterator[str]:
        """Make a folder on the node that only its user may enter; remove it afterwards."""
        folder = f"{self._jobs}/lent-{uuid.uuid4().hex}"
        remove = ["rm", "-rf", "--", folder]
        try:
            self.run(["mkdir", "-p", "-m", "700", "--", folder])
            yield folder
        except BaseException:
            with contextlib.suppress(BoardclusterError), cleaning_up():
                self.run(remove)
            raise
        self.run(remove)

    def close(self) -> None:
        """End the shared connection, also for others who use it."""
        with contextlib.suppress(BoardclusterError), self.closing():
            pass

    def closing(self) -> contextlib.AbstractContextManager[None]:
        """End the shared connection beside the block."""
        return beside(self._route.closing_command(), patience_seconds=_CLOSE_SECONDS)


def _new_token() -> str:
    return f"boardcluster-{uuid.uuid4().hex}"


def _shortened(argv: Sequence[str], stdin: bytes) -> tuple[list[str], bytes]:
    """Return a command and its input, a long Python program moved from one to the other."""
    words = list(argv)
    if tuple(words[:4]) != _PYTHON or len(words[4]) <= _ARGUMENT_CHARACTERS_MAX:
        return words, stdin
    program = words[4].encode()
    words[4] = _LOADER
    return words, b"%d\n" % len(program) + program + stdin


def _rsync_word(word: str) -> str:
    """Quote a word of rsync's option --rsh, which doubles the quotes inside."""
    return "'" + word.replace("'", "''") + "'"
