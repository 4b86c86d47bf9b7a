"""The lines of a file that is read whole: one at a time, as its content alone takes its size in memory."""

from __future__ import annotations

from collections.abc import Iterator


def numbered(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields (number from 1, line without its line end) for each line."""
    at, number = 0, 1
    while at < len(content):
        end = content.find(b"\n", at)
        end = end if end >= 0 else len(content)
        yield number, content[at:end].removesuffix(b"\r").decode("utf-8", "replace")
        at, number = end + 1, number + 1
