"""Limits hold in a real kernel with control groups of version 2, whichever this machine has.

A small virtual machine with Debian's kernel runs limits_inside.py, which limits two nodes at once
and uses what they are limited to. What it printed is judged here.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.integration.limits_inside import (
    CORE_SHARE,
    DIRTY_BYTES,
    LARGE_BYTES,
    MEMORY_BYTES,
    WANTED,
)
from tests.small_machine import (
    HungError,
    Kernel,
    fetch_kernel,
    missing,
    printed,
    run_inside,
    started,
)
from tests.waiting import wait_until

HERE = Path(__file__).parent
PROGRAMS = (
    *("chmod", "chown", "env", "losetup", "mkdir", "mkfs.ext4", "mount", "nsenter", "sh", "sleep"),
    *("stat", "unshare"),
)
CHARGED_AHEAD_BYTES = 2 * 64 * 4096
"""Each of two processors charges 64 pages at once (MEMCG_CHARGE_BATCH), adds before it looks at the
limit, and takes it back if that was too much (page_counter_try_charge): readers see both."""

CPU_TOLERANCE = 0.05
RATE_TOLERANCE = 0.10
START = """\
import sys
from pathlib import Path
from tests.small_machine import Kernel, run_inside
image, *modules = map(Path, sys.argv[2:])
kernel = Kernel(image=image, modules=tuple(modules))
run_inside(Path(sys.argv[1]), kernel=kernel, programs=(), memory_bytes=1 << 29,
    disk_bytes=1 << 20, timeout_seconds=60)
