"""Count words independently of the engines: streaming, in bounded memory.

The tools of GNU coreutils do the counting, so that nothing is shared with what is verified. A word
is what Hadoop's WordCount takes for one: the text is divided by ``java.util.StringTokenizer`` with
its default delimiters, space, tab, newline, carriage return and form feed (not the vertical tab,
and no Unicode space), and empty tokens do not exist. The line reader of Hadoop, which Spark uses
too, drops a UTF-8 byte order mark at the start of a file, so it is dropped here.
"""

from __future__ import annotations

import codecs
from pathlib import Path

from boardcluster.errors import InputError
from boardcluster.fetch.cache import require_space
from boardcluster.remote.gate import pipe
from boardcluster.workloads.compare import sort_stage

__all__ = ["count_words"]


def count_words(source: Path, *, target: Path, work: Path) -> None:
    """Write each word of a text with its number: ``word TAB count``, in the byte order of words.

    Args:
        source: the text.
        target: the file to write; no good where this fails.
        work: existing folder for intermediate files, with room for two and a half times the source.

    Raises:
        InputError: the source cannot be read.
        CapacityError: the disks cannot hold intermediate files and result.
        RemoteError: a tool failed.
    """
    try:
        with source.open("rb") as stream:
            marked = stream.read(3) == codecs.BOM_UTF8
        size_bytes = source.stat().st_size
    except OSError as error:
        raise InputError(
            f"cannot read {source}: {error.strerror}", hint="prepare the input again"
        ) from error
    # The worst case, where no word repeats: sort's runs, and a result with a count for each word.
    for folder in (work, target.parent):
        require_space(folder, need_bytes=5 * size_bytes // 2, purpose=f"counting {source.name}")
    stages = [
        *([["tail", "-c", "+4"]] if marked else []),
        ["tr", "-s", r" \t\n\r\f", r"\n"],
        sort_stage(work),
        ["env", "LC_ALL=C", "uniq", "-c"],
        # A text that starts with a delimiter has an empty first line after tr: not a word.
        ["env", "LC_ALL=C", "sed", "-E", r"/^ *[0-9]+ $/d; s/^ *([0-9]+) (.*)$/\2\t\1/"],
    ]
    pipe(stages, source=source, target=target)
