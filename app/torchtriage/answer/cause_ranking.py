"""Orders an entry's causes and fixes: those that match the failure's words come first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from torchtriage.domain.entry import Cause, Fix
from torchtriage.linear_regex import linear_regex

Part = TypeVar("Part", Cause, Fix)
_MEANT, _ALWAYS, _OTHERS = range(3)


def most_likely_first(parts: Iterable[Part], words: str) -> list[Part]:
    """Returns the parts in a new order: first those whose `shown_by` matches the words, then those without a
    `shown_by`, then the rest. Within each group, the entry's order is kept."""
    return sorted(parts, key=lambda part: _place(part.shown_by, words))


def shows(words: str, shown_by: str) -> bool:
    """Returns whether the regex `shown_by` matches the failure's words."""
    return linear_regex(shown_by).search(words) is not None


def _place(shown_by: str | None, words: str) -> int:
    if shown_by is None:
        return _ALWAYS
    return _MEANT if shows(words, shown_by) else _OTHERS
