"""Campaigns of several starts, and campaigns that run until their intervals are narrow."""

import re
import time
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest
from tests.unit.cli.desk import Desk, bad

from boardcluster.campaign import rounds
from boardcluster.errors import EmptySelectionError, RunError, UsageError
from boardcluster.records import Engine, Trial
from boardcluster.spec.variant import ClusterVariant
from boardcluster.store import Store

PAIR = """\
[campaign]
name = "pair"
seed = 5
repetitions = 2
{more}
[[matrix]]
workload = "wordcount"
engine = ["mapreduce", "spark"]
size = "1 MB"
[[comparison]]
of = "engine"
levels = ["mapreduce", "spark"]
"""


@pytest.fixture
def pair(tmp_path: Path) -> Callable[..., str]:
    def write(more: str = "") -> str:
        path = tmp_path / "pair.toml"
        path.write_text(PAIR.format(more=more))
        return str(path)

    return write


def varying(trial: Trial) -> float:
    """Spark takes 0.8 of MapReduce's time; blocks differ by 10 %, and their ratios by 2 %."""
    block = 1 + 0.1 * (trial.repetition % 3)
    luck = 1 + 0.01 * (-1) ** trial.repetition
    return 20.0 * block * (0.8 * luck if trial.engine is Engine.SPARK else 1.0)


# Starts


def start_ids(desk: Desk) -> dict[int, set[str]]:
    """Return the ids of the starts of the daemons by the start of the trials."""
    found: dict[int, set[str]] = {}
    for row in desk.results():
        if row.attempt is not None:
            found.setdefault(row.trial.start, set()).add(row.attempt.start_id)
    return found


def test_every_start_stops_and_starts_the_daemons(desk: Desk, pair: Callable[..., str]) -> None:
    ran = desk("run", pair("starts = 3"))

    assert [(trial.start, trial.repetition) for trial in desk.ran] == [
        (start, 2 * (start - 1) + block) for start in (1, 2, 3) for block in (1, 1, 2, 2)
    ]
    changes = ["down" if call == "down" else "up" for call in desk.calls if call != "attach"]
    assert changes == ["up", "down", "up", "down", "up", "down"]
    assert start_ids(desk) == {1: {"start-1"}, 2: {"start-2"}, 3: {"start-3"}}
    assert "12 runs of 2 cells on 1 variant of the cluster, in 3 starts" in ran.stderr
    [campaign] = desk.campaigns()
    assert (campaign.starts, campaign.precision) == (3, None)
    assert campaign.comparisons[0].levels == ("mapreduce", "spark")


def test_a_workload_on_a_running_cluster_has_starts_too(desk: Desk) -> None:
    desk.is_up, desk.starts = True, 1
    desk("run", "wordcount", "--starts", "2", "--repetitions", "1", "--engine", "spark")

    assert start_ids(desk) == {1: {"start-2"}, 2: {"start-3"}}  # the running one is no fresh start
    assert desk.is_up


def test_a_start_of_one_is_no_restart(desk: Desk) -> None:
    desk.is_up, desk.starts = True, 1
    desk("run", "wordcount", "--repetitions", "2")

    assert start_ids(desk) == {1: {"start-1"}}


def break_off(desk: Desk, path: str, after: int, *words: str) -> ClusterVariant | None:
    """Run until Ctrl-C after so many runs; return the variant of the cluster at that moment."""
    plain = desk.seconds
    forms = []

    def seconds(trial: Trial) -> float:
        if len(desk.ran) > after:
            forms.append(desk.form)
            raise KeyboardInterrupt
        return plain(trial)

    desk.seconds = seconds
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        raise SystemExit(desk("run", path, *words).exit_code)
    desk.seconds = plain
    return forms[0]


def test_a_start_that_is_still_up_goes_on_after_a_kill(
    desk: Desk, pair: Callable[..., str]
) -> None:
    path = pair("starts = 2")
    form = break_off(desk, path, 5)
    desk.is_up, desk.form = True, form  # the driver was killed, not the daemons

    desk("run", path, "--resume")

    assert start_ids(desk) == {1: {"start-1"}, 2: {"start-2"}}


def test_a_start_that_is_gone_is_another_one_with_its_own_id(
    desk: Desk, pair: Callable[..., str]
) -> None:
    path = pair("starts = 2")
    break_off(desk, path, 5)

    desk("run", path, "--resume")

    assert start_ids(desk) == {1: {"start-1"}, 2: {"start-2", "start-3"}}


def test_another_order_by_default_that_is_printed_and_can_be_had_again(desk: Desk) -> None:
    desk.is_up = True
    orders: dict[int, list[Engine]] = {}
    for _ in range(3):
        desk.ran.clear()
        ran = desk("run", "wordcount", "--repetitions", "4")
        [printed] = re.findall(r"8 runs, seed (\d+)", ran.stderr)
        orders[int(printed)] = [trial.engine for trial in desk.ran]
    assert set(orders) == {campaign.seed for campaign in desk.campaigns()}
    assert len(orders) > 1

    for seed, order in orders.items():
        desk.ran.clear()
        desk("run", "wordcount", "--repetitions", "4", "--seed", str(seed))
        assert [trial.engine for trial in desk.ran] == order


