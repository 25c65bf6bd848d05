"""Fetch, build and keep the programs of HPL: one folder that runs on every equal machine.

The sources are Debian's archive of ``hpcc``, whose SHA-256 stands in ``linpack.toml``; the BLAS and
what it needs are Debian's packages, which apt checks. None of them is installed: packages are
unpacked in a folder of ours, so that it takes no root and changes no other program's BLAS. What is
built finds its libraries beside itself, and only Open MPI is the machine's own.

Built once for each kind of machine (processor, system) and kept in the driver's cache: on this
machine where it is of that kind, else on the node that asks first. Nodes with files of their own
get a copy.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
import secrets
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import Field

from boardcluster.errors import HostError, RemoteError
from boardcluster.fetch.cache import hold_lock, write_whole, writing
from boardcluster.remote.base import Remote
from boardcluster.remote.gate import Completed
from boardcluster.remote.local import LocalRemote
from boardcluster.spec.problems import StrictTable, Text

__all__ = [
    "BUILD_TOOLS",
    "DgemmRates",
    "Linpack",
    "choose_kernels",
    "have_linpack",
    "is_built",
    "read_dgemm",
    "read_lock",
]

_FACTS = "linpack.json"
_KIND = "kind"
_SOURCES = ("xhpl_main.c", "dgemm.c")
_SHORT_SECONDS = 120.0
_LONG_SECONDS = 1800.0
_HELPER = "/usr/lib/apt/apt-helper"
BUILD_TOOLS = {"gcc": "gcc libc6-dev", _HELPER: "apt"}
"""What building needs of a machine, each program with its Debian packages."""

_COMPILER = ("gcc", "-std=gnu11", "-O2", "-w")
# NO_MPI_DATATYPE: HPL_packL.c calls functions that MPI 3 dropped.
_DEFINES = ("-D_GNU_SOURCE", "-DHPL_NO_MPI_DATATYPE", "-DHPL_CALL_CBLAS")
# Of the old kind, because it also holds for the libraries that the libraries need.
_BESIDE = ("-Wl,--disable-new-dtags,-rpath,$ORIGIN", "-Wl,-rpath-link,bundle")
_OTHERWISE = (
    "or set hpl.binary to hpcc, whose BLAS is the node's own, or to the path of an xhpl that is on "
    "every worker"
)
_COMPILED = re.compile(r"hpl/(src/\w+|testing/(p?matgen|ptest|p?timer))/\w+\.c")
_POOL = re.compile(r"'(\S+/)[^/'\s]+\.deb'")

_KERNELS_VARIABLE = "OPENBLAS_CORETYPE"
_CPU_LINES = "model name|flags|CPU (implementer|part)|Features"
# Of the system, not of the kernel: a 32-bit system may run on a 64-bit kernel.
_ARCHITECTURE = "dpkg --print-architecture 2>/dev/null || uname -m"
_AS_DPKG = {"x86_64": "amd64", "aarch64": "arm64"}
_LOOK = f"{_ARCHITECTURE}; cat /etc/os-release; grep -E '^({_CPU_LINES})' /proc/cpuinfo"
_CLEARLY = 1.2
_EQUAL = 0.9
_TRIES = 3
_TRIED_ORDER = 768
_TRIED_SECONDS = 0.3
_HEAD = re.compile(r"kernels (\S+) processes (\d+)")
_ROW = re.compile(r"process (\d+) order (\d+) times (\d+) in (\d+\.\d{9}) s, every number right")

Tell = Callable[[str], None]


class _HplSource(StrictTable):
    package: Text
    archive: Text
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    tree: Text
    version: Text


class _Packages(StrictTable):
    blas: Text
    headers: Text
    runtime: list[Text]


class _Machine(StrictTable):
    triplet: Text
    runtime: list[Text]
    kernels: list[Text]


class _Lock(StrictTable):
    source: _HplSource
    packages: _Packages
    machines: dict[str, _Machine]


@dataclass(frozen=True, slots=True, kw_only=True)
class Linpack:
    """The programs on one node."""

    folder: str
    """Where they are, as the node sees it."""
    blas: str
    """The BLAS they are linked with and its kernels for the node's CPU."""
    kernels: str
    """Name of the kernels to ask that BLAS for."""
    key: str
    """Of what they were built from and for which kind of machine; equal ones are the same."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables that each process of these programs needs."""
        return {_KERNELS_VARIABLE: self.kernels}

    @property
    def xhpl(self) -> str:
        """Path of HPL."""
        return f"{self.folder}/xhpl"

    @property
    def dgemm(self) -> str:
        """Path of the program of the probe ``dgemm``."""
        return f"{self.folder}/dgemm"


