"""Meters that are read in the background: what a run gets to know, and that nothing delays it."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.builders import make_samples, make_telemetry
from tests.unit.telemetry.meters.serving import Answer, Request, recorded, web
from tests.waiting import wait_until

from boardcluster.errors import HostError, MeterError, SpecError
from boardcluster.records import Coverage, MeterSpec
from boardcluster.remote.base import Remote
from boardcluster.telemetry import metering as room
from boardcluster.telemetry.metering import STOP_SECONDS, check_meter, check_meters, metering
from boardcluster.telemetry.meters import registry
from boardcluster.telemetry.meters.base import Meter, MeterKind, Option, Reading

SPEC = MeterSpec(name="plug", kind="scripted", nodes=("pi0",), switch=True)
INTERVAL_SECONDS = 0.02


class Scripted:
    """A meter that does what a test says."""

    def __init__(self, read: Callable[[], Reading]) -> None:
        self._read = read
        self.closed = threading.Event()

    def read(self) -> Reading:
        return self._read()

    def close(self) -> None:
        self.closed.set()


class Batch(Scripted):
    def read_for(self, span_seconds: float, *, interval_seconds: float) -> tuple[Reading, ...]:
        time.sleep(0.05)
        return tuple(
            Reading(seconds=time.monotonic() - 0.05 + 0.01 * step, watts=4.0) for step in range(5)
        )


Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Make the kind ``scripted`` known."""

    def add(meter: Meter | Exception, **more: object) -> None:
        def open_it(settings: Mapping[str, str], remote: Remote | None) -> Meter:
            if isinstance(meter, Exception):
                raise meter
            return meter

        kind = MeterKind(
            name="scripted",
            summary="of a test",
            coverage=Coverage.WALL,
            accuracy="exact",
            interval_seconds=INTERVAL_SECONDS,
            integrates=True,
            options=(Option(name="accuracy_percent", help="", default=""),),
            on_node=False,
            open=open_it,
            accuracy_percent=0.5,
        )
        kind = replace(kind, **more)  # type: ignore[arg-type]
        known = {**registry.kinds(), "scripted": kind}
        monkeypatch.setattr(registry, "kinds", lambda: known)

    yield add
    assert all(not row.name.startswith("meter plug") for row in threading.enumerate() if row.daemon)


def steady(watts: float = 5.0) -> Callable[[], Reading]:
    return lambda: Reading(seconds=time.monotonic(), watts=watts)


def test_a_run_gets_its_energy(install: Install) -> None:
    meter = Scripted(steady())
    install(meter)
    with metering([SPEC], {}) as meters:
        time.sleep(0.1)
        started = time.monotonic()
        time.sleep(0.4)
        ended = time.monotonic()
        (power,) = meters.powers(started, ended)
        assert power.energy_joules == pytest.approx(5.0 * (ended - started))
        assert (power.meter, power.kind, power.coverage) == ("plug", "scripted", Coverage.WALL)
        assert (power.nodes, power.switch, power.accuracy) == (("pi0",), True, "exact")
        assert 5 < power.rate_hertz < 1.2 / INTERVAL_SECONDS
        assert meters.instruments["plug"].accuracy_percent == 0.5
        assert not meters.instruments["plug"].integrates, "its readings were added up"
        assert not meter.closed.is_set()
    assert meter.closed.is_set()


def test_a_plug_over_http_that_loses_its_power_in_mid_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("boardcluster.analysis.energy.GAP_SECONDS", 1.5)
    monkeypatch.setattr("boardcluster.analysis.energy.GAP_INTERVALS", 0.0)
    device = recorded("shelly")

    def answer(request: Request) -> Answer:
        return Answer.of(device["gen2_about" if request.path == "/shelly" else "gen2_plug"])

    with contextlib.ExitStack() as stack:
        server = stack.enter_context(web(answer))
        plug = MeterSpec(name="plug", kind="shelly", nodes=("pi0",), options={"url": server.url})
        with metering([plug], {}) as meters:
            started = time.monotonic()
            time.sleep(1.3)
            stack.close()
            (good,) = meters.powers(started, started + 1.1)
            time.sleep(1.5)
            (bad,) = meters.powers(started, time.monotonic())
    assert good.mean_watts == pytest.approx(4.1)
    assert bad.energy_joules is None
    assert bad.reason.endswith("cannot be read: Connection refused")


