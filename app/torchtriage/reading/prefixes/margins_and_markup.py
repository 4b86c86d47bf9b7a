"""Finds what a web page, mail or editor added to every line: margins (quotation marks, bullets, indents, line numbers),
marks at line ends, HTML tags and entities.

Learns the `Edges` from the first lines of a file, then removes them from each line.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from torchtriage.lazy_regex import lazy_regex

_MIN_COUNT = 4  # lines
_MAX_MARGINS = 3  # nested margins
_NEARLY_ALL = 0.95  # share of the lines with a mark
_NUMBERED = 0.8  # share of the lines with a number; between search results there are rules
_IN_A_ROW = 0.6  # share of the numbers that are followed by the next one
_KINDS = 3  # different lines; many ranks can each print the same line once, in order
_FIRST = 10  # lines that decide for most files
_DIGITS = lazy_regex(r"\d+")
_MARKS = lazy_regex(r"(?:[ \t]|[>+*`:\u2022\u00b7\u200b-]|#(?!\d))+(?=\S)")
_NUMBER = lazy_regex(r"\s*[L#]?(\d{1,9})([:.)|│>\s-]*)")
_MOSTLY = 0.7  # share of the lines that are in such a document's block
_HEADINGS = 3  # lines above a diff without its mark
_AT_EDGE = lazy_regex(
    r"(\s*)(?:Traceback \(most recent|\[(?:rank|default)\d{1,6}\]:|[WEIF]\d{4} \d\d:\d\d:\d\d\.\d|\d{4}-\d\d-\d\d[T ]\d\d:)"
)
_MIN_LENGTH, _MAX_LENGTH = 8, 200  # characters of a text added after every line
_OWN_FIELDS = lazy_regex(r"(?:[:|,]? ?\b[\w.]{1,40}=\"[^\"]{0,80}\")+$")
_TAILS = ("`", "|", "│", "\\", "^[[0m", "[0m")
_MIN_MARKED_LINES = 2  # lines that show it
_MARKUP = lazy_regex(
    r"&(?:quot|lt|gt|nbsp|apos|#39|#x27|#34|#x2[27]);|</?(?:p|div|span|td|tr|li|pre|code)\b[^<>]{0,200}>|<br ?/?>"
    r"|[\u00a0\u200b\u3000]{2}|\w[\u00a0]\w|^[\u200b\ufeff]|File [“”„]|[\ufb00-\ufb04]|(?:Error|Exception)：|\]：|，line \d|(?:Error|Exception): [^\n]{0,200}[“‘]"
)
_TAG = lazy_regex(
    r"</?(?:p|div|span|td|tr|th|table|tbody|li|ul|ol|pre|code|b|i|em|strong|font|html|body|br)\b[^<>]{0,200}>"
)
_PLAIN = str.maketrans({"\u00a0": " ", "\u3000": " ", "\u2002": " ", "\u2003": " ", "\u200b": "", "\ufeff": "", "\u2060": "",
                        "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "：": ": ", "，": ",", "（": "(", "）": ")",
                        "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "‚": "'"})  # fmt: skip


class Edges(NamedTuple):
    """The additions at the edges of a file's lines: `margins` before them, the outer ones first, and `tails` after
    them. `markup` is true if a web page, mail or editor changed the text between them."""

    margins: tuple[re.Pattern[str], ...] = ()
    tails: tuple[str, ...] = ()
    markup: bool = False


def edges_of(sample: Sequence[str]) -> Edges | None:
    """Returns the additions at the edges of a file's lines, from its first lines, or None."""
    markup = has_markup(sample)
    plain = [without_markup(line) for line in sample] if markup else sample
    found = Edges(margins(plain), tails(plain), markup)
    return found if any(found) else None


def without_edges(text: str, edges: Edges) -> str:
    """Returns a line as it was printed, without the additions at its edges."""
    if edges.markup:
        text = without_markup(text)
    for margin in edges.margins:
        if found := margin.match(text):
            text = text[found.end() :]
    for tail in edges.tails:
        stripped = text.rstrip()
        text = stripped.removesuffix(tail).rstrip() if stripped.endswith(tail) else text
    return text


