"""List the properties that the engines of a pair know, with their default values.

Run by a maintainer, with a JDK, when a pair is added; users only ever read the result:

    .venv/bin/python tools/list_settings.py --pair hadoop-3.4.2-spark-4.1.4

Hadoop's are in the ``*-default.xml`` of its jars. Spark's are in its programs: every object that
builds configuration entries is initialised, and Spark's own registry of them is read.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from boardcluster.cli.options import cache_folder
from boardcluster.services.install import install
from boardcluster.services.java import provide_java
from boardcluster.services.pair import load_pair

PAIRS = Path(__file__).resolve().parents[1] / "src/boardcluster/services/pairs"
DEFAULTS = {
    "core-site": "core-default.xml",
    "hdfs-site": "hdfs-default.xml",
    "yarn-site": "yarn-default.xml",
    "mapred-site": "mapred-default.xml",
}
SPARK_LISTER = """
import java.util.*;
import java.util.zip.*;

class SparkSettings {
    public static void main(String[] jars) throws Exception {
        String mark = "org/apache/spark/internal/config/ConfigBuilder";
        for (String jar : jars) {
            try (ZipFile file = new ZipFile(jar)) {
                for (ZipEntry entry : Collections.list(file.entries())) {
                    String name = entry.getName();
                    if (!name.endsWith("$.class")) continue;
                    byte[] bytes = file.getInputStream(entry).readAllBytes();
                    if (!new String(bytes, "ISO-8859-1").contains(mark)) continue;
                    String known = name.substring(0, name.length() - 6).replace('/', '.');
                    Class.forName(known);
                }
            }
        }
        Class<?> registry = Class.forName("org.apache.spark.internal.config.ConfigEntry$");
        var field = registry.getDeclaredField("knownConfigs");
        field.setAccessible(true);
        Map<?, ?> entries = (Map<?, ?>) field.get(registry.getField("MODULE$").get(null));
        for (Object entry : entries.values()) {
            Object key = entry.getClass().getMethod("key").invoke(entry);
            Object value = entry.getClass().getMethod("defaultValueString").invoke(entry);
            System.out.println(key + "\\t" + String.valueOf(value).replaceAll("\\\\s+", " "));
        }
    }
}
"""


def hadoop_settings(jars: Path) -> Iterator[tuple[str, str, str]]:
    """Yield file, key and default of every property of the ``*-default.xml``."""
    for path in sorted(jars.glob("*.jar")):
        with ZipFile(path) as jar:
            for file, name in DEFAULTS.items():
                if name in jar.namelist():
                    for row in ET.fromstring(jar.read(name)).iter("property"):
                        key, value = (row.findtext(tag, "") for tag in ("name", "value"))
                        yield file, key.strip(), " ".join(value.split())


def spark_settings(jars: Path) -> Iterator[tuple[str, str, str]]:
    """Yield file, key and default of every entry of Spark's registry."""
    own = [str(path) for path in sorted(jars.glob("spark-*.jar"))]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "SparkSettings.java"
        program.write_text(SPARK_LISTER)
        # Some of these objects make folders, which stay where the process is killed.
        scratch = f"-Djava.io.tmpdir={folder}"
        command = ["java", scratch, "-cp", f"{jars}/*", str(program), *own]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    for line in done.stdout.splitlines():
        key, found, value = line.replace(f"{folder}/", "").partition("\t")
        if found and key.startswith("spark."):
            undefined = value.startswith("<") and value.endswith(">")
            yield "spark-defaults", key, "" if undefined else value


def listed(hadoop_jars: Path, spark_jars: Path) -> str:
    """Return the list: one line each of file, key and default, sorted, parted by tabs."""
    rows = {*hadoop_settings(hadoop_jars), *spark_settings(spark_jars)}
    unset = {(file, key) for file, key, _ in rows}
    lines = {pair: max(row[2] for row in rows if row[:2] == pair) for pair in unset}
    return "".join(f"{file}\t{key}\t{value}\n" for (file, key), value in sorted(lines.items()))


def main() -> None:
    """Write the list of a pair; fetch the pair if it is not in the cache."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pair", required=True)
    pair = load_pair(parser.parse_args().pair)
    cache = cache_folder(None)
    there = install(pair, provide_java(pair, cache=cache), cache=cache, progress=print)
    text = listed(there.hadoop_jars, there.spark_home / "jars")
    target = PAIRS / f"{pair.id}.settings.gz"
    target.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{target}: {text.count(chr(10))} properties")


if __name__ == "__main__":
    main()
