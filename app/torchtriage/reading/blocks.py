"""Cuts a stream of bytes into blocks that end at line ends, in UTF-8; refuses what is no text."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

from torchtriage.errors import UnreadableLog
from torchtriage.reading.text_encoding import utf16_or_32

LONGEST_LINE = 4 << 20  # bytes; a longer line is cut here
BINARY = "binary data, not a log"
_SAMPLE = 64 << 10  # bytes by which text differs from binary data
_HOLE = bytes(1 << 20)
_BINARY_SHARE = 0.05  # control bytes above this share of the sample mean that it is no text
_TEXT_BYTES = bytes(range(32, 256)) + b"\t\n\r\x0b\x0c\x1b\x08\x07"


class Piece(bytes):
    """A block that ends inside a line: the line end behind it is none of the file's."""


def blocks(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yields blocks that end with a line feed (the last may not), pieces of lines too long among them. Raises UnreadableLog for binary and empty input."""
    stream = iter(chunks)
    first = next(stream, b"")
    if encoded := utf16_or_32(first):
        encoding, mark = encoded
        first, stream = _recoded(first[mark:], stream, encoding)
    if _is_binary(first[:_SAMPLE]):
        raise UnreadableLog(f"{name}: {BINARY}")
    rest = first.removeprefix(codecs.BOM_UTF8)
    for chunk in stream:
        if chunk == _HOLE[: len(chunk)]:  # of a sparse file, which can be larger than its disk
            continue
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join((rest, memoryview(chunk)[:cut]))
            rest = chunk[cut:]
        else:
            rest += chunk
            if len(rest) >= LONGEST_LINE:
                yield Piece(rest + b"\n")
                rest = b""
    if rest:
        yield rest


def _recoded(first: bytes, stream: Iterator[bytes], encoding: str) -> tuple[bytes, Iterator[bytes]]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    return decoder.decode(first).encode(), (decoder.decode(chunk).encode() for chunk in stream)


def holds_text(first: bytes) -> bool:
    """-> whether what begins with these bytes is text."""
    return bool(utf16_or_32(first)) or not _is_binary(first[:_SAMPLE])


def _is_binary(sample: bytes) -> bool:
    holes = sample.replace(b"\0", b"")  # A file that was truncated while it was open for writing starts with nul bytes.
    text = holes if len(holes) * 2 > len(sample) or not holes.translate(None, _TEXT_BYTES) else sample
    return len(text.translate(None, _TEXT_BYTES)) > len(text) * _BINARY_SHARE
