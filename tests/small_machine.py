"""A small virtual machine for tests that need another kernel than this machine's.

It has Debian's own kernel for clouds, taken from its package and not installed, two processors, an
empty disk, and no network. All its files are in an archive in memory (initramfs), made of this
machine's own: this Python, its standard library, the boardcluster package, and the programs that a
test names with their libraries. Its first process mounts the control groups of version 2 with all
controllers, runs one Python program, and ends the machine. What the program prints comes back by
a serial port of its own, apart from the kernel's console.

Instructions are emulated (QEMU's TCG), so neither root nor a processor that runs virtual machines
is needed. Now and then the emulator hangs. A machine is started again if its console falls silent,
where the first process says every second that it lives, or if it does not end in time and its
kernel has just said that a processor is stuck. A program that hangs in a machine that lives is a
failure.

Archive, disk and console are files without a name, and the kernel ends the machine with the thread
that started it: nothing of it stays, even after kill -9.
"""

from __future__ import annotations

import collections
import functools
import importlib.metadata
import lzma
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PACKAGE = "linux-image-cloud-amd64"
"""Depends on the package of the newest kernel."""

FETCH_SECONDS_MOST = 300.0
STARTS_MOST = 3
"""How often a machine is started that hangs."""

SILENT_SECONDS_MOST = 60.0
SILENT_AT_END_SECONDS_MOST = 10.0
"""Of a machine that did not end in time."""

JUST_SECONDS = 30.0
"""So long ago at most its kernel said that a processor is stuck; what passed is not the cause."""

LOOK_SECONDS = 0.5
STUCK = (b"soft lockup", b"hard LOCKUP", b"detected stall", b"detected expedited stall")
"""What Linux says of a processor that does not go on (kernel/watchdog.c, kernel/rcu)."""

MODULES = ("virtio_pci", "virtio_blk", "loop")
PROJECT = "/opt/boardcluster"
"""Where the machine has the boardcluster package."""

SCRIPTS = "/opt/scripts"
"""Where it has the test's own programs."""

