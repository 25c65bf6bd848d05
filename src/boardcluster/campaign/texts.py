"""The texts that trials read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from boardcluster.datasets.airline import prepare_airline
from boardcluster.datasets.text import from_file
from boardcluster.fetch.cache import Progress
from boardcluster.records import MANY_YEARS, Dataset, Trial

__all__ = ["prepared_texts"]


def prepared_texts(cache: Path, progress: Progress) -> Callable[[Trial], Dataset]:
    """Return what prepares the text of a trial in the cache folder, each text once."""

    @functools.cache
    def prepare(source: str, size_bytes: int) -> Dataset:
        if source == MANY_YEARS:
            return prepare_airline(
                size_bytes=size_bytes, cache=cache, many_years=True, progress=progress
            )
        if source:
            size = size_bytes or None
            return from_file(Path(source), size_bytes=size, cache=cache, progress=progress)
        return prepare_airline(size_bytes=size_bytes, cache=cache, progress=progress)

    return lambda trial: prepare(trial.input, trial.size_bytes)
