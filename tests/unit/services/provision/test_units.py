"""Units of the daemons, as text; systemd itself reads them in an integration test."""

import re
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster.records import ClusterSpec
from boardcluster.services.daemons import command_of, daemons_of
from boardcluster.services.layout import Layout
from boardcluster.services.provision import units
from boardcluster.services.provision.units import (
    FIREWALL_UNIT,
    render_firewall_unit,
    render_nftables_drop_in,
    render_units,
    unit_name,
)

MIB = 1 << 20
HOME = "/".join(("", "home", "pi", "bc"))


@pytest.fixture
def board_layout(layout: Layout) -> Layout:
    folders = {node.name: "/var/lib/boardcluster" for node in layout.spec.nodes}
    return replace(layout, user="boardcluster", folders=folders)


def rows_of(text: str) -> dict[str, str]:
    rows = [line.split("=", 1) for line in text.splitlines() if "=" in line and line[0] != "#"]
    return {name: value for name, value in rows if name != "Environment"}


def test_every_daemon_of_a_node_has_a_unit_with_its_own_command(board_layout: Layout) -> None:
    for node in board_layout.spec.nodes:
        kinds = [kind for kind, owner in daemons_of(board_layout.spec) if owner == node]
        found = render_units(board_layout, node, closed=True)
        assert list(found) == [unit_name(kind.name) for kind in kinds]
        for kind in kinds:
            rows = rows_of(found[unit_name(kind.name)])
            words = shlex.split(rows["ExecStart"].replace("$$", "$").replace("%%", "%"))
            assert words[:2] == ["/bin/sh", "-c"]
            assert words[3:5] == ["sh", f"/var/lib/boardcluster/logs/{kind.name}.log"]
            assert words[5:] == command_of(board_layout, node, kind)
            assert (rows["User"], rows["Group"]) == ("boardcluster", "boardcluster")
            assert rows["Requires"] == FIREWALL_UNIT
            assert FIREWALL_UNIT in rows["After"]
            assert "WantedBy" not in rows  # the driver starts them


def test_a_daemon_appends_to_its_log_as_its_own_user(board_layout: Layout, tmp_path: Path) -> None:
    """The words of the unit, as systemd would run them."""
    node = board_layout.spec.master
    text = render_units(board_layout, node, closed=True)["boardcluster-namenode.service"]
    assert "StandardOutput" not in text
    line = rows_of(text)["ExecStart"].replace("$$", "$")
    words = shlex.split(line)[:4]
    log = tmp_path / "log"
    log.write_text("before\n")
    command = ["sh", "-c", "echo out; echo $0 >&2; echo $1", "one", "two words"]
    subprocess.run([*words, str(log), *command], check=True)
    assert log.read_text() == "before\nout\none\ntwo words\n"


def test_an_open_laboratory_waits_for_no_firewall(board_layout: Layout) -> None:
    node = board_layout.spec.master
    for text in render_units(board_layout, node, closed=False).values():
        assert "firewall" not in text


def test_memory_is_bounded_by_the_heap_or_by_the_node(board_layout: Layout) -> None:
    master, worker = board_layout.spec.nodes[:2]
    found = render_units(board_layout, master, closed=True)["boardcluster-namenode.service"]
    rows = rows_of(found)
    heap = next(int(hit[1]) for hit in [re.search(r"-Xmx(\d+)m", found)] if hit)
    assert heap * MIB + 200 * MIB < int(rows["MemoryHigh"]) < int(rows["MemoryMax"])
    assert int(rows["MemoryMax"]) < master.memory_bytes // 2
    for name in ("datanode", "nodemanager"):
        rows = rows_of(render_units(board_layout, worker, closed=True)[unit_name(name)])
        assert int(rows["MemoryMax"]) == worker.memory_bytes - 192 * MIB
        assert "MemoryHigh" not in rows  # it would slow down what is measured
        assert rows["OOMPolicy"] == "continue"


def test_containers_are_ended_before_what_holds_the_data(board_layout: Layout) -> None:
    master, worker = board_layout.spec.nodes[:2]
    found = {
        **render_units(board_layout, master, closed=True),
        **render_units(board_layout, worker, closed=True),
    }
    score = {name: int(rows_of(text)["OOMScoreAdjust"]) for name, text in found.items()}
    assert score[unit_name("namenode")] < score[unit_name("datanode")] < 0
    assert score[unit_name("nodemanager")] == 0


def test_only_the_nodes_folder_can_be_written(board_layout: Layout) -> None:
    node = board_layout.spec.nodes[1]
    other = replace(board_layout, folders={node.name: HOME for node in board_layout.spec.nodes})
    for layout, folder, homes in (
        (board_layout, "/var/lib/boardcluster", "yes"),
        (other, HOME, "read-only"),
    ):
        rows = rows_of(render_units(layout, node, closed=True)[unit_name("datanode")])
        assert rows["ProtectSystem"] == "strict"
        assert rows["ReadWritePaths"] == folder
        assert rows["ProtectHome"] == homes
        assert rows["WorkingDirectory"] == f"{folder}/tmp"


def test_odd_names_are_quoted_for_systemd(
    make_spec: Callable[..., ClusterSpec],
    make_layout: Callable[[ClusterSpec], Layout],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layout = make_layout(make_spec(workers=1))
    monkeypatch.setattr(
        units, "command_of", lambda *_: ["java", "-Xmx9m", "a b", 'say "%h $x"', "back\\slash", ""]
    )
    text = render_units(layout, layout.spec.master, closed=True)["boardcluster-namenode.service"]
    line = rows_of(text)["ExecStart"]
    assert line.endswith(r'java -Xmx9m "a b" "say \"%%h $$x\"" "back\\slash" ""')


def test_the_firewall_is_there_before_the_network() -> None:
    text = render_firewall_unit()
    assert "Before=network-pre.target" in text
    assert "WantedBy=sysinit.target" in text
    assert text.count("nft -f /etc/boardcluster/firewall.nft") == 2
    rows = rows_of(text)
    assert rows["PartOf"] == "nftables.service"
    assert "nftables.service" in rows["After"].split()


def test_nftables_of_the_boards_own_loads_the_firewall_again() -> None:
    """Debian's /etc/nftables.conf flushes all rules, also on a reload."""
    rows = rows_of(render_nftables_drop_in())
    assert rows["ExecStartPost"] == rows["ExecReload"]
    assert "is-active boardcluster-firewall.service &&" in rows["ExecReload"]
    assert rows["ExecReload"].endswith("/usr/sbin/nft -f /etc/boardcluster/firewall.nft'")
