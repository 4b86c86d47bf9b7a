"""Finds the keys of a mapping that the program printed, if the message says that the mapping lacks an entry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.fact import Fact
from torchtriage.domain.line import Line
from torchtriage.lazy_regex import lazy_regex

UNMAPPED_NAMES = "unmapped-names"  # the name of a list in the vocabulary
_KEY = lazy_regex(r"['\"]([^'\"\n]{0,200})['\"]\s?:")
_LONGEST = 20_000  # characters of a printed mapping
_MOST_SHOWN = 12  # names
_ALIKE = 0.8


def printed_mapping(failure: Failure) -> Iterator[Fact]:
    """Yields `mapped_names`, the keys of the mapping as this rank printed it last (`model.layers.0-12, lm_head`), and
    `mapped_names_line`. `similar_name` is a key that is spelled like the missing name or a part above it."""
    message = failure.raised.message if failure.raised else ""
    for pattern in failure.reading.matcher.patterns.vocabulary.patterns(UNMAPPED_NAMES):
        found = re.search(pattern.regex, message) if message else None
        printed = _printed(pattern.name or "", failure) if found else None
        if found is None or printed is None:
            continue
        keys, line = printed
        yield failure.fact("mapped_names", _shown(keys), line=line)
        yield failure.fact("mapped_names_line", line.number, line=line)
        if similar := _similar(found["lacking"], keys):
            yield failure.fact("similar_name", similar, line=line)
        return


def _printed(name: str, failure: Failure) -> tuple[list[str], Line] | None:
    """Returns the keys that the failing rank, or a process of no known rank, printed last, and the line."""
    form = re.compile(rf"(?<!\w){re.escape(name)}['\"]?\s?[=:]\s?\{{([^{{}}\n]{{2,{_LONGEST}}})\}}")
    for line in reversed(failure.printed):
        ours = failure.root.rank is None or line.rank in (None, failure.root.rank)
        found = form.search(failure.shown(line.text)) if ours and name in line.text else None
        if found and (keys := list(dict.fromkeys(_KEY.findall(found[1])))):
            return keys, line
    return None


def _shown(keys: Iterable[str]) -> str:
    """Returns the keys in their order. Consecutive numbers at the end of a name are joined."""
    told: list[tuple[str, int | None, int | None]] = []  # the name before its number, the first and the last number
    for key in keys:
        stem, number = _numbered(key)
        if told and number is not None and told[-1][0] == stem and told[-1][2] == number - 1:
            told[-1] = stem, told[-1][1], number
        else:
            told.append((stem, number, number))
    shown = [
        stem if first is None else f"{stem}{first}" if first == last else f"{stem}{first}-{last}"
        for stem, first, last in told
    ]
    more = f" and {len(shown) - _MOST_SHOWN} more" if len(shown) > _MOST_SHOWN else ""
    return ", ".join(name or '""' for name in shown[:_MOST_SHOWN]) + more


def _numbered(key: str) -> tuple[str, int | None]:
    stem, dot, last = key.rpartition(".")
    return (stem + dot, int(last)) if last.isdecimal() else (key, None)


def _similar(lacking: str, keys: list[str]) -> str | None:
    parts = lacking.split(".")
    for length in range(len(parts), 0, -1):
        wanted = ".".join(parts[:length])
        words = re.sub(r"\d+", "", wanted)
        others = [key for key in keys if re.sub(r"\d+", "", key) != words and key.count(".") == length - 1]
        if near := get_close_matches(wanted, others, 1, _ALIKE):
            return near[0]
    return None
