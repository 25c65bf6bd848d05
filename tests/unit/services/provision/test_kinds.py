"""Each kind of resource where it does not go smoothly."""

import os
import shutil
import subprocess
import sys
import uuid
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.unit.services.provision.board import DEBIAN, HOSTS, Board

from boardcluster.records import Egress
from boardcluster.services.provision.firewall import TAKE_BACK
from boardcluster.services.provision.node import files, guards, system
from boardcluster.services.provision.node.owners import FolderKind
from boardcluster.services.provision.resources import (
    File,
    Firewall,
    Folder,
    Hosts,
    Packages,
    Resource,
    Service,
    Symlink,
    Sysctl,
    User,
)

NAMES = Hosts(rows=(("198.18.44.10", "pi0"), ("198.18.44.11", "pi1")))
BLOCK = """\
# BEGIN boardcluster: generated, do not edit between these lines
198.18.44.10 pi0
198.18.44.11 pi1
# END boardcluster
"""
USER = User(name="boardcluster")
TABLE = Firewall(path="/etc/boardcluster/firewall.nft", content="SSH_PORT\n")
ME = "root"  # the board's root is whoever runs the tests


def hosts_of(board: Board) -> Path:
    return board.root / "etc/hosts"


# Names


def test_the_names_of_the_cluster_come_first_and_only_with_their_addresses(board: Board) -> None:
    text = HOSTS + "192.168.1.7 pi1 pi1.lan web # old\n198.18.44.10 pi0.lan pi0\n# 10.0.0.1 pi0\n"
    hosts_of(board).write_text(text)
    board.words("apply", [NAMES])
    assert hosts_of(board).read_text() == (
        f"{BLOCK}127.0.0.1\tlocalhost\n"
        "::1\t\tlocalhost ip6-localhost\n"
        "# taken away by boardcluster: 127.0.1.1\tpi0\n"
        "192.168.9.9 printer\n"
        "# taken away by boardcluster: 192.168.1.7 pi1 pi1.lan web # old\n"
        "192.168.1.7 pi1.lan web  # what boardcluster left of the line above\n"
        "198.18.44.10 pi0.lan pi0\n"
        "# 10.0.0.1 pi0\n"
    )
    assert board.words("apply", [NAMES]) == []
    board.words("uninstall", keep_data=False)
    assert hosts_of(board).read_text() == text


def test_lines_that_others_add_later_stay(board: Board) -> None:
    board.words("apply", [NAMES])
    with hosts_of(board).open("a") as stream:
        stream.write("10.9.8.7 nas\n127.0.1.1 pi1\n")
    assert board.words("apply", [NAMES]) == ["changes /etc/hosts"]
    more = replace(NAMES, rows=(*NAMES.rows, ("198.18.44.12", "pi2")))
    assert board.words("apply", [more]) == ["changes /etc/hosts"]
    assert hosts_of(board).read_text().startswith(BLOCK.replace("# END", "198.18.44.12 pi2\n# END"))
    board.words("uninstall", keep_data=False)
    assert hosts_of(board).read_text() == f"{HOSTS}10.9.8.7 nas\n127.0.1.1 pi1\n"


@pytest.mark.parametrize(
    "text",
    ["127.0.1.1 pi0", "10.0.0.1 other", "", "caf\udce9 line\n", "127.0.0.1 localhost pi0\r\n"],
)
def test_odd_hosts_files_come_back_as_they_were(board: Board, text: str) -> None:
    raw = text.encode("utf-8", "surrogateescape")
    hosts_of(board).write_bytes(raw)
    board.words("apply", [NAMES])
    assert board.words("apply", [NAMES]) == []
    board.words("uninstall", keep_data=False)
    assert hosts_of(board).read_bytes() == raw


def test_a_missing_hosts_file_is_missing_again_afterwards(board: Board) -> None:
    hosts_of(board).unlink()
    board.words("apply", [NAMES])
    assert hosts_of(board).read_text() == BLOCK
    board.words("uninstall", keep_data=False)
    assert not hosts_of(board).exists()


