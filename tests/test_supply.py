"""Supply-chain data of the shipped packages: the SBOM, and the audit of advisories."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from scripts.sbom import document
from tests.http_server import Asked, Told, serving

ROOT = Path(__file__).resolve().parents[1]
ADVISORY = {
    "id": "PYSEC-2026-1", "summary": "made up", "aliases": [], "modified": "2026-01-01T00:00:00Z",
    "affected": [{"package": {"name": "jinja2", "ecosystem": "PyPI"}, "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.1"}]}], "versions": []}],
}  # fmt: skip


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-image.lock"])
def test_the_sbom_fits_its_schema_and_contains_the_whole_lock(name: str) -> None:
    lock = (ROOT / name).read_text()
    made = document(lock)
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(made))
    assert problem is None, str(problem)[:500]
    listed = {(one["name"], one["version"]) for one in made["components"]}
    assert listed == set(re.findall(r"^([a-z0-9-]+)(?:\[[a-z,]+\])?==(\S+)", lock, re.MULTILINE))
    assert sum(len(one["hashes"]) for one in made["components"]) == lock.count("--hash=sha256:")
    needed = {ref for each in made["dependencies"] for ref in each["dependsOn"]}
    assert needed == {one["bom-ref"] for one in made["components"]}  # each component is needed by another
    assert document(lock) == made


def test_what_is_no_lock_is_no_sbom() -> None:
    with pytest.raises(ValueError, match="no package"):
        document("")


def audited(url: str) -> subprocess.CompletedProcess[str]:
    programs = str(Path(sys.executable).parent)
    environment = {**os.environ, "BIN": programs, "OSV_URL": url, "NO_PROXY": "127.0.0.1"}
    return subprocess.run([ROOT / "scripts" / "audit.sh"], env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_the_audit_fails_only_with_advisories() -> None:
    known: dict[str, bytes] = {}

    def answer(asked: Asked) -> Told:
        package = json.loads(asked.body)["package"]["name"]
        return Told(known.get(package, b"{}"))

    with serving(answer) as url:
        done = audited(url)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("no known advisories") == 2
        known["jinja2"] = json.dumps({"vulns": [ADVISORY]}).encode()
        done = audited(url)
    assert done.returncode == 1
    assert re.search(r"jinja2 +3\.\S+ +PYSEC-2026-1 +99\.1", done.stdout)


def test_an_audit_without_a_database_says_so() -> None:
    done = audited("http://127.0.0.1:1/")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "the advisories can't be looked up (offline?), so requirements-image.lock was not checked" in line
