"""Lines that were set otherwise as a whole, of which a collector then put each behind a label or into a record of its own.

The first lines of a file in, what undoes it out; then all lines in, those that were written out, labels and all.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from torchtriage.reading.prefixes.file_labels import FORMS, learned
from torchtriage.reading.prefixes.known import LOCALS, RANKS, prefix_of
from torchtriage.reading.prefixes.learned_shapes import CLOCK
from torchtriage.reading.unwrap.json_records import record_of
from torchtriage.reading.unwrap.layout import Undo, setting

_SOME = 12  # lines by which most files are told
_FEW, _SAMPLE = 40, 200  # lines
_NEARLY_ALL = 0.95  # of the lines have the label
_FAR = 120  # characters of a label before a record
_MOST = 4  # labels in one another
_NUMBERS = re.compile(r"\d{6,}")  # of sequences, in which records count
_OWN = RANKS | LOCALS | {"rank", "keys"}  # what a worker puts there itself
_OF_COLLECTORS = frozenset({"clock", "table", "epoch", "elapsed", "compose", "kubetail", "stern", "host", "stream"})
Opened = tuple[str, str]  # what stands around a line, and the line
Open = Callable[[str], Opened]


def inside(lines: Sequence[bytes]) -> Undo | None:
    """-> what gives back the lines of a file that begins with `lines`, of one writer; None where they are as they were."""
    few = [line for line in lines[:_SOME] if line]
    if not few or len({line[:1].isdigit() or line[:1] for line in few}) > 1:
        return None
    some = [line.decode("utf-8", "replace") for line in lines[:_SAMPLE] if line.strip()]
    way = _way(some)
    if way is None:
        return None
    undo = setting([way(line)[1].encode() for line in some], words=False)
    return partial(_given_back, way=way, undo=undo) if undo else None


def _way(lines: Sequence[str]) -> Open | None:
    """-> what opens the envelopes of lines that one writer wrote; None where they have none."""
    few = lines[:_SOME]
    if len(few) < _SOME:
        return None
    if few[0][-1:] == "}":
        ways: tuple[Open, ...] = _of_record, _of_labelled_record
        return next((way for way in ways if all(way(line)[0] for line in few)), None)
    if (own := prefix_of(few[0])) is not None and own.end() and own.lastgroup in _OWN:
        return None  # Nothing was put before what the worker printed.
    form = FORMS[name] if (name := learned(lines[:_FEW])) in _OF_COLLECTORS and name is not None else None
    way = partial(_of_label, form=form)
    heads = Counter(_NUMBERS.sub("", CLOCK.sub("", way(line)[0])).rstrip() for line in few)
    often = heads.most_common(1)[0][1]
    return way if often >= _NEARLY_ALL * _SOME and any(way(line)[0] for line in few) else None


def _of_label(line: str, form: re.Pattern[str] | None) -> Opened:
    at = 0
    for _ in range(_MOST):
        rest = line[at:]
        found = prefix_of(rest)
        if found is None or not found.end() or found.lastgroup in _OWN:
            found = form.match(rest) if form else None
            form = None
        if found is None or not found.end():
            break
        at += found.end()
    return line[:at], line[at:]


def _of_record(line: str) -> Opened:
    record = record_of(line)
    if record is None or len(record.lines) != 1:
        return "", line
    told = {"time": record.time, "host": record.host, "pod": record.pod, "stream": record.writer or None,
            "rank": record.rank, "local_rank": record.local_rank}  # fmt: skip
    return json.dumps({name: value for name, value in told.items() if value is not None} | {"log": ""}), record.lines[0]


def _of_labelled_record(line: str) -> Opened:
    return _of_record(line[line.find("{") :]) if "{" in line[:_FAR] else ("", line)


def _given_back(lines: Sequence[str], way: Open, undo: Undo) -> tuple[list[str], list[int]]:
    heads, said = zip(*map(way, lines), strict=True)
    texts, numbers = undo(said)
    return [_closed(heads[number - 1], text) for text, number in zip(texts, numbers, strict=True)], numbers


def _closed(head: str, text: str) -> str:
    return f"{head[:-3]}{json.dumps(text)}}}" if head[:1] == "{" else head + text
