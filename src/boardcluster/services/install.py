"""Fetch an engine pair once per machine, verify every byte, and never leave a part behind.

Layout of ``<cache>/engines/<pair>/``: ``hadoop/`` holds the locked jars, ``spark/`` is a
SPARK_HOME, ``manifest.json`` lists every file with size, time stamp and SHA-256. A file whose size
or time stamp has changed since is hashed again; a corrupt one is deleted and fetched again. What
was fetched and verified stays, so an interrupted installation goes on where it stopped.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from boardcluster.errors import InstallError, RemoteError
from boardcluster.fetch.cache import Progress, hold_lock, sha256_of
from boardcluster.fetch.pypi import fetch_from_pypi
from boardcluster.remote.gate import run_program, tail_text
from boardcluster.services.java import Java
from boardcluster.services.pair import EnginePair, LockedJar

__all__ = ["Installation", "corrupt_files", "find_installation", "install", "verify"]

_AGAIN = "run `boardcluster up` again: it installs what is missing"
_BATCH = 40
"""Jars per call of Ivy: what one call fetched is verified and kept before the next begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """An engine pair on disk."""

    pair: EnginePair
    """What it is."""
    folder: Path
    """Where it is on this machine."""
    on_nodes: Path | None = None
    """Where nodes that do not share this machine's files have their copy; None if they see it under
    the same path. The paths that it gives are those that nodes see."""

    @property
    def hadoop_jars(self) -> Path:
        """Folder of Hadoop's jars."""
        return (self.on_nodes or self.folder) / "hadoop"

    @property
    def spark_home(self) -> Path:
        """SPARK_HOME."""
        return (self.on_nodes or self.folder) / "spark"

    def jars(self, engine: str) -> list[str]:
        """Return every jar of ``hadoop`` (without test jars) or ``spark``, sorted."""
        place = "hadoop" if engine == "hadoop" else "spark/jars"
        seen = (self.on_nodes or self.folder) / place
        return [str(seen / path.name) for path in sorted((self.folder / place).glob("*.jar"))]

    def spark_jars_within(self, size_bytes: int) -> list[str]:
        """Return jars of Spark that have up to so many bytes together, as nodes see them.

        The largest come first, and each of the others that still fits.

        Raises:
            InstallError: there are none, or none is so small.
        """
        place = self.folder / "spark/jars"
        try:
            sizes = {jar: (place / Path(jar).name).stat().st_size for jar in self.jars("spark")}
        except OSError as error:
            raise InstallError(
                f"{error.filename} cannot be read: {error.strerror}", hint=_AGAIN
            ) from error
        chosen, left_bytes = [], size_bytes
        for jar in sorted(sizes, key=lambda jar: -sizes[jar]):
            if sizes[jar] <= left_bytes:
                left_bytes -= sizes[jar]
                chosen.append(jar)
        if not chosen:
            raise InstallError(f"{place} has no jar of up to {size_bytes} bytes", hint=_AGAIN)
        return chosen

    def hadoop_jar(self, module: str) -> Path:
        """Return the path of one of Hadoop's own jars."""
        return self.hadoop_jars / f"{module}-{self.pair.hadoop}.jar"

    def hadoop_test_jar(self, module: str) -> Path:
        """Return the path of one of Hadoop's own test jars."""
        return self.hadoop_jars / "tests" / f"{module}-{self.pair.hadoop}-tests.jar"


def install(pair: EnginePair, java: Java, *, cache: Path, progress: Progress) -> Installation:
    """Make sure that the pair is on disk, whole and verified; fetch only what is missing.

    Raises:
        InstallError: something could not be fetched, or does not match its lock.
    """
    there = Installation(pair=pair, folder=cache / "engines" / pair.id)
    there.folder.mkdir(parents=True, exist_ok=True)
    with hold_lock(cache / "engines" / ".lock", purpose=f"installing {pair.id}"):
        if verify(there, progress=progress):
            return there
        _install_spark(there, cache, progress)
        _install_hadoop(there, java, cache, progress)
        _write_manifest(there)
    return there


def find_installation(pair: EnginePair, *, cache: Path) -> Installation | None:
    """Return the installation if it is complete by its manifest's sizes and time stamps."""
    there = Installation(pair=pair, folder=cache / "engines" / pair.id)
    return there if _read_manifest(there) and not _changed_files(there) else None


