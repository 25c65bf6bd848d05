"""Five machines as their kernels and tools describe them, put together from documented formats.

Formats: Linux, Documentation/ABI (sysfs-block, sysfs-bus-pci, sysfs-class-net, sysfs-devices-
system-cpu), Documentation/filesystems/proc.rst, Documentation/devicetree; Raspberry Pi
documentation (``vcgencmd``, boot EEPROM); util-linux (lscpu, dmesg); iproute2 (``ip -j``).
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BOOT_ID = "0f3c7a52-6f5e-4c55-8d0e-6d3a0c1f9b11"
X86_64, AARCH64 = "3e00", "b700"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4wtDJILsHxdikjJhzhqptqn++T7LB1/C6kPbh8vUyH root@pi"
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What one machine says: the answer of remote/nodefacts.py, and the tree to read it from."""

    files: dict[str, str]
    links: dict[str, str]
    programs: dict[str, str]
    failing: dict[str, str] = field(default_factory=dict)
    javas: dict[str, tuple[str, str]] = field(default_factory=dict)
    usb: dict[str, str] = field(default_factory=dict)
    log: str | None = ""
    own: Mapping[str, Any]

    def raw(self) -> dict[str, Any]:
        """The answer."""
        said: dict[str, Any] = dict.fromkeys(("lscpu", "ip", "getent", "sudo"))
        for name, out in self.programs.items():
            said[name] = {"status": 0, "out": out, "err": ""}
        for name, err in self.failing.items():
            said[name] = {"status": 1, "out": "", "err": err}
        answer = {
            "is_root": False,
            "sudo_hangs": False,
            "user": "pi",
            "pointer_bits": 64,
            "page_size_bytes": 4096,
            "python": "3.11.2",
            "java_home": "",
            "systemd": True,
            "machine_id": "9f86d081884c7d659a2feaa0c55ad015",
            "package_managers": [],
            "folder": "/var/lib",
            "kernel_clock": {"maxerror_microseconds": 52500, "status": 0x2001},
            "clock_seconds": [1_700_000_000.2, 1_700_000_000.5],
            **self.own,
            "files": self.files,
            "links": self.links,
            "usb": {path: f"{speed}\n" for path, speed in self.usb.items()},
            "javas": {
                home: {"head": f"7f454c460201010000000000000000000300{machine}", "release": text}
                for home, (machine, text) in self.javas.items()
            },
            "programs": said,
            "kernel_log": None if self.log is None else self.log.splitlines(),
        }
        return copy.deepcopy(answer)

    def write(self, root: Path) -> None:
        """Make the tree that the program reads."""
        for path, text in self.files.items():
            _write(root, path, text)
        for path, real in self.links.items():
            (root / real.lstrip("/")).mkdir(parents=True, exist_ok=True)
            if path.startswith("/sys/class/"):
                moved = {k: v for k, v in self.files.items() if k.startswith(f"{path}/")}
                for inner, text in moved.items():
                    _write(root, f"{real}{inner.removeprefix(path)}", text)
        for path, real in self.links.items():
            _link(root, path, real)
        for path, speed in self.usb.items():
            device = self.links[path].partition("/2-1/")[0] + "/2-1"
            _write(root, f"{device}/idVendor", "04e8\n")
            _write(root, f"{device}/speed", f"{speed}\n")
        for home, (machine, text) in self.javas.items():
            program = root / home.lstrip("/") / "bin" / "java"
            program.parent.mkdir(parents=True)
            head = bytes.fromhex(f"7f454c460201010000000000000000000300{machine}")
            program.write_bytes(head + b"\0" * 100)
            program.chmod(0o755)
            (root / home.lstrip("/") / "release").write_text(text)


def _write(root: Path, path: str, text: str) -> None:
    place = root / path.lstrip("/")
    if not place.parent.is_symlink():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())


def _link(root: Path, path: str, real: str) -> None:
    """Put a link where files were written under its path before; they are behind it by now."""
    place = root / path.lstrip("/")
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(root / real.lstrip("/"))


def _cpus(count: int, least_khz: int, most_khz: int, governor: str) -> dict[str, str]:
    files = {"/sys/devices/system/cpu/online": f"0-{count - 1}\n"}
    for cpu in range(count):
        folder = f"/sys/devices/system/cpu/cpu{cpu}/cpufreq"
        files[f"{folder}/scaling_governor"] = f"{governor}\n"
        files[f"{folder}/cpuinfo_min_freq"] = f"{least_khz}\n"
        files[f"{folder}/cpuinfo_max_freq"] = f"{most_khz}\n"
    return files


