"""Write the bill of materials of each engine pair, in CycloneDX 1.6, from its lock file.

    python3 tools/write_bill.py            writes docs/reference/bill-of-materials/PAIR.cdx.json
    python3 tools/write_bill.py --check    fails if one is stale

There is no date and no serial number in it: the same lock file gives the same bill.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
PAIRS = ROOT / "src" / "boardcluster" / "services" / "pairs"
BILLS = ROOT / "docs" / "reference" / "bill-of-materials"


def component(name: str, version: str, purl: str, sha256: str, group: str = "") -> dict[str, Any]:
    """Return one component as CycloneDX has it."""
    return {
        "type": "library",
        "bom-ref": purl,
        **({"group": group} if group else {}),
        "name": name,
        "version": version,
        "hashes": [{"alg": "SHA-256", "content": sha256}],
        "purl": purl,
    }


def bill(pair: dict[str, Any]) -> str:
    """Return the bill of a pair as text, one component on each line."""
    python, _, version = pair["pyspark"]["requirement"].partition("==")
    rows = [component(python, version, f"pkg:pypi/{python}@{version}", pair["pyspark"]["sha256"])]
    for place, sum_and_size in pair["jars"].items():
        group, name, revision, *classifier = place.split(":")
        purl = f"pkg:maven/{quote(group)}/{quote(name)}@{quote(revision)}"
        purl += f"?classifier={quote(classifier[0])}" if classifier else ""
        rows.append(component(name, revision, purl, sum_and_size.split()[0], group))
    whole = {"type": "application", "name": pair["id"]}
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
    head["metadata"] = {"component": whole}
    listed = ",\n".join(json.dumps(row) for row in rows)
    return f'{json.dumps(head)[:-1]}, "components": [\n{listed}\n]}}\n'


def main() -> None:
    """Write all bills, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail if stale")
    check = parser.parse_args().check
    stale = []
    for lock in sorted(PAIRS.glob("*.toml")):
        pair = tomllib.loads(lock.read_text())
        path = BILLS / f"{pair['id']}.cdx.json"
        text = bill(pair)
        if path.exists() and path.read_text() == text:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    if check and stale:
        sys.exit(f"stale: {', '.join(stale)}; run python3 tools/write_bill.py")


if __name__ == "__main__":
    main()
