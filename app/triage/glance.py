"""A glance at many lines at once: which extractors may read each of them, and which facts and entries it may show.

Two scans over all of their texts, whatever their number. Most lines show nothing, and nothing in Python looks at them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from app.parsing.collectives import Collectives
from app.parsing.device import Device
from app.parsing.elastic import Elastic
from app.parsing.environment.told import LONGEST, OF_FIELD, SIGNS, SURE, shown_by
from app.parsing.processes import Processes
from app.parsing.scheduler import Scheduler
from app.parsing.tracebacks import Tracebacks
from app.reading.scan import Scanner

Found = list[tuple[int, int]]  # patterns, with the places behind their matches, in the order of these


class Seen(NamedTuple):
    """What one line may show. `begins`: which extractors may begin to read here, a bit each in their order; `facts`:
    the numbers of the environment's signs; `pointed`: the entries' patterns that may be there; `sure`: the signs are.
    """

    begins: int
    facts: tuple[int, ...]
    pointed: tuple[int, ...]
    sure: bool = True


NOTHING = Seen(0, (), ())


class Glance:
    """`pointed` scans bytes for what entries look for in lines; `cache` is a folder for the compiled patterns."""

    def __init__(self, pointed: Callable[[bytes], Found], cache: Path | None = None) -> None:
        self._facts, self._field, self._pointed = _facts(cache), _field(cache), pointed

    def at(self, texts: Iterable[str], of_field: bool = True) -> dict[str, Seen]:
        """-> what each text may show; those that show nothing are left out. `of_field`: the words of this field are
        looked for too, which nearly every line of a log holds."""
        lines = list(dict.fromkeys(texts))
        data = "\n".join(lines).encode("utf-8", "replace")
        ends = [at + end for at, end in enumerate(accumulate(map(len, data.split(b"\n"))), 1)]
        facts, pointed = _by_line(self._facts.ends(data)[0], ends), _by_line(self._pointed(data), ends)
        field = _by_line(self._field.ends(data)[0], ends) if of_field else {}
        seen: dict[str, Seen] = {}
        for at in facts.keys() | pointed.keys() | field.keys():
            line, told = lines[at], _seen(frozenset(facts.get(at, ())), frozenset(field.get(at, ())))
            if at in pointed or not told.sure or len(line) > LONGEST:
                entries = tuple(sorted(pointed[at])) if at in pointed else ()
                told = Seen(told.begins, shown_by(line, told.facts), entries)
            seen[line] = told
        return seen


# The extractors' words, each with the bit of its extractor; the order is that in which a run's reading asks them.
_WORDS = [
    (word, 1 << at)
    for at, words in enumerate(
        (Elastic.WORDS, Tracebacks.WORDS, Device.WORDS, Collectives.WORDS, Processes.WORDS, Scheduler.WORDS)
    )
    for word in words
]


@lru_cache(maxsize=4096)
def _seen(found: frozenset[int], of_field: frozenset[int]) -> Seen:
    """-> what a line may show at which the scans point with these patterns. Most lines of a log have the same ones."""
    begins = 0
    for number in found:
        begins |= _WORDS[number - OF_FIELD][1] if number >= OF_FIELD else 0
    signs = (*(number for number in found if number < OF_FIELD), *(OF_FIELD + number for number in of_field))
    return Seen(begins, tuple(sorted(signs)), (), SURE.issuperset(signs))


def _by_line(found: Found, ends: list[int]) -> dict[int, set[int]]:
    """-> the patterns that were found in each line, by its place; `found` is in the order of the matches' ends, `ends`
    are the places behind the lines' line feeds."""
    by_line: dict[int, set[int]] = {}
    at, end = -1, 0
    for index, place in found:
        if place >= end:
            while place >= end:
                at += 1
                end = ends[at]
            known = by_line[at] = set()
        known.add(index)
    return by_line


@cache
def _facts(cache: Path | None) -> Scanner:
    """-> the scanner for the environment's signs, but for the words of this field, and then for the extractors' words.
    It is the same for all knowledge."""
    return _scanner([*(sign.pointer for sign in SIGNS[:OF_FIELD]), *(re.escape(word) for word, _ in _WORDS)], cache)


@cache
def _field(cache: Path | None) -> Scanner:
    """-> the scanner for the words of this field."""
    return _scanner([sign.pointer for sign in SIGNS[OF_FIELD:]], cache)


def _scanner(patterns: list[str], cache: Path | None) -> Scanner:
    return Scanner(lambda: [pattern.encode() for pattern in patterns], cache, "\0".join(["facts", *patterns]).encode())
