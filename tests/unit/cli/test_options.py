"""The folders that the shared options stand for."""

from pathlib import Path

import pytest

from boardcluster.cli.options import again, cache_folder, home_folder, require_cluster
from boardcluster.errors import ClusterNotUpError, UsageError


@pytest.mark.parametrize("path", ["/a b", "/j\u00f6rg", "/a:b", "/a,b", "/a#b", "/a%20b", "/a\nb"])
def test_a_path_that_the_engines_break_on_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="cannot work in the folder") as home:
        home_folder(Path(path), "default")
    with pytest.raises(UsageError, match="cannot work in the folder") as cache:
        cache_folder(Path(path))
    assert "--home" in home.value.hint
    assert "--cache" in cache.value.hint


def test_a_home_folder_of_the_user_that_the_engines_break_on_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/users/j\u00f6rg")
    with pytest.raises(UsageError, match="\u00f6"):
        home_folder(None, "default")
    with pytest.raises(UsageError, match="\u00f6"):
        cache_folder(None)
    assert home_folder(Path("/srv/a"), "default") == Path("/srv/a")
    assert cache_folder(Path("/srv/b")) == Path("/srv/b")


def test_ordinary_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/me")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert home_folder(None, "lab-1") == Path("/users/me/.local/share/boardcluster/lab-1")
    assert home_folder(Path("~/x"), "default") == Path("/users/me/x")
    assert cache_folder(None) == Path("/users/me/.cache/boardcluster")
    assert cache_folder(Path("/A/z_0.9+@-")) == Path("/A/z_0.9+@-")


def test_a_user_that_does_not_exist_is_the_users_mistake() -> None:
    with pytest.raises(UsageError, match="no-such-user"):
        home_folder(Path("~no-such-user/x"), "default")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", ".x", "-x", "a b", "j\u00f6rg", "a\n"]
)
def test_names_that_are_no_names(name: str) -> None:
    with pytest.raises(UsageError, match="not a valid cluster name"):
        home_folder(None, name)


def test_the_options_that_name_a_cluster_again() -> None:
    assert again(None, "default") == ""
    assert again(None, "lab") == " --cluster lab"
    assert again(Path("/srv/a"), "lab") == " --home /srv/a"
    assert again(Path("~/$a"), "lab") == " --home '~/$a'"


def test_a_folder_without_a_cluster_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    missing = tmp_path / "mistyped"
    with pytest.raises(ClusterNotUpError, match="no cluster in") as caught:
        require_cluster(missing, options=" --home x")
    assert "`boardcluster up --home x`" in caught.value.hint
    assert not missing.exists()


@pytest.mark.parametrize("name", ["cluster.toml", "state.json"])
def test_a_folder_with_a_cluster_is_let_through(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    require_cluster(tmp_path, options="")
