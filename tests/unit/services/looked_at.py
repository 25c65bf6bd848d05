"""A node that says what it lacks when a service looks at it, and fails on all else."""

from collections.abc import Sequence
from typing import Any

from boardcluster.cluster.state import LiveState
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed
from boardcluster.services.operation import LiveCluster

__all__ = ["STATE", "LookedAt", "looked_at"]

STATE = LiveState(
    identity="i", boot_id="b", phase="up", own_user=False, subnet="198.18.7.0/24", kind="emulated"
)


class LookedAt(FakeRemote):
    """Says its words when it is looked at; that it lacks a program only if that is asked for."""

    says: tuple[str, ...] = ()

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        if tuple(argv[:2]) == ("sh", "-c") and argv[3] == "look":
            said = "".join(
                f"{row}\n"
                for row in self.says
                if not row.startswith("lacks ") or row.split()[1] in argv[4:]
            )
            return Completed(
                argv=tuple(argv),
                returncode=0,
                stdout=said.encode(),
                stderr=b"",
                duration_seconds=0.0,
            )
        return super().run(argv, **options)


def looked_at(live: LiveCluster, name: str) -> LookedAt:
    """Return a node of a cluster of such nodes."""
    found = live.remotes[name]
    assert isinstance(found, LookedAt)
    return found
