"""Reads entries of a systemd journal with one field per line: `journalctl -o export` and `-o verbose`. The format is
described in systemd's Journal Export Formats."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.unwrap.decoder_interface import Decode, Decoded, Decoder, Head, untouched
from torchtriage.reading.unwrap.newest_first import from_records

_HEADER = lazy_regex(rb"[A-Z][a-z]{2} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S*) [^\n]{0,40}\[s=[^\n\]]*\]")  # of `verbose`
_JOURNAL = lazy_regex(rb"(?:__CURSOR|__REALTIME_TIMESTAMP)=|" + _HEADER.pattern + rb"\r?\n +_?[A-Z]")
_FIELD = lazy_regex(rb" *([A-Z_][A-Z\d_]*)=(.*)", re.S)
_SIZED = lazy_regex(rb"[A-Z_][A-Z\d_]*")
_SIZE = 8  # bytes of the length of the value, least significant first


def _recognise(head: Head) -> Decode | None:
    return _decode if _JOURNAL.match(head.sample) else None


def _decode(content: bytes) -> Decoded:
    return from_records(entries(content)) or untouched(content)


def entries(content: bytes) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields (line number of its message, fields) for each entry, in order."""
    entry: dict[str, str] = {}
    last, at, number, message_number = "", 0, 1, 1
    while at < len(content):
        end = content.find(b"\n", at)
        end = end if end >= 0 else len(content)
        line = content[at:end].rstrip(b"\r")
        header, field = _HEADER.match(line), _FIELD.match(line)
        if header or not line:
            if "MESSAGE" in entry:
                yield message_number, entry
            entry, last = ({"time": header[1].decode("ascii", "replace")} if header else {}), ""
        elif field:
            last = field[1].decode()
            entry[last] = field[2].decode("utf-8", "replace")
        elif _SIZED.fullmatch(line):
            # A value with line feeds, or one that is not text.
            last, start = line.decode(), end + 1 + _SIZE
            end = start + int.from_bytes(content[end + 1 : start], "little")
            entry[last] = content[start:end].decode("utf-8", "replace")
        elif last:
            entry[last] += "\n" + line.decode("utf-8", "replace").strip()
        if last == "MESSAGE" and (field or _SIZED.fullmatch(line)):
            message_number = number
        number += content.count(b"\n", at, end + 1)
        at = end + 1
    if "MESSAGE" in entry:
        yield message_number, entry


DECODER = Decoder("a journal's export", _recognise)
