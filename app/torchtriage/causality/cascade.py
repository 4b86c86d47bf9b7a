"""Finds out which findings follow from others: sets clean-up aside, and ties consequences to their causes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import timedelta
from enum import IntEnum
from fnmatch import fnmatchcase
from functools import lru_cache

from torchtriage.causality.findings import Finding
from torchtriage.causality.rules import Rule, first_applying
from torchtriage.causality.thresholds import AGENT_POLLS, BELOW_SPAWN_NOTICE, SHELL_WORD_WITHIN
from torchtriage.domain.entry import Kind, Role
from torchtriage.domain.event import Event, EventSource, Where
from torchtriage.domain.line import Position
from torchtriage.lazy_regex import lazy_regex
from torchtriage.parsing.tracebacks.grammar import SPAWNED
from torchtriage.reading.prefixes.times import moment, seconds_between

_STOPPED = frozenset({-15, 143})  # SIGTERM: the agent stops the others after the first failure
_KILLED = -9  # SIGKILL: the agent ends with it the processes that SIGTERM did not end
_REPORTED = frozenset({EventSource.FIRST_FAILURE, EventSource.OTHER_FAILURE})
_SHELLS_WORD = lazy_regex(r"\W*Killed\W*")

# ./run.sh: line 12: --lr: command not found · train.sh: 12: nvidia-smi: not found: the shell went on with its script
_SCRIPT_LINE = lazy_regex(r"(?:\S+/)?[\w.-]+: (?:line |ligne |Zeile |行 ?)?\d{1,6}: .{1,200}: \S")
_OPTION = lazy_regex(r": --?[A-Za-z]")  # taken for a command, because the line above lost its backslash
_ENDED = frozenset({EventSource.LAUNCHER, EventSource.PROCESS_EXIT, EventSource.COLLECTIVE, EventSource.SLURM})

_CANCELLED = lazy_regex(r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT ")
_ANNOUNCED = lazy_regex(r"Job step aborted|Force Terminated")  # what srun prints when it reacts to this


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


class Ends:
    """The exit statuses of a run, gathered once because there can be thousands of findings."""

    def __init__(self, findings: list[Finding], progress: Sequence[Position] = ()) -> None:
        """`progress` are the positions of the run's steps, in order."""
        exits = [finding for finding in findings if finding.event.where is Where.EXIT]
        self.failed = {finding.attempt for finding in exits if finding.event.exit_code not in _STOPPED}
        self.by_agent = any(
            finding.event.source in (EventSource.FIRST_FAILURE, EventSource.ELASTIC_AGENT) for finding in exits
        )
        self._slurm = [finding for finding in findings if finding.event.source is EventSource.SLURM]
        self.itself = [finding.position for finding in findings if finding.ends_itself]
        self.tracebacks = [
            other.position for other in findings if other.event.source is EventSource.TRACEBACK and other.match
        ]
        raised = (each for each in findings if each.event.source is EventSource.TRACEBACK and each.fatal)
        self._raised, self._ended = _first_of_files(raised), _first_of_files(filter(_reports_process_end, findings))
        self._progress = progress
        self._first: dict[tuple[str | None, int], str] = {}  # first failure of a host in its report
        for finding in exits:
            event, place = finding.event, (finding.event.host, finding.attempt)
            of_itself = event.source in _REPORTED and event.exit_code not in (_KILLED, *_STOPPED)
            if of_itself and event.time is not None:
                self._first[place] = min(event.time, self._first.get(place, event.time))

    def cancelled_above(self, finding: Finding) -> bool:
        """Returns whether Slurm had cancelled the job above a finding in its file before any task failed."""
        file = finding.position.file_start
        above = [other for other in self._slurm if file < other.position < finding.position]
        first = next((other for other in above if not _ANNOUNCED.search(other.event.text)), None)
        return first is not None and _CANCELLED.search(first.event.text) is not None

    def ended_above(self, finding: Finding, by_exception: bool) -> bool:
        """Returns whether a process had ended above a finding in its file. With `by_exception`, an uncaught exception
        before the first step counts too."""
        place = finding.position
        raised, ended = self._raised.get(place.file), self._ended.get(place.file)
        if ended is not None and ended < place:
            return True
        if raised is None or raised > place:
            return False
        steps = self._progress
        first = bisect_right(steps, raised.file_start)
        return by_exception or (first < len(steps) and steps[first] < raised)

    def long_before(self, killed: Finding) -> bool:
        """Returns whether the same report names a failure so long before that the agent stopped waiting and sent
        SIGKILL."""
        seconds = seconds_between(self._first.get((killed.event.host, killed.attempt)), killed.event.time)
        return seconds is not None and seconds > AGENT_POLLS


