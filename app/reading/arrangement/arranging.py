"""Puts a file's lines in the order in which they were written: whole JSON documents, tables, exports newest first.

Blocks in, blocks out. Only these few forms are read whole, and only up to a size; everything else goes by untouched.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from app.reading.arrangement.direction import newest_first, oldest_first, written
from app.reading.arrangement.documents import LARGEST, documents, in_document
from app.reading.arrangement.entries import in_fluent, in_yaml, is_fluent, is_yaml
from app.reading.arrangement.filling import filled, unfilled
from app.reading.arrangement.journal import in_journal, is_journal
from app.reading.arrangement.numbered import numbered
from app.reading.arrangement.parting import parting
from app.reading.arrangement.quoted import in_quotes, is_quoted
from app.reading.arrangement.tables import in_table, is_table
from app.reading.arrangement.wrapping import FEWEST, WIDEST, doubled, joined, single, width

_SAMPLE = 64 << 10  # bytes
_QUOTES = (b"[", b'"', b"'", b"b")  # with which lists, strings and bytes begin
_SAMPLE_LINES = 2000  # of a file that was set otherwise
_OF_TIME = re.compile(r"(?i).*time.*|ts|tsns|date|datetime")  # names of fields
_YAML, _FLUENT = "entries in YAML", "Fluent Bit's output"
_JSON, _TABLE, _JOURNAL, _NEWEST_FIRST = "a JSON document", "a table", "a journal's export", "newest lines first"
_QUOTED = "a log in quotes"
_PARTED = "lines parted by no line feeds"
_SET_OTHERWISE = "lines cut at one width, or doubled"
_SLIGHT = frozenset({_JSON, _QUOTED, _PARTED})  # Of the others every line is kept, which takes twice as much memory.
_FROM_THE_END = "the newest lines stand first: read from the end"
_DOCUMENT = re.compile(
    rb"\s*(?:\[\s*[\[{]|\{\s*\r?\n|\{\s*\"(?:events|hits|status|data|results|entries|items)\":\s*[\[{\"])"
)


_READERS: dict[str, Callable[[bytes], Iterator[tuple[int, dict[str, Any]]]]] = {
    _TABLE: in_table, _JOURNAL: in_journal, _YAML: in_yaml, _FLUENT: in_fluent
}  # fmt: skip


class Arranged(NamedTuple):
    """Blocks in the order of writing. `numbers`: for each of their lines the number that it has in the file, None where
    nothing was moved. `rewritten`: they are no lines of the file, but records taken out of a document or a table.
    `warning` says what could not be done, or what was done, None most often."""

    blocks: Iterator[bytes]
    numbers: Sequence[int] | None = None
    rewritten: bool = False
    warning: str | None = None


def arranged(blocks: Iterable[bytes]) -> Arranged:
    """-> the blocks of one file, arranged. Raises what reading `blocks` raises."""
    rest = iter(blocks)
    read: list[bytes] = []
    size = 0
    while size < _SAMPLE and (block := next(rest, b"")):
        read.append(block)
        size += len(block)
    first = (read[0] if len(read) == 1 else b"".join(read))[:_SAMPLE]
    form = _form(first, whole=size < _SAMPLE)
    if form is None:
        return Arranged(chain(read, rest))
    most = LARGEST if form in _SLIGHT else LARGEST // 2
    for block in rest:
        read.append(block)
        size += len(block)
        if size > most:
            return Arranged(chain(read, rest), warning=f"{form}: more than {most >> 20} MB, so read as it stands")
    content = b"".join(read)
    del read
    if form == _NEWEST_FIRST:
        return _turned(content)
    if form == _SET_OTHERWISE:
        return _as_written(content)
    if form == _QUOTED:
        return _told(in_quotes(content))
    if form == _PARTED and (lines_of := parting(first)):
        return _told(lines_of(content))
    return _in_order(_records(form, content)) or Arranged(_cut(content))


def _records(form: str, content: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """-> the records of a file of this form, each with its line in the file."""
    if form == _JSON:
        return in_document(content.decode("utf-8", "replace"))
    return _READERS[form](content)


def _form(sample: bytes, whole: bool) -> str | None:
    single = sample[:1] == b"{" and b"\n" not in sample.rstrip()
    if (single or _DOCUMENT.match(sample)) and _goes_on(sample.decode("utf-8", "replace"), whole):
        return _JSON
    if is_journal(sample):
        return _JOURNAL
    if is_yaml(sample):
        return _YAML
    if is_fluent(sample):
        return _FLUENT
    if is_table(sample):
        return _TABLE
    if (b"\\" in sample or sample[:1] in _QUOTES) and sample[:1] != b"{" and is_quoted(sample):
        return _QUOTED
    lines = sample.split(b"\n")[: None if whole else -1]
    if newest_first(sample, lines):
        return _NEWEST_FIRST
    if parting(sample):
        return _PARTED
    return _SET_OTHERWISE if _set_otherwise(lines) else None


def _set_otherwise(lines: list[bytes]) -> bool:
    """-> whether lines were cut at one width, or have empty ones between; a file with a long line was not cut, which
    most often shows soon."""
    if len(lines) > 1 and not lines[1].strip() and doubled([line.decode("latin-1") for line in lines]):
        return True
    lengths = list(map(len, lines))
    widest = max(lengths, default=0)
    if widest > 4 * WIDEST:
        return False
    exact = (widest <= WIDEST and lengths.count(widest) >= FEWEST) or not all(map(bytes.isascii, lines))
    longest = max(lines[:WIDEST], key=len, default=b"")
    broken = len(longest) <= WIDEST // 2 or b" " not in longest.strip(b"> \t")
    told = [
        line.decode("utf-8", "replace").rstrip("\r") for line in (lines if exact else lines[:WIDEST] if broken else ())
    ]
    return (exact and width(told) is not None) or (broken and filled(told) is not None)


def _as_written(content: bytes) -> Arranged:
    """-> the lines as they were before they were cut or doubled."""
    lines = [line for _, line in numbered(content)]
    numbers = list(range(1, len(lines) + 1))
    if doubled(lines[:_SAMPLE_LINES]):
        lines, numbers = single(lines)
    at = filled(lines)
    join = unfilled if at else joined
    at = at or width(lines[:_SAMPLE_LINES])
    if at:
        lines, first = join(lines, at)
        numbers = [numbers[number - 1] for number in first]
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


def _in_order(records: Iterable[tuple[int, dict[str, Any]]]) -> Arranged | None:
    """-> records as lines of JSON, the oldest first; None where there is none. Each comes with its line in the file."""
    lines, stamps, numbers = list[bytes](), list[bytes](), list[int]()
    for number, record in records:
        numbers.append(number)
        lines.append(json.dumps(record).encode())
        # A message can begin with a time of its own.
        told = {name: value for name, value in record.items() if _OF_TIME.fullmatch(name)}
        stamps.append(json.dumps(told).encode() if told else lines[-1])
    if not lines:
        return None
    order = oldest_first(lines, stamps)
    if order:
        lines, numbers = [lines[at] for at in order], [numbers[at] for at in order]
    turned = _FROM_THE_END if order else None
    return Arranged(_cut(b"\n".join(lines) + b"\n"), array("q", numbers), rewritten=True, warning=turned)


def _cut(content: bytes | bytearray) -> Iterator[bytes]:
    """Yields the content in blocks that end at line ends."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + (1 << 20)) + 1 or len(content)
        yield bytes(content[start:end])
        start = end
