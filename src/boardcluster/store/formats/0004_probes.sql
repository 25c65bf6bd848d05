CREATE TABLE probe_runs (
    id TEXT PRIMARY KEY,
    probe TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('quick', 'paper')),
    node TEXT NOT NULL,
    peer TEXT NOT NULL,  -- empty where there is none
    started_utc TEXT NOT NULL,
    duration_seconds REAL NOT NULL CHECK (duration_seconds >= 0),
    cluster TEXT NOT NULL,  -- empty for a machine that is in none
    emulated INTEGER NOT NULL CHECK (emulated IN (0, 1)),
    versions TEXT NOT NULL,  -- a JSON list of strings
    hardware TEXT NOT NULL,
    reason TEXT NOT NULL  -- empty if it measured something
) STRICT;

CREATE TABLE probe_figures (
    run_id TEXT NOT NULL REFERENCES probe_runs (id),
    position INTEGER NOT NULL,  -- the probe's own order
    name TEXT NOT NULL,
    value REAL NOT NULL,
    conditions TEXT NOT NULL,  -- a JSON object of strings
    PRIMARY KEY (run_id, position),
    UNIQUE (run_id, name, conditions)
) STRICT, WITHOUT ROWID;

CREATE INDEX probe_runs_by_node ON probe_runs (node, probe, id);

CREATE TRIGGER probe_runs_never_change BEFORE UPDATE ON probe_runs
BEGIN SELECT raise(ABORT, 'a run of a probe is never overwritten'); END;

CREATE TRIGGER probe_runs_are_kept BEFORE DELETE ON probe_runs
BEGIN SELECT raise(ABORT, 'a run of a probe is never deleted'); END;
