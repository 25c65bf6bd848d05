"""What a board is to have, by what it is."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boardcluster.records import ClusterSpec, Egress, Security
from boardcluster.services.provision.desired import Ground, desired, ground_of
from boardcluster.services.provision.resources import (
    File,
    Firewall,
    Folder,
    Hosts,
    Packages,
    Resource,
    Service,
    Symlink,
    Tree,
    User,
    Word,
    request_of,
    tree_of,
)

PI = Ground(architecture="aarch64", systemd=True)
UNITS = {"boardcluster-datanode.service": "[Unit]\n"}


@pytest.fixture
def spec(make_spec: Callable[..., ClusterSpec]) -> ClusterSpec:
    made = make_spec(workers=2)
    nodes = tuple(
        replace(
            node, host=f"pi@{node.name}", address=f"10.0.0.{index}", folder="/mnt/nvme/boardcluster"
        )
        for index, node in enumerate(made.nodes, 1)
    )
    return replace(made, kind="boards", security=Security.CLOSED, nodes=nodes)


def only(kind: type[Any], resources: list[Resource]) -> Any:
    (found,) = [resource for resource in resources if isinstance(resource, kind)]
    return found


def kinds(resources: list[Resource]) -> list[str]:
    return [type(resource).__name__ for resource in resources]


def test_a_closed_board_gets_its_firewall_before_anything_can_listen(spec: ClusterSpec) -> None:
    tree = Tree(source=Path("/x"), path="/opt/boardcluster/jobs.jar", files={})
    found = desired(spec, spec.nodes[1], PI, packages=["hpcc"], trees=[tree], units=UNITS)
    assert kinds(found) == [
        *("Packages", "User", "Folder", "Folder", "Folder", "Symlink", "Hosts", "Sysctl"),
        *("Firewall", "File", "File", "File", "Service", "Service", "Tree"),
    ]
    assert only(User, found).name == "boardcluster"
    files = [row.path for row in found if isinstance(row, File)]
    assert files == [
        "/etc/systemd/system/boardcluster-firewall.service",
        "/etc/systemd/system/nftables.service.d/boardcluster.conf",
        "/etc/systemd/system/boardcluster-datanode.service",
    ]
    assert only(Packages, found).wanted == (
        *(("python3",), ("rsync",), ("sudo",), ("nftables",), ("hpcc",)),
        ("openjdk-17-jre-headless", "openjdk-21-jre-headless"),
        ("systemd-timesyncd", "chrony", "ntpsec", "openntpd", "ntp"),
    )
    assert only(Hosts, found).rows == (
        *(("10.0.0.1", "master"), ("10.0.0.2", "worker1"), ("10.0.0.3", "worker2")),
    )
    rules = only(Firewall, found).content
    assert "elements = { 10.0.0.1, 10.0.0.2, 10.0.0.3 }" in rules
    data = [row for row in found if isinstance(row, Folder) and row.data]
    assert [(row.path, row.owner, row.mode) for row in data] == [
        ("/mnt/nvme/boardcluster", "boardcluster", 0o750)
    ]


def test_an_open_laboratory_has_no_firewall(spec: ClusterSpec) -> None:
    open_spec = replace(spec, security=Security.INSECURE_LAB)
    found = desired(open_spec, spec.nodes[1], PI, units=UNITS)
    assert not {"Firewall"} & set(kinds(found))
    assert "nftables" not in str(only(Packages, found))
    assert "firewall" not in str(found)


def test_a_node_without_systemd_gets_no_units(spec: ClusterSpec) -> None:
    found = desired(spec, spec.nodes[1], replace(PI, systemd=False), units=UNITS)
    assert not {"File", "Service"} & set(kinds(found))
    assert "Firewall" in kinds(found)
    assert "timesyncd" not in str(found)


def test_a_java_that_is_there_is_linked_and_none_is_installed(spec: ClusterSpec) -> None:
    found = desired(spec, spec.nodes[1], replace(PI, java_home="/opt/jdk"))
    assert only(Symlink, found).targets == ("/opt/jdk",)
    assert "openjdk" not in str(only(Packages, found))


@pytest.mark.parametrize(("machine", "debian"), [("aarch64", "arm64"), ("x86_64", "amd64")])
def test_a_java_that_is_installed_is_linked_where_debian_puts_it(
    spec: ClusterSpec, machine: str, debian: str
) -> None:
    found = desired(spec, spec.nodes[1], replace(PI, architecture=machine))
    assert only(Symlink, found).targets == (
        f"/usr/lib/jvm/java-17-openjdk-{debian}",
        f"/usr/lib/jvm/java-21-openjdk-{debian}",
    )


def test_only_a_pi_without_the_controller_gets_the_word(spec: ClusterSpec) -> None:
    assert "Word" not in kinds(desired(spec, spec.nodes[1], PI))
    lacking = replace(PI, lacks_memory_controller=True)
    word = only(Word, desired(spec, spec.nodes[1], lacking))
    assert word.word == "cgroup_enable=memory"
    assert word.paths[0] == "/boot/firmware/cmdline.txt"


def test_open_ports_are_opened_to_all(spec: ClusterSpec) -> None:
    network = replace(spec.network, open_ports=("8080/tcp", "53/udp", "443/tcp"))
    own = replace(spec, network=network)
    rules = only(Firewall, desired(own, own.nodes[1], PI)).content
    assert "tcp dport { 443, 8080 } accept" in rules
    assert "udp dport { 53 } accept" in rules


def test_ssh_may_be_narrowed(spec: ClusterSpec) -> None:
    network = replace(spec.network, ssh_from=("192.168.1.0/24", "10.0.0.9/32", "fd00::/8"))
    own = replace(spec, network=network)
    rules = only(Firewall, desired(own, own.nodes[1], PI)).content
    assert "ip saddr { 192.168.1.0/24, 10.0.0.9/32 } tcp dport { SSH_PORT } accept" in rules
    assert "ip6 saddr { fd00::/8 } tcp dport { SSH_PORT } accept" in rules
    assert "        tcp dport { SSH_PORT } accept" not in rules


def test_egress_is_in_the_rules_and_in_what_is_said(spec: ClusterSpec) -> None:
    own = replace(spec, network=replace(spec.network, egress=Egress.MEMBERS))
    firewall = only(Firewall, desired(own, own.nodes[1], PI))
    assert firewall.egress is Egress.MEMBERS
    assert "meta skuid SERVICE_USER ip daddr @members accept" in firewall.content
    assert "SERVICE_USER" not in only(Firewall, desired(spec, spec.nodes[1], PI)).content


def test_time_is_kept_by_what_is_there(spec: ClusterSpec) -> None:
    services = [row for row in desired(spec, spec.nodes[1], PI) if isinstance(row, Service)]
    assert services[1].names[0] == "chrony.service"


# Trees


def test_a_tree_is_every_file_with_its_size_and_content(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars/a.jar").write_bytes(b"abc")
    (tmp_path / ".sums").write_bytes(b"")
    tree = tree_of(tmp_path, "/opt/engine", sums={"jars/a.jar": "known"})
    assert tree.files["jars/a.jar"] == (3, "known")
    assert tree.files[".sums"][0] == 0
    assert len(tree.files[".sums"][1]) == 64
    assert tree.digest != tree_of(tmp_path, "/opt/engine").digest
    request = request_of(tree, deep=True)
    assert request["kind"] == "tree"
    assert request["deep"] is True
    assert "source" not in request


def test_a_tree_may_be_one_file(tmp_path: Path) -> None:
    (tmp_path / "jobs.jar").write_bytes(b"abc")
    tree = tree_of(tmp_path / "jobs.jar", "/opt/jobs.jar")
    assert list(tree.files) == [""]


# Facts


def facts(**fields: Any) -> Any:
    """As much of NodeFacts as is read."""
    from types import SimpleNamespace

    base: dict[str, Any] = {
        "architecture": "aarch64",
        "service_manager": "systemd",
        "board": "Raspberry Pi 5 Model B Rev 1.0",
        "memory_controller": True,
        "javas": (),
    }
    return SimpleNamespace(**{**base, **fields})


def java(feature: int | None, architecture: str = "aarch64") -> Any:
    from types import SimpleNamespace

    return SimpleNamespace(home=f"/jvm/{feature}", feature=feature, architecture=architecture)


def test_the_first_java_that_fits_is_taken() -> None:
    found = facts(javas=(java(11), java(None), java(17, "x86_64"), java(21), java(17)))
    assert ground_of(found, java_oldest=17, java_newest=21).java_home == "/jvm/21"
    assert ground_of(found, java_oldest=22, java_newest=22).java_home == ""


def test_a_java_in_somebodys_home_is_not_for_services() -> None:
    own = java(21)
    own.home = "/".join(("", "home", "pi", ".sdkman", "candidates", "java", "21"))
    assert ground_of(facts(javas=(own,)), java_oldest=17, java_newest=21).java_home == ""


def test_only_a_raspberry_pi_can_lack_the_memory_controller_by_its_command_line() -> None:
    ground = ground_of(facts(memory_controller=False), java_oldest=17, java_newest=21)
    assert ground.lacks_memory_controller
    other = facts(memory_controller=False, board="ThinkCentre M720q")
    assert not ground_of(other, java_oldest=17, java_newest=21).lacks_memory_controller
    assert ground_of(facts(service_manager="none"), java_oldest=17, java_newest=21) == Ground(
        architecture="aarch64", systemd=False
    )
