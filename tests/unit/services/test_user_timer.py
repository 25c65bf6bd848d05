"""The systemd timer of a user: what is written, how it is quoted, and that it goes again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from boardcluster.errors import UsageError
from boardcluster.remote.gate import run_program
from boardcluster.services.user_timer import (
    UserTimer,
    check_calendar,
    remove_timer,
    write_timer,
)

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze"
)


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "systemd" / "user"


def timer(tmp_path: Path, *arguments: str) -> UserTimer:
    return UserTimer(
        about="One more round of 100 % watch.toml",
        title="night ly",
        key="home\nnightly",
        command=("/bin/echo", *arguments),
        folder=tmp_path,
        environment={"PATH": "/usr/bin:/opt/with blank"},
    )


def test_a_timer_is_written_shown_and_kept(tmp_path: Path, config: Path) -> None:
    first = write_timer(timer(tmp_path, "a"), "daily")
    assert sorted(path.suffix for path in first.changed) == [".service", ".timer"]
    assert {path: path.read_text() for path in config.iterdir()} == dict(first.files)
    assert {path.stat().st_mode & 0o777 for path in config.iterdir()} == {0o600}
    assert not (config / "timers.target.wants").exists()
    assert any("systemctl --user enable --now" in line for line in first.lines)
    again = write_timer(timer(tmp_path, "a"), "daily")
    assert again.changed == ()
    other = write_timer(timer(tmp_path, "a"), "weekly")
    assert [path.suffix for path in other.changed] == [".timer"]


def test_words_are_written_so_that_systemd_reads_them_as_they_are(tmp_path: Path) -> None:
    odd = ("with blank", "100%", "$HOME", 'quote"d', "back\\slash", "")
    service = timer(tmp_path, *odd).files("daily")[f"{timer(tmp_path).name}.service"]
    [line] = [row for row in service.splitlines() if row.startswith("ExecStart=")]
    assert line == (
        'ExecStart="/bin/echo" "with blank" "100%%" "$$HOME" "quote\\"d" "back\\\\slash" ""'
    )
    assert 'Environment="PATH=/usr/bin:/opt/with blank"' in service
    assert "Description=One more round of 100 %% watch.toml" in service


def test_a_line_end_in_a_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be part of a systemd unit"):
        timer(tmp_path, "a\nExecStart=/bin/false").files("daily")


@needs_systemd
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path, config: Path) -> None:
    write_timer(timer(tmp_path, "with blank", "100%", "$HOME"), "Mon..Fri 03:00")
    units = sorted(str(path) for path in config.iterdir())
    done = run_program(["systemd-analyze", "verify", "--user", "--man=no", *units], check=False)
    said = (done.stdout + done.stderr).decode()
    own = [line for line in said.splitlines() if "boardcluster-watch" in line]
    assert not own, said


@needs_systemd
def test_a_calendar_is_checked_by_systemd() -> None:
    assert check_calendar(" Mon..Fri 03:00 ") == "Mon..Fri 03:00"
    with pytest.raises(UsageError, match="'every day' is not a calendar expression"):
        check_calendar("every day")


@pytest.mark.parametrize("text", ["", " ", "daily\nExecStart=/bin/false"])
def test_a_calendar_that_would_break_the_unit_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="calendar expression"):
        check_calendar(text)


def test_without_systemd_the_units_are_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    state = write_timer(timer(tmp_path), "daily")
    assert state.changed
    assert "no systemctl" in state.lines[0]


def test_removing_deletes_what_was_written_and_enabled(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    written = write_timer(timer(tmp_path), "daily")
    wants = config / "timers.target.wants"
    wants.mkdir()
    unit = next(path for path in written.changed if path.suffix == ".timer")
    (wants / unit.name).symlink_to(unit)
    (config / "mine.timer").write_text("")
    gone = remove_timer(timer(tmp_path))
    assert set(gone.changed) == set(written.changed)
    assert not list(wants.iterdir())
    assert (config / "mine.timer").exists()
    assert remove_timer(timer(tmp_path)).changed == ()
