"""Rules on storage media: unused blocks that are never discarded, and a medium that is too slow."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.analysis.advice.evidence import Advice
from boardcluster.analysis.advice.published import published
from boardcluster.analysis.advice.rule import LEAST_GAIN, Rule, advice, gain_words, predicted_words
from boardcluster.analysis.advice.settings import policy_key
from boardcluster.analysis.advice.view import Group, RunView, View
from boardcluster.analysis.bottleneck import Bound
from boardcluster.analysis.inference import CampaignDrift, DriftKind
from boardcluster.analysis.statistics import mean
from boardcluster.units import format_bytes

__all__ = ["MEDIA_RULES"]

_MEDIUM_GAIN = 1.10  # of storage twice as fast; less is not worth a purchase
_HEAT_SHARE = 0.01
_LEAST_TIMES = 3  # fewer of one campaign have no first third to be compared with
_FLASH = (" sd ", " emmc ", " ssd ", " usb-ssd ", " nvme ")
_SLOW = (" sd ", " emmc ", " usb ", " hdd ")
_SSDS = (" ssd ", " usb-ssd ", " nvme ")
_UNTRIMMED = "unused blocks not discarded"


def _trim(rule: Rule, view: View) -> Iterator[Advice]:
    groups = [group for group in view.groups if _wears_out(group)]
    drifts = {row.campaign: row for row in view.shown_drifts()} if groups else {}
    for group in groups:
        for name in dict.fromkeys(run.trial.campaign_id for run in group.runs):
            slower = drifts.get(name)
            runs = [run.measurement for run in group.runs if run.trial.campaign_id == name]
            times = [run.duration_seconds for run in runs]
            third = len(times) // 3 or 1
            first, last = mean(times[:third]), mean(times[-third:])
            gain = mean(times) / first
            few = len(times) < _LEAST_TIMES
            if few or slower is None or slower.share <= 0 or last <= first or gain < LEAST_GAIN:
                continue
            remarks = [line for run in runs for line in run.remarks]
            refused = [line for line in remarks if line.startswith(_UNTRIMMED)]
            yield advice(
                rule,
                group,
                title=f"Discard unused blocks before each run of {group.subject}",
                seen=(
                    f"runs took longer and longer, {first:.4g} s at first and {last:.4g} s at"
                    f" last ({_drift_words(slower)}), and storage bound most of them; no node"
                    f" was slowed by heat{f'; {refused[0]}' if refused else ''} ({group.where})"
                ),
                setting=(
                    "a file system and a medium that support discards: see the remark"
                    if refused
                    else policy_key("trim = true")
                ),
                brings=(
                    f"{gain_words(gain)} if each run were like the first ones; the paper saw up to"
                    f" {published()['trim'].value:g} times"
                ),
                gain=gain,
            )


def _wears_out(group: Group) -> bool:
    """Whether it ran on boards with flash media that bound it, and heat slowed no node."""
    waiting = sum(run.first is Bound.STORAGE for run in group.runs)
    if not group.is_boards or 2 * waiting <= len(group.runs):
        return False
    # Where a node was slowed down for more than a moment, heat is what drifts.
    hot = any(
        (row.heat_seconds or 0.0) > _HEAT_SHARE * run.facts.duration_seconds
        for run in group.runs
        if run.facts
        for row in run.nodes
    )
    return bool(_media(group.typical, _FLASH)) and not hot


def _drift_words(found: CampaignDrift) -> str:
    changed = found.kind is DriftKind.CHANGE
    of = "that" if changed else "each"
    within = f" within {of} start of the cluster" if found.starts > 1 else ""
    of_all = f"{100 * found.share:.0f} % longer{within} over all configurations of campaign"
    since = f" from run {found.position + 1} on" if changed else ""
    return f"{of_all} {found.campaign}{since}, p {found.p_adjusted:.2g}"


def _media(run: RunView, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Boards whose data is on a medium of one of these kinds, by the line on their hardware."""
    return tuple(
        name
        for line in run.fingerprint.hardware
        for name, words in [line.split(": ", 1)]
        if any(kind in words.replace(",", " ") for kind in kinds)
    )


def _medium(rule: Rule, view: View) -> Iterator[Advice]:
    for group in view.groups:
        run = group.typical
        change = _change(group)
        gain = run.twice(Bound.STORAGE)
        if run.first is not Bound.STORAGE or change is None or gain < _MEDIUM_GAIN:
            continue
        title, setting, seen = change
        brings = predicted_words(run, Bound.STORAGE, emulated=group.emulated)
        written_bytes = sum(run.measurement.node_written_bytes.values())
        wrote = f"; nodes wrote {format_bytes(written_bytes)}" if written_bytes else ""
        yield advice(
            rule,
            group,
            title=title,
            subject="storage",
            seen=f"{run.bound_words}{wrote}; {seen} ({group.where})",
            setting=setting,
            brings=f"{brings} if storage were twice as fast{_published(run)}",
            gain=gain,
        )


def _published(run: RunView) -> str:
    """What others saw where cards were replaced; empty where there are none to replace."""
    if _media(run, _SSDS):
        return ""
    return (
        f"; the 2026 paper's cluster was up to {published()['storage'].value:g} times as fast with"
        " NVMe SSDs as with microSD cards"
    )


def _change(group: Group) -> tuple[str, str, str] | None:
    """Choose a faster medium by what is known of the one in use: title, setting and what was seen.

    None where nothing is known. Nodes that stand for no boards write to this machine's disk, which
    is of no interest.
    """
    run = group.typical
    if group.is_twin:
        return (
            "Try a faster medium in the emulated boards",
            (
                '`medium = "…"`, or `pcie = "3.0"` of an NVMe SSD, in each `[[node]]` of'
                " cluster.toml; `boardcluster catalog media` lists them"
            ),
            f"the boards are {run.fingerprint.twin}",
        )
    if slow := _media(run, _SLOW):
        return (
            "Put the data on a faster medium",
            "an NVMe or USB 3 SSD in each board, with `folder` of its `[[node]]` in cluster.toml",
            f"{_named(slow)} {'have' if len(slow) > 1 else 'has'} cards or disks",
        )
    if old := _media(run, (" PCIe 2 ", " PCIe 1 ")):
        return (
            "Let the SSDs use PCIe 3",
            "`dtparam=pciex1_gen=3` in /boot/firmware/config.txt of each Pi 5, then a reboot",
            f"{_named(old)} {'reach their' if len(old) > 1 else 'reaches its'} SSD over PCIe 2",
        )
    if fast := _media(run, _SSDS):
        have = "have SSDs, which serve" if len(fast) > 1 else "has an SSD, which serves"
        return (
            f"Let more tasks of {group.subject} wait for the SSDs at once",
            (
                "more tasks at once than cores, where memory has room for them, in"
                " `[matrix.settings]`: `spark.executor.cores`, or for MapReduce smaller containers;"
                " or faster SSDs"
            ),
            f"{_named(fast)} {have} many requests at once",
        )
    return None


def _named(nodes: tuple[str, ...]) -> str:
    """The first few names: ``pi1, pi2, pi3 and 5 more``."""
    more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
    return ", ".join(nodes[:3]) + more


MEDIA_RULES = (
    Rule(
        name="trim",
        source=published()["trim"].source,
        find=_trim,
    ),
    Rule(
        name="medium",
        source=f"{published()['storage'].source}; its section PCIe Version: 2.0 vs. 3.0",
        find=_medium,
    ),
)
