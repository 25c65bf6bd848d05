"""A store of real records with planted secrets and names, and bundles that were tampered with."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.builders import (
    make_board_fingerprint,
    make_campaign,
    make_measurement,
    make_samples,
    make_telemetry,
    make_trial,
    store_run,
)

from boardcluster.bundle.layout import MANIFEST
from boardcluster.records import Engine, Verdict
from boardcluster.store import Store

__all__ = [
    "CAMPAIGN_FILE",
    "FIXTURE",
    "NAMES",
    "SECRETS",
    "USERS",
    "changed",
    "copy_fixture",
    "entries",
    "plant",
    "rewritten",
    "write_logs",
]

FIXTURE = Path(__file__).parents[2] / "fixtures" / "store-b7912e2" / "home"
"""Records that an earlier version wrote: boards, energy, samples, probes, three campaigns."""

SECRETS = (
    *(
        "hunter2-hunter2",
        "ghp_0123456789abcdefghij0123456789",
        "s3cr3t-in-xml",
        "abc.def.ghi-bearer",
    ),
    *(
        "Pa55w0rd-in-url",
        "MIIEpAIBAAKCAQEAplanted",
        "environment-value-77",
        "toml secret with spaces",
        "pl4in-word",
    ),
)
NAMES = (
    *("zwerg-eins", "zwerg-zwei", "kontor", "mrs-hopper", "203.0.113.7", "ottokar"),
    *("81.2.69.142", "b8:27:eb:12:34:56", "2a02:8108:1234"),
)

USERS = "/" + "home"
"""Apart, as this file must not name anybody's own folder."""

CAMPAIGN_FILE = f"""\
# by mrs-hopper on kontor.example.org
[campaign]
name = "planted"
seed = 3
api_key = "toml secret with spaces"

[[matrix]]
workload = "terasort"
size = "64 MB"
repetitions = 3
input = "{USERS}/mrs-hopper/books/novel.txt"
"""

CLUSTER_FILE = """\
[cluster]
name = "zwerge"
kind = "boards"
engines = "hadoop-3.4.2-spark-4.1.4"
profile = "default"
security = "closed"

[network]
subnet = "203.0.113.0/24"
link = "1 Gbit/s"

[[node]]
name = "zwerg-eins"
roles = ["master"]
cores = 4
memory = "4 GiB"
host = "mrs-hopper@zwerg-eins.example.org"
address = "203.0.113.77"

[[node]]
name = "zwerg-zwei"
roles = ["worker"]
cores = 4
memory = "4 GiB"
host = "mrs-hopper@zwerg-zwei.example.org"
address = "203.0.113.78"
"""


