"""A stored verdict in the reader's language: a Verdict and today's knowledge in, a Verdict out.

Titles, causes and fixes come from the knowledge base while it has the entry, else they stay as they were stored.
"""

from __future__ import annotations

from dataclasses import replace

from torchtriage.answer.action import advise, explained, nothing_failed
from torchtriage.answer.reasons import tell
from torchtriage.domain.entry import Entry, KnowledgeBase, Language
from torchtriage.domain.verdict import Action, Candidate, Verdict


def localized(verdict: Verdict, knowledge: KnowledgeBase, lang: Language) -> Verdict:
    """-> the verdict as this reader should see it."""
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
