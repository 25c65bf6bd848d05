"""The Maven build is reproducible, and Python names classes that exist."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JVM = ROOT / "jvm"
SOURCES = JVM / "src" / "main" / "java"
POM = ET.fromstring((JVM / "pom.xml").read_text())
NAMESPACE = {"m": "http://maven.apache.org/POM/4.0.0"}
EXACT = re.compile(r"\d+(\.\d+)+|\$\{[a-z.]+\.version\}")
FOR_BENCHMARKS = {"io.boardcluster.textbook.Dfsio", "io.boardcluster.textbook.TeraValidate"}
"""Textbook jobs that benchmarks/jobs.py compares with, and no workload runs."""

MAIN = re.compile(r"public static void main\(")
# What Maven's own lifecycle runs for a jar, even when the file does not name it.
LIFECYCLE = {"clean", "resources", "compiler", "surefire", "jar", "install", "deploy", "site"}


def text(element: ET.Element, name: str) -> str:
    return element.findtext(f"m:{name}", "", NAMESPACE)


@pytest.mark.parametrize("kind", ["plugin", "dependency"])
def test_every_version_is_pinned(kind: str) -> None:
    found = POM.findall(f".//m:{kind}", NAMESPACE)
    loose = [text(row, "artifactId") for row in found if not EXACT.fullmatch(text(row, "version"))]
    assert found
    assert loose == []


def test_properties_hold_exact_versions() -> None:
    versions = {
        element.tag.partition("}")[2]: (element.text or "")
        for element in POM.findall("./m:properties/*", NAMESPACE)
        if element.tag.endswith(".version")
    }
    assert versions
    assert [name for name, version in versions.items() if not re.match(r"\d", version)] == []
    assert not [version for version in versions.values() if re.search("SNAPSHOT|[\\[(,]", version)]


def test_every_plugin_of_the_lifecycle_is_pinned() -> None:
    named = {text(row, "artifactId") for row in POM.findall(".//m:plugin", NAMESPACE)}
    assert {f"maven-{name}-plugin" for name in LIFECYCLE} <= named


def main_classes() -> set[str]:
    return {
        ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        for path in SOURCES.rglob("*.java")
        if MAIN.search(path.read_text())
    }


def test_main_classes_in_python_are_those_of_the_jar() -> None:
    group = re.escape(text(POM, "groupId"))
    pattern = re.compile(rf'"({group}\.(?:jobs|textbook)\.\w+)"')
    named = {
        name for path in (ROOT / "src").rglob("*.py") for name in pattern.findall(path.read_text())
    }
    assert named == main_classes() - FOR_BENCHMARKS


def test_the_jar_has_the_name_that_is_looked_for() -> None:
    name = POM.findtext("./m:build/m:finalName", "", NAMESPACE)
    jobs = ROOT / "src" / "boardcluster" / "services" / "jobs.py"
    assert f'"{name}.jar"' in jobs.read_text()
