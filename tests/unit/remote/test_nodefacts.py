"""The program that looks at a node, run over recorded trees and over this machine."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cluster.recordings import KEY, PI_4, PI_5, RECORDINGS

from boardcluster.remote import nodefacts

TEXT = Path(nodefacts.__file__).read_text()


def ask(root: Path | str, folder: str = "/var/lib/boardcluster", **env: str) -> dict[str, Any]:
    request = {"do": "facts", "root": str(root), "folder": folder}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", TEXT],
        input=json.dumps(request).encode(),
        env={"PATH": "/usr/bin:/bin", **env},
        capture_output=True,
        check=True,
        timeout=20,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def script(root: Path, name: str, text: str) -> None:
    path = root / "usr/bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_imports_nothing_but_the_standard_library_and_needs_no_new_python() -> None:
    tree = ast.parse(TEXT, feature_version=(3, 8))
    roots = set()
    for found in ast.walk(tree):
        if isinstance(found, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in found.names}
        elif isinstance(found, ast.ImportFrom) and found.module:
            roots.add(found.module.split(".")[0])
    assert roots <= set(sys.stdlib_module_names)
    assert len(TEXT) < 100_000  # Linux takes 128 KiB in one argument


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recorded_tree_gives_the_recorded_answer(name: str, tmp_path: Path) -> None:
    recording = RECORDINGS[name]
    recording.write(tmp_path)
    answer, expected = ask(tmp_path), recording.raw()
    expected["files"].pop("/etc/machine-id", None)  # only its hash leaves the node
    assert answer["files"] == expected["files"]
    assert answer["links"] == expected["links"]
    assert answer["usb"] == expected["usb"]
    assert answer["javas"] == expected["javas"]


def test_only_a_hash_of_the_machine_id_leaves_the_node(tmp_path: Path) -> None:
    PI_5.write(tmp_path)
    answer = ask(tmp_path)
    assert len(answer["machine_id"]) == 32
    assert "b08dfa6083e7567a1921a715000001fb" not in json.dumps(answer)
    (tmp_path / "etc/machine-id").write_text("another\n")
    assert ask(tmp_path)["machine_id"] != answer["machine_id"]
    (tmp_path / "etc/machine-id").unlink()
    assert ask(tmp_path)["machine_id"] == ""


def test_no_private_key_is_read(tmp_path: Path) -> None:
    PI_5.write(tmp_path)
    (tmp_path / "etc/ssh/ssh_host_ed25519_key").write_text("secret")
    answer = json.dumps(ask(tmp_path))
    assert KEY in answer
    assert "secret" not in answer


def test_what_programs_say(tmp_path: Path) -> None:
    script(tmp_path, "lscpu", "echo Model name: Cortex-A76")
    script(tmp_path, "sudo", "echo sudo: a password is required >&2; exit 1")
    script(tmp_path, "vcgencmd", 'echo "$1"')
    script(tmp_path, "getent", 'echo "127.0.1.1 $*"')
    said = ask(tmp_path)["programs"]
    assert said["lscpu"] == {"status": 0, "out": "Model name: Cortex-A76\n", "err": ""}
    assert said["sudo"]["status"] == 1
    assert "a password is required" in said["sudo"]["err"]
    assert said["throttled"]["out"] == "get_throttled\n"
    assert said["getent"]["out"].startswith("127.0.1.1 ahosts ")
    assert said["ip"] is None


def test_a_program_that_hangs_is_ended_and_the_rest_is_told(tmp_path: Path) -> None:
    script(tmp_path, "getent", "exec /bin/sleep 60")
    script(tmp_path, "lscpu", "echo fine")
    began = time.monotonic()
    said = ask(tmp_path)["programs"]
    assert time.monotonic() - began < 10
    assert said["getent"] is None
    assert said["lscpu"]["out"] == "fine\n"


def test_a_sudo_that_hangs_is_not_taken_for_none(tmp_path: Path) -> None:
    assert ask(tmp_path)["sudo_hangs"] is False
    script(tmp_path, "sudo", "exec /bin/sleep 60")
    answer = ask(tmp_path)
    assert (answer["programs"]["sudo"], answer["sudo_hangs"]) == (None, True)


def test_of_the_kernels_log_only_what_matters_is_told(tmp_path: Path) -> None:
    lines = "[1] eth0: link up\n[2] sd 0:0:0:0: uas_eh_abort_handler 0\n[3] usb 1-1: new device"
    script(tmp_path, "dmesg", f"/bin/cat <<'END'\n{lines}\nEND")
    assert ask(tmp_path)["kernel_log"] == ["[2] sd 0:0:0:0: uas_eh_abort_handler 0"]
    script(tmp_path, "dmesg", "echo dmesg: read kernel buffer failed >&2; exit 1")
    assert ask(tmp_path)["kernel_log"] is None


def test_kills_in_a_control_group_and_errors_of_any_card_are_told(tmp_path: Path) -> None:
    lines = [
        "[4] Memory cgroup out of memory: Killed process 813 (java)",
        "[5] mmc1: error -110 whilst initialising SD card",
    ]
    script(tmp_path, "dmesg", "/bin/cat <<'END'\n" + "\n".join(lines) + "\nEND")
    assert ask(tmp_path)["kernel_log"] == lines


def test_of_a_long_file_only_whole_lines_are_told(tmp_path: Path) -> None:
    PI_5.write(tmp_path)
    whole = (tmp_path / "proc/self/mountinfo").read_text()
    row = "99 1 0:99 / /run/pods/{:0>100} rw - tmpfs tmpfs rw\n"
    more = "".join(row.format(number) for number in range(600))
    (tmp_path / "proc/self/mountinfo").write_text(whole + more)
    told = ask(tmp_path)["files"]["/proc/self/mountinfo"]
    assert len(told) < nodefacts.FILE_BYTES_MOST < len(whole + more)
    assert (whole + more).startswith(told)
    assert told.endswith("rw\n")


def test_a_very_long_log_is_cut(tmp_path: Path) -> None:
    script(tmp_path, "dmesg", "i=0; while [ $i -lt 500 ]; do echo I/O error $i; i=$((i+1)); done")
    log = ask(tmp_path)["kernel_log"]
    assert len(log) == nodefacts.LOG_LINES_MOST
    assert log[-1] == "I/O error 499"


def test_many_lines_of_one_kind_do_not_hide_another(tmp_path: Path) -> None:
    errors = [f"[{second}] I/O error, dev sda" for second in range(20, 520)]
    killed = "[7] Out of memory: Killed process 812 (java)"
    lines = [killed, *errors, "[600] mmc1: error -110 whilst initialising SD card"]
    script(tmp_path, "dmesg", "/bin/cat <<'END'\n" + "\n".join(lines) + "\nEND")
    assert ask(tmp_path)["kernel_log"] == [killed, *lines[-nodefacts.LOG_LINES_MOST - 1 :]]


def test_command_lines_of_package_managers_only(tmp_path: Path) -> None:
    for pid, line in ((1, b"/sbin/init\0"), (7, b"/usr/bin/apt-get\0install\0"), (9, b"")):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/cmdline").write_bytes(line)
    assert ask(tmp_path)["package_managers"] == ["/usr/bin/apt-get\0install\0"]


@pytest.mark.parametrize(
    ("folder", "place"), [("/a/b/c", "/a/b"), ("/a/b", "/a/b"), ("/x", "/"), ("/link/d", "/a/b")]
)
def test_the_nearest_folder_that_exists(folder: str, place: str, tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a/b")
    assert ask(tmp_path, folder)["folder"] == place


def test_java_home_counts_as_a_java(tmp_path: Path) -> None:
    PI_4.write(tmp_path)
    program = tmp_path / "custom/jdk/bin/java"
    program.parent.mkdir(parents=True)
    program.write_bytes(b"#!/bin/sh\n")
    program.chmod(0o755)
    answer = ask(tmp_path, JAVA_HOME="/custom/jdk")
    assert answer["java_home"] == "/custom/jdk"
    assert answer["javas"] == {"/custom/jdk": {"head": b"#!/bin/sh\n".hex(), "release": ""}}


@pytest.mark.parametrize("loose", ["opt/app", "opt/app/bin", "opt/app/bin/java"])
def test_a_java_that_another_account_may_replace_is_none(loose: str, tmp_path: Path) -> None:
    """Root runs it: in a folder of a service's own account it could be anything."""
    PI_4.write(tmp_path)
    program = tmp_path / "opt/app/bin/java"
    program.parent.mkdir(parents=True)
    program.write_bytes(b"#!/bin/sh\n")
    program.chmod(0o755)
    before = ask(tmp_path)["javas"]
    (tmp_path / loose).chmod(0o777)
    assert before.keys() - ask(tmp_path)["javas"].keys() == {"/opt/app"}
    (tmp_path / loose).chmod(0o755)
    if os.geteuid() == 0:  # only root gives files away
        os.chown(tmp_path / loose, 1234, 0)
        assert before.keys() - ask(tmp_path)["javas"].keys() == {"/opt/app"}
        login = {"SUDO_UID": "1234", "SUDO_GID": "1234"}
        assert ask(tmp_path, **login)["javas"].keys() == before.keys(), "who logs in is trusted"


