"""Keeps the running cluster in the variant that the next trial needs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Self

from boardcluster.campaign.execution import clear_leftovers, end_lost_jobs
from boardcluster.campaign.heartbeat import lost_now
from boardcluster.campaign.trial_jobs import variant_of
from boardcluster.cluster.state import load_state
from boardcluster.errors import BoardclusterError, DaemonError
from boardcluster.factors import settings_words
from boardcluster.fetch.cache import Progress
from boardcluster.records import Trial
from boardcluster.services import operation
from boardcluster.services.lifecycle import Health
from boardcluster.services.operation import LiveCluster
from boardcluster.spec.variant import ClusterVariant
from boardcluster.units import format_count

__all__ = ["VariantSwitcher"]


class VariantSwitcher:
    """The cluster of a campaign; as a context it is left as it was found.

    A campaign of several starts stops all daemons before each and starts them again, also where
    the variant stays the same.

    Args:
        home: the cluster's state folder.
        cache: folder of fetched engines.
        progress: told what is done.
        seen: told of the health of a cluster that starts.
        begun: of a campaign of several starts, the number and the id of the start in which it ran
            last: one that is still up goes on. None for a campaign that needs no restarts.
    """

    def __init__(
        self,
        home: Path,
        *,
        cache: Path,
        progress: Progress,
        seen: Callable[[Health], None],
        begun: tuple[int, str] | None = None,
    ) -> None:
        self.home = home
        self._cache = cache
        self._progress = progress
        self._seen = seen
        self._begun = begun
        self._variant: ClusterVariant | None = None
        self._start = 0
        self._live: LiveCluster | None = None
        self._was_up = operation.found_up(home)
        self._is_partial = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.leave()
            return
        try:
            self.abandon()
        except (BoardclusterError, OSError) as failure:  # which must not hide why it came to that
            why = failure.message if isinstance(failure, BoardclusterError) else failure
            error.add_note(
                f"not everything could be ended: {why}; run `boardcluster down --home {self.home}`"
            )

    def __call__(self, trial: Trial) -> LiveCluster:
        """Return the running cluster in the variant and the start of a trial.

        Raises:
            ClusterError: it does not come up.
        """
        variant = variant_of(trial)
        if self._begun is not None and trial.start != self._start:
            self._stop_for(trial.start, self._begun)
        if self._live is None or variant != self._variant:
            workers = format_count(variant.workers, "worker")
            words = f"{workers}, profile {variant.profile}, master {variant.master}"
            words += f", {settings_words(dict(variant.settings))}" if variant.settings else ""
            self._progress(f"changing the cluster to {words}", 0, 0)
            self._live = self._up(variant)
            self._variant = variant
        return self._live

    @property
    def live(self) -> LiveCluster | None:
        """The cluster as it is up; None before the first trial, and if it did not come up."""
        return self._live

    def end_without(self, names: Collection[str]) -> None:
        """End the cluster; nodes that do not answer are left as they are.

        Raises:
            ClusterError: another node does not answer.
        """
        self._live = None
        self._is_partial = True
        operation.down(self.home, without=names)

    def look_again(self) -> None:
        """Have the next trial look whether the cluster is whole, and restart one that is not."""
        self._live = None

    def _stop_for(self, start: int, begun: tuple[int, str]) -> None:
        """Stop all daemons before a start, unless it is the one that is up."""
        state = load_state(self.home)
        if state is not None and (start, state.identity) != begun:
            self._progress(f"stopping the cluster for start {start}", 0, 0)
            operation.down(self.home)
        self._live = None
        self._start = start

    def _up(self, variant: ClusterVariant) -> LiveCluster:
        """Bring the cluster up; one that is not whole is restarted, with its HDFS."""
        try:
            live = self._bring_up(variant)
            if not (lost := lost_now(live)):
                return live
        except DaemonError as error:
            if load_state(self.home) is None:
                raise  # it was started just now and failed
            lost = error.message
        self._progress(f"restarting the cluster: {lost}", 0, 0)
        operation.down(self.home)
        return self._bring_up(variant)

    def _bring_up(self, variant: ClusterVariant) -> LiveCluster:
        live = operation.up(
            self.home,
            cache=self._cache,
            progress=self._progress,
            seen=self._seen,
            variant=variant,
            temporary=not self._was_up,
        )
        for tag in end_lost_jobs(live):
            self._progress(f"stopped what had been lost sight of: {tag}", 0, 0)
        clear_leftovers(live)
        return live

    def _form(self) -> str:
        """What is changed of the cluster as it is up, in words; whatever became of the last run."""
        state = load_state(self.home)
        return "" if state is None else state.form

    def leave(self) -> None:
        """After the last trial: leave the cluster as it was found, up or down."""
        if self._is_partial:  # what cluster.toml says needs the nodes that stayed away
            self.abandon()
        elif not self._was_up:
            operation.down(self.home)
        elif self._form():
            self._progress("returning the cluster to cluster.toml", 0, 0)
            operation.up(self.home, cache=self._cache, progress=self._progress, seen=self._seen)

    def abandon(self) -> None:
        """After Ctrl-C or an error: end what the campaign started, without starting anything."""
        if not self._was_up:
            operation.down(self.home)
        elif form := self._form():
            words = f"the cluster stays up with {form}"
            self._progress(f"{words}; `boardcluster up` returns it to cluster.toml", 0, 0)
