"""One line of a file → the lines that writers printed: out of records and out of pieces that log drivers cut."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torchtriage.reading.prefixes.file_labels import Labels
from torchtriage.reading.prefixes.strip import NOWHERE, Origin, take_off
from torchtriage.reading.unwrap.json_documents import in_batch
from torchtriage.reading.unwrap.json_records import Record, record_in, record_of
from torchtriage.reading.unwrap.logfmt import SAYS, fields_of

LONGEST_TEXT = 16 << 10  # characters of a line that are looked at; evidence shows the same
_LONGEST_RECORD = 1 << 20  # characters
_DEEPEST = 3  # a record in a record in a record
_FAR = 200  # characters of prefixes before a record
_CRI = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d)) (std(?:out|err)) ([FP])(?::\w+)* ?")
# ` 12%|█▏   | 207/1767 [02:39<14:49` · `29948it [35:34, ` of a bar that does not know how much is to come
_BAR = re.compile(r"\d+%\||\d\w{0,20} \[(?:\d+:)?\d\d:\d\d, ")
# Behind a bar that has no line end begins what another writer said, or the same one in its last words.
_BEHIND_BAR = re.compile(
    r"[^|]{0,80}?(?:\d%\|[^|]{0,400}\| ?\d+/\S+|\d\w{0,20}) \[(?:\d+:)?\d\d:\d\d[^\]]{0,80}\]"
    r"(?=\[(?:rank|default)\d|[WEIF]\d{4} \d\d:|[=*-]{20}|  \S|(?:\w+\.)*\w+(?:Error|Exception)\b)"
)
# The shell's word on how the program ended, behind a progress line without an end.
_ENDED = re.compile(
    r"(?<=[\w\])%])(?=(?:Killed|Terminated|Aborted|Segmentation fault|Bus error|Illegal instruction"
    r"|Floating point exception)(?: \(core dumped\))?\s*$)"
)
_GLUED = re.compile(r"(?<=\S)(?=(?:\[rank\d+\]: ?)?Traceback \(most recent call last\))")
_TAGGED = re.compile(
    r"(?:[+-]\d{4}\s)?[\w.*/-]+(?::\s|\t)(?=\{\"|\w+=)"
)  # Fluentd's standard output, and its files; Argo
_WORD = re.compile(r"\w")
# What Paddle reports in one line: C++ Traceback (…): ---------- … Error Message Summary: ---------- FatalError: …
_SUMMARY = "Error Message Summary: ----------"
_RULED = re.compile(r"(?<=-{10}) +(?=[^\s-])|(?<=[^\s-]) +(?=-{10})")
# A traceback whose line feeds a web form took away.
_FLAT = "Traceback (most recent call last): File "
_ESCAPED = "Traceback (most recent call last):\\n"  # of repr(), of JSON in a line that is no record
_IN_ONE_LINE = re.compile(
    r"(?<=:)(?= File \")| (?= ?File \"[^\"]+\", line \d)|(?<=[\s)\]]) ?(?=(?:\w+\.)*[A-Z]\w*(?:Error|Exception): )"
)


class Unfolded(NamedTuple):
    """A line that a writer printed: its number in the file, the line as it stands, what its prefixes tell."""

    number: int
    raw: str
    origin: Origin


class Unfolding:
    """Give it a file's lines in order; it holds back the pieces of a cut line until the last one came.

    `verbatim` is False where the lines are none of the file's own, so that what they hold is shown in their place.
    `known`: the labels that the file's lines carry.
    """

    def __init__(self, known: Labels, verbatim: bool = True) -> None:
        self.known = known
        self._verbatim = verbatim
        self._pieces: dict[str, tuple[int, str, Origin]] = {}

    def lines(self, number: int, text: str) -> Iterable[Unfolded]:
        """-> the lines in line `number`, `text` without its line end."""
        if (text[-1:] == "}" and "{" in text[:_FAR]) or SAYS in text:
            return self._record(number, text, text[:_LONGEST_RECORD], NOWHERE, 0)
        if text[:4].isdigit() and (cut := _CRI.match(text)):
            outer = NOWHERE._replace(time=cut[1], stream=f"{cut[2]}/")
            return self._joined(number, text, text[cut.end() :], outer, cut[3] == "F")
        if "\r" in text or "Traceback (" in text:
            return self._plain(number, text, NOWHERE)
        shown = text[:LONGEST_TEXT]
        return (Unfolded(number, shown, take_off(shown, self.known)),)

    def rest(self) -> Iterator[Unfolded]:
        """Yields what is held back; the lines that follow are no neighbours of the last one."""
        pieces, self._pieces = self._pieces, {}
        for number, text, outer in pieces.values():
            yield from self._record(number, None, text, outer, 1)

    def _joined(
        self, number: int, raw: str, text: str, outer: Origin, whole: bool, depth: int = 0
    ) -> Iterator[Unfolded]:
        """Yields the line that a log driver wrote in pieces, when its last one is there."""
        first, before, _ = self._pieces.pop(outer.stream, (number, "", outer))
        if before:
            number, text = first, before + text
        if whole or len(text) > _LONGEST_RECORD:
            yield from self._record(number, None if before else raw, text, outer, depth + 1)
        else:
            self._pieces[outer.stream] = number, text, outer

    def _record(self, number: int, raw: str | None, text: str, outer: Origin, depth: int) -> Iterator[Unfolded]:
        """Yields the lines of the record that `text` may be; `raw` is None where the text is no line of the file."""
        record, bare = None, ""
        if (text[-1:] == "}" or SAYS in text) and depth < _DEEPEST:
            origin = take_off(text, self.known, outer)
            bare = origin.text
            record = _record_in(bare)
        if record is None and bare[:1] == "{" and (batch := in_batch(bare)):
            for each in batch:
                for line in each.lines:
                    yield from self._plain(number, line, _around(each, origin))
            return
        if record is None:
            yield from self._plain(number, text, outer, raw)
            return
        outer = _around(record, origin)
        if not record.whole:
            yield from self._joined(number, text, record.lines[0], outer, whole=False)
            return
        if outer.stream in self._pieces:
            yield from self._joined(number, text, record.lines[0], outer, whole=True)
            return
        whole = raw if self._verbatim and len(record.lines) == 1 and _legible(record.said, text) else None
        for line in record.lines:
            yield from self._record(number, whole, line, outer, depth + 1)

    def _plain(self, number: int, text: str, outer: Origin, raw: str | None = None) -> Iterator[Unfolded]:
        parts = _parts(text, self.known)
        for part in parts:
            cut = part[:LONGEST_TEXT]
            shown = raw[:LONGEST_TEXT] if raw is not None and len(parts) == 1 else cut
            yield Unfolded(number, shown, take_off(cut, self.known, outer))


def _record_in(text: str) -> Record | None:
    """-> the record that a text is, of JSON or of keys and values, or that a collector wrote behind its time and tag:
    `kube.train: {…}`."""
    tag = _TAGGED.match(text) if text[:1] != "{" else None
    bare = text[tag.end() :] if tag else text
    if bare[:1] == "{":
        return record_of(bare)
    fields = fields_of(bare) if SAYS in bare else None
    return record_in(fields) if fields else None


def _legible(said: str, text: str) -> bool:
    """-> whether people can read in a record's text what it says; a journal can hold it as numbers."""
    return json.dumps(said[:80], ensure_ascii=False)[1:-1] in text or json.dumps(said[:80])[1:-1] in text


