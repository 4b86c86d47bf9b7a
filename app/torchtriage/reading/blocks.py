"""Cuts a stream of bytes into blocks that end at line ends, in UTF-8. Rejects data that is not text."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

from torchtriage.errors import UnreadableLog
from torchtriage.reading.text_encoding import utf16_or_32

MAX_LINE_LENGTH = 4 << 20  # bytes; longer lines are cut
BINARY = "binary data, not a log"
_SAMPLE = 64 << 10  # first bytes of a file that are checked for binary data
_HOLE = bytes(1 << 20)
_BINARY_SHARE = 0.05  # a sample with a larger share of control bytes is not text
_TEXT_BYTES = bytes(range(32, 256)) + b"\t\n\r\x0b\x0c\x1b\x08\x07"


class PartialBlock(bytes):
    """A block that ends inside a line. The line feed at its end is not in the file."""


def blocks(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yields blocks that end with a line feed, except perhaps the last. Lines that are too long are cut. Raises
    UnreadableLog for binary or empty input."""
    stream = iter(chunks)
    first = next(stream, b"")
    if encoded := utf16_or_32(first):
        encoding, mark = encoded
        first, stream = _to_utf8(first[mark:], stream, encoding)
    if _is_binary(first[:_SAMPLE]):
        raise UnreadableLog(f"{name}: {BINARY}")
    rest = first.removeprefix(codecs.BOM_UTF8)
    for chunk in stream:
        if chunk == _HOLE[: len(chunk)]:  # the hole of a sparse file, which can be larger than the disk
            continue
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join((rest, memoryview(chunk)[:cut]))
            rest = chunk[cut:]
        else:
            rest += chunk
            if len(rest) >= MAX_LINE_LENGTH:
                yield PartialBlock(rest + b"\n")
                rest = b""
    if rest:
        yield rest


def _to_utf8(first: bytes, stream: Iterator[bytes], encoding: str) -> tuple[bytes, Iterator[bytes]]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    return decoder.decode(first).encode(), (decoder.decode(chunk).encode() for chunk in stream)


def holds_text(first: bytes) -> bool:
    """Returns whether data that begins with these bytes is text."""
    return bool(utf16_or_32(first)) or not _is_binary(first[:_SAMPLE])


def _is_binary(sample: bytes) -> bool:
    holes = sample.replace(b"\0", b"")  # a file that was truncated while open for writing begins with NUL bytes
    text = holes if len(holes) * 2 > len(sample) or not holes.translate(None, _TEXT_BYTES) else sample
    return len(text.translate(None, _TEXT_BYTES)) > len(text) * _BINARY_SHARE
