"""Write the lock file of an engine pair: every Hadoop jar with its SHA-256, resolved once by Ivy.

Run by a maintainer when a new pair is added; users only ever read the result:

    python tools/lock_engines.py --hadoop 3.4.2 --spark 4.1.4 \
        --pyspark pyspark-4.1.4.tar.gz --ivy ivy-2.5.3.jar
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import tempfile
from pathlib import Path

ROOTS = (
    "hadoop-common",
    "hadoop-hdfs",
    "hadoop-hdfs-client",
    "hadoop-yarn-server-resourcemanager",
    "hadoop-yarn-server-nodemanager",
    "hadoop-yarn-server-timelineservice",
    "hadoop-mapreduce-client-app",
    "hadoop-mapreduce-client-hs",
    "hadoop-mapreduce-client-shuffle",
    "hadoop-mapreduce-client-jobclient",
    "hadoop-mapreduce-examples",
)
"""What a cluster runs; the timeline service because the NodeManager fails without it."""

TEST_JARS = ("hadoop-common", "hadoop-hdfs", "hadoop-mapreduce-client-jobclient")
"""Their test jars hold TestDFSIO and, in hadoop-hdfs, the web pages the daemons insist on."""

LEFT_OUT = re.compile(
    r"osx|macos|kqueue|windows"  # not Linux
    r"|^org\.opentest4j|^junit|^org\.junit|^org\.hamcrest|^org\.apiguardian|curator-test"
    r"|zookeeper:[^:]*:tests|assertj|byte-buddy|mockito|objenesis|ftpserver|mina-core"
    r"|mockwebserver|minikdc"  # test frameworks
    r"|findbugs:(findbugs|jFormatString|bcel)|^com\.apple:|mssql-jdbc|^org\.apache\.ant:"  # tools
)

HEADER = """\
# Engine pair {id}: what is fetched, exactly. Written by tools/lock_engines.py; do not edit by hand.
# Jars come from Maven Central, PySpark from PyPI. Each line of [jars] is
# "organisation:module:revision[:classifier]" = "SHA-256 size_bytes".

id = "{id}"
hadoop = "{hadoop}"
spark = "{spark}"
java = [17, 21]   # oldest and newest Java that may run it; Hadoop fails on 24 and later

[pyspark]
requirement = "pyspark=={spark}"
sha256 = "{sha256}"
size_bytes = {size_bytes}

[jars]
"""


def ivy_file(hadoop: str) -> str:
    """Return an ivy.xml that asks for the roots with everything they need."""
    group = 'org="org.apache.hadoop"'
    rows = [
        f'<dependency {group} name="{name}" rev="{hadoop}" conf="default->default"/>'
        for name in ROOTS
    ]
    rows += [
        f'<dependency {group} name="{name}" rev="{hadoop}" transitive="false">'
        f'<artifact name="{name}" type="jar" ext="jar"/>'
        f'<artifact name="{name}" type="test-jar" ext="jar" m:classifier="tests"/></dependency>'
        for name in TEST_JARS
    ]
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="boardcluster" module="lock"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(rows)}</dependencies></ivy-module>"
    )


def resolve(hadoop: str, ivy: Path, cache: Path, target: Path) -> None:
    """Fetch all jars into ``target``, named by coordinate."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "settings.xml")
        settings.write_text(
            '<ivysettings><settings defaultResolver="central"/>'
            f'<caches defaultCacheDir="{cache}"/><resolvers>'
            '<ibiblio name="central" m2compatible="true"/></resolvers></ivysettings>'
        )
        wanted = Path(folder, "ivy.xml")
        wanted.write_text(ivy_file(hadoop))
        pattern = f"{target}/[organisation]__[module]__[revision](__[classifier]).[ext]"
        command = ["java", "-jar", str(ivy), "-settings", str(settings), "-ivy", str(wanted)]
        subprocess.run([*command, "-retrieve", pattern], check=True)


def jar_lines(folder: Path) -> list[str]:
    """Return one lock line per jar that a Linux cluster needs."""
    lines = []
    for path in sorted(folder.glob("*.jar")):
        coordinate = path.name.removesuffix(".jar").replace("__", ":")
        if not LEFT_OUT.search(coordinate):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f'"{coordinate}" = "{digest} {path.stat().st_size}"')
    return lines


def main() -> None:
    """Resolve one pair and write its lock file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hadoop", required=True)
    parser.add_argument("--spark", required=True)
    parser.add_argument("--pyspark", required=True, type=Path, help="the sdist from PyPI")
    parser.add_argument("--ivy", required=True, type=Path, help="Ivy's jar, as PySpark ships it")
    parser.add_argument("--work", default=Path("build/lock"), type=Path)
    options = parser.parse_args()

    jars = options.work.resolve() / f"jars-{options.hadoop}"
    if not jars.exists():
        resolve(options.hadoop, options.ivy, options.work.resolve() / "ivy-cache", jars)
    pair = f"hadoop-{options.hadoop}-spark-{options.spark}"
    header = HEADER.format(
        id=pair,
        hadoop=options.hadoop,
        spark=options.spark,
        sha256=hashlib.sha256(options.pyspark.read_bytes()).hexdigest(),
        size_bytes=options.pyspark.stat().st_size,
    )
    target = Path(__file__).parent.parent / "src/boardcluster/services/pairs" / f"{pair}.toml"
    lines = jar_lines(jars)
    target.write_text(header + "\n".join(lines) + "\n")
    print(f"{target.name}: {len(lines)} jars")


if __name__ == "__main__":
    main()
