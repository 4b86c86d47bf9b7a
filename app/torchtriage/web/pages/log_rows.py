"""Describes lines of a log as rows of a page: their rank and their role in the verdict, with equal lines folded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from torchtriage.answer.inconclusive_answer import last_line
from torchtriage.domain.incident import StoredFile, StoredLine
from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import Evidence, Verdict
from torchtriage.matching.masking import mask_all
from torchtriage.services.line_patterns import spans
from torchtriage.services.log_search import Writers

_MIN_COUNT = 4  # lines of one form, the first included, of which the others are folded
_STATES = 2  # of a progress bar on one line, which are shown as they are
COLOURS = 12  # ranks take turns with them


@dataclass(frozen=True, slots=True)
class Row:
    """`mark` is the role of the line in the verdict: `evidence`, `cascade` or empty. `focus`: the URL selects the line.
    `folded` are lines after it that are shown on demand: lines with the same text, or, if `alike`, lines of other ranks
    that differ in numbers only. `ranks` are the other ranks that wrote them. `redrawn` counts the states of a progress
    bar that are left out of the text."""

    number: int
    text: str
    cut: bool = False
    rank: int | None = None
    mark: str = ""
    focus: bool = False
    hit: bool = False
    folded: tuple[Row, ...] = ()
    alike: bool = False
    ranks: RankSet | None = None
    redrawn: int = 0

    @property
    def last(self) -> int:
        """Returns the number of the last line, folded ones included."""
        return self.folded[-1].last if self.folded else self.number

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
        plain = not (first.classes or first.folded) and first.text.strip() and len(equal) + 1 >= _MIN_COUNT
        shown += [_with(first, equal)] if plain else [first, *equal]
    return tuple(shown)


def joined(made: Sequence[Row], known: Writers) -> tuple[Row, ...]:
    """Returns the rows without what rank after rank repeats, such as the watchdog's lines. Where each of some lines
    differs from one of another rank before it in numbers only, they are placed inside the row before them."""
    shown: list[Row] = []
    first_by: dict[str, int] = {}  # the rank that wrote the first line of a form
    for again, group in groupby(made, key=lambda row: _repeats(row, known, first_by)):
        rows = tuple(group)
        if again and len(rows) + 1 >= _MIN_COUNT:
            shown[-1] = replace(_with(shown[-1], rows), alike=True)
        else:
            shown += rows
    return tuple(shown)


def _with(first: Row, others: Sequence[Row]) -> Row:
    ranks = RankSet.of(row.rank for row in others if row.rank is not None and row.rank != first.rank)
    return replace(first, folded=tuple(others), ranks=ranks or None)


def settled(made: Iterable[Row]) -> tuple[Row, ...]:
    """Returns the rows, each with the last state of a progress bar that was drawn again and again on its line."""
    return tuple(map(_settled, made))


def _settled(row: Row) -> Row:
    states = [state for state in row.text.split("\r") if state.strip()]
    if len(states) <= _STATES or row.hit or row.focus:
        return row
    return replace(row, text=states[-1], redrawn=len(states) - 1)


def _repeats(row: Row, known: Writers, first_by: dict[str, int]) -> bool:
    """Returns whether another rank has written a line of this form, and adds the form if it is new."""
    text = known.bare(row.text).strip()
    if row.rank is None or not text or row.focus or row.hit:
        return False
    return first_by.setdefault(mask_all(text), row.rank) != row.rank


def marked(verdict: Verdict | None, file: StoredFile, several: bool) -> dict[int, str]:
    """Returns the lines of a file that the verdict refers to, in order, each `evidence` or `cascade`."""
    if verdict is None:
        return {}
    here = {file.name} if several else {None, file.name}
    marks = {cascade.line: "cascade" for cascade in verdict.cascades if cascade.file in here}
    marks |= {mark.line: "cascade" for mark in verdict.timeline if mark.line and mark.file in here}
    marks |= {line.line: "evidence" for line in key_lines(verdict) if line.file in here}
    return dict(sorted(marks.items()))


def key_lines(verdict: Verdict | None) -> tuple[Evidence, ...]:
    """Returns the lines that the verdict rests on: its evidence, or the line that an inconclusive answer quotes."""
    if verdict is None:
        return ()
    if verdict.root_cause:
        return verdict.root_cause.evidence
    quoted = last_line(verdict.answer) if verdict.answer else None
    return (quoted,) if quoted else ()
