-- JSON: a list of objects, a list of strings, an object of numbers.
ALTER TABLE measurements ADD COLUMN disturbances TEXT NOT NULL DEFAULT '[]';
ALTER TABLE measurements ADD COLUMN tolerated_share REAL NOT NULL DEFAULT 0.05;
ALTER TABLE measurements ADD COLUMN clock_hertz TEXT NOT NULL DEFAULT '{}';
ALTER TABLE probe_runs ADD COLUMN verdict TEXT NOT NULL DEFAULT 'unjudged'
CHECK (verdict IN ('valid', 'tainted', 'invalid', 'unjudged'));
ALTER TABLE probe_runs ADD COLUMN verdict_reasons TEXT NOT NULL DEFAULT '[]';
ALTER TABLE probe_runs ADD COLUMN disturbances TEXT NOT NULL DEFAULT '[]';
ALTER TABLE probe_runs ADD COLUMN tolerated_share REAL NOT NULL DEFAULT 0.05;
