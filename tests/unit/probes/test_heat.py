"""Heat: the program on the node against trees of files, the figures of curves, and bad answers.

Curves are written here after the figures of the 2022 paper: a board that rises, is throttled and
cools. The machine that builds this has no sensor; its own samples are used where that is the point.
"""

import fcntl
import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.probes.answering import Answering, done, make_site

from boardcluster.errors import ProbeOutputError, RemoteError, RemoteTimeoutError
from boardcluster.probes import heat
from boardcluster.probes.heat import (
    PROBE,
    HeatSamples,
    Sample,
    figures_of,
    measure,
    parse_samples,
)
from boardcluster.probes.node import ask_program
from boardcluster.probes.node import heat as node_program
from boardcluster.records import ProbeFigure, ProbeMode
from boardcluster.remote.gate import Completed
from boardcluster.remote.local import LocalRemote

SENSOR = "cpu-thermal"
FAST, SLOW, IDLE = 1.8e9, 1.5e9, 0.6e9
VIRTUAL_MACHINE = [
    [0.0, None, "", 2596120000.0, "cpuinfo", None],
    [1.03, None, "", 2596120000.0, "cpuinfo", None],
]


def phase(
    celsius: list[float | None], clock: list[float | None], bits: list[int | None]
) -> tuple[Sample, ...]:
    return tuple(
        Sample(
            seconds=float(second),
            celsius=celsius[second],
            sensor=SENSOR if celsius[second] is not None else "",
            clock_hertz=clock[second],
            clock_source="cpufreq",
            throttle_bits=bits[second],
        )
        for second in range(len(celsius))
    )


def board(*, bits: bool = True, sensor: bool = True) -> HeatSamples:
    """Idle at 45 degrees, up to 82 and throttled from second 60 on, back to 45."""
    rise: list[float | None] = [45 + 37 * (1 - math.exp(-s / 40)) for s in range(301)]
    fall: list[float | None] = [45 + 37 * math.exp(-s / 40) for s in range(151)]
    nothing: list[float | None] = [None] * 301
    flags: list[int | None] = [0xE0000 | (0x4 if s >= 60 else 0) for s in range(301)]
    calm: list[int | None] = [0] * 301
    unknown: list[int | None] = [None] * 301
    return HeatSamples(
        idle=phase(
            [45.0] * 151 if sensor else nothing[:151], [IDLE] * 151, calm if bits else unknown
        ),
        stress=phase(
            rise if sensor else nothing,
            [FAST if s < 60 else SLOW for s in range(301)],
            flags if bits else unknown,
        ),
        cool=phase(fall if sensor else nothing[:151], [IDLE] * 151, calm if bits else unknown),
    )


def values(figures: list[ProbeFigure] | tuple[ProbeFigure, ...]) -> dict[str, float]:
    """Figures that are not points of a curve."""
    return {row.name: row.value for row in figures if "second" not in row.conditions}


def test_figures_of_a_board_that_is_throttled() -> None:
    found = values(figures_of(board()))
    assert found["heat_idle_celsius"] == 45
    assert found["heat_most_celsius"] == pytest.approx(82, abs=0.1)
    assert found["heat_time_to_throttle_seconds"] == 60
    assert found["heat_throttled_fraction"] == pytest.approx(241 / 301)
    assert found["heat_peak_clock_hertz"] == FAST
    assert found["heat_steady_clock_hertz"] == SLOW
    # A tenth of the rise is left after 40 * ln 10 seconds.
    assert found["heat_time_to_cool_seconds"] == math.ceil(40 * math.log(10))
    assert found["heat_cooled_fraction"] == pytest.approx(1 - math.exp(-150 / 40), abs=1e-3)


def test_without_bits_the_clock_tells() -> None:
    figures = figures_of(board(bits=False))
    assert values(figures)["heat_time_to_throttle_seconds"] == 60
    told = {row.conditions["told_by"] for row in figures if "throttle" in row.name}
    assert told == {"clock"}


def test_a_governor_that_wakes_up_slowly_is_not_throttling() -> None:
    curves = board(bits=False)
    stress = tuple(
        replace(row, clock_hertz=IDLE if row.seconds < 5 else FAST) for row in curves.stress
    )
    found = values(figures_of(replace(curves, stress=stress)))
    assert found["heat_throttled_fraction"] == 0
    assert "heat_time_to_throttle_seconds" not in found