def test_a_seed_given_with_a_file_wins_over_it(desk: Desk, pair: Callable[..., str]) -> None:
    desk("run", pair(), "--seed", "77", "--starts", "2")

    [campaign] = desk.campaigns()
    assert (campaign.seed, campaign.starts) == (77, 2)


# Until intervals are narrow


def test_blocks_are_added_until_the_declared_comparison_is_narrow(
    desk: Desk, pair: Callable[..., str]
) -> None:
    desk.seconds = varying
    ran = desk("run", pair('until = "3 %"'))

    blocks = Counter(trial.repetition for trial in desk.ran)
    assert set(blocks.values()) == {2}  # whole blocks
    assert 4 <= len(blocks) < 20
    # The means of both vary by far more: only what is declared counts.
    last = ran.stderr.strip().splitlines()
    assert any("every 95 % interval is within ±3 % after" in line for line in last)
    assert (
        "another round: wanted ±3 %, but these are wider: wordcount: spark against mapreduce"
        in (ran.stderr)
    )
    [campaign] = desk.campaigns()
    assert (campaign.precision, campaign.repetitions_max) == (0.03, 20)
    assert [row.trial.position for row in desk.results()] == list(range(len(desk.ran)))


def test_without_a_comparison_every_mean_counts(desk: Desk) -> None:
    desk.is_up = True
    desk.seconds = varying
    ran = desk("run", "wordcount", "--until", "3 %", "--at-most", "9")

    assert max(trial.repetition for trial in desk.ran) == 9
    assert "stopped at 9 runs of each cell, the most allowed" in ran.stderr
    assert "wordcount on spark (±" in ran.stderr


def test_a_campaign_of_starts_adds_whole_starts(desk: Desk, pair: Callable[..., str]) -> None:
    desk.seconds = varying
    desk("run", pair('starts = 2\nuntil = "3 %"'))

    runs = [(start, len(list(rows))) for start, rows in groupby(desk.ran, lambda row: row.start)]
    assert len(runs) >= 4  # two values have no interval
    assert {count for _, count in runs} == {4}
    assert all(len(ids) == 1 for ids in start_ids(desk).values())
    assert len(set.union(*start_ids(desk).values())) == len(runs)


def test_a_killed_campaign_decides_what_it_would_have_decided(
    desk: Desk, pair: Callable[..., str]
) -> None:
    desk.seconds = varying
    path = pair('until = "3 %"')
    desk("run", path)
    whole = [(row.trial.engine, row.trial.repetition) for row in desk.results()]
    runs = len(whole)

    for after in (1, 4, 5, runs - 1):
        desk.ran.clear()
        time.sleep(1 - time.time() % 1)  # campaigns are ordered by the second they began in
        break_off(desk, path, after, "--new")
        desk("run", path, "--resume")
        campaign = desk.campaigns()[-1]
        with Store.open(desk.home, read_only=True) as store:
            found = store.results(campaign.id)
        assert [(row.trial.engine, row.trial.repetition) for row in found] == whole
        assert all(row.attempt and row.attempt.state == "ok" for row in found)


def test_a_campaign_killed_between_two_rounds_goes_on(
    desk: Desk, pair: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.seconds = varying
    path = pair('until = "3 %"')
    with monkeypatch.context() as patch:
        patch.setattr("boardcluster.campaign.life.next_round", lambda *_: rounds.Round())
        desk("run", path)
    assert len(desk.ran) == 4
    with pytest.raises(UsageError, match="is not finished: 4 of 4 runs are ok"):
        desk("run", path)

    desk("run", path, "--continue")

    assert len(desk.campaigns()) == 1
    assert len(desk.ran) > 8
    with pytest.raises(EmptySelectionError, match="nothing left to run"):
        desk("run", path, "--resume")


def test_what_is_left_out_by_only_holds_the_decision_up(
    desk: Desk, pair: Callable[..., str]
) -> None:
    desk.seconds = varying
    path = pair('until = "3 %"')
    desk("run", path, "--only", "engine=spark")
    assert len(desk.ran) == 2

    desk("run", path, "--resume")

    assert len(desk.ran) > 8


def test_cells_that_always_fail_do_not_run_for_ever(desk: Desk) -> None:
    desk.is_up = True
    desk.ends["wordcount"] = bad()

    with pytest.raises(RunError, match="3 of 3 runs have no verified result"):
        desk("run", "wordcount", "--engine", "spark", "--until", "3 %")

    assert len(desk.ran) == 3


def test_a_campaign_continues_as_it_was_begun(desk: Desk, pair: Callable[..., str]) -> None:
    path = pair()
    break_off(desk, path, 1, "--starts", "2")
    with pytest.raises(UsageError, match="was begun with starts 2, not starts 3"):
        desk("run", path, "--resume", "--starts", "3")
    with pytest.raises(UsageError, match="was begun with no precision, not until 3 %"):
        desk("run", path, "--resume", "--until", "3 %")

    desk("run", path, "--resume")

    assert {trial.start for trial in desk.ran} == {1, 2}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--until", "3"), '--until: "3" is not valid; allowed: a percentage'),
        (("--until", "0 %"), "allowed: a percentage"),
        (("--at-most", "9"), "has no effect without a precision"),
        (("--until", "3 %", "--at-most", "2"), "but 3 are planned first\n"),
        (("--until", "3 %", "--at-most", "2", "--starts", "3"), "first (3 in each of 3 starts)\n"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], message: str, desk: Desk) -> None:
    desk.is_up = True
    with pytest.raises(UsageError, match=re.escape(message)):
        desk("run", "wordcount", *words)
    assert desk.ran == []


