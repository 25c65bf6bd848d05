"""The pages of the farm: which there are, how often each is asked for, and what is in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["COPIES", "SEEDS", "Page", "expected_bytes", "pages_of", "write_pages"]

COPIES = 4
"""Static pages of each size."""

SEEDS = 16
"""Computed pages, each of which starts from another number."""

_CLASSES = ((35, (1000,)), (50, (2000, 5000, 10_000)), (14, (20_000, 50_000, 100_000)),
            (1, (200_000, 500_000, 1_000_000)))  # fmt: skip
"""Percent of the requests and sizes of each class: the shares of SPECweb99's classes."""

_PART = 3 * COPIES * SEEDS
"""Into so many parts a percent is divided: a class has 1 or 3 sizes."""
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page."""

    path: str
    """What is asked for."""
    file: str
    """File with what must come, below the folder of the plan."""
    weight: int
    """How often it is asked for, among the weights of all."""
    size_bytes: int
    """Size of its body."""
    rounds: int = 0
    """Digests that computing it takes; 0 for a static page."""
    seed: int = 0
    """Number that a computed page starts from."""

    def body(self) -> bytes:
        """Return what must come."""
        if not self.rounds:
            return hashlib.shake_256(self.path.encode()).digest(self.size_bytes)
        value = str(self.seed)
        for _ in range(self.rounds):
            value = hashlib.sha256(value.encode()).hexdigest()
        return value.encode()


def pages_of(*, computed_percent: int, rounds: int, largest_bytes: int) -> tuple[Page, ...]:
    """Return the pages, each with its weight.

    Args:
        computed_percent: percent of the requests that are for computed pages.
        rounds: digests that a computed page takes.
        largest_bytes: size of the largest static page: larger ones are left out, and if it is
            larger than all of them it is the last of its class.
    """
    classes = [
        (percent, [size for size in sizes if size <= largest_bytes]) for percent, sizes in _CLASSES
    ]
    if largest_bytes > _CLASSES[-1][1][-1]:
        classes[-1] = (_CLASSES[-1][0], [*_CLASSES[-1][1][:-1], largest_bytes])
    pages = []
    for percent, sizes in classes:
        for size in sizes:
            weight = percent * (100 - computed_percent) * _PART // len(sizes) // COPIES
            pages += [
                Page(
                    path=f"/pages/{size}-{copy}",
                    file=f"pages/{size}-{copy}",
                    weight=weight,
                    size_bytes=size,
                )
                for copy in range(COPIES)
            ]
    asked = sum(percent for percent, sizes in classes if sizes)
    pages += [
        Page(
            path=f"/compute?seed={seed}",
            file=f"answers/{seed}",
            weight=asked * computed_percent * _PART // SEEDS,
            size_bytes=64,
            rounds=rounds,
            seed=seed,
        )
        for seed in range(SEEDS)
    ]
    return tuple(page for page in pages if page.weight)


def write_pages(pages: Iterable[Page], folder: Path) -> str:
    """Write pages and plan into a folder; return the digest of all of it."""
    digest, lines = hashlib.sha256(), []
    for page in pages:
        target = folder / page.file
        target.parent.mkdir(parents=True, exist_ok=True)
        body = page.body()
        target.write_bytes(body)
        line = f"{page.weight} {page.path} {page.file}"
        digest.update(f"{line} {hashlib.sha256(body).hexdigest()}\n".encode())
        lines.append(f"{line}\n")
    (folder / "plan").write_text("".join(lines))
    return digest.hexdigest()


def expected_bytes(pages: Sequence[Page], *, seed: int, requests: int) -> int:
    """Return the bytes of so many requests: request i is for the page that splitmix64 picks.

    Source: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA
    2014, as in ``loadgen.c``.
    """
    until = np.cumsum(np.array([page.weight for page in pages], dtype=np.uint64))
    sizes = np.array([page.size_bytes for page in pages], dtype=np.int64)
    total = 0
    for first in range(0, requests, _CHUNK):
        x = np.arange(first, min(requests, first + _CHUNK), dtype=np.uint64) + np.uint64(seed)
        x += np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        picked = np.searchsorted(until, x % until[-1], side="right")
        total += int(sizes[picked].sum())
    return total
