"""Lines that a terminal or a mail cut at a fixed width, and such with an empty line below each: the first lines in,
whether it is so out; all lines in, those that were written out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from torchtriage.reading.prefixes.margins import bare

_NARROWEST, WIDEST = 60, 260  # characters
FEWEST = 3  # lines of the full width
_STRANGE = 0.6  # of the lines below those begin as none of the others does
_RULES, _BORDERS = "=*_+─#. -", "|│╮╯"  # ends of lines that are as wide as they were meant
_SOME = 20  # lines of the full width by which most files are told
_KIND, _KINDS = 40, 2  # characters by which kinds of lines are told apart, and how many are cut at least
_OFTEN = 3  # lines that begin alike and go on with none: another one that does may do neither
_DIGITS = re.compile(r"\d+")
BEGINS = re.compile(
    r"\s*(?:\[(?:rank|default)\d|Traceback \(|File \"|\d{4}-\d\d-\d\d|[WEIF]\d{4} \d|[=*-]{8}|[\w.]+(?:Error|Exception)(?::|$)|srun: |slurmstepd: )"
)
LABELS = ("[rank", "[default")  # of workers
_REST = re.compile(r"[ \da-z.,)\]'/_-](?!\w*: )")  # how what was cut off begins: no program tells its name there


def width(lines: Sequence[str]) -> int | None:
    """-> the width at which the lines of a file were cut, of which these are the first; None where they were not."""
    lengths = list(map(len, lines))
    widest = max(lengths, default=0)
    if not _NARROWEST <= widest <= WIDEST or lengths.count(widest) < FEWEST:
        return None
    full = [at for at, length in enumerate(lengths[:-1]) if length == widest]
    alike = sum(start(lines[at]) == start(lines[at + 1]) for at in full[:_SOME])
    if alike * 2 > len(full[:_SOME]):
        return None  # Lines of progress are often equally wide.
    full = [at for at in full if not _ruled(lines[at])]
    # What was cut are lines of many kinds; of one kind, they are as wide as they were meant, whatever stands between.
    if len(full) < FEWEST or len({_DIGITS.sub("0", lines[at][:_KIND]) for at in full}) < _KINDS:
        return None
    told = bare(lines)
    below = {at + 1 for at in full}
    usual = {start(line) for at, line in enumerate(told) if at not in below and line.strip()}
    strange = sum(start(told[at]) not in usual for at in below if told[at].strip())
    if all(len(line) == widest for line in lines if line.strip()):
        return None  # They are the rows of a table: of what was cut, shorter ends remain.
    return widest if strange >= _STRANGE * len(full) else None


def labelled_width(lines: Sequence[str]) -> int | None:
    """-> the width at which lines that bear a worker's label were cut, the rest of each below it without one; None where
    none was. A single one will do, as no worker's line goes on without its label."""
    labelled = [line for line in lines if line.startswith(LABELS)]
    widest = max(map(len, labelled), default=0)
    if len(labelled) < FEWEST or not _NARROWEST <= widest <= WIDEST:
        return None
    full = [at for at, line in enumerate(lines[:-1]) if len(line) == widest and line.startswith(LABELS)]
    below = [lines[at + 1] for at in full if not _ruled(lines[at])]
    return widest if below and all(_REST.match(line) and len(line) <= widest for line in below) else None


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
    every = bare(lines)
    starts = Counter(start(told) for told, above in zip(every[1:], lines, strict=False) if len(above) != at)
    for number, (line, told) in enumerate(zip(lines, every, strict=True), 1):
        if goes_on and told.strip() and not BEGINS.match(told) and starts[start(told)] < _OFTEN:
            whole[-1] += told
        else:
            whole.append(line)
            numbers.append(number)
        goes_on = len(line) == at and not _ruled(line)
    return whole, numbers


def start(line: str) -> str:
    """-> the first letters of a line, by which it is told from others; all digits alike."""
    return _DIGITS.sub("0", line[:12])[:5]


def _ruled(line: str) -> bool:
    last = line[-1]
    return last in _BORDERS or (last in _RULES and line.endswith(4 * last))
