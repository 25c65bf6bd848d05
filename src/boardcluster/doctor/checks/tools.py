"""The programs that make and run nodes are here and can what is asked of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings

__all__ = ["BOARD_TOOLS", "CHECK", "LOCAL_TOOLS", "TOOLS", "Tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program.

    Attributes:
        name: how it is called.
        package: the Debian package that has it.
        ask: the option that makes it describe itself.
        ability: what that description must mention; empty if presence is enough.
        since: the first version that can do it.
    """

    name: str
    package: str
    ask: str = "--version"
    ability: str = ""
    since: str = ""


TOOLS = (
    Tool(name="ip", package="iproute2", ask="-help", ability="-j[son]", since="iproute2 4.14"),
    Tool(name="tc", package="iproute2", ask="-help", ability="-j[son]", since="iproute2 4.14"),
    Tool(
        name="unshare",
        package="util-linux",
        ask="--help",
        ability="--kill-child",
        since="util-linux 2.32",
    ),
    Tool(
        name="nsenter",
        package="util-linux",
        ask="--help",
        ability="--preserve-credentials",
        since="util-linux 2.26",
    ),
    Tool(
        name="env",
        package="coreutils",
        ask="--help",
        ability="--ignore-signal",
        since="coreutils 8.31",
    ),
    Tool(name="sleep", package="coreutils"),
    Tool(name="sort", package="coreutils"),
    Tool(name="tail", package="coreutils"),
    Tool(name="tr", package="coreutils"),
    Tool(name="uniq", package="coreutils"),
    Tool(name="hostname", package="hostname"),
    Tool(name="mount", package="mount"),
    Tool(name="bash", package="bash"),
)

BOARD_TOOLS = (
    Tool(name="ssh", package="openssh-client", ask="-V", ability="OpenSSH", since="OpenSSH 8.4"),
    Tool(name="ssh-keygen", package="openssh-client", ask="-?"),
    Tool(name="rsync", package="rsync"),
    *(tool for tool in TOOLS if tool.name in ("sort", "tail", "tr", "uniq")),
)
"""What is needed here where the nodes are boards."""

LOCAL_TOOLS = tuple(tool for tool in TOOLS if tool.package in ("coreutils", "bash"))
"""What is needed where this machine itself is the node."""


def look(around: Surroundings) -> Iterator[Finding]:
    """Ask every program to describe itself."""
    faults = 0
    known = around.declared.capabilities
    tools = BOARD_TOOLS if known.over_ssh else TOOLS
    if known.shares_processes:
        tools = LOCAL_TOOLS
    for tool in tools:
        done = around.machine.run([tool.name, tool.ask])
        fix = f"sudo apt-get install {tool.package}"
        if done is None:
            faults += 1
            yield CHECK.wrong(f"`{tool.name}` is missing", fix=fix)
        elif tool.ability.encode() not in done.stdout + done.stderr:
            faults += 1
            yield CHECK.wrong(
                f"`{tool.name}` does not know {tool.ability}; it needs {tool.since} or newer",
                fix=f"{fix}   (a newer release of the system, if this changes nothing)",
            )
    if not faults:
        yield CHECK.good(f"all {len(tools)} programs are here")


CHECK = Check(
    name="tools",
    looks_at="The programs of iproute2, util-linux, coreutils, hostname, mount and bash that "
    "boardcluster and the engines call, and the options they must know; for boards OpenSSH, rsync "
    "and coreutils; for a local node coreutils and bash.",
    why="Nodes, their links and the count that proves a result right are made with them.",
    source="iproute2, util-linux, OpenSSH and GNU coreutils, release notes",
    severity=Severity.ERROR,
    look=look,
)