def test_a_flicker_is_counted_but_does_not_begin_throttling() -> None:
    curves = board()
    stress = tuple(
        replace(row, throttle_bits=0x2 if row.seconds == 30 else 0) for row in curves.stress
    )
    found = values(figures_of(replace(curves, stress=stress)))
    assert found["heat_throttled_fraction"] == pytest.approx(1 / 301)
    assert "heat_time_to_throttle_seconds" not in found


@pytest.mark.parametrize(("bits", "throttled"), [(0x1, 0), (0xF0000, 0), (0x2, 1), (0x8, 1)])
def test_under_voltage_and_history_are_not_heat(bits: int, throttled: int) -> None:
    curves = board()
    stress = tuple(replace(row, throttle_bits=bits) for row in curves.stress)
    found = values(figures_of(replace(curves, stress=stress)))
    assert found["heat_throttled_fraction"] == throttled


def test_without_a_sensor_the_reason_stands_with_the_clock() -> None:
    figures = figures_of(board(sensor=False, bits=False))
    clocks = [row for row in figures if row.name == "heat_steady_clock_hertz"]
    assert [row.conditions["sensor"] for row in clocks] == ["no temperature sensor"]
    assert not any("celsius" in row.name or "cool" in row.name for row in figures)
    assert any(row.name == "heat_clock_hertz" for row in figures)


def test_a_clock_that_never_changes_does_not_tell_of_throttling() -> None:
    samples = parse_samples(VIRTUAL_MACHINE, seconds=1)
    figures = figures_of(HeatSamples(idle=samples, stress=samples, cool=samples))
    assert {row.conditions["clock"] for row in figures if "clock" in row.conditions} == {"cpuinfo"}
    assert values(figures) == {
        "heat_peak_clock_hertz": 2596120000.0,
        "heat_steady_clock_hertz": 2596120000.0,
    }


def test_the_sensor_is_named() -> None:
    figures = figures_of(board())
    assert {row.conditions["sensor"] for row in figures if "sensor" in row.conditions} == {SENSOR}


def test_neither_sensor_nor_clock_is_an_error() -> None:
    samples = phase([None] * 3, [None] * 3, [None] * 3)
    with pytest.raises(RemoteError, match="no temperature sensor, and no clock"):
        figures_of(HeatSamples(idle=samples, stress=samples, cool=samples))


def test_a_sensor_that_goes_away_is_an_error() -> None:
    curves = board()
    gone = tuple(replace(row, celsius=None) for row in curves.cool)
    with pytest.raises(ProbeOutputError, match="disappeared"):
        figures_of(replace(curves, cool=gone))


def test_a_board_that_hardly_warms_has_no_time_to_cool() -> None:
    flat = phase([45.0, 45.5, 46.0], [FAST] * 3, [0, 0, 0])
    found = values(figures_of(HeatSamples(idle=flat, stress=flat, cool=flat)))
    assert "heat_time_to_cool_seconds" not in found
    assert "heat_cooled_fraction" not in found


def test_a_board_that_does_not_cool_in_time_has_only_its_fraction() -> None:
    curves = board()
    found = values(figures_of(replace(curves, cool=curves.cool[:30])))
    assert "heat_time_to_cool_seconds" not in found
    assert found["heat_cooled_fraction"] == pytest.approx(1 - math.exp(-29 / 40), abs=1e-3)


def test_curves_are_thinned_and_no_point_comes_twice() -> None:
    figures = [row for row in figures_of(board()) if row.name == "heat_celsius"]
    assert 100 <= len(figures) <= 126
    points = [(row.conditions["phase"], row.conditions["second"]) for row in figures]
    assert len(set(points)) == len(points)
    assert points[0] == ("idle", "0")


def test_two_samples_in_one_second_are_one_point() -> None:
    late = phase([45.0] * 3, [FAST] * 3, [0] * 3)
    late = (late[0], replace(late[1], seconds=1.2), replace(late[2], seconds=1.9))
    figures = figures_of(HeatSamples(idle=late, stress=late, cool=late))
    points = [row.conditions["second"] for row in figures if row.name == "heat_celsius"]
    assert points == ["0", "1"] * 3


