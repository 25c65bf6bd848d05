"""Memory pages are 4 KiB.

- Another size than 4 KiB. Fix: `kernel=kernel8.img` in `/boot/firmware/config.txt`, then reboot.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.units import KIB, format_bytes

__all__ = ["CHECK"]

_FIX = "echo kernel=kernel8.img | sudo tee -a /boot/firmware/config.txt && sudo reboot"


def _look(facts: Facts) -> Faults:
    for node in facts.nodes:
        if node.page_size_bytes != 4 * KIB:
            yield Fault(
                f"{format_bytes(node.page_size_bytes, binary=True)} pages",
                node=node.name,
                fix=f"{node.there(_FIX)}   (Raspberry Pi)",
            )


CHECK = Check(
    where=Where.NODES,
    name_on_boards="page_sizes",
    looks_at="The size of a memory page of the running kernel.",
    why="The default kernel of a Raspberry Pi 5 has 16 KiB pages. Native libraries built for 4 KiB "
    'abort on it (jemalloc: "Unsupported system page size"), and memory and speed differ from '
    "boards with 4 KiB.",
    source="Raspberry Pi documentation, config.txt, `kernel`; "
    "github.com/raspberrypi/bookworm-feedback, issue 107",
    severity=Severity.WARNING,
    look=_look,
    good="4 KiB",
)
