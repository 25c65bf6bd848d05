"""Unit tests of cluster/."""
