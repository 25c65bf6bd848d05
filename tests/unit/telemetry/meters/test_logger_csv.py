import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from tests.unit.telemetry.meters.serving import opened

from boardcluster.errors import MeterError, SpecError
from boardcluster.telemetry.meters.base import Reading, Recorded

NOW = time.time()
MONOTONIC = time.monotonic()


def between(path: Path, **options: str) -> tuple[Reading, ...]:
    meter = opened("logger-csv", path=str(path), **options)
    assert isinstance(meter, Recorded)
    return meter.between(MONOTONIC - 20, MONOTONIC)


def iso(offset: float, zone: timezone = UTC) -> str:
    return datetime.fromtimestamp(NOW + offset, tz=zone).isoformat()


def test_unix_times_and_watts(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = "".join(f"{NOW - 20 + second:.3f},{10 + second}\n" for second in range(20))
    path.write_text(f"time,watts\n{NOW - 9000:.3f},5\n{rows}")
    readings = between(path, time_format="unix")
    assert [row.watts for row in readings] == [10 + second for second in range(20)]
    assert readings[0].seconds == pytest.approx(MONOTONIC - 20, abs=0.1)


def test_a_last_line_that_is_not_of_now_is_no_reading(tmp_path: Path) -> None:
    """A logger that stopped, or whose times are in another zone than is declared."""
    path = tmp_path / "log.csv"
    meter = opened("logger-csv", path=str(path), time_format="unix")
    path.write_text(f"time,watts\n{time.time() - 5:.3f},29\n")
    assert meter.read().watts == 29
    for offset, words in ((-7200, "is 2 h 00 min .* ago"), (7230, "is 2 h 00 min .* ahead")):
        path.write_text(f"time,watts\n{time.time() + offset:.3f},29\n")
        with pytest.raises(MeterError, match=words) as caught:
            meter.read()
        assert "zone" in caught.value.hint
    now = time.time()  # one line each quarter of an hour
    path.write_text(f"time,watts\n{now - 1500:.3f},28\n{now - 600:.3f},29\n")
    assert meter.read().watts == 29


def test_another_form_with_comma_zone_skew_and_a_count(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    local = datetime.fromtimestamp(NOW - 10 + 30, tz=timezone(timedelta(hours=5, minutes=30)))
    path.write_text(f"\ufeffZeit;Zähler\n{local:%d.%m.%Y %H:%M:%S};0,25\n", encoding="utf-8")
    (reading,) = between(
        path,
        time_column="Zeit",
        value_column="Zähler",
        time_format="%d.%m.%Y %H:%M:%S",
        zone="Asia/Kolkata",
        skew_seconds="30",
        delimiter=";",
        decimal="comma",
        unit="Wh",
    )
    assert reading.energy_joules == 900
    assert reading.watts is None
    assert reading.seconds == pytest.approx(MONOTONIC - 10, abs=1.1)


def test_times_that_say_their_zone_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"time,watts\n{iso(-5, timezone(timedelta(hours=2)))},1500\n")
    (reading,) = between(path, unit="mW", zone="Asia/Tokyo")
    assert reading.watts == 1.5
    assert reading.seconds == pytest.approx(MONOTONIC - 5, abs=0.1)


def test_a_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"time,watts\n{iso(-5)},7\n{iso(-4)},1")
    assert [row.watts for row in between(path)] == [7]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 'no column "time"; it has: none'),
        ("a;b\n1;2\n", 'no column "time"; it has: a;b'),
        ("time,power\n", 'no column "watts"; it has: time, power'),
        (f"time,watts\n{iso(-5)},n/a\n", "log.csv:2: no valid time and number"),
        ("time,watts\nyesterday,1\n", "log.csv:2: no valid time and number"),
        (f"time,watts\n{iso(-5)}\n", "log.csv:2: no valid time and number"),
        (
            f"time,watts\n{iso(-5)},1\n{iso(-3605)},1\n",
            "log.csv:3: the time goes backwards by 3600",
        ),
    ],
    ids=["empty", "titles", "column", "number", "time", "cell", "backwards"],
)
def test_what_cannot_be_read_is_said_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(MeterError, match=words):
        between(path)


@pytest.mark.parametrize(
    "early",
    [
        f"{iso(-7200)},n/a\n{iso(-7199)},1\n",
        f"{iso(-7200)},1\n{iso(-7300)},1\n{iso(-7199)},1\n",
        f"{iso(-7200)},1\n{iso(10**8)},1\n{iso(-7199)},1\n",
    ],
    ids=["number", "backwards", "ahead"],
)
def test_what_was_wrong_hours_before_a_run_does_not_cost_its_energy(
    tmp_path: Path, early: str
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"time,watts\n{early}{iso(-5)},7\n")
    assert [row.watts for row in between(path)] == [7]
    assert opened("logger-csv", path=str(path)).read().watts == 7
    path.write_text(f"time,watts\n{early}{iso(-5)},7\n{iso(-4)},\n")
    with pytest.raises(MeterError, match="no valid time and number"):
        between(path)


def test_a_file_that_is_not_there_or_empty_is_said(tmp_path: Path) -> None:
    with pytest.raises(MeterError, match="No such file"):
        between(tmp_path / "none.csv")
    (tmp_path / "log.csv").write_text("time,watts\n")
    with pytest.raises(MeterError, match="no readings yet"):
        opened("logger-csv", path=str(tmp_path / "log.csv")).read()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unit": "hp"}, "J, W, Wh"),
        ({"zone": "Mars/Base"}, "Europe/Berlin"),
        ({"zone": "../etc/passwd"}, "Europe/Berlin"),
        ({"delimiter": ";;"}, "one character"),
        ({"coverage": "house"}, "board, node"),
        ({"skew_seconds": "soon"}, "a number"),
        ({"decimal": ","}, "comma, point"),
    ],
)
def test_wrong_options_are_said(options: dict[str, str], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        opened("logger-csv", path="log.csv", **options)
