-- By how much nodes were slower than the boards they stand for; times are the boards'.
ALTER TABLE measurements ADD COLUMN dilation REAL NOT NULL DEFAULT 1 CHECK (dilation >= 1);
