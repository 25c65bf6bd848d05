"""fio: its real JSON, JSON that cannot be right, and what is run where.

The recordings are those of fio 3.33 on ext4, the last one on a tmpfs of 2 MiB.
"""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.probes.answering import Answering, done, make_site, recording

from boardcluster.errors import (
    CapacityError,
    ProbeOutputError,
    RemoteError,
    RemoteTimeoutError,
    UsageError,
)
from boardcluster.probes.fio import (
    PROBE,
    FioJob,
    FioTarget,
    measure,
    parse_rate,
    parse_sync,
    parse_target,
)
from boardcluster.records import ProbeMode
from boardcluster.remote.gate import Completed
from boardcluster.units import KIB, MIB

READ = FioJob(pattern="randread", record_bytes=4 * KIB, size_bytes=64 * MIB, direct=True, seconds=2)
WRITE = replace(READ, pattern="write", record_bytes=16 * MIB)
FILL = replace(WRITE, record_bytes=MIB, seconds=0)
FSYNC = replace(READ, pattern="write", direct=False, flush=True)
READ_TEXT = recording("fio-random-read.json")
FSYNC_TEXT = recording("fio-fsync.json")


def changed(text: str, *path: str, to: Any) -> str:
    document = json.loads(text)
    row = document["jobs"][0]
    for name in path[:-1]:
        row = row[name]
    row[path[-1]] = to
    return json.dumps(document)


def test_reads_what_was_read() -> None:
    row = json.loads(READ_TEXT)["jobs"][0]["read"]
    rate, operations = parse_rate(READ_TEXT, READ)
    assert rate == row["bw_bytes"] > 1e6
    assert operations == pytest.approx(row["total_ios"] / row["runtime"] * 1000, rel=1e-3)
    assert operations * 4096 == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "job"), [("fio-sequential-write.json", WRITE), ("fio-fill.json", FILL)]
)
def test_reads_what_was_written(name: str, job: FioJob) -> None:
    row = json.loads(recording(name))["jobs"][0]["write"]
    rate, operations = parse_rate(recording(name), job)
    assert rate == row["bw_bytes"]
    assert operations == pytest.approx(rate / job.record_bytes, rel=0.01)


def test_reads_the_time_of_fsync() -> None:
    mean_seconds, late_seconds, calls = parse_sync(FSYNC_TEXT, FSYNC)
    row = json.loads(FSYNC_TEXT)["jobs"][0]["sync"]
    assert calls == row["total_ios"] > 100
    assert mean_seconds == row["lat_ns"]["mean"] / 1e9
    assert 1e-6 < mean_seconds < late_seconds < 1


@pytest.mark.parametrize(
    "before",
    [
        "fio: this platform does not support process shared mutexes, forcing use of threads.\n",
        "note: both iodepth >= 1 and synchronous I/O engine are selected\n\n",
    ],
)
def test_warnings_before_the_json_are_passed_over(before: str) -> None:
    assert parse_rate(before + READ_TEXT, READ) == parse_rate(READ_TEXT, READ)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "printed no JSON: ''"),
        ("fio: failed parsing runtime=x\n", "printed no JSON: 'fio: failed parsing"),
        (READ_TEXT[: len(READ_TEXT) // 2], "cannot be read in line"),
        (READ_TEXT + "fio: terminating on signal 15\n", "cannot be read in line"),
        (READ_TEXT.replace('"runtime" : 2', '"runtime" : 2,', 1), "cannot be read in line"),
        (READ_TEXT.replace(".", ","), "cannot be read in line"),  # a locale with decimal commas
        (READ_TEXT.replace('"iops" : ', '"iops" : \x00', 1), "cannot be read in line"),
        ("{}", "has no jobs"),
        ('{"jobs": []}', "not about exactly one job"),
        ('{"jobs": [3]}', "not about exactly one job"),
        (changed(READ_TEXT, "read", to={}), "has no read.bw_bytes"),
        (changed(READ_TEXT, "read", "bw_bytes", to=0), "read.bw_bytes is 0, not a number above"),
        (changed(READ_TEXT, "read", "iops", to=float("nan")), "read.iops is nan"),
        (changed(READ_TEXT, "read", "iops", to="17030,9"), "read.iops is '17030,9'"),
        (changed(READ_TEXT, "read", "runtime", to=True), "read.runtime is True"),
        (changed(READ_TEXT, "read", "io_bytes", to=4096), "are not"),
        (changed(READ_TEXT, "read", "iops", to=1e9), "operations/s of 4096 bytes are not"),
        (changed(READ_TEXT, "job options", "bs", to="8192"), "ran with bs='8192', asked for"),
        (changed(READ_TEXT, "job options", "direct", to="0"), "ran with direct='0'"),
        (changed(READ_TEXT, "job options", "rw", to="read"), "ran with rw='read'"),
        (recording("fio-no-space.json"), "failed with error 28"),
    ],
)
def test_refuses_what_cannot_be_right(text: str, words: str) -> None:
    with pytest.raises(ProbeOutputError, match=words):
        parse_rate(text, READ)


