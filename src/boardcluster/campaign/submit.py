"""The user's own program on the running cluster, recorded like a run."""

from __future__ import annotations

import contextlib
import re
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from boardcluster.campaign.accounting import intermediate_bytes
from boardcluster.campaign.begin import new_campaign_id
from boardcluster.campaign.dilation_correction import correct_for_dilation
from boardcluster.campaign.driver import interruption, now_utc
from boardcluster.campaign.execution import (
    NO_ROOM,
    SAFE_MODE,
    SAFE_MODE_WORDS,
    Execution,
    SubmissionOutcome,
    attempt_tag,
    scratch_of,
    write_configuration,
)
from boardcluster.campaign.fingerprint import take_fingerprint
from boardcluster.campaign.follow import Follower
from boardcluster.campaign.observation import Observation, Observed, observing
from boardcluster.campaign.trial_jobs import check_spark_fits
from boardcluster.campaign.upkeep import SCRATCH_STAYS, recover
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import BoardclusterError, InputError, UsageError
from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    CampaignKind,
    ClusterSpec,
    Engine,
    Measurement,
    Trial,
)
from boardcluster.redaction import redact
from boardcluster.services import operation
from boardcluster.services.disk_space import no_block_words
from boardcluster.services.operation import LiveCluster, dead_daemons
from boardcluster.services.profile import with_settings
from boardcluster.services.settings import by_file, refuse_idle
from boardcluster.services.spark import spark_submit_command
from boardcluster.services.yarn import HEAP_MIB, mapreduce_command
from boardcluster.store import Store
from boardcluster.telemetry.metering import check_meters
from boardcluster.units import MIB, format_bytes

__all__ = [
    "SUBMIT",
    "ProgramOutcome",
    "UserProgram",
    "check_program",
    "new_program_trial",
    "run_program",
    "secrets_of",
    "stored_arguments",
    "submit_program",
]

SUBMIT = "submit"
"""What runs of one's own programs have as their workload."""

_KEPT_PROGRAM_BYTES = 50_000_000
"""A program up to this size is copied into the artefacts, so that the record is complete."""

_HEAP_PART = 8
"""A MapReduce program's own JVM has one part in so many of the master's memory, since it may sample
its input, or list many files, before it submits anything."""
_SECRET_BYTES_MOST = 1 << 20
_OTHERS = 0o077
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOOK = 'test -r "$0" -a -w "$0" -a -x "$0" && stat -L -c %d:%i -- "$0"'
"""Says which folder it is, by device and number, if one may work in it."""
_TAKEN_VARIABLES = frozenset({"HOME", "PATH", "TERM", "TMPDIR", "USER"})
_TAKEN_PREFIXES = ("BOARDCLUSTER_", "HADOOP_", "JAVA_", "LD_", "PYSPARK_", "SPARK_", "YARN_")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserProgram:
    """A user's program."""

    engine: Engine
    """The engine it is for."""
    path: Path
    """The jar or Python file."""
    arguments: tuple[str, ...]
    """Its arguments; for MapReduce, the main class first unless the jar names one."""
    main: str = ""
    """Main class of a Spark jar."""
    options: tuple[str, ...] = ()
    """Further options for ``spark-submit``."""
    py_files: tuple[str, ...] = ()
    """Python files and archives that a Spark program imports: paths here, or URLs for Spark."""
    settings: dict[str, str] = field(default_factory=dict)
    """Properties of the engines for this submission, as the engines read them."""
    secrets: Mapping[str, Path] = field(default_factory=dict)
    """Files that only the user of jobs may read there, by the variable that tells it where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOutcome:
    """What became of the user's own program."""

    trial: Trial
    """What it is stored as."""
    attempt: Attempt
    """Its attempt, with its state."""
    outcome: SubmissionOutcome | None
    """What the submission came to; None if it never ended by itself."""
    artefacts: Path
    """Folder of its logs and counters."""


def check_program(program: UserProgram) -> None:
    """Refuse, before anything starts, a program that cannot be run.

    Raises:
        InputError: the file is missing, a folder, empty or unreadable.
        UsageError: the file's kind does not fit the engine.
    """
    path = program.path
    if not path.exists():
        raise InputError(f"program not found: {path}", hint="check the path after `--`")
    if not path.is_file():
        raise InputError(f"not a file: {path}", hint="give a jar or a Python file after `--`")
    try:
        with path.open("rb") as stream:
            start = stream.read(4)
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror}", hint="check the file's permissions"
        ) from error
    if not start:
        raise InputError(f"the program is empty: {path}", hint="give a jar or a Python file")
    is_jar = start == b"PK\x03\x04"
    for text in filter(_is_path, program.py_files):
        if not Path(text).is_file():
            raise InputError(f"not a file: {text}", hint="check the paths of --py-files")
    for name, secret in program.secrets.items():
        _check_secret(name, secret)
    if program.engine is Engine.MAPREDUCE and not is_jar:
        raise UsageError(f"not a jar: {path}", hint="a MapReduce program is a jar")
    if program.engine is Engine.SPARK and not is_jar and path.suffix != ".py":
        raise UsageError(
            f"neither a jar nor a Python file: {path}", hint="Spark runs jars and .py files"
        )


