"""A file is what it was or what it is to be, and nothing is left beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from boardcluster.store import replacing


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
