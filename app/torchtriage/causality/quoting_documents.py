"""Removes errors that a text only quotes because it is not a log: a program's source, a manual, or a list of
changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchtriage.causality.thresholds import CHANGES, DEFINITIONS, HEADINGS
from torchtriage.domain.event import EventSource
from torchtriage.domain.line import Line
from torchtriage.facts.document_regexes import DocumentRegexes
from torchtriage.facts.log_classifier import is_written_by_person
from torchtriage.runs.findings import Finding
from torchtriage.runs.run_reading import Reading

# Sources that are single lines. Events of all other sources have a form that only a program prints.
_SINGLE = frozenset({EventSource.MATCHED_LINE, EventSource.CUT_TRACEBACK, EventSource.EXCEPTION_LINE})


def without_quotes(reading: Reading) -> Reading:
    """Returns the reading of a short text without errors that it only quotes. In a manual or a list of changes these
    are all errors, in a program's source those inside its statements."""
    lines, facts = reading.paste, reading.facts
    if not lines or facts.progress or any(map(_only_programs_print, reading.findings)):
        return reading
    regexes = reading.matcher.document_regexes
    if _is_source(lines, regexes):
        code = {
            line.position for line in lines if regexes.statement.search(line.text) or regexes.frame.search(line.text)
        }
        kept = tuple(finding for finding in reading.findings if finding.event.line.position not in code)
        return replace(reading, findings=kept, paste=tuple(line for line in lines if line.position not in code))
    if (_is_manual(lines, regexes) or _is_change_log(lines, regexes)) and not is_written_by_person(
        lines, facts.regexes
    ):
        return replace(reading, findings=(), paste=())
    return reading


def _only_programs_print(finding: Finding) -> bool:
    """Returns whether only a program prints this. Manuals quote the name of a collective without the label before
    it."""
    line = finding.event.line
    bare = finding.event.source is EventSource.COLLECTIVE and line.raw == line.text and not finding.ranks
    return finding.event.source not in _SINGLE and not bare


def _is_source(lines: Sequence[Line], regexes: DocumentRegexes) -> bool:
    """Returns whether the lines are a program's source, with imports and definitions. A traceback that quotes code also
    has lines that name files."""
    framed = sum(bool(regexes.frame.search(line.text)) for line in lines)
    return framed >= DEFINITIONS and not any(line.text.lstrip().startswith('File "') for line in lines)


def _is_manual(lines: Sequence[Line], regexes: DocumentRegexes) -> bool:
    headed = sum(bool(regexes.heading.search(line.text)) for line in lines)
    sentences = sum(bool(regexes.prose.search(line.text)) for line in lines)
    return headed >= HEADINGS and sentences >= HEADINGS


def _is_change_log(lines: Sequence[Line], regexes: DocumentRegexes) -> bool:
    """Returns whether most lines are those of a list of changes, in the form that a version control system prints."""
    texts = [line.text for line in lines if line.text.strip()]
    changes = sum(bool(regexes.history.search(text)) for text in texts)
    return changes >= CHANGES and 2 * changes > len(texts)
