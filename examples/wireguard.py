#!/usr/bin/env python3
"""Encrypt what passes between boards: one WireGuard network that all of them are in.

    examples/wireguard.py 10.9.0.0/24 pi0 pi1 pi2
    examples/wireguard.py --remove pi0 pi1 pi2

Hosts are destinations of ssh, whose users may use sudo without a password. They get the addresses
.10, .11 and so on, in the order given, on the interface boardcluster0. Each private key is made on
its board and stays there. To add a board, run it again and name all of them, the new one last.

Standard library only.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_address

PORT = 51820
PREFIX = 24
FIRST = 10
HOSTS_MOST = 240
NETWORK_AND_HOST = 2
KEY = re.compile(r"[A-Za-z0-9+/]{43}=")

MAKE_KEY = """
if ! command -v wg-quick > /dev/null; then
    apt-get -q update >&2
    DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends wireguard-tools >&2
fi
umask 077
mkdir -p /etc/wireguard
cd /etc/wireguard
if [ ! -s boardcluster0.key ]; then
    wg genkey > boardcluster0.key.new
    mv boardcluster0.key.new boardcluster0.key
fi
wg pubkey < boardcluster0.key
sed -n "s/^Address = //p" boardcluster0.conf 2> /dev/null || true
"""
"""Prints a board's public key, and the address that it has already."""

CONFIGURE = """
umask 077
cd /etc/wireguard
cat > boardcluster0.conf.new
[ "$(tail -n 1 boardcluster0.conf.new)" = "# end" ]
mv boardcluster0.conf.new boardcluster0.conf
if [ -e /sys/class/net/boardcluster0 ]; then
    wg-quick strip boardcluster0 | wg syncconf boardcluster0 /dev/stdin
    wg set boardcluster0 private-key boardcluster0.key
elif [ -d /run/systemd/system ]; then
    systemctl enable -q --now wg-quick@boardcluster0
else
    said=$(wg-quick up boardcluster0 2>&1) || { echo "$said" >&2; exit 1; }
fi
"""
"""Takes a configuration from standard input. Peers that stay keep their connections."""

GREET = """
import socket, subprocess, sys, time

def shown(what):
    command = ["wg", "show", "boardcluster0", what]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(line.split()[:2] for line in text.splitlines())

address_of = {key: inner.partition("/")[0] for key, inner in shown("allowed-ips").items()}
deadline = time.monotonic() + 10
while time.monotonic() < deadline:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stream:
        for address in address_of.values():
            stream.sendto(b"", (address, 9))
    time.sleep(0.2)
    silent = [address_of[key] for key, seen in shown("latest-handshakes").items() if seen == "0"]
    if not silent:
        break
print(*silent)
"""
"""Prints the addresses of peers with which no connection comes about."""

REMOVE = """
if [ -d /run/systemd/system ] && [ -e /etc/wireguard/boardcluster0.conf ]; then
    systemctl disable -q --now wg-quick@boardcluster0
fi
if [ -e /sys/class/net/boardcluster0 ]; then
    said=$(wg-quick down boardcluster0 2>&1) || { echo "$said" >&2; exit 1; }
fi
rm -f /etc/wireguard/boardcluster0.*
"""


class SetupError(Exception):
    """What went wrong, in words for the user."""


@dataclass(frozen=True)
class Board:
    """A board in the network."""

    host: str
    outer: str
    """The address at which ssh reached it, as written before a port."""
    inner: str
    """Its address in the network."""
    key: str
    """Its public key."""


