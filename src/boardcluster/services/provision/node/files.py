"""Files of a node, whole or in part: units, links, names, settings of the kernel."""

from __future__ import annotations

import base64
import contextlib
import os
from typing import Any

from boardcluster.services.provision.node.kind import ResourceKind
from boardcluster.services.provision.node.system import (
    FailedError,
    difference,
    link,
    look_at_file,
    restore_file,
    text_of,
    write,
    write_text,
)

__all__ = ["SYSTEMD_UNITS", "FileKind", "HostsKind", "SymlinkKind", "SysctlKind", "WordKind"]

SYSTEMD_UNITS = "/etc/systemd/system/"
NEWLINE = "\n"
BEGIN = "# BEGIN boardcluster: generated, do not edit between these lines\n"
END = "# END boardcluster\n"
TAKEN = "# taken away by boardcluster: "
REPLACED = "  # what boardcluster left of the line above"


class FileKind(ResourceKind):
    """A file with a content; of its units systemd is told when all are written."""

    @property
    def is_unit(self) -> bool:
        """Whether it is a unit of a node that systemd runs."""
        ours: bool = self.resource["path"].startswith(SYSTEMD_UNITS)
        return ours and self.node.systemd

    def content(self) -> str:
        """Return what is to stand in it."""
        text: str = self.resource["content"]
        return text

    def mode(self) -> int:
        """Return its permissions."""
        return int(self.resource.get("mode", 0o644))

    def look(self) -> dict[str, Any]:
        """Return content, mode and owner, or where a link leads."""
        return look_at_file(self.path)

    def is_wanted(self) -> bool:
        """Whether the file is as wanted."""
        found = self.look()
        data = base64.b64encode(self.content().encode()).decode()
        return found.get("data") == data and found.get("mode") == self.mode()

    def words(self) -> str:
        """Say that it is written or changed."""
        if self.is_wanted() and not self.resumed:
            return ""
        return f"{'changes' if os.path.lexists(self.path) else 'writes'} {self.resource['path']}"

    def detail(self) -> str:
        """Return the lines that differ."""
        return difference(self.resource["path"], text_of(self.path), self.content())

    def do(self) -> str:
        """Write it as a whole, in a folder that is made if it is missing."""
        if not os.path.isdir(os.path.dirname(self.path)):
            self.note("made_folder", True)
            os.mkdir(os.path.dirname(self.path), 0o755)
        write(self.path, self.content().encode(), mode=self.mode())
        self.node.units_changed |= self.is_unit
        return ""

    def back(self) -> str:
        """Say that the former file is restored, or this one removed."""
        path = self.resource["path"]
        return f"restores the former {path}" if self.before["there"] else f"removes {path}"

    def undo(self) -> str:
        """Restore the former file, or remove this one."""
        restore_file(self.path, self.before)
        if self.noted("made_folder", False):
            with contextlib.suppress(OSError):  # somebody else has put something there since
                os.rmdir(os.path.dirname(self.path))
        self.node.units_changed |= self.is_unit
        return ""


class SymlinkKind(FileKind):
    """A link to the first of some targets that exists."""

    def target(self) -> str:
        """Return that target; the first one if none exists yet."""
        targets: list[str] = self.resource["targets"]
        return next((path for path in targets if os.path.exists(self.node.at(path))), targets[0])

    def words(self) -> str:
        """Say where it will lead."""
        if self.look() == {"there": True, "link": self.target()}:
            return ""
        return f"links {self.resource['path']} to {self.target()}"

    def detail(self) -> str:
        """Return nothing: a link has no lines."""
        return ""

    def do(self) -> str:
        """Make the link; its target must be there."""
        target = self.target()
        if not os.path.exists(self.node.at(target)):
            raise FailedError(
                f"{target}, to which {self.resource['path']} should point, is missing"
            )
        link(self.path, target)
        return ""


