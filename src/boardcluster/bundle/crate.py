"""The description of a bundle for machines: an RO-Crate (https://w3id.org/ro/crate/1.1)."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from boardcluster.bundle.layout import CRATE, INFO, MANIFEST, REPORT, STORE
from boardcluster.bundle.texts import BundleTexts
from boardcluster.errors import UsageError, extra_hint

if TYPE_CHECKING:
    from rocrate.rocrate import ROCrate

__all__ = ["crate_text", "require_packages"]

_TYPES = {
    "html": "text/html",
    "md": "text/markdown",
    "csv": "text/csv",
    "json": "application/json",
    "toml": "application/toml",
    "txt": "text/plain",
    "py": "text/x-python",
    "cff": "application/yaml",
    "tex": "application/x-tex",
}
_TITLES = {
    "README.md": "What is in this bundle, and how to check it",
    "BADGES.md": "Checklist of the ACM badges",
    "CAMPAIGNS.md": "What was laid down before the first run",
    "DATA.md": "The data that runs read",
    "CITATION.cff": "How to cite this",
    "LICENSE.txt": "Licence",
    "requirements.txt": "What recompute.py needs",
    INFO: "What the bundle is, for boardcluster",
    MANIFEST: "SHA-256 of each file",
    f"{REPORT}/report.html": "Report",
    f"{REPORT}/report.md": "Report, as Markdown",
    f"{STORE}/cluster.json": "The cluster as it last ran",
}


def require_packages() -> None:
    """Check that the libraries of the extra `bundle` are there, before anything is read or written.

    Raises:
        UsageError: one is not.
    """
    for package, module in (("rocrate", "rocrate.rocrate"), ("ahocorasick-rs", "ahocorasick_rs")):
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise UsageError(
                f"a bundle needs the package {package}, which is not installed: {error}",
                hint=extra_hint("bundle"),
            ) from error


def crate_text(texts: BundleTexts, names: Iterable[str]) -> str:
    """Return the metadata of a bundle.

    Args:
        texts: its records and texts.
        names: the path of every file in it; of attempts only the folders are described.
    """
    from rocrate.rocrate import ROCrate  # noqa: PLC0415  an optional extra, and slow to load

    crate = ROCrate(version="1.1")
    info = texts.info
    crate.name = info.title
    crate.description = (
        f"{info.attempts} runs of {len(info.campaigns)} campaigns on the cluster {info.cluster}, "
        "with raw telemetry, logs, the report, and a script that computes the report again"
    )
    crate.metadata.extra_terms["sha256"] = "https://schema.org/sha256"
    _describe(crate, texts)
    described = set(names) | {MANIFEST}
    for folder, title in ((STORE, "Records and raw data"), (REPORT, "Report")):
        if any(name.startswith(f"{folder}/") for name in described):
            crate.add_directory(dest_path=f"{folder}/", properties={"name": title})
    for name in sorted(described):
        if not name.startswith((f"{STORE}/attempts/", f"{REPORT}/runs/")) and name != CRATE:
            crate.add_file(dest_path=name, properties=_of_file(name))
    _add_attempts(crate, texts)
    _add_actions(crate, texts)
    graph = crate.metadata.generate()
    graph["@graph"] = [_stable(entity, info.created_utc) for entity in graph["@graph"]]
    return json.dumps(graph, indent=1, sort_keys=True) + "\n"


def _describe(crate: ROCrate, texts: BundleTexts) -> None:
    """Say who made it, and what may be done with it."""
    from rocrate.model.contextentity import ContextEntity  # noqa: PLC0415
    from rocrate.model.person import Person  # noqa: PLC0415

    by = texts.by
    people = []
    for place, author in enumerate(texts.authors, start=1):
        key = f"https://orcid.org/{author.orcid}" if author.orcid else f"#author-{place}"
        people.append(crate.add(Person(crate, key, properties={"name": author.name})))
    crate.root_dataset["author"] = _one_or_all(people)
    if by.licence:
        key = f"https://spdx.org/licenses/{by.licence}"
        properties: dict[str, Any] = {"@type": "CreativeWork", "name": by.licence, "url": key}
        crate.license = crate.add(ContextEntity(crate, key, properties=properties))
    else:
        crate.root_dataset["license"] = {"@id": "LICENSE.txt"}


def _of_file(name: str) -> dict[str, Any]:
    title = _TITLES.get(name, name.rpartition("/")[2])
    found: dict[str, Any] = {"name": title}
    if kind := _TYPES.get(name.rpartition(".")[2]):
        found["encodingFormat"] = kind
    if name == "recompute.py":
        found |= {
            "@type": ["File", "SoftwareSourceCode"],
            "name": "Computes every number of the report again and compares",
            "programmingLanguage": "Python",
        }
    return found


def _add_attempts(crate: ROCrate, texts: BundleTexts) -> None:
    """Describe the folder of each run."""
    for row in texts.gathered.attempts:
        attempt = row.attempt
        if attempt is None:
            continue
        trial = row.trial
        crate.add_directory(
            dest_path=f"{STORE}/attempts/{attempt.trial_id}/{attempt.number}/",
            properties={
                "name": f"Run {attempt.name}: {trial.workload} on {trial.engine}",
                "description": f"{attempt.state}; {attempt.reason}" if attempt.reason else "ok",
                "dateCreated": attempt.ended_utc,
            },
        )


def _add_actions(crate: ROCrate, texts: BundleTexts) -> None:
    """Say by which program, from which files and data each campaign made its runs."""
    from rocrate.model.contextentity import ContextEntity  # noqa: PLC0415

    version = texts.info.boardcluster
    program = crate.add(
        ContextEntity(
            crate,
            f"#boardcluster-{version}",
            properties={
                "@type": "SoftwareApplication",
                "name": "boardcluster",
                "softwareVersion": version,
            },
        )
    )
    inputs: dict[str, list[dict[str, str]]] = {}
    for place, row in enumerate(texts.inputs, start=1):
        entity = ContextEntity(
            crate,
            f"#input-{place}",
            properties={
                "@type": "Dataset",
                "name": row.name,
                "description": row.source or "its source was not recorded",
                "sha256": row.sha256,
            },
        )
        crate.add(entity)
        for reader in row.campaigns:
            inputs.setdefault(reader, []).append({"@id": f"#input-{place}"})
    for bundled in texts.gathered.campaigns:
        campaign = bundled.campaign
        read = list(inputs.get(campaign.id, ()))
        if bundled.file:
            read.append({"@id": f"{STORE}/campaigns/{campaign.id}.toml"})
        properties: dict[str, Any] = {
            "@type": "CreateAction",
            "name": f"Campaign {campaign.name or campaign.id}",
            "instrument": {"@id": program["@id"]},
            "result": {"@id": f"{STORE}/"},
            "startTime": campaign.created_utc,
            "endTime": texts.info.created_utc,
        }
        if read:
            properties["object"] = _one_or_all(read)
        crate.add(ContextEntity(crate, f"#campaign-{campaign.id}", properties=properties))
    crate.root_dataset["mentions"] = _one_or_all(
        [{"@id": f"#campaign-{row.campaign.id}"} for row in texts.gathered.campaigns]
    )


def _one_or_all(values: list[Any]) -> Any:
    """Return a single value by itself, as RO-Crate recommends."""
    return values[0] if len(values) == 1 else values


def _stable(entity: dict[str, Any], moment_utc: str) -> dict[str, Any]:
    """Return an entity without the moment at which it was written."""
    return {**entity, "datePublished": moment_utc} if "datePublished" in entity else entity
