"""The kernel has what links between nodes are made of.

- The kernel refuses one of the three. Fix: `sudo modprobe` with its name; after a kernel upgrade,
  reboot.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]

_PARTS = {
    "bridge": ("ip", "link", "add", "name", "switch", "type", "bridge"),
    "veth": ("ip", "link", "add", "name", "port0", "type", "veth", "peer", "name", "eth0"),
    "sch_tbf": (
        *("tc", "qdisc", "add", "dev", "lo", "root", "tbf"),
        *("rate", "1gbit", "burst", "256kb", "latency", "50ms"),
    ),
}
"""Kernel module to the command that needs it; each runs in a namespace that ends with it."""

_MISSING = ("unknown", "not supported", "no such file")


def _look(facts: Facts) -> Faults:
    machine = facts.machine
    inside = ["unshare", "--net", *(() if machine.is_root else ("--map-root-user",))]
    empty = machine.run([*inside, "ip", "link", "set", "lo", "up"])
    if empty is None or empty.returncode != 0:
        yield "cannot tell: no namespace can be made, see the check namespaces"
        return
    for module, argv in _PARTS.items():
        done = machine.run([*inside, *argv])
        if done is not None and done.returncode != 0:  # None: missing, which the check tools says
            yield _fault(module, done.stderr.decode(errors="replace").strip())


def _fault(module: str, said: str) -> Fault:
    fix = f"sudo modprobe {module}"
    if any(word in said.lower() for word in _MISSING):
        fix += (
            "   (if it is not found: reboot after a kernel upgrade; on Ubuntu "
            '`sudo apt-get install "linux-modules-extra-$(uname -r)"`)'
        )
    return Fault(f"the kernel refuses {module}: {said.splitlines()[0] if said else ''}", fix=fix)


CHECK = Check(
    where=Where.NAMESPACES,
    looks_at="Whether a bridge, a virtual Ethernet pair and the tbf queue can be made in a "
    "namespace.",
    why="Nodes are joined by a bridge, and each link is held to its declared rate by tbf.",
    source="tc-tbf(8), veth(4), ip-link(8)",
    severity=Severity.ERROR,
    look=_look,
    good="bridge, virtual Ethernet and token-bucket shaping work",
)
