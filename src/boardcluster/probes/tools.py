"""Whether a node has what probes need, and which versions."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from boardcluster.errors import BoardclusterError, HostError, RemoteError
from boardcluster.probes.base import NodeTool, Probe
from boardcluster.remote.base import Remote

__all__ = ["FIND_PROGRAM", "Lack", "lacks_of", "refuse_lacks", "tool_versions"]

FIND_PROGRAM = """\
import json, os, shutil, sys
path = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin"
found = [name for name in sys.argv[1:] if shutil.which(name, path=path)]
json.dump({"found": found, "root": os.geteuid() == 0}, sys.stdout)
"""
"""Runs on a node: which of the programs are there, and whether it runs as root."""

_VERSION_SECONDS = 20.0
_VERSION_CHARACTERS = 100
_DIGIT = re.compile(r"\d")
_MARKUP = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """Why a probe cannot run on a node."""

    node: str
    """The node."""
    probe: str
    """The probe."""
    words: str
    """What is missing, in a few words."""
    packages: tuple[str, ...] = ()
    """The packages that bring it; empty where none does."""


def _look(remote: Remote, programs: Sequence[str]) -> tuple[set[str], bool]:
    done = remote.run(["python3", "-I", "-S", "-c", FIND_PROGRAM, *programs])
    try:
        answer = json.loads(done.stdout)
        return {str(name) for name in answer["found"]}, bool(answer["root"])
    except (ValueError, KeyError, TypeError) as error:
        raise RemoteError(
            f"{remote.name}: the answer is not JSON: {done.text[:120]!r}",
            hint=f"make the shell's start-up files on {remote.name} print nothing",
        ) from error


def lacks_of(node: str, remote: Remote, admin: Remote, probes: Sequence[Probe]) -> list[Lack]:
    """Return what a node lacks for probes.

    Args:
        node: its name.
        remote: the node.
        admin: the node as root, where there is such a way.
        probes: what is to run there.

    Raises:
        RemoteError: the node cannot be reached.
    """
    programs = sorted({tool.program for probe in probes for tool in probe.tools})
    found, is_root = _look(remote, programs)
    if not is_root and any(probe.needs_root for probe in probes):
        _, is_root = _look(admin, [])
    lacks = []
    for probe in probes:
        missing = [tool for tool in probe.tools if tool.program not in found]
        if missing:
            words = ", ".join(f"{tool.program} (package {tool.package})" for tool in missing)
            packages = tuple(sorted({tool.package for tool in missing}))
            lacks.append(Lack(node=node, probe=probe.name, words=words, packages=packages))
        elif probe.needs_root and not is_root:
            lacks.append(Lack(node=node, probe=probe.name, words="root"))
    return lacks


def refuse_lacks(lacks: Sequence[Lack]) -> None:
    """Refuse to begin while anything is missing anywhere.

    Raises:
        HostError: with everything that is missing, and the commands that mend it.
    """
    if not lacks:
        return
    nodes = list(dict.fromkeys(lack.node for lack in lacks))
    lines = [f"  {lack.node}: {lack.probe} needs {lack.words}" for lack in lacks]
    by_packages: dict[tuple[str, ...], list[str]] = {}
    for node in nodes:
        packages = sorted({name for lack in lacks if lack.node == node for name in lack.packages})
        by_packages.setdefault(tuple(packages), []).append(node)
    commands = [
        f"`sudo apt-get install -y {' '.join(packages)}` on {', '.join(names)}"
        for packages, names in by_packages.items()
        if packages
    ]
    hints = [f"run {' and '.join(commands)}"] if commands else []
    if any(not lack.packages for lack in lacks):
        hints.append("run boardcluster as root")
    raise HostError(
        f"nothing was run, because something is missing on {len(nodes)} of the nodes:\n"
        + "\n".join(lines),
        hint=f"{'; '.join(hints)}; or skip those probes with --skip-missing",
    )


def tool_versions(remote: Remote, tools: Iterable[NodeTool]) -> Mapping[str, str]:
    """Return what each program says of its version, by program.

    A program that says nothing with a number in it is named without a version; one that has none to
    tell is not run, since it would do something else.
    """
    said: dict[str, str] = {}
    for tool in tools:
        if tool.program in said:
            continue
        text = ""
        if tool.version:
            with contextlib.suppress(BoardclusterError):
                done = remote.run(
                    [tool.program, *tool.version], check=False, timeout_seconds=_VERSION_SECONDS
                )
                text = f"{done.text}\n{done.stderr.decode(errors='replace')}"
        lines = (" ".join(_MARKUP.sub("", line).split()) for line in text.splitlines())
        line = next((line for line in lines if _DIGIT.search(line)), "")
        line = line[:_VERSION_CHARACTERS] or "version unknown"
        known = line.lower().startswith(tool.program.lower())
        said[tool.program] = line if known else f"{tool.program}: {line}"
    return said
