"""Counts the error lines of a run that no extractor and no entry reads, by their form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from torchtriage.domain.line import Line, Position
from torchtriage.facts.document_regexes import DocumentRegexes
from torchtriage.facts.ending_regexes import EndingRegexes
from torchtriage.matching.masking import mask_all

MAX_KINDS = 512  # different kinds of lines that are counted in a run; the newest are kept
_COMPARED = 160  # characters of two lines that are compared
_DIGITS = b"0123456789"


@dataclass(slots=True)
class ErrorForm:
    """A kind of line that every job prints in the same form: its first and last line, how many there are, and which
    ranks printed them."""

    first: Line
    last: Line
    count: int
    ranks: frozenset[int]

    def plus(self, other: ErrorForm) -> ErrorForm:
        """Returns one form with the counts of both."""
        first = min(self.first, other.first, key=lambda line: line.position)
        last = max(self.last, other.last, key=lambda line: line.position)
        return ErrorForm(first, last, self.count + other.count, self.ranks | other.ranks)

    @property
    def places(self) -> tuple[Position, Position]:
        """The positions of the first and the last line."""
        return self.first.position, self.last.position


@dataclass(slots=True)
class ErrorLines:
    """Counts lines that contain a mark of an error and that nobody else reads. Lines that differ only in digits count
    as the same."""

    _kinds: dict[bytes, ErrorForm] = field(default_factory=dict)

    def add(self, line: Line, count: int = 1, others: Iterable[Line] = ()) -> None:
        """Adds a line. `count` is how many equal lines it represents, and `others` are some of these."""
        lines = (line, *others)
        ranks = frozenset(one.rank for one in lines if one.rank is not None)
        first, last = (which(lines, key=lambda one: one.position) for which in (min, max))
        kind = line.text[:_COMPARED].encode("utf-8", "replace").translate(None, _DIGITS)
        added, known = ErrorForm(first, last, count, ranks), self._kinds.pop(kind, None)
        self._kinds[kind] = known.plus(added) if known else added  # makes it the newest
        if len(self._kinds) > MAX_KINDS:
            del self._kinds[next(iter(self._kinds))]

    def forms(self, regexes: EndingRegexes, documents: DocumentRegexes) -> dict[str, ErrorForm]:
        """Returns the counted forms by their text, without what differs from job to job. Lines that report no error are
        left out."""
        forms: dict[str, ErrorForm] = {}
        for one in self._kinds.values():
            if _is_error_line(one.first, regexes, documents):
                masked = mask_all(one.first.text)
                forms[masked] = forms[masked].plus(one) if masked in forms else one
        return forms

    def moved(self, to: Callable[[Position], Position]) -> ErrorLines:
        """Returns the lines with the positions that `to` gives, after whole files were reordered."""

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


def _is_error_line(line: Line, regexes: EndingRegexes, documents: DocumentRegexes) -> bool:
    """Returns whether a line is an error: by its level, or by its words if no other sign says that it is harmless."""
    if regexes.harmless_errors.search(line.raw):
        return False
    if regexes.is_error(line):
        return True
    if not (regexes.error_words.search(line.text) or regexes.error_words.search(line.raw[:_COMPARED])):
        return False
    harmless = regexes.calm.search(line.raw) or documents.harmless_alarms.search(line.raw)
    return not (harmless or regexes.harmless_words.search(line.raw) or regexes.harmless_words.search(line.text))
