"""What a result is measured on."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from boardcluster import __version__
from boardcluster.analysis.fingerprints import OF_A_BOARD, OWN_FILES
from boardcluster.campaign.kernel import settings_on
from boardcluster.records import Fingerprint, NodeFacts, NodeLimits, NodeSpec, NodeTwin
from boardcluster.remote.local import LocalRemote
from boardcluster.services.declaration import own_part_digests
from boardcluster.services.job_crashes import lost_archives
from boardcluster.services.operation import LiveCluster
from boardcluster.twin.plan import disk_words
from boardcluster.units import format_bytes, format_rate

__all__ = ["cpu_model", "hardware_line", "limits_line", "take_fingerprint", "twin_line"]

_DIGITS = 12
"""Of the SHA-256 of a file: enough for no two to be alike by chance."""


def cpu_model() -> str:
    """Return the name of the CPU: from the device tree on boards, else from /proc/cpuinfo."""
    board = Path("/proc/device-tree/model")
    if board.exists():
        return board.read_bytes().rstrip(b"\0").decode(errors="replace")
    text = Path("/proc/cpuinfo").read_text()
    found = re.search(r"^(?:model name|Model)\s*: (.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _machine(facts: NodeFacts | None) -> dict[str, Any]:
    """Return the fields of a fingerprint that are of a board; without facts, of this machine."""
    if facts is None:
        return {
            "kernel": f"{platform.release()} {platform.machine()}",
            "os": _os_name(),
            "cpu": cpu_model(),
            "cpu_cores": os.cpu_count() or 1,
            "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        }
    return {
        "kernel": f"{facts.kernel} {facts.architecture}",
        "os": facts.os,
        "cpu": facts.board or facts.cpu,
        "cpu_cores": facts.cores,
        "memory_bytes": facts.memory_bytes,
    }


def hardware_line(name: str, facts: NodeFacts) -> str:
    """Describe a board in one line, by what stays the same from run to run."""
    clock = f" at {facts.clock_most_hertz / 1e9:.2f} GHz" if facts.clock_most_hertz else ""
    mount = facts.mount(facts.folder_mount)  # of the real folder, should it be behind a link
    medium = facts.medium(mount.medium) if mount else None
    rates = [link.speed_bits_per_second for link in facts.links if link.speed_bits_per_second]
    parts = [
        facts.board,
        f"{facts.cores} x {facts.cpu or facts.architecture}{clock}",
        format_bytes(facts.memory_bytes, binary=True),
        f"{medium.kind} {medium.model}".strip() if medium else "",
        f"PCIe {medium.pcie_generation} x{medium.pcie_lanes}"
        if medium and medium.pcie_generation
        else "",
        format_rate(max(rates)) if rates else "",
        f"{facts.page_size_bytes // 1024} KiB pages",
        facts.os,
        f"kernel {facts.kernel}",
        facts.firmware,
        f"governor {facts.governor}" if facts.governor else "",
    ]
    return f"{name}: {', '.join(part for part in parts if part)}"


def take_fingerprint(live: LiveCluster) -> Fingerprint:
    """Describe the machine, the engines and the configuration of a running cluster.

    Of boards, the machine is the smallest worker; the others are in ``hardware``.
    """
    spec, layout = live.spec, live.layout
    smallest = min(spec.workers, key=lambda worker: worker.memory_bytes)
    found = live.facts.get(smallest.name)
    settings = settings_on(live.remotes[smallest.name] if found else LocalRemote("host"))
    return Fingerprint(
        **_machine(found),
        java=live.state.java,
        hadoop=layout.engines.pair.hadoop,
        spark=layout.engines.pair.spark,
        boardcluster=__version__,
        profile=layout.profile.name,
        config_sha256=_config_sha256(live),
        nodes=len(spec.nodes),
        node_memory_bytes=smallest.memory_bytes,
        node_cores=smallest.cores,
        link_bits_per_second=spec.network.link_bits_per_second,
        emulated=spec.capabilities.emulated,
        security=spec.security,
        hardware=tuple(
            hardware_line(node.name, live.facts[node.name])
            for node in spec.nodes
            if node.name in live.facts
        ),
        kernel_command_line=settings.command_line,
        blas=settings.blas,
        numa=settings.numa,
        governor=_governors(live),
        limits="\n".join(_limits_lines(live)),
        twin=twin_line(spec.nodes),
        kind=spec.kind,
    )


def _config_sha256(live: LiveCluster) -> str:
    """The hash of the configuration, and of the class-data archives that were refused since."""
    known, lost = live.state.config_sha256, lost_archives(live)
    said = " ".join([known, *sorted(lost)])
    return hashlib.sha256(said.encode()).hexdigest() if lost else known


def _limits_lines(live: LiveCluster) -> Iterator[str]:
    """Describe the limits of each emulated board, with the own files that say what it has.

    Two files of the same name are two setups, and so are two states of one file.
    """
    nodes = {node.name: node for node in live.spec.nodes}
    for row in live.state.limits:
        digests = own_part_digests([nodes[row.node]] if row.node in nodes else [])
        files = [f"{Path(name).name} {digest[:_DIGITS]}" for name, digest in digests.items()]
        own = f"{OWN_FILES}{', '.join(sorted(files))}" if files else ""
        yield limits_line(replace(row, board=f"{row.board}{own}") if row.board else row)


def limits_line(limits: NodeLimits) -> str:
    """Describe in one line what the kernel gave an emulated board, and what the board has."""
    disk = limits.disk
    parts = [
        f"{limits.cpu_cores:.4g} cores of this machine as {limits.board_cores} of the board",
        f"{format_bytes(limits.memory_bytes, binary=True)} memory",
        "" if disk is None else disk_words(disk),
        f"link {format_rate(limits.link_bits_per_second)}",
    ]
    given = ", ".join(part for part in parts if part)
    return f"{limits.node}: {given}" + (f"{OF_A_BOARD}{limits.board}" if limits.board else "")


def twin_line(nodes: Iterable[NodeSpec]) -> str:
    """Describe the boards that emulated nodes stand for: ``1 x A with B + 8 x C``; may be empty."""
    counted = Counter(_twin_words(node.twin) for node in nodes if node.twin is not None)
    return " + ".join(f"{count} x {words}" for words, count in counted.items())


def _twin_words(twin: NodeTwin) -> str:
    parts = [twin.medium, f"PCIe {twin.pcie}" if twin.pcie else "", twin.supply, twin.cooling]
    named = ", ".join(_part_name(part) for part in parts if part)
    board = _part_name(twin.board)
    return f"{board} with {named}" if named else board


def _part_name(name: str) -> str:
    """The name of a part; of a file of the user's own, its name without folder and ending."""
    return PurePath(name).stem if name.endswith(".toml") else name


def _governors(live: LiveCluster) -> str:
    """The frequency governors of all nodes, of an emulated cluster those of this machine."""
    if live.facts:
        found = {name for facts in live.facts.values() for name in facts.governor.split(",")}
    else:
        found = set()
        for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"):
            with contextlib.suppress(OSError):
                found.add(path.read_text().strip())
    return ",".join(sorted(found - {""}))
