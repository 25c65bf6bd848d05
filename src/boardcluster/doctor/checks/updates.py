"""No package manager is running.

- One of them is running. Fix: wait, and stop the apt timers until the next boot. On boards `--fix`
  stops the timers, but never what is already running.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]

_TIMERS = "apt-daily.timer apt-daily-upgrade.timer"


def _look(facts: Facts) -> Faults:
    for node in facts.nodes:
        if node.package_managers:
            stop = node.there(f"sudo systemctl stop {_TIMERS}")
            yield Fault(
                f"running now: {', '.join(dict.fromkeys(node.package_managers))}",
                node=node.name,
                fix=f"wait until it has ended; `{stop}` prevents the next one until the next boot",
                repair=("systemctl", "stop", *_TIMERS.split()) if node.systemd else (),
            )


CHECK = Check(
    where=Where.NODES,
    name_on_boards="board_updates",
    looks_at="Running processes of apt, dpkg and unattended-upgrades.",
    why="They use CPU and disk for minutes, and a new Java or kernel in the middle of a campaign "
    "makes its runs incomparable. Meanwhile, packages cannot be installed.",
    source='Debian wiki, "UnattendedUpgrades"; apt-daily.timer, systemd.timer(5)',
    severity=Severity.WARNING,
    look=_look,
    good="no package manager is running",
)
