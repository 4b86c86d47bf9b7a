"""The result of one decoder for a whole file."""

from __future__ import annotations

from torchtriage.reading.unwrap.decoder_interface import Decoder, Head


def decoded(decoder: Decoder, content: bytes) -> list[tuple[int, str]] | None:
    """Returns (line number in the file, line) for each line, or None if the decoder does not recognize the file."""
    decode = decoder.recognise(Head(content, whole=True))
    if decode is None:
        return None
    found = decode(content)
    lines = b"".join(found.blocks).decode().removesuffix("\n").split("\n")
    return list(zip(found.numbers or range(1, len(lines) + 1), lines, strict=True))
