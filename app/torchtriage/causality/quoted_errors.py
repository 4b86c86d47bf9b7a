"""A second look at a short paste in which nothing was found: quoted exceptions, lines that speak of errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice

from torchtriage.causality.thresholds import ERRORS_TOLD, LONGEST_WARNING, PASSAGE
from torchtriage.domain.event import Event, EventSource, Raised, Where
from torchtriage.domain.line import Line
from torchtriage.facts.document_signs import DocumentSigns
from torchtriage.lazy_regex import lazy_regex

_ALARM = lazy_regex(  # Python lists its extension modules where a signal ends it.
    r"(?i)^exception in |^Extension modules: [\w.]+, |"
    r"(?:^|[\s\]:|*(`])(?:fatal|error|fail(?:ed|ure)|panic|abort(?:ed|ing)?|cannot|can't|unable to)\b"
    r"(?!\.(?:\d|(?:log|txt|html?|json|py)\b))"
)
# What was asked for, in the words of options that errors speak of too: Hydra's header, argparse's
_ECHOES = lazy_regex(r"Error executing job with overrides: ?\[|\bNamespace\(\w+=")
# A level that tells of no failure: `INFO:jax.xla_bridge:…`, `[INFO] …`, `… - trainer - INFO - …`, `I0501 09:00:00 …`,
# `time="…" level=info msg=…`, and a C library's `warning: …`
_TOLD_IN_PASSING = lazy_regex(
    r"[\[(<*\s]{0,4}(?:INFO|DEBUG)\b|warning: |[ID]\d{4} \d\d:\d\d:\d\d|.{0,80}?\blevel(?:=|\": ?\")(?:info|debug)\b"
    r"|.{0,80}?[\s\[|(:-](?:INFO|DEBUG)[\])]?(?:[\s:|]|$)"
)
# popen_fork.py:66: RuntimeWarning: Using fork() can … · and at its end the line of code, `  self.pid = os.fork()`
_WARNS = lazy_regex(r"\S+:\d+: \w*Warning: ")
_NO_WARNING = lazy_regex(r"(?i)\W{0,3}(?:error|fatal|fail|abort|killed|panic|traceback|exception)")
_IGNORED = "Exception ignored in"
_OF_IGNORED = lazy_regex(r"Traceback \(most recent|\s|Exception ignored in")
_STOPPING = lazy_regex(r"Sending process \d+ (?:the )?closing signal SIG(?:TERM|KILL)")  # A warning, after a failure.
# ASCII letters, as a Chinese sentence runs into the name without a blank.
_NAME = r"(?:[A-Za-z_][A-Za-z0-9_]*\.)*[A-Z][A-Za-z0-9_]*(?:Error|Exception|Interrupt)"
_QUOTED = lazy_regex(rf"(?:(?<![A-Za-z0-9_.'\"/])|(?<= ['\"]))({_NAME})\s?: ?([^`]{{3,2000}})")


def without_ignored_exceptions(lines: list[Line]) -> list[Line]:
    """-> the lines of a paste without the exceptions that Python ignored, as it does where it deletes an object."""
    kept, ignored = [], False
    for line in lines:
        ignored = ignored or line.text.startswith(_IGNORED)
        if not ignored:
            kept.append(line)
        ignored = ignored and bool(_OF_IGNORED.match(line.text))
    return kept


def quoted_errors(lines: Sequence[Line]) -> Iterator[Event]:
    """Yields an event for each line, read as if it were an exception's message; those that no entry names are dropped
    by who asks. What a program told in passing is none, nor what it only warned of."""
    for line in _messages(lines):
        found = _QUOTED.search(line.text)
        raised = (
            Raised(found[1], found[2].strip(), (), (line,)) if found else Raised("", line.text.strip(), (), (line,))
        )
        where = (line.rank, line.local_rank, line.host)
        yield Event(
            Where.EXCEPTION, raised.text, (line,), EventSource.QUOTED_ERROR, *where, time=line.time, chain=(raised,)
        )


def passages(lines: Sequence[Line]) -> Iterator[Event]:
    """Yields an event for each passage without a blank line or a fence, read as one message that a chat has wrapped."""
    for full, group in groupby(_messages(lines), key=lambda line: bool(line.text.strip("> \t`~"))):
        block = list(group)
        for start in range(0, len(block) if full else 0, PASSAGE):
            part = block[start : start + PASSAGE]
            raised = Raised("", "\n".join(line.text for line in part), (), tuple(part))
            yield Event(
                Where.EXCEPTION,
                raised.text,
                tuple(part),
                EventSource.QUOTED_ERROR,
                part[0].rank,
                chain=(raised,),
                fatal=False,
            )


def alarming_lines(lines: Sequence[Line], signs: DocumentSigns) -> Iterator[Event]:
    """Yields an event for the first lines of a paste that speak of an error: what nobody can name did not go well."""
    told = (line for line in _without_lists(_without_warnings(lines)) if _speaks_of_an_error(line, signs))
    for line in islice(told, ERRORS_TOLD):
        yield Event.at(line, line.text.strip(), EventSource.ALARMING_LINE)


def _messages(lines: Sequence[Line]) -> Iterator[Line]:
    """Yields the lines that may be an error's message: not told in passing, warned of or what was asked for."""
    for line in _without_warnings(lines):
        if not (_in_passing(line) or _ECHOES.search(line.text)):
            yield line


def _without_warnings(lines: Sequence[Line]) -> Iterator[Line]:
    """Yields the lines that are none of Python's warnings, whose text may go on over several."""
    rest = 0
    for at, line in enumerate(lines):
        if _WARNS.match(line.text):
            rest = 1 + _goes_on(lines[at + 1 : at + 1 + LONGEST_WARNING])
        if rest:
            rest -= 1
        else:
            yield line


def _without_lists(lines: Iterable[Line]) -> Iterator[Line]:
    """Yields the lines that are in no list that a program told in passing, indented below a heading."""
    listed = False
    for line in lines:
        listed = listed and line.raw[:1].isspace()
        if not listed:
            yield line
        listed = listed or (line.raw.rstrip().endswith(":") and _in_passing(line))


def _goes_on(below: Sequence[Line]) -> int:
    """-> how many of the lines below the first one of a warning belong to it: all down to its line of code."""
    for more, line in enumerate(below, 1):
        if line.text.startswith("  "):
            return more
        if _NO_WARNING.match(line.text) or _QUOTED.search(line.text):
            return 0
    return 0


def _speaks_of_an_error(line: Line, signs: DocumentSigns) -> bool:
    alarm = bool(_ALARM.search(line.text) or _QUOTED.search(line.text)) and not _in_passing(line)
    return (alarm and not signs.harmless_alarms.search(line.raw)) or bool(_STOPPING.search(line.text))


def _in_passing(line: Line) -> bool:
    """-> whether the writer of a line did not call it a failure, and names no exception in it."""
    return bool(_TOLD_IN_PASSING.match(line.raw)) and not _QUOTED.search(line.text)
