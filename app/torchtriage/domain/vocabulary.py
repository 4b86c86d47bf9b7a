"""The vocabulary of the knowledge base: named lists of words and of patterns that the engine uses.

These classes have no slots, as in entry.py: each start reads them from a pickle.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class VocabularyPattern:
    """An RE2 regex that is searched in a text. `unless` must not match at the same place. `name` is the meaning of a
    match, if a list distinguishes its patterns. `tells` are the facts, by name, that follow from a match. Lists of
    facts also have `units` and `tells_of`, by group, and a `pointer` for the scan."""

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
        """The regex for Python's re, with the part that must not match."""
        return self._cased(f"(?!{self.unless})(?:{self.regex})" if self.unless else self.regex)

    @property
    def loose(self) -> str:
        """The regex without the part that must not match, because RE2 and Hyperscan have no look-ahead. It finds at
        least as much."""
        return self._cased(self.regex)

    def _cased(self, regex: str) -> str:
        return f"(?i:{regex})" if self.ignore_case else regex


@dataclass(frozen=True)
class VocabularyList:
    """One list: its purpose, the source of its items, and the items in order. All items have one form: words, patterns,
    or groups of words by name. `facts` says what the groups of the patterns mean, if they are facts."""

    name: str
    purpose: str = ""
    source: str = ""
    words: tuple[str, ...] = ()
    patterns: tuple[VocabularyPattern, ...] = ()
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()

    def plus(self, other: VocabularyList) -> VocabularyList:
        """Returns this list with the items of another one after its own."""
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
    """All lists by name. Raises KeyError for a list that the knowledge base does not have."""

    lists: dict[str, VocabularyList] = field(default_factory=dict)

    def words(self, name: str) -> tuple[str, ...]:
        """Returns the words of a list."""
        return self.lists[name].words

    def regex(self, name: str) -> str:
        """Returns one Python regex for all items of a list. Words are matched literally."""
        found = self.lists[name]
        return "|".join((*(re.escape(word) for word in found.words), *(item.exact for item in found.patterns)))

    def patterns(self, name: str) -> tuple[VocabularyPattern, ...]:
        """Returns the patterns of a list."""
        return self.lists[name].patterns

    def beginning(self, prefix: str) -> tuple[VocabularyList, ...]:
        """Returns the lists whose names begin with `prefix`, in order."""
        return tuple(self.lists[name] for name in sorted(self.lists) if name.startswith(prefix))

    def groups(self, name: str) -> dict[str, tuple[str, ...]]:
        """Returns the groups of a list: the words under each name."""
        return dict(self.lists[name].groups)
