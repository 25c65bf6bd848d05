"""The one gate for local programs: argument lists, never a shell, always a time-out.

Each program runs in a process group of its own, so that Ctrl-C reaches only us and we end the whole
group, including what a program started inside a PID namespace.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from boardcluster.errors import DriverSpaceError, HostError, RemoteError, RemoteTimeoutError
from boardcluster.waiting import DATA_SECONDS_MOST, wait_until

__all__ = [
    "Completed",
    "LeftRunning",
    "Piped",
    "beside",
    "cleaning_up",
    "end_programs",
    "leave_running",
    "pipe",
    "run_logged",
    "run_program",
    "shown",
    "streaming",
    "tail_text",
]

_GRACE_SECONDS = 5.0
_LAST_WORDS_SECONDS = 1.0
_SHOWN_CHARACTERS = 120
"""Longest argument in a message: class paths and programs given as text are much longer."""

_OUTPUT_BYTES_MAX = 64 << 20
"""Of what a program writes, which is kept in memory: a node may answer with a gigabyte."""
_TAIL_BYTES = 16 << 10
_CHUNK_BYTES = 1 << 16
_PIPE_BYTES = 60 << 10
"""What fits into a pipe before anybody reads it, and a little less."""

_KEPT_VARIABLES = ("PATH", "HOME", "USER", "TMPDIR", "TERM", "SSH_AUTH_SOCK")
_KEPT_PREFIXES = ("PIP_", "SSL_", "REQUESTS_", "XDG_")
_PROXY_SUFFIX = "_proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """One finished program."""

    argv: tuple[str, ...]
    """What ran."""
    returncode: int
    """Exit status; negative is the signal that ended it."""
    stdout: bytes
    """Captured standard output; empty where it went to a file."""
    stderr: bytes
    """Captured standard error; empty where it went to a file."""
    duration_seconds: float
    """Monotonic clock from just before the start to just after the end."""
    ended_by_us: bool = False
    """Whether ``end_programs`` told it to end."""

    @property
    def text(self) -> str:
        """Standard output as text; undecodable bytes become U+FFFD."""
        return self.stdout.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Piped:
    """A program that runs beside us."""

    output: int
    """Descriptor of what it writes. Reading it never waits: there is a ``BlockingIOError`` while
    there is nothing, and no bytes once the program has ended."""
    input: IO[bytes]
    """What it reads; unbuffered."""


def _environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    """Build a small, predictable environment: a stray variable must not change a result."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT_VARIABLES
        or name.startswith(_KEPT_PREFIXES)
        or name.lower().endswith(_PROXY_SUFFIX)
    }
    kept.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    for folder in ("/usr/sbin", "/sbin"):
        if folder not in kept["PATH"].split(":"):
            kept["PATH"] += f":{folder}"
    kept["LC_ALL"] = "C.UTF-8"
    return {**kept, **(extra or {})}


def tail_text(data: bytes | Path, *, lines: int = 12) -> str:
    """Return the last lines of captured output or of a file, for an error message.

    However long they are, no more than 16 KiB are read.
    """
    if isinstance(data, Path):
        try:
            with data.open("rb") as stream:
                stream.seek(0, os.SEEK_END)
                stream.seek(max(0, stream.tell() - _TAIL_BYTES))
                data = stream.read()
        except OSError:
            return ""
    return "\n".join(data[-_TAIL_BYTES:].decode(errors="replace").strip().splitlines()[-lines:])


class _Program(subprocess.Popen[bytes]):
    """A program that was started here."""

    ended_by_us = False
    """Whether ``end_programs`` told it to end."""


_running: dict[int, _Program] = {}
"""Programs that threads other than the main one wait for, by process id; not their clean-ups."""

_cleans_up = ContextVar("_cleans_up", default=False)
"""Whether what this thread starts is a clean-up."""


def end_programs() -> None:
    """End what threads of ours wait for: Ctrl-C reaches only the main thread."""
    for process in tuple(_running.values()):
        process.ended_by_us = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)


@contextlib.contextmanager
def cleaning_up() -> Iterator[None]:
    """Keep ``end_programs`` off what this thread starts in the block, which must end soon."""
    before = _cleans_up.set(True)
    try:
        yield
    finally:
        _cleans_up.reset(before)


@contextlib.contextmanager
def _group(process: _Program) -> Iterator[_Program]:
    """End the whole process group if the block is left before the program ended."""
    if threading.current_thread() is not threading.main_thread() and not _cleans_up.get():
        _running[process.pid] = process
    try:
        yield process
    except BaseException:
        _end_group(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        raise
    finally:
        _running.pop(process.pid, None)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the group, SIGKILL to what is left of it after a grace period, and reap."""

    def ended() -> bool:
        alive = _is_alive(process.pid)
        process.poll()
        return not alive

    for signum, patience_seconds in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signum)
        if wait_until(ended, timeout_seconds=patience_seconds, poll_seconds=0.01):
            return


def _is_alive(group: int) -> bool:
    """Whether a process of the group runs; its leader may be gone, and a zombie does not count."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_bytes().rsplit(b")", 1)[1].split()
                if int(fields[2]) == group and fields[0] not in (b"Z", b"X"):
                    return True
    return False


