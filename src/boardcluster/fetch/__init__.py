"""Fetch files once, verified and atomically: over HTTP and from PyPI."""
