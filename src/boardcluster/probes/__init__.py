"""Node benchmarks: one file each, a command and a pure parser."""