# The answer of the program


def test_reads_the_samples_of_a_virtual_machine() -> None:
    samples = parse_samples(VIRTUAL_MACHINE, seconds=1)
    assert [row.celsius for row in samples] == [None, None]
    assert samples[1].seconds == 1.03
    assert samples[1].clock_hertz == 2596120000.0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "answered 'None'"),
        ({}, "answered"),
        ([], "took 0 samples in 1 s, expected 2"),
        ([VIRTUAL_MACHINE[0]], "took 1 samples"),
        ([VIRTUAL_MACHINE[1], VIRTUAL_MACHINE[0]], "not in the order"),
        ([[0, None, ""], VIRTUAL_MACHINE[1]], "not a sample"),
        ([[0, "45,2", SENSOR, 1e9, "cpufreq", 0], VIRTUAL_MACHINE[1]], "not a sample"),
        ([[0, 45, None, 1e9, "cpufreq", 0], VIRTUAL_MACHINE[1]], "not a sample"),
        ([[0, True, SENSOR, 1e9, "cpufreq", 0], VIRTUAL_MACHINE[1]], "not a sample"),
        ([[-1, 45, SENSOR, 1e9, "cpufreq", 0], VIRTUAL_MACHINE[1]], "is impossible"),
        ([[None, 45, SENSOR, 1e9, "cpufreq", 0], VIRTUAL_MACHINE[1]], "is impossible"),
        ([[0, 45, SENSOR, 0, "cpufreq", 0], VIRTUAL_MACHINE[1]], "is impossible"),
        ([[0, 45000, SENSOR, 1e9, "cpufreq", 0], VIRTUAL_MACHINE[1]], "reads 45000 degrees"),
        ([[0, -274, SENSOR, 1e9, "cpufreq", 0], VIRTUAL_MACHINE[1]], "reads -274 degrees"),
    ],
)
def test_refuses_what_is_no_answer(answer: Any, words: str) -> None:
    with pytest.raises(ProbeOutputError, match=words):
        parse_samples(answer, seconds=1)


# The program on the node


def tree(root: Path) -> Path:
    """A board with two sensors, of which one sleeps, and a clock for every CPU of this machine."""
    for name, kind, temperature in [("0", SENSOR, "48312\n"), ("1", "nvme", "asleep\n")]:
        zone = root / f"sys/class/thermal/thermal_zone{name}"
        zone.mkdir(parents=True)
        (zone / "type").write_text(f"{kind}\n")
        (zone / "temp").write_text(temperature)
    for cpu in range(256):
        place = root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
        place.mkdir(parents=True)
        (place / "scaling_cur_freq").write_text("1800000\n")
    return root


def test_the_program_reads_sensor_and_clock(tmp_path: Path) -> None:
    request = {"do": "sample", "seconds": 0.2, "interval_seconds": 0.1, "root": str(tree(tmp_path))}
    rows = ask_program(LocalRemote(), "heat", request, timeout_seconds=10)
    assert [row[1:] for row in rows] == [[48.312, SENSOR, 1.8e9, "cpufreq", None]] * len(rows)
    assert len(rows) in {2, 3}
    assert 0 <= rows[0][0] < rows[1][0]


