"""The rules as text; what they let through is proved in an integration test."""

import re
import shutil
import subprocess

import pytest

from boardcluster.services.provision.firewall import render_firewall

MEMBERS = ["10.0.0.1", "10.0.0.2"]


def accepted(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip().endswith("accept")]


def test_everything_that_is_not_named_is_dropped() -> None:
    text = render_firewall(MEMBERS)
    assert "hook input priority filter; policy drop;" in text
    assert "forward" not in re.sub(r"#.*", "", text)
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
    ]


def test_the_cluster_is_believed_by_ipv4_and_tcp_only() -> None:
    rules = [line for line in accepted(render_firewall(MEMBERS)) if "@members" in line]
    assert rules == ["ip saddr @members tcp dport 1-65535 accept"]


def test_loading_it_replaces_what_was_loaded() -> None:
    lines = [line for line in render_firewall(MEMBERS).splitlines() if line[:1] not in ("", "#")]
    assert lines[:2] == ["table inet boardcluster {}", "delete table inet boardcluster"]


@pytest.mark.skipif(shutil.which("nft") is None, reason="nftables is not installed here")
def test_nft_understands_it() -> None:
    rules = render_firewall(
        MEMBERS, open_ports=["443/tcp", "53/udp"], ssh_from=["10.0.0.0/8", "fd00::/8"]
    ).replace("SSH_PORT", "22")
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
