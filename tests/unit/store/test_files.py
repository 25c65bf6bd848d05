"""A file is what it was or what it is to be, and nothing is left beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from boardcluster.store import replacing
from boardcluster.store.files import is_temporary


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, ValueError])
def test_whatever_ends_a_write_leaves_the_former_file_alone(
    error: type[BaseException], tmp_path: Path
) -> None:
    path = tmp_path / "telemetry.npz"
    path.write_text("former")

    def write() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "former"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_write_leaves_is_known_by_its_name(tmp_path: Path) -> None:
    with replacing(tmp_path / "power.json") as temporary:
        temporary.write_text("half")
        assert is_temporary(temporary.name)
    names = ("power.json", ".bashrc", "part-0.1", "power.json.4711", ".4711", ".power.json.4711.gz")
    assert [name for name in names if is_temporary(name)] == []
