"""The CPUs run at one frequency.

- Another governor than performance. Fix: `echo performance | sudo tee` into every governor's file,
  until the next boot; on boards `--fix` does it.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.doctor.facts import GOVERNOR_FILES

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    for node in facts.nodes:
        others = [name for name in node.governor.split(",") if name not in ("", "performance")]
        if others:
            command = node.there(f"echo performance | sudo tee {GOVERNOR_FILES}")
            loop = f"for file in {GOVERNOR_FILES}; do echo performance > $file; done"
            yield Fault(
                f"{' and '.join(others)} instead of performance",
                node=node.name,
                fix=f"{command}   (until the next boot)",
                repair=("sh", "-c", loop),
            )


CHECK = Check(
    where=Where.NODES,
    name_on_boards="governors",
    looks_at="The frequency governor of every CPU.",
    why="Other governors raise the frequency only after load has started. Short phases of a job "
    "run slower, and runs vary more.",
    source='Linux kernel, "CPU Performance Scaling", admin-guide/pm/cpufreq',
    severity=Severity.WARNING,
    look=_look,
    good="performance, or the kernel does not control the frequency",
)
