"""Nobody else may add a key for the login user."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look at owner and mode of home, .ssh and authorized_keys."""
    yield from each(CHECK, view, _judge, good="SSH files belong to their user and to nobody else")


def _judge(board: BoardView) -> Finding | None:
    inside = board.inside
    foreign = [
        path for path, (owner, _) in inside.permissions.items() if owner not in _owners(board)
    ]
    loose = [path for path, (_, mode) in inside.permissions.items() if mode & _OTHERS_WRITE]
    if not (foreign or loose):
        return None
    parts = [f"{path} belongs to somebody else" for path in foreign]
    parts += [f"others may write {path} ({inside.permissions[path][1]:o})" for path in loose]
    return fault(
        CHECK,
        board,
        ", ".join(parts),
        fix=board.there(f"sudo chmod go-w {' '.join(loose)}")
        if loose and not foreign
        else board.there(f"sudo chown {board.facts.login_user} {' '.join(foreign)}"),
        repair=("chmod", "go-w", *loose) if loose and not foreign else (),
    )


def _owners(board: BoardView) -> tuple[int, int]:
    return (board.inside.login_id, 0)


_OTHERS_WRITE = 0o022

CHECK = Check(
    name="ssh_permissions",
    looks_at="Owner and mode of the login user's home, ~/.ssh and ~/.ssh/authorized_keys.",
    why="sshd then refuses every key (StrictModes), or, if that is off, any program on the board "
    "can let anybody in.",
    source="sshd_config(5), StrictModes; sshd(8), FILES",
    severity=Severity.WARNING,
    look=look,
)
