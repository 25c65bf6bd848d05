"""What the page is told of the store: runs, curves, hostile names, old and empty stores."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import (
    make_campaign,
    make_cluster,
    make_measurement,
    make_samples,
    make_state,
    make_telemetry,
    make_trial,
    store_run,
)
from tests.unit.web.asking import HOST, ORIGIN, ask

from boardcluster.cluster.state import save_state
from boardcluster.errors import EmptySelectionError, RunError, UsageError
from boardcluster.records import Checksum, Engine, MasterPlacement, PlannedFault, Variant, Verdict
from boardcluster.remote.gate import Completed
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.spec.template import render_cluster
from boardcluster.store import Store
from boardcluster.web.app import Dashboard, build_app
from boardcluster.web.guard import Guard, allowed_hosts
from boardcluster.web.published import published_beside
from boardcluster.web.reports import Reports
from boardcluster.web.stored import StoredRuns
from boardcluster.web.watching import ClusterWatch

FIXTURE = Path(__file__).parents[2] / "fixtures" / "store-b7912e2" / "home"
HANDLERS = "dfs.namenode.handler.count"  # which a daemon reads
HOSTILE = "<img src=x onerror=alert(1)>\"';&\u202e\x1b[31m"


made: list[Reports] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """End every dashboard's report, as the server does."""
    yield
    while made:
        made.pop().close()


def board(home: Path) -> Dashboard:
    made.append(Reports(home))
    return Dashboard(ClusterWatch(home, home), StoredRuns(home), made[-1])


def guarded(home: Path) -> Guard:
    return Guard(build_app(board(home)), allowed_hosts("127.0.0.1", 8470))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    telemetry = make_telemetry(
        make_samples(
            "worker1", seconds=np.arange(101.0), columns={"cpu_user_seconds": np.full(101, 0.5)}
        ),
        duration_seconds=100.0,
    )
    with Store.open(tmp_path) as store:
        campaign = make_campaign(name=HOSTILE)
        trial = make_trial(campaign_id=campaign.id, parameters={"grep.pattern": HOSTILE})
        store.add_campaign(campaign, [trial])
        measured = make_measurement(
            100.0, verdict=Verdict.VALID, remarks=(HOSTILE,), figures={HOSTILE: 1.0}
        )
        store_run(store, trial, measured, telemetry=telemetry)
    return tmp_path


def run_name(home: Path) -> str:
    return str(StoredRuns(home).table()["runs"][0]["run"])


def test_the_table_has_every_attempt_with_what_varies(home: Path) -> None:
    table = StoredRuns(home).table()
    assert [row["state"] for row in table["runs"]] == ["ok"]
    assert "workload" in {row["name"] for row in table["factors"]}
    assert table["campaigns"][0]["runs"] == {"ok": 1}


def test_the_table_is_read_again_when_the_store_changes(home: Path) -> None:
    stored = StoredRuns(home)
    assert stored.table() is stored.table()
    with Store.open(home) as store:
        campaign = make_campaign(id="20260902-b")
        trial = make_trial(campaign_id=campaign.id, id="20260902-b-x")
        store.add_campaign(campaign, [trial])
        store_run(store, trial, None)
    assert len(stored.table()["runs"]) == 2


def test_a_run_is_told_with_what_bound_it(home: Path) -> None:
    found = StoredRuns(home).run(run_name(home))
    assert found["words"].startswith("It took 100.0 s")
    assert found["nodes"] == ["worker1"]
    assert abs(sum(found["bottleneck"][0]["shares"].values()) - 1) < 0.01
    json.dumps(found)


def declare(home: Path, *, file: str = "cluster.toml", **changes: Any) -> None:
    spec = make_cluster(**changes)
    text = render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names())
    (home / file).write_text(text)


def repeated(home: Path, **changes: Any) -> Any:
    """What the page asks for to repeat the one run of the store, which is made at first."""
    if not (home / "store.sqlite").exists():
        with Store.open(home) as store:
            campaign = make_campaign()
            trial = make_trial(campaign_id=campaign.id, **changes)
            store.add_campaign(campaign, [trial])
            store_run(store, trial, None)
    return StoredRuns(home).run(run_name(home))["repeat"]


