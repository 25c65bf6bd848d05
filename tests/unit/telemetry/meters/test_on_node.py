"""Meters that are read on the node: RAPL, the Raspberry Pi's PMIC, chips on I2C."""

import fcntl
import os
import subprocess
import sys
import time
from importlib import resources

import pytest
from tests.unit.telemetry.meters.serving import RECORDED

from boardcluster.errors import MeterError, RemoteTimeoutError, SpecError
from boardcluster.records import MeterSpec
from boardcluster.remote.fake import FakeRemote
from boardcluster.telemetry.metering import open_meter
from boardcluster.telemetry.meters import ina219, ina226, ina260
from boardcluster.telemetry.meters.base import Batched, Meter
from boardcluster.telemetry.meters.rapl import read_counts
from boardcluster.telemetry.meters.raspberry_pi_pmic import read_rails
from boardcluster.telemetry.meters.wire import i2c_node
from boardcluster.telemetry.meters.wire.ina import parse_readings, signed

PMIC = (RECORDED / "pmic_read_adc.txt").read_text()
COUNTS = [f"/sys/class/powercap/intel-rapl:0/{n}" for n in ("energy_uj", "max_energy_range_uj")]


class HangingRemote(FakeRemote):
    def run(self, argv, **_):  # type: ignore[no-untyped-def]
        raise RemoteTimeoutError("pi0: command did not end within 5 s")


def meter_on(remote: FakeRemote, kind: str, **options: str) -> Meter:
    spec = MeterSpec(name="m", kind=kind, nodes=("pi0",), options=options)
    return open_meter(spec, {"pi0": remote})


# RAPL


def test_rapl_counts_joules_and_says_where_it_wraps() -> None:
    remote = FakeRemote()
    remote.tell("cat", *COUNTS, stdout="47531628172\n262143328850\n")
    reading = meter_on(remote, "rapl").read()
    assert reading.watts is None
    assert reading.energy_joules == pytest.approx(47531.628172)
    assert reading.wraps_at_joules == pytest.approx(262143.32885)


@pytest.mark.parametrize(
    "text", ["", "1\n", "a\nb\n", "-1\n5\n", "9\n5\n", "1\n0\n", "\u0661\n5\n", "1\n2\n3\n"]
)
def test_rapl_that_gives_no_counts_is_said(text: str) -> None:
    with pytest.raises(MeterError, match="RAPL"):
        read_counts(text, where="pi0")


def test_rapl_without_the_right_or_the_hardware_is_said() -> None:
    remote = FakeRemote()
    remote.tell("cat", *COUNTS, returncode=1)
    with pytest.raises(MeterError, match="there is no /sys/class/powercap/intel-rapl:0"):
        meter_on(remote, "rapl").read()
    with pytest.raises(MeterError, match="did not end within"):
        meter_on(HangingRemote(), "rapl").read()
    with pytest.raises(SpecError, match="a folder of /sys/class/powercap"):
        meter_on(remote, "rapl", zone="../../etc")


# PMIC


def test_the_pmic_sums_the_rails_that_have_both() -> None:
    expected = sum(
        volts * amperes
        for volts, amperes in [
            (3.710912, 0.1024727),
            (3.309105, 0.1083282),
            (1.800731, 0.1571247),
            (1.104394, 0.00585558),
            (1.108058, 0.2410547),
            (0.8040285, 0.3142495),
            (0.9065925, 1.4288),
            (3.318678, 0.00006105),
            (0.798827, 0.0035409),
            (5.0786, 0.0200244),
        ]
    )
    assert expected == pytest.approx(2.948, abs=0.001)
    remote = FakeRemote()
    remote.tell("vcgencmd", "pmic_read_adc", stdout=PMIC)
    assert meter_on(remote, "raspberry-pi-pmic").read().watts == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "printed no currents"),
        ("EXT5V_V volt(24)=5.05716000V\n", "printed no currents"),
        (PMIC[:300], "a line that is not a value|no voltage for"),
        (PMIC.replace("VDD_CORE_V volt", "VDD_KERN_V volt"), "no voltage for VDD_CORE"),
        (PMIC.replace("0.10247270A", "0,10247270A"), "a line that is not a value: .*0,102"),
        (PMIC.replace("0.10247270A", "-nanA"), "a line that is not a value"),
    ],
)
def test_a_garbled_pmic_is_said(text: str, words: str) -> None:
    with pytest.raises(MeterError, match=words):
        read_rails(text, where="pi0")


def test_another_board_has_no_pmic() -> None:
    remote = FakeRemote()
    remote.tell("vcgencmd", "pmic_read_adc", stdout='error=1 error_msg="Command not registered"\n')
    with pytest.raises(MeterError, match="Command not registered"):
        meter_on(remote, "raspberry-pi-pmic").read()


# Texas Instruments' chips: the worked examples of their data sheets


def test_ina219_as_in_its_data_sheet() -> None:
    # SBOS448F, table 3: 10 A over 2 milliohm at 11.98 V; shunt 07D0h, bus 5D98h, 119.8 W
    assert ina219.watts_of(0x07D0, 0x5D98, 0.002) == pytest.approx(119.8)
    with pytest.raises(ValueError, match="overflow"):
        ina219.watts_of(0x07D0, 0x5D99, 0.002)
    with pytest.raises(ValueError, match="end of its range"):
        ina219.watts_of(0x8300, 0x5D98, 0.1)  # -320 mV


