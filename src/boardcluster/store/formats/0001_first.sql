CREATE TABLE campaigns (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('run', 'submit')),
    created_utc TEXT NOT NULL,
    seed INTEGER NOT NULL,
    cluster TEXT NOT NULL,
    emulated INTEGER NOT NULL CHECK (emulated IN (0, 1)),
    dataset TEXT NOT NULL,
    dataset_sha256 TEXT NOT NULL,
    dataset_source TEXT NOT NULL
) STRICT;

CREATE TABLE trials (
    id TEXT PRIMARY KEY,
    campaign_id TEXT NOT NULL REFERENCES campaigns (id),
    position INTEGER NOT NULL,
    workload TEXT NOT NULL,
    engine TEXT NOT NULL,
    profile TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    workers INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    arguments TEXT NOT NULL,  -- a JSON list of strings
    UNIQUE (campaign_id, position)
) STRICT;

CREATE TABLE fingerprints (
    sha256 TEXT PRIMARY KEY,  -- of the record
    record TEXT NOT NULL  -- JSON
) STRICT;

CREATE TABLE attempts (
    trial_id TEXT NOT NULL REFERENCES trials (id),
    number INTEGER NOT NULL CHECK (number >= 1),
    state TEXT NOT NULL CHECK (state IN ('running', 'ok', 'failed', 'invalid')),
    reason TEXT NOT NULL,
    started_utc TEXT NOT NULL,
    ended_utc TEXT NOT NULL CHECK ((ended_utc = '') = (state = 'running')),
    artefacts TEXT NOT NULL,
    fingerprint_sha256 TEXT NOT NULL REFERENCES fingerprints (sha256),
    PRIMARY KEY (trial_id, number)
) STRICT;

CREATE TABLE measurements (
    trial_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    duration_seconds REAL NOT NULL CHECK (duration_seconds > 0),
    input_bytes INTEGER NOT NULL,
    output_bytes INTEGER NOT NULL,
    verification TEXT NOT NULL,  -- JSON; null where there is no known answer
    exit_status INTEGER NOT NULL,
    application_id TEXT NOT NULL,
    PRIMARY KEY (trial_id, number),
    FOREIGN KEY (trial_id, number) REFERENCES attempts (trial_id, number)
) STRICT;

CREATE TABLE counters (
    trial_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (trial_id, number, name),
    FOREIGN KEY (trial_id, number) REFERENCES measurements (trial_id, number)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX one_running_attempt ON attempts (trial_id) WHERE state = 'running';

CREATE TRIGGER attempts_begin_running BEFORE INSERT ON attempts
WHEN new.state <> 'running'
BEGIN SELECT raise(ABORT, 'an attempt begins as running'); END;

CREATE TRIGGER attempts_end_once BEFORE UPDATE ON attempts
WHEN old.state <> 'running'
BEGIN SELECT raise(ABORT, 'an ended attempt is never overwritten'); END;

CREATE TRIGGER attempts_are_kept BEFORE DELETE ON attempts
BEGIN SELECT raise(ABORT, 'an attempt is never deleted'); END;

CREATE TRIGGER ok_needs_measurement BEFORE UPDATE ON attempts
WHEN new.state = 'ok' AND NOT EXISTS (
    SELECT 1 FROM measurements
    WHERE trial_id = new.trial_id AND number = new.number
)
BEGIN SELECT raise(ABORT, 'an attempt without a measurement is not ok'); END;