def test_a_run_that_the_form_can_say_is_repeated(tmp_path: Path) -> None:
    declare(tmp_path, settings={HANDLERS: "20"})
    settings = {HANDLERS: "20", "spark.executor.cores": "2"}
    assert repeated(tmp_path, parameters={"grep.pattern": "x"}, settings=settings) == {
        "workload": "grep",
        "engine": "spark",
        "size": "1000 B",
        "parameters": {"grep.pattern": "x"},
        "settings": {"spark.executor.cores": "2"},
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"workload": "submit"},
        {"workload": "grep+wordcount"},
        {"workers": 2},
        {"profile": "upstream"},
        {"concurrency": 2},
        {"replication": 2},
        {"checksum": Checksum.NULL},
        {"master": MasterPlacement.COMBINED},
        {"input": "/text"},
        {"settings": {HANDLERS: "20"}},
        {"variant": Variant.TEXTBOOK},
        {"fault": PlannedFault.KILL},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_run_that_the_form_cannot_say_is_not_repeated_as_another(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    declare(tmp_path)
    assert repeated(tmp_path, **changes) is None


def test_a_run_is_repeated_only_on_a_cluster_that_is_as_it_was(tmp_path: Path) -> None:
    assert repeated(tmp_path) is None, "there is no cluster"
    declare(tmp_path)
    assert repeated(tmp_path) is not None
    declare(tmp_path, settings={HANDLERS: "20"})
    assert repeated(tmp_path) is None, "its daemons are set up otherwise"
    declare(tmp_path)
    declare(tmp_path, file="running.toml", workers=2)
    save_state(tmp_path, make_state())
    assert repeated(tmp_path) is None, "it is up with two workers"
    save_state(tmp_path, make_state(form="2 of 4 workers"))
    assert repeated(tmp_path) is not None, "`up` returns it to what is declared"


def test_curves_are_means_and_can_be_zoomed(home: Path) -> None:
    stored, name = StoredRuns(home), run_name(home)
    whole = stored.curves(name, "cpu", points=20)
    assert len(whole["seconds"]) == 20
    assert whole["nodes"]["worker1"][5] == pytest.approx(0.5)
    part = stored.curves(name, "cpu", begin_seconds=10, end_seconds=20)
    assert part["seconds"][0] >= 10
    assert part["seconds"][-1] <= 20
    with pytest.raises(UsageError, match="empty"):
        stored.curves(name, "cpu", begin_seconds=20, end_seconds=10)
    with pytest.raises(UsageError, match="no curve"):
        stored.curves(name, "../../etc/passwd")
    with pytest.raises(EmptySelectionError):
        stored.curves("nothing/1", "cpu")


def test_a_day_of_eight_nodes_is_zoomed_quickly(tmp_path: Path) -> None:
    rows = 86_400
    seconds, busy = np.arange(float(rows)), np.full(rows, 0.5)
    telemetry = make_telemetry(
        *(
            make_samples(f"n{at}", seconds=seconds, columns={"cpu_user_seconds": busy})
            for at in range(8)
        ),
        duration_seconds=float(rows),
    )
    with Store.open(tmp_path) as store:
        campaign = make_campaign()
        trial = make_trial(campaign_id=campaign.id)
        store.add_campaign(campaign, [trial])
        measured = make_measurement(rows, verdict=Verdict.VALID)
        store_run(store, trial, measured, telemetry=telemetry)
    stored = StoredRuns(tmp_path)
    name = run_name(tmp_path)
    stored.curves(name, "cpu")
    found = stored.curves(name, "cpu", begin_seconds=1000, end_seconds=5000, points=1000)
    assert len(found["seconds"]) == 1000
    assert len(found["nodes"]) == 8


def test_hostile_names_are_data_and_never_markup(home: Path) -> None:
    app = guarded(home)
    for path in ("/api/runs", f"/api/run?name={run_name(home)}"):
        answer = ask(app, path)
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/json"
        assert HOSTILE in json.dumps(answer.json(), ensure_ascii=False).replace('\\"', '"').replace(
            "\\u001b", "\x1b"
        )


def test_the_page_takes_no_markup_from_anybody() -> None:
    """Whatever a store or a node says only ever becomes text."""
    folder = Path(__file__).parents[3] / "src" / "boardcluster" / "web" / "static"
    for path in folder.glob("*.js"):
        script = path.read_text()
        for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert way not in script, f"{path.name} uses {way}"
    page = (folder / "index.html").read_text()
    assert "style=" not in page
    assert " on" not in page.replace(" only", "").partition("<body>")[2].partition("</body>")[0]


def test_nothing_outside_the_machine_is_named() -> None:
    folder = Path(__file__).parents[3] / "src" / "boardcluster" / "web" / "static"
    for path in (*folder.glob("*.js"), *folder.glob("*.css"), folder / "index.html"):
        assert "https://" not in path.read_text(), path.name
        assert "http://" not in path.read_text().replace("http://www.w3.org", ""), path.name


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/run", 400),
        ("/api/run?name=%3Cscript%3E", 404),
        ("/api/run?name=a/b", 400),
        ("/api/curves?name=x&begin=soon", 400),
        ("/api/curves?name=x", 404),
        ("/nothing", 404),
        ("/static/../app.py", 404),
        ("/report/../store.sqlite", 404),
        ("/report/%2e%2e/store.sqlite", 404),
    ],
)
def test_wrong_questions_get_an_error_in_words(home: Path, path: str, status: int) -> None:
    assert ask(guarded(home), path).status == status


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "../store.sqlite"])
def test_a_page_that_no_report_has_is_said(home: Path, name: str) -> None:
    shown = board(home)
    (shown.reports.folder / "report.html").write_text("<p>")
    answer = ask(build_app(shown), f"/report/{name}")
    assert answer.status == 404
    assert answer.json()["error"].startswith("the report has no page")


