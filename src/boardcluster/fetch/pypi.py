"""Fetch one pinned file from PyPI with the ordinary pip, once per cache folder."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import threading
from collections.abc import Collection, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from boardcluster.errors import CapacityError, InstallError, RemoteError
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
from boardcluster.remote.gate import run_program, tail_text

__all__ = ["fetch_from_pypi"]

_RESUME_RETRIES = 20
_RESUME_SINCE = (25, 1)  # pip 25.1 brought --resume-retries
_TRIES = 3
_SUFFIXES = (".tar.gz", ".zip", ".whl")
# What pip holds at once: the file, its copy, and for a source archive the unpacked tree.
_SPACE_FACTOR_SOURCE = 3
_SPACE_FACTOR_WHEEL = 2
_BROKEN_TRANSFER = ("IncompleteRead", "Connection broken", "ReadTimeout", "Read timed out")
_UNREACHABLE = ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError", "ProxyError")


def fetch_from_pypi(
    requirement: str,
    *,
    sha256: str | Collection[str],
    folder: Path,
    only_source: bool,
    size_bytes: int = 0,
    progress: Progress = no_progress,
    timeout_seconds: float = 7200.0,
) -> Path:
    """Return the file of one pinned release, fetched with pip unless it is in ``folder``.

    A file put into ``folder`` by hand is used if its content is one of the expected.

    Args:
        requirement: ``name==version``.
        sha256: the allowed digest or digests (one per platform), hexadecimal.
        folder: where the file stays.
        only_source: take the source archive; otherwise take the wheel for this platform.
        size_bytes: its size, for the check of free space and for progress; 0 if unknown.
        progress: called about twice a second while pip runs.
        timeout_seconds: longest run of pip.

    Raises:
        InstallError: it could not be fetched or is not the expected file.
        CapacityError: it does not fit on the disk.
        ValueError: the requirement or a digest is malformed; a defect of the caller.
    """
    project, allowed = _checked_arguments(requirement, sha256)
    make_folder(folder, shared=True)
    with hold_lock(folder / f"{project}.lock", purpose=f"fetching {requirement}"):
        present = _find(project, allowed, folder=folder)
        if present is not None:
            return present
        factor = _SPACE_FACTOR_SOURCE if only_source else _SPACE_FACTOR_WHEEL
        with _work_folder(folder / f"{project}.fetching") as work:
            require_space(folder, need_bytes=factor * size_bytes, purpose=f"fetching {requirement}")
            (work / "requirements.txt").write_text(
                " ".join([requirement, *(f"--hash=sha256:{digest}" for digest in sorted(allowed))])
                + "\n",
                encoding="utf-8",
            )
            with _watched(work, requirement, size_bytes=size_bytes, progress=progress):
                _run_pip(
                    requirement,
                    _pip_command(project, work=work, only_source=only_source),
                    work=work,
                    folder=folder,
                    timeout_seconds=timeout_seconds,
                )
            return _install(requirement, allowed, work=work, folder=folder)


def _checked_arguments(requirement: str, sha256: str | Collection[str]) -> tuple[str, set[str]]:
    match = re.fullmatch(r"([A-Za-z0-9][A-Za-z0-9._-]*)==[A-Za-z0-9.!+]+", requirement)
    if match is None:
        raise ValueError(f"not of the form name==version: {requirement!r}")
    allowed = {sha256} if isinstance(sha256, str) else set(sha256)
    if not allowed or not all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in allowed):
        raise ValueError(f"not SHA-256 digests in lower-case hexadecimal: {sorted(allowed)}")
    return match[1], allowed


def _normalised(name: str) -> str:
    """Return a project's name in one spelling (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _find(project: str, allowed: Collection[str], *, folder: Path) -> Path | None:
    """Find an expected file in the cache; a file with other content is left alone."""
    for path in sorted(folder.iterdir()):
        if not path.name.endswith(_SUFFIXES) or not path.is_file():
            continue
        if not _normalised(path.name).startswith(f"{_normalised(project)}-"):
            continue
        stamp = verified_stamp(path, sidecar=sidecar_of(path))
        if stamp is None:
            stamp = write_stamp(path, sidecar=sidecar_of(path), sha256=sha256_of(path))
        if stamp.sha256 in allowed:
            return path
    return None


