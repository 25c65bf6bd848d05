"""Prove on arm64, without a board, that boardcluster works there; docs/how-to/prove-arm64.md.

    .venv/bin/python tools/arm64.py prove     Debian arm64 under user-mode emulation
    .venv/bin/python tools/arm64.py refuse    Debian i386: a 64-bit kernel, 32-bit programs

Needs root, debootstrap and, for arm64, qemu-user-static, on an x86-64 machine. A root folder is
made once and kept. Each step says what it saw and how long that took; the first that fails ends it
all.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.boards import Boards  # noqa: E402

from boardcluster.errors import HostError  # noqa: E402
from boardcluster.services.boards import MPI_PACKAGES  # noqa: E402
from boardcluster.services.pair import pair_ids  # noqa: E402

SUITE = "bookworm"
SUBNET = "198.18.46.0/24"
INSIDE = "BOARDCLUSTER_ARM64_INSIDE"
BINFMT = Path("/proc/sys/fs/binfmt_misc")
SSH = ("ssh", "-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes")
COMMON_PACKAGES = ("iproute2", "openssh-server", "procps", "python3", "rsync", "sudo")
TEXT = "one two three\n" * 2000 + "four\n"
MEMORY = "4 GiB"
"""What the node declares; else heaps would be as large as this machine's memory allows."""

UP_TRIES = 3
"""The program waits so long as real boards need. Here that may be too short on a busy machine."""

STATE = """\
cat /etc/passwd /etc/group /etc/shadow
dpkg -l | sort
find /opt /var/lib /usr/local -maxdepth 2 | sort
find /etc -type f ! -name '*-' -exec sha256sum {} + | sort -k2
if command -v nft; then nft list ruleset; fi
"""
"""Prints what an installation could change on a node."""


@dataclass(frozen=True, slots=True)
class System:
    """A Debian system for an architecture that is not this machine's.

    Attributes:
        architecture: as Debian names it.
        packages: what it has beside Debian's essential ones.
        later: what apt adds, because debootstrap knows no alternatives among dependencies.
        native: what apt adds of this machine's architecture. Emulation of system calls ends at
            netlink sockets of the firewall, and a firewall is the kernel's, whoever writes to it.
        emulator: program for its executables; empty where this kernel runs them.
        magic: first bytes of its executables, and the mask of those bits that count.
    """

    architecture: str
    packages: tuple[str, ...]
    later: tuple[str, ...] = ()
    native: tuple[str, ...] = ()
    emulator: str = ""
    magic: tuple[bytes, bytes] = (b"", b"")


ARM64 = System(
    architecture="arm64",
    packages=(*COMMON_PACKAGES, "ca-certificates", "openjdk-17-jre-headless", "systemd-timesyncd"),
    later=MPI_PACKAGES,  # nodes have no network to fetch them from
    native=("nftables",),
    emulator="qemu-aarch64-static",
    magic=(
        # ELF of 64 bits, little endian, of type 2 or 3 (program), for machine 0xb7 (AArch64)
        bytes.fromhex("7f454c460201010000000000000000000200b700"),
        bytes.fromhex("ffffffffffffff00fffffffffffffffffeffffff"),
    ),
)
I386 = System(architecture="i386", packages=COMMON_PACKAGES)


def fail(text: str) -> None:
    """End with a message."""
    sys.exit(f"arm64: {text}")


@contextlib.contextmanager
def step(name: str) -> Iterator[list[str]]:
    """Print what a step saw, which it puts into the list, and how long it took."""
    seen: list[str] = []
    began = time.monotonic()
    yield seen
    print(f"{name:12} {'; '.join(seen):70} {time.monotonic() - began:6.1f} s", flush=True)


def expect(holds: bool, text: str) -> None:
    """End with what was seen unless it is what was to be proved."""
    if not holds:
        fail(f"not as it should be: {text}")


