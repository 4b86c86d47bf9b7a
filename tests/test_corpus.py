"""Real runs of small scenarios (tests/corpus). The engine must find the labeled cause of each."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.built_in import built_in_engine
from tests.corpus import fingerprints
from tests.corpus.fingerprints import CORPUS
from torchtriage.causality.fingerprint import VERSION
from torchtriage.domain.verdict import Verdict

CASES = fingerprints.case_names()
HEALTHY = "none.success"

# Cases that currently fail, and why. A case that passes must leave the list.
KNOWN_MISSES: dict[str, str] = {}


@pytest.fixture(scope="module")
def triaged() -> Callable[[str], Verdict]:
    """Returns a function that triages a case."""
    return functools.cache(functools.partial(fingerprints.triaged, built_in_engine()))


def labelled() -> list[Any]:
    """Returns each case's name. Those in KNOWN_MISSES are marked."""
    return [
        pytest.param(name, marks=pytest.mark.xfail(reason=KNOWN_MISSES[name], strict=True))
        if name in KNOWN_MISSES
        else name
        for name in CASES
    ]


def quoted(verdict: Verdict, wanted: str) -> bool:
    """Returns whether the verdict's evidence has the labeled line, or most of it."""
    lines = [line.text.strip() for line in verdict.root_cause.evidence] if verdict.root_cause else []
    return any(wanted[:80] in line or (len(line) > 20 and line[:80] in wanted) for line in lines)


@pytest.mark.parametrize("name", labelled())
def test_the_labeled_cause_of_a_corpus_log_is_found(triaged: Callable[[str], Verdict], name: str) -> None:
    case = json.loads((CORPUS / name / "case.json").read_text(encoding="utf-8"))
    verdict = triaged(name)
    root = verdict.root_cause
    accepted = {case["root_cause"], *case["also_ok"]}
    if case["root_cause"] == HEALTHY:
        assert verdict.outcome == "healthy" or (root and root.entry in accepted), root
        return
    assert root is not None
    assert root.entry in accepted, (root.entry, root.reasons)
    if case["first_failing_rank"] is not None:
        # If the log does not show the rank, None is right, and any other rank is wrong.
        assert root.rank in {case["first_failing_rank"], *([] if case["rank_told"] else [None])}, root.reasons
    if case["evidence"]:
        assert quoted(verdict, case["evidence"].strip()), root.evidence


def test_fingerprints_change_only_with_their_version(triaged: Callable[[str], Verdict]) -> None:
    """People's decisions about groups survive an upgrade only if a changed version starts the check of their logs
    (decision 0026)."""
    pinned = fingerprints.read()
    now = {name: fingerprints.pin(triaged(name)) for name in CASES}
    problem = _unpinned(pinned, now, VERSION)
    assert not problem, problem


def _unpinned(pinned: dict[str, Any], now: dict[str, dict[str, str | None]], version: str) -> str:
    """Returns what to do if fingerprints of cases differ from the stored ones; empty if they are equal."""
    again = f"then run: {fingerprints.AGAIN}"
    cases = pinned["cases"]
    rules = [name for name in now if name in cases and cases[name]["entry"] == now[name]["entry"]]
    others = [name for name in rules if cases[name]["fingerprint"] != now[name]["fingerprint"]]
    if others and version == pinned["version"]:
        return (
            f"the same cause has another fingerprint now ({', '.join(others)}), so the rules changed: give VERSION in "
            f"app/torchtriage/causality/fingerprint.py the next number, so that groups are carried over, {again}"
        )
    if cases != now or version != pinned["version"]:
        return f"cases, entries or the version changed: see that this is meant, {again}"
    return ""


def test_the_test_says_what_to_do_if_fingerprints_changed() -> None:
    pinned = {"version": "v1", "cases": {"a": {"entry": "cuda.oom", "fingerprint": "v1:1"}}}
    assert _unpinned(pinned, pinned["cases"], "v1") == ""  # type: ignore[arg-type]
    rules = {"a": {"entry": "cuda.oom", "fingerprint": "v1:2"}}
    assert "(a)" in _unpinned(pinned, rules, "v1")  # type: ignore[arg-type]
    assert "next number" in _unpinned(pinned, rules, "v1")  # type: ignore[arg-type]
    for entry, version in (("cuda.oom", "v2"), ("cuda.oom-large", "v1")):
        found = {"a": {"entry": entry, "fingerprint": f"{version}:2"}}
        assert fingerprints.AGAIN in _unpinned(pinned, found, version)  # type: ignore[arg-type]
        assert "next number" not in _unpinned(pinned, found, version)  # type: ignore[arg-type]


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
