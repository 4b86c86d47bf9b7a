"""Parses and compiles the signs of all entries, and finds those that match a text.

A sign becomes a `Pattern` (one regex of the entry's YAML, numbered by its index in `Patterns.all`). `scan_pattern`
makes the form that Hyperscan compiles, usually a literal. Where Hyperscan finds it, `required_literals` and then RE2
confirm the match.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

import re2

from torchtriage.domain.entry import Entry, KnowledgeBase, Sign
from torchtriage.facts.line_facts import LineRegexes
from torchtriage.facts.line_forms import LineForms
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching import required_literals as literals
from torchtriage.matching.prefilter import Hits, Prefilter
from torchtriage.matching.required_literals import (
    has_required,
    letters_held,
    required_literals,
    scan_pattern,
    unanchored,
)
from torchtriage.parsing.registry import EXTRACTORS, Kinds
from torchtriage.reading.disk_cache import keep, read
from torchtriage.reading.process_sections import HEADINGS
from torchtriage.reading.scan import Scanner

# Lines that are kept whatever entries and extractors need, and the size of the window that they open. No anchor begins
# with `^`, because next to such patterns Hyperscan can miss matches of others.
WIDE_ANCHORS = (r"Fatal Python error",)
_KEPT = "lines-kept"  # the vocabulary list of further lines to keep
_ERRORS = "error-marks"  # the vocabulary list of words in error lines; they open no window

T = TypeVar("T")
_TEXTS_KEPT = 2048
_MAX_KEPT_LENGTH = 1000  # characters of a text
_NAMED = lazy_regex(r"\(\?P<\w+>")  # start of a named group
_SINGLE_BYTES = re2.Options()
_SINGLE_BYTES.encoding = re2.Options.Encoding.LATIN1

_QUIET = re2.Options()
_QUIET.log_errors = False


class Pattern(NamedTuple):
    """One regex of one entry's sign. For a part of an `all` sign, `group` has the indexes of all its parts, including
    this one. `case` is the index of the case whose sign it is."""

    entry: Entry
    sign: Sign
    group: tuple[int, ...] = ()
    case: int | None = None

    def weight(self, text: str) -> int:
        """Returns how specific the sign is: how many of its literal characters are in `text`, a lower-case text that it
        matches."""
        return len(self.sign.text) if self.sign.text else letters_held(regex_of(self.sign), text)


def parsed(knowledge: KnowledgeBase) -> list[Pattern]:
    """Returns the patterns of all entries. An `all` sign has one pattern for each part."""
    patterns: list[Pattern] = []
    for entry in knowledge.entries.values():
        for sign, case in zip(entry.signs, entry.case_of_signs, strict=True):
            group = tuple(range(len(patterns), len(patterns) + len(sign.all)))
            patterns += [Pattern(entry, part, group, case) for part in sign.all or (sign,)]
    return patterns


class Patterns:
    """The patterns of one knowledge base, compiled once. Thread-safe.

    `all` has the patterns in the order of their indexes. `blocks` scans raw bytes and has its own ids: first the
    anchors (those in `wide` open a large window), then the signs that are searched in lines. `confirms` takes such an
    id.
    """

    def __init__(self, knowledge: KnowledgeBase, cache: Path | None = None, extractors: Kinds = EXTRACTORS) -> None:
        self._digest, self._cache = knowledge.digest, cache
        self.vocabulary, self.extractors = knowledge.vocabulary, extractors
        self.prefilter = Prefilter(self._pointed, LineRegexes(knowledge.vocabulary), cache, extractors)
        self.line_forms = LineForms(knowledge.vocabulary, cache)
        self.all = parsed(knowledge)
        # Extractors find exceptions, so signs that are searched only there are not in the raw scan.
        self._in_blocks = [index for index, pattern in enumerate(self.all) if pattern.sign.where in ("any", "line")]
        wide = [*WIDE_ANCHORS, *(anchor for kind in extractors for anchor in kind.wide_anchors)]
        kept = (item.loose for item in self.vocabulary.patterns(_KEPT))
        narrow = [*kept, *HEADINGS, *(anchor for kind in extractors for anchor in kind.anchors)]
        latest = [pointer for fact in self.prefilter.regexes.line_facts if fact.passing for pointer in fact.pointers]
        errors = [item.loose for item in self.vocabulary.patterns(_ERRORS)]
        anchors = [*wide, *narrow, *latest, *errors]
        self._anchors = len(anchors)
        self.wide = frozenset(range(len(wide)))
        self.latest = frozenset(range(len(wide) + len(narrow), len(anchors) - len(errors)))
        self.errors = frozenset(range(len(anchors) - len(errors), len(anchors)))
        signs = [regex_of(pattern.sign) for pattern in self.all]
        # The compiled form depends on the signs and on the code that makes scan patterns from them.
        key = "\0".join([Path(literals.__file__).read_text(encoding="utf-8"), *anchors, *signs])

        def in_blocks() -> list[bytes]:
            return [text.encode() for text in [*anchors, *(scan_pattern(signs[index]) for index in self._in_blocks)]]

        def in_texts() -> list[bytes]:
            return [scan_pattern(sign).encode() for sign in signs]

        self.blocks = Scanner(in_blocks, cache, f"blocks {self._in_blocks} {key}".encode())
        self._texts = Scanner(in_texts, cache, f"texts once {key}".encode(), once=True)
        self._found: dict[tuple[str, frozenset[str]], list[int]] = {}
        self._exact: dict[tuple[str, bool], re2._Regexp] = {}

    def cached(self, name: str, sources: Iterable[Path], make: Callable[[], list[T]]) -> list[T]:
        """Returns the cached result of `make` for this knowledge base, or calls it. `sources` are the files with its
        code."""
        if self._cache is None:
            return make()
        digest = hashlib.sha256(self._digest.encode() + b"".join(path.read_bytes() for path in sources))
        path = self._cache / f"{name}-{digest.hexdigest()[:32]}.json"
        try:
            made: list[T] = json.loads(read(path))
        except (OSError, ValueError):
            made = make()
            keep(path, json.dumps(made).encode())
        return made

    def confirms(self, index: int, line: bytes) -> bool:
        """Returns whether pattern `index`, which the scan of a block proposed, really matches the raw line."""
        if index < self._anchors:
            return True
        line = line.replace(b'\\"', b'"')  # in JSON, quotes are escaped
        sign = self.all[self._in_blocks[index - self._anchors]].sign
        if sign.text is not None:
            return sign.text.encode() in line
        text = line.decode("utf-8", "replace")
        required = self._required[self._in_blocks[index - self._anchors]]
        return has_required(text.lower(), required) and self._search(unanchored(regex_of(sign)), text)

    def _pointed(self, data: bytes) -> Hits:
        """Returns the patterns for lines that the scan proposes."""
        first = self._anchors
        return [(self._in_blocks[index - first], end) for index, end in self.blocks.ends(data)[0] if index >= first]

    def shows_one(self, text: str, pointed: Iterable[int]) -> bool:
        """Returns whether a text matches one of the patterns that a scan proposed."""
        lower = text.lower()
        return any(
            has_required(lower, self._required[index]) and self._shows(self.all[index].sign, text) for index in pointed
        )

    def found(self, text: str, where: frozenset[str]) -> list[int]:
        """Returns the indexes of the patterns that match `text` and whose `search_in` is in `where`. Results are
        cached, because exit statuses and most messages repeat."""
        found = self._found.get((text, where))
        if found is None:
            found = self._search_text(text, where)
            if len(text) <= _MAX_KEPT_LENGTH:
                if len(self._found) >= _TEXTS_KEPT:
                    self._found.clear()
                self._found[text, where] = found
        return found

    def _search_text(self, text: str, where: frozenset[str]) -> list[int]:
        pointed = self._texts.which(text.encode("utf-8", "replace")) if text else None
        if not pointed:
            return []
        lower = text.lower()
        return [
            index
            for index in sorted(pointed)
            if self.all[index].sign.where in where
            and has_required(lower, self._required[index])
            and self._shows(self.all[index].sign, text)
        ]

    @cached_property
    def _required(self) -> list[list[list[str]]]:
        """The literals that each pattern requires."""
        sources = (Path(literals.__file__), Path(__file__))
        return self.cached(
            "required", sources, lambda: [required_literals(regex_of(pattern.sign)) for pattern in self.all]
        )

    def _shows(self, sign: Sign, text: str) -> bool:
        if sign.text is not None:
            return sign.text in text and not (sign.unless and self._search(sign.unless, text))
        return self._search(regex_of(sign), text) and not (sign.unless and self._search(sign.unless, text))

    def _search(self, pattern: str, text: str) -> bool:
        plain = text.isascii() and pattern.isascii()
        if (pattern, plain) not in self._exact:
            # ASCII is the same in both encodings, and a pattern over single bytes compiles in half the time.
            self._exact[pattern, plain] = (
                re2.compile(f"(?m){pattern}".encode(), _SINGLE_BYTES) if plain else re2.compile(f"(?m){pattern}")
            )
        return bool(self._exact[pattern, plain].search(text.encode() if plain else text))


def regex_of(sign: Sign) -> str:
    """Returns the regex of a sign that is not an `all` sign, without group names."""
    if sign.regex is not None:
        return _NAMED.sub("(?:", sign.regex)
    return re.escape(sign.text or "").replace(r"\ ", " ")


def refused_by_re2(pattern: str) -> str | None:
    """Returns why RE2 rejects a pattern, or None if it accepts it."""
    try:
        re2.compile(f"(?m){pattern}", _QUIET)
    except re2.error as error:
        return str(error)
    return None
