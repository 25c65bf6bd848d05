"""The wheel in a fresh environment, and the page on Python against a real cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import boardcluster as bc
from tests.integration.conftest import NOBODY, Cli, as_nobody
from tests.python_examples import page_blocks, run_code
from tests.unit.bundle.laboratory import changed, copy_fixture, entries

ROOT = Path(__file__).parents[2]
BUILD = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([*BUILD, "-w", str(folder), str(ROOT)], check=True, timeout=300)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel_python(wheel: Path) -> Iterator[Path]:
    """A fresh environment with the wheel; what it depends on is taken from ours, not fetched.

    It is where nodes of an ordinary user may read the jar in it.
    """
    with tempfile.TemporaryDirectory(prefix="boardcluster-wheel-", dir="/var/tmp") as place:
        Path(place).chmod(0o755)
        folder = Path(place) / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        (site,) = folder.glob("lib/python*/site-packages")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
        # Found after its own packages, and our editable install is none of these: it is a .pth
        # file.
        (site / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n")
        yield folder


@pytest.fixture(scope="module")
def bare_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with what the wheel requires alone, and nothing of extras and test tools."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (described,) = site.glob("boardcluster-*.dist-info")
    for name in required_by(metadata.PathDistribution(described)):
        parts = metadata.distribution(name).files or []
        tops = {part.parts[0] for part in parts} - {"..", "__pycache__"}
        for top in tops:
            if not (site / top).exists():
                (site / top).symlink_to(Path(sysconfig.get_path("purelib"), top))
    return folder


def required_by(distribution: metadata.Distribution) -> set[str]:
    """Return the names of what a distribution requires without extras, directly or not."""
    found: set[str] = set()
    left = [distribution]
    while left:
        for line in left.pop().requires or []:
            wanted = Requirement(line)
            if wanted.name in found or (
                wanted.marker and not wanted.marker.evaluate({"extra": ""})
            ):
                continue
            found.add(wanted.name)
            left.append(metadata.distribution(wanted.name))
    return found


def run_in(
    folder: Path,
    cwd: Path,
    *words: str,
    codes: tuple[int, ...] = (0,),
    java: Path | None = None,
    prefix: tuple[str, ...] = (),
) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"JAVA_HOME": str(java)} if java else {}
    done = subprocess.run(
        [*prefix, folder / "bin" / "python", *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode in codes, done.stderr
    return done


def test_the_wheel_carries_everything(wheel: Path, wheel_python: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    there = {
        f"boardcluster/{path.relative_to(ROOT / 'src' / 'boardcluster').as_posix()}"
        for path in (ROOT / "src" / "boardcluster").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert there <= names
    code = (
        "import boardcluster; from boardcluster.services.jobs import jobs_jar;"
        "print(boardcluster.__file__); print(jobs_jar())"
    )
    package, jar = run_in(wheel_python, tmp_path, "-c", code).stdout.splitlines()
    assert package.startswith(str(wheel_python))
    assert jar.startswith(str(wheel_python))
    assert zipfile.is_zipfile(jar)
    assert "Start here" in run_in(wheel_python, tmp_path, "-m", "boardcluster", "--help").stdout


def test_a_wheel_without_the_jar_is_not_built(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("pyproject.toml", "README.md", "LICENSE", "tools/wheel_hook.py"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes((ROOT / name).read_bytes())
    (tree / "src" / "boardcluster").mkdir(parents=True)
    (tree / "src" / "boardcluster" / "__init__.py").touch()
    done = subprocess.run(
        [*BUILD, "-w", str(tmp_path), str(tree)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode != 0
    assert "boardcluster-jobs.jar was not built" in done.stderr + done.stdout
    assert "make jar" in done.stderr + done.stdout


def test_a_bundle_is_computed_again_by_python_and_the_wheel(
    bare_python: Path, tmp_path: Path
) -> None:
    """No clone, no engines, no cache, no cluster, no program on the path, no extra."""
    bundle = bc.export_bundle(tmp_path / "paper.zip", home=copy_fixture(tmp_path / "home")).path
    record = "store/attempts/20260901-a-000/1/attempt.json"

    def longer(content: bytes) -> bytes:
        body = json.loads(content)
        body["record"]["measurement"]["duration_seconds"] *= 1.001
        return json.dumps(body).encode()

    def recompute(archive: Path) -> subprocess.CompletedProcess[str]:
        place = tmp_path / archive.stem
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(place)
        return subprocess.run(
            [bare_python / "bin" / "python", "-I", "recompute.py"],
            cwd=place,
            env={"PATH": "/nowhere", "HOME": str(place)},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    wanted = entries(bundle)["requirements.txt"].decode().split()
    assert wanted == [f"boardcluster=={bc.__version__}"]
    same = recompute(bundle)
    assert same.returncode == 0, same.stdout + same.stderr
    assert "are the same" in same.stdout
    assert int(same.stdout.split()[0]) > 500
    other = recompute(changed(bundle, record, longer, manifest=True))
    assert other.returncode == 1, other.stdout + other.stderr
    assert "different: report/data/workload-terasort-runs.csv, line " in other.stdout
    assert "differ\n" in other.stdout


@pytest.mark.usefixtures("fetched")  # so that it needs no network
def test_the_demo_runs_from_the_wheel(
    wheel_python: Path, open_folder: Path, cache: Path, java_home: Path
) -> None:
    """By an ordinary user, without root."""
    if os.geteuid() == 0:
        os.chown(open_folder, NOBODY, NOBODY)
    home = open_folder / "demo"
    words = ("demo", "--workers", "1", "--size", "1MB", "--repetitions", "1")
    places = ("--home", str(home), "--cache", str(cache))
    command = ("-m", "boardcluster", *words, *places)
    with as_nobody(cache, open_folder) as user:
        # On a busy machine a run may be verified, and yet no measurement: 9.
        ran = run_in(wheel_python, open_folder, *command, codes=(0, 9), java=java_home, prefix=user)

    assert "report:" in ran.stdout
    assert ran.stderr.count(" records verified") == 2, ran.stderr
    assert (home / "report" / "report.html").is_file()
    assert not (home / "nodes").exists()


def test_the_page_runs_on_a_cluster(
    cli: Callable[..., Cli],
    cache: Path,
    java_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of it, in its order, as a reader would; reading what it ran itself."""
    home = tmp_path / "data" / "boardcluster" / "default"
    cli(home)("init", "--workers", "1", "--subnet", "198.18.216.0/24")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    monkeypatch.setenv("JAVA_HOME", str(java_home))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    try:
        for number, (needs, code) in enumerate(page_blocks()):
            if "bc.compare" in code:  # which needs runs on two engines
                continue
            small = code.replace('size="16 MB"', 'size="1 MB"')
            run_code(small, names, where=f"block {number} of the page, needs {needs or 'nothing'}")
    finally:
        cli(home)("down", "--wipe")
    rows = names["results"].rows()
    assert {row["workload"] for row in rows} == {"wordcount", "pi"}
    assert all(row["duration_seconds"] > 0 and row["verification"] for row in rows)
    assert names["again"].campaign == names["done"].campaign
    assert names["samples"].rows()
