"""Install what this machine lacks to run and build boardcluster. Standard library only.

    python3 tools/bootstrap.py system              Debian packages, through apt, only if missing
    python3 tools/bootstrap.py system --dev        ... and those of tests; as root, of test nodes
    python3 tools/bootstrap.py venv                the virtual environment with boardcluster
    python3 tools/bootstrap.py venv --dev          ... and with what the tests need
    python3 tools/bootstrap.py jar                 the jar of the Spark jobs
    python3 tools/bootstrap.py jar --verify        ... and its tests
    python3 tools/bootstrap.py allow-namespaces    let ordinary users make namespaces (Ubuntu)

Asks for sudo only when something is really missing, and says what and why before.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "tools" / "python.lock"
PROGRAMS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
    "hostname": "hostname",
    "ssh": "openssh-client",
    "rsync": "rsync",
    "bash": "bash",
    "sort": "coreutils",
    "mvn": "maven",
    "mpirun": "openmpi-bin",
    "gcc": "build-essential",
    "NPtcp": "netpipe-tcp",
    "NPopenmpi": "netpipe-openmpi",
}
"""Program and the Debian package that has it."""

OPTIONAL = {"netpipe-tcp", "netpipe-openmpi"}
"""Packages that some systems lack, such as Ubuntu 24.04: only the workload and the probe netpipe
need them."""

DEV_PROGRAMS = {
    "sysbench": "sysbench",
    "7z": "p7zip-full",
    "openssl": "openssl",
    "hpcc": "hpcc",
    "make": "build-essential",
    "lame": "lame",
    "flac": "flac",
    "opusenc": "opus-tools",
    "wavpack": "wavpack",
    "fio": "fio",
    "iperf3": "iperf3",
    "stress-ng": "stress-ng",
    "faketime": "faketime",
    "chromium": "chromium",
    "chromedriver": "chromium-driver",
    "nginx": "nginx",
    "/usr/lib/nginx/modules/ngx_http_js_module.so": "libnginx-mod-http-js",
    "haproxy": "haproxy",
    "mariadbd": "mariadb-server",
    "/usr/lib/galera/libgalera_smm.so": "galera-4",
    "dnsmasq": "dnsmasq-base",
    "udhcpc": "udhcpc",
    "glusterd": "glusterfs-server",  # whose service Debian neither enables nor starts
    "glusterfs": "glusterfs-client",
    "wg-quick": "wireguard-tools",
    "wireguard-go": "wireguard-go",
}
"""What the probes run, what plants a wrong clock, a browser, servers, WireGuard: for tests only."""

SERVICES = {
    "nginx": "nginx",
    "haproxy": "haproxy",
    "mariadb-server": "mariadb",
}
"""Packages that start a service of the system, each with it; tests need only the program."""

NO_START = Path("/usr/sbin/policy-rc.d")
"""Debian's packages start no service while this program says 101 (invoke-rc.d(8))."""

NO_START_TEXT = """\
#!/bin/sh
# Written by boardcluster's tools/bootstrap.py while it installs packages; it removes it afterwards.
exit 101
"""

TEST_PROGRAMS = {
    "sshd": "openssh-server",
    "sudo": "sudo",
    "nft": "nftables",
    "systemd-analyze": "systemd",
    "losetup": "mount",
    "mkfs.ext4": "e2fsprogs",
}
"""What tests/boards.py takes from this machine for its nodes, and what makes the disks of emulated
boards. Tests without root use neither."""

MACHINE_PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mkfs.ext4": "e2fsprogs",
}
"""What tests/small_machine.py needs for a virtual machine; it is for x86-64 only."""

NO_SSHD = Path("/etc/ssh/sshd_not_to_be_run")
"""Debian's ssh service, whichever program starts it, does not start while this file exists."""

JDK_PACKAGES = ("openjdk-17-jdk-headless", "openjdk-21-jdk-headless")
JDK_VERSIONS = range(17, 22)
"""Java versions that build the jobs and run Hadoop and Spark."""

APPARMOR_FLAG = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
APPARMOR_PROFILE = Path("/etc/apparmor.d/boardcluster-unshare")
APPARMOR_TEXT = """\
# Written by boardcluster (make allow-namespaces); remove this file to take it back.
# Lets ordinary users make user namespaces with unshare(1), as on Debian.
abi <abi/4.0>,
include <tunables/global>
profile boardcluster-unshare /usr/bin/unshare flags=(unconfined) {
  userns,
}
"""


def say(text: str) -> None:
    """Print one line at once."""
    print(f"bootstrap: {text}", flush=True)


def fail(text: str) -> None:
    """End with a message."""
    sys.exit(f"bootstrap: {text}")