@pytest.mark.parametrize(
    ("path", "to", "words"),
    [
        (("total_ios",), 0, "sync.total_ios is 0"),
        (("lat_ns", "percentile"), {}, "has no sync.lat_ns.percentile.99"),
        (("lat_ns", "mean"), 1e12, "contradict each other"),
        (("lat_ns", "percentile", "99.000000"), 1, "contradict each other"),
    ],
)
def test_refuses_fsync_that_cannot_be_right(path: tuple[str, ...], to: Any, words: str) -> None:
    with pytest.raises(ProbeOutputError, match=words):
        parse_sync(changed(FSYNC_TEXT, "sync", *path, to=to), FSYNC)


def test_reads_the_free_space() -> None:
    text = "      Avail Type\n78671802368 ext4\n"
    assert parse_target(text) == FioTarget(free_bytes=78671802368, file_system="ext4")


@pytest.mark.parametrize("text", ["", "Avail Type\n", "Avail Type\n- ext4\n", "Avail Type\n5\n"])
def test_refuses_other_words_on_space(text: str) -> None:
    with pytest.raises(ProbeOutputError, match="df printed no free space"):
        parse_target(text)


# Runs, on a node that answers as fio does


def fio_answer(words: tuple[str, ...], _: dict[str, Any]) -> Completed:
    """Give back a recording with the options that were asked for."""
    options = dict(word.removeprefix("--").split("=", 1) for word in words[1:] if "=" in word)
    if "fsync" in options:
        text, way = FSYNC_TEXT, "write"
    else:
        text, way = READ_TEXT, "read" if "read" in options["rw"] else "write"
    document = json.loads(text)
    row = document["jobs"][0]
    row[way] = row["read" if text is READ_TEXT else "write"]
    row[way]["iops"] = row[way]["bw_bytes"] / int(options["bs"])
    row["job options"] = options
    return done(document)


def node(file_system: str = "ext4", *, free_bytes: int = 10 << 30, least: int = 512) -> Answering:
    def dd(words: tuple[str, ...], _: dict[str, Any]) -> Completed:
        size = int(next(word for word in words if word.startswith("bs=")).removeprefix("bs="))
        if size >= least:
            return done()
        return done(status=1, stderr="dd: failed to open '/data/x': Invalid argument")

    return Answering(
        {
            "df": lambda *_: done(f"Avail Type\n{free_bytes} {file_system}\n"),
            "dd": dd,
            "fio": fio_answer,
            "rm": lambda *_: done(),
        }
    )


def runs(remote: Answering) -> list[tuple[str, ...]]:
    return [words for words in remote.ran if words[0] == "fio"]


def test_quick_mode_takes_the_three_records_of_the_2026_paper() -> None:
    remote = node()
    figures = measure(make_site(remote))
    rates = [row for row in figures if row.name.endswith("bytes_per_second")]
    assert {(row.name, row.conditions["record_bytes"]) for row in rates} == {
        (f"fio_{way}_bytes_per_second", size)
        for way in ("sequential_read", "sequential_write", "random_read", "random_write")
        for size in ("4096", "524288", "16777216")
    }
    assert {row.conditions["direct"] for row in rates} == {"yes"}
    operations = [row for row in figures if row.name.endswith("operations_per_second")]
    assert {row.conditions["record_bytes"] for row in operations} == {"4096"}
    assert len(operations) == 4
    assert [row.name for row in figures[-3:]] == [
        "fio_fsync_mean_seconds",
        "fio_fsync_p99_seconds",
        "fio_fsync_calls",
    ]


