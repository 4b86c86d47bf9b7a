"""Turns the kept pieces of a file into lines: decodes them, extracts them from records, strips prefixes, and sets rank
and host."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat

from torchtriage.domain.host import host_name
from torchtriage.domain.line import Line, Position
from torchtriage.reading.log_records import LOGFMT
from torchtriage.reading.prefixes.custom_labels import MAX_CUSTOM_LABELS, label_before_traceback
from torchtriage.reading.prefixes.learned import Labels
from torchtriage.reading.prefixes.paths import FileOrigin
from torchtriage.reading.prefixes.strip import PrefixValues, learn_labels, may_be_passed_on, strip_prefixes
from torchtriage.reading.record_lines import MAX_TEXT_LENGTH, RecordLines
from torchtriage.reading.template_cache import PLAIN, Template, read_by, template_of, without_digits
from torchtriage.reading.text_encoding import decode_lines

_SAMPLE = 200  # first lines of a file from which its labels are learned
_BELOW = 20  # lines below the head of a traceback in which its first frame must be
_BATCH_SIZE = 512  # lines that are passed on together
# The normal constructors of Position and Line take three times as long.
_POSITION, _LINE = partial(tuple.__new__, Position), partial(tuple.__new__, Line)


def lines(
    kept: Iterable[tuple[int, bytes]],
    file_origin: FileOrigin,
    above: Position,
    numbers: Sequence[int] | None = None,
    verbatim: bool = True,
) -> Iterator[list[Line]]:
    """Yields the lines of one file, many at once. `kept` are its pieces, each with the index (from 1) of its first
    line.

    `above` is the position in the run before the file's first line. `numbers` has the lines' numbers in the file if
    they were moved. `verbatim` is False if the lines are not the file's own text.
    """
    pieces = _pieces(kept)
    head, rest = _head(pieces)
    reader = _Reader(file_origin, above, numbers, Labels(learning=True), verbatim, learns=False)
    plain = list(reader.lines(head))
    texts = [line.text for many in plain for line in many]
    known = learn_labels(texts)
    if any(known) or _show_custom_label(texts) or any(map(_may_contain_several, texts)):
        reader = _Reader(file_origin, above, numbers, known, verbatim, learns=True)
        plain = list(reader.lines(head))
    yield from plain
    reader.learns = True
    reader.use_labels(known)
    yield from reader.lines(rest)
    yield from reader.lines(pieces)
    yield reader.held_back()


def _pieces(kept: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, list[str]]]:
    """Yields (index of the first line, lines), with a limit on the number of lines."""
    for index, piece in kept:
        texts = decode_lines(piece)
        for start in range(0, len(texts), _BATCH_SIZE):
            yield index + start, texts[start : start + _BATCH_SIZE]


def _head(
    pieces: Iterator[tuple[int, list[str]]],
) -> tuple[list[tuple[int, list[str]]], list[tuple[int, list[str]]]]:
    """Returns the first lines of a file, and the other lines read with them."""
    head: list[tuple[int, list[str]]] = []
    wanted = _SAMPLE
    for index, texts in pieces:
        head.append((index, texts[:wanted]))
        if len(texts) >= wanted:
            return head, [(index + wanted, texts[wanted:])] if texts[wanted:] else []
        wanted -= len(texts)
    return head, []


def _may_contain_several(text: str) -> bool:
    """Returns whether a line may have been passed on by a logger, or have two writers. That can be decided when the
    labels are known."""
    return ("Traceback (" in text and not text.startswith("Traceback (")) or may_be_passed_on(text)


def _show_custom_label(texts: list[str]) -> bool:
    """Returns whether an unknown label precedes a traceback in texts that have no other label."""
    return any(
        label_before_traceback(text, texts[at + 1 : at + 1 + _BELOW]) is not None
        for at, text in enumerate(texts)
        if "Traceback (" in text or ' File "' in text
    )


class _Reader:
    """Creates the lines of one file. `known` are the labels of its lines. If `learns` is true, further labels are
    learned from tracebacks."""

    def __init__(
        self,
        file_origin: FileOrigin,
        above: Position,
        numbers: Sequence[int] | None,
        known: Labels,
        verbatim: bool,
        *,
        learns: bool,
    ) -> None:
        self._file_origin, self._numbers, self._known = file_origin, numbers, known
        self._file, self._above = above
        self.learns = learns
        self._records = RecordLines(known, verbatim)
        self._custom = [known.custom.pattern] if known.custom else []
        self._prefix = f"{file_origin.log or file_origin.file or ''}|"
        # The values of the file's path, for lines that do not have their own.
        self._of_file = (
            file_origin.file, file_origin.rank, file_origin.local_rank, file_origin.host, None, self._prefix, file_origin.attempt, file_origin.pod, file_origin.node
        )  # fmt: skip
        self._last = 0
        self._templates: dict[bytes, Template] = {}  # by the line with its digits replaced

    def lines(self, pieces: Iterable[tuple[int, list[str]]]) -> Iterator[list[Line]]:
        """Yields the lines of each piece."""
        for first, texts in pieces:
            if first != self._last + 1 and (held := self.held_back()):
                yield held
            self._last = first + len(texts) - 1
            yield self._lines_of(first, texts)

    def use_labels(self, known: Labels) -> None:
        """Uses these labels for the following lines."""
        self._known = self._records.known = known

    def held_back(self) -> list[Line]:
        """Returns the lines that were held back. Called when the following lines are not adjacent to the last one."""
        return [self._line(line.number, *line) for line in self._records.held_back()]

    def _lines_of(self, first: int, texts: list[str]) -> list[Line]:
        made: list[Line] = []
        templates, keys = self._templates, without_digits(texts)
        often = Counter(keys)
        at = 0
        while at < len(texts):
            template = templates.get(keys[at])
            if template is None:
                made += self._read(first, texts, at, keys[at] if often[keys[at]] > 1 else None)
                at += 1
            elif template is PLAIN:
                others = (other for other in range(at + 1, len(texts)) if templates.get(keys[other]) is not PLAIN)
                end = next(others, len(texts))
                made += self._plain(first + at, texts[at:end])
                at = end
            else:
                made.append(self._by_template(first + at, texts[at], template))
                at += 1
        return made

    def _read(self, first: int, texts: Sequence[str], at: int, key: bytes | None) -> Iterable[Line]:
        """Returns the lines in a text, usually one. `first` is the index of the first of `texts`. `key` is the form
        that lines without digits share; the template is stored under it."""
        index, text = first + at, texts[at]
        # Most lines are printed by one writer in one line.
        if text[-1:] == "}" or text[4:5] == "-" or "\r" in text or "Traceback (" in text or LOGFMT in text:
            if self.learns and "Traceback (" in text:
                self._learn_label(strip_prefixes(text, self._known).text, texts[at + 1 : at + 1 + _BELOW])
            return [self._line(index, *line) for line in self._records.lines(index, text)]
        shown = text[:MAX_TEXT_LENGTH]
        origin = strip_prefixes(shown, self._known)
        if ' File "' in shown and not origin.text.lstrip().startswith('File "'):
            # After a label that is not known yet, a frame can begin a label that is learned later.
            if self.learns:
                self._learn_label(origin.text, texts[at + 1 : at + 1 + _BELOW])
                origin = strip_prefixes(shown, self._known)
        elif key is not None and (template := template_of(text, origin)) is not None:
            self._templates[key] = template
        return (self._line(index, index, shown, origin),)

    def _learn_label(self, head: str, below: Sequence[str]) -> None:
        """Learns the label of a traceback's first line if it is unknown. `head` has no other label."""
        form = label_before_traceback(head, (strip_prefixes(text, self._known).text for text in below))
        if form is None or len(self._custom) >= MAX_CUSTOM_LABELS:
            return
        self._custom.append(form)
        self.use_labels(self._known._replace(custom=re.compile("|".join(self._custom))))
        self._templates.clear()

    def _number(self, index: int) -> int:
        return index if self._numbers is None else self._numbers[index - 1]

    def _plain(self, index: int, texts: list[str]) -> Iterator[Line]:
        """Yields lines that have only text. `index` is that of the first. They are created all at once, because one by
        one takes three times as long."""
        above = self._above + index
        positions = map(_POSITION, zip(repeat(self._file), range(above, above + len(texts)), strict=False))
        numbers: Sequence[int] = range(index, index + len(texts))
        if self._numbers is not None:
            numbers = self._numbers[index - 1 : index - 1 + len(texts)]
        fields = zip(numbers, texts, texts, positions, *map(repeat, self._of_file), strict=False)
        return map(_LINE, fields)

    def _by_template(self, index: int, raw: str, template: Template) -> Line:
        """Returns a line whose template is known. Uses a fast way to create the tuple, because there are many lines."""
        text, rank, time, stream = read_by(template, raw)
        file, its_rank, local_rank, host, _, prefix, *rest = self._of_file
        rank = its_rank if rank is None else rank
        position = _POSITION((self._file, self._above + index))
        fields = (self._number(index), raw, text, position, file, rank, local_rank, host, time, prefix + stream, *rest)
        return _LINE(fields)

    def _line(self, index: int, number: int, raw: str, origin: PrefixValues) -> Line:
        file_origin = self._file_origin
        text, rank, local_rank, host, time, stream, pod, node = origin
        fields = (
            self._number(number),
            raw,
            text,
            _POSITION((self._file, self._above + index)),
            file_origin.file,
            file_origin.rank if rank is None else rank,
            file_origin.local_rank if local_rank is None else local_rank,
            host_name(host) or file_origin.host,
            time,
            self._prefix + stream,
            file_origin.attempt,
            pod or file_origin.pod,
            file_origin.node if node is None else node,
        )
        return _LINE(fields)
