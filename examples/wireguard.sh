#!/bin/sh
# Encrypts what passes between boards: one WireGuard network that all of them are in.
#
#     examples/wireguard.sh 10.9.0.0/24 pi0 pi1 pi2
#     examples/wireguard.sh --remove pi0 pi1 pi2
#
# Hosts are destinations of ssh, whose users may use sudo without a password. They get the addresses
# .10, .11 and so on, in the order given, on the interface boardcluster0. Each private key is made on
# its board and stays there. To add a board, run it again and name all of them, the new one last.
set -eu

PORT=51820

# The programs that run on a board as root. They contain no single quotes; see as_root.
MAKE_KEY='
if ! command -v wg-quick > /dev/null; then
    apt-get -q update >&2
    DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends wireguard-tools >&2
fi
umask 077
mkdir -p /etc/wireguard
key=/etc/wireguard/boardcluster0.key
[ -s "$key" ] || { wg genkey > "$key.new" && mv "$key.new" "$key"; }
wg pubkey < "$key"
'
CONFIGURE='
umask 077
cat > /etc/wireguard/boardcluster0.conf
if [ -d /run/systemd/system ]; then
    systemctl enable -q wg-quick@boardcluster0
    systemctl restart wg-quick@boardcluster0
else
    [ ! -e /sys/class/net/boardcluster0 ] || wg-quick down boardcluster0 2> /dev/null
    said=$(wg-quick up boardcluster0 2>&1) || { echo "$said" >&2; exit 1; }
fi
'
REMOVE='
if [ -d /run/systemd/system ]; then
    systemctl disable -q --now wg-quick@boardcluster0
elif [ -e /sys/class/net/boardcluster0 ]; then
    wg-quick down boardcluster0 2> /dev/null
fi
rm -f /etc/wireguard/boardcluster0.conf /etc/wireguard/boardcluster0.key
'

fail() {
    echo "wireguard.sh: $*" >&2
    exit 2
}

# Runs a program as root on a board, with its standard input: as_root HOST PROGRAM
as_root() {
    ssh -o BatchMode=yes -- "$1" "sudo -n sh -euc '$2'" || fail "$1: this failed, see above"
}

# Prints the address at which a board is reached, as it is written before a port.
address() {
    ssh -n -o BatchMode=yes -- "$1" 'echo "$SSH_CONNECTION"' | {
        read -r _ _ found _ || fail "$1: this failed, see above"
        case $found in *:*) echo "[$found]" ;; *) echo "$found" ;; esac
    }
}

# Prints the configuration of a board, from lines of host, address, new address and public key.
configuration() {
    while read -r name outer inner key; do
        if [ "$name" = "$1" ]; then
            echo "[Interface]"
            echo "Address = $inner/24"
            echo "ListenPort = $PORT"
            echo "PostUp = wg set %i private-key /etc/wireguard/%i.key"
        else
            echo "[Peer]"
            echo "PublicKey = $key"
            echo "AllowedIPs = $inner/32"
            echo "Endpoint = $outer:$PORT"
        fi
    done
}

[ $# -ge 2 ] || fail "name a network and hosts, such as: wireguard.sh 10.9.0.0/24 pi0 pi1"
network=$1
shift
for host; do
    case $host in -*) fail "$host is not a host" ;; esac
done
if [ "$network" = --remove ]; then
    for host; do as_root "$host" "$REMOVE" < /dev/null; done
    exit
fi
echo "$network" | grep -Eqx '([0-9]{1,3}\.){3}0/24' ||
    fail "$network is not allowed; allowed: a network such as 10.9.0.0/24"
[ $# -le 240 ] || fail "$# hosts are too many; allowed: 240"

boards=$(
    number=10
    for host; do
        outer=$(address "$host")
        key=$(as_root "$host" "$MAKE_KEY" < /dev/null)
        echo "$host $outer ${network%.0/24}.$number $key"
        number=$((number + 1))
    done
)
for host; do
    here=$(echo "$boards" | awk -v host="$host" '$1 == host')
    others=$(echo "$boards" | awk -v host="$host" '$1 != host')
    printf '%s\n%s\n' "$here" "$others" | configuration "$host" | as_root "$host" "$CONFIGURE"
done
echo "$boards" | awk '{ print $1, $3 }'
