"""What a person reads first in a bundle: what it is, the badges' checklist, how to cite it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import jinja2

from boardcluster.bundle.badges import badges
from boardcluster.bundle.facts import Authorship, BundledInput, RunCounts
from boardcluster.bundle.gather import Gathered
from boardcluster.bundle.layout import BundleInfo
from boardcluster.errors import UsageError
from boardcluster.foreign import json_text, visible
from boardcluster.units import format_bytes, format_count

__all__ = ["BundleAuthor", "BundleTexts", "check_authorship", "read_author"]

_AUTHOR = re.compile(
    r"(?P<name>.*\S)\s+(?:https://orcid\.org/)?(?P<orcid>\d{4}-\d{4}-\d{4}-\d{3}[\dX])"
)
_LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{1,60}")
_ANONYMOUS = "Anonymous"
_ENDING = ".j2"


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleAuthor:
    """Who made the results."""

    name: str
    """The name."""
    orcid: str = ""
    """Four groups of four digits (https://orcid.org); empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleTexts:
    """Makes the texts of one bundle."""

    info: BundleInfo
    """What the bundle is."""
    gathered: Gathered
    """The records, redacted."""
    facts: RunCounts
    """Counts over them."""
    inputs: tuple[BundledInput, ...]
    """Data that runs read."""
    by: Authorship
    """What the authors said."""
    changed_files: tuple[str, ...] = ()
    """Campaigns whose file was redacted, and so has another digest in the bundle."""
    left_out: tuple[str, ...] = ()
    """Artefacts that are too large for a bundle."""

    @property
    def authors(self) -> tuple[BundleAuthor, ...]:
        """Who made it; somebody anonymous where nobody is named."""
        return tuple(map(read_author, self.by.authors or (_ANONYMOUS,)))

    def files(self) -> Mapping[str, str]:
        """Return each text by its path in the bundle."""
        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("boardcluster.bundle"),
            autoescape=False,  # noqa: S701 - no HTML; lines of Markdown, YAML and Python
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=True,
            trim_blocks=False,
        )
        values = {
            "info": self.info,
            "gathered": self.gathered,
            "facts": self.facts,
            "inputs": self.inputs,
            "by": self.by,
            "authors": self.authors,
            "badges": badges(self.facts, self.info, self.inputs, self.by),
            "changed_files": self.changed_files,
            "left_out": self.left_out,
            "count": format_count,
            "size": format_bytes,
            "yaml": json_text,  # whose strings are YAML's, too
        }
        return {
            name.removesuffix(_ENDING): visible(environment.get_template(name).render(**values))
            for name in environment.list_templates(extensions=[_ENDING.removeprefix(".")])
        }


def read_author(text: str) -> BundleAuthor:
    """Read a name with an ORCID behind it, if there is one."""
    found = _AUTHOR.fullmatch(text.strip())
    if found is None:
        return BundleAuthor(name=text.strip())
    return BundleAuthor(name=found["name"], orcid=found["orcid"])


def check_authorship(by: Authorship) -> None:
    """Refuse what cannot be cited.

    Raises:
        UsageError: names it.
    """
    if by.licence and _LICENCE.fullmatch(by.licence) is None:
        raise UsageError(
            f"{by.licence!r} is not the identifier of a licence",
            hint="give one of SPDX's, such as CC-BY-4.0, CC0-1.0 or MIT",
        )
    for author in by.authors:
        if not author.strip():
            raise UsageError("an author has no name", hint='for example --author "Ada Lovelace"')
