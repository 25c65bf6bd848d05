"""A board made of a folder, with a package manager, users, nftables and systemd that are models.

Everything the node-side program does to files it does for real, in that folder.
"""

import os
import pwd
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from boardcluster.services.provision.node import guards, manifest, owners, packages, program, system
from boardcluster.services.provision.resources import Resource, request_of

HOSTS = """\
127.0.0.1\tlocalhost
::1\t\tlocalhost ip6-localhost
127.0.1.1\tpi0
192.168.9.9 printer
"""
COMMAND_LINE = "console=tty1 root=PARTUUID=1-02 rootwait\n"
UNITS = "etc/systemd/system"

DEBIAN = {
    "rsync": ["libpopt0"],
    "nftables": [],
    "openjdk-21-jre-headless": ["ca-certificates-java", "libc6"],
    "editor": ["libpopt0"],
    "systemd-timesyncd": [],
    "chrony": [],
}
"""What apt can install, and what each needs."""


class KilledError(BaseException):
    """The program ended here."""


class Steps:
    """Counts what changes the board, and ends the program at one of these points."""

    def __init__(self) -> None:
        self.taken = 0
        self.end_at = -1

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            number, self.taken = self.taken, self.taken + 1
            if number == self.end_at:
                raise KilledError(number)
            return function(*args, **kwargs)

        return counted