def test_several_variants_need_several_starts(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "workers.toml"
    text = '[campaign]\nname = "w"\nuntil = "3 %"\n{more}[[matrix]]\nworkload = "pi"\n'
    path.write_text((text + "workers = [1, 4]\n").format(more=""))
    with pytest.raises(UsageError, match="a precision with 2 variants of the cluster needs"):
        desk("run", str(path))
    path.write_text((text + "workers = [1, 4]\n").format(more="starts = 2\n"))
    desk("run", str(path))

    for start in {trial.start for trial in desk.ran}:
        workers = [trial.workers for trial in desk.ran if trial.start == start]
        assert len([key for key, _ in groupby(workers)]) == 2  # each variant once in each start


def test_a_comparison_that_no_cells_can_make_is_refused(
    desk: Desk, pair: Callable[..., str]
) -> None:
    path = Path(pair())
    path.write_text(
        path.read_text()
        + '[[matrix]]\nworkload = "pi"\n[[comparison]]\nof = "engine"\n'
        + 'levels = ["spark", "mapreduce"]\nwhere = { workload = "pi", workers = 2 }\n'
    )
    with pytest.raises(UsageError, match="engine mapreduce cannot be compared with spark"):
        desk("run", str(path))
    assert desk.campaigns() == ()


# What it will take


def test_a_dry_run_says_what_a_precision_needs(desk: Desk, pair: Callable[..., str]) -> None:
    desk.seconds = varying
    path = pair()
    unknown = desk("run", path, "--dry-run", "--until", "3 %").stdout
    assert "is unknown until each of these has been measured twice here" in unknown
    desk("run", path)
    before = len(desk.ran)

    said = desk("run", path, "--dry-run", "--until", "3 %").stdout

    assert len(desk.ran) == before
    assert "what 95 % intervals within ±3 % need" in said
    assert "wordcount: spark against mapreduce" in said
    [runs] = re.findall(r"about (\d+) runs of each cell, from how earlier runs varied", said)
    assert 4 <= int(runs) <= 20
    assert f"time for these {2 * int(runs)} runs: about" in said
    tight = desk("run", path, "--dry-run", "--until", "0.1 %").stdout
    assert "about 20 runs of each cell, the most allowed, which is not enough" in tight


def test_a_dry_run_of_starts_says_that_they_are_unknown(
    desk: Desk, pair: Callable[..., str]
) -> None:
    desk.seconds = varying
    desk("run", pair())
    said = desk("run", pair(), "--dry-run", "--until", "3 %", "--starts", "2").stdout
    assert "how starts differ is unknown" in said
    desk("run", pair(), "--starts", "3")
    said = desk("run", pair(), "--dry-run", "--until", "3 %", "--starts", "2").stdout
    assert "how starts differ is unknown" not in said


def test_a_dry_run_as_json_has_the_forecast(desk: Desk, pair: Callable[..., str]) -> None:
    desk.seconds = varying
    desk("run", pair())
    found = desk.json("run", pair(), "--dry-run", "--until", "5 %")
    assert found["precision"]["precision"] == 0.05
    [forecast] = found["precision"]["forecasts"]
    assert forecast["needed"] >= 4
    assert found["precision_outlook"]["runs"] >= 8
    assert desk.json("run", pair(), "--dry-run")["precision"] is None


def test_one_start_that_a_resume_made_two_of_is_said_where_it_ends(
    desk: Desk, pair: Callable[..., str]
) -> None:
    desk.seconds = varying
    path = pair('until = "3 %"')
    break_off(desk, path, 5)

    ran = desk("run", path, "--resume")

    assert start_ids(desk) == {1: {"start-1", "start-2"}}
    assert "its runs are of 2 starts of the cluster" in " ".join(ran.stderr.split())