def _around(record: Record, origin: Origin) -> Origin:
    """-> what is known of all lines of a record: what its fields tell, else the prefixes before it."""
    named = "/".join(part for part in (record.pod, record.host if not record.pod else None, record.writer) if part)
    return Origin(
        text="",
        rank=record.rank if record.rank is not None else origin.rank,
        local_rank=record.local_rank if record.local_rank is not None else origin.local_rank,
        host=record.host or record.pod or origin.host,
        time=record.time or origin.time,
        stream=f"{origin.stream}{named}/" if named else origin.stream,
        pod=record.pod or origin.pod,
        node=origin.node,
    )


def _parts(text: str, known: Labels) -> list[str]:
    """Parts a line that progress bars rewrote, and one into which two writers wrote."""
    parts = [text]
    if "\r" in text:
        every = [part for part in text.split("\r") if part.strip()]
        last = [part[bar.end() :] if (bar := _BEHIND_BAR.match(part)) else part for part in every[-1:]]
        last = [piece for part in last for piece in _ENDED.split(part)]
        parts = [part for part in every[:-1] if not _BAR.search(part)] + last
    if _ESCAPED in text:
        parts = [piece for part in parts for piece in _unescaped(part)]
    if "Traceback (" in text:
        parts = [piece for part in parts for piece in _writers(part, known)]
        parts = [piece for part in parts for piece in _flat(part)]
    return parts


def _flat(part: str) -> list[str]:
    """-> the lines of a traceback, or of Paddle's report, that lost its line feeds."""
    found: list[str] = []
    for one in _RULED.split(part) if _SUMMARY in part else [part]:
        at = max(one.find(_FLAT), 0)  # What stands before it, an exception's name perhaps, is one piece.
        head, *rest = _IN_ONE_LINE.split(one[at:]) if _FLAT in one else [one]
        found += [one[:at] + head, *rest]
    return found


def _unescaped(part: str) -> list[str]:
    """-> the lines of a traceback that was written as one, with its line feeds and quotes spelled."""
    if _ESCAPED not in part:
        return [part]
    return part.replace("\\n", "\n").replace('\\"', '"').replace("\\'", "'").replace("\\t", "\t").split("\n")


def _writers(part: str, known: Labels) -> list[str]:
    """-> what each of two writers put in the line; a prefix before another one, or a mark, is no writer of its own."""
    if known.learning:
        return [part]
    pieces = _GLUED.split(part)
    if len(pieces) > 1 and not _WORD.search(take_off(pieces[0], known).text):
        return [part]
    return pieces
