"""Lines that a mail, an editor or a page broke between words: the first lines in, at which width out; all lines in, those
that were written out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from torchtriage.reading.prefixes.margins import bare
from torchtriage.reading.unwrap.hard_wrap import BEGINS, FEWEST, start

_NARROWEST, WIDEST = 60, 110  # characters
_NEAR = 24  # characters that a line which was broken is shorter, at most, most often
_SAMPLE = 240  # lines
_STRANGE = 0.6  # of the lines below those begin as none of the others does
_EXACT = 0.8  # of these lines have the full width where they were cut at any place
_OFTEN = 4
_FRAME = re.compile(r'(?:.*\s)?File "[^"]+", line \d+(?:, in \S+)?$')
_RULES = ("====", "----", "****", "────")  # what ends a line that is drawn
_EMPTY = re.compile(r"\W*$")


def filled(lines: Sequence[str]) -> int | None:
    """-> the width at which the lines of a file were broken between words, of which these are the first; None where they
    were not."""
    lengths = [len(line) for line in lines[:_SAMPLE] if " " in line.strip("> \t")]
    widest = max(lengths, default=0)
    if not _NARROWEST <= widest <= WIDEST or sum(length > widest - _NEAR for length in lengths) < FEWEST:
        return None
    told = bare(lines[:_SAMPLE])
    at = max((len(line.rstrip()) for line in told if " " in line.strip()), default=0)
    below = [place + 1 for place in range(len(told) - 1) if _goes_on(told[place], told[place + 1], at)]
    exact = sum(len(told[place - 1]) == at for place in below)
    if len(below) < FEWEST or exact > _EXACT * len(below):
        return None
    ends = set(below)
    usual = {start(line.lstrip()) for place, line in enumerate(told) if place not in ends}
    strange = sum(start(told[place].lstrip()) not in usual for place in below)
    return at if strange >= _STRANGE * len(below) else None


def unfilled(lines: Sequence[str], at: int) -> tuple[list[str], list[int]]:
    """-> the lines as they were before they were broken at this width, and the number from 1 of each one's first piece."""
    whole: list[str] = []
    numbers: list[int] = []
    above = ""
    every = bare(lines)
    # What often begins a line where the one above had place for it begins one here, too.
    often = Counter(start(told) for above, told in pairwise(every) if not _goes_on(above, told, at))
    for number, (line, told) in enumerate(zip(lines, every, strict=True), 1):
        if whole and _goes_on(above, told, at) and often[start(told)] < _OFTEN:
            whole[-1] = whole[-1].rstrip() + (told.strip() if _in_a_word(above, told, at) else f" {told.strip()}")
        else:
            whole.append(line)
            numbers.append(number)
        above = told
    return whole, numbers


def _in_a_word(line: str, below: str, at: int) -> bool:
    """-> whether a word was cut that is too long for a line: a path, most often."""
    return len(line) == at and len(line.rpartition(" ")[2]) + len(below.strip().partition(" ")[0]) > at // 2


def _goes_on(line: str, below: str, at: int) -> bool:
    """-> whether the line below one goes on with it: its first word had no place there."""
    word, _, _ = below.lstrip().partition(" ")
    if not word or len(line.rstrip()) + 1 + len(word) <= at or len(line.strip()) < 8:
        return False
    if BEGINS.match(below) or line.endswith(_RULES) or below.endswith(_RULES):
        return False
    return not (_EMPTY.match(line) or _EMPTY.match(below) or ('File "' in line and _FRAME.match(line.rstrip())))
