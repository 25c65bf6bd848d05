"""The counts of both engines, against slow definitions and against what Hadoop printed."""

import math
from fractions import Fraction

import pytest

from boardcluster.workloads.pi import points
from boardcluster.workloads.pi.points import HitRange, halton_inside, likely_inside, random_inside


def mirrored(base: int, number: int) -> Fraction:
    """Return the radical inverse by its definition."""
    value, weight = Fraction(0), Fraction(1)
    while number:
        number, digit = divmod(number, base)
        weight /= base
        value += digit * weight
    return value


def as_hadoop_adds(first: int, count: int) -> tuple[int, list[float]]:
    """Do what HaltonSequence does, sum by sum; return the points inside and values in base 3."""
    bases, places = (2, 3), (63, 40)
    weights = [[0.0] * place for place in places]
    digits = [[0] * place for place in places]
    point = [0.0, 0.0]
    for axis, base in enumerate(bases):
        rest, weight = first, 1.0
        for place in range(places[axis]):
            weight /= base
            weights[axis][place] = weight
            rest, digits[axis][place] = divmod(rest, base)
            point[axis] += digits[axis][place] * weight
    inside, values = 0, []
    for _ in range(count):
        for axis, base in enumerate(bases):
            for place in range(places[axis]):
                digits[axis][place] += 1
                point[axis] += weights[axis][place]
                if digits[axis][place] < base:
                    break
                digits[axis][place] = 0
                point[axis] -= weights[axis][place - 1] if place else 1.0
        x, y = point[0] - 0.5, point[1] - 0.5
        inside += not x * x + y * y > 0.25
        values.append(point[1])
    return inside, values


def as_spark_draws(partitions: int, samples: int, seed: int) -> int:
    """Count with whole numbers of Python."""
    mask, golden = (1 << 64) - 1, 0x9E3779B97F4A7C15

    def mix(word: int) -> int:
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & mask
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB & mask
        return word ^ (word >> 31)

    inside = 0
    for partition in range(partitions):
        state = mix((seed + (partition + 1) * golden) & mask)
        for _ in range(samples):
            draws = []
            for _ in range(2):
                state = (state + golden) & mask
                draws.append((mix(state) >> 11) * 2.0**-53)
            inside += draws[0] * draws[0] + draws[1] * draws[1] <= 1.0
    return inside


@pytest.mark.parametrize(
    ("maps", "samples", "estimate"),
    [
        (10, 100, "3.148"),  # what `hadoop jar hadoop-mapreduce-examples.jar pi` prints
        (10, 1000, "3.1408"),
        (16, 1000, "3.1425"),
        (16, 100_000, "3.141575"),
        (3, 200_000, "3.14164666666666666667"),
    ],
)
def test_counts_are_those_of_hadoop(maps: int, samples: int, estimate: str) -> None:
    inside = halton_inside(maps, samples)

    assert inside.least == inside.most
    assert inside.total == maps * samples
    assert abs(Fraction(4 * inside.least, inside.total) - Fraction(estimate)) < Fraction(1, 10**19)


@pytest.mark.parametrize("base", [2, 3])
@pytest.mark.parametrize("first", [1, 59_048, 65_535, 3**20 - 7, 2**31])
def test_inverses_are_those_of_the_definition(base: int, first: int) -> None:
    values = points._radical_inverse(base, first, 20)

    for number, value in enumerate(values, start=first):
        assert abs(Fraction(float(value)) - mirrored(base, number)) <= Fraction(1, 2**52)


def test_inverses_go_on_over_the_ends_of_the_table() -> None:
    whole = points._radical_inverse(3, 1, 200_000)

    assert len(set(whole.tolist())) == 200_000
    for number in (1, 59_048, 59_049, 59_050, 177_147, 200_000):
        assert whole[number - 1] == pytest.approx(float(mirrored(3, number)), abs=2e-16)


@pytest.mark.parametrize(("first", "count"), [(0, 3000), (1_000_000, 3000), (177_000, 20_000)])
def test_hadoops_rounding_errors_are_within_the_bound(first: int, count: int) -> None:
    _, values = as_hadoop_adds(first, count)

    worst = max(
        abs(value - float(mirrored(3, number)))
        for number, value in enumerate(values, start=first + 1)
    )
    assert 0 < worst < points._halton_error(count)


def test_counts_are_those_of_hadoops_sums() -> None:
    inside = sum(as_hadoop_adds(number * 2500, 2500)[0] for number in range(3))

    assert halton_inside(3, 2500) == HitRange(least=inside, most=inside, total=7500)


def test_doubtful_points_widen_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = halton_inside(2, 1000)
    monkeypatch.setattr(points, "_halton_error", lambda _: 0.01)
    wide = halton_inside(2, 1000)

    # The band |r^2 - 1/4| <= 0.01 has the area 0.02 pi, a part of it beyond the square.
    margin = exact.least - wide.least
    assert 0.5 < margin / (2000 * 0.02 * math.pi) < 1
    assert wide.most - exact.most == margin


@pytest.mark.parametrize(
    ("partitions", "samples", "seed"),
    [(1, 1, 0), (3, 700, 1), (2, 1000, 2**63 - 1), (1, 70_000, 5)],
)
def test_random_counts_are_those_of_the_definition(
    partitions: int, samples: int, seed: int
) -> None:
    inside = as_spark_draws(partitions, samples, seed)

    assert random_inside(partitions, samples, seed) == HitRange(
        least=inside, most=inside, total=partitions * samples
    )


def test_another_seed_draws_other_points() -> None:
    assert len({random_inside(2, 5000, seed).least for seed in range(6)}) > 1


def test_memory_does_not_grow_with_the_number_of_points(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = halton_inside(1, 5000), random_inside(1, 5000, 3)
    monkeypatch.setattr(points, "_CHUNK_POINTS", 64)
    points._steps.cache_clear()
    try:
        assert (halton_inside(1, 5000), random_inside(1, 5000, 3)) == whole
    finally:
        points._steps.cache_clear()


def test_likely_counts_are_four_standard_errors_around_pi() -> None:
    likely = likely_inside(10_000)  # sqrt(10000 * 0.7854 * 0.2146) = 41.05

    assert (likely.least, likely.most) == (7690, 8018)
    assert likely_inside(1) == HitRange(least=0, most=1, total=1)


def test_counts_are_said_as_they_are() -> None:
    assert str(HitRange(least=3, most=3, total=4)) == "inside 3 of 4"
    assert str(HitRange(least=2, most=3, total=4)) == "inside 2 to 3 of 4"
