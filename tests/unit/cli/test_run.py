"""``run``: one workload or a campaign file, what it refuses, and how it goes on."""

import hashlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.builders import make_dataset
from tests.unit.cli.desk import Desk, bad

from boardcluster.campaign.driver import now_utc
from boardcluster.campaign.fingerprint import take_fingerprint
from boardcluster.cli.options import parse_size_option
from boardcluster.errors import (
    CapacityError,
    ClusterError,
    ClusterNotUpError,
    EmptySelectionError,
    InputError,
    MeterError,
    RemoteError,
    RunError,
    SpecError,
    UsageError,
)
from boardcluster.records import AttemptState, CampaignKind, Dataset, Engine, Trial
from boardcluster.store import Store
from boardcluster.units import format_seconds

SMALL = """\
[campaign]
name = "small"
repetitions = 2

[[matrix]]
workload = ["wordcount", "teragen"]
engine = "mapreduce"
size = "1 MB"
"""
FORMS = """\
[campaign]
name = "forms"
repetitions = 1

[[matrix]]
workload = "teragen"
engine = "mapreduce"
size = "1 MB"
workers = [1, 4]
"""


@pytest.fixture
def up(desk: Desk) -> Desk:
    desk.is_up = True
    return desk


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return str(path)


@pytest.fixture
def forms(tmp_path: Path) -> str:
    path = tmp_path / "forms.toml"
    path.write_text(FORMS)
    return str(path)


# One workload.


def test_a_workload_runs_on_the_cluster_as_it_is(up: Desk) -> None:
    ran = up("run", "wordcount", "--size", "64MB", "--repetitions", "2", "--seed", "5")

    assert up.calls == ["attach"]  # never brought up or down
    (campaign,) = up.campaigns()
    assert (campaign.kind, campaign.seed, campaign.name) == (CampaignKind.RUN, 5, "")
    assert (campaign.cluster, campaign.emulated) == ("demo", True)
    assert (campaign.dataset, campaign.dataset_sha256) == ("airline-64000000", "cd" * 32)
    assert sorted((trial.engine, trial.repetition) for trial in up.ran) == [
        (Engine.MAPREDUCE, 1),
        (Engine.MAPREDUCE, 2),
        (Engine.SPARK, 1),
        (Engine.SPARK, 2),
    ]
    assert {(trial.size_bytes, trial.workers, trial.profile) for trial in up.ran} == {
        (64_000_000, 4, "default")
    }
    assert [row.attempt and row.attempt.state for row in up.results()] == [AttemptState.OK] * 4
    assert "wordcount" in ran.stdout
    assert f"campaign {campaign.id}: 4 runs, seed 5" in ran.stderr
    assert "run 4 of 4: ok, 20.0 s, 3 records verified" in ran.stderr


def test_what_is_not_said_has_defaults(up: Desk) -> None:
    up("run", "wordcount", "--engine", "spark")

    assert [trial.repetition for trial in up.ran] == [1, 2, 3]
    assert {(trial.size_bytes, trial.engine) for trial in up.ran} == {(256_000_000, Engine.SPARK)}
    [campaign] = up.campaigns()
    assert (campaign.starts, campaign.precision, campaign.repetitions_max) == (1, None, 0)


def test_seed_0_is_a_seed(up: Desk) -> None:
    up("run", "wordcount", "--seed", "0", "--repetitions", "1")

    assert up.campaigns()[0].seed == 0


def test_a_workload_needs_a_running_cluster(desk: Desk) -> None:
    with pytest.raises(ClusterNotUpError):
        desk("run", "wordcount")

    assert desk.campaigns() == ()


def test_no_cluster_at_all_is_said_before_anything_is_written(
    desk: Desk, small: str, tmp_path: Path
) -> None:
    desk.home = tmp_path / "nowhere"

    for words in (("wordcount",), (small,), (small, "--dry-run")):
        with pytest.raises(ClusterNotUpError, match="there is no cluster in"):
            desk("run", *words)
    assert not desk.home.exists()


