"""The load generator: built once, and again where a power cut left it empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from boardcluster.fetch.cache import no_progress
from boardcluster.remote.base import Remote
from boardcluster.remote.fake import FakeRemote
from boardcluster.services.http import loadgen


def test_an_empty_program_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = iter(("", "whole"))
    node = FakeRemote("master")
    node.tell("uname", "-m", stdout="aarch64\n")

    def build(builder: Remote, place: Path) -> None:
        place.write_text(next(texts))

    monkeypatch.setattr(loadgen, "_build", build)
    for expected in ("", "whole", "whole"):
        path = loadgen.have_loadgen(
            node, cache=tmp_path, folder="/node/http", shared=True, progress=no_progress
        )
        assert Path(path).read_text() == expected
