"""What we say of the engines' settings is what stands in their own jars, in each pair."""

from __future__ import annotations

import gzip
import runpy
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from boardcluster.services.dilation import intervals
from boardcluster.services.install import Installation
from boardcluster.services.pair import pair_ids
from boardcluster.services.settings import refusal_of

ROOT = Path(__file__).resolve().parents[2]
DEFAULTS = {
    "core-site": ("hadoop-common", "core-default.xml"),
    "hdfs-site": ("hadoop-hdfs", "hdfs-default.xml"),
    "yarn-site": ("hadoop-yarn-common", "yarn-default.xml"),
    "mapred-site": ("hadoop-mapreduce-client-core", "mapred-default.xml"),
}
SPARK_JARS = ("spark-core", "spark-yarn", "spark-network-common", "spark-catalyst", "spark-sql-api")
SPARK_PLACES = ("/config/", "/util/Utils", "Conf", "/rpc/", "/scheduler/", "HealthTracker")

pytestmark = pytest.mark.parametrize("pair_id", pair_ids())


def test_the_table_of_intervals_has_the_engines_own_values(
    pair_id: str, installed: Callable[[str], Installation]
) -> None:
    for file, (module, member) in DEFAULTS.items():
        with zipfile.ZipFile(installed(pair_id).hadoop_jar(module)) as jar:
            root = ElementTree.fromstring(jar.read(member))
        own = {
            row.findtext("name", "").strip(): row.findtext("value", "").strip()
            for row in root.iter("property")
        }
        final = {
            row.findtext("name", "").strip()
            for row in root.iter("property")
            if row.findtext("final") == "true"
        }
        rows = intervals()[file]
        assert not final & set(rows)  # Hadoop ignores them in a configuration, with a warning
        assert all(map(refusal_of, final))
        documented = {name: row for name, row in rows.items() if not row.in_code}
        assert {n: row.default_in(pair_id) for n, row in documented.items()} == {
            n: own.get(n) for n in documented
        }
        assert {name for name in rows if name in own} == set(documented)


def test_spark_still_has_every_setting_of_the_table(
    pair_id: str, installed: Callable[[str], Installation]
) -> None:
    classes = b""
    for path in map(Path, installed(pair_id).jars("spark")):
        if path.name.startswith(SPARK_JARS):
            with zipfile.ZipFile(path) as jar:
                wanted = [n for n in jar.namelist() if any(p in n for p in SPARK_PLACES)]
                classes += b"".join(jar.read(name) for name in wanted)
    # Names of modules are put together: spark.MODULE.io.retryWait.
    names = [name.removeprefix("spark.shuffle.") for name in intervals()["spark-defaults"]]
    assert [name for name in names if name.encode() not in classes] == []


@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a JDK to read Spark's entries")
def test_the_list_of_settings_is_that_of_the_jars(
    pair_id: str, installed: Callable[[str], Installation]
) -> None:
    there = installed(pair_id)
    listed = runpy.run_path(str(ROOT / "tools" / "list_settings.py"))["listed"]
    packed = ROOT / f"src/boardcluster/services/pairs/{pair_id}.settings.gz"
    assert gzip.decompress(packed.read_bytes()).decode() == listed(
        there.hadoop_jars, there.spark_home / "jars"
    )
