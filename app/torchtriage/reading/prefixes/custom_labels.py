"""Finds unknown labels: texts with which nearly all lines of a file begin and that are clearly from another writer, or
that precede each line of a traceback.

Returns a regex for the label and what its parts say about the writer. The lines must have no known prefixes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count, pairwise
from operator import itemgetter

import re2

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.prefixes.known import prefix_of
from torchtriage.reading.prefixes.learned import FORMS, is_host
from torchtriage.reading.prefixes.margins_and_markup import common_beginning

_MIN_COUNT = 8  # lines
_NEARLY_ALL = 0.95  # share of the lines with the label
_HEADINGS = 2  # lines above a table, without the label
_MAX_LENGTH = 160  # characters
_FAR = 48  # tokens
_MAX_WRITERS = 8  # writers whose numbers never fall from one line to the next
_MAX_DIGITS = 9
_DIGITS = lazy_regex(r"\d+")
_TOKEN = lazy_regex(r"\d+|[^\W\d_]+|\s+|.")
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
# A date in any order with a clock time, or seconds since 1970. They differ between lines.
_CLOCK = (
    rf"(?:(?:\d{{1,4}}|{_MONTH})[-/. ]{{1,2}}(?:\d{{1,2}}|{_MONTH})(?:[-/. ,]{{1,2}}\d{{2,4}})?(?:[T_:@, \t]|at){{1,3}})?"
    r"\d{1,2}:\d\d:\d\d(?:[.,:]\d+)?|(?<![\d.])1\d{9}(?:\.\d+|\d{3})?(?!\d)"
)
CLOCK = lazy_regex(_CLOCK)
_CLOCK_MARK = "\0"  # replaces a clock time
# In brackets and between bars, a number can have any meaning. Elsewhere, a changing number counts something.
_ENCLOSED = lazy_regex(r"\[[^\[\]]*\]|\([^()]*\)|\{[^{}]*\}|<[^<>]*>|\|[^|]*(?=\|)")
_OPEN = lazy_regex(r"[\[({<][^\])}>]*$|^[^|]*\|[^|]*$")
_END = lazy_regex(rf".*(?:[\]:|>)}}{_CLOCK_MARK}]\s*`?|-\s+|\d\s+|\s{{2,}}|\t)", re.S)
_OWN = lazy_regex(
    r"\[(?:rank|default|trainer|worker|role_)[-_ :=]{0,2}0|\[[A-Za-z][\w.-]*0[\w.-]*:0\]|torch[./]|(?i:rank|epoch|step|iter|loss)"
)
# Texts that no program prints after its own label, so they are passed on from others.
_FOREIGN = lazy_regex(
    r"Traceback \(most|  File \"|    \S|\[(?:rank|default)\d+\]:|[WEIF]\d{4} \d\d:\d\d:\d\d\.\d+ |\*{20}|={20}|-{20}$"
    r"|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+\] torch|(?:srun|slurmstepd): error|(?:WARNING|ERROR|INFO):torch\.|/\S+\.py:\d+: \w*Warning:"
    r"|Setting OMP_NUM_THREADS|\{\"[@\w.]{1,40}\": ?[\"\d{]"
)
_FOREIGN_THERE = lazy_regex(
    rf"(?:[A-Za-z][\w.-]{{0,60}}: )?(?:{_FOREIGN.pattern})"
)  # perhaps from one of several hosts
# one search of all lines, because most files have none
_FOREIGN_BEHIND = re2.compile(rf"(?m)[^\n](?:{_FOREIGN.pattern})")
MAX_CUSTOM_LABELS = 16  # different labels of a file
_MAX_TRACEBACK_LABEL_LENGTH = 120  # characters
_TRACEBACK = "Traceback (most recent call last)"
_FRAME = lazy_regex(r'\s*File "[^"]+", line \d')
_FRAME_BEGINS = '   File "'  # begins with the blank of a label
_BELOW_FRAME = lazy_regex(r'  (?:File "[^"]+", line \d|  \S)')
# <3> · w3| · (node-3) · 10.0.0.3:
_TASK = lazy_regex(r"[<(\[w]?(?P<task>\d{1,5})[>)\]|:]{1,2}\s*")
_ADDRESS = lazy_regex(r"(?<![\w.])(?P<host>\d{1,3}(?:\.\d{1,3}){3})(?![\w.])")
_HOST = lazy_regex(r"(?<![\w.-])(?P<host>[A-Za-z][\w.-]*\d[\w.-]*)(?![\w.-])")
# INFO - [worker-3]: after a level, it is the process's own number; without a level it would be a pod's
_WORKER = lazy_regex(r"[\[(<]?(?i:worker|trainer|proc(?:ess)?|replica)[-_ ]?(?P<task>\d{1,5})[\])>]?(?:\s?[:|>-]+)?\s*")
_INSIDE = ("rank", "short", "local", "number", "bracket", "compose", "kubetail", "host")  # names in FORMS


def custom_label(lines: Sequence[str]) -> str | None:
    """Returns a regex for the text with which nearly all of a file's first lines begin, or None."""
    filled = [line[:_MAX_LENGTH] for line in lines if line.strip()]
    if len(filled) < _MIN_COUNT or not _same_beginning(filled) or not _FOREIGN_BEHIND.search("\n".join(filled)):
        return None
    label = _label_part("".join(_common_tokens(filled)))
    if not label:
        return None
    hits = [*filter(None, map(re.compile(_regex(label, frozenset())).match, filled))]
    rests = [hit.string[hit.end() :] for hit in hits]
    if len(rests) < _min_labelled_lines(filled) or not any(
        _FOREIGN_THERE.match(_without_known(rest)) for rest in rests
    ):
        return None
    numbers = zip(*(_DIGITS.findall(CLOCK.sub("", hit[0])) for hit in hits), strict=False)
    return _regex(label, frozenset(at for at, values in enumerate(numbers) if _is_counter(values)))