def test_the_program_without_sensor_takes_the_clock_of_cpuinfo(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\ncpu MHz\t\t: 2596.120\n\n" * 2)
    request = {"do": "sample", "seconds": 0, "interval_seconds": 1, "root": str(tmp_path)}
    ((_, *values_of),) = ask_program(LocalRemote(), "heat", request, timeout_seconds=10)
    assert values_of == [None, "", 2596120000.0, "cpuinfo", None]


def test_a_file_that_is_no_mailbox_gives_no_bits(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/vcio").write_bytes(b"")
    assert node_program.throttle_bits(str(tmp_path)) is None


def test_the_firmware_is_asked_as_vcgencmd_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/vcio").write_bytes(b"")

    def mailbox(_: int, number: int, message: bytearray, __: bool) -> int:
        assert number == 0xC0086400  # _IOWR(100, 0, char *) where a pointer has 8 bytes
        words = list(node_program.WORDS.unpack(message))
        assert words == [28, 0, 0x30046, 4, 0, 0, 0]
        words[1], words[4], words[5] = 0x80000000, 0x80000004, 0x50005
        message[:] = node_program.WORDS.pack(*words)
        return 0

    monkeypatch.setattr(fcntl, "ioctl", mailbox)
    assert node_program.throttle_bits(str(tmp_path)) == 0x50005


# Runs


def node(samples: list[list[Any]] | None = None) -> Answering:
    def sample(_: tuple[str, ...], request: dict[str, Any]) -> Completed:
        if samples is not None:
            return done(samples)
        count = int(request["seconds"]) + 1
        return done([[float(s), 45.0 + s / 10, SENSOR, FAST, "cpufreq", 0] for s in range(count)])

    alive = {"alive": True, "resident_bytes": 1, "proportional_bytes": 1}
    return Answering(
        {
            "sample": sample,
            "processes": lambda *_: done([alive]),
            "end": lambda *_: done({"killed": 0}),
            "tail": lambda *_: done("stress-ng: error: cannot fork\n"),
        }
    )


def test_quick_mode_stresses_every_core_between_two_idle_phases() -> None:
    remote = node()
    figures = measure(make_site(remote))
    assert [words[0] for words in remote.ran] == ["sample", "sample", "processes", "sample"]
    (started,) = remote.started
    assert started[:6] == ("timeout", "45", "stress-ng", "--cpu", "4", "--cpu-method")
    assert remote.ended == [[101, 7]]
    phases = {row.conditions["phase"] for row in figures if "phase" in row.conditions}
    assert phases == {"idle", "stress", "cool"}


def test_paper_mode_waits_until_the_temperature_is_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    readings = iter([60.0, 55.0, 50.0, 49.9])
    remote = node()
    usual = remote.answers["sample"]

    def sample(words: tuple[str, ...], request: dict[str, Any]) -> Completed:
        if request["seconds"] != 1:
            return usual(words, request)
        celsius = next(readings)
        return done([[float(s), celsius, SENSOR, FAST, "cpufreq", 0] for s in range(2)])

    remote.answers["sample"] = sample
    measure(make_site(remote, mode=ProbeMode.PAPER))
    assert waited == [60.0, 60.0, 60.0]
    requested = json.dumps(heat._PHASES_SECONDS[ProbeMode.PAPER])
    assert requested == '{"idle": 150, "stress": 300, "cool": 150}'


def test_a_temperature_that_never_settles_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    step = iter(range(1000))
    remote = node()
    remote.answers["sample"] = lambda *_: done(
        [[float(s), 40.0 + next(step) % 7, SENSOR, FAST, "cpufreq", 0] for s in range(2)]
    )
    with pytest.raises(RemoteError, match="after 30 min the idle temperature is not stable"):
        measure(make_site(remote, mode=ProbeMode.PAPER))
    assert remote.started == []


def test_a_machine_without_a_sensor_says_so_and_does_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("nothing to wait for"))
    rows = [[float(s), None, "", FAST, "cpuinfo", None] for s in range(301)]
    measure(make_site(node(rows), mode=ProbeMode.PAPER, tell=told.append))
    assert "no temperature sensor: only the clock is recorded" in told


def test_a_stress_that_ended_early_is_an_error() -> None:
    remote = node()
    gone = {"alive": False, "resident_bytes": 0, "proportional_bytes": 0}
    remote.answers["processes"] = lambda *_: done([gone])
    with pytest.raises(RemoteError, match="stress-ng ended too early: stress-ng: error: cannot"):
        measure(make_site(remote))
    assert remote.ended == [[101, 7]]


def test_a_sampler_that_hangs_leaves_no_stress() -> None:
    remote = node()
    usual = remote.answers["sample"]

    def sample(words: tuple[str, ...], request: dict[str, Any]) -> Completed:
        if remote.started:
            raise RemoteTimeoutError("it did not end")
        return usual(words, request)

    remote.answers["sample"] = sample
    with pytest.raises(RemoteTimeoutError):
        measure(make_site(remote))
    assert remote.ended == [[101, 7]]


def test_says_what_it_needs() -> None:
    assert {tool.program for tool in PROBE.tools} == {"stress-ng", "python3"}
