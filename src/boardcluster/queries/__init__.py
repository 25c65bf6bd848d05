"""Reads the store for reports, comparisons, exports and whoever follows a campaign."""
