"""Scans many lines at once to find which extractors, facts and entries may apply to each of them.

A few scans cover the texts of all lines. Most lines match nothing and need no further step. Each match costs a function
call, and progress lines have several matches. So of lines that differ only in digits, one is scanned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from torchtriage.facts.line_facts import MAX_LENGTH, LineRegexes
from torchtriage.lazy_regex import lazy_regex
from torchtriage.parsing.registry import EXTRACTORS, Kinds
from torchtriage.reading.scan import Scanner

Hits = list[tuple[int, int]]  # (pattern, end of the match), in the order of the ends
Scan = Callable[[bytes], Hits]


class LineHints(NamedTuple):
    """What may apply to one line. `begins`: the extractors that may start here, as a bit mask in their order. `facts`:
    the indexes of the environment's regexes. `pointed`: the entries' patterns that may match. `sure`: whether the
    regexes surely match. `line_facts`: the line facts that may be read, as a bit mask in their order."""

    begins: int
    facts: tuple[int, ...]
    pointed: tuple[int, ...]
    sure: bool = True
    line_facts: int = 0


NOTHING = LineHints(0, (), ())
_NONE: frozenset[int] = frozenset()
# lines in the first batch in which regexes that nearly every line matches are searched; later batches double
_BATCH_SIZE = 16


class Prefilter:
    """`pointed` scans bytes for the entries' patterns for lines. `regexes` are the regexes of facts. Compiled patterns
    are stored in the folder `cache`."""

    def __init__(
        self, pointed: Scan, regexes: LineRegexes, cache: Path | None = None, extractors: Kinds = EXTRACTORS
    ) -> None:
        words = [(re.escape(word), 1 << bit) for bit, kind in enumerate(extractors) for word in kind.words]
        pointers = [(pointer, 1 << bit) for bit, fact in enumerate(regexes.line_facts) for pointer in fact.pointers]
        every = (*(regex.pointer for regex in regexes.all), *(pattern for pattern, _ in (*words, *pointers)))
        self._alike, self._apart, self._common = _scans(every, tuple(regexes.enough), cache)
        self._pointed = pointed
        self.regexes = regexes
        # the bits of the patterns that come after the regexes; the same for the next list
        self._begins = [bit for _, bit in words]
        self._tells = [0] * len(words) + [bit for _, bit in pointers]
        self._seen = lru_cache(maxsize=4096)(self._hints_of)

    def hints(self, texts: Iterable[str], settled: frozenset[int] = _NONE) -> dict[str, LineHints]:
        """Returns what may apply to each text; texts without hints are left out. `settled` has the indexes of regexes
        that need not be found again. Signs that nearly every line matches are reported only for the first lines."""
        lines = list(dict.fromkeys(texts))
        data = "\n".join(["", *lines]).encode("utf-8", "replace")
        whole, forms = data.split(b"\n")[1:], data.translate(_ONE_DIGIT).split(b"\n")[1:]
        alike = self._shown_alike(list(dict.fromkeys(forms)), settled)
        told_alike = {form: self._seen(facts) for form, facts in alike.items() if facts}
        pointed = _by_line(self._pointed(data), forms)
        facts = _by_line(self._apart(data), forms)
        for number in self.regexes.enough.keys() - settled:
            for at in _first(self._common[number], whole, self.regexes.enough[number]):
                facts.setdefault(at, set()).add(number)
        seen = {line: hint for line, hint in zip(lines, map(told_alike.get, forms), strict=True) if hint is not None}
        for at in {*facts, *pointed, *self._uncertain_lines(lines, forms, told_alike)}:
            line, form = lines[at], forms[at]
            hint = self._seen(alike.get(form, _NONE).union(facts.get(at, _NONE)))
            if at in pointed or not hint.sure or len(line) > MAX_LENGTH:
                shown = self.regexes.matching_numbers(line, hint.facts)
                hint = LineHints(hint.begins, shown, tuple(sorted(pointed.get(at, _NONE))), line_facts=hint.line_facts)
            seen[line] = hint
        return seen

    def apart(self, shown: Sequence[LineHints]) -> list[int]:
        """Returns the indexes of the lines that must be read one by one, out of many with these hints."""
        kinds = dict(zip(map(id, shown), shown, strict=True))
        wanted = {
            at
            for at, one in kinds.items()
            if one.begins or one.pointed or one.line_facts or not self.regexes.form_of(one.facts).passes
        }
        return [place for place, at in enumerate(map(id, shown)) if at in wanted] if wanted else []

    def _hints_of(self, found: frozenset[int]) -> LineHints:
        """Returns the hints for a line in which the scans found these regexes and words. Cached, because most lines of
        a log have the same ones."""
        begins = line_facts = 0
        first = len(self.regexes.all)
        for number in found:
            at = number - first
            begins |= self._begins[at] if 0 <= at < len(self._begins) else 0
            line_facts |= self._tells[at] if at >= 0 else 0
        regexes = tuple(sorted(number for number in found if number < first))
        return LineHints(begins, regexes, (), self.regexes.sure.issuperset(regexes), line_facts) if found else NOTHING

    def _uncertain_lines(self, lines: list[str], forms: list[bytes], known: dict[bytes, LineHints]) -> list[int]:
        """Returns the indexes of the lines whose regexes need RE2 to decide, and of lines that are too long to scan."""
        unsure = {form for form, seen in known.items() if not seen.sure}
        if not unsure and max(map(len, lines), default=0) <= MAX_LENGTH:
            return []
        return [
            at for at, form in enumerate(forms) if form in unsure or (form in known and len(lines[at]) > MAX_LENGTH)
        ]

    def _shown_alike(self, forms: list[bytes], settled: frozenset[int]) -> dict[bytes, frozenset[int]]:
        """Returns what each form of lines matches whatever its digits are. Forms that match nothing are left out."""
        found = _by_line(self._alike(b"\n".join([b"", *forms])), forms)
        return {forms[at]: frozenset(facts - settled) for at, facts in found.items()}


_ONE_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_ANY_DIGIT = lazy_regex(r"0-9|\{\d+(?:,\d*)?\}|\(\*UTF8\)")  # parts of a pattern that match any digit, or none
_DIGIT = lazy_regex(r"\d")


def _first(scan: Scan, lines: list[bytes], enough: int) -> Iterator[int]:
    """Yields the indexes of the first lines in which the scan finds something, and not many more than `enough`."""
    start, more = 0, _BATCH_SIZE
    while start < len(lines) and enough > 0:
        some = lines[start : start + more]
        found = _by_line(scan(b"\n".join([b"", *some])), some)
        yield from (start + at for at in found)
        enough -= len(found)
        start, more = start + more, 2 * more


def _by_line(found: Hits, lines: Sequence[bytes]) -> dict[int, set[int]]:
    """Returns the patterns found in each line, by the line's index. `found` is sorted by the ends of the matches; each
    line has a line feed before it."""
    by_line: dict[int, set[int]] = {}
    if not found:
        return by_line
    ends = list(accumulate(map((1).__add__, map(len, lines)), initial=1))[1:]  # ends of the lines
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
    """Returns three scans: for the patterns that treat all digits alike, for the others, and for each pattern that
    nearly every line matches. They depend only on the vocabulary."""
    every = dict(enumerate(patterns))
    common = {number: _scan({number: every.pop(number)}, cache) for number in often}
    apart = {number: pattern for number, pattern in every.items() if _DIGIT.search(_ANY_DIGIT.sub("", pattern))}
    alike = {number: pattern for number, pattern in every.items() if number not in apart}
    return _scan(alike, cache), _scan(apart, cache), common


def _scan(patterns: dict[int, str], cache: Path | None) -> Scan:
    """Returns a scan for the patterns that reports their numbers."""
    numbers, regexes = list(patterns), list(patterns.values())
    key = "\0".join(["facts", *regexes]).encode()
    scanner = Scanner(lambda: [pattern.encode() for pattern in regexes], cache, key)
    return lambda data: [(numbers[index], end) for index, end in scanner.ends(data)[0]]
