"""Writes a bundle: a redacted copy of a home, its report made from that copy, and what explains it.

The report is made from the redacted records, so nothing in it can say what was replaced, and who
has the bundle can make the same report from it.
"""

from __future__ import annotations

import contextlib
import functools
import re
import tempfile
from collections import Counter as Tally
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path

from boardcluster import __version__, records
from boardcluster.bundle.archive import BundleWriter, info_bytes, pack
from boardcluster.bundle.attempts import AttemptJob, PackedAttempt, pack_attempt, packed_files
from boardcluster.bundle.crate import crate_text, require_packages
from boardcluster.bundle.facts import Authorship, count_runs, inputs_of
from boardcluster.bundle.gather import Gathered, gather
from boardcluster.bundle.layout import CRATE, INFO, REPORT, STORE, BundleInfo
from boardcluster.bundle.names import known_names
from boardcluster.bundle.redactor import Redactor
from boardcluster.bundle.remake import make_report
from boardcluster.bundle.texts import BundleTexts, check_authorship
from boardcluster.errors import StoreError
from boardcluster.records import ClusterSpec
from boardcluster.report.export.writers import require_free, whole_file
from boardcluster.report.parallel_map import parallel_map
from boardcluster.store import rebuild
from boardcluster.store.files import (
    CLUSTER_NAME,
    TELEMETRY_NAME,
    CampaignFile,
    campaign_file_path,
    campaign_path,
    read_cluster,
    record_text,
)
from boardcluster.store.probes import probe_text
from boardcluster.store.watches import read_watch, watch_files
from boardcluster.tuning.record import record_folder

__all__ = ["WrittenBundle", "write_bundle"]

_MANY = 40
"""From so many runs on it pays to start processes."""
_SAMPLES = re.compile(rf"{STORE}/attempts/[^/]+/[^/]+/{re.escape(TELEMETRY_NAME)}")
_REPORT_IT = "report this: a word of boardcluster's own was taken for a name"

Follow = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBundle:
    """A bundle that was written."""

    path: Path
    """The file."""
    sha256: str
    """SHA-256 of its manifest, which stands for the whole: to be printed in a paper."""
    campaigns: int
    """Campaigns in it."""
    runs: int
    """Attempts in it."""
    files: int
    """Files in it."""
    size_bytes: int
    """Of the file."""
    replaced: dict[str, int]
    """How many texts of each sort were replaced."""
    unread: tuple[str, ...]
    """Files that are no text, and were not searched."""
    left_out: tuple[str, ...]
    """Artefacts that are too large for a bundle."""


def write_bundle(
    home: Path,
    path: Path,
    *,
    cluster: ClusterSpec | None,
    changes_work: Callable[[str], bool],
    cache: Path | None = None,
    campaign: str | None = None,
    tainted: bool = False,
    by: Authorship | None = None,
    force: bool = False,
    follow: Follow | None = None,
) -> WrittenBundle:
    """Write a bundle of a home's results.

    1. Read the store; refuse runs that have not ended.
    2. Redact and compress every run, on every core; build the redacted home beside it.
    3. Make the report from that home.
    4. Write the texts, the description and the manifest, and put the file in place.

    Args:
        home: state folder of the cluster.
        path: the file to write.
        cluster: the cluster as it last ran; None if that is not known.
        changes_work: whether another value of ``workload.parameter`` is other work.
        cache: the cache folder, whose path is replaced in logs.
        campaign: only this campaign, by its id; None for all.
        tainted: whether tainted runs count in the report.
        by: what only the authors know.
        force: whether a file that is there already may be replaced.
        follow: told what is done, how much of it, and how much there is; None for silence.

    Raises:
        UsageError: the file is there already, or a package of the extra `bundle` is not installed.
        EmptySelectionError: there is no such campaign, or no run.
        ClusterError: a run has not ended.
        StoreError: the store, an artefact or the record of a watch cannot be used.
        CapacityError: the disk became full.
        HostError: the file cannot be written.
    """
    by = by or Authorship()
    check_authorship(by)
    require_packages()
    require_free(path, force=force)
    gathered = gather(home, campaign=campaign, cluster=cluster)  # 1
    names = known_names(home, cluster, cache=cache, words=_words(gathered))
    with (
        whole_file(path, force=force) as temporary,
        tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.absolute().parent) as folder,
        temporary.open("wb") as stream,
        contextlib.closing(BundleWriter(stream)) as writer,
    ):
        work = _Work(gathered, Redactor(names), Path(folder), writer, follow)
        work.add_plans()
        work.add_attempts()  # 2
        redacted = work.redacted()
        chosen, target = redacted.chosen or None, Path(folder) / REPORT
        reported = make_report(  # 3
            work.home,
            target,
            campaign=chosen,
            tainted=tainted,
            changes_work=changes_work,
            follow=follow,
        )
        for name, content in sorted(reported.items()):
            work.add(f"{REPORT}/{name}", content)
        digest = work.finish(redacted, by, tainted=tainted)  # 4
    return work.written(path, digest)