"""

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the machine is x86-64"),
]


@pytest.fixture(scope="module")
def kernel(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    if lacking := missing(PROGRAMS):
        if os.environ.get("BOARDCLUSTER_CI"):
            pytest.fail(lacking)
        pytest.skip(lacking)
    return fetch_kernel(cache, tmp_path_factory.mktemp("kernel"))


@pytest.fixture(scope="module")
def found(kernel: Kernel) -> Any:
    scripts = (HERE / "limits_inside.py", HERE / "disk_user.py")
    text = run_inside(
        *scripts,
        kernel=kernel,
        programs=PROGRAMS,
        memory_bytes=3 << 29,
        disk_bytes=4 << 30,
        timeout_seconds=300,
    )
    found = json.loads(text)
    print(json.dumps(found, indent=1))  # pytest shows it where a test fails
    return found


def test_the_kernel_offers_version_2_and_takes_every_limit(found: Any) -> None:
    assert found["kind"] == "CgroupsV2"
    for read, expected in found["set"]:
        assert read == expected


@pytest.mark.parametrize("node", WANTED)
@pytest.mark.parametrize("counted", ["group", "process"])
def test_busy_nodes_get_their_share_of_cpu_time(found: Any, node: str, counted: str) -> None:
    wanted = pytest.approx(WANTED[node].cores, rel=CPU_TOLERANCE)
    assert found["cpu"][node][counted] == wanted


def test_a_thread_gets_one_core_of_its_board(found: Any) -> None:
    for shares in found["cores"]["shares"]:
        assert shares == pytest.approx([CORE_SHARE] * len(shares), rel=CPU_TOLERANCE)
    assert found["cores"]["outside"] == "0"


@pytest.mark.parametrize("node", WANTED)
def test_disks_read_and_write_around_the_page_cache_at_their_rates(found: Any, node: str) -> None:
    disk = WANTED[node].disk
    got = {
        "read bytes": found["read bytes"][node]["bytes_per_second"],
        "read requests": found["read requests"][node]["requests_per_second"],
        "write bytes": found["write bytes"][node]["bytes_per_second"],
        "write requests": found["write requests"][node]["requests_per_second"],
    }
    wanted = {
        "read bytes": disk.read_bytes_per_second,
        "read requests": disk.read_iops,
        "write bytes": disk.write_bytes_per_second,
        "write requests": disk.write_iops,
    }
    assert got == pytest.approx(wanted, rel=RATE_TOLERANCE)


@pytest.mark.parametrize("node", WANTED)
def test_what_the_kernel_writes_later_is_held_to_the_nodes_rate(found: Any, node: str) -> None:
    most = WANTED[node].disk.write_bytes_per_second
    # At worst the machine fills its cache and does its own part of each write while the disk waits:
    # then a byte takes the time that it takes without a limit, and the limit's.
    without = found["buffered lifted"][node]["bytes_per_second"]
    least = 1 / (1 / most + 1 / without)
    assert 0.9 * least < found["buffered"][node]["bytes_per_second"] < (1 + RATE_TOLERANCE) * most


def test_page_cache_stays_within_a_nodes_memory(found: Any) -> None:
    memory = found["memory"]
    assert memory["read_bytes"] == LARGE_BYTES
    for most in (memory["written_most"], memory["read_most"]):
        assert 0.5 * MEMORY_BYTES < most <= MEMORY_BYTES + CHARGED_AHEAD_BYTES


def test_a_program_that_takes_more_memory_than_its_node_has_is_ended(found: Any) -> None:
    assert found["memory"]["taken"] == {"ended": -signal.SIGKILL}
    assert found["memory"]["oom_kills"] == 1


def test_what_others_change_is_seen(found: Any) -> None:
    assert found["changed"] == ["cpu quota", "memory", "read_bytes_per_second", "write_iops"]


def test_lifted_limits_are_gone(found: Any) -> None:
    for read, expected in found["lifted"]:
        assert read == expected
    disk = WANTED["one"].disk
    assert found["cpu lifted"]["one"]["group"] > 2 * WANTED["one"].cores
    assert found["read bytes lifted"]["bytes_per_second"] > 2 * disk.read_bytes_per_second
    assert found["write requests lifted"]["requests_per_second"] > 2 * disk.write_iops


def test_a_group_that_holds_processes_is_told_from_missing_rights(found: Any) -> None:
    assert "Device or resource busy" in found["container"]
    assert "--cgroupns=host" in found["container"]


def test_no_group_and_no_loop_device_is_left(found: Any) -> None:
    left = dict(found["left"])
    # The second node's disk had more to write than its limit allows in that time.
    assert left.pop("seconds") < DIRTY_BYTES / WANTED["two"].disk.write_bytes_per_second
    assert left == {
        "loops_before": len(WANTED),
        "loops": "",
        "group": False,
        "notes": [],
        "mounts": [],
    }


def children(pid: int) -> list[int]:
    return [
        int(word)
        for path in Path(f"/proc/{pid}/task").glob("*/children")
        for word in path.read_text().split()
    ]


def test_the_machine_ends_with_who_started_it_even_after_kill_9(
    kernel: Kernel, tmp_path: Path
) -> None:
    program = tmp_path / "wait.py"
    program.write_text("import time\ntime.sleep(60)\n")
    files = (program, kernel.image, *kernel.modules)
    command = [sys.executable, "-c", START, *map(str, files)]
    root = HERE.parents[1]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=root, env=environment) as driver:

        def machine_of() -> int:
            for pid in children(driver.pid):
                if b"-initrd" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    name = Path(f"/proc/{pid}/comm").read_text().strip()
                    return pid if name.startswith("qemu") else 0
            return 0

        try:
            machine = wait_until(
                machine_of,
                "the machine",
                seconds=90,
                failed=lambda: driver.poll() is not None,
            )
        finally:
            driver.kill()
    wait_until(lambda: not Path(f"/proc/{machine}").exists(), "the machine's end")
    assert [path.name for path in tmp_path.iterdir()] == ["wait.py"]


LOCKED = "echo 'watchdog: BUG: soft lockup - CPU#1 stuck for 22s!' >>/dev/fd/{}; "
WAITS = "exec sleep 60"
ALIVE = "for _ in 1 2 3 4 5 6 7 8; do echo alive >>/dev/fd/{}; sleep 0.5; done; echo done"


@pytest.mark.parametrize(
    ("command", "seconds", "ended"),
    [
        pytest.param(WAITS, (30, 2, 30), HungError, id="silent"),
        pytest.param(LOCKED + WAITS, (4, 60, 30), HungError, id="stuck"),
        pytest.param(LOCKED + WAITS, (4, 60, 0.5), AssertionError, id="was-stuck"),
        pytest.param(WAITS, (1, 60, 30), AssertionError, id="late"),
        pytest.param(ALIVE, (60, 3, 30), "done\n", id="alive"),
    ],
)
def test_a_machine_that_hangs_is_told_from_one_whose_program_hangs(
    command: str, seconds: tuple[float, float, float], ended: str | type[AssertionError]
) -> None:
    timeout, silent, just = seconds
    found: str | type[AssertionError]
    with tempfile.TemporaryFile() as console:
        argv = ["sh", "-c", command.format(console.fileno())]
        with subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(console.fileno(),)
        ) as process:
            limits = {"timeout_seconds": timeout, "silent_seconds": silent, "just_seconds": just}
            try:
                found = printed(process, console, **limits)[0].decode()
            except AssertionError as error:
                found = type(error)
            finally:
                process.kill()
    assert found == ended


@pytest.mark.parametrize(
    ("ends", "starts"),
    [
        ([HungError, HungError, ""], 3),
        ([HungError, HungError, HungError, ""], 3),
        ([AssertionError, ""], 1),
        (["", ""], 1),
    ],
)
def test_only_a_machine_that_hangs_is_started_again(
    ends: list[type[AssertionError] | str], starts: int
) -> None:
    tried: list[type[AssertionError] | str] = []

    def start() -> str:
        tried.append(ends[len(tried)])
        if isinstance(tried[-1], str):
            return tried[-1]
        raise tried[-1]

    last = ends[starts - 1]
    with contextlib.nullcontext() if isinstance(last, str) else pytest.raises(last):
        started(start)
    assert len(tried) == starts
