import pytest
from tests.unit.telemetry.meters.serving import Answer, Request, opened, recorded, web

from boardcluster.errors import MeterError

DEVICE = recorded("tasmota")


def test_watts_and_kilowatt_hours() -> None:
    with web(lambda _: Answer.of(DEVICE["status8"])) as server:
        reading = opened("tasmota", url=server.url).read()
        assert server.requests[0].path == "/cm?cmnd=Status%208"
    assert reading.watts == 26
    assert reading.energy_joules == pytest.approx(10_800)


def test_a_device_with_two_meters_gives_arrays() -> None:
    energy = {"StatusSNS": {"ENERGY": {"Total": [1.0, 2.0], "Power": [3, 4]}}}
    with web(lambda _: Answer.of(energy)) as server:
        assert opened("tasmota", url=server.url, channel="1").read().watts == 4
        with pytest.raises(MeterError, match="no meter 2"):
            opened("tasmota", url=server.url, channel="2").read()


def test_one_count_of_several_meters_is_not_that_of_the_chosen_one() -> None:
    """Without SetOption129 the device has the power of each, and one total of all."""
    energy = {"StatusSNS": {"ENERGY": {"Total": 3.0, "Power": [3, 4]}}}
    with web(lambda _: Answer.of(energy)) as server:
        reading = opened("tasmota", url=server.url, channel="1").read()
    assert (reading.watts, reading.energy_joules) == (4, None)


def test_the_password_is_sent_but_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUG", "correct horse")

    def answer(request: Request) -> Answer:
        if request.path != "/cm?cmnd=Status%208&user=admin&password=correct+horse":
            return Answer.of(DEVICE["warning"], status=401)
        return Answer.of(DEVICE["status8"])

    with web(answer) as server:
        assert opened("tasmota", url=server.url, password_variable="PLUG").read().watts == 26
        with pytest.raises(MeterError, match="requires a password"):
            opened("tasmota", url=server.url).read()
    with web(lambda _: Answer(b"{", status=500)) as server:
        with pytest.raises(MeterError, match=r"Status%208 answered with status 500") as caught:
            opened("tasmota", url=server.url, password_variable="PLUG").read()
        assert "horse" not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (DEVICE["no_energy"], "no energy sensor"),
        (DEVICE["warning"], "requires a password"),
        ({"Command": "Unknown"}, "no energy sensor, or is not a Tasmota device"),
        ({"StatusSNS": []}, "no energy sensor"),
        ({"StatusSNS": {"ENERGY": {"Total": 1, "Power": "26 W"}}}, "no number for Power: '26 W'"),
        ({"StatusSNS": {"ENERGY": {"Power": 26}}}, "no number for Total"),
    ],
)
def test_what_is_no_reading_is_said(answer: object, words: str) -> None:
    with web(lambda _: Answer.of(answer)) as server, pytest.raises(MeterError, match=words):
        opened("tasmota", url=server.url).read()
