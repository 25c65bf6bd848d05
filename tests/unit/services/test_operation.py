"""What ``up`` leaves behind when even cleaning up fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from boardcluster.cluster.state import load_state
from boardcluster.errors import ClusterError, JvmCrashError
from boardcluster.fetch.cache import no_progress
from boardcluster.services import operation
from boardcluster.services.layout import Layout


@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.parametrize("error", [SystemExit(130), JvmCrashError("the JVM crashed")])
def test_what_could_not_be_ended_is_said_and_stays_recorded(
    error: BaseException,
    stays: bool,
    layout: Layout,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts: list[str] = []

    def bring_up(*_: object) -> None:
        starts.append("start")
        raise error

    def destroy(_: object) -> int:
        if stays:
            raise ClusterError("processes do not end")
        return 0

    (tmp_path / "cluster.toml").touch()
    monkeypatch.setattr(operation, "read_spec", lambda _: layout.spec)
    monkeypatch.setattr(operation, "check_memory", lambda _: None)
    monkeypatch.setattr(operation, "require_room", lambda _: None)
    monkeypatch.setattr("boardcluster.cluster.emulated.check_host", lambda _: None)
    monkeypatch.setattr(operation, "_layout", lambda *_: layout)
    monkeypatch.setattr(operation, "_bring_up", bring_up)
    monkeypatch.setattr("boardcluster.cluster.emulated.destroy", destroy)
    monkeypatch.setattr(operation, "refuse_archives", lambda *_: None)
    with pytest.raises(type(error)) as caught:
        operation.up(tmp_path, cache=tmp_path, progress=no_progress, seen=lambda _: None)

    notes = getattr(caught.value, "__notes__", [])
    assert any(f"boardcluster down --home {tmp_path}" in note for note in notes) == stays
    assert (load_state(tmp_path) is not None) == stays
    again = isinstance(error, JvmCrashError) and not stays
    assert len(starts) == (2 if again else 1)
