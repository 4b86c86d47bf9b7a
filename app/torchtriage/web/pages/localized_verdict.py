"""A stored verdict in the reader's language: its JSON and today's knowledge in, a Verdict out.

Titles, causes and fixes come from the knowledge base while it has the entry, else they stay as they were stored.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from torchtriage.answer.action import advise, explained, nothing_failed
from torchtriage.answer.reasons import tell
from torchtriage.domain.entry import Entry, KnowledgeBase, Language
from torchtriage.domain.verdict import (
    Action,
    Attempt,
    Candidate,
    Cascade,
    EarlierRun,
    Evidence,
    RankMark,
    RootCause,
    RunFacts,
    Stats,
    Verdict,
)

Part = TypeVar("Part")


def told_verdict(stored: dict[str, Any], knowledge: KnowledgeBase, lang: Language) -> Verdict:
    """-> the verdict as this reader should see it."""
    verdict = _verdict(stored)
    root = verdict.root_cause
    entry = knowledge.entries.get(root.entry) if root and root.entry else None
    if root and root.because:
        root = replace(root, reasons=tell(root.because, lang))
    if root and entry:
        root = explained(root, entry, verdict.run.versions_inferred | verdict.run.versions, lang)
    candidates = tuple(_candidate(candidate, knowledge, lang) for candidate in verdict.candidates)
    action = _action(verdict, entry, lang)
    return replace(verdict, root_cause=root, candidates=candidates, action=action)


def title_of(entry: str | None, knowledge: KnowledgeBase, lang: Language, stored: str | None = None) -> str | None:
    """-> an entry's title today, else the one that was stored, else its id."""
    known = knowledge.entries.get(entry) if entry else None
    return known.title.in_(lang) if known else stored or entry


def _candidate(candidate: Candidate, knowledge: KnowledgeBase, lang: Language) -> Candidate:
    return replace(candidate, title=title_of(candidate.entry, knowledge, lang, candidate.title) or candidate.entry)


def _action(verdict: Verdict, entry: Entry | None, lang: Language) -> Action:
    """-> the stored action; only its sentence is today's, where nothing else about it changed."""
    stored, root = verdict.action, verdict.root_cause
    if root is None:
        today = nothing_failed(lang)
    elif root.entry and entry is None:
        return stored
    else:
        today = advise(entry, root.words, stored.exclude_hosts, lang)
    return replace(stored, reason=today.reason) if today.advice == stored.advice else stored


def _verdict(stored: dict[str, Any]) -> Verdict:
    """-> the dataclasses that the JSON was made of."""
    root = stored.get("root_cause")
    return Verdict(
        source=stored["source"],
        outcome=stored["outcome"],
        signature=stored.get("signature"),
        fingerprint=stored.get("fingerprint"),
        root_cause=_root(root) if root else None,
        candidates=_parts(Candidate, stored, "candidates"),
        cascades=_parts(Cascade, stored, "cascades"),
        action=_part(Action, stored["action"]),
        run=_part(RunFacts, stored.get("run") or {}),
        attempts=_parts(Attempt, stored, "attempts"),
        earlier_runs=_parts(EarlierRun, stored, "earlier_runs"),
        warnings=tuple(stored.get("warnings", ())),
        stats=_part(Stats, stored.get("stats") or {}),
        engine=stored.get("engine", ""),
        knowledge=stored.get("knowledge", ""),
        timeline=_parts(RankMark, stored, "timeline"),
    )


def _root(stored: dict[str, Any]) -> RootCause:
    root = _part(RootCause, stored)
    return replace(root, evidence=_parts(Evidence, stored, "evidence"))


def _parts(kind: type[Part], stored: dict[str, Any], name: str) -> tuple[Part, ...]:
    return tuple(_part(kind, part) for part in stored.get(name) or ())


def _part(kind: type[Part], stored: dict[str, Any]) -> Part:
    """-> the dataclass; what another version of the engine stored besides is left out."""
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    given = {name: value for name, value in stored.items() if name in known}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
