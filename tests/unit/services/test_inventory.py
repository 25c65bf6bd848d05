"""Inventories of any form: JSON is read, anything else is given to ``ansible-inventory``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from boardcluster.errors import SpecError
from boardcluster.services.inventory import read_inventory

LISTED = json.dumps(
    {
        "_meta": {"hostvars": {"pi0": {"ansible_user": "pi"}}},
        "all": {"children": ["ungrouped"]},
        "ungrouped": {"hosts": ["pi0", "pi1"]},
    }
)
Ansible = Callable[[str], None]


@pytest.fixture
def ansible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ansible:
    """Put a program of the name onto PATH, of which only the Python code is given."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def install(code: str) -> None:
        program = folder / "ansible-inventory"
        program.write_text(f"#!{sys.executable}\nimport os, sys\n{code}\n")
        program.chmod(0o755)

    return install


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    path = tmp_path / "hosts.ini"
    path.write_text("pi0 ansible_user=pi\npi1\n")
    return path


def test_json_needs_no_ansible(ansible: Ansible, tmp_path: Path) -> None:
    path = tmp_path / "inventory.json"
    path.write_text(f"\ufeff {LISTED}\n")

    assert [host.destination for host in read_inventory(path).hosts] == ["pi@pi0", "pi1"]


def test_other_files_are_given_to_ansible(ansible: Ansible, hosts: Path) -> None:
    ansible(
        f"assert sys.argv[1:] == ['-i', {str(hosts)!r}, '--list'], sys.argv\n"
        "assert os.environ['ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED'] == 'True'\n"
        f"print({LISTED!r})"
    )

    assert [host.destination for host in read_inventory(hosts).hosts] == ["pi@pi0", "pi1"]


def test_without_ansible_it_says_what_to_do(ansible: Ansible, hosts: Path) -> None:
    with pytest.raises(SpecError, match=r"the program ansible-inventory.* is not installed") as got:
        read_inventory(hosts)

    assert f"`ansible-inventory -i {hosts} --list > inventory.json`" in got.value.hint
    assert "apt-get install ansible-core" in got.value.hint


def test_what_ansible_cannot_read_is_repeated(ansible: Ansible, hosts: Path) -> None:
    ansible("sys.exit('ERROR! Completely failed to parse inventory source')")

    with pytest.raises(
        SpecError, match=r"(?s)cannot read it:.*Completely failed to parse"
    ) as caught:
        read_inventory(hosts)

    assert f"ansible-inventory -i {hosts} --list" in caught.value.hint


def test_what_ansible_does_not_print_is_refused(ansible: Ansible, hosts: Path) -> None:
    ansible("print('usage: ...')")

    with pytest.raises(SpecError, match="not JSON"):
        read_inventory(hosts)


def test_files_that_are_no_inventory(ansible: Ansible, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"absent: cannot be read: No such file"):
        read_inventory(tmp_path / "absent")
    with pytest.raises(SpecError, match="a folder"):
        read_inventory(tmp_path)
    path = tmp_path / "hosts"
    path.write_text("#!/usr/bin/env python3\n")
    with pytest.raises(SpecError, match="a program, which boardcluster does not run") as caught:
        read_inventory(path)
    assert f"ansible-inventory -i {path} --list" in caught.value.hint
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="not UTF-8 text"):
        read_inventory(path)
    path.write_bytes(b"#" * ((1 << 22) + 1))
    with pytest.raises(SpecError, match="larger than 4 MiB"):
        read_inventory(path)
