"""How figures look on a screen and on paper; the same marks in both."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from boardcluster.records import Engine

__all__ = [
    "DASHES",
    "ENGINE_COLOURS",
    "HATCHES",
    "MARKERS",
    "PRINT",
    "SCREEN",
    "VARIABLES",
    "Theme",
    "drawing",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Colours and size."""

    ink: str
    """Colour of texts and error bars."""
    muted: str
    """Of what matters less."""
    line: str
    """Of grids."""
    page: str
    """Of what is behind."""
    phase: str
    """Of every other phase."""
    bad: str
    """Of what disturbed."""
    strong: tuple[str, ...]
    """Of lines and points, by number."""
    soft: tuple[str, ...]
    """Of areas, by number."""
    scale: float
    """Points for each unit of the layout, in which the smallest text is 12 high."""


ENGINE_COLOURS = {
    Engine.MAPREDUCE: 0,
    Engine.SPARK: 1,
    Engine.MPI: 2,
    Engine.HTTP: 3,
    Engine.GALERA: 4,
    Engine.GLUSTER: 5,
}
"""Number of the colour of each engine."""

MARKERS = ("o", "s", "D", "^", "v", "P", "X", "p")
DASHES: tuple[Any, ...] = (
    *("-", (0, (5, 1.6)), (0, (1.2, 1.4)), (0, (6, 1.5, 1.2, 1.5)), (0, (8, 2))),
    *((0, (3, 1, 1, 1, 1, 1)), (0, (2.4, 1.2)), (0, (9, 1.5, 3, 1.5))),
)
# Lines only: in SVG, dots and circles take a hundred times the room.
HATCHES = ("", "///", "\\\\\\", "xxx", "---", "|||", "+++", "\\\\\\---")

# Okabe and Ito, "Color Universal Design", 2008: blue, vermilion, bluish green, reddish purple,
# orange and sky blue. The yellow is too pale for lines, so a darker one replaces it.
_OKABE_ITO = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#7a6a00",
    "#56b4e9",
    "#e69f00",
    "#4d4d4d",
)
_OKABE_ITO_SOFT = (
    *("#cfe4f2", "#fbdfc9", "#c9e9de", "#f4e1ec", "#e9e4bf", "#def0fa", "#faebcc", "#dcdcdc"),
)

PRINT = Theme(
    ink="#000000",
    muted="#333333",
    line="#d0d4d8",
    page="#ffffff",
    phase="#eceff2",
    bad="#a8201a",
    strong=_OKABE_ITO,
    soft=_OKABE_ITO_SOFT,
    scale=0.72,
)
"""On paper: 8.6 points high text, in black, on columns of the usual width."""

# Not seen by anybody: each is replaced by a variable of the page's style sheet.
SCREEN = Theme(
    ink="#010101",
    muted="#020202",
    line="#030303",
    page="#040404",
    phase="#050505",
    bad="#060606",
    strong=tuple(f"#0a000{number}" for number in range(8)),
    soft=tuple(f"#0b000{number}" for number in range(8)),
    scale=1.0,
)
_NAMED = (
    (SCREEN.ink, "var(--ink)"),
    (SCREEN.muted, "var(--muted)"),
    (SCREEN.line, "var(--line)"),
    (SCREEN.page, "var(--page)"),
    (SCREEN.phase, f"var(--phase, {PRINT.phase})"),
    (SCREEN.bad, "var(--bad)"),
)
_ENGINES = ("--mapreduce", "--spark", "--mpi")
VARIABLES: dict[str, str] = dict(_NAMED)
"""What replaces, in a page, each colour of ``SCREEN``. A page without the variables of the curves
still shows them, in the colours of print."""
for _number, (_strong, _soft) in enumerate(zip(_OKABE_ITO, _OKABE_ITO_SOFT, strict=True)):
    if _number < len(_ENGINES):
        VARIABLES[SCREEN.strong[_number]] = f"var({_ENGINES[_number]})"
        VARIABLES[SCREEN.soft[_number]] = f"var({_ENGINES[_number]}-soft)"
    else:
        VARIABLES[SCREEN.strong[_number]] = f"var(--l{_number}, {_strong})"
        VARIABLES[SCREEN.soft[_number]] = (
            f"color-mix(in srgb, var(--l{_number}, {_strong}) 28%, var(--page))"
        )

_RC: Any = {
    "svg.fonttype": "none",  # text stays text: it can be selected, searched and scaled
    "svg.hashsalt": "boardcluster",  # the same data gives the same bytes
    "pdf.fonttype": 42,  # TrueType outlines in the file, as publishers ask for
    "font.size": 13,
    "text.parse_math": False,
    "axes.unicode_minus": False,
}
_FONT = "DejaVu Sans"
_FALLBACK_FONTS = (
    *("Noto Sans CJK JP", "Noto Sans CJK SC", "WenQuanYi Zen Hei", "Droid Sans Fallback"),
    *("Noto Sans Arabic", "Noto Sans Devanagari", "Unifont"),
)


@contextlib.contextmanager
def drawing(theme: Theme) -> Iterator[None]:
    """Set what matplotlib needs while something is drawn; nothing global is left changed."""
    import matplotlib as mpl  # noqa: PLC0415  half a second to load
    from matplotlib import font_manager  # noqa: PLC0415

    installed = {font.name for font in font_manager.fontManager.ttflist}
    family = [_FONT, *(name for name in _FALLBACK_FONTS if name in installed)]
    own: Any = {"font.family": family, "hatch.linewidth": 0.8 * theme.scale}
    quiet = logging.getLogger("fontTools")
    level = quiet.level
    quiet.setLevel(logging.ERROR)
    try:
        with mpl.rc_context({**_RC, **own}), warnings.catch_warnings():
            # A script that no font here has is still drawn by the reader's own fonts.
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            yield
    finally:
        quiet.setLevel(level)
