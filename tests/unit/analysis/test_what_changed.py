"""What is named as changed between two rounds."""

from __future__ import annotations

from typing import Any

from tests.builders import make_board_fingerprint, make_fingerprint

from boardcluster.analysis.what_changed import RoundFacts, what_changed


def facts(numbers: dict[str, float] | None = None, **changes: Any) -> RoundFacts:
    return RoundFacts(fingerprint=make_fingerprint(**changes), numbers=numbers or {})


def test_nothing_is_named_where_nothing_changed() -> None:
    assert what_changed([facts()] * 3, [facts()] * 2) == ()


def test_a_new_kernel_and_another_java_are_named() -> None:
    found = what_changed([facts(kernel="6.1 x86_64")], [facts(kernel="6.6 x86_64", java="21")])
    assert any("6.1 x86_64, 6.6 x86_64" in line for line in found)
    assert any(line.startswith("Java: ") for line in found)


def test_firmware_is_named_with_its_board() -> None:
    one, other = (
        RoundFacts(fingerprint=make_board_fingerprint(hardware=(f"worker1: Pi 5, boot {day}",)))
        for day in ("2025-01-01", "2026-06-01")
    )
    [line] = what_changed([one], [other])
    assert "worker1" in line
    assert "2026-06-01" in line


def test_settings_of_the_cluster_are_named_before_the_configuration_they_change() -> None:
    one = RoundFacts(fingerprint=make_fingerprint(config_sha256="a"), levels={"profile": "default"})
    other = RoundFacts(
        fingerprint=make_fingerprint(config_sha256="b", profile="upstream"),
        levels={"profile": "upstream", "dfs.blocksize": "1048576"},
    )
    assert what_changed([one], [other]) == (
        "dfs.blocksize: not set, then 1048576",
        "profile: default, then upstream",
    )


def test_the_configuration_alone_is_named() -> None:
    found = what_changed([facts(config_sha256="a")], [facts(config_sha256="b")])
    assert found == ("generated configuration",)


def test_a_number_is_named_only_beyond_all_of_those_before() -> None:
    before = [facts({"temperature": value}) for value in (50.0, 55.0)]
    assert what_changed(before, [facts({"temperature": 56.0})]) == ()
    [line] = what_changed(before, [facts({"temperature": 70.0}), facts({"temperature": 72.0})])
    assert line == "temperature: 52.5 °C before, 71 °C after"
