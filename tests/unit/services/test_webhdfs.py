"""WebHDFS: the addresses asked for, and what its answers mean."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.unit.temporary_files import TemporaryFilesRemote

from boardcluster.errors import CapacityError, NotThereError, RemoteError
from boardcluster.remote.gate import Completed
from boardcluster.services.layout import Layout
from boardcluster.services.webhdfs import HdfsEntry, WebHdfs

MISSING = {
    "RemoteException": {
        "exception": "FileNotFoundException",
        "javaClassName": "java.io.FileNotFoundException",
        "message": "File does not exist: /data",
    }
}

CREATE_FLAGS = "CREATE,OVERWRITE,IGNORE_CLIENT_LOCALITY"
"""With them the DataNode that takes a file does not keep the first replica of every block."""


class Master(TemporaryFilesRemote):
    """A node with files of its own.

    Attributes:
        seen: what its files were at each request.
        received: what a request brings that has a target.
    """

    def __init__(self) -> None:
        super().__init__("master")
        self.seen: list[dict[str, bytes]] = []
        self.received = b""

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_seconds: float = 60.0,
        check: bool = True,
    ) -> Completed:
        done = super().run(argv, stdin=stdin, check=check)
        self.seen.append(dict(self.files))
        if target := json.loads(stdin)["requests"][0]["target"]:
            self.files[target] = self.received
        return done


class Hdfs:
    """A NameNode that gives prepared answers, and what it was asked."""

    def __init__(self, layout: Layout) -> None:
        self.remote = Master()
        self.client = WebHdfs(layout, self.remote)

    def answer(self, status: int, body: object = "", *, location: str | None = None) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        self.remote.tell_node_agent(
            "http", [{"status": status, "body": text, "location": location}]
        )

    @property
    def asked(self) -> list[tuple[str, str, dict[str, str]]]:
        rows = []
        for request in self.remote.requests:
            (item,) = request["requests"]
            parts = urlsplit(item["url"])
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            rows.append((item["method"], f"{parts.netloc}{parts.path}", query))
        return rows

    def item(self, number: int) -> dict[str, Any]:
        row: dict[str, Any] = self.remote.requests[number]["requests"][0]
        return row


@pytest.fixture
def hdfs(layout: Layout) -> Hdfs:
    return Hdfs(layout)


def test_exists(hdfs: Hdfs) -> None:
    hdfs.answer(200, {"FileStatus": {}})
    hdfs.answer(404, MISSING)

    assert hdfs.client.exists("/data")
    assert not hdfs.client.exists("/data")
    assert hdfs.asked[0] == (
        "GET",
        "master:9870/webhdfs/v1/data",
        {"op": "GETFILESTATUS", "user.name": "root"},
    )


def test_paths_are_quoted(hdfs: Hdfs) -> None:
    hdfs.answer(200)
    hdfs.client.exists("/a b/ü?x#y")

    assert hdfs.asked[0][1] == "master:9870/webhdfs/v1/a%20b/%C3%BC%3Fx%23y"


def test_a_dilated_name_node_has_longer_to_answer(layout: Layout) -> None:
    hdfs = Hdfs(replace(layout, dilation=3.0))
    hdfs.answer(200)
    hdfs.client.exists("/data")

    assert hdfs.item(0)["timeout"] == 60.0


def test_size(hdfs: Hdfs) -> None:
    hdfs.answer(200, {"ContentSummary": {"length": 268435456, "spaceConsumed": 536870912}})

    assert hdfs.client.size_bytes("/data") == 268435456
    assert hdfs.asked[0][2]["op"] == "GETCONTENTSUMMARY"


@pytest.mark.parametrize("name", ["part-/../../../etc/cron.d/x", "..", "/etc/x"])
def test_a_name_that_is_a_path_is_refused(hdfs: Hdfs, name: str) -> None:
    """A job may answer in the NameNode's place; its names must not lead out of our folders."""
    rows = [{"pathSuffix": name, "type": "FILE", "length": 1}]
    hdfs.answer(200, {"FileStatuses": {"FileStatus": rows}})

    with pytest.raises(RemoteError, match="no name of a file"):
        hdfs.client.list("/out")


