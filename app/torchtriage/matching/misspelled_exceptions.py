"""Misspelled names of exceptions: `torch.distributed.elastic.multiprocessiong.erroes.ChildFailedError`."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.patterns import Patterns

_NAMED = lazy_regex(r"\b(?:[a-z_]\w*\.){2,}[A-Z]\w*(?:Error|Exception|Interrupt)\b")
_MOST_TYPOS = 2  # letters of one part of a name
_SHORTEST = 5  # letters of a part in which a typo differs from another name


class ExceptionNames:
    """The dotted names of exceptions in the entries' examples; they are read when first needed."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._known: dict[str, tuple[str, str] | None] = {}

    def misspelling(self, text: str) -> tuple[str, str] | None:
        """-> of the first name in a text the misspelled parts, and their right spelling; None where it is not known to
        be misspelled."""
        found = _NAMED.search(text)
        if found is None:
            return None
        name = found[0]
        if name not in self._known:
            self._known[name] = self._nearest(name.split("."))
        return self._known[name]

    def _nearest(self, parts: list[str]) -> tuple[str, str] | None:
        unknown = [part for part in parts if part not in self._parts]
        if not unknown or any(len(part) < _SHORTEST for part in unknown):
            return None
        for name in self._names:
            pairs = list(zip(parts, name, strict=False))
            wrong = [(part, right) for part, right in pairs if part != right]
            if len(parts) == len(name) and all(_is_typo(part, right) for part, right in wrong):
                return " … ".join(part for part, _ in wrong), " … ".join(right for _, right in wrong)
        return None

    @cached_property
    def _names(self) -> list[list[str]]:
        return self._patterns.cached("names", (Path(__file__),), self._read)

    @cached_property
    def _parts(self) -> set[str]:
        return {part for name in self._names for part in name}

    def _read(self) -> list[list[str]]:
        """-> the parts of each name that the examples hold."""
        entries = {pattern.entry.id: pattern.entry for pattern in self._patterns.all}
        texts = (text for entry in entries.values() for text in entry.messages())
        return [name.split(".") for name in sorted({found for text in texts for found in _NAMED.findall(text)})]


def _is_typo(part: str, right: str) -> bool:
    from rapidfuzz.distance import Levenshtein  # here, as few logs need it

    return Levenshtein.distance(part, right, score_cutoff=_MOST_TYPOS) <= _MOST_TYPOS
