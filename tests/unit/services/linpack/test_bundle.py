"""HPL and its BLAS: what is fetched from where, what is refused, and what is chosen."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from boardcluster.errors import CapacityError, HostError, RemoteError
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed, run_program
from boardcluster.services.linpack import bundle as module
from boardcluster.services.linpack import have_linpack, is_built, read_dgemm
from boardcluster.services.linpack.bundle import choose_kernels, read_lock

RELEASE = 'ID=debian\nVERSION_ID="12"\n'
PI = f"arm64\n{RELEASE}CPU part\t: 0xd0b\n"
PC = f"amd64\n{RELEASE}model name\t: Xeon\n"
RUN = "process 0 order 512 times 10 in 0.500000000 s, every number right\n"
ARCHIVE = (
    "hpcc-1.5.0/hpl/src/blas/HPL_dgemm.c",
    "hpcc-1.5.0/hpl/testing/ptest/HPL_pdtest.c",
    "hpcc-1.5.0/hpl/include/hpl.h",
    "hpcc-1.5.0/hpl/testing/other/x.c",
    "hpcc-1.5.0/src/hpcc.c",
)
PACKAGES = "libopenblas0-serial_0.3.21+ds-4_amd64.deb\nlibgfortran5_12_a.deb\n"
POOL = "http://mirror.example/debian/pool/main/h/hpcc/"
URIS = f"'{POOL}hpcc_1.5.0-3_amd64.deb' hpcc_1.5.0-3_amd64.deb 1 SHA256:0\n"


def said(status: int = 0, stdout: str = "", stderr: str = "") -> Completed:
    return Completed(
        argv=(),
        returncode=status,
        stdout=stdout.encode(),
        stderr=stderr.encode(),
        duration_seconds=0.0,
    )


class Machine(FakeRemote):
    """A machine with apt and gcc; a program in ``broken`` fails with its words."""

    def __init__(self, name: str, look: str = PC) -> None:
        super().__init__(name)
        self.look = look
        self.broken: dict[str, str] = {}
        self.ran: list[tuple[str, ...]] = []
        self.folders: set[str] = set()
        self.rates: dict[str, int] = {}
        self.own = "Own"
        self.unknown: set[str] = set()
        self.kinds: dict[str, str] = {}

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, **more: Any
    ) -> Completed:
        self.ran.append(tuple(argv))
        program = argv[0].rpartition("/")[2]
        if words := self.broken.get(f"{program} {argv[1]}", self.broken.get(program)):
            raise RemoteError(f"{argv[0]} failed:\n{words}")
        if program == "cat":
            kind = self.kinds.get(argv[1].rpartition("/")[0])
            return said(kind is None, stdout=kind or "")
        if program == "sh" and argv[2].startswith("echo"):
            self.kinds[argv[4]] = argv[2].split('"')[1]
            self.folders.remove(argv[3])
            self.folders.add(argv[4])
        if program == "test":
            return said(argv[2].rpartition("/")[0] not in self.folders)
        if program == "dgemm":
            return self._multiplied((env or {}).get("OPENBLAS_CORETYPE", ""))
        words = " ".join(argv)
        answers = {"sh": self.look, "apt-get download --print-uris": URIS, "find": PACKAGES}
        answers["tar -tzf"] = "\n".join(ARCHIVE)
        found = (text for begin, text in answers.items() if words.startswith(begin))
        return said(stdout=next(found, ""))

    def _multiplied(self, asked: str) -> Completed:
        taken = "Oldest" if asked in self.unknown else asked or self.own
        times = self.rates.get("" if taken == self.own else taken, 10)
        if not times:
            return said(-4)
        row = RUN.replace("times 10", f"times {times}")
        return said(stdout=f"kernels {taken} processes 1\n{row}")

    def put(self, source: Path, target: str) -> None:
        self.folders.add(target)

    def get(self, source: str, target: Path) -> None:
        target.mkdir(parents=True)
        (target / "xhpl").write_text("built")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """This machine; nodes that share its files are this object, too."""
    machine = Machine("this machine")
    monkeypatch.setattr(module, "LocalRemote", lambda _: machine)
    return machine


def have(remote: Machine, cache: Path, told: list[str] | None = None) -> Any:
    return have_linpack(
        remote, cache=cache, folder="/node/tmp", tell=([] if told is None else told).append
    )


def built_folder(cache: Path) -> Path:
    found = (path for path in (cache / "linpack").iterdir() if path.name[0] != ".")
    (folder,) = (path for path in found if path.is_dir())
    return folder


def test_what_a_killed_build_left_is_no_program_and_is_deleted_by_the_next(
    here: Machine, tmp_path: Path
) -> None:
    have(here, tmp_path)
    folder = built_folder(tmp_path)
    left = folder.with_name(f".{folder.name}.partial")
    folder.rename(left)
    assert not is_built(tmp_path)
    (left / "junk").write_text("")
    have(here, tmp_path)
    assert not left.exists()
    assert not (folder / "junk").exists()
    begun = ("rm", "-rf", str(folder.with_name(f".building-{folder.name}")))
    assert here.ran.count(begun) == 4, "before and after each build"


def test_it_is_built_here_where_this_machine_is_of_the_nodes_kind(
    here: Machine, tmp_path: Path
) -> None:
    node, told = Machine("worker1"), list[str]()
    found = have(node, tmp_path, told)

    source = read_lock().source
    fetched = next(argv for argv in here.ran if "download-file" in argv)
    assert fetched[2:] == (
        f"{POOL}{source.archive}",
        "hpl.tar.gz",
        f"SHA256:{source.sha256}",
    )
    compiled = next(argv for argv in here.ran if "-Wl,--wrap=HPL_pdgesv" in argv)
    assert "-DHPL_NO_MPI_DATATYPE" in compiled
    assert [word for word in compiled if word in ARCHIVE] == list(ARCHIVE[:2])
    assert not any(argv[0] in {"apt-get", "gcc", "tar"} for argv in node.ran)
    assert is_built(tmp_path)
    assert not is_built(tmp_path / "other")
    assert (
        found.blas
        == "OpenBLAS 0.3.21+ds-4 (libopenblas0-serial), kernels for Own, asked for by name"
    )
    assert found.folder.startswith("/node/tmp/linpack-")  # it does not see the cache
    assert found.folder in node.folders
    assert told[-2:] == [
        "copying HPL and OpenBLAS to worker1",
        "choosing the kernels of OpenBLAS for worker1",
    ]


def test_a_second_time_nothing_is_fetched_built_copied_or_tried(
    here: Machine, tmp_path: Path
) -> None:
    node = Machine("worker1")
    first = have(node, tmp_path)
    here.ran.clear()
    node.ran.clear()
    told: list[str] = []
    assert have(node, tmp_path, told) == first
    assert {argv[0] for argv in node.ran} == {"sh", "test", "cat"}
    assert not here.ran
    assert told == []


def test_a_node_that_sees_the_cache_gets_no_copy(here: Machine, tmp_path: Path) -> None:
    have(Machine("other"), tmp_path)
    here.folders.add(str(built_folder(tmp_path)))
    assert have(here, tmp_path).folder == str(built_folder(tmp_path))


def test_a_copy_that_broke_off_is_made_again(here: Machine, tmp_path: Path) -> None:
    node = Machine("pi1", PI)
    folder = have(node, tmp_path).folder
    node.kinds.clear()  # what was sent lies beside it until all of it is there
    told: list[str] = []
    assert have(node, tmp_path, told).folder == folder
    assert told == ["copying HPL and OpenBLAS to pi1"]
    [moved] = [argv for argv in node.ran[-8:] if argv[0] == "sh" and "mv" in argv[2]]
    assert moved[3:] == (f"{folder}.partial", folder)


@pytest.mark.parametrize("left", ["", "{", "{}", "7", None])
def test_what_a_loss_of_power_left_is_built_again(
    left: str | None, here: Machine, tmp_path: Path
) -> None:
    first = have(Machine("worker1"), tmp_path)
    facts = built_folder(tmp_path) / "linpack.json"
    if left is None:
        facts.unlink()
    else:
        facts.write_text(left)
    here.ran.clear()
    assert have(Machine("worker1"), tmp_path) == first
    assert any(argv[0] == "gcc" for argv in here.ran)
    assert json.loads(facts.read_text())["blas"].startswith("OpenBLAS")


def test_what_was_built_again_is_copied_again(here: Machine, tmp_path: Path) -> None:
    node = Machine("worker1")
    have(node, tmp_path)
    (built_folder(tmp_path) / "linpack.json").write_text("")
    have(Machine("worker2"), tmp_path)
    node.ran.clear()
    told: list[str] = []
    have(node, tmp_path, told)
    assert "copying HPL and OpenBLAS to worker1" in told
    have(node, tmp_path, told := [])
    assert told == []


def test_an_empty_file_of_chosen_kernels_is_written_again(here: Machine, tmp_path: Path) -> None:
    node = Machine("worker1")
    found = have(node, tmp_path)
    [kept] = (tmp_path / "linpack").glob("*-kernels-*.json")
    kept.write_text("")
    assert have(node, tmp_path) == found
    assert json.loads(kept.read_text())["asked"]


def test_boards_of_another_kind_build_it_once_themselves(here: Machine, tmp_path: Path) -> None:
    first, second = Machine("pi1", PI), Machine("pi2", PI)
    found = have(first, tmp_path)
    assert have(second, tmp_path).xhpl == found.xhpl  # mpirun starts one path everywhere
    assert any(argv[0] == "gcc" for argv in first.ran)
    assert not any(argv[0] == "gcc" for argv in (*second.ran, *here.ran))
    assert any(argv[:2] == ("rm", "-rf") for argv in first.ran)


@pytest.mark.parametrize(
    ("program", "message", "hint"),
    [
        ("gcc", "it needs a C compiler: gcc: not found", "apt-get install -y gcc libc6-dev"),
        ("apt-get", "apt does not know the package hpcc: gcc: not found", "sudo apt-get update"),
        ("apt-helper", "hpcc_1.5.0.orig.tar.gz cannot be fetched", "provide a network connection"),
        ("tar -xzf", "the archive cannot be unpacked", "hpl.binary to hpcc"),
    ],
)
def test_what_is_missing_is_named_with_what_helps(
    here: Machine, tmp_path: Path, program: str, message: str, hint: str
) -> None:
    here.broken[program] = "some line\ngcc: not found"
    with pytest.raises(HostError) as caught:
        have(Machine("worker1"), tmp_path)
    assert f"HPL cannot be built on this machine: {message}" in caught.value.message
    assert hint in caught.value.hint
    assert "hpl.binary" in caught.value.hint
    assert not [path for path in (tmp_path / "linpack").iterdir() if path.name[0] != "."]


def test_another_processor_is_refused(here: Machine, tmp_path: Path) -> None:
    with pytest.raises(HostError, match="processors of the kind armhf, only for amd64, arm64"):
        have(Machine("pi", PI.replace("arm64", "armhf")), tmp_path)


def test_a_program_that_does_not_run_on_the_node_is_an_error(here: Machine, tmp_path: Path) -> None:
    node = Machine("worker1")
    node.rates[""] = 0
    with pytest.raises(HostError, match="does not run on worker1: status -4"):
        have(node, tmp_path)


# Kernels


def test_kernels_of_an_openblas_that_is_older_than_the_cpu_are_asked_for(
    here: Machine, tmp_path: Path
) -> None:
    """Debian 12's takes Prescott's on a Xeon of 2023: 16 Gflop/s a core, where 80 are there."""
    node = Machine("worker1")
    node.rates = {"": 16, "SKYLAKEX": 77, "HASWELL": 42}
    found = have(node, tmp_path)
    assert found.kernels == "SKYLAKEX"
    assert found.environment == {"OPENBLAS_CORETYPE": "SKYLAKEX"}
    assert found.blas.endswith("kernels for SKYLAKEX, asked for by name")


def test_the_librarys_own_choice_is_asked_for_by_name(here: Machine, tmp_path: Path) -> None:
    """On an EPYC of 2024 Debian 12's takes Cooperlake's in one process and Haswell's in another."""
    node = Machine("worker1")
    node.own = "Cooperlake"
    assert have(node, tmp_path).environment == {"OPENBLAS_CORETYPE": "Cooperlake"}
    (kept,) = (tmp_path / "linpack").glob("*-kernels-*.json")
    told = json.loads(kept.read_text())
    kept.write_text(json.dumps({"asked": "", "named": "Own", "gflops": {}}))  # by a former version
    assert have(node, tmp_path).kernels == "Cooperlake"
    assert json.loads(kept.read_text()) == told
    node.own = "Haswell"  # now that it is known, nothing is tried again
    assert have(node, tmp_path).kernels == "Cooperlake"


