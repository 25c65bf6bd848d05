"""What is written down of the client's connections."""

import json
from pathlib import Path

from boardcluster.services.gluster import watching


def test_it_ends_when_all_are_connected_and_says_when_they_were_not(tmp_path: Path) -> None:
    record, states = tmp_path / "watch.json", [tmp_path / "0", tmp_path / "1"]
    states[0].write_text("connected = 1\n")

    assert watching.main(str(record), 0.01, [str(path) for path in states]) == 1
    assert [count for _, count in json.loads(record.read_text())["changes"]] == [1]

    states[1].write_text("[xlator]\nconnected = 1\n")
    assert watching.main(str(record), 5, [str(path) for path in states]) == 0
    row = json.loads(record.read_text())
    assert (row["bricks"], row["changes"][-1][1]) == (2, 2)
