"""Readings of power meters over an attempt, as one file beside its other artefacts.

``power.json`` has one object for each meter: name, coverage, nodes, and two lists of the same
length, ``seconds`` from the start of the run and ``watts``, null where the meter gave none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from boardcluster.errors import StoreError
from boardcluster.records import Coverage, PowerSamples
from boardcluster.store.files import POWER_NAME, replacing, write_temporary

__all__ = ["read_power", "write_power"]

_FORMAT = 1
_SECONDS_DIGITS, _WATTS_DIGITS = 3, 4


def write_power(folder: Path, samples: Sequence[PowerSamples]) -> Path:
    """Write a run's readings into an attempt's folder, whole or not at all; return the file.

    They are kept to a millisecond and a tenth of a milliwatt.

    Raises:
        OSError: the disk is full, read-only or out of reach.
    """
    meters = [
        {
            "meter": row.meter,
            "coverage": row.coverage.value,
            "nodes": list(row.nodes),
            "seconds": [round(moment, _SECONDS_DIGITS) for moment in row.seconds.tolist()],
            "watts": [
                None if math.isnan(value) else round(value, _WATTS_DIGITS)
                for value in row.watts.tolist()
            ],
        }
        for row in samples
    ]
    path = folder / POWER_NAME
    with replacing(path) as temporary:
        text = json.dumps({"format": _FORMAT, "meters": meters}, allow_nan=False)
        write_temporary(temporary, text + "\n")
    return path


def read_power(folder: Path) -> tuple[PowerSamples, ...]:
    """Read a run's readings; none where no meter was read, or before readings were kept.

    Raises:
        StoreError: the file is damaged or of an unknown format.
    """
    # Not above: NumPy takes longer to load than most commands take to run.
    import numpy as np  # noqa: PLC0415

    path = folder / POWER_NAME
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if body["format"] != _FORMAT:
            raise StoreError(
                f"unknown format: {path}", hint="use the version of boardcluster that wrote it"
            )
        rows = [
            (row, np.array(list(zip(row["seconds"], row["watts"], strict=True)), dtype=np.float64))
            for row in body["meters"]
        ]
        return tuple(
            PowerSamples(
                meter=str(row["meter"]),
                coverage=Coverage(row["coverage"]),
                nodes=tuple(row["nodes"]),
                seconds=table.reshape(-1, 2)[:, 0],
                watts=table.reshape(-1, 2)[:, 1],
            )
            for row, table in rows
        )
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
        raise StoreError(
            f"damaged: {path}: {error}", hint="the run stays; only its power curve is lost"
        ) from error
