"""Results as tables for other programs: CSV, JSON, Parquet, lines of lists."""
