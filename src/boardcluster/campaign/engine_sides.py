"""The same cells on two engine pairs in turn, each on a copy of the cluster with a home of its own.

HDFS of one version does not read what another one wrote, so each pair has its own state folder
below the cluster's. They use the same nodes one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from boardcluster.campaign.begin import CampaignRequest, Start
from boardcluster.campaign.follow import Follower
from boardcluster.campaign.life import run_campaign
from boardcluster.cluster.lock import driver_lock
from boardcluster.cluster.state import load_state
from boardcluster.errors import ClusterError, UsageError
from boardcluster.fetch.cache import make_folder, writing
from boardcluster.records import Result
from boardcluster.services import operation
from boardcluster.services.declaration import read_spec
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.spec.template import render_cluster
from boardcluster.store import Store, replacing
from boardcluster.telemetry.meters.registry import meter_facts

__all__ = ["EnginesRunner"]

_FOLDER = "bisect"


class EnginesRunner:
    """Runs cells on both pairs, a start of the cluster each time.

    Args:
        home: the cluster's state folder.
        pairs: the engine pairs.
        cache: the driver's cache folder.
        follow: told what is done.

    Raises:
        UsageError: nodes are boards, which belong to one home, or both pairs are the same.
        ClusterError: the cluster is up.
    """

    def __init__(
        self, home: Path, pairs: tuple[str, str], *, cache: Path, follow: Follower
    ) -> None:
        declared = read_spec(home / "cluster.toml", meter_kinds=meter_facts())
        if pairs[0] == pairs[1]:
            raise UsageError(f"{pairs[0]} is named twice", hint="name two engine pairs")
        if declared.capabilities.provisioned:
            raise UsageError(
                "boards belong to one cluster, so two engine pairs cannot take turns on them",
                hint="change `engines` in cluster.toml and keep watching: the chart shows the "
                "effect",
            )
        if operation.found_up(home):
            raise ClusterError(
                "the cluster is up, and the engine pairs need its nodes",
                hint="run `boardcluster down` first",
            )
        self._declared = declared
        self._homes = tuple(home / _FOLDER / pair for pair in pairs)
        self._pairs = pairs
        self._cache = cache
        self._follow = follow

    def run(
        self, request: CampaignRequest, rounds: int, *, new: bool
    ) -> tuple[Sequence[Result], Sequence[Result]]:
        """Run what is selected so often on each pair, the first one first in every other round.

        What an earlier call has run is not run again, unless ``new``.
        """
        first = self._series(request.spec.name, new=new)
        found: tuple[list[Result], list[Result]] = ([], [])
        try:
            for number in range(1, rounds + 1):
                for side in (0, 1) if number % 2 else (1, 0):
                    found[side].extend(self._one(request, f"{first}-{number}", side))
        finally:
            self._clear()
        return found

    def _one(self, request: CampaignRequest, number: str, side: int) -> Sequence[Result]:
        """Run every cell once on one pair; its cluster is down afterwards."""
        home, pair = self._homes[side], self._pairs[side]
        spec = replace(self._declared, engines=pair)
        make_folder(home)
        path = home / "cluster.toml"
        text = render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names())
        if not path.exists() or path.read_text() != text:
            with writing(path), replacing(path) as temporary:
                temporary.write_text(text)
        once = replace(
            request.spec,
            name=f"bisect-{request.spec.name}-{number}",
            starts=1,
            precision=None,
            repetitions_max=0,
            comparisons=(),
            matrices=tuple(replace(row, repetitions=1) for row in request.spec.matrices),
        )
        self._follow.line(f"{pair}, round {number.rpartition('-')[2]}")
        asked = replace(request, spec=once, start=Start.CONTINUE)
        return run_campaign(home, asked, cache=self._cache, follow=self._follow).results

    def _series(self, name: str, *, new: bool) -> int:
        """Number of the series of measurements: the latest, or with ``new`` another one."""
        found = [0]
        for home in self._homes:
            with Store.open(home, read_only=True) as store:
                begun = [row.name.split("-") for row in store.campaigns()]
            found += [int(row[-2]) for row in begun if "-".join(row[:-2]) == f"bisect-{name}"]
        return max(found) + 1 if new or not max(found) else max(found)

    def _clear(self) -> None:
        """Leave the results, and no data of HDFS."""
        for home in self._homes:
            if home.is_dir() and load_state(home) is None:
                with driver_lock(home, doing="watch-performance"):
                    operation.wipe(home)
