"""What the model needs to know of a board and a medium, from the catalog or from own probes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BoardRates", "MediumRates"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRates:
    """What the model needs of a board."""

    name: str
    """Its name in the catalog, or the path of its file."""
    cores: int
    """CPUs."""
    memory_bytes: int
    """Memory that the kernel manages."""
    cpu_rate: float | None
    """How fast all cores compute, by 7-zip, in multiples of the Raspberry Pi 4B at 1.5 GHz; None
    where neither a probe nor a paper says it."""
    cpu_source: str
    """Where that is from, in words."""
    idle_watts: float | None
    """Power when it does nothing; None where not known."""
    stress_watts: float | None
    """Power with every core busy; None where not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediumRates:
    """What the model needs of a medium."""

    name: str
    """Its name in the catalog, or the path of its file."""
    capacity_bytes: float | None
    """Its size; None where not known."""
    slowness: float | None
    """How much longer writing 10 GB to HDFS takes than on the UFS card of the 2021 paper; None
    without an HDFS write probe."""
    source: str
    """Where that is from, in words."""
