"""Unit tests of remote/."""