def test_several_runs_follow_each_other(install: Install) -> None:
    watts = [3.0]
    install(Scripted(lambda: Reading(seconds=time.monotonic(), watts=watts[0])))
    with metering([SPEC], {}) as meters:
        found = []
        for value in (3.0, 9.0):
            watts[0] = value
            time.sleep(0.1)
            started = time.monotonic()
            time.sleep(0.15)
            found.append(meters.powers(started, time.monotonic())[0].mean_watts)
    assert found == [pytest.approx(3.0), pytest.approx(9.0)]


def test_without_meters_nothing_happens() -> None:
    before = threading.active_count()
    with metering([], {}) as meters:
        assert threading.active_count() == before
        assert meters.powers(0.0, 1.0) == ()


def test_a_meter_that_never_answers_costs_only_its_energy(install: Install) -> None:
    def fail() -> Reading:
        raise MeterError("http://plug cannot be read: No route to host\nmore", hint="look")

    install(Scripted(fail))
    with metering([SPEC], {}) as meters:
        started = time.monotonic()
        time.sleep(0.1)
        (power,) = meters.powers(started, time.monotonic())
    assert power.energy_joules is None
    assert power.reason == "it gave no reading: http://plug cannot be read: No route to host"


def test_whatever_a_device_sends_does_not_end_its_thread(install: Install) -> None:
    calls = iter(range(10_000))

    def sometimes() -> Reading:
        if next(calls) % 3 == 1:
            raise ZeroDivisionError
        return Reading(seconds=time.monotonic(), watts=5.0)

    install(Scripted(sometimes))
    with metering([SPEC], {}) as meters:
        started = time.monotonic()
        time.sleep(0.3)
        ended = time.monotonic()
        (power,) = meters.powers(started, ended)
    assert power.energy_joules == pytest.approx(5.0 * (ended - started))
    assert "failed to answer" in power.remarks[0]
    assert "ZeroDivisionError" in power.remarks[0]


