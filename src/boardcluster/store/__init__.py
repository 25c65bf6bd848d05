"""The only reader and writer of results: SQLite, raw artefacts, and JSON beside them."""

from boardcluster.store.codec import JsonValue, from_json, to_json
from boardcluster.store.database import Store, Summary
from boardcluster.store.recovery import rebuild

__all__ = ["JsonValue", "Store", "Summary", "from_json", "rebuild", "to_json"]
