"""The fake node: it knows nothing that it was not told."""

from pathlib import Path

import pytest

from boardcluster.errors import RemoteError
from boardcluster.remote.base import Remote
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.node_rpc import listening


def test_is_a_remote() -> None:
    assert isinstance(FakeRemote(), Remote)


def test_fails_on_any_command_it_was_not_told_about(tmp_path: Path) -> None:
    remote = FakeRemote("node")
    remote.tell("ls", "/")

    with pytest.raises(RemoteError, match=r"node: .*not told about: ls /home"):
        remote.run(["ls", "/home"])
    with pytest.raises(RemoteError, match="not told about: ls"):
        remote.run(["ls"], check=False)
    with pytest.raises(RemoteError, match="not told about: node_agent listening"):
        listening(remote, [1])
    with pytest.raises(RemoteError, match="not told about"):
        remote.start(["daemon"], log="/log")
    with pytest.raises(RemoteError, match="not told about"):
        remote.run_logged(["job"], stdout=tmp_path / "o", stderr=tmp_path / "e", timeout_seconds=1)


def test_gives_answers_in_order_and_keeps_the_last() -> None:
    remote = FakeRemote()
    remote.tell("date", stdout="one")
    remote.tell("date", stdout="two")

    assert [remote.run(["date"]).text for _ in range(3)] == ["one", "two", "two"]
    assert remote.calls == [("date",)] * 3


def test_can_fail() -> None:
    remote = FakeRemote()
    remote.tell("false", returncode=1)

    assert remote.run(["false"], check=False).returncode == 1
    with pytest.raises(RemoteError, match="status 1"):
        remote.run(["false"])


def test_answers_the_node_agent_program_and_records_the_request() -> None:
    remote = FakeRemote()
    remote.tell_node_agent("listening", [8020])

    assert listening(remote, [8020, 9870]) == [8020]
    assert remote.requests == [{"do": "listening", "ports": [8020, 9870]}]


def test_keeps_files(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "inner" / "file").write_bytes(b"content")
    remote = FakeRemote("node")

    remote.put(tmp_path / "folder", "/conf")
    remote.put(tmp_path / "folder" / "inner" / "file", "/single")
    remote.get("/conf/inner/file", tmp_path / "back")

    assert remote.files == {"/conf/inner/file": b"content", "/single": b"content"}
    assert (tmp_path / "back").read_bytes() == b"content"
    with pytest.raises(RemoteError, match="node: /absent does not exist"):
        remote.get("/absent", tmp_path / "back")


def test_lends_and_collects(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"content")
    remote = FakeRemote("node")

    with remote.temporary_upload(tmp_path / "source") as there:
        assert remote.files[there] == b"content"
    with remote.download_on_exit(tmp_path / "target") as there:
        remote.files[there] = b"result"

    assert (tmp_path / "target").read_bytes() == b"result"
    with (
        pytest.raises(RemoteError, match="does not exist"),
        remote.download_on_exit(tmp_path / "none"),
    ):
        pass
