"""Options and destinations of the ssh client; what the client does with them is tested for real."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from boardcluster.errors import HostError, RemoteError, SpecError
from boardcluster.remote import ssh, ssh_route
from boardcluster.remote.gate import Completed
from boardcluster.remote.ssh_route import (
    CONNECT_SECONDS,
    Patience,
    SshRoute,
    check_destination,
    ssh_options,
)

needs_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="this machine has no ssh")


@pytest.mark.parametrize(
    "host",
    ["pi0", "pi@pi0", "a-b.c_d", "ssh://pi@10.0.0.1:2222", "ssh://[fe80::1%eth0]", "pi@fe80::1"],
)
def test_destinations(host: str) -> None:
    check_destination(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "-oProxyCommand=touch x",
        "-pi0",
        "pi@-oProxyCommand=x",
        "-pi@pi0",
        "ssh://-pi0",
        "ssh://pi@-pi0",
        "pi0 true",
        "pi0\n",
        "http://pi0",
        "pi@",
        "@pi0",
        "a@b@c",
    ],
)
def test_what_could_be_an_option_is_refused(host: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="is not a host that ssh could reach"):
        SshRoute(host=host, known_hosts=tmp_path / "known", control=Path("/tmp"))


def test_a_folder_whose_sockets_would_not_work_is_refused_before_ssh_fails() -> None:
    SshRoute(host="pi0", known_hosts=Path("k"), control=Path("/" + "x" * 45))
    with pytest.raises(HostError, match="too long for the sockets") as caught:
        SshRoute(host="pi0", known_hosts=Path("k"), control=Path("/" + "x" * 46))
    assert "TMPDIR" in caught.value.hint


def test_the_host_stands_behind_the_end_of_options() -> None:
    route = SshRoute(host="pi@pi0", known_hosts=Path("k"), control=Path("/tmp"))

    assert route.command("-N", "-v")[-4:] == ["-N", "-v", "--", "pi@pi0"]
    assert route.closing_command()[-4:] == ["-O", "exit", "--", "pi@pi0"]


def test_whoever_only_looks_waits_less() -> None:
    patience = Patience()
    route = SshRoute(host="pi0", known_hosts=Path("k"), control=Path("/tmp"), patience=patience)

    def waits() -> str:
        return next(word for word in route.command() if word.startswith("ConnectTimeout="))

    assert waits() == f"ConnectTimeout={CONNECT_SECONDS}"
    patience.connect_seconds = 3
    assert waits() == "ConnectTimeout=3"


@needs_ssh
def test_ssh_understands_every_option_and_they_win(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "Host *\n  User pi\n  Port 2222\n  StrictHostKeyChecking no\n  ForwardAgent yes\n"
        "  UserKnownHostsFile /dev/null\n  RemoteCommand tmux\n  RequestTTY yes\n"
        "  LocalForward 8088 localhost:8088\n  ControlPath none\n  BatchMode no\n"
    )
    folder = tmp_path / 'odd %h "and" \\ name'
    folder.mkdir()
    route = SshRoute(
        host="pi0", known_hosts=folder / "known", control=Path("/tmp/a b%h"), identity=folder / "id"
    )

    program, *words = route.command("-F", str(config), "-G")
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)

    rows = done.stdout.splitlines()
    settings = dict(line.split(" ", 1) for line in rows if " " in line)
    # What says where a host is remains the user's.
    assert (settings["user"], settings["port"]) == ("pi", "2222")
    assert settings["stricthostkeychecking"] == "true"
    assert settings["userknownhostsfile"] == str(folder / "known")
    assert settings["globalknownhostsfile"] == "none"
    assert settings["batchmode"] == "yes"
    assert settings["forwardagent"] == "no"
    assert settings["controlmaster"] == "auto"
    assert settings["controlpath"].startswith("/tmp/a b%h/")
    assert settings["controlpersist"] == "60"
    assert settings["requesttty"] == "false"
    assert settings["loglevel"] == "ERROR"
    assert not settings["kexalgorithms"].startswith("sntrup761")
    assert settings["clearallforwardings"] == "yes"
    assert "localforward" not in settings
    assert settings.get("remotecommand", "none") == "none"
    assert settings["identityfile"] == str(folder / "id").replace("%", "%%")


class ConfiguredSsh:
    """Stands for ``ssh -G``.

    Args:
        offered: the key exchanges that it says it offers.
        configured: whether a configuration file names them.
        status: how it ends when other files are given to it.
    """

    def __init__(self, offered: str, *, configured: bool, status: int = 0) -> None:
        self.offered = offered
        self.configured = configured
        self.status = status
        self.starts = 0

    def __call__(self, argv: Sequence[str], *, stdin: bytes = b"", **_: object) -> Completed:
        self.starts += 1
        offered = self.offered
        if "-F" in argv and not self.configured:
            assert stdin.startswith(b"Include ~/.ssh/config\nInclude /etc/ssh/ssh_config\nHost *\n")
            offered = stdin.decode().split()[-1]
        text = f"user pi\nkexalgorithms {offered}\n".encode()
        status = self.status if "-F" in argv else 0
        return Completed(argv=(), returncode=status, stdout=text, stderr=b"", duration_seconds=0.0)


DEBIAN_12 = "sntrup761x25519-sha512@openssh.com,curve25519-sha256,ecdh-sha2-nistp256"
DEBIAN_13 = "mlkem768x25519-sha256,sntrup761x25519-sha512,curve25519-sha256"


@pytest.mark.parametrize(
    ("ssh", "offered"),
    [
        (
            ConfiguredSsh(DEBIAN_12, configured=False),
            "curve25519-sha256,ecdh-sha2-nistp256,sntrup761x25519-sha512@openssh.com",
        ),
        (
            ConfiguredSsh(DEBIAN_13, configured=False),
            "mlkem768x25519-sha256,curve25519-sha256,sntrup761x25519-sha512",
        ),
        (ConfiguredSsh(DEBIAN_12, configured=True), None),
        (ConfiguredSsh("curve25519-sha256,ecdh-sha2-nistp256", configured=False), None),
        (ConfiguredSsh(DEBIAN_12, configured=True, status=255), None),
    ],
    ids=["slow first", "quick and safe first", "chosen by the user", "nothing slow", "unreadable"],
)
def test_slow_key_exchanges_are_offered_last_unless_the_user_chose(
    monkeypatch: pytest.MonkeyPatch, ssh: ConfiguredSsh, offered: str | None
) -> None:
    monkeypatch.setattr(ssh_route, "run_program", ssh)
    route = SshRoute(host="pi0", known_hosts=Path("k"), control=Path("/tmp"))

    found = [word for word in route.command() if word.startswith("KexAlgorithms=")]
    starts = ssh.starts
    route.command()

    assert found == ([] if offered is None else [f"KexAlgorithms={offered}"])
    assert ssh.starts == starts, "asked once"
    assert not any(word.startswith("KexAlgorithms=") for word in route.closing_command())


def test_after_ctrl_c_no_connection_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = ConfiguredSsh(DEBIAN_12, configured=True, status=-15)
    monkeypatch.setattr(ssh_route, "run_program", ended)
    with pytest.raises(RemoteError, match="was ended"):
        SshRoute(host="pi0", known_hosts=Path("k"), control=Path("/tmp")).command()


def test_without_ssh_a_command_is_made_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> Completed:
        raise HostError("ssh does not exist")

    monkeypatch.setattr(ssh_route, "run_program", missing)
    words = SshRoute(host="pi0", known_hosts=Path("k"), control=Path("/tmp")).command()
    assert words[-1] == "pi0"


def test_options_without_an_identity_name_none(tmp_path: Path) -> None:
    assert not any("IdentityFile" in word for word in ssh_options(tmp_path / "known"))


@pytest.mark.skipif(shutil.which("rsync") is None, reason="this machine has no rsync")
def test_what_is_fetched_does_not_run_as_who_fetches_it(tmp_path: Path) -> None:
    source = tmp_path / "stdout"
    source.write_text("a program that a job wrote")
    source.chmod(0o6777)
    target = tmp_path / "fetched"
    subprocess.run(["rsync", *ssh._GET_FLAGS, source, target], check=True)
    assert target.stat().st_mode & 0o7777 == 0o755
