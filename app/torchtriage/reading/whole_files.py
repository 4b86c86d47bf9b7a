"""Files that must be read whole, such as dumps and stacks: pieces in, all bytes out, or why they are not read."""

from __future__ import annotations

from collections.abc import Iterable


class NotRead(Exception):
    """Why a file is not read as what it looks like, in words that go on after its name."""


def whole(chunks: Iterable[bytes], most: int) -> bytes:
    """-> all bytes. Of too many the rest is read, too: in an archive another file can follow. Raises NotRead where there
    are more than `most`."""
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