def search_path() -> str:
    """Return PATH with the folders that an ordinary user's often lacks."""
    return os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def find_jdk() -> Path | None:
    """Return the home of a JDK that can build: JAVA_HOME, the one on PATH, /usr/lib/jvm."""
    places = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    if javac := shutil.which("javac"):
        places.append(Path(javac).resolve().parent.parent)
    places += sorted(Path("/usr/lib/jvm").glob("*"))
    for home in places:
        release = home / "release"
        if (home / "bin" / "javac").exists() and release.exists():
            version = re.search(r'JAVA_VERSION="(\d+)', release.read_text(errors="replace"))
            if version and int(version[1]) in JDK_VERSIONS:
                return home
    return None


def has_venv_module() -> bool:
    """Whether this Python can make virtual environments (Debian packs that separately)."""
    probe = [sys.executable, "-c", "import ensurepip, venv"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def is_there(name: str, path: str) -> bool:
    """Whether a program, or a file that is named in full, is on this machine."""
    return Path(name).exists() if name.startswith("/") else bool(shutil.which(name, path=path))


def has_candidate(package: str) -> bool:
    """Whether apt can install a package, by the lists that are there."""
    if not shutil.which("apt-cache"):
        return False
    done = subprocess.run(
        ["apt-cache", "policy", package], capture_output=True, text=True, check=False
    )
    found = re.search(r"Candidate: (\S+)", done.stdout)
    return bool(found and found[1] != "(none)")


def system(*, dev: bool) -> None:
    """Install missing Debian packages."""
    if sys.version_info < (3, 11):  # noqa: UP036  this file is what tells older ones
        fail(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}")
    remove_leftover()
    if os.geteuid() != 0:
        allow_namespaces(quiet=True)
    path = search_path()
    wanted = PROGRAMS | (DEV_PROGRAMS if dev else {})
    wanted |= MACHINE_PROGRAMS if dev and os.uname().machine == "x86_64" else {}
    wanted |= TEST_PROGRAMS if dev and os.geteuid() == 0 else {}
    missing = {package for name, package in wanted.items() if not is_there(name, path)}
    if not has_venv_module():
        missing.add(f"python{sys.version_info.major}.{sys.version_info.minor}-venv")
    need_jdk = find_jdk() is None
    if not need_jdk and missing <= OPTIONAL and not any(map(has_candidate, missing)):
        return
    needed = missing - OPTIONAL
    if not shutil.which("apt-get"):
        what = sorted(needed) + ([" or ".join(JDK_PACKAGES)] if need_jdk else [])
        fail(f"please install, with this system's package manager: {', '.join(what)}")
    asroot = [] if os.geteuid() == 0 else ["sudo"]
    if asroot and not shutil.which("sudo"):
        fail(f"as root, please run: apt-get install {' '.join(sorted(needed) or JDK_PACKAGES[:1])}")
    if asroot:
        say(f"missing on this machine: {', '.join(sorted(missing) + ['a JDK'] * need_jdk)}")
        say("sudo is asked for, to install that with apt-get")
    apt = [*asroot, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]
    subprocess.run([*apt, "update"], check=True, stdout=subprocess.DEVNULL)
    if lacking := {package for package in missing & OPTIONAL if not has_candidate(package)}:
        say(f"apt has no {' and no '.join(sorted(lacking))}: netpipe cannot be run here")
        missing -= lacking
    if need_jdk:
        candidates = [package for package in JDK_PACKAGES if has_candidate(package)]
        if not candidates:
            fail(f"apt has none of {', '.join(JDK_PACKAGES)}; install a JDK 17 to 21")
        missing.add(candidates[0])
    if TEST_PROGRAMS["sshd"] in missing:
        NO_SSHD.parent.mkdir(exist_ok=True)
        NO_SSHD.touch()
        say(f"{NO_SSHD} keeps this machine's own SSH server off: tests need only the program")
    say(f"installing {' '.join(sorted(missing))}")
    install(asroot, apt, sorted(missing))


def install(asroot: list[str], apt: list[str], missing: list[str]) -> None:
    """Install packages; services of the system that come with them do not start, now or later."""
    services = [name for package, name in SERVICES.items() if package in missing]
    # A policy that is there already, as in containers, stays as it is.
    keeps_off = bool(services) and not NO_START.exists()
    if keeps_off:
        asked = [*asroot, "tee", str(NO_START)]
        text = NO_START_TEXT.encode()
        subprocess.run(asked, input=text, stdout=subprocess.DEVNULL, check=True)
        subprocess.run([*asroot, "chmod", "755", str(NO_START)], check=True)
    try:
        command = [*apt, "install", "-y", "--no-install-recommends", *missing]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for name in services:
            subprocess.run([*asroot, "update-rc.d", name, "disable"], check=True)
            say(f"this machine's own service {name} stays off: tests need only the program")
    finally:
        if keeps_off:
            subprocess.run([*asroot, "rm", "-f", str(NO_START)], check=True)


def remove_leftover() -> None:
    """Let services of the system start again, if an earlier run of ours was killed."""
    if NO_START.is_file() and NO_START.read_text(errors="replace") == NO_START_TEXT:
        say(f"removing {NO_START}, which an earlier run left behind: no service could start")
        asroot = [] if os.geteuid() == 0 else ["sudo"]
        subprocess.run([*asroot, "rm", "-f", str(NO_START)], check=True)


def venv(*, dev: bool) -> None:
    """Make or refresh the virtual environment; nothing to do if what it is made of has not changed.

    What runs and what builds it is compared with the lock file. Tools of the tests are not in it.
    """
    stamp = VENV / (".ready-dev" if dev else ".ready")
    wanted = (ROOT / "pyproject.toml").read_text() + LOCK.read_text() + sys.version + str(ROOT)
    done = [VENV / ".ready-dev"] if dev else [VENV / ".ready", VENV / ".ready-dev"]
    if any(path.is_file() and path.read_text() == wanted for path in done):
        return
    say(f"making the virtual environment {VENV.name}{' with test tools' if dev else ''}")
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "-q"]
    subprocess.run([*pip, "--require-hashes", "-r", str(LOCK)], check=True)
    # Nothing is fetched for this: what builds it was installed with the rest.
    own = [*pip, "--no-deps", "--no-build-isolation", "--no-index", "-e", str(ROOT)]
    subprocess.run(own, check=True)
    if dev:
        subprocess.run([*pip, "-e", f"{ROOT}[dev]"], check=True)
    stamp.write_text(wanted)


