"""pip as it is, but served from a local folder; no network."""

import hashlib
import io
import shutil
import tarfile
import zipfile
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from boardcluster.errors import CapacityError, HostError, InstallError, RemoteError
from boardcluster.fetch import pypi
from boardcluster.fetch.pypi import fetch_from_pypi
from boardcluster.remote.gate import Completed

METADATA = "Metadata-Version: 2.1\nName: tiny-flights\nVersion: 1.0\n"
# A source archive that builds its own metadata needs no build tools from anywhere.
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
BACKEND = f"""
import pathlib
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    place = pathlib.Path(folder, "tiny_flights-1.0.dist-info")
    place.mkdir()
    place.joinpath("METADATA").write_text({METADATA!r})
    return place.name
def build_wheel(folder, config_settings=None, metadata_directory=None):
    raise SystemExit("downloading must not build a wheel")
"""


def make_wheel(folder: Path) -> str:
    path = folder / "tiny_flights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny_flights-1.0.dist-info/METADATA", METADATA)
        wheel.writestr(
            "tiny_flights-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr("tiny_flights-1.0.dist-info/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_source(folder: Path) -> str:
    path = folder / "tiny_flights-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in (
            ("PKG-INFO", METADATA),
            ("pyproject.toml", PYPROJECT),
            ("backend.py", BACKEND),
        ):
            member = tarfile.TarInfo(f"tiny_flights-1.0/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def never(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("pip was run")


def test_fetches_a_wheel_once(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = make_wheel(index)
    cache = tmp_path / "cache"

    path = fetch_from_pypi(
        "tiny-flights==1.0", sha256=["0" * 64, digest], folder=cache, only_source=False
    )
    monkeypatch.setattr(pypi, "run_program", never)
    again = fetch_from_pypi("tiny-flights==1.0", sha256=digest, folder=cache, only_source=False)

    assert path == again == cache / "tiny_flights-1.0-py3-none-any.whl"
    assert path.read_bytes() == (index / path.name).read_bytes()
    assert {other.name for other in cache.iterdir()} == {
        path.name,
        f"{path.name}.json",
        "tiny-flights.lock",
    }


def test_fetches_the_source_even_if_there_is_a_wheel(index: Path, tmp_path: Path) -> None:
    make_wheel(index)
    digest = make_source(index)

    path = fetch_from_pypi(
        "tiny-flights==1.0", sha256=digest, folder=tmp_path / "cache", only_source=True
    )

    assert path.name == "tiny_flights-1.0.tar.gz"


def test_another_file_than_the_locked_one(index: Path, tmp_path: Path) -> None:
    make_wheel(index)
    cache = tmp_path / "cache"

    with pytest.raises(InstallError, match="HASHES") as caught:
        fetch_from_pypi("tiny-flights==1.0", sha256="0" * 64, folder=cache, only_source=False)

    assert "a file that differs from the locked one" in caught.value.hint
    assert {path.name for path in cache.iterdir()} == {"tiny-flights.lock"}


def test_a_release_that_does_not_exist(index: Path, tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="No matching distribution"):
        fetch_from_pypi(
            "tiny-flights==9.9", sha256="0" * 64, folder=tmp_path / "cache", only_source=False
        )


def test_no_network_and_an_empty_cache_is_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_RETRIES", "1")
    cache = tmp_path / "cache"

    with pytest.raises(InstallError) as caught:
        fetch_from_pypi("tiny-flights==1.0", sha256="0" * 64, folder=cache, only_source=False)

    assert f"is not in the cache {cache} and the package index cannot be reached" in (
        caught.value.message
    )
    assert caught.value.hint == (
        f"connect to the network and repeat the command, or copy the file into {cache}"
    )


def test_a_file_copied_by_hand_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pypi, "run_program", never)
    cache = tmp_path / "cache"
    cache.mkdir()
    digest = make_wheel(cache)

    path = fetch_from_pypi("Tiny.Flights==1.0", sha256=digest, folder=cache, only_source=False)

    assert path == cache / "tiny_flights-1.0-py3-none-any.whl"


def test_a_corrupt_file_in_the_cache_is_replaced(index: Path, tmp_path: Path) -> None:
    digest = make_wheel(index)
    cache = tmp_path / "cache"
    path = fetch_from_pypi("tiny-flights==1.0", sha256=digest, folder=cache, only_source=False)
    path.write_bytes(path.read_bytes()[:-1])

    again = fetch_from_pypi("tiny-flights==1.0", sha256=digest, folder=cache, only_source=False)

    assert hashlib.sha256(again.read_bytes()).hexdigest() == digest


class FakePip:
    """Answers each run of pip with the next of the planned results."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *results: tuple[int, str]) -> None:
        self.results = list(results)
        self.commands: list[list[str]] = []
        self.folders: list[str] = []
        monkeypatch.setattr(pypi, "run_program", self.run)

    def run(self, command: list[str], *, env: dict[str, str], **options: Any) -> Completed:
        self.commands.append(command)
        self.folders.append(env["TMPDIR"])
        returncode, stderr = self.results.pop(0)
        return Completed(
            argv=tuple(command),
            returncode=returncode,
            stdout=b"",
            stderr=stderr.encode(),
            duration_seconds=0.0,
        )


def fetch(folder: Path, **options: Any) -> Path:
    arguments = {"sha256": "0" * 64, "only_source": True, **options}
    return fetch_from_pypi("tiny-flights==1.0", folder=folder, **arguments)


def test_a_broken_transfer_is_repeated_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = FakePip(monkeypatch, *[(2, "ProtocolError: IncompleteRead(5 bytes read)")] * 5)

    with pytest.raises(InstallError, match="IncompleteRead"):
        fetch(tmp_path)

    assert len(pip.commands) == 3


def test_other_failures_are_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = FakePip(monkeypatch, (1, "ERROR: something else"))

    with pytest.raises(InstallError, match="something else"):
        fetch(tmp_path)

    assert len(pip.commands) == 1
    assert pip.folders == [str(tmp_path / "tiny-flights.fetching")]
    assert not (tmp_path / "tiny-flights.fetching").exists()


@pytest.mark.parametrize(
    ("version", "resumes"), [("25.0.1", False), ("25.1", True), ("26.0.dev0", True), ("9", False)]
)
def test_resumes_where_pip_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, resumes: bool
) -> None:
    monkeypatch.setattr(pypi, "version", lambda name: version)
    pip = FakePip(monkeypatch, (1, "stop"))

    with pytest.raises(InstallError):
        fetch(tmp_path)

    assert ("--resume-retries" in pip.commands[0]) is resumes


def test_python_without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(pypi, "version", missing)

    with pytest.raises(InstallError, match="has no pip") as caught:
        fetch(tmp_path)

    assert caught.value.hint.endswith("-m ensurepip")


def test_pip_that_says_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FakePip(monkeypatch, (2, "ERROR: [Errno 28] No space left on device"))

    with pytest.raises(CapacityError):
        fetch(tmp_path)


def test_pip_that_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FakePip(monkeypatch, (0, ""))

    with pytest.raises(InstallError, match="left nothing"):
        fetch(tmp_path)


def test_pip_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*args: Any, **options: Any) -> Completed:
        raise RemoteError("command did not end within 7200 s")

    monkeypatch.setattr(pypi, "run_program", hang)

    with pytest.raises(InstallError, match="within 7200 s"):
        fetch(tmp_path)


def test_a_full_disk_is_foreseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type(shutil.disk_usage(tmp_path))(total=10**10, used=0, free=10**9)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    monkeypatch.setattr(pypi, "run_program", never)

    with pytest.raises(CapacityError, match=r"1\.37 GB \+ 64 MB in reserve"):
        fetch(tmp_path, size_bytes=456_000_000)


def test_what_a_killed_run_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = tmp_path / "tiny-flights.fetching" / "dest"
    stale.mkdir(parents=True)
    (stale / "tiny_flights-1.0.tar.gz").write_bytes(b"half")
    FakePip(monkeypatch, (0, ""))

    with pytest.raises(InstallError, match="left nothing"):
        fetch(tmp_path)


@pytest.mark.parametrize(
    "requirement", ["x", "x>=1", "-r==1", "x==1 --index-url=http://e", "x==1\ny"]
)
def test_a_requirement_cannot_smuggle_options(tmp_path: Path, requirement: str) -> None:
    with pytest.raises(ValueError, match="name==version"):
        fetch_from_pypi(requirement, sha256="0" * 64, folder=tmp_path, only_source=True)


def test_a_cache_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(HostError, match="cannot create"):
        fetch(tmp_path / "file" / "cache")


def test_what_pip_removes_while_it_is_looked_at_ends_no_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folders are gone between the moment they are found and that they are read."""
    (tmp_path / "dest").mkdir()
    (tmp_path / "dest" / "tiny.whl").write_bytes(b"wheel")
    glob = Path.glob

    def vanishing(self: Path, pattern: str) -> Any:
        if pattern.startswith("pip-"):
            raise FileNotFoundError(2, "No such file or directory")
        return glob(self, pattern)

    monkeypatch.setattr(Path, "glob", vanishing)
    assert pypi._received_bytes(tmp_path) == 5
