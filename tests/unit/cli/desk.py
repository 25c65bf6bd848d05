"""A user's desk: a declared cluster on a machine where nothing runs but records itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_dataset, make_measurement, make_state
from typer.testing import CliRunner
from typer.testing import Result as Ran

from boardcluster.campaign.trial import TrialEnd
from boardcluster.cli.app import app
from boardcluster.cluster.state import LiveState
from boardcluster.errors import ClusterNotUpError
from boardcluster.records import (
    AttemptState,
    Campaign,
    ClusterSpec,
    Dataset,
    Result,
    Trial,
)
from boardcluster.remote.fake import FakeRemote
from boardcluster.services import operation
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.spec.template import render_cluster
from boardcluster.spec.variant import ClusterVariant, apply_variant, variant_words
from boardcluster.store import Store

MakeLayout = Callable[[ClusterSpec], Layout]


def good(seconds: float = 20.0) -> TrialEnd:
    return TrialEnd(state=AttemptState.OK, reason="", measurement=make_measurement(seconds))


def bad(state: AttemptState = AttemptState.FAILED, *, lost: str = "") -> TrialEnd:
    return TrialEnd(state=state, reason="because", measurement=None, lost=lost)


@dataclass
class Desk:
    """See the module's docstring.

    Attributes:
        is_up: whether the cluster is up.
        variant: the form it is in; None is what is declared.
        calls: what was done to the cluster: "attach", "down", or the form of an "up".
        ran: trials as they ran.
        ends: what a trial comes to, by workload; good where nothing is said.
        texts: sizes of texts that were prepared.
        ended: tags of submissions of dead drivers that were ended.
        starts: how often the daemons were started.
        seconds: how long a trial takes that ends well.
    """

    home: Path
    declared: ClusterSpec
    make_layout: MakeLayout
    is_up: bool = False
    form: ClusterVariant | None = None
    calls: list[object] = field(default_factory=list)
    ran: list[Trial] = field(default_factory=list)
    ends: dict[str, TrialEnd | BaseException] = field(default_factory=dict)
    texts: list[int | None] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    starts: int = 0
    seconds: Callable[[Trial], float] = lambda _: 20.0

    def __call__(self, *words: str, text: str | None = None) -> Ran:
        """Run the program; what it raises on purpose is raised."""
        arguments = [words[0], "--home", str(self.home), "--cache", str(self.home / "cache")]
        return CliRunner().invoke(app, [*arguments, *words[1:]], input=text, catch_exceptions=False)

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json").stdout)

    def live(self) -> LiveCluster:
        spec = self.declared if self.form is None else apply_variant(self.declared, self.form)
        words = "" if self.form is None else variant_words(self.declared, self.form)
        return LiveCluster(
            home=self.home,
            state=make_state(form=words, identity=f"start-{self.starts}"),
            layout=self.make_layout(spec),
            remotes={node.name: FakeRemote(node.name) for node in spec.nodes},
        )

    def state(self) -> LiveState | None:
        return self.live().state if self.is_up else None

    def attach(self, home: Path, *, any_variant: bool = False, **_: object) -> LiveCluster:
        assert home == self.home
        self.calls.append("attach")
        if not self.is_up or (self.live().state.form and not any_variant):
            raise ClusterNotUpError("the cluster is not up", hint="run `boardcluster up` first")
        return self.live()

    def up(self, home: Path, *, variant: ClusterVariant | None = None, **_: object) -> LiveCluster:
        assert home == self.home
        self.calls.append(variant)
        self.starts += not self.is_up or variant != self.form
        self.is_up, self.form = True, variant
        return self.live()

    def down(self, home: Path) -> int:
        assert home == self.home
        self.calls.append("down")
        self.is_up, self.form = False, None
        return 1

    def run_trial(self, live: LiveCluster, trial: Trial, *_: object, **named: Any) -> TrialEnd:
        assert len(live.spec.workers) == trial.workers
        self.ran.append(trial)
        end = self.ends.get(trial.workload, good(self.seconds(trial)))
        if isinstance(end, BaseException):
            raise end
        return end

    def prepare_text(self, *, size_bytes: int | None, **_: object) -> Dataset:
        self.texts.append(size_bytes)
        name = f"airline-{size_bytes}"
        return make_dataset(self.home / "text", name=name, size_bytes=size_bytes or 77)

    def campaigns(self) -> tuple[Campaign, ...]:
        with Store.open(self.home, read_only=True) as store:
            return store.campaigns()

    def results(self) -> tuple[Result, ...]:
        with Store.open(self.home, read_only=True) as store:
            return store.results()

    def files(self) -> set[str]:
        """Return every file of the home."""
        return {str(path.relative_to(self.home)) for path in self.home.rglob("*")}


def make_desk(
    home: Path, spec: ClusterSpec, make_layout: MakeLayout, monkeypatch: pytest.MonkeyPatch
) -> Desk:
    desk = Desk(home=home, declared=spec, make_layout=make_layout)
    home.mkdir()
    text = render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names())
    (home / "cluster.toml").write_text(text)
    for name in ("attach", "up", "down"):
        monkeypatch.setattr(operation, name, getattr(desk, name))
    driver, forms = "boardcluster.campaign.driver", "boardcluster.campaign.variants"
    for place, value in (
        (f"{driver}.run_trial", desk.run_trial),
        ("boardcluster.services.disk_space.require_disk_space", lambda _: None),
        (f"{forms}.load_state", lambda _: desk.state()),
        (f"{forms}.clear_leftovers", lambda _: None),
        (f"{forms}.end_lost_jobs", lambda _: []),
        ("boardcluster.campaign.upkeep.end_lost_jobs", lambda _: []),
        ("boardcluster.services.operation.found_up", lambda _: desk.is_up),
        (f"{forms}.lost_now", lambda _: ""),
        ("boardcluster.campaign.life.free_bytes", lambda *_: (10**15, {})),
        ("boardcluster.campaign.texts.prepare_airline", desk.prepare_text),
        ("boardcluster.campaign.upkeep.end_submission", lambda _, tag: desk.ended.append(tag)),
    ):
        monkeypatch.setattr(place, value)
    return desk
