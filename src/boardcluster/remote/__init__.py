"""Reach a node: run, start, put, get, close. Knows nothing of the rooms above it."""
