"""Sentences and commands with slots: a template of a case and the values of this log in, what a reader gets out.

`{path}` is a slot. What is in `[[…]]` goes where one of its slots is not filled; a slot outside these that is
not filled withholds the whole text, so nobody ever reads an open one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torchtriage.lazy_regex import lazy_regex

_SLOT = lazy_regex(r"\{([a-z_]+)\}")
_OPTIONAL = lazy_regex(r"\[\[(.*?)\]\]", re.S)
_OPEN = lazy_regex(
    r"<[a-z][\w .-]*>|\b[A-Z]{2,}[_/][A-Z_]+\b(?!=)|\b(?:HOST|PORT|REPO|NODE|JOBID|RANK|PID|JOB)\b|/path/to|…"
)
_TWO_STOPS = lazy_regex(r"(\.\.\.|[!?]|(?<!\.)\.)\.(?!\S)")
_STOP = lazy_regex(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\betc)\.(?= )")  # the end of a sentence, and of no abbreviation
LONGEST_VALUE = 160  # characters of a value in a sentence
_LONGEST_WORD = 30  # characters of a word that is left out whole where it does not fit
_ENOUGH = 60  # characters of its first sentences, so that they can stand for it


def slots(template: str) -> frozenset[str]:
    """-> the names of all slots of a template."""
    return frozenset(_SLOT.findall(template))


def optional_removed(template: str) -> str:
    """-> the template without what is in `[[…]]`."""
    return _OPTIONAL.sub("", template)


def shown_open(template: str) -> str:
    """-> the sentence for any log: without what may be left out, unless no slot is left then, and an ellipsis for each
    slot."""
    short_form = optional_removed(template)
    shown = short_form if slots(short_form) else _OPTIONAL.sub(r"\1", template)
    return re.sub(r" +(?=[ .,;:)])", "", _SLOT.sub("…", shown)).strip()


def filled(template: str, values: Mapping[str, str]) -> str | None:
    """-> the sentence; None where a slot outside `[[…]]` has no value."""
    template = _OPTIONAL.sub(lambda part: part[1] if slots(part[1]) <= values.keys() else "", template)
    if not slots(template) <= values.keys():
        return None
    text = _SLOT.sub(lambda slot: short(values[slot[1]]), template)
    text = _TWO_STOPS.sub(r"\1", text)  # the value's own, and the sentence's
    return re.sub(r" +(?=[ ,;:]|\.(?!\S))", "", text).strip()


def is_open(text: str) -> bool:
    """-> whether a text leaves something for the reader to put in: `<name>`, `HOST`, `/path/to`, `…`."""
    return _OPEN.search(text) is not None


def short(value: str) -> str:
    """-> a value as one line that fits into a sentence; a longer one up to its last whole sentence that does, else to a
    whole word."""
    line = " ".join(value.split())
    if len(line) <= LONGEST_VALUE:
        return line
    cut = line[: LONGEST_VALUE - 3]
    whole = max((end.end() for end in _STOP.finditer(cut)), default=0)
    if whole >= _ENOUGH:
        return cut[:whole]
    word = cut.rfind(" ") if not line[len(cut)].isspace() else len(cut)
    return (cut[:word] if word >= len(cut) - _LONGEST_WORD else cut).rstrip(" ,;:") + "..."
