"""The import contracts of pyproject.toml hold."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def test_import_contracts_hold() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 kept, 0 broken" in done.stdout