def secrets_of(given: Sequence[str]) -> dict[str, Path]:
    """Return the files of secrets by their variables, given as ``NAME=FILE``.

    Raises:
        UsageError: one is not like that, or a name is given twice or belongs to a program's start.
    """
    found: dict[str, Path] = {}
    for row in given:
        name, _, path = row.partition("=")
        if not _VARIABLE.fullmatch(name) or not path:
            raise UsageError(
                "--secret has to be NAME=FILE, NAME being a variable of the program",
                hint="such as --secret TOKEN_FILE=token.txt; the program opens the file that "
                "TOKEN_FILE names",
            )
        if name in found or name in _TAKEN_VARIABLES or name.startswith(_TAKEN_PREFIXES):
            why = "given twice" if name in found else "what a program needs to start"
            raise UsageError(f"--secret: {name} is {why}", hint="choose another name")
        found[name] = Path(path)
    return found


def _check_secret(name: str, path: Path) -> None:
    """Refuse what is no file for one's own eyes.

    Raises:
        InputError: it is missing, no file, too long, or others may read it.
    """
    try:
        seen = path.stat()
    except OSError as error:
        raise InputError(
            f"cannot read the secret {name}, {path}: {error.strerror}", hint="check the path"
        ) from error
    if not stat.S_ISREG(seen.st_mode) or seen.st_size > _SECRET_BYTES_MOST:
        raise InputError(
            f"the secret {name}, {path}, is not a file of at most "
            f"{format_bytes(_SECRET_BYTES_MOST, binary=True)}",
            hint="name a file that holds the secret alone",
        )
    if seen.st_mode & _OTHERS:
        raise InputError(
            f"{path} holds a secret, but others may read it", hint=f"run `chmod 600 {path}`"
        )


def _hand_over(live: LiveCluster, secrets: Mapping[str, Path], folder: str) -> dict[str, str]:
    """Put secrets where only the user of jobs may read them; return their places by variable."""
    places = {name: f"{folder}/secrets/{name}" for name in secrets}
    if secrets:
        live.master.run(["mkdir", "-p", "-m", "700", f"{folder}/secrets"])
    for name, place in places.items():
        live.master.put(secrets[name].resolve(), place)
    return places


def _is_path(text: str) -> bool:
    return not urlsplit(text).scheme


def _py_files(live: LiveCluster, texts: Sequence[str], folder: str) -> tuple[str, ...]:
    """Put files beside a program on the master, named as they are imported; return the option."""
    places = []
    for number, text in enumerate(texts):
        place = text
        if _is_path(text):
            place = f"{folder}/py-files/{number}/{Path(text).name}"
            live.master.run(["mkdir", "-p", f"{folder}/py-files/{number}"])
            live.master.put(Path(text).resolve(), place)
        places.append(place)
    return ("--py-files", ",".join(places)) if places else ()


