"""HDFS through the NameNode's own REST interface, asked from the master node.

One request costs milliseconds; the ``hdfs`` command costs a JVM, several seconds on a board, and
runs between measurements (docs/decisions/0003).
Source: Apache Hadoop, WebHDFS REST API.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from boardcluster.errors import CapacityError, NotThereError, RemoteError
from boardcluster.remote.base import Remote
from boardcluster.remote.node_rpc import HttpAnswer, http
from boardcluster.services.layout import Layout

__all__ = ["HdfsEntry", "WebHdfs"]

_ANSWER_SECONDS = 20.0
_DATA_SECONDS = 300.0
"""For each read or write of a file's content, not for the whole file."""
_CREATE_FLAGS = "CREATE,OVERWRITE,IGNORE_CLIENT_LOCALITY"
"""A DataNode takes the whole file. As HDFS's client it would keep the first replica of each block.

Source: Apache Hadoop, ``CreateFlag`` and ``FSDirWriteFileOp.chooseTargetForNewBlock``.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsEntry:
    """One file or folder."""

    name: str
    """Its name inside its folder."""
    is_file: bool
    """Whether it is a file."""
    size_bytes: int
    """Its size; 0 for a folder."""


class WebHdfs:
    """The few file operations that runs need, by absolute paths, asked from the master node."""

    def __init__(self, layout: Layout, remote: Remote) -> None:
        self._remote = remote
        self._base = layout.url(layout.spec.master, "namenode-web") + "/webhdfs/v1"
        self._user = layout.user
        self._dilation = layout.dilation

    def _http(
        self,
        method: str,
        url: str,
        *,
        source: str = "",
        target: str = "",
        timeout_seconds: float = _ANSWER_SECONDS,
    ) -> HttpAnswer:
        """Ask from the master, as patiently as its node is slow."""
        return http(
            self._remote,
            method,
            url,
            source=source,
            target=target,
            timeout_seconds=timeout_seconds * self._dilation,
        )

    def _url(self, path: str, operation: str, **parameters: str) -> str:
        query = urlencode({"op": operation, "user.name": self._user, **parameters})
        return f"{self._base}{quote(path)}?{query}"

    def _fail(self, doing: str, answer: HttpAnswer) -> RemoteError:
        reason = answer.body
        if answer.body.startswith("{"):
            reason = answer.json().get("RemoteException", {}).get("message", answer.body)
        kind = NotThereError if answer.status == 404 else RemoteError
        return kind(
            f"HDFS: {doing} failed with status {answer.status}: {reason.strip()[:500]}",
            hint="run `boardcluster status`",
        )

    def _ask(
        self, doing: str, method: str, path: str, operation: str, *, none: bool = False, **more: str
    ) -> HttpAnswer:
        """Do one operation.

        Raises:
            RemoteError: it failed; that there is no such file is a failure unless ``none`` is set.
        """
        answer = self._http(method, self._url(path, operation, **more))
        if answer.status != 200 and not (none and answer.status == 404):
            raise self._fail(f"{doing} {path}", answer)
        return answer

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        return self._ask("looking at", "GET", path, "GETFILESTATUS", none=True).status == 200

    def size_bytes(self, path: str) -> int:
        """Return the size of a file or of everything in a folder, without replicas."""
        answer = self._ask("measuring", "GET", path, "GETCONTENTSUMMARY")
        return int(answer.json()["ContentSummary"]["length"])

    def list(self, path: str) -> list[HdfsEntry]:
        """Return what is in a folder, by name.

        Raises:
            RemoteError: it cannot be listed, or a name in it is a path. Callers make names of files
                of them, and a job can put a server of its own into the NameNode's place.
        """
        answer = self._ask("listing", "GET", path, "LISTSTATUS")
        rows = answer.json()["FileStatuses"]["FileStatus"]
        for name in (str(row["pathSuffix"]) for row in rows):
            if "/" in name or "\0" in name or name in (".", ".."):
                raise RemoteError(
                    f"HDFS lists {name!r} in {path}, which is no name of a file",
                    hint="something answers in place of the NameNode: run `boardcluster down`",
                )
        return [
            HdfsEntry(
                name=row["pathSuffix"], is_file=row["type"] == "FILE", size_bytes=int(row["length"])
            )
            for row in rows
        ]

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents."""
        self._ask("creating", "PUT", path, "MKDIRS")

    def delete(self, path: str) -> None:
        """Delete a file or a folder with everything in it; nothing if there is none."""
        self._ask("deleting", "DELETE", path, "DELETE", none=True, recursive="true")

    def rename(self, source: str, target: str) -> None:
        """Rename a file or folder."""
        answer = self._ask("renaming", "PUT", source, "RENAME", destination=target)
        if not answer.json()["boolean"]:
            raise self._fail(f"renaming {source}", answer)

    def put(self, source: Path, target: str, *, replication: int = 0, block_bytes: int = 0) -> None:
        """Store a file of this machine; it appears under its name only when it is whole.

        Its blocks are spread over all DataNodes. Where they are 0, the file system's own
        replication and size of blocks apply.
        """
        partial = f"{target}.partial"
        asked = {"replication": replication, "blocksize": block_bytes}
        blocks = {name: str(number) for name, number in asked.items() if number}
        url = self._url(partial, "CREATE", createflag=_CREATE_FLAGS, **blocks)
        answer = self._http("PUT", url)
        if answer.status != 307 or not answer.location:
            raise self._fail(f"storing {target}", answer)
        with self._remote.temporary_upload(source) as path:
            answer = self._http("PUT", answer.location, source=path, timeout_seconds=_DATA_SECONDS)
        if answer.status != 201:
            raise self._fail(f"storing {target}", answer)
        self.rename(partial, target)

    def get(self, source: str, target: Path) -> None:
        """Read a file into a file of this machine."""
        answer = self._http("GET", self._url(source, "OPEN"))
        if answer.status != 307 or not answer.location:
            raise self._fail(f"reading {source}", answer)
        with self._remote.download_on_exit(target) as path:
            answer = self._http("GET", answer.location, target=path, timeout_seconds=_DATA_SECONDS)
            if "[Errno 28]" in answer.body and not answer.status:
                raise CapacityError(
                    f"{self._remote.name}: its disk is full, so {source} cannot be read",
                    hint=f"free space on {self._remote.name}, or use a larger disk there",
                )
            if answer.status != 200:
                raise self._fail(f"reading {source}", answer)