def in_root(root: Path, *argv: str) -> None:
    """Run a program of a root folder, with its own processes and nothing mounted outside."""
    own = ("--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={root / 'proc'}")
    subprocess.run(
        ["unshare", *own, "chroot", str(root), *argv],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def make_root(system: System, folder: Path) -> Path:
    """Return a root folder, made now if there is none with these packages; renamed when whole."""
    root = folder / f"{SUITE}-{system.architecture}"
    stamp = root / "packages"
    wanted = " ".join((*system.packages, *system.later, *system.native))
    if stamp.is_file() and stamp.read_text() == wanted:
        return root
    partial = folder / f"{root.name}.partial"
    for old in (root, partial):
        if old.exists():
            shutil.rmtree(old)
    partial.mkdir(parents=True)
    partial.chmod(0o755)
    first = ["debootstrap", "--foreign", "--variant=minbase", f"--arch={system.architecture}"]
    first += [f"--include={','.join(system.packages)}", SUITE, str(partial)]
    subprocess.run(first, stdout=subprocess.DEVNULL, check=True)
    in_root(partial, "/debootstrap/debootstrap", "--second-stage")
    if system.later or system.native:
        shown = ["dpkg", "--print-architecture"]
        own = subprocess.run(shown, capture_output=True, text=True, check=True).stdout.strip()
        in_root(partial, "dpkg", "--add-architecture", own)
        in_root(partial, "apt-get", "-q", "update")
        names = [*system.later, *(f"{name}:{own}" for name in system.native)]
        options = ("-q", "-y", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0")
        in_root(partial, "apt-get", *options, "install", *names)
    in_root(partial, "apt-get", "clean")
    (partial / "packages").write_text(wanted)
    partial.rename(root)
    return root


@contextlib.contextmanager
def emulated(system: System) -> Iterator[None]:
    """Let the kernel start the system's programs with the emulator, on all of this machine.

    Flags: O and C, so that sudo gets its rights from its own file and not from the emulator's; F,
    so that the emulator is found in every root folder; P, so that programs see their own name.
    """
    if not system.emulator:
        yield
        return
    entry = BINFMT / f"boardcluster-{system.architecture}"
    if not (BINFMT / "register").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", str(BINFMT)], check=True)
    emulator = shutil.which(system.emulator)
    assert emulator
    codes = ["".join(f"\\x{byte:02x}" for byte in part) for part in system.magic]
    if entry.exists():
        entry.write_text("-1")  # of a run that was killed
    (BINFMT / "register").write_text(f":{entry.name}:M::{codes[0]}:{codes[1]}:{emulator}:POCF")
    try:
        yield
    finally:
        entry.write_text("-1")


def on_node(boards: Boards, command: str) -> str:
    """Run a command on the node by SSH; what it prints."""
    done = boards.on_driver([*SSH, "pi0", command], check=False)
    expect(done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout.strip()


def state_of(boards: Boards) -> str:
    """Return what an installation could change on the node."""
    return boards.run_on(0, ["sh", "-ec", STATE]).stdout


class Driver:
    """The program as a user on the driver runs it."""

    def __init__(self, boards: Boards, home: Path, cache: Path) -> None:
        self.boards = boards
        self.home = home
        self._env = ("env", f"BOARDCLUSTER_HOME={home}", f"BOARDCLUSTER_CACHE={cache}")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it, whatever comes of it."""
        command = [*self._env, sys.executable, "-m", "boardcluster", *arguments]
        return self.boards.on_driver(command, check=False)

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """Run it; what it prints. Ends all with another exit code."""
        done = self.run(*arguments)
        shown = f"{arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        expect(done.returncode == code, shown)
        return done.stdout if code == 0 else done.stderr

    def json(self, *arguments: str) -> Any:
        """Run it with --json; what that says."""
        return json.loads(self(*arguments, "--json"))


def show_node(boards: Boards) -> None:
    """Prove that the node is what it should be and that Java runs."""
    with step("node") as seen:
        seen.extend(on_node(boards, "uname -m; . /etc/os-release; echo $PRETTY_NAME").splitlines())
        expect(seen[0] == "aarch64", seen[0])
    with step("java") as seen:
        seen.extend(on_node(boards, "java -version 2>&1").splitlines()[1:2])
        expect("OpenJDK" in seen[0], seen[0])


def look(driver: Driver) -> None:
    """Prove that the program knows the node for what it is, and only looks."""
    before = state_of(driver.boards)
    with step("init") as seen:
        table = driver("init", "--hosts", "pi0", "--yes")
        expect("aarch64" in table, table)
        seen.append("aarch64 in the table")
    path = driver.home / "cluster.toml"
    path.write_text(re.sub(r'memory = ".*"', f'memory = "{MEMORY}"', path.read_text()))
    examine(driver)
    with step("up --dry-run") as seen:
        changes = driver.json("up", "--dry-run")
        words = " ".join(change["words"] for change in changes)
        expect("java-17-openjdk-arm64" in words and "installs" not in words, words)
        seen.append(f"{len(changes)} changes")
    expect(state_of(driver.boards) == before, "looking has changed the node")


def examine(driver: Driver) -> None:
    """Prove that the doctor finds no error; its exit code says so."""
    with step("doctor") as seen:
        findings = driver.json("doctor")
        faults = [row["check"] for row in findings if not row["ok"]]
        seen.append(f"{len(findings)} findings, no error")
        seen.extend(f"warning {name}" for name in faults)


def bring_up(driver: Driver) -> None:
    """Prove that the program installs all that is missing, and that all daemons become healthy."""
    with step("up") as seen:
        for tries in range(1, UP_TRIES + 1):
            done = driver.run("up")
            if done.returncode == 0:
                break
            expect(tries < UP_TRIES and "not healthy after" in done.stderr, done.stderr)
        seen.append(f"healthy at try {tries}")
    with step("up --dry-run") as seen:
        changes = driver.json("up", "--dry-run")
        expect(changes == [], f"{changes}")
        seen.append("nothing to change")
    with step("status") as seen:
        status = driver.json("status")
        alive = [row["name"] for row in status["daemons"] if row["alive"]]
        expect(status["phase"] == "up" and len(alive) == 6, f"{status}")
        seen.append(f"up, {len(alive)} daemons")
        shown = on_node(driver.boards, "ps -eo user:20=,args= | grep '/[b]in/java'").splitlines()
        expect({row.split()[0] for row in shown} == {"boardcluster"}, "\n".join(shown))
        seen.append("all of them without rights")


def work(driver: Driver, text: Path) -> None:
    """Prove that each engine works; the program itself verifies what they give."""
    text.write_text(TEXT)
    once = ("--repetitions", "1")
    for engine in ("mapreduce", "spark"):
        with step(engine) as seen:
            driver("run", "wordcount", "--input", str(text), "--engine", engine, *once)
            seen.append("wordcount, verified")
    with step("mpi") as seen:
        driver("run", "hpl", "--size", "8MB", "--set", "binary=hpcc", *once)
        seen.append("hpl, verified")


def prove(root: Path, folder: Path, cache: Path) -> None:
    """Prove the whole life of a cluster on one node with that root folder."""
    with Boards(1, folder=folder / "boards", subnet=SUBNET, base=root) as boards:
        driver = Driver(boards, folder / "home", cache)
        show_node(boards)
        before = state_of(boards)
        look(driver)
        bring_up(driver)
        work(driver, folder / "text")
        examine(driver)
        with step("uninstall") as seen:
            driver("uninstall", "--yes")
            expect(state_of(boards) == before, "uninstall has left something")
            seen.append("all is as it was")


def refuse(root: Path, folder: Path, cache: Path) -> None:
    """Prove that programs of 32 bits on a kernel of 64 are noticed and refused."""
    with Boards(1, folder=folder / "boards", subnet=SUBNET, base=root) as boards:
        driver = Driver(boards, folder / "home", cache)
        with step("node") as seen:
            python = "import platform, struct; print(platform.machine(), struct.calcsize('P') * 8)"
            seen.extend(on_node(boards, f'python3 -c "{python}"').split())
            expect(seen == ["x86_64", "32"], str(seen))
        before = state_of(boards)
        with step("init") as seen:
            said = driver("init", "--hosts", "pi0", "--yes", code=HostError.exit_code)
            expect("its programs are 32-bit ones; its kernel is a 64-bit one" in said, said)
            seen.append(f"refused with exit code {HostError.exit_code}")
        expect(not (driver.home / "cluster.toml").exists(), "there is a cluster.toml")
        expect(state_of(boards) == before, "looking has changed the node")


def check_machine(system: System, engines: Path) -> None:
    """End with a hint if something is missing here."""
    if os.geteuid() != 0:
        fail("run this as root: nodes are namespaces with a root folder of their own")
    if platform.machine() != "x86_64":
        fail("only on x86-64; on an arm64 machine the tests themselves are the proof")
    programs = {"debootstrap": "debootstrap"}
    if system.emulator:
        programs[system.emulator] = "qemu-user-static"
    missing = sorted(package for name, package in programs.items() if not shutil.which(name))
    if missing:
        fail(f"run: apt-get install --no-install-recommends {' '.join(missing)}")
    if not engines.is_dir():
        fail(f"{engines} is missing: run `make demo`, which fetches the engines")


def main() -> None:
    """Do it all in a mount namespace of our own, so that nothing stays mounted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("prove", "refuse"))
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "boardcluster")
    options = parser.parse_args()
    system = ARM64 if options.what == "prove" else I386
    engines = options.cache / "engines" / pair_ids()[0]
    check_machine(system, engines)
    if INSIDE not in os.environ:
        again = ["unshare", "--mount", "--", sys.executable, *sys.argv]
        os.execvpe("unshare", again, {**os.environ, INSIDE: "1"})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leave nothing behind
    with emulated(system), tempfile.TemporaryDirectory(prefix="arm64-") as folder:
        with step("root folder") as seen:
            root = make_root(system, options.cache / "roots")
            seen.append(str(root))
        proof = prove if system is ARM64 else refuse
        proof(root, Path(folder), options.cache)
    print("proved")


if __name__ == "__main__":
    main()