@pytest.mark.parametrize("cut", ["# BEGIN", "# END"])
def test_a_damaged_block_is_not_guessed_at(board: Board, cut: str) -> None:
    board.words("apply", [NAMES])
    rows = [row for row in hosts_of(board).read_text().splitlines(True) if not row.startswith(cut)]
    hosts_of(board).write_text("".join(rows))
    before = board.snapshot()
    for verb in ("apply", "uninstall"):
        assert "are damaged" in board.error(verb, [NAMES], keep_data=False)
        assert board.snapshot() == before


def test_a_dry_run_shows_the_lines(board: Board) -> None:
    (row,) = board.ask("plan", [NAMES])["changes"]
    assert "+198.18.44.10 pi0\n" in row["detail"]
    assert "-127.0.1.1\tpi0\n" in row["detail"]


# Files


def test_a_former_file_comes_back_with_its_mode(board: Board) -> None:
    path = board.root / "etc/thing.conf"
    path.write_bytes(b"mine \xff\n")
    path.chmod(0o600)
    wanted = File(path="/etc/thing.conf", content="ours\n")
    assert board.words("apply", [wanted]) == ["changes /etc/thing.conf"]
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("ours\n", 0o644)
    path.chmod(0o666)
    assert board.words("apply", [wanted]) == ["changes /etc/thing.conf"]
    assert board.words("uninstall", keep_data=False) == ["restores the former /etc/thing.conf"]
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"mine \xff\n", 0o600)


def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(board: Board) -> None:
    victim = board.root / "etc/victim"
    victim.write_text("precious")
    path = board.root / "etc/thing.conf"
    path.symlink_to(victim)
    board.words("apply", [File(path="/etc/thing.conf", content="ours\n")])
    assert victim.read_text() == "precious"
    assert not path.is_symlink()
    board.words("uninstall", keep_data=False)
    assert path.readlink() == victim


def test_what_is_in_the_way_is_left_alone(board: Board) -> None:
    (board.root / "etc/thing.conf").mkdir()
    before = board.snapshot()
    wanted = File(path="/etc/thing.conf", content="")
    assert "is in the way" in board.error("apply", [wanted])
    (board.root / "opt/file").write_text("")
    assert "is in the way" in board.error("apply", [Folder(path="/opt/file")])
    (board.root / "opt/file").unlink()
    assert board.snapshot() == before


def test_a_link_leads_to_the_first_target_that_is_there(board: Board) -> None:
    java = Symlink(path="/opt/java", targets=("/usr/lib/jvm/17", "/usr/lib/jvm/21"))
    assert board.words("plan", [java]) == ["links /opt/java to /usr/lib/jvm/17"]
    assert "/usr/lib/jvm/17, to which /opt/java should point, is missing" in board.error(
        "apply", [java]
    )
    (board.root / "usr/lib/jvm/21").mkdir(parents=True)
    assert board.words("apply", [java]) == ["links /opt/java to /usr/lib/jvm/21"]
    assert (board.root / "opt/java").readlink() == Path("/usr/lib/jvm/21")
    assert board.words("apply", [java]) == []


# Settings of the kernel


def test_a_setting_that_cannot_be_changed_is_said_once(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = board.root / "proc/sys/vm/swappiness"
    settings = Sysctl(path="/etc/sysctl.d/60.conf", values={"vm.swappiness": "1", "no.such": "2"})
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, how: Path(path) != place and may(path, how))
    monkeypatch.setattr(files.SysctlKind, "set", lambda *_: "cannot be set here: vm.swappiness")
    (row,) = board.ask("apply", [settings])["changes"]
    assert row["remark"] == "cannot be set here: vm.swappiness"
    assert place.read_text() == "60\n"
    assert board.words("apply", [settings]) == []


