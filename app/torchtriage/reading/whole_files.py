"""Files that must be read completely, such as dumps and stacks."""

from __future__ import annotations

from collections.abc import Iterable


class NotRead(Exception):
    """Why a file is not read as what it looks like. The text continues after the file's name."""


def whole(chunks: Iterable[bytes], most: int) -> bytes:
    """Returns all bytes. Raises NotRead if there are more than `most`; the rest is read anyway, because another file
    may follow in an archive."""
    kept: list[bytes] = []
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size <= most:
            kept.append(chunk)
        else:
            kept.clear()
    if size > most:
        raise NotRead(f"larger than {most >> 20} MB")
    return b"".join(kept)
