"""ClusterSpec -> live nodes. ``emulated``: this machine. Boards: see docs/decisions/0013."""
