"""What services beside the cluster's daemons share: programs, ports, files, and how they end."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from boardcluster.cluster.each_node import each_node, raise_first
from boardcluster.errors import AddressError, BoardclusterError, DaemonError
from boardcluster.records import NodeSpec
from boardcluster.remote.base import Remote
from boardcluster.remote.node_rpc import end_marked, listening
from boardcluster.waiting import wait_until

__all__ = [
    "check_ports",
    "end_service",
    "ending",
    "look_at",
    "missing_programs",
    "on_each",
    "write_files",
]

_POLL_SECONDS = 0.05
_ASK_SECONDS = 30.0
_DOWN = "run `boardcluster down`, which ends everything"


def on_each(nodes: Sequence[NodeSpec], one: Callable[[NodeSpec], None]) -> None:
    """Do something for each of some nodes at once; raise what went wrong as one error."""
    known = {node.name: node for node in nodes}
    _, errors = each_node(known, lambda name: one(known[name]))
    raise_first(errors)


def look_at(
    remotes: Mapping[str, Remote], script: str, wanted: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Return what a script says of each node, line by line.

    Args:
        remotes: the ways to the nodes.
        script: for ``sh``; it says ``lacks PROGRAM`` of each of its arguments that is not there.
        wanted: programs that a node needs, by the node's name.
    """

    def one(name: str) -> list[str]:
        done = remotes[name].run(["sh", "-c", script, "look", *wanted[name]])
        return done.text.splitlines()

    said, errors = each_node(wanted, one)
    raise_first(errors)
    return said


def missing_programs(
    said: Mapping[str, Sequence[str]], packages: Mapping[str, str]
) -> tuple[str, list[str]]:
    """Return which node lacks what, in words, and the packages that bring it; both may be empty.

    Args:
        said: what was said of each node.
        packages: of each program.
    """
    lacking = {
        name: [row.removeprefix("lacks ") for row in rows if row.startswith("lacks ")]
        for name, rows in said.items()
    }
    words = "; ".join(f"{name} lacks {', '.join(rows)}" for name, rows in lacking.items() if rows)
    return words, sorted({packages[row] for rows in lacking.values() for row in rows})


def check_ports(
    remotes: Mapping[str, Remote], ports: Mapping[str, list[int]], *, what: str, whose: str = ""
) -> None:
    """Refuse nodes on which another program listens on a port of the service.

    Args:
        remotes: the ways to the nodes.
        ports: of the parts that a node has, by the node's name.
        what: the service, in words: ``the database``.
        whose: which program that may be, in words.

    Raises:
        AddressError: names the node and the ports.
    """
    for name, own in ports.items():
        if taken := listening(remotes[name], own):
            raise AddressError(
                f"on node {name} another program already listens on port "
                f"{', '.join(map(str, taken))}, which {what} needs",
                hint=f"end that program (on the node: `ss -ltnp`){whose}, then run this again",
            )


def write_files(
    remote: Remote, folder: str, texts: Mapping[str, str], *, mode: str = "644"
) -> None:
    """Write files of a node, by their names in a folder; nobody reads them before they have a mode.

    Args:
        remote: the node.
        folder: where; the folders of the names must be there.
        texts: by name.
        mode: of all of them.
    """
    with tempfile.TemporaryDirectory(prefix="boardcluster-") as drafts:
        for number, (name, text) in enumerate(texts.items()):
            draft = Path(drafts) / str(number)
            draft.touch(mode=0o600)
            draft.write_text(text)
            remote.put(draft, f"{folder}/{name}")
    remote.run(["chmod", mode, *(f"{folder}/{name}" for name in texts)])


def end_service(
    remotes: Mapping[str, Remote],
    nodes: Sequence[NodeSpec],
    mark: str,
    *,
    ports: Mapping[str, list[int]],
    grace_seconds: float,
    dilation: float,
    then: Callable[[NodeSpec], None] = lambda _: None,
) -> list[str]:
    """End every process of a service; return where that did not work.

    Args:
        remotes: the ways to the nodes.
        nodes: all that may have a process of it.
        mark: the variable with its value that its processes carry.
        ports: of the parts that a node has, by the node's name: nobody may listen there any more.
        grace_seconds: from asking processes to end until they are killed.
        dilation: by how much the nodes are slower than the boards they stand for.
        then: done for each node on which all have ended.
    """
    left: list[str] = []
    grace_seconds *= dilation

    def one(node: NodeSpec) -> None:
        remote, own = remotes[node.name], ports.get(node.name, [])
        try:
            end_marked(
                remote,
                mark,
                grace_seconds=grace_seconds,
                timeout_seconds=grace_seconds + _ASK_SECONDS * dilation,
            )
            taken = wait_until(
                lambda: listening(remote, own) if own else [],
                ready=lambda found: not found,
                timeout_seconds=2 * grace_seconds,
                poll_seconds=_POLL_SECONDS,
            )
            if taken:
                words = ", ".join(map(str, taken))
                left.append(f"{node.name}: something still listens on port {words}")
            else:
                then(node)
        except BoardclusterError as error:
            left.append(f"{node.name}: {error.message}")

    on_each(nodes, one)
    return left


@contextmanager
def ending(end: Callable[[], Sequence[str]], what: str) -> Iterator[None]:
    """End a service after the block, and tell what of it may still run.

    A trial keeps only the message of an error of ours, so it is added to that; all others, such as
    Ctrl-C, are shown with their notes.

    Args:
        end: ends it; returns where that did not work.
        what: the processes that may still run then.

    Raises:
        DaemonError: nothing else went wrong, and something may still run.
    """
    try:
        yield
    except BaseException as error:
        if left := end():
            words = f"{_may_run(what, left)}; {_DOWN}"
            if isinstance(error, BoardclusterError):
                error.message += f"; {words}"
            else:
                error.add_note(words)
        raise
    if left := end():
        raise DaemonError(_may_run(what, left), hint=_DOWN)


def _may_run(what: str, left: Sequence[str]) -> str:
    return f"{what} may still run: {'; '.join(left)}"
