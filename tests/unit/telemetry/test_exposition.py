"""What Prometheus is told, read back with a strict parser of its text format 0.0.4."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from boardcluster.errors import ProbeOutputError
from boardcluster.telemetry.agent import SCALES
from boardcluster.telemetry.exposition import METRICS, Latest, NodeState, exposition

DASHBOARD = Path(__file__).parents[3] / "examples" / "grafana" / "dashboard.json"
OWN = {"boardcluster_up", "boardcluster_cpu_cores", "boardcluster_node_info"}

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]

# https://prometheus.io/docs/instrumenting/exposition_formats/ (read 2026)
SAMPLE = re.compile(
    r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-zA-Z_]\w*="(?:\\[\\"n]|[^\\"\n])*",?)*)\} (\S+)'
)
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:\\[\\"n]|[^\\"\n])*)"')


def read(text: str) -> Series:
    """Parse strictly: each family has HELP and TYPE once, first and together; no series twice."""
    assert text == "" or text.endswith("\n")
    found: Series = {}
    kinds: dict[str, str] = {}
    helped = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helped = line.split(" ", 3)[2]
            assert helped not in kinds
            assert line.split(" ", 3)[3]
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == helped
            assert kind in ("counter", "gauge")
            assert (kind == "counter") == name.endswith("_total")
            kinds[name] = kind
        else:
            matched = SAMPLE.fullmatch(line)
            assert matched, line
            assert matched[1] == helped, "samples of a family stand together"
            labels = tuple(sorted(LABEL.findall(matched[2])))
            assert len({name for name, _ in labels}) == len(labels)
            key = (matched[1], labels)
            assert key not in found, key
            found[key] = float(matched[3])
    return found


def state(values: dict[str, float], *, node: str = "pi1", up: bool = True) -> NodeState:
    return NodeState(node=node, scope="machine", cores=4, up=up, values=values)


def test_every_column_of_the_agent_is_a_metric() -> None:
    assert set(METRICS) == set(SCALES)
    for column, metric in METRICS.items():
        assert (metric.kind == "counter") == (SCALES[column][0] == "c")


def test_names_end_with_base_units() -> None:
    units = ("seconds", "bytes", "hertz", "celsius", "cores", "packets", "reads", "writes")
    for metric in METRICS.values():
        name = metric.name.removesuffix("_total")
        assert name.endswith(units) or name == "boardcluster_throttled", name


def test_states_share_a_metric_and_members_get_a_label() -> None:
    found = read(
        exposition(
            [
                state({"cpu_user_seconds": 12.5, "cpu_iowait_seconds": 3.0, "disk_reads/sda": 7.0}),
                state({"cpu_user_seconds": 1.0, "clock_hertz/cpu3": 2.4e9}, node="pi2"),
            ]
        )
    )
    cpu = "boardcluster_cpu_seconds_total"
    assert found[cpu, (("node", "pi1"), ("state", "user"))] == 12.5
    assert found[cpu, (("node", "pi1"), ("state", "iowait"))] == 3.0
    assert found[cpu, (("node", "pi2"), ("state", "user"))] == 1.0
    assert found["boardcluster_disk_reads_total", (("device", "sda"), ("node", "pi1"))] == 7.0
    assert found["boardcluster_cpu_clock_hertz", (("cpu", "cpu3"), ("node", "pi2"))] == 2.4e9
    assert found["boardcluster_up", (("node", "pi2"),)] == 1


def test_throttle_bits_and_links_are_put_into_base_units() -> None:
    found = read(exposition([state({"throttle_bits": 0x50005, "link_bits_per_second/eth0": 1e9})]))
    reasons = {
        dict(labels)["reason"]: value
        for (name, labels), value in found.items()
        if name == "boardcluster_throttled"
    }
    assert reasons == {
        "under_voltage": 1,
        "clock_capped": 0,
        "throttled": 1,
        "soft_temperature_limit": 0,
    }
    speed = found["boardcluster_network_speed_bytes", (("interface", "eth0"), ("node", "pi1"))]
    assert speed == 125e6


def test_a_node_that_is_gone_is_down_and_says_nothing_else_that_could_be_old() -> None:
    found = read(exposition([state({"cpu_user_seconds": 5.0}, up=False)]))
    assert found["boardcluster_up", (("node", "pi1"),)] == 0
    assert {name for name, _ in found} == OWN


def test_labels_are_escaped_and_nothing_gives_nothing() -> None:
    odd = 'disk "C:\\"\n'
    found = read(exposition([state({f"disk_reads/{odd}": 1.0})]))
    escaped = odd.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    assert ("boardcluster_disk_reads_total", (("device", escaped), ("node", "pi1"))) in found
    assert exposition([]) == ""


HEAD = (
    '{"interval_seconds": 1, '
    '"columns": [["cpu_user_seconds", "c", 0.01], ["disk_reads/sda", "c", 1]]}'
)


def test_a_file_is_read_piece_by_piece_whatever_the_pieces_are() -> None:
    text = f"{HEAD}\n1 2 100 7\n2 3 150 -\n# 0.5 make\n"
    for size in (1, 7, 1000):
        latest = Latest()
        for place in range(0, len(text), size):
            latest.feed(text[place : place + size])
        assert latest.values == {"cpu_user_seconds": 1.5, "disk_reads/sda": 7.0}
        assert latest.samples == 2


def test_a_cut_line_waits_and_a_column_that_went_away_is_forgotten() -> None:
    latest = Latest()
    latest.feed(f"{HEAD}\n1 2 100 7\n2 3 15")
    assert latest.values["cpu_user_seconds"] == 1.0
    latest.feed("0 8\n" + HEAD.replace(', ["disk_reads/sda", "c", 1]', "") + "\n3 4 200\n")
    assert latest.values == {"cpu_user_seconds": 2.0}


@pytest.mark.parametrize(
    "text", ["1 2 3\n", "{not json}\n", f"{HEAD}\n1 2 x 7\n", f"{HEAD}\n1 2 100\n", "{}\n", "\0\n"]
)
def test_garbage_is_named(text: str) -> None:
    with pytest.raises(ProbeOutputError, match="is not a sample"):
        Latest().feed(text)


def test_the_dashboard_asks_only_for_what_is_served() -> None:
    text = DASHBOARD.read_text()
    dashboard = json.loads(text)
    asked = set(re.findall(r"\bboardcluster_\w+", text))
    served = {metric.name for metric in METRICS.values()} | OWN
    assert asked <= served, asked - served
    for metric in (
        *("cpu_seconds_total", "cpu_clock_measured_hertz", "temperature_celsius", "throttled"),
        *("disk_read_bytes_total", "network_received_bytes_total", "memory_available_bytes"),
    ):
        assert f"boardcluster_{metric}" in asked
    labels = {"node", "state", "interface", "daemon", "reason"}
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels
    assert dashboard["__inputs"][0]["name"] == "DS_PROMETHEUS"
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
