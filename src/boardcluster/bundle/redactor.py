"""Replaces secrets, and names of people and machines, in whatever a bundle is made of.

Each name is replaced by the same word everywhere, so that what belongs together still does, and
what is computed from the files stays the same. Logs are large and secrets rare: a file is searched
for marks near which there may be one, and only their surroundings are looked at closely.
"""

from __future__ import annotations

import functools
import ipaddress
import json
import re
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from boardcluster.bundle.names import KnownNames
from boardcluster.bundle.samples import redacted_samples
from boardcluster.redaction import HIDDEN, SECRET_MARKS, hide_secrets, names_secret

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

__all__ = ["Redacted", "Redactor"]

_Rule: TypeAlias = tuple[
    tuple[bytes, ...], re.Pattern[bytes], Callable[[re.Match[bytes]], bytes], str
]

_BEFORE_BYTES, _AFTER_BYTES, _VALUE_BYTES = 128, 160, 1 << 13
"""How much is looked at around a mark; after it at least until a value has ended."""
_ENDS = re.compile(rb"[\s\"'<>,;]")
_KEY_BEGIN, _KEY_END = b"-----BEGIN ", b"-----END "
_DOTS = re.compile(rb"\.\d{1,3}\.\d{1,3}\.\d")
_ADDRESS = re.compile(rb"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?!\.?\d)")
_DIGITS_MOST = 3
_NO_START = frozenset({*(bytes([digit]) for digit in b"0123456789"), b"."})
_PRIVATE = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10"),
    )
)
_NO_VERSIONS = _PRIVATE[1:]
"""Those that versions do not look like, as they do like 10.16.1.1."""
_ADDRESS_WORD = b"(address)"
_CONTEXT_BYTES = 24
_SELDOM_IN_VERSIONS = 100
_PORT = re.compile(rb":\d|[ ,]+port[ =:]+\d|/\d{1,2}\b(?![.\d])")
_VERSION = re.compile(
    rb"(?:\bv|version|release|build|\bjava|\bjdk\w*|\bjre|openjdk)[\s=:/\"'(-]{0,3}$", re.IGNORECASE
)
_SUFFIX = re.compile(rb"[.-](?:jar|pom|so|whl|tar|zip|final|ga|rc\d|v\d)\b", re.IGNORECASE)
"""What stands behind the version of a file, as in ``derby-10.16.1.1.jar``."""
_PLACE = re.compile(
    rb"(?:://|\b(?:inet|addr|address|ip|host|hostname|client|peer|remote|server|gateway|via"
    rb"|nameserver|src|dst)[\s=:/\"'(\[]{1,4})$",
    re.IGNORECASE,
)
"""What stands before four numbers that are no version, though they may look like one."""
_COLONS = re.compile(rb":(?::|[0-9A-Fa-f]{1,4}:[0-9A-Fa-f]{1,4}:)")
"""In each hardware and IPv6 address, but in no time of day."""
_RUN = re.compile(rb"[0-9A-Fa-f:]+")
_HEX = frozenset(bytes([byte]) for byte in b"0123456789abcdefABCDEF:")
_GROUP_BYTES_MOST = 64
_IN_WORD = re.compile(rb"[\w.]")
_ON = re.compile(rb"[G-Zg-z]|\.\d")
_PAIRS = re.compile(rb"(?:[0-9A-Fa-f]{2}:){5,}[0-9A-Fa-f]{2}")
_IPV6 = tuple(ipaddress.IPv6Network(text) for text in ("2000::/3", "fc00::/7", "fe80::/10"))
"""Of the world, of an organisation, of one link (RFC 4291, RFC 4193)."""
_HOME_MARKS = (b"/home/", b"/users/")
_HOME = re.compile(rb"(?P<kept>/(?:home|Users)/)(?P<name>[^\s/\"'<>:,;()]+)")
_MAIL = re.compile(rb"[A-Za-z0-9][\w.+-]*@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}\b")
_LOGIN_NAMES = re.compile(
    rb"(?P<kept>\b(?:USER|LOGNAME|USERNAME|SUDO_USER|HADOOP_USER_NAME|SPARK_USER)=[\"']?)"
    rb"(?P<name>[a-z_][\w.-]*)"
)
_LOGIN_MARKS = (b"user=", b"logname=", b"username=", b"user_name=")
_LOGIN_VARIABLES = tuple(mark.upper() for mark in _LOGIN_MARKS)
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
        if name.endswith((".json", ".jsonl")) and done != content:
            done = self._still_json(content, done, lines=name.endswith(".jsonl"))
        return Redacted(content=done, replaced=dict(found), is_read=True)

    def _still_json(self, content: bytes, done: bytes, *, lines: bool) -> bytes:
        """Return what was replaced in JSON, so that it still is JSON.

        What looks like a value may reach over the end of a text: of such a document or line, each
        text is redacted by itself.
        """
        before, after = (text.split(b"\n") if lines else [text] for text in (content, done))
        if len(before) != len(after):
            before, after = [content], [done]
        rows = [
            self._each_text(old) if old != new and _is_other_json(old, new) else new
            for old, new in zip(before, after, strict=True)
        ]
        return b"\n".join(rows)

    def _each_text(self, document: bytes) -> bytes:
        def redacted(value: Any) -> Any:
            if isinstance(value, str):
                return self.text(value)
            if isinstance(value, list):
                return [redacted(item) for item in value]
            if isinstance(value, dict):
                return {
                    self.text(key): HIDDEN
                    if isinstance(item, str) and names_secret(key)
                    else redacted(item)
                    for key, item in value.items()
                }
            return value

        return json.dumps(redacted(json.loads(document))).encode()

    def text(self, text: str) -> str:
        """Redact a text, such as a path."""
        return self._counted(text, Tally())

    def _counted(self, text: str, found: Tally[str]) -> str:
        content = text.encode("utf-8", "surrogateescape")
        return self._text(content, found).decode("utf-8", "surrogateescape")

    def _samples(self, content: bytes) -> Redacted:
        """Redact the names in an archive of samples; the numbers stay as they are."""
        found: Tally[str] = Tally()
        known: dict[str, tuple[str, Tally[str]]] = {}

        def redact(text: str) -> str:
            if text not in known:  # a node is named with each of its tasks
                first: Tally[str] = Tally()
                known[text] = (self._counted(text, first), first)
            word, counts = known[text]
            found.update(counts)
            return word

        done = redacted_samples(content, redact)
        if done is None:
            return Redacted(content=content, replaced={}, is_read=False)
        return Redacted(content=done, replaced=dict(+found), is_read=True)

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
        for needed, pattern, word, sort in _OF_PEOPLE:
            if any(mark in window for mark in needed):
                window, count = pattern.subn(word, window)
                if count:
                    found[sort] += count
        return window

    def _addresses(self, content: bytes, found: Tally[str]) -> bytes:
        """Move addresses of boards into a network of nobody's; hide all that lead to somebody."""
        parts = []
        last = 0
        for begin, end, word in sorted([*self._moved(content), *_hexadecimal(content)]):
            if begin >= last:
                parts += [content[last:begin], word]
                last = end
        if not parts:
            return content
        found["addresses"] += len(parts) // 2
        return b"".join([*parts, content[last:]])

    @cached_property
    def _networks(self) -> tuple[tuple[ipaddress.IPv4Network, int], ...]:
        """Each network of boards with where it is moved to: the same part of 10.0.0.0/8."""
        known = [ipaddress.IPv4Network(text) for text in self._names.networks]
        return tuple((network, int(ipaddress.IPv4Address("10.0.0.0"))) for network in known)

    def _moved(self, content: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield where each IPv4 address is that must not stay, and what takes its place."""
        for dots in _DOTS.finditer(content):
            begin = dots.start()
            while dots.start() - begin < _DIGITS_MOST and content[begin - 1 : begin].isdigit():
                begin -= 1
            match = _ADDRESS.match(content, begin)
            if match is None or content[begin - 1 : begin] in _NO_START:
                continue
            word = self._word_for(match, content)
            if word is not None and word != match[0]:
                yield begin, match.end(), word

    def _word_for(self, match: re.Match[bytes], content: bytes) -> bytes | None:
        try:
            address = ipaddress.IPv4Address(match[0].decode())
        except ValueError:
            return None
        for network, base in self._networks:
            if address in network:
                moved = base + int(address) - int(network.network_address)
                return str(ipaddress.IPv4Address(moved)).encode()
        after = content[match.end() : match.end() + _CONTEXT_BYTES]
        if _SUFFIX.match(after) and not any(address in network for network in _NO_VERSIONS):
            return None
        if any(address in network for network in _PRIVATE):
            return _ADDRESS_WORD
        if not address.is_global or address.is_multicast:
            return None
        before = content[max(0, match.start() - _CONTEXT_BYTES) : match.start()]
        return _ADDRESS_WORD if _is_address(address, before, after) else None


def _is_address(address: ipaddress.IPv4Address, before: bytes, after: bytes) -> bool:
    """Whether four numbers are an address and no version, by what stands around them.

    Versions of four parts, such as 21.0.8.2 and 1.1.10.7, hardly ever have three digits in one.
    """
    if _PORT.match(after):
        return True
    if _VERSION.search(before):
        return False
    return max(address.packed) >= _SELDOM_IN_VERSIONS or _PLACE.search(before) is not None


def _hexadecimal(content: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield where hardware addresses and IPv6 addresses are, and what takes their place."""
    last = 0
    for colons in _COLONS.finditer(content):
        begin = colons.start()
        if begin < last:
            continue
        while colons.start() - begin < _GROUP_BYTES_MOST and content[begin - 1 : begin] in _HEX:
            begin -= 1
        match = _RUN.match(content, begin)
        if match is None:
            continue
        last = match.end()
        if _ON.match(content, last):  # it is a word, or has an IPv4 address at its end
            continue
        token = match[0] if match[0].endswith(b"::") else match[0].rstrip(b":")
        end = begin + len(token)
        if _IN_WORD.fullmatch(content[begin - 1 : begin]):  # the "ac:" of "mac:" is no part of it
            token = token.partition(b":")[2]
        while token:
            if _leads_to_somebody(token):
                yield end - len(token), end, _ADDRESS_WORD
                break
            token = token.partition(b":")[2]


def _leads_to_somebody(token: bytes) -> bool:
    if _PAIRS.fullmatch(token):  # of a link, or the fingerprint of a key
        return len(set(token.lower().split(b":"))) > 1
    try:
        address = ipaddress.IPv6Address(token.decode())
    except ValueError:
        return False
    return any(address in network for network in _IPV6)


@functools.lru_cache(maxsize=4096)
def _hidden(text: str) -> str:
    """Hide secrets; what every container of a job says alike is looked at once."""
    return hide_secrets(text)


def _folder_pattern(folder: bytes) -> re.Pattern[bytes]:
    """Return what finds a folder and whatever is in it, but not one whose name is longer."""
    return re.compile(re.escape(folder) + rb"(?![\w-])")


def _named(match: re.Match[bytes]) -> bytes:
    name = match["name"]
    known = name in _KEPT_USERS or re.fullmatch(rb"user-\d+", name) is not None
    return match["kept"] + (name if known else b"(user)")


_OF_PEOPLE: tuple[_Rule, ...] = (
    ((b"/home/", b"/Users/"), _HOME, _named, "users"),
    (_LOGIN_VARIABLES, _LOGIN_NAMES, _named, "users"),
    ((b"@",), _MAIL, lambda _: _ADDRESS_WORD, "addresses"),
)
"""What has to be in a text, a pattern, what takes its place, and what sort it is."""


@functools.cache
def _mark_finder() -> BytesAhoCorasick:
    """Finds all marks in one pass, ten times as fast as one after the other.

    Once in each process: it cannot be sent to another one.
    """
    from ahocorasick_rs import BytesAhoCorasick  # noqa: PLC0415  with the extra `bundle` only

    return BytesAhoCorasick([mark.encode() for mark in SECRET_MARKS] + [*_OTHER_MARKS])


_OTHER_MARKS = (*_HOME_MARKS, b"@", *_LOGIN_MARKS)
_FOLDER = b"pwd"
_REFERENCE = re.compile(rb"(?<=\{)pwd\}|(?<=\$)pwd(?![\"']?\s*(?:=|:(?![/$%{.*])))")
"""A folder, as in class paths (``{{PWD}}``, ``$PWD:/opt``), and no password (``{pwd=…}``)."""
_KEY = b"key"
_KEYS_OF = re.compile(
    rb"(?:api|account|access|private|shared|storage|signing|subscription)[-_. ]?$"
)


def _marked(lowered: bytes) -> list[int]:
    """Return the places of all marks, in order.

    Of keys only those that are secrets; class paths are full of ``{{PWD}}``, which is a folder.
    """
    found = []
    for _, place, _ in _mark_finder().find_matches_as_indexes(lowered, overlapping=True):
        if lowered.startswith(_KEY, place):
            secret = _KEYS_OF.search(lowered, max(0, place - 14), place)
            if secret is None and lowered[place + 3 : place + 4] != b"=":
                continue
        elif lowered.startswith(_FOLDER, place) and _REFERENCE.match(lowered, place):
            continue
        found.append(place)
    return sorted(found)


def _is_other_json(before: bytes, after: bytes) -> bool:
    """Whether what was JSON is none any more, or has other parts than texts that changed."""
    try:
        parts = _parts(json.loads(before))
    except (ValueError, RecursionError):
        return False
    try:
        return bool(parts != _parts(json.loads(after)))
    except (ValueError, RecursionError):
        return True


def _parts(value: Any) -> Any:
    """Return a value of JSON without its texts."""
    if isinstance(value, dict):
        return [_parts(item) for item in value.values()]
    if isinstance(value, list):
        return [_parts(item) for item in value]
    return None if isinstance(value, str) else value


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
