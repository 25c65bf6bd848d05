"""A store of an earlier format keeps everything when a later version opens it."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import store_run
from tests.unit.store.conftest import LATER

from boardcluster.factors import FACTORS
from boardcluster.records import (
    AttemptState,
    Campaign,
    Checksum,
    Fingerprint,
    MasterPlacement,
    Measurement,
    Trial,
    Verdict,
)
from boardcluster.store import Store, rebuild, to_json
from boardcluster.store.files import CampaignFile, attempt_path, campaign_path, read_record
from boardcluster.store.migrations import MIGRATIONS

BEGAN = "2026-08-01T12:00:01+00:00"
ENDED = "2026-08-01T12:00:31+00:00"
NEW = {
    "campaign": (
        *("name", "spec_sha256", "starts", "precision", "repetitions_max", "comparisons"),
        "file_sha256",
    ),
    "trial": (
        *("concurrency", "replication", "checksum", "master", "warm_up", "input", "parameters"),
        "start",
        *LATER,
    ),
    "measurement": (
        *("figures", "phases_seconds", "intermediate_bytes", "node_written_bytes"),
        *("node_read_bytes", "remarks", "verdict", "verdict_reasons", "energy"),
        *("dilation", "disturbances", "tolerated_share", "clock_hertz"),
    ),
}


@pytest.fixture
def old_campaign(campaign: Campaign) -> Campaign:
    return replace(
        campaign,
        name="",
        spec_sha256="",
        file_sha256="",
        starts=1,
        precision=None,
        repetitions_max=0,
        comparisons=(),
    )


@pytest.fixture
def old_trials(trials: tuple[Trial, ...]) -> tuple[Trial, ...]:
    return tuple(
        replace(
            trial,
            concurrency=1,
            replication=0,
            checksum=Checksum.CRC32C,
            master=MasterPlacement.DECLARED,
            warm_up=False,
            input="",
            parameters={},
            start=1,
            **{factor.name: factor.empty for factor in FACTORS if factor.migration},
        )
        for trial in trials
    )


@pytest.fixture
def old_measurement(measurement: Measurement) -> Measurement:
    return replace(
        measurement,
        figures={},
        phases_seconds={},
        intermediate_bytes=None,
        node_written_bytes={},
        node_read_bytes={},
        remarks=(),
        verdict=Verdict.UNJUDGED,
        verdict_reasons=(),
        energy=None,
        dilation=1.0,
        disturbances=(),
        tolerated_share=0.05,
        clock_hertz={},
    )


@pytest.fixture
def old_store(
    tmp_path: Path,
    old_campaign: Campaign,
    old_trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    old_measurement: Measurement,
) -> Path:
    """A database made by the statements of ``0001_first``: one trial ok, the others pending."""
    connection = sqlite3.connect(tmp_path / "store.sqlite")
    name, statements = MIGRATIONS[0]
    assert name == "0001_first"
    connection.execute("CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_utc TEXT NOT NULL)")
    connection.execute("INSERT INTO migrations VALUES (?, 'then')", (name,))
    for statement in statements:
        connection.execute(statement)
    c, found = old_campaign, old_measurement
    connection.execute(
        "INSERT INTO campaigns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (c.id, c.kind, c.created_utc, c.seed, c.cluster, 1, *_dataset(c)),
    )
    connection.executemany(
        "INSERT INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '[]')",
        [
            (t.id, c.id, t.position, t.workload, t.engine, t.profile, t.size_bytes, 4, t.repetition)
            for t in old_trials
        ],
    )
    connection.execute(
        "INSERT INTO fingerprints VALUES ('f', ?)", (json.dumps(to_json(fingerprint)),)
    )
    key = (old_trials[0].id, 1)
    connection.execute(
        "INSERT INTO attempts VALUES (?, ?, 'running', '', ?, '', 'folder', 'f')", (*key, BEGAN)
    )
    connection.execute(
        "INSERT INTO measurements VALUES (?, ?, ?, ?, ?, ?, 0, ?)",
        (
            *key,
            found.duration_seconds,
            found.input_bytes,
            found.output_bytes,
            json.dumps(to_json(found.verification)),
            found.application_id,
        ),
    )
    connection.executemany(
        "INSERT INTO counters VALUES (?, ?, ?, ?)",
        [(*key, counter, value) for counter, value in found.counters.items()],
    )
    connection.execute("UPDATE attempts SET state = 'ok', ended_utc = ?", (ENDED,))
    connection.commit()
    connection.close()
    return tmp_path


def _dataset(campaign: Campaign) -> tuple[str, str, str]:
    return campaign.dataset, campaign.dataset_sha256, campaign.dataset_source


@pytest.mark.parametrize("read_only", [True, False])
def test_a_store_of_the_first_format_reads_as_it_was(
    *,
    old_store: Path,
    old_campaign: Campaign,
    old_trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    old_measurement: Measurement,
    read_only: bool,
) -> None:
    with Store.open(old_store, read_only=read_only) as store:
        assert store.campaigns() == (old_campaign,)
        assert store.trials(old_campaign.id) == old_trials
        first, *others = store.results()
    assert first.measurement == old_measurement
    assert first.attempt is not None
    assert first.attempt.state is AttemptState.OK
    assert first.attempt.fingerprint == fingerprint
    assert [item.attempt for item in others] == [None] * (len(old_trials) - 1)


def test_a_store_of_before_there_were_emulated_boards_reads_as_undilated(
    tmp_path: Path,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    with Store.open(tmp_path) as store:
        store.add_campaign(campaign, trials)
        store_run(store, trials[0], measurement, fingerprint=fingerprint)
    connection = sqlite3.connect(tmp_path / "store.sqlite")
    for name in ("dilation", "disturbances", "tolerated_share", "clock_hertz"):
        connection.execute(f"ALTER TABLE measurements DROP COLUMN {name}")
    for name in ("verdict", "verdict_reasons", "disturbances", "tolerated_share"):
        connection.execute(f"ALTER TABLE probe_runs DROP COLUMN {name}")
    for name in (*LATER, "start"):
        connection.execute(f"ALTER TABLE trials DROP COLUMN {name}")
    for name in ("starts", "precision", "repetitions_max", "comparisons", "file_sha256"):
        connection.execute(f"ALTER TABLE campaigns DROP COLUMN {name}")
    connection.execute("ALTER TABLE attempts DROP COLUMN start_id")
    connection.execute("DELETE FROM migrations WHERE name >= '0005_twins'")
    record = json.loads(connection.execute("SELECT record FROM fingerprints").fetchone()[0])
    del record["limits"], record["twin"]
    connection.execute("UPDATE fingerprints SET record = ?", (json.dumps(record),))
    connection.commit()
    connection.close()
    with Store.open(tmp_path) as store:
        [found] = [row for row in store.results() if row.measurement]
    assert found.measurement == replace(
        measurement, dilation=1.0, disturbances=(), tolerated_share=0.05, clock_hertz={}
    )
    assert found.attempt is not None
    assert found.attempt.fingerprint == replace(fingerprint, limits="", twin="")


def test_a_migrated_store_takes_new_results_beside_the_old(
    old_store: Path,
    old_trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
    old_measurement: Measurement,
) -> None:
    with Store.open(old_store) as store:
        store_run(store, old_trials[1], measurement, fingerprint=fingerprint)
    with Store.open(old_store, read_only=True) as store:
        assert [item.measurement for item in store.results()[:2]] == [old_measurement, measurement]


def test_files_of_the_first_format_are_read_with_defaults(
    tmp_path: Path,
    old_campaign: Campaign,
    old_trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    old_measurement: Measurement,
) -> None:
    with Store.open(tmp_path) as store:
        store.add_campaign(old_campaign, old_trials)
        store_run(store, old_trials[0], old_measurement, fingerprint=fingerprint)
        before = store.results(all_attempts=True)
    plan = campaign_path(tmp_path, old_campaign.id)
    end = attempt_path(tmp_path, old_trials[0].id, 1)
    for path in (plan, end):
        body = json.loads(path.read_text())
        assert body["format"] == 7
        record = body["record"]
        for part in (record["campaign"], *record.get("trials", ()), record.get("trial", {})):
            for name in (*NEW["campaign"], *NEW["trial"]):
                part.pop(name, None)
        for name in NEW["measurement"]:
            record.get("measurement", {}).pop(name, None)
        path.write_text(json.dumps({"format": 1, "record": record}))
    assert read_record(CampaignFile, plan).trials == old_trials
    assert rebuild(tmp_path) == 1
    with Store.open(tmp_path, read_only=True) as store:
        assert store.results(all_attempts=True) == before


def _bare(statement: str) -> str:
    """A statement without comments, line breaks and the mark of its end."""
    return " ".join(re.sub(r"--.*", "", statement).split()).rstrip("; ")


def test_a_migration_that_was_released_never_changes() -> None:
    digests = {
        name: hashlib.sha256("\n".join(map(_bare, statements)).encode()).hexdigest()
        for name, statements in MIGRATIONS
    }
    assert digests == {
        "0001_first": "70057547510d36eaefc7f8cda704b5372822860bf0965ec26019bcd8e872ed61",
        "0002_campaigns": "898b0b07650ccca46e344abae57ff8dddba3d59948dbc97004fb2aa81cc76007",
        "0003_trust": "0dc1381350d6de3642600060e39855cffc8e08ed0f958cdc7a4b3315b619a061",
        "0004_probes": "935fb40f6d516bda64550dad2b2accf4e469aa06bb100ee0dc070cde56437f3d",
        "0005_twins": "d9f2e75eed4329aa564a382c9ad73a4c4e26b36e5b329b660492fbdb171e7cdf",
        "0006_settings": "eb787a42f8cd6fac05e6fbc429e32be2d4e93981e14b114fa6fc25f8b50fb3f4",
        "0007_starts": "895c00900c7a9d8e5ba510ae1b83aa0d776a5f83308394500e037891d3416e95",
        "0008_disturbances": "d87da2495acdb0bebdaf79b4ddd59fd7aeb6126c3c94bdae09903ea98880b9f6",
        "0009_variant": "87d7a039da28469cf06dbb9d5a03beb1bcd6b66fbe4717076073dd7dc6db8f75",
        "0010_campaign_files": "d528c7662a2922b7623263451ff9c3d744d0136a3647cecadc5b9eb90faf96aa",
        "0011_fault": "ae03831bbf625b89ea03c356eea7e40b8c633318d36c3624790f2303dcedccb8",
    }
