"""How values of files are written in messages."""

import pytest

from boardcluster.spec.checks import shown


@pytest.mark.parametrize("character", ["\x1b", "\x7f", "\x9b", "\u202e", "\u2066", "\n"])
def test_no_terminal_obeys_a_value(character: str) -> None:
    assert (
        shown(f"a{character}b")
        == f'"a{chr(92)}' + {"\n": "n"}.get(character, f"u{ord(character):04x}") + 'b"'
    )
    assert shown("Würfel 東京") == '"Würfel 東京"'
