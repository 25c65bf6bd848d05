"""Finding and ending all processes of a user, for real.

In a PID namespace, where nothing else can be met: these are the user's own processes. There the
program that asks is the first process, and adopts what its children leave behind.
"""

import json
import subprocess
import sys
from typing import Any

import pytest

from boardcluster.remote.local import LocalRemote
from boardcluster.remote.node_rpc import rpc

NAMESPACE = [
    *("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"),
    "--kill-child",
]
BEGIN = """
import json, os, subprocess, sys, time
from boardcluster.remote import node_agent

def ready(*argv):
    child = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\\n"
    return child

def sleeper():
    return ready("sh", "-c", "echo ready; exec sleep 60")

def stubborn():
    return ready("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.02; done")

def say(**found):
    print(json.dumps(found))
"""


def inside(script: str) -> Any:
    done = subprocess.run(
        [*NAMESPACE, sys.executable, "-c", BEGIN + script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("verb", "answer"), [("of_user", []), ("end_of_user", {"ended": 0, "left": 0})]
)
def test_nobody_runs_as_a_user_that_does_not_exist(verb: str, answer: object) -> None:
    request = {"do": verb, "user": "boardcluster-no-such-user", "grace_seconds": 0.1}

    assert rpc(LocalRemote("here"), request) == answer


def test_the_living_processes_of_a_user_are_found_without_who_asks() -> None:
    found = inside("""
first, second, ended = sleeper(), sleeper(), sleeper()
ended.kill()
os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # a zombie from now on
rows = node_agent.of_user({"user": "root"})
say(
    own=os.getpid(),
    rows=sorted(rows),
    expected=sorted([one.pid, node_agent.stat_of(one.pid)[1]] for one in (first, second)),
)
""")
    assert found["own"] == 1
    assert found["rows"] == found["expected"]


def test_all_processes_of_a_user_are_asked_to_end_and_the_stubborn_killed() -> None:
    found = inside("""
children = [sleeper(), stubborn()]
began = time.monotonic()
answer = node_agent.end_of_user({"user": "root", "grace_seconds": 0.4})
took = time.monotonic() - began
say(answer=answer, codes=[child.wait(10) for child in children], took=took)
""")
    assert found["codes"] == [-15, -9]
    assert found["took"] >= 0.4
    assert found["answer"]["left"] == 0
    assert found["answer"]["ended"] >= 2  # and what the stubborn one ran at that moment


def test_each_process_that_ended_is_counted_once() -> None:
    found = inside("""
children = [sleeper() for _ in range(5)]
say(answer=node_agent.end_of_user({"user": "root", "grace_seconds": 10}))
""")
    assert found["answer"] == {"ended": 5, "left": 0}


def test_what_is_started_by_what_ends_is_ended_too() -> None:
    found = inside("""
child = ready("sh", "-c", "trap 'sleep 60 & exit 0' TERM; echo ready; while :; do sleep 0.02; done")
answer = node_agent.end_of_user({"user": "root", "grace_seconds": 5})
say(answer=answer, code=child.wait(10), rows=node_agent.of_user({"user": "root"}))
""")
    assert found["code"] == 0  # it ended as it wanted to
    assert found["rows"] == []
    assert found["answer"]["left"] == 0
    assert found["answer"]["ended"] >= 2


def test_what_does_not_end_is_told() -> None:
    # No signal reaches it, as none reaches what hangs in the kernel.
    found = inside("""
child = sleeper()
node_agent.send = lambda pid, signum: None
say(answer=node_agent.end_of_user({"user": "root", "grace_seconds": 0.05}), code=child.poll())
""")
    assert found == {"answer": {"ended": 0, "left": 1}, "code": None}


def test_other_users_are_spared() -> None:
    found = inside("""
child = sleeper()
request = {"user": "daemon", "grace_seconds": 0.1}
rows = node_agent.of_user(request)
say(rows=rows, answer=node_agent.end_of_user(request), code=child.poll())
""")
    assert found == {"rows": [], "answer": {"ended": 0, "left": 0}, "code": None}