def _memory(total_kib: int, available_kib: int) -> dict[str, str]:
    rows = {"MemTotal": total_kib, "MemFree": 100, "MemAvailable": available_kib, "Buffers": 1}
    text = "".join(f"{name + ':':<15} {size:>8} kB\n" for name, size in rows.items())
    return {"/proc/meminfo": f"{text}HugePages_Total:       0\n"}


def _device(name: str, number: str, sectors: int, *, turns: bool, discard: int) -> dict[str, str]:
    folder = f"/sys/class/block/{name}"
    return {
        f"{folder}/dev": f"{number}\n",
        f"{folder}/size": f"{sectors}\n",
        f"{folder}/queue/rotational": f"{int(turns)}\n",
        f"{folder}/queue/discard_max_bytes": f"{discard}\n",
    }


def _part(name: str, number: str, sectors: int) -> dict[str, str]:
    folder = f"/sys/class/block/{name}"
    return {f"{folder}/dev": f"{number}\n", f"{folder}/size": f"{sectors}\n"}


def _ip(*rows: tuple[str, str]) -> str:
    loop = {"family": "inet", "local": "127.0.0.1", "prefixlen": 8, "scope": "host"}
    entries: list[dict[str, Any]] = [{"ifname": "lo", "operstate": "UNKNOWN", "addr_info": [loop]}]
    for name, address in rows:
        local, _, prefix = address.partition("/")
        near = {"family": "inet6", "local": "fe80::1", "prefixlen": 64, "scope": "link"}
        own = {"family": "inet", "local": local, "prefixlen": int(prefix or 0), "scope": "global"}
        entries.append({"ifname": name, "addr_info": [own, near] if address else [near]})
    return json.dumps(entries)


def _lscpu(architecture: str, *names: str) -> str:
    rows = [
        f"Architecture:                         {architecture}",
        "CPU op-mode(s):                       32-bit, 64-bit",
        "Vendor ID:                            ARM",
    ]
    rows += [f"{'  ' * (len(names) > 1)}Model name:                           {n}" for n in names]
    return "\n".join([*rows, "BIOS Model name:                      not this one", ""])


def _os(name: str) -> dict[str, str]:
    return {"/etc/os-release": f'PRETTY_NAME="{name}"\nID=debian\n'}


COMMON = {
    "/proc/sys/kernel/random/boot_id": f"{BOOT_ID}\n",
    "/proc/uptime": "351735.47 1398024.20\n",
    "/etc/ssh/ssh_host_ed25519_key.pub": f"{KEY}\n",
    "/etc/machine-id": "b08dfa6083e7567a1921a715000001fb\n",
}
KERNEL_MOUNTS = (
    "21 27 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw\n"
    "22 27 0:21 / /proc rw,relatime shared:12 - proc proc rw\n"
    "26 27 0:24 / /run rw,nosuid,nodev,noexec,relatime shared:5 - tmpfs tmpfs rw,mode=755\n"
)
CGROUPS = (
    "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
    "cpuset\t0\t82\t1\ncpu\t0\t82\t1\nmemory\t0\t82\t{memory}\npids\t0\t82\t1\n"
)
DEBIAN_JAVA = 'IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\nOS_ARCH="{arch}"\n'