def margins(lines: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """Returns regexes for the margins of a file, from its first lines, the outer ones first."""
    found: list[re.Pattern[str]] = []
    while len(found) < _MAX_MARGINS:
        filled = [line for line in lines if line.strip()]
        margin = (_line_numbers(filled) or _mark(filled)) if len(filled) >= _MIN_COUNT else None
        if margin is None:
            break
        found.append(margin)
        lines = [margin.sub("", line, count=1) for line in lines]
    return tuple(found)


def without_margins(lines: Sequence[str]) -> list[str]:
    """Returns the lines without quotation marks, which come before each piece of a line that was cut."""
    for margin in margins(lines[:200]):
        lines = [margin.sub("", line, count=1) for line in lines]
    return list(lines)


def tails(lines: Sequence[str]) -> tuple[str, ...]:
    """Returns the marks at the end of nearly every line, such as those of a table or terminal pane, the last ones
    first."""
    if fields := _trailing_fields(lines):
        return (fields,)
    marked = sum(line.rstrip().endswith(_TAILS) for line in lines[:_FIRST])
    texts = [line.rstrip() for line in lines if line.strip()] if marked * 2 >= min(len(lines), _FIRST) else []
    found: list[str] = []
    while len(texts) >= _MIN_COUNT and len(found) < _MAX_MARGINS:
        mark = next((each for each in _TAILS if sum(map(_ends_with(each), texts)) >= _NEARLY_ALL * len(texts)), None)
        if mark is None:
            break
        found.append(mark)
        texts = [line.removesuffix(mark).rstrip() for line in texts]
    return tuple(found)


def _trailing_fields(lines: Sequence[str]) -> str:
    """Returns the fields that a collector added after nearly every line. Usually empty."""
    first = [line.rstrip() for line in lines[:_FIRST]]
    if len(first) < _FIRST or len({line[-_MIN_LENGTH:] for line in first}) > 1:
        return ""
    common = common_beginning([line[: -_MAX_LENGTH - 1 : -1] for line in first])[::-1]
    found = _OWN_FIELDS.search(common)
    texts = [line.rstrip() for line in lines if line.strip()]
    if found is None or len(set(texts)) < _KINDS or sum(map(_ends_with(found[0]), texts)) < _NEARLY_ALL * len(texts):
        return ""
    return found[0]


def common_beginning(texts: Sequence[str]) -> str:
    """Returns the text with which all of the texts begin."""
    low, high = min(texts, default=""), max(texts, default="")
    return next((low[:at] for at, char in enumerate(low) if high[at] != char), low)


def _ends_with(mark: str) -> Callable[[str], bool]:
    return lambda line: line.endswith(mark)


def _line_numbers(lines: list[str]) -> re.Pattern[str] | None:
    """Returns a regex for numbers that count the lines, as printed by `cat -n`, `grep -n` and editors, or None."""
    if sum(map(bool, map(_NUMBER.match, lines[:_FIRST]))) * 2 < min(len(lines), _FIRST):
        return None  # true for most files
    hits = [hit for line in lines if (hit := _NUMBER.match(line))]
    if len(hits) < max(_MIN_COUNT, _NUMBERED * len(lines)):
        return None
    numbers = [int(hit[1]) for hit in hits]
    steps = [after - number for number, after in pairwise(numbers)]
    if min(steps) < 1 or steps.count(1) < _IN_A_ROW * len(steps):
        return None
    full = [hit for hit in hits if hit.end() < len(hit.string)]
    if len({_DIGITS.sub("0", hit.string[hit.end() :]) for hit in full}) < _KINDS:
        return None
    gap = common_beginning([hit[2] for hit in full])
    if not gap and not all(hit[2][:1] in (":", "-") for hit in full):
        return None
    behind = f"{re.escape(gap)}|{re.escape(gap.rstrip())}$" if gap else "[:-]"
    return re.compile(rf"\s*[L#]?\d{{1,9}}(?:{behind})")


def _mark(lines: list[str]) -> re.Pattern[str] | None:
    """Returns a regex for the mark with which every line of a quotation, list or indented passage begins, or None."""
    first, often = Counter(map(itemgetter(0), lines)).most_common(1)[0]
    enough = len(lines) if first.isspace() else _NEARLY_ALL * len(lines)
    if often < (min(enough, len(lines) - _HEADINGS) if first == "+" and len(lines) > _FIRST else enough):
        return _indent(lines) if first.isspace() and often >= _MOSTLY * len(lines) else None
    runs = [hit[0] for line in lines if line[0] == first and (hit := _MARKS.match(line))]
    mark = common_beginning(runs)
    if not mark or len(runs) < _MIN_COUNT:
        return None
    return re.compile(rf"{re.escape(mark)}|{re.escape(mark.rstrip())}$" if mark.strip() else re.escape(mark))


def _indent(lines: list[str]) -> re.Pattern[str] | None:
    """Returns a regex for the indent of a log in a document, below a heading or a YAML key, or None. At least one of
    its lines must be of a kind that normally has no indent."""
    edge = next(filter(None, map(_AT_EDGE.match, lines)), None)
    if edge is None or not edge[1] or sum(line.startswith(edge[1]) for line in lines) < _MOSTLY * len(lines):
        return None
    return re.compile(re.escape(edge[1]))


def has_markup(lines: Sequence[str]) -> bool:
    """Returns whether a file passed through a web page, mail or editor, judging by its first lines."""
    every = "\n".join(lines)
    if every.isascii() and "&" not in every and "<" not in every:
        return False
    found = 0
    for line in lines:
        if (not line.isascii() or "&" in line or "<" in line) and _MARKUP.search(line):
            found += 1
            if found >= _MIN_MARKED_LINES:
                return True
    return False


def without_markup(line: str) -> str:
    """Returns the line without tags, entities and typographic characters."""
    if "<" in line:
        line = _TAG.sub("", line)
    if "&" in line:
        line = html.unescape(line)
    return line if line.isascii() else line.translate(_PLAIN)
