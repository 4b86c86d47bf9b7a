"""Recognizes misspelled names of exceptions, such as
`torch.distributed.elastic.multiprocessiong.erroes.ChildFailedError`."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.patterns import Patterns

_NAMED = lazy_regex(r"\b(?:[a-z_]\w*\.){2,}[A-Z]\w*(?:Error|Exception|Interrupt)\b")
_MAX_TYPOS = 2  # wrong letters in one part of a name
_MIN_LENGTH = 5  # letters of a name's part; in a shorter one, a typo looks like another name


class ExceptionNames:
    """The dotted names of exceptions in the entries' examples. They are read at the first use."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._known: dict[str, tuple[str, str] | None] = {}

    def misspelling(self, text: str) -> tuple[str, str] | None:
        """Returns the misspelled parts of the first exception name in a text, and their correct spelling. Returns None
        if the name is not known to be misspelled."""
        found = _NAMED.search(text)
        if found is None:
            return None
        name = found[0]
        if name not in self._known:
            self._known[name] = self._nearest(name.split("."))
        return self._known[name]

    def _nearest(self, parts: list[str]) -> tuple[str, str] | None:
        unknown = [part for part in parts if part not in self._parts]
        if not unknown or any(len(part) < _MIN_LENGTH for part in unknown):
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
        """Returns the parts of each exception name in the examples."""
        entries = {pattern.entry.id: pattern.entry for pattern in self._patterns.all}
        texts = (text for entry in entries.values() for text in entry.messages())
        return [name.split(".") for name in sorted({found for text in texts for found in _NAMED.findall(text)})]


def _is_typo(part: str, right: str) -> bool:
    from rapidfuzz.distance import Levenshtein  # imported here because few logs need it

    return Levenshtein.distance(part, right, score_cutoff=_MAX_TYPOS) <= _MAX_TYPOS