def test_list(hdfs: Hdfs) -> None:
    rows = [
        {"pathSuffix": "part-r-00000", "type": "FILE", "length": 123, "replication": 2},
        {"pathSuffix": "inner", "type": "DIRECTORY", "length": 0},
    ]
    hdfs.answer(200, {"FileStatuses": {"FileStatus": rows}})

    assert hdfs.client.list("/out") == [
        HdfsEntry(name="part-r-00000", is_file=True, size_bytes=123),
        HdfsEntry(name="inner", is_file=False, size_bytes=0),
    ]
    assert hdfs.asked[0][2]["op"] == "LISTSTATUS"


def test_make_folder(hdfs: Hdfs) -> None:
    hdfs.answer(200, {"boolean": True})
    hdfs.client.make_folder("/in")

    assert (hdfs.asked[0][0], hdfs.asked[0][2]["op"]) == ("PUT", "MKDIRS")


def test_delete_takes_everything_inside_and_nothing_is_fine(hdfs: Hdfs) -> None:
    hdfs.answer(200, {"boolean": False})
    hdfs.answer(404, MISSING)
    hdfs.client.delete("/out")
    hdfs.client.delete("/out")

    method, _, query = hdfs.asked[0]
    assert method == "DELETE"
    assert query == {"op": "DELETE", "user.name": "root", "recursive": "true"}


def test_rename_that_did_not_happen_is_an_error(hdfs: Hdfs) -> None:
    hdfs.answer(200, {"boolean": True})
    hdfs.answer(200, {"boolean": False})
    hdfs.client.rename("/a", "/b")

    assert hdfs.asked[0][2] == {"op": "RENAME", "user.name": "root", "destination": "/b"}
    with pytest.raises(RemoteError, match="renaming /a"):
        hdfs.client.rename("/a", "/b")


def test_put_shows_a_file_under_its_name_only_when_it_is_whole(hdfs: Hdfs, tmp_path: Path) -> None:
    hdfs.answer(
        307, location="http://worker2:9864/webhdfs/v1/in/x.partial?op=CREATE&createflag=CREATE"
    )
    hdfs.answer(201)
    hdfs.answer(200, {"boolean": True})

    (tmp_path / "x").write_bytes(b"content")
    hdfs.client.put(tmp_path / "x", "/in/x")

    create, store, rename = hdfs.asked
    assert create[1:] == (
        "master:9870/webhdfs/v1/in/x.partial",
        {"op": "CREATE", "user.name": "root", "createflag": CREATE_FLAGS},
    )
    assert hdfs.item(0)["source"] is None  # no data to the NameNode
    assert store[1] == "worker2:9864/webhdfs/v1/in/x.partial"
    # The node sends it, and has it only for that.
    assert hdfs.item(1)["source"] == "/lent/x"
    assert hdfs.remote.seen == [{}, {"/lent/x": b"content"}, {}]
    assert hdfs.item(2)["source"] is None
    assert (rename[1], rename[2]["destination"]) == ("master:9870/webhdfs/v1/in/x.partial", "/in/x")


@pytest.mark.parametrize("copies", [1, 3])
def test_put_with_its_own_number_of_copies(copies: int, hdfs: Hdfs, tmp_path: Path) -> None:
    hdfs.answer(307, location="http://worker2:9864/x")
    hdfs.answer(201)
    hdfs.answer(200, {"boolean": True})

    (tmp_path / "x").write_bytes(b"content")
    hdfs.client.put(tmp_path / "x", "/in/x", replication=copies)

    assert hdfs.asked[0][2] == {
        "op": "CREATE",
        "user.name": "root",
        "createflag": CREATE_FLAGS,
        "replication": str(copies),
    }


def test_put_that_breaks_off_is_an_error_and_nothing_is_renamed(hdfs: Hdfs, tmp_path: Path) -> None:
    hdfs.answer(307, location="http://worker2:9864/x")
    hdfs.answer(0, "BrokenPipeError: [Errno 32] Broken pipe")

    (tmp_path / "x").write_bytes(b"content")
    with pytest.raises(RemoteError, match=r"storing /in/x failed with status 0: BrokenPipe"):
        hdfs.client.put(tmp_path / "x", "/in/x")

    assert len(hdfs.asked) == 2
    assert hdfs.remote.files == {}