def test_parameters_are_of_the_workload_with_or_without_its_name(up: Desk) -> None:
    with pytest.raises(UsageError, match="wordcount has no parameter 'colour'"):
        up("run", "wordcount", "--set", "colour=red")
    with pytest.raises(UsageError, match="teragen has no parameter 'wordcount"):
        up("run", "teragen", "--set", "wordcount.colour=red")

    assert up.campaigns() == ()


def test_parameters_reach_the_trials(up: Desk) -> None:
    words = ("--size", "1MB", "--repetitions", "1", "--engine", "mapreduce")

    up("run", "teragen", *words, "--set", "maps=3")
    up("run", "teragen", *words, "--set", "teragen.maps=4")
    up("run", "teragen", *words)

    assert [trial.parameters for trial in up.ran] == [
        {"teragen.maps": "3"},
        {"teragen.maps": "4"},
        {},
    ]


def test_a_wrong_value_of_a_parameter_is_refused(up: Desk) -> None:
    with pytest.raises(UsageError, match=r"teragen\.maps = 'x'; allowed: "):
        up("run", "teragen", "--set", "maps=x")


def test_settings_reach_the_trials_of_the_engine_that_reads_them(up: Desk) -> None:
    words = ("--size", "1MB", "--repetitions", "1")
    up("run", "teragen", *words, "--setting", "spark.executor.cores=1")

    assert {trial.engine: trial.settings for trial in up.ran} == {
        Engine.MAPREDUCE: {},
        Engine.SPARK: {"spark.executor.cores": "1"},
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("spark.executor.cors=1", r"--setting spark\.executor\.cors=1: .*spark\.executor\.cores"),
        ("dfs.heartbeat.interval=5", "dfs.heartbeat.interval is read by the daemons"),
        ("spark.executor.cores", "is not KEY=VALUE"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(text: str, words: str, up: Desk) -> None:
    with pytest.raises(UsageError, match=words):
        up("run", "teragen", "--setting", text)

    assert up.campaigns() == ()


def test_a_setting_that_no_chosen_engine_reads_is_refused(up: Desk) -> None:
    words = ("--engine", "mapreduce", "--setting", "spark.executor.cores=1")
    with pytest.raises(UsageError, match=r"without effect on jobs of mapreduce: spark\.executor"):
        up("run", "teragen", *words)

    assert up.campaigns() == ()


def test_settings_of_a_file_are_checked(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(SMALL + '[matrix.settings]\n"dfs.blocksiz" = "32 MiB"\n')

    with pytest.raises(SpecError, match=r"dfs\.blocksize"):
        desk("run", str(path))


def test_a_size_that_says_nothing_is_refused(up: Desk) -> None:
    with pytest.raises(UsageError, match="a size has no effect: pi takes no input"):
        up("run", "pi", "--size", "1GB")


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_missing_text_is_refused_before_anything_starts(
    more: tuple[str, ...], up: Desk, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="no such file"):
        up("run", "grep", "--size", "1MB", "--input", str(tmp_path / "absent"), *more)

    assert up.campaigns() == ()


@pytest.mark.parametrize("text", ["seed", "=4", " =4"])
def test_a_parameter_without_name_or_value_is_refused(text: str, up: Desk) -> None:
    with pytest.raises(UsageError, match="is not NAME=VALUE") as caught:
        up("run", "teragen", "--set", text)

    assert "--set seed=2" in caught.value.hint


@pytest.mark.parametrize(
    ("option", "given"),
    [
        ("--set", ["maps=2", "maps=4"]),
        ("--setting", ["dfs.blocksize=1MiB", "dfs.blocksize=2MiB"]),
    ],
)
def test_a_second_value_is_refused_instead_of_the_first_ignored(
    option: str, given: list[str], up: Desk
) -> None:
    with pytest.raises(UsageError, match="is given twice") as caught:
        up("run", "pi", *(word for text in given for word in (option, text)))

    assert "a campaign file" in caught.value.hint
    assert up.calls == []


@pytest.mark.parametrize("option", ["--resume", "--retry-failed", "--new"])
def test_options_of_campaign_files_are_refused_for_a_workload(option: str, up: Desk) -> None:
    with pytest.raises(UsageError, match=f"{option} cannot be used with a workload"):
        up("run", "wordcount", option)

    assert up.calls == []


def test_an_engine_that_a_workload_lacks_is_refused(up: Desk) -> None:
    with pytest.raises(UsageError, match="wordcount does not run on mpi") as caught:
        up("run", "wordcount", "--engine", "mpi")

    assert caught.value.hint == "its engines: mapreduce, spark"


def test_an_unknown_workload_is_refused(up: Desk) -> None:
    with pytest.raises(UsageError, match="no workload 'word-count'"):
        up("run", "word-count")


def test_a_text_for_a_workload_that_reads_none_is_refused(up: Desk, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="teragen reads no text"):
        up("run", "teragen", "--input", str(tmp_path / "text"))


@pytest.mark.parametrize(("size", "lines"), [((), 9), (("--size", "12"), 3)])
def test_a_text_of_ones_own_is_read_whole_unless_a_size_is_given(
    size: tuple[str, ...], lines: int, up: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.txt").write_text("a b\n" * 9)
    monkeypatch.chdir(tmp_path)
    words = ("run", "wordcount", "--engine", "spark", "--repetitions", "1")

    up(*words, "--input", "text.txt", *size)

    (campaign,) = up.campaigns()
    assert campaign.dataset_sha256 == hashlib.sha256(b"a b\n" * lines).hexdigest()
    assert up.ran[0].input == str(tmp_path / "text.txt")


@pytest.mark.parametrize("size", ["0", "-5MB", "much", ""])
def test_a_size_that_is_none_is_refused(size: str, up: Desk) -> None:
    with pytest.raises(UsageError, match="--size"):
        up("run", "wordcount", f"--size={size}")


def test_sizes_of_options() -> None:
    assert parse_size_option(None) is None
    assert parse_size_option("64 MB") == 64_000_000


def test_what_cannot_run_is_refused_with_every_reason(
    up: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boardcluster.campaign.life.free_bytes", lambda *_: (1000, {}))

    with pytest.raises(CapacityError, match="this cannot run:\n  the inputs need") as caught:
        up("run", "wordcount")

    assert "--dry-run" in caught.value.hint
    assert (up.campaigns(), up.ran) == ((), [])


def test_runs_without_a_verified_result_are_an_error_at_the_end(up: Desk) -> None:
    up.ends["wordcount"] = bad()

    with pytest.raises(RunError, match="2 of 2 runs have no verified result"):
        up("run", "wordcount", "--repetitions", "1")

    assert len(up.ran) == 2


def test_only_of_a_workload_leaves_the_others_pending(up: Desk) -> None:
    up("run", "wordcount", "--only", "engine=spark", "--repetitions", "1")

    assert [trial.engine for trial in up.ran] == [Engine.SPARK]
    states = [row.attempt and row.attempt.state for row in up.results()]
    assert sorted(map(str, states)) == ["None", "ok"]


# A campaign file.


def test_a_file_runs_in_every_form_it_needs_and_leaves_a_down_cluster_down(
    desk: Desk, forms: str
) -> None:
    ran = desk("run", forms)

    assert sorted(trial.workers for trial in desk.ran) == [1, 4]
    workers = [call.workers for call in desk.calls if hasattr(call, "workers")]
    assert workers == [trial.workers for trial in desk.ran]
    assert desk.calls[-1] == "down"
    (campaign,) = desk.campaigns()
    assert (campaign.name, len(campaign.spec_sha256)) == ("forms", 64)
    assert "2 runs of 2 cells on 2 variants of the cluster" in ran.stderr


def test_a_cluster_that_was_up_comes_back(up: Desk, forms: str) -> None:
    up("run", forms)

    assert (up.is_up, up.form and up.form.workers) in ((True, None), (True, 4))
    assert "down" not in up.calls


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--engine", "spark"),
        ("--size", "1MB"),
        ("--input", "x"),
        ("--set", "a=b"),
        ("--setting", "spark.executor.cores=2"),
        ("--repetitions", "2"),
        ("--timeout", "9"),
    ],
)
def test_options_of_a_workload_are_refused_for_a_file(
    option: str, value: str, desk: Desk, small: str
) -> None:
    with pytest.raises(UsageError, match=f"{option} cannot be used with a campaign file") as caught:
        desk("run", small, option, value)

    assert "boardcluster run --help" in caught.value.hint
    assert (desk.calls, desk.campaigns()) == ([], ())


def test_all_refused_options_are_named_at_once(desk: Desk, small: str) -> None:
    with pytest.raises(UsageError, match="--size, --timeout cannot be used with"):
        desk("run", small, "--timeout", "7", "--size", "1MB")


def test_a_missing_or_wrong_file_is_a_spec_error(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(SpecError):
        desk("run", str(tmp_path / "absent.toml"))
    path = tmp_path / "wrong.toml"
    path.write_text(SMALL.replace("wordcount", "wordcuont"))
    with pytest.raises(SpecError, match="wordcount"):
        desk("run", str(path))


def test_resume_and_new_contradict_each_other(desk: Desk, small: str) -> None:
    with pytest.raises(UsageError, match="contradict"):
        desk("run", small, "--resume", "--new")


def test_failed_trials_are_run_again_only_by_what_goes_on(desk: Desk, small: str) -> None:
    with pytest.raises(UsageError, match="--retry-failed needs --resume or --continue"):
        desk("run", small, "--retry-failed")


def break_off(desk: Desk, small: str, *words: str) -> str:
    """Run until the first teragen, which Ctrl-C interrupts; return the campaign's id."""
    desk.ends["teragen"] = KeyboardInterrupt()
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        raise SystemExit(desk("run", small, *words).exit_code)
    del desk.ends["teragen"]
    return desk.campaigns()[-1].id


def test_an_unfinished_campaign_is_in_the_way(desk: Desk, small: str) -> None:
    first = break_off(desk, small)
    before = len(desk.ran)

    with pytest.raises(UsageError, match=rf"campaign {first} of 'small' is not finished: \d of 4"):
        desk("run", small)

    assert len(desk.ran) == before
    assert len(desk.campaigns()) == 1


def test_an_unfinished_campaign_of_an_edited_file_says_so(desk: Desk, small: str) -> None:
    break_off(desk, small)
    Path(small).write_text(SMALL.replace("repetitions = 2", "repetitions = 3"))

    with pytest.raises(
        UsageError, match=r"the file, cluster\.toml or a file of .* was edited"
    ) as caught:
        desk("run", small)
    assert caught.value.hint == (
        "restore what was edited and continue with --resume, or start a new one with --new"
    )
    with pytest.raises(UsageError, match="its runs would not be comparable"):
        desk("run", small, "--resume")


def test_a_comment_is_no_edit(desk: Desk, small: str) -> None:
    break_off(desk, small)
    Path(small).write_text("# a comment\n" + SMALL)

    desk("run", small, "--resume")


def test_the_file_is_registered_before_the_first_run(desk: Desk, small: str) -> None:
    first = break_off(desk, small)
    Path(small).write_text("# a comment\n" + SMALL)
    desk("run", small, "--resume")

    [campaign] = desk.campaigns()
    assert campaign.file_sha256 == hashlib.sha256(SMALL.encode()).hexdigest()
    with Store.open(desk.home, read_only=True) as store:
        assert store.campaign_file(first) == SMALL.encode()  # as it was, whatever it is now
        planned = [row.attempt.started_utc for row in store.results() if row.attempt]
    assert campaign.created_utc <= min(planned)


def test_resume_runs_what_is_left_of_the_same_campaign(desk: Desk, small: str) -> None:
    first = break_off(desk, small)
    done = {row.trial.id for row in desk.results() if row.attempt and row.attempt.state == "ok"}
    desk.ran.clear()

    desk("run", small, "--resume")

    assert {trial.id for trial in desk.ran}.isdisjoint(done)
    assert [campaign.id for campaign in desk.campaigns()] == [first]
    assert len(desk.ran) == 4 - len(done)
    assert [trial.position for trial in desk.ran] == sorted(trial.position for trial in desk.ran)
    assert all(row.attempt and row.attempt.state == "ok" for row in desk.results())


def test_another_text_is_not_gone_on_with(
    desk: Desk, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_off(desk, small)
    desk.ran.clear()

    def edited(*, size_bytes: int, **_: object) -> Dataset:
        return make_dataset(desk.home / "text", size_bytes=size_bytes, sha256="ef" * 32)

    monkeypatch.setattr("boardcluster.campaign.texts.prepare_airline", edited)
    for start in ("--resume", "--continue"):
        with pytest.raises(UsageError, match=r"the text .* is not the one that campaign .* began"):
            desk("run", small, start, "--only", "workload=wordcount")
    assert desk.ran == []
    desk("run", small, "--resume", "--only", "workload=teragen")  # it reads no text
    desk("run", small, "--new")


def test_new_starts_anew_beside_the_unfinished_one(desk: Desk, small: str) -> None:
    break_off(desk, small)
    desk.ran.clear()

    desk("run", small, "--new")

    assert len(desk.ran) == 4
    assert len(desk.campaigns()) == 2


def test_a_finished_campaign_is_not_in_the_way(desk: Desk, small: str) -> None:
    desk("run", small)
    desk("run", small)

    assert len(desk.campaigns()) == 2


def test_nothing_to_resume(desk: Desk, small: str) -> None:
    with pytest.raises(UsageError, match="there is no campaign 'small' to resume"):
        desk("run", small, "--resume")

    desk("run", small)
    with pytest.raises(
        EmptySelectionError, match="there is nothing left to run of campaign"
    ) as caught:
        desk("run", small, "--resume")
    assert "results --campaign" in caught.value.hint


def test_continue_begins_goes_on_and_ends(desk: Desk, small: str) -> None:
    """So that a timer can call it: the same words do what is right in each state."""
    first = break_off(desk, small, "--continue")  # not begun: it begins
    done = {row.trial.id for row in desk.results() if row.measurement}
    desk.ran.clear()

    assert desk("run", small, "--continue").exit_code == 0  # unfinished: it goes on
    assert [campaign.id for campaign in desk.campaigns()] == [first]
    assert len(desk.ran) == 4 - len(done)

    desk.ran.clear()
    desk.calls.clear()
    ran = desk("run", small, "--continue")  # finished: it says so
    assert ran.exit_code == 0
    assert f"nothing is left to run of campaign {first}: 4 of 4 runs are ok" in ran.stdout
    assert (desk.ran, [call for call in desk.calls if call != "attach"]) == ([], [])
    shown = desk("run", small, "--continue", "--dry-run")
    assert f"nothing is left to run of campaign {first}" in shown.stdout
    assert desk.json("run", small, "--continue")["summary"]["ok"] == 4


def test_continue_runs_failed_trials_again_only_if_asked(desk: Desk, small: str) -> None:
    desk.ends["teragen"] = bad()
    with pytest.raises(RunError, match="2 of 4 runs"):
        desk("run", small, "--continue")
    desk.ran.clear()
    desk.ends.clear()

    ran = desk("run", small, "--continue")
    assert (ran.exit_code, desk.ran) == (0, [])
    assert "2 of 4 runs are ok, 2 failed" in ran.stdout
    desk("run", small, "--continue", "--retry-failed")
    assert [trial.workload for trial in desk.ran] == ["teragen", "teragen"]


def test_continue_with_a_selection_ends_when_that_is_done(desk: Desk, small: str) -> None:
    words = ("--continue", "--only", "workload=teragen")
    for runs in (2, 0):
        desk.ran.clear()
        ran = desk("run", small, *words)
        assert (ran.exit_code, len(desk.ran)) == (0, runs)
    assert len(desk.campaigns()) == 1
    for shown in (ran, desk("run", small, *words, "--dry-run")):
        assert "nothing that --only selects is left to run of campaign" in shown.stdout


def test_continue_begins_anew_only_after_an_edit_of_a_finished_file(desk: Desk, small: str) -> None:
    break_off(desk, small)
    Path(small).write_text(SMALL.replace("1 MB", "2 MB"))
    with pytest.raises(UsageError, match="was edited since"):
        desk("run", small, "--continue")
    Path(small).write_text(SMALL)
    desk("run", small, "--continue")

    Path(small).write_text(SMALL.replace("1 MB", "2 MB"))
    desk("run", small, "--continue")
    assert len(desk.campaigns()) == 2


def test_failed_trials_are_run_again_only_when_asked(desk: Desk, small: str) -> None:
    desk.ends["teragen"] = bad()
    with pytest.raises(RunError, match="2 of 4 runs have no verified result"):
        desk("run", small)
    desk.ends.clear()
    desk.ran.clear()

    with pytest.raises(EmptySelectionError, match="nothing left to run"):
        desk("run", small, "--resume")
    assert desk.ran == []
    desk("run", small, "--resume", "--retry-failed")

    assert [trial.workload for trial in desk.ran] == ["teragen", "teragen"]
    numbers = {row.trial.workload: row.attempt and row.attempt.number for row in desk.results()}
    assert numbers == {"wordcount": 1, "teragen": 2}


def test_invalid_trials_are_run_again_by_a_resume(desk: Desk, small: str) -> None:
    desk.ends["teragen"] = bad(AttemptState.INVALID)
    with pytest.raises(RunError):
        desk("run", small)
    desk.ends.clear()
    desk.ran.clear()

    desk("run", small, "--resume")

    assert [trial.workload for trial in desk.ran] == ["teragen", "teragen"]


def test_only_a_part_of_a_campaign(desk: Desk, small: str) -> None:
    desk("run", small, "--only", "workload=teragen", "--only", "repetition=1")

    (trial,) = desk.ran
    assert (trial.workload, trial.repetition) == ("teragen", 1)
    assert len(desk.results()) == 4  # the others are planned and pending
    desk.ran.clear()
    desk("run", small, "--resume", "--only", "workload=teragen")
    assert [(trial.workload, trial.repetition) for trial in desk.ran] == [("teragen", 2)]
    with pytest.raises(EmptySelectionError, match="nothing that --only selects is left to run"):
        desk("run", small, "--resume", "--only", "workload=teragen")


def test_a_selection_of_nothing_is_never_a_success(desk: Desk, small: str) -> None:
    for words in (("--only", "workload=pi"), ("--only", "workload=pi", "--dry-run")):
        with pytest.raises(EmptySelectionError, match="no run of the campaign has workload pi"):
            desk("run", small, *words)
    with pytest.raises(UsageError, match="--only colour=red"):
        desk("run", small, "--only", "colour=red")

    assert desk.campaigns() == ()


def test_only_what_is_selected_is_checked_for_room(
    desk: Desk, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two replicas of 1 MB of text, four times as much to run it, and two of what it writes.
    monkeypatch.setattr("boardcluster.campaign.life.free_bytes", lambda *_: (6_900_000, {}))

    with pytest.raises(CapacityError):
        desk("run", small, "--only", "workload=wordcount", "--dry-run")
    desk("run", small, "--only", "workload=teragen", "--dry-run")


def test_a_dry_run_touches_nothing_and_needs_no_cluster(desk: Desk, small: str) -> None:
    before = desk.files()

    ran = desk("run", small, "--dry-run")

    assert desk.files() == before
    assert (desk.calls, desk.ran, desk.texts) == ([], [], [])
    assert "4 runs of 2 cells on 1 variant of the cluster" in ran.stdout
    assert "unknown, because nothing similar was measured" in ran.stdout


def test_a_dry_run_of_a_workload(desk: Desk) -> None:
    ran = desk("run", "wordcount", "--dry-run", "--size", "1MB")

    assert "6 runs of 2 cells" in ran.stdout
    assert desk.calls == []


def test_a_dry_run_knows_how_long_it_took_before(desk: Desk, small: str) -> None:
    desk("run", small)
    desk.calls.clear()

    ran = desk("run", small, "--dry-run")

    assert f"time: about {format_seconds(80.0)} for the jobs, from earlier runs" in ran.stdout
    assert desk.calls == []
    assert len(desk.campaigns()) == 1


def test_a_dry_run_in_json_lists_every_trial(desk: Desk, small: str) -> None:
    found = desk.json("run", small, "--dry-run")

    assert len(found["trials"]) == 4
    assert [trial["position"] for trial in found["trials"]] == [0, 1, 2, 3]
    assert found["outlook"]["runs"] == 4
    assert found["policy"]["timeout_seconds"] == 3600


def test_a_dry_run_of_what_cannot_run_shows_it_and_is_an_error(
    desk: Desk, forms: str, tmp_path: Path
) -> None:
    Path(forms).write_text(FORMS.replace("[1, 4]", "[1, 9]"))

    with pytest.raises(CapacityError, match="9 workers with the master declared"):
        desk("run", forms, "--dry-run")
    with pytest.raises(CapacityError, match="9 workers with the master declared"):
        desk("run", forms)

    assert (desk.campaigns(), desk.ran) == ((), [])


def test_json_of_a_run_holds_campaign_summary_and_results(up: Desk) -> None:
    found = up.json("run", "wordcount", "--repetitions", "1")

    assert found["summary"]["ok"] == 2
    assert found["campaign"]["id"] == up.campaigns()[0].id
    assert len(found["results"]) == 2


@pytest.mark.parametrize("was_up", [True, False])
def test_after_a_loss_the_campaign_can_be_resumed(was_up: bool, desk: Desk, small: str) -> None:
    desk.is_up = was_up
    desk.ends["wordcount"] = bad(AttemptState.INVALID, lost="node worker2")

    with pytest.raises(ClusterError, match="lost during campaign") as caught:
        desk("run", small)

    assert caught.value.hint.endswith("continue with `boardcluster run FILE --resume`")
    assert ("down" in desk.calls) is not was_up
    desk.ends.clear()
    desk("run", small, "--resume")
    assert all(row.attempt and row.attempt.state == "ok" for row in desk.results())


@pytest.mark.parametrize("was_up", [True, False])
def test_a_resume_warms_daemons_up_again_that_were_started_since(
    was_up: bool, desk: Desk, small: str
) -> None:
    text = SMALL.replace("repetitions = 2", "repetitions = 2\nwarm_ups = 1\nseed = 1")
    Path(small).write_text(text.replace('["wordcount", "teragen"]', '"wordcount"'))
    desk.is_up = was_up
    ran = iter(range(9))

    def seconds(_: Trial) -> float:
        if next(ran) == 2:
            raise KeyboardInterrupt
        return 20.0

    desk.seconds = seconds
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        raise SystemExit(desk("run", small).exit_code)
    said = desk("run", small, "--resume").stderr

    names = [trial.id.rpartition("-")[2] for trial in desk.ran]
    assert names == ["w1", "1", "2", *([] if was_up else ["w1"]), "2"]
    assert ("once more: wordcount on mapreduce, 1 MB, warm-up" in said) is not was_up
    assert all(row.attempt and row.attempt.state == "ok" for row in desk.results())


def test_after_a_loss_a_single_workload_is_run_again(up: Desk) -> None:
    up.ends["wordcount"] = bad(AttemptState.INVALID, lost="node worker2")

    with pytest.raises(ClusterError, match="lost during campaign") as caught:
        up("run", "wordcount")

    assert caught.value.hint.endswith(", then run the command again")


def test_ctrl_c_leaves_down_what_was_down(desk: Desk, small: str) -> None:
    break_off(desk, small)

    assert desk.calls[-1] == "down"
    states = [row.attempt.state for row in desk.results() if row.attempt]
    assert AttemptState.INVALID in states


def left_running(desk: Desk, small: str) -> str:
    """Leave a campaign as a driver does that is killed in the middle; return the trial's id."""
    break_off(desk, small)
    campaign = desk.campaigns()[-1]
    with Store.open(desk.home) as store:
        pending = next(
            row.trial
            for row in store.results(campaign.id)
            if row.attempt is None or row.attempt.state is AttemptState.INVALID
        )
        store.begin_attempt(pending.id, take_fingerprint(desk.live()), now_utc())
    return pending.id


@pytest.mark.parametrize("is_up", [True, False])
def test_what_a_killed_driver_left_is_ended_and_run_again(
    is_up: bool, desk: Desk, small: str
) -> None:
    trial = left_running(desk, small)
    desk.is_up = is_up

    desk("run", small, "--resume")

    assert [tag.rpartition("-")[0] for tag in desk.ended] == ([trial] if is_up else [])
    assert all(row.attempt and row.attempt.state == "ok" for row in desk.results())


def test_what_a_killed_driver_left_and_does_not_end_takes_the_cluster_down(
    desk: Desk, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_running(desk, small)
    desk.is_up = True
    desk.calls.clear()

    def refuse(*_: object) -> None:
        raise RemoteError("YARN still runs what was submitted")

    monkeypatch.setattr("boardcluster.campaign.upkeep.end_submission", refuse)
    desk("run", small, "--resume")

    assert desk.calls[:2] == ["attach", "down"]
    assert all(row.attempt and row.attempt.state == "ok" for row in desk.results())


@pytest.mark.parametrize(("answer", "runs"), [("y\n", 4), ("\n", 4), ("n\n", 0), ("", 0)])
def test_on_a_terminal_a_campaign_asks_before_it_starts(
    answer: str, runs: int, desk: Desk, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(
        "boardcluster.cli.run.sys", SimpleNamespace(stdin=terminal, stderr=terminal)
    )

    ran = desk("run", small, text=answer)

    assert "Start?" in ran.stderr
    assert len(desk.ran) == runs
    assert len(desk.campaigns()) == (1 if runs else 0)
    assert ran.exit_code == 0


def test_yes_does_not_ask(desk: Desk, small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(
        "boardcluster.cli.run.sys", SimpleNamespace(stdin=terminal, stderr=terminal)
    )

    assert "Start?" not in desk("run", small, "--yes").stderr
    assert len(desk.ran) == 4


def test_a_meters_missing_secret_is_said_before_anything_starts(desk: Desk, small: str) -> None:
    with (desk.home / "cluster.toml").open("a") as stream:
        stream.write(
            '\n[[meter]]\nname = "plug"\nkind = "shelly"\nnodes = "all"\n'
            'url = "http://127.0.0.1:9"\npassword_variable = "NO_SUCH_VARIABLE"\n'
        )
    with pytest.raises(MeterError, match="NO_SUCH_VARIABLE"):
        desk("run", small)
    assert desk.ran == []
