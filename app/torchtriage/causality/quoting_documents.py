"""Removes errors that a text only quotes because it is not a log: a program's source, a manual, a list of changes, or
other prose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from torchtriage.causality.thresholds import (
    CHANGES,
    DEFINITIONS,
    HEADINGS,
    SENTENCE_EVERY,
    SENTENCES,
    TABLE_ROWS,
    WIDTH,
)
from torchtriage.domain.event import EventSource
from torchtriage.domain.line import Line, Position
from torchtriage.facts.document_regexes import DocumentRegexes
from torchtriage.facts.log_classifier import is_written_by_person
from torchtriage.runs.findings import Finding
from torchtriage.runs.run_reading import Reading

# Sources that are single lines. Events of all other sources have a form that only a program prints.
_SINGLE = frozenset({EventSource.MATCHED_LINE, EventSource.CUT_TRACEBACK, EventSource.EXCEPTION_LINE})


def without_quotes(reading: Reading) -> Reading:
    """Returns the reading of a short text without errors that it only quotes. In a manual or a list of changes these
    are all errors, in a program's source those inside its statements and strings, in prose those inside its
    sentences."""
    if not (reading.paste or reading.findings) or any(map(_only_programs_print, reading.findings)):
        return reading
    regexes = reading.matcher.document_regexes
    text = reading.text
    if text and _is_source(text, regexes):
        code = _code(text, regexes)
        mostly = 2 * len(code) > len(text)
        if reading.paste or mostly:
            reading = _without_lines(reading, frozenset(code))
        if mostly and not is_written_by_person(text, reading.facts.regexes):
            return replace(reading, paste=reading.paste and ())
    lines, facts = reading.paste, reading.facts
    if not lines or facts.progress or is_written_by_person(lines, facts.regexes):
        return reading
    if _is_manual(lines, regexes) or _is_change_log(lines, regexes):
        return replace(_without_lines(reading, frozenset(line.position for line in lines)), findings=(), paste=())
    sentences = [line for line in lines if regexes.sentence.match(line.text)]
    if _printed_lines(sentences) >= max(SENTENCES, _printed_lines(lines) // SENTENCE_EVERY):
        return replace(_without_lines(reading, frozenset(line.position for line in sentences)), paste=())
    return reading


def _printed_lines(lines: Iterable[Line]) -> int:
    """Returns how many lines of a page these are. Paragraphs may be one long line each."""
    return sum(-(-len(line.text) // WIDTH) for line in lines)


def _without_lines(reading: Reading, quoting: frozenset[Position]) -> Reading:
    """Returns the reading without these lines and their findings."""
    findings = tuple(finding for finding in reading.findings if finding.event.line.position not in quoting)
    paste = tuple(line for line in reading.paste or () if line.position not in quoting)
    return replace(reading, findings=findings, paste=paste, quoting=reading.quoting | quoting)


def _code(lines: Sequence[Line], regexes: DocumentRegexes) -> set[Position]:
    """Returns the positions of the definitions and statements of a program, and of the strings of several lines."""
    found, inside = set(), False
    whole = sum(_quotes(line.text) for line in lines) % 2 == 0  # else nobody knows which lines are inside
    for line in lines:
        began = inside
        if whole and _quotes(line.text) % 2:
            inside = not inside
        if began or inside or regexes.statement.search(line.text) or regexes.frame.search(line.text):
            found.add(line.position)
    return found


def _quotes(text: str) -> int:
    return text.count('"""') + text.count("'''")


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
    rows = sum(bool(regexes.table_row.match(line.text)) for line in lines)
    return (headed >= HEADINGS and sentences >= HEADINGS) or (headed > 0 and rows >= TABLE_ROWS)


def _is_change_log(lines: Sequence[Line], regexes: DocumentRegexes) -> bool:
    """Returns whether most lines are those of a list of changes, in the form that a version control system prints."""
    texts = [line.text for line in lines if line.text.strip()]
    changes = sum(bool(regexes.history.search(text)) for text in texts)
    return changes >= CHANGES and 2 * changes > len(texts)