def have_linpack(
    remote: Remote, *, cache: Path, folder: str, shared: bool | None = None, tell: Tell
) -> Linpack:
    """Return the programs on a node; fetch, build and copy them if they are not there.

    Args:
        remote: the node.
        cache: the driver's cache folder.
        folder: a folder of the node for a copy, if it does not see the cache.
        shared: whether it sees this machine's files; None looks.
        tell: told what is being done.

    Raises:
        HostError: they cannot be built; says what is missing and what helps.
        RemoteError: the node cannot be reached.
    """
    seen = _look(remote)
    key = f"{seen.kind}-{_recipe()}"
    place = cache.absolute() / "linpack" / key
    with writing(place.parent):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.parent.chmod(0o755)  # whatever the umask: jobs of emulated nodes have another user
    # Several nodes of a kind may ask at once: one builds and measures, the others then read.
    with hold_lock(place.with_name(f".{key}.lock"), purpose="building HPL"):
        facts = _facts(place)
        if facts is None:
            here = LocalRemote("this machine")
            if _look(here).kind == seen.kind:
                work = str(place.with_name(f".building-{key}"))
                facts = _build(here, seen.machine, place, work, tell)
            else:
                facts = _build(remote, seen.machine, place, f"{folder}/linpack-building", tell)
        there = str(place)
        if not (_sees(remote, place) if shared is None else shared):
            there = f"{folder}/linpack-{_recipe()}"  # one path on boards of different kinds
            _copy(remote, place, there, f"{key} {facts.get('build', '')}".strip(), tell)
        asked, named = _kernels(remote, seen, there, place, tell)
    words = f"{facts['blas']}, kernels for {named}, asked for by name"
    return Linpack(folder=there, blas=words, kernels=asked, key=key)


def _facts(place: Path) -> dict[str, str] | None:
    """Return what is known of the programs in a folder of the cache; None if they are not whole."""
    return _read_table(place / _FACTS, "blas")


def _read_table(path: Path, needed: str) -> dict[str, Any] | None:
    """Read a table with something in it that is needed; None where a power cut left less."""
    try:
        found: object = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and needed in found else None


def is_built(cache: Path) -> bool:
    """Whether the driver's cache has the programs for some kind of machine, by today's recipe."""
    return any((cache / "linpack").glob(f"*-{_recipe()}/{_FACTS}"))


@functools.cache
def read_lock() -> _Lock:
    """Read ``linpack.toml``."""
    text = resources.files(__package__).joinpath("linpack.toml").read_text(encoding="utf-8")
    return _Lock.model_validate(tomllib.loads(text))


def _recipe() -> str:
    """Return a digest of all that decides what is built."""
    files = [resources.files(__package__).joinpath(name) for name in ("linpack.toml", *_SOURCES)]
    digest = hashlib.sha256(repr((_COMPILER, _DEFINES, _BESIDE)).encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class _KindOfMachine:
    """What kind of machine a node is."""

    machine: str
    """Architecture of its programs, as ``dpkg --print-architecture`` says it."""
    kind: str
    """Processor and system: what was built on one machine of a kind runs on all of them."""
    cpu: str
    """Digest of its CPUs' names and features."""


def _look(remote: Remote) -> _KindOfMachine:
    first, _, rest = remote.run(["sh", "-c", _LOOK]).text.partition("\n")
    machine = _AS_DPKG.get(first.strip(), first.strip())
    told = dict(row.split("=", 1) for row in rest.splitlines() if re.match(r"\w+=", row))
    system = "".join(told.get(name, "").strip('"') for name in ("ID", "VERSION_ID"))
    lines = sorted({row for row in rest.splitlines() if re.match(_CPU_LINES, row)})
    return _KindOfMachine(
        machine=machine,
        kind=re.sub(r"[^A-Za-z0-9._-]", "", f"{machine}-{system}"),
        cpu=hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12],
    )


