"""What follows from what: clean-up is set aside, consequences are tied to what they follow from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import timedelta
from enum import IntEnum
from fnmatch import fnmatchcase
from functools import lru_cache

from torchtriage.causality.findings import Finding
from torchtriage.causality.rules import Rule, deciding
from torchtriage.causality.thresholds import AGENT_POLLS, BELOW_SPAWN_NOTICE, SHELL_WORD_WITHIN
from torchtriage.domain.entry import Kind, Role
from torchtriage.domain.event import Event, EventSource, Where
from torchtriage.domain.line import Position
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.prefixes.times import moment, seconds_between

_SPAWNED = lazy_regex(r"-- Process \d{1,6} terminated with the following error")
_STOPPED = frozenset({-15, 143})  # SIGTERM: the agent stops the others after the first failure
_KILLED = -9  # SIGKILL: with it the agent ends those which SIGTERM did not end
_REPORTED = frozenset({EventSource.FIRST_FAILURE, EventSource.OTHER_FAILURE})
_SHELLS_WORD = lazy_regex(r"\W*Killed\W*")
# SGLang's server says so and then kills all of its processes, itself too.
_ENDS_ITSELF = lazy_regex(r"Received sigquit from a child proces")

# ./run.sh: line 12: --lr: command not found · train.sh: 12: nvidia-smi: not found: the shell went on with its script
_SCRIPT_LINE = lazy_regex(r"(?:\S+/)?[\w.-]+: (?:line |ligne |Zeile |行 ?)?\d{1,6}: .{1,200}: \S")
_OPTION = lazy_regex(r": --?[A-Za-z]")  # that the shell took for a command, as the line above it lost its backslash
_ENDED = frozenset({EventSource.LAUNCHER, EventSource.PROCESS_EXIT, EventSource.COLLECTIVE, EventSource.SLURM})

_CANCELLED = lazy_regex(r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT ")
_ANNOUNCED = lazy_regex(r"Job step aborted|Force Terminated")  # what srun does about it


class Grade(IntEnum):
    """How far a finding can be a root cause; larger is more."""

    CUT = 0  # a traceback without its last line, a scheduler's line that no entry names
    WEAK = 1
    LAUNCHER = 2  # a launcher says that a worker failed, not why
    ECHO = 3
    HINT = 4
    WITNESS = 5  # dumps and stacks tell who kept the others waiting, not why
    LINE = 6
    UNNAMED = 7
    EXIT = 8
    CAUSE = 9


def grade(finding: Finding) -> Grade:
    """-> how far the finding can be the root cause, by its entry's kind and by what showed it."""
    match, event = finding.match, finding.event
    if event.source is EventSource.EVIDENCE:
        return Grade.WITNESS
    if event.source in (EventSource.TRAILING_ERROR, EventSource.HANG):
        return Grade.HINT
    if match is None:
        return _grade_unnamed(finding)
    if match.weak:
        # That a process ended in this way is a fact, even where it is often a consequence.
        uncaught = event.source in (EventSource.TRACEBACK, EventSource.LAUNCHER) and finding.fatal
        ended = uncaught or event.where is Where.EXIT or event.source is EventSource.SLURM
        return Grade.HINT if ended else Grade.WEAK
    if match.entry.kind is Kind.CONSEQUENCE and event.where is Where.EXIT and event.exit_code not in (None, 1):
        return Grade.HINT  # A status of its own: peers that lost a connection leave with 1.
    echo = finding.has_role(Role.LAUNCHER_ECHO)
    if match.entry.kind is Kind.CONSEQUENCE:
        return Grade.LAUNCHER if echo else Grade.ECHO
    if event.source is EventSource.LAUNCHER and echo:
        return Grade.ECHO
    if match.broad:
        return Grade.UNNAMED if event.source is EventSource.TRACEBACK and not _carries_another(finding) else Grade.LINE
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
    if _carries_another(finding):
        return Grade.HINT
    return Grade.UNNAMED if event.source is EventSource.TRACEBACK else Grade.LINE


def _carries_another(finding: Finding) -> bool:
    """-> whether the exception is Ray's envelope, which names the type of the one that it carries and no more."""
    raised = finding.event.exception
    if raised is None:
        return False
    return raised.type.endswith("UnserializableException") or (
        raised.type.endswith("RayTaskError") and "ray::" in raised.message
    )


