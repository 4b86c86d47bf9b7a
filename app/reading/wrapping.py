"""Lines that a terminal or a mail cut at a fixed width, and such with an empty line below each: the first lines in,
whether it is so out; all lines in, those that were written out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from app.reading.margins import margins

_NARROWEST, WIDEST = 60, 260  # characters
FEWEST = 3  # lines of the full width
_STRANGE = 0.6  # of the lines below those begin as none of the others does
_RULES, _BORDERS = "=*_+─#. -", "|│╮╯"  # ends of lines that are as wide as they were meant
_SOME = 20  # lines of the full width by which most files are told
_OFTEN = 3  # lines that begin alike and go on with none: another one that does may do neither
_DIGITS = re.compile(r"\d+")
_BEGINS = re.compile(
    r"\s*(?:\[(?:rank|default)\d|Traceback \(|File \"|\d{4}-\d\d-\d\d|[WEIF]\d{4} \d|[=*-]{8}|[\w.]+(?:Error|Exception)(?::|$))"
)


def width(lines: Sequence[str]) -> int | None:
    """-> the width at which the lines of a file were cut, of which these are the first; None where they were not."""
    widest = max(map(len, lines), default=0)
    if not _NARROWEST <= widest <= WIDEST or sum(len(line) == widest for line in lines) < FEWEST:
        return None
    full = [at for at, line in enumerate(lines[:-1]) if len(line) == widest]
    alike = sum(_start(lines[at]) == _start(lines[at + 1]) for at in full[:_SOME])
    if alike * 2 > len(full[:_SOME]):
        return None  # Lines of progress are often equally wide.
    full = [at for at in full if not _ruled(lines[at])]
    if len(full) < FEWEST:
        return None
    bare = _bare(lines)
    below = {at + 1 for at in full}
    usual = {_start(line) for at, line in enumerate(bare) if at not in below and line.strip()}
    strange = sum(_start(bare[at]) not in usual for at in below if bare[at].strip())
    if all(len(line) == widest for line in lines if line.strip()):
        return None  # They are the rows of a table: of what was cut, shorter ends remain.
    return widest if strange >= _STRANGE * len(full) else None


def doubled(lines: Sequence[str]) -> bool:
    """-> whether an empty line stands below each line of a file, of which these are the first."""
    return len(lines) >= 2 * FEWEST and not any(map(str.strip, lines[1::2])) and any(map(str.strip, lines[::2]))


def single(lines: Sequence[str]) -> tuple[list[str], list[int]]:
    """-> the lines without the empty ones between, and the number from 1 of each."""
    kept = [(line, number) for number, line in enumerate(lines, 1) if number % 2 or line.strip()]
    return [line for line, _ in kept], [number for _, number in kept]


def joined(lines: Sequence[str], at: int) -> tuple[list[str], list[int]]:
    """-> the lines as they were before they were cut `at` this width, and the number from 1 of each one's first piece."""
    whole: list[str] = []
    numbers: list[int] = []
    goes_on = False
    bares = _bare(lines)
    starts = Counter(_start(bare) for bare, above in zip(bares[1:], lines, strict=False) if len(above) != at)
    for number, (line, bare) in enumerate(zip(lines, bares, strict=True), 1):
        if goes_on and bare.strip() and not _BEGINS.match(bare) and starts[_start(bare)] < _OFTEN:
            whole[-1] += bare
        else:
            whole.append(line)
            numbers.append(number)
        goes_on = len(line) == at and not _ruled(line)
    return whole, numbers


def _bare(lines: Sequence[str]) -> list[str]:
    """-> the lines without the marks of a quotation, which stand before each piece of a line that was cut."""
    for margin in margins(lines[:200]):
        lines = [margin.sub("", line, count=1) for line in lines]
    return list(lines)


def _start(line: str) -> str:
    return _DIGITS.sub("0", line[:12])[:5]


def _ruled(line: str) -> bool:
    last = line[-1]
    return last in _BORDERS or (last in _RULES and line.endswith(4 * last))