def test_a_meter_that_goes_away_in_mid_run_leaves_a_reason(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boardcluster.analysis.energy.GAP_SECONDS", 0.2)
    gone = time.monotonic() + 0.3

    def away() -> Reading:
        if time.monotonic() > gone:
            raise MeterError("plug did not answer within 2 s")
        return Reading(seconds=time.monotonic(), watts=5.0)

    install(Scripted(away))
    with metering([SPEC], {}) as meters:
        started = time.monotonic()
        time.sleep(0.8)
        (power,) = meters.powers(started, time.monotonic())
    assert power.energy_joules is None
    assert power.reason.startswith("it was silent from 0 s to 1 s of the run")
    assert power.reason.endswith(": plug did not answer within 2 s")


def test_a_meter_that_hangs_delays_neither_the_run_nor_the_end(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_LATEST_SECONDS", 0.3)
    let_go = threading.Event()

    def hang() -> Reading:
        let_go.wait(20)
        raise MeterError("late")

    install(Scripted(hang))
    began = time.monotonic()
    with metering([SPEC], {}) as meters:
        started = time.monotonic()
        assert started - began < 5
        time.sleep(0.05)
        (power,) = meters.powers(started, time.monotonic())
        assert power.energy_joules is None
        assert time.monotonic() - started < 5
        ending = time.monotonic()
    assert time.monotonic() - ending < STOP_SECONDS + 5
    let_go.set()
    wait_until(
        lambda: not [row for row in threading.enumerate() if row.name == "meter plug"],
        "the end of its thread",
    )


def test_a_slow_meter_does_not_delay_the_others(install: Install) -> None:
    slow = replace(SPEC, name="slow")
    pace = {"plug": 0.0, "slow": 0.3}

    def reader() -> Reading:
        time.sleep(pace[threading.current_thread().name.removeprefix("meter ")])
        return Reading(seconds=time.monotonic(), watts=5.0)

    install(Scripted(reader))
    with metering([SPEC, slow], {}) as meters:
        started = time.monotonic()
        time.sleep(1.0)
        fast, other = meters.powers(started, time.monotonic())
    assert fast.readings > 10
    assert 1 <= other.readings <= 5


def test_old_readings_go_when_there_are_too_many(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_KEPT_READINGS", 20)
    install(Scripted(steady()))
    with metering([SPEC], {}) as meters:
        time.sleep(0.8)
        started = time.monotonic()
        time.sleep(0.1)
        ended = time.monotonic()
        (power,) = meters.powers(started, ended)
    assert power.energy_joules == pytest.approx(5.0 * (ended - started))


def test_readings_that_are_no_numbers_are_not_kept(install: Install) -> None:
    install(Scripted(lambda: Reading(seconds=time.monotonic(), watts=float("nan"))))
    with metering([SPEC], {}) as meters:
        started = time.monotonic()
        time.sleep(0.1)
        (power,) = meters.powers(started, started + 0.1)
    assert (power.energy_joules, power.readings) == (None, 0)


def test_a_meter_that_gives_batches(install: Install) -> None:
    install(Batch(steady()))
    with metering([SPEC], {}) as meters:
        time.sleep(0.2)
        started = time.monotonic()
        time.sleep(0.3)
        ended = time.monotonic()
        (power,) = meters.powers(started, ended)
    assert power.energy_joules == pytest.approx(4.0 * (ended - started))
    assert power.readings > 10


def test_a_meter_that_counts_and_wraps(install: Install) -> None:
    began = time.monotonic()

    def count() -> Reading:
        now = time.monotonic()
        counted = (95 + 50 * (now - began)) % 100
        return Reading(seconds=now, watts=None, energy_joules=counted, wraps_at_joules=100.0)

    install(Scripted(count))
    with metering([SPEC], {}) as meters:
        started = time.monotonic()
        time.sleep(0.4)
        ended = time.monotonic()
        (power,) = meters.powers(started, ended)
    assert power.energy_joules == pytest.approx(50 * (ended - started), rel=0.1)
    assert "wrapped" in power.remarks[0]
    assert meters.instruments["plug"].integrates


def test_a_file_of_another_logger_is_read_after_the_run(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    ended, wall = time.monotonic(), time.time()
    path.write_text(
        "time,watts\n" + "".join(f"{wall - 30 + step},{10 + step % 2}\n" for step in range(32))
    )
    options = {
        "path": str(path),
        "time_format": "unix",
        "coverage": "node",
        "accuracy_percent": "0.5",
    }
    spec = MeterSpec(name="log", kind="logger-csv", nodes=("pi0",), options=options)
    with metering([spec], {}) as meters:
        (power,) = meters.powers(ended - 20, ended)
        assert power.energy_joules == pytest.approx(210, abs=1)
        assert power.coverage is Coverage.NODE
        assert power.accuracy == "0.5 % according to cluster.toml"
        path.write_text("time,power\n")
        (broken,) = meters.powers(ended - 20, ended)
    assert broken.energy_joules is None
    assert 'no column "watts"' in broken.reason


def test_a_logger_that_writes_once_a_minute_covers_its_run(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    ended, wall = time.monotonic(), time.time()
    rows = "".join(f"{wall - 360 + 60 * step},12\n" for step in range(7))
    path.write_text("time,watts\n" + rows)
    options = {"path": str(path), "time_format": "unix"}
    spec = MeterSpec(name="log", kind="logger-csv", nodes=("pi0",), options=options)
    with metering([spec], {}) as meters:
        (power,) = meters.powers(ended - 240, ended)
    assert power.energy_joules == pytest.approx(2880)


def test_telemetry_tells_a_frozen_meter(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    ended, wall = time.monotonic(), time.time()
    path.write_text("time,watts\n" + "".join(f"{wall - 130 + s},26\n" for s in range(130)))
    options = {"path": str(path), "time_format": "unix"}
    spec = MeterSpec(name="log", kind="logger-csv", nodes=("pi0",), options=options)
    columns = {
        "cpu_user_seconds": np.where(np.arange(120) < 60, 0.0, 3.5),
        "cpu_system_seconds": np.full(120, 0.1),
    }
    samples = make_samples("pi0", seconds=np.arange(1.0, 121.0), columns=columns)
    telemetry = make_telemetry(samples, duration_seconds=120.0)
    with metering([spec], {}) as meters:
        (power,) = meters.powers(ended - 120, ended, telemetry=telemetry)
    assert power.energy_joules == pytest.approx(26 * 120, rel=0.01)
    assert "it is frozen" in power.remarks[0]


def test_a_switch_of_its_own_is_idle_when_all_nodes_are_and_may_draw_the_same_all_the_time(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.csv"
    ended, wall = time.monotonic(), time.time()
    path.write_text("time,watts\n" + "".join(f"{wall - 150 + s},4\n" for s in range(150)))
    options = {"path": str(path), "time_format": "unix"}
    spec = MeterSpec(name="log", kind="logger-csv", nodes=(), switch=True, options=options)
    at = np.arange(-20.0, 120.0)
    columns = {
        "cpu_user_seconds": np.where(at <= 0, 0.1, 3.5),
        "cpu_system_seconds": np.full(len(at), 0.01),
    }
    nodes = [make_samples(name, seconds=at, columns=columns) for name in ("pi0", "pi1")]
    telemetry = make_telemetry(*nodes, duration_seconds=120.0)
    with metering([spec], {}) as meters:
        (power,) = meters.powers(ended - 120, ended, telemetry=telemetry)
    assert power.idle_watts == pytest.approx(4)
    assert not power.idle_reason
    assert not [remark for remark in power.remarks if "frozen" in remark]


def test_a_number_without_end_in_a_file_of_another_logger_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    ended, wall = time.monotonic(), time.time()
    rows = [f"{wall - 30 + step},{'inf' if step == 15 else 10}\n" for step in range(32)]
    path.write_text("time,watts\n" + "".join(rows))
    options = {"path": str(path), "time_format": "unix"}
    spec = MeterSpec(name="log", kind="logger-csv", nodes=("pi0",), options=options)
    with metering([spec], {}) as meters:
        (power,) = meters.powers(ended - 20, ended)
        (samples,) = meters.samples(ended - 20, ended)
    assert power.energy_joules == pytest.approx(200, abs=1)
    assert np.isfinite(samples.watts).all()


@pytest.mark.parametrize(("before", "idle"), [(0.1, 3.0), (2.0, None)])
def test_a_core_phase_and_the_idle_moments_before_the_run_have_their_own_power(
    tmp_path: Path, before: float, idle: float | None
) -> None:
    """3 W before, 5 W while the matrix is made, 9 W while it is solved."""
    path = tmp_path / "log.csv"
    ended, wall = time.monotonic(), time.time()
    # None at the very beginning of the run: the two clocks above are read one after the other, so
    # that it would be on either side of it.
    steps = {3: range(30), 5: np.arange(30.1, 50), 9: np.arange(49.9, 90)}
    rows = "".join(f"{wall - 90 + at},{each}\n" for each, times in steps.items() for at in times)
    path.write_text("time,watts\n" + rows)
    options = {"path": str(path), "time_format": "unix", "accuracy_percent": "1"}
    spec = MeterSpec(name="log", kind="logger-csv", nodes=("pi0",), options=options)
    at = np.arange(-20.0, 60.0)
    columns = {
        "cpu_user_seconds": np.where(at <= 0, before, 3.9),
        "cpu_system_seconds": np.full(len(at), 0.01),
    }
    samples = make_samples("pi0", seconds=at, columns=columns)
    telemetry = make_telemetry(samples, duration_seconds=60.0)
    with metering([spec], {}) as meters:
        (whole,) = meters.powers(ended - 60, ended, telemetry=telemetry)
        (core,) = meters.powers(ended - 60, ended, telemetry=telemetry, span_seconds=(21.0, 59.0))
    assert whole.energy_joules == pytest.approx(20 * 5 + 40 * 9, rel=0.02)
    assert core.mean_watts == pytest.approx(9)
    assert core.energy_joules == pytest.approx(38 * 9)
    for power in (whole, core):
        assert power.idle_watts == (None if idle is None else pytest.approx(idle))
        assert bool(power.idle_reason) == (idle is None)
    assert core.uncertainty_joules is not None
    assert core.uncertainty_joules >= 0.01 * 38 * 9
    assert whole.uncertainty_joules is not None
    assert whole.uncertainty_joules >= 0.01 * 460 + 2  # a step of 2 W at the begin, 1 s old


def test_a_service_that_is_warmed_up_is_idle_before_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3 W while nothing ran, then 40 s of warm-up with 8 W, then the run."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    path = tmp_path / "log.csv"
    options = {"path": str(path), "time_format": "unix"}
    spec = MeterSpec(name="log", kind="logger-csv", nodes=("pi0",), options=options)
    at = np.arange(-60.0, 30.0)
    columns = {
        "cpu_user_seconds": np.where(at <= -40, 0.1, 3.5),
        "cpu_system_seconds": np.full(len(at), 0.01),
    }
    telemetry = make_telemetry(
        make_samples("pi0", seconds=at, columns=columns), duration_seconds=30.0
    )
    with metering([spec], {}) as meters:
        meters.idle()
        idle, wall = time.monotonic(), time.time()
        rows = (f"{wall + s + 0.5},{3 if s < 0 else 8}\n" for s in range(-20, 75))
        path.write_text("time,watts\n" + "".join(rows))
        (power,) = meters.powers(idle + 40, idle + 70, telemetry=telemetry)
    assert power.energy_joules == pytest.approx(240)
    assert power.idle_watts == pytest.approx(3)
    assert not power.idle_reason


@pytest.mark.parametrize(
    ("error", "kind"),
    [(SpecError("no", hint="h"), SpecError), (HostError("no"), HostError)],
)
def test_what_is_wrong_in_the_file_is_said_before_a_run(
    install: Install, error: Exception, kind: type[Exception]
) -> None:
    install(error)
    with pytest.raises(kind, match='meter "plug": no'), metering([SPEC], {}):
        pytest.fail("the block was entered")


def test_a_wrong_accuracy_is_said_and_the_meter_closed(install: Install) -> None:
    meter = Scripted(steady())
    install(meter)
    spec = replace(SPEC, options={"accuracy_percent": "good"})
    with pytest.raises(SpecError, match="accuracy_percent"), metering([spec], {}):
        pytest.fail("the block was entered")
    assert meter.closed.is_set()


def test_a_check_opens_and_closes_each_meter_and_asks_none(install: Install) -> None:
    def fail() -> Reading:
        raise MeterError("it does not answer")

    meter = Scripted(fail)
    install(meter)
    check_meters([SPEC], {})
    assert meter.closed.is_set()
    check_meters([], {})


@pytest.mark.parametrize("error", [SpecError("no"), HostError("no"), MeterError("no")])
def test_a_check_says_what_a_run_would_stumble_over(install: Install, error: Exception) -> None:
    install(error)
    with pytest.raises(type(error), match='meter "plug": no'):
        check_meters([SPEC], {})


def test_a_check_says_a_wrong_accuracy_and_a_node_that_is_not_there(install: Install) -> None:
    meter = Scripted(steady())
    install(meter)
    with pytest.raises(SpecError, match="accuracy_percent"):
        check_meters([replace(SPEC, options={"accuracy_percent": "101"})], {})
    assert meter.closed.is_set()
    with pytest.raises(SpecError, match="none of its nodes exists: pi0"):
        check_meters([MeterSpec(name="cpu", kind="rapl", nodes=("pi0",))], {})


def test_a_look_at_a_meter_says_a_wrong_coverage(tmp_path: Path) -> None:
    options = {"path": str(tmp_path / "log.csv"), "coverage": "socket"}
    spec = MeterSpec(name="log", kind="logger-csv", nodes=("pi0",), options=options)
    with pytest.raises(SpecError, match=r'"coverage".*"socket"; allowed: board, node'):
        check_meter(spec, {})


def test_a_secret_that_cannot_be_read_is_found_by_a_check(tmp_path: Path) -> None:
    options = {"url": "http://plug", "password_file": str(tmp_path / "none")}
    spec = MeterSpec(name="plug", kind="shelly", nodes=("pi0",), options=options)
    with pytest.raises(MeterError, match=r'meter "plug": .*none'):
        check_meters([spec], {})


def test_a_run_that_ends_before_its_start_is_a_mistake(install: Install) -> None:
    install(Scripted(steady()))
    with metering([SPEC], {}) as meters, pytest.raises(ValueError, match="ends after"):
        meters.powers(2.0, 1.0)


def test_the_readings_of_a_run_are_handed_over_for_its_curve(install: Install) -> None:
    install(Scripted(steady(7.0)))
    with metering([SPEC], {}) as meters:
        time.sleep(0.1)
        started = time.monotonic()
        time.sleep(0.2)
        ended = time.monotonic()
        meters.powers(started, ended)
        [found] = meters.samples(started, ended)
    assert (found.meter, found.nodes, found.coverage) == ("plug", ("pi0",), Coverage.WALL)
    # Both ends of the run lie between readings.
    assert found.seconds[0] < 0
    assert found.seconds[-1] > ended - started
    assert set(found.watts.tolist()) == {7.0}


def test_a_meter_that_never_answered_has_no_curve(install: Install) -> None:
    def silent() -> Reading:
        raise MeterError("no answer", hint="look at it")

    install(Scripted(silent))
    with metering([SPEC], {}) as meters:
        started = time.monotonic()
        time.sleep(0.1)
        assert meters.samples(started, time.monotonic()) == ()


def test_the_curve_of_a_mere_count_is_how_fast_it_rises(install: Install) -> None:
    read_at: list[float] = []

    def read() -> Reading:
        now = time.monotonic()
        read_at.append(now)
        counted = (9995 + 50 * (now - read_at[0])) % 10_000  # begins again after 0.1 s, and 200 s
        return Reading(seconds=now, watts=None, energy_joules=counted, wraps_at_joules=10_000.0)

    install(Scripted(read))
    started = time.monotonic()
    with metering([SPEC], {}) as meters:
        wait_until(lambda: len(read_at) >= 10, "ten readings", seconds=60)
        ended = time.monotonic()
        meters.powers(started, ended)
        [found] = meters.samples(started, ended)
    known = found.watts[~np.isnan(found.watts)]
    assert len(known) >= 5
    np.testing.assert_allclose(known, 50.0, rtol=1e-6)
    assert np.isnan(found.watts).sum() == 1  # where the count began again
