"""Pure: statistics of results, and whether they can be trusted. Takes records, never connections.

Verdicts are in ``boardcluster.analysis.trust``.
"""
