"""Reverses files that begin with their newest line, as many exports do. Sorts records by their times in the same
way."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.unwrap.decoder_interface import Decode, Decoded, Decoder, Head, cut_into_blocks

_FIRST = 40  # lines that decide for most files
_HARDLY_ANY = 20  # if the newest line is first, at least this many times as many times fall as rise
_MIN_TIMES = 4  # different times that show an order
_TIME = lazy_regex(
    rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?"
    rb"|(?<=time\":)\s?\"?\d{10,19}|(?<=timestamp\":)\s?\"?\d{10,19}|(?<=ts\":)\s?\"?\d{10,19}|^\d{13,19}(?=[\t ,])"
)
# These are only at the beginning of a line: times of syslog, `ts` and consoles, and the journal's field.
_AT_BEGIN = lazy_regex(
    rb"(?:<\d{1,3}>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d\d/\d\d/\d\d(?:\d\d)? \d\d:\d\d:\d\d|\[?1\d{9}\.\d{3,9}"
    rb"|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?|\{.{0,80}\"__REALTIME_TIMESTAMP\":\s?\"\d{16}"
)
_COUNTED = (b"tep ", b"poch ", b"tep: ", b"poch: ", b"ter ", b"atch ", b"ation ")  # texts before a count
_NUMBER = lazy_regex(rb"\[?(\d{1,9})")
_SAMPLE = 8 << 10  # bytes in which the counts are searched
_DECIDING_COUNTS = 24  # counts that decide for most files
_BATCH_SIZE = 4096  # lines that are searched together
_TIME_FIELD = lazy_regex(r"(?i).*time.*|ts|tsns|date|datetime")  # names of fields
_READ_FROM_END = "the newest lines stand first: read from the end"
_TRACEBACK = b"Traceback (most recent call last)"
_FRAME = lazy_regex(rb'File \\?"[^"\\]+\\?", line \d')


def _recognise(head: Head) -> Decode | None:
    return _reversed if is_newest_first(head) else None


def is_newest_first(head: Head) -> bool:
    """Returns whether a file must be read from its end."""
    some = head.lines[:_FIRST]  # these decide for most files
    if _times_fall(some) and _times_fall(head.lines):
        return True
    if _TRACEBACK in head.sample:
        return _upside_down(head.lines)
    return _counts_down(head.sample[:_SAMPLE], _DECIDING_COUNTS) and _counts_down(head.sample)


def _reversed(content: bytes) -> Decoded:
    """Returns the lines of an export that begins with the newest, in the order of writing."""
    lines = content.removesuffix(b"\n").split(b"\n")
    order = array("q", order_written(lines))
    turned = b"\n".join([lines[at] for at in order]) + b"\n"
    return Decoded(cut_into_blocks(turned), array("q", (at + 1 for at in order)), warning=_READ_FROM_END)


def order_written(lines: Sequence[bytes]) -> list[int]:
    """Returns the indexes of the lines of a file that begins with the newest, the oldest first. Lines without a time
    stay with the one above."""
    times = [time_in(line) for line in lines]
    if not any(times) or not _times_fall(lines):
        return [*range(len(lines))][::-1]
    starts = [at for at, time in enumerate(times) if at == 0 or time]
    groups = [range(start, end) for start, end in pairwise([*starts, len(lines)])]
    if _reads_down(lines):
        groups.sort(key=lambda group: times[group.start])
    else:
        groups.reverse()
    return [at for group in groups for at in group]


def from_records(records: Iterable[tuple[int, dict[str, Any]]]) -> Decoded | None:
    """Returns records as lines of JSON, the oldest first, or None if there are none. Each comes with its line
    number."""
    lines, times, numbers = list[bytes](), list[bytes](), list[int]()
    for number, record in records:
        numbers.append(number)
        lines.append(json.dumps(record).encode())
        # a message can begin with its own time
        time_fields = {name: value for name, value in record.items() if _TIME_FIELD.fullmatch(name)}
        times.append(time_in(json.dumps(time_fields).encode() if time_fields else lines[-1]))
    if not lines:
        return None
    order = oldest_first(lines, times)
    if order:
        lines, numbers = [lines[at] for at in order], [numbers[at] for at in order]
    lines.append(b"")
    warning = _READ_FROM_END if order else None
    return Decoded(cut_into_blocks(b"\n".join(lines)), array("q", numbers), rewritten=True, warning=warning)


def oldest_first(lines: Sequence[bytes], times: Sequence[bytes]) -> list[int] | None:
    """Returns the indexes of records, the oldest first, or None if they are already in order. `times` are the records'
    own times, empty if one has none."""
    known = [time for time in times if time]
    down = _reads_down(lines)
    backwards = not down and known[:1] >= known[-1:] and (_upside_down(lines) or _counts_down(b"\n".join(lines)))
    if not backwards and not _mostly_falls(known, len(lines)):
        return None
    return sorted(range(len(lines)), key=lambda at: (times[at], at if down else -at))


def time_in(line: bytes) -> bytes:
    """Returns the time near the beginning or end of a line, or an empty value."""
    if line.count(b":", 0, 300) < 2 and not line[:1].isdigit() and line[:1] not in (b"[", b"{"):
        return b""
    found = (
        _AT_BEGIN.match(line) or _TIME.search(line[:300]) or (_TIME.search(line[-200:]) if len(line) > 300 else None)
    )
    return found[0] if found else b""


def _times_fall(lines: Sequence[bytes]) -> bool:
    """Returns whether nearly all lines have times and these fall. In most logs they rise or are missing, so a few lines
    decide."""
    times: list[bytes] = []
    missing = rises = 0
    for line in lines:
        time = time_in(line)
        missing += not time
        rises += bool(times) and times[-1] < time
        if rises * _HARDLY_ANY > len(lines) or missing * 2 > len(lines):
            return False
        if time:
            times.append(time)
    return _mostly_falls(times, len(lines))


def _mostly_falls(times: list[bytes], lines: int) -> bool:
    """Returns whether nearly all times are earlier than the one above."""
    falls = sum(above > below for above, below in pairwise(times))
    rises = sum(above < below for above, below in pairwise(times))
    return falls >= _MIN_TIMES - 1 and rises * _HARDLY_ANY <= falls and len(times) * 2 >= lines


def _counts_down(data: bytes, most: int = -1) -> bool:
    """Returns whether steps are counted from the last to the first. A run that restarted rises once. `most` is the
    number of counts that are checked."""
    word = next((word for word in _COUNTED if data.count(word) > _MIN_TIMES), None)
    if word is None:
        return False
    counts = [int(found[1]) for part in data.split(word, most)[1:] if (found := _NUMBER.match(part))]
    falls = sum(above > below for above, below in pairwise(counts))
    rises = sum(above < below for above, below in pairwise(counts))
    return falls >= _MIN_TIMES and rises * 4 <= falls


def _reads_down(lines: Sequence[bytes]) -> bool:
    """Returns whether lines with equal times are in the order of writing: heads of tracebacks are above their first
    frames."""
    above, below = _frames_beside_heads(lines)
    return below > above


def _upside_down(lines: Sequence[bytes]) -> bool:
    """Returns whether the first frames of tracebacks are above their heads, and hardly ever below."""
    above, below = _frames_beside_heads(lines)
    return above > 2 * below


def _frames_beside_heads(lines: Sequence[bytes]) -> tuple[int, int]:
    """Returns how many heads of tracebacks have a frame directly above, and how many have one below."""
    above = below = 0
    for start in range(0, len(lines), _BATCH_SIZE):
        # few lines are heads, so searching many lines at once is faster
        data = b"\n".join(lines[start : start + _BATCH_SIZE])
        line, end = start, 0
        while (at := data.find(_TRACEBACK, end)) >= 0:
            line += data.count(b"\n", end, at)
            end = at + len(_TRACEBACK)
            above += line > 0 and _FRAME.search(lines[line - 1]) is not None
            below += line + 1 < len(lines) and _FRAME.search(lines[line + 1]) is not None
    return above, below


DECODER = Decoder("newest lines first", _recognise, compares_lines=True, once=True)