def _sees(remote: Remote, place: Path) -> bool:
    return remote.run(["test", "-r", str(place / _FACTS)], check=False).returncode == 0


def _copy(remote: Remote, place: Path, there: str, mark: str, tell: Tell) -> None:
    """Copy the programs to a node unless those of this build are there, whole."""
    found = remote.run(["cat", f"{there}/{_KIND}"], check=False)
    if found.returncode == 0 and found.text.strip() == mark:
        return
    tell(f"copying HPL and OpenBLAS to {remote.name}")
    partial = f"{there}.partial"
    remote.run(["rm", "-rf", partial, there])
    remote.put(place, partial)
    remote.run(["sh", "-c", f'echo "{mark}" >"$0/{_KIND}" && mv "$0" "$1"', partial, there])


# Kernels


def choose_kernels(rates: Mapping[str, Sequence[float]]) -> str:
    """Return the fastest kernels; the library's own choice unless others are clearly faster.

    Args:
        rates: by name of kernels, the library's own choice first, rates that were measured in turn;
            of two that are equally fast the one that is named first is taken.
    """
    best = {name: max(found) for name, found in rates.items()}
    most = max(best.values())
    own = next(iter(best))
    if most < _CLEARLY * best[own]:
        return own
    return next(name for name, rate in best.items() if rate >= _EQUAL * most)


def _kernels(
    remote: Remote, seen: _KindOfMachine, folder: str, place: Path, tell: Tell
) -> tuple[str, str]:
    """Return which kernels to ask OpenBLAS for on a node, and how it calls those that it takes.

    An OpenBLAS that is older than the CPU does not know it and takes those of a much older one, at
    a quarter of the speed or less (0.3.21 takes Prescott's on Xeons of 2023). So each that may fit
    is tried; one that the CPU cannot execute ends with a signal, and that is an answer, too. Its
    own choice is asked for by name, too, because it may be another one in the next process (0.3.21
    on an EPYC of 2024: Cooperlake's, or Haswell's at 0.6 of their speed).
    """
    kept = place.with_name(f"{place.name}-kernels-{seen.cpu}.json")
    told = _read_table(kept, "asked")
    if told is not None and told["asked"]:  # once it was empty for the library's own choice
        return str(told["asked"]), str(told["named"])
    tell(f"choosing the kernels of OpenBLAS for {remote.name}")
    rates: dict[str, list[float]] = {}
    names: dict[str, str] = {}
    own = ""
    for given in ("", *_TRIES * ("", *read_lock().machines[seen.machine].kernels)):
        asked = given or own
        done = remote.run(
            [f"{folder}/dgemm", "1", str(_TRIED_ORDER), str(_TRIED_SECONDS)],
            env={_KERNELS_VARIABLE: asked} if asked else {},
            check=False,
        )
        found = read_dgemm(done.text) if done.returncode == 0 else None
        if found is not None and not asked:
            own = found.kernels  # what it does when asked by this name is seen next
        elif found is not None:
            names[asked] = found.kernels
            rates.setdefault(asked, []).append(found.flops_per_second / 1e9)
        elif not asked:
            said = done.stderr.decode(errors="replace").strip() or f"status {done.returncode}"
            raise HostError(
                f"what was built for HPL does not run on {remote.name}: {said[-300:]}",
                hint=f"delete the folder linpack of the cache to build it again, {_OTHERWISE}",
            )
    asked = choose_kernels(rates)
    told = {"asked": asked, "named": names[asked], "gflops": rates}
    write_whole(kept, json.dumps(told, indent=1))  # half a file would be read for ever
    return asked, names[asked]


