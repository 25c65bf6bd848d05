"""Memory pages are 4 KiB, on all boards."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.units import KIB, format_bytes

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Compare with what most native libraries were built for."""
    yield from each(CHECK, view, _judge, good="4 KiB on every board")


def _judge(board: BoardView) -> Finding | None:
    size_bytes = board.facts.page_size_bytes
    if size_bytes == 4 * KIB:
        return None
    return fault(
        CHECK,
        board,
        f"{format_bytes(size_bytes, binary=True)} pages",
        fix=board.there(
            "echo kernel=kernel8.img | sudo tee -a /boot/firmware/config.txt && sudo reboot"
        ),
    )


CHECK = Check(
    name="page_sizes",
    looks_at="The size of a memory page of each running kernel.",
    why="The default kernel of a Raspberry Pi 5 has 16 KiB pages. Native libraries built for 4 KiB "
    'abort on it (jemalloc: "Unsupported system page size"), and memory and speed differ from '
    "boards with 4 KiB.",
    source="Raspberry Pi documentation, config.txt, `kernel`; "
    "github.com/raspberrypi/bookworm-feedback, issue 107",
    severity=Severity.WARNING,
    look=look,
)
