"""What is copied from nodes whose jobs are not root: files and folders, and nothing that acts."""

import io
import tarfile
from pathlib import Path

import pytest

from boardcluster.remote.netns import unpack


def packed(folder: Path, *members: tarfile.TarInfo) -> Path:
    path = folder / "packed"
    with tarfile.open(path, "w") as archive:
        for member in members:
            member.size = 5 if member.isfile() else 0
            archive.addfile(member, io.BytesIO(b"hello"))
    return path


def made(name: str, kind: bytes = tarfile.REGTYPE, *, mode: int = 0o644) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.linkname = kind, mode, "/etc/shadow"
    return member


def test_files_and_folders_are_whole_and_nobodys_program(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    members = made("a", tarfile.DIRTYPE), made("a/b", mode=0o6755), made("a/c", mode=0o600)
    unpack(packed(tmp_path, *members), whole)

    assert (whole / "a" / "b").read_bytes() == b"hello"
    assert (whole / "a" / "b").stat().st_mode & 0o7777 == 0o755
    assert (whole / "a" / "c").stat().st_mode & 0o7777 == 0o600


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_are_refused(kind: bytes, tmp_path: Path) -> None:
    with pytest.raises(tarfile.TarError, match="neither a file nor a folder"):
        unpack(packed(tmp_path, made("x", kind)), tmp_path / "whole")
    assert list((tmp_path / "whole").iterdir()) == []


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x"])
def test_names_that_lead_out_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(tarfile.TarError, match="neither a file nor a folder"):
        unpack(packed(tmp_path, made(name)), tmp_path / "whole")
    assert not (tmp_path / "x").exists()


def test_a_name_that_comes_twice_does_not_write_over_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        unpack(packed(tmp_path, made("x"), made("x")), tmp_path / "whole")
