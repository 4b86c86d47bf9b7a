"""Which findings the run survived: training went on after them, so they ended nothing."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

from torchtriage.causality.cascade import ECHO_AREAS
from torchtriage.causality.findings import Finding
from torchtriage.domain.event import EventSource, Where
from torchtriage.domain.line import Position
from torchtriage.facts import Environment
from torchtriage.parsing.horovod import STALLED

_FAR = 100  # lines; progress further behind than this is no late output of the failing step
_CLEAN_UP = 25  # lines; closing words this near behind a failure come from its clean-up
_WAITED = "Waiting in store based barrier"  # a notice, and no failure where the barrier is passed later
# Of the one pod that is described, or of its group.
_QUEUED = re.compile(r"^(?!.*\bpod/).*\b(?:FailedScheduling|PodGroupPending|Unschedulable)\b")
_EVENTS = 5  # lines between an event of a pod and the one that ends its wait
_BUFFERED = 400  # lines; as much progress may stand behind the end of a process whose output a buffer held back
_REFUSED = re.compile(r"(\S+\.py): error: ")  # argparse
# Where a traceback begins that nobody caught: a script, a module that is run, a process, a thread, a decorated main.
_ENTRANCES = frozenset(
    ("main", "run", "wrapper", "_wrap", "_bootstrap", "_bootstrap_inner", "_run_module_as_main", "_run_code",
     "_worker_loop", "_process_worker")
)  # fmt: skip
_FEW = 3  # lines of progress; so many after a warning are no late output of the failing step
_MANY = 10  # lines of progress; so many are no late output of the others
_WHOLE = 60  # frames; of a longer traceback the outermost ones are not kept
_FRAME = 3  # lines of a frame: its file, its code, and what marks the place in it
_AROUND = 5  # lines around the frames of an exception
# What began after all, if steps follow.
_NOT_STARTED = frozenset({"slurm.launch", "slurm.rejected", "container.runtime"})
_ANSWER = 3  # lines; so soon below what went wrong with a request follows the answer to it


def ends_badly(finding: Finding) -> bool:
    """-> whether the finding itself says that a process ended in failure."""
    event = finding.event
    if event.where is Where.EXIT:
        return True
    return event.source in (EventSource.LAUNCHER, EventSource.PROCESS_EXIT, EventSource.TITLE) or (
        event.source is EventSource.SLURM and finding.match is not None
    )


def survived(finding: Finding, environment: Environment, terminal: list[Position]) -> bool:
    """-> whether progress went on long after the finding, up to the next failure that ended a process.

    `terminal` holds the positions of the findings that did, sorted.
    """
    last = finding.last
    end = last.file_end  # Only lines of the same file tell what came after.
    if ends_badly(finding):
        late = _between(environment.progress, last, end) if finding.entry in _NOT_STARTED else []
        return len(late) >= _MANY and late[-1].lines_below(last) > _FAR
    if _fell_silent(finding, environment):
        return False
    if _done_without(finding, environment, end) or _got_over(finding, environment, end):
        return True
    after = bisect_right(terminal, last)
    until = terminal[after] if after < len(terminal) and terminal[after] < end else None
    late = _between(environment.progress, last, until or end)
    if _ended_a_program(finding):
        done = any(last < place < end for place in (*environment.well, *environment.serves))
        return done or (len(late) >= 3 and late[-1].lines_below(last) > _BUFFERED)
    if until is not None:
        return bool(late) and (late[-1].lines_below(last) > _FAR or _among_steps(finding, late, environment))
    if not finding.fatal and finding.event.where is Where.EXCEPTION:
        # It was caught and logged, perhaps again and again: what counts is that the run went on after the first time.
        return len(_between(environment.progress, finding.position, end)) >= 2
    if any(last < place < end for place in environment.well):
        return True
    if any(last.down(_CLEAN_UP) < place < end for place in environment.wound_up):
        return True
    if finding.event.where is Where.LINE and finding.event.source is EventSource.MATCHED_LINE:
        return len(late) >= 2
    return len(late) >= 3 and (late[-1].lines_below(last) > _FAR or len(late) > 30)


def _among_steps(finding: Finding, late: list[Position], environment: Environment) -> bool:
    """-> whether a bare line stands among many that show progress, as the warning of a step that is done again."""
    if (
        finding.event.where is not Where.LINE
        or finding.event.source is not EventSource.MATCHED_LINE
        or len(late) < _MANY
    ):
        return False
    return bool(_between(environment.progress, finding.position.file_start, finding.position))


def _done_without(finding: Finding, environment: Environment, end: Position) -> bool:
    """-> whether the run or its pod got what it waited for, or went on without a module that it could not import, or
    without the one request that was wrong."""
    last = finding.last
    if _WAITED in finding.event.text:
        return any(last < place < end for place in environment.joined)
    if any(last < place <= last.down(_ANSWER) for place in environment.refused):
        return finding.event.where is Where.EXCEPTION and not _begins_at_an_entrance(finding)
    if _QUEUED.search(finding.event.text):
        return any(last < place <= last.down(_EVENTS) for place in environment.joined)
    return _failed_import(finding) and len(_between(environment.progress, last, end)) >= 2


def _got_over(finding: Finding, environment: Environment, end: Position) -> bool:
    """-> whether it is a warning of NCCL's that came again between steps: it took another way each time."""
    if finding.event.source is not EventSource.COLLECTIVE or "NCCL WARN" not in finding.event.text:
        return False
    steps = _between(environment.progress, finding.position, end)
    return len(steps) >= _FEW and steps[0] < finding.last