class Ends:
    """What the exit statuses of a run tell together, gathered once, as there can be thousands."""

    def __init__(self, findings: list[Finding], progress: Sequence[Position] = ()) -> None:
        """`progress`: where the run shows steps, in order."""
        exits = [finding for finding in findings if finding.event.where is Where.EXIT]
        self.failed = {finding.attempt for finding in exits if finding.event.exit_code not in _STOPPED}
        self.by_agent = any(
            finding.event.source in (EventSource.FIRST_FAILURE, EventSource.ELASTIC_AGENT) for finding in exits
        )
        self._slurm = [finding for finding in findings if finding.event.source is EventSource.SLURM]
        self.itself = [finding.position for finding in findings if _ENDS_ITSELF.search(finding.event.text)]
        self.tracebacks = [
            other.position for other in findings if other.event.source is EventSource.TRACEBACK and other.match
        ]
        raised = (each for each in findings if each.event.source is EventSource.TRACEBACK and each.fatal)
        self._raised, self._ended = _first_of_files(raised), _first_of_files(filter(_ended_a_process, findings))
        self._progress = progress
        self._first: dict[tuple[str | None, int], str] = {}  # when the first one of a host failed, as its report says
        for finding in exits:
            event, place = finding.event, (finding.event.host, finding.attempt)
            of_itself = event.source in _REPORTED and event.exit_code not in (_KILLED, *_STOPPED)
            if of_itself and event.time is not None:
                self._first[place] = min(event.time, self._first.get(place, event.time))

    def cancelled_above(self, finding: Finding) -> bool:
        """-> whether Slurm had cancelled the job above a finding in its file, and no task had failed before that."""
        file = finding.position.file_start
        above = [other for other in self._slurm if file < other.position < finding.position]
        first = next((other for other in above if not _ANNOUNCED.search(other.event.text)), None)
        return first is not None and _CANCELLED.search(first.event.text) is not None

    def ended_above(self, finding: Finding, by_exception: bool) -> bool:
        """-> whether a process had ended above a finding in its file; `by_exception` counts one before any step too."""
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
        """-> whether the same report reports a failure after which the agent had time to lose its patience."""
        seconds = seconds_between(self._first.get((killed.event.host, killed.attempt)), killed.event.time)
        return seconds is not None and seconds > AGENT_POLLS


def _ended_a_process(finding: Finding) -> bool:
    return finding.event.source in _ENDED or finding.event.where is Where.EXIT


def _first_of_files(findings: Iterable[Finding]) -> dict[int, Position]:
    """-> where the first of the findings is in each file; they are in the order of the log."""
    first: dict[int, Position] = {}
    for finding in findings:
        first.setdefault(finding.position.file, finding.position)
    return first


def reported(event: Event, ahead: float = 0.0) -> str:
    """-> when the process ended that a report names first, to sort by: each agent's report names one, what has no time
    comes last. The same for all other events. `ahead`: seconds that the clock of its host is."""
    if event.source is not EventSource.FIRST_FAILURE:
        return ""
    if event.time is None or not ahead:
        return event.time or "~"
    try:
        return (moment(event.time) - timedelta(seconds=ahead)).isoformat()
    except (ValueError, OverflowError):
        return event.time


def clean_up(findings: list[Finding], progress: Sequence[Position] = ()) -> dict[Finding, Rule[Finding, Ends]]:
    """-> what is the launcher's doing or only announces another finding, each with the rule that says so."""
    ends = Ends(findings, progress)
    found = ((finding, deciding(CLEAN_UP, finding, ends)) for finding in findings)
    return {finding: rule for finding, rule in found if rule is not None}


def _killed_itself(finding: Finding, ends: Ends) -> bool:
    """-> whether it is what the shell says about a program that killed itself."""
    if not _SHELLS_WORD.fullmatch(finding.event.text):
        return False
    return any(0 < finding.position.lines_below(end) <= SHELL_WORD_WITHIN for end in ends.itself)


def _killed_by_agent(finding: Finding, ends: Ends) -> bool:
    """-> whether the agent lost its patience with a process that SIGTERM did not end."""
    event = finding.event
    killed = event.where is Where.EXIT and event.exit_code == _KILLED and event.source is EventSource.OTHER_FAILURE
    return killed and ends.long_before(finding)


def _stopped_by_launcher(finding: Finding, ends: Ends) -> bool:
    stopped = finding.event.where is Where.EXIT and finding.event.exit_code in _STOPPED
    return stopped and (finding.attempt in ends.failed or not ends.by_agent)