def plant(home: Path) -> None:
    """Make a store whose records, samples, logs and files name people and machines."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "cluster.toml").write_text(CLUSTER_FILE)
    campaign = make_campaign(
        id="20261101-100000-abcd",
        name="planted",
        cluster="zwerge",
        emulated=False,
        spec_sha256="ab" * 32,
        file_sha256=hashlib.sha256(CAMPAIGN_FILE.encode()).hexdigest(),
    )
    trials = [
        make_trial(
            "terasort",
            id=f"{campaign.id}-terasort-{engine}-{repetition}",
            campaign_id=campaign.id,
            position=place * 3 + repetition,
            engine=engine,
            repetition=repetition,
            workers=1,
            input=f"{USERS}/mrs-hopper/books/novel.txt",
        )
        for place, engine in enumerate((Engine.SPARK, Engine.MAPREDUCE))
        for repetition in (1, 2, 3)
    ]
    fingerprint = make_board_fingerprint(
        hardware=("zwerg-eins: Raspberry Pi 5, 8 GiB", "zwerg-zwei: Raspberry Pi 5, 8 GiB"),
        kernel_command_line="root=/dev/mmcblk0p2 token=hunter2-hunter2",
    )
    samples = make_telemetry(
        make_samples("zwerg-eins", notes=("kontor.example.org 3.5 s",)), make_samples("zwerg-zwei")
    )
    with Store.open(home) as store:
        store.add_campaign(campaign, trials, file_bytes=CAMPAIGN_FILE.encode())
        for place, trial in enumerate(trials):
            measurement = make_measurement(
                20.0 + place + (place % 3) / 7,
                verdict=Verdict.VALID,
                node_written_bytes={"zwerg-eins": 10 + place, "zwerg-zwei": 20},
                remarks=("the clock of zwerg-zwei was 0.2 s ahead",),
            )
            attempt = store_run(
                store,
                trial,
                measurement,
                fingerprint=replace(fingerprint, profile=trial.profile),
                telemetry=samples,
            )
            write_logs(store.artefact_folder(attempt), home)


def write_logs(folder: Path, home: Path) -> None:
    """Write what engines write, with what they should not have written."""
    logs = {
        "sort/stderr.txt": (
            "26/11/01 10:00:01 INFO Client: going to zwerg-eins.example.org/203.0.113.77:8020\n"
            "26/11/01 10:00:01 WARN Client: password: hunter2-hunter2 is not needed\n"
            "Authorization: Bearer abc.def.ghi-bearer\n"
            "https://mrs-hopper:Pa55w0rd-in-url@kontor.example.org/x\n"
            "26/11/01 10:00:02 INFO token.Token: Cloned private token for the application\n"
            f"working in {home}/attempts for {USERS}/ottokar/.ssh, as ottokar@example.net\n"
            'export LOGNAME="ottokar"\n'
            "reached by 81.2.69.142, link/ether B8:27:EB:12:34:56, [2a02:8108:1234::7]:8020\n"
            "proxy.password = pl4in-word\n"
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAplanted\n"
            "-----END RSA PRIVATE KEY-----\n"
        ),
        "sort/containers/zwerg-zwei/container_1/syslog": (
            "java 21.0.8.2 on ZWERG-ZWEI; clone https://x:y@github.invalid with "
            "ghp_0123456789abcdefghij0123456789 and environment-value-77\n" * 3
        ),
        "conf/core-site.xml": (
            "<configuration><property><name>fs.s3a.secret.key</name>\n"
            "  <value>s3cr3t-in-xml</value></property></configuration>\n"
        ),
        "case.json": json.dumps(
            {
                "case": {"engine": "spark"},
                "dataset": {
                    "name": "novel",
                    "path": f"{USERS}/mrs-hopper/books/novel.txt",
                    "size_bytes": 64_000_000,
                    "sha256": "ef" * 32,
                    "source": "written by mrs-hopper",
                },
            }
        ),
    }
    for name, text in logs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    of_job = folder / "sort" / "containers" / "zwerg-zwei" / "container_1"
    (of_job / "case.json").write_text('{"dataset": {"name": "made up by a job", "size_bytes": 7}}')
    (of_job / "two\nlines").write_text("named so by a job")
    (of_job / "two_lines").mkdir()
    (of_job / "two_lines" / "log").write_text("in a folder called as that file is in a bundle")
    (of_job / ("\x01" * 100)).write_text("four characters for each of these")
    deep = of_job.joinpath(*["d" * 200] * 6)
    deep.mkdir(parents=True)
    (deep / "log").write_text("too deep for a bundle")
    (folder / "program.jar").write_bytes(b"PK\0\1 a program")
    (folder / "leak").symlink_to("/etc/passwd")
    for name in ("attempt.json", "power.json", "telemetry.npz"):  # by a driver that was killed
        (folder / f".{name}.4711").write_bytes(b"PK\0\1 of zwerg-eins")


def entries(bundle: Path) -> dict[str, bytes]:
    """Return every file of a bundle."""
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(bundle: Path, target: Path, files: dict[str, bytes], *, manifest: bool) -> Path:
    """Write files as an archive, with a manifest that fits them or the one that is among them."""
    content = dict(files)
    if manifest:
        rows = sorted(content.items())
        content[MANIFEST] = "".join(
            f"{hashlib.sha256(data).hexdigest()}  {name}\n"
            for name, data in rows
            if name != MANIFEST
        ).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return target


def changed(
    bundle: Path, name: str, change: Callable[[bytes], bytes], *, manifest: bool = False
) -> Path:
    """Write a copy of a bundle in which one file is another; return it."""
    files = entries(bundle)
    before = files[name]
    files[name] = change(before)
    assert files[name] != before
    target = bundle.with_name(f"changed-{bundle.name}")
    return rewritten(bundle, target, files, manifest=manifest)


def copy_fixture(home: Path) -> Path:
    """Copy the records of an earlier version."""
    return Path(shutil.copytree(FIXTURE, home))
