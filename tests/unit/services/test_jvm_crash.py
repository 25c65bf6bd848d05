"""A class-data archive that makes JVMs crash: found in what they print, and not used again."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster.records import Engine
from boardcluster.services.archive import refuse_archives
from boardcluster.services.jvm import crash_words, job_options, uses_archive
from boardcluster.services.layout import Layout

FRAME = "V  [libjvm.so+0x6bc53d]  FileMapInfo::relocate_pointers_in_core_regions(long)+0x24d"
REPORT = f"""\
printed before
#
# A fatal error has been detected by the Java Runtime Environment:
#
#  SIGBUS (0x7) at pc=0x00007ff09e8bc53d, pid=4247, tid=4248
#
# JRE version:  (17.0.15+6) (build )
# Java VM: OpenJDK 64-Bit Server VM (17.0.15+6-Debian-1deb12u1, mixed mode, sharing)
# Problematic frame:
# {FRAME}
#
"""


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (
            REPORT,
            f"SIGBUS (0x7) at pc=0x00007ff09e8bc53d, pid=4247, tid=4248; {FRAME}",
        ),
        (
            "An error has occurred while processing the shared archive file.\nMark mismatch\n",
            "An error has occurred while processing the shared archive file",
        ),
        ("java.lang.OutOfMemoryError: Java heap space\n# SIGSEGV in a text of the job\n", ""),
        ("", ""),
    ],
)
def test_a_crash_of_a_jvm_is_told_from_an_error_of_a_program(printed: str, words: str) -> None:
    assert crash_words(printed.splitlines(keepends=True)) == words


def test_only_the_archive_of_the_engine_is_refused(layout: Layout) -> None:
    layout.archives.mkdir()
    names = frozenset({"worker", "mapreduce", "spark"})
    for name in names:
        (layout.archives / f"{name}.jsa").touch()
    layout = replace(layout, archived={node.name: names for node in layout.spec.nodes})

    refuse_archives(layout.archives, "SIGSEGV", ["spark"])

    assert not any("Archive" in option for option in job_options(layout, Engine.SPARK))
    assert any("mapreduce.jsa" in option for option in job_options(layout, Engine.MAPREDUCE))
    assert (layout.archives / "spark.refused").read_text() == "SIGSEGV"
    assert not uses_archive(layout, Engine.SPARK)
    assert uses_archive(layout, Engine.MAPREDUCE)
    assert not uses_archive(layout, Engine.MPI)


@pytest.mark.skipif(shutil.which("java") is None, reason="there is no java")
def test_a_corrupt_archive_crashes_the_real_jvm_until_it_is_refused(tmp_path: Path) -> None:
    """The configuration goes on naming the file: a JVM starts without one that is gone."""
    archive = tmp_path / "spark.jsa"
    own = ["-XX:+UseSerialGC", "-Xmx64m", f"-XX:SharedArchiveFile={archive}"]

    def java(*options: str) -> subprocess.CompletedProcess[str]:
        command = ["java", *own, *options]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )

    if java("-Xshare:dump", "-Xlog:disable").returncode != 0 or not archive.is_file():
        pytest.skip("this java makes no archives")
    archive.chmod(0o600)
    with archive.open("r+b") as stream:
        stream.truncate(archive.stat().st_size // 2)

    crashed = java("-version")
    assert crashed.returncode != 0
    assert crash_words((crashed.stdout + crashed.stderr).splitlines())

    refuse_archives(tmp_path, "SIGBUS", ["spark"])
    again = java("-version")
    assert (again.returncode, crash_words(again.stdout.splitlines())) == (0, "")
