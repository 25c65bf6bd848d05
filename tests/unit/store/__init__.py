"""Unit tests of store/."""
