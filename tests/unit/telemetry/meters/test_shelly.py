import hashlib
import re
import time
from pathlib import Path

import pytest
from tests.unit.telemetry.meters.serving import Answer, Request, free_port, opened, recorded, web

from boardcluster.errors import MeterError, SpecError

DEVICE = recorded("shelly")


def first(request: Request) -> Answer:
    return Answer.of(DEVICE["gen1_about" if request.path == "/shelly" else "gen1_status"])


def second(request: Request) -> Answer:
    if request.path == "/shelly":
        return Answer.of(DEVICE["gen2_about"])
    assert request.path == "/rpc/Switch.GetStatus?id=0"
    return Answer.of(DEVICE["gen2_switch"])


def test_first_generation_counts_watt_minutes() -> None:
    with web(first) as server:
        began = time.monotonic()
        reading = opened("shelly", url=server.url).read()
        assert reading.watts == 4711.12
        assert reading.energy_joules == 6472513 * 60
        assert began <= reading.seconds <= time.monotonic()


def test_later_generations_count_watt_hours_and_are_asked_once_what_they_are() -> None:
    with web(second) as server:
        meter = opened("shelly", url=server.url)
        assert meter.read().watts == 47.11
        assert meter.read().energy_joules == pytest.approx(5.125 * 3600)
        assert [row.path for row in server.requests].count("/shelly") == 1
        meter.close()


def test_a_mini_is_asked_as_pm1() -> None:
    def answer(request: Request) -> Answer:
        if request.path == "/shelly":
            return Answer.of(DEVICE["gen2_about"])
        assert request.path == "/rpc/PM1.GetStatus?id=0"
        return Answer.of(DEVICE["gen2_plug"])

    with web(answer) as server:
        assert opened("shelly", url=server.url, component="pm1").read().watts == 4.1


def test_negative_power_is_handed_on_for_the_analysis_to_judge() -> None:
    def answer(request: Request) -> Answer:
        if request.path == "/shelly":
            return Answer.of(DEVICE["gen2_about"])
        return Answer.of({**DEVICE["gen2_plug"], "apower": -4.1})

    with web(answer) as server:
        assert opened("shelly", url=server.url).read().watts == -4.1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(b"<html>hello</html>"), "not answer with JSON"),
        (Answer(b'{"gen": 2'), "not answer with JSON"),
        (Answer(b"[" * 30_000), "not answer with JSON"),
        (Answer(b"[1]"), "not answer with a JSON object"),
        (Answer(b""), "not answer with JSON"),
        (Answer.of({"name": "a router"}), "is not a Shelly"),
        (Answer(b"not found", status=404), "status 404"),
        (Answer(b"no", status=401), "requires a password"),
        (Answer(b"x" * 200, drip_seconds=0.02), "did not answer within 2 s"),
    ],
)
def test_what_is_no_shelly_is_said(answer: Answer, words: str) -> None:
    with web(lambda _: answer) as server, pytest.raises(MeterError, match=words):
        opened("shelly", url=server.url).read()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"id": 0, "output": True}, "has no meter"),
        ({"apower": "4.1", "aenergy": {"total": 1}}, "no number for apower: '4.1'"),
        ({"apower": None, "aenergy": {"total": 1}}, "no number for apower"),
        ({"apower": 1.0, "aenergy": {}}, "no number for total"),
        ({"apower": 1, "aenergy": {"total": 1}, "errors": ["power_meter_failure"]}, "a failure"),
    ],
)
def test_a_later_one_without_a_reading_is_said(status: dict[str, object], words: str) -> None:
    def answer(request: Request) -> Answer:
        return Answer.of(DEVICE["gen2_about"] if request.path == "/shelly" else status)

    with web(answer) as server, pytest.raises(MeterError, match=words):
        opened("shelly", url=server.url).read()


