"""Fills sentences and commands with the values of a log. Input: a case's template and values. Output: the text for a
reader.

`{path}` is a slot. A part in `[[…]]` is left out if one of its slots has no value. If any other slot has no value, the
whole text is withheld, so that no reader sees an open slot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torchtriage.lazy_regex import lazy_regex

SLOT = lazy_regex(r"\{([a-z_]+)\}")
_OPTIONAL = lazy_regex(r"\[\[(.*?)\]\]", re.S)
_OPEN = lazy_regex(
    r"<[a-z][\w .-]*>|\b[A-Z]{2,}[_/][A-Z_]+\b(?!=)|\b(?:HOST|PORT|REPO|NODE|JOBID|RANK|PID|JOB)\b|/path/to|…"
)
# Where an optional part is left out between a Chinese character and a Latin word, a space remains.
_CHINESE_LATIN = lazy_regex(r"[\u4e00-\u9fff][\w{]|[\w}][\u4e00-\u9fff]", re.ASCII)
_TWO_STOPS = lazy_regex(r"(\.\.\.|[!?]|(?<!\.)\.)\.(?!\S)")
# The end of a sentence, but not of an abbreviation.
_STOP = lazy_regex(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\betc)\.(?= )")
MAX_VALUE_LENGTH = 160  # characters of a value in a sentence
_MAX_WORD_LENGTH = 30  # characters: a longer word that does not fit is cut, a shorter one is left out
_ENOUGH = 60  # characters: if the first sentences have this length, the rest is left out


def slots(template: str) -> frozenset[str]:
    """Returns the names of all slots in a template."""
    return frozenset(SLOT.findall(template))


def without_optional_parts(template: str) -> str:
    """Returns the template without the parts in `[[…]]`."""
    return _OPTIONAL.sub("", template)


def with_open_slots(template: str) -> str:
    """Returns the sentence for any log. Optional parts are left out, unless no slot would be left, and each slot
    becomes an ellipsis."""
    short_form = without_optional_parts(template)
    shown = short_form if slots(short_form) else _OPTIONAL.sub(r"\1", template)
    return re.sub(r" +(?=[ .,;:)])", "", SLOT.sub("…", shown)).strip()


def filled(template: str, values: Mapping[str, str]) -> str | None:
    """Returns the sentence, or None if a slot outside `[[…]]` has no value."""
    template = _OPTIONAL.sub(lambda part: part[1] if slots(part[1]) <= values.keys() else _space_at(part), template)
    if not slots(template) <= values.keys():
        return None
    text = SLOT.sub(lambda slot: short(values[slot[1]]), template)
    text = _TWO_STOPS.sub(r"\1", text)  # one from the value, one from the sentence
    return re.sub(r" +(?=[ ,;:]|\.(?!\S))", "", text).strip()


def _space_at(part: re.Match[str]) -> str:
    """Returns what remains of an optional part that is left out: nothing, or a space."""
    around = f"{part.string[: part.start()][-1:]}{part.string[part.end() :][:1]}"
    return " " if _CHINESE_LATIN.fullmatch(around) else ""


def is_open(text: str) -> bool:
    """Returns whether a text contains something that the reader must replace: `<name>`, `HOST`, `/path/to`, `…`."""
    return _OPEN.search(text) is not None


def short(value: str) -> str:
    """Returns a value as one line that fits into a sentence. A longer value is cut after its last whole sentence that
    fits, or else after a whole word."""
    line = " ".join(value.split())
    if len(line) <= MAX_VALUE_LENGTH:
        return line
    cut = line[: MAX_VALUE_LENGTH - 3]
    whole = max((end.end() for end in _STOP.finditer(cut)), default=0)
    if whole >= _ENOUGH:
        return cut[:whole]
    word = cut.rfind(" ") if not line[len(cut)].isspace() else len(cut)
    return (cut[:word] if word >= len(cut) - _MAX_WORD_LENGTH else cut).rstrip(" ,;:") + "..."