class Board:
    """The board; see the module."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.steps = Steps()
        self.commands: list[list[str]] = []
        self.reachable = True
        self.peer = "10.0.0.9"
        self.guards: list[list[str]] = []
        self.listeners = ""
        self.dpkg = {"python3": "installed", "libc6": "installed", "oldie": "config-files"}
        self.users: dict[str, SimpleNamespace] = {}
        self.groups: dict[str, SimpleNamespace] = {}
        self.table = ""
        self.units = {"chrony.service": ["not-found", "", ""]}
        self.change = self.steps.wrap(lambda action: action())
        for folder in (UNITS, "etc/sysctl.d", "proc/sys/vm", "boot/firmware", "var/lib", "opt"):
            (root / folder).mkdir(parents=True)
        (root / "etc/hosts").write_text(HOSTS)
        (root / "proc/sys/vm/swappiness").write_text("60\n")
        (root / "boot/firmware/cmdline.txt").write_text(COMMAND_LINE)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in (system, packages, guards):
            monkeypatch.setattr(module, "run", self.run)
        monkeypatch.setattr(os, "fsync", lambda _: None)  # slow, and nothing here loses power
        monkeypatch.setattr(manifest, "LOCK_SECONDS_MOST", 1.0)
        monkeypatch.setattr(guards, "ssh_connection", lambda: (self.peer, 2222))
        monkeypatch.setattr(guards, "start_alone", self.guards.append)
        users = SimpleNamespace(getpwnam=lambda name: self.users_too()[name], getpwuid=pwd.getpwuid)
        for module in (owners, guards):
            monkeypatch.setattr(module, "pwd", users)
        for name in ("SUDO_USER", "SUDO_UID"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(
            owners,
            "grp",
            SimpleNamespace(getgrnam=lambda name: self.groups[name], getgrall=self.groups.values),
        )

    def users_too(self) -> dict[str, SimpleNamespace]:
        root = SimpleNamespace(pw_uid=os.getuid(), pw_gid=os.getgid(), pw_shell="/bin/bash")
        return {"root": root, **self.users}

    @contextmanager
    def counting(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Count every change of a file as a step, too."""
        with monkeypatch.context() as patch:
            for name in ("replace", "mkdir", "symlink", "chmod", "unlink", "rmdir"):
                patch.setattr(os, name, self.steps.wrap(getattr(os, name)))
            yield

    def ask(
        self,
        verb: str,
        wanted: list[Resource] | None = None,
        *,
        confirmed: bool = True,
        **fields: Any,
    ) -> dict[str, Any]:
        resources = [request_of(resource) for resource in wanted or []]
        request = {"do": verb, "root": str(self.root), "resources": resources, **fields}
        answer = program.answer(request)
        if confirmed and answer.get("confirms"):  # as the driver does, over a new connection
            again = program.answer({**request, "do": "confirm"})
            answer |= {name: again[name] for name in again if name == "error"}
        return answer

    def words(self, verb: str, wanted: list[Resource] | None = None, **fields: Any) -> list[str]:
        answer = self.ask(verb, wanted, **fields)
        assert "error" not in answer, answer["error"]
        return [row["words"] for row in answer["changes"]]

    def error(self, verb: str, wanted: list[Resource] | None = None, **fields: Any) -> str:
        answer = self.ask(verb, wanted, **fields)
        return str(answer["error"]["message"])

    def snapshot(self) -> dict[str, Any]:
        """Everything there is, the commands' models included."""
        files: dict[str, Any] = {}
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root).as_posix()
            mode = stat.S_IMODE(path.lstat().st_mode)
            if path.is_symlink():
                files[name] = ("link", str(path.readlink()))
            else:
                files[name] = (mode, path.read_bytes() if path.is_file() else b"")
        files |= {"dpkg": dict(self.dpkg), "users": sorted(self.users)}
        return files | {
            "groups": sorted(self.groups),
            "table": self.table,
            "units": str(self.units),
        }

    def run(self, argv: list[str], *, timeout_seconds: float = 120.0) -> tuple[int, str]:
        self.commands.append(argv)
        handler = getattr(self, "on_" + argv[0].replace("-", "_"))
        status, text = handler(*argv[1:])
        return int(status), str(text)

    # Debian's package manager

    def on_dpkg_query(self, *_: str) -> tuple[int, str]:
        return 0, "".join(f"{name} {state}\n" for name, state in self.dpkg.items())

    def on_apt_cache(self, _: str, name: str) -> tuple[int, str]:
        known = f"{name}:\n  Candidate: {'1.0' if name in DEBIAN else '(none)'}\n"
        return 0, known if name in DEBIAN else ""

    def needed(self, names: list[str]) -> list[str]:
        found: list[str] = []
        for name in names:
            found += [n for n in [*DEBIAN.get(name, []), name] if n not in found]
        return [name for name in found if self.dpkg.get(name) != "installed"]

    def on_apt_get(self, *words: str) -> tuple[int, str]:
        if "update" in words:
            return (0, "") if self.reachable else (0, "W: Failed to fetch the list")
        names = list(words[words.index("install") + 1 :])
        unknown = [name for name in names if name not in DEBIAN]
        if unknown or not (self.reachable or "-s" in words):
            return 100, f"E: Unable to fetch {(unknown or names)[0]}"
        for name in [] if "-s" in words else self.needed(names):
            self.change(lambda name=name: self.dpkg.update({name: "unpacked"}))
            self.change(lambda name=name: self.dpkg.update({name: "installed"}))
        return 0, "".join(f"Inst {name} (1.0 stable [arm64])\n" for name in self.needed(names))

    def on_dpkg(self, action: str, *names: str) -> tuple[int, str]:
        if action == "--configure":
            broken = [name for name, state in self.dpkg.items() if state == "unpacked"]
            self.dpkg |= dict.fromkeys(broken, "installed")
            return 0, ""
        kept = []
        for name in names:
            users = [n for n, needs in DEBIAN.items() if name in needs and n not in names]
            if any(self.dpkg.get(user) == "installed" for user in users):
                kept.append(name)
            elif action == "--purge":
                self.change(lambda name=name: self.dpkg.pop(name, None))
            else:
                self.change(lambda name=name: self.dpkg.update({name: "config-files"}))
        return (1, f"dependency problems: {kept}") if kept else (0, "")

    # users

    def on_groupadd(self, *words: str) -> tuple[int, str]:
        row = SimpleNamespace(gr_name=words[-1], gr_mem=[])
        self.change(lambda: self.groups.update({words[-1]: row}))
        return 0, ""

    def on_useradd(self, *words: str) -> tuple[int, str]:
        ids = {"pw_uid": os.getuid(), "pw_gid": os.getgid(), "pw_name": words[-1]}
        shell = words[words.index("--shell") + 1]
        row = SimpleNamespace(**ids, pw_shell=shell)
        if row.pw_uid == 0:
            row.pw_uid = row.pw_gid = 4321
        self.change(lambda: self.users.update({words[-1]: row}))
        return 0, ""

    def on_userdel(self, name: str) -> tuple[int, str]:
        self.change(lambda: self.users.pop(name))
        return 0, ""

    def on_groupdel(self, name: str) -> tuple[int, str]:
        self.change(lambda: self.groups.pop(name))
        return 0, ""

    # nftables

    def on_nft(self, *words: str) -> tuple[int, str]:
        if words[0] == "-f":
            rules = Path(words[1]).read_text()
            if "syntax error" in rules:
                return 1, "Error: syntax error, unexpected string"
            self.change(lambda: setattr(self, "table", rules))
        elif words[0] == "delete":
            self.change(lambda: setattr(self, "table", ""))
        else:
            return (0, self.table) if self.table else (1, "No such file or directory")
        return 0, ""

    def on_ss(self, *_: str) -> tuple[int, str]:
        return 0, self.listeners

    # systemd

    def on_systemctl(self, *words: str) -> tuple[int, str]:
        verb, name = words[0], words[-1]
        if verb == "daemon-reload":
            there = {path.name for path in (self.root / UNITS).iterdir()}
            for unit in there - set(self.units):
                self.units[unit] = ["loaded", "disabled", "inactive"]
            for unit in [u for u in self.units if u.startswith("boardcluster-")]:
                if unit not in there:
                    del self.units[unit]
            return 0, ""
        state = self.units.get(name, ["not-found", "", ""])
        if verb == "show":
            fields = ("LoadState", "UnitFileState", "ActiveState", "ConditionResult")
            values = [*state, *([] if state[3:] else ["no"])]
            asked = f"ConditionTimestampMonotonic={'7' if state[3:] else '0'}\n"
            return 0, asked + "".join(f"{f}={v}\n" for f, v in zip(fields, values, strict=True))
        if state[0] != "loaded":
            return 1, f"Unit {name} could not be found."
        to = {"enable": {1: "enabled", 2: "active"}, "disable": {1: "disabled"}}
        for place, value in to.get(verb, {2: "inactive"}).items():
            self.change(lambda place=place, value=value: state.__setitem__(place, value))
        return 0, ""
