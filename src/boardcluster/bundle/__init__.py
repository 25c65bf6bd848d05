"""Bundles: what others need to check results, in one file; written from a store, and read."""
