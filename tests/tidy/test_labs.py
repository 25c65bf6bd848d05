"""Each sheet of the labs is whole: its minutes, its questions, its answers, its files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from boardcluster.campaign.plan import workload_facts
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import build_profile, profile_names
from boardcluster.services.settings import check_setting
from boardcluster.spec.campaign import load_campaign
from boardcluster.spec.cluster import load_cluster

ROOT = Path(__file__).resolve().parents[2]
LABS = ROOT / "docs" / "labs"
EXAMPLES = ROOT / "examples" / "labs"
SHEETS = sorted(LABS.glob("[0-9]*.md"))
LESSON_MINUTES = 45

QUESTION = re.compile(r"^(\d+)\. ", re.MULTILINE)
STEP = re.compile(r"^\| ([^|]+) \| (\d+) min \|$", re.MULTILINE)
TOML = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda path: path.stem)
def test_a_sheet_is_whole(sheet: Path) -> None:
    text = sheet.read_text()
    steps = STEP.findall(text)
    assert sum(int(minutes) for _, minutes in steps) == LESSON_MINUTES
    titles = re.findall(r"^## (\d)\. (.+)$", text, re.MULTILINE)
    assert [name for name, _ in steps[:-1]] == [" ".join(title) for title in titles]
    questions = QUESTION.findall(text.split("\n## Questions\n")[1])
    assert 5 <= len(questions) <= 8
    answers = (LABS / "answers" / sheet.name).read_text()
    assert QUESTION.findall(answers.split("\n## Answers\n")[1]) == questions


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda path: path.stem)
def test_what_a_sheet_prints_is_in_the_files(sheet: Path) -> None:
    files = [
        "".join(row for row in path.read_text().splitlines(keepends=True) if row[:1] != "#")
        for path in sorted(EXAMPLES.glob("*.toml"))
    ]
    printed = TOML.findall(sheet.read_text())
    assert printed
    for block in printed:
        assert any(block in text.replace("\n\n\n", "\n\n") for text in files), block


def test_the_files_of_the_labs_are_valid() -> None:
    spec = load_cluster(
        EXAMPLES / "cluster.toml", engine_pairs=pair_ids(), profiles=profile_names()
    )
    assert len(spec.workers) == 3
    assert {node.cores for node in spec.nodes} == {1}
    assert not build_profile(spec.profile, spec).spark_refusal
    for path in set(EXAMPLES.glob("*.toml")) - {EXAMPLES / "cluster.toml"}:
        campaign = load_campaign(
            path,
            workloads=workload_facts(),
            profiles=profile_names(),
            check_setting=check_setting,
        )
        assert campaign.name == path.stem


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["state.json", "worker9"], "no node is called worker9; there are master, worker1"),
        (["state.json", "worker1", "namenode"], "worker1 has no daemon namenode; it has datanode"),
        (["state.json", "worker1", "datanode"], "worker1 datanode: has ended already"),
        (["state.json", "worker1"], "worker1: has ended already"),
        (["other.json", "worker1"], "other.json: no such file; the cluster of this home is not up"),
        (["state.json"], "use: python3 examples/labs/kill.py STATE_JSON NODE [DAEMON]"),
    ],
)
def test_what_cannot_be_killed_is_said(words: list[str], said: str, tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    state = {
        "nodes": [{"name": "master", "pid": gone.pid}, {"name": "worker1", "pid": gone.pid}],
        "daemons": [{"name": "datanode", "node": "worker1", "process": {"pid": 89}}],
    }
    (tmp_path / "state.json").write_text(json.dumps(state))
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "kill.py"), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, f"{said}\n")