@contextlib.contextmanager
def _work_folder(work: Path) -> Iterator[Path]:
    """Give pip a place on the cache's disk: /tmp may be small or in memory.

    What a killed run left there is removed first; the caller holds the lock.
    """
    shutil.rmtree(work, ignore_errors=True)
    try:
        work.mkdir()
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _pip_command(project: str, *, work: Path, only_source: bool) -> list[str]:
    try:
        pip_version = version("pip")
    except PackageNotFoundError as error:
        raise InstallError(
            f"{sys.executable} has no pip",
            hint=f"run: {sys.executable} -m ensurepip",
        ) from error
    numbers = tuple(int(part) for part in re.findall(r"\d+", pip_version)[:2])
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes"),
        *("--disable-pip-version-check", "--no-input", "--no-cache-dir", "--progress-bar", "off"),
        # Not ":all:", which would also build the build tools of a source archive from source.
        *("--no-binary" if only_source else "--only-binary", project),
        *("--dest", str(work / "dest"), "--requirement", str(work / "requirements.txt")),
    ]
    if numbers >= _RESUME_SINCE:
        command += ["--resume-retries", str(_RESUME_RETRIES)]
    return command


def _run_pip(
    requirement: str, command: list[str], *, work: Path, folder: Path, timeout_seconds: float
) -> None:
    """Run pip; repeat it only where a transfer broke, which an older pip does not resume."""
    output = b""
    for _ in range(_TRIES):
        try:
            done = run_program(
                command,
                env={"TMPDIR": str(work)},
                cwd=work,
                timeout_seconds=timeout_seconds,
                check=False,
            )
        except RemoteError as error:
            raise InstallError(
                f"pip did not fetch {requirement} within {timeout_seconds:g} s",
                hint="check the network, then repeat the command",
            ) from error
        if done.returncode == 0:
            return
        output = done.stdout + b"\n" + done.stderr
        if not any(mark in output.decode(errors="replace") for mark in _BROKEN_TRANSFER):
            break
    raise _pip_failure(requirement, output, folder=folder)


def _pip_failure(requirement: str, output: bytes, *, folder: Path) -> InstallError | CapacityError:
    text = output.decode(errors="replace")
    message = f"pip could not fetch {requirement}; its last lines:\n{tail_text(output, lines=8)}"
    if "No space left on device" in text:
        return CapacityError(message, hint=f"free space in {folder}")
    if "DO NOT MATCH THE HASHES" in text:
        return InstallError(
            message,
            hint="the package index serves a file that differs from the locked one; check PIP_*",
        )
    if any(mark in text for mark in _UNREACHABLE):
        message = (
            f"{requirement} is not in the cache {folder} and the package index cannot be reached; "
            f"pip's last lines:\n{tail_text(output, lines=8)}"
        )
    return InstallError(
        message,
        hint=f"connect to the network and repeat the command, or copy the file into {folder}",
    )


def _install(requirement: str, allowed: Collection[str], *, work: Path, folder: Path) -> Path:
    fetched = [path for path in (work / "dest").glob("*") if path.name.endswith(_SUFFIXES)]
    if len(fetched) != 1:
        names = ", ".join(path.name for path in fetched) or "nothing"
        raise InstallError(
            f"pip should have fetched one file for {requirement} but left {names}",
            hint="repeat the command; if it fails again, update pip",
        )
    digest = sha256_of(fetched[0])
    if digest not in allowed:
        raise InstallError(
            f"{fetched[0].name} has SHA-256 {digest}, expected {' or '.join(sorted(allowed))}",
            hint="the package index serves a file that differs from the locked one; check PIP_*",
        )
    target = folder / fetched[0].name
    install_file(fetched[0], target=target, sha256=digest)
    return target


def _received_bytes(work: Path) -> int:
    """Return the size of the largest file of pip's, which removes its folders meanwhile."""
    most_bytes = 0
    for pattern in ("pip-*/*", "dest/*"):
        with contextlib.suppress(OSError):
            for path in work.glob(pattern):
                if path.suffix in (".gz", ".whl"):
                    most_bytes = max(most_bytes, path.stat().st_size)
    return most_bytes


@contextlib.contextmanager
def _watched(
    work: Path, requirement: str, *, size_bytes: int, progress: Progress
) -> Iterator[None]:
    """Report how large the file that pip is receiving has become."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            progress(f"fetching {requirement}", _received_bytes(work), size_bytes)

    thread = threading.Thread(target=watch, name="pip-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
