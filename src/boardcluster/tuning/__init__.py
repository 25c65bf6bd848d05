"""Tuning: the space of settings, the search in it, its record on disk, and its result. Pure.

``space.toml`` is the space as data. Nothing here runs a job: ``campaign.tune`` does what
``search.next_step`` says and writes each end into the record, from which all else follows.
"""
