"""How entries hang together: an entry in, what can follow from it and what it can follow from out."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from torchtriage.domain.entry import Entry, KnowledgeBase


@dataclass(frozen=True, slots=True)
class Related:
    """`explains` and `explained_by` are entries, by id."""

    explains: tuple[Entry, ...]
    explained_by: tuple[Entry, ...]


def related(entry: Entry, knowledge: KnowledgeBase) -> Related:
    others = [other for _, other in sorted(knowledge.entries.items()) if other.id != entry.id]
    return Related(
        tuple(other for other in others if _explains(entry, other)),
        tuple(other for other in others if _explains(other, entry)),
    )


def _explains(cause: Entry, effect: Entry) -> bool:
    return any(fnmatchcase(effect.id, pattern) for pattern in cause.explains)