def _words(gathered: Gathered) -> set[str]:
    """Return words of the records that are no name, though somebody may be called so.

    With those in the names of their fields: whose user is called ``max`` has ``repetitions_max``.
    """
    trials = [row.trial for row in gathered.results]
    words = {word for trial in trials for word in trial.workload.split("+")}
    for each in vars(records).values():
        if isinstance(each, type) and is_dataclass(each):
            words |= {word for row in fields(each) for word in row.name.split("_")}
    return words | {trial.engine.value for trial in trials} | {trial.profile for trial in trials}


class _Work:
    """What is done so far."""

    def __init__(
        self,
        gathered: Gathered,
        redactor: Redactor,
        folder: Path,
        writer: BundleWriter,
        follow: Follow | None,
    ) -> None:
        self.home = folder / "home"
        self.names: list[str] = []
        self.replaced: Tally[str] = Tally()
        self.unread: list[str] = []
        self.left_out: list[str] = []
        self._gathered = gathered
        self._redactor = redactor
        self._folder = folder
        self._writer = writer
        self._follow = follow
        self._cases: list[tuple[str, bytes]] = []
        self._samples = 0
        self.home.mkdir()

    def add(self, name: str, content: bytes) -> None:
        """Add a file as it is."""
        self._writer.add(pack(name, content))
        self.names.append(name)

    def _add_record(self, place: Path, content: bytes) -> None:
        """Redact a file of the home, and add it to the bundle and to the redacted home."""
        name = self._redactor.text(str(place.relative_to(self._gathered.home)))
        done = self._redactor.file(name, content)
        self.replaced.update(done.replaced)
        target = self.home / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(done.content)
        self.add(f"{STORE}/{name}", done.content)

    def add_plans(self) -> None:
        """Add campaigns, their files, the cluster, probes, tunings, and watches of all rounds."""
        home = self._gathered.home
        for row in self._gathered.campaigns:
            record = CampaignFile(campaign=row.campaign, trials=row.trials)
            self._add_record(campaign_path(home, row.campaign.id), record_text(record).encode())
            if row.file:
                self._add_record(campaign_file_path(home, row.campaign.id), row.file)
        if self._gathered.cluster is not None:
            self._add_record(home / CLUSTER_NAME, record_text(self._gathered.cluster).encode())
        for run in self._gathered.probes:
            place, text = probe_text(home, run)
            self._add_record(place, text.encode())
        for place in sorted(record_folder(home).glob("*")):
            if place.is_file() and self._gathered.chosen in {"", place.name.partition(".")[0]}:
                self._add_record(place, place.read_bytes())
        if not self._gathered.chosen:
            for place in watch_files(home):
                read_watch(home, place.stem)  # nobody could import one that makes no sense
                self._add_record(place, place.read_bytes())

    def add_attempts(self) -> None:
        """Redact and compress every run, and add it."""
        campaigns = {row.campaign.id: row.campaign for row in self._gathered.campaigns}
        jobs = [
            AttemptJob(
                campaign=campaigns[row.trial.campaign_id],
                result=row,
                home=self._gathered.home,
                made_home=self.home,
                part=self._folder / f"{place}.part",
            )
            for place, row in enumerate(self._gathered.attempts)
        ]

        def tell(done: int, total: int) -> None:
            if self._follow is not None:
                self._follow("redacting and compressing runs", done, total)

        packed = parallel_map(
            functools.partial(pack_attempt, self._redactor), jobs, many=_MANY, follow=tell
        )
        for job, row in zip(jobs, packed, strict=True):
            self._add_attempt(job, row)

    def _add_attempt(self, job: AttemptJob, packed: PackedAttempt) -> None:
        for file in packed_files(packed):
            self._writer.add(file)
            self.names.append(file.name)
            # Not below: what is called so in a container's folder is a program's file.
            self._samples += bool(_SAMPLES.fullmatch(file.name))
        self.replaced.update(packed.replaced)
        self.unread += packed.unread
        self.left_out += packed.left_out
        campaign = self._redactor.text(job.campaign.id)
        self._cases += [(campaign, content) for content in packed.cases]

    def redacted(self) -> Gathered:
        """Return the records as they are after redaction.

        Raises:
            StoreError: one of them could not be used any more.
        """
        before = self._gathered
        count = rebuild(self.home)
        if count != len(before.attempts):
            raise StoreError(
                f"{len(before.attempts) - count} of {len(before.attempts)} runs cannot be read "
                "after names in them were replaced",
                hint=_REPORT_IT,
            )
        after = gather(
            self.home,
            campaign=self._redactor.text(before.chosen) or None,
            cluster=read_cluster(self.home),
        )
        if lost := len(before.probes) - len(after.probes):
            raise StoreError(
                f"{lost} of {len(before.probes)} runs of probes cannot be read after names in them "
                "were replaced",
                hint=_REPORT_IT,
            )
        campaigns = (
            replace(row, is_registered=was.is_registered)
            for row, was in zip(after.campaigns, before.campaigns, strict=True)
        )
        return replace(after, campaigns=tuple(campaigns))

    def written(self, path: Path, digest: str) -> WrittenBundle:
        """Return what was written."""
        return WrittenBundle(
            path=path,
            sha256=digest,
            campaigns=len(self._gathered.campaigns),
            runs=len(self._gathered.attempts),
            files=len(self.names) + 1,
            size_bytes=path.stat().st_size,
            replaced=dict(self.replaced),
            unread=tuple(self.unread),
            left_out=tuple(self.left_out),
        )

    def finish(self, redacted: Gathered, by: Authorship, *, tainted: bool) -> str:
        """Add the texts, the description and the manifest; return the manifest's SHA-256."""
        named = [row.campaign.name or row.campaign.id for row in redacted.campaigns]
        clusters = ", ".join(dict.fromkeys(row.campaign.cluster for row in redacted.campaigns))
        info = BundleInfo(
            title=by.title or f"Results of {clusters}: {_some(named)}",
            cluster=clusters,
            campaign=redacted.chosen,
            campaigns=tuple(row.campaign.id for row in redacted.campaigns),
            attempts=len(redacted.attempts),
            probes=len(redacted.probes),
            tainted=tainted,
            boardcluster=__version__,
            created_utc=redacted.last_utc,
            redacted=dict(sorted(self.replaced.items())),
            unread=tuple(self.unread),
        )
        changed = (
            row.campaign.id
            for row, was in zip(redacted.campaigns, self._gathered.campaigns, strict=True)
            if row.file != was.file
        )
        texts = BundleTexts(
            info=info,
            gathered=redacted,
            facts=count_runs(redacted, with_samples=self._samples),
            inputs=inputs_of(redacted, self._cases),
            by=by,
            changed_files=tuple(changed),
            left_out=tuple(self.left_out),
        )
        files: Mapping[str, bytes] = {
            **{name: text.encode() for name, text in texts.files().items()},
            INFO: info_bytes(info),
        }
        for name, content in sorted(files.items()):
            self.add(name, content)
        self.add(CRATE, crate_text(texts, self.names).encode())
        return self._writer.finish()


def _some(names: list[str]) -> str:
    shown = list(dict.fromkeys(names))
    more = len(shown) - 3
    return ", ".join(shown[:3]) + (f" and {more} more" if more > 0 else "")
