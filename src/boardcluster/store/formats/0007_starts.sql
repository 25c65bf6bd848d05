ALTER TABLE campaigns ADD COLUMN starts INTEGER NOT NULL DEFAULT 1 CHECK (starts >= 1);
-- A share of the result; NULL for a campaign that runs what is planned.
ALTER TABLE campaigns ADD COLUMN precision REAL CHECK (precision > 0);
ALTER TABLE campaigns ADD COLUMN repetitions_max INTEGER NOT NULL DEFAULT 0;
-- A JSON list of the comparisons that the file declares.
ALTER TABLE campaigns ADD COLUMN comparisons TEXT NOT NULL DEFAULT '[]';
ALTER TABLE trials ADD COLUMN start INTEGER NOT NULL DEFAULT 1 CHECK (start >= 1);
ALTER TABLE attempts ADD COLUMN start_id TEXT NOT NULL DEFAULT '';
