"""Write the keys of ``[[matrix]]`` into docs/reference/campaign-toml.md, from the table of factors.

    .venv/bin/python tools/write_factors.py

A test fails while the page is not what this writes.
"""

from __future__ import annotations

from pathlib import Path

from boardcluster.factors import FACTORS, Acts, Factor

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/campaign-toml.md"
BEGIN = "<!-- The table is written by tools/write_factors.py. -->\n"
HEAD = "\n| Key | Default | Allowed | Restarts the daemons |\n|---|---|---|---|\n"
RUNS = (
    "| `repetitions` | the campaign's | 1 to 1000 | no |\n"
    "| `warm_ups` | the campaign's | 0 to 100 | no |\n"
)
RESTARTS = {Acts.CLUSTER: "yes", Acts.JOB: "no", Acts.BY_KEY: "some"}
LAST = ("input", "parameters", "settings")


def written(page: str) -> str:
    """Return the page with the table as the factors are now."""
    before, _, rest = page.partition(BEGIN)
    after = rest.lstrip("\n").partition("\n\n")[2]
    first = "".join(_row(factor) for factor in FACTORS if factor.name not in LAST)
    last = "".join(_row(factor) for factor in FACTORS if factor.name in LAST)
    return f"{before}{BEGIN}{HEAD}{first}{RUNS}{last}\n{after}"


def _row(factor: Factor) -> str:
    cells = (f"`{factor.file_key}`", factor.left_out, factor.allowed, RESTARTS[factor.acts])
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
