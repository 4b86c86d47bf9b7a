"""Reads whole JSON documents: records wrapped in lists and objects, or multi-line texts if there are no records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, tee
from typing import Any

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.log_records import WHOLE_LOG, record_in, records_in
from torchtriage.reading.unwrap.decoder_interface import (
    MAX_BYTES,
    Decode,
    Decoded,
    Decoder,
    Head,
    from_lines,
    untouched,
)
from torchtriage.reading.unwrap.newest_first import from_records
from torchtriage.reading.unwrap.quoted_strings import lines_in_strings, may_be_encoded

_SAMPLE = 64 << 10  # characters
# messages whose spelling in the file is neither of the two known ones; searching for each takes long
_MAX_MISSED = 1000
_MIN_COUNT = 4  # lines of a single record that is a log
_BEGINS = lazy_regex(
    rb"\s*(?:\[\s*[\[{]|\{\s*\r?\n|\{\s*\"(?:events|hits|status|data|results|entries|items)\":\s*[\[{\"])"
)
_NOT_BLANK = lazy_regex(r"\S")
_OVER_LINES = lazy_regex(r"\{\s*\n")


def _recognise(head: Head) -> Decode | None:
    sample = head.sample
    single = sample[:1] == b"{" and b"\n" not in sample.rstrip()
    if (single or _BEGINS.match(sample)) and _is_json_so_far(sample.decode("utf-8", "replace"), head.whole):
        return _decode
    return None


def _is_json_so_far(text: str, whole: bool) -> bool:
    """Returns whether a text is one or more JSON documents as far as it goes. A log can also begin with settings in
    JSON."""
    try:
        for _ in documents(text):
            pass
    except json.JSONDecodeError as error:
        return not whole and (error.msg.startswith("Unterminated string") or error.pos >= len(error.doc) - 16)
    except RecursionError:
        return False
    return True


def _decode(content: bytes) -> Decoded:
    text = content.decode("utf-8", "replace")
    del content
    found, lines = in_document(text)
    first = next(lines, None)
    if decoded := from_records(_consumed(found)):
        return decoded
    return from_lines(chain([first], lines)) if first else untouched(text.encode())


def _consumed(records: list[Any]) -> Iterator[Any]:
    """Yields the items of a list and removes them, because memory has no room for the records and their results."""
    records.reverse()
    while records:
        yield records.pop()


def in_document(text: str) -> tuple[list[tuple[int, dict[str, Any]]], Iterator[tuple[int, str]]]:
    """Returns (line number, record) for each record of JSON documents, in order, and (line number, line) for each line
    of their texts if they have no records. The latter are yielded one at a time, because there can be many. Both are
    empty if the text is not JSON."""
    try:
        every = [*documents(text)]
    except (ValueError, RecursionError):
        return [], iter(())
    # only these parts of each record are kept, because there can be very many
    found, messages = list[dict[str, Any]](), list[str]()
    for data in every:
        for one, record in records_in(data):
            found.append(one)
            messages.append(record.message if record else "")
    fewest = WHOLE_LOG if len(found) > 1 else _MIN_COUNT
    if not all(each.count("\n") >= fewest or may_be_encoded(each) for each in messages):
        spellings = ((json.dumps(each, ensure_ascii=False), json.dumps(each)) for each in messages)
        return [*zip(_numbers(text, spellings), found, strict=True)], iter(())
    # The fields of a record about a whole log do not apply to its single lines.
    of_records = [line for one in found if (record := record_in(one)) for line in record.lines]
    lines, again = tee(of_records or (line for data in every for line in lines_in_strings(data)))
    # A part of a longer text has no quotes around it, and the line end after it may belong to the text.
    spellings = ((json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1]) for line in again)
    return [], zip(_numbers(text, spellings), lines, strict=True)


def _numbers(text: str, every: Iterable[tuple[str, str]]) -> Iterator[int]:
    """Yields the line number of each message, or of the one before it if it is not found. A message can be spelled in
    two ways."""
    start, number, missed = 0, 1, 0
    for spellings in every:
        ends = ((spelled, start + len(spelled) + _SAMPLE) for spelled in (spellings if missed < _MAX_MISSED else ()))
        at = next((at for spelled, end in ends if (at := text.find(spelled, start, end)) >= 0), -1)
        missed += at < 0
        if at >= 0:
            number += text.count("\n", start, at)
            start = at
        yield number


def documents(text: str) -> Iterator[Any]:
    """Yields the values of consecutive JSON documents: one document, or objects over several lines each. Raises
    ValueError if there is anything else, and RecursionError."""
    # A line end can be inside a string if a line was too long and was cut.
    decoder, begins = json.JSONDecoder(strict=False), _NOT_BLANK.search(text)
    several = begins is not None and _OVER_LINES.match(text, begins.start()) is not None
    while begins is not None:
        data, end = decoder.raw_decode(text, begins.start())
        yield data
        begins = _NOT_BLANK.search(text, end)
        if begins is not None and not (several and _OVER_LINES.match(text, begins.start())):
            raise json.JSONDecodeError("Extra data", text, end)


DECODER = Decoder("a JSON document", _recognise, largest=MAX_BYTES)