@dataclass(frozen=True, slots=True, kw_only=True)
class DgemmRates:
    """What the program ``dgemm`` measured."""

    kernels: str
    """The kernels that the BLAS took."""
    order: int
    """Order of the matrices."""
    flops: tuple[float, ...]
    """Operations per second of each process, by its number."""

    @property
    def flops_per_second(self) -> float:
        """Of all processes together: they ran at the same time."""
        return math.fsum(self.flops)


def read_dgemm(text: str) -> DgemmRates | None:
    """Read what the program ``dgemm`` prints; None if it is not whole.

    A multiplication of matrices of order n counts as 2 n^3 operations.
    """
    head, *rows = text.splitlines() or [""]
    told = _HEAD.fullmatch(head)
    found = [_ROW.fullmatch(row) for row in rows]
    known = {int(row[1]): row for row in found if row}
    if told is None or None in found or set(known) != set(range(int(told[2]))):
        return None
    orders = {int(row[2]) for row in known.values()}
    if len(orders) != 1 or any(not float(row[4]) > 0 for row in known.values()):
        return None
    order = orders.pop()
    each = (2.0 * order**3 * int(known[at][3]) / float(known[at][4]) for at in sorted(known))
    return DgemmRates(kernels=told[1], order=order, flops=tuple(each))


# Building


