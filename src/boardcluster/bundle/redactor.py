"""Replaces secrets, and names of people and machines, in whatever a bundle is made of.

Each name is replaced by the same word everywhere, so that what belongs together still does, and
what is computed from the files stays the same. Logs are large and secrets rare: a file is searched
for marks near which there may be one, and only their surroundings are looked at closely.
"""

from __future__ import annotations

import functools
import io
import ipaddress
import json
import re
import zipfile
from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from boardcluster.bundle.names import KnownNames
from boardcluster.redaction import HIDDEN, SECRET_MARKS, hide_secrets

__all__ = ["Redacted", "Redactor"]

_BEFORE_BYTES, _AFTER_BYTES, _VALUE_BYTES = 128, 160, 1 << 13
"""How much is looked at around a mark; after it at least until a value has ended."""
_ENDS = re.compile(rb"[\s\"'<>,;]")
_KEY_BEGIN, _KEY_END = b"-----BEGIN ", b"-----END "
_META = "meta.npy"
_ADDRESS = re.compile(rb"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.])")
_PRIVATE = tuple(
    ipaddress.IPv4Network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16")
)
_PRIVATE_STARTS = (b"10.", b"172.", b"192.168.", b"169.254.")
_ADDRESS_WORD = b"(address)"
_HOME_MARKS = (b"/home/", b"/users/")
_HOME = re.compile(rb"(?P<kept>/(?:home|Users)/)(?P<name>[^\s/\"'<>:,;()]+)")
_MAIL = re.compile(rb"[A-Za-z0-9][\w.+-]*@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}\b")
_LOGIN_NAMES = re.compile(
    rb"(?P<kept>\b(?:USER|LOGNAME|USERNAME|SUDO_USER|HADOOP_USER_NAME|SPARK_USER)=[\"']?)"
    rb"(?P<name>[a-z_][\w.-]*)"
)
_LOGIN_MARKS = (b"user=", b"logname=", b"username=", b"user_name=")
_KEPT_USERS = frozenset({b"root", b"hadoop", b"boardcluster", b"(user)"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A file after redaction."""

    content: bytes
    """What is in it now."""
    replaced: dict[str, int]
    """How many texts of each sort were replaced; empty if it is as it was."""
    is_read: bool
    """Whether it was searched: it is text, or telemetry."""


class Redactor:
    """Replaces what identifies people and machines.

    Args:
        names: what is known.
    """

    def __init__(self, names: KnownNames) -> None:
        self._names = names

    def file(self, name: str, content: bytes) -> Redacted:
        """Redact a file by its name; samples are looked into, other binary files stay."""
        if name.endswith(".npz"):
            return self._samples(content)
        if b"\0" in content[:8192]:
            return Redacted(content=content, replaced={}, is_read=False)
        found: Tally[str] = Tally()
        done = self._text(content, found)
        return Redacted(content=done, replaced=dict(found), is_read=True)

    def text(self, text: str) -> str:
        """Redact a text, such as a path."""
        content = text.encode("utf-8", "surrogateescape")
        return self._text(content, Tally()).decode("utf-8", "surrogateescape")

    def _samples(self, content: bytes) -> Redacted:
        """Redact the names in the head of an archive of samples; the numbers stay as they are."""
        found: Tally[str] = Tally()
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                meta = archive.read(_META)
                begin = meta.index(b"\n") + 1  # of the array's own head, which holds its length
                done = self._text(meta[begin:], found)
                if not found:
                    return Redacted(content=content, replaced={}, is_read=True)
                parts = {row.filename: archive.read(row) for row in archive.infolist()}
        except (OSError, KeyError, ValueError, zipfile.BadZipFile):  # damaged: it says nothing
            return Redacted(content=content, replaced={}, is_read=False)
        parts[_META] = _bytes_array(done)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in parts.items():
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        return Redacted(content=out.getvalue(), replaced=dict(found), is_read=True)

    def _text(self, content: bytes, found: Tally[str]) -> bytes:
        for value in self._secrets:
            if count := content.count(value):
                content = content.replace(value, HIDDEN.encode())
                found["secrets"] += count
        for folder, word in self._folders:
            if folder in content:
                content, count = _folder_pattern(folder).subn(word, content)
                found["folders"] += count
        lowered = content.lower()
        for name, pattern, word, sort in self._known:
            if name in lowered:
                content, count = pattern.subn(word, content)
                found[sort] += count
                lowered = content.lower() if count else lowered
        content = self._near_marks(content, lowered, found)
        return self._addresses(content, found)

    @cached_property
    def _secrets(self) -> tuple[bytes, ...]:
        """Values as they are, and as JSON writes them."""
        values = [value.encode() for value in self._names.secrets]
        written = [json.dumps(value)[1:-1].encode() for value in self._names.secrets]
        return tuple(dict.fromkeys([*values, *written]))

    @cached_property
    def _folders(self) -> tuple[tuple[bytes, bytes], ...]:
        return tuple(
            (written.encode(), word.encode())
            for path, word in self._names.folders
            for written in dict.fromkeys((path, json.dumps(path)[1:-1]))
        )

    @cached_property
    def _known(self) -> tuple[tuple[bytes, re.Pattern[bytes], bytes, str], ...]:
        """Each name with its pattern, the word for it, and its sort; longer names first."""
        rows = []
        for sort, word, names in (
            ("hosts", "host", self._names.hosts),
            ("users", "user", self._names.users),
        ):
            for number, name in enumerate(names, start=1):
                pattern = rb"(?<![A-Za-z0-9])" + re.escape(name.encode()) + rb"(?![A-Za-z0-9])"
                found = re.compile(pattern, re.IGNORECASE)
                rows.append((name.encode(), found, f"{word}-{number}".encode(), sort))
        return tuple(sorted(rows, key=lambda row: -len(row[0])))

    def _near_marks(self, content: bytes, lowered: bytes, found: Tally[str]) -> bytes:
        """Replace secrets, homes of others, logins and mail addresses."""
        parts = []
        last = 0
        for begin, end in _windows(content, lowered):
            parts += [content[last:begin], self._close(content[begin:end], found)]
            last = end
        return b"".join([*parts, content[last:]]) if parts else content

    def _close(self, window: bytes, found: Tally[str]) -> bytes:
        text = window.decode("utf-8", "surrogateescape")
        hidden = _hidden(text)
        if hidden != text:
            found["secrets"] += max(1, hidden.count(HIDDEN) - text.count(HIDDEN))
            window = hidden.encode("utf-8", "surrogateescape")
        for pattern, word, sort in (
            (_HOME, _named, "users"),
            (_LOGIN_NAMES, _named, "users"),
            (_MAIL, lambda _: _ADDRESS_WORD, "addresses"),
        ):
            window, count = pattern.subn(word, window)
            if count:
                found[sort] += count
        return window

    @cached_property
    def _networks(self) -> tuple[tuple[ipaddress.IPv4Network, int], ...]:
        """Each network of boards with where it is moved to: the same part of 10.0.0.0/8."""
        known = [ipaddress.IPv4Network(text) for text in self._names.networks]
        return tuple((network, int(ipaddress.IPv4Address("10.0.0.0"))) for network in known)

    @cached_property
    def _address_starts(self) -> tuple[bytes, ...]:
        firsts = [str(row.network_address).partition(".")[0] for row, _ in self._networks]
        own = {f"{first}.".encode() for first in firsts}
        return tuple(sorted({*_PRIVATE_STARTS, *own}))

    def _addresses(self, content: bytes, found: Tally[str]) -> bytes:
        """Move addresses of boards into a network of nobody's; hide other private ones."""
        parts = []
        last = 0
        for place in sorted(set(_places(content, self._address_starts))):
            match = _ADDRESS.match(content, place)
            if place < last or match is None or content[place - 1 : place] in _NO_START:
                continue
            word = self._moved(match[0].decode())
            if word is not None and word != match[0]:
                parts += [content[last:place], word]
                last = match.end()
                found["addresses"] += 1
        return b"".join([*parts, content[last:]]) if parts else content

    def _moved(self, text: str) -> bytes | None:
        try:
            address = ipaddress.IPv4Address(text)
        except ValueError:
            return None
        for network, base in self._networks:
            if address in network:
                moved = base + int(address) - int(network.network_address)
                return str(ipaddress.IPv4Address(moved)).encode()
        if any(address in network for network in _PRIVATE):
            return _ADDRESS_WORD
        return None


@functools.lru_cache(maxsize=4096)
def _hidden(text: str) -> str:
    """Hide secrets; what every container of a job says alike is looked at once."""
    return hide_secrets(text)


_NO_START = frozenset({*(bytes([digit]) for digit in b"0123456789"), b"."})


def _folder_pattern(folder: bytes) -> re.Pattern[bytes]:
    """Return what finds a folder and whatever is in it, but not one whose name is longer."""
    return re.compile(re.escape(folder) + rb"(?![\w-])")


def _named(match: re.Match[bytes]) -> bytes:
    name = match["name"]
    known = name in _KEPT_USERS or re.fullmatch(rb"user-\d+", name) is not None
    return match["kept"] + (name if known else b"(user)")


def _places(content: bytes, marks: tuple[bytes, ...]) -> Iterator[int]:
    for mark in marks:
        place = content.find(mark)
        while place >= 0:
            yield place
            place = content.find(mark, place + 1)


_MARKS = (*(mark.encode() for mark in SECRET_MARKS), *_HOME_MARKS, b"@", *_LOGIN_MARKS)


_KEY = b"key"
_KEYS_OF = re.compile(
    rb"(?:api|account|access|private|shared|storage|signing|subscription)[-_. ]?$"
)


def _marked(lowered: bytes) -> list[int]:
    """Return the places of all marks, in order; of keys only those that are secrets."""
    found = []
    for place in sorted(_places(lowered, _MARKS)):
        if lowered.startswith(_KEY, place):
            secret = _KEYS_OF.search(lowered, max(0, place - 14), place)
            if secret is None and lowered[place + 3 : place + 4] != b"=":
                continue
        found.append(place)
    return found


def _windows(content: bytes, lowered: bytes) -> Iterator[tuple[int, int]]:
    """Yield the surroundings of all marks, those that touch each other as one."""
    begin = end = -1
    for place in _marked(lowered):
        first, last = max(0, place - _BEFORE_BYTES), min(len(content), place + _AFTER_BYTES)
        if first <= end and last <= end:
            continue
        if content.startswith(_KEY_BEGIN, lowered.rfind(b"-----", first, place)):
            closing = content.find(_KEY_END, place)
            last = len(content) if closing < 0 else min(len(content), closing + _AFTER_BYTES)
        found = _ENDS.search(content, last, last + _VALUE_BYTES)
        last = found.start() if found else min(len(content), last + _VALUE_BYTES)
        if first > end:
            if end >= 0:
                yield begin, end
            begin = first
        end = max(end, last)
    if end >= 0:
        yield begin, end


def _bytes_array(content: bytes) -> bytes:
    """Return bytes as an array of NumPy (numpy.lib.format)."""
    import numpy as np  # noqa: PLC0415  only telemetry with names in it waits for it

    out = io.BytesIO()
    np.lib.format.write_array(out, np.frombuffer(content, dtype=np.uint8), allow_pickle=False)
    return out.getvalue()
