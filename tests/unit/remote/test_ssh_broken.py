"""An ssh that we end is no link that breaks; of a copy over a link that breaks there is another."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from boardcluster.errors import (
    BoardclusterError,
    CapacityError,
    DriverSpaceError,
    NotThereError,
    RemoteError,
    UnreachableError,
)
from boardcluster.remote import gate, ssh
from boardcluster.remote.gate import Completed
from boardcluster.remote.ssh import SshRemote
from boardcluster.remote.ssh_route import SshRoute


def ended(status: int, stderr: bytes, *, by_us: bool = False) -> Completed:
    return Completed(
        argv=(),
        returncode=status,
        stdout=b"",
        stderr=stderr,
        duration_seconds=0.0,
        ended_by_us=by_us,
    )


class EndedSsh:
    """Stands for ssh, which ends before its command does; keeps what it was asked for."""

    def __init__(self, *, began: bool, by_us: bool) -> None:
        self.began, self.by_us = began, by_us
        self.asked: list[tuple[str, bytes]] = []

    def __call__(self, argv: Sequence[str], *, stdin: bytes = b"", **_: Any) -> Completed:
        token = shlex.split(argv[-1])[3]
        self.asked.append((token, stdin))
        words = f"{token}\n" if self.began else ""
        return ended(255, words.encode(), by_us=self.by_us)


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SshRemote:
    route = SshRoute(host="pi0", known_hosts=tmp_path / "known", control=Path("/tmp"))
    monkeypatch.setattr(SshRoute, "command", lambda _: ["ssh", "--", "pi0"])
    return SshRemote("pi0", route)


def test_a_command_whose_ssh_we_ended_is_ended_on_the_node(
    remote: SshRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = EndedSsh(began=True, by_us=True)
    monkeypatch.setattr(ssh, "run_program", program)

    with pytest.raises(RemoteError, match=r"pi0: .* as it stops: apt-get install") as caught:
        remote.run(["apt-get", "install"])

    assert caught.type is RemoteError  # a job is not asked for again
    (token, _), (_, request) = program.asked
    asked = json.loads(request[request.rindex(b"{") :])  # behind the program
    assert (asked["do"], asked["mark"]) == ("end_marked", f"BOARDCLUSTER_RUN={token}")


def test_where_none_began_there_is_none_to_end(
    remote: SshRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = EndedSsh(began=False, by_us=True)
    monkeypatch.setattr(ssh, "run_program", program)

    with pytest.raises(RemoteError, match="as it stops") as caught:
        remote.run(["true"])

    assert not isinstance(caught.value, UnreachableError)
    assert len(program.asked) == 1


def test_a_link_that_breaks_is_said(remote: SshRemote, monkeypatch: pytest.MonkeyPatch) -> None:
    program = EndedSsh(began=True, by_us=False)
    monkeypatch.setattr(ssh, "run_program", program)

    with pytest.raises(UnreachableError, match="pi0: the connection broke while a command ran"):
        remote.run(["true"])

    assert len(program.asked) == 1


def test_what_was_lent_is_removed_after_ctrl_c_too(
    remote: SshRemote, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[tuple[str, bool]] = []
    monkeypatch.setattr(remote, "run", lambda argv: seen.append((argv[0], gate._cleans_up.get())))

    with pytest.raises(KeyError), remote.download_on_exit(tmp_path / "x"):
        raise KeyError

    assert seen == [("mkdir", False), ("rm", True)]


CLOSED = b"rsync: connection unexpectedly closed (0 bytes received so far) [sender]\n"
PIPE = b"rsync: [sender] write error: Broken pipe (32)\n"
STREAM = b"rsync error: error in rsync protocol data stream (code 12) at io.c(232) [sender=3.2.7]\n"


@pytest.fixture
def copy_error(
    remote: SshRemote, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[Completed], BoardclusterError]:
    """Return how a copy fails, by how its rsync ends; the node can be reached again."""

    def fail(done: Completed) -> BoardclusterError:
        monkeypatch.setattr(ssh, "run_program", lambda *_, **__: done)
        monkeypatch.setattr(remote, "run", lambda *_, **__: ended(0, b""))
        with pytest.raises(BoardclusterError, match="pi0: /x cannot be copied") as error:
            remote.get("/x", tmp_path / "x")
        return error.value

    return fail


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (10, b"rsync: [receiver] read error: Connection reset by peer (104)\n"),
        (12, CLOSED + STREAM),
        (12, PIPE + STREAM),
        (30, b"rsync error: timeout in data send/receive (code 30)\n"),
        (35, b""),
        (255, b"Timeout, server pi0 not responding.\n" + CLOSED),
    ],
)
def test_a_copy_whose_link_broke_may_be_tried_again(
    copy_error: Callable[[Completed], BoardclusterError], status: int, words: bytes
) -> None:
    error = copy_error(ended(status, words))

    assert isinstance(error, UnreachableError)
    assert "the connection broke" in error.message


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (11, b"rsync: [receiver] write failed: Disk quota exceeded (122)\n", RemoteError),
        (12, b'rsync: [receiver] write failed on "/x": Disk quota exceeded (122)\n', RemoteError),
        (11, b"rsync: [receiver] write failed: No space left on device (28)\n", DriverSpaceError),
        (12, b"write failed: No space left on device (28)\n" + 3 * PIPE + STREAM, DriverSpaceError),
        (23, b"rsync: send_files failed to open /x: Permission denied (13)\n", RemoteError),
    ],
)
def test_a_copy_that_failed_otherwise_is_not(
    copy_error: Callable[[Completed], BoardclusterError],
    status: int,
    words: bytes,
    kind: type[Exception],
) -> None:
    assert type(copy_error(ended(status, words))) is kind


def test_a_disk_that_is_full_is_the_one_that_is_written_to(
    remote: SshRemote, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    full = ended(11, b"rsync: [receiver] write failed: No space left on device (28)\n")
    monkeypatch.setattr(ssh, "run_program", lambda *_, **__: full)
    (tmp_path / "x").touch()

    with pytest.raises(CapacityError, match="a disk is full") as caught:
        remote.put(tmp_path / "x", "/x")

    assert caught.type is CapacityError  # the node's


def test_what_is_not_there_is_told_from_a_broken_link(
    copy_error: Callable[[Completed], BoardclusterError],
) -> None:
    words = b'rsync: [sender] link_stat "/x" failed: No such file or directory (2)\n'
    assert type(copy_error(ended(23, words))) is NotThereError


def test_a_copy_that_we_ended_is_not_tried_again(
    copy_error: Callable[[Completed], BoardclusterError],
) -> None:
    error = copy_error(ended(255, PIPE, by_us=True))

    assert type(error) is RemoteError
    assert "as it stops" in str(error)
