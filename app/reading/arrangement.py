"""Puts a file's lines in the order in which they were written: whole JSON documents, tables, exports newest first.

Blocks in, blocks out. Only these few forms are read whole, and only up to a size; everything else goes by untouched.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from app.reading.documents import LARGEST, documents, in_document, in_table, is_table
from app.reading.journal import in_journal, is_journal
from app.reading.wrapping import FEWEST, WIDEST, doubled, joined, single, width

_SAMPLE = 64 << 10  # bytes
_SAMPLE_LINES = 2000  # of a file that was set otherwise
_JSON, _TABLE, _JOURNAL, _NEWEST_FIRST = "a JSON document", "a table", "a journal's export", "newest lines first"
_SET_OTHERWISE = "lines cut at one width, or doubled"
_FROM_THE_END = "the newest lines stand first: read from the end"
_FEWEST_TIMES = 4  # different times that show an order
_TIME = re.compile(
    rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?"
    rb"|(?<=time\":)\s?\"?\d{10,19}|(?<=timestamp\":)\s?\"?\d{10,19}|(?<=ts\":)\s?\"?\d{10,19}|^\d{13,19}(?=[\t ,])"
)
# Others stand at the beginning only: of syslog, of `ts`, of consoles, the journal's field.
_AT_BEGIN = re.compile(
    rb"(?:<\d{1,3}>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d\d/\d\d/\d\d(?:\d\d)? \d\d:\d\d:\d\d|\[?1\d{9}\.\d{3,9}"
    rb"|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?|\{.{0,80}\"__REALTIME_TIMESTAMP\":\s?\"\d{16}"
)
_HEAD = b"Traceback (most recent call last)"
_READS_DOWN = re.compile(rb'Traceback \(most recent call last\):[^\n]{0,9}\n[^\n]{0,200}File \\?"')
_FRAME = re.compile(rb'File \\?"[^"\\]+\\?", line \d')
_DOCUMENT = re.compile(
    rb"\s*(?:\[\s*[\[{]|\{\s*\r?\n|\{\s*\"(?:events|hits|status|data|results|entries|items)\":\s*[\[{\"])"
)


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
    form = _form((read[0] if len(read) == 1 else b"".join(read))[:_SAMPLE], whole=size < _SAMPLE)
    if form is None:
        return Arranged(chain(read, rest))
    for block in rest:
        read.append(block)
        size += len(block)
        if size > LARGEST:
            return Arranged(chain(read, rest), warning=f"{form}: more than {LARGEST >> 20} MB, so read as it stands")
    content = b"".join(read)
    del read
    if form == _NEWEST_FIRST:
        return _turned(content)
    if form == _SET_OTHERWISE:
        return _as_written(content)
    records = list(_records(form, content))
    if not records:
        return Arranged(_cut(content))
    return _in_order(records)


def _records(form: str, content: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """-> the records of a file of this form, each with its line in the file."""
    if form == _JSON:
        return in_document(content.decode("utf-8", "replace"))
    return in_table(content) if form == _TABLE else in_journal(content)


def _form(sample: bytes, whole: bool) -> str | None:
    head = sample[: sample.find(b"\n")] if b"\n" in sample else sample
    single = sample[:1] == b"{" and b"\n" not in sample.rstrip()
    if (single or _DOCUMENT.match(sample)) and _goes_on(sample.decode("utf-8", "replace"), whole):
        return _JSON
    if is_journal(sample):
        return _JOURNAL
    if is_table(head[:2000].decode("utf-8", "replace")):
        return _TABLE
    lines = sample.split(b"\n")[: None if whole else -1]
    # Most logs are told by a few lines.
    newest = all(_falls([time for line in part if (time := _time_in(line))], len(part)) for part in (lines[:40], lines))
    if newest or (_HEAD in sample and not _READS_DOWN.search(sample) and _upside_down(lines)):
        return _NEWEST_FIRST
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
    if (widest > WIDEST or lengths.count(widest) < FEWEST) and all(map(bytes.isascii, lines)):
        return False
    return width([line.decode("utf-8", "replace").rstrip("\r") for line in lines]) is not None


def _as_written(content: bytes) -> Arranged:
    """-> the lines as they were before they were cut or doubled."""
    lines = [line.rstrip("\r") for line in content.decode("utf-8", "replace").removesuffix("\n").split("\n")]
    numbers = list(range(1, len(lines) + 1))
    if doubled(lines[:_SAMPLE_LINES]):
        lines, numbers = single(lines)
    if at := width(lines[:_SAMPLE_LINES]):
        lines, first = joined(lines, at)
        numbers = [numbers[number - 1] for number in first]
    return Arranged(_cut("\n".join(lines).encode() + b"\n"), array("q", numbers))


def _time_in(line: bytes) -> bytes:
    """-> the time that stands near either end of a line, or nothing."""
    found = (
        _AT_BEGIN.match(line) or _TIME.search(line[:300]) or (_TIME.search(line[-200:]) if len(line) > 300 else None)
    )
    return found[0] if found else b""


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


def _falls(times: list[bytes], lines: int) -> bool:
    """-> whether nearly all times are earlier than the one above."""
    falls = sum(above > below for above, below in pairwise(times))
    rises = sum(above < below for above, below in pairwise(times))
    return falls >= _FEWEST_TIMES - 1 and rises * 20 <= falls and len(times) * 2 >= lines


def _turned(content: bytes) -> Arranged:
    """-> the lines of an export that begins with the newest, from the oldest on; lines without a time stay together."""
    lines = content.removesuffix(b"\n").split(b"\n")
    times = [_time_in(line) for line in lines]
    if _upside_down(lines) and not any(times):
        times = [b"-"] * len(lines)
    starts = [at for at, time in enumerate(times) if at == 0 or time]
    groups = [range(start, end) for start, end in pairwise([*starts, len(lines)])]
    if _reads_down(lines):
        groups.sort(key=lambda group: times[group.start])
    else:
        groups.reverse()
    places = array("q", (at for group in groups for at in group))
    turned = b"\n".join([lines[at] for at in places]) + b"\n"
    return Arranged(_cut(turned), array("q", (at + 1 for at in places)), warning=_FROM_THE_END)


def _reads_down(lines: Sequence[bytes]) -> bool:
    """-> whether lines of one instant stand in the order of writing: a traceback's head above its first frame."""
    heads = [at for at, line in enumerate(lines) if b"Traceback (most recent call last)" in line]
    return any(at + 1 < len(lines) and b'File "' in lines[at + 1].replace(b"\\", b"") for at in heads)


