"""The report of a bundle, made again from its records, and compared number by number."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from boardcluster import __version__
from boardcluster.bundle.archive import BundleReader, check_folder
from boardcluster.bundle.layout import REPORT, STORE, BundleInfo
from boardcluster.bundle.space import TEMPORARY, require_space_for, unpacking
from boardcluster.errors import StoreError
from boardcluster.queries.report import write_home_report
from boardcluster.store import rebuild
from boardcluster.store.files import read_cluster

__all__ = ["RecomputedReport", "make_report", "recompute_report"]

_NUMBER = re.compile(r"(?<![\w.])[-+\N{MINUS SIGN}]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\w)")
_SAME_SHARE = 1e-9
"""Sums of floating-point numbers differ by so little between machines and versions of NumPy."""
_SHOWN = 40
_SPARE_BYTES = 1 << 20
"""A file of the report that has so much more than twice what is made is not read: it may have any
size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputedReport:
    """What came of computing a report again."""

    files: int
    """Files that were compared."""
    numbers: int
    """Numbers in them."""
    differences: tuple[str, ...]
    """What is not the same, one line each; at most 40."""
    different: int
    """How many differences there are."""
    notes: tuple[str, ...]
    """What a reader should know, one line each."""

    @property
    def summary(self) -> str:
        """The outcome in one sentence."""
        there = f"{self.numbers} numbers in {self.files} files of the report"
        if not self.different:
            return f"{there} were computed again and are the same"
        return f"{there} were computed again; {self.different} differ"


def make_report(
    home: Path,
    folder: Path,
    *,
    campaign: str | None,
    tainted: bool,
    changes_work: Callable[[str], bool],
    follow: Callable[[str, int, int], None] | None = None,
) -> Mapping[str, bytes]:
    """Make the report of a home that was made from a bundle.

    Args:
        home: the home.
        folder: where the report is written.
        campaign: only this campaign; None for all.
        tainted: whether tainted runs count.
        changes_work: whether another value of ``workload.parameter`` is other work.
        follow: told what is done, and how much; None for silence.

    Returns:
        Each file of the report by its path, without the path of the home.
    """
    write_home_report(
        home,
        folder,
        cluster=read_cluster(home),
        campaign=campaign,
        tainted=tainted,
        changes_work=changes_work,
        follow=follow,
    )
    own = str(home).encode()
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().replace(own, b"(home)")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def recompute_report(bundle: Path, *, changes_work: Callable[[str], bool]) -> RecomputedReport:
    """Compute the numbers of a bundle's report again, and compare them with those that are there.

    Args:
        bundle: the file, or the folder that it was unpacked into.
        changes_work: whether another value of ``workload.parameter`` is other work.

    Raises:
        InputError: it is no bundle, of a newer version, or was changed.
        CapacityError: the disk cannot hold what is unpacked.
        HostError: it cannot be written.
        StoreError: a record in it cannot be used.
    """
    with tempfile.TemporaryDirectory(prefix="boardcluster-recompute-") as folder:
        root = bundle
        if not bundle.is_dir():
            root = Path(folder) / "bundle"
            with BundleReader.open(bundle) as reader:
                _unpack(reader, root)
        info = check_folder(root)
        home = Path(folder) / "home"
        home.mkdir()
        for path in (root / STORE).iterdir():
            (home / path.name).symlink_to(path.resolve())
        if (count := rebuild(home)) != info.attempts:
            raise StoreError(
                f"{bundle} has {info.attempts} runs, of which only {count} can be used",
                hint="get it again from where it was published",
            )
        made = make_report(
            home,
            Path(folder) / REPORT,
            campaign=info.campaign or None,
            tainted=info.tainted,
            changes_work=changes_work,
        )
        return _compare(made, root / REPORT, info)


def _unpack(reader: BundleReader, root: Path) -> None:
    """Write a whole bundle into a temporary folder.

    Raises:
        InputError: a file was changed.
        CapacityError: the disk cannot hold it.
        HostError: it cannot be written.
    """
    size_bytes = sum(map(reader.size_bytes, reader.names))
    require_space_for(
        root.parent, files_bytes=size_bytes, database_bytes=size_bytes // 4, option=TEMPORARY
    )
    with unpacking(root, option=TEMPORARY):
        reader.extract(root)


def _compare(made: Mapping[str, bytes], there: Path, info: BundleInfo) -> RecomputedReport:
    stored = {
        path.relative_to(there).as_posix(): path for path in there.rglob("*") if path.is_file()
    }
    compared = [name for name in sorted({*made, *stored}) if _holds_numbers(name)]
    differences: list[str] = []
    numbers = 0
    for name in compared:
        if name not in made or name not in stored:
            differences.append(f"{REPORT}/{name} is {'not made' if name in stored else 'new'}")
            continue
        if stored[name].stat().st_size > 2 * len(made[name]) + _SPARE_BYTES:
            differences.append(f"{REPORT}/{name} is more than twice as large as what is made")
            continue
        one = stored[name].read_bytes().decode("utf-8", "replace")
        again = made[name].decode("utf-8", "replace")
        numbers += len(_NUMBER.findall(one))
        differences += [f"{REPORT}/{name}, {words}" for words in _different(one, again)]
    notes = []
    if info.boardcluster != __version__:
        notes.append(
            f"the report was made by boardcluster {info.boardcluster}, this is {__version__}: "
            "changed methods change numbers"
        )
    return RecomputedReport(
        files=len(compared),
        numbers=numbers,
        differences=tuple(differences[:_SHOWN]),
        different=len(differences),
        notes=tuple(notes),
    )


def _holds_numbers(name: str) -> bool:
    """Whether a file holds numbers as text; drawings differ with the version of Matplotlib."""
    return name == "report.md" or name.startswith(("data/", "tables/"))


def _different(stored: str, made: str) -> Iterator[str]:
    """Yield the lines that differ by more than the last digits of a sum."""
    one, other = stored.splitlines(), made.splitlines()
    for number, (line, again) in enumerate(zip(one, other, strict=False), start=1):
        if line != again and not _alike(line, again):
            yield f"line {number}: {line.strip()[:100]!r} is there, {again.strip()[:100]!r} is made"
    if len(one) != len(other):
        yield f"it has {len(one)} lines, but {len(other)} were computed"


def _alike(line: str, again: str) -> bool:
    if _NUMBER.sub("0", line) != _NUMBER.sub("0", again):
        return False
    return all(
        one == other or math.isclose(_value(one), _value(other), rel_tol=_SAME_SHARE)
        for one, other in zip(_NUMBER.findall(line), _NUMBER.findall(again), strict=True)
    )


def _value(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))
