import random
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.builders import make_energy

from boardcluster.records import EnergyMethod
from boardcluster.units import (
    GIB,
    KIB,
    MIB,
    TIB,
    format_bytes,
    format_bytes_exact,
    format_count,
    format_energy,
    format_rate,
    format_rate_exact,
    format_seconds,
    parse_duration,
    parse_rate,
    parse_size,
)

SIZE_SCALES = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": KIB,
    "MiB": MIB,
    "GiB": GIB,
    "TiB": TIB,
}
RATE_SCALES = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}


def _numbers(count: int = 300) -> list[int]:
    """Small, round, power-of-two-like and arbitrary numbers, the same in every run."""
    rng = random.Random(20260)
    near_limits = [
        scale * factor + delta
        for scale in (*SIZE_SCALES.values(),)
        for factor in (1, 999, 1000, 1023, 1024)
        for delta in (-1, 0, 1)
    ]
    arbitrary = [rng.randrange(10 ** rng.randrange(1, 16)) for _ in range(count)]
    return [0, *near_limits, *arbitrary]


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("256 MB", 256_000_000),
        ("4 GiB", 4_294_967_296),
        ("64KB", 64_000),
        ("64 kB", 64_000),
        ("64kib", 65_536),
        ("256mb", 256_000_000),
        ("1.5 GiB", 1_610_612_736),
        ("0.1 KB", 100),
        ("  7 TiB ", 7 * 2**40),
        ("1024", 1024),
        ("0 B", 0),
        (1024, 1024),
        (0, 0),
    ],
)
def test_sizes_are_read_exactly(text: str | int, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("unit", SIZE_SCALES)
def test_each_size_unit_scales_whole_and_decimal_numbers(unit: str) -> None:
    rng = random.Random(unit)
    for _ in range(50):
        thousandths = rng.randrange(10**6)
        exact = Fraction(thousandths, 1000) * SIZE_SCALES[unit]
        text = f"{thousandths // 1000}.{thousandths % 1000:03d} {unit}"
        if exact.denominator == 1:
            assert parse_size(text) == exact
        else:
            with pytest.raises(ValueError, match="not a whole number of bytes"):
                parse_size(text)


@pytest.mark.parametrize(
    "text",
    ["", " ", "4 XB", "GB", "-1 GB", "1,5 GB", "1e9", "1 Mb", "64 b", "4 GiB/s", "1 2 MB", "٣ MB",
     "0x10", "4 GiBB", ".5 GB", "nan", "9" * 5000, -1, True, -(10**30)],
)  # fmt: skip
def test_what_is_no_size_is_refused_with_the_allowed_units(text: str | int) -> None:
    with pytest.raises(ValueError, match="is not a size; allowed: a number and B, KB") as caught:
        parse_size(text)
    assert len(str(caught.value)) < 200
    for unit in SIZE_SCALES:
        assert unit in str(caught.value)


def test_a_wrong_size_is_shown() -> None:
    with pytest.raises(ValueError, match=r'^"4 XB" is not a size; allowed: .* e\.g\. "4 GiB"$'):
        parse_size("4 XB")


@pytest.mark.parametrize(
    ("text", "bits_per_second"),
    [
        ("1 Gbit/s", 10**9),
        ("100 Mbit/s", 10**8),
        ("2.5 Gbit/s", 2_500_000_000),
        ("100mbit/s", 10**8),
        ("64 kbit/s", 64_000),
        ("9600 bit/s", 9_600),
    ],
)
def test_rates_are_read_exactly(text: str, bits_per_second: int) -> None:
    assert parse_rate(text) == bits_per_second


@pytest.mark.parametrize("text", ["", "1000", "1 Gbps", "1 GB/s", "-1 Gbit/s", "Gbit/s", "1 Gbit"])
def test_what_is_no_rate_is_refused_with_the_allowed_units(text: str) -> None:
    with pytest.raises(ValueError, match="is not a rate; allowed: a number and bit/s") as caught:
        parse_rate(text)
    for unit in RATE_SCALES:
        assert unit in str(caught.value)


def test_a_fraction_of_a_bit_per_second_is_refused() -> None:
    with pytest.raises(ValueError, match="not a whole number of bits per second"):
        parse_rate("0.5 bit/s")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90 s", 90.0),
        ("30 min", 1800.0),
        ("1.5 h", 5400.0),
        ("0.1 s", 0.1),
        ("0.3 min", 18.0),
        (" 2min ", 120.0),
        ("90", 90.0),
        ("0 s", 0.0),
        (90, 90.0),
        (0.5, 0.5),
        (0, 0.0),
    ],
)
def test_durations_are_read_to_the_nearest_float(text: str | float, seconds: float) -> None:
    read = parse_duration(text)
    assert read == seconds
    assert isinstance(read, float)