def on_board(host: str, command: Sequence[str], text: str = "") -> str:
    """Run a program on a board; return what it prints."""
    done = subprocess.run(
        ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--", host, shlex.join(command)],
        input=text,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SetupError(f"{host}: this failed with status {done.returncode}; its words are above")
    return done.stdout


def as_root(host: str, program: str, text: str = "") -> str:
    """Run a shell program as root on a board; return what it prints."""
    return on_board(host, ["sudo", "-n", "sh", "-euc", program], text)


def outer_address(host: str) -> str:
    """Return the address at which ssh reached a board."""
    words = on_board(host, ["sh", "-c", 'echo "$SSH_CONNECTION"']).split()
    try:
        address = ip_address(words[2])
    except (IndexError, ValueError):
        raise SetupError(f"{host}: its SSH server says no address, but {words}") from None
    if address.is_link_local or address.is_loopback:
        raise SetupError(
            f"{host}: ssh reached it at {address}, where other boards cannot; "
            "give ssh an address of the network that the boards share"
        )
    return f"[{address}]" if address.version == 6 else str(address)


def look(host: str, inner: str) -> Board:
    """Make a board's key if it has none; what it answers is believed only if it can be a key."""
    key, *addresses = as_root(host, MAKE_KEY).split() or [""]
    if not KEY.fullmatch(key):
        raise SetupError(f"{host}: {key[:80]!r} is not a public key; does a login script print it?")
    if addresses and addresses != [f"{inner}/24"]:
        raise SetupError(
            f"{host}: it has the address {addresses[0]} already; name the boards in the same order"
            " as before, or take it back with --remove first"
        )
    return Board(host, outer_address(host), inner, key)


def configuration(board: Board, boards: Sequence[Board]) -> str:
    """Return the file of wg-quick for a board."""
    lines = [
        "[Interface]",
        f"Address = {board.inner}/24",
        f"ListenPort = {PORT}",
        "PostUp = wg set %i private-key /etc/wireguard/%i.key",
    ]
    for other in boards:
        if other != board:
            lines += [
                "[Peer]",
                f"PublicKey = {other.key}",
                f"AllowedIPs = {other.inner}/32",
                f"Endpoint = {other.outer}:{PORT}",
            ]
    return "\n".join([*lines, "# end"]) + "\n"


def connect(network: str, hosts: Sequence[str]) -> None:
    """Put boards into one network, and see whether each answers the first."""
    try:
        inside = IPv4Network(network)
    except ValueError:
        inside = IPv4Network("0.0.0.0/0")
    if inside.prefixlen != PREFIX:
        raise SetupError(
            f"{network!r} is not allowed; allowed: an IPv4 network such as 10.9.0.0/24"
        )
    if not 2 <= len(set(hosts)) == len(hosts) <= HOSTS_MOST:
        raise SetupError(f"{' '.join(hosts)}: allowed are 2 to {HOSTS_MOST} hosts, each named once")
    boards = [look(host, str(inside[FIRST + n])) for n, host in enumerate(hosts)]
    for board in boards:
        as_root(board.host, CONFIGURE, configuration(board, boards))
    first = boards[0].host
    if silent := on_board(first, ["sudo", "-n", "python3", "-c", GREET]).split():
        raise SetupError(
            f"{first} gets no answer from {', '.join(silent)}: UDP port {PORT} must be open "
            'between boards; where their cluster is closed, write open_ports = ["51820/udp"] into '
            "[network] of cluster.toml and run `boardcluster up`"
        )
    for board in boards:
        sys.stdout.write(f"{board.host} {board.inner}\n")


def remove(hosts: Sequence[str]) -> None:
    """Take the interface and its keys from boards; from all that can be reached."""
    failed = []
    for host in hosts:
        try:
            as_root(host, REMOVE)
        except SetupError as error:
            failed.append(str(error))
    if failed:
        raise SetupError("\n".join(failed))


def main(words: Sequence[str]) -> int:
    """Do what the words ask for; return the exit status."""
    if len(words) < NETWORK_AND_HOST or any(word.startswith("-") for word in words[1:]):
        return refuse("name a network and hosts: wireguard.py 10.9.0.0/24 pi0 pi1")
    try:
        if words[0] == "--remove":
            remove(words[1:])
        else:
            connect(words[0], words[1:])
    except SetupError as error:
        return refuse(str(error))
    return 0


def refuse(text: str) -> int:
    """Say what is wrong; return the exit status."""
    sys.stderr.write(f"wireguard.py: {text}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
