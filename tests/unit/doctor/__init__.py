"""Unit tests of doctor/."""
