"""Memory pages are 4 KiB."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings
from boardcluster.units import KIB, format_bytes

__all__ = ["CHECK"]


def look(around: Surroundings) -> Iterator[Finding]:
    """Compare with what most native libraries were built for."""
    size_bytes = around.machine.page_size_bytes
    if size_bytes == 4 * KIB:
        yield CHECK.good("4 KiB")
        return
    yield CHECK.wrong(
        f"{format_bytes(size_bytes, binary=True)} pages",
        fix="echo kernel=kernel8.img | sudo tee -a /boot/firmware/config.txt && sudo reboot"
        "   (Raspberry Pi)",
    )


CHECK = Check(
    name="page_size",
    looks_at="The size of a memory page of the running kernel.",
    why="The default kernel of a Raspberry Pi 5 has 16 KiB pages. Native libraries built for 4 KiB "
    'abort on it (jemalloc: "Unsupported system page size"), and memory and speed differ from '
    "boards with 4 KiB.",
    source="Raspberry Pi documentation, config.txt, `kernel`; "
    "github.com/raspberrypi/bookworm-feedback, issue 107",
    severity=Severity.WARNING,
    look=look,
    matters=lambda kind: kind.on_this_machine,
)
