"""What sysbench, 7-Zip and OpenSSL print, as Debian 12's versions did, and what is no such output.

The files in ``recordings/`` are real: sysbench 1.0.20, 7-Zip 26.02 (p7zip-full), OpenSSL 3.0.19;
blanks at the ends of lines are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.probes.answering import Answering, done, make_site

from boardcluster.errors import ProbeOutputError
from boardcluster.probes import openssl
from boardcluster.probes.openssl import parse_aes, parse_rsa
from boardcluster.probes.seven_zip import parse_seven_zip
from boardcluster.probes.sysbench_cpu import CpuTest, parse_cpu
from boardcluster.probes.sysbench_cpu import tests_of as cpu_tests_of
from boardcluster.probes.sysbench_memory import MemoryTest, parse_memory
from boardcluster.probes.sysbench_memory import tests_of as memory_tests_of
from boardcluster.records import ProbeFigure, ProbeMode
from boardcluster.remote.gate import Completed

HERE = Path(__file__).parent / "recordings"

TIMED = CpuTest(threads=2, prime_limit=2000, limit_seconds=1)
COUNTED = CpuTest(threads=2, prime_limit=10_000, limit_seconds=10, events=10_000)
READ = MemoryTest(threads=2, block="1M", operation="read", access="seq", limit_seconds=1)
WRITE = MemoryTest(threads=1, block="1K", operation="write", access="rnd", limit_seconds=1)

# p7zip 16.02 has no speed in the line "Avr:". `7z b -mmt1` on a Pentium P6200, as its owner has
# published it.
P7ZIP_16 = """\

7-Zip [64] 16.02 : Copyright (c) 1999-2016 Igor Pavlov : 2016-05-21
p7zip Version 16.02 (locale=pt_PT.UTF-8,Utf16=on,HugeFiles=on,64 bits,1 CPU Intel(R) Pentium(R) CPU)

Intel(R) Pentium(R) CPU        P6200  @ 2.13GHz (20655)
CPU Freq: - - - - - - - - -

RAM size:    3731 MB,  # CPU hardware threads:   1
RAM usage:    435 MB,  # Benchmark threads:      1

                       Compressing  |                  Decompressing
Dict     Speed Usage    R/U Rating  |      Speed Usage    R/U Rating
         KiB/s     %   MIPS   MIPS  |      KiB/s     %   MIPS   MIPS

22:       2162    99   2114   2104  |      25064    99   2153   2140
23:       2055    99   2105   2094  |      24484    98   2152   2119
24:       1987    99   2149   2137  |      24358    99   2150   2138
25:       1899    99   2185   2169  |      23916   100   2139   2129
----------------------------------  | ------------------------------
Avr:              99   2138   2126  |               99   2149   2132
Tot:              99   2144   2129
"""

# OpenSSL 3.5 has more columns, and a second table. Source: its apps/speed.c, and its output as
# others have published it.
OPENSSL_35 = """\
                   sign    verify    encrypt   decrypt   sign/s verify/s  encr./s  decr./s
rsa  4096 bits 0.000987s 0.000041s 0.000042s 0.000987s   1013.3  24544.8  23868.2   1013.6
                               keygen    encaps    decaps keygens/s  encaps/s  decaps/s
                    rsa4096 0.358214s 0.000042s 0.000986s       2.8   23723.4    1014.5
