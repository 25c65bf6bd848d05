"""Download one file over HTTP: resumed, verified, atomic, with a bound on every wait."""

from __future__ import annotations

import errno
import hashlib
import http.client
import json
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from boardcluster.errors import CapacityError, InstallError, UsageError
from boardcluster.fetch.cache import (
    Progress,
    hold_lock,
    install_file,
    make_folder,
    no_progress,
    require_space,
    sha256_of,
    sidecar_of,
    verified_stamp,
    write_stamp,
)

__all__ = ["download"]

_CHUNK_BYTES = 1 << 16
_ATTEMPTS_IN_ALL = 100
_BACKOFF_SECONDS_MAX = 30.0
_RETRIED_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})


class _TransientError(Exception):
    """This try failed, another may succeed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One download, unchanged over its tries."""

    url: str
    part: Path
    size_bytes: int | None
    progress: Progress
    opener: urllib.request.OpenerDirector
    timeout_seconds: float

    @property
    def shown(self) -> str:
        """The URL for messages; user name, password and query could hold a secret."""
        parsed = urllib.parse.urlsplit(self.url)
        host = parsed.netloc.rpartition("@")[2]
        return urllib.parse.urlunsplit((parsed.scheme, host, parsed.path, "", ""))

    @property
    def resume_file(self) -> Path:
        """Beside the partial file: of which URL and version of the content it is a part."""
        return self.part.with_name(f"{self.part.name}.json")

    def received_bytes(self) -> int:
        """Size of the partial file; 0 if there is none."""
        return self.part.stat().st_size if self.part.exists() else 0

    def discard(self) -> None:
        """Forget what was received."""
        self.part.unlink(missing_ok=True)
        self.resume_file.unlink(missing_ok=True)


def download(
    url: str,
    *,
    target: Path,
    sha256: str,
    size_bytes: int | None = None,
    progress: Progress = no_progress,
    opener: urllib.request.OpenerDirector | None = None,
    timeout_seconds: float = 30.0,
    attempts: int = 5,
    backoff_seconds: float = 1.0,
) -> Path:
    """Fetch ``url`` into ``target`` unless it is there already; return ``target``.

    A partial file of an earlier try, also of an earlier process, is continued with ``Range`` and
    ``If-Range`` (RFC 9110, sections 13.1.5 and 14.2). Content with a wrong checksum is deleted and
    fetched once more from the start.

    Args:
        url: http or https.
        target: final place; only a whole and verified file ever has this name.
        sha256: expected digest, hexadecimal.
        size_bytes: expected size; None if unknown.
        progress: called for every piece received.
        opener: how to connect; urllib's default (which honours proxy variables) if None.
        timeout_seconds: longest wait for the connection and for each piece.
        attempts: tries in a row that may pass without a new byte.
        backoff_seconds: pause after the first failed try; doubles up to 30 s.

    Raises:
        UsageError: the URL or the checksum is malformed.
        InstallError: it could not be fetched, or its content is not the expected one.
        CapacityError: it does not fit on the disk.
    """
    sha256 = _checked_arguments(url, sha256)
    make_folder(target.parent)
    job = _Job(
        url=url,
        part=target.with_name(f"{target.name}.part"),
        size_bytes=size_bytes,
        progress=progress,
        opener=opener or urllib.request.build_opener(),
        timeout_seconds=timeout_seconds,
    )
    lock = target.with_name(f"{target.name}.lock")
    with hold_lock(lock, purpose=f"downloading {target.name}"):
        if _is_present(target, sha256):
            return target
        _fetch(job, attempts=attempts, backoff_seconds=backoff_seconds)
        found = sha256_of(job.part)
        if found != sha256:
            job.discard()
            _fetch(job, attempts=attempts, backoff_seconds=backoff_seconds)
            found = sha256_of(job.part)
        if found != sha256:
            job.discard()
            raise InstallError(
                f"{job.shown} has the wrong content, twice: expected SHA-256 {sha256}, got {found}",
                hint="check the checksum and the URL, and whether a proxy answers in its place",
            )
        install_file(job.part, target=target, sha256=sha256)
        job.discard()
    return target


def _checked_arguments(url: str, sha256: str) -> str:
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise UsageError(f"not an http or https URL: {url}", hint="give a URL that starts https://")
    if not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise UsageError(
            f"not a SHA-256 checksum: {sha256!r}", hint="give 64 hexadecimal digits, as sha256sum"
        )
    return sha256.lower()


def _is_present(target: Path, sha256: str) -> bool:
    """Accept a file with the right content, also one a person put there; delete any other."""
    if not target.exists():
        return False
    stamp = verified_stamp(target, sidecar=sidecar_of(target))
    if stamp is not None and stamp.sha256 == sha256:
        return True
    if sha256_of(target) == sha256:
        write_stamp(target, sidecar=sidecar_of(target), sha256=sha256)
        return True
    target.unlink()
    return False


def _fetch(job: _Job, *, attempts: int, backoff_seconds: float) -> None:
    """Transfer until the partial file is whole; raise InstallError when it is hopeless."""
    barren = 0
    last = ""
    for _ in range(_ATTEMPTS_IN_ALL):
        before_bytes = job.received_bytes()
        try:
            _transfer(job)
        except _TransientError as error:
            last = str(error)
        else:
            return
        barren = barren + 1 if job.received_bytes() <= before_bytes else 0
        if barren >= attempts:
            break
        time.sleep(min(backoff_seconds * 2 ** max(0, barren - 1), _BACKOFF_SECONDS_MAX))
    raise InstallError(
        f"could not download {job.shown}: {last}; "
        f"{job.received_bytes()} bytes are kept in {job.part}",
        hint="check the network, then repeat the command; it continues where it stopped",
    )


