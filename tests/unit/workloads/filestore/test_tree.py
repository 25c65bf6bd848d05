"""The program of the small files, on a folder of this machine."""

import json
from pathlib import Path
from typing import Any

import pytest

from boardcluster.workloads.filestore import tree


def test_files_are_made_once_and_every_byte_is_compared(tmp_path: Path) -> None:
    asked: dict[str, Any] = {
        "do": "make",
        "root": str(tmp_path / "tree"),
        "files": 101,
        "bytes": 33,
        "result": str(tmp_path / "tree.json"),
    }

    tree.main(asked)
    tree.main({**asked, "do": "read"})

    found = json.loads((tmp_path / "tree.json").read_text())
    assert (found["files"], len(found["latency_microseconds"])) == (101, 101)
    last = tmp_path / "tree" / "0001" / "0000100"
    right = last.read_bytes()
    assert len(right) == 33
    last.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
    with pytest.raises(SystemExit, match="0000100: not what was written"):
        tree.main({**asked, "do": "read"})
    with pytest.raises(FileExistsError):
        tree.main(asked)


def test_no_more_than_a_folder_of_files_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand files of a mebibyte each are more than a board may have."""
    ahead: list[int] = []
    waiting = 0

    def content(name: str, size: int) -> bytes:
        nonlocal waiting
        waiting += 1
        ahead.append(waiting)
        return name.encode()[:size]

    def make(path: str, body: bytes) -> None:
        nonlocal waiting
        waiting -= 1
        assert body

    monkeypatch.setattr(tree, "content", content)
    monkeypatch.setattr(tree, "make", make)
    result = str(tmp_path / "tree.json")
    tree.main({"do": "make", "root": str(tmp_path), "files": 250, "bytes": 9, "result": result})

    assert waiting == 0
    assert max(ahead) == tree.FOLDER_FILES