def _reports_process_end(finding: Finding) -> bool:
    return finding.event.source in _ENDED or finding.event.where is Where.EXIT


def _first_of_files(findings: Iterable[Finding]) -> dict[int, Position]:
    """Returns the position of the first finding in each file. The findings are in the order of the log."""
    first: dict[int, Position] = {}
    for finding in findings:
        first.setdefault(finding.position.file, finding.position)
    return first


def reported(event: Event, ahead: float = 0.0) -> str:
    """Returns a sort key: when the process ended that a report names as its first failure. Each agent's report names
    one. A process without a time comes last, and all other events have the same key. `ahead` is how many seconds the
    host's clock is ahead."""
    if event.source is not EventSource.FIRST_FAILURE:
        return ""
    if event.time is None or not ahead:
        return event.time or "~"
    try:
        return (moment(event.time) - timedelta(seconds=ahead)).isoformat()
    except (ValueError, OverflowError):
        return event.time


def clean_up(findings: list[Finding], progress: Sequence[Position] = ()) -> dict[Finding, Rule[Finding, Ends]]:
    """Returns the findings that a launcher caused by itself, or that only announce another finding, each with its
    rule."""
    ends = Ends(findings, progress)
    found = ((finding, first_applying(CLEAN_UP, finding, ends)) for finding in findings)
    return {finding: rule for finding, rule in found if rule is not None}


def _killed_itself(finding: Finding, ends: Ends) -> bool:
    """Returns whether this is the shell's message about a program that killed itself."""
    if not _SHELLS_WORD.fullmatch(finding.event.text):
        return False
    return any(0 < finding.position.lines_below(end) <= SHELL_WORD_WITHIN for end in ends.itself)


def _killed_by_agent(finding: Finding, ends: Ends) -> bool:
    """Returns whether the agent sent SIGKILL to a process that SIGTERM did not end."""
    event = finding.event
    killed = event.where is Where.EXIT and event.exit_code == _KILLED and event.source is EventSource.OTHER_FAILURE
    return killed and ends.long_before(finding)


def _stopped_by_launcher(finding: Finding, ends: Ends) -> bool:
    stopped = finding.event.where is Where.EXIT and finding.event.exit_code in _STOPPED
    return stopped and (finding.attempt in ends.failed or not ends.by_agent)


def _raised_during_teardown(finding: Finding, ends: Ends) -> bool:
    """Returns whether a process raised this after its job had been cancelled, and it names no other cause."""
    if finding.event.where is not Where.EXCEPTION or finding.event.source is not EventSource.TRACEBACK:
        return False
    return (finding.match is None or finding.has_role(Role.DISTRIBUTED_SYMPTOM)) and ends.cancelled_above(finding)


def _announces_traceback(finding: Finding, ends: Ends) -> bool:
    """Returns whether this is the line that spawn prints above the traceback of a process; the traceback names the
    error."""
    if finding.event.source is not EventSource.MATCHED_LINE or not SPAWNED.match(finding.event.text):
        return False
    return any(0 < place.lines_below(finding.position) < BELOW_SPAWN_NOTICE for place in ends.tracebacks)


def _script_continued(finding: Finding, ends: Ends) -> bool:
    """Returns whether a shell could not run a later line of its script after the run had ended. If the shell took an
    option for a command, the option was missing in the line above, so it may be why the program failed before its first
    step."""
    if finding.event.source is not EventSource.MATCHED_LINE or not _SCRIPT_LINE.match(finding.event.text):
        return False
    return ends.ended_above(finding, by_exception=not _OPTION.search(finding.event.text))


