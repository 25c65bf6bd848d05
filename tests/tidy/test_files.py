"""Rules for every file of the project, whatever it holds."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]

# Put together here, so that this file itself holds none of them.
HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("repo1", "maven", "org"),
        ("repo", "maven", "apache", "org"),
        ("maven-central", "storage"),
        ("registry", "npmjs", "org"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("rubygems", "org"),
        ("anaconda", "org"),
        ("ghcr", "io"),
        ("quay", "io"),
        ("docker", "io"),
        ("deb", "debian", "org"),
        ("archive", "ubuntu", "com"),
    )
)
SHIPPED = "src/boardcluster/web/static/uplot/"
"""The work of others, as they publish it."""

NOTES = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")
# A home folder or a checkout of somebody; "/home/<name>" and "/home/NAME" are meant for readers.
OWN_PATH = re.compile(r"(?<![\w.$~}/-])/(?:root|work|home/[a-z][\w-]*)(?=/)")


def tracked() -> list[Path]:
    """Every file of the project: what git has, and what it would take."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    names = [name for name in done.stdout.decode().split("\0") if name]
    if done.returncode != 0:  # an archive of the source has no git
        pytest.skip("not a git checkout")
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def texts() -> dict[str, str]:
    found = {}
    for path in tracked():
        data = path.read_bytes()
        if b"\0" not in data:
            found[str(path.relative_to(ROOT))] = data.decode()
    return found


def offenders(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts().items()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_there_are_files() -> None:
    names = {str(path.relative_to(ROOT)) for path in tracked()}
    assert {"pyproject.toml", "README.md", "LICENSE", "Makefile", ".ci/run"} <= names


def test_no_notes_to_oneself() -> None:
    assert offenders(NOTES) == []


def test_no_path_of_a_developers_machine() -> None:
    assert offenders(OWN_PATH) == []


def test_no_host_name_of_a_package_registry() -> None:
    assert offenders(re.compile("|".join(map(re.escape, HOSTS)))) == []


@pytest.mark.parametrize(
    "line", ["see " + "/ro" + "ot/notes", "open('" + "/wor" + "k/x')", "/ho" + "me/anna/.cache/"]
)
def test_the_pattern_finds_own_paths(line: str) -> None:
    assert OWN_PATH.search(line)


@pytest.mark.parametrize(
    "line",
    ["jvm/wor" + "k/x", "$HOME/wor" + "k/x", "/home/<name>/x", "~/wor" + "k/", "/rooted/x"],
)
def test_the_pattern_leaves_other_paths(line: str) -> None:
    assert not OWN_PATH.search(line)


def test_text_files_are_tidy() -> None:
    bad = [
        name
        for name, text in texts().items()
        if not name.startswith(SHIPPED)
        if text and (not text.endswith("\n") or "\r" in text or re.search(r"[ \t]$", text, re.M))
    ]
    assert bad == []


def test_files_are_small() -> None:
    """Results, data and jars do not belong in the repository."""
    large = [str(path.relative_to(ROOT)) for path in tracked() if path.stat().st_size > 1_000_000]
    assert large == []


def test_every_python_package_of_ours_is_locked() -> None:
    """For each Python and platform a version that pyproject.toml allows, with its digests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    text = re.sub(r"^#.*\n", "", (ROOT / "tools/python.lock").read_text(), flags=re.M)
    rows = re.split(r"\n(?=\S)", text.strip())
    versions: dict[str, list[str]] = {}
    for row in rows:
        found = re.match(r"([a-z0-9-]+)==([\w.]+)", row)
        assert found, row
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", row), row
        versions.setdefault(found[1], []).append(found[2])
    for requirement in map(Requirement, wanted):
        for version in versions[requirement.name]:
            assert requirement.specifier.contains(version), f"{requirement}: {version}"


def test_clusters_that_run_side_by_side_have_subnets_of_their_own() -> None:
    """Modules of the integration room run side by side, on one machine's network."""
    owners: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests" / "integration").glob("*.py")):
        text = path.read_text()
        named = dict(re.findall(r'^([A-Z_]+) = "(198\.1[89]\.[\d.]+/\d+)"', text, re.MULTILINE))
        for word in re.findall(r'"--subnet", "?([\w./]+)"?', text):
            owners.setdefault(named.get(word, word), set()).add(path.stem)
    assert len(owners) > 10
    assert {subnet: names for subnet, names in owners.items() if len(names) > 1} == {}
