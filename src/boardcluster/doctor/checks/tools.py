"""The programs that make and run nodes are installed and know the options they are called with.

- A program is missing, or too old for an option. Fix: `sudo apt-get install` with its package.
"""

from dataclasses import dataclass

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["BOARD_TOOLS", "CHECK", "LOCAL_TOOLS", "TOOLS", "HostTool"]


@dataclass(frozen=True, slots=True)
class HostTool:
    """A program."""

    name: str
    """How it is called."""
    package: str
    """The Debian package that has it."""
    ask: str = "--version"
    """The option that makes it describe itself."""
    ability: str = ""
    """What that description must mention; empty if presence is enough."""
    since: str = ""
    """The first version that can do it."""


TOOLS = (
    HostTool("ip", "iproute2", "-help", "-j[son]", "iproute2 4.14"),
    HostTool("tc", "iproute2", "-help", "-j[son]", "iproute2 4.14"),
    HostTool("unshare", "util-linux", "--help", "--kill-child", "util-linux 2.32"),
    HostTool("nsenter", "util-linux", "--help", "--preserve-credentials", "util-linux 2.26"),
    HostTool("env", "coreutils", "--help", "--ignore-signal", "coreutils 8.31"),
    *(HostTool(name, "coreutils") for name in ("sleep", "sort", "tail", "tr", "uniq")),
    *(HostTool(name, name) for name in ("hostname", "mount", "bash")),
)

BOARD_TOOLS = (
    HostTool("ssh", "openssh-client", "-V", "OpenSSH", "OpenSSH 8.4"),
    HostTool("ssh-keygen", "openssh-client", "-?"),
    HostTool("rsync", "rsync"),
    *(tool for tool in TOOLS if tool.name in ("sort", "tail", "tr", "uniq")),
)
"""What is needed here where the nodes are boards."""

LOCAL_TOOLS = tuple(tool for tool in TOOLS if tool.package in ("coreutils", "bash"))
"""What is needed where this machine itself is the node."""


def _look(facts: Facts) -> Faults:
    kind = facts.declared.capabilities
    tools = BOARD_TOOLS if kind.over_ssh else LOCAL_TOOLS if kind.shares_processes else TOOLS
    for tool in tools:
        done = facts.machine.run([tool.name, tool.ask])
        fix = f"sudo apt-get install {tool.package}"
        if done is None:
            yield Fault(f"`{tool.name}` is missing", fix=fix)
        elif tool.ability.encode() not in done.stdout + done.stderr:
            yield Fault(
                f"`{tool.name}` does not know {tool.ability}; it needs {tool.since} or newer",
                fix=f"{fix}   (if this changes nothing, a newer release of the system)",
            )


CHECK = Check(
    where=Where.ALWAYS,
    looks_at="The programs of iproute2, util-linux, coreutils, hostname, mount and bash that "
    "boardcluster and the engines call, and the options they must know; for boards OpenSSH, rsync "
    "and coreutils; for a local node coreutils and bash.",
    why="Nodes, their links and the verification of results depend on them.",
    source="iproute2, util-linux, OpenSSH and GNU coreutils, release notes",
    severity=Severity.ERROR,
    look=_look,
    good="all programs are installed",
)