def _build(builder: Remote, machine: str, place: Path, work: str, tell: Tell) -> dict[str, str]:
    """Build in a folder of the builder's, and move the result to its place in the cache.

    Returns:
        What is known of it.
    """
    known = read_lock().machines
    if machine not in known:
        raise HostError(
            f"HPL is not built for processors of the kind {machine}, only for {', '.join(known)}",
            hint=f"leave hpl out, {_OTHERWISE}",
        )
    try:
        builder.run(["rm", "-rf", work])  # what a killed build left; we hold its lock
        builder.run(["mkdir", "-p", f"{work}/bundle"])
        facts = _made(_Builder(builder, work, known[machine], tell))
        facts |= {"build": secrets.token_hex(8)}  # one that is made again is copied again
        partial = place.with_name(f".{place.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        builder.get(f"{work}/bundle", partial)
        (partial / _FACTS).write_text(json.dumps(facts, indent=1))
        # Jobs of emulated nodes have another user, and root's umask may shut that out.
        LocalRemote("this machine").run(["chmod", "-R", "a+rX", str(partial)])
        shutil.rmtree(place, ignore_errors=True)  # what a loss of power left of an earlier one
        partial.rename(place)
    finally:
        builder.run(["rm", "-rf", work], check=False)
    return facts


@dataclass(frozen=True, slots=True)
class _Builder:
    """Where it is built."""

    remote: Remote
    folder: str
    machine: _Machine
    tell: Tell

    def run(
        self, argv: Sequence[str], what: str, hint: str, *, seconds: float = _SHORT_SECONDS
    ) -> Completed:
        """Run one step.

        Raises:
            HostError: it failed; with what it said last.
        """
        try:
            return self.remote.run(argv, cwd=self.folder, timeout_seconds=seconds)
        except (RemoteError, HostError) as error:
            said = error.message.strip().splitlines()[-1][-300:]
            raise HostError(
                f"HPL cannot be built on {self.remote.name}: {what}: {said}",
                hint=f"{hint}, {_OTHERWISE}",
            ) from error


def _made(builder: _Builder) -> dict[str, str]:
    """Fetch, unpack and compile; return the facts of the bundle."""
    lock = read_lock()
    builder.run(
        ["gcc", "--version"],
        "it needs a C compiler",
        f"run `sudo apt-get install -y gcc libc6-dev` on {builder.remote.name}",
    )
    builder.tell(f"fetching the sources of HPL and OpenBLAS on {builder.remote.name}")
    blas = _fetch(builder, lock)
    builder.tell(f"building HPL on {builder.remote.name}")
    _compile(builder, lock)
    version = blas.removeprefix(f"{lock.packages.blas}_").rpartition("_")[0].replace("%3a", ":")
    return {"blas": f"OpenBLAS {version} ({lock.packages.blas})", "hpl": lock.source.version}


def _fetch(builder: _Builder, lock: _Lock) -> str:
    """Fetch archive and packages, and unpack them; return the file name of the BLAS's package.

    apt checks packages by the signed lists of its sources, and the archive by our SHA-256. It is
    taken from where the package lies: Debian keeps source and package in one folder.
    """
    hint = (
        f"provide a network connection and apt's lists on {builder.remote.name} (`sudo apt-get "
        'update`; Debian, Raspberry Pi OS or Ubuntu; while boards have `egress = "members"`, '
        "nothing can be fetched there)"
    )
    source = lock.source
    shown = builder.run(
        ["apt-get", "download", "--print-uris", source.package],
        f"apt does not know the package {source.package}",
        hint,
    )
    pool = _POOL.search(shown.text)
    if pool is None:
        raise HostError(
            f"HPL cannot be built on {builder.remote.name}: apt does not say where the package "
            f"{source.package} is: {shown.text.strip()[:200]!r}",
            hint=f"{hint}, {_OTHERWISE}",
        )
    builder.run(
        [
            *(_HELPER, "download-file", f"{pool[1]}{source.archive}", "hpl.tar.gz"),
            f"SHA256:{source.sha256}",
        ],
        f"{source.archive} cannot be fetched",
        hint,
        seconds=_LONG_SECONDS,
    )
    packages = lock.packages
    wanted = [packages.blas, packages.headers, *packages.runtime, *builder.machine.runtime]
    builder.run(
        ["apt-get", "download", *wanted],
        f"{', '.join(wanted)} cannot be fetched",
        hint,
        seconds=_LONG_SECONDS,
    )
    listed = builder.run(["find", ".", "-name", "*.deb", "-printf", "%f\\n"], "find", hint)
    names = sorted(listed.text.split())
    for name in names:
        builder.run(["dpkg-deb", "-x", name, "root"], f"{name} cannot be unpacked", hint)
    builder.run(["tar", "-xzf", "hpl.tar.gz"], "the archive cannot be unpacked", hint)
    return next(name for name in names if name.startswith(f"{packages.blas}_"))


def _compile(builder: _Builder, lock: _Lock) -> None:
    hint = "run this again; if it fails again, please report this message"
    libraries = f"root/usr/lib/{builder.machine.triplet}"
    for pattern in ("openblas-serial/libopenblas.so.0", "libgfortran.so.5", "libquadmath.so.0"):
        found = f"{libraries}/{pattern}"
        if "quadmath" in pattern and not builder.machine.runtime:
            continue
        builder.run(["cp", "-L", found, "bundle/"], f"{found} is not in its package", hint)
    for name in _SOURCES:
        with resources.as_file(resources.files(__package__).joinpath(name)) as path:
            builder.remote.put(path, f"{builder.folder}/{name}")
    shown = builder.run(["tar", "-tzf", "hpl.tar.gz"], "the archive cannot be read", hint)
    sources = [name for name in shown.text.split() if _COMPILED.fullmatch(_below(name))]
    blas = "bundle/libopenblas.so.0"
    builder.run(
        [*_COMPILER, "dgemm.c", blas, *_BESIDE, "-o", "bundle/dgemm"],
        "dgemm.c does not compile",
        hint,
    )
    builder.run(
        [
            *(*_COMPILER, *_DEFINES, f"-I{lock.source.tree}/include"),
            f"-I{libraries}/openmpi/include",
            *("xhpl_main.c", *sources, "-Wl,--wrap=HPL_pdgesv", blas),
            *("-l:libmpi.so.40", "-lm", *_BESIDE, "-o", "bundle/xhpl"),
        ],
        "it does not compile, or Open MPI is missing",
        f"run `sudo apt-get install -y openmpi-bin` on {builder.remote.name}",
        seconds=_LONG_SECONDS,
    )


def _below(name: str) -> str:
    """Return a path of the archive without its first folder."""
    return str(PurePosixPath(*PurePosixPath(name).parts[1:]))
