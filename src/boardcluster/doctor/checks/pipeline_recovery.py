"""A small cluster can continue to write when a DataNode fails.

- As many replicas as workers, or more, and a policy that asks for another DataNode, as `DEFAULT`
  does from three replicas on. Fix: `profile = "default"`.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.units import format_count

__all__ = ["CHECK"]

_POLICY = "dfs.client.block.write.replace-datanode-on-failure.policy"
_ENABLED = "dfs.client.block.write.replace-datanode-on-failure.enable"
_LEAST = {"ALWAYS": 2, "DEFAULT": 3}
"""With a smaller dfs.replication a policy never asks for another DataNode. What counts is the
setting, not how many replicas there is room for (class ReplaceDatanodeOnFailure)."""


def _look(facts: Facts) -> Faults:
    workers = len(facts.declared.workers)
    text = facts.setting("hdfs-site", "dfs.replication", "3")
    replication = int(text) if text.isdecimal() else 0
    policy = facts.setting("hdfs-site", _POLICY, "DEFAULT")
    enabled = facts.setting("hdfs-site", _ENABLED, "true") == "true"
    asks = enabled and policy in _LEAST and replication >= _LEAST[policy]
    if facts.profile is None or not asks or workers < 2:
        yield f"no replacement is asked for with {format_count(workers, 'worker')}"
    elif workers > replication:
        yield f"{workers} workers for {replication} replicas: one can be replaced"
    else:
        held = f"{replication}" if replication <= workers else f"{workers} of {replication}"
        yield Fault(
            f"{workers} workers hold {held} replicas, and the policy {policy} asks for "
            "another DataNode when one fails",
            fix=facts.default_profile,
        )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="dfs.replication and the policy for a DataNode that fails during a write, against the "
    "number of workers.",
    why="With three replicas on three workers, none is left to replace a failed one, and the write "
    'fails ("no more good datanodes being available to try").',
    source="hdfs-default.xml, dfs.client.block.write.replace-datanode-on-failure.policy",
    severity=Severity.WARNING,
    look=_look,
)