def _read_manifest(there: Installation) -> dict[str, list[object]]:
    try:
        raw: dict[str, list[object]] = json.loads((there.folder / "manifest.json").read_text())
    except (OSError, ValueError):
        return {}
    return raw


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _changed_files(there: Installation) -> list[str]:
    """Return the files of the manifest that are gone or whose size or time stamp changed."""
    changed = []
    for name, (size_bytes, mtime_ns, _) in _read_manifest(there).items():
        path = there.folder / name
        if not path.is_file() or _stamp(path) != [size_bytes, mtime_ns]:
            changed.append(name)
    return changed


def verify(there: Installation, *, progress: Progress, every_byte: bool = False) -> bool:
    """Check the installation against its manifest; delete what is corrupt.

    Only files with another size or time stamp are hashed, unless ``every_byte`` is asked for.

    Returns:
        Whether the installation is whole.
    """
    manifest = _read_manifest(there)
    suspects = list(manifest) if every_byte else _changed_files(there)
    whole = bool(manifest)
    touched = False
    for name in suspects:
        path = there.folder / name
        if path.is_file() and sha256_of(path) == manifest[name][2]:
            touched = True
            continue
        whole = False
        progress(f"corrupt in the cache, will be fetched again: {path.name}", 0, 0)
        path.unlink(missing_ok=True)
    if whole and touched and not every_byte:
        _write_manifest(there)
    if not whole:
        (there.folder / "manifest.json").unlink(missing_ok=True)
    return whole


def corrupt_files(there: Installation, *, every_byte: bool = False) -> list[Path]:
    """Return the installed files that are gone or not what they were; changes nothing.

    A manifest that is gone or damaged counts as such a file, for nothing else can be told then.
    Only files with another size or time stamp are hashed, unless ``every_byte`` is asked for.
    """
    manifest = _read_manifest(there)
    if not manifest:
        return [there.folder / "manifest.json"]
    suspects = list(manifest) if every_byte else _changed_files(there)
    paths = {name: there.folder / name for name in suspects}
    return [
        path
        for name, path in paths.items()
        if not (path.is_file() and sha256_of(path) == manifest[name][2])
    ]


def _write_manifest(there: Installation) -> None:
    known = {name: row[2] for name, row in _read_manifest(there).items()}
    rows = {}
    for folder in (there.hadoop_jars, there.spark_home):
        for path in _files(folder):
            name = str(path.relative_to(there.folder))
            rows[name] = [*_stamp(path), known.get(name) or sha256_of(path)]
    temporary = there.folder / ".manifest.json"
    temporary.write_text(json.dumps(rows))
    temporary.replace(there.folder / "manifest.json")


def _install_spark(there: Installation, cache: Path, progress: Progress) -> None:
    """Fetch PySpark's source distribution and lay out a SPARK_HOME from it.

    The source distribution holds the same jars as the wheel pip would build from it, so unpacking
    it saves the build and leaves our own virtual environment free of any one Spark.
    """
    pair = there.pair
    complete = there.spark_home / "python" / "lib"
    if complete.is_dir() and _spark_is_whole(there):
        return
    archive = fetch_from_pypi(
        pair.pyspark_requirement,
        sha256=pair.pyspark_sha256,
        folder=cache / "downloads",
        only_source=True,
        size_bytes=pair.pyspark_size_bytes,
        progress=progress,
    )
    progress(f"unpacking {archive.name}", pair.pyspark_size_bytes, pair.pyspark_size_bytes)
    staging = there.folder / ".spark"
    shutil.rmtree(staging, ignore_errors=True)
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):  # not in Python 3.11.2, which Debian 12 ships
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(staging)  # noqa: S202  its SHA-256 is the locked one
    (root,) = staging.iterdir()
    home = staging / "home"
    (home / "python").mkdir(parents=True)
    (root / "deps" / "jars").rename(home / "jars")
    (root / "deps" / "bin").rename(home / "bin")
    (root / "lib").rename(home / "python" / "lib")
    (home / ".sums").write_text(
        "".join(f"{sha256_of(p)} {p.relative_to(home)}\n" for p in _files(home))
    )
    shutil.rmtree(there.spark_home, ignore_errors=True)
    home.rename(there.spark_home)
    shutil.rmtree(staging)
    archive.unlink()


def _spark_is_whole(there: Installation) -> bool:
    """Check an unpacked Spark against the sums taken from the verified archive."""
    try:
        rows = [row.split(" ", 1) for row in (there.spark_home / ".sums").read_text().splitlines()]
        # A file that a power cut left empty proves nothing.
        return bool(rows) and all(sha256_of(there.spark_home / name) == sum_ for sum_, name in rows)
    except (OSError, ValueError):
        return False


