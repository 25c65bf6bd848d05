"""Nothing that needs LevelDB runs on arm64.

- Such a setting, and a board with arm64. Fix: `profile = "default"`.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]

_SETTINGS = (
    ("yarn-site", "yarn.nodemanager.recovery.enabled", "true"),
    ("yarn-site", "yarn.resourcemanager.store.class", "leveldb"),
    ("yarn-site", "yarn.timeline-service.enabled", "true"),
    ("mapred-site", "mapreduce.jobhistory.recovery.store.class", "leveldb"),
    ("spark-defaults", "spark.history.store.hybridStore.diskBackend", "leveldb"),
)


def _look(facts: Facts) -> Faults:
    arm = [board.name for board in facts.boards if board.facts.architecture == "aarch64"]
    opened = [
        name for file, name, wanted in _SETTINGS if wanted in facts.setting(file, name, "").lower()
    ]
    if arm and opened:
        yield Fault(
            f"{', '.join(opened)} needs LevelDB, which the engines bring for x86-64 only; "
            f"arm64: {', '.join(arm)}",
            fix='set `profile = "default"` in cluster.toml: it uses none',
        )
    else:
        yield f"profile {facts.declared.profile} uses no LevelDB"


CHECK = Check(
    where=Where.BOARDS,
    looks_at="Settings of the profile that make a daemon keep its state in LevelDB: recovery of "
    "NodeManagers, ResourceManager and history server, and the timeline service.",
    why="leveldbjni-all-1.8.jar holds native code for x86 only: on arm64 such a daemon ends with "
    "an UnsatisfiedLinkError. None of our profiles turns these settings on.",
    source="HADOOP-16614; the jar's META-INF/native",
    severity=Severity.ERROR,
    look=_look,
)
