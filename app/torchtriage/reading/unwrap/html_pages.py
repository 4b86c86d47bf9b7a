"""Extracts logs that were saved as HTML or XML pages: returns the lines as a browser shows them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.unwrap.decoder_interface import (
    MAX_BYTES,
    Decode,
    Decoded,
    Decoder,
    Head,
    from_lines,
    numbered_lines,
)

_PAGE = lazy_regex(
    rb"\s*(?:<\?xml[^<]*)?<(?:!DOCTYPE|html|head|body|table|pre|div|p|ul|ol|span|tr|testsuites?)\b", re.I
)
_ROW_ENDS = lazy_regex(r"<br ?/?>|</(?:p|div|tr|li|h\d)>|<!\[CDATA\[|\]\]>", re.I)
_CELL_ENDS = lazy_regex(r"</t[dh]>\s*(?=<t[dh]\b)", re.I)
_TAG = lazy_regex(
    r"<(?:[A-Za-z][\w:-]*(?:\s[^<>]{0,500})?/?|/[A-Za-z][\w:-]*\s*|!--.{0,500}?--|![A-Z][^<>]{0,200}|\?xml[^<>]{0,200})>",
    re.S,
)


def _recognise(head: Head) -> Decode | None:
    sample = head.sample
    return _decode if sample[:1] in (b"<", b"\n", b" ", b"\r") and _PAGE.match(sample) else None


def _decode(content: bytes) -> Decoded:
    return from_lines(_shown_lines(content))


def _shown_lines(content: bytes) -> Iterator[tuple[int, str]]:
    for number, line in numbered_lines(content):
        rows = _ROW_ENDS.split(line)
        for row in rows if rows[-1].strip() else rows[:-1] or rows:
            yield number, html.unescape(_TAG.sub("", _CELL_ENDS.sub(" ", row))).replace("\u00a0", " ")


DECODER = Decoder("a page of HTML", _recognise, largest=MAX_BYTES, compares_lines=True)
