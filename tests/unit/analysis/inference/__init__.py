"""Tests of the layer that says what times show."""