def _popen(
    argv: Sequence[str],
    *,
    stdin: int | IO[bytes],
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    env: Mapping[str, str] | None,
    cwd: Path | None,
) -> _Program:
    try:
        return _Program(
            list(argv),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=_environment(env),
            cwd=cwd,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise HostError(
            f"program not found: {argv[0]}", hint=f"install {argv[0]} or put it on PATH"
        ) from error
    except PermissionError as error:
        raise HostError(
            f"program cannot be executed: {argv[0]}", hint=f"check the permissions of {argv[0]}"
        ) from error
    except OSError as error:
        raise HostError(
            f"program cannot be run: {argv[0]}: {error.strerror}",
            hint=f"check that {argv[0]} was built for this machine's processor",
        ) from error


def shown(argv: Sequence[str]) -> str:
    """Return a command line for a message, its long arguments cut."""
    words = []
    for word in argv:
        start = word.partition("\n")[0][:_SHOWN_CHARACTERS]
        words.append(word if word == start else f"{start}...")
    return " ".join(words)


def _failure(argv: Sequence[str], returncode: int, output: bytes | Path) -> RemoteError:
    return RemoteError(
        f"command failed with status {returncode}: {shown(argv)}\n{tail_text(output)}"
    )


def _timed_out(argv: Sequence[str], seconds: float, output: bytes | Path) -> RemoteTimeoutError:
    return RemoteTimeoutError(
        f"command did not end within {seconds:g} s: {shown(argv)}\n{tail_text(output)}",
        stderr=output if isinstance(output, bytes) else b"",
    )


def _exchange(
    process: subprocess.Popen[bytes], data: bytes, *, timeout_seconds: float
) -> tuple[bytes, bytes]:
    """Do what ``Popen.communicate`` does, which keeps whatever comes, with a bound on it.

    Raises:
        subprocess.TimeoutExpired: the program did not end in time; with what it complained.
        OverflowError: it wrote more than is kept.
    """
    assert process.stdin is not None  # noqa: S101  asked for as pipes
    assert process.stdout is not None  # noqa: S101
    assert process.stderr is not None  # noqa: S101
    stdout, stderr = bytearray(), bytearray()
    left = memoryview(data)
    deadline = time.monotonic() + timeout_seconds
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, (process.stdout, stdout))
        selector.register(process.stderr, selectors.EVENT_READ, (process.stderr, stderr))
        selector.register(process.stdin, selectors.EVENT_WRITE, (process.stdin, None))
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise subprocess.TimeoutExpired(process.args, timeout_seconds, stderr=bytes(stderr))
            for key, _ in ready:
                stream, kept = key.data
                if kept is None:
                    left = _feed(stream, left)
                    ended = not left
                else:
                    kept += (chunk := os.read(key.fd, _CHUNK_BYTES))
                    ended = not chunk
                if ended:
                    selector.unregister(stream)
                    stream.close()
            if max(len(stdout), len(stderr)) > _OUTPUT_BYTES_MAX:
                raise OverflowError
    process.wait(max(0.1, deadline - time.monotonic()))
    return bytes(stdout), bytes(stderr)


def _feed(stream: IO[bytes], data: memoryview) -> memoryview:
    """Write as much as a pipe takes without waiting; return the rest, nothing if nobody reads."""
    try:
        return data[os.write(stream.fileno(), data[: select.PIPE_BUF]) :]
    except BrokenPipeError:
        return data[:0]


def run_program(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout_seconds: float = 60.0,
    check: bool = True,
) -> Completed:
    """Run a program to its end and capture its output; arguments as of ``Remote.run``.

    Raises:
        HostError: the program does not exist.
        RemoteError: it failed (only with check) or did not end in time.
    """
    started = time.monotonic()
    process = _popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        cwd=cwd,
    )
    with _group(process):
        try:
            stdout, stderr = _exchange(process, stdin, timeout_seconds=timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise _timed_out(argv, timeout_seconds, error.stderr or b"") from error
        except OverflowError as error:
            raise RemoteError(
                f"command wrote more than {_OUTPUT_BYTES_MAX >> 20} MiB: {shown(argv)}",
                hint="find out why it writes so much; write long output to a file",
            ) from error
    duration_seconds = time.monotonic() - started
    if check and process.returncode != 0:
        raise _failure(argv, process.returncode, stderr or stdout)
    return Completed(
        argv=tuple(argv),
        returncode=process.returncode,
        stdout=stdout,
        stderr=stderr,
        duration_seconds=duration_seconds,
        ended_by_us=process.ended_by_us,
    )


def run_logged(
    argv: Sequence[str],
    *,
    stdout: Path,
    stderr: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout_seconds: float,
) -> Completed:
    """Run a long program with its output going to files; never raises for its exit status.

    Raises:
        HostError: the program does not exist.
        RemoteTimeoutError: it did not end in time.
    """
    with stdout.open("wb") as out, stderr.open("wb") as err:
        started = time.monotonic()
        process = _popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, cwd=cwd)
        with _group(process):
            try:
                process.wait(timeout_seconds)
            except subprocess.TimeoutExpired as error:
                raise _timed_out(argv, timeout_seconds, stderr) from error
        duration_seconds = time.monotonic() - started
    return Completed(
        argv=tuple(argv),
        returncode=process.returncode,
        stdout=b"",
        stderr=b"",
        duration_seconds=duration_seconds,
        ended_by_us=process.ended_by_us,
    )


