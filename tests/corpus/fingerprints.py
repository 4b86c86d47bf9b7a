"""Writes `fingerprints.json`: the fingerprint of each case, by which groups of old incidents are found again.

python -m tests.corpus.fingerprints
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.built_in import built_in_engine
from torchtriage.causality.fingerprint import VERSION
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.reading.sources import open_path

CORPUS = Path(__file__).resolve().parent
FILE = CORPUS / "fingerprints.json"
AGAIN = "python -m tests.corpus.fingerprints"


def case_names() -> list[str]:
    return sorted(path.parent.name for path in CORPUS.glob("*/case.json"))


def triaged(engine: Engine, name: str) -> Verdict:
    """-> the verdict of a case's log."""
    folder = CORPUS / name
    return engine.triage(open_path(folder / "log" if (folder / "log").is_dir() else folder / "log.txt"))


def pin(verdict: Verdict) -> dict[str, str | None]:
    """-> what of a verdict is kept: the fingerprint, and the entry by which it was made."""
    return {"entry": verdict.root_cause.entry if verdict.root_cause else None, "fingerprint": verdict.fingerprint}


def read() -> dict[str, Any]:
    """-> `version` of the rules, and `cases` by name."""
    kept: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return kept


def main() -> None:
    engine = built_in_engine()
    cases = {name: pin(triaged(engine, name)) for name in case_names()}
    FILE.write_text(json.dumps({"version": VERSION, "cases": cases}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
