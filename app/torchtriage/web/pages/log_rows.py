"""Describes lines of a log as rows of a page: their rank and their role in the verdict, with equal lines folded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from torchtriage.domain.incident import StoredFile, StoredLine
from torchtriage.domain.verdict import Verdict
from torchtriage.lazy_regex import lazy_regex
from torchtriage.services.line_patterns import spans
from torchtriage.services.log_search import Writers

_NUMBER = lazy_regex(r"[0-9]+")
_MIN_COUNT = 4  # equal lines, one behind the other, that are folded
COLOURS = 12  # ranks take turns with them


@dataclass(frozen=True, slots=True)
class Row:
    """`mark` is the role of the line in the verdict: `evidence`, `cascade` or empty. `focus`: the URL selects the line.
    `equal` are the following lines with the same text."""

    number: int
    text: str
    cut: bool = False
    rank: int | None = None
    mark: str = ""
    focus: bool = False
    hit: bool = False
    equal: tuple[Row, ...] = ()

    @property
    def classes(self) -> str:
        names = (self.mark, "focus" if self.focus else "", "hit" if self.hit else "")
        return " ".join(name for name in names if name)

    @property
    def colour(self) -> int:
        return (self.rank or 0) % COLOURS


def rows(
    lines: Iterable[StoredLine],
    known: Writers,
    verdict: Verdict | None,
    file: StoredFile,
    several: bool,
    asked: range,
    words: str | None,
    regex: bool,
) -> tuple[Row, ...]:
    """Returns one row per line."""
    marks = marked(verdict, file, several)
    return tuple(
        Row(
            line.line,
            line.text,
            line.cut,
            known.rank(line.text),
            marks.get(line.line, ""),
            line.line in asked,
            bool(words and spans(line.text, words, regex)),
        )
        for line in lines
    )


def widest_rank(verdict: Verdict | None, made: Iterable[Row]) -> int:
    """Returns the number of digits of the largest rank in the verdict and the lines."""
    known = [last for mark in (verdict.timeline if verdict else ()) for _, last in mark.ranks.ranges[-1:]]
    return len(str(max([*known, *(row.rank for row in made if row.rank is not None)], default=0)))


def folded(made: Sequence[Row], known: Writers) -> tuple[Row, ...]:
    """Returns the rows, with repeated ones placed inside the first of them."""
    shown: list[Row] = []
    for _, group in groupby(made, key=lambda row: (known.bare(row.text).strip(), row.classes)):
        first, *equal = group
        plain = not first.classes and first.text.strip() and len(equal) + 1 >= _MIN_COUNT
        shown += [replace(first, equal=tuple(equal))] if plain else [first, *equal]
    return tuple(shown)


def marked(verdict: Verdict | None, file: StoredFile, several: bool) -> dict[int, str]:
    """Returns the lines of a file that the verdict refers to, in order, each `evidence` or `cascade`."""
    if verdict is None:
        return {}
    here = {file.name} if several else {None, file.name}
    marks = {cascade.line: "cascade" for cascade in verdict.cascades if cascade.file in here}
    marks |= {mark.line: "cascade" for mark in verdict.timeline if mark.line and mark.file in here}
    root = verdict.root_cause
    marks |= {line.line: "evidence" for line in (root.evidence if root else ()) if line.file in here}
    return dict(sorted(marks.items()))
