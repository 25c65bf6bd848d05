"""What a result is measured on."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from boardcluster import __version__
from boardcluster.records import Fingerprint
from boardcluster.services.operation import LiveCluster

__all__ = ["cpu_model", "take_fingerprint"]


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


def take_fingerprint(live: LiveCluster) -> Fingerprint:
    """Describe the machine, the engines and the configuration of a running cluster."""
    spec, layout = live.spec, live.layout
    smallest = min(spec.workers, key=lambda worker: worker.memory_bytes)
    return Fingerprint(
        kernel=f"{platform.release()} {platform.machine()}",
        os=_os_name(),
        cpu=cpu_model(),
        cpu_cores=os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        java=live.state.java,
        hadoop=layout.engines.pair.hadoop,
        spark=layout.engines.pair.spark,
        boardcluster=__version__,
        profile=layout.profile.name,
        config_sha256=live.state.config_sha256,
        nodes=len(spec.nodes),
        node_memory_bytes=smallest.memory_bytes,
        node_cores=smallest.cores,
        link_bits_per_second=spec.network.link_bits_per_second,
        emulated=spec.kind == "emulated",
    )
