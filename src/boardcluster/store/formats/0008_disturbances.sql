-- JSON lists: of objects, and of strings.
ALTER TABLE measurements ADD COLUMN disturbances TEXT NOT NULL DEFAULT '[]';
ALTER TABLE probe_runs ADD COLUMN verdict TEXT NOT NULL DEFAULT 'unjudged'
CHECK (verdict IN ('valid', 'tainted', 'invalid', 'unjudged'));
ALTER TABLE probe_runs ADD COLUMN verdict_reasons TEXT NOT NULL DEFAULT '[]';
ALTER TABLE probe_runs ADD COLUMN disturbances TEXT NOT NULL DEFAULT '[]';
