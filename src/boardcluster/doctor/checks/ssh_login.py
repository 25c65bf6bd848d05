"""Nobody logs in to a board with a password.

- Accounts with a password may log in by SSH. Fix: `PasswordAuthentication no`.
- Root may log in with a password. Fix: `PermitRootLogin prohibit-password`.
- Accounts without any password may log in. Fix: `PermitEmptyPasswords no`.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]

_VENDORS = ("pi", "ubuntu", "debian", "orangepi", "odroid", "rock", "dietpi", "khadas", "radxa")
_FILE = "/etc/ssh/sshd_config.d/00-boardcluster.conf"


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        said, accounts = board.details.ssh_settings, board.details.accounts_with_password
        if not said:
            yield f"{board.name}: not checked: sshd does not report its settings"
            continue
        asks = [said.get("passwordauthentication"), said.get("kbdinteractiveauthentication")]
        others = [name for name in accounts if name != "root"]
        root = "root" in accounts and said.get("permitrootlogin") == "yes"
        parts, lines = [], []
        if "yes" in asks and others:
            vendors = [name for name in others if name in _VENDORS]
            known = f" (names that vendors use: {', '.join(vendors)})" if vendors else ""
            parts.append(f"SSH takes passwords, and these accounts have one: {', '.join(others)}")
            parts[-1] += known
            lines += ["PasswordAuthentication no", "KbdInteractiveAuthentication no"]
        if "yes" in asks and root:
            parts.append("root may log in with its password")
            lines.append("PermitRootLogin prohibit-password")
        if said.get("permitemptypasswords") == "yes":
            parts.append("accounts without a password may log in")
            lines.append("PermitEmptyPasswords no")
        if parts:
            rows = "\\n".join(lines)
            wanted = f"printf '{rows}\\n' | sudo tee {_FILE} && sudo systemctl reload ssh"
            yield Fault(
                "; ".join(parts),
                node=board.name,
                fix=f"keep a session open, log in with your key in another one, then: "
                f"{board.there(wanted)}",
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="What `sshd -T` says of passwords and root, and which accounts have a password in "
    "/etc/shadow; the passwords themselves are not read.",
    why="SSH is the only way into a closed board, and passwords of single-board computers are "
    "among the first to be guessed.",
    source="sshd_config(5); shadow(5)",
    severity=Severity.WARNING,
    look=_look,
    good="nobody logs in by SSH with a password",
)
