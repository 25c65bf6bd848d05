"""Unit tests of services/."""
