"""ClusterSpec -> live nodes. ``emulated``: this machine; boards over SSH come next (docs/decisions/0013)."""
