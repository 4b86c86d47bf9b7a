"""The signs of all entries: parsed, compiled and searched here. A knowledge base in; a text in, its patterns out.

The path of a sign: `Pattern` (one regex of the entry's YAML, numbered by its index in `Patterns.all`) → `scan_pattern`
(what Hyperscan compiles: a literal, mostly) → an id in a scanner → where it points: `required_literals`, then RE2.
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
from torchtriage.facts.line_facts import LineSigns
from torchtriage.facts.line_forms import LineForms
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching import required_literals as literals
from torchtriage.matching.prefilter import Found, Prefilter
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

# Lines that matter whatever entries and extractors say, and what they open: a wide window or a narrow one. No anchor
# begins with `^`, for beside others that do Hyperscan can lose its match.
WIDE_ANCHORS = (r"Fatal Python error",)
_KEPT = "lines-kept"  # the list of the others
_ERRORS = "error-marks"  # the list of what lines hold that speak of an error; they open nothing

T = TypeVar("T")
_TEXTS_KEPT = 2048
_LONGEST_KEPT = 1000  # characters of a text
_NAMED = lazy_regex(r"\(\?P<\w+>")  # where a group with a name opens
_SINGLE_BYTES = re2.Options()
_SINGLE_BYTES.encoding = re2.Options.Encoding.LATIN1

_QUIET = re2.Options()
_QUIET.log_errors = False


class Pattern(NamedTuple):
    """One regex of one entry's sign. `group`: the numbers of all patterns of its `all:` sign, its own among them;
    empty for a sign of its own. `case`: the place, among those of the entry, of the case whose sign it is."""

    entry: Entry
    sign: Sign
    group: tuple[int, ...] = ()
    case: int | None = None

    def weight(self, text: str) -> int:
        """How specific the sign is: how many of its characters a text holds, in lower case, in which it is found."""
        return len(self.sign.text) if self.sign.text else letters_held(regex_of(self.sign), text)


def parsed(knowledge: KnowledgeBase) -> list[Pattern]:
    """-> the patterns of all entries; an `all:` sign has one for each of its parts."""
    patterns: list[Pattern] = []
    for entry in knowledge.entries.values():
        for sign, case in zip(entry.signs, entry.case_of_signs, strict=True):
            group = tuple(range(len(patterns), len(patterns) + len(sign.all)))
            patterns += [Pattern(entry, part, group, case) for part in sign.all or (sign,)]
    return patterns


class Patterns:
    """The patterns of one knowledge base, compiled once; thread-safe.

    `all`: in the order of their numbers. `blocks` scans raw bytes, and its ids are its own: first the anchors, of which
    those in `wide` open something long, then the signs that look at lines. `confirms` takes such an id.
    """

    def __init__(self, knowledge: KnowledgeBase, cache: Path | None = None, extractors: Kinds = EXTRACTORS) -> None:
        self._digest, self._cache = knowledge.digest, cache
        self.vocabulary, self.extractors = knowledge.vocabulary, extractors
        self.prefilter = Prefilter(self._pointed, LineSigns(knowledge.vocabulary), cache, extractors)
        self.line_forms = LineForms(knowledge.vocabulary, cache)
        self.all = parsed(knowledge)
        # Exceptions are found by their form, so signs that look only there need no place in the raw scan.
        self._in_blocks = [index for index, pattern in enumerate(self.all) if pattern.sign.where in ("any", "line")]
        wide = [*WIDE_ANCHORS, *(anchor for kind in extractors for anchor in kind.wide_anchors)]
        kept = (item.loose for item in self.vocabulary.patterns(_KEPT))
        narrow = [*kept, *HEADINGS, *(anchor for kind in extractors for anchor in kind.anchors)]
        latest = [pointer for fact in self.prefilter.signs.line_facts if fact.passing for pointer in fact.pointers]
        errors = [item.loose for item in self.vocabulary.patterns(_ERRORS)]
        anchors = [*wide, *narrow, *latest, *errors]
        self._anchors = len(anchors)
        self.wide = frozenset(range(len(wide)))
        self.latest = frozenset(range(len(wide) + len(narrow), len(anchors) - len(errors)))
        self.errors = frozenset(range(len(anchors) - len(errors), len(anchors)))
        signs = [regex_of(pattern.sign) for pattern in self.all]
        # Scan patterns are made from signs by code: the compiled form depends on both.
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
        """-> what `make`, whose code is in `sources`, makes of this knowledge base; from the cache if it is there."""
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
        """-> whether what the scan of a block pointed at, pattern `index` in a raw line, is really there."""
        if index < self._anchors:
            return True
        line = line.replace(b'\\"', b'"')  # as JSON spells it
        sign = self.all[self._in_blocks[index - self._anchors]].sign
        if sign.text is not None:
            return sign.text.encode() in line
        text = line.decode("utf-8", "replace")
        required = self._required[self._in_blocks[index - self._anchors]]
        return has_required(text.lower(), required) and self._search(unanchored(regex_of(sign)), text)

    def _pointed(self, data: bytes) -> Found:
        """-> the patterns that are looked for in lines, where the scan points at them."""
        first = self._anchors
        return [(self._in_blocks[index - first], end) for index, end in self.blocks.ends(data)[0] if index >= first]

    def shows_one(self, text: str, pointed: Iterable[int]) -> bool:
        """-> whether a text shows one of the patterns at which a scan pointed."""
        lower = text.lower()
        return any(
            has_required(lower, self._required[index]) and self._shows(self.all[index].sign, text) for index in pointed
        )

    def found(self, text: str, where: frozenset[str]) -> list[int]:
        """-> the patterns that `text` shows, of those that look in one of `where`. Exit statuses and most messages come
        again and again, so the answers are kept."""
        found = self._found.get((text, where))
        if found is None:
            found = self._search_text(text, where)
            if len(text) <= _LONGEST_KEPT:
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
            # Of ASCII both encodings say the same, and a pattern of single bytes is compiled in half of the time.
            self._exact[pattern, plain] = (
                re2.compile(f"(?m){pattern}".encode(), _SINGLE_BYTES) if plain else re2.compile(f"(?m){pattern}")
            )
        return bool(self._exact[pattern, plain].search(text.encode() if plain else text))


def regex_of(sign: Sign) -> str:
    """-> the regex of a plain sign, without the names of its groups."""
    if sign.regex is not None:
        return _NAMED.sub("(?:", sign.regex)
    return re.escape(sign.text or "").replace(r"\ ", " ")


def refused_by_re2(pattern: str) -> str | None:
    """-> why RE2 refuses a pattern, or None where it takes it."""
    try:
        re2.compile(f"(?m){pattern}", _QUIET)
    except re2.error as error:
        return str(error)
    return None
