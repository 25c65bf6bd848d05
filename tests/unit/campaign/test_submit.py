"""The user's own program: refused early when it cannot run, recorded whatever its end."""

import contextlib
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_campaign, make_trial
from tests.unit.campaign.world import PHASES, World, app, ended

from boardcluster.campaign import submit as module
from boardcluster.campaign.execution import ATTEMPT_VARIABLE, SubmissionOutcome
from boardcluster.campaign.follow import LineProgress
from boardcluster.campaign.submit import (
    UserProgram,
    check_program,
    new_program_trial,
    run_program,
    secrets_of,
    stored_arguments,
    submit_program,
)
from boardcluster.campaign.upkeep import recover
from boardcluster.errors import InputError, RemoteError, RemoteTimeoutError, UsageError
from boardcluster.records import (
    Attempt,
    AttemptState,
    CampaignKind,
    Engine,
    Measurement,
    Trial,
)
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed
from boardcluster.services import operation
from boardcluster.services.operation import LiveCluster
from boardcluster.services.settings import known_settings
from boardcluster.store import Store

ENGINES = (Engine.MAPREDUCE, Engine.SPARK)
"""What programs can be handed in for."""


def program(
    path: Path, engine: Engine = Engine.SPARK, *arguments: str, main: str = ""
) -> UserProgram:
    return UserProgram(engine=engine, path=path, arguments=arguments, main=main)


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "job.jar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    return path


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text("print('hello')\n")
    return path


@pytest.mark.parametrize("engine", ENGINES)
def test_a_jar_runs_on_both_engines(engine: Engine, jar: Path) -> None:
    check_program(program(jar, engine))


def test_a_python_file_runs_on_spark_only(script: Path) -> None:
    check_program(program(script))
    with pytest.raises(UsageError, match=r"not a jar: .*app\.py") as caught:
        check_program(program(script, Engine.MAPREDUCE))

    assert "MapReduce program is a jar" in caught.value.hint


def test_a_text_that_is_only_named_jar_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.jar"
    path.write_text("not a zip")

    for engine in ENGINES:
        with pytest.raises(UsageError, match="a jar"):
            check_program(program(path, engine))