LEFT_OUT = frozenset(
    {"__pycache__", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tests"}
    | {"dist-packages", "site-packages", "tkinter", "turtledemo", "_tkinter"}
)
"""Of the standard library."""

INIT = """\
#!{python} -E
import ctypes, os, subprocess, sys, termios, threading, time

os.environ.update(PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
os.environ.update(HOME="/", LC_ALL="C.UTF-8", PYTHONPATH={project!r}, PYTHONUNBUFFERED="1")
libc = ctypes.CDLL(None, use_errno=True)


def done(status, what):
    if status != 0:
        raise OSError(ctypes.get_errno(), what)


def mount(kind, folder):
    os.makedirs(folder, exist_ok=True)
    done(libc.mount(kind.encode(), folder.encode(), kind.encode(), 0, None), folder)


def live():
    while True:
        print(f"alive at {{time.monotonic():.0f}} s", file=sys.stderr, flush=True)
        time.sleep(1)


def run():
    mount("proc", "/proc")
    mount("sysfs", "/sys")
    mount("devtmpfs", "/dev")
    mount("tmpfs", "/tmp")
    mount("cgroup2", "/sys/fs/cgroup")
    for module in sorted(os.listdir("/modules")):
        with open(f"/modules/{{module}}", "rb") as stream:
            text = stream.read()
        done(libc.syscall(175, text, ctypes.c_ulong(len(text)), b""), module)  # init_module
    deadline = time.monotonic() + 20
    while not os.path.exists("/dev/vda") and time.monotonic() < deadline:
        time.sleep(0.05)
    with open("/dev/ttyS1", "wb", buffering=0) as results:
        child = subprocess.Popen([sys.executable, {program!r}], stdout=results)
        while (ended := os.wait())[0] != child.pid:
            pass
        results.write(f"\\nstatus {{os.waitstatus_to_exitcode(ended[1])}}\\n".encode())
        termios.tcdrain(results)


threading.Thread(target=live, daemon=True).start()
try:
    run()
finally:
    sys.stderr.flush()
    time.sleep(0.2)
    libc.reboot(0x01234567)  # by its own settings the machine then ends
"""
"""The machine's first process; 175 is the number of init_module on x86-64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel that was fetched.

    Attributes:
        image: what QEMU loads.
        modules: module files, each after those that it needs.
    """

    image: Path
    modules: tuple[Path, ...]


def missing(programs: Iterable[str]) -> str:
    """Return why no such machine runs here; empty if one does.

    Args:
        programs: of this machine, that the program inside needs.
    """
    if platform.machine() != "x86_64" or sys.platform != "linux":
        return "the small machine is an x86-64 one with Linux"
    if platform.freedesktop_os_release().get("ID") != "debian":
        return "the small machine takes its kernel from Debian's packages"
    own = ("qemu-system-x86_64", "apt-get", "dpkg-deb", "setpriv", "ldd")
    lacking = [name for name in (*own, *programs) if find(name) is None]
    if lacking:
        return f"the small machine needs {', '.join(lacking)}"
    return ""


def find(program: str) -> Path | None:
    """Return where a program of this machine is; PATH of ordinary users lacks some."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    found = shutil.which(program, path=path)
    return Path(found) if found else None


def fetch_kernel(cache: Path, work: Path) -> Kernel:
    """Return Debian's newest kernel for clouds, or the one that was fetched before.

    Package lists of its own are used, so this machine's are neither too old nor changed.

    Args:
        cache: folder that keeps it, 15 MB.
        work: empty folder for what is needed in between, 150 MB; it is removed if it was needed.
    """
    home = cache / "test-kernel"
    if not home.exists():
        (work / "lists").mkdir()
        options = ("-q", "-o", f"Dir::State::Lists={work / 'lists'}", "-o", f"Dir::Cache={work}")
        asroot = ("-o", "APT::Sandbox::User=")  # another user could not write here
        _said("apt-get", *options, *asroot, "update", folder=work)
        depends = _said("apt-cache", *options, "depends", PACKAGE, folder=work)
        found = re.search(r"Depends: (linux-image-\S+)", depends)
        assert found is not None, f"{PACKAGE} depends on no kernel:\n{depends}"
        _said("apt-get", *options, *asroot, "download", found[1], folder=work)
        (package,) = work.glob("linux-image-*.deb")
        _said("dpkg-deb", "-x", str(package), "tree", folder=work)
        _keep(work / "tree", home)
        shutil.rmtree(work)
    names = (home / "order").read_text().split()
    return Kernel(image=home / "vmlinuz", modules=tuple(home / name for name in names))


def _said(*command: str, folder: Path) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=FETCH_SECONDS_MOST,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stdout[-2000:]}"
    return done.stdout


def _keep(tree: Path, home: Path) -> None:
    """Keep of an unpacked package the kernel and the modules that the machine loads."""
    (image,) = (tree / "boot").glob("vmlinuz-*")
    files = {}
    for path in tree.rglob("*.ko*"):
        files[path.name.partition(".")[0].replace("-", "_")] = path
    ordered: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in ordered or name not in files:
            return  # what is in the kernel itself has no file
        data = files[name].read_bytes()
        if files[name].suffix == ".xz":
            data = lzma.decompress(data)
        needs = re.search(rb"\0depends=([^\0]*)\0", data)
        for other in (needs[1].decode() if needs else "").split(","):
            add(other.replace("-", "_"))
        ordered[name] = data

    for name in MODULES:
        add(name)
    made = home.with_name(f"{home.name}.new")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    shutil.copyfile(image, made / "vmlinuz")
    for name, data in ordered.items():
        (made / f"{name}.ko").write_bytes(data)
    (made / "order").write_text("\n".join(f"{name}.ko" for name in ordered))
    made.replace(home)


class Archive:
    """Files of the machine, written as the kernel unpacks them (cpio, format ``newc``).

    Args:
        stream: where they are written.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._names: set[str] = set()

    def _entry(self, name: str, mode: int, data: bytes, modified_seconds: int = 0) -> None:
        self._names.add(name)
        text = name.lstrip("/").encode() + b"\0"
        inode = len(self._names)
        fields = (inode, mode, 0, 0, 1, modified_seconds, len(data), 0, 0, 0, 0, len(text), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + text
        self._stream.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))

    def _parents(self, name: str) -> None:
        for folder in reversed(Path(name).parents):
            if str(folder) != "/" and str(folder) not in self._names:
                self._entry(str(folder), stat.S_IFDIR | 0o755, b"")

    def write(self, name: str, data: bytes, *, mode: int = 0o644) -> None:
        """Add a file with this content."""
        self._parents(name)
        self._entry(name, stat.S_IFREG | mode, data)

    def add(self, path: Path, *, name: str = "") -> None:
        """Add a file of this machine, at the same place or another."""
        name = name or str(path.parent.resolve() / path.name)
        if name in self._names:
            return
        self._parents(name)
        found = path.stat()
        mode = stat.S_IFREG | stat.S_IMODE(found.st_mode)
        self._entry(name, mode, path.read_bytes(), int(found.st_mtime))

    def link(self, path: Path) -> None:
        """Add a symbolic link of this machine."""
        self._entry(str(path), stat.S_IFLNK | 0o777, str(path.readlink()).encode())

    def end(self) -> None:
        """Write what ends an archive."""
        self._entry("TRAILER!!!", 0, b"")
        self._stream.flush()


