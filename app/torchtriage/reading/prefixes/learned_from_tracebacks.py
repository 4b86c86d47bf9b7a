"""Labels that no list knows: where a traceback stands behind one, line after line, its writer is told by it.

In: a line with a traceback's head, or a frame of one that was cut off above, and the lines below it; out: a regex for the
label, with any numbers in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from torchtriage.reading.prefixes.file_labels import FORMS, is_host

MOST = 16  # different labels of a file
_LONGEST = 120  # characters
_HEAD = "Traceback (most recent call last)"
_FRAME = re.compile(r'\s*File "[^"]+", line \d')
_FRAME_BEGINS = '   File "'  # behind the blank of a label
_BELOW_FRAME = re.compile(r'  (?:File "[^"]+", line \d|  \S)')
# <3> · w3| · (node-3) · 10.0.0.3:
_NUMBER = re.compile(r"[<(\[w]?(?P<task>\d{1,5})[>)\]|:]{1,2}\s*")
_ADDRESS = re.compile(r"(?<![\w.])(?P<host>\d{1,3}(?:\.\d{1,3}){3})(?![\w.])")
_NAMED = re.compile(r"(?<![\w.-])(?P<host>[A-Za-z][\w.-]*\d[\w.-]*)(?![\w.-])")
# INFO - [worker-3]: what a logger writes behind its level is the process's own number; without one it would be a pod's.
_WORKER = re.compile(r"[\[(<]?(?i:worker|trainer|proc(?:ess)?|replica)[-_ ]?(?P<task>\d{1,5})[\])>]?(?:\s?[:|>-]+)?\s*")
_TELLING = ("rank", "short", "local", "number", "bracket", "compose", "kubetail", "host")  # of FORMS


def unlisted(text: str, below: Iterable[str]) -> str | None:
    """-> a regex for what stands before the head of a traceback in `text`, where it stands before a frame `below` too,
    or before a frame, where it stands before code or another frame."""
    label, head, _ = text.partition(_HEAD)
    if head:
        return _label(label, below, _FRAME)
    label, frame, _ = text.partition(_FRAME_BEGINS)
    return _label(f"{label} ", below, _BELOW_FRAME) if frame else None


def _label(label: str, below: Iterable[str], further: re.Pattern[str]) -> str | None:
    if not label.strip() or len(label) > _LONGEST or label[-1] not in " \t:]|>)":
        return None
    form = re.sub(r"\d+", lambda _: r"\d+", re.escape(label))
    pattern = re.compile(rf"{form}{further.pattern}")
    return form if any(map(pattern.match, below)) else None


@lru_cache(maxsize=1024)
def part_that_tells(label: str) -> tuple[str, re.Match[str]] | None:
    """-> the form of FORMS which the end of a label has, else nothing, and what tells the writer there: `INFO - 3: ` has
    a task, `(node-3) ` a host."""
    starts = [0, *(gap.end() for gap in re.finditer(r"\s+", label.rstrip()))]
    for start in starts:
        if start and (worker := _WORKER.fullmatch(label, start)):
            return "", worker
        for name in _TELLING:
            found = FORMS[name].fullmatch(label, start)
            if found and (name != "host" or is_host(found["host"])):
                return name, found
    for found in filter(None, (_ADDRESS.search(label), _NUMBER.fullmatch(label), *_NAMED.finditer(label))):
        if "host" not in found.re.groupindex or not found["host"][:1].isalpha() or is_host(found["host"]):
            return "", found
    return None