@pytest.mark.parametrize("engine", ENGINES)
def test_missing_folder_and_empty_are_refused(engine: Engine, tmp_path: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.touch()

    for path, words in (
        (tmp_path / "absent.jar", "not found"),
        (tmp_path, "not a file"),
        (empty, "empty"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            check_program(program(path, engine))
        assert str(path) in caught.value.message
        assert caught.value.hint


def test_an_unreadable_file_is_refused(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"cannot read .*app\.py: Permission denied"):
        check_program(program(script))


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token.txt"
    path.write_text("of mine alone")
    path.chmod(0o600)
    return path


def test_secrets_are_given_by_the_variables_that_name_their_files() -> None:
    assert secrets_of(["TOKEN_FILE=~/a=b", "_K=k"]) == {
        "TOKEN_FILE": Path("~/a=b"),
        "_K": Path("k"),
    }
    for wrong in ("token", "=token", "1A=token", "A-B=token", "TOKEN="):
        with pytest.raises(UsageError, match="NAME=FILE"):
            secrets_of([wrong])
    for taken in ("PATH=x", "JAVA_HOME=x", "BOARDCLUSTER_ATTEMPT=x"):
        with pytest.raises(UsageError, match="needs to start"):
            secrets_of([taken])
    with pytest.raises(UsageError, match="A is given twice"):
        secrets_of(["A=x", "A=y"])


def test_a_secret_that_is_not_ones_own_alone_is_refused(
    script: Path, token: Path, tmp_path: Path
) -> None:
    check_program(replace(program(script), secrets={"T": token}))
    token.chmod(0o640)
    with pytest.raises(InputError, match="others may read it") as caught:
        check_program(replace(program(script), secrets={"T": token}))
    assert f"chmod 600 {token}" in caught.value.hint
    for wrong, words in ((tmp_path / "absent", "No such file"), (tmp_path, "is not a file")):
        with pytest.raises(InputError, match=f"the secret T, .*{words}"):
            check_program(replace(program(script), secrets={"T": wrong}))


def end(status: int = 0) -> Completed:
    return ended(status, seconds=3.5)


@dataclass
class Desk:
    """Where a program is handed in."""

    live: LiveCluster
    world: World
    store: Store
    campaign: Any
    trial: Trial
    cwd: Path
    said: list[str] = field(default_factory=list)

    def submit(self, wanted: UserProgram) -> tuple[Attempt, SubmissionOutcome | None]:
        return submit_program(
            self.live,
            self.store,
            self.campaign,
            self.trial,
            wanted,
            timeout_seconds=60,
            cwd=self.cwd,
            told=self.said.append,
        )

    @property
    def master(self) -> FakeRemote:
        assert isinstance(self.live.master, FakeRemote)
        return self.live.master

    @property
    def scratch(self) -> str:
        return f"/nodes/master/scratch/{self.trial.id}-1"

    def stored(self) -> tuple[Attempt, Measurement | None]:
        (result,) = self.store.results(self.campaign.id)
        assert result.attempt is not None
        return result.attempt, result.measurement


@pytest.fixture
def desk(live: LiveCluster, world: World, tmp_path: Path) -> Iterator[Desk]:
    campaign = make_campaign(kind=CampaignKind.SUBMIT)
    trial = make_trial(
        "submit",
        id=f"{campaign.id}-submit-spark",
        campaign_id=campaign.id,
        size_bytes=0,
        arguments=("app.py", "x"),
    )
    world.jobs = [end]
    with Store.open(tmp_path / "home") as store:
        yield Desk(live, world, store, campaign, trial, tmp_path)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("SafeModeException: Cannot create file", "storage: HDFS is in safe mode, so nothing"),
        (
            "File /out/part-0 could only be written to 0 of the 1 minReplication nodes",
            "storage: no DataNode took a block",
        ),
    ],
)
def test_a_program_that_hdfs_had_no_room_for_is_not_at_fault(
    desk: Desk, script: Path, monkeypatch: pytest.MonkeyPatch, words: str, reason: str
) -> None:
    monkeypatch.setattr("boardcluster.services.disk_space.fullest_disk", lambda *_: "")
    desk.world.jobs = [lambda: end(1)]
    monkeypatch.setattr(SubmissionOutcome, "failure", property(lambda _: f"exit status 1: {words}"))
    attempt, _ = desk.submit(program(script, Engine.SPARK))
    assert attempt.state is AttemptState.INVALID
    assert attempt.reason.startswith(reason)
    assert words in attempt.reason


def test_what_tells_programs_apart_is_stored(
    desk: Desk, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(jar.parent)
    given = program(Path(jar.name), Engine.SPARK, "in", "--password", "abc", main="my.A")
    _, trial = new_program_trial(desk.live.spec, given, profile="default")
    whole = str(jar.absolute())
    assert trial.arguments == (whole, "my.A", "in", "--password", "(hidden)")
    assert stored_arguments(Path(jar.name), "my.B", ["in"]) == (whole, "my.B", "in")


def test_a_good_end_is_recorded_like_a_run(desk: Desk, script: Path) -> None:
    attempt, outcome = desk.submit(program(script, Engine.SPARK, "x", "--flag"))

    assert outcome is not None
    assert (attempt.state, attempt.reason) == (AttemptState.OK, "")
    stored, measurement = desk.stored()
    assert stored == attempt
    assert measurement is not None
    assert (measurement.duration_seconds, measurement.exit_status) == (3.5, 0)
    assert measurement.verification is None
    assert measurement.application_id == "application_1_0001"
    folder = desk.store.artefact_folder(attempt)
    assert (folder / "program.py").read_text() == script.read_text()
    assert (folder / "stdout.txt").is_file()


def test_counters_and_phases_of_a_mapreduce_program_are_kept(desk: Desk, jar: Path) -> None:
    group = "org.apache.hadoop.mapreduce.FileSystemCounter"
    row = {"name": "FILE_BYTES_WRITTEN", "totalCounterValue": 77}
    groups = [{"counterGroupName": group, "counter": [row]}]
    desk.world.counters = {"jobCounters": {"counterGroup": groups}}

    desk.submit(program(jar, Engine.MAPREDUCE, "Main"))

    _, measurement = desk.stored()
    assert measurement is not None
    assert measurement.counters == {f"{group}/FILE_BYTES_WRITTEN": 77}
    assert measurement.intermediate_bytes == 77
    assert measurement.phases_seconds == PHASES
    assert (measurement.input_bytes, measurement.output_bytes) == (0, 0)  # unknown


def test_a_program_that_did_not_use_the_cluster_is_remarked(desk: Desk, script: Path) -> None:
    desk.world.default_apps = []

    attempt, _ = desk.submit(program(script))

    assert attempt.state is AttemptState.OK
    assert attempt.reason == "YARN saw no application: the program did not use the cluster"


def test_it_is_submitted_with_its_own_configuration_and_mark(desk: Desk, script: Path) -> None:
    attempt, _ = desk.submit(program(script))

    conf = desk.store.artefact_folder(attempt) / "conf"
    tag = f"{desk.trial.id}-1"
    assert f"<value>{tag}</value>" in (conf / "mapred-site.xml").read_text()
    environment = desk.world.submissions[0]["env"]
    assert environment["SPARK_CONF_DIR"] == f"{desk.scratch}/conf"
    assert environment["BOARDCLUSTER_ATTEMPT"] == tag


def test_its_settings_are_stored_and_in_its_configuration(
    desk: Desk, jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "attach", lambda *_, **__: desk.live)
    real = known_settings("hadoop-3.4.2-spark-4.1.4")
    monkeypatch.setattr("boardcluster.services.settings.known_settings", lambda _: real)
    settings = {"mapreduce.map.output.compress": "true"}

    done = run_program(
        tmp_path / "home",
        replace(program(jar, Engine.MAPREDUCE, "Main"), settings=settings),
        cache=tmp_path / "cache",
        follow=LineProgress(None),
        timeout_seconds=60,
        cwd=tmp_path,
        printing=contextlib.nullcontext,
    )

    assert done.attempt.state is AttemptState.OK
    assert done.trial.settings == settings
    (stored,) = desk.store.results(done.trial.campaign_id)
    assert stored.trial == done.trial
    text = (done.artefacts / "conf" / "mapred-site.xml").read_text()
    assert "<name>mapreduce.map.output.compress</name>" in text


def seen_in_mid_run(desk: Desk, place: str) -> list[bytes | None]:
    """What a file on the master holds while the next program runs; filled by then."""
    seen: list[bytes | None] = []

    def look() -> Completed:
        seen.append(desk.master.files.get(place))
        return end()

    desk.world.jobs = [look]
    return seen


def test_the_master_has_configuration_and_program_only_while_it_runs(
    desk: Desk, script: Path
) -> None:
    seen: list[dict[str, bytes]] = []

    def look() -> Completed:
        seen.append(
            {path: data for path, data in desk.master.files.items() if "telemetry-" not in path}
        )
        return end()

    desk.world.jobs = [look]
    attempt, _ = desk.submit(program(script))

    conf = desk.store.artefact_folder(attempt) / "conf"
    copies = {f"{desk.scratch}/conf/{path.name}": path.read_bytes() for path in conf.iterdir()}
    assert seen == [{**copies, "/lent/app.py": script.read_bytes()}]
    assert desk.master.files == {}
    assert desk.world.happened[-1] == ("rm", "master", desk.scratch)
    assert desk.world.folders_left() == set()


def test_a_secret_is_on_the_master_only_while_the_program_runs_and_never_stored(
    desk: Desk, script: Path, token: Path
) -> None:
    place = f"{desk.scratch}/secrets/T"
    seen = seen_in_mid_run(desk, place)
    attempt, _ = desk.submit(replace(program(script), secrets={"T": token}))

    assert seen == [token.read_bytes()]
    assert desk.master.files == {}
    kept = [path for path in desk.store.artefact_folder(attempt).rglob("*") if path.is_file()]
    assert all(token.read_bytes() not in path.read_bytes() for path in kept)
    (command,) = (path for path in kept if path.name == "command.json")
    assert json.loads(command.read_text())["env"]["T"] == place


def test_a_secret_that_cannot_be_handed_over_whole_does_not_stay(
    desk: Desk, script: Path, token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = desk.master.put

    def half(source: Path, target: str) -> None:
        put(source, target)
        if target.endswith("/secrets/T"):
            raise RemoteError("master: out of reach")

    monkeypatch.setattr(desk.master, "put", half)
    attempt, _ = desk.submit(replace(program(script), secrets={"T": token}))

    assert attempt.state is AttemptState.INVALID
    assert desk.master.files == {}


def test_a_secret_that_cannot_be_deleted_is_told_with_its_node(
    desk: Desk, script: Path, token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = desk.master.run

    def refuse(argv: Sequence[str], **options: Any) -> Completed:
        if list(argv) == ["rm", "-rf", desk.scratch]:
            raise RemoteError("master: out of reach")
        return run(argv, **options)

    monkeypatch.setattr(desk.master, "run", refuse)
    attempt, _ = desk.submit(replace(program(script), secrets={"T": token}))

    assert attempt.state is AttemptState.OK
    (words,) = desk.said
    assert words.startswith("master: what a submission left")
    assert words.endswith("perhaps a secret, could not be deleted: master: out of reach")


def test_a_secret_of_a_killed_driver_is_cleared_though_its_attempt_is_marked(desk: Desk) -> None:
    """As after ``down``, which marks the attempt: nothing tells the next driver of it."""
    desk.master.files[f"{desk.scratch}/secrets/T"] = b"of mine alone"
    folder = desk.scratch.rpartition("/scratch")[0]
    desk.master.files[f"{folder}/tmp/lent-1f/flights.csv"] = b"a copy of 50 GB"
    desk.master.files[f"{folder}/tmp/mpi-1f/pmix"] = b"what mpirun left"
    desk.master.files[f"{folder}/tmp/job-1f/stdout"] = b"all that a program printed"
    desk.master.files[f"{folder}/galera/data/sbtest1.ibd"] = b"tables of 12 GB"
    desk.world.lost.add("worker1")
    said: list[str] = []

    recover(desk.store, LineProgress(said.append), desk.live)

    mark = f"BOARDCLUSTER_PROBING={desk.live.state.identity}"
    assert ("master", mark) in desk.world.ended, "a probe's load would share the cores with runs"
    assert desk.master.files == {}
    (words,) = said
    assert words.startswith("worker1: what a submission left")
    assert words.endswith("out of reach")


def test_a_job_whose_attempt_has_ended_without_it_is_ended(desk: Desk) -> None:
    """Its driver lost sight of it, marked the attempt and has ended."""
    stray, other = "20261101-100000-abcd-grep-spark-1-2", "somebodys-own-job-1"
    desk.world.apps[stray] = [[app("UNDEFINED", state="RUNNING", number=7)]]
    desk.world.apps[other] = [[app("UNDEFINED", state="RUNNING", number=8)]]
    said: list[str] = []

    recover(desk.store, LineProgress(said.append), desk.live)

    assert desk.world.killed == ["application_1_0007"]
    assert ("master", f"{ATTEMPT_VARIABLE}={stray}") in desk.world.ended
    assert said == [f"stopped what an earlier driver had lost sight of: {stray}"]
    desk.world.yarn_answers = False
    recover(desk.store, LineProgress(said.append), desk.live)
    assert len(said) == 1


def broken() -> Completed:
    raise RemoteError("master: out of reach")


def interrupted() -> Completed:
    raise KeyboardInterrupt


@pytest.mark.parametrize("job", [lambda: end(3), broken, interrupted])
def test_the_master_keeps_nothing_of_a_program_that_does_not_end_well(
    job: Callable[[], Completed], desk: Desk, script: Path
) -> None:
    desk.world.jobs = [job]

    with contextlib.suppress(KeyboardInterrupt):
        desk.submit(program(script))

    assert desk.master.files == {}
    assert desk.world.folders_left() == set()


def test_a_master_that_is_lost_at_the_end_does_not_hide_how_it_ended(
    desk: Desk, script: Path
) -> None:
    def lose() -> Completed:
        desk.world.lost.add("master")
        return end(3)

    desk.world.jobs = [lose]
    attempt, outcome = desk.submit(program(script))

    assert outcome is not None
    assert outcome.exit_status == 3
    assert attempt.state is AttemptState.INVALID
    assert attempt.reason == "node_lost: node master; exit status 3: log line 1 log line 2"
    assert desk.said == []  # it had no secret


def test_it_runs_where_the_user_stands_with_the_users_arguments(desk: Desk, script: Path) -> None:
    desk.submit(program(script, Engine.SPARK, "x", "--flag"))

    (submission,) = desk.world.submissions
    assert submission["cwd"] == str(desk.cwd)  # an emulated node sees this machine's files
    assert submission["timeout"] == 60
    argv = submission["argv"]
    assert argv[0].endswith("/bin/spark-submit")
    assert argv[-3:] == ["/lent/app.py", "x", "--flag"]
    assert f"spark.yarn.tags={desk.trial.id}-1" in argv


def test_on_boards_it_runs_in_a_folder_of_the_master(desk: Desk, script: Path) -> None:
    boards = replace(desk.live.layout, spec=replace(desk.live.spec, kind="boards"))
    desk.live = replace(desk.live, layout=boards)

    attempt, _ = desk.submit(program(script, Engine.SPARK, "x"))

    assert attempt.state is AttemptState.OK
    (submission,) = desk.world.submissions
    assert submission["cwd"] == desk.scratch
    (words,) = desk.said
    assert f"starts in {desk.scratch} on master, not in {desk.cwd}" in words
    assert ("mkdir", "master", desk.scratch) in desk.world.happened


@pytest.mark.parametrize("seen", ["as here", "another", "closed"])
def test_it_starts_here_only_where_the_user_of_jobs_may_write(
    seen: str, desk: Desk, script: Path
) -> None:
    """In root's nodes an empty folder may cover it, or it may be root's."""
    desk.live = replace(desk.live, state=replace(desk.live.state, service_uid=61000))
    here = desk.cwd.stat()
    number = here.st_ino if seen == "as here" else here.st_ino + 1
    look = ("sh", "-c", module._LOOK, str(desk.cwd))
    desk.master.tell(*look, stdout=f"{here.st_dev}:{number}\n", returncode=int(seen == "closed"))

    desk.submit(program(script))

    (submission,) = desk.world.submissions
    assert submission["cwd"] == (str(desk.cwd) if seen == "as here" else desk.scratch)
    assert len(desk.said) == (seen != "as here")
    assert '-w "$0"' in module._LOOK


def test_a_program_behind_a_link_is_what_the_link_names(desk: Desk, script: Path) -> None:
    link = script.with_name("link.py")
    link.symlink_to(script)

    attempt, _ = desk.submit(program(link))

    assert desk.world.submissions[0]["argv"][-1] == "/lent/app.py"
    assert attempt.state is AttemptState.OK


def test_further_options_cannot_hide_the_tag(desk: Desk, jar: Path) -> None:
    options = ("--conf", "spark.yarn.tags=mine", "--executor-memory", "1g")
    desk.submit(
        UserProgram(engine=Engine.SPARK, path=jar, arguments=(), main="a.Main", options=options)
    )

    argv = desk.world.submissions[0]["argv"]
    assert tuple(argv[1:5]) == options
    # The last of two wins in spark-submit.
    assert argv.index(f"spark.yarn.tags={desk.trial.id}-1") > argv.index("spark.yarn.tags=mine")
    assert argv[argv.index("--class") + 1] == "a.Main"


def test_what_a_program_imports_is_on_the_master_while_it_runs(
    desk: Desk, script: Path, tmp_path: Path
) -> None:
    helper = tmp_path / "helper.py"
    helper.write_text("ANSWER = 42\n")
    place = f"{desk.scratch}/py-files/0/helper.py"
    seen = seen_in_mid_run(desk, place)
    desk.submit(replace(program(script), py_files=(str(helper), "hdfs:///lib/more.zip")))

    argv = desk.world.submissions[0]["argv"]
    assert argv[argv.index("--py-files") + 1] == f"{place},hdfs:///lib/more.zip"
    assert argv.index("--py-files") < argv.index("/lent/app.py")
    assert seen == [helper.read_bytes()]
    assert desk.master.files == {}


def test_what_a_program_imports_must_be_there(script: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a file: .*no\.py"):
        check_program(replace(program(script), py_files=(str(tmp_path / "no.py"),)))
    check_program(replace(program(script), py_files=("hdfs:///lib/more.zip", str(script))))


@pytest.mark.parametrize(("memory_mib", "heap"), [(1024, "-Xmx256m"), (8192, "-Xmx1024m")])
def test_a_mapreduce_program_has_a_part_of_the_masters_memory(
    desk: Desk, jar: Path, memory_mib: int, heap: str
) -> None:
    spec = desk.live.spec
    master, *others = (
        replace(node, memory_bytes=memory_mib << 20) if node == spec.master else node
        for node in spec.nodes
    )
    layout = replace(desk.live.layout, spec=replace(spec, nodes=(master, *others)))
    desk.live = replace(desk.live, layout=layout)
    desk.submit(program(jar, Engine.MAPREDUCE, "Main"))
    assert heap in desk.world.submissions[0]["argv"]


def test_a_mapreduce_jar_is_submitted_as_hadoop_jar_does(desk: Desk, jar: Path) -> None:
    desk.submit(program(jar, Engine.MAPREDUCE, "Main", "in", "out"))

    argv = desk.world.submissions[0]["argv"]
    assert argv[-5:] == [
        "org.apache.hadoop.util.RunJar",
        "/lent/job.jar",
        "Main",
        "in",
        "out",
    ]


def test_a_bad_end_keeps_its_time_and_status(desk: Desk, script: Path) -> None:
    desk.world.jobs = [lambda: end(3)]
    desk.submit(program(script))

    attempt, measurement = desk.stored()
    assert attempt.state is AttemptState.FAILED
    assert attempt.reason.startswith("exit status 3")
    assert measurement is not None
    assert (measurement.exit_status, measurement.duration_seconds) == (3, 3.5)


def test_a_stalled_program_is_invalid(desk: Desk, script: Path) -> None:
    def stall() -> Completed:
        raise RemoteTimeoutError("command did not end within 60 s")

    desk.world.jobs = [stall]
    attempt, outcome = desk.submit(program(script))

    assert outcome is None
    assert attempt.state is AttemptState.INVALID
    assert attempt.reason.startswith("stalled: not done after 60 s")
    assert "\n" not in attempt.reason


def test_a_program_that_waits_for_a_lost_node_is_not_called_stalled(
    desk: Desk, script: Path
) -> None:
    def stall() -> Completed:
        desk.world.dead.add(("nodemanager", "worker4"))
        raise RemoteTimeoutError("command did not end within 60 s")

    desk.world.jobs = [stall]
    attempt, _ = desk.submit(program(script))

    assert attempt.state is AttemptState.INVALID
    assert attempt.reason.startswith("node_lost: nodemanager on worker4; stalled: not done")


def test_a_lost_connection_is_not_called_stalled(desk: Desk, script: Path) -> None:
    def cut() -> Completed:
        raise RemoteError("master: out of reach")

    desk.world.jobs = [cut]
    attempt, outcome = desk.submit(program(script))

    assert outcome is None
    assert (attempt.state, attempt.reason) == (AttemptState.INVALID, "master: out of reach")


@pytest.mark.parametrize("status", [0, 1])
def test_a_node_lost_meanwhile_makes_it_invalid(status: int, desk: Desk, script: Path) -> None:
    def lose() -> Completed:
        desk.world.dead.add(("nodemanager", "worker4"))
        return end(status)

    desk.world.jobs = [lose]
    desk.submit(program(script))

    attempt, measurement = desk.stored()
    assert attempt.state is AttemptState.INVALID
    assert attempt.reason.startswith("node_lost: nodemanager on worker4")
    assert attempt.reason.rstrip("; ") == attempt.reason
    assert measurement is not None


def test_ctrl_c_is_recorded_and_passed_on(desk: Desk, script: Path) -> None:
    def interrupt() -> Completed:
        raise KeyboardInterrupt

    desk.world.jobs = [interrupt]
    with pytest.raises(KeyboardInterrupt):
        desk.submit(program(script))

    attempt, measurement = desk.stored()
    assert (attempt.state, attempt.reason) == (
        AttemptState.INVALID,
        "interrupted: Ctrl-C or SIGTERM",
    )
    assert measurement is None


def test_a_huge_program_is_not_copied(
    desk: Desk, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KEPT_PROGRAM_BYTES", 3)
    attempt, _ = desk.submit(program(script))

    assert not list(desk.store.artefact_folder(attempt).glob("program*"))
