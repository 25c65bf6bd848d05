"""Probes are watched by agents of telemetry and judged by what those saw."""

from __future__ import annotations

import time
from pathlib import Path

from boardcluster.campaign.probing import _ProbeWatch, _targets
from boardcluster.probes.registry import choose_probes
from boardcluster.probes.run import LiveSite
from boardcluster.probes.tagged_remote import PROBE_VARIABLE
from boardcluster.records import Verdict
from boardcluster.remote.local import LocalRemote


def here(folder: Path) -> LiveSite:
    remote = LocalRemote("here")
    return LiveSite(
        node="here",
        remote=remote,
        admin=remote,
        cores=2,
        memory_bytes=1 << 30,
        folder=str(folder / "scratch"),
        address="127.0.0.1",
    )


def test_what_carries_the_mark_of_the_run_is_the_probes(tmp_path: Path) -> None:
    [target] = _targets(tmp_path, None, [here(tmp_path)], "p-1").values()
    assert target.request["scope"] == "machine"
    assert target.request["mark"] == f"{PROBE_VARIABLE}=p-1"


def test_this_machine_is_watched_with_no_cluster(tmp_path: Path) -> None:
    """Whatever else the machine does meanwhile, the run has a verdict and leaves nothing behind."""
    [probe] = choose_probes(["openssl"])
    with _ProbeWatch(tmp_path, None, {})(probe, [here(tmp_path)], "p-2") as judge:
        began = time.monotonic()
        time.sleep(1.5)
        found = judge(began, time.monotonic())
    assert found["verdict"] is not Verdict.UNJUDGED
    assert (found["verdict"] is Verdict.VALID) == (not found["verdict_reasons"])
    assert not any("gave no samples" in line for line in found["verdict_reasons"])
    assert list(tmp_path.iterdir()) == []


def test_heat_is_what_the_probe_of_heat_measures() -> None:
    [probe] = choose_probes(["heat"])
    assert {"throttled", "slow clock"} <= probe.shows