def test_this_machine() -> None:
    answer = ask("/")
    assert set(answer["spaces"]["/"][2:]) <= {0, 1}
    assert answer["spaces"]["/"][0] > answer["spaces"]["/"][1] > 0
    assert answer["kernel_clock"]["maxerror_microseconds"] >= 0
    first, last = answer["clock_seconds"]
    assert first <= last <= time.time()


# What only the doctor asks


def inspect(root: Path | str, folder: str = "/var/lib/boardcluster") -> dict[str, Any]:
    request = {"do": "inspect", "root": str(root), "folder": folder, "name": "pi0"}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", TEXT],
        input=json.dumps(request).encode(),
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
        timeout=20,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_bare_board(tmp_path: Path) -> None:
    answer = inspect(tmp_path)
    assert not answer["provisioned"]
    assert (answer["versions"], answer["listening"], answer["java"]) == ({}, [], "")
    assert answer["programs"] == {"nft": None, "getent": None, "sshd": None}


def test_what_a_job_put_in_the_place_of_a_version_is_not_opened(tmp_path: Path) -> None:
    """A link to a watchdog would restart the board, and a FIFO be waited for."""
    current = tmp_path / "var/lib/boardcluster/data/datanode/current"
    other = tmp_path / "var/lib/boardcluster/data/namenode/current"
    for folder in (current, other):
        folder.mkdir(parents=True)
    (tmp_path / "secret").write_text("clusterID=CID-1\n")
    (current / "VERSION").symlink_to(tmp_path / "secret")
    os.mkfifo(other / "VERSION")
    assert inspect(tmp_path)["versions"] == {}
    held = os.open(other / "VERSION", os.O_RDWR)  # with a writer that says nothing
    try:
        assert inspect(tmp_path)["versions"] == {}
    finally:
        os.close(held)


