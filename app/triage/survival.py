"""Which findings the run survived: training went on after them, so they ended nothing."""

from __future__ import annotations

from bisect import bisect_right

from app.domain.event import Where
from app.parsing.environment import Environment
from app.reading.lines import FILE_SPAN
from app.triage.folding import Finding

_FAR = 100  # lines; progress further behind than this is no late output of the failing step
_CLEAN_UP = 25  # lines; closing words this near behind a failure come from its clean-up
_WAITED = "Waiting in store based barrier"  # a notice, and no failure where the barrier is passed later
_BUFFERED = 400  # lines; as much progress may stand behind the end of a process whose output a buffer held back


def ends_badly(finding: Finding) -> bool:
    """-> whether the finding itself says that a process ended in failure."""
    event = finding.event
    if event.where is Where.EXIT:
        return True
    return event.source in ("launcher", "process") or (event.source == "slurm" and finding.match is not None)


def survived(finding: Finding, environment: Environment, terminal: list[int]) -> bool:
    """-> whether progress went on long after the finding, up to the next failure that ended a process.

    `terminal` holds the orders of the findings that did, sorted.
    """
    if ends_badly(finding):
        return False
    order = finding.last
    end = (order // FILE_SPAN + 1) * FILE_SPAN  # Only lines of the same file tell what came after.
    if _fell_silent(finding, environment):
        return False
    if _WAITED in finding.event.text and any(order < place < end for place in environment.joined):
        return True
    after = bisect_right(terminal, order)
    until = terminal[after] if after < len(terminal) and terminal[after] < end else None
    late = [place for place in environment.progress if order < place < (until or end)]
    if _ended_a_program(finding):
        done = any(order < place < end for place in environment.well)
        return done or (len(late) >= 3 and late[-1] - order > _BUFFERED)
    if until is not None:
        return bool(late) and late[-1] - order > _FAR
    if not finding.fatal and finding.event.where is Where.EXCEPTION:
        # It was caught and logged, perhaps again and again: what counts is that the run went on after the first time.
        return sum(finding.order < place < end for place in environment.progress) >= 2
    if any(order < place < end for place in environment.well):
        return True
    if any(order + _CLEAN_UP < place < end for place in environment.wound_up):
        return True
    if finding.event.where is Where.LINE and finding.event.source == "line":
        return len(late) >= 2
    return len(late) >= 3 and (late[-1] - order > _FAR or len(late) > 30)


def _ended_a_program(finding: Finding) -> bool:
    """-> whether an exception left the user's main program uncaught: its outermost frame is the script itself."""
    raised = finding.event.exception
    if raised is None or not raised.frames or finding.event.source != "traceback" or not finding.fatal:
        return False
    outermost = raised.frames[0]
    return outermost.function == "<module>" and outermost.user_code


def _fell_silent(finding: Finding, environment: Environment) -> bool:
    """-> whether the ranks that raised an uncaught exception told of their progress before it and never after."""
    if not finding.fatal or finding.event.source != "traceback":
        return False
    last = [environment.progress_of.get(rank) for rank in finding.ranks]
    return bool(last) and all(place is not None and place < finding.last for place in last)
