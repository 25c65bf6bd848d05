ALTER TABLE measurements ADD COLUMN verdict TEXT NOT NULL DEFAULT 'unjudged'
CHECK (verdict IN ('valid', 'tainted', 'invalid', 'unjudged'));

-- A JSON list of strings.
ALTER TABLE measurements ADD COLUMN verdict_reasons TEXT NOT NULL DEFAULT '[]';
-- A JSON object; null where nothing measures or models it.
ALTER TABLE measurements ADD COLUMN energy TEXT NOT NULL DEFAULT 'null';

CREATE TRIGGER ok_needs_telemetry BEFORE UPDATE ON attempts
WHEN new.state = 'ok' AND EXISTS (
    SELECT 1 FROM measurements
    WHERE trial_id = new.trial_id AND number = new.number AND verdict = 'invalid'
)
BEGIN SELECT raise(ABORT, 'a run whose telemetry does not cover it is not ok'); END;
