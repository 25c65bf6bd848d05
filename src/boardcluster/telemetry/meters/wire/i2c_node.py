"""Runs on a node: reads registers of a chip on the I2C bus and prints them. Standard library only.

Sent as text to the node's ``python3``; a reading costs two register reads, and the time between is
slept. Arguments: bus, address, registers to print once, registers to print each time (separated by
commas), readings, pause in seconds. Source of the ioctl: Linux, ``include/uapi/linux/i2c-dev.h``.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time

__all__ = ["main"]

_I2C_SLAVE = 0x0703


def _words(device: int, registers: str) -> list[str]:
    """Read 16-bit registers, high byte first, as hexadecimal words."""
    values = []
    for register in filter(None, registers.split(",")):
        os.write(device, bytes([int(register)]))
        values.append(os.read(device, 2).hex())
    return values


def main(arguments: list[str]) -> None:
    """Print ``id VALUE...``, then ``TIME VALUE...`` for each reading, then ``end TIME``."""
    bus, address, once, often, readings, pause = arguments
    device = os.open(f"/dev/i2c-{bus}", os.O_RDWR)
    try:
        fcntl.ioctl(device, _I2C_SLAVE, int(address))
        sys.stdout.write(" ".join(["id", *_words(device, once)]) + "\n")
        begun = time.monotonic()
        for reading in range(int(readings)):
            time.sleep(max(0.0, begun + reading * float(pause) - time.monotonic()))
            values = _words(device, often)
            sys.stdout.write(" ".join([f"{time.monotonic():.6f}", *values]) + "\n")
        sys.stdout.write(f"end {time.monotonic():.6f}\n")
    finally:
        os.close(device)


if __name__ == "__main__":
    main(sys.argv[1:])
