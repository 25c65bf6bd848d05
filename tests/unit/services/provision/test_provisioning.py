"""The driver's side, with the real program, which works on folders of this machine."""

import os
import pwd
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from boardcluster.errors import (
    CapacityError,
    ClusterError,
    InstallError,
    LoginError,
    RemoteError,
)
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.local import LocalRemote
from boardcluster.services.provision import provisioning
from boardcluster.services.provision.node.manifest import Manifest
from boardcluster.services.provision.node.system import Node
from boardcluster.services.provision.provisioning import (
    apply,
    plan,
    provision,
    uninstall,
    unmounted,
)
from boardcluster.services.provision.resources import Folder, Hosts, Resource, Tree, tree_of

NAMES = Hosts(rows=(("10.0.0.1", "pi0"),))


@pytest.fixture
def root(tmp_path: Path) -> str:
    for name in ("etc", "opt"):
        (tmp_path / "board" / name).mkdir(parents=True)
    (tmp_path / "board/etc/hosts").write_text("127.0.1.1 pi0\n")
    return str(tmp_path / "board")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    source = tmp_path / "engine"
    (source / "jars").mkdir(parents=True)
    (source / "jars/a.jar").write_bytes(b"abc")
    return tree_of(source, "/opt/engine")


def test_the_program_arrives_compares_changes_and_restores(root: str, tree: Tree) -> None:
    remote = LocalRemote("pi0")
    wanted: Sequence[Resource] = [NAMES, tree]
    planned = plan(remote, wanted, root=root)
    assert [change.words for change in planned] == [
        "changes /etc/hosts",
        "copies /opt/engine from this machine (1 file, 0.0 MB)",
    ]
    assert {change.node for change in planned} == {"pi0"}
    assert "+10.0.0.1 pi0" in planned[0].detail
    assert not Path(root, "opt/engine").exists()

    said: list[str] = []
    done = apply(remote, wanted, root=root, said=said.append)
    assert [change.words for change in done] == [change.words for change in planned]
    assert said == ["pi0: copying /opt/engine"]
    assert Path(root, "opt/engine/jars/a.jar").read_bytes() == b"abc"
    assert apply(remote, wanted, root=root, said=said.append) == []
    assert len(said) == 1

    Path(root, "opt/engine/jars/a.jar").write_bytes(b"abd")
    assert plan(remote, wanted, root=root) == []
    assert len(plan(remote, wanted, root=root, deep=True)) == 1
    assert len(apply(remote, wanted, root=root, deep=True)) == 1
    assert Path(root, "opt/engine/jars/a.jar").read_bytes() == b"abc"

    shown = uninstall(remote, keep_data=False, dry_run=True, root=root)
    assert Path(root, "opt/engine").exists()
    assert uninstall(remote, keep_data=False, root=root) == shown
    assert sorted(path.name for path in Path(root).rglob("*")) == ["etc", "hosts", "opt"]
    assert Path(root, "etc/hosts").read_text() == "127.0.1.1 pi0\n"


def test_a_folder_whose_disk_is_not_mounted_is_told(root: str) -> None:
    remote = LocalRemote("pi0")
    owner = pwd.getpwuid(os.getuid()).pw_name
    apply(remote, [Folder(path="/opt/deep/data", owner=owner, mode=0o750)], root=root)
    assert unmounted(remote, root=root) == []

    record = Manifest(Node(root))
    record.entries[0]["other_disk"] = True
    record.save()

    assert unmounted(remote, root=root) == ["/opt/deep/data"]


def test_a_narrow_umask_on_the_node_does_not_matter(root: str) -> None:
    remote = LocalRemote("pi0", prefix=("sh", "-c", 'umask 077; exec "$@"', "sh"))
    owner = pwd.getpwuid(os.getuid()).pw_name
    apply(remote, [Folder(path="/opt/deep/data", owner=owner, mode=0o750)], root=root)
    modes = [Path(root, name).stat().st_mode & 0o777 for name in ("opt/deep", "opt/deep/data")]
    assert modes == [0o755, 0o750]


def test_a_copy_that_breaks_off_is_made_again(
    root: str, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = LocalRemote("pi0")

    def broken(source: Path, target: str) -> None:
        (Path(target) / "jars").mkdir(parents=True)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(remote, "put", broken)
        with pytest.raises(KeyboardInterrupt):
            apply(remote, [tree], root=root)
        patch.setattr(remote, "put", lambda *_: None)  # says it copied, but did not
        with pytest.raises(InstallError, match=r"pi0: .* is not whole after copying"):
            apply(remote, [tree], root=root)
    assert len(apply(remote, [tree], root=root)) == 1
    assert apply(remote, [tree], root=root) == []


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("install", InstallError),
        ("capacity", CapacityError),
        ("cluster", ClusterError),
        ("login", LoginError),
    ],
)
def test_errors_of_the_program_become_ours(kind: str, error: type[Exception]) -> None:
    remote = FakeRemote("pi0")
    answer = {"changes": [], "error": {"message": "no", "hint": "do it", "kind": kind}}
    remote.tell_node_agent("plan", answer)
    with pytest.raises(error, match="pi0: no") as caught:
        plan(remote, [])
    assert getattr(caught.value, "hint", "") == "do it"


def test_an_answer_that_a_login_script_spoils_names_the_node(root: str) -> None:
    remote = LocalRemote("pi0", prefix=("sh", "-c", 'echo Welcome; exec "$@"', "sh"))
    with pytest.raises(RemoteError, match="pi0: the answer is not JSON: 'Welcome") as caught:
        plan(remote, [], root=root)
    assert "start-up files on pi0" in caught.value.hint


def test_many_nodes_are_done_at_once_but_few_copies(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"pi{number}" for number in range(12)]
    at_once, most = 0, 0
    guard = threading.Lock()
    enough = threading.Event()

    class Node(FakeRemote):
        def put(self, source: Path, target: str) -> None:
            nonlocal at_once, most
            with guard:
                at_once += 1
                most = max(most, at_once)
                if at_once == 4:
                    enough.set()
            enough.wait(10)
            with guard:
                at_once -= 1

    nodes = {name: Node(name) for name in names}
    row = {"words": "copies it", "detail": "", "remark": "", "key": "x"}
    for node in nodes.values():
        node.tell_node_agent("apply", {"changes": [row], "copies": [tree.path]})
        node.tell_node_agent("confirm", {"changes": []})
    done = provision(nodes, {name: [tree] for name in names})
    assert [change.node for change in done] == names
    assert most == 4


def test_every_node_that_fails_is_named() -> None:
    nodes = {name: FakeRemote(name) for name in ("pi0", "pi1", "pi2")}
    failed = {"changes": [], "error": {"message": "no", "hint": "", "kind": "install"}}
    for name, node in nodes.items():
        node.tell_node_agent("apply", {"changes": []} if name == "pi1" else failed)
    folder = Folder(path="/opt/boardcluster")
    with pytest.raises(InstallError, match="2 nodes failed:\npi0: no\npi2: no"):
        provision(nodes, {name: [folder] for name in nodes})


def test_the_whole_program_is_sent_and_imports_nothing_else() -> None:
    """Under -I and -S, as on a node, only the standard library is there."""
    folder = Path(provisioning.__file__).parent / "node"
    written = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert set(provisioning._MODULES) == written
    for path in folder.glob("*.py"):
        for line in path.read_text().splitlines():
            if line.startswith("from boardcluster"):
                ours = ("services.provision.node.", "waiting ")
                assert line.removeprefix("from boardcluster.").startswith(ours), path