def _is_counter(values: Sequence[str]) -> bool:
    """Returns whether a number counts lines or seconds, so it names no writer: it never falls and has many values."""
    numbers = [int(value[:_MAX_DIGITS]) for value in values]
    return len(set(numbers)) > max(_MAX_WRITERS, len(numbers) // 8) and all(a <= b for a, b in pairwise(numbers))


def _without_known(text: str) -> str:
    """Returns a text without known prefixes."""
    while (found := prefix_of(text)) and found.end():
        if _FOREIGN.match(text):
            break
        text = text[found.end() :]
    return text


def _same_beginning(lines: list[str]) -> bool:
    """Returns whether nearly all lines begin with the same character, or with a digit. This decides for most files."""
    first = Counter(map(itemgetter(0), lines))
    digits = sum(often for char, often in first.items() if char.isdigit())
    return max(digits, *first.values()) >= _min_labelled_lines(lines)


def _min_labelled_lines(lines: Sequence[object]) -> float:
    """Returns how many of the lines must have a label."""
    return min(_NEARLY_ALL * len(lines), len(lines) - _HEADINGS) if len(lines) > 4 * _HEADINGS else len(lines)


def _common_tokens(lines: list[str]) -> list[str]:
    """Returns the tokens with which enough lines begin. Numbers become `0`. A changing number ends them if it stands
    alone."""
    every, enough = len(lines), _NEARLY_ALL * len(lines)
    tokens = [_tokens(line) for line in lines]
    common: list[str] = []
    for _ in range(_FAR):
        # Most lines differ at the second or third token, so only the tokens that agree are read.
        here = [(token, line) for line in tokens if (token := next(line, ""))]
        if not here:
            break
        token, often = Counter(_masked(token) for token, _ in here).most_common(1)[0]
        # Lines that end here consist of the label alone.
        if often + every - len(here) < enough:
            break
        every -= len(here) - often
        agreeing = [other for other, _ in here if _masked(other) == token]
        tokens = [line for other, line in here if _masked(other) == token]
        if token == "0" and len(set(agreeing)) > 1 and not _open("".join(common)):
            break
        common.append(common_beginning(agreeing) if token == " " else token)
    return common


def _tokens(line: str) -> Iterator[str]:
    """Yields the words, numbers, blanks and other characters of a line. A clock time is one token."""
    at = 0
    while at < len(line):
        clock = CLOCK.match(line, at) if line[at].isalnum() else None
        found = clock or _TOKEN.match(line, at)
        if found is None:
            return
        yield _CLOCK_MARK if clock else found[0]
        at = found.end()


def _masked(token: str) -> str:
    return "0" if token[0].isdigit() else " " if token[0].isspace() else token


def _open(text: str) -> bool:
    """Returns whether a bracket or bar is still open at the end of a text."""
    return bool(_OPEN.search(text))


def _label_part(label: str) -> str:
    """Returns the label up to the start of its writer's own words or of a record."""
    label = label.partition('{"')[0]
    bare = _ENCLOSED.sub(
        lambda hit: hit[0] if hit[0].startswith("[") and _OWN.match(hit[0]) else "\1" * len(hit[0]), label
    )
    if own := _OWN.search(bare):
        label = label[: own.start()]
    found = _END.match(label)
    return found[0] if found else ""


def _regex(label: str, counting: frozenset[int]) -> str:
    """Returns a regex for a label. The blanks at its end may be missing if nothing follows. The numbers with the
    indexes in `counting` become groups whose names begin with `count`."""
    full = label.rstrip()
    numbers = count()

    def number(_: re.Match[str]) -> str:
        at = next(numbers)
        return rf"(?P<count{at}>\d+)" if at in counting else r"\d+"

    parts = (
        f"(?:{_CLOCK})" if part == _CLOCK_MARK else re.sub("0", number, re.escape(part))
        for part in re.split(f"({_CLOCK_MARK})", full)
    )
    blanks = label[len(full) :]
    return "".join(parts) + (rf"(?:{re.escape(blanks)}|\s*$)" if blanks else "")


def label_before_traceback(text: str, below: Iterable[str]) -> str | None:
    """Returns a regex for the text before the head of a traceback in `text`, if it also precedes a frame in `below`; or
    before a frame, if it also precedes code or another frame. Otherwise returns None."""
    label, head, _ = text.partition(_TRACEBACK)
    if head:
        return _label_regex(label, below, _FRAME)
    label, frame, _ = text.partition(_FRAME_BEGINS)
    return _label_regex(f"{label} ", below, _BELOW_FRAME) if frame else None


def _label_regex(label: str, below: Iterable[str], further: re.Pattern[str]) -> str | None:
    if not label.strip() or len(label) > _MAX_TRACEBACK_LABEL_LENGTH or label[-1] not in " \t:]|>)":
        return None
    form = re.sub(r"\d+", lambda _: r"\d+", re.escape(label))
    pattern = re.compile(rf"{form}{further.pattern}")
    return form if any(map(pattern.match, below)) else None


@lru_cache(maxsize=1024)
def writer_in(label: str) -> tuple[str, re.Match[str]] | None:
    """Returns the name of the form of FORMS at the end of a label (or an empty name), and the match with the writer:
    `INFO - 3: ` has a task, `(node-3) ` a host. None if the label names no writer."""
    starts = [0, *(gap.end() for gap in re.finditer(r"\s+", label.rstrip()))]
    for start in starts:
        if start and (worker := _WORKER.fullmatch(label, start)):
            return "", worker
        for name in _INSIDE:
            found = FORMS[name].fullmatch(label, start)
            if found and (name != "host" or is_host(found["host"])):
                return name, found
    for found in filter(None, (_ADDRESS.search(label), _TASK.fullmatch(label), *_HOST.finditer(label))):
        if "host" not in found.re.groupindex or not found["host"][:1].isalpha() or is_host(found["host"]):
            return "", found
    return None
