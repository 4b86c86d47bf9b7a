"""The base class for secrets that continue over several lines."""

from __future__ import annotations

from collections.abc import Sequence

Span = tuple[int, int, str]  # start, end and kind of a secret
DIGITS = bytes.maketrans(b"0123456789", b"0000000000")  # times and ranks differ between lines


class Begun:
    """Something that began on an earlier line. `left` is the number of lines after which it is over. `prefix` is the
    beginning of its lines, with digits replaced by zeros."""

    __slots__ = ("left", "prefix")
    left: int
    prefix: bytes

    def part(self, line: bytes, plain: bytes) -> Sequence[Span]:
        """Returns the secrets in a line that belong to it. `plain` is the line with digits replaced by zeros."""
        raise NotImplementedError
