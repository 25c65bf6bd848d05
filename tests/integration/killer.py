"""Runs the program and kills it with SIGKILL at one chosen point. Not a test itself.

``python -m tests.integration.killer MODULE:NAME before|after CALL -- ARGUMENTS``: the process dies
just before or just after the CALLth call of that function.
"""

from __future__ import annotations

import sys

from boardcluster.cli import main
from tests.killing import kill_at

if __name__ == "__main__":
    separator = sys.argv.index("--")
    kill_at(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    main(sys.argv[separator + 1 :])