def _torn_down(finding: Finding, ends: Ends) -> bool:
    """-> whether it is what a process raised when its job had been cancelled, and names no other cause."""
    if finding.event.where is not Where.EXCEPTION or finding.event.source is not EventSource.TRACEBACK:
        return False
    return (finding.match is None or finding.has_role(Role.DISTRIBUTED_SYMPTOM)) and ends.cancelled_above(finding)


def _announces_traceback(finding: Finding, ends: Ends) -> bool:
    """-> whether it is spawn's line above the traceback of a process, which itself says what went wrong."""
    if finding.event.source is not EventSource.MATCHED_LINE or not _SPAWNED.match(finding.event.text):
        return False
    return any(0 < place.lines_below(finding.position) < BELOW_SPAWN_NOTICE for place in ends.tracebacks)


def _script_went_on(finding: Finding, ends: Ends) -> bool:
    """-> whether a shell could not run a later line of its script, when the run had ended. An option that it took for a
    command was missing in the line above, so it may be why the program failed before its first step."""
    if finding.event.source is not EventSource.MATCHED_LINE or not _SCRIPT_LINE.match(finding.event.text):
        return False
    return ends.ended_above(finding, by_exception=not _OPTION.search(finding.event.text))


CLEAN_UP: tuple[Rule[Finding, Ends], ...] = (
    Rule(
        "killed-itself",
        _killed_itself,
        "the program killed itself after another failure",
        "程序在其他失败后主动杀死了自己",
    ),
    Rule(
        "killed-by-agent",
        _killed_by_agent,
        "the agent killed the process long after another one had failed",
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
        _torn_down,
        "the job had been cancelled before",
        "任务此前已被取消",
    ),
    Rule(
        "announces-traceback",
        _announces_traceback,
        "the line only announces the traceback below it",
        "该行只是引出下面的 traceback",
    ),
    Rule(
        "script-went-on",
        _script_went_on,
        "the shell reached this line of its script after the run had ended",
        "运行结束之后，shell 才执行到脚本的这一行",
    ),
)


def causes(findings: Iterable[Finding]) -> dict[int, list[Finding]]:
    """-> for each attempt the earliest finding of each entry that can explain others."""
    earliest: dict[tuple[int, str, int | None], Finding] = {}
    for finding in findings:
        match = finding.match
        if match is not None and not (match.weak or match.broad) and (match.entry.explains or _threw(finding)):
            key = finding.attempt, match.entry.id, min(finding.ranks, default=-1) if _threw(finding) else None
            known = earliest.setdefault(key, finding)
            if finding.position < known.position:
                earliest[key] = finding
    found: dict[int, list[Finding]] = {}
    for (attempt, *_), finding in earliest.items():
        found.setdefault(attempt, []).append(finding)
    return found


def explained_by(effect: Finding, known: dict[int, list[Finding]]) -> Finding | None:
    """-> the finding of the same attempt whose entry says that this one follows from it; of two that explain one
    another the earlier explains the later. `known` comes from `causes`."""
    return next((cause for cause in known.get(effect.attempt, ()) if explains(cause, effect)), None)


def unexplained(findings: list[Finding]) -> list[Finding]:
    """-> the findings that no other explains."""
    known = causes(findings)
    return [finding for finding in findings if explained_by(finding, known) is None]


def explains(first: Finding, second: Finding) -> bool:
    """-> whether the entry of one finding says that the other follows from it, and their order allows it."""
    cause, effect = first.match, second.match
    if cause is None or effect is None or cause.entry.id == effect.entry.id:
        return False
    if _threw(first) and second.has_role(Role.ABORT) and _of_one_process(first, second):
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
    """-> whether srun told of a task's end first: then it cancelled the step for this, and not the other way round."""
    both = cancelled.event.source is EventSource.SLURM and task.event.source is EventSource.SLURM
    return both and task.position < cancelled.position


def _threw(finding: Finding) -> bool:
    """-> whether it is a C++ exception that nobody caught, after which the runtime aborts the process."""
    return finding.event.source is EventSource.PROCESS_EXIT and finding.event.where is Where.LINE


def _of_one_process(thrown: Finding, abort: Finding) -> bool:
    """-> whether the same process may have thrown and aborted."""
    return not (thrown.ranks and abort.ranks) or not thrown.ranks.isdisjoint(abort.ranks)


@lru_cache(maxsize=65536)
def _named(patterns: tuple[str, ...], entry: str) -> bool:
    return any(fnmatchcase(entry, pattern) for pattern in patterns)