@pytest.mark.parametrize(
    "text",
    ["", "min", "1 m", "30 minutes", "1 H", "-1 s", "1 h 30 min", "1e3", "inf", "9" * 5000, -1,
     -0.5, True, float("nan"), float("inf"), -(10**30), 10**400, -(10**400)],
)  # fmt: skip
def test_what_is_no_duration_is_refused_with_the_allowed_units(text: str | float) -> None:
    words = "is not a duration; allowed: a number and s, min, h, e.g."
    with pytest.raises(ValueError, match=words) as caught:
        parse_duration(text)
    assert len(str(caught.value)) < 200


def test_exact_sizes_and_rates_come_back() -> None:
    for number in _numbers():
        assert parse_size(format_bytes_exact(number)) == number
        assert parse_rate(format_rate_exact(number)) == number


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (4 * GIB, "4 GiB"),
        (3776 * MIB, "3776 MiB"),
        (256_000_000, "256 MB"),
        (1_024_000_000, "1024 MB"),
        (1_234_567, "1234567 B"),
    ],
)
def test_exact_sizes_use_the_largest_unit_without_a_fraction(size_bytes: int, text: str) -> None:
    assert format_bytes_exact(size_bytes) == text


@pytest.mark.parametrize("binary", [False, True])
def test_a_formatted_size_is_within_half_a_percent_and_short(binary: bool) -> None:
    for number in _numbers():
        text = format_bytes(number, binary=binary)
        digits, unit = text.split()
        assert abs(Fraction(digits) * SIZE_SCALES[unit] - number) <= Fraction(number) / 200
        assert len(digits) <= 4 or unit in ("TB", "TiB")
        assert binary == ("i" in unit) or unit == "B"


@pytest.mark.parametrize(
    ("size_bytes", "decimal", "binary"),
    [
        (0, "0 B", "0 B"),
        (999, "999 B", "999 B"),
        (999.6, "1 KB", "1000 B"),
        (1023.7, "1.02 KB", "1 KiB"),
        (999_700, "1 MB", "976 KiB"),
        (31_204_567, "31.2 MB", "29.8 MiB"),
        (256_000_000, "256 MB", "244 MiB"),
        (-1_500_000, "-1.5 MB", "-1.43 MiB"),
        (5 * 10**15, "5000 TB", "4547 TiB"),
    ],
)
def test_sizes_are_written_for_people(size_bytes: float, decimal: str, binary: str) -> None:
    assert format_bytes(size_bytes) == decimal
    assert format_bytes(size_bytes, binary=True) == binary


@pytest.mark.parametrize(
    ("bits_per_second", "text"),
    [
        (10**9, "1 Gbit/s"),
        (941_300_000, "941 Mbit/s"),
        (999_999_999, "1 Gbit/s"),
        (12.4, "12.4 bit/s"),
        (0, "0 bit/s"),
    ],
)
def test_rates_are_written_for_people(bits_per_second: float, text: str) -> None:
    assert format_rate(bits_per_second) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0032, "3.2 ms"),
        (0.999, "999 ms"),
        (0.9996, "1 s"),
        (1.5, "1.5 s"),
        (42.14, "42.1 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (277.4, "4 min 37 s"),
        (3599.6, "1 h 00 min 00 s"),
        (3725, "1 h 02 min 05 s"),
        (360_000, "100 h 00 min 00 s"),
        (-42.14, "-42.1 s"),
    ],
)
def test_durations_are_written_for_people(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_a_formatted_duration_never_shows_sixty_of_anything_but_hours() -> None:
    rng = random.Random(7)
    near = [60 * factor - delta for factor in (1, 2, 60, 120) for delta in (0.6, 0.5, 0.4, 0.05, 0)]
    for seconds in (*near, *(rng.random() * 10 ** rng.randrange(-3, 6) for _ in range(2000))):
        assert re.search(r"\b60 (s|min)|\b1000 ms", format_seconds(seconds)) is None


def test_an_energy_always_says_where_it_comes_from() -> None:
    energy = make_energy(412.3)
    assert format_energy(energy) == "412.3 J metered, level 1"
    modelled = replace(energy, energy_joules=52_345.6, method=EnergyMethod.MODELLED, level=0)
    assert format_energy(modelled) == "52.35 kJ modelled"
    gone = replace(energy, energy_joules=None, reason="plug: no answer from 12 s on")
    assert format_energy(gone) == "none: plug: no answer from 12 s on"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs"), (336_777, "336,777 runs")]
)
def test_a_noun_follows_its_number(number: int, text: str) -> None:
    assert format_count(number, "run") == text


def test_a_noun_may_have_a_plural_of_its_own() -> None:
    assert format_count(1, "copy", "copies") == "1 copy"
    assert format_count(2, "copy", "copies") == "2 copies"
