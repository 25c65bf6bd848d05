"""Unit tests of analysis/."""