def _upside_down(lines: Sequence[bytes]) -> bool:
    """-> whether the last frame of a traceback stands above its head, and nowhere one below."""
    heads = [at for at, line in enumerate(lines) if _HEAD in line]
    above = any(at and _FRAME.search(lines[at - 1]) for at in heads)
    return above and not any(at + 1 < len(lines) and _FRAME.search(lines[at + 1]) for at in heads)


def _in_order(records: list[tuple[int, dict[str, Any]]]) -> Arranged:
    """-> records as lines of JSON, the oldest first. Each comes with its line in the file."""
    lines = [json.dumps(record).encode() for _, record in records]
    numbers = [number for number, _ in records]
    turned = None
    times = [_time_in(line) for line in lines]
    if _falls([time for time in times if time], len(lines)):
        down = _reads_down(lines)
        order = sorted(range(len(lines)), key=lambda at: (times[at], at if down else -at))
        lines, numbers = [lines[at] for at in order], [numbers[at] for at in order]
        turned = _FROM_THE_END
    return Arranged(_cut(b"\n".join(lines) + b"\n"), array("q", numbers), rewritten=True, warning=turned)


def _cut(content: bytes) -> Iterator[bytes]:
    """Yields the content in blocks that end at line ends."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + (1 << 20)) + 1 or len(content)
        yield content[start:end]
        start = end