def test_a_form_that_is_too_long_is_refused_in_words(home: Path) -> None:
    token = "the-token"
    app = Guard(build_app(board(home)), allowed_hosts("127.0.0.1", 8470), token=token)
    headers = {"host": HOST, "origin": ORIGIN, "content-type": "application/json"}
    headers["authorization"] = f"Bearer {token}"
    long = b'"' + b"x" * 100_000 + b'"'
    answer = ask(app, "/api/plan", method="POST", headers=list(headers.items()), body=long)
    assert (answer.status, answer.json()["error"]) == (400, "the form is too long, or broke off")


def test_an_empty_store_is_an_empty_table(tmp_path: Path) -> None:
    answer = ask(guarded(tmp_path), "/api/runs")
    assert answer.status == 200
    assert answer.json()["runs"] == []
    assert list(tmp_path.iterdir()) == [], "nothing is written by looking"


def test_pages_of_an_empty_store_say_what_to_run(tmp_path: Path) -> None:
    for script in ("before.js", "now.js"):
        text = ask(guarded(tmp_path), f"/static/{script}").body.decode()
        assert 'el("code", {}, "boardcluster demo")' in text


def test_without_script_the_page_links_to_the_report(tmp_path: Path) -> None:
    app = guarded(tmp_path)
    page = ask(app).body.decode()
    [without] = re.findall("<noscript>(.*?)</noscript>", page, re.DOTALL)
    assert "This page needs JavaScript" in without
    assert '<a href="/report/">' in without
    shown = ask(app, "/report/")
    assert (shown.status, shown.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<script" not in shown.body.decode()


def test_without_script_a_report_that_cannot_be_written_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_bytes(b"no database" * 1000)
    shown = ask(guarded(tmp_path), "/report/")
    assert shown.headers["content-type"].startswith("text/plain")
    assert shown.status == 409
    assert shown.body.decode().startswith("The report cannot be shown: ")
    assert "store.sqlite" in shown.body.decode()


def test_a_store_of_an_older_format_is_shown(tmp_path: Path) -> None:
    old = Path(shutil.copytree(FIXTURE, tmp_path / "old"))
    found = StoredRuns(old).table()
    assert len(found["runs"]) > 5
    json.dumps(found)


def test_a_damaged_store_is_said(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_bytes(b"no database" * 1000)
    answer = ask(guarded(tmp_path), "/api/runs")
    assert answer.status == 500
    assert "store.sqlite" in answer.json()["error"]


def test_damaged_samples_cost_their_curves_and_nothing_else_of_a_run(home: Path) -> None:
    name = run_name(home)
    [samples] = home.glob("attempts/*/*/telemetry.npz")
    samples.write_bytes(b"no archive")
    app = guarded(home)
    answer = ask(app, f"/api/run?name={name}")
    assert answer.status == 200
    run = answer.json()
    assert run["seconds"] == 100.0
    assert run["remarks"][0] == HOSTILE
    assert "its samples cannot be shown: damaged" in run["remarks"][1]
    assert "duration_seconds" not in run
    assert ask(app, f"/api/published?name={name}").status == 200
    assert ask(app, f"/api/curves?name={name}").status == 500


def test_published_times_are_of_the_same_samples_of_pi() -> None:
    ours = make_trial("pi", engine=Engine.MAPREDUCE, size_bytes=0)
    papers = replace(ours, parameters={"pi.maps": "100", "pi.samples": "10000"})
    assert published_beside(ours) == []
    assert published_beside(replace(ours, workload="submit")) == []
    assert published_beside(replace(ours, workload="terasort+pi")) == []
    assert {row["workers"] for row in published_beside(papers)} >= {1, 2, 4, 8}


def test_the_folders_of_runs_are_read_again_only_after_a_change(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, runs = run_name(home), StoredRuns(home)
    runs.curves(name, "cpu")
    monkeypatch.setattr(Store, "results", lambda *_, **__: pytest.fail("read again"))
    assert runs.curves(name, "written")["run"] == name


def test_a_form_that_is_nested_too_deeply_is_refused(home: Path) -> None:
    app = build_app(board(home))
    answer = ask(app, "/api/plan", method="POST", body=b"[" * 60_000)
    assert (answer.status, answer.json()["error"]) == (400, "the form is not JSON")


def test_without_control_the_page_says_so(home: Path) -> None:
    assert ask(guarded(home), "/api/about").json()["control"] is False


def test_reports_run_no_script_and_end_with_the_dashboard(home: Path) -> None:
    shown = board(home)
    app = Guard(build_app(shown), allowed_hosts("127.0.0.1", 8470))
    (shown.reports.folder / "report.html").write_text("<p>")
    policy = ask(app, "/report/report.html").headers["content-security-policy"]
    assert "script" not in policy
    assert "default-src 'none'" in policy
    folder = shown.reports.folder
    shown.reports.close()
    assert not folder.exists()


def test_a_report_that_is_being_written_ends_with_the_dashboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = board(tmp_path).reports
    folder = reports.folder
    begun, told = threading.Event(), threading.Event()

    def slow(words: Sequence[str], **_: object) -> Completed:
        begun.set()
        assert told.wait(10), "nobody ends it"
        folder.mkdir(exist_ok=True)
        (folder / "report.html").write_text("too late")
        return Completed(
            argv=tuple(words), returncode=143, stdout=b"", stderr=b"", duration_seconds=1.0
        )

    monkeypatch.setattr("boardcluster.web.reports.run_program", slow)
    monkeypatch.setattr("boardcluster.web.reports.end_programs", told.set)
    with ThreadPoolExecutor() as pool:
        written = pool.submit(reports.write)
        assert begun.wait(10)
        reports.close()
        assert isinstance(written.exception(10), RunError)
    with pytest.raises(RunError, match="is ending"):
        reports.write()
    assert not folder.exists()
