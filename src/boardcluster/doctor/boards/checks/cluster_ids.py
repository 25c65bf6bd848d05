"""All data of HDFS belongs to one file system."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Compare what is written in the VERSION files, per folder of data."""
    names: dict[str, tuple[str, str]] = {}
    for board in view.boards:
        for path, id_ in board.inside.cluster_ids.items():
            if "/namenode/" in path:
                names[_storage(path)] = (board.name, id_)

    def judge(board: BoardView) -> Finding | None:
        for path, id_ in board.inside.cluster_ids.items():
            master, wanted = names.get(_storage(path), ("", id_))
            if "/datanode/" in path and id_ != wanted:
                folder = path.removesuffix("/current/VERSION")
                return fault(
                    CHECK,
                    board,
                    f"{path} says {id_}, but the NameNode on {master} says {wanted}",
                    fix=board.there(f"sudo mv {folder} {folder}.of-another-cluster")
                    + f"   (keeps the blocks), then {view.command('up')}",
                )
        return None

    yield from each(CHECK, view, judge, good="no data of another HDFS")


def _storage(path: str) -> str:
    """Return the name of the folder that holds both kinds of data."""
    return path.split("/")[-4]


CHECK = Check(
    name="cluster_ids",
    looks_at="The clusterID in the VERSION files of NameNode and DataNodes.",
    why='A DataNode with data of another file system ends at once ("Incompatible clusterIDs"). It '
    "happens when the NameNode was formatted again, or a card was copied.",
    source="Apache Hadoop, class DataStorage",
    severity=Severity.ERROR,
    look=look,
)
