"""No Java is for another processor.

- A Java is for another processor: an error if the daemons would use it, else a warning. Fix: `sudo
  apt-get install default-jre-headless`.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        own = board.facts.architecture
        wrong = [java for java in board.facts.javas if java.architecture not in ("", own)]
        if wrong:
            named = ", ".join(f"{java.home} is for {java.architecture}" for java in wrong)
            used = board.details.java in {java.home for java in wrong}
            install = board.there("sudo apt-get install default-jre-headless")
            yield Fault(
                f"{named}, but the processor is {own}",
                node=board.name,
                severity=Severity.ERROR if used else Severity.WARNING,
                fix=f"{install}   (and remove the other)",
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="The processor that each `java` was built for, in the head of its program file.",
    why='It does not start ("Exec format error"), or only through an emulator, many times slower.',
    source="elf(5), e_machine",
    severity=Severity.ERROR,
    look=_look,
    good="every Java is for its board's processor",
)