def jar(*, verify: bool) -> None:
    """Build the jar of the Spark jobs if a source is newer."""
    target = ROOT / "jvm" / "target" / "boardcluster-jobs.jar"
    sources = [ROOT / "jvm" / "pom.xml", *(ROOT / "jvm" / "src").rglob("*.*")]
    newest = max(path.stat().st_mtime for path in sources)
    if not verify and target.exists() and target.stat().st_mtime > newest:
        return
    home = find_jdk()
    if home is None:
        fail("no JDK 17 to 21; run `make system`")
    say(f"building the Spark jobs{' and running their tests' if verify else ''}")
    # What the engine under test says goes to files beside its reports.
    quiet = "-Dmaven.test.redirectTestOutputToFile=true"
    goal = ["verify", quiet] if verify else ["package", "-DskipTests"]
    command = ["mvn", "-q", "-B", "-f", str(ROOT / "jvm" / "pom.xml"), *goal]
    environment = {**os.environ, "JAVA_HOME": str(home)}
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout, done.stderr, sep="", file=sys.stderr)
        done.check_returncode()
    target.touch()
    if verify:
        reports = (target.parent / "surefire-reports").glob("TEST-*.xml")
        counts = [ElementTree.parse(path).getroot().attrib for path in reports]
        print(f"{sum(int(row['tests']) for row in counts)} passed, 0 failed")


def allow_namespaces(*, quiet: bool) -> None:
    """Let ordinary users make namespaces where AppArmor forbids it."""
    reason = ""
    if not APPARMOR_FLAG.exists() or APPARMOR_FLAG.read_text().strip() != "1":
        reason = "AppArmor does not restrict user namespaces on this machine"
    elif APPARMOR_PROFILE.exists():
        reason = f"{APPARMOR_PROFILE} exists"
    if reason:
        if not quiet:
            say(f"nothing to do: {reason}")
        return
    asroot = [] if os.geteuid() == 0 else ["sudo"]
    forbidden = "this machine's AppArmor forbids namespaces to ordinary users"
    command = [sys.executable, str(Path(__file__).resolve()), "allow-namespaces"]
    by_hand = f"{forbidden}; for several nodes run, as root: {shlex.join(command)}"
    if asroot and not shutil.which("sudo"):
        if quiet:  # the demo then takes one local node
            say(by_hand)
            return
        fail(f"{forbidden}, and there is no sudo; as root, please run: {shlex.join(command)}")
    say(f"{forbidden}; writing {APPARMOR_PROFILE}")
    try:
        subprocess.run(
            [*asroot, "tee", str(APPARMOR_PROFILE)],
            input=APPARMOR_TEXT.encode(),
            stdout=subprocess.DEVNULL,
            check=True,
        )
        subprocess.run([*asroot, "apparmor_parser", "-r", str(APPARMOR_PROFILE)], check=True)
    except subprocess.CalledProcessError:
        if not quiet:
            raise
        say(by_hand)  # who may not use sudo has the demo on one local node, too


def main() -> None:
    """Do one step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=("system", "venv", "jar", "allow-namespaces"))
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args()
    try:
        if options.step == "system":
            system(dev=options.dev)
        elif options.step == "venv":
            venv(dev=options.dev)
        elif options.step == "jar":
            jar(verify=options.verify)
        else:
            allow_namespaces(quiet=False)
    except subprocess.CalledProcessError as error:
        fail(f"failed with status {error.returncode}: {' '.join(map(str, error.cmd))}")
    except FileNotFoundError as error:
        fail(f"{error.filename} was not found; install it, or put it on PATH, and run this again")


if __name__ == "__main__":
    main()
