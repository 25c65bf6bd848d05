"""Forms, and the command lines that they become."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import HostError, LockedError, RunError, UsageError
from boardcluster.web.control import Control, WorkOrder, command_line, workload_choices

HOME, CACHE = Path("/cluster"), Path("/cache")


def order(**changes: Any) -> WorkOrder:
    return WorkOrder.read({"workload": "wordcount", **changes})


def test_a_form_becomes_a_command_line_without_a_shell() -> None:
    given = order(
        engine="spark",
        size="1 GB; rm -rf /",
        repetitions=2,
        parameters={"seed": "$(id)"},
        settings={"spark.executor.cores": "2"},
    )
    assert command_line(given, home=HOME, cache=CACHE) == [
        *("run", "--home=/cluster", "--cache=/cache", "--yes", "--engine=spark"),
        *("--size=1 GB; rm -rf /", "--repetitions=2", "--set=seed=$(id)"),
        *("--setting=spark.executor.cores=2", "--", "wordcount"),
    ]


def test_a_file_is_given_by_its_whole_path(tmp_path: Path) -> None:
    path = tmp_path / "--home=x.toml"
    path.write_text("")
    words = command_line(WorkOrder.read({"file": str(path)}), home=HOME, cache=CACHE)
    assert words[-2:] == ["--", str(path)]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (None, "not a JSON object"),
        ([], "not a JSON object"),
        ({}, "needed"),
        ({"workload": "wordcount", "file": "/etc/passwd"}, "either a workload or"),
        ({"workload": "--help"}, "no workload"),
        ({"workload": "../../bin/sh"}, "no workload"),
        ({"workload": "wordcount", "home": "/elsewhere"}, "unknown fields"),
        ({"workload": "wordcount", "size": "x" * 2000}, "not a short text"),
        ({"workload": "wordcount", "size": ["1 GB"]}, "not a short text"),
        ({"workload": "wordcount", "size": "1\n--yes"}, "control characters"),
        ({"workload": "wordcount", "repetitions": 10**9}, "not a number"),
        ({"workload": "wordcount", "repetitions": "many"}, "not a number"),
        ({"workload": "wordcount", "parameters": "seed=1"}, "not a table"),
        ({"file": "/nonexistent/campaign.toml"}, "no file"),
        ({"file": "/" + "x" * 900}, "no file /x* can be read .*: File name too long"),
        ({"file": "~nobody-such/campaign.toml"}, "no file .*: .* home directory"),
    ],
)
def test_what_is_no_form_is_refused(document: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        WorkOrder.read(document)


def test_the_form_knows_every_workload() -> None:
    found = {row["name"]: row for row in workload_choices()}
    assert "spark" in found["wordcount"]["engines"]
    json.dumps(list(found.values()))


def test_nothing_is_stopped_where_nothing_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing is running"):
        Control(tmp_path, CACHE).stop()


def test_up_is_not_stopped_and_nothing_starts_beside_it(tmp_path: Path) -> None:
    control = Control(tmp_path, CACHE)
    with driver_lock(tmp_path, doing="up"):
        with pytest.raises(UsageError, match="`boardcluster up` cannot be stopped here"):
            control.stop()
        with pytest.raises(LockedError, match="boardcluster up"):
            control.start(order())
    assert control.outcome() is None


def test_what_was_just_started_here_is_not_said_to_be_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = Control(tmp_path, CACHE)
    monkeypatch.setattr(control, "_started", SimpleNamespace(exit_status=None))
    with pytest.raises(UsageError, match="it is starting or ending"):
        control.stop()


def test_nothing_starts_where_no_cluster_is(tmp_path: Path) -> None:
    control = Control(tmp_path / "none", CACHE)
    with pytest.raises(UsageError, match=r"there is no cluster in .*none"):
        control.start(order())
    assert not list(tmp_path.iterdir())


def test_a_file_in_a_folder_that_is_closed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:  # root, who may run the tests, may enter any folder
        patched.setattr(Path, "is_file", closed)
        with pytest.raises(UsageError, match=r"no file /closed/c\.toml .*: Permission denied"):
            WorkOrder.read({"file": "/closed/c.toml"})


def test_a_run_of_another_user_is_not_stopped_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(pid: int, signum: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.kill", refused)
    with (
        driver_lock(tmp_path, doing="run"),
        pytest.raises(RunError, match="by another user") as caught,
    ):
        Control(tmp_path, CACHE).stop()
    assert f"kill {os.getpid()}" in caught.value.hint


def test_a_log_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "started.log").mkdir()
    with pytest.raises(HostError, match=r"cannot write .*started\.log"):
        Control(tmp_path, CACHE).start(order())
