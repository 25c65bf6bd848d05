"""A Java for tests that spends less on starting: this machine's own, with options before all.

Most of what the tests wait for is JVMs that start, do little and end. With the first compiler
alone, and that for what is called often only, one thread of collection, and jars taken as they are
(their digests were checked when they were fetched) such a JVM takes about half of its processor
time. What a user gets is the same program and the same jars; an option that is given explicitly
still wins. Class-data archives are left as users make them, because tests share the user's cache.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from boardcluster.services.java import find_java
from boardcluster.services.pair import load_pair, pair_ids

OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    "-XX:CompileThresholdScaling=4",
)


def script(program: str) -> str:
    """A ``java`` that runs another one with the options."""
    return (
        "#!/bin/sh\n"
        f'[ "$1" != -Xshare:dump ] || exec {program} "$@"\n'
        f'exec {program} {" ".join(OPTIONS)} "$@"\n'
    )


def system_java() -> Path:
    """The ``java`` of this machine that the program would take."""
    found = find_java(load_pair(pair_ids()[0]), cache=Path("/nonexistent"))
    assert found, "no Java on this machine that runs the engines: run `make dev`"
    return found.program


def make_java_home(folder: Path) -> Path:
    """Make a Java home whose ``java`` is the script and whose other parts are the system's."""
    real = system_java()
    (folder / "bin").mkdir(parents=True)
    for source, target in (
        (real.parents[1], folder),
        (real.parent, folder / "bin"),
    ):
        for entry in source.iterdir():
            if entry.name not in ("bin", "java"):
                (target / entry.name).symlink_to(entry)
    program = folder / "bin" / "java"
    program.write_text(script(str(real)))
    program.chmod(0o755)
    return folder


def put_into_layer(upper: Path) -> None:
    """Let the ``java`` in a node's layer be the script, beside a copy of the real launcher."""
    real = system_java()
    assert real.is_relative_to("/usr"), f"{real} is not in the root folder that nodes share"
    launcher = real.with_name("java.launcher")
    there = upper / str(real.parent).lstrip("/")
    there.mkdir(parents=True, exist_ok=True)
    shutil.copy2(real, there / launcher.name)
    program = there / real.name
    program.write_text(script(str(launcher)))
    program.chmod(0o755)
