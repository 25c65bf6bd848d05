"""openssl speed: RSA-4096 signatures and AES-256 encryption."""

from __future__ import annotations

import re

from boardcluster.errors import ProbeOutputError
from boardcluster.probes.base import NodeTool, Probe, Site
from boardcluster.records import ProbeFigure, ProbeMode

__all__ = ["PROBE", "parse_aes", "parse_rsa"]

BLOCK_BYTES = 16_384
"""The largest that ``openssl speed`` uses by itself."""

_SPARE_SECONDS = 120.0
_HINT = "run `openssl speed rsa4096` on the node; OpenSSL 1.1.1 to 3.5 are supported"
_RSA_HEADING = re.compile(r"^ +sign +verify +(?:encrypt +decrypt +)?sign/s +verify/s\b.*$")
_RSA_ROW = re.compile(r"^rsa +4096 bits +((?:\d+\.\d+s +)+)((?:\d+\.\d+ *)+)$")
_AES_ROW = re.compile(r"^aes-256-cbc +(\d+\.\d+)k *$", re.IGNORECASE | re.MULTILINE)
_AES_BLOCK = re.compile(r"^(?:type +(\d+) bytes *|Got: \+H:(\d+) from \d+)$", re.MULTILINE)
_RATE_TOLERANCE = 0.05
_LEAST_PRINTED_SECONDS = 0.0001
"""Below this the printed time has too few digits to check the printed rate by."""


def parse_rsa(text: str, *, processes: int) -> tuple[ProbeFigure, ...]:
    """Read the table of ``openssl speed rsa4096``.

    Args:
        text: standard output.
        processes: how many ran at once.

    Raises:
        ProbeOutputError: it is not such an output.
    """
    lines = text.splitlines()
    places = [place for place, line in enumerate(lines) if _RSA_HEADING.match(line)]
    row = _RSA_ROW.match(lines[places[0] + 1]) if places and places[0] + 1 < len(lines) else None
    if len(places) != 1 or row is None:
        raise ProbeOutputError(
            f"openssl speed rsa4096 printed no table: {' '.join(text.split())[-200:]!r}",
            hint=_HINT,
        )
    names = lines[places[0]].split()
    cells = [*row[1].split(), *row[2].split()]
    if len(names) != len(cells):
        raise ProbeOutputError(
            f"openssl speed rsa4096: {len(names)} columns, {len(cells)} values", hint=_HINT
        )
    by_name = dict(zip(names, cells, strict=True))
    conditions = {"processes": str(processes)}
    figures: list[ProbeFigure] = []
    for column, noun in (("sign", "signatures"), ("verify", "verifications")):
        rate, seconds = float(by_name[f"{column}/s"]), float(by_name[column].rstrip("s"))
        wrong = seconds >= _LEAST_PRINTED_SECONDS and abs(rate * seconds - 1) > _RATE_TOLERANCE
        if not rate > 0 or wrong:
            raise ProbeOutputError(
                f"openssl speed rsa4096 says {rate:g} {noun} per second at {seconds:g} s each",
                hint=_HINT,
            )
        figures.append(
            ProbeFigure(
                name=f"openssl_rsa4096_{noun}_per_second", value=rate, conditions=conditions
            )
        )
    return tuple(figures)


def parse_aes(text: str, *, processes: int) -> ProbeFigure:
    """Read the table of ``openssl speed -evp aes-256-cbc``.

    Args:
        text: standard output.
        processes: how many ran at once.

    Raises:
        ProbeOutputError: it is not such an output, or of other blocks.
    """
    rows = _AES_ROW.findall(text)
    blocks = {int(one or other) for one, other in _AES_BLOCK.findall(text)}
    if len(rows) != 1 or blocks != {BLOCK_BYTES} or not float(rows[0]) > 0:
        raise ProbeOutputError(
            f"openssl speed aes-256-cbc printed {rows} for blocks of {sorted(blocks)} bytes",
            hint=_HINT,
        )
    return ProbeFigure(
        name="openssl_aes256cbc_bytes_per_second",
        value=float(rows[0]) * 1000,  # "in 1000s of bytes per second"
        conditions={"processes": str(processes), "block": f"{BLOCK_BYTES}B"},
    )


def _measure(site: Site) -> tuple[ProbeFigure, ...]:
    each_seconds = 10 if site.mode is ProbeMode.PAPER else 1
    figures: list[ProbeFigure] = []
    for processes in sorted({1, site.cores}):
        several = ["-multi", str(processes)] if processes > 1 else []
        # By the wall clock: by CPU time, a node that gets little of it would seem as fast as any.
        common = ["openssl", "speed", "-elapsed", "-seconds", str(each_seconds), *several]
        limit = 2 * each_seconds + _SPARE_SECONDS
        site.tell(f"openssl speed, {processes} processes")
        rsa = site.remote.run([*common, "rsa4096"], timeout_seconds=limit)
        figures.extend(parse_rsa(rsa.text, processes=processes))
        aes = site.remote.run(
            [*common, "-bytes", str(BLOCK_BYTES), "-evp", "aes-256-cbc"], timeout_seconds=limit
        )
        figures.append(parse_aes(aes.text, processes=processes))
    return tuple(figures)


PROBE = Probe(
    name="openssl",
    area="cpu",
    summary="RSA-4096 signatures per second, AES-256 bytes per second",
    matches=("Gamess and Hernandez 2022, Table I",),
    tools=(NodeTool(program="openssl", package="openssl", version=("version",)),),
    measure=_measure,
    quick_seconds=7,
    paper_seconds=62,
)
