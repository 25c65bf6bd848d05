"""The only reader and writer of results: SQLite, raw artefacts, and JSON beside them."""

from boardcluster.store.codec import JsonValue, from_json, to_json
from boardcluster.store.database import CampaignSummary, Store
from boardcluster.store.files import replacing
from boardcluster.store.recovery import rebuild

__all__ = [
    "CampaignSummary",
    "JsonValue",
    "Store",
    "from_json",
    "rebuild",
    "replacing",
    "to_json",
]
