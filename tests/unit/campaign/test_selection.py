"""Part of a campaign by ``--only``: exact, never silently empty."""

from dataclasses import replace
from itertools import product

import pytest
from tests.builders import make_trial

from boardcluster.campaign import selection
from boardcluster.campaign.selection import SELECTION_KEYS, parse_only, select
from boardcluster.errors import EmptySelectionError, UsageError
from boardcluster.factors import FACTORS_BY_NAME
from boardcluster.records import Checksum, Engine, MasterPlacement, Trial

TRIALS = tuple(
    make_trial(
        id=f"t{number}", position=number, workload=workload, engine=engine, workers=workers,
        repetition=repetition, warm_up=warm_up, size_bytes=10**9,
        concurrency=1 + workload.count("+"),
    )
    for number, (workload, engine, workers, (repetition, warm_up)) in enumerate(
        product(
            ("grep", "wordcount", "grep+grep"),
            (Engine.MAPREDUCE, Engine.SPARK),
            (1, 2, 4),
            ((1, True), (1, False), (2, False), (3, False)),
        )
    )
)  # fmt: skip


def chosen(*texts: str) -> tuple[Trial, ...]:
    return select(TRIALS, parse_only(texts))


def test_every_key_is_read() -> None:
    read = parse_only(
        [
            "workload=grep,grep x2",
            "engine=spark",
            "profile=paper-2026,my own",
            "size=1 GB, 64MB,0",
            "workers=4",
            "concurrency=1",
            "replication=0,3",
            "checksum=null",
            "master=combined",
            "repetition=12",
        ]
    )
    assert read == {
        "workload": ("grep", "grep+grep"),
        "engine": (Engine.SPARK,),
        "profile": ("paper-2026", "my own"),
        "size": (10**9, 64_000_000, 0),
        "workers": (4,),
        "concurrency": (1,),
        "replication": (0, 3),
        "checksum": (Checksum.NULL,),
        "master": (MasterPlacement.COMBINED,),
        "repetition": (12,),
    }
    assert set(read) <= set(SELECTION_KEYS)


def test_values_of_one_key_add_up_once_each() -> None:
    assert parse_only(["workers=1,2", "workers=2,4", " workers = 1"]) == {"workers": (1, 2, 4)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("worker=4", '"worker" is not a selection key; allowed: .*; did you mean "workers"?'),
        ("", '"" is not a selection key'),
        (
            "grep",
            f'"grep" is not a selection key; allowed: {", ".join(sorted(SELECTION_KEYS))}',
        ),
        ("workload", '"workload" has no value; allowed: workload=VALUE'),
        ("workload=", "an empty value; allowed: workload=VALUE or"),
        ("workers=1,,2", "an empty value"),
        ("engine=sparc", '"sparc" is not an engine; allowed: .*; did you mean "spark"'),
        ("checksum=crc", "is not a checksum type; allowed: crc32c, null"),
        ("master=alone", "is not a master placement; allowed: combined, declared, separate"),
        ("size=1 Gb", '"1 Gb" is not a size'),
        ("workers=four", '"four" is not valid; allowed: a whole number from 1'),
        ("workers=0", '"0" is not valid'),
        ("workers=-1", '"-1" is not valid'),
        ("workers=٣", "is not valid"),
        (f"workers={'9' * 5000}", "is not valid"),
        ("replication=-1", "a whole number from 0"),
        ("workload=grep+", "is not a workload or a mix"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        parse_only(["engine=spark", text])
    assert "--only" in caught.value.message
    assert "--only workload=grep" in caught.value.hint


def test_no_key_chooses_everything() -> None:
    assert chosen() == TRIALS


def test_one_of_the_values_and_all_of_the_keys() -> None:
    assert chosen("workload=grep,wordcount", "workers=1,4", "engine=spark") == tuple(
        trial
        for trial in TRIALS
        if trial.workload in ("grep", "wordcount")
        and trial.workers in (1, 4)
        and trial.engine is Engine.SPARK
    )


def test_a_workload_is_not_the_mixes_it_is_in() -> None:
    assert {trial.workload for trial in chosen("workload=grep")} == {"grep"}
    assert {trial.workload for trial in chosen("workload=grep x2")} == {"grep+grep"}
    assert chosen("workload=grep x2") == chosen("concurrency=2")


def test_warm_ups_stay_with_the_repetitions_of_their_cell() -> None:
    runs = {(trial.warm_up, trial.repetition) for trial in chosen("repetition=2", "workers=1")}
    assert runs == {(True, 1), (False, 2)}


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("size=2 GB", {"size_bytes": 2 * 10**9}),
        ("profile=upstream", {"profile": "upstream"}),
        ("replication=3", {"replication": 3}),
        ("checksum=null", {"checksum": Checksum.NULL}),
        ("master=combined", {"master": MasterPlacement.COMBINED}),
    ],
)
def test_the_other_keys_choose_by_their_field(key: str, other: dict[str, object]) -> None:
    odd = replace(make_trial(), **other)  # type: ignore[arg-type]
    assert select((*TRIALS, odd), parse_only([key])) == (odd,)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (
            ["workload=pi"],
            "no run of the campaign has workload pi; there is workload grep, grep+gr",
        ),
        (["workload=grep,pi"], "no run of the campaign has workload pi"),
        (["workers=1,3"], "no run of the campaign has workers 3; there is workers 1, 2, 4"),
        (["repetition=4"], "has repetition 4; there is repetition 1, 2, 3"),
        (["size=2GB"], "has size 2 GB; there is size 1 GB"),
        (
            ["engine=spark", "workload=grep", "concurrency=2"],
            "no run has concurrency 2 among those with engine spark and workload grep; there is c",
        ),
    ],
)
def test_an_empty_choice_is_an_error_that_names_what_there_is(texts: list[str], words: str) -> None:
    with pytest.raises(EmptySelectionError) as caught:
        chosen(*texts)
    assert words in caught.value.message


def test_nothing_to_choose_from() -> None:
    with pytest.raises(EmptySelectionError):
        select((), parse_only([]))


def test_settings_choose_too() -> None:
    sizes = ("1048576", "2097152", "")
    trials = [
        replace(TRIALS[0], id=size, warm_up=False, settings={"dfs.blocksize": size} if size else {})
        for size in sizes
    ]
    chosen_ = select(trials, parse_only(["dfs.blocksize=1 MiB"]))
    assert [trial.id for trial in chosen_] == ["1048576"]
    with pytest.raises(EmptySelectionError, match=r"there is dfs\.blocksize unset, 1048576"):
        select(trials, parse_only(["dfs.blocksize=3 MiB"]))
    with pytest.raises(UsageError, match=r'did you mean "dfs\.blocksize"'):
        parse_only(["dfs.block.size=1"])


def test_levels_in_bytes_are_named_as_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(FACTORS_BY_NAME["replication"], key="block", unit="bytes")
    monkeypatch.setitem(selection._FACTORS, "block", row)
    trials = [replace(TRIALS[1], replication=32 << 20)]
    with pytest.raises(EmptySelectionError, match="has block 64 MiB; there is block 32 MiB"):
        select(trials, {"block": (64 << 20,)})
