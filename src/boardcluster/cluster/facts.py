"""What a node is, from the raw answer of remote/nodefacts.py. Pure.

Nothing is guessed: what the node did not say is None or empty.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from boardcluster.cluster.media import Blocks, parse_media, parse_mounts, parse_swaps
from boardcluster.records import JavaHome, Link, Mount, NodeFacts, Sudo

__all__ = ["package_manager", "parse_facts"]

_KIB = 1024
_TREE = "/proc/device-tree"
_DMI = "/sys/class/dmi/id"

_PLACEHOLDERS = re.compile(
    r"to be filled by o\.e\.m\.|system (product name|manufacturer|version)|default string|"
    r"not (applicable|specified)|none|o\.e\.m\.",
    re.IGNORECASE,
)
"""What makers of PCs leave in the fields that should name their machine."""

_ELF_MACHINES = {0x03: "i686", 0x28: "armv7l", 0x3E: "x86_64", 0xB7: "aarch64", 0xF3: "riscv64"}
"""e_machine, at offset 18 of a program. Source: System V ABI, ELF header; elf.h."""

_UNKEPT_MICROSECONDS = 16_000_000
"""From this error on a clock is not kept by a time service: the kernel lets the error of an
unkept clock grow to it (NTP_PHASE_LIMIT), and systemd's NTPSynchronized asks the same."""

_PACKAGE_MANAGERS = frozenset(
    {
        *("apt", "apt-get", "apt.systemd.daily", "aptitude", "dpkg", "dpkg-deb", "mandb"),
        *("unattended-upgrade", "unattended-upgrades", "update-initramfs"),
    }
)
_INTERPRETER = re.compile(r"(ba|da)?sh|perl|python[0-9.]*")


def parse_facts(
    raw: Mapping[str, Any], *, folder: str, asked_seconds: float, answered_seconds: float
) -> NodeFacts:
    """Understand a node's answer.

    Args:
        raw: the answer.
        folder: the folder that was asked for.
        asked_seconds: the driver's clock when it asked, in seconds since 1970.
        answered_seconds: the same when it had the answer.
    """
    files: Mapping[str, str] = raw["files"]
    blocks = Blocks(files=raw["files"], links=raw["links"], usb=raw["usb"])
    media = parse_media(blocks)
    mounts = parse_mounts(files.get("/proc/self/mountinfo", ""), raw["spaces"], blocks)
    rows = re.findall(r"^(\w+): +(\d+) kB$", files.get("/proc/meminfo", ""), re.MULTILINE)
    memory = {name: int(number) * _KIB for name, number in rows}
    throttled = re.search(r"throttled=0x([0-9a-fA-F]+)", _said(raw, "throttled"))
    controllers = _controllers(files)
    offset, error = _clock(raw["clock_seconds"], asked_seconds, answered_seconds)
    return NodeFacts(
        name=raw["name"],
        board=_board(files),
        soc="".join(_strings(files.get(f"{_TREE}/compatible", ""))[-1:]),
        cpu=_cpu(_said(raw, "lscpu"), files.get("/proc/cpuinfo", "")),
        cores=_cores(files.get("/sys/devices/system/cpu/online", "")) or int(raw["cpus"]),
        clock_least_hertz=min(_frequencies(files, "cpuinfo_min_freq"), default=None),
        clock_most_hertz=max(_frequencies(files, "cpuinfo_max_freq"), default=None),
        governor=",".join(sorted(set(_each(files, r"/cpufreq/scaling_governor$")))),
        memory_bytes=memory.get("MemTotal", 0),
        available_memory_bytes=memory.get("MemAvailable", 0),
        architecture=raw["machine"],
        userland_bits=raw["pointer_bits"],
        page_size_bytes=raw["page_size_bytes"],
        os=_os(files),
        kernel=raw["kernel"],
        firmware=_firmware(_said(raw, "bootloader"), files),
        service_manager="systemd" if raw["systemd"] else "none",
        boot_id=files.get("/proc/sys/kernel/random/boot_id", "").strip(),
        uptime_seconds=_first_number(files.get("/proc/uptime", "")),
        machine_id=raw["machine_id"],
        host_keys=_host_keys(files),
        login_user=raw["user"],
        sudo=_sudo(raw),
        python=raw["python"],
        javas=tuple(_java(home, said) for home, said in raw["javas"].items()),
        java_home=raw["java_home"],
        links=_links(_said(raw, "ip"), files, blocks.links),
        own_addresses=_addresses(_said(raw, "getent")),
        clock_synchronised=_kept(raw["kernel_clock"]),
        clock_offset_seconds=offset,
        clock_error_seconds=error,
        media=media,
        mounts=mounts,
        folder=folder,
        folder_mount=_mount_point(raw["folder"], mounts),
        swaps=parse_swaps(files.get("/proc/swaps", ""), blocks, media, mounts),
        cgroup_controllers=controllers,
        memory_controller="memory" in controllers,
        throttled=int(throttled[1], 16) if throttled else None,
        temperature_celsius=max(_temperatures(files), default=None),
        package_managers=tuple(
            name for line in raw["package_managers"] if (name := package_manager(line.split("\0")))
        ),
        kernel_faults=None if raw["kernel_log"] is None else tuple(raw["kernel_log"]),
    )


