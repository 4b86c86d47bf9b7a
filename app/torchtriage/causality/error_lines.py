"""Error lines that nobody reads: lines of a run that speak of an error in, their forms with how often and where out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from torchtriage.domain.line import Line, Position
from torchtriage.facts.document_signs import DocumentSigns
from torchtriage.facts.ending_signs import EndingSigns
from torchtriage.matching.masking import mask_all

MOST_KINDS = 512  # kinds of lines of a run that are counted, the newest
_COMPARED = 160  # characters of two lines that are compared
_DIGITS = b"0123456789"


@dataclass(slots=True)
class ErrorForm:
    """Lines that are the same in every job: the first and the last one, how many there are, and of which ranks."""

    first: Line
    last: Line
    count: int
    ranks: frozenset[int]

    def plus(self, other: ErrorForm) -> ErrorForm:
        """-> the two as one."""
        first = min(self.first, other.first, key=lambda line: line.position)
        last = max(self.last, other.last, key=lambda line: line.position)
        return ErrorForm(first, last, self.count + other.count, self.ranks | other.ranks)

    @property
    def places(self) -> tuple[Position, Position]:
        """Where the first and the last one are."""
        return self.first.position, self.last.position


@dataclass(slots=True)
class ErrorLines:
    """Feed it lines in which the scan found a mark of an error and that nobody read; it counts those that are alike but
    for their digits."""

    _kinds: dict[bytes, ErrorForm] = field(default_factory=dict)

    def add(self, line: Line, count: int = 1, others: Iterable[Line] = ()) -> None:
        """Takes a line; or one for as many as `count`, with `others` of these."""
        lines = (line, *others)
        ranks = frozenset(one.rank for one in lines if one.rank is not None)
        first, last = (which(lines, key=lambda one: one.position) for which in (min, max))
        kind = line.text[:_COMPARED].encode("utf-8", "replace").translate(None, _DIGITS)
        told, known = ErrorForm(first, last, count, ranks), self._kinds.pop(kind, None)
        self._kinds[kind] = known.plus(told) if known else told  # so that it is the newest
        if len(self._kinds) > MOST_KINDS:
            del self._kinds[next(iter(self._kinds))]

    def forms(self, signs: EndingSigns, documents: DocumentSigns) -> dict[str, ErrorForm]:
        """-> what was counted, by the text without what differs from job to job; what reports no error is left out."""
        forms: dict[str, ErrorForm] = {}
        for one in self._kinds.values():
            if _speaks_of_error(one.first, signs, documents):
                masked = mask_all(one.first.text)
                forms[masked] = forms[masked].plus(one) if masked in forms else one
        return forms

    def moved(self, to: Callable[[Position], Position]) -> ErrorLines:
        """-> the lines with whole files moved in the order of the run."""

        def placed(line: Line) -> Line:
            return line._replace(position=to(line.position))

        return ErrorLines(
            {
                kind: ErrorForm(placed(one.first), placed(one.last), one.count, one.ranks)
                for kind, one in self._kinds.items()
            }
        )

    def __iter__(self) -> Iterator[ErrorForm]:
        yield from self._kinds.values()


def _speaks_of_error(line: Line, signs: EndingSigns, documents: DocumentSigns) -> bool:
    """-> whether a line is an error by its level, or by its words where nothing says that it is none."""
    if signs.harmless_errors.search(line.raw):
        return False
    if signs.is_error(line):
        return True
    if not (signs.error_words.search(line.text) or signs.error_words.search(line.raw[:_COMPARED])):
        return False
    harmless = signs.calm.search(line.raw) or documents.harmless_alarms.search(line.raw)
    return not (harmless or signs.harmless_words.search(line.raw) or signs.harmless_words.search(line.text))
