"""The texts that trials read."""

from __future__ import annotations

from pathlib import Path

from boardcluster.datasets.airline import prepare_airline
from boardcluster.datasets.text import from_file
from boardcluster.fetch.cache import Progress
from boardcluster.records import Dataset, Trial

__all__ = ["Texts"]


class Texts:
    """Prepares the text of a trial, each text once.

    Args:
        cache: the cache folder.
        progress: told what is being prepared.
    """

    def __init__(self, cache: Path, progress: Progress) -> None:
        self._cache = cache
        self._progress = progress
        self._known: dict[tuple[str, int], Dataset] = {}

    def __call__(self, trial: Trial) -> Dataset:
        """Return the text that a trial reads."""
        key = (trial.input, trial.size_bytes)
        if key not in self._known:
            self._known[key] = self._prepare(*key)
        return self._known[key]

    def _prepare(self, source: str, size_bytes: int) -> Dataset:
        if source:
            return from_file(
                Path(source),
                size_bytes=size_bytes or None,
                cache=self._cache,
                progress=self._progress,
            )
        return prepare_airline(size_bytes=size_bytes, cache=self._cache, progress=self._progress)
