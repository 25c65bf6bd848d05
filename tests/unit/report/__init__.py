"""Unit tests of report/."""
