"""How far a cluster that starts has come, and what of HDFS keeps it from getting further.

How long a start takes depends on what HDFS holds and on what holds it: a NameNode reads its image,
a DataNode looks at every block. So there is no limit to a start that goes on, only to one that
stands still.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from boardcluster.cluster.each_node import each_node
from boardcluster.cluster.state import Daemon
from boardcluster.errors import BoardclusterError, RemoteError
from boardcluster.remote.base import Remote
from boardcluster.remote.node_rpc import http, http_get_all
from boardcluster.services.daemons import safe_mode_command
from boardcluster.services.jvm import daemon_environment
from boardcluster.services.layout import Layout
from boardcluster.services.webhdfs import WebHdfs

__all__ = ["MissingFiles", "StartWatch", "end_safe_mode", "missing_files", "safe_mode_words"]

_LOOK_SECONDS = 5.0
_ANSWER_SECONDS = 5.0
_LIST_SECONDS = 300.0
_LEAVE_SECONDS = 120.0
_TICKS_PER_SECOND = 100
"""USER_HZ, the same on every Linux that Debian runs on (time(7))."""
_BUSY_SHARE = 0.2
"""Of a core; a daemon that only asks again and again for another one uses a hundredth."""
_READ_BYTES = 256 << 10
"""Read from disk between two looks; a daemon that waits reads nothing."""
_USER_TICKS, _SYSTEM_TICKS = 11, 12
"""Places in ``/proc/PID/stat`` after the program's name, from 0 (proc(5))."""
_NAMED = 10
_OURS = "/boardcluster/"
"""What runs put into HDFS is below this folder."""
_MISSING = re.compile(r"^(/.*): MISSING (\d+) blocks", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFiles:
    """The files of which no DataNode has some blocks."""

    paths: tuple[str, ...]
    """Their paths in HDFS."""

    @property
    def words(self) -> str:
        """How many they are, and the names of the first."""
        rest = f" and {len(self.paths) - _NAMED} more" if len(self.paths) > _NAMED else ""
        return f"{len(self.paths)} files lack blocks: {', '.join(self.paths[:_NAMED])}{rest}"


class StartWatch:
    """Sees whether a start goes on: in what the masters say, and in what the daemons do.

    Args:
        layout: the cluster.
        remotes: its nodes.
        daemons: what was started.
        clock: tells the time in seconds.

    Attributes:
        safe_mode: what the NameNode last said of its safe mode; empty before it said any.
    """

    def __init__(
        self,
        layout: Layout,
        remotes: Mapping[str, Remote],
        daemons: Sequence[Daemon],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._layout = layout
        self._remotes = remotes
        self._daemons = daemons
        self._clock = clock
        self._moved = self._same_words = self._looked = clock()
        self._state: object = None
        self._used: dict[str, tuple[int, int]] = {}
        self.safe_mode = ""

    @property
    def still_seconds(self) -> float:
        """How long nothing has gone on."""
        return self._clock() - self._moved

    @property
    def safe_mode_seconds(self) -> float:
        """How long the NameNode has said the same of its safe mode."""
        return self._clock() - self._same_words if self.safe_mode else 0.0

    def look(self, state: object) -> None:
        """Take what the masters say now; every few seconds look further."""
        now = self._clock()
        if state != self._state:
            self._state, self._moved = state, now
        if now - self._looked < _LOOK_SECONDS:
            return
        span_seconds, self._looked = now - self._looked, now
        words = safe_mode_words(self._layout, self._remotes[self._layout.spec.master.name])
        if words != self.safe_mode:
            self.safe_mode, self._same_words, self._moved = words, now, now
        if self._busy(span_seconds):
            self._moved = now

    def _busy(self, span_seconds: float) -> bool:
        """Whether a daemon computed or read since the last look."""
        by_node: dict[str, list[int]] = {}
        for daemon in self._daemons:
            by_node.setdefault(daemon.node, []).append(daemon.process.pid)
        found, _ = each_node(by_node, lambda name: _used(self._remotes[name], by_node[name]))
        before, self._used = (
            self._used,
            {f"{name} {pid}": used for name, rows in found.items() for pid, used in rows.items()},
        )
        busy_ticks = _BUSY_SHARE * span_seconds * _TICKS_PER_SECOND
        return any(
            ticks - before[key][0] >= busy_ticks or read_bytes - before[key][1] >= _READ_BYTES
            for key, (ticks, read_bytes) in self._used.items()
            if key in before
        )


def _used(remote: Remote, pids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return the CPU ticks and the bytes read from disk of processes that can be looked at."""
    paths = [f"/proc/{pid}/{name}" for pid in pids for name in ("stat", "io")]
    text = remote.run(["cat", *paths], check=False, timeout_seconds=_ANSWER_SECONDS * 2).text
    used: dict[int, tuple[int, int]] = {}
    pid = 0
    for line in text.splitlines():
        head, bracket, rest = line.rpartition(")")
        if bracket:
            words = rest.split()
            pid = int(head.split()[0])
            used[pid] = int(words[_USER_TICKS]) + int(words[_SYSTEM_TICKS]), 0
        elif line.startswith("read_bytes:") and pid in used:
            used[pid] = used[pid][0], int(line.split()[1])
    return used


def safe_mode_words(layout: Layout, remote: Remote) -> str:
    """Return what the NameNode says of its start and its safe mode; empty if it says nothing.

    It counts the blocks that were reported, so the words change as long as it gets any.
    """
    url = layout.url(layout.spec.master, "namenode-web")
    try:
        info, progress = http_get_all(
            remote,
            [f"{url}/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo", f"{url}/startupProgress"],
            timeout_seconds=_ANSWER_SECONDS * layout.dilation,
        )
        if info.status == 200 and (beans := info.json()["beans"]):
            return str(beans[0].get("Safemode", ""))
        if progress.status == 200:
            return f"it has read {progress.json()['percentComplete']:.2%} of its image"
    except (BoardclusterError, KeyError, ValueError):
        pass
    return ""


def missing_files(layout: Layout, remote: Remote) -> MissingFiles:
    """Ask the NameNode for the files of which no DataNode has some blocks, as ``hdfs fsck`` does.

    Raises:
        RemoteError: it does not answer.
    """
    url = f"{layout.url(layout.spec.master, 'namenode-web')}/fsck?ugi={layout.user}&path=%2F"
    answer = http(remote, "GET", url, timeout_seconds=_LIST_SECONDS * layout.dilation)
    if answer.status != 200:
        raise RemoteError(f"the NameNode does not check its files: HTTP {answer.status}")
    return MissingFiles(paths=tuple(sorted(found[1] for found in _MISSING.finditer(answer.body))))


def end_safe_mode(layout: Layout, remote: Remote, lost: MissingFiles) -> None:
    """Have the NameNode leave its safe mode, with whatever files it has.

    Those of ours that are lost are deleted, so that the next run that needs them makes them again:
    by name and size they look whole.

    Raises:
        RemoteError: it does not.
    """
    remote.run(
        safe_mode_command(layout),
        env=daemon_environment(layout, layout.spec.master),
        timeout_seconds=_LEAVE_SECONDS * layout.dilation,
    )
    hdfs = WebHdfs(layout, remote)
    for path in lost.paths:
        if path.startswith(_OURS):
            hdfs.delete(path)
