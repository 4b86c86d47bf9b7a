"""Puts a file's lines as they were written: whole JSON documents, tables, exports newest first, one in another too.

Blocks in, blocks out. Only these few forms are read whole, and only up to a size; everything else goes by untouched.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from torchtriage.reading.blocks import Piece
from torchtriage.reading.unwrap.collector_entries import in_fluent, in_yaml, is_fluent, is_yaml
from torchtriage.reading.unwrap.journald_export import in_journal, is_journal
from torchtriage.reading.unwrap.json_documents import LARGEST, documents, in_document
from torchtriage.reading.unwrap.labelled_layout import inside
from torchtriage.reading.unwrap.layout import Undo, setting
from torchtriage.reading.unwrap.line_order import newest_first, oldest_first, time_in, written
from torchtriage.reading.unwrap.line_separators import parting
from torchtriage.reading.unwrap.numbered_lines import numbered
from torchtriage.reading.unwrap.quoted_strings import in_quotes, is_quoted
from torchtriage.reading.unwrap.tables import in_table, is_table
from torchtriage.reading.unwrap.transport_encoding import TooLong, spelling

_SAMPLE = 64 << 10  # bytes
_DEEPEST = 4  # forms in one another
_QUOTES = (b"[", b'"', b"'", b"b")  # with which lists, strings and bytes begin
_OF_TIME = re.compile(r"(?i).*time.*|ts|tsns|date|datetime")  # names of fields
_YAML, _FLUENT = "entries in YAML", "Fluent Bit's output"
_JSON, _TABLE, _JOURNAL, _NEWEST_FIRST = "a JSON document", "a table", "a journal's export", "newest lines first"
_QUOTED = "a log in quotes"
_PARTED = "lines parted by no line feeds"
_SPELLED = "an encoded log"
_SET_OTHERWISE = "lines set otherwise"
_SLIGHT = frozenset({_JSON, _QUOTED, _PARTED})  # Of the others every line is kept, which takes twice as much memory.
_OF_LINES = frozenset({_NEWEST_FIRST, _PARTED, _SPELLED, _SET_OTHERWISE})
_NEVER_TWICE = frozenset({_NEWEST_FIRST, _QUOTED})  # What is left may look like it still.
_FROM_THE_END = "the newest lines stand first: read from the end"
_DOCUMENT = re.compile(
    rb"\s*(?:\[\s*[\[{]|\{\s*\r?\n|\{\s*\"(?:events|hits|status|data|results|entries|items)\":\s*[\[{\"])"
)


# How each form of records is known by its beginning, in the order in which that is asked, and how it is read.
_RECORDS: dict[str, Callable[[bytes], bool]] = {
    _JOURNAL: is_journal, _YAML: is_yaml, _FLUENT: is_fluent, _TABLE: is_table
}  # fmt: skip
_READERS: dict[str, Callable[[bytes], Iterator[tuple[int, dict[str, Any]]]]] = {
    _TABLE: in_table, _JOURNAL: in_journal, _YAML: in_yaml, _FLUENT: in_fluent
}  # fmt: skip


class Arranged(NamedTuple):
    """Blocks in the order of writing. `numbers`: for each of their lines the number that it has in the file, None where
    nothing was moved. `rewritten`: they are no lines of the file, but records taken out of a document or a table.
    `by_lines`: how its lines were set or ordered showed the form. `warning` says what could not be done, or what was
    done, None most often."""

    blocks: Iterator[bytes]
    numbers: Sequence[int] | None = None
    rewritten: bool = False
    warning: str | None = None
    by_lines: bool = False


def arranged(blocks: Iterable[bytes], lines_too: bool = True) -> Arranged:
    """-> the blocks of one file, arranged. Raises what reading `blocks` raises.

    `lines_too`: not only documents, but also how the lines are set and ordered is looked at, which takes longer.
    """
    outer, form = _once(blocks, None, lines_too)
    outer = outer._replace(by_lines=form in _OF_LINES)
    for _ in range(_DEEPEST):
        if outer.numbers is None:
            return outer
        inner, form = _once(outer.blocks, form, lines_too=True)
        if inner.numbers is None:
            return outer._replace(blocks=inner.blocks)
        outer = _inside(outer, outer.numbers, inner, inner.numbers)
    return outer


def _inside(outer: Arranged, above: Sequence[int], inner: Arranged, numbers: Sequence[int]) -> Arranged:
    """-> what was arranged inside of what was arranged before; `above` and `numbers` are the two's numbers of lines."""
    told = array("q", (above[number - 1] for number in numbers))
    rewritten, warning = outer.rewritten or inner.rewritten, outer.warning or inner.warning
    return Arranged(inner.blocks, told, rewritten, warning, outer.by_lines)


def _once(blocks: Iterable[bytes], undone: str | None, lines_too: bool) -> tuple[Arranged, str | None]:
    """-> the blocks with the outermost form undone, and which one that was; `undone` is the one before."""
    rest = iter(blocks)
    read: list[bytes] = []
    size = 0
    while size < _SAMPLE and (block := next(rest, b"")):
        read.append(block)
        size += len(block)
    first = (read[0] if len(read) == 1 else b"".join(read))[:_SAMPLE]
    form = _form(first, size < _SAMPLE, lines_too)
    if form is None or (form == undone and form in _NEVER_TWICE):
        return Arranged(chain(read, rest)), None
    most = LARGEST if form in _SLIGHT else LARGEST * 4 // 5
    for block in rest:
        read.append(block)
        size += len(block)
        if size > most:
            return Arranged(chain(read, rest), warning=_too_long(form, most)), None
    return _undone(form, read, first, whole=size < _SAMPLE), form


