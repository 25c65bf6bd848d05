"""Fetch files from PyPI once, verified and whole."""