def package_manager(argv: Sequence[str]) -> str:
    """Return the name of the package manager that a command line runs; empty if it runs none."""
    name = PurePosixPath(argv[0]).name
    if _INTERPRETER.fullmatch(name):
        words = [word for word in argv[1:] if not word.startswith("-")]
        name = PurePosixPath(words[0]).name if words else name
    return name if name in _PACKAGE_MANAGERS else ""


def _said(raw: Mapping[str, Any], program: str) -> str:
    """Return what a program said; empty if it is not there or failed."""
    answer = raw["programs"].get(program)
    return str(answer["out"]) if answer and answer["status"] == 0 else ""


def _strings(text: str) -> list[str]:
    """Return the strings of a device-tree property, which end with NUL."""
    return [part for part in text.split("\0") if part]


def _each(files: Mapping[str, str], pattern: str) -> list[str]:
    """Return the content of every file whose path matches, without white space around it."""
    return [text.strip() for path, text in files.items() if re.search(pattern, path)]


def _first_number(text: str) -> float | None:
    found = re.match(r"\s*([0-9.]+)", text)
    return float(found[1]) if found else None


def _board(files: Mapping[str, str]) -> str:
    if model := _strings(files.get(f"{_TREE}/model", "")):
        return model[0]
    words = [files.get(f"{_DMI}/{name}", "").strip() for name in ("sys_vendor", "product_name")]
    return " ".join(word for word in words if word and not _PLACEHOLDERS.fullmatch(word))


def _cpu(lscpu: str, cpuinfo: str) -> str:
    names = re.findall(r"^ *Model name: +(.+?) *$", lscpu, re.MULTILINE)
    names = names or re.findall(r"^model name\s*: (.+?) *$", cpuinfo, re.MULTILINE)
    return " + ".join(dict.fromkeys(name for name in names if name != "-"))


def _cores(online: str) -> int:
    """Count a list such as ``0-3,6``."""
    total = 0
    for part in filter(None, online.strip().split(",")):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total


def _frequencies(files: Mapping[str, str], name: str) -> list[int]:
    """Return frequencies in hertz; the kernel says kHz."""
    return [int(text) * 1000 for text in _each(files, rf"/cpufreq/{name}$") if text.isdecimal()]


def _os(files: Mapping[str, str]) -> str:
    found = re.search(r'^PRETTY_NAME="?([^"\n]+)', files.get("/etc/os-release", ""), re.MULTILINE)
    name = found[1] if found else ""
    issue = files.get("/etc/rpi-issue", "").partition("\n")[0].strip()
    return f"{name}, {issue}" if issue else name


def _firmware(bootloader: str, files: Mapping[str, str]) -> str:
    lines = bootloader.splitlines()
    version = re.search(r"^version ([0-9a-f]{8})", bootloader, re.MULTILINE)
    if lines and version:
        return f"bootloader {lines[0].strip()} ({version[1]})"
    if tree := _strings(files.get(f"{_TREE}/chosen/bootloader/version", "")):
        return f"bootloader {tree[0]}"
    if loader := _strings(files.get(f"{_TREE}/chosen/u-boot,version", "")):
        return f"U-Boot {loader[0].removeprefix('U-Boot ')}"
    names = ("bios_vendor", "bios_version", "bios_date")
    words = [files.get(f"{_DMI}/{name}", "").strip() for name in names]
    return " ".join(word for word in words if word and not _PLACEHOLDERS.fullmatch(word))


