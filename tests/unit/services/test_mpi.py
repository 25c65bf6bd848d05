"""How mpirun's daemons get started: real processes on this machine stand in for nodes and mpirun.

``PLAY`` is mpirun's part: it asks for one daemon and waits until that has left its mark.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boardcluster.errors import RemoteError, RemoteTimeoutError
from boardcluster.remote.base import Remote
from boardcluster.remote.gate import Completed
from boardcluster.remote.local import LocalRemote
from boardcluster.services import mpi, mpi_agent
from boardcluster.services.layout import Layout

HOSTS = ("worker1", "worker2")
PLAY = 'python3 -I -S mpi_agent.py "$1" "$2"; until [ -s done ]; do sleep 0.02; done'
ENVIRONMENT = {"BOARDCLUSTER_ATTEMPT": "a1"}


class Recording(LocalRemote):
    """A node that is this machine, and remembers what it ran."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.commands: list[tuple[str, ...]] = []
        self.broken: tuple[str, ...] = ()
        self.patience_seconds: list[float] = []

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        self.commands.append(tuple(argv))
        self.patience_seconds += (
            [options["timeout_seconds"]] if "timeout_seconds" in options else []
        )
        if self.broken and tuple(argv[: len(self.broken)]) == self.broken:
            raise RemoteError(f"{self.name}: out of reach")
        return super().run(argv, **options)


@pytest.fixture
def here(layout: Layout, tmp_path: Path) -> Layout:
    """A layout whose nodes have folders on this machine."""
    return replace(layout, folders={name: str(tmp_path / name) for name in layout.folders})


@pytest.fixture
def remotes() -> dict[str, Recording]:
    return {name: Recording(name) for name in HOSTS}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def serve(layout: Layout, remotes: Mapping[str, Remote], work: Path) -> Any:
    return mpi.serving(layout, remotes, hosts=HOSTS, folder=str(work), environment=ENVIRONMENT)


def play(remote: Remote, work: Path, env: Mapping[str, str], host: str, command: str) -> Completed:
    return remote.run(
        ["sh", "-c", PLAY, "sh", host, command],
        env=env,
        cwd=str(work),
        timeout_seconds=20,
        check=False,
    )


def alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def daemon(work: Path) -> str:
    """Return a command that starts a process which stays, and says which."""
    return f"cd {work}; setsid sleep 600 >/dev/null 2>&1 & echo $! > new; mv new done"


def test_runs_on_every_host_through_the_agent_and_inside_the_subnet(layout: Layout) -> None:
    command = mpi.mpirun_command(
        layout.spec.network.subnet,
        hosts=["worker1", "worker2", "worker3"],
        ranks_per_host=4,
        program=["prog", "-x"],
        environment={"OMP_NUM_THREADS": "1"},
    )

    settings = {
        command[index + 1]: command[index + 2]
        for index, word in enumerate(command)
        if word == "--mca"
    }
    assert command[0] == "mpirun"
    assert command[-4:] == ["-x", "OMP_NUM_THREADS=1", "prog", "-x"]
    assert command[command.index("--host") + 1] == "worker1:4,worker2:4,worker3:4"
    assert command[command.index("-n") + 1] == "12"
    assert settings["plm_rsh_agent"].split()[-1] == Path(mpi_agent.__file__).name
    assert settings["plm_rsh_no_tree_spawn"] == "1"
    assert settings["btl_tcp_if_include"] == settings["oob_tcp_if_include"] == "198.18.7.0/24"
    assert "--allow-run-as-root" in command


def test_starts_what_is_asked_for_on_its_host_with_the_marks(
    here: Layout, remotes: dict[str, Recording], work: Path
) -> None:
    with serve(here, remotes, work) as env:
        done = play(remotes["worker1"], work, env, "worker2", f"cd {work}; env > new; mv new done")

    assert done.returncode == 0
    seen = dict(line.split("=", 1) for line in (work / "done").read_text().splitlines())
    assert seen["BOARDCLUSTER_ATTEMPT"] == "a1"
    assert seen[mpi.MPI_VARIABLE] == env[mpi.MPI_VARIABLE]
    assert seen["TMPDIR"].startswith(here.folders["worker2"])
    assert env["TMPDIR"].startswith(here.folders["worker1"])
    asked = [words for words in remotes["worker2"].commands if words[0] == "sh"]
    assert asked == [("sh", "-c", f"cd {work}; env > new; mv new done")]


def test_dilated_hosts_have_longer_to_start_and_to_end(
    here: Layout, remotes: dict[str, Recording], work: Path
) -> None:
    with serve(replace(here, dilation=2.0), remotes, work) as variables:
        play(remotes["worker1"], work, variables, "worker2", daemon(work))

    assert remotes["worker2"].patience_seconds == [120.0, 66.0]  # start; end, of which 6 s grace


def test_two_runs_have_different_marks(
    here: Layout, remotes: dict[str, Recording], work: Path
) -> None:
    marks = set()
    for _ in range(2):
        with serve(here, remotes, work) as env:
            marks.add(env[mpi.MPI_VARIABLE])

    assert len(marks) == 2


def test_leaves_no_process_and_no_folder(
    here: Layout, remotes: dict[str, Recording], work: Path
) -> None:
    with serve(here, remotes, work) as env:
        play(remotes["worker1"], work, env, "worker2", daemon(work))
        pid = (work / "done").read_text().strip()
        assert alive(pid)
        folders = [env["TMPDIR"], env["OMPI_MCA_btl_vader_backing_directory"]]
        assert all(Path(folder).is_dir() for folder in folders)

    assert not alive(pid)
    assert not any(Path(folder).exists() for folder in folders)
    assert list(Path(here.folders["worker2"], "tmp").iterdir()) == []


