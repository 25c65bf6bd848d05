"""Dilated intervals: units, profile values, ends."""

from pathlib import Path

import pytest

from boardcluster.errors import UsageError
from boardcluster.services.dilation import (
    LONGEST_MILLISECONDS,
    TimeProperty,
    capped,
    dilated,
    intervals,
)
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import FILES

NEW, OLD = "hadoop-3.4.2-spark-4.1.4", "hadoop-3.3.6-spark-3.5.9"
DOCS = Path(__file__).parents[3] / "docs"


def slow(
    file: str, name: str, value: str | None = None, *, dilation: float = 4, pair: str = NEW
) -> str | None:
    given = {} if value is None else {file: {name: value}}
    return dilated(given, dilation, pair_id=pair)[file].get(name)


def test_every_row_is_sound() -> None:
    for file, rows in intervals().items():
        for name, row in rows.items():
            assert row.unit in ("ms", "s", "min", "bytes/s"), name
            assert row.why, name
            assert set(row.earlier) <= set(pair_ids()), name
            assert row.default == "" or slow(file, name) or row.default in ("0", "-1"), name
    assert tuple(intervals()) == FILES


def in_words(row: TimeProperty) -> str:
    """Return a default as the page has it, with its unit."""

    def worded(text: str) -> str:
        return text if not text or text[-1].isalpha() else f"{text} {row.unit}"

    others = [
        f"{worded(text)} with {pair.split('-spark')[0]}" for pair, text in row.earlier.items()
    ]
    if row.longest is not None:
        others.append(f"at most {row.longest} {row.unit}")
    return ", ".join([worded(row.default) or "none", *others])


def test_the_page_has_the_table() -> None:
    page = (DOCS / "reference" / "dilation.md").read_text()

    for file, rows in intervals().items():
        section = page.split(f"\n### {file}\n")[1].split("\n#")[0]
        written = [line for line in section.splitlines() if line.startswith("| `")]
        assert written == [
            f"| `{name}` | {in_words(row)} | {row.why} |" for name, row in rows.items()
        ], file


def test_dilation_one_changes_nothing() -> None:
    given = {"mapred-site": {"mapreduce.task.timeout": "no time at all"}}

    assert dilated(given, 1.0, pair_id=NEW) == {file: {} for file in FILES}


@pytest.mark.parametrize(
    ("file", "name", "value", "expected"),
    [
        ("hdfs-site", "dfs.heartbeat.interval", None, "12"),
        ("hdfs-site", "dfs.heartbeat.interval", "10s", "40"),
        ("hdfs-site", "dfs.heartbeat.interval", "250ms", "1"),
        ("hdfs-site", "dfs.heartbeat.interval", "1h", "14400"),
        ("hdfs-site", "dfs.datanode.disk.check.timeout", None, "2400000ms"),
        ("yarn-site", "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms", "250", "1000"),
        ("mapred-site", "mapreduce.task.timeout", "2m", "480000"),
        ("mapred-site", "mapreduce.shuffle.pathcache.expire-after-access-minutes", None, "20"),
        ("spark-defaults", "spark.network.timeout", None, "480s"),
        ("spark-defaults", "spark.network.timeout", "90", "360s"),
        ("spark-defaults", "spark.locality.wait", None, "12000ms"),
        ("spark-defaults", "spark.locality.wait", "500", "2000ms"),
        ("spark-defaults", "spark.locality.wait", "1 min", "240000ms"),
        ("spark-defaults", "spark.locality.wait", "10us", "1ms"),  # never zero, which means none
        ("spark-defaults", "spark.sql.broadcastTimeout", None, "1200"),
    ],
)
def test_what_is_set_or_else_the_default_is_multiplied(
    file: str, name: str, value: str | None, expected: str
) -> None:
    assert slow(file, name, value) == expected


def test_a_rate_is_divided() -> None:
    name = "dfs.block.scanner.volume.bytes.per.second"

    assert slow("hdfs-site", name) == "262144"
    assert slow("hdfs-site", name, "2") == "1"  # zero would turn the scanner off


def test_fractions_are_rounded_to_whole_units() -> None:
    assert slow("hdfs-site", "dfs.heartbeat.interval", dilation=11.7) == "35"
    assert slow("core-site", "ipc.client.connect.timeout", dilation=11.7) == "234000"


@pytest.mark.parametrize("value", ["0", "-1", "0s"])
def test_what_is_off_stays_off(value: str) -> None:
    assert slow("mapred-site", "mapreduce.task.timeout", value) is None


def test_what_follows_another_is_only_multiplied_where_it_is_set() -> None:
    assert slow("spark-defaults", "spark.rpc.askTimeout") is None
    assert slow("spark-defaults", "spark.rpc.askTimeout", "7s") == "28s"


def test_each_pair_has_its_own_defaults() -> None:
    expiry, call = "yarn.am.liveness-monitor.expiry-interval-ms", "ipc.client.rpc-timeout.ms"

    assert slow("yarn-site", expiry) == "3600000"
    assert slow("yarn-site", expiry, pair=OLD) == "2400000"
    assert slow("core-site", call) == "480000"
    assert slow("core-site", call, pair=OLD) is None  # 0: calls may take for ever


@pytest.mark.parametrize(
    ("file", "name", "value", "expected"),
    [
        ("hdfs-site", "dfs.blockreport.intervalMsec", None, "2147483647"),
        ("hdfs-site", "dfs.datanode.directoryscan.interval", "600d", "2147483"),
        ("spark-defaults", "spark.locality.wait", "24h", "2147483647ms"),
    ],
)
def test_an_interval_ends_where_javas_int_does(
    file: str, name: str, value: str | None, expected: str
) -> None:
    longest = slow(file, name, value, dilation=1000)

    assert longest == expected
    assert capped({name: expected, "dfs.heartbeat.interval": "3000"}) == [name]


def test_no_default_is_too_long_at_a_usual_dilation() -> None:
    for rows in dilated({}, 99, pair_id=NEW).values():
        assert capped(rows) == []
    assert {name for rows in dilated({}, 100, pair_id=NEW).values() for name in capped(rows)} == {
        "dfs.blockreport.intervalMsec",
        "dfs.datanode.directoryscan.interval",
    }
    for name, value in dilated({}, 1000, pair_id=NEW)["hdfs-site"].items():
        assert int(value.removesuffix("ms")) <= LONGEST_MILLISECONDS, name


@pytest.mark.parametrize(
    ("file", "name", "value", "allowed"),
    [
        ("mapred-site", "mapreduce.task.timeout", "ten minutes", "a number of ms, or one with"),
        ("mapred-site", "mapreduce.task.timeout", "10 weeks", "a number of ms, or one with"),
        ("hdfs-site", "dfs.block.scanner.volume.bytes.per.second", "1m", "a number of bytes/s"),
    ],
)
def test_what_is_no_time_is_refused(file: str, name: str, value: str, allowed: str) -> None:
    with pytest.raises(UsageError, match=f"{file}: {name} = '{value}'") as caught:
        slow(file, name, value)

    assert allowed in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "2000"), ("250", "1000"), ("900", "2000"), ("5000", "5000")]
)
def test_a_client_asks_while_the_application_master_still_answers(
    value: str | None, expected: str
) -> None:
    assert slow("mapred-site", "mapreduce.client.progressmonitor.pollinterval", value) == expected


@pytest.mark.parametrize(
    "name", ["ipc.client.connect.retry.interval", "yarn.resourcemanager.connect.retry-interval.ms"]
)
def test_daemons_find_each_other_as_fast_as_ever(name: str) -> None:
    assert not any(name in rows for rows in intervals().values())
