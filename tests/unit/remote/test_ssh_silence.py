"""A host that does not answer is not asked again for a moment; one that refuses is."""

from __future__ import annotations

from pathlib import Path

import pytest

from boardcluster.errors import HostKeyError, LoginError, RemoteError, UnreachableError
from boardcluster.remote import ssh, ssh_route
from boardcluster.remote.gate import Completed
from boardcluster.remote.ssh import SshRemote
from boardcluster.remote.ssh_route import SshRoute

TIMED_OUT = b"ssh: connect to host pi0 port 22: Connection timed out\n"
REFUSED = b"ssh: connect to host pi0 port 22: Connection refused\n"
NO_LOGIN = b"pi@pi0: Permission denied (publickey).\n"
OTHER_KEY = b"Host key for pi0 has changed and you have requested strict checking.\n"


class Ssh:
    """Stands for the program; counts how often it is started."""

    def __init__(self, words: bytes) -> None:
        self.words = words
        self.starts = 0

    def __call__(self, argv: object, **_: object) -> Completed:
        self.starts += 1
        return Completed(
            argv=(), returncode=255, stdout=b"", stderr=self.words, duration_seconds=10.0
        )


def fail(remote: SshRemote) -> None:
    with pytest.raises(UnreachableError, match="pi0: cannot reach"):
        remote.run(["true"])


@pytest.mark.parametrize(("words", "starts"), [(TIMED_OUT, 1), (REFUSED, 3)])
def test_silence_is_remembered_and_refusal_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: bytes, starts: int
) -> None:
    program = Ssh(words)
    monkeypatch.setattr(ssh, "run_program", program)
    route = SshRoute(host="pi0", known_hosts=tmp_path / "known", control=Path("/tmp"))
    fail(SshRemote("pi0", route))
    fail(SshRemote("pi0", route))  # another user of the same way
    fail(SshRemote("pi0", route))
    assert program.starts == starts


def test_after_a_moment_it_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Ssh(TIMED_OUT)
    monkeypatch.setattr(ssh, "run_program", program)
    monkeypatch.setattr(ssh_route, "_SILENT_SECONDS", 0.0)
    route = SshRoute(host="pi0", known_hosts=tmp_path / "known", control=Path("/tmp"))
    remote = SshRemote("pi0", route)
    fail(remote)
    fail(remote)
    assert program.starts == 2


@pytest.mark.parametrize(("words", "error"), [(NO_LOGIN, LoginError), (OTHER_KEY, HostKeyError)])
def test_who_is_not_let_in_tries_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: bytes, error: type[RemoteError]
) -> None:
    """Of refused logins some hosts take few before they shut an address out."""
    program = Ssh(words)
    monkeypatch.setattr(ssh, "run_program", program)
    route = SshRoute(host="pi0", known_hosts=tmp_path / "known", control=Path("/tmp"))
    with pytest.raises(error):
        SshRemote("pi0", route).run(["true"])
    assert program.starts == 1
