"""Settings of the engines: what a campaign sets, daemons and jobs really have."""

from __future__ import annotations

import contextlib
import json
import re
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boardcluster.cluster.state import load_state
from tests.integration.conftest import Cli

HANDLERS = "dfs.datanode.handler.count"
COMPRESS = "mapreduce.map.output.compress"
CAMPAIGN = f"""\
[campaign]
name = "settings"
repeat_tainted = 0  # this machine has other work
repetitions = 1

[[matrix]]
workload = "wordcount"
engine = "mapreduce"
size = "1 MB"
[matrix.settings]
"{COMPRESS}" = [false, true]
"{HANDLERS}" = 7

[[matrix]]
workload = "wordcount"
engine = "spark"
size = "1 MB"
profile = "mine.toml"
[matrix.settings]
"spark.shuffle.compress" = false
"""
MINE = """\
source = "a test"

["hdfs-site"]
"dfs.datanode.handler.count" = 5

["spark-defaults"]
"spark.locality.wait" = "1s"
"""


def asked_of_daemon(home: Path) -> str:
    """What the DataNode itself says that its number of handlers is; empty while it is not up."""
    state = load_state(home)
    for daemon in state.daemons if state else ():
        if daemon.name == "datanode" and daemon.url:
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"{daemon.url}/conf?name={HANDLERS}", timeout=60) as page,
            ):
                found = re.search(r"<value>(.*?)</value>", page.read().decode())
                return found[1] if found else "unknown"
    return ""


def materialized_bytes(row: Any) -> int:
    """What the maps of a run wrote for the reduces, compressed or not, by MapReduce's counter."""
    counters = row["measurement"]["counters"]
    [value] = [n for key, n in counters.items() if key.endswith("MAP_OUTPUT_MATERIALIZED_BYTES")]
    return int(value)


def spark_properties(events: Path) -> dict[str, str]:
    """What Spark itself says in its event log that its properties are."""
    for line in events.read_text().splitlines():
        found: dict[str, Any] = json.loads(line)
        if found["Event"] == "SparkListenerEnvironmentUpdate":
            return dict(found["Spark Properties"])
    raise AssertionError(f"{events} has no properties")


@pytest.mark.needs_root
def test_daemons_and_jobs_have_what_a_campaign_sets(
    tmp_path: Path, cli: Callable[..., Cli]
) -> None:
    program = cli(tmp_path / "home")
    file = tmp_path / "settings.toml"
    file.write_text(CAMPAIGN)
    (tmp_path / "mine.toml").write_text(MINE)
    try:
        program("init", "--workers", "1", "--subnet", "198.18.215.0/24")
        seen = set()
        with program.start("run", str(file), "--yes", "--json") as process:
            while process.poll() is None:
                seen.add(asked_of_daemon(program.home))
                time.sleep(1)
            out, err = process.communicate()
        assert process.returncode == 0, err
        assert seen == {"", "7", "5"}, "the daemon says so itself"
        results = json.loads(out)["results"]
        assert {row["attempt"]["state"] for row in results} == {"ok"}
        [own] = [row for row in results if row["trial"]["engine"] == "spark"]
        [events] = (program.home / own["attempt"]["artefacts"]).rglob("*.events.jsonl")
        had = spark_properties(events)
        assert (had["spark.locality.wait"], had["spark.shuffle.compress"]) == ("1s", "false")
        rows = {row["trial"]["settings"][COMPRESS]: row for row in results if row != own}
        assert 0 < materialized_bytes(rows["true"]) < materialized_bytes(rows["false"])
        compared = program("compare", "settings", "settings", "--tainted", "--json")
        assert f"{COMPRESS} true" in compared
    finally:
        program("down")