def _transfer(job: _Job) -> None:
    """Try once; return when the partial file is whole."""
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        job.url, headers={"User-Agent": "boardcluster", **_resume_headers(job)}
    )
    asked_bytes = job.received_bytes()
    try:
        with job.opener.open(request, timeout=job.timeout_seconds) as response:
            start_bytes = _start_of(job, response, asked_bytes=asked_bytes)
            total_bytes = _total_of(job, response, start_bytes=start_bytes)
            _receive(job, response, start_bytes=start_bytes, total_bytes=total_bytes)
    except urllib.error.HTTPError as error:
        with error:
            _refused(job, error)
    except (http.client.HTTPException, OSError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise InstallError(
                f"the certificate of {job.shown} cannot be trusted: {reason.verify_message}",
                hint="set the clock, and install the package ca-certificates",
            ) from error
        if isinstance(reason, OSError) and reason.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CapacityError(
                f"the disk became full while writing {job.part}",
                hint=f"free space in {job.part.parent}",
            ) from error
        raise _TransientError(str(reason) or type(reason).__name__) from error


def _resume_headers(job: _Job) -> dict[str, str]:
    """Ask for the rest only if the partial file is known to be of this URL."""
    try:
        record = json.loads(job.resume_file.read_text(encoding="utf-8"))
        url_sha256, validator = str(record["url_sha256"]), str(record["validator"])
    except (OSError, ValueError, KeyError, TypeError):
        url_sha256, validator = "", ""
    if url_sha256 != _url_sha256(job.url):
        job.discard()
    received_bytes = job.received_bytes()
    if received_bytes == 0:
        return {}
    headers = {"Range": f"bytes={received_bytes}-"}
    return {**headers, "If-Range": validator} if validator else headers


def _url_sha256(url: str) -> str:
    """Name a URL without storing it: a signed one is a secret."""
    return hashlib.sha256(url.encode()).hexdigest()


def _start_of(job: _Job, response: http.client.HTTPResponse, *, asked_bytes: int) -> int:
    """Return where in the file the reply's content begins."""
    if response.status != 206:
        return 0  # the server ignores Range, or the content changed since: all of it comes
    match = re.fullmatch(r"bytes (\d+)-\d+/(?:\d+|\*)", response.headers.get("Content-Range", ""))
    if match is None or int(match[1]) != asked_bytes:
        job.discard()
        raise _TransientError(f"the server answered another range than asked from {asked_bytes}")
    return asked_bytes


def _total_of(job: _Job, response: http.client.HTTPResponse, *, start_bytes: int) -> int | None:
    """Return the size of the whole file, if the server tells; refuse one that is not expected."""
    length = response.headers.get("Content-Length", "")
    if not length.isdigit():
        return job.size_bytes
    total_bytes = start_bytes + int(length)
    if job.size_bytes is not None and total_bytes != job.size_bytes:
        job.discard()
        raise InstallError(
            f"{job.shown} has {total_bytes} bytes, expected {job.size_bytes}",
            hint="check the URL, and whether a proxy or a login page answers in its place",
        )
    require_space(job.part.parent, need_bytes=int(length), purpose=f"downloading {job.part.stem}")
    return total_bytes


def _receive(
    job: _Job,
    response: http.client.HTTPResponse,
    *,
    start_bytes: int,
    total_bytes: int | None,
) -> None:
    etag = response.headers.get("ETag", "")
    # A weak ETag does not promise equal bytes and may not be used with If-Range.
    validator = response.headers.get("Last-Modified", "") if etag[:2] in ("W/", "") else etag
    record = {"url_sha256": _url_sha256(job.url), "validator": validator}
    job.resume_file.write_text(json.dumps(record) + "\n", encoding="utf-8")
    with job.part.open("ab" if start_bytes else "wb") as stream:
        done_bytes = _copy(job, response, stream, start_bytes=start_bytes, total_bytes=total_bytes)
    if total_bytes is not None and done_bytes != total_bytes:
        raise _TransientError(f"the connection ended after {done_bytes} of {total_bytes} bytes")


def _copy(
    job: _Job,
    response: http.client.HTTPResponse,
    stream: IO[bytes],
    *,
    start_bytes: int,
    total_bytes: int | None,
) -> int:
    done_bytes = start_bytes
    while chunk := response.read1(_CHUNK_BYTES):
        done_bytes += len(chunk)
        if total_bytes is not None and done_bytes > total_bytes:
            job.discard()
            raise InstallError(
                f"{job.shown} sends more than the expected {total_bytes} bytes",
                hint="check the URL, and whether a proxy or a login page answers in its place",
            )
        stream.write(chunk)
        job.progress(f"downloading {job.part.stem}", done_bytes, total_bytes or 0)
    return done_bytes


def _refused(job: _Job, error: urllib.error.HTTPError) -> None:
    """Turn an HTTP error status into the right exception."""
    if error.code == 416:
        job.discard()
        raise _TransientError("the partial file is not part of what the server has") from error
    if error.code in _RETRIED_STATUSES:
        raise _TransientError(f"the server answered {error.code} {error.reason}") from error
    raise InstallError(
        f"could not download {job.shown}: the server answered {error.code} {error.reason}",
        hint="check the URL; the file may have moved or need a login",
    ) from error
