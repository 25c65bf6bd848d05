"""Keep secrets out of what is stored and shown (invariant I8)."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["HIDDEN", "SECRET_MARKS", "hide_secrets", "names_secret", "redact"]

HIDDEN = "(hidden)"
_SECRET = re.compile(
    # Not --passes, --bypass or --compass, of which a program may have numbers.
    r"(?<!by)(?<!com)pass(?!(es|ed|ing|ive|ages?|engers?)(?![a-z]))(word|wd|phrase)?"
    r"|\bpwd\b|secret|token|credential|signature|bearer"
    r"|(api|account|access|private|shared|storage|signing|subscription)[-_.]?key|\bsas\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"tokens$", re.IGNORECASE)
"""A whole number behind it is how many tokens there may be."""
_SHORT = frozenset({"-p", "-P"})
"""Many programs take a password so. A number behind it is hidden, too."""

_IN_TEXT = (
    # scheme://user:password@host (RFC 3986, section 3.2.1)
    re.compile(r"(?P<kept>\b[a-z][a-z0-9+.-]*://[^\s/:@?#]*:)[^\s/]+(?=@)", re.IGNORECASE),
    # ?sig=..., &X-Amz-Signature=..., ;AccountKey=...
    re.compile(
        r"(?P<kept>[?&;][^=&;\s]*(?:sig|signature|credential|token|secret|password|key|code)=)"
        r"[^&;\s]+",
        re.IGNORECASE,
    ),
    # Authorization: Bearer ... (RFC 6750)
    re.compile(r"(?P<kept>\b(?:bearer|basic)\s+)\S+", re.IGNORECASE),
    # A member of a JSON object.
    re.compile(
        rf"""(?P<kept>["'][^"']*(?:{_SECRET.pattern})[^"']*["']\s*:\s*["'])[^"']*""", re.IGNORECASE
    ),
)
_WORDS = r"pass(?:word|wd|phrase)|pwd|secret|token|credential"
_KEYS = r"(?:api|account|access|private|shared|storage|signing|subscription)[-_. ]?key"
_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_IN_FILES = (
    # NAME=VALUE of environments, properties and logs.
    re.compile(
        rf"(?P<kept>(?:{_WORDS}|signature|{_KEYS})[\w.-]*=)"
        r"(?!\(hidden\)|(?:true|false|null|none)\b)[^\s\"'<>,;&]+",
        re.IGNORECASE,
    ),
    # NAME = "VALUE" of TOML and shells.
    re.compile(
        rf"""(?P<kept>(?:{_WORDS}|signature|{_KEYS})[\w.-]*["']?\s{{0,2}}=\s{{0,2}}"""
        r"""(?P<quote>["']))(?:(?!(?P=quote)).)+""",
        re.IGNORECASE,
    ),
    # NAME = VALUE without quotes; digits alone are as a rule how many tokens there may be.
    re.compile(
        rf"(?P<kept>(?:{_WORDS}|signature|{_KEYS})[\w.-]*"
        r"(?:[ \t]{1,2}=[ \t]{0,2}|=[ \t]{1,2}))"
        r"(?!\(hidden\)|[\d.]+(?:[\s,;]|\Z)|(?:true|false|null|none)\b)[^\s\"'<>,;&=]+",
        re.IGNORECASE,
    ),
    # "password: VALUE"; a class of Java, as in "token.Token: message", has a dot before it.
    re.compile(
        rf"(?P<kept>(?<![\w.$-])(?:[a-z]+[_-])*(?:{_WORDS}|{_KEYS})s?\s*:\s+)"
        r"(?!\(hidden\)|(?:true|false|null|none)\b)[^\s\"'<>,;&]+",
        re.IGNORECASE,
    ),
    # A property of a configuration in XML.
    re.compile(
        rf"(?P<kept><name>[^<]*(?:{_WORDS}|signature|{_KEYS})[^<]*</name>\s*<value>)[^<]+",
        re.IGNORECASE,
    ),
    # Tokens that begin with the mark of who gives them out, JSON web tokens (RFC 7519), and the
    # keys of OpenSSH (RFC 4253, section 6.6), public ones too: they name a person.
    re.compile(
        r"(?P<kept>)(?<![A-Za-z0-9])(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
        r"|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|hf_\w{20,}"
        r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
    ),
    re.compile(r"(?P<kept>\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\w+) )AAAA[\w+/=]+(?: \S+@\S+)?"),
)
_NEEDED = (
    ("@",),
    ("=",),
    ("bearer", "basic"),
    ('":', "':", '" :', "' :"),
    ("=",),
    ('="', "='", '= "', "= '", '=  "', "=  '"),
    (" =", "\t=", "= ", "=\t"),
    (": ", ":\t", ":\n"),
    ("<value>",),
    ("gh", "glpat-", "akia", "asia", "xox", "aiza", "hf_", "eyj"),
    ("aaaa",),
)
"""For each pattern, lower-case text of which some is in whatever it finds: looking for that first
makes reading logs ten times as quick."""
SECRET_MARKS = (
    *("pass", "pwd", "secret", "token", "credential", "signature", "bearer ", "basic ", "key"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "akia", "asia", "xox", "aiza", "hf_"),
    *("eyj", "ssh-", "ecdsa-", "sig=", "code=", "@"),
)
"""Lower-case text near every secret that ``hide_secrets`` knows: without any, there is none."""
_LOGIN = re.compile(r"^(?P<kept>[^:]+:).+$", re.DOTALL)
_LOGINS = frozenset({"-u", "-U", "--user", "--login", "--proxy-user"})


def names_secret(name: str) -> bool:
    """Whether what has this name is to be taken for a secret."""
    return bool(_SECRET.search(name))


def redact(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return a command line in which values named like a secret are hidden.

    ``--password VALUE``, ``-p VALUE``, ``-u USER:VALUE``, ``--user=USER:VALUE``, ``NAME=VALUE`` and
    ``--conf=NAME=VALUE`` are recognised, in addresses passwords and what signs them, bearer tokens,
    and JSON. A value that is glued to a short option, as in ``-pVALUE``, is not.
    """
    shown: list[str] = []
    before = ""
    for argument in arguments:
        bare = before.startswith("-") and "=" not in before
        if bare and (before in _SHORT or _is_secret(before, argument)):
            shown.append(HIDDEN)
            before = ""
            continue
        if before in _LOGINS:
            shown.append(_LOGIN.sub(rf"\g<kept>{HIDDEN}", argument))
        else:
            name, separator, value = argument.partition("=")
            if separator and name in _LOGINS:
                value = _LOGIN.sub(rf"\g<kept>{HIDDEN}", value)
            shown.append(_hide_in_text(_hide_value(f"{name}{separator}{value}")))
        before = argument
    return tuple(shown)


def hide_secrets(text: str) -> str:
    """Return the text of a file or of a log in which what looks like a secret is hidden.

    Besides what ``redact`` finds in addresses, tokens and JSON: ``NAME=VALUE`` and ``NAME: VALUE``,
    properties in XML, private keys, keys of OpenSSH, and tokens that are known by how they begin.
    """
    if "-----BEGIN" in text:
        text = _KEY_BLOCK.sub(HIDDEN, text)
    lowered = text.lower()
    for parts, pattern in zip(_NEEDED, (*_IN_TEXT, *_IN_FILES), strict=True):
        if any(part in lowered for part in parts):
            text = pattern.sub(rf"\g<kept>{HIDDEN}", text)
    return text


def _hide_in_text(text: str) -> str:
    for pattern in _IN_TEXT:
        text = pattern.sub(rf"\g<kept>{HIDDEN}", text)
    return text


def _hide_value(argument: str) -> str:
    """Hide everything behind the first ``=`` that follows a name like a secret's."""
    parts = argument.split("=")
    for index, name in enumerate(parts[:-1], start=1):
        if _is_secret(name, "=".join(parts[index:])):
            return "=".join([*parts[:index], HIDDEN])
    return argument


def _is_secret(name: str, value: str) -> bool:
    """Whether a value is to be taken for a secret by its name."""
    return names_secret(name) and not (value.isdecimal() and _COUNTED.search(name))
