"""Looks at many lines at once: which extractors may read each of them, and which facts and entries it may show.

A few scans over all of their texts, whatever their number; most lines show nothing, and go no further.
Each match costs a call, and lines of progress have several: of lines that differ in digits only, one is scanned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from torchtriage.facts.line_facts import LONGEST, LineSigns
from torchtriage.lazy_regex import lazy_regex
from torchtriage.parsing.registry import EXTRACTORS, Kinds
from torchtriage.reading.scan import Scanner

Found = list[tuple[int, int]]  # patterns, with the places behind their matches, in the order of these
Scan = Callable[[bytes], Found]


class Seen(NamedTuple):
    """What one line may show. `begins`: which extractors may begin to read here, a bit each in their order; `facts`:
    the numbers of the environment's signs; `pointed`: the entries' patterns that may be there; `sure`: the signs are;
    `line_facts`: which facts the line may tell, a bit each in their order.
    """

    begins: int
    facts: tuple[int, ...]
    pointed: tuple[int, ...]
    sure: bool = True
    line_facts: int = 0


NOTHING = Seen(0, (), ())
_NONE: frozenset[int] = frozenset()
_AT_ONCE = 16  # lines in which what nearly every line shows is looked for, and then in twice as many


class Prefilter:
    """`pointed` scans bytes for what entries look for in lines, `signs` are those of facts; `cache` is a folder for the
    compiled patterns."""

    def __init__(
        self, pointed: Scan, signs: LineSigns, cache: Path | None = None, extractors: Kinds = EXTRACTORS
    ) -> None:
        words = [(re.escape(word), 1 << bit) for bit, kind in enumerate(extractors) for word in kind.words]
        pointers = [(pointer, 1 << bit) for bit, fact in enumerate(signs.line_facts) for pointer in fact.pointers]
        every = (*(sign.pointer for sign in signs.all), *(pattern for pattern, _ in (*words, *pointers)))
        self._alike, self._apart, self._common = _scans(every, tuple(signs.enough), cache)
        self._pointed = pointed
        self.signs = signs
        self._begins = [bit for _, bit in words]  # of the patterns behind the signs, as those below
        self._tells = [0] * len(words) + [bit for _, bit in pointers]
        self._seen = lru_cache(maxsize=4096)(self._made_of)

    def hints(self, texts: Iterable[str], settled: frozenset[int] = _NONE) -> dict[str, Seen]:
        """-> what each text may show; those that show nothing are left out. `settled`: the numbers of signs
        of which enough is known; of others that nearly every line shows, the first lines are told that show them."""
        lines = list(dict.fromkeys(texts))
        data = "\n".join(["", *lines]).encode("utf-8", "replace")
        whole, forms = data.split(b"\n")[1:], data.translate(_ONE_DIGIT).split(b"\n")[1:]
        alike = self._shown_alike(list(dict.fromkeys(forms)), settled)
        told_alike = {form: self._seen(facts) for form, facts in alike.items() if facts}
        pointed = _by_line(self._pointed(data), forms)
        facts = _by_line(self._apart(data), forms)
        for number in self.signs.enough.keys() - settled:
            for at in _first(self._common[number], whole, self.signs.enough[number]):
                facts.setdefault(at, set()).add(number)
        seen = {line: told for line, told in zip(lines, map(told_alike.get, forms), strict=True) if told is not None}
        for at in {*facts, *pointed, *self._unsure(lines, forms, told_alike)}:
            line, form = lines[at], forms[at]
            told = self._seen(alike.get(form, _NONE).union(facts.get(at, _NONE)))
            if at in pointed or not told.sure or len(line) > LONGEST:
                shown = self.signs.shown_by(line, told.facts)
                told = Seen(told.begins, shown, tuple(sorted(pointed.get(at, _NONE))), line_facts=told.line_facts)
            seen[line] = told
        return seen

    def apart(self, shown: Sequence[Seen]) -> list[int]:
        """-> the places of the lines that must be looked at one by one, of many that show this."""
        kinds = dict(zip(map(id, shown), shown, strict=True))
        wanted = {
            at
            for at, one in kinds.items()
            if one.begins or one.pointed or one.line_facts or not self.signs.form_of(one.facts).passes
        }
        return [place for place, at in enumerate(map(id, shown)) if at in wanted] if wanted else []

    def _made_of(self, found: frozenset[int]) -> Seen:
        """-> what a line may show at which the scans point with these signs and words. Most lines of a log have the
        same ones."""
        begins = line_facts = 0
        first = len(self.signs.all)
        for number in found:
            at = number - first
            begins |= self._begins[at] if 0 <= at < len(self._begins) else 0
            line_facts |= self._tells[at] if at >= 0 else 0
        signs = tuple(sorted(number for number in found if number < first))
        return Seen(begins, signs, (), self.signs.sure.issuperset(signs), line_facts) if found else NOTHING

    def _unsure(self, lines: list[str], forms: list[bytes], told: dict[bytes, Seen]) -> list[int]:
        """-> the places of the lines whose signs RE2 decides on, and of those that are too long."""
        unsure = {form for form, seen in told.items() if not seen.sure}
        if not unsure and max(map(len, lines), default=0) <= LONGEST:
            return []
        return [at for at, form in enumerate(forms) if form in unsure or (form in told and len(lines[at]) > LONGEST)]

    def _shown_alike(self, forms: list[bytes], settled: frozenset[int]) -> dict[bytes, frozenset[int]]:
        """-> what each form of lines shows whatever its digits are; those that show nothing are left out."""
        found = _by_line(self._alike(b"\n".join([b"", *forms])), forms)
        return {forms[at]: frozenset(facts - settled) for at, facts in found.items()}


_ONE_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_ANY_DIGIT = lazy_regex(r"0-9|\{\d+(?:,\d*)?\}|\(\*UTF8\)")  # of a pattern: what is met by any digit or by none
_DIGIT = lazy_regex(r"\d")


def _first(scan: Scan, lines: list[bytes], enough: int) -> Iterator[int]:
    """Yields the places of the first lines in which the scan finds something, not many more than are enough."""
    start, more = 0, _AT_ONCE
    while start < len(lines) and enough > 0:
        some = lines[start : start + more]
        found = _by_line(scan(b"\n".join([b"", *some])), some)
        yield from (start + at for at in found)
        enough -= len(found)
        start, more = start + more, 2 * more


def _by_line(found: Found, lines: Sequence[bytes]) -> dict[int, set[int]]:
    """-> the patterns that were found in each line, by its place; `found` is in the order of the matches' ends, in the
    lines with a line feed above each."""
    by_line: dict[int, set[int]] = {}
    if not found:
        return by_line
    ends = list(accumulate(map((1).__add__, map(len, lines)), initial=1))[1:]  # behind the lines' line feeds
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
def _scans(patterns: tuple[str, ...], often: tuple[int, ...], cache: Path | None) -> tuple[Scan, Scan, dict[int, Scan]]:
    """-> scans for the patterns that take all digits alike, for those that don't, and for each that nearly every line
    shows. They are the same for all knowledge of one vocabulary."""
    every = dict(enumerate(patterns))
    common = {number: _scan({number: every.pop(number)}, cache) for number in often}
    apart = {number: pattern for number, pattern in every.items() if _DIGIT.search(_ANY_DIGIT.sub("", pattern))}
    alike = {number: pattern for number, pattern in every.items() if number not in apart}
    return _scan(alike, cache), _scan(apart, cache), common


def _scan(patterns: dict[int, str], cache: Path | None) -> Scan:
    """-> what finds patterns and tells their numbers."""
    numbers, told = list(patterns), list(patterns.values())
    key = "\0".join(["facts", *told]).encode()
    scanner = Scanner(lambda: [pattern.encode() for pattern in told], cache, key)
    return lambda data: [(numbers[index], end) for index, end in scanner.ends(data)[0]]
