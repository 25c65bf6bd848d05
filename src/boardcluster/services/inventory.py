"""Ansible inventories of any form, read with the help of Ansible itself."""

from __future__ import annotations

from pathlib import Path

from boardcluster.errors import HostError, RemoteError, SpecError
from boardcluster.remote.gate import run_program
from boardcluster.spec.inventory import Inventory, parse_inventory

__all__ = ["read_inventory"]

_SIZE_BYTES_MAX = 1 << 22
_PATIENCE_SECONDS = 60.0
_STRICT = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "True", "ANSIBLE_NOCOLOR": "True"}
"""Otherwise Ansible takes a file that it cannot read for an empty one."""


def read_inventory(path: Path) -> Inventory:
    """Read an Ansible inventory.

    A file of JSON is what ``ansible-inventory --list`` printed. Any other is given to that program,
    if it is on PATH.

    Raises:
        SpecError: it cannot be read, or something in it is wrong or not understood.
    """
    text = _text_of(path)
    listing = f"ansible-inventory -i {path} --list"
    if text.startswith("#!"):
        raise SpecError(
            f"{path}: is a program, which boardcluster does not run",
            hint=f"run `{listing} > inventory.json` and name that file",
        )
    if text.lstrip().startswith("{"):
        return parse_inventory(text, path=path)
    try:
        done = run_program(
            ["ansible-inventory", "-i", str(path), "--list"],
            env=_STRICT,
            timeout_seconds=_PATIENCE_SECONDS,
        )
    except HostError as error:
        raise SpecError(
            f"{path}: not JSON, and the program ansible-inventory, which reads other inventories, "
            "is not installed here",
            hint=f"run `{listing} > inventory.json` where Ansible is installed and name that file, "
            "install it (sudo apt-get install ansible-core), or name the boards with --hosts",
        ) from error
    except RemoteError as error:
        raise SpecError(
            f"{path}: ansible-inventory cannot read it:\n{error.message}",
            hint=f"correct it until `{listing}` works",
        ) from error
    return parse_inventory(done.text, path=path)


def _text_of(path: Path) -> str:
    try:
        data = path.read_bytes()
    except IsADirectoryError as error:
        raise SpecError(
            f"{path}: a folder",
            hint=f"run `ansible-inventory -i {path} --list > inventory.json` and name that file",
        ) from error
    except OSError as error:
        raise SpecError(
            f"{path}: cannot be read: {error.strerror}", hint="check the path and its permissions"
        ) from error
    if len(data) > _SIZE_BYTES_MAX:
        raise SpecError(f"{path}: larger than 4 MiB", hint="name a smaller inventory")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: not UTF-8 text", hint="name a text file") from error
