"""What goes on over lines: what it remembers from one line to the next, and what it finds in each."""

from __future__ import annotations

from collections.abc import Sequence

Span = tuple[int, int, str]  # the first byte of a secret, the one after it, its kind
DIGITS = bytes.maketrans(b"0123456789", b"0000000000")  # times and ranks differ from line to line


class Begun:
    """What was begun. `left`: lines after which it is over. `prefix`: what its lines begin with, its digits as zeros."""

    __slots__ = ("left", "prefix")
    left: int
    prefix: bytes

    def part(self, line: bytes, plain: bytes) -> Sequence[Span]:
        """-> what a line holds of it. `plain`: the line, its digits as zeros."""
        raise NotImplementedError