def _host_keys(files: Mapping[str, str]) -> tuple[str, ...]:
    """Return fingerprints as ``ssh-keygen -l`` shows them: RFC 4716 keys, SHA-256, base64."""
    found = []
    for path in sorted(files):
        if re.fullmatch(r"/etc/ssh/ssh_host_\w+_key\.pub", path):
            words = files[path].split()
            if len(words) >= 2:
                digest = hashlib.sha256(base64.b64decode(words[1])).digest()
                found.append("SHA256:" + base64.b64encode(digest).decode().rstrip("="))
    return tuple(found)


def _sudo(raw: Mapping[str, Any]) -> Sudo:
    if raw["is_root"] and raw["user"] == "root":
        return Sudo.ROOT
    answer = raw["programs"]["sudo"]
    if answer is None and not raw["sudo_hangs"]:
        return Sudo.MISSING
    if raw["is_root"] or (answer and answer["status"] == 0):
        return Sudo.WORKS
    return Sudo.SILENT if answer is None else Sudo.ASKS


def _java(home: str, said: Mapping[str, str]) -> JavaHome:
    version = re.search(r'^JAVA_VERSION="([^"]+)"', said["release"], re.MULTILINE)
    vendor = re.search(r'^IMPLEMENTOR="([^"]+)"', said["release"], re.MULTILINE)
    feature = re.match(r"(?:1\.)?(\d+)", version[1]) if version else None
    head = bytes.fromhex(said["head"])
    elf = head.startswith(b"\x7fELF") and len(head) >= 20
    return JavaHome(
        home=home,
        version=version[1] if version else "",
        feature=int(feature[1]) if feature else None,
        vendor=vendor[1] if vendor else "",
        architecture=_ELF_MACHINES.get(head[18] | head[19] << 8, "") if elf else "",
    )


def _links(ip: str, files: Mapping[str, str], real: Mapping[str, str]) -> tuple[Link, ...]:
    """Return what has an address or is hardware; bridges of containers and the like are left."""
    found = []
    for row in json.loads(ip) if ip.startswith("[") else []:
        name = row.get("ifname", "")
        folder = f"/sys/class/net/{name}"
        addresses = tuple(
            f"{item['local']}/{item['prefixlen']}"
            for item in row.get("addr_info", [])
            if item.get("scope") == "global"
        )
        if name in ("", "lo") or not (addresses or f"{folder}/device" in real):
            continue
        speed = _first_number(files.get(f"{folder}/speed", ""))
        duplex = files.get(f"{folder}/duplex", "").strip()
        found.append(
            Link(
                name=name,
                addresses=addresses,
                speed_bits_per_second=int(speed * 10**6) if speed else None,
                duplex=duplex if duplex in ("full", "half") else "",
                wireless=f"{folder}/phy80211/name" in files,
                up=files.get(f"{folder}/carrier", "").strip() == "1",
            )
        )
    return tuple(found)


def _addresses(getent: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line.split()[0] for line in getent.splitlines() if line.strip()))


def _kept(kernel_clock: Mapping[str, int] | None) -> bool | None:
    if kernel_clock is None:
        return None
    return kernel_clock["maxerror_microseconds"] < _UNKEPT_MICROSECONDS


def _clock(
    node_seconds: Sequence[float], asked_seconds: float, answered_seconds: float
) -> tuple[float, float]:
    """Return offset of the node's clock and its largest error, both in seconds.

    Four time stamps as in NTP (RFC 5905, section 8): what the program takes on the node is not
    part of the error.
    """
    first, last = node_seconds
    offset = ((first - asked_seconds) + (last - answered_seconds)) / 2
    delay = (answered_seconds - asked_seconds) - (last - first)
    return round(offset, 6), round(max(0.0, delay) / 2, 6)


def _mount_point(place: str, mounts: tuple[Mount, ...]) -> str:
    holding = [m.folder for m in mounts if (place + "/").startswith(m.folder.rstrip("/") + "/")]
    return max(holding, key=len, default="")


def _controllers(files: Mapping[str, str]) -> tuple[str, ...]:
    """Return the controllers of cgroup 2, or those of cgroup 1 that are enabled."""
    if (unified := files.get("/sys/fs/cgroup/cgroup.controllers")) is not None:
        return tuple(unified.split())
    rows = [line.split() for line in files.get("/proc/cgroups", "").splitlines()]
    return tuple(row[0] for row in rows if len(row) == 4 and row[3] == "1")


def _temperatures(files: Mapping[str, str]) -> list[float]:
    texts = _each(files, r"/thermal_zone\d+/temp$")
    return [int(text) / 1000 for text in texts if re.fullmatch(r"-?\d+", text)]
