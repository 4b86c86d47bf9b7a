"""A glance at many lines at once: which extractors may read each of them, and which facts and entries it may show.

A few scans over all of their texts, whatever their number; most lines show nothing, and go no further.
Each match costs a call, and lines of progress have several: of lines that differ in digits only, one is scanned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from app.parsing.collectives import Collectives
from app.parsing.device import Device
from app.parsing.elastic import Elastic
from app.parsing.environment.told import ENOUGH, LONGEST, SIGNS, SURE, shown_by
from app.parsing.processes import Processes
from app.parsing.scheduler import Scheduler
from app.parsing.tracebacks import Tracebacks
from app.reading.scan import Scanner

Found = list[tuple[int, int]]  # patterns, with the places behind their matches, in the order of these
Scan = Callable[[bytes], Found]


class Seen(NamedTuple):
    """What one line may show. `begins`: which extractors may begin to read here, a bit each in their order; `facts`:
    the numbers of the environment's signs; `pointed`: the entries' patterns that may be there; `sure`: the signs are.
    """

    begins: int
    facts: tuple[int, ...]
    pointed: tuple[int, ...]
    sure: bool = True


NOTHING = Seen(0, (), ())
_NONE: frozenset[int] = frozenset()
_AT_ONCE = 16  # lines in which what nearly every line shows is looked for, and then in twice as many


class Glance:
    """`pointed` scans bytes for what entries look for in lines; `cache` is a folder for the compiled patterns."""

    def __init__(self, pointed: Scan, cache: Path | None = None) -> None:
        self._alike, self._apart, self._common = _scans(cache)
        self._pointed = pointed

    def at(self, texts: Iterable[str], settled: frozenset[int] = _NONE) -> dict[str, Seen]:
        """-> what each text may show; those that show nothing are left out. `settled`: the numbers of signs
        of which enough is known; of others that nearly every line shows, the first lines are told that show them."""
        lines = list(dict.fromkeys(texts))
        data = "\n".join(lines).encode("utf-8", "replace")
        forms = data.translate(_ONE_DIGIT).split(b"\n")
        alike = self._shown_alike(list(dict.fromkeys(forms)), settled)
        told_alike = {form: _seen(facts) for form, facts in alike.items()}
        ends = _ends(forms)
        pointed = _by_line(self._pointed(data), ends)
        facts = _by_line(self._apart(data), ends)
        for number in ENOUGH.keys() - settled:
            for at in _first(self._common[number], data.split(b"\n"), ENOUGH[number]):
                facts.setdefault(at, set()).add(number)
        seen: dict[str, Seen] = {}
        for at, form in enumerate(forms):
            told = told_alike.get(form, NOTHING)
            if at in facts:
                told = _seen(alike.get(form, _NONE).union(facts[at]))
            elif told is NOTHING and at not in pointed:
                continue
            line = lines[at]
            if at in pointed or not told.sure or len(line) > LONGEST:
                entries = tuple(sorted(pointed[at])) if at in pointed else ()
                told = Seen(told.begins, shown_by(line, told.facts), entries)
            seen[line] = told
        return seen

    def _shown_alike(self, forms: list[bytes], settled: frozenset[int]) -> dict[bytes, frozenset[int]]:
        """-> what each form of lines shows whatever its digits are; those that show nothing are left out."""
        found = _by_line(self._alike(b"\n".join(forms)), _ends(forms))
        return {forms[at]: frozenset(facts - settled) for at, facts in found.items()}


# The extractors' words, each with the bit of its extractor; the order is that in which a run's reading asks them.
_WORDS = [
    (word, 1 << at)
    for at, words in enumerate(
        (Elastic.WORDS, Tracebacks.WORDS, Device.WORDS, Collectives.WORDS, Processes.WORDS, Scheduler.WORDS)
    )
    for word in words
]
_ONE_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_ANY_DIGIT = re.compile(r"0-9|\{\d+(?:,\d*)?\}|\(\*UTF8\)")  # of a pattern: what is met by any digit or by none
_DIGIT = re.compile(r"\d")


@lru_cache(maxsize=4096)
def _seen(found: frozenset[int]) -> Seen:
    """-> what a line may show at which the scans point with these signs and, behind them, words. Most lines of a log
    have the same ones."""
    begins = 0
    for number in found:
        begins |= _WORDS[number - len(SIGNS)][1] if number >= len(SIGNS) else 0
    signs = tuple(sorted(number for number in found if number < len(SIGNS)))
    return Seen(begins, signs, (), SURE.issuperset(signs)) if found else NOTHING


def _first(scan: Scan, lines: list[bytes], enough: int) -> Iterator[int]:
    """Yields the places of the first lines in which the scan finds something, not many more than are enough."""
    start, more = 0, _AT_ONCE
    while start < len(lines) and enough > 0:
        some = lines[start : start + more]
        found = _by_line(scan(b"\n".join(some)), _ends(some))
        yield from (start + at for at in found)
        enough -= len(found)
        start, more = start + more, 2 * more


def _ends(lines: Iterable[bytes]) -> list[int]:
    """-> the places behind the lines' line feeds."""
    return [at + end for at, end in enumerate(accumulate(map(len, lines)), 1)]


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
def _scans(cache: Path | None) -> tuple[Scan, Scan, dict[int, Scan]]:
    """-> scans for the signs and words that take all digits alike, for those that don't, and for each that nearly every
    line shows. They are the same for all knowledge."""
    every = dict(enumerate([*(sign.pointer for sign in SIGNS), *(re.escape(word) for word, _ in _WORDS)]))
    common = {number: _scan({number: every.pop(number)}, cache) for number in ENOUGH}
    apart = {number: pattern for number, pattern in every.items() if _DIGIT.search(_ANY_DIGIT.sub("", pattern))}
    alike = {number: pattern for number, pattern in every.items() if number not in apart}
    return _scan(alike, cache), _scan(apart, cache), common


def _scan(patterns: dict[int, str], cache: Path | None) -> Scan:
    """-> what finds patterns and tells their numbers."""
    numbers, told = list(patterns), list(patterns.values())
    key = "\0".join(["facts", *told]).encode()
    scanner = Scanner(lambda: [pattern.encode() for pattern in told], cache, key)
    return lambda data: [(numbers[index], end) for index, end in scanner.ends(data)[0]]
