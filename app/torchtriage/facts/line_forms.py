"""Reads values from lines in the forms of the vocabulary lists `line-facts-…`.

While a log is read, lines that a pointer finds are only kept; they are read after a failure was found. Forms about the
moment of failure read progress lines, which are kept anyway, so these forms have no pointers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from signal import Signals, strsignal
from typing import NamedTuple

import re2

from torchtriage.domain.line import Line, Position
from torchtriage.domain.vocabulary import Vocabulary, VocabularyPattern
from torchtriage.facts.scan_regex import scan_regex_of
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.scan import Scanner

NAME = "line values"
LISTS = "line-facts-"  # prefix of the names of these lists
MOMENT, PROCESS = "moment", "process"  # what a form is about, if not the whole run
MAX_LINES = 512  # number of first lines that are kept, and of newest lines
MAX_LENGTH = 2000  # characters of a line that are read
_UNIT = "_unit"  # suffix of a group's name; the group is the unit of the group before it
_SECONDS_PER_STEP, _SIGNAL = "seconds_per_step", "signal"
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}
# 9 · Killed → SIGKILL
_SIGNALS = {spelling: one.name for one in Signals for spelling in (str(one.value), strsignal(one) or one.name)}
_LITERAL = lazy_regex(r"(?<!\\)[A-Za-z]{4}")
_PIECE = lazy_regex(r"\\.|\{\d+(?:,\d*)?\}|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P<\w+>|\d")  # a part of a regex
_WHOLE = lazy_regex(r"-?(?:0|[1-9]\d{0,14})")


class LineValue(NamedTuple):
    """The value of one group of a form, as text from the line, or as int if it is a whole number."""

    name: str
    value: str | int | float
    unit: str | None


class LineForms:
    """The forms of all lists, compiled at their first use. Thread-safe."""

    def __init__(self, vocabulary: Vocabulary, cache: Path | None = None) -> None:
        self._patterns = tuple(pattern for one in vocabulary.beginning(LISTS) for pattern in one.patterns)
        self._cache = cache
        self._pointers = tuple(pattern.pointer for pattern in self._patterns)

    @property
    def pointers(self) -> tuple[str, ...]:
        """Patterns for the lines that are kept while a log is read."""
        return tuple(dict.fromkeys(pattern.pointer for pattern in self._patterns if pattern.tells_of != MOMENT))

    def subject_of(self, form: int) -> str:
        """Returns what a form is about: the run, the moment of failure or the process that failed."""
        return self._patterns[form].tells_of

    def names(self, form: int) -> frozenset[str]:
        """Returns the names of the facts that a form can have."""
        return _names(self._patterns[form].regex)

    def pointed(self, texts: Sequence[str]) -> list[set[int]]:
        """Returns the forms that each text may have."""
        found: list[set[int]] = [set() for _ in texts]
        data = "\n".join(["", *(text[:MAX_LENGTH].replace("\n", " ") for text in texts)]).encode("utf-8", "replace")
        ends = list(accumulate((len(line) + 1 for line in data.split(b"\n")[1:]), initial=1))[1:]
        at = 0
        for form, end in _scan(self._pointers, self._cache)(data):
            while end >= ends[at]:
                at += 1
            found[at].add(form)
        return found

    def read_by(self, regex: str, text: str) -> tuple[LineValue, ...]:
        """Returns the values of a text in the form with this regex."""
        return self.read(next(form for form, pattern in enumerate(self._patterns) if pattern.regex == regex), text)

    def read(self, form: int, text: str) -> tuple[LineValue, ...]:
        """Returns the values of a text in a form. Empty if the text does not have this form."""
        pattern = self._patterns[form]
        data = text[:MAX_LENGTH].encode("utf-8", "replace")
        found = _compiled(pattern.loose).search(data)
        if found is None or (pattern.unless and _compiled(pattern.unless).match(data[found.start() :])):
            return ()
        told_in = zip(_groups(pattern.regex), found.groups(), strict=False)
        groups = {name: value.decode("utf-8", "replace") for name, value in told_in if value}
        units = dict(pattern.units) if pattern.units else {}
        return tuple(
            [
                _value(name, plain, groups.get(name + _UNIT) or units.get(name))
                for name, value in groups.items()
                if not name.endswith(_UNIT) and (plain := value.strip())
            ]
        )


@dataclass
class KeptLines:
    """Lines that are read later. Each text is kept once, because ranks print the same lines. If there are too many,
    those in the middle are dropped."""

    first: dict[str, Line] = field(default_factory=dict)
    newest: dict[str, Line] = field(default_factory=dict)

    def add(self, line: Line) -> None:
        """Adds a line that comes after the ones added before."""
        text = line.text
        if text in self.first or len(self.first) < MAX_LINES:
            self.first[text] = line
            return
        self.newest.pop(text, None)
        self.newest[text] = line
        if len(self.newest) > MAX_LINES:
            del self.newest[next(iter(self.newest))]

    def __iter__(self) -> Iterator[Line]:
        yield from self.first.values()
        yield from self.newest.values()

    def moved(self, to: Callable[[Position], Position]) -> KeptLines:
        """Returns the lines with file numbers changed to the order of the run."""
        return KeptLines(_moved(self.first, to), _moved(self.newest, to))


def fact_names(vocabulary: Vocabulary) -> dict[str, str]:
    """Returns the meaning of each fact in the lists, by name."""
    return {name: meaning for one in vocabulary.beginning(LISTS) for name, meaning in one.facts}


def _moved(lines: dict[str, Line], to: Callable[[Position], Position]) -> dict[str, Line]:
    return {text: line._replace(position=to(line.position)) for text, line in lines.items()}


def _value(name: str, text: str, unit: str | None) -> LineValue:
    text = text.rstrip(".,:;")
    if name == _SECONDS_PER_STEP and unit != "s":
        seconds = _seconds(text, unit)
        return LineValue(name, f"{seconds:.4g}" if seconds else text, "s" if seconds else unit)
    if name == _SIGNAL:
        return LineValue(name, _SIGNALS.get(text, text), None)
    plain = text.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+", text) else text
    if _WHOLE.fullmatch(plain):
        return LineValue(name, int(plain), unit)
    return LineValue(name, text, unit)


def _seconds(text: str, unit: str | None) -> float | None:
    """Returns the seconds per step. The text has either these or the steps per second, according to the unit."""
    try:
        number = float(text)
    except ValueError:
        return None
    if unit in _SECONDS:
        return number * _SECONDS[unit]
    return 1 / number if number and unit and unit.endswith("/s") else None


def pointer_of(pattern: VocabularyPattern) -> str:
    """Returns the pattern for the scan: the regex up to its last group, if enough comes before it. With a group at the
    end, each further character would be a match of its own. Called once, when the vocabulary is parsed."""
    cut = _before_last_group(pattern.regex)
    if cut is None or not _LITERAL.search(re.sub(r"\(\?P<\w+>|\\.|\[[^\]]*\]|\(\?i\)", "", cut)):
        cut = pattern.regex
    return scan_regex_of([replace(pattern, regex=_PIECE.sub(_any_digit, cut), unless=None)]).pointer


def _any_digit(piece: re.Match[str]) -> str:
    """Returns a piece of a regex that matches any digit instead of specific ones, because only one of several lines
    that differ in digits is scanned."""
    part = piece[0]
    if part[0] == "[":
        return re.sub(r"(?<!\\)\d(?:-\d)?", "0-9", part)
    return r"\d" if part.isdigit() else part


def _before_last_group(regex: str) -> str | None:
    """Returns the regex before its last named group, or None if that group is inside another one."""
    depth, inside, cut, at = 0, False, None, 0
    while at < len(regex):
        char = regex[at]
        if char == "\\":
            at += 1
        elif inside:
            inside = char != "]"
        elif char == "[":
            inside = True
            at += regex[at + 1 : at + 2] == "]"
        elif char == "(":
            if regex.startswith("(?P<", at):
                cut = at if depth == 0 else None
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "|" and depth == 0:
            return None
        at += 1
    return regex[:cut] if cut else None


@lru_cache(maxsize=1024)
def _groups(regex: str) -> tuple[str, ...]:
    """Returns the names of the groups in order. In lists of facts, all groups have names."""
    return tuple(re.findall(r"\(\?P<(\w+)>", regex))


@lru_cache(maxsize=1024)
def _names(regex: str) -> frozenset[str]:
    return frozenset(name for name in _groups(regex) if not name.endswith(_UNIT))


@lru_cache(maxsize=1024)
def _compiled(regex: str) -> re2._Regexp:
    return re2.compile(regex.encode())  # bytes, because RE2 would count the characters of a str again for each search


@cache
def _scan(pointers: tuple[str, ...], cache: Path | None) -> Callable[[bytes], list[tuple[int, int]]]:
    """Returns a function that finds the pointers in bytes. It depends only on the vocabulary."""
    key = "\0".join(["line facts", *pointers]).encode()
    scanner = Scanner(lambda: [pointer.encode() for pointer in pointers], cache, key)
    return lambda data: scanner.ends(data)[0]
