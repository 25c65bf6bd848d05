"""The store: an SQLite database and a folder of raw artefacts per attempt.

Every change follows one protocol, so that a crash at any moment loses nothing:

1. take the write lock and write the rows, which checks every constraint;
2. write the same as a JSON file, atomically (the point of no return);
3. commit.

A crash before 2 leaves everything as it was. A crash between 2 and 3 leaves an attempt that is
running in the database and ended in its file, or a campaign that only its file has;
``mark_interrupted`` takes both from the files.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import sqlite3
from collections import Counter as Tally
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from boardcluster.errors import EmptySelectionError, StoreError
from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    Fingerprint,
    Measurement,
    PowerSamples,
    ProbeRun,
    Result,
    Telemetry,
    Trial,
    in_cell,
)
from boardcluster.store import rows
from boardcluster.store.connection import REBUILD_HINT, connect, connect_reading, translated
from boardcluster.store.files import (
    DATABASE_NAME,
    TELEMETRY_NAME,
    AttemptFile,
    CampaignFile,
    attempt_path,
    campaign_file_path,
    campaign_path,
    check_id,
    read_record,
    replacing,
    write_record,
    write_temporary_bytes,
)
from boardcluster.store.local_disk import require_local_disk
from boardcluster.store.migrations import transaction
from boardcluster.store.power import read_power
from boardcluster.store.probes import (
    adopt_probe_runs,
    check_probe_run,
    insert_probe_run,
    select_probe_runs,
    write_probe_run,
)
from boardcluster.store.rules import check_end, check_telemetry

__all__ = ["CampaignSummary", "Store"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSummary:
    """The progress of a campaign: planned = ok + failed + invalid + pending, at every moment."""

    campaign_id: str
    """The campaign."""
    planned: int
    """Trials planned."""
    ok: int
    """Trials whose latest attempt is ok, and warm-ups of which one is."""
    failed: int
    """Trials whose latest attempt failed."""
    invalid: int
    """Trials whose latest attempt says nothing about the trial."""
    pending: int
    """Trials without an ended attempt; a running one counts here."""


class Store:
    """The only reader and writer of results. Open it with ``Store.open``; close it after use."""

    def __init__(self, home: Path, connection: sqlite3.Connection, *, read_only: bool) -> None:
        self._home = home
        self._path = home / DATABASE_NAME
        self._connection = connection
        self._read_only = read_only

    @classmethod
    def open(cls, home: Path, *, read_only: bool = False, whole: bool = True) -> Self:
        """Open the store of a cluster's state folder; it is checked, and made if there is none.

        Args:
            home: the cluster's state folder.
            read_only: change nothing on disk; a store that does not exist yet reads as empty.
            whole: if it is ``read_only``, whether all of it is checked, for who reads much of it;
                otherwise only what is read.

        Raises:
            StoreError: it is damaged, of a newer version, missing beside its files, or unreachable.
            HostError: the folder is on a network file system.
        """
        path = home / DATABASE_NAME
        if not path.exists() and any((home / "campaigns").glob("*.json")):
            raise StoreError(
                f"the store is missing although campaigns were recorded: {path}", hint=REBUILD_HINT
            )
        with translated(path):
            if read_only:
                return cls(home, connect_reading(path, whole=whole), read_only=True)
            require_local_disk(home)
            home.mkdir(parents=True, exist_ok=True)
            return cls(home, connect(path), read_only=False)

    def close(self) -> None:
        """Close the database; safe to repeat."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_campaign(
        self, campaign: Campaign, trials: Sequence[Trial], *, file_bytes: bytes = b""
    ) -> None:
        """Store a campaign with all its planned trials, or nothing.

        Args:
            campaign: the campaign.
            trials: its trials.
            file_bytes: the campaign file that it is of; empty for a single command.

        Raises:
            EmptySelectionError: there are no trials.
            StoreError: an id is taken or not usable, a trial belongs to another campaign, or the
                file is not the one that the campaign names by its digest.
        """
        if file_bytes and hashlib.sha256(file_bytes).hexdigest() != campaign.file_sha256:
            raise StoreError(
                f"the campaign file is not the one of campaign {campaign.id}",
                hint="report this: the driver broke the store's rules",
            )
        if not trials:
            raise EmptySelectionError(
                f"campaign {campaign.id} has no trials", hint="select at least one workload"
            )
        _check_trials(campaign.id, trials)
        path = campaign_path(self._home, campaign.id)
        with self._writing():
            rows.insert_campaign(self._connection, campaign)
            rows.insert_trials(self._connection, trials)
            record = CampaignFile(campaign=campaign, trials=tuple(trials))
            if path.exists() and read_record(CampaignFile, path) != record:
                raise StoreError(f"not in the store: {path}", hint=REBUILD_HINT)
            if file_bytes:
                path.parent.mkdir(parents=True, exist_ok=True)
                with replacing(campaign_file_path(self._home, campaign.id)) as temporary:
                    write_temporary_bytes(temporary, file_bytes)
            write_record(path, record)

    def add_trials(self, campaign_id: str, trials: Sequence[Trial]) -> None:
        """Plan further trials of a campaign, all of them or none; what was planned stays.

        A crash between the file and the commit leaves them in the file only. Nothing has begun
        them, and the driver plans the same ones again, since it decides by what is stored.

        Raises:
            EmptySelectionError: there is no such campaign.
            StoreError: an id or a place is taken, or a trial belongs to another campaign.
        """
        _check_trials(campaign_id, trials)
        campaign = self._campaign(campaign_id)
        with self._writing():
            rows.insert_trials(self._connection, trials)
            planned = rows.select_trials(self._connection, campaign_id)
            path = campaign_path(self._home, campaign_id)
            write_record(path, CampaignFile(campaign=campaign, trials=planned))

    def campaigns(self) -> tuple[Campaign, ...]:
        """All campaigns, oldest first."""
        with translated(self._path):
            return rows.select_campaigns(self._connection)

    def find_campaigns(self, name: str) -> tuple[Campaign, ...]:
        """The campaigns of a ``campaign.toml`` of that name, oldest first; often none or one."""
        with translated(self._path):
            return rows.select_campaigns(self._connection, name=name)

    def campaign_file(self, campaign_id: str) -> bytes | None:
        """Return the campaign file that a campaign was begun with; None if it has none.

        Raises:
            StoreError: it cannot be read.
        """
        try:
            return campaign_file_path(self._home, campaign_id).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(str(error), hint="check who may read it") from error

    def trials(self, campaign_id: str) -> tuple[Trial, ...]:
        """The trials of a campaign in run order.

        Raises:
            EmptySelectionError: there is no such campaign.
        """
        self._campaign(campaign_id)
        with translated(self._path):
            return rows.select_trials(self._connection, campaign_id)

    def begin_attempt(
        self, trial_id: str, fingerprint: Fingerprint, started_utc: str, *, start_id: str = ""
    ) -> Attempt:
        """Begin the next attempt at a trial and make its artefact folder.

        Args:
            trial_id: the trial.
            fingerprint: what it runs on.
            started_utc: ISO 8601 with offset.
            start_id: id of the start of the daemons that it runs on.

        Raises:
            StoreError: there is no such trial, an attempt is running, or the trial is ok already
                and in its cell. A warm-up may run again: it warms up another start of the daemons.
        """
        with self._writing():
            campaign, trial = self._context(trial_id)
            latest = rows.select_attempt(self._connection, trial_id)
            if latest is not None and latest.state is AttemptState.RUNNING:
                raise StoreError(
                    f"attempt {latest.number} of {trial_id} is still running",
                    hint="end the other driver first; a dead one is found by the next run",
                )
            if (
                latest is not None
                and latest.state is AttemptState.OK
                and not trial.warm_up
                and trial_id not in self._excluded(campaign.id)
            ):
                raise StoreError(
                    f"{trial_id} has a verified result already", hint="start a new campaign"
                )
            number = 1 if latest is None else latest.number + 1
            path = attempt_path(self._home, trial_id, number)
            attempt = Attempt(
                trial_id=trial_id,
                number=number,
                state=AttemptState.RUNNING,
                reason="",
                started_utc=started_utc,
                ended_utc="",
                artefacts=str(path.parent.relative_to(self._home)),
                fingerprint=fingerprint,
                start_id=start_id,
            )
            rows.insert_attempt(self._connection, attempt)
            self._require_free(path)
            write_record(
                path,
                AttemptFile(campaign=campaign, trial=trial, attempt=attempt, measurement=None),
            )
        return attempt

    def artefact_folder(self, attempt: Attempt) -> Path:
        """The folder of an attempt's raw artefacts."""
        return attempt_path(self._home, attempt.trial_id, attempt.number).parent

    def finish(
        self,
        attempt: Attempt,
        *,
        state: AttemptState,
        reason: str,
        ended_utc: str,
        measurement: Measurement | None,
        telemetry: Telemetry | None = None,
    ) -> Attempt:
        """End an attempt: its state, its measurement, counters and samples in one transaction.

        After an exception from here call ``mark_interrupted``; it leaves an ended attempt alone.

        Args:
            attempt: a running attempt.
            state: how it ended.
            reason: why it is not ok, in one line; for an ok attempt, a remark or empty.
            ended_utc: ISO 8601 with offset.
            measurement: what it yielded; needed for ok, kept for the others if there is one.
            telemetry: the samples; needed for ok where the measurement was judged by them.

        Raises:
            StoreError: the attempt has ended already, or may not end like this (see check_end).
        """
        with self._writing():
            campaign, trial = self._context(attempt.trial_id)
            stored = rows.select_attempt(self._connection, attempt.trial_id, attempt.number)
            ended = None if stored is None else self._end_on_disk(stored)
            if stored is None or stored.state is not AttemptState.RUNNING or ended is not None:
                found = "unknown" if stored is None else (ended.attempt if ended else stored).state
                raise StoreError(
                    f"attempt {attempt.number} of {attempt.trial_id} is {found}, not running",
                    hint="begin a new attempt; an ended one is never overwritten",
                )
            done = dataclasses.replace(stored, state=state, reason=reason, ended_utc=ended_utc)
            check_end(campaign, done, measurement)
            check_telemetry(done, measurement, telemetry)
            if telemetry is not None:
                # Here and not above: NumPy takes longer to load than most commands take to run.
                from boardcluster.store.samples import write_telemetry  # noqa: PLC0415

                write_telemetry(self.artefact_folder(done), telemetry)
            self._write_end(campaign, trial, done, measurement)
        return done

    def telemetry(
        self, attempt: Attempt, *, nodes: Collection[str] = (), columns: Collection[str] = ()
    ) -> Telemetry | None:
        """The samples of an attempt; None where it has none.

        Args:
            attempt: the attempt.
            nodes: only these; empty for all.
            columns: only these, each with all behind its slash; empty for all.

        Raises:
            StoreError: the file is damaged or of an unknown format.
        """
        from boardcluster.store.samples import read_telemetry  # noqa: PLC0415

        return read_telemetry(self.artefact_folder(attempt), nodes=nodes, columns=columns)

    def has_samples(self, attempt: Attempt) -> bool:
        """Whether an attempt has samples, readable or not."""
        return (self.artefact_folder(attempt) / TELEMETRY_NAME).is_file()

    def power_samples(self, attempt: Attempt) -> tuple[PowerSamples, ...]:
        """The readings of power meters over an attempt; none where no meter was read.

        Raises:
            StoreError: the file is damaged or of an unknown format.
        """
        return read_power(self.artefact_folder(attempt))

    def running(self) -> tuple[Attempt, ...]:
        """Every attempt that began and has no end: with the driver lock held, a dead driver's."""
        with translated(self._path):
            return rows.select_running(self._connection)

    def mark_interrupted(self, reason: str) -> int:
        """End every attempt that a dead driver left running; call it only while holding the lock.

        An attempt whose file already holds its end gets that end; any other becomes invalid, ended
        now. A campaign whose file was written and whose rows were not committed gets its rows.

        Returns:
            How many became invalid.
        """
        marked = 0
        with self._writing():
            self._adopt_campaigns()
            for attempt in rows.select_running(self._connection):
                found = self._end_on_disk(attempt)
                if found is not None:
                    rows.insert_end(self._connection, found.attempt, found.measurement)
                    continue
                campaign, trial = self._context(attempt.trial_id)
                ended = dataclasses.replace(
                    attempt,
                    state=AttemptState.INVALID,
                    reason=reason,
                    ended_utc=datetime.now(UTC).isoformat(timespec="seconds"),
                )
                check_end(campaign, ended, None)
                self._write_end(campaign, trial, ended, None)
                marked += 1
        return marked

    @property
    def home(self) -> Path:
        """The state folder of the cluster whose results it holds."""
        return self._home

    def results(
        self, campaign_id: str | None = None, *, all_attempts: bool = False
    ) -> tuple[Result, ...]:
        """Each trial with its latest attempt, in the order of campaigns and positions.

        Args:
            campaign_id: only this campaign.
            all_attempts: a trial with several attempts appears once for each.

        Raises:
            EmptySelectionError: there is no such campaign.
        """
        if campaign_id is not None:
            self._campaign(campaign_id)
        with translated(self._path):
            return rows.select_results(self._connection, campaign_id, all_attempts=all_attempts)

    def recent(
        self, workload: str, engine: str, *, most: int, without: Collection[str] = ()
    ) -> tuple[Result, ...]:
        """The newest ok runs of a workload on an engine, without warm-ups.

        Only what a prediction reads: counters and bytes by node are left out, which take most of
        the time of ``results``.

        Args:
            workload: its name.
            engine: the engine.
            most: how many.
            without: campaigns whose runs do not count, by their ids.
        """
        with translated(self._path):
            return rows.select_recent(
                self._connection, workload, engine, most=most, without=without
            )

    def states(self, campaign_id: str) -> Mapping[str, AttemptState | None]:
        """The state of each trial's latest attempt by the trial's id, in run order.

        None is a trial that was never begun. A resume runs what is None, and what is neither ok
        nor failed.

        Raises:
            EmptySelectionError: there is no such campaign.
        """
        self._campaign(campaign_id)
        with translated(self._path):
            return rows.select_states(self._connection, campaign_id)

    def excluded(self, campaign_id: str, *, attempts_most: int) -> frozenset[str]:
        """The trials that were verified, but never so that they are in their cell.

        Only those that were tried at most so many times: a resume repeats them, should the driver
        have been killed before it could.

        Raises:
            EmptySelectionError: there is no such campaign.
        """
        self._campaign(campaign_id)
        with translated(self._path):
            tries = self._excluded(campaign_id)
        return frozenset(trial for trial, count in tries.items() if count <= attempts_most)

    def _excluded(self, campaign_id: str) -> dict[str, int]:
        """Return how often each trial was verified of which no run is in its cell."""
        judged: dict[str, list[bool]] = {}
        for row in rows.select_results(self._connection, campaign_id, all_attempts=True):
            if row.attempt and row.attempt.state is AttemptState.OK and row.measurement:
                judged.setdefault(row.trial.id, []).append(in_cell(row.measurement))
        return {trial: len(runs) for trial, runs in judged.items() if not any(runs)}

    def best_clocks(self, fingerprint: Fingerprint) -> Mapping[str, float]:
        """The best clock under load that was ever measured on each board, by node.

        A node is the same board if its line in the fingerprint is the same.
        """
        with translated(self._path):
            return rows.select_best_clocks(self._connection, fingerprint)

    def typical_seconds(self) -> Mapping[tuple[str, str, int, int], float]:
        """Mean duration of the ok runs by workload, engine, size in bytes and number of workers.

        On this machine: a dilated run counts with the time that it really took. Over the whole
        store, to estimate how long a campaign takes. Warm-ups and the user's own
        programs stay out; profiles and other settings are pooled.
        """
        with translated(self._path):
            return rows.select_typical_seconds(self._connection)

    def summary(self, campaign_id: str) -> CampaignSummary:
        """Count a campaign's trials by the state of their latest attempt.

        Raises:
            EmptySelectionError: there is no such campaign.
        """
        states = self.states(campaign_id)
        tally = Tally(states.values())
        return CampaignSummary(
            campaign_id=campaign_id,
            planned=len(states),
            ok=tally[AttemptState.OK],
            failed=tally[AttemptState.FAILED],
            invalid=tally[AttemptState.INVALID],
            pending=tally[None] + tally[AttemptState.RUNNING],
        )

    def add_probe_run(self, run: ProbeRun) -> None:
        """Store one run of a probe, with its file.

        Raises:
            StoreError: its id is taken, or it cannot be stored.
        """
        check_probe_run(run)
        with self._writing():
            adopt_probe_runs(self._connection, self._home)
            insert_probe_run(self._connection, run)
            write_probe_run(self._home, run)

    def probe_runs(self, *, node: str = "", probe: str = "") -> tuple[ProbeRun, ...]:
        """Runs of probes, oldest first, also those that failed.

        Args:
            node: only on this node; empty for every one.
            probe: only of this probe; empty for every one.
        """
        with translated(self._path):
            return select_probe_runs(self._connection, node=node, probe=probe)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self._read_only:
            raise StoreError("the store is open read-only", hint="open it for writing")
        with translated(self._path), transaction(self._connection):
            yield

    def _campaign(self, campaign_id: str) -> Campaign:
        with translated(self._path):
            found = rows.select_campaign(self._connection, campaign_id)
        if found is None:
            known = ", ".join(campaign.id for campaign in self.campaigns()[-5:])
            raise EmptySelectionError(
                f"there is no campaign {campaign_id}",
                hint=f"name one of: {known}" if known else "run one first: `boardcluster run`",
            )
        return found

    def _context(self, trial_id: str) -> tuple[Campaign, Trial]:
        trial = rows.select_trial(self._connection, trial_id)
        if trial is None:
            raise StoreError(f"no trial {trial_id}", hint="add its campaign first")
        return self._campaign(trial.campaign_id), trial

    def _adopt_campaigns(self) -> None:
        """Give rows to each campaign that reached its file but not the database.

        One that cannot be used is left where it is and named in a warning of the log.
        """
        for path in sorted((self._home / "campaigns").glob("*.json")):
            if rows.select_campaign(self._connection, path.stem) is not None:
                continue
            self._connection.execute("SAVEPOINT adopted")
            try:
                record = read_record(CampaignFile, path)
                rows.insert_campaign(self._connection, record.campaign)
                rows.insert_trials(self._connection, record.trials)
            except (sqlite3.IntegrityError, StoreError) as error:
                self._connection.execute("ROLLBACK TO adopted")
                _LOG.warning("left out: %s: %s", path, error)
            finally:
                self._connection.execute("RELEASE adopted")

    def _end_on_disk(self, attempt: Attempt) -> AttemptFile | None:
        """The end of a running attempt that reached its file but not the database."""
        try:
            found = read_record(
                AttemptFile, attempt_path(self._home, attempt.trial_id, attempt.number)
            )
        except StoreError:
            return None
        return None if found.attempt.state is AttemptState.RUNNING else found

    def _require_free(self, path: Path) -> None:
        """Refuse a folder that holds an attempt the database does not know.

        A file that says ``running`` was left by a crash before the commit: nobody was given it.
        """
        if not path.exists():
            return
        if read_record(AttemptFile, path).attempt.state is not AttemptState.RUNNING:
            raise StoreError(f"not in the store: {path}", hint=REBUILD_HINT)

    def _write_end(
        self, campaign: Campaign, trial: Trial, attempt: Attempt, measurement: Measurement | None
    ) -> None:
        rows.insert_end(self._connection, attempt, measurement)
        write_record(
            attempt_path(self._home, attempt.trial_id, attempt.number),
            AttemptFile(campaign=campaign, trial=trial, attempt=attempt, measurement=measurement),
        )


def _check_trials(campaign_id: str, trials: Sequence[Trial]) -> None:
    """Refuse trials that have no usable id or belong to another campaign.

    Raises:
        StoreError: names the trial.
    """
    for trial in trials:
        check_id(trial.id)
        if trial.campaign_id != campaign_id:
            raise StoreError(
                f"trial {trial.id} belongs to campaign {trial.campaign_id}, not {campaign_id}",
                hint="report this: the driver broke the store's rules",
            )
