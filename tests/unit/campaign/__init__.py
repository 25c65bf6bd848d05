"""Unit tests of campaign/."""