def _install_hadoop(there: Installation, java: Java, cache: Path, progress: Progress) -> None:
    (there.hadoop_jars / "tests").mkdir(parents=True, exist_ok=True)
    missing = [jar for jar in there.pair.jars if not _is_right(there.hadoop_jars / jar.place, jar)]
    expected = {there.hadoop_jars / jar.place for jar in there.pair.jars}
    for path in _files(there.hadoop_jars):
        if path not in expected:
            path.unlink()
    total = sum(jar.size_bytes for jar in there.pair.jars)
    done = total - sum(jar.size_bytes for jar in missing)
    for first in range(0, len(missing), _BATCH):
        batch = missing[first : first + _BATCH]
        progress(f"fetching Hadoop {there.pair.hadoop} from Maven Central", done, total)
        _fetch_batch(there, java, cache, batch)
        done += sum(jar.size_bytes for jar in batch)
    progress(f"Hadoop {there.pair.hadoop} is complete", total, total)
    shutil.rmtree(cache / "ivy", ignore_errors=True)


def _is_right(path: Path, jar: LockedJar) -> bool:
    return (
        path.is_file() and path.stat().st_size == jar.size_bytes and sha256_of(path) == jar.sha256
    )


def _fetch_batch(there: Installation, java: Java, cache: Path, batch: Sequence[LockedJar]) -> None:
    """Fetch some jars with Ivy; a jar that does not match its lock is fetched once more."""
    wrong: list[LockedJar] = list(batch)
    for _ in range(2):
        incoming = cache / "ivy" / "incoming"
        shutil.rmtree(incoming, ignore_errors=True)
        _run_ivy(there, java, cache / "ivy", incoming, wrong)
        for jar in wrong:
            if _is_right(incoming / jar.file_name, jar):
                (incoming / jar.file_name).replace(there.hadoop_jars / jar.place)
        wrong = [jar for jar in wrong if not _is_right(there.hadoop_jars / jar.place, jar)]
        if not wrong:
            return
        shutil.rmtree(cache / "ivy", ignore_errors=True)
    names = ", ".join(jar.file_name for jar in wrong)
    raise InstallError(
        f"fetched twice, and the SHA-256 still differs from the lock file: {names}",
        hint="check the proxy or mirror that Maven Central is reached through",
    )


def _ivy_dependencies(jars: Sequence[LockedJar]) -> str:
    """Write one dependency per module: Ivy drops artefacts of a module that is named twice."""
    modules: dict[tuple[str, str, str], list[str]] = {}
    for jar in jars:
        classifier = f" m:classifier={quoteattr(jar.classifier)}" if jar.classifier else ""
        kind = "test-jar" if jar.classifier == "tests" else "jar"
        modules.setdefault((jar.organisation, jar.module, jar.revision), []).append(
            f'<artifact name={quoteattr(jar.module)} type="{kind}" ext="jar"{classifier}/>'
        )
    return "".join(
        f"<dependency org={quoteattr(organisation)} name={quoteattr(module)} "
        f'rev={quoteattr(revision)} transitive="false" conf="default->*">'
        f"{''.join(artefacts)}</dependency>"
        for (organisation, module, revision), artefacts in modules.items()
    )


def _run_ivy(
    there: Installation, java: Java, work: Path, incoming: Path, jars: Sequence[LockedJar]
) -> None:
    """Let the Ivy that ships inside PySpark fetch exactly these jars and nothing they need."""
    work.mkdir(parents=True, exist_ok=True)
    settings = work / "settings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="central"/>'
        f"<caches defaultCacheDir={quoteattr(str(work / 'cache'))}/><resolvers>"
        '<ibiblio name="central" m2compatible="true" usepoms="false" useMavenMetadata="false"/>'
        "</resolvers></ivysettings>"
    )
    wanted = work / "ivy.xml"
    wanted.write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="boardcluster" module="engines"/>'
        '<configurations><conf name="default"/></configurations><dependencies>'
        + _ivy_dependencies(jars)
        + "</dependencies></ivy-module>"
    )
    (ivy,) = (there.spark_home / "jars").glob("ivy-*.jar")
    try:
        run_program(
            [
                *(str(java.program), *java.trust, "-jar", str(ivy)),
                *("-settings", str(settings), "-ivy", str(wanted)),
                *("-retrieve", f"{incoming}/[artifact]-[revision](-[classifier]).[ext]"),
            ],
            timeout_seconds=1800,
        )
    except RemoteError as error:
        raise InstallError(
            f"Hadoop {there.pair.hadoop} could not be fetched from Maven Central:\n"
            + tail_text(error.message.encode(), lines=6),
            hint="check the network; what was fetched so far is kept, so run the command again",
        ) from error
