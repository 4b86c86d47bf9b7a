"""Looks a second time at a short paste in which nothing was found: for quoted exceptions, and for lines that mention
errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice

from torchtriage.causality.thresholds import MAX_ERRORS_REPORTED, MAX_WARNING_LINES, PASSAGE
from torchtriage.domain.event import Event, EventSource, Raised, Where
from torchtriage.domain.line import Line
from torchtriage.facts.document_regexes import DocumentRegexes
from torchtriage.lazy_regex import lazy_regex

# Settings that the user asked for, whose names may contain words of errors: the header of Hydra, or of argparse.
_ECHOES = lazy_regex(r"Error executing job with overrides: ?\[|\bNamespace\(\w+=")
# A log level that reports no failure: `INFO:jax.xla_bridge:…`, `[INFO] …`, `… - trainer - INFO - …`,
# `I0501 09:00:00 …`, `time="…" level=info msg=…`, and a C library's `warning: …`
_TOLD_IN_PASSING = lazy_regex(
    r"[\[(<*\s]{0,4}(?:INFO|DEBUG)\b|warning: |[ID]\d{4} \d\d:\d\d:\d\d|.{0,80}?\blevel(?:=|\": ?\")(?:info|debug)\b"
    r"|.{0,80}?[\s\[|(:-](?:INFO|DEBUG)[\])]?(?:[\s:|]|$)"
)
# popen_fork.py:66: RuntimeWarning: Using fork() can … · its last line is the line of code, `  self.pid = os.fork()`
_WARNS = lazy_regex(r"\S+:\d+: \w*Warning: ")
_IGNORED = "Exception ignored in"
_OF_IGNORED = lazy_regex(r"Traceback \(most recent|\s|Exception ignored in")
_STOPPING = lazy_regex(r"Sending process \d+ (?:the )?closing signal SIG(?:TERM|KILL)")  # printed after a failure
# Only ASCII letters, because a Chinese sentence can continue with the name without a space.
_NAME = r"(?:[A-Za-z_][A-Za-z0-9_]*\.)*[A-Z][A-Za-z0-9_]*(?:Error|Exception|Interrupt)"
_QUOTED = lazy_regex(rf"(?:(?<![A-Za-z0-9_.'\"/])|(?<= ['\"]))({_NAME})\s?: ?([^`]{{3,2000}})")


def without_ignored_exceptions(lines: list[Line]) -> list[Line]:
    """Returns the lines of a paste without exceptions that Python ignored, for example while it deleted an object."""
    kept, ignored = [], False
    for line in lines:
        ignored = ignored or line.text.startswith(_IGNORED)
        if not ignored:
            kept.append(line)
        ignored = ignored and bool(_OF_IGNORED.match(line.text))
    return kept


def quoted_errors(lines: Sequence[Line], regexes: DocumentRegexes) -> Iterator[Event]:
    """Yields an event for each line, read as if it were the message of an exception. The caller drops those that match
    no entry. Lines that a program only mentions in passing, and warnings, are skipped."""
    for line in _messages(lines, regexes):
        found = _QUOTED.search(line.text)
        raised = (
            Raised(found[1], found[2].strip(), (), (line,)) if found else Raised("", line.text.strip(), (), (line,))
        )
        where = (line.rank, line.local_rank, line.host)
        yield Event(
            Where.EXCEPTION, raised.text, (line,), EventSource.QUOTED_ERROR, *where, time=line.time, chain=(raised,)
        )


def passages(lines: Sequence[Line], regexes: DocumentRegexes) -> Iterator[Event]:
    """Yields an event for each passage without a blank line or a fence, because a chat may have wrapped one message."""
    for full, group in groupby(_messages(lines, regexes), key=lambda line: bool(line.text.strip("> \t`~"))):
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


def alarming_lines(lines: Sequence[Line], regexes: DocumentRegexes) -> Iterator[Event]:
    """Yields an event for the first lines of a paste that mention an error. Something failed, even if no entry names
    it."""
    alarming = (line for line in _without_lists(_without_warnings(lines, regexes)) if _mentions_error(line, regexes))
    for line in islice(alarming, MAX_ERRORS_REPORTED):
        yield Event.at(line, line.text.strip(), EventSource.ALARMING_LINE)


def _messages(lines: Sequence[Line], regexes: DocumentRegexes) -> Iterator[Line]:
    """Yields the lines that may be an error message: no mention in passing, no warning, no setting that the user asked
    for."""
    for line in _without_warnings(lines, regexes):
        if not (_mentions_in_passing(line) or _ECHOES.search(line.text)):
            yield line


def _without_warnings(lines: Sequence[Line], regexes: DocumentRegexes) -> Iterator[Line]:
    """Yields the lines that belong to no Python warning. The text of a warning may have several lines."""
    rest = 0
    for at, line in enumerate(lines):
        if _WARNS.match(line.text):
            rest = 1 + _warning_length(lines[at + 1 : at + 1 + MAX_WARNING_LINES], regexes)
        if rest:
            rest -= 1
        else:
            yield line


def _without_lists(lines: Iterable[Line]) -> Iterator[Line]:
    """Yields the lines that belong to no list that a program printed in passing, indented below a heading."""
    listed = False
    for line in lines:
        listed = listed and line.raw[:1].isspace()
        if not listed:
            yield line
        listed = listed or (line.raw.rstrip().endswith(":") and _mentions_in_passing(line))


def _warning_length(below: Sequence[Line], regexes: DocumentRegexes) -> int:
    """Returns how many lines below the first line of a warning belong to it. The last one is its line of code."""
    for more, line in enumerate(below, 1):
        if line.text.startswith("  "):
            return more
        if regexes.failure_begins.match(line.text) or _QUOTED.search(line.text):
            return 0
    return 0


def _mentions_error(line: Line, regexes: DocumentRegexes) -> bool:
    alarm = bool(regexes.alarm.search(line.text) or _QUOTED.search(line.text)) and not _mentions_in_passing(line)
    return (alarm and not regexes.harmless_alarms.search(line.raw)) or bool(_STOPPING.search(line.text))


def _mentions_in_passing(line: Line) -> bool:
    """Returns whether the program did not call the line a failure, and the line names no exception."""
    return bool(_TOLD_IN_PASSING.match(line.raw)) and not _QUOTED.search(line.text)
