"""The file of accepted host keys; asking hosts for theirs is for the integration tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from boardcluster.remote import hostkeys
from boardcluster.remote.hostkeys import HostKey, trust


def key(name: str) -> HostKey:
    return HostKey(
        host=f"pi@{name}", name=name, kind="ssh-ed25519", key="AAAA", fingerprint="SHA256:x"
    )


def test_a_line_is_added_below_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostkeys, "_find", lambda *_: ())
    file = tmp_path / "known_hosts"
    trust(file, [key("pi0")])
    assert file.read_text() == "pi0 ssh-ed25519 AAAA\n"
    file.write_text(file.read_text().rstrip("\n"))
    trust(file, [key("pi1")])
    assert file.read_text() == "pi0 ssh-ed25519 AAAA\npi1 ssh-ed25519 AAAA\n"
