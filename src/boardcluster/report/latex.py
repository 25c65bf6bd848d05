r"""Tables as LaTeX, ready for ``\input``: booktabs, everything escaped, units in the headings."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from boardcluster.report import words
from boardcluster.report.export.writers import require_free, whole_file
from boardcluster.report.tables import Column, Display, ReportTable

__all__ = ["escape", "latex_label", "latex_table", "write_latex"]

_HEAD = r"""% Written by boardcluster. Needs \usepackage{booktabs}; pdfLaTeX reads UTF-8 since 2018.
% Names in scripts other than Latin need XeLaTeX or LuaLaTeX and a font that has them.
"""
_LABEL_MOST = 60
_ALIGNED = {Display.NUMBER: "r", Display.LONG: r"p{0.4\linewidth}"}
_BLANKS = re.compile("[^\\S\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}]+")
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "^": r"\textasciicircum{}",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "%": r"\%",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",  # \textquotedbl needs another encoding than LaTeX's own
    "`": r"\textasciigrave{}",
    "[": "{[}",  # at the start of a row LaTeX would take it for the spacing of the one before
    "]": "{]}",
    "*": "{*}",
    "\N{NO-BREAK SPACE}": "~",
    "\N{NARROW NO-BREAK SPACE}": r"\,",
    "\N{EN DASH}": r"\textendash{}",
    "\N{EM DASH}": r"\textemdash{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{MIDDLE DOT}": r"$\cdot$",
    "\N{DEGREE SIGN}": r"$^{\circ}$",
    "\N{MICRO SIGN}": r"$\mu$",
    "\N{GREEK SMALL LETTER MU}": r"$\mu$",
    "\N{SQUARE ROOT}": r"$\surd$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\le$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\ge$",
    "\N{ALMOST EQUAL TO}": r"$\approx$",
    "\N{RIGHTWARDS ARROW}": r"$\rightarrow$",
    "\N{HORIZONTAL ELLIPSIS}": r"\ldots{}",
    "\N{CHECK MARK}": "ok",
    "\N{MULTIPLICATION X}": "x",
    **{power: f"$^{{{digit}}}$" for digit, power in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
}


def escape(text: str) -> str:
    """Return text as LaTeX that prints it; line breaks become blanks.

    Characters that end a line or cannot be printed are left out; letters of other scripts stay.
    """
    # A space that holds a number and its unit together is kept.
    plain = _BLANKS.sub(" ", unicodedata.normalize("NFC", text)).strip()
    escaped = "".join(
        _SPECIAL.get(character, character)
        for character in plain
        if character in _SPECIAL or unicodedata.category(character)[0] != "C"
    )
    return re.sub(r"(?<=-)(?=-)", "{}", escaped)  # the hyphens of an option are no dash


def latex_label(text: str) -> str:
    """Return a name for a file or a label: small letters, digits and hyphens, 60 at most."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    found = re.sub(r"[^a-z0-9]+", "-", ascii_text.lower()).strip("-")
    if len(found) > _LABEL_MOST:  # what begins alike must not have one name
        digest = hashlib.sha256(found.encode()).hexdigest()[:6]
        found = f"{found[: _LABEL_MOST - 7].strip('-')}-{digest}"
    return found or "table"


def latex_table(table: ReportTable, *, label: str = "") -> str:
    r"""Return a table as a LaTeX float that needs ``booktabs`` and nothing else.

    Headings carry the units. The caption says of numbers that they are not of boards.

    Args:
        table: the table.
        label: name behind ``tab:``; by default it is made of the caption.
    """
    caption = escape(table.caption).rstrip(".") + "."
    if table.emulated:
        caption += f" {escape(table.mark or words.EMULATED).capitalize()}."
    titles = [escape(column.title) for column in table.columns]
    alignment = "".join(_ALIGNED.get(column.kind, "l") for column in table.columns)
    body = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\label{{tab:{latex_label(label or table.caption)}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        *([rf"{' & '.join(titles)} \\", r"\midrule"] if any(titles) else []),
        *(
            rf"{' & '.join(_cell(column, text) for column, text in pairs)} \\"
            for pairs in (list(zip(table.columns, row, strict=True)) for row in table.rows)
        ),
        r"\bottomrule",
        r"\end{tabular}",
        *([rf"\par\smallskip\footnotesize {_prose(table.note)}"] if table.note else []),
        r"\end{table}",
    ]
    return _HEAD + "\n".join(body) + "\n"


def write_latex(
    tables: Mapping[str, ReportTable], folder: Path, *, force: bool
) -> tuple[Path, ...]:
    """Write each table into ``NAME.tex`` of a folder; return the files.

    All are made before the first is written, and none is written if any is there already.

    Args:
        tables: by name.
        folder: where; made if there is none.
        force: whether files that are there already may be replaced.

    Raises:
        UsageError: a file is there already.
        HostError: one cannot be written.
    """
    texts = {
        folder / f"{latex_label(name)}.tex": latex_table(table, label=name)
        for name, table in tables.items()
    }
    for path in texts:
        require_free(path, force=force)
    for path, text in texts.items():
        with whole_file(path, force=force) as temporary:
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    return tuple(texts)


def _cell(column: Column, text: str) -> str:
    return rf"\texttt{{{escape(text)}}}" if column.kind is Display.CODE and text else escape(text)


def _prose(text: str) -> str:
    """Escape a sentence; its ``code`` spans become typewriter text."""
    parts = re.split(r"`([^`]*)`", text)
    return "".join(
        rf"\texttt{{{escape(part)}}}" if index % 2 else _escaped_part(part)
        for index, part in enumerate(parts)
    )


def _escaped_part(text: str) -> str:
    """Escape a part of a sentence with the blanks at its ends."""
    lead = " " if text[:1].isspace() else ""
    tail = " " if text[-1:].isspace() and text.strip() else ""
    return f"{lead}{escape(text)}{tail}"