def handled(finding: Finding, later: list[Finding], environment: Environment) -> bool:
    """-> whether code of the run caught the exception and printed it: its traceback begins inside a function, and
    training went on as before: for many steps, or until one of the `later` findings, which are failures of their own.
    """
    if not _is_whole(finding) or _begins_at_an_entrance(finding) or _fell_silent(finding, environment):
        return False
    last, start, end = finding.last, finding.position.file_start, finding.position.file_end
    places = _between(environment.progress, start, end)
    after = [other for other in later if other.position > last]
    until = min((other.position for other in after), default=last)
    if len(_between(places, last, until)) >= 2:
        return places[0] < finding.position or any(map(_begins_at_an_entrance, after))
    return len(_between(places, last, end)) >= _MANY and places[0] < finding.position


def refused_before(finding: Finding, others: list[Finding]) -> bool:
    """-> whether a script refused its arguments, which ended it, and came further in another run of the same log: one
    of the `others` is a later traceback of the same script."""
    refused = _REFUSED.match(finding.event.text) if finding.event.where is Where.LINE else None
    if refused is None:
        return False
    later = (other for other in others if other.position > finding.last and _ended_a_program(other))
    return any(_script(other) == refused[1] for other in later)


def started_over(finding: Finding, others: list[Finding], alone: bool) -> bool:
    """-> whether a script that an exception ended was started again in the same log and came to nothing sooner: one of
    the `others` says further below that it could not load its modules; or that it failed again, where one process runs
    `alone` at a time, as in the output that one job after the other appends to."""
    if not _ended_a_program(finding) or not _is_whole(finding):
        return False
    later = [
        other
        for other in others
        if other.position > finding.last
        and _script(other) == _script(finding)
        and not other.ranks - finding.ranks
        and other.event.line.file == finding.event.line.file
    ]
    unloaded = not _failed_import(finding) and any(map(_failed_import, later))
    return unloaded or (alone and any(_failed_anew(other, finding.last) for other in later))


def _failed_anew(finding: Finding, since: Position) -> bool:
    """-> whether the script failed of its own, in a way that an entry knows, with more between that failure and the
    line `since` than a traceback: what it printed before."""
    if not _ended_a_program(finding) or not _is_whole(finding) or finding.entry == "user.cancelled":
        return False
    if finding.match is None or finding.match.entry.area in ECHO_AREAS:
        return False
    frames = sum(len(raised.frames) for raised in finding.event.chain)
    return finding.position.lines_below(since) > frames * _FRAME + len(finding.event.chain) * _AROUND


def _script(finding: Finding) -> str:
    raised = finding.event.exception
    return raised.frames[0].file.rpartition("/")[2] if raised is not None and raised.frames else ""


def stands_still(finding: Finding, environment: Environment) -> bool:
    """-> whether ranks wait for others, as Horovod says, and no step comes behind that."""
    return STALLED in finding.event.text and all(place < finding.last for place in environment.progress)


def _between(places: list[Position], low: Position, high: Position) -> list[Position]:
    """-> the places behind `low` and before `high`; they are in order."""
    return places[bisect_right(places, low) : bisect_left(places, high)]


def _is_whole(finding: Finding) -> bool:
    raised = finding.event.exception
    return finding.event.source is EventSource.TRACEBACK and raised is not None and 0 < len(raised.frames) < _WHOLE


def _begins_at_an_entrance(finding: Finding) -> bool:
    raised = finding.event.exception
    outermost = raised.frames[0].function if raised is not None and raised.frames else ""
    return outermost.startswith("<") or outermost in _ENTRANCES


def _failed_import(finding: Finding) -> bool:
    """-> whether a module could not be imported where the program loads its modules. Nobody trains after that, unless
    the program can do without it."""
    raised = finding.event.exception
    if (
        finding.event.source not in (EventSource.TRACEBACK, EventSource.EXCEPTION_LINE)
        or raised is None
        or len(raised.frames) >= _WHOLE
    ):
        return False
    if not raised.type.endswith(("ImportError", "ModuleNotFoundError")):
        return False
    return all(frame.function == "<module>" or frame.file.startswith("<frozen ") for frame in raised.frames)


def _ended_a_program(finding: Finding) -> bool:
    """-> whether an exception left the user's main program uncaught: its outermost frame is the script itself."""
    raised = finding.event.exception
    if raised is None or not raised.frames or finding.event.source is not EventSource.TRACEBACK or not finding.fatal:
        return False
    outermost = raised.frames[0]
    return outermost.function == "<module>" and outermost.user_code


def _fell_silent(finding: Finding, environment: Environment) -> bool:
    """-> whether the ranks that raised an uncaught exception told of their progress before it and never after."""
    if not finding.fatal or finding.event.source is not EventSource.TRACEBACK:
        return False
    last = [environment.progress_of.get(rank) for rank in finding.ranks]
    return bool(last) and all(place is not None and place < finding.last for place in last)