@pytest.mark.parametrize(
    ("meters", "words"),
    [([], "no meter 0"), ([{"power": 1, "is_valid": False, "total": 0}], "not valid"), (7, "no")],
)
def test_a_first_one_without_a_reading_is_said(meters: object, words: str) -> None:
    def answer(request: Request) -> Answer:
        about = request.path == "/shelly"
        return Answer.of(DEVICE["gen1_about"] if about else {"meters": meters})

    with web(answer) as server, pytest.raises(MeterError, match=words):
        opened("shelly", url=server.url).read()


def test_one_that_is_off_is_said() -> None:
    with pytest.raises(MeterError, match=r"127\.0\.0\.1:\d+ cannot be read: Connection refused"):
        opened("shelly", url=f"http://127.0.0.1:{free_port()}").read()


def test_one_that_hangs_is_given_up_after_two_seconds() -> None:
    def answer(request: Request) -> Answer:
        time.sleep(6)
        return Answer()

    with web(answer) as server:
        began = time.monotonic()
        with pytest.raises(MeterError, match="did not answer within 2 s"):
            opened("shelly", url=server.url).read()
        assert time.monotonic() - began < 5


def test_a_password_is_proved_by_digest_and_never_sent(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("correct horse\n")
    secret.chmod(0o600)
    challenge = (
        'Digest qop="auth", realm="shellypro1pm-30c6f78bb4d8", nonce="62ba9f8f", algorithm=SHA-256'
    )

    def answer(request: Request) -> Answer:
        sent = request.headers.get("Authorization")
        if sent is None:
            return Answer(status=401, headers={"WWW-Authenticate": challenge})
        words = dict(re.findall(r'(\w+)="?([^",]+)', sent))

        def digest(text: str) -> str:
            return hashlib.sha256(text.encode()).hexdigest()

        one = digest("admin:shellypro1pm-30c6f78bb4d8:correct horse")
        two = digest(f"GET:{request.path}")
        whole = digest(f"{one}:62ba9f8f:{words['nc']}:{words['cnonce']}:auth:{two}")
        return second(request) if words["response"] == whole else Answer(status=401)

    with web(answer) as server:
        assert opened("shelly", url=server.url, password_file=str(secret)).read().watts == 47.11
        assert all("correct" not in str(row.headers) + row.path for row in server.requests)
        secret.write_text("wrong")
        with pytest.raises(MeterError, match="rejects this password") as caught:
            opened("shelly", url=server.url, password_file=str(secret)).read()
        assert "wrong" not in str(caught.value)


def test_a_first_one_takes_a_basic_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUG", "horse")

    def answer(request: Request) -> Answer:
        if request.headers.get("Authorization") != "Basic YWRtaW46aG9yc2U=":
            return Answer(status=401, headers={"WWW-Authenticate": 'Basic realm="shelly"'})
        return first(request)

    with web(answer) as server:
        meter = opened("shelly", url=server.url, password_variable="PLUG")
        assert meter.read().watts == 4711.12


def test_a_secret_that_others_may_read_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("horse")
    secret.chmod(0o644)
    with pytest.raises(MeterError, match="others may read it"):
        opened("shelly", url="http://plug", password_file=str(secret))
    with pytest.raises(MeterError, match="No such file"):
        opened("shelly", url="http://plug", password_file=str(tmp_path / "none"))
    with pytest.raises(MeterError, match="PLUG_X is not set"):
        opened("shelly", url="http://plug", password_variable="PLUG_X")


@pytest.mark.parametrize(
    "url",
    [
        *("plug", "https://plug", "http://", "http://anna:horse@plug", "http://plug:99999"),
        *("http://[fe80::1", "http://anna:horse@[plug]", "http://plug\u2100"),
    ],
)
def test_a_wrong_url_is_said_without_the_secret_in_it(url: str) -> None:
    with pytest.raises(SpecError, match="allowed: http://HOST") as caught:
        opened("shelly", url=url)
    assert "horse" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"channel": "one"}, "whole number"), ({"component": "light"}, "pm1, switch")],
)
def test_wrong_options_are_said(options: dict[str, str], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        opened("shelly", url="http://plug", **options)
