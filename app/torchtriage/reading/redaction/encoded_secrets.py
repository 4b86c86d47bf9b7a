"""Secrets that a log spells otherwise, which the engine would decode later on: in base64, by escapes, percent signs,
entities, with nul bytes between. Bytes of a log in, the same without those secrets out.

Bounded work: only what shows such a form is decoded, and whole files up to the size that the engine reads at once.
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
from torchtriage.reading.unwrap.decoder_interface import LARGEST
from torchtriage.reading.unwrap.transport_encoding import decoded_text, decoded_word

_SAMPLE = 64 << 10  # bytes by which a file's form is told
_MARK = b"[redacted:encoded]"
# What may spell a letter, a digit or a sign of ASCII: \u0068 and \x68, %68, &#104; &#x68; &quot;; each perhaps twice.
_ESCAPES = (
    rb"\\(?:u00|x)[2-7][0-9a-fA-F]",
    rb"%(?:25)?[2-7][0-9a-fA-F]",
    rb"&(?:amp;)?(?:#[0-9]{2,3}|#[xX][0-9a-fA-F]{2}|quot|apos|lt|gt|amp);",
    rb"\x00",
    rb"\x08",
)
_TIMES = 2
_MOST_ERASED = 20  # characters in a row that backspaces took back
_PACKED = rb"[A-Za-z0-9+/]{64}"
_ESCAPE = re2.compile(b"|".join(_ESCAPES))
_SLASHED = re2.compile(rb"\\+(?:u00|x)([2-7][0-9a-fA-F])")
_ERASED = lazy_regex(rb"[^\x08\n]\x08")
_HEX = lazy_regex(rb"[0-9a-fA-F]+")  # of digests, which fill the lines of some logs
_BASE64 = re2.compile(rb"[A-Za-z0-9+/]{64,}={0,2}")
# It ends where a string may end: what is left of a record must be one.
_WORD = re2.compile(rb"(?:\\+(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})|[^\s\"'<>\\])+")


def unspelled(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the same chunks; of a file that spells a text with secrets from its first byte to its last (in base64, also
    of a gzip file, for a URL or for a mail) that text in their place."""
    rest = iter(chunks)
    read: list[bytes] = []
    size = 0
    while size < _SAMPLE and (chunk := next(rest, b"")):
        read.append(chunk)
        size += len(chunk)
    if decoded_text(b"".join(read)[:_SAMPLE]) is not None:
        while size <= LARGEST and (chunk := next(rest, b"")):
            read.append(chunk)
            size += len(chunk)
        text = decoded_text(b"".join(read)) if size <= LARGEST else None
        if text is not None and _holds_secrets(text):
            yield text
            return
    yield from chain(read, rest)


def without_spelled_secrets(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the blocks of a log, which is redacted as it stands, without the secrets that its words spell. Base64 of at
    least 64 characters is spelled anew without them; of other forms the word that holds one is taken, or its line."""
    for block in blocks:
        found = _scanner().which(block)
        if len(_ESCAPES) in found:
            block = _BASE64.sub(_repacked, block)
        escaped = bool(found - {len(_ESCAPES)}) and _holds_secrets(_plain(block))
        yield b"\n".join(map(_line, block.split(b"\n"))) if escaped else block


def redact_encoded(text: str, known: KnownSecrets | None = None) -> str:
    """-> `text` as `redact` gives it, also without the secrets that its words spell."""
    data = redact(text, known).encode("utf-8", "surrogateescape")
    return b"".join(without_spelled_secrets([data])).decode("utf-8", "surrogateescape")


def _line(line: bytes) -> bytes:
    if not _ESCAPE.search(line) or not _holds_secrets(_plain(line)):
        return line
    told = _WORD.sub(_word, line)
    return _MARK if _holds_secrets(_plain(told)) else told


def _word(found: re2._Match) -> bytes:
    word: bytes = found.group(0)
    return _MARK if _ESCAPE.search(word) and _holds_secrets(_plain(word)) else word


def _repacked(found: re2._Match) -> bytes:
    """-> base64 of the same text without its secrets; what stands there where it holds none, or is no text."""
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
    """-> a text with what is spelled in it as it is meant, all at once, as a callback for each sign takes long."""
    text = text.replace(b"\0", b"")
    for _ in range(_MOST_ERASED if b"\x08" in text else 0):
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
