"""The names of hosts, users and groups that an emulated node knows.

They are in ``/etc``, and a file mounted over one of ``/etc`` would not stay: whoever replaces
``/etc/passwd`` outside, as ``useradd`` and ``passwd`` do, has the kernel take away what is mounted
on it in every node, and a program that asks for its own name fails in the middle of a run. So each
node has a layer of its own over ``/etc``.
"""

from __future__ import annotations

from pathlib import Path

from boardcluster.cluster.kinds.emulated.service_user import with_user
from boardcluster.records import ClusterSpec
from boardcluster.remote.base import Remote
from boardcluster.spec.cluster import address_of

__all__ = ["give_names", "write_names"]

_ETC = Path("/etc")
_MOUNTING = """\
cd -- "$0" || exit
mount -t overlay -o "lowerdir=.:$1" boardcluster "$1" 2>/dev/null && exit
for file in *; do
  test ! -e "$1/$file" || mount --bind -- "$file" "$1/$file" || exit
done
"""
"""The folder is named by a dot because a colon or a comma in its path would end it.

Where the kernel has no such layers for us, as before Linux 5.11 without root, files are mounted
one by one: then a file that is replaced outside is this machine's again."""


def write_names(spec: ClusterSpec, home: Path, service_uid: int) -> Path:
    """Write the files that give every node the same names; return their folder.

    No lookup ever leaves the machine. Nodes know the user of daemons and jobs if it has a number of
    its own, which is then not 0.
    """
    rows = ["127.0.0.1 localhost"]
    rows += [f"{address_of(spec, node.name)} {node.name}" for node in spec.nodes]
    texts = {
        "hosts": "\n".join(rows) + "\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }
    if service_uid:
        texts |= {name: with_user(service_uid, _ETC / name) for name in ("passwd", "group")}
    folder = home / "etc"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)  # that of /etc in the nodes, whatever our umask is
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o644)
    return folder


def give_names(admin: Remote, folder: Path, etc: Path = _ETC) -> None:
    """Have a node know the names of the files in a folder.

    Raises:
        RemoteError: neither a layer nor the files could be mounted.
    """
    admin.run(["sh", "-c", _MOUNTING, str(folder), str(etc)])
