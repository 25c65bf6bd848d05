r"""Tables as LaTeX. Without a TeX here, what it would stumble over is looked for in the text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from boardcluster.errors import UsageError
from boardcluster.report.latex import escape, latex_label, latex_table, write_latex
from boardcluster.report.tables import Column, Display, ReportTable

NASTY = r"a\b{c}d$e&f#g^h_i~j%k<l>m|n\"o`p[q]*r--s"
TABLE = ReportTable(
    caption="Zeiten & Größen: 100 % von x_1",
    columns=(
        Column("Engine", Display.ENGINE),
        Column("Mean, s", Display.NUMBER),
        Column("Command", Display.CODE),
        Column("Why", Display.LONG),
    ),
    rows=(
        ("MapReduce", "41.0 ± 0.5", NASTY, "line\nbreak"),
        ("[Spark]", "\N{EN DASH}", "", "日本 \N{NO-BREAK SPACE}é"),
    ),
    emulated=True,
    note="Runs with `--tainted` count, 5 % of them.",
)


def unescaped(text: str) -> list[str]:
    """Characters that TeX would take for its own, outside commands that are ours."""
    plain = re.sub(r"\\[{}$&#_%]", "", text)
    plain = re.sub(r"\$(?:\\pm|\\times|-|\^\{[\d\\a-z]*\})\$", "", plain)
    return re.findall(r"[$&#^_~%<>|\"`]", plain)


@pytest.mark.parametrize("character", list('\\{}$&#^_~%<>|"`'))
def test_each_special_character_is_escaped(character: str) -> None:
    text = escape(f"a{character}b")
    assert text != f"a{character}b"
    assert unescaped(text) == []
    assert text.startswith("a")
    assert text.endswith("b")


def test_a_quotation_mark_needs_no_other_encoding_than_latex_has_by_itself() -> None:
    assert escape('"') == r"{\char34}"


def test_braces_balance_whatever_the_text() -> None:
    text = re.sub(r"\\[{}]", "", escape(NASTY))
    assert text.count("{") == text.count("}")
    assert unescaped(text) == []


def test_hyphens_of_options_are_no_dash() -> None:
    assert "--" not in escape("--tainted ---x")


@pytest.mark.parametrize("name", ["grün", "Café", "日本", "Ω"])
def test_letters_of_other_scripts_survive(name: str) -> None:
    assert name in escape(f"cluster {name}")


def test_what_cannot_be_printed_is_left_out() -> None:
    assert escape("a\x00b\x1b[1m\nc") == "ab{[}1m c"


def test_every_row_has_every_column() -> None:
    text = latex_table(TABLE)
    assert r"\begin{tabular}{lrlp{0.4\linewidth}}" in text
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 3
    for row in rows:
        assert len(re.findall(r"(?<!\\)&", row)) == 3
        assert not row.startswith(("[", "*"))
    assert body.count(r"\midrule") == 1


def test_environments_are_closed_in_order() -> None:
    text = latex_table(TABLE)
    assert re.findall(r"\\(begin|end)\{(\w+)\}", text) == [
        ("begin", "table"),
        ("begin", "tabular"),
        ("end", "tabular"),
        ("end", "table"),
    ]
    plain = re.sub(r"\\[{}]", "", text)
    assert plain.count("{") == plain.count("}")


def test_caption_says_units_and_emulated_nodes() -> None:
    text = latex_table(TABLE, label="times of grün")
    assert r"\caption{Zeiten \& Größen: 100 \% von x\_1. Emulated: nodes are network" in text
    assert r"\label{tab:times-of-grun}" in text
    assert "Mean, s" in text
    assert r"\texttt{-{}-tainted} count, 5 \% of them." in text


def test_a_table_of_boards_says_nothing_of_emulation() -> None:
    plain = ReportTable(caption="x", columns=(Column(""), Column("")), rows=(("a", "b"),))
    text = latex_table(plain)
    assert "mulated" not in text
    assert r"\midrule" not in text


@pytest.mark.parametrize(("text", "label"), [("A/B: ü!", "a-b-u"), ("日本", "table")])
def test_labels_are_plain(text: str, label: str) -> None:
    assert latex_label(text) == label


def test_long_names_that_begin_alike_are_different_files(tmp_path: Path) -> None:
    """As the tables of a mix of four jobs with long names are called."""
    mix = "-".join(["wordcount"] * 4)
    names = [f"workload-{mix}-abc123-worth{end}" for end in ("", "-1", "-2")]
    assert len(write_latex(dict.fromkeys(names, TABLE), tmp_path, force=False)) == 3
    assert all(len(latex_label(name)) <= 60 for name in names)


def test_nothing_is_written_if_one_file_is_there(tmp_path: Path) -> None:
    (tmp_path / "b.tex").write_text("mine")
    with pytest.raises(UsageError):
        write_latex({"a": TABLE, "b": TABLE}, tmp_path, force=False)
    assert {path.name for path in tmp_path.iterdir()} == {"b.tex"}
    assert len(write_latex({"a": TABLE, "b": TABLE}, tmp_path, force=True)) == 2
