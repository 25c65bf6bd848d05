import subprocess

import pytest

from tests.tidy.docs_blocks import (
    Block,
    console_blocks,
    missing,
    parts,
    script,
    shown_files,
)

TEXT = """\
# Title

```console
$ first one
output of it

more output
$ second \\
> --with more
```

Some text with `code`.

```toml
$ not = "a command"
```

```console (as root)
$ third
```
"""


def test_commands_and_output_are_told_apart() -> None:
    first, second = console_blocks(TEXT)
    assert first == Block(
        line=3,
        needs="",
        commands=("first one", "second \\\n--with more"),
        output="output of it\n\nmore output",
    )
    assert second == Block(line=18, needs="(as root)", commands=("third",), output="")


def test_a_console_block_inside_another_block_is_not_one() -> None:
    assert console_blocks("````\n```console\n$ x\n````\n") == ()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("```console\n$ x\n", "line 1: the block is not closed"),
        ("\n```console\noutput only\n```\n", "line 2: a console block without a line"),
        ("```console\n> x\n```\n", "line 1: a continuation without a command"),
        ("```console\n$ x\noutput\n> y\n```\n", "line 1: a continuation without a command"),
    ],
)
def test_a_malformed_block_is_refused(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        console_blocks(text)


def test_the_script_runs_what_can_be_run_and_stops_at_an_error() -> None:
    text = """\
```console
$ word=kept
```
```console (needs a browser)
$ echo never
```
```console
$ echo $word \\
>   and joined
$ false
$ echo never
```
"""
    done = subprocess.run(
        ["bash", "-c", script(console_blocks(text))], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("kept and joined\n", 1)


def test_what_each_block_printed_is_told_apart() -> None:
    text = """\
```console
$ echo one
$ echo two
```
```console (needs boards)
$ echo never
```
```console
$ printf 'three\\n'
```
"""
    marked = script(console_blocks(text), marked=True)
    done = subprocess.run(["bash", "-c", marked], capture_output=True, text=True, check=True)
    assert parts(done.stdout) == {1: "one\ntwo\n", 8: "three\n"}


def test_lines_that_a_page_shows_of_a_file_are_found() -> None:
    text = "```text (in out/report.md)\n| a |\n...\n```\n```text\nof nothing\n```\n"
    assert shown_files(text) == (("out/report.md", "| a |\n..."),)


@pytest.mark.parametrize(
    ("shown", "first"),
    [
        ("run 1 of ...: ok, ... s\n...\n| a | b |", ""),
        ("", ""),
        ("run 2 of ...", "run 2 of ..."),
        ("ok, ... s", "ok, ... s"),
        ("| a | b |\nrun 1 of ...", "run 1 of ..."),
        ("run 1 of 6: ok, 2.5 s\nrun 1 of 6: ok, 2.5 s", "run 1 of 6: ok, 2.5 s"),
        ("run 1 of 6: ok, 2x5 s", "run 1 of 6: ok, 2x5 s"),
    ],
)
def test_what_is_shown_is_printed_whole_and_in_order(shown: str, first: str) -> None:
    assert missing(shown, "begun\nrun 1 of 6: ok,   2.5 s\n|  a | b   |\n") == first
