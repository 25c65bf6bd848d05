"""Words of OpenSSH, sudo and env, as they were written down from the real programs."""

from pathlib import Path

import pytest

from boardcluster.errors import (
    BoardclusterError,
    HostError,
    HostKeyError,
    LoginError,
    RemoteError,
    UnreachableError,
)
from boardcluster.remote.ssh_words import command_failure, connection_failure

KNOWN = Path("/state/known hosts")
CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Someone could be eavesdropping on you right now (man-in-the-middle attack)!
It is also possible that a host key has just been changed.
The fingerprint for the ED25519 key sent by the remote host is
SHA256:0000000000000000000000000000000000000000000.
Please contact your system administrator.
Add correct host key in /state/known hosts to get rid of this message.
Offending ED25519 key in /state/known hosts:1
  remove with:
  ssh-keygen -f "/state/known hosts" -R "[pi0]:2222"
Host key for [pi0]:2222 has changed and you have requested strict checking.
Host key verification failed.
"""
UNKNOWN = """\
No ED25519 host key is known for pi0 and you have requested strict checking.
Host key verification failed.
"""


def failure(words: str, status: int = 255) -> BoardclusterError:
    return connection_failure("worker1", "pi@pi0", words, status=status, known_hosts=KNOWN)


def test_a_changed_key_names_the_command_that_forgets_it() -> None:
    error = failure(CHANGED)

    assert type(error) is HostKeyError
    assert error.message.startswith("worker1: pi@pi0 presents another host key than before")
    assert "ssh-keygen -f '/state/known hosts' -R '[pi0]:2222'" in error.hint


def test_an_unknown_key() -> None:
    error = failure(UNKNOWN)

    assert type(error) is HostKeyError
    assert error.message == "worker1: the host key of pi@pi0 (pi0) is not known"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Host key verification failed.", HostKeyError),
        ("pi@pi0: Permission denied (publickey).", LoginError),
        ("Permission denied (publickey,password).\r", LoginError),
        (
            "Received disconnect from 10.0.0.2 port 22:2: Too many authentication failures",
            LoginError,
        ),
        ("ssh: connect to host pi0 port 22: Connection refused", UnreachableError),
        ("ssh: connect to host pi0 port 22: No route to host", UnreachableError),
        ("ssh: connect to host pi0 port 22: Connection timed out", UnreachableError),
        ("ssh: Could not resolve hostname pi0: Name or service not known", UnreachableError),
        ("kex_exchange_identification: Connection closed by remote host", UnreachableError),
        ("Connection closed by UNKNOWN port 65535", UnreachableError),
        ("mux_client_request_session: read from master failed: Broken pipe", UnreachableError),
        ("", UnreachableError),
        (
            "/home/<name>/.ssh/config: line 1: Bad configuration option: nosuch",
            HostError,
        ),
        ("Bad owner or permissions on /home/<name>/.ssh/config", HostError),
    ],
)
def test_what_ssh_says(words: str, kind: type[BoardclusterError]) -> None:
    error = failure(words)

    assert type(error) is kind
    assert words.strip().splitlines()[-1] in error.message if words else "status 255"
    assert error.hint


def test_a_login_that_runs_nothing() -> None:
    error = failure("This account is currently not available.\n", status=1)

    assert type(error) is LoginError
    assert "accepts the login but runs no command: This account is currently not" in error.message


def of_command(
    words: str, status: int, *, user: str = "root", program: str = "ls"
) -> RemoteError | None:
    return command_failure("worker1", [program, "/x"], status, words, user=user, login="pi")


@pytest.mark.parametrize(
    "words",
    [
        "sudo: a password is required",
        "sudo: a terminal is required to read the password; use -S\nsudo: a password is required",
        "pi is not in the sudoers file.",
        "Sorry, user pi is not allowed to execute '/usr/bin/env' as root on pi0.",
        "sudo: sorry, you must have a tty to run sudo",
    ],
)
def test_sudo_that_asks(words: str) -> None:
    error = of_command(f"{words}\n", 1)

    assert type(error) is LoginError
    assert error.message.startswith("worker1: pi cannot become root without a password: ")
    assert "echo 'pi ALL=(ALL) NOPASSWD: ALL' | sudo tee" in error.hint
    # The same words of a command that was not run by our sudo are its own.
    assert of_command(f"{words}\n", 1, user="") is None
    assert of_command(f"{words}\n", 2) is None
    assert of_command(f"{words}\nmore\n", 1) is None


@pytest.mark.parametrize("words", ["sh: 1: sudo: not found", "sh: line 1: sudo: command not found"])
def test_no_sudo(words: str) -> None:
    error = of_command(words, 127)

    assert type(error) is LoginError
    assert error.message == "worker1: sudo is not installed"


@pytest.mark.parametrize("words", ["sudo: unknown user bc\n", "sudo: unknown user: bc\n"])
def test_sudo_to_nobody(words: str) -> None:
    error = of_command(f"{words}sudo: error initializing audit plugin sudoers_audit\n", 1)

    assert type(error) is RemoteError
    assert error.message == "worker1: there is no user root"


@pytest.mark.parametrize(
    "words",
    [
        "env: 'ls': No such file or directory\n",
        "env: \u2018ls\u2019: No such file or directory\n",
        "env: ls: No such file or directory\n",
        "noise\nenv: 'ls': No such file or directory\n",
    ],
)
def test_a_missing_program(words: str) -> None:
    error = of_command(words, 127)

    assert type(error) is RemoteError
    assert error.message == "worker1: program not found: ls"
    assert of_command(words, 1) is None
    assert of_command(words, 127, program="other") is None


def test_anything_else_is_the_commands_own() -> None:
    assert of_command("ls: cannot access '/x': No such file or directory\n", 2) is None
    assert of_command("", 127) is None