def _library() -> Iterator[Path]:
    """Files of this Python's standard library."""
    folders = {Path(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib")}
    own = {folder for folder in folders if not str(folder).startswith(sys.prefix + "/")}
    for folder in sorted(own or folders):
        for path in sorted(folder.rglob("*")):
            words = set(path.relative_to(folder).parts)
            kept = path.suffix in (".py", ".so") and path.name.partition(".")[0] not in LEFT_OUT
            if kept and not words & LEFT_OUT and path.is_file():
                yield path


def _libraries(binaries: Sequence[Path]) -> set[Path]:
    """Shared libraries that programs load, and what loads them; scripts need none."""
    done = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, text=True, check=False)
    return {Path(path) for path in re.findall(r"^\s(?:\S+ => )?(/\S+) \(", done.stdout, re.M)}


def _fill(
    archive: Archive, scripts: Sequence[Path], kernel: Kernel, programs: Sequence[str]
) -> None:
    for folder in map(Path, ("/bin", "/lib", "/lib64", "/sbin")):
        if folder.is_symlink():
            archive.link(folder)
    python = Path(sys.executable).resolve()
    tools = [path for name in programs if (path := find(name)) is not None]
    library = list(_library())
    binaries = [python, *tools, *(path for path in library if path.suffix == ".so")]
    for path in [*binaries, *library, *sorted(_libraries(binaries))]:
        archive.add(path)
    distribution = importlib.metadata.distribution("boardcluster")
    archive.write(
        f"{PROJECT}/boardcluster-{distribution.version}.dist-info/METADATA",
        (distribution.read_text("METADATA") or "").encode(),
    )
    source = Path(__file__).resolve().parents[1] / "src"
    for path in sorted((source / "boardcluster").rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            archive.add(path, name=f"{PROJECT}/{path.relative_to(source)}")
    for index, module in enumerate(kernel.modules):
        archive.add(module, name=f"/modules/{index:02}-{module.name}")
    for script in scripts:
        archive.add(script, name=f"{SCRIPTS}/{script.name}")
    program = f"{SCRIPTS}/{scripts[0].name}"
    init = INIT.format(python=python, project=PROJECT, program=program)
    archive.write("/init", init.encode(), mode=0o755)
    archive.end()


def run_inside(
    *scripts: Path,
    kernel: Kernel,
    programs: Sequence[str],
    memory_bytes: int,
    disk_bytes: int,
    timeout_seconds: float,
) -> str:
    """Run a Python program as root in a machine of its own; return what it prints.

    Args:
        scripts: the program, and files that are to lie beside it. They can import boardcluster
            as far as that needs no other package.
        kernel: from ``fetch_kernel``.
        programs: of this machine, that it needs.
        memory_bytes: of the machine.
        disk_bytes: size of its disk, ``/dev/vda``; room is taken only as it is written.
        timeout_seconds: of each start; after this the machine is ended.

    Raises:
        AssertionError: the program failed, or the machine did not end in time, or it hung
            ``STARTS_MOST`` times; the end of the machine's console is in a note.
    """
    with tempfile.TemporaryFile() as archive:
        _fill(Archive(archive), scripts, kernel, programs)
        machine = (archive, kernel, memory_bytes, disk_bytes, timeout_seconds)
        return started(functools.partial(_start, *machine))


def started(start: Callable[[], str]) -> str:
    """Return what a machine prints, the first that does not hang; most are ``STARTS_MOST``."""
    for _ in range(STARTS_MOST - 1):
        try:
            return start()
        except HungError as error:
            print(f"started again: {error}", *getattr(error, "__notes__", ()), sep="\n")
    return start()


def _start(
    archive: IO[bytes], kernel: Kernel, memory_bytes: int, disk_bytes: int, timeout_seconds: float
) -> str:
    with tempfile.TemporaryFile() as disk, tempfile.TemporaryFile() as console:
        disk.truncate(disk_bytes)
        drive = "id=disk,if=none,format=raw,cache=unsafe"
        command = [
            *("setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"),
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            # With "max" for its model, a machine may hang where the second processor starts.
            *("-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "Haswell-noTSX"),
            *("-smp", "2", "-m", f"{memory_bytes >> 20}M", "-kernel", str(kernel.image)),
            *("-initrd", f"/proc/self/fd/{archive.fileno()}"),
            *("-append", "console=ttyS0 panic=-1 cgroup_no_v1=all"),
            *("-serial", f"file:/proc/self/fd/{console.fileno()}", "-serial", "stdio"),
            *("-drive", f"{drive},file=/proc/self/fd/{disk.fileno()}"),
            *("-device", "virtio-blk-pci,drive=disk"),
        ]
        files = (archive.fileno(), disk.fileno(), console.fileno())
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=files,
        ) as process:
            try:
                return _result(*printed(process, console, timeout_seconds=timeout_seconds))
            except AssertionError as error:
                console.seek(0)
                error.add_note(console.read()[-4000:].decode(errors="replace"))
                raise
            finally:
                process.kill()


class HungError(AssertionError):
    """The machine itself hangs, whatever the program in it does."""


def printed(
    process: subprocess.Popen[bytes],
    console: IO[bytes],
    *,
    timeout_seconds: float,
    silent_seconds: float = SILENT_SECONDS_MOST,
    just_seconds: float = JUST_SECONDS,
) -> tuple[bytes, bytes]:
    """Return what a machine writes to its two pipes until it ends.

    Args:
        process: the machine.
        console: the file of its console.
        timeout_seconds: after this it is ended.
        silent_seconds: so long its console may stay as it is.
        just_seconds: what its kernel said longer ago than this does not count.

    Raises:
        HungError: its console stayed as it is, or it did not end in time and is silent or has a
            processor that is stuck.
        AssertionError: it did not end in time.
    """
    heard = time.monotonic()
    ends = heard + timeout_seconds
    sizes = collections.deque([(heard, 0)])
    while True:
        try:
            return process.communicate(timeout=LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
        if (size := os.fstat(console.fileno()).st_size) != sizes[-1][1]:
            heard = now
        sizes.append((now, size))
        while now - sizes[1][0] > just_seconds:
            sizes.popleft()
        if now - heard <= silent_seconds and now <= ends:
            continue
        process.kill()
        out, _ = process.communicate()
        if now - heard > min(silent_seconds, SILENT_AT_END_SECONDS_MOST):
            raise HungError(f"the machine said nothing for {now - heard:.0f} s: {out[-500:]!r}")
        console.seek(sizes[0][1])
        kind = HungError if re.search(b"|".join(STUCK), console.read()) else AssertionError
        raise kind(f"the machine did not end in time: {out[-500:]!r}")


def _result(out: bytes, err: bytes) -> str:
    text, _, status = out.decode(errors="replace").replace("\r", "").rpartition("\nstatus ")
    assert status.strip() == "0", f"the program inside failed: {out[-2000:]!r}\n{err[-2000:]!r}"
    return text
