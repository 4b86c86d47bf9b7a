"""Removes secrets that are encoded in a log in a way that the engine decodes later: base64, escapes, percent signs,
HTML entities, NUL bytes between characters.

The work is limited: only text with such a form is decoded, and whole files only up to the size that the engine reads at
once.
"""

from __future__ import annotations

import base64
import gzip
import html
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from urllib.parse import unquote_to_bytes

import re2

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.redaction.known_secrets import KnownSecrets
from torchtriage.reading.redaction.redact import kept_scanner, redact, redacted
from torchtriage.reading.scan import Scanner
from torchtriage.reading.unwrap.decoder_interface import MAX_BYTES
from torchtriage.reading.unwrap.transport_encoding import decoded_text, decoded_word

_SAMPLE = 64 << 10  # bytes that show a file's form
_MARK = b"[redacted:encoded]"
# Encodings of an ASCII letter, digit or sign: \u0068 and \x68, %68, &#104; &#x68; &quot;; each may be applied twice.
_ESCAPES = (
    rb"\\(?:u00|x)[2-7][0-9a-fA-F]",
    rb"%(?:25)?[2-7][0-9a-fA-F]",
    rb"&(?:amp;)?(?:#[0-9]{2,3}|#[xX][0-9a-fA-F]{2}|quot|apos|lt|gt|amp);",
    rb"\x00",
    rb"\x08",
)
_TIMES = 2
_MAX_ERASED = 20  # characters in a row that backspaces erased
_PACKED = rb"[A-Za-z0-9+/]{64}"
_ESCAPE = re2.compile(b"|".join(_ESCAPES))
_SLASHED = re2.compile(rb"\\+(?:u00|x)([2-7][0-9a-fA-F])")
_ERASED = lazy_regex(rb"[^\x08\n]\x08")
_HEX = lazy_regex(rb"[0-9a-fA-F]+")  # digests, which fill the lines of some logs
_BASE64 = re2.compile(rb"[A-Za-z0-9+/]{64,}={0,2}")
# It ends where a string may end, because the rest of a record must remain one.
_WORD = re2.compile(rb"(?:\\+(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})|[^\s\"'<>\\])+")


def unspelled(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the same chunks. If a whole file encodes a text with secrets (in base64, also of a gzip file, for a URL or
    for a mail), yields that text instead."""
    rest = iter(chunks)
    read: list[bytes] = []
    size = 0
    while size < _SAMPLE and (chunk := next(rest, b"")):
        read.append(chunk)
        size += len(chunk)
    if decoded_text(b"".join(read)[:_SAMPLE]) is not None:
        while size <= MAX_BYTES and (chunk := next(rest, b"")):
            read.append(chunk)
            size += len(chunk)
        text = decoded_text(b"".join(read)) if size <= MAX_BYTES else None
        if text is not None and _holds_secrets(text):
            yield text
            return
    yield from chain(read, rest)


def without_spelled_secrets(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the blocks of a log without the secrets that its words encode. The plain text must already be redacted.
    Base64 of at least 64 characters is encoded again without the secrets; for other forms, the word or line with a
    secret is removed."""
    for block in blocks:
        found = _scanner().which(block)
        if len(_ESCAPES) in found:
            block = _BASE64.sub(_repacked, block)
        escaped = bool(found - {len(_ESCAPES)}) and _holds_secrets(_plain(block))
        yield b"\n".join(map(_line, block.split(b"\n"))) if escaped else block


def redact_encoded(text: str, known: KnownSecrets | None = None) -> str:
    """Returns the result of `redact`, also without the secrets that words encode."""
    data = redact(text, known).encode("utf-8", "surrogateescape")
    return b"".join(without_spelled_secrets([data])).decode("utf-8", "surrogateescape")


def _line(line: bytes) -> bytes:
    if not _ESCAPE.search(line) or not _holds_secrets(_plain(line)):
        return line
    decoded = _WORD.sub(_word, line)
    return _MARK if _holds_secrets(_plain(decoded)) else decoded


def _word(found: re2._Match) -> bytes:
    word: bytes = found.group(0)
    return _MARK if _ESCAPE.search(word) and _holds_secrets(_plain(word)) else word


def _repacked(found: re2._Match) -> bytes:
    """Returns base64 of the same text without its secrets. Returns it unchanged if it has none, or is not text."""
    spelled: bytes = found.group(0)
    if _HEX.fullmatch(spelled):
        return spelled
    text, packed = decoded_word(spelled) or (b"", False)
    clean = _redacted(text)
    if clean == text:
        return spelled
    return base64.b64encode(gzip.compress(clean, 1, mtime=0) if packed else clean)


def _holds_secrets(text: bytes) -> bool:
    return _redacted(text) != text


def _redacted(text: bytes) -> bytes:
    return b"".join(redacted([text]))


def _plain(text: bytes) -> bytes:
    """Returns a text with its encoded characters decoded, all at once, because a callback for each character takes
    long."""
    text = text.replace(b"\0", b"")
    for _ in range(_MAX_ERASED if b"\x08" in text else 0):
        text = _ERASED.sub(b"", text)
    for _ in range(_TIMES):
        if b"\\" in text:
            text = _SLASHED.sub(rb"%\1", text)
        if b"&" in text:
            text = html.unescape(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if b"%" in text:
            text = unquote_to_bytes(text)
    return text


@cache
def _scanner() -> Scanner:
    return kept_scanner([*_ESCAPES, _PACKED], once=True)