CLEAN_UP: tuple[Rule[Finding, Ends], ...] = (
    Rule(
        "killed-itself",
        _killed_itself,
        "the process killed itself after an earlier failure",
        "程序在其他失败后自行终止",
    ),
    Rule(
        "killed-by-agent",
        _killed_by_agent,
        "torchelastic's agent killed this process long after another process failed",
        "另一个进程失败很久之后，agent 才杀死该进程",
    ),
    Rule(
        "stopped-by-launcher",
        _stopped_by_launcher,
        "the launcher stopped the process with SIGTERM",
        "启动器用 SIGTERM 终止了该进程",
    ),
    Rule(
        "torn-down",
        _raised_during_teardown,
        "the job was cancelled before this error",
        "任务此前已被取消",
    ),
    Rule(
        "announces-traceback",
        _announces_traceback,
        "the line only introduces the traceback below it",
        "该行只是引出下面的 traceback",
    ),
    Rule(
        "script-went-on",
        _script_continued,
        "the shell ran this line of the script after the run ended",
        "运行结束之后，shell 才执行到脚本的这一行",
    ),
)


def causes(findings: Iterable[Finding]) -> dict[int, list[Finding]]:
    """Returns, for each attempt, the earliest finding of each entry that can explain others."""
    earliest: dict[tuple[int, str, int | None], Finding] = {}
    for finding in findings:
        match = finding.match
        if (
            match is not None
            and not (match.weak or match.broad)
            and (match.entry.explains or _is_cpp_exception(finding))
        ):
            key = (
                finding.attempt,
                match.entry.id,
                min(finding.ranks, default=-1) if _is_cpp_exception(finding) else None,
            )
            known = earliest.setdefault(key, finding)
            if finding.position < known.position:
                earliest[key] = finding
    found: dict[int, list[Finding]] = {}
    for (attempt, *_), finding in earliest.items():
        found.setdefault(attempt, []).append(finding)
    return found


def explained_by(effect: Finding, known: dict[int, list[Finding]]) -> Finding | None:
    """Returns the finding of the same attempt whose entry explains this one, or None. If two findings explain each
    other, the earlier one explains the later one. `known` comes from `causes`."""
    return next((cause for cause in known.get(effect.attempt, ()) if explains(cause, effect)), None)


def unexplained(findings: list[Finding]) -> list[Finding]:
    """Returns the findings that no other finding explains."""
    known = causes(findings)
    return [finding for finding in findings if explained_by(finding, known) is None]


def explains(first: Finding, second: Finding) -> bool:
    """Returns whether the first finding's entry explains the second finding, and their order allows it."""
    cause, effect = first.match, second.match
    if cause is None or effect is None or cause.entry.id == effect.entry.id:
        return False
    if _is_cpp_exception(first) and second.has_role(Role.ABORT) and _of_one_process(first, second):
        return True
    if not _named(cause.entry.explains, effect.entry.id) or _ended_its_step(first, second):
        return False
    return (
        first.position <= second.position
        or effect.weak
        or effect.broad
        or not _named(effect.entry.explains, cause.entry.id)
    )


def _ended_its_step(cancelled: Finding, task: Finding) -> bool:
    """Returns whether srun reported the end of a task first. Then it cancelled the step because of this task, not the
    other way round."""
    both = cancelled.event.source is EventSource.SLURM and task.event.source is EventSource.SLURM
    return both and task.position < cancelled.position


def _is_cpp_exception(finding: Finding) -> bool:
    """Returns whether this is an uncaught C++ exception, after which the runtime aborts the process."""
    return finding.event.source is EventSource.PROCESS_EXIT and finding.event.where is Where.LINE


def _of_one_process(thrown: Finding, abort: Finding) -> bool:
    """Returns whether the same process may have raised the exception and aborted."""
    return not (thrown.ranks and abort.ranks) or not thrown.ranks.isdisjoint(abort.ranks)


@lru_cache(maxsize=65536)
def _named(patterns: tuple[str, ...], entry: str) -> bool:
    return any(fnmatchcase(entry, pattern) for pattern in patterns)
