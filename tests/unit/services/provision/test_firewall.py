"""The rules as text; what they let through is proved in an integration test."""

import re
import shutil
import subprocess

import pytest

from boardcluster.records import Egress
from boardcluster.services.provision.firewall import render_firewall

MEMBERS = ["10.0.0.1", "10.0.0.2"]
PORTS = [9870, 8020]


def accepted(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip().endswith("accept")]


def test_everything_that_is_not_named_is_dropped() -> None:
    text = render_firewall(MEMBERS, service_ports=PORTS)
    assert "hook input priority filter; policy drop;" in text
    assert accepted(text) == [
        'iif "lo" accept',
        "ct state established,related accept",
        "tcp dport { SSH_PORT } accept",
        "ip saddr @members tcp dport 1-65535 accept",
        *[line for line in accepted(text) if line.startswith(("icmp", "ip protocol igmp"))],
        "udp sport 67 udp dport 68 accept",
        "ip6 saddr fe80::/10 udp sport 547 udp dport 546 accept",
        "ip daddr 224.0.0.251 udp dport 5353 accept",
        "ip6 daddr ff02::fb udp dport 5353 accept",
        "accept",  # what the node itself sends
        "accept",  # and what it forwards, except to members
    ]


def test_no_chain_leaves_to_its_policy_what_a_reload_would_let_through() -> None:
    text = render_firewall(MEMBERS, service_ports=PORTS)
    policies = re.findall(r"hook (\w+) .*policy (\w+);", text)
    assert policies == [("input", "drop"), ("output", "drop"), ("forward", "drop")]
    chains = re.findall(r"chain (\w+) {\n(.*?)\n    }", text, re.DOTALL)
    last = {name: body.splitlines()[-1].strip() for name, body in chains}
    assert last["input"] == "drop"
    assert last["output"] == last["forward"] == "accept"


def test_guests_of_a_board_reach_no_member() -> None:
    """Their own address is known where a board forwards, and only there."""
    rule = "ip saddr != @members ip daddr @members ct direction original jump strangers"
    forward = render_firewall(MEMBERS, service_ports=PORTS).partition("chain forward {")[2]
    assert rule in forward.partition("}")[0]


def test_the_cluster_is_believed_by_ipv4_and_tcp_only() -> None:
    rules = [
        line
        for line in accepted(render_firewall(MEMBERS, service_ports=PORTS))
        if "@members" in line
    ]
    assert rules == ["ip saddr @members tcp dport 1-65535 accept"]


def test_loading_it_replaces_what_was_loaded() -> None:
    lines = [
        line
        for line in render_firewall(MEMBERS, service_ports=PORTS).splitlines()
        if line[:1] not in ("", "#")
    ]
    assert lines[:2] == ["table inet boardcluster {}", "delete table inet boardcluster"]


def test_accounts_are_held_back_where_the_sender_is_known() -> None:
    text = render_firewall(MEMBERS, service_ports=PORTS, open_ports=["53/tcp", "53/udp"])
    assert "meta skuid != { TRUSTED_USERS } ct direction original jump strangers" in text
    assert "ip daddr @members tcp dport != { SSH_OF_ALL, 53 } reject with tcp reset" in text
    assert 'oif "lo" tcp dport { 8020, 9870 } reject with tcp reset' in text
    assert "SERVICE_USER" not in text


def test_the_service_user_may_be_kept_to_members() -> None:
    text = render_firewall(MEMBERS, service_ports=PORTS, egress=Egress.MEMBERS)
    rows = [line.strip() for line in text.splitlines() if "skuid SERVICE_USER" in line]
    last = [row.split()[-1] for row in rows]
    assert last == ["reject", "accept", "accept", "admin-prohibited"]
    assert "th dport 53 reject" in rows[0]


@pytest.mark.parametrize("egress", Egress)
@pytest.mark.skipif(shutil.which("nft") is None, reason="nftables is not installed here")
def test_nft_understands_it(egress: Egress) -> None:
    rules = render_firewall(
        MEMBERS,
        service_ports=PORTS,
        open_ports=["443/tcp", "53/udp"],
        ssh_from=["10.0.0.0/8", "fd00::/8"],
        egress=egress,
    )
    for name, number in (
        ("SSH_PORT", "22"),
        ("SSH_OF_ALL", "22, 2222"),
        ("SERVICE_USER", "1"),
        ("TRUSTED_USERS", "0, 1"),
    ):
        rules = rules.replace(name, number)
    done = subprocess.run(
        ["unshare", "-rn", "nft", "-c", "-f", "-"],
        check=False,
        input=rules,
        text=True,
        capture_output=True,
    )
    if "unshare" in done.stderr:
        pytest.skip("this user may not make namespaces")
    assert (done.returncode, done.stderr) == (0, "")