"""


def recorded(name: str) -> str:
    return (HERE / f"{name}.txt").read_text()


def printed(pattern: str, text: str) -> float:
    found = re.findall(pattern, text, re.MULTILINE)
    assert len(found) == 1, pattern
    return float(found[0])


def by_name(figures: tuple[ProbeFigure, ...]) -> dict[str, ProbeFigure]:
    assert len({figure.name for figure in figures}) == len(figures)
    return {figure.name: figure for figure in figures}


def test_sysbench_cpu_is_read() -> None:
    text = recorded("sysbench-cpu-time")
    (rate,) = parse_cpu(text, TIMED)

    assert rate == ProbeFigure(
        name="sysbench_cpu_events_per_second",
        value=printed(r"events per second: *([\d.]+)", text),
        conditions={"threads": "2", "prime_limit": "2000"},
    )


def test_sysbench_cpu_gives_the_time_of_ten_thousand_events() -> None:
    text = recorded("sysbench-cpu-events")
    figures = by_name(parse_cpu(text, COUNTED))

    total = figures["sysbench_cpu_total_seconds"]
    assert total.value == printed(r"total time: *([\d.]+)s", text)
    assert total.conditions == {"threads": "2", "prime_limit": "10000", "events": "10000"}


def test_a_board_too_slow_for_ten_thousand_events_has_no_total_time() -> None:
    text = recorded("sysbench-cpu-events").replace("events:              10000", "events: 7000")
    text = re.sub(r"(events per second: *)[\d.]+", r"\g<1>700.00", text)
    text = re.sub(r"(total time: *)[\d.]+s", r"\g<1>10.0000s", text)

    assert set(by_name(parse_cpu(text, COUNTED))) == {"sysbench_cpu_events_per_second"}


def test_sysbench_memory_is_read() -> None:
    text = recorded("sysbench-memory-read")
    assert parse_memory(text, READ) == ProbeFigure(
        name="sysbench_memory_bytes_per_second",
        value=printed(r"\(([\d.]+) MiB/sec\)", text) * 2**20,
        conditions={"operation": "read", "access": "seq", "block": "1MiB", "threads": "2"},
    )
    assert parse_memory(recorded("sysbench-memory-write"), WRITE).conditions["block"] == "1KiB"


def test_seven_zip_is_read() -> None:
    figures = parse_seven_zip(recorded("seven-zip-1"), threads=1, largest_bits=23)

    rows = re.findall(r"^(2[23]): .*? (\d+) +\|.* (\d+)$", recorded("seven-zip-1"), re.MULTILINE)
    expected = [
        (f"seven_zip_{kind}_mips", float(value), size)
        for (_, *ratings), size in zip(rows, ("4MiB", "8MiB"), strict=True)
        for kind, value in zip(("compress", "decompress"), ratings, strict=True)
    ]
    assert [(f.name, f.value, f.conditions["dictionary"]) for f in figures[:-1]] == expected
    assert figures[-1].name == "seven_zip_total_mips"
    assert figures[-1].value == printed(r"^Tot: .* (\d+)$", recorded("seven-zip-1"))
    assert {figure.conditions["threads"] for figure in figures} == {"1"}


def test_seven_zip_with_several_threads_is_read() -> None:
    figures = by_name(parse_seven_zip(recorded("seven-zip-2"), threads=2, largest_bits=22))

    assert set(figures) == {
        *("seven_zip_compress_mips", "seven_zip_decompress_mips", "seven_zip_total_mips"),
    }


def test_p7zip_is_read_and_its_ratings_are_not_its_speeds() -> None:
    figures = parse_seven_zip(P7ZIP_16, threads=1, largest_bits=25)
    assert [figure.value for figure in figures] == [
        *(2104, 2140, 2094, 2119, 2137, 2138, 2169, 2129, 2129),
    ]
    assert figures[-1].conditions == {"threads": "1", "largest_dictionary": "32MiB"}


@pytest.mark.parametrize(("name", "processes"), [("openssl-rsa", 1), ("openssl-rsa-multi", 2)])
def test_openssl_rsa_is_read(name: str, processes: int) -> None:
    figures = by_name(parse_rsa(recorded(name), processes=processes))

    signed, verified = re.findall(r"s +([\d.]+) +([\d.]+)$", recorded(name), re.MULTILINE)[-1]
    assert figures["openssl_rsa4096_signatures_per_second"].value == float(signed)
    assert figures["openssl_rsa4096_verifications_per_second"].value == float(verified)
    assert {figure.conditions["processes"] for figure in figures.values()} == {str(processes)}


def test_openssl_rsa_of_version_3_5_is_read() -> None:
    assert [figure.value for figure in parse_rsa(OPENSSL_35, processes=1)] == [1013.3, 24544.8]


@pytest.mark.parametrize(("name", "processes"), [("openssl-aes", 1), ("openssl-aes-multi", 2)])
def test_openssl_aes_is_read(name: str, processes: int) -> None:
    figure = parse_aes(recorded(name), processes=processes)

    assert figure.name == "openssl_aes256cbc_bytes_per_second"
    assert figure.value == printed(r"^AES-256-CBC +([\d.]+)k$", recorded(name)) * 1000


def test_openssl_is_timed_by_the_clock() -> None:
    """By CPU time, its own measure, a node that gets a tenth of a core is as fast as one."""

    def answer(words: tuple[str, ...], _: object) -> Completed:
        kind = "rsa" if words[-1] == "rsa4096" else "aes"
        return done(recorded(f"openssl-{kind}{'-multi' if '-multi' in words else ''}"))

    node = Answering({"openssl": answer})
    figures = openssl.PROBE.measure(make_site(node, cores=2))

    assert len(figures) == 6
    assert len(node.ran) == 4
    assert all(words[:3] == ("openssl", "speed", "-elapsed") for words in node.ran)


def cpu(text: str) -> object:
    return parse_cpu(text, TIMED)


def memory(text: str) -> object:
    return parse_memory(text, READ)


def seven_zip(text: str) -> object:
    return parse_seven_zip(text, threads=1, largest_bits=23)


def rsa(text: str) -> object:
    return parse_rsa(text, processes=1)


def aes(text: str) -> object:
    return parse_aes(text, processes=1)


Reader = Callable[[str], object]
READERS: dict[str, Reader] = {
    "sysbench-cpu-time": cpu,
    "sysbench-memory-read": memory,
    "seven-zip-1": seven_zip,
    "openssl-rsa": rsa,
    "openssl-aes": aes,
}


@pytest.mark.parametrize("name", READERS)
def test_the_recorded_outputs_are_accepted(name: str) -> None:
    assert READERS[name](recorded(name))


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "garble",
    [
        lambda _: "",
        lambda _: "Segmentation fault\n",
        lambda text: text[: len(text) // 3],
        lambda text: text + text,
        lambda text: re.sub(r"(\d)\.(\d)", r"\1,\2", text).replace("MIPS", "MIP/s"),
        lambda text: text.replace("\n", " "),
        lambda text: re.sub(r"[\d.]{4,}", "nan", text),
    ],
    ids=["empty", "crash", "truncated", "twice", "localised", "one-line", "no-numbers"],
)
def test_what_is_no_such_output_is_refused(name: str, garble: Callable[[str], str]) -> None:
    with pytest.raises(ProbeOutputError):
        READERS[name](garble(recorded(name)))


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("sysbench-cpu-time", "threads: 2", "threads: 1", "ran 1 threads"),
        ("sysbench-cpu-time", "limit: 2000", "limit: 20000", "up to 20000, not 2"),
        ("sysbench-cpu-time", "second: ", "second: 9", "events per second, but"),
        ("sysbench-memory-read", "operation: read", "operation: write", "'write'"),
        ("sysbench-memory-read", "1024KiB", "64KiB", "not"),
        ("sysbench-memory-read", "transferred (", "transferred (7", "MiB/s, but"),
        ("seven-zip-1", "Benchmark threads:      1", "Benchmark threads:      2", "not 1"),
        ("seven-zip-1", "\n23:", "\n24:", r"dictionaries \[22, 24\], not 22 to 23"),
        ("seven-zip-1", "\nAvr:", "\nMean:", "no line 'Avr:'"),
        ("openssl-rsa", "rsa 4096", "rsa 2048", "no table"),
        ("openssl-rsa", "sign/s verify/s", "sign/s verify/s decr./s", "5 columns, 4 values"),
        ("openssl-aes", "16384 bytes", "8192 bytes", r"blocks of \[8192\]"),
        ("openssl-aes", "AES-256", "AES-128", r"printed \[\]"),
    ],
)
def test_what_was_not_asked_for_is_refused(name: str, old: str, new: str, words: str) -> None:
    text = recorded(name)
    assert old in text
    with pytest.raises(ProbeOutputError, match=words):
        READERS[name](text.replace(old, new))


def test_a_rating_that_is_not_the_mean_is_refused() -> None:
    text = re.sub(r"(?m)^(22: .* )\d+( +\|)", r"\g<1>9999\g<2>", recorded("seven-zip-1"))
    with pytest.raises(ProbeOutputError, match="mean of its compress ratings"):
        seven_zip(text)


def test_a_rate_that_is_not_that_of_the_time_is_refused() -> None:
    text = re.sub(r"(?m)^(rsa 4096 bits )[\d.]+s", r"\g<1>0.010000s", recorded("openssl-rsa"))
    with pytest.raises(ProbeOutputError, match=r"signatures per second at 0\.01 s"):
        rsa(text)


def test_paper_mode_has_the_papers_settings() -> None:
    paper = cpu_tests_of(ProbeMode.PAPER, 4)
    for limit in (2_000, 10_000, 20_000):
        assert [t.threads for t in paper if t.prime_limit == limit] == [1, 2, 4, 8, 16]
    assert {(t.events, t.limit_seconds) for t in paper if t.prime_limit == 10_000} == {(10_000, 0)}
    assert {t.limit_seconds for t in paper if t.prime_limit == 20_000} == {20}
    assert paper[0].argv == [
        *("sysbench", "cpu", "--threads=1", "--cpu-max-prime=2000", "--time=10", "--events=0"),
        "run",
    ]


def test_quick_mode_is_quick_and_uses_all_cores() -> None:
    for cores in (1, 4):
        quick = cpu_tests_of(ProbeMode.QUICK, cores)
        assert sum(test.limit_seconds for test in quick) <= 40
        assert {t.threads for t in quick if t.prime_limit == 20_000} == {1, cores}
        assert {t.threads for t in memory_tests_of(ProbeMode.QUICK, cores)} == {1, cores}
    assert all(test.limit_seconds for test in memory_tests_of(ProbeMode.PAPER, 4))
