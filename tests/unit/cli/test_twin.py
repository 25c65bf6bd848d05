"""A file of emulated boards becomes a home's cluster.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from boardcluster.campaign.twins import place_twin, read_twin, twin_home
from boardcluster.errors import ClusterError, SpecError, UsageError
from boardcluster.services import operation

EXAMPLE = Path(__file__).parents[3] / "examples" / "twin" / "rpi5-microsd-4.toml"
BOARD = "rpi-5b-8gb-2400mhz"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "twin.toml"
    path.write_text(EXAMPLE.read_text())
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home"


def plain_text(file: Path) -> str:
    """Return a twin's text without what makes it one."""
    left_out = ("medium", "disk", "[twin]", "dilation")
    rows = [row for row in file.read_text().splitlines() if not row.startswith(left_out)]
    return "\n".join("cores = 4" if row.startswith("board") else row for row in rows)


def test_a_plain_cluster_is_no_twin(file: Path) -> None:
    file.write_text(plain_text(file))
    with pytest.raises(UsageError, match="no node has a `board`"):
        read_twin(file)


def test_the_home_is_named_like_the_cluster_unless_it_is_given(file: Path, tmp_path: Path) -> None:
    spec = read_twin(file)
    assert twin_home(None, spec).name == "rpi5-microsd-4"
    assert twin_home(tmp_path / "own", spec) == tmp_path / "own"


def test_a_file_is_placed_as_it_is_and_again_changes_nothing(file: Path, folder: Path) -> None:
    place_twin(read_twin(file), file, folder)
    target = folder / "cluster.toml"
    assert target.read_text() == file.read_text()
    before = target.stat().st_mtime_ns
    place_twin(read_twin(file), file, folder)
    assert target.stat().st_mtime_ns == before


def test_a_profile_of_ones_own_is_found_from_the_home(file: Path, folder: Path) -> None:
    own = file.with_name("own.toml")
    own.write_text('base = "paper-2026"\n["hdfs-site"]\n"dfs.replication" = 2\n')
    file.write_text(file.read_text().replace('profile = "default"', 'profile = "own.toml"'))

    place_twin(read_twin(file), file, folder)

    assert read_twin(folder / "cluster.toml").profile == str(own)


@pytest.mark.parametrize("up", [True, False])
def test_another_version_is_taken_only_while_the_cluster_is_down(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *, up: bool
) -> None:
    place_twin(read_twin(file), file, folder)
    old = file.read_text()
    file.write_text(old.replace('"8 GiB"', '"9 GiB"'))
    monkeypatch.setattr(operation, "found_up", lambda _: up)
    if up:
        with pytest.raises(ClusterError, match="another version") as caught:
            place_twin(read_twin(file), file, folder)
        assert f"boardcluster down --home {folder}" in caught.value.hint
        assert (folder / "cluster.toml").read_text() == old
    else:
        place_twin(read_twin(file), file, folder)
        assert (folder / "cluster.toml").read_text() == file.read_text()


def test_the_same_cluster_in_other_words_is_no_other_version(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place_twin(read_twin(file), file, folder)
    monkeypatch.setattr(operation, "found_up", lambda _: True)
    file.write_text(f"# a comment\n{file.read_text()}")
    place_twin(read_twin(file), file, folder)


def test_a_plain_clusters_home_is_left_alone(file: Path, folder: Path) -> None:
    folder.mkdir()
    text = plain_text(file)
    (folder / "cluster.toml").write_text(text)
    with pytest.raises(ClusterError, match="describes a different cluster"):
        place_twin(read_twin(file), file, folder)
    assert (folder / "cluster.toml").read_text() == text


def test_a_home_of_imported_results_is_left_alone(file: Path, folder: Path) -> None:
    folder.mkdir()
    (folder / "imported.json").write_text("{}")
    with pytest.raises(ClusterError, match="holds imported results"):
        place_twin(read_twin(file), file, folder)
    assert not (folder / "cluster.toml").exists()


def test_a_broken_file_in_the_home_is_not_overwritten(file: Path, folder: Path) -> None:
    folder.mkdir()
    (folder / "cluster.toml").write_text("broken")
    with pytest.raises(SpecError):
        place_twin(read_twin(file), file, folder)
    assert (folder / "cluster.toml").read_text() == "broken"


def test_a_board_of_ones_own_is_found_from_the_home(
    file: Path, folder: Path, tmp_path: Path
) -> None:
    catalog = Path(operation.__file__).parents[1] / "catalog"
    (own,) = catalog.rglob(f"{BOARD}.toml")
    (tmp_path / "own.toml").write_text(own.read_text())
    file.write_text(file.read_text().replace(f'"{BOARD}"', '"own.toml"'))
    place_twin(read_twin(file), file, folder)
    boards = {node.twin.board for node in read_twin(folder / "cluster.toml").nodes if node.twin}
    assert boards == {str(tmp_path / "own.toml")}


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("how", ["renamed", "edited"])
def test_a_board_of_ones_own_may_be_renamed_or_edited(
    file: Path,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    *,
    up: bool,
) -> None:
    catalog = Path(operation.__file__).parents[1] / "catalog"
    (of_catalog,) = catalog.rglob(f"{BOARD}.toml")
    own = tmp_path / "own.toml"
    own.write_text(of_catalog.read_text())
    file.write_text(file.read_text().replace(f'"{BOARD}"', '"own.toml"'))
    place_twin(read_twin(file), file, folder)
    before = (folder / "cluster.toml").read_text()
    if how == "renamed":
        own.rename(tmp_path / "mine.toml")
        file.write_text(file.read_text().replace('"own.toml"', '"mine.toml"'))
    else:
        own.write_text(own.read_text().replace("cores = 4", "cores = 6"))
    monkeypatch.setattr(operation, "found_up", lambda _: up)

    if up:
        with pytest.raises(ClusterError, match="is up from another version"):
            place_twin(read_twin(file), file, folder)
        assert (folder / "cluster.toml").read_text() == before
    else:
        place_twin(read_twin(file), file, folder)
        assert read_twin(folder / "cluster.toml") == read_twin(file)


def test_the_password_of_a_meter_is_found_from_the_home(file: Path, folder: Path) -> None:
    meter = 'name = "plug"\nkind = "shelly"\nnodes = "all"\nurl = "http://10.0.0.9"\n'
    secret = 'password_file = "plug.secret"\n'
    file.write_text(f"{file.read_text()}\n[[meter]]\n{meter}{secret}")

    place_twin(read_twin(file), file, folder)

    (placed,) = read_twin(folder / "cluster.toml").meters
    assert placed.options["password_file"] == str(file.with_name("plug.secret"))
