"""What the bootstrap does to this machine, at a path of the test's own."""

import importlib.util
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
