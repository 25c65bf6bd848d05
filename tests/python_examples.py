"""The Python that docs and notebooks show, as a reader would run it."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

__all__ = ["NOTEBOOK", "PAGE", "notebook_cells", "page_blocks", "run_code"]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "how-to" / "use-from-python.md"
NOTEBOOK = ROOT / "examples" / "notebooks" / "results.ipynb"

_BLOCK = re.compile(r"^```python([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def page_blocks() -> list[tuple[str, str]]:
    """Return each Python block of the page: what it needs, empty for nothing; and its code."""
    return [(needs.strip(), code) for needs, code in _BLOCK.findall(PAGE.read_text())]


def notebook_cells() -> list[str]:
    """Return the code of the notebook, cell by cell."""
    document = json.loads(NOTEBOOK.read_text())
    assert document["nbformat"] == 4
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in cells), "outputs are not committed"
    return ["".join(cell["source"]) for cell in cells]


def run_code(code: str, names: dict[str, Any], *, where: str) -> object:
    """Run code in a namespace; return the value of a last expression, as a notebook shows it."""
    tree = ast.parse(code, filename=where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), where, "eval"), names)
