"""The script of a bundle, run by itself, finds every number again, and a number that is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.bundle.laboratory import changed
from tests.unit.bundle.test_bundle import unpack

import boardcluster
import boardcluster as bc
from boardcluster.api import WrittenBundle
from boardcluster.errors import InputError

RECORD = "store/attempts/20260901-a-000/1/attempt.json"
PROGRAM = """
import runpy, sys
sys.path.insert(0, {source!r})
sys.argv = {arguments!r}
runpy.run_path({script!r}, run_name="__main__")
"""


def recompute(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the script of an unpacked bundle with Python, the package, and what that needs alone."""
    source = str(Path(boardcluster.__file__).parents[1])
    script = str(folder / "recompute.py")
    program = PROGRAM.format(source=source, arguments=[script], script=script)
    return subprocess.run(
        [sys.executable, "-I", "-c", program],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PATH": "/nowhere", "HOME": str(folder), "TMPDIR": os.environ.get("TMPDIR", "/tmp")},
    )


@pytest.mark.parametrize("which", ["shelf", "planted"])
def test_every_number_is_found_again(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    bundle: WrittenBundle = request.getfixturevalue(which)
    done = recompute(unpack(bundle.path, tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "are the same" in done.stdout
    assert int(done.stdout.split()[0]) > 500


def longer(content: bytes) -> bytes:
    body = json.loads(content)
    body["record"]["measurement"]["duration_seconds"] *= 1.001
    return json.dumps(body).encode()


def test_a_changed_duration_is_found(copied: Path, tmp_path: Path) -> None:
    bad = changed(copied, RECORD, longer, manifest=True)
    done = recompute(unpack(bad, tmp_path / "bad"))
    assert done.returncode == 1
    assert "different: report/data/workload-terasort-runs.csv, line " in done.stdout
    assert "differ\n" in done.stdout


def test_a_changed_number_of_the_report_is_found(copied: Path) -> None:
    name = "report/data/workload-terasort-times.csv"
    bad = changed(
        copied, name, lambda content: content[:-2] + bytes([content[-2] ^ 1]) + b"\n", manifest=True
    )
    found = bc.recompute(bad)
    assert found.different == 1
    assert found.differences[0].startswith(name)


def test_a_change_that_the_manifest_does_not_know_ends_it(copied: Path, tmp_path: Path) -> None:
    folder = unpack(changed(copied, RECORD, longer), tmp_path / "bad")
    done = recompute(folder)
    assert done.returncode == 1
    assert f"was changed: {RECORD} has the SHA-256" in done.stderr
    (folder / "store" / "more.txt").write_text("x")
    with pytest.raises(InputError, match="was changed"):
        bc.recompute(folder)


def test_a_missing_file_ends_it(shelf: WrittenBundle, tmp_path: Path) -> None:
    folder = unpack(shelf.path, tmp_path)
    (folder / "report" / "report.md").unlink()
    with pytest.raises(InputError, match=r"report/report\.md: No such file"):
        bc.recompute(folder)


def test_a_record_that_would_fill_the_memory_ends_it(shelf: WrittenBundle, tmp_path: Path) -> None:
    folder = unpack(shelf.path, tmp_path)
    os.truncate(folder / RECORD, 65 << 20)
    with pytest.raises(InputError, match=f"{RECORD} has .* bytes, more than any such file"):
        bc.recompute(folder)


def test_a_file_of_the_report_that_is_far_larger_is_not_read(copied: Path) -> None:
    name = "report/data/workload-terasort-times.csv"
    bad = changed(copied, name, lambda content: content + b" " * (3 << 20), manifest=True)
    found = bc.recompute(bad)
    assert found.differences == (f"{name} is more than twice as large as what is made",)


def test_another_version_is_a_note(copied: Path) -> None:
    bad = changed(
        copied,
        "bundle.json",
        lambda content: content.replace(b'"boardcluster": "0.1.0"', b'"boardcluster": "0.0.9"'),
        manifest=True,
    )
    found = bc.recompute(bad)
    assert found.different == 0
    assert "made by boardcluster 0.0.9" in found.notes[0]
