"""Which expressions are allowed, and that these mean the same in grep and in a backtracking engine.

Python's ``re`` stands in for Java's: both take the first match in the order of tries, not the
longest, and for what is allowed here their syntax is the same.
"""

import random
import re

import pytest

from boardcluster.remote.gate import run_program
from boardcluster.workloads.grep.pattern import is_pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "ATL",
        "^2013,1,",
        "2006$",
        "N[0-9]+,LGA,ATL",
        "[^,]{3},[A-Z0-9]{2,3}.",
        "a*b",
        "a{0,2}b{1,}c?",
        "-Dx=y 'z' \"q\" <&>~`!@#%;:_/",
        "[0-9 ,./;_%+*@#=-]".replace("-]", "]"),
        "x" * 100,
        "a{255}",
    ],
)
def test_is_allowed(pattern: str) -> None:
    assert is_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^",
        "$",
        "^$",
        "a*",  # matches the empty text
        "a?b{0,3}.*",
        "a|b",
        "(ATL)",
        "(?i)a",
        r"\d",
        r"a\1",
        "a*?",
        "a+?",
        "a??",
        "a*+",
        "a++",
        "a{2}{3}",
        "*a",
        "^*a",
        "a^b",
        "a$b",
        "a$*",
        "a{,3}",
        "a{3,2}",
        "a{0}",
        "a{256}",
        "a{1,256}",
        "a{2",
        "a}",
        "${user.name}",
        "{{JAVA_HOME}}",
        "a]",
        "[]a]",
        "[^]a]",
        "[]",
        "[a[b]]",
        "[[:digit:]]",
        "[:digit:]",
        "[a-z&&[b]]",
        "[&&a]",
        "[z-a]",
        "[A-z]",
        "[0-z]",
        "[a-]",
        "[-a]",
        "[a",
        r"[\n]",
        "a\tb",
        "a\nb",
        "a\rb",
        "a\0b",
        " a",
        "a ",
        "\u00e9",
        "\u0661",
        "x" * 101,
    ],
)
def test_is_refused(pattern: str) -> None:
    assert not is_pattern(pattern)


def test_ranges_are_read_from_left_to_right() -> None:
    assert is_pattern("[a-zA-Z0-9]")
    assert not is_pattern("[a-b-c]")


_ITEMS = ["a", "b", "c", ".", "[ab]", "[^a]", "[b-c]"]
_QUANTIFIERS = ["", "", "*", "+", "?", "{2}", "{0,2}", "{1,3}", "{2,}"]


def random_patterns(number: int) -> list[str]:
    draw = random.Random(20260101)
    patterns: list[str] = []
    while len(patterns) < number:
        items = [draw.choice(_ITEMS) + draw.choice(_QUANTIFIERS) for _ in range(draw.randint(1, 6))]
        pattern = draw.choice(["", "", "", "^"]) + "".join(items) + draw.choice(["", "", "", "$"])
        if is_pattern(pattern):
            patterns.append(pattern)
    return patterns


def test_grep_finds_the_same_texts_and_lines_as_a_backtracking_engine() -> None:
    draw = random.Random(7)
    lines = ["".join(draw.choices("abcd", k=draw.randint(0, 12))) for _ in range(300)]
    text = "".join(f"{line}\n" for line in lines).encode()

    for pattern in random_patterns(150):
        found = [match.group() for line in lines for match in re.finditer(pattern, line)]
        matching = [line for line in lines if re.search(pattern, line)]
        by_grep = run_program(["grep", "-aEo", "-e", pattern], stdin=text, check=False)
        by_line = run_program(["grep", "-aE", "-e", pattern], stdin=text, check=False)

        assert by_grep.text.splitlines() == found, pattern
        assert by_line.text.splitlines() == matching, pattern


def test_what_is_refused_would_differ() -> None:
    greedy = [match.group() for match in re.finditer("a?(ab)?", "ab") if match.group()]
    longest = run_program(["grep", "-aEo", "-e", "a?(ab)?"], stdin=b"ab\n").text.split()

    assert (greedy, longest) == (["a"], ["ab"])
