"""Grades a finding: how likely findings of its kind are a root cause."""

from __future__ import annotations

from enum import IntEnum

from torchtriage.domain.entry import Kind, Role
from torchtriage.domain.event import EventSource, Where
from torchtriage.runs.findings import Finding


class Grade(IntEnum):
    """How likely a finding of this kind is a root cause; a larger number is more likely."""

    CUT = 0  # a traceback without its last line, or a scheduler's line that matches no entry
    WEAK = 1
    LAUNCHER = 2  # a launcher reports that a worker failed, but not why
    ECHO = 3
    HINT = 4
    WITNESS = 5  # dumps and stacks show which rank kept the others waiting, but not why
    LINE = 6
    UNNAMED = 7
    EXIT = 8
    CAUSE = 9


def grade(finding: Finding) -> Grade:
    """Returns the grade of a finding, from its entry's kind and from the source of its event."""
    match, event = finding.match, finding.event
    if event.source is EventSource.EVIDENCE:
        return Grade.WITNESS
    if event.source in (EventSource.TRAILING_ERROR, EventSource.HANG):
        return Grade.HINT
    if match is None:
        return _grade_unnamed(finding)
    if match.weak:
        # It is a fact that a process ended in this way, even if it is often a consequence.
        uncaught = event.source in (EventSource.TRACEBACK, EventSource.LAUNCHER) and finding.fatal
        ended = uncaught or event.where is Where.EXIT or event.source is EventSource.SLURM
        return Grade.HINT if ended else Grade.WEAK
    if match.entry.kind is Kind.CONSEQUENCE and event.where is Where.EXIT and event.exit_code not in (None, 1):
        return Grade.HINT  # The status is the process's own: peers that lost a connection exit with 1.
    echo = finding.has_role(Role.LAUNCHER_ECHO)
    if match.entry.kind is Kind.CONSEQUENCE:
        return Grade.LAUNCHER if echo else Grade.ECHO
    if event.source is EventSource.LAUNCHER and echo:
        return Grade.ECHO
    if match.broad:
        return Grade.UNNAMED if event.source is EventSource.TRACEBACK and not finding.wraps_another else Grade.LINE
    if event.where is Where.EXIT or match.near or event.source in (EventSource.QUOTED_ERROR, EventSource.TITLE):
        return Grade.EXIT
    return Grade.CAUSE


def _grade_unnamed(finding: Finding) -> Grade:
    event = finding.event
    if event.source is EventSource.LAUNCHER or event.where is Where.EXIT:
        return Grade.ECHO
    if event.source in (
        EventSource.CUT_TRACEBACK,
        EventSource.SLURM,
        EventSource.PROCESS_EXIT,
        EventSource.ALARMING_LINE,
    ):
        return Grade.CUT
    if finding.wraps_another:
        return Grade.HINT
    return Grade.UNNAMED if event.source is EventSource.TRACEBACK else Grade.LINE
