"""Nobody else may add a key for the login user.

- Others may write one of them. Fix: `sudo chmod go-w`; `--fix` does it.
- One of them belongs to another user. Fix: `sudo chown`.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]

_OTHERS_WRITE = 0o022


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        modes = board.details.permissions
        owners = (board.details.login_id, 0)
        foreign = [path for path, (owner, _) in modes.items() if owner not in owners]
        loose = [path for path, (_, mode) in modes.items() if mode & _OTHERS_WRITE]
        if not (foreign or loose):
            continue
        parts = [f"{path} belongs to another user" for path in foreign]
        parts += [f"others may write to {path} ({modes[path][1]:o})" for path in loose]
        own = f"sudo chown {board.facts.login_user} {' '.join(foreign)}"
        yield Fault(
            ", ".join(parts),
            node=board.name,
            fix=board.there(own if foreign else f"sudo chmod go-w {' '.join(loose)}"),
            repair=() if foreign else ("chmod", "go-w", *loose),
        )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="Owner and mode of the login user's home, ~/.ssh and ~/.ssh/authorized_keys.",
    why="sshd then refuses every key (StrictModes), or, if that is off, any program on the board "
    "can let anyone in.",
    source="sshd_config(5), StrictModes; sshd(8), FILES",
    severity=Severity.WARNING,
    look=_look,
    good="SSH files belong to their user, and nobody else may write to them",
)