def test_a_setting_that_somebody_changed_is_set_again(board: Board) -> None:
    settings = Sysctl(path="/etc/sysctl.d/60.conf", values={"vm.swappiness": "1"})
    board.words("apply", [settings])
    (board.root / "proc/sys/vm/swappiness").write_text("90\n")
    assert board.words("apply", [settings]) == ["sets vm.swappiness = 1"]
    assert board.words("uninstall", keep_data=False) == ["sets vm.swappiness = 60 again"]
    assert (board.root / "proc/sys/vm/swappiness").read_text() == "60"


# Packages


def test_packages_without_a_way_to_them_are_named(board: Board) -> None:
    board.reachable = False
    answer = board.ask("apply", [Packages(wanted=(("rsync",), ("nftables",)))])
    message, hint = answer["error"]["message"], answer["error"]["hint"]
    assert "apt-get could not install rsync, nftables: E: Unable to fetch" in message
    assert "W: Failed to fetch the list" in message
    assert "sudo apt-get install rsync nftables" in hint
    board.reachable = True
    assert board.words("apply", [Packages(wanted=(("rsync",), ("nftables",)))])


def test_a_failed_installation_does_not_claim_what_a_person_installs_later(board: Board) -> None:
    board.reachable = False
    board.error("apply", [Packages(wanted=(("rsync",),))])
    board.dpkg["editor"] = "installed"
    board.reachable = True
    board.words("apply", [Packages(wanted=(("rsync",),))])
    board.dpkg["chrony"] = "installed"
    assert board.words("uninstall", keep_data=False) == ["purges libpopt0, rsync"]
    assert "rsync" not in board.dpkg
    assert board.dpkg["editor"] == board.dpkg["chrony"] == "installed"


def test_packages_that_others_need_by_now_are_left(board: Board) -> None:
    board.words("apply", [Packages(wanted=(("rsync",), ("nftables",)))])
    board.dpkg["editor"] = "installed"  # it needs libpopt0, which came with rsync
    (row,) = board.ask("uninstall", keep_data=False)["changes"]
    assert row["words"] == "purges libpopt0, rsync, nftables"
    assert row["remark"] == "left, because other packages or your login need them: libpopt0"
    assert "rsync" not in board.dpkg


