"""The house rules of the knowledge base: every entry is proved by its own examples, by the engine itself."""

from __future__ import annotations

from app.domain.entry import Entry, KnowledgeBase, Sign
from app.reading.scan import PatternError
from app.reading.scan import problem as refused_by_hyperscan
from app.reading.sources import from_bytes
from app.triage.engine import Engine
from app.triage.patterns import refused_by_re2, source


def problems(knowledge: KnowledgeBase) -> list[str]:
    """-> one sentence a problem, each beginning with the entry's file; empty where the base is sound."""
    found = _unknown_explains(knowledge.entries)
    found += [problem for entry in knowledge.entries.values() for problem in _refused_by_re2(entry)]
    try:
        engine = Engine(knowledge)
    except PatternError:
        return found + [problem for entry in knowledge.entries.values() for problem in _refused_by_hyperscan(entry)]
    if found:
        return found
    claimed: dict[str, str] = {}
    for entry in knowledge.entries.values():
        found += _examples(entry, engine)
        for example in entry.match_examples:
            if (other := claimed.setdefault(example.strip(), entry.id)) != entry.id:
                found.append(f"{entry.file}:1: claims an example of {other}: {_short(example)}")
    return found


def _refused_by_re2(entry: Entry) -> list[str]:
    patterns = [pattern for sign in _flat(entry.signs) for pattern in (source(sign), sign.unless) if pattern]
    patterns += [pattern for _, pattern in entry.capture]
    reasons = ((pattern, refused_by_re2(pattern)) for pattern in patterns)
    return [f"{entry.file}:1: RE2 refuses {pattern!r}: {reason}" for pattern, reason in reasons if reason]


def _refused_by_hyperscan(entry: Entry) -> list[str]:
    """One pattern at a time takes seconds, so this is asked only once it is known that one is refused."""
    reasons = ((source(sign), refused_by_hyperscan(source(sign))) for sign in _flat(entry.signs))
    return [f"{entry.file}:1: Hyperscan refuses {pattern!r}: {reason}" for pattern, reason in reasons if reason]


def _examples(entry: Entry, engine: Engine) -> list[str]:
    found: list[str] = []
    for example in entry.match_examples:
        verdict = engine.triage(from_bytes(example.encode()))
        winner = verdict.root_cause.entry if verdict.root_cause else verdict.outcome
        if winner != entry.id:
            found.append(f"{entry.file}:1: its example is won by {winner}: {_short(example)}")
    for example in entry.no_match_examples:
        verdict = engine.triage(from_bytes(example.encode()))
        if verdict.root_cause and verdict.root_cause.entry == entry.id:
            found.append(f"{entry.file}:1: it matches its counter-example: {_short(example)}")
    return found


def _flat(signs: tuple[Sign, ...]) -> list[Sign]:
    return [part for sign in signs for part in (sign.all or (sign,))]


def _short(example: str) -> str:
    text = " ".join(example.split())
    return text if len(text) <= 120 else f"{text[:117]}…"


def _unknown_explains(entries: dict[str, Entry]) -> list[str]:
    """-> a problem for each id (not glob) in `explains` that no entry has."""
    return [
        f"{entry.file}:1: explains {name!r}, which no entry has"
        for entry in entries.values()
        for name in entry.explains
        if "*" not in name and name not in entries
    ]