def _command(
    live: LiveCluster, program: UserProgram, path: str, *, conf: str, tag: str, scratch: str
) -> list[str]:
    """Return the command that submits the program, which is at that path on the master.

    What the program imports is put into its folder there.
    """
    if program.engine is Engine.MAPREDUCE:
        memory_mib = live.spec.master.memory_bytes // MIB
        return mapreduce_command(
            live.layout,
            conf=conf,
            jar=path,
            arguments=program.arguments,
            heap_mib=max(HEAP_MIB, memory_mib // _HEAP_PART),
        )
    command = spark_submit_command(
        live.layout,
        conf=conf,
        tag=tag,
        program=path,
        main=program.main,
        arguments=program.arguments,
    )
    beside = _py_files(live, program.py_files, scratch)
    return [command[0], *program.options, *beside, *command[1:]]


def run_program(
    home: Path,
    program: UserProgram,
    *,
    cache: Path,
    follow: Follower,
    timeout_seconds: float,
    cwd: Path,
    printing: Callable[[Path], contextlib.AbstractContextManager[object]],
) -> ProgramOutcome:
    """Run the user's own program on the cluster as it is up, as its only driver, and record it.

    It is submitted from the folder ``cwd``. ``printing`` is given the file of what the program
    prints, and shows it while the block runs.

    Raises:
        LockedError: another driver is at work.
        ClusterNotUpError: the cluster is not up.
        UsageError: Spark does not fit on the nodes, or a setting is lacking or has no effect.
        CapacityError: a setting does not fit the nodes' memory.
    """
    if program.engine is Engine.MAPREDUCE:  # programs for Spark read Hadoop's settings, too
        refuse_idle(program.settings, [program.engine])
    with driver_lock(home, doing="submit"):
        live = operation.attach(home, cache=cache, progress=follow.progress)
        built = with_settings(live.layout.profile, program.settings, live.spec)
        check_spark_fits(built, program.engine)
        check_meters(live.spec.meters, live.metered)
        profile = live.layout.profile.name
        campaign, trial = new_program_trial(live.spec, program, profile=profile)
        follow.line(f"submitting to {program.engine}, recorded as {campaign.id}")
        printed = home / "attempts" / trial.id / "1" / "stdout.txt"
        with Store.open(home) as store, printing(printed):
            recover(store, follow, live)
            attempt, outcome = submit_program(
                live,
                store,
                campaign,
                trial,
                program,
                timeout_seconds=timeout_seconds,
                cwd=cwd,
                told=follow.line,
            )
    return ProgramOutcome(
        trial=trial, attempt=attempt, outcome=outcome, artefacts=home / attempt.artefacts
    )


def new_program_trial(
    spec: ClusterSpec, program: UserProgram, *, profile: str
) -> tuple[Campaign, Trial]:
    """Return what one run of a program is recorded as: a campaign of one trial."""
    campaign = Campaign(
        id=new_campaign_id(),
        kind=CampaignKind.SUBMIT,
        created_utc=now_utc(),
        seed=0,
        cluster=spec.name,
        emulated=spec.capabilities.emulated,
    )
    trial = Trial(
        id=f"{campaign.id}-submit-{program.engine}",
        campaign_id=campaign.id,
        position=0,
        workload=SUBMIT,
        engine=program.engine,
        profile=profile,
        size_bytes=0,
        workers=len(spec.workers),
        repetition=1,
        arguments=stored_arguments(program.path, program.main, program.arguments),
        settings={**spec.settings, **program.settings},
    )
    return campaign, trial


def stored_arguments(path: Path, main: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return what tells one's own programs apart, without secrets: whole path, class, arguments."""
    return redact((str(path.absolute()), *filter(None, [main]), *arguments))


def submit_program(
    live: LiveCluster,
    store: Store,
    campaign: Campaign,
    trial: Trial,
    program: UserProgram,
    *,
    timeout_seconds: float,
    cwd: Path,
    told: Callable[[str], object],
) -> tuple[Attempt, SubmissionOutcome | None]:
    """Run the program as a campaign of one trial; its end is recorded whatever it is.

    ``told`` is told where it starts, unless that is ``cwd``, and of secrets that cannot be deleted.

    Returns:
        The attempt, and what the submission came to (None if it never ended by itself).
    """
    store.add_campaign(campaign, [trial])
    attempt = store.begin_attempt(trial.id, take_fingerprint(live), now_utc())
    folder = store.artefact_folder(attempt)
    outcome: SubmissionOutcome | None = None
    observed: Observed | None = None
    state, reason = AttemptState.INVALID, ""
    try:
        tag = attempt_tag(trial.id, attempt.number)
        conf = write_configuration(live, folder / "conf", tag=tag, extra=by_file(program.settings))
        execution = Execution(
            live, folder=folder, conf=conf, engine=program.engine, tag=tag, attempt=tag
        )
        if program.path.stat().st_size <= _KEPT_PROGRAM_BYTES:
            shutil.copy2(program.path, folder / f"program{program.path.suffix}")
        scratch = scratch_of(live.layout, live.spec.master, tag)
        longest_seconds = timeout_seconds * live.layout.dilation
        try:
            execution.environment.update(_hand_over(live, program.secrets, scratch))
            place = _start_of(live, cwd, scratch, told)
            with (
                live.master.temporary_upload(program.path.resolve()) as path,
                observing(live, folder, tag, lasting_seconds=longest_seconds) as observation,
            ):
                command = _command(live, program, path, conf=conf, tag=tag, scratch=scratch)
                observation.settle()
                outcome = execution.run(command, timeout_seconds=timeout_seconds, cwd=place)
                observed = _observed(observation, outcome)
        finally:
            _clear(live, scratch, told if program.secrets else None)
        state, reason = _state(live, outcome, observed)
    except BoardclusterError as error:
        reason = _with_losses(live, " ".join(error.message.split())[:1000])
    except BaseException as error:
        reason = interruption(error)
        _finish(store, attempt, AttemptState.INVALID, reason, engine=program.engine)
        raise
    ended = _finish(
        store,
        attempt,
        state,
        reason,
        engine=program.engine,
        dilation=live.state.dilation,
        outcome=outcome,
        observed=observed,
    )
    return ended, outcome


def _clear(live: LiveCluster, scratch: str, told: Callable[[str], object] | None) -> None:
    """Delete a program's folder on the master; what stays costs only space, or is told."""
    try:
        live.master.run(["rm", "-rf", scratch])
    except BoardclusterError as error:
        if told is not None:
            told(SCRATCH_STAYS.format(name=live.spec.master.name, why=error.message))


def _start_of(live: LiveCluster, cwd: Path, scratch: str, told: Callable[[str], object]) -> str:
    """Return the folder that a program starts in; say so if that is not ``cwd``."""
    if _can_work_in(live, cwd):
        return str(cwd)
    told(
        f"the program starts in {scratch} on {live.spec.master.name}, not in {cwd}; "
        "files that it leaves there are deleted at its end"
    )
    return scratch


def _can_work_in(live: LiveCluster, folder: Path) -> bool:
    """Whether the user that jobs run as may write into a folder of this machine, and sees it.

    An empty folder may cover it in the nodes.
    """
    if not live.state.service_uid:
        return live.layout.shares_files
    seen = live.master.run(["sh", "-c", _LOOK, str(folder)], check=False)
    here = folder.stat()
    return seen.returncode == 0 and seen.text.strip() == f"{here.st_dev}:{here.st_ino}"


def _state(
    live: LiveCluster, outcome: SubmissionOutcome, observed: Observed
) -> tuple[AttemptState, str]:
    """Return what the program's run came to, and the reason."""
    reason = outcome.failure
    state = AttemptState.FAILED if reason else AttemptState.OK
    if outcome.lost_archive:
        state, reason = AttemptState.INVALID, f"host: {reason}; run it again"
    elif reason and (full := _storage_fault(live, reason)):
        state, reason = AttemptState.INVALID, f"storage: {full}; {reason}"
    if state is AttemptState.OK and not outcome.application_id:
        reason = "YARN saw no application: the program did not use the cluster"
    if observed.refusal and state is AttemptState.OK:
        state, reason = AttemptState.INVALID, observed.refusal
    told = _with_losses(live, reason)
    return (state if told == reason else AttemptState.INVALID), told


def _storage_fault(live: LiveCluster, failure: str) -> str:
    """Say why HDFS took nothing from a program that failed; empty if that was not the cause."""
    if SAFE_MODE.search(failure):
        return SAFE_MODE_WORDS
    return no_block_words(live.layout, live.remotes) if NO_ROOM.search(failure) else ""


def _with_losses(live: LiveCluster, reason: str) -> str:
    """Put before a reason what of the cluster no longer runs, which is more likely the cause."""
    dead = dead_daemons(live)
    return "; ".join(filter(None, [f"node_lost: {', '.join(dead)}" if dead else "", reason]))


def _observed(observation: Observation, outcome: SubmissionOutcome) -> Observed:
    started, ended = outcome.started_seconds, outcome.started_seconds + outcome.duration_seconds
    return observation.outcome(
        started_seconds=started,
        ended_seconds=ended,
        phases={"submit": (started, ended)},
        engine={"submit": outcome.engine},
    )


def _finish(
    store: Store,
    attempt: Attempt,
    state: AttemptState,
    reason: str,
    *,
    engine: Engine,
    dilation: float = 1.0,
    outcome: SubmissionOutcome | None = None,
    observed: Observed | None = None,
) -> Attempt:
    measurement = None
    if outcome is not None:
        measurement = Measurement(
            duration_seconds=outcome.duration_seconds,
            input_bytes=0,
            output_bytes=0,
            counters=outcome.counters,
            verification=None,
            exit_status=outcome.exit_status,
            application_id=outcome.application_id,
            phases_seconds=outcome.phases_seconds,
            intermediate_bytes=intermediate_bytes(engine, outcome.counters),
            remarks=observed.remarks if observed else (),
            energy=observed.energy if observed else None,
            **(observed.judged if observed else {}),
        )
        measurement = correct_for_dilation(measurement, dilation)
    return store.finish(
        attempt,
        state=state,
        reason=reason,
        ended_utc=now_utc(),
        measurement=measurement,
        telemetry=observed.telemetry if observed else None,
    )