def test_what_counts_is_what_the_library_takes_when_asked(here: Machine, tmp_path: Path) -> None:
    """Some do not know the name of their own choice, and then take the oldest kernels."""
    node = Machine("worker1")
    node.unknown = {"Own"}
    node.rates = {"": 80, "Oldest": 16, "SKYLAKEX": 77, "HASWELL": 42}
    assert have(node, tmp_path).kernels == "SKYLAKEX"
    node.rates |= {"SKYLAKEX": 0, "HASWELL": 0}
    shutil.rmtree(tmp_path / "linpack")
    assert have(node, tmp_path).blas.endswith("kernels for Oldest, asked for by name")


def test_kernels_that_the_cpu_cannot_execute_are_passed_over(here: Machine, tmp_path: Path) -> None:
    node = Machine("worker1")
    node.rates = {"": 16, "SKYLAKEX": 0, "HASWELL": 42}
    assert have(node, tmp_path).kernels == "HASWELL"


def test_half_a_file_of_chosen_kernels_never_has_its_name(
    here: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Machine("worker1")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CapacityError, match="kernels"):
        have(node, tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(module, "LocalRemote", lambda _: here)
    assert have(node, tmp_path).kernels == "Own"


@pytest.mark.parametrize(
    ("rates", "asked"),
    [
        ({"O": [10.0], "A": [11.0]}, "O"),  # a little faster is noise
        ({"O": [10.0, 2.0], "A": [12.5, 1.0]}, "A"),
        ({"O": [5.0], "A": [39.9, 4.1], "B": [31.0, 40.1]}, "A"),  # equal: the first one
        ({"O": [5.0], "A": [30.0], "B": [40.0]}, "B"),
        ({"O": [10.0]}, "O"),
    ],
)
def test_other_kernels_are_taken_only_where_they_are_clearly_faster(
    rates: dict[str, list[float]], asked: str
) -> None:
    assert choose_kernels(rates) == asked


# The program dgemm


def test_rates_of_processes_add_up() -> None:
    text = f"kernels SkylakeX processes 2\n{RUN.replace('process 0', 'process 1')}{RUN}"
    found = read_dgemm(text)
    assert found is not None
    assert (found.kernels, found.order) == ("SkylakeX", 512)
    assert found.flops_per_second == pytest.approx(2 * 2 * 512**3 * 10 / 0.5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (", every number right", ""),
        ("processes 1", "processes 2"),
        ("process 0", "process 1"),
        ("0.500000000", "0.000000000"),
        ("kernels", "colonels"),
        (RUN, ""),
    ],
)
def test_what_is_not_whole_or_not_right_is_no_rate(old: str, new: str) -> None:
    text = f"kernels Haswell processes 1\n{RUN}"
    assert old in text
    assert read_dgemm(text) is not None
    assert read_dgemm(text.replace(old, new)) is None