@pytest.mark.parametrize("login", ["root", "sudo"])
def test_sudo_goes_unless_who_takes_it_away_needs_it(
    login: str, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root has no password here, only a key, so sudo does not go unless it is forced."""
    dpkg = board.on_dpkg

    def on_dpkg(action: str, *names: str) -> tuple[int, str]:
        done = dpkg(action, *(name for name in names if name != "sudo"))
        return (1, "no root password has been set") if "sudo" in names else done

    def on_env(setting: str, *words: str) -> tuple[int, str]:
        assert (setting, words[0]) == ("SUDO_FORCE_REMOVE=yes", "dpkg")
        return dpkg(*words[1:])

    monkeypatch.setitem(DEBIAN, "sudo", [])
    monkeypatch.setattr(board, "on_dpkg", on_dpkg)
    monkeypatch.setattr(board, "on_env", on_env, raising=False)
    if login == "sudo":
        monkeypatch.setenv("SUDO_UID", "1000")
    board.words("apply", [Packages(wanted=(("rsync",), ("sudo",)))])

    (row,) = board.ask("uninstall", keep_data=False)["changes"]

    left = "left, because other packages or your login need them: sudo"
    assert row["remark"] == ("" if login == "root" else left)
    assert ("sudo" in board.dpkg) == (login == "sudo")
    assert "rsync" not in board.dpkg


def test_settings_of_a_removed_package_are_there_again(board: Board) -> None:
    board.dpkg["rsync"] = "config-files"
    board.words("apply", [Packages(wanted=(("rsync",),))])
    board.words("uninstall", keep_data=False)
    assert board.dpkg["rsync"] == "config-files"
    assert "libpopt0" not in board.dpkg


def test_more_packages_can_follow(board: Board) -> None:
    before = board.snapshot()
    board.words("apply", [Packages(wanted=(("rsync",),))])
    assert board.words("apply", [Packages(wanted=(("rsync",), ("nftables",)))]) == [
        "installs nftables and their dependencies"
    ]
    assert board.words("apply", [Packages(wanted=(("chrony",),))])
    board.words("uninstall", keep_data=False)
    assert board.snapshot() == before


def test_an_upgrade_is_said_because_it_stays(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    apt = board.on_apt_get

    def upgrading(*words: str) -> tuple[int, str]:
        status, text = apt(*words)
        return status, f"{text}Inst libc6 [2.36] (2.37 stable [arm64])\n"

    monkeypatch.setattr(board, "on_apt_get", upgrading)
    (row,) = board.ask("apply", [Packages(wanted=(("rsync",),))])["changes"]
    assert row["remark"] == "also upgraded, which uninstall does not undo: libc6"
    board.words("uninstall", keep_data=False)
    assert board.dpkg["libc6"] == "installed"


def test_a_package_that_the_system_has_not_is_left_out_if_it_may_be(board: Board) -> None:
    wanted: list[Resource] = [Packages(wanted=(("rsync",),), optional=("chrony", "netpipe-tcp"))]
    assert board.words("apply", wanted) == ["installs rsync, chrony and their dependencies"]
    assert board.dpkg["chrony"] == "installed"
    assert board.words("apply", wanted) == []
    assert "could not install" in board.error("apply", [Packages(wanted=(("netpipe-tcp",),))])


def test_a_system_without_dpkg_is_refused(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "on_dpkg_query", lambda *_: (127, ""))
    assert board.error("plan", [Packages(wanted=(("rsync",),))]) == "this system has no dpkg"


# Users and folders


@pytest.mark.parametrize(
    ("shell", "uid", "group"),
    [("/bin/bash", 1001, ""), ("/usr/sbin/nologin", 0, ""), ("/usr/sbin/nologin", 900, "sudo")],
)
def test_a_user_with_rights_is_not_taken_for_ours(
    board: Board, shell: str, uid: int, group: str
) -> None:
    board.users["boardcluster"] = SimpleNamespace(pw_uid=uid, pw_gid=1, pw_shell=shell)
    board.groups["boardcluster"] = SimpleNamespace(gr_name="boardcluster", gr_mem=[])
    if group:
        board.groups[group] = SimpleNamespace(gr_name=group, gr_mem=["boardcluster"])
    assert "and is not just a service account" in board.error("apply", [USER])


def test_a_service_user_that_was_there_stays(board: Board) -> None:
    ids = {"pw_uid": 900, "pw_gid": 900, "pw_shell": "/usr/sbin/nologin"}
    board.users["boardcluster"] = SimpleNamespace(**ids)
    board.groups["boardcluster"] = SimpleNamespace(gr_name="boardcluster", gr_mem=[])
    assert board.words("apply", [USER]) == []
    board.words("uninstall", keep_data=False)
    assert "boardcluster" in board.users


def test_a_folder_that_was_there_is_given_back_without_what_is_ours(board: Board) -> None:
    place = board.root / "opt/disk"
    (place / "data-old").mkdir(parents=True)
    (place / "photos").mkdir()
    place.chmod(0o711)
    wanted = Folder(path="/opt/disk", owner=ME, mode=0o750, own=("data", "data-*", "logs"))
    assert board.words("apply", [wanted]) == ["gives /opt/disk to root with the mode 750"]
    (place / "data").mkdir()
    (place / "data/block").write_text("x")
    (place / "logs").symlink_to(place / "photos")
    board.words("uninstall", keep_data=False)
    assert sorted(path.name for path in place.iterdir()) == ["data-old", "photos"]
    assert place.stat().st_mode & 0o777 == 0o711


def test_a_folder_whose_disk_is_not_mounted_is_not_made_on_the_card(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `nofail` a board starts without its SSD; an empty HDFS would begin on the card."""
    wanted = Folder(path="/mnt/nvme/boardcluster", owner=ME, mode=0o750, own=("data",))
    monkeypatch.setattr(FolderKind, "is_on_another_disk", lambda _: True)
    assert board.words("apply", [wanted])
    shutil.rmtree(board.root / "mnt/nvme")
    monkeypatch.setattr(FolderKind, "is_on_another_disk", lambda _: False)
    said = board.error("apply", [wanted])
    assert "/mnt/nvme/boardcluster was on a disk of its own, which is not mounted now" in said
    assert not (board.root / "mnt/nvme").exists()


@pytest.mark.parametrize("existed", [False, True])
def test_a_folder_whose_disk_is_not_mounted_is_not_said_to_be_removed(
    existed: bool, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = board.root / "mnt/nvme/boardcluster"
    if existed:
        place.mkdir(parents=True)
    wanted = Folder(path="/mnt/nvme/boardcluster", owner=ME, mode=0o750, own=("data",))
    monkeypatch.setattr(FolderKind, "is_on_another_disk", lambda _: True)
    assert board.words("apply", [wanted])
    assert board.ask("unmounted")["folders"] == []
    (place / "data").mkdir()

    monkeypatch.setattr(FolderKind, "is_on_another_disk", lambda _: False)

    assert board.ask("unmounted")["folders"] == ["/mnt/nvme/boardcluster"]
    said = "leaves /mnt/nvme/boardcluster, whose disk is not mounted"
    assert board.words("plan_uninstall", keep_data=False) == [said]
    (row,) = board.ask("uninstall", keep_data=False)["changes"]
    assert (row["words"], row["remark"]) == (said, "what is on that disk stays")
    assert (place / "data").is_dir()


def test_a_user_that_cannot_be_removed_is_said_with_what_helps(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.words("apply", [USER])
    monkeypatch.setattr(board, "on_userdel", lambda _: (8, "used by process 7"))
    hint = board.ask("uninstall", keep_data=False)["error"]["hint"]
    assert "`sudo pkill -KILL -u boardcluster`" in hint


def test_a_folder_of_the_card_is_made_again(board: Board) -> None:
    wanted = Folder(path="/var/lib/of-ours", owner=ME, mode=0o750, own=("data",))
    assert board.words("apply", [wanted])
    shutil.rmtree(board.root / "var/lib/of-ours")
    assert board.words("apply", [wanted]) == ["creates /var/lib/of-ours for root"]


def test_a_link_in_place_of_a_folder_gives_nothing_away(board: Board) -> None:
    victim = board.root / "etc-of-root"
    victim.mkdir(mode=0o755)
    (board.root / "opt/disk").symlink_to(victim)
    assert "in the way: not a folder" in board.error(
        "apply", [Folder(path="/opt/disk", owner=ME, mode=0o700)]
    )
    assert victim.stat().st_mode & 0o777 == 0o755


def test_a_link_that_replaces_a_folder_at_the_last_moment_is_not_followed(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root looks at the path, then somebody puts a link there, then root gives it away."""
    victim = board.root / "etc-of-root"
    victim.mkdir(mode=0o755)
    place = board.root / "opt/disk"
    real = FolderKind.owners

    def replaced(self: FolderKind) -> tuple[int, int] | None:
        if place.is_dir() and not place.is_symlink():
            place.rmdir()
            place.symlink_to(victim)
        return real(self)

    monkeypatch.setattr(FolderKind, "owners", replaced)
    board.error("apply", [Folder(path="/opt/disk", owner=ME, mode=0o700)])
    assert place.is_symlink()
    assert victim.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o775])
def test_a_folder_that_others_could_replace_is_refused(mode: int, board: Board) -> None:
    """The owner of what is above could put a link to /etc there, which root would give away."""
    parent = board.root / "srv/shared"
    parent.mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(parent, 0, 7)
    elif mode == 0o775:
        pytest.skip("the group of who tests is not root's")
    parent.chmod(mode)
    wanted = Folder(path="/srv/shared/disk", owner=ME, mode=0o700)
    assert "other than root may change /srv/shared" in board.error("plan", [wanted])
    parent.chmod(0o755)
    assert board.words("apply", [wanted])


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to somebody else")
def test_a_folder_below_one_of_a_user_is_refused(board: Board) -> None:
    parent = board.root / "srv/theirs"
    parent.mkdir(parents=True)
    os.chown(parent, 1001, 0)
    wanted = Folder(path="/srv/theirs/disk", owner=ME)
    assert "other than root may change /srv/theirs" in board.error("plan", [wanted])
    (board.root / "srv/link").symlink_to(parent)
    wanted = replace(wanted, path="/srv/link/disk")
    assert "other than root may change /srv/link" in board.error("plan", [wanted])


def test_a_folder_without_its_user_is_refused(board: Board) -> None:
    assert "there is no user nobody-here" in board.error(
        "apply", [Folder(path="/opt/disk", owner="nobody-here")]
    )


# Firewall and services


def test_rules_that_were_changed_by_hand_are_loaded_again(board: Board) -> None:
    board.words("apply", [TABLE])
    assert board.table == "2222\n"
    board.table += "tcp dport 1-65535 accept\n"
    assert len(board.words("apply", [TABLE])) == 1
    board.table = ""
    assert len(board.words("apply", [TABLE])) == 1
    assert board.words("apply", [TABLE]) == []
    assert board.words("apply", [replace(TABLE, content="SSH_PORT 7\n")])
    assert board.table == "2222 7\n"


def test_rules_that_do_not_load_leave_the_former_ones(board: Board) -> None:
    board.words("apply", [TABLE])
    message = board.error("apply", [replace(TABLE, content="syntax error")])
    assert "`nft -f" in message
    assert "unexpected string" in message
    assert board.table == "2222\n"
    path = board.root / "etc/boardcluster/firewall.nft"
    assert path.read_text() == "2222\n", "the next start of the board loads it"
    assert sorted(row.name for row in path.parent.glob("firewall*")) == ["firewall.nft"]
    assert board.words("apply", [TABLE])


def test_rules_that_nobody_confirms_are_taken_back(board: Board, tmp_path: Path) -> None:
    """The guard itself runs, with commands of its own, and at once."""
    path = board.root / "etc/boardcluster/firewall.nft"
    board.words("apply", [TABLE])
    assert path.read_text() == "2222\n"
    board.ask("apply", [replace(TABLE, content="SSH_PORT 7\n")], confirmed=False)
    assert path.read_text() == board.table == "2222 7\n"

    guard = board.guards[-1]
    commands, said = tmp_path / "commands", tmp_path / "said"
    commands.mkdir()
    (commands / "nft").write_text(f'#!/bin/sh\necho "$@" >> {said}\n')
    (commands / "nft").chmod(0o755)
    at_once = ["0" if word == str(guards.CONFIRM_SECONDS) else word for word in guard]
    run = partial(subprocess.run, check=False, env={"PATH": f"{commands}:{os.environ['PATH']}"})
    assert run(at_once).returncode == 0
    assert said.read_text() == f"-f {path}.loaded\n"
    assert path.read_text() == "2222\n"
    assert sorted(row.name for row in path.parent.glob("firewall*")) == ["firewall.nft"]
    assert "was taken back" in board.error("confirm", [replace(TABLE, content="SSH_PORT 7\n")])
    assert run(at_once).returncode == 0, "a guard of rules that were confirmed does nothing"
    assert said.read_text().count("\n") == 1


def test_rules_after_unconfirmed_ones_go_back_to_what_was_before_both(board: Board) -> None:
    board.words("apply", [TABLE])
    for port in ("7", "8"):
        board.ask("apply", [replace(TABLE, content=f"SSH_PORT {port}\n")], confirmed=False)
    path = board.root / "etc/boardcluster/firewall.nft"
    assert path.with_name("firewall.nft.loaded").read_text().endswith("\n2222\n")
    assert path.with_name("firewall.nft.former").read_text() == "2222\n"
    assert len(list(path.parent.glob("firewall.nft.pending-*"))) == 1


def test_unconfirmed_rules_keep_their_mark_until_the_next_have_theirs(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power lost in between would else leave rules that nobody confirmed."""
    board.words("apply", [TABLE])
    board.ask("apply", [replace(TABLE, content="SSH_PORT 7\n")], confirmed=False)
    folder = board.root / "etc/boardcluster"
    (mark,) = folder.glob("firewall.nft.pending-*")
    earlier = mark.rename(folder / f"firewall.nft.pending-{uuid.uuid4()}-17")
    there: list[tuple[str, bool]] = []

    def watched(path: str, data: bytes, *, mode: int) -> None:
        there.append((path, earlier.exists()))
        system.write(path, data, mode=mode)

    monkeypatch.setattr(guards, "write", watched)
    board.ask("apply", [replace(TABLE, content="SSH_PORT 8\n")], confirmed=False)

    assert there[0][0].startswith(str(folder / "firewall.nft.pending-"))
    assert [mark_is_there for _, mark_is_there in there] == [True, False]
    assert len(list(folder.glob("firewall.nft.pending-*"))) == 1


def test_first_rules_that_nobody_confirms_leave_no_table(board: Board, tmp_path: Path) -> None:
    board.ask("apply", [TABLE], confirmed=False)
    commands, said = tmp_path / "commands", tmp_path / "said"
    commands.mkdir()
    (commands / "nft").write_text(f'#!/bin/sh\necho "$@" >> {said}\n')
    (commands / "nft").chmod(0o755)
    at_once = ["0" if word == str(guards.CONFIRM_SECONDS) else word for word in board.guards[-1]]
    subprocess.run(at_once, check=True, env={"PATH": f"{commands}:{os.environ['PATH']}"})
    assert said.read_text() == "delete table inet boardcluster\n"
    assert not (board.root / "etc/boardcluster/firewall.nft").exists()


@pytest.mark.parametrize("former", [True, False], ids=["new rules", "the first"])
def test_unconfirmed_rules_do_not_outlive_a_loss_of_power(
    former: bool, board: Board, tmp_path: Path
) -> None:
    """What the unit runs before it loads the file, in this boot and in a later one."""
    path = board.root / "etc/boardcluster/firewall.nft"
    if former:
        board.words("apply", [TABLE])
    board.ask("apply", [replace(TABLE, content="SSH_PORT 7\n")], confirmed=False)

    start = ["sh", "-c", TAKE_BACK, "sh", str(path)]
    subprocess.run(start, check=True)
    assert path.read_text() == "2222 7\n", "the service is started while the rules still wait"

    (mark,) = path.parent.glob("firewall.nft.pending-*")
    mark.rename(path.with_name(f"firewall.nft.pending-{uuid.uuid4()}-17"))
    subprocess.run(start, check=True)
    left = [row.name for row in path.parent.glob("firewall*")]
    assert left == (["firewall.nft"] if former else [])
    assert not former or path.read_text() == "2222\n"
    assert board.words("apply", [replace(TABLE, content="SSH_PORT 7\n")])


def test_rules_that_would_lock_the_driver_out_are_not_loaded(board: Board) -> None:
    narrow = replace(TABLE, ssh_from=("192.168.1.0/24", "fd00::/8"))
    message = board.error("apply", [narrow])
    assert "leaves out 10.0.0.9, from which you are connected" in message
    assert board.table == ""
    for peer in ("192.168.1.7", "::ffff:192.168.1.7", "fd00::7"):
        board.peer = peer
        board.words("apply", [narrow])
    assert board.table == "2222\n"


def test_users_of_the_rules_are_numbers(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    users = {"boardcluster": SimpleNamespace(pw_uid=998)}
    monkeypatch.setattr(guards, "pwd", SimpleNamespace(getpwnam=users.__getitem__))
    monkeypatch.setenv("SUDO_UID", "1000")
    monkeypatch.setenv("SUDO_USER", "ann")
    own = replace(TABLE, content="SERVICE_USER TRUSTED_USERS\n", egress=Egress.MEMBERS)
    (words,) = board.words("apply", [own])
    assert board.table == "998 0, 998, 1000\n"
    assert "accounts only root, ann and boardcluster reach the cluster; daemons and jobs" in words
    assert "; daemons and jobs reach nothing but members" in words
    users["_apt"] = SimpleNamespace(pw_uid=42)  # which asks a proxy on a member for packages
    (words,) = board.words("apply", [own])
    assert "only root, ann, boardcluster and _apt reach the cluster" in words
    assert board.table == "998 0, 998, 1000, 42\n"
    del users["_apt"]
    monkeypatch.delenv("SUDO_USER")
    monkeypatch.delenv("SUDO_UID")  # root logs in
    board.words("apply", [own])
    assert board.table == "998 0, 998\n"
    assert "daemons and jobs" not in board.words("plan", [TABLE])[0]


LISTENERS = """\
udp UNCONN 0 0 0.0.0.0%wlan0:67 0.0.0.0:* users:(("dnsmasq",pid=1,fd=4))
udp UNCONN 0 0 0.0.0.0:5353 0.0.0.0:* users:(("avahi-daemon",pid=1,fd=12))
tcp LISTEN 0 32 0.0.0.0:53 0.0.0.0:* users:(("dnsmasq",pid=1,fd=7))
tcp LISTEN 0 128 127.0.0.1:631 0.0.0.0:* users:(("cupsd",pid=1,fd=7))
tcp LISTEN 0 128 [::1]:631 [::]:* users:(("cupsd",pid=1,fd=6))
tcp LISTEN 0 128 [::]:2222 [::]:* users:(("sshd",pid=1,fd=4))
"""


def test_what_the_firewall_closes_is_said_before(board: Board) -> None:
    board.listeners = LISTENERS
    (words,) = board.words("plan", [TABLE])
    assert "; it closes 53/tcp (dnsmasq), 67/udp (dnsmasq) to others" in words
    (words,) = board.words("plan", [replace(TABLE, open_ports=("53/tcp", "67/udp"))])
    assert words.startswith("loads the firewall: others reach SSH, 53/tcp, 67/udp only; of this")
    assert "closes" not in words


def test_the_port_is_found_above_us(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from boardcluster.services.provision.node import guards; print(*guards.ssh_connection())"
    )
    source = str(Path(guards.__file__).parents[4])

    # As sudo does: the variable is there for a process above, not for ours.
    inner = ["env", "-u", "SSH_CONNECTION", sys.executable, "-c", program, source]
    shell = ["sh", "-c", '"$@"; true', "sh", *inner]
    env = {**os.environ, "SSH_CONNECTION": "198.18.0.2 50000 198.18.0.10 2022"}
    done = subprocess.run(shell, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "198.18.0.2 2022\n"


def test_a_masked_service_stays_masked(board: Board) -> None:
    board.units["chrony.service"] = ["masked", "masked", "inactive"]
    assert board.words("apply", [Service(names=("chrony.service",))]) == []


def test_a_service_that_is_gone_is_no_trouble_afterwards(board: Board) -> None:
    board.units["chrony.service"] = ["loaded", "enabled", "inactive"]
    time = Service(names=("ntp.service", "chrony.service"))
    assert board.words("apply", [time]) == ["enables and starts chrony.service"]
    del board.units["chrony.service"]
    assert board.words("uninstall", keep_data=False)


def test_a_service_that_does_not_start_is_said(board: Board) -> None:
    message = board.error("apply", [Service(names=("chrony.service",))])
    assert "Unit chrony.service could not be found" in message


def test_a_service_that_does_not_run_in_a_container_is_asked_for_once(board: Board) -> None:
    board.units["chrony.service"] = ["loaded", "enabled", "inactive", "no"]
    assert board.words("apply", [Service(names=("chrony.service",))]) == []