@pytest.mark.parametrize(("status", "location"), [(307, None), (403, "http://x"), (200, None)])
def test_put_needs_to_be_sent_on(
    status: int, location: str | None, hdfs: Hdfs, tmp_path: Path
) -> None:
    hdfs.answer(status, location=location)

    with pytest.raises(RemoteError, match="storing /in/x"):
        hdfs.client.put(tmp_path / "x", "/in/x")

    assert len(hdfs.asked) == 1  # and nothing was sent to the node in vain
    assert hdfs.remote.seen == [{}]


def test_get_reads_from_the_datanode_into_a_file(hdfs: Hdfs, tmp_path: Path) -> None:
    hdfs.answer(307, location="http://worker3:9864/webhdfs/v1/out/part-0?op=OPEN")
    hdfs.answer(200)
    hdfs.remote.received = b"content"

    hdfs.client.get("/out/part-0", tmp_path / "part-0")

    assert hdfs.asked[0][2]["op"] == "OPEN"
    assert hdfs.item(0)["target"] is None
    assert hdfs.asked[1][1] == "worker3:9864/webhdfs/v1/out/part-0"
    # The node receives it, and hands it over.
    assert hdfs.item(1)["target"] == "/collected/part-0"
    assert (tmp_path / "part-0").read_bytes() == b"content"


def test_get_from_a_dead_datanode_is_an_error(hdfs: Hdfs, tmp_path: Path) -> None:
    hdfs.answer(307, location="http://worker3:9864/x")
    hdfs.answer(0, "ConnectionRefusedError: [Errno 111] Connection refused")

    with pytest.raises(RemoteError, match="reading /out/part-0"):
        hdfs.client.get("/out/part-0", tmp_path / "part-0")

    assert not (tmp_path / "part-0").exists()


def test_get_over_a_master_whose_disk_fills_is_a_lack_of_room(hdfs: Hdfs, tmp_path: Path) -> None:
    hdfs.answer(307, location="http://worker3:9864/x")
    hdfs.answer(0, "OSError: [Errno 28] No space left on device")

    with pytest.raises(CapacityError, match="master: its disk is full, so /out/part-0 cannot be"):
        hdfs.client.get("/out/part-0", tmp_path / "part-0")


@pytest.mark.parametrize("status", [403, 500])
def test_what_a_datanode_says_instead_of_the_content_is_not_taken_for_it(
    status: int, hdfs: Hdfs, tmp_path: Path
) -> None:
    hdfs.answer(307, location="http://worker3:9864/x")
    hdfs.answer(status, "sorry")
    hdfs.remote.received = b"sorry"

    with pytest.raises(RemoteError, match=f"reading /out/part-0 failed with status {status}"):
        hdfs.client.get("/out/part-0", tmp_path / "part-0")

    assert not (tmp_path / "part-0").exists()


@pytest.mark.parametrize(
    ("verb", "doing"),
    [
        ("exists", "looking at"),
        ("size_bytes", "measuring"),
        ("list", "listing"),
        ("make_folder", "creating"),
        ("delete", "deleting"),
    ],
)
def test_errors_say_what_hdfs_said(verb: str, doing: str, hdfs: Hdfs) -> None:
    refused = {"RemoteException": {"exception": "SafeModeException", "message": "in safe mode"}}
    hdfs.answer(403, refused)

    with pytest.raises(RemoteError) as caught:
        getattr(hdfs.client, verb)("/data")

    assert caught.value.message == f"HDFS: {doing} /data failed with status 403: in safe mode"
    assert "boardcluster status" in caught.value.hint


def test_a_missing_folder_cannot_be_listed(hdfs: Hdfs) -> None:
    hdfs.answer(404, MISSING)

    with pytest.raises(NotThereError, match="File does not exist: /data"):
        hdfs.client.list("/data")


def test_a_page_that_is_no_json_is_shown_in_part(hdfs: Hdfs) -> None:
    hdfs.answer(500, "<html>" + "x" * 10_000)

    with pytest.raises(RemoteError, match="<html>x") as caught:
        hdfs.client.list("/data")
    assert len(caught.value.message) < 600
