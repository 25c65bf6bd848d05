"""ClusterSpec -> live nodes. ``emulated``: this machine; boards over SSH will be one more file."""