def test_what_a_killed_driver_left_is_deleted_also_in_shared_memory(
    here: Layout, remotes: dict[str, Recording], work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = Path(here.folders["worker1"], "tmp")
    with monkeypatch.context() as killed:
        killed.setattr(mpi, "_clean", lambda *_, **__: [])
        with serve(here, remotes, work) as env:
            folders = [Path(env["TMPDIR"]), Path(env["OMPI_MCA_btl_vader_backing_directory"])]
    for folder in folders:
        (folder / "segment").write_bytes(b"of Open MPI")
    other = Path(f"{folders[1]}-of-another")
    other.mkdir()
    try:
        mpi.delete_left(remotes["worker1"], str(temporary))
        mpi.delete_left(remotes["worker1"], str(temporary))

        assert not any(folder.exists() for folder in folders)
        assert other.is_dir(), "it has no folder among this cluster's files"
        assert temporary.is_dir()
    finally:
        for folder in (*folders, other):
            shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RemoteTimeoutError("too long")])
def test_leaves_nothing_when_it_is_interrupted(
    error: BaseException, here: Layout, remotes: dict[str, Recording], work: Path
) -> None:
    def interrupted() -> None:
        with serve(here, remotes, work) as env:
            play(remotes["worker1"], work, env, "worker2", daemon(work))
            raise error

    with pytest.raises(type(error)) as caught:
        interrupted()

    assert caught.value is error
    assert not alive((work / "done").read_text().strip())
    assert list(Path(here.folders["worker1"], "tmp").iterdir()) == []


def test_a_daemon_that_does_not_start_ends_mpirun_and_is_the_reason(
    here: Layout, remotes: dict[str, Recording], work: Path
) -> None:
    ends = []
    with (
        pytest.raises(RemoteError, match=r"did not start on worker2: .*\n?.*127") as caught,
        serve(here, remotes, work) as env,
    ):
        ends.append(play(remotes["worker1"], work, env, "worker2", "exec no-such-orted"))

    assert ends[0].returncode != 0
    assert "openmpi-bin" in caught.value.hint


def test_the_reason_is_the_daemon_even_if_mpirun_fails_otherwise(
    here: Layout, remotes: dict[str, Recording], work: Path
) -> None:
    def failing() -> None:
        with serve(here, remotes, work) as env:
            play(remotes["worker1"], work, env, "worker2", "exit 9")
            raise RemoteTimeoutError("mpirun did not end in time")

    with pytest.raises(RemoteError, match="did not start on worker2"):
        failing()


def test_refuses_a_node_that_does_not_take_part(
    here: Layout, remotes: dict[str, Recording], work: Path
) -> None:
    with (
        pytest.raises(RemoteError, match="a daemon on 'elsewhere', which is not one of"),
        serve(here, remotes, work) as env,
    ):
        play(remotes["worker1"], work, env, "elsewhere", "true")


def test_a_single_host_needs_no_daemon(
    here: Layout, remotes: dict[str, Recording], work: Path
) -> None:
    with mpi.serving(
        here, remotes, hosts=["worker1"], folder=str(work), environment=ENVIRONMENT
    ) as env:
        assert env[mpi.MPI_VARIABLE]

    assert ("cat", f"{work}/{mpi_agent.REQUESTS}") not in remotes["worker1"].commands
    assert remotes["worker2"].commands == []


def test_requests_of_an_earlier_run_are_not_served(
    here: Layout, remotes: dict[str, Recording], work: Path
) -> None:
    old = {"host": "worker2", "command": f"touch {work}/old"}
    (work / mpi_agent.REQUESTS).write_text(json.dumps(old) + "\n")

    with serve(here, remotes, work) as env:
        play(remotes["worker1"], work, env, "worker2", f"echo new > {work}/done")

    assert not (work / "old").exists()


@pytest.mark.parametrize("broken", [("rm", "-rf"), ("python3",)])
def test_says_what_it_could_not_clean_up(
    broken: tuple[str, ...], here: Layout, remotes: dict[str, Recording], work: Path
) -> None:
    with (
        pytest.raises(RemoteError, match="may remain: worker2: worker2: out of reach"),
        serve(here, remotes, work),
    ):
        remotes["worker2"].broken = broken

    assert ("rm", "-rf") in {words[:2] for words in remotes["worker1"].commands}


def test_a_node_out_of_reach_is_said_before_anything_runs(
    here: Layout, remotes: dict[str, Recording], work: Path
) -> None:
    remotes["worker2"].broken = ("mkdir",)

    with pytest.raises(RemoteError, match="worker2: out of reach"), serve(here, remotes, work):
        raise AssertionError("it must not begin")

    assert list(Path(here.folders["worker1"], "tmp").iterdir()) == []


def test_the_agent_notes_each_call_as_one_line(tmp_path: Path) -> None:
    words = ["worker2", " orted", "-mca", "ess", '"env"']
    for _ in range(2):
        program = [sys.executable, "-I", "-S", mpi_agent.__file__, *words]
        subprocess.run(program, cwd=tmp_path, check=True)

    lines = (tmp_path / mpi_agent.REQUESTS).read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"host": "worker2", "command": ' orted -mca ess "env"'}
    ] * 2
