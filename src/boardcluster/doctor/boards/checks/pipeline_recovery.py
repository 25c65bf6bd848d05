"""A small cluster goes on writing when a DataNode fails."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import ClusterView
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Compare replication and policy with the number of workers."""
    workers = len(view.spec.workers)
    replication = min(int(view.setting("hdfs-site", "dfs.replication", "3")), workers)
    policy = view.setting("hdfs-site", _POLICY, "DEFAULT")
    enabled = view.setting("hdfs-site", _ENABLED, "true") == "true"
    if view.profile is None or not enabled or policy == "NEVER" or replication < _LEAST:
        yield CHECK.good(f"no replacement is asked for with {workers} workers")
    elif workers > replication:
        yield CHECK.good(f"{workers} workers for {replication} replicas: one can be replaced")
    else:
        yield CHECK.wrong(
            f"{workers} workers hold {replication} replicas, and the policy {policy} asks for "
            "another DataNode when one fails",
            fix='set `profile = "default"` in cluster.toml; keep this one only to repeat what it '
            "stands for",
        )


_POLICY = "dfs.client.block.write.replace-datanode-on-failure.policy"
_ENABLED = "dfs.client.block.write.replace-datanode-on-failure.enable"
_LEAST = 3
"""With fewer replicas DEFAULT never asks for another DataNode."""

CHECK = Check(
    name="pipeline_recovery",
    looks_at="dfs.replication and the policy for a DataNode that fails during a write, against the "
    "number of workers.",
    why="With three replicas on three workers there is none to replace the failed one with, and "
    'the write fails ("no more good datanodes being available to try").',
    source="hdfs-default.xml, dfs.client.block.write.replace-datanode-on-failure.policy",
    severity=Severity.WARNING,
    look=look,
)