@contextlib.contextmanager
def beside(argv: Sequence[str], *, patience_seconds: float = _LAST_WORDS_SECONDS) -> Iterator[None]:
    """Run a program beside the block, whatever it does; its standard input ends with the block.

    That ends with us, too, should we be killed. After the block it may go on for
    ``patience_seconds``.

    Raises:
        HostError: the program does not exist.
    """
    null = subprocess.DEVNULL
    process = _popen(argv, stdin=subprocess.PIPE, stdout=null, stderr=null, env=None, cwd=None)
    try:
        yield
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            _end_group(process)


@contextlib.contextmanager
def streaming(argv: Sequence[str], *, stdin: bytes) -> Iterator[Piped]:
    """Run a program beside the block, and see what it writes as it comes.

    Its standard input begins with ``stdin``, at most 60 KiB, and ends with the block; that ends
    with us, too, should we be killed. What it complains of is dropped.

    Raises:
        HostError: the program does not exist.
    """
    assert len(stdin) <= _PIPE_BYTES  # noqa: S101  more could wait for a reader for ever
    null = subprocess.DEVNULL
    process = _popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=null, env=None, cwd=None
    )
    assert process.stdin is not None  # noqa: S101  asked for as pipes
    assert process.stdout is not None  # noqa: S101
    try:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(stdin)
            process.stdin.flush()
        os.set_blocking(process.stdout.fileno(), False)
        yield Piped(output=process.stdout.fileno(), input=process.stdin)
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        try:
            process.wait(_LAST_WORDS_SECONDS)
        except subprocess.TimeoutExpired:
            _end_group(process)


class LeftRunning:
    """A program that was started and not waited for.

    Args:
        process: the program.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def exit_status(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll()


def leave_running(argv: Sequence[str], *, log: Path, env: Mapping[str, str]) -> LeftRunning:
    """Start a program that outlives us, in a group of its own, its output written to a file.

    Raises:
        HostError: the program does not exist.
    """
    null = subprocess.DEVNULL
    with log.open("wb") as out:
        return LeftRunning(_popen(argv, stdin=null, stdout=out, stderr=out, env=env, cwd=None))


def pipe(
    stages: Sequence[Sequence[str]],
    *,
    source: Path,
    target: Path,
    env: Mapping[str, str] | None = None,
    timeout_seconds: float = DATA_SECONDS_MOST,
) -> None:
    """Run programs joined by pipes, from a file to a file, all streaming.

    Raises:
        HostError: a program does not exist.
        DriverSpaceError: a disk that a stage writes to is full.
        RemoteError: a stage failed or the whole did not end in time.
    """
    with source.open("rb") as first, target.open("wb") as last, contextlib.ExitStack() as stack:
        running: list[tuple[_Program, IO[bytes]]] = []
        stream: IO[bytes] = first
        for index, argv in enumerate(stages):
            final = index == len(stages) - 1
            # A file, not a pipe: nobody reads it while the stages run, and a pipe would fill up.
            complaints = stack.enter_context(tempfile.TemporaryFile())
            process = _popen(
                argv,
                stdin=stream,
                stdout=last if final else subprocess.PIPE,
                stderr=complaints,
                env=env,
                cwd=None,
            )
            stack.enter_context(_group(process))
            if stream is not first:
                stream.close()  # so that an early stage sees SIGPIPE if a later one dies
            running.append((process, complaints))
            if process.stdout is not None:
                stream = process.stdout
        deadline = time.monotonic() + timeout_seconds
        for argv, (process, _) in zip(stages, running, strict=True):
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired as error:
                raise _timed_out(argv, timeout_seconds, b"") from error
        _raise_first_cause(stages, running)


def _raise_first_cause(
    stages: Sequence[Sequence[str]], ended: Sequence[tuple[subprocess.Popen[bytes], IO[bytes]]]
) -> None:
    """Blame the stage that failed, not one that only lost its reader."""
    failed = [
        (process.returncode, argv, complaints)
        for argv, (process, complaints) in zip(stages, ended, strict=True)
        if process.returncode != 0
    ]
    failed.sort(key=lambda row: row[0] == -signal.SIGPIPE)
    if failed:
        returncode, argv, complaints = failed[0]
        complaints.seek(0)
        said = complaints.read()
        if b"No space left on device" in said:
            raise DriverSpaceError(
                f"a disk became full: {shown(argv)}: {tail_text(said, lines=3)}",
                hint="free space there, or use a larger disk",
            )
        raise _failure(argv, returncode, said)
