"""``predict``: what it prints, its exit codes, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.builders import make_campaign, make_fingerprint, make_measurement, make_trial, store_run
from typer.testing import CliRunner
from typer.testing import Result as Ran

from boardcluster.cli.app import app
from boardcluster.errors import PredictionUnknownError, SpecError, UsageError
from boardcluster.store import Store

BOARDS = ("--board", "rpi-4b-4gb-1500mhz", "--medium", "samsung-ufs-256gb", "--workers", "4")


def predict(home: Path, *arguments: str) -> Ran:
    return CliRunner().invoke(app, ["predict", *arguments, "--home", str(home)])


def test_an_answer_on_one_screen(tmp_path: Path) -> None:
    done = predict(tmp_path, "wordcount", "--engine", "spark", "--size", "2GB", *BOARDS)
    assert done.exit_code == 0, done.exception
    lines = done.output.splitlines()
    assert lines[0].startswith("time 1 min ")
    assert "CPU" in lines[0]
    assert any(line.startswith("intermediate 2.") for line in lines)
    assert any(line.startswith("energy of the workers") for line in lines)
    assert any(line.startswith("fits: yes, 1 % of the disks, ") for line in lines)
    assert "from: 60 cells of lee-oh-park-2021 Table 13" in lines
    assert any(line.startswith("backtest at this distance: error 6 %") for line in lines)
    assert len(lines) <= 12


def test_what_does_not_fit_is_said_with_the_arithmetic(tmp_path: Path) -> None:
    done = predict(tmp_path, "wordcount", "--engine", "spark", "--size", "500GB", *BOARDS)
    [line] = [line for line in done.output.splitlines() if line.startswith("fits: ")]
    assert line.startswith("fits: no, disks: 500 GB input x 2 + ")
    assert line.endswith("of 4 x 256 GB; at most 92 % fits")
    advised = re.search(r"with \d workers?, (\d+) GB", str(getattr(done.exception, "hint", "")))
    assert advised is None or int(advised[1]) <= 125, "what it says to run fits 4 x 256 GB"
    small = ("--board", "rpi-3b", "--medium", "samsung-ufs-256gb", "--workers", "4")
    done = predict(tmp_path, "wordcount", "--engine", "spark", "--size", "2GB", *small)
    assert "fits: no, memory: " in done.output


def test_json_says_the_same(tmp_path: Path) -> None:
    done = predict(tmp_path, "wordcount", "--engine", "spark", "--size", "2GB", *BOARDS, "--json")
    found = json.loads(done.output)
    assert found["seconds"]["interval"]["low"] < found["seconds"]["median"]
    assert found["unknown"] == []
    assert found["question"]["workers"] == 4
    assert found["fit"]["disks"]["workers"] == 4


def test_what_is_not_known_is_shown_and_has_its_own_exit_code(tmp_path: Path) -> None:
    small = ("--board", "rpi-3b", "--medium", "samsung-ufs-256gb", "--workers", "4")
    done = predict(tmp_path, "terasort", "--engine", "spark", "--size", "2GB", *small)
    assert isinstance(done.exception, PredictionUnknownError)
    assert done.exception.exit_code == 11
    assert "memory oversubscribed: rpi-3b has 1.07 GB" in done.exception.message
    assert "run terasort on spark with" in done.exception.hint
    assert done.output.startswith("time ")


def test_a_farm_of_servers_is_asked_about_without_a_size(tmp_path: Path) -> None:
    done = predict(tmp_path, "webserve", *BOARDS)
    assert isinstance(done.exception, PredictionUnknownError)
    assert "of webserve on http: two numbers of workers are needed" in done.exception.message


def test_a_board_has_the_link_that_the_catalog_says(tmp_path: Path) -> None:
    asked = ("hpl", "--size", "400MB", "--workers", "4", "--board", "rpi-b-800mhz")
    assert predict(tmp_path, *asked).exit_code == 0, "the paper's boards have 100 Mbit/s"
    faster = predict(tmp_path, *asked, "--link", "1 Gbit/s")
    assert isinstance(faster.exception, PredictionUnknownError)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "predict needs a workload"),
        (["wordcount", "--backtest"], "--backtest takes no workload"),
        (["--backtest", "--tainted"], "--tainted cannot be used with --backtest"),
        (
            ["counts.toml", *BOARDS, "--set", "maps=3"],
            "--set, --workers, --board, --medium cannot be used with a campaign file",
        ),
        (["counts.toml", "--profile", "default"], "--profile cannot be used with a campaign"),
        (["pi", "--engine", "spark", "--program", "app.py", *BOARDS], "--program can only be used"),
        (
            ["submit", "--engine", "spark", "--program", "app.py", "--size", "3GB", *BOARDS],
            "--size has no effect: how much a program of your own reads is not known",
        ),
        (["wordcount", "--size", "2GB", *BOARDS], "wordcount runs on"),
        (["wordcount", "--engine", "mpi", "--size", "2GB", *BOARDS], "does not run on mpi"),
        (["wordcount", "--engine", "spark", "--size", "2", *BOARDS], "--size: '2' has no unit"),
        (["wordcount", "--engine", "spark", *BOARDS], "needs the size of its input"),
        (["webserve", "--size", "1GB", *BOARDS], "--size has no effect: webserve takes no input"),
        (["wordcont", "--engine", "spark", "--size", "2GB", *BOARDS], "no workload 'wordcont'"),
        (["pi", "--engine", "spark", "--set", "mops=3", *BOARDS], "pi has no parameter"),
        (
            ["wordcount", "--engine", "spark", "--size", "2GB", "--link", "fast", *BOARDS],
            "--link",
        ),
        (["wordcount", "--engine", "spark", "--size", "2GB"], "there is no cluster here"),
        (
            ["netpipe", "--board", "rpi-3b", "--workers", "1"],
            "netpipe needs at least 2 workers, not 1",
        ),
        (
            ["oltp", "--board", "rpi-3b", "--workers", "2"],
            "oltp needs at least 3 workers, not 2",
        ),
        (
            ["pi", "--engine", "spark", *BOARDS[:2], *BOARDS[4:], "--medium", "samsung-ufs"],
            'did you mean "samsung-ufs-256gb"',
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = predict(tmp_path, *arguments)
    assert isinstance(done.exception, UsageError), done.output
    assert message in done.exception.message


def test_the_nearest_workload_is_named(tmp_path: Path) -> None:
    done = predict(tmp_path, "wordcont", "--engine", "spark", "--size", "2GB", *BOARDS)
    assert isinstance(done.exception, UsageError)
    assert done.exception.hint.startswith("did you mean 'wordcount'? choose from: dfsio, ")


TWIN = """\
[cluster]
name = "boards"
kind = "emulated"
engines = "hadoop-3.4.2-spark-4.1.4"
profile = "default"
[twin]
dilation = {dilation}
[[node]]
name = "master"
roles = ["master"]
board = "rpi-5b-8gb-2400mhz"
medium = "samsung-pro-plus-256gb"
memory = "4 GiB"
disk = "4 GiB"
[[node]]
name = "worker1"
roles = ["worker"]
board = "rpi-5b-8gb-2400mhz"
medium = "samsung-pro-plus-256gb"
memory = "4 GiB"
disk = "8 GiB"
"""
CAMPAIGN = """\
[campaign]
name = "counts"
repetitions = 2
[[matrix]]
workload = "wordcount"
engine = "spark"
size = "500 MB"
"""


@pytest.mark.parametrize(
    ("dilation", "words"),
    [
        ('"auto"', "this is the time of real boards; `up` decides how much longer"),
        ("2.5", "this is the time of real boards; this machine takes 2.5 times as long: "),
        ("1.0", ""),
    ],
)
def test_a_campaign_on_emulated_boards_says_whose_time_it_is(
    tmp_path: Path, dilation: str, words: str
) -> None:
    (tmp_path / "cluster.toml").write_text(TWIN.format(dilation=dilation))
    (tmp_path / "counts.toml").write_text(CAMPAIGN)
    done = predict(tmp_path, str(tmp_path / "counts.toml"), "--cache", str(tmp_path / "cache"))
    assert done.exit_code == 0, done.exception
    assert done.output.startswith("predicted: ")
    assert words in done.output
    assert ("real boards" in done.output) == bool(words)


def test_of_netpipe_a_campaign_has_no_time(tmp_path: Path) -> None:
    """What is predicted of it is one message."""
    (tmp_path / "cluster.toml").write_text(TWIN.format(dilation="1.0"))
    (tmp_path / "messages.toml").write_text(
        '[campaign]\nname = "messages"\nrepetitions = 1\n[[matrix]]\nworkload = "netpipe"\n'
    )
    done = predict(tmp_path, str(tmp_path / "messages.toml"), "--cache", str(tmp_path / "cache"))
    assert "latency and throughput are predicted" in done.output + str(done.exception)


def test_an_own_file_that_is_wrong_is_named(tmp_path: Path) -> None:
    path = tmp_path / "card.toml"
    path.write_text('id = "card"\n')
    done = predict(
        tmp_path, "wordcount", "--engine", "spark", "--size", "2GB", *BOARDS, "--medium", str(path)
    )
    assert isinstance(done.exception, SpecError)
    assert "card.toml" in done.exception.message


def test_own_runs_of_a_store_are_learned_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").write_text('base = "default"\n')
    cells = [(1, 500_000_000), (2, 500_000_000), (2, 1_000_000_000)]
    trials = [
        make_trial(
            "wordcount",
            id=f"t{place}",
            campaign_id=make_campaign().id,
            position=place,
            workers=workers,
            size_bytes=size,
            settings={},
            profile=str(tmp_path / "mine.toml"),
        )
        for place, (workers, size) in enumerate(cells)
    ]
    stands_for = make_fingerprint(twin="rpi-4b-4gb-1500mhz, samsung-ufs-256gb")
    with Store.open(tmp_path) as store:
        store.add_campaign(make_campaign(), trials)
        for trial in trials:
            seconds = 40 + 200 * trial.size_bytes / 1e9 / trial.workers
            phases = {"count": seconds, "count/stage 0: reduce": seconds - 40}
            store_run(
                store,
                trial,
                make_measurement(seconds, phases_seconds=phases),
                fingerprint=stands_for,
            )
    asked = ("wordcount", "--engine", "spark", "--size", "2GB", *BOARDS, "--json")
    found = json.loads(predict(tmp_path, *asked).output)
    assert found["provenance"][0] == "3 own runs"
    assert found["seconds"]["median"] == pytest.approx(140, rel=0.1)
    monkeypatch.chdir(tmp_path)
    named = json.loads(predict(tmp_path, *asked, "--profile", "mine.toml").output)
    assert named["provenance"][0] == "3 own runs", "runs have the whole path of a profile"