PLAIN_BLAS = """
void cblas_dgemm(int o, int s, int t, int m, int n, int k, double x, const double *a, int lda,
                 const double *b, int ldb, double y, double *c, int ldc)
{
    (void)o; (void)s; (void)t; (void)x; (void)y;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int l = 0; l < k; l++)
                c[i * ldc + j] += a[i * lda + l] * b[l * ldb + j] WRONG;
}
char *openblas_get_corename(void) { return "Plain"; }
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler here")
@pytest.mark.parametrize(("wrong", "status"), [("", 0), ("+ (i == 3)", 1)])
def test_the_program_compiles_without_a_warning_and_checks_every_number(
    tmp_path: Path, wrong: str, status: int
) -> None:
    (tmp_path / "blas.c").write_text(PLAIN_BLAS.replace("WRONG", wrong))
    source = resources.files("boardcluster.services.linpack").joinpath("dgemm.c")
    warnings = ["-Wall", "-Wextra", "-Werror"]
    program = str(tmp_path / "dgemm")
    files = [str(source), str(tmp_path / "blas.c")]
    run_program(["gcc", "-std=gnu11", "-O1", *warnings, *files, "-o", program])

    done = run_program([program, "2", "32", "0.01"], check=False)

    assert done.returncode == status
    found = read_dgemm(done.text)
    assert (found is None) == bool(status)
    if found is not None:
        assert len(found.flops) == 2
