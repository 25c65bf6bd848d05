"""``python -m boardcluster``."""

from boardcluster.cli import main

main()