def test_paper_mode_takes_every_power_of_two() -> None:
    remote = node()
    figures = measure(make_site(remote, mode=ProbeMode.PAPER))
    sizes = {row.conditions["record_bytes"] for row in figures}
    assert sizes == {str(KIB << power) for power in range(15)}
    assert all("--runtime=20" in words for words in runs(remote)[1:])


def test_the_file_is_written_first_and_goes_in_the_end() -> None:
    remote = node()
    measure(make_site(remote))
    first = runs(remote)[0]
    assert {"--rw=write", f"--size={64 * MIB}"} <= set(first)
    assert "--time_based" not in first
    assert remote.ran[-1] == ("rm", "-f", "/data/probe/fio.bin", "/data/probe/fio.direct")


def test_writes_end_with_a_flush_and_nothing_is_allocated_before() -> None:
    remote = node()
    measure(make_site(remote))
    for words in runs(remote):
        assert ("--end_fsync=1" in words) == any("write" in word for word in words)
        assert "--fallocate=none" in words


def test_without_o_direct_the_figures_say_so() -> None:
    told: list[str] = []
    remote = node("overlay", least=1 << 30)
    figures = measure(make_site(remote, tell=told.append))
    assert {row.conditions.get("direct", "no") for row in figures} == {"no"}
    assert all("--direct=0" in words for words in runs(remote))
    assert any("overlay does not support O_DIRECT reliably" in words for words in told)


def test_a_file_system_that_only_pretends_is_not_believed() -> None:
    figures = measure(make_site(node("tmpfs")))
    assert {row.conditions.get("direct", "no") for row in figures} == {"no"}


def test_records_below_the_sector_are_buffered_and_marked() -> None:
    remote = node(least=4096)
    figures = measure(make_site(remote, mode=ProbeMode.PAPER))
    found = {
        row.conditions["record_bytes"]: row.conditions["direct"]
        for row in figures
        if "direct" in row.conditions
    }
    assert {size for size, direct in found.items() if direct == "no"} == {"1024", "2048"}
    small = next(words for words in runs(remote) if "--bs=1024" in words)
    assert "--direct=0" in small


def test_another_failure_of_dd_is_not_taken_for_a_missing_o_direct() -> None:
    remote = node()
    remote.answers["dd"] = lambda *_: done(status=1, stderr="dd: Read-only file system")
    with pytest.raises(RemoteError, match="Read-only file system"):
        measure(make_site(remote))


def test_refuses_more_than_half_of_the_free_space() -> None:
    with pytest.raises(CapacityError, match=r"64 MiB in /data/probe .*100 MiB / 2 = 50 MiB"):
        measure(make_site(node(free_bytes=100 * MIB)))


def test_refuses_more_than_a_quarter_of_the_memory_on_tmpfs() -> None:
    site = make_site(node("tmpfs"), memory_bytes=200 * MIB)
    with pytest.raises(CapacityError, match=r"a quarter of the memory.*200 MiB / 4 = 50 MiB"):
        measure(site)
    assert measure(make_site(node("ext4"), memory_bytes=200 * MIB))


@pytest.mark.parametrize(
    "settings",
    [
        {"fio_size": "lots"},
        {"fio_size": "-5"},
        {"fio_size": "100 MB"},
        {"fio_size": "16 MiB"},
        {"fio_seconds": "0"},
        {"fio_seconds": "soon"},
    ],
)
def test_refuses_settings_that_make_no_sense(settings: dict[str, str]) -> None:
    remote = node()
    with pytest.raises(UsageError, match="fio: "):
        measure(make_site(remote, settings=settings))
    assert remote.ran == []


def test_settings_are_followed() -> None:
    remote = node()
    measure(make_site(remote, settings={"fio_size": "128 MiB", "fio_seconds": "5"}))
    assert all(f"--size={128 * MIB}" in words for words in runs(remote))
    assert all("--runtime=5" in words for words in runs(remote)[1:])


def test_a_tool_that_hangs_leaves_no_file() -> None:
    remote = node()
    remote.hanging = "fio"
    with pytest.raises(RemoteTimeoutError):
        measure(make_site(remote))
    assert remote.ran[-1][0] == "rm"


def test_slow_media_get_the_time_they_need() -> None:
    assert FILL.timeout_seconds > 64 * MIB / (1 * MIB)
    assert WRITE.timeout_seconds > 60 + 2 + 16


def test_says_what_it_needs() -> None:
    assert [tool.package for tool in PROBE.tools] == ["fio"]
    assert PROBE.quick_seconds <= 60
