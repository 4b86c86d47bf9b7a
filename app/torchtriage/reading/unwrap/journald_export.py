"""Entries of a journal, a field a line: `journalctl -o export` and `-o verbose`. See systemd's Journal Export Formats."""

from __future__ import annotations

import re
from collections.abc import Iterator

_HEADER = re.compile(rb"[A-Z][a-z]{2} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S*) [^\n]{0,40}\[s=[^\n\]]*\]")  # of `verbose`
_JOURNAL = re.compile(rb"(?:__CURSOR|__REALTIME_TIMESTAMP)=|" + _HEADER.pattern + rb"\r?\n +_?[A-Z]")
_FIELD = re.compile(rb" *([A-Z_][A-Z\d_]*)=(.*)", re.S)
_SIZED = re.compile(rb"[A-Z_][A-Z\d_]*")
_SIZE = 8  # bytes, which tell how many follow, the lowest first


def is_journal(sample: bytes) -> bool:
    """-> whether a file that begins with `sample` holds such entries."""
    return bool(_JOURNAL.match(sample))


def in_journal(content: bytes) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields (line number of its message, fields) for each entry, in its order."""
    entry: dict[str, str] = {}
    last, at, number, said = "", 0, 1, 1
    while at < len(content):
        end = content.find(b"\n", at)
        end = end if end >= 0 else len(content)
        line = content[at:end].rstrip(b"\r")
        header, field = _HEADER.match(line), _FIELD.match(line)
        if header or not line:
            if "MESSAGE" in entry:
                yield said, entry
            entry, last = ({"time": header[1].decode("ascii", "replace")} if header else {}), ""
        elif field:
            last = field[1].decode()
            entry[last] = field[2].decode("utf-8", "replace")
        elif _SIZED.fullmatch(line):
            # A value with line feeds, or one that is no text.
            last, start = line.decode(), end + 1 + _SIZE
            end = start + int.from_bytes(content[end + 1 : start], "little")
            entry[last] = content[start:end].decode("utf-8", "replace")
        elif last:
            entry[last] += "\n" + line.decode("utf-8", "replace").strip()
        said = number if last == "MESSAGE" and (field or _SIZED.fullmatch(line)) else said
        number += content.count(b"\n", at, end + 1)
        at = end + 1
    if "MESSAGE" in entry:
        yield said, entry
