"""Sets aside what a launcher caused by itself after a failure, and what only announces another finding."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from torchtriage.causality.rules import Rule, first_applying
from torchtriage.causality.thresholds import AGENT_POLLS, BELOW_SPAWN_NOTICE, SHELL_WORD_WITHIN
from torchtriage.domain.entry import Role
from torchtriage.domain.event import EventSource, Where
from torchtriage.domain.line import Position
from torchtriage.lazy_regex import lazy_regex
from torchtriage.parsing.tracebacks.grammar import SPAWNED
from torchtriage.reading.prefixes.times import seconds_between
from torchtriage.runs.findings import Finding

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


class ExitStatuses:
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


def clean_up(findings: list[Finding], progress: Sequence[Position] = ()) -> dict[Finding, Rule[Finding, ExitStatuses]]:
    """Returns the findings that a launcher caused by itself, or that only announce another finding, each with its
    rule."""
    ends = ExitStatuses(findings, progress)
    found = ((finding, first_applying(CLEAN_UP, finding, ends)) for finding in findings)
    return {finding: rule for finding, rule in found if rule is not None}


def _killed_itself(finding: Finding, ends: ExitStatuses) -> bool:
    """Returns whether this is the shell's message about a program that killed itself."""
    if not _SHELLS_WORD.fullmatch(finding.event.text):
        return False
    return any(0 < finding.position.lines_below(end) <= SHELL_WORD_WITHIN for end in ends.itself)


def _killed_by_agent(finding: Finding, ends: ExitStatuses) -> bool:
    """Returns whether the agent sent SIGKILL to a process that SIGTERM did not end."""
    event = finding.event
    killed = event.where is Where.EXIT and event.exit_code == _KILLED and event.source is EventSource.OTHER_FAILURE
    return killed and ends.long_before(finding)


def _stopped_by_launcher(finding: Finding, ends: ExitStatuses) -> bool:
    stopped = finding.event.where is Where.EXIT and finding.event.exit_code in _STOPPED
    return stopped and (finding.attempt in ends.failed or not ends.by_agent)


def _raised_during_teardown(finding: Finding, ends: ExitStatuses) -> bool:
    """Returns whether a process raised this after its job had been cancelled, and it names no other cause."""
    if finding.event.where is not Where.EXCEPTION or finding.event.source is not EventSource.TRACEBACK:
        return False
    return (finding.match is None or finding.has_role(Role.DISTRIBUTED_SYMPTOM)) and ends.cancelled_above(finding)


def _announces_traceback(finding: Finding, ends: ExitStatuses) -> bool:
    """Returns whether this is the line that spawn prints above the traceback of a process; the traceback names the
    error."""
    if finding.event.source is not EventSource.MATCHED_LINE or not SPAWNED.match(finding.event.text):
        return False
    return any(0 < place.lines_below(finding.position) < BELOW_SPAWN_NOTICE for place in ends.tracebacks)


def _script_continued(finding: Finding, ends: ExitStatuses) -> bool:
    """Returns whether a shell could not run a later line of its script after the run had ended. If the shell took an
    option for a command, the option was missing in the line above, so it may be why the program failed before its first
    step."""
    if finding.event.source is not EventSource.MATCHED_LINE or not _SCRIPT_LINE.match(finding.event.text):
        return False
    return ends.ended_above(finding, by_exception=not _OPTION.search(finding.event.text))


CLEAN_UP: tuple[Rule[Finding, ExitStatuses], ...] = (
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
