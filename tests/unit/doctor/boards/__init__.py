"""Unit tests of doctor/boards/."""
