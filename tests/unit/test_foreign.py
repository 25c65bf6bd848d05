"""Lines and files of others are read up to a bound."""

import io
from pathlib import Path

import pytest

from boardcluster.foreign import bounded_lines, json_text, start_of, write_csv


def test_a_line_of_any_length_costs_no_more_than_its_start() -> None:
    class Endless(io.StringIO):
        """A gigabyte in one line, which is never in memory."""

        left = 1 << 30
        most = 0

        def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
            assert size > 0, "a line without a bound"
            self.most = max(self.most, size)
            if not self.left:
                return ""
            got = min(size, self.left)
            self.left -= got
            return "x" * got

    stream = Endless()
    assert [len(line) for line in bounded_lines(stream)] == [stream.most]
    assert stream.left == 0


@pytest.mark.parametrize("end", ["", "\n"])
def test_lines_are_kept_and_long_ones_cut(end: str) -> None:
    text = f"one\n{'x' * 20}\n\n{'y' * 8}\nlast{end}"
    found = list(bounded_lines(io.StringIO(text), characters=8))
    assert found == ["one\n", "x" * 8, "\n", "y" * 8, f"last{end}"]


def test_a_file_is_read_up_to_a_bound(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"ab\xff" + b"c" * 100)
    assert start_of(path, size_bytes=4) == "ab\N{REPLACEMENT CHARACTER}c"


@pytest.mark.parametrize("text", ["-", "-3", "+1e-5", "-inf", "a=b", "'x", "plain - text"])
def test_csv_leaves_numbers_and_other_text_alone(text: str) -> None:
    out = io.StringIO()
    assert write_csv(out, [[text, -3, -0.5]]) == 1
    assert out.getvalue() == f"{text},-3,-0.5\n"


@pytest.mark.parametrize("text", ["=1", "-1+1", "+a", "@x", "\t=1", "--conf", "\uff1d1"])
def test_csv_makes_text_of_formulas(text: str) -> None:
    out = io.StringIO()
    write_csv(out, [[text]])
    assert out.getvalue() == f"'{text}\n"


def test_json_is_the_same_value_and_no_terminal_obeys_it() -> None:
    assert json_text({"a": "\x9b\u202e ü \udcff"}) == '{"a": "\\u009b\\u202e ü \\udcff"}'