_PI5_PCIE = "/sys/devices/platform/axi/1000110000.pcie/pci0001:00/0001:00:00.0/0001:01:00.0"
PI_5 = Recording(
    files={
        **COMMON,
        "/proc/device-tree/model": "Raspberry Pi 5 Model B Rev 1.0\0",
        "/proc/device-tree/compatible": "raspberrypi,5-model-b\0brcm,bcm2712\0",
        **_cpus(4, 1_500_000, 2_400_000, "ondemand"),
        **_memory(8_257_232, 7_700_000),
        "/sys/class/thermal/thermal_zone0/temp": "52400\n",
        "/sys/class/net/eth0/speed": "1000\n",
        "/sys/class/net/eth0/duplex": "full\n",
        "/sys/class/net/eth0/carrier": "1\n",
        **_device("nvme0n1", "259:0", 1_000_215_216, turns=False, discard=2_199_023_255_040),
        **_part("nvme0n1p1", "259:1", 1_048_576),
        **_part("nvme0n1p2", "259:2", 999_141_376),
        "/sys/class/block/nvme0n1/device/model": "Samsung SSD 980 500GB                   \n",
        "/sys/class/nvme/nvme0/device/current_link_speed": "8.0 GT/s PCIe\n",
        "/sys/class/nvme/nvme0/device/current_link_width": "1\n",
        "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io pids\n",
        "/proc/cgroups": CGROUPS.format(memory=0),
        "/proc/swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        "/var/swap                               file\t\t524272\t\t1024\t\t-2\n",
        "/proc/self/mountinfo": "27 1 259:2 / / rw,noatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
        + KERNEL_MOUNTS
        + "98 27 259:1 / /boot/firmware rw,relatime shared:51 - vfat /dev/nvme0n1p1 rw\n",
        **_os("Debian GNU/Linux 12 (bookworm)"),
        "/etc/rpi-issue": "Raspberry Pi reference 2024-07-04\nGenerated using pi-gen\n",
    },
    links={
        "/sys/class/block/nvme0n1": f"{_PI5_PCIE}/nvme/nvme0/nvme0n1",
        "/sys/class/block/nvme0n1p1": f"{_PI5_PCIE}/nvme/nvme0/nvme0n1/nvme0n1p1",
        "/sys/class/block/nvme0n1p2": f"{_PI5_PCIE}/nvme/nvme0/nvme0n1/nvme0n1p2",
        "/sys/class/net/eth0/device": "/sys/devices/platform/axi/1f00100000.ethernet",
    },
    programs={
        "lscpu": _lscpu("aarch64", "Cortex-A76"),
        "ip": _ip(("eth0", "192.168.1.20/24")),
        "getent": "127.0.1.1       STREAM pi0\n127.0.1.1       DGRAM  \n",
        "sudo": "",
        "bootloader": "2024/09/23 14:02:56\n"
        "version 26826259fd3eb8d1fc9ff42d5b46e7ec9a3ec8df (release)\n"
        "timestamp 1727096576\nupdate-time 1727273274\ncapabilities 0x0000007f\n",
        "throttled": "throttled=0x0\n",
    },
    javas={"/usr/lib/jvm/java-17-openjdk-arm64": (AARCH64, DEBIAN_JAVA.format(arch="aarch64"))},
    own={
        "name": "pi0",
        "machine": "aarch64",
        "kernel": "6.6.51+rpt-rpi-2712",
        "cpus": 4,
        "page_size_bytes": 16384,
        "spaces": {
            "/": [490 * GIB, 450 * GIB, 0, 1],
            "/boot/firmware": [GIB // 2, GIB // 3, 0, 1],
            "/run": [GIB, GIB, 0, 1],
        },
    },
)

_PI4_SD = "/sys/devices/platform/emmc2bus/fe340000.mmc/mmc_host/mmc0/mmc0:aaaa/block/mmcblk0"
_PI4_USB = (
    "/sys/devices/platform/scb/fd500000.pcie/pci0000:00/0000:00:00.0/0000:01:00.0/usb2/2-1/"
    "2-1:1.0/host0/target0:0:0/0:0:0:0/block/sda"
)
PI_4 = Recording(
    files={
        **COMMON,
        "/proc/device-tree/model": "Raspberry Pi 4 Model B Rev 1.4\0",
        "/proc/device-tree/compatible": "raspberrypi,4-model-b\0brcm,bcm2711\0",
        "/proc/device-tree/chosen/bootloader/version": "91a3d5d7dc6ba0b1e9f6d13ee0aa6d7d9d3a8d6b\0",
        **_cpus(4, 600_000, 1_800_000, "performance"),
        **_memory(3_885_396, 3_500_000),
        "/sys/class/thermal/thermal_zone0/temp": "81300\n",
        "/sys/class/net/eth0/speed": "1000\n",
        "/sys/class/net/eth0/duplex": "full\n",
        "/sys/class/net/eth0/carrier": "1\n",
        **_device("mmcblk0", "179:0", 124_735_488, turns=False, discard=31_037_849_600),
        **_part("mmcblk0p1", "179:1", 1_048_576),
        **_part("mmcblk0p2", "179:2", 123_682_816),
        "/sys/class/block/mmcblk0/device/type": "SD\n",
        "/sys/class/block/mmcblk0/device/name": "SC64G\n",
        **_device("sda", "8:0", 976_773_168, turns=False, discard=0),
        **_part("sda1", "8:1", 195_311_616),
        **_part("sda2", "8:2", 781_459_504),
        "/sys/class/block/sda/device/model": "Portable SSD T5 \n",
        "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
        "/proc/swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        "/dev/zram0                              partition\t1942696\t\t0\t\t100\n"
        "/dev/mmcblk0p3                          partition\t102396\t\t51200\t\t-2\n",
        "/proc/self/mountinfo": "27 1 179:2 / / rw,noatime shared:1 - ext4 /dev/mmcblk0p2 rw\n"
        + KERNEL_MOUNTS
        + "98 27 8:1 / /mnt/ssd rw,relatime shared:51 - ext4 /dev/sda1 rw\n"
        "99 27 8:2 / /mnt/big\\040disk rw,relatime shared:52 - ext4 /dev/sda2 rw\n",
        **_os("Debian GNU/Linux 13 (trixie)"),
    },
    links={
        "/sys/class/block/mmcblk0": _PI4_SD,
        "/sys/class/block/mmcblk0p1": f"{_PI4_SD}/mmcblk0p1",
        "/sys/class/block/mmcblk0p2": f"{_PI4_SD}/mmcblk0p2",
        "/sys/class/block/mmcblk0p3": f"{_PI4_SD}/mmcblk0p3",
        "/sys/class/block/sda": _PI4_USB,
        "/sys/class/block/sda1": f"{_PI4_USB}/sda1",
        "/sys/class/block/sda2": f"{_PI4_USB}/sda2",
        "/sys/class/block/zram0": "/sys/devices/virtual/block/zram0",
        "/sys/class/net/eth0/device": "/sys/devices/platform/scb/fd580000.ethernet",
    },
    usb={f"/sys/class/block/{name}": "5000" for name in ("sda", "sda1", "sda2")},
    programs={
        "lscpu": _lscpu("aarch64", "Cortex-A72"),
        "ip": _ip(("eth0", "192.168.1.21/24")),
        "getent": "192.168.1.21    STREAM pi1\n",
        "sudo": "",
        "throttled": "throttled=0x50005\n",
    },
    failing={"bootloader": "VCHI initialization failed\n"},
    log="[  812.101] sd 0:0:0:0: [sda] tag#12 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD OUT\n"
    "[  813.220] hwmon hwmon1: Undervoltage detected!\n",
    own={
        "name": "pi1",
        "machine": "aarch64",
        "kernel": "6.12.47+rpt-rpi-v8",
        "cpus": 4,
        "spaces": {
            "/": [60 * GIB, 20 * GIB, 0, 1],
            "/run": [GIB, GIB, 0, 1],
            "/mnt/ssd": [91 * GIB, 85 * GIB, 0, 1],
            "/mnt/big disk": [366 * GIB, 347 * GIB, 0, 1],
        },
    },
)

_PI3_SD = "/sys/devices/platform/soc/3f202000.mmc/mmc_host/mmc0/mmc0:59b4/block/mmcblk0"
PI_3 = Recording(
    files={
        **COMMON,
        "/proc/device-tree/model": "Raspberry Pi 3 Model B Rev 1.2\0",
        "/proc/device-tree/compatible": "raspberrypi,3-model-b\0brcm,bcm2837\0",
        **_cpus(4, 600_000, 1_200_000, "ondemand"),
        **_memory(930_372, 700_000),
        "/sys/class/net/eth0/speed": "100\n",
        "/sys/class/net/eth0/duplex": "full\n",
        "/sys/class/net/eth0/carrier": "1\n",
        "/sys/class/net/wlan0/carrier": "1\n",
        "/sys/class/net/wlan0/phy80211/name": "phy0\n",
        **_device("mmcblk0", "179:0", 31_116_288, turns=False, discard=0),
        **_part("mmcblk0p2", "179:2", 30_586_880),
        "/sys/class/block/mmcblk0/device/type": "SD\n",
        "/sys/class/block/mmcblk0/device/name": "00000\n",
        "/proc/cgroups": CGROUPS.format(memory=0),
        "/proc/swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
        "/proc/self/mountinfo": "27 1 179:2 / / rw,noatime - ext4 /dev/root ro,errors=continue\n",
        **_os("Raspbian GNU/Linux 12 (bookworm)"),
    },
    links={
        "/sys/class/block/mmcblk0": _PI3_SD,
        "/sys/class/block/mmcblk0p2": f"{_PI3_SD}/mmcblk0p2",
        "/sys/class/net/eth0/device": "/sys/devices/platform/soc/3f980000.usb/usb1/1-1/1-1.1",
        "/sys/class/net/wlan0/device": "/sys/devices/platform/soc/3f300000.mmcnr/mmc1:0001:1",
    },
    programs={
        "lscpu": _lscpu("aarch64", "Cortex-A53"),
        "ip": _ip(("eth0", "192.168.1.22/24"), ("wlan0", "192.168.1.122/24")),
        "getent": "127.0.1.1       STREAM pi2\n",
    },
    failing={
        "bootloader": 'error=1 error_msg="Command not registered"\n',
        "throttled": "Can't open device file: /dev/vcio\n",
        "sudo": "sudo: a password is required\n",
    },
    log=None,
    own={
        "name": "pi2",
        "machine": "aarch64",
        "kernel": "6.6.51+rpt-rpi-v8",
        "cpus": 4,
        "pointer_bits": 32,
        "kernel_clock": {"maxerror_microseconds": 16_000_000, "status": 0x40},
        "spaces": {"/": [14 * GIB, GIB, 1, 1]},
    },
)

_PC_NVME = "/sys/devices/pci0000:00/0000:00:06.0/0000:02:00.0/nvme/nvme0/nvme0n1"
_PC_SATA = "/sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda"
DESKTOP = Recording(
    files={
        **COMMON,
        "/sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
        "/sys/class/dmi/id/product_name": "OptiPlex 7010\n",
        "/sys/class/dmi/id/product_version": "To Be Filled By O.E.M.\n",
        "/sys/class/dmi/id/bios_vendor": "Dell Inc.\n",
        "/sys/class/dmi/id/bios_version": "1.14.0\n",
        "/sys/class/dmi/id/bios_date": "03/08/2024\n",
        **_cpus(6, 800_000, 4_600_000, "powersave"),
        **_memory(32_640_000, 28_000_000),
        "/sys/class/thermal/thermal_zone0/temp": "27800\n",
        "/sys/class/thermal/thermal_zone1/temp": "46000\n",
        "/sys/class/net/enp0s31f6/speed": "2500\n",
        "/sys/class/net/enp0s31f6/duplex": "full\n",
        "/sys/class/net/enp0s31f6/carrier": "1\n",
        "/sys/class/net/docker0/speed": "-1\n",
        **_device("nvme0n1", "259:0", 2_000_409_264, turns=False, discard=2_199_023_255_040),
        **_part("nvme0n1p3", "259:3", 1_990_000_000),
        "/sys/class/block/nvme0n1/device/model": "WD_BLACK SN770 1TB\n",
        "/sys/class/nvme/nvme0/device/current_link_speed": "16.0 GT/s PCIe\n",
        "/sys/class/nvme/nvme0/device/current_link_width": "4\n",
        **_device("dm-0", "253:0", 1_900_000_000, turns=False, discard=2_199_023_255_040),
        **_device("dm-1", "253:1", 16_777_216, turns=False, discard=2_199_023_255_040),
        **_device("sda", "8:0", 3_907_029_168, turns=True, discard=0),
        **_part("sda1", "8:1", 3_907_027_087),
        "/sys/class/block/sda/device/model": "ST2000DM008-2FR1\n",
        "/sys/class/block/sda/device/vendor": "ATA     \n",
        **_device("sr0", "11:0", 2_097_151, turns=True, discard=0),
        "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory hugetlb pids rdma misc\n",
        "/proc/swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        "/dev/dm-1                               partition\t8388604\t\t0\t\t-2\n",
        "/proc/self/mountinfo": "27 1 253:0 / / rw,relatime - ext4 /dev/mapper/vg-root rw\n"
        + KERNEL_MOUNTS
        + "60 27 0:45 /@data /data rw,relatime - btrfs /dev/sda1 rw,space_cache=v2,subvol=/@data\n"
        "61 27 0:50 / /tmp rw,nosuid,nodev - tmpfs tmpfs rw,nr_inodes=1048576\n"
        "62 27 0:60 / /net rw,relatime - nfs4 nas:/export rw,vers=4.2\n",
        **_os("Debian GNU/Linux 13 (trixie)"),
    },
    links={
        "/sys/class/block/nvme0n1": _PC_NVME,
        "/sys/class/block/nvme0n1p3": f"{_PC_NVME}/nvme0n1p3",
        "/sys/class/block/dm-0": "/sys/devices/virtual/block/dm-0",
        "/sys/class/block/dm-1": "/sys/devices/virtual/block/dm-1",
        "/sys/class/block/dm-0/slaves/nvme0n1p3": f"{_PC_NVME}/nvme0n1p3",
        "/sys/class/block/dm-1/slaves/nvme0n1p3": f"{_PC_NVME}/nvme0n1p3",
        "/sys/class/block/sda": _PC_SATA,
        "/sys/class/block/sda1": f"{_PC_SATA}/sda1",
        "/sys/class/block/sr0": "/sys/devices/pci0000:00/0000:00:17.0/ata2/block/sr0",
        "/sys/class/net/enp0s31f6/device": "/sys/devices/pci0000:00/0000:00:1f.6",
    },
    programs={
        "lscpu": _lscpu("x86_64", "Intel(R) Core(TM) i5-10505 CPU @ 3.20GHz"),
        "ip": _ip(("enp0s31f6", "192.168.1.5/24"), ("docker0", "")),
        "getent": "127.0.1.1       STREAM desk\n192.168.1.5     STREAM \n",
        "sudo": "",
    },
    javas={
        "/usr/lib/jvm/java-21-openjdk-amd64": (X86_64, 'JAVA_VERSION="21.0.7"\n'),
        "/opt/jdk8/jre": (X86_64, 'JAVA_VERSION="1.8.0_452"\n'),
    },
    own={
        "name": "desk",
        "user": "anna",
        "machine": "x86_64",
        "kernel": "6.12.43+deb13-amd64",
        "cpus": 6,
        "python": "3.13.5",
        "spaces": {
            "/": [900 * GIB, 300 * GIB, 0, 1],
            "/data": [1800 * GIB, 1500 * GIB, 0, 1],
            "/tmp": [16 * GIB, 16 * GIB, 0, 1],
            "/run": [GIB, GIB, 0, 1],
        },
    },
)

VM = Recording(
    files={
        **COMMON,
        "/sys/class/dmi/id/sys_vendor": "QEMU\n",
        "/sys/class/dmi/id/product_name": "Standard PC (Q35 + ICH9, 2009)\n",
        "/sys/class/dmi/id/bios_vendor": "SeaBIOS\n",
        "/sys/class/dmi/id/bios_version": "1.16.3-debian-1.16.3-2\n",
        "/sys/class/dmi/id/bios_date": "04/01/2014\n",
        "/sys/devices/system/cpu/online": "0-1\n",
        **_memory(2_030_000, 1_700_000),
        "/sys/class/net/ens3/speed": "-1\n",
        "/sys/class/net/ens3/duplex": "unknown\n",
        "/sys/class/net/ens3/carrier": "1\n",
        **_device("vda", "254:0", 41_943_040, turns=True, discard=1_073_741_824),
        **_part("vda1", "254:1", 39_843_807),
        "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
        "/proc/swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
        "/proc/self/mountinfo": "27 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n" + KERNEL_MOUNTS,
        "/proc/cpuinfo": "processor\t: 0\nmodel name\t: QEMU Virtual CPU version 2.5+\n",
        **_os("Debian GNU/Linux 12 (bookworm)"),
    },
    links={
        "/sys/class/block/vda": "/sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda",
        "/sys/class/block/vda1": "/sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda/vda1",
        "/sys/class/net/ens3/device": "/sys/devices/pci0000:00/0000:00:03.0/virtio0",
    },
    programs={"ip": _ip(("ens3", "10.0.2.15/24"))},
    own={
        "name": "guest",
        "user": "debian",
        "machine": "x86_64",
        "kernel": "6.1.0-37-amd64",
        "cpus": 2,
        "spaces": {"/": [19 * GIB, 15 * GIB, 0, 1], "/run": [GIB, GIB, 0, 1]},
    },
)

RECORDINGS = {"pi5": PI_5, "pi4": PI_4, "pi3": PI_3, "desktop": DESKTOP, "vm": VM}
