"""TOML files -> validated specifications; pure, no input or output beyond reading the file."""
