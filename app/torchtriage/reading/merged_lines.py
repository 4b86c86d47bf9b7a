"""Splits one line into the lines in it: states of a progress bar, lines of two writers, or a traceback without line
feeds."""

from __future__ import annotations

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.prefixes.learned import Labels
from torchtriage.reading.prefixes.strip import strip_prefixes

# ` 12%|█▏ | 207/1767 [02:39<14:49` · `29948it [35:34, ` of a bar with unknown total
_BAR = lazy_regex(r"\d+%\||\d\w{0,20} \[(?:\d+:)?\d\d:\d\d, ")
# After a bar without a line end follows the output of another writer, or of the same one at its end.
_BEHIND_BAR = lazy_regex(
    r"[^|]{0,80}?(?:\d%\|[^|]{0,400}\| ?\d+/\S+|\d\w{0,20}) \[(?:\d+:)?\d\d:\d\d[^\]]{0,80}\]"
    r"(?=\[(?:rank|default)\d|[WEIF]\d{4} \d\d:|[=*-]{20}|  \S|(?:\w+\.)*\w+(?:Error|Exception)\b)"
)
_STATE = lazy_regex(r"\d%\|[^|]{0,400}\| ?\d\S{0,20}/\d\S{0,20} \[(?:\d+:)?\d\d:\d\d|\d\w{0,20} \[(?:\d+:)?\d\d:\d\d, ")
_WHOLE_BAR = lazy_regex(rf"[^|]{{0,80}}?(?:{_STATE.pattern})[^\]]{{0,200}}\]\s*")
# The shell's message about the program's end, after a progress line without a line end.
_ENDED = lazy_regex(
    r"(?<=[\w\])%])(?=(?:Killed|Terminated|Aborted|Segmentation fault|Bus error|Illegal instruction"
    r"|Floating point exception)(?: \(core dumped\))?\s*$)"
)
_BEFORE_TRACEBACK = lazy_regex(r"(?<=\S)(?=(?:\[rank\d+\]: ?)?Traceback \(most recent call last\))")
_WORD = lazy_regex(r"\w")
# Paddle's report in one line: C++ Traceback (…): ---------- … Error Message Summary: ---------- FatalError: …
_SUMMARY = "Error Message Summary: ----------"
_BESIDE_RULE = lazy_regex(r"(?<=-{10}) +(?=[^\s-])|(?<=[^\s-]) +(?=-{10})")
# A traceback whose line feeds were removed by a web form.
_ONE_LINE_TRACEBACK = "Traceback (most recent call last): File "
_ESCAPED_TRACEBACK = "Traceback (most recent call last):\\n"  # from repr(), or from JSON in a line that is not a record
_LOST_LINE_END = lazy_regex(
    r"(?<=:)(?= File \")| (?= ?File \"[^\"]+\", line \d)|(?<=[\s)\]]) ?(?=(?:\w+\.)*[A-Z]\w*(?:Error|Exception): )"
)


def split_line(text: str, known: Labels) -> list[str]:
    """Returns the lines in a line that progress bars rewrote or that two writers wrote. `known` are the labels of the
    file's lines."""
    parts = [text]
    if "\r" in text:
        every = [part for part in text.split("\r") if part.strip()]
        last = [part[bar.end() :] if (bar := _BEHIND_BAR.match(part)) else part for part in every[-1:]]
        last = [piece for part in last for piece in _ENDED.split(part)]
        parts = [*(part for part in every[:-1] if not _BAR.search(part)), *_last_bar_state(every), *last]
    if _ESCAPED_TRACEBACK in text:
        parts = [piece for part in parts for piece in _unescaped_traceback(part)]
    if "Traceback (" in text:
        parts = [piece for part in parts for piece in _split_writers(part, known)]
        parts = [piece for part in parts for piece in _traceback_lines(part)]
    return parts


def _last_bar_state(every: list[str]) -> list[str]:
    """Returns the last state of a bar that something else was printed over or after."""
    if not every:
        return []
    if bar := _BEHIND_BAR.match(every[-1]):
        return [every[-1][: bar.end()]]
    whole = (part for part in reversed(every[:-1]) if _WHOLE_BAR.fullmatch(part))
    return [] if _STATE.search(every[-1]) else [bar for bar in [next(whole, "")] if bar]


def _traceback_lines(part: str) -> list[str]:
    """Returns the lines of a traceback, or of Paddle's report, that lost its line feeds."""
    found: list[str] = []
    for one in _BESIDE_RULE.split(part) if _SUMMARY in part else [part]:
        at = max(one.find(_ONE_LINE_TRACEBACK), 0)  # the text before it, perhaps an exception's name, is one piece
        head, *rest = _LOST_LINE_END.split(one[at:]) if _ONE_LINE_TRACEBACK in one else [one]
        found += [one[:at] + head, *rest]
    return found


def _unescaped_traceback(part: str) -> list[str]:
    """Returns the lines of a traceback that was written as one line with escaped line feeds and quotes."""
    if _ESCAPED_TRACEBACK not in part:
        return [part]
    return part.replace("\\n", "\n").replace('\\"', '"').replace("\\'", "'").replace("\\t", "\t").split("\n")


def _split_writers(part: str, known: Labels) -> list[str]:
    """Returns the part of each of two writers in the line. A prefix before another prefix, or a mark, is not a separate
    writer."""
    if known.learning:
        return [part]
    pieces = _BEFORE_TRACEBACK.split(part)
    if len(pieces) > 1 and not _WORD.search(strip_prefixes(pieces[0], known).text):
        return [part]
    return pieces
