ALTER TABLE campaigns ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE campaigns ADD COLUMN spec_sha256 TEXT NOT NULL DEFAULT '';
ALTER TABLE trials ADD COLUMN concurrency INTEGER NOT NULL DEFAULT 1;
ALTER TABLE trials ADD COLUMN replication INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN checksum TEXT NOT NULL DEFAULT 'crc32c';
ALTER TABLE trials ADD COLUMN master TEXT NOT NULL DEFAULT 'declared';
ALTER TABLE trials ADD COLUMN warm_up INTEGER NOT NULL DEFAULT 0 CHECK (warm_up IN (0, 1));
ALTER TABLE trials ADD COLUMN input TEXT NOT NULL DEFAULT '';
-- A JSON object of strings.
ALTER TABLE trials ADD COLUMN parameters TEXT NOT NULL DEFAULT '{}';
-- NULL where the engine does not say.
ALTER TABLE measurements ADD COLUMN intermediate_bytes INTEGER;
-- A JSON list of strings.
ALTER TABLE measurements ADD COLUMN remarks TEXT NOT NULL DEFAULT '[]';

CREATE TABLE figures (
    trial_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    position INTEGER NOT NULL,  -- the workload's own order, most important first
    name TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (trial_id, number, name),
    FOREIGN KEY (trial_id, number) REFERENCES measurements (trial_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE phases (
    trial_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    position INTEGER NOT NULL,  -- run order
    name TEXT NOT NULL,
    duration_seconds REAL NOT NULL CHECK (duration_seconds >= 0),
    PRIMARY KEY (trial_id, number, name),
    FOREIGN KEY (trial_id, number) REFERENCES measurements (trial_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE node_bytes (
    trial_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    position INTEGER NOT NULL,  -- the cluster's order of nodes
    node TEXT NOT NULL,
    written_bytes INTEGER CHECK (written_bytes >= 0),
    read_bytes INTEGER CHECK (read_bytes >= 0),
    PRIMARY KEY (trial_id, number, node),
    FOREIGN KEY (trial_id, number) REFERENCES measurements (trial_id, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX campaigns_by_name ON campaigns (name, id);

CREATE TRIGGER ok_needs_proof BEFORE UPDATE ON attempts
WHEN new.state = 'ok' AND EXISTS (
    SELECT 1 FROM measurements m
    JOIN trials t ON t.id = m.trial_id
    JOIN campaigns c ON c.id = t.campaign_id
    WHERE m.trial_id = new.trial_id AND m.number = new.number
        AND c.kind = 'run' AND m.verification = 'null'
)
BEGIN SELECT raise(ABORT, 'a run without a verified output is not ok'); END;
