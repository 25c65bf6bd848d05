"""What the bootstrap does to this machine, at a path of the test's own."""

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

PLACE = Path(__file__).parents[2] / "tools" / "bootstrap.py"


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("bootstrap", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "NO_START", tmp_path / "policy-rc.d")
    monkeypatch.setattr(module.os, "geteuid", lambda: 0)  # nobody is asked for a password
    return module


def test_a_policy_that_a_killed_run_left_is_removed_and_others_stay(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy: Path = bootstrap.NO_START
    bootstrap.remove_leftover()  # there is none

    with monkeypatch.context() as patch:

        def killed(*_: object) -> None:
            raise SystemExit(policy.read_text())

        # Packages are installed by a program that sees the policy, and then nothing is tidied up.
        real = bootstrap.subprocess.run
        patch.setattr(
            bootstrap.subprocess,
            "run",
            lambda argv, **options: (
                killed() if argv[0] in ("apt-get", "rm") else real(argv, **options)
            ),
        )
        with pytest.raises(SystemExit, match="exit 101"):
            bootstrap.install([], ["apt-get"], ["nginx"])
    assert policy.exists()
    bootstrap.remove_leftover()
    assert not policy.exists()

    policy.write_text("#!/bin/sh\nexit 101\n")  # a container's own
    bootstrap.remove_leftover()
    assert policy.exists()


@pytest.mark.parametrize(
    ("known", "installed"), [(set(), []), ({"netpipe-tcp"}, [["netpipe-tcp"]])]
)
def test_a_system_without_netpipe_gets_all_else(
    bootstrap: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    known: set[str],
    installed: list[list[str]],
) -> None:
    asked: list[list[str]] = []
    lacking = {"NPtcp", "NPopenmpi"}
    for name, stand_in in {
        "is_there": lambda name, path: name not in lacking,
        "has_candidate": lambda package: package in known,
        "has_venv_module": lambda: True,
        "find_jdk": lambda: Path("/java"),
        "install": lambda asroot, apt, missing: asked.append(missing),
    }.items():
        monkeypatch.setattr(bootstrap, name, stand_in)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(bootstrap.subprocess, "run", lambda argv, **options: None)
    bootstrap.system(dev=False)
    assert asked == installed


@pytest.mark.parametrize("has_sudo", [True, False])
def test_who_may_not_use_sudo_goes_on_without_namespaces(
    has_sudo: bool,
    bootstrap: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flag = tmp_path / "flag"
    flag.write_text("1\n")
    monkeypatch.setattr(bootstrap, "APPARMOR_FLAG", flag)
    monkeypatch.setattr(bootstrap, "APPARMOR_PROFILE", tmp_path / "profile")
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda _: "/bin/sudo" if has_sudo else None)

    def refused(argv: list[str], **_: object) -> None:
        assert argv[0] == "sudo"
        raise subprocess.CalledProcessError(1, argv)

    monkeypatch.setattr(bootstrap.subprocess, "run", refused)
    bootstrap.allow_namespaces(quiet=True)  # as `make demo` does
    said = capsys.readouterr().out
    assert "for several nodes run, as root: " in said
    assert said.endswith("bootstrap.py allow-namespaces\n")

    with pytest.raises(subprocess.CalledProcessError if has_sudo else SystemExit):
        bootstrap.allow_namespaces(quiet=False)
