"""Real runs of small scenarios (tests/corpus): the engine must find the cause that each one's label names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.domain.verdict import Verdict
from app.knowledge import BUILT_IN
from app.knowledge.loader import load
from app.reading.sources import open_path
from app.triage.engine import Engine

CORPUS = Path(__file__).resolve().parent / "corpus"
CASES = sorted(path.parent.name for path in CORPUS.glob("*/case.json"))
HEALTHY = "none.success"

# Cases that fail today, and why; one that passes must leave the list.
KNOWN_MISSES: dict[str, str] = {}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(load([BUILT_IN]))


def labelled() -> list[Any]:
    """-> each case's name, marked where it is known to fail."""
    return [
        pytest.param(name, marks=pytest.mark.xfail(reason=KNOWN_MISSES[name], strict=True))
        if name in KNOWN_MISSES
        else name
        for name in CASES
    ]


def quoted(verdict: Verdict, wanted: str) -> bool:
    """-> whether a line of the verdict's evidence is the labelled one, or the better part of it."""
    lines = [line.text.strip() for line in verdict.root_cause.evidence] if verdict.root_cause else []
    return any(wanted[:80] in line or (len(line) > 20 and line[:80] in wanted) for line in lines)


@pytest.mark.parametrize("name", labelled())
def test_the_labelled_cause_is_found(engine: Engine, name: str) -> None:
    folder = CORPUS / name
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    log = folder / "log" if (folder / "log").is_dir() else folder / "log.txt"
    verdict = engine.triage(open_path(log))
    root = verdict.root_cause
    accepted = {case["root_cause"], *case["also_ok"]}
    if case["root_cause"] == HEALTHY:
        assert verdict.outcome == "healthy" or (root and root.entry in accepted), root
        return
    assert root is not None
    assert root.entry in accepted, (root.entry, root.reasons)
    if case["first_failing_rank"] is not None:
        # Where the log does not tell the rank, saying nothing is right and guessing another is wrong.
        assert root.rank in {case["first_failing_rank"], *([] if case["rank_told"] else [None])}, root.reasons
    if case["evidence"]:
        assert quoted(verdict, case["evidence"].strip()), root.evidence


def test_no_case_names_this_machine_or_is_large() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files) < 3_000_000
    assert not [
        path
        for path in files
        if b"/site-packages" in re.sub(rb"/opt/venv/lib/python3\.\d+/site-packages", b"", path.read_bytes())
    ]


def test_known_misses_are_cases() -> None:
    assert set(KNOWN_MISSES) <= set(CASES)
