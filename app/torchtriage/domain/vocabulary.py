"""The vocabulary of the knowledge base: named lists of words and of patterns, read where the engine needs them.

No slots here, as with entries: each start reads them out of a pickle.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class VocabularyPattern:
    """A regex of RE2, searched in a text; `unless` is one that must not match at the same place. `name` is what a match
    stands for, where a list tells its patterns apart; `tells` are the facts, by name, that follow from one. Lists of
    facts have `units`, by group, `tells_of`, and a `pointer` for the scan."""

    regex: str
    unless: str | None = None
    name: str | None = None
    tells: tuple[tuple[str, str], ...] = ()
    ignore_case: bool = False
    units: tuple[tuple[str, str], ...] = ()
    tells_of: str = "run"
    pointer: str = ""

    @property
    def exact(self) -> str:
        """The regex for Python's re, with what it must not match."""
        return self._cased(f"(?!{self.unless})(?:{self.regex})" if self.unless else self.regex)

    @property
    def loose(self) -> str:
        """The regex without what it must not match, as RE2 and Hyperscan know no look-ahead: it finds no less."""
        return self._cased(self.regex)

    def _cased(self, regex: str) -> str:
        return f"(?i:{regex})" if self.ignore_case else regex


@dataclass(frozen=True)
class VocabularyList:
    """One list: what it is for, where its items come from, and the items in their order, all of one form:
    words, patterns, or groups of words by name. `facts`: what the groups of its patterns mean, where they are facts."""

    name: str
    purpose: str = ""
    source: str = ""
    words: tuple[str, ...] = ()
    patterns: tuple[VocabularyPattern, ...] = ()
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()

    def plus(self, other: VocabularyList) -> VocabularyList:
        """-> this list with the items of another one behind its own."""
        groups = dict(self.groups)
        for name, words in other.groups:
            groups[name] = tuple(dict.fromkeys((*groups.get(name, ()), *words)))
        return VocabularyList(
            self.name,
            self.purpose,
            self.source,
            tuple(dict.fromkeys((*self.words, *other.words))),
            (*self.patterns, *other.patterns),
            tuple(groups.items()),
            tuple({**dict(self.facts), **dict(other.facts)}.items()),
        )


@dataclass(frozen=True)
class Vocabulary:
    """All lists by name. Asking for a list that the knowledge base lacks raises KeyError."""

    lists: dict[str, VocabularyList] = field(default_factory=dict)

    def words(self, name: str) -> tuple[str, ...]:
        """-> the words of a list."""
        return self.lists[name].words

    def regex(self, name: str) -> str:
        """-> one regex of Python's re for all items of a list, words literally."""
        found = self.lists[name]
        return "|".join((*(re.escape(word) for word in found.words), *(item.exact for item in found.patterns)))

    def patterns(self, name: str) -> tuple[VocabularyPattern, ...]:
        """-> the patterns of a list."""
        return self.lists[name].patterns

    def beginning(self, prefix: str) -> tuple[VocabularyList, ...]:
        """-> the lists whose names begin so, in their order."""
        return tuple(self.lists[name] for name in sorted(self.lists) if name.startswith(prefix))

    def groups(self, name: str) -> dict[str, tuple[str, ...]]:
        """-> the groups of a list: the words under each name."""
        return dict(self.lists[name].groups)