def test_ina226_as_in_its_data_sheet() -> None:
    # SBOS547, table 1: 10 A over 2 milliohm at 11.98 V; shunt 1F40h, bus 2570h, 119.82 W
    assert ina226.watts_of(0x1F40, 0x2570, 0.002) == pytest.approx(119.8)
    with pytest.raises(ValueError, match="end of its range"):
        ina226.watts_of(0x7FFF, 0x2570, 0.002)


def test_ina260_by_its_register_map() -> None:
    # SBOS656C, 8.6: 1.25 mA and 1.25 mV a bit; 10 A = 1F40h, 11.98 V = 2570h
    assert ina260.watts_of(0x1F40, 0x2570, 0.0) == pytest.approx(119.8)
    assert ina260.watts_of(0xFFFF, 0x2570, 0.0) < 0
    assert (signed(0x7FFF), signed(0x8000), signed(0xFFFF)) == (32767, -32768, -1)


def program(*rows: str, identity: str = "id 5449 2260", end: str = "end 103.0") -> str:
    return "\n".join([identity, *rows, end]) + "\n"


def test_readings_of_a_chip_are_put_on_the_drivers_clock() -> None:
    text = program("100.0 1f40 2570", "102.0 0000 2570")
    found = parse_readings(text, ina226.CHIP, shunt_ohms=0.002, ended_seconds=503.0, where="pi0")
    assert found == [(500.0, pytest.approx(119.8)), (502.0, 0.0)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no readings"),
        ("id 5449 2260\n", "no readings"),
        (program(), "no readings"),
        (program("100.0 1f40"), "no readings"),
        (program("100.0 zzzz 2570"), "no readings"),
        ("id 5449 2260\n100.0 1f40 2570\n", "no readings"),
        (program("100.0 1f40 2570", identity="id 5449 2270"), "not an INA226: it says 5449 2270"),
        (program("100.0 7fff 2570"), "end of its range"),
    ],
)
def test_a_garbled_chip_is_said(text: str, words: str) -> None:
    with pytest.raises(MeterError, match=words):
        parse_readings(text, ina226.CHIP, shunt_ohms=0.1, ended_seconds=1.0, where="pi0")


def test_a_chip_is_read_ten_times_a_second_and_averaged() -> None:
    remote = FakeRemote()
    rows = [f"{100 + index / 10} {0x1F40 if index < 10 else 0:04x} 2570" for index in range(30)]
    argv = ("python3", "-I", "-S", "-", "1", "64", "254,255", "1,2", "30", "0.1")
    remote.tell(*argv, stdout=program(*rows))
    meter = meter_on(remote, "ina226", shunt_ohms="0.002")
    assert isinstance(meter, Batched)
    began = time.monotonic()
    readings = meter.read_for(3.0, interval_seconds=1.0)
    assert [row.watts for row in readings] == [pytest.approx(119.8), 0.0, 0.0]
    assert readings[0].seconds == pytest.approx(began - 2.55, abs=0.1)


def test_a_chip_that_does_not_answer_is_said() -> None:
    remote = FakeRemote()
    argv = ("python3", "-I", "-S", "-", "1", "65", "", "1,2", "3", "0.1")
    remote.tell(*argv, returncode=1)
    with pytest.raises(MeterError, match="INA219 at 0x41 of bus 1 cannot be read"):
        meter_on(remote, "ina219", address="0x41").read()
    for options in ({"address": "0x99"}, {"bus": "one"}, {"shunt_ohms": "0"}):
        with pytest.raises(SpecError, match="allowed"):
            meter_on(remote, "ina219", **options)


def test_the_program_runs_alone_and_fails_in_words() -> None:
    text = resources.files(i2c_node.__package__).joinpath("i2c_node.py").read_bytes()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-", "250", "64", "", "1,2", "1", "0.1"],
        input=text,
        capture_output=True,
        check=False,
        timeout=20,
    )
    assert done.returncode == 1
    assert done.stderr.decode().strip().endswith("'/dev/i2c-250'")


def test_the_program_reads_registers_high_byte_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    registers = {0xFE: b"\x54\x49", 0x01: b"\x1f\x40", 0x02: b"\x25\x70"}
    asked: list[int] = []
    monkeypatch.setattr(os, "open", lambda path, flags: {"/dev/i2c-1": 7}[path])
    monkeypatch.setattr(os, "close", lambda device: asked.append(-device))
    monkeypatch.setattr(os, "write", lambda device, data: asked.append(data[0]))
    monkeypatch.setattr(os, "read", lambda device, size: registers[asked[-1]][:size])
    monkeypatch.setattr(fcntl, "ioctl", lambda *words: asked.append(words[2]))
    i2c_node.main(["1", "64", "254", "1,2", "2", "0.001"])
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "id 5449"
    assert [row.split()[1:] for row in rows[1:3]] == [["1f40", "2570"]] * 2
    assert rows[3].startswith("end ")
    assert asked == [64, 254, 1, 2, 1, 2, -7]


def test_a_node_that_is_not_there_is_said() -> None:
    spec = MeterSpec(name="m", kind="rapl", nodes=("pi9",))
    with pytest.raises(SpecError, match="none of its nodes exists: pi9"):
        open_meter(spec, {"pi0": FakeRemote()})