class HostsKind(FileKind):
    """The cluster's names in /etc/hosts, so that each has one address on every node.

    A block at the top is not enough: glibc sorts what it finds in this file, and of ``127.0.1.1
    NAME``, which Debian writes, and the real address it puts the former first (RFC 6724, rule 8).
    So lines that give one of our names another address are taken away, and given back.
    """

    def content(self) -> str:
        """Return the file with our block at the top, without other addresses of our names."""
        rows: list[list[str]] = self.resource["rows"]
        names = {name for _, name in rows}
        addresses = {address for address, _ in rows}
        body = "".join(
            self.without(line, names, addresses)
            for line in self.original().splitlines(keepends=True)
        )
        block = "".join(f"{address} {name}\n" for address, name in rows)
        return f"{BEGIN}{block}{END}{body}"

    @staticmethod
    def without(line: str, names: set[str], addresses: set[str]) -> str:
        """Return a line without our names, unless it gives them an address of ours."""
        words = line.partition("#")[0].split()
        if not words or words[0] in addresses or not names & set(words[1:]):
            return line
        others = [word for word in words[1:] if word not in names]
        left = f"{words[0]} {' '.join(others)}{REPLACED}\n" if others else ""
        return f"{TAKEN}{line}{'' if line.endswith(NEWLINE) else NEWLINE}{left}"

    def original(self) -> str:
        """Return the file without anything of ours."""
        text = text_of(self.path)
        if (BEGIN in text) != (END in text) or text.count(BEGIN) > 1 or text.count(END) > 1:
            raise FailedError(
                f"the lines of boardcluster in {self.path} are damaged",
                hint=f"delete those between `{BEGIN.strip()}` and `{END.strip()}`, and these two",
            )
        if BEGIN in text:
            head, _, rest = text.partition(BEGIN)
            text = head + rest.partition(END)[2]
        rows = text.splitlines(keepends=True)
        kept = [row.removeprefix(TAKEN) for row in rows if not row.endswith(f"{REPLACED}\n")]
        return "".join(kept)

    def look(self) -> dict[str, Any]:
        """Whether there is one; the rest of it is other people's and may change meanwhile."""
        found = text_of(self.path)
        unended = bool(found) and not found.endswith("\n")
        return {"there": os.path.exists(self.path), "unended": unended}

    def is_wanted(self) -> bool:
        """Whether the text is as wanted; mode and owner are other people's."""
        return text_of(self.path) == self.content()

    def do(self) -> str:
        """Replace the text, keeping the mode."""
        write_text(self.path, self.content())
        return ""

    def back(self) -> str:
        """Say that our names are taken out."""
        return f"removes the cluster's names from {self.resource['path']}"

    def undo(self) -> str:
        """Take our block out and give the lines of others back."""
        text = self.original()
        if self.before["unended"] and text.endswith("\n") and text_of(self.path) != text:
            text = text[:-1]
        if text or self.before["there"]:
            if text != text_of(self.path):
                write_text(self.path, text)
        else:
            restore_file(self.path, self.before)
        return ""


class WordKind(ResourceKind):
    """One word of a file that is one line: a setting on the kernel's command line."""

    @property
    def key(self) -> str:
        """The word: the file may be at one of several places."""
        return f"word:{self.resource['word']}"

    @property
    def path(self) -> str:
        """The first of the places that exists; empty if none does."""
        places = [self.node.at(path) for path in self.resource["paths"]]
        return next((path for path in places if os.path.isfile(path)), "")

    def look(self) -> dict[str, Any]:
        """Return where the file is."""
        return {"path": self.path}

    def words(self) -> str:
        """Say that the word is added, if there is such a file and it lacks the word."""
        word = self.resource["word"]
        if not self.path or word in text_of(self.path).split():
            return ""
        return f"adds {word} to {self.path.removeprefix(self.node.root)}"

    def do(self) -> str:
        """Add the word to the end of the line."""
        line, newline, rest = text_of(self.path).partition("\n")
        write_text(self.path, f"{line} {self.resource['word']}{newline}{rest}")
        return "takes effect when the node has been restarted"

    def back(self) -> str:
        """Say that the word is taken out."""
        return f"removes {self.resource['word']} from {self.before['path']}"

    def undo(self) -> str:
        """Take the last such word out."""
        text = text_of(self.path) if self.path else ""
        head, found, rest = text.rpartition(f" {self.resource['word']}")
        if not found:
            return ""
        write_text(self.path, head + rest)
        return "takes effect when the node has been restarted"


class SysctlKind(FileKind):
    """Settings of the kernel, now and after each start."""

    def content(self) -> str:
        """Return one line for each setting."""
        rows = [f"{name} = {value}\n" for name, value in self.resource["values"].items()]
        return "".join(["# Written by boardcluster.\n", *rows])

    def place(self, name: str) -> str:
        """Return the file of a setting."""
        return self.node.at("/proc/sys/" + name.replace(".", "/"))

    def now(self) -> dict[str, str]:
        """Return the settings as they are, of those that this kernel has."""
        rows = {name: text_of(self.place(name)).strip() for name in self.resource["values"]}
        return {name: value for name, value in rows.items() if value}

    def look(self) -> dict[str, Any]:
        """Return the file, and the values as they are."""
        return {**look_at_file(self.path), "values": self.now()}

    def fixed(self) -> list[str]:
        """Return the settings that cannot be changed here: in a container, say."""
        return [name for name in self.now() if not os.access(self.place(name), os.W_OK)]

    def is_wanted(self) -> bool:
        """Whether the file is as wanted, and each value that can be changed here."""
        wanted, fixed = self.resource["values"], self.fixed()
        other = [n for n, value in self.now().items() if n not in fixed and value != wanted[n]]
        return super().is_wanted() and not other

    def words(self) -> str:
        """Name the settings and their values."""
        rows = [f"{name} = {value}" for name, value in self.resource["values"].items()]
        return f"sets {', '.join(rows)}" if super().words() else ""

    def set(self, values: dict[str, str]) -> str:
        """Write settings and read them back; return a remark on those that did not take."""
        for name, value in values.items():
            with contextlib.suppress(OSError), open(self.place(name), "w") as stream:
                stream.write(value)
        now = self.now()
        wrong = [name for name, value in values.items() if now.get(name, value) != value]
        return f"cannot be set here: {', '.join(wrong)}" if wrong else ""

    def do(self) -> str:
        """Write the file, and set the values now."""
        super().do()
        return self.set(self.resource["values"])

    def back(self) -> str:
        """Name the former values."""
        rows = [f"{name} = {value}" for name, value in self.before["values"].items()]
        return f"sets {', '.join(rows)} again" if rows else super().back()

    def undo(self) -> str:
        """Restore the file and the former values."""
        super().undo()
        return self.set(self.before["values"])
