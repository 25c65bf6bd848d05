"""TOML files -> validated specifications; pure, no input or output beyond reading the file.

What is named here is loaded when it is first used: most need one part of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boardcluster.spec.boards import FoundBoard, propose_boards
    from boardcluster.spec.campaign import (
        REPETITIONS_MAX,
        SEED_MAX,
        STARTS_MAX,
        WorkloadFacts,
        default_repetitions_max,
        load_campaign,
        mix_engines,
    )
    from boardcluster.spec.checks import TIMEOUT_SECONDS_MAX, check_precision
    from boardcluster.spec.cluster import (
        BOARDS_MAX,
        CORES_MAX,
        DEFAULT_FOLDER,
        DEFAULT_LINK_BITS_PER_SECOND,
        DEFAULT_SUBNET,
        LOOPBACK_ADDRESS,
        LOOPBACK_NAME,
        LOOPBACK_SUBNET,
        NODES_MAX,
        address_of,
        host_address,
        load_cluster,
    )
    from boardcluster.spec.inventory import Inventory, parse_inventory, render_inventory
    from boardcluster.spec.meters import MeterFacts
    from boardcluster.spec.template import propose_cluster, render_cluster, workers_that_fit
    from boardcluster.spec.twin import BoardFacts, MediumFacts, TwinParts

__all__ = [
    "BOARDS_MAX",
    "CORES_MAX",
    "DEFAULT_FOLDER",
    "DEFAULT_LINK_BITS_PER_SECOND",
    "DEFAULT_SUBNET",
    "LOOPBACK_ADDRESS",
    "LOOPBACK_NAME",
    "LOOPBACK_SUBNET",
    "NODES_MAX",
    "REPETITIONS_MAX",
    "SEED_MAX",
    "STARTS_MAX",
    "TIMEOUT_SECONDS_MAX",
    "BoardFacts",
    "FoundBoard",
    "Inventory",
    "MediumFacts",
    "MeterFacts",
    "TwinParts",
    "WorkloadFacts",
    "address_of",
    "check_precision",
    "default_repetitions_max",
    "host_address",
    "load_campaign",
    "load_cluster",
    "mix_engines",
    "parse_inventory",
    "propose_boards",
    "propose_cluster",
    "render_cluster",
    "render_inventory",
    "workers_that_fit",
]

if not TYPE_CHECKING:  # so that a name that does not exist is an error to type checkers, too
    _NAMES = {
        "boards": (
            "FoundBoard",
            "propose_boards",
        ),
        "campaign": (
            "REPETITIONS_MAX",
            "SEED_MAX",
            "STARTS_MAX",
            "WorkloadFacts",
            "default_repetitions_max",
            "load_campaign",
            "mix_engines",
        ),
        "checks": (
            "TIMEOUT_SECONDS_MAX",
            "check_precision",
        ),
        "cluster": (
            "BOARDS_MAX",
            "CORES_MAX",
            "DEFAULT_FOLDER",
            "DEFAULT_LINK_BITS_PER_SECOND",
            "DEFAULT_SUBNET",
            "LOOPBACK_ADDRESS",
            "LOOPBACK_NAME",
            "LOOPBACK_SUBNET",
            "NODES_MAX",
            "address_of",
            "host_address",
            "load_cluster",
        ),
        "inventory": (
            "Inventory",
            "parse_inventory",
            "render_inventory",
        ),
        "meters": ("MeterFacts",),
        "template": (
            "propose_cluster",
            "render_cluster",
            "workers_that_fit",
        ),
        "twin": (
            "BoardFacts",
            "MediumFacts",
            "TwinParts",
        ),
    }
    _PLACES = {name: place for place, names in _NAMES.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
