"""Runs ON a node: temperature, reported clock and throttle bits, each second, to one answer.

The bits come from the firmware of a Raspberry Pi through its mailbox, as ``vcgencmd`` gets them,
but without starting a program each second.

Source: Raspberry Pi's Linux, drivers/char/broadcom/vcio.c; Raspberry Pi documentation, "Mailbox
property interface" and ``get_throttled``.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import struct
import sys
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["clock_hertz", "hottest", "property_request", "sample", "throttle_bits"]

GET_THROTTLED = 0x00030046
SUCCESS = 0x80000000
WORDS = struct.Struct("=7I")


def property_request() -> int:
    """Return the mailbox's number for ioctl: ``_IOWR(100, 0, char *)``."""
    return 3 << 30 | struct.calcsize("P") << 16 | 100 << 8


def throttle_bits(root: str) -> int | None:
    """Ask the firmware; None where it is not a Raspberry Pi's or this user may not."""
    message = bytearray(WORDS.pack(WORDS.size, 0, GET_THROTTLED, 4, 0, 0, 0))
    try:
        device = os.open(f"{root}/dev/vcio", os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.ioctl(device, property_request(), message, True)
    except OSError:
        return None
    finally:
        os.close(device)
    words = WORDS.unpack(message)
    return words[5] if words[1] == SUCCESS else None


def hottest(root: str) -> tuple[float | None, str]:
    """Return the temperature of the hottest thermal zone, and its type."""
    found = []
    for zone in Path(f"{root}/sys/class/thermal").glob("thermal_zone*"):
        try:
            celsius = int((zone / "temp").read_text()) / 1000
            found.append((celsius, (zone / "type").read_text().strip()))
        except (OSError, ValueError):
            continue  # a sensor that sleeps
    return max(found, default=(None, ""))


def clock_hertz(root: str) -> tuple[float | None, str]:
    """Return the mean of what the kernel reports for our CPUs, and where; None if nothing."""
    found = []
    for cpu in os.sched_getaffinity(0):
        place = Path(f"{root}/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")
        try:
            found.append(int(place.read_text()) * 1e3)
        except (OSError, ValueError):
            continue
    if found:
        return sum(found) / len(found), "cpufreq"
    # A virtual machine knows what its processor was started with.
    rows = Path(f"{root}/proc/cpuinfo").read_text()
    found = [float(row) * 1e6 for row in re.findall(r"^cpu MHz\s*: ([\d.]+)$", rows, re.M)]
    return (sum(found) / len(found), "cpuinfo") if found else (None, "")


def sample(request: dict[str, Any]) -> list[list[Any]]:
    """Answer [second, Celsius, sensor, hertz, its source, bits] now and each ``interval_seconds``.

    Ends after ``seconds``; of two samples that are due, one is taken.
    """
    root = request.get("root", "")
    signal.alarm(int(request["seconds"]) + 60)
    began = time.monotonic()
    rows = []
    while True:
        second = time.monotonic() - began
        rows.append([round(second, 3), *hottest(root), *clock_hertz(root), throttle_bits(root)])
        due = (int(second / request["interval_seconds"]) + 1) * request["interval_seconds"]
        if due > request["seconds"]:
            time.sleep(max(0.0, request["seconds"] - (time.monotonic() - began)))
            return rows
        time.sleep(max(0.0, due - (time.monotonic() - began)))


if __name__ == "__main__":
    _request = json.loads(sys.argv[1]) if len(sys.argv) > 1 else json.load(sys.stdin)
    json.dump({"sample": sample}[_request["do"]](_request), sys.stdout)
