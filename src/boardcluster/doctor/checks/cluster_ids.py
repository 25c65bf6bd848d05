"""All data of HDFS belongs to one file system.

- A DataNode has data of another file system. Fix: rename its folder with `mv`, which keeps the
  blocks, then `boardcluster up`.
"""

import shlex

from boardcluster.doctor.check import MASTER_NOT_ASKED, Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    if any(board.spec.name == facts.declared.master.name for board in facts.lost):
        yield MASTER_NOT_ASKED
        return
    # The master, which comes first, decides where another board was the master before.
    names = {
        _storage(path): (board.name, id_)
        for board in reversed(facts.boards)
        for path, id_ in board.details.cluster_ids.items()
        if "/namenode/" in path
    }
    for board in facts.boards:
        for path, id_ in board.details.cluster_ids.items():
            master, wanted = names.get(_storage(path), ("", id_))
            if "/datanode/" in path and id_ != wanted:
                folder = path.removesuffix("/current/VERSION")
                # A job may have chosen the name.
                words = ["sudo", "mv", folder, f"{folder}.of-another-cluster"]
                rename = board.there(shlex.join(words))
                yield Fault(
                    f"{path} says {id_}, but the NameNode on {master} says {wanted}",
                    node=board.name,
                    fix=f"{rename}   (keeps the blocks), then {facts.command('up')}",
                )


def _storage(path: str) -> str:
    """Return the name of the folder that holds both kinds of data."""
    return path.split("/")[-4]


CHECK = Check(
    where=Where.BOARDS,
    looks_at="The clusterID in the VERSION files of NameNode and DataNodes.",
    why='A DataNode with data of another file system ends at once ("Incompatible clusterIDs"). It '
    "happens when the NameNode was formatted again, or a card was copied.",
    source="Apache Hadoop, class DataStorage",
    severity=Severity.ERROR,
    look=_look,
    good="no data of another HDFS",
)
