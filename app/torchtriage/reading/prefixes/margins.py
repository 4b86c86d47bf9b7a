"""What stands at the edge of every line, whoever wrote it: quotation marks, bullets, an indent, the lines' numbers.

In: the first lines of a file; out: regexes for what is put off before anything else is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import itemgetter

_FEWEST = 4  # lines
_MOST_MARGINS = 3  # in one another
_NEARLY_ALL = 0.95  # of the lines have a mark
_NUMBERED = 0.8  # of the lines have a number; between passages that were found stand rules
_IN_A_ROW = 0.6  # of the numbers are followed by the next one
_KINDS = 3  # different lines at least; of many ranks each can say the same once, in their order
_SOME = 10  # lines by which most files are told
_DIGITS = re.compile(r"\d+")
_MARKS = re.compile(r"(?:[ \t]|[>+*`:\u2022\u00b7\u200b-]|#(?!\d))+(?=\S)")
_NUMBER = re.compile(r"\s*[L#]?(\d{1,9})([:.)|│>\s-]*)")
_MOSTLY = 0.7  # of the lines stand in such a document's block
_HEADINGS = 3  # lines above a diff that have no mark of it
_AT_EDGE = re.compile(
    r"(\s*)(?:Traceback \(most recent|\[(?:rank|default)\d{1,6}\]:|[WEIF]\d{4} \d\d:\d\d:\d\d\.\d|\d{4}-\d\d-\d\d[T ]\d\d:)"
)
_SHORTEST, _LONGEST = 8, 200  # characters of what was put behind every line
_OWN_FIELDS = re.compile(r"(?:[:|,]? ?\b[\w.]{1,40}=\"[^\"]{0,80}\")+$")
_TAILS = ("`", "|", "│", "\\", "^[[0m", "[0m")


def margins(lines: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """-> regexes for the margins of a file whose first lines are these, the outer ones first."""
    found: list[re.Pattern[str]] = []
    while len(found) < _MOST_MARGINS:
        told = [line for line in lines if line.strip()]
        margin = (_count(told) or _mark(told)) if len(told) >= _FEWEST else None
        if margin is None:
            break
        found.append(margin)
        lines = [margin.sub("", line, count=1) for line in lines]
    return tuple(found)


def without_margins(lines: Sequence[str]) -> list[str]:
    """-> the lines without the marks of a quotation, which stand before each piece of a line that was cut."""
    for margin in margins(lines[:200]):
        lines = [margin.sub("", line, count=1) for line in lines]
    return list(lines)


def tails(lines: Sequence[str]) -> tuple[str, ...]:
    """-> the marks at the end of nearly every line, as of a table or of a terminal's pane, the last ones first."""
    if fields := _ending(lines):
        return (fields,)
    some = [line for line in lines[:_SOME] if line.rstrip().endswith(_TAILS)]
    told = [line.rstrip() for line in lines if line.strip()] if len(some) * 2 >= min(len(lines), _SOME) else []
    found: list[str] = []
    while len(told) >= _FEWEST and len(found) < _MOST_MARGINS:
        mark = next((each for each in _TAILS if sum(map(_ends(each), told)) >= _NEARLY_ALL * len(told)), None)
        if mark is None:
            break
        found.append(mark)
        told = [line.removesuffix(mark).rstrip() for line in told]
    return tuple(found)


def _ending(lines: Sequence[str]) -> str:
    """-> what a collector put behind nearly every line, as fields of its own; nothing most often."""
    some = [line.rstrip() for line in lines[:_SOME]]
    if len(some) < _SOME or len({line[-_SHORTEST:] for line in some}) > 1:
        return ""
    common = beginning([line[: -_LONGEST - 1 : -1] for line in some])[::-1]
    found = _OWN_FIELDS.search(common)
    told = [line.rstrip() for line in lines if line.strip()]
    if found is None or len(set(told)) < _KINDS or sum(map(_ends(found[0]), told)) < _NEARLY_ALL * len(told):
        return ""
    return found[0]


def beginning(texts: Sequence[str]) -> str:
    """-> what all of the texts begin with."""
    low, high = min(texts, default=""), max(texts, default="")
    return next((low[:at] for at, char in enumerate(low) if high[at] != char), low)


def _ends(mark: str) -> Callable[[str], bool]:
    return lambda line: line.endswith(mark)


def _count(lines: list[str]) -> re.Pattern[str] | None:
    """-> a regex for the numbers that count the lines, as of `cat -n`, `grep -n` and editors."""
    if sum(map(bool, map(_NUMBER.match, lines[:_SOME]))) * 2 < min(len(lines), _SOME):
        return None  # as of most files
    hits = [hit for line in lines if (hit := _NUMBER.match(line))]
    if len(hits) < max(_FEWEST, _NUMBERED * len(lines)):
        return None
    numbers = [int(hit[1]) for hit in hits]
    steps = [after - number for number, after in pairwise(numbers)]
    if min(steps) < 1 or steps.count(1) < _IN_A_ROW * len(steps):
        return None
    full = [hit for hit in hits if hit.end() < len(hit.string)]
    if len({_DIGITS.sub("0", hit.string[hit.end() :]) for hit in full}) < _KINDS:
        return None
    gap = beginning([hit[2] for hit in full])
    if not gap and not all(hit[2][:1] in (":", "-") for hit in full):
        return None
    behind = f"{re.escape(gap)}|{re.escape(gap.rstrip())}$" if gap else "[:-]"
    return re.compile(rf"\s*[L#]?\d{{1,9}}(?:{behind})")


def _mark(lines: list[str]) -> re.Pattern[str] | None:
    """-> a regex for the marks that every line of a quotation, a list or an indented passage begins with."""
    first, often = Counter(map(itemgetter(0), lines)).most_common(1)[0]
    enough = len(lines) if first.isspace() else _NEARLY_ALL * len(lines)
    if often < (min(enough, len(lines) - _HEADINGS) if first == "+" and len(lines) > _SOME else enough):
        return _block(lines) if first.isspace() and often >= _MOSTLY * len(lines) else None
    runs = [hit[0] for line in lines if line[0] == first and (hit := _MARKS.match(line))]
    mark = beginning(runs)
    if not mark or len(runs) < _FEWEST:
        return None
    return re.compile(rf"{re.escape(mark)}|{re.escape(mark.rstrip())}$" if mark.strip() else re.escape(mark))


def _block(lines: list[str]) -> re.Pattern[str] | None:
    """-> a regex for the indent of a log that stands in a document, below a heading or a key of YAML; plainly so only
    where a line of it is such a one as begins at the edge."""
    edge = next(filter(None, map(_AT_EDGE.match, lines)), None)
    if edge is None or not edge[1] or sum(line.startswith(edge[1]) for line in lines) < _MOSTLY * len(lines):
        return None
    return re.compile(re.escape(edge[1]))
