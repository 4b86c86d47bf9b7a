"""Orders an entry's causes and fixes: those whose words the failure contains come first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from torchtriage.domain.entry import Cause, Fix
from torchtriage.linear_regex import linear_regex

Part = TypeVar("Part", Cause, Fix)
_MEANT, _ALWAYS, _OTHERS = range(3)


def likeliest(parts: Iterable[Part], words: str) -> list[Part]:
    """-> first the parts whose `shown_by` is found in the words, then those without one, then those of other words;
    the entry's order within each."""
    return sorted(parts, key=lambda part: _place(part.shown_by, words))


def shows(words: str, shown_by: str) -> bool:
    """-> whether the failure's words hold what the regex asks for."""
    return linear_regex(shown_by).search(words) is not None


def _place(shown_by: str | None, words: str) -> int:
    if shown_by is None:
        return _ALWAYS
    return _MEANT if shows(words, shown_by) else _OTHERS
