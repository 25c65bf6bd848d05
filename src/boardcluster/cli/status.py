"""``boardcluster status``: every daemon, its memory and its address."""

from __future__ import annotations

from boardcluster.capabilities import capabilities_of
from boardcluster.cli.console import print_json, print_table, say
from boardcluster.cli.options import CacheOption, ChosenCluster, JsonOption, cache_folder
from boardcluster.records import Security
from boardcluster.services.security import INSECURE_WARNING
from boardcluster.services.status import Status, status
from boardcluster.units import format_bytes, format_count

__all__ = ["EPILOG", "command"]


EPILOG = "Example: boardcluster status --json"


def command(
    at: ChosenCluster,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every daemon of the cluster with its memory and web address. Exit code 0 if down."""
    folder = at.folder()
    seen = status(folder, cache=cache_folder(cache))
    if as_json:
        print_json(seen)
        return
    workers = format_count(seen.workers, "worker")
    say(f"{seen.phase}: {workers}, profile {seen.profile}, {seen.engines}")
    if seen.security is Security.INSECURE_LAB:
        say(INSECURE_WARNING)
    for words in seen.unreachable:
        say(words)
    if seen.phase == "dead":
        here = capabilities_of(seen.kind).on_this_machine
        what = "its driver or its nodes were killed" if here else "none of its processes is running"
        say(f"{what}; run `boardcluster down` to clean up")
    if not seen.daemons:
        return
    _print_daemons(seen)
    if seen.health:
        say(
            f"live: {format_count(seen.health.live_datanodes, 'DataNode')}, "
            f"{format_count(seen.health.live_nodemanagers, 'NodeManager')}; "
            f"HDFS has {format_bytes(seen.health.hdfs_free_bytes)} left"
        )
        if blocks := seen.health.under_replicated_blocks:
            say(f"HDFS has {format_count(blocks, 'block')} with too few copies")
    if seen.page_hint:
        say(seen.page_hint)


def _print_daemons(seen: Status) -> None:
    rows = [
        [
            *(row.node, row.name, "alive" if row.alive else "DEAD"),
            *(format_bytes(row.resident_bytes), format_bytes(row.proportional_bytes), row.url),
        ]
        for row in seen.daemons
    ]
    total = [
        "all",
        f"{len(rows)} daemons",
        "",
        format_bytes(sum(row.resident_bytes for row in seen.daemons)),
        format_bytes(sum(row.proportional_bytes for row in seen.daemons)),
        "",
    ]
    columns = ["node", "daemon", "state", "resident", "shared counted once", "web page"]
    print_table("", columns, [*rows, total])