def _undone(form: str, read: list[bytes], first: bytes, *, whole: bool) -> Arranged:
    """-> the content of a file without the form that it has by its beginning, `first`; `whole`: that is all of it. The
    blocks that were `read` are taken out of their list, as there is no room for two of each."""
    content = b"".join(memoryview(block)[:-1] if isinstance(block, Piece) else block for block in read)
    read.clear()
    if form == _NEWEST_FIRST:
        return _turned(content)
    if form == _SET_OTHERWISE and (undo := setting(_lines(first, whole)) or inside(_lines(first, whole))):
        return _as_written(content, undo)
    if form == _QUOTED:
        return _told(in_quotes(content))
    if form in (_PARTED, _SPELLED) and (lines_of := parting(first) if form == _PARTED else spelling(first)):
        try:
            return _told(lines_of(content))
        except TooLong:
            return Arranged(_cut(content), warning=_too_long(form, LARGEST))
    if form == _JSON:
        text = content.decode("utf-8", "replace")
        del content
        found, told = in_document(text)
        first_told = next(told, None)
        return _in_order(_taken(found)) or (
            _told(chain([first_told], told)) if first_told else Arranged(_cut(text.encode()))
        )
    return _in_order(_READERS[form](content)) or Arranged(_cut(content))


def _too_long(form: str, most: int) -> str:
    return f"{form}: more than {most >> 20} MB, so read as it stands"


def _form(sample: bytes, whole: bool, lines_too: bool) -> str | None:
    single = sample[:1] == b"{" and b"\n" not in sample.rstrip()
    if (single or _DOCUMENT.match(sample)) and _goes_on(sample.decode("utf-8", "replace"), whole):
        return _JSON
    for form, is_form in _RECORDS.items():
        if is_form(sample):
            return form
    if (b"\\" in sample or sample[:1] in _QUOTES) and sample[:1] != b"{" and is_quoted(sample):
        return _QUOTED
    return _form_of_lines(sample, _lines(sample, whole)) if lines_too else None


def _form_of_lines(sample: bytes, lines: list[bytes]) -> str | None:
    if newest_first(sample, lines):
        return _NEWEST_FIRST
    if parting(sample):
        return _PARTED
    if spelling(sample):
        return _SPELLED
    return _SET_OTHERWISE if setting(lines) or inside(lines) else None


def _lines(sample: bytes, whole: bool) -> list[bytes]:
    """-> the lines of a sample, without the last one where it is cut off."""
    return sample.split(b"\n")[: None if whole else -1]


def _as_written(content: bytes, undo: Undo) -> Arranged:
    """-> the lines as they were before something set them otherwise."""
    lines, numbers = undo([line for _, line in numbered(content)])
    return Arranged(_cut("\n".join(lines).encode() + b"\n"), array("q", numbers))


def _told(lines: Iterable[tuple[int, str]]) -> Arranged:
    """-> lines that were taken out of something else; each comes with its line in the file."""
    content, numbers = bytearray(), array("q")
    for number, line in lines:
        content += line.encode("utf-8", "replace") + b"\n"
        # A line end that was spelled in a second way stands in some of them.
        numbers.extend([number] * (1 + line.count("\n")))
    return Arranged(_cut(content or b"\n"), numbers or array("q", [1]), rewritten=True)


def _goes_on(text: str, whole: bool) -> bool:
    """-> whether a text that begins like a JSON document is one as far as it goes, or one after another; a log can begin
    with its settings."""
    try:
        for _ in documents(text):
            pass
    except json.JSONDecodeError as error:
        return not whole and (error.msg.startswith("Unterminated string") or error.pos >= len(error.doc) - 16)
    except RecursionError:
        return False
    return True


def _turned(content: bytes) -> Arranged:
    """-> the lines of an export that begins with the newest, from the oldest on."""
    lines = content.removesuffix(b"\n").split(b"\n")
    places = array("q", written(lines))
    turned = b"\n".join([lines[at] for at in places]) + b"\n"
    return Arranged(_cut(turned), array("q", (at + 1 for at in places)), warning=_FROM_THE_END)


def _taken(records: list[Any]) -> Iterator[Any]:
    """Yields what a list holds, which is empty then: beside what is made of them there is no room for all."""
    records.reverse()
    while records:
        yield records.pop()


def _in_order(records: Iterable[tuple[int, dict[str, Any]]]) -> Arranged | None:
    """-> records as lines of JSON, the oldest first; None where there is none. Each comes with its line in the file."""
    lines, times, numbers = list[bytes](), list[bytes](), list[int]()
    for number, record in records:
        numbers.append(number)
        lines.append(json.dumps(record).encode())
        # A message can begin with a time of its own.
        told = {name: value for name, value in record.items() if _OF_TIME.fullmatch(name)}
        times.append(time_in(json.dumps(told).encode() if told else lines[-1]))
    if not lines:
        return None
    order = oldest_first(lines, times)
    if order:
        lines, numbers = [lines[at] for at in order], [numbers[at] for at in order]
    turned = _FROM_THE_END if order else None
    lines.append(b"")
    return Arranged(_cut(b"\n".join(lines)), array("q", numbers), rewritten=True, warning=turned)


def _cut(content: bytes | bytearray) -> Iterator[bytes]:
    """Yields the content in blocks that end at line ends."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + (1 << 20)) + 1 or len(content)
        yield bytes(content[start:end])
        start = end
