"""Power meters, one file each."""
