"""Writes a software bill of materials (CycloneDX JSON) to standard output: every package of a lock file, with hashes
and dependencies. The same lock file gives the same document.

python -m scripts.sbom requirements.lock
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from pathlib import Path
from typing import Any

from torchtriage import __version__

_PACKAGE = re.compile(
    r"^(?P<name>[a-z0-9-]+)(?:\[[a-z0-9,-]+\])?==(?P<version>\S+)(?: ; (?P<marker>.+?))? \\$", re.MULTILINE
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_ASKED_BY = re.compile(r"^ +# +(?:via )?(?!-c)([a-z0-9-]+)", re.MULTILINE)
_OURS = "torchtriage"


def document(lock: str) -> dict[str, Any]:
    """Returns the document. Raises ValueError if `lock` is not one of our lock files."""
    places = [found.start() for found in _PACKAGE.finditer(lock)]
    if not places:
        raise ValueError("no package with a version in it")
    blocks = [lock[start:end] for start, end in zip(places, [*places[1:], len(lock)], strict=True)]
    components = [_component(block) for block in blocks]
    ours = f"pkg:pypi/{_OURS}@{__version__}"
    named = {_OURS: [ours]}
    for component in components:
        named.setdefault(component["name"], []).append(component["bom-ref"])
    needs: dict[str, list[str]] = {ours: [], **{component["bom-ref"]: [] for component in components}}
    for component, block in zip(components, blocks, strict=True):
        for name in _ASKED_BY.findall(block):
            for ref in named.get(name, ()):
                needs[ref].append(component["bom-ref"])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, ours + lock)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": ours,
                "name": _OURS,
                "version": __version__,
                "purl": ours,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": sorted(set(refs))} for ref, refs in needs.items()],
    }


def _component(block: str) -> dict[str, Any]:
    found = _PACKAGE.match(block)
    assert found is not None
    name, version, marker = found["name"], found["version"], found["marker"]
    purl = f"pkg:pypi/{name}@{version}"
    component = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "scope": "optional" if marker else "required",
        "hashes": [{"alg": "SHA-256", "content": content} for content in _HASH.findall(block)],
    }
    return component | ({"properties": [{"name": f"{_OURS}:marker", "value": marker}]} if marker else {})


if __name__ == "__main__":
    print(json.dumps(document(Path(sys.argv[1]).read_text()), indent=2))
