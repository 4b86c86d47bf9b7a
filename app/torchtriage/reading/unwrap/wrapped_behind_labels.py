"""Restores lines that were wrapped or printed in columns before a collector put each behind a label or into a record.

Returns the original lines with their labels.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.log_records import record_of
from torchtriage.reading.prefixes.custom_labels import CLOCK
from torchtriage.reading.prefixes.known import is_own, prefix_of
from torchtriage.reading.prefixes.learned import FORMS, learned_label
from torchtriage.reading.unwrap.decoder_interface import Decode, Decoder, Head, Rejoin, from_layout
from torchtriage.reading.unwrap.line_wrapping import find_cuts
from torchtriage.reading.unwrap.rich_columns import find_columns
from torchtriage.reading.unwrap.tmux_panes import find_panes

_FIRST = 12  # lines that decide for most files
_FEW, _SAMPLE = 40, 200  # lines
_NEARLY_ALL = 0.95  # share of the lines with the label
_FAR = 120  # characters of a label before a record
_MAX_COUNT = 4  # nested labels
_NUMBERS = lazy_regex(r"\d{6,}")  # sequence numbers of records
_OF_COLLECTORS = frozenset({"clock", "table", "epoch", "elapsed", "compose", "kubetail", "stern", "host", "stream"})
_LAYOUTS = (find_panes, find_columns, find_cuts)  # in the order of the decoders
Labelled = tuple[str, str]  # the label or record that a collector put around a line, and the line
Split = Callable[[str], Labelled]


def _recognise(head: Head) -> Decode | None:
    return from_layout(find_rejoin(head.lines))


def find_rejoin(lines: Sequence[bytes]) -> Rejoin | None:
    """Returns a function that restores the lines of a file by one writer, which begins with `lines`. None if they were
    not changed."""
    first = [line for line in lines[:_FIRST] if line]
    if not first or len({line[:1].isdigit() or line[:1] for line in first}) > 1:
        return None
    sample = [line.decode("utf-8", "replace") for line in lines[:_SAMPLE] if line.strip()]
    split = _split_for(sample)
    if split is None:
        return None
    inner = Head("\n".join(split(line)[1] for line in sample).encode(), whole=True)
    rejoin = next(filter(None, (find(inner) for find in _LAYOUTS)), None)
    return partial(_rejoin_labelled, split=split, rejoin=rejoin) if rejoin else None


def _split_for(lines: Sequence[str]) -> Split | None:
    """Returns a function that removes the labels from lines of one writer, or None if they have none."""
    first = lines[:_FIRST]
    if len(first) < _FIRST:
        return None
    if first[0][-1:] == "}":
        splits: tuple[Split, ...] = _split_record, _split_labelled_record
        return next((split for split in splits if all(split(line)[0] for line in first)), None)
    if (own := prefix_of(first[0])) is not None and own.end() and is_own(own):
        return None  # the worker's output has no label
    form = FORMS[name] if (name := learned_label(lines[:_FEW])) in _OF_COLLECTORS and name is not None else None
    split = partial(_split_label, form=form)
    labels = Counter(_NUMBERS.sub("", CLOCK.sub("", split(line)[0])).rstrip() for line in first)
    often = labels.most_common(1)[0][1]
    return split if often >= _NEARLY_ALL * _FIRST and any(split(line)[0] for line in first) else None


def _split_label(line: str, form: re.Pattern[str] | None) -> Labelled:
    at = 0
    for _ in range(_MAX_COUNT):
        rest = line[at:]
        found = prefix_of(rest)
        if found is None or not found.end() or is_own(found):
            found = form.match(rest) if form else None
            form = None
        if found is None or not found.end():
            break
        at += found.end()
    return line[:at], line[at:]


def _split_record(line: str) -> Labelled:
    record = record_of(line)
    if record is None or len(record.lines) != 1:
        return "", line
    fields = {"time": record.time, "host": record.host, "pod": record.pod, "stream": record.writer or None,
              "rank": record.rank, "local_rank": record.local_rank}  # fmt: skip
    known = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(known | {"log": ""}), record.lines[0]


def _split_labelled_record(line: str) -> Labelled:
    return _split_record(line[line.find("{") :]) if "{" in line[:_FAR] else ("", line)


def _rejoin_labelled(lines: Sequence[str], split: Split, rejoin: Rejoin) -> tuple[list[str], list[int]]:
    labels, texts = zip(*map(split, lines), strict=True)
    whole, numbers = rejoin(texts)
    return [_labelled(labels[number - 1], text) for text, number in zip(whole, numbers, strict=True)], numbers


def _labelled(label: str, text: str) -> str:
    """Returns a text with its label, or in the record that contained it."""
    return f"{label[:-3]}{json.dumps(text)}}}" if label[:1] == "{" else label + text


DECODER = Decoder("lines wrapped behind labels", _recognise, compares_lines=True)
