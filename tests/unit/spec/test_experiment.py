"""Experiment files: what is read, and every mistake with its line."""

import re
from pathlib import Path

import pytest

from boardcluster.errors import SpecError
from boardcluster.records import Engine, MasterPlacement
from boardcluster.spec.experiment import Vary, load_experiment

GOOD = """\
[experiment]
name = "cards"
question = "Which card is faster?"
campaign = "campaign.toml"
twins = ["slow.toml", "more/fast.toml"]
vary = "twin"

[[published]]
file = "lee-park-2026-table-16"
where = { nodes = "4", storage = "SSD" }
quantity = "execution_time"
of = { workload = "pi x2", engine = "mapreduce", size = "1 MB", twin = "fast", workers = 4, \
master = "separate", concurrency = 2, profile = "default" }

[[published]]
ratio = "lee-oh-park-2021-cooling-hadoop"
of = {}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "experiment.toml"
    path.write_text(text)
    return path


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_experiment(written(folder, text))
    return [line.removeprefix(f"{folder}/") for line in caught.value.message.splitlines()]


def test_a_file_is_read_with_paths_from_its_folder(tmp_path: Path) -> None:
    read = load_experiment(written(tmp_path, GOOD))

    assert (read.name, read.question, read.vary) == ("cards", "Which card is faster?", Vary.TWIN)
    assert read.campaign == tmp_path / "campaign.toml"
    assert read.twins == (tmp_path / "slow.toml", tmp_path / "more" / "fast.toml")
    cell, ratio = read.published
    assert cell.place == f"{tmp_path / 'experiment.toml'}:8: published[0]"
    assert (cell.file, cell.quantity, cell.ratio) == (
        "lee-park-2026-table-16",
        "execution_time",
        "",
    )
    assert cell.where == {"nodes": "4", "storage": "SSD"}
    assert cell.of == {
        "workload": "pi+pi",
        "engine": Engine.MAPREDUCE,
        "size_bytes": 10**6,
        "twin": "fast",
        "workers": 4,
        "master": MasterPlacement.SEPARATE,
        "concurrency": 2,
        "profile": "default",
    }
    assert (ratio.file, ratio.ratio, ratio.of) == ("", "lee-oh-park-2021-cooling-hadoop", {})


def test_what_is_cited_may_be_left_out(tmp_path: Path) -> None:
    assert load_experiment(written(tmp_path, GOOD.partition("[[")[0])).published == ()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "cards"\n', "", "experiment.toml:1: experiment.name: missing; allowed: "),
        ('"cards"', '"two cards"', 'experiment.name: "two cards" is not a valid name; '),
        ('vary = "twin"', 'vary = "twim"', 'experiment.vary: "twim" is not something to vary'),
        ("question", "questoin", 'unknown key; allowed: .*did you mean "question"'),
        ('["slow.toml", "more/fast.toml"]', "[]", "experiment.twins: an empty array is not"),
        ("more/fast", "more/slow", r'experiment.twins\[1\]: the name "slow" is that of twins\[0\]'),
        ('twin = "fast"', 'twin = "fats"', 'published.*of.twin: "fats" .*mean "fast"'),
        ('"pi x2"', '"pi x"', r'published\[0\].of.workload: "pi x" is not a workload or a mix'),
        ('"mapreduce"', '"mapred"', 'published.*of.engine.*"mapred".*mean "mapreduce"'),
        ("workers = 4", "workers = 0", "published.*of.workers: 0 is not allowed"),
        ('size = "1 MB"', 'size = "1 MBit"', "published.*of.size"),
        ('quantity = "execution_time"\n', "", r"published\[0\]: it names neither one cell nor"),
        ("of = {}", "", r"published\[1\].of: missing"),
        ("of = {}", 'of = {}\nquantity = "x"', r"published\[1\]: it names neither one cell nor"),
    ],
)
def test_a_mistake_is_said_with_its_line(old: str, new: str, said: str, tmp_path: Path) -> None:
    text = GOOD.replace(old, new)
    assert text != GOOD

    assert re.search(said, "\n".join(problems(tmp_path, text)))


def test_all_mistakes_are_said_at_once(tmp_path: Path) -> None:
    text = GOOD.replace('twin = "fast"', 'twin = "none"').replace("more/fast", "slow")

    lines = problems(tmp_path, text)

    assert [line.split(": ")[0] for line in lines] == ["experiment.toml:5", "experiment.toml:12"]


def test_a_missing_file_says_where_to_take_one_from(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        load_experiment(tmp_path / "none.toml")

    assert "examples/twin" in caught.value.hint
