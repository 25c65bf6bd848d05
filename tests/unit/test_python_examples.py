"""The page on Python and the notebook run as they stand, on a store that has results.

What needs a cluster runs in tests/integration/test_python.py.
"""

import shutil
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest
from tests.python_examples import notebook_cells, page_blocks, run_code

FIXTURE = Path(__file__).parents[1] / "fixtures" / "store-b7912e2" / "home"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user whose cluster "default" has results, in a folder of their own."""
    shutil.copytree(FIXTURE, tmp_path / "data" / "boardcluster" / "default")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_the_page_runs_in_its_order(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = [code for needs, code in page_blocks() if not needs]
    assert len(blocks) >= 6
    names: dict[str, Any] = {}
    for number, code in enumerate(blocks):
        run_code(code, names, where=f"block {number} of the page")

    said = capsys.readouterr().out
    assert "terasort" in said
    assert "no campaign absent -> name one of: 20260901-a" in said
    assert (place / "report" / "report.html").is_file()
    assert (place / "engines.html").is_file()


def test_the_notebook_runs_in_its_order() -> None:
    matplotlib.use("agg")
    names: dict[str, Any] = {}
    shown = [
        run_code(code, names, where=f"cell {number} of the notebook")
        for number, code in enumerate(notebook_cells())
    ]

    assert len(names["runs"]) == 21
    assert shown[-1] is not None
    drawn = [axes for number in plt.get_fignums() for axes in plt.figure(number).axes]
    assert [len(axes.get_lines()) > 0 for axes in drawn] == [True, True]
    plt.close("all")
