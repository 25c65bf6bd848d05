"""What a result was measured on."""

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster import __version__
from boardcluster.campaign.fingerprint import cpu_model, take_fingerprint
from boardcluster.services.operation import LiveCluster

CPUINFO = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: A CPU @ 3 GHz\nflags\t: x\n"
PI_CPUINFO = "processor\t: 0\nBogoMIPS\t: 108.00\n\nModel\t\t: Raspberry Pi 4 Model B Rev 1.5\n"


def pretend(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Give these paths this content; everything else is absent."""
    monkeypatch.setattr(Path, "exists", lambda self: str(self) in files)
    monkeypatch.setattr(Path, "read_bytes", lambda self: files[str(self)])
    monkeypatch.setattr(Path, "read_text", lambda self: files[str(self)].decode())


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (
            {"/proc/device-tree/model": b"Raspberry Pi 5 Model B Rev 1.0\0", "/proc/cpuinfo": b""},
            "Raspberry Pi 5 Model B Rev 1.0",
        ),
        ({"/proc/cpuinfo": CPUINFO.encode()}, "A CPU @ 3 GHz"),
        ({"/proc/cpuinfo": PI_CPUINFO.encode()}, "Raspberry Pi 4 Model B Rev 1.5"),
        ({"/proc/cpuinfo": b"processor\t: 0\n"}, platform.machine()),
    ],
)
def test_name_of_the_cpu(
    files: dict[str, bytes], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        pretend(files, patched)
        seen = cpu_model()

    assert seen == name


def test_describes_machine_engines_and_configuration(live: LiveCluster) -> None:
    fingerprint = take_fingerprint(live)

    assert fingerprint.kernel == f"{platform.release()} {platform.machine()}"
    assert fingerprint.os
    assert fingerprint.memory_bytes > 100_000_000
    assert fingerprint.boardcluster == __version__
    assert fingerprint.profile == "default"
    assert fingerprint.link_bits_per_second == 10**9
    assert fingerprint == take_fingerprint(live)  # or nothing could ever be compared


def test_another_configuration_is_another_fingerprint(live: LiveCluster) -> None:
    other = replace(live, state=replace(live.state, config_sha256="ef" * 32))

    assert take_fingerprint(other) != take_fingerprint(live)


def test_the_smallest_worker_is_described(live: LiveCluster) -> None:
    nodes = list(live.spec.nodes)
    nodes[0] = replace(nodes[0], memory_bytes=1 << 30)  # the master does not count
    nodes[3] = replace(nodes[3], memory_bytes=3 << 29, cores=2)
    layout = replace(live.layout, spec=replace(live.spec, nodes=tuple(nodes)))

    fingerprint = take_fingerprint(replace(live, layout=layout))

    assert (fingerprint.node_memory_bytes, fingerprint.node_cores) == (3 << 29, 2)
