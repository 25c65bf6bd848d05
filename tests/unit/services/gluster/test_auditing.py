"""What a brick holds, read from its folder."""

import hashlib
from pathlib import Path

from boardcluster.services.gluster.auditing import brick


def test_a_brick_s_files_are_found_without_gluster_s_own(tmp_path: Path) -> None:
    (tmp_path / ".glusterfs").mkdir()
    (tmp_path / ".glusterfs" / "copy").write_text("a")
    (tmp_path / "tree" / "0000").mkdir(parents=True)
    (tmp_path / "tree" / "0000" / "0000001").write_text("a")
    (tmp_path / "empty").write_text("")
    pointer = tmp_path / "elsewhere"
    pointer.write_text("")
    pointer.chmod(0o1000)

    assert brick(str(tmp_path)) == {
        "tree/0000/0000001": [1, hashlib.sha256(b"a").hexdigest()],
        "empty": [0, hashlib.sha256(b"").hexdigest()],
    }
