"""What is where in a bundle, and what its first file says of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from boardcluster.store.files import CLUSTER_NAME

__all__ = [
    "BUNDLE_FORMAT",
    "CRATE",
    "INFO",
    "MANIFEST",
    "RECORDS",
    "REPORT",
    "STORE",
    "BundleInfo",
    "is_record",
]

BUNDLE_FORMAT = 1
"""Version of the layout; a bundle of a later one is refused."""

INFO = "bundle.json"
"""What the bundle is; see ``BundleInfo``."""
MANIFEST = "manifest-sha256.txt"
"""The SHA-256 of every other file, as ``sha256sum`` writes and checks it."""
CRATE = "ro-crate-metadata.json"
"""The description of the whole for machines (RO-Crate)."""
STORE = "store"
"""The folder that is laid out like the home of a cluster."""
REPORT = "report"
"""The folder of the report."""
RECORDS = ("campaigns/", "probes/", "tunings/", "watches/", CLUSTER_NAME)
"""Where in the store records are, beside those of attempts."""
_RECORD_NAME = "/attempt.json"


def is_record(name: str) -> bool:
    """Whether a file of a bundle, by its path, is a record of the store and not raw data."""
    inside = name.removeprefix(f"{STORE}/")
    return inside != name and (inside.startswith(RECORDS) or inside.endswith(_RECORD_NAME))


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleInfo:
    """Content of ``bundle.json``."""

    title: str
    """Its title."""
    cluster: str
    """Names of the clusters, joined by commas."""
    campaign: str
    """The one campaign that it holds, by its id; empty for a whole store."""
    campaigns: tuple[str, ...]
    """Ids of all campaigns in it, oldest first."""
    attempts: int
    """How many attempts at trials it holds."""
    probes: int
    """How many runs of probes it holds."""
    tainted: bool
    """Whether tainted runs count in its report."""
    boardcluster: str
    """The version that wrote it."""
    created_utc: str
    """When the last of its runs ended, ISO 8601 with offset: the same store gives the same
    bundle."""
    redacted: dict[str, int] = field(default_factory=dict)
    """How many texts of each sort were replaced."""
    unread: tuple[str, ...] = ()
    """Files that are no text, and so were not searched for secrets and names."""
