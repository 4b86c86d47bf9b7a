"""Turns one line of a file into the lines that writers printed: extracts records, and joins lines that log drivers
cut."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.log_records import LOGFMT, Record, batch_records, logfmt_fields, record_in, record_of
from torchtriage.reading.merged_lines import split_line
from torchtriage.reading.prefixes.learned import Labels
from torchtriage.reading.prefixes.strip import UNKNOWN, PrefixValues, strip_prefixes

MAX_TEXT_LENGTH = 16 << 10  # characters of a line that are read; evidence shows the same
_MAX_RECORD_LENGTH = 1 << 20  # characters
_MAX_DEPTH = 3  # levels of a record in a record
_RECORD_WITHIN = 200  # characters of prefixes before a record
_CRI = lazy_regex(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d)) (std(?:out|err)) ([FP])(?::\w+)* ?")
_TAGGED = lazy_regex(
    r"(?:[+-]\d{4}\s)?[\w.*/-]+(?::\s|\t)(?=\{\"|\w+=)"
)  # Fluentd's standard output and its files; Argo


class PrintedLine(NamedTuple):
    """A line that a writer printed: its number in the file, the original line, and the values of its prefixes."""

    number: int
    raw: str
    origin: PrefixValues


class RecordLines:
    """Reads the lines of one file in order. Holds back the pieces of a cut line until the last one has arrived.

    If `verbatim` is False, the lines are not the file's own text, so their content is shown instead. `known` are the
    labels of the file's lines.
    """

    def __init__(self, known: Labels, verbatim: bool = True) -> None:
        self.known = known
        self._verbatim = verbatim
        self._pieces: dict[str, tuple[int, str, PrefixValues]] = {}

    def lines(self, number: int, text: str) -> Iterable[PrintedLine]:
        """Returns the lines in line `number`. `text` has no line end."""
        if (text[-1:] == "}" and "{" in text[:_RECORD_WITHIN]) or LOGFMT in text:
            return self._record(number, text, text[:_MAX_RECORD_LENGTH], UNKNOWN, 0)
        if text[:4].isdigit() and (cut := _CRI.match(text)):
            outer = UNKNOWN._replace(time=cut[1], stream=f"{cut[2]}/")
            return self._joined(number, text, text[cut.end() :], outer, cut[3] == "F")
        if "\r" in text or "Traceback (" in text:
            return self._split(number, text, UNKNOWN)
        shown = text[:MAX_TEXT_LENGTH]
        return (PrintedLine(number, shown, strip_prefixes(shown, self.known)),)

    def held_back(self) -> Iterator[PrintedLine]:
        """Yields the lines that were held back. Called when the following lines are not adjacent to the last one."""
        pieces, self._pieces = self._pieces, {}
        for number, text, outer in pieces.values():
            yield from self._record(number, None, text, outer, 1)

    def _joined(
        self, number: int, raw: str, text: str, outer: PrefixValues, whole: bool, depth: int = 0
    ) -> Iterator[PrintedLine]:
        """Yields the line that a log driver cut, as soon as its last piece has arrived."""
        first, before, _ = self._pieces.pop(outer.stream, (number, "", outer))
        if before:
            number, text = first, before + text
        if whole or len(text) > _MAX_RECORD_LENGTH:
            yield from self._record(number, None if before else raw, text, outer, depth + 1)
        else:
            self._pieces[outer.stream] = number, text, outer

    def _record(
        self, number: int, raw: str | None, text: str, outer: PrefixValues, depth: int
    ) -> Iterator[PrintedLine]:
        """Yields the lines of the record in `text`, if it is one. `raw` is None if the text is not a line of the
        file."""
        record, bare = None, ""
        if (text[-1:] == "}" or LOGFMT in text) and depth < _MAX_DEPTH:
            origin = strip_prefixes(text, self.known, outer)
            bare = origin.text
            record = _record_in(bare)
        if record is None and bare[:1] == "{" and (batch := batch_records(bare)):
            for each in batch:
                for line in each.lines:
                    yield from self._split(number, line, _origin_of(each, origin))
            return
        if record is None:
            yield from self._split(number, text, outer, raw)
            return
        outer = _origin_of(record, origin)
        if not record.whole:
            yield from self._joined(number, text, record.lines[0], outer, whole=False)
            return
        if outer.stream in self._pieces:
            yield from self._joined(number, text, record.lines[0], outer, whole=True)
            return
        whole = raw if self._verbatim and len(record.lines) == 1 and _is_legible(record.message, text) else None
        for line in record.lines:
            yield from self._record(number, whole, line, outer, depth + 1)

    def _split(self, number: int, text: str, outer: PrefixValues, raw: str | None = None) -> Iterator[PrintedLine]:
        parts = split_line(text, self.known)
        for part in parts:
            cut = part[:MAX_TEXT_LENGTH]
            shown = raw[:MAX_TEXT_LENGTH] if raw is not None and len(parts) == 1 else cut
            yield PrintedLine(number, shown, strip_prefixes(cut, self.known, outer))


def _record_in(text: str) -> Record | None:
    """Returns the record in a text, or None: JSON, keys and values, or a record after a collector's time and tag, as in
    `kube.train: {…}`."""
    tag = _TAGGED.match(text) if text[:1] != "{" else None
    bare = text[tag.end() :] if tag else text
    if bare[:1] == "{":
        return record_of(bare)
    fields = logfmt_fields(bare) if LOGFMT in bare else None
    return record_in(fields) if fields else None


def _is_legible(message: str, text: str) -> bool:
    """Returns whether people can read the message in a record's text. A journal can have it as numbers."""
    begin = message[:80]
    return json.dumps(begin, ensure_ascii=False)[1:-1] in text or json.dumps(begin)[1:-1] in text


def _origin_of(record: Record, origin: PrefixValues) -> PrefixValues:
    """Returns what is known about all lines of a record: from its fields, or else from the prefixes before it."""
    writer = "/".join(part for part in (record.pod, record.host if not record.pod else None, record.writer) if part)
    return PrefixValues(
        text="",
        rank=record.rank if record.rank is not None else origin.rank,
        local_rank=record.local_rank if record.local_rank is not None else origin.local_rank,
        host=record.host or record.pod or origin.host,
        time=record.time or origin.time,
        stream=f"{origin.stream}{writer}/" if writer else origin.stream,
        pod=record.pod or origin.pod,
        node=origin.node,
    )