def test_an_installed_board(tmp_path: Path) -> None:
    jdk = tmp_path / "usr/lib/jvm/jdk"
    version = tmp_path / "var/lib/boardcluster/data/datanode/current/VERSION"
    for folder in (tmp_path / "etc/boardcluster", tmp_path / "opt/boardcluster", jdk):
        folder.mkdir(parents=True)
    version.parent.mkdir(parents=True)
    version.write_text("clusterID=CID-1\n")
    (tmp_path / "etc/boardcluster/manifest.json").write_text("{}")
    (tmp_path / "etc/boardcluster/firewall.nft").write_text("")
    (tmp_path / "opt/boardcluster/java").symlink_to(jdk)
    answer = inspect(tmp_path)
    assert answer["provisioned"]
    assert answer["java"] == "/usr/lib/jvm/jdk"
    name = "/var/lib/boardcluster/data/datanode/current/VERSION"
    assert answer["versions"] == {name: "clusterID=CID-1\n"}


def test_a_board_of_which_only_the_data_was_kept_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "etc/boardcluster").mkdir(parents=True)
    (tmp_path / "etc/boardcluster/manifest.json").write_text("{}")
    assert not inspect(tmp_path)["provisioned"]


def test_only_sockets_that_listen_are_told(tmp_path: Path) -> None:
    heading = "  sl  local_address rem_address   st\n"
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/tcp").write_text(
        f"{heading}   0: 00000000:1F98 00000000:0000 0A 0:0\n   1: 0100007F:ABCD 00000000:0000 01\n"
    )
    (tmp_path / "proc/net/tcp6").write_text(f"{heading}   0: {'0' * 32}:0016 {'0' * 32}:0000 0A\n")
    assert inspect(tmp_path)["listening"] == ["00000000:1F98", f"{'0' * 32}:0016"]


def test_accounts_with_a_password_are_named_without_it(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/shadow").write_text(
        "root:*:1:0:99999:7:::\npi:$y$j9T$abc$def:1:0:99999:7:::\nann:!:1::::::\n"
        "locked:!$6$abc$def:1::::::\nnone::1::::::\nbroken\n"
    )
    assert inspect(tmp_path)["accounts"] == ["pi"]


def test_modes_of_the_login_users_files(tmp_path: Path) -> None:
    import os
    import pwd

    home = pwd.getpwuid(os.getuid()).pw_dir
    (tmp_path / home.lstrip("/") / ".ssh").mkdir(parents=True)
    (tmp_path / home.lstrip("/") / ".ssh").chmod(0o775)
    answer = inspect(tmp_path)
    assert answer["uid"] == os.getuid()
    assert answer["permissions"][f"{home}/.ssh"] == [os.getuid(), 0o775]
    assert f"{home}/.ssh/authorized_keys" not in answer["permissions"]
