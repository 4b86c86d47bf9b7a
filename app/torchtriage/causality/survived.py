"""Finds the failures that the run survived: training continued after them, so they did not end the run."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from torchtriage.causality.rules import Rule, first_applying
from torchtriage.causality.thresholds import (
    ANSWER_WITHIN,
    BELOW_LOGGING_ERROR,
    BUFFERED_OUTPUT,
    CLEAN_UP_WITHIN,
    FAR_BELOW,
    FEW_STEPS,
    LINES_AROUND_TRACEBACK,
    LINES_OF_FRAME,
    MANY_STEPS,
    POD_EVENTS_WITHIN,
    STEADY_PROGRESS,
    TWO_STEPS,
    WHOLE_TRACEBACK,
)
from torchtriage.domain.entry import Role
from torchtriage.domain.event import EventSource, Where
from torchtriage.domain.line import START, Position
from torchtriage.facts import CollectedFacts
from torchtriage.facts.scan_regex import ScanRegex
from torchtriage.lazy_regex import lazy_regex
from torchtriage.parsing.horovod import STALLED
from torchtriage.runs.findings import Finding

_REFUSED = lazy_regex(r"(\S+\.py): error: ")  # argparse


def reports_process_failure(finding: Finding) -> bool:
    """Returns whether the finding itself says that a process failed."""
    event = finding.event
    if event.where is Where.EXIT:
        return True
    return event.source in (EventSource.LAUNCHER, EventSource.PROCESS_EXIT, EventSource.TITLE) or (
        event.source is EventSource.SLURM and finding.match is not None
    )


@dataclass(frozen=True, slots=True)
class AfterFailure:
    """What follows a finding in its file. `until` is the position of the next failure that ended a process. `late` is
    the progress up to there, or up to the end of the file."""

    finding: Finding
    facts: CollectedFacts
    end: Position
    until: Position | None
    late: list[Position]

    @classmethod
    def of(cls, finding: Finding, facts: CollectedFacts, terminal: list[Position]) -> AfterFailure:
        """`terminal` are the positions of the findings that ended a process, sorted."""
        end = finding.last.file_end  # Only lines of the same file show what came after.
        after = bisect_right(terminal, finding.last)
        until = terminal[after] if after < len(terminal) and terminal[after] < end else None
        return cls(finding, facts, end, until, _between(facts.progress, finding.last, until or end))

    @property
    def steps(self) -> list[Position]:
        """The progress down to the end of the file."""
        return _between(self.facts.progress, self.finding.last, self.end)

    def says(self, regex: ScanRegex) -> bool:
        """Returns whether a regex matches the finding's text."""
        return regex.compiled.search(self.finding.event.text) is not None

    def has(self, positions: list[Position], within: int | None = None) -> bool:
        """Returns whether one of the positions is below the finding in the same file, at most `within` lines below if
        given."""
        last = self.finding.last
        return any(last < place < self.end and (within is None or place <= last.down(within)) for place in positions)

    def extends_beyond(self, steps: list[Position], lines: int) -> bool:
        """Returns whether the last of the steps is more than `lines` lines below."""
        return bool(steps) and steps[-1].lines_below(self.finding.last) > lines


def survival(finding: Finding, facts: CollectedFacts, terminal: list[Position]) -> Rule[AfterFailure] | None:
    """Returns the rule that decides whether the run survived the finding, or None if no rule applies and the finding
    stays."""
    return first_applying(SURVIVAL, AfterFailure.of(finding, facts, terminal))


def _logger_could_not_write(after: AfterFailure) -> bool:
    """Returns whether a logger reports the failure: as the traceback directly below its heading, or as the message that
    it could not write. That message is below the stack of the call, like the message of an exception."""
    finding = after.finding
    if finding.event.where is not Where.EXCEPTION:
        return False
    frames = sum(len(raised.frames) for raised in finding.event.chain)
    above = frames * LINES_OF_FRAME + LINES_AROUND_TRACEBACK
    raised = finding.event.exception
    if raised is not None and raised.type == "Message":
        above = BELOW_LOGGING_ERROR
    return any(0 < finding.position.lines_below(place) <= above for place in after.facts.logging_errors)


def _started_later(after: AfterFailure) -> bool:
    not_started = after.finding.has_role(Role.NOT_STARTED) or after.finding.has_role(Role.REJECTED)
    steps = after.steps if not_started and reports_process_failure(after.finding) else []
    return len(steps) >= MANY_STEPS and after.extends_beyond(steps, FAR_BELOW)


def _reports_process_end(after: AfterFailure) -> bool:
    return reports_process_failure(after.finding)


def _rank_fell_silent(after: AfterFailure) -> bool:
    return _fell_silent(after.finding, after.facts)


def _passed_the_barrier(after: AfterFailure) -> bool:
    return after.says(after.facts.regexes.waits_for_ranks) and after.has(after.facts.waits_over)


def _refused_one_request(after: AfterFailure) -> bool:
    exception = after.finding.event.where is Where.EXCEPTION
    return (
        exception
        and after.has(after.facts.refusals, ANSWER_WITHIN)
        and not _begins_at_entry_point(after.finding, after.facts)
    )


def _pod_was_placed(after: AfterFailure) -> bool:
    return after.says(after.facts.regexes.waits_for_nodes) and after.has(after.facts.waits_over, POD_EVENTS_WITHIN)


def _trained_without_module(after: AfterFailure) -> bool:
    return _failed_import(after.finding) and len(after.steps) >= TWO_STEPS


def _nccl_retried(after: AfterFailure) -> bool:
    finding = after.finding
    if finding.event.source is not EventSource.COLLECTIVE or "NCCL WARN" not in finding.event.text:
        return False
    steps = _between(after.facts.progress, finding.position, after.end)
    return len(steps) >= FEW_STEPS and steps[0] < finding.last


def _other_program_continued(after: AfterFailure) -> bool:
    if not _ended_a_program(after.finding):
        return False
    done = after.has([*after.facts.good_ends, *after.facts.servers_up])
    return done or (len(after.late) >= FEW_STEPS and after.extends_beyond(after.late, BUFFERED_OUTPUT))


def _main_program_ended(after: AfterFailure) -> bool:
    return _ended_a_program(after.finding)


def _steps_before_next_failure(after: AfterFailure) -> bool:
    if after.until is None or not after.late:
        return False
    return after.extends_beyond(after.late, FAR_BELOW) or _among_steps(after)


def _next_failure_ended_it(after: AfterFailure) -> bool:
    return after.until is not None


def _logged_and_trained_on(after: AfterFailure) -> bool:
    # It was caught and logged, perhaps many times. It matters only that the run continued after the first time.
    steps = _between(after.facts.progress, after.finding.position, after.end)
    return _was_logged(after) and len(steps) >= TWO_STEPS


def _was_logged(after: AfterFailure) -> bool:
    return not after.finding.fatal and after.finding.event.where is Where.EXCEPTION


def _last_steps_show_it(after: AfterFailure) -> bool:
    return is_in_last_steps(after.finding, after.facts)


def _ended_well(after: AfterFailure) -> bool:
    return after.has(after.facts.good_ends)


def _shut_down_cleanly(after: AfterFailure) -> bool:
    return any(after.finding.last.down(CLEAN_UP_WITHIN) < place < after.end for place in after.facts.shutdowns)


def _line_among_steps(after: AfterFailure) -> bool:
    return _is_bare_line(after) and len(after.late) >= TWO_STEPS


def _is_bare_line(after: AfterFailure) -> bool:
    event = after.finding.event
    return event.where is Where.LINE and event.source is EventSource.MATCHED_LINE


def _trained_on(after: AfterFailure) -> bool:
    late = after.late
    return len(late) >= FEW_STEPS and (after.extends_beyond(late, FAR_BELOW) or len(late) > STEADY_PROGRESS)


def _among_steps(after: AfterFailure) -> bool:
    """Returns whether a single line is between many progress lines, such as the warning about a step that is
    repeated."""
    if not _is_bare_line(after) or len(after.late) < MANY_STEPS:
        return False
    position = after.finding.position
    return bool(_between(after.facts.progress, position.file_start, position))


# The order matters: the first rule that applies decides whether the run survived a finding.
SURVIVAL: tuple[Rule[AfterFailure], ...] = (
    Rule(
        "logger-could-not-write",
        _logger_could_not_write,
        "a logger failed to write a record, and the program continued",
        "logger 无法写出一条记录，程序继续运行",
    ),
    Rule(
        "started-after-all",
        _started_later,
        "the task started later, and many training steps follow",
        "任务后来还是启动了：之后有很多训练步",
    ),
    Rule(
        "ended-a-process",
        _reports_process_end,
        "the message itself reports the end of a process",
        "它本身说明有进程结束",
        sets_aside=False,
    ),
    Rule(
        "rank-fell-silent",
        _rank_fell_silent,
        "the ranks with this exception printed no training step after it",
        "抛出异常的 rank 之后再没有输出训练步",
        sets_aside=False,
    ),
    Rule("passed-the-barrier", _passed_the_barrier, "all ranks passed the barrier later", "之后通过了该 barrier"),
    Rule(
        "refused-one-request",
        _refused_one_request,
        "a server rejected one request and continued",
        "服务只拒绝了一个请求，随后继续运行",
    ),
    Rule("pod-was-placed", _pod_was_placed, "the pod was scheduled later", "pod 随后被调度"),
    Rule(
        "did-without-module",
        _trained_without_module,
        "the program trained without the missing module",
        "程序在缺少该模块的情况下继续训练",
    ),
    Rule(
        "nccl-took-another-way",
        _nccl_retried,
        "NCCL printed this warning between training steps and continued each time",
        "NCCL 在训练步之间多次警告，但每次都继续运行",
    ),
    Rule(
        "another-program-went-on",
        _other_program_continued,
        "another program in the log ended successfully or continued training",
        "日志中的另一个程序正常结束或继续训练",
    ),
    Rule(
        "main-program-ended",
        _main_program_ended,
        "an uncaught exception ended the main program",
        "未捕获的异常结束了主程序",
        sets_aside=False,
    ),
    Rule(
        "steps-before-next-failure",
        _steps_before_next_failure,
        "training continued until another failure stopped it",
        "训练继续进行，直到另一个失败使其结束",
    ),
    Rule(
        "next-failure-ended-it",
        _next_failure_ended_it,
        "no training step follows before a process ends",
        "它与进程结束之间没有训练步",
        sets_aside=False,
    ),
    Rule(
        "logged-and-trained-on",
        _logged_and_trained_on,
        "the exception was caught and logged, and training continued",
        "异常被捕获并记录，训练继续进行",
    ),
    Rule(
        "logged-at-the-end",
        _was_logged,
        "the exception was logged, and no training step follows",
        "异常被记录，之后没有训练步",
        sets_aside=False,
    ),
    Rule(
        "last-steps-show-it",
        _last_steps_show_it,
        "the last training steps still show it, whatever the run said at its end",
        "直到最后几个训练步仍是如此，无论运行结束时说了什么",
        sets_aside=False,
    ),
    Rule("ended-well", _ended_well, "the log reports a successful end later", "之后日志表明运行正常结束"),
    Rule("wound-up", _shut_down_cleanly, "the run shut down cleanly much later", "之后运行按正常流程收尾"),
    Rule(
        "line-among-steps",
        _line_among_steps,
        "it is a single line, and training steps follow",
        "它只是一行信息，之后仍有训练步",
    ),
    Rule("trained-on", _trained_on, "training continued for a long time", "之后训练持续了较长时间"),
)


Script = tuple[str, str | None]  # the script that raised the exception, and the log file that contains it


class LastFindingPerScript:
    """The position of the last finding of each script and set of ranks. It is computed once, because every finding asks
    for it and there can be thousands."""

    def __init__(self) -> None:
        self._last: dict[Script, dict[frozenset[int], Position]] = {}

    def add(self, finding: Finding, begins: Position) -> None:
        of_script = self._last.setdefault(_script_and_file(finding), {})
        of_script[finding.ranks] = max(begins, of_script.get(finding.ranks, begins))

    def restarted(self, finding: Finding) -> bool:
        """Returns whether the same script shows such a finding further below, if this finding ended the script and no
        other rank does."""
        of_script = self._last.get(_script_and_file(finding)) if _ended_a_program(finding) else None
        if of_script is None or not _is_whole(finding):
            return False
        mine = finding.ranks
        known = of_script if len(mine) > 1 else {frozenset(), mine} & of_script.keys()
        return any(of_script[ranks] > finding.last for ranks in known if ranks <= mine)


class Others:
    """What the findings that the run did not survive show together, gathered once. `own` are those that are separate
    failures, in the order of the log."""

    def __init__(self, live: Iterable[Finding], own: Iterable[Finding], facts: CollectedFacts) -> None:
        self.imports, self.restarts = LastFindingPerScript(), LastFindingPerScript()
        self._ended: dict[str, Position] = {}  # the position of the last exception that ended a script
        for finding in live:
            if _failed_import(finding):
                self.imports.add(finding, finding.position)
            if _ended_a_program(finding):
                script = _script(finding)
                self._ended[script] = max(finding.position, self._ended.get(script, START))
                if _is_separate_failure(finding):
                    place = finding.position
                    self.restarts.add(finding, Position(place.file, place.line - _max_traceback_lines(finding)))
        own = tuple(own)
        self._own = sorted(finding.position for finding in own)
        self._entered = max((each.position for each in own if _begins_at_entry_point(each, facts)), default=START)

    def first_below(self, last: Position) -> Position | None:
        """Returns the position of the next separate failure below that line, or None."""
        at = bisect_right(self._own, last)
        return self._own[at] if at < len(self._own) else None

    def uncaught_below(self, last: Position) -> bool:
        """Returns whether a failure below that line was not caught, as far as its traceback shows."""
        return self._entered > last

    def ended_below(self, script: str, last: Position) -> bool:
        """Returns whether an exception ended the script below that line."""
        return self._ended.get(script, START) > last


@dataclass(frozen=True, slots=True)
class FailureContext:
    """A finding, and the other findings that the run did not survive. `alone` means that only one process runs at a
    time, as in a file to which several jobs append their output one after the other."""

    finding: Finding
    others: Others
    facts: CollectedFacts
    alone: bool


def _caught_and_printed(company: FailureContext) -> bool:
    """Returns whether the program caught the exception, printed it and continued. The traceback must begin inside a
    function. Training must continue for many steps, or until a later finding that is a separate failure."""
    finding = company.finding
    if not _is_whole(finding) or _begins_at_entry_point(finding, company.facts) or _fell_silent(finding, company.facts):
        return False
    last, start, end = finding.last, finding.position.file_start, finding.position.file_end
    steps = _between(company.facts.progress, start, end)
    until = company.others.first_below(last) or last
    if len(_between(steps, last, until)) >= TWO_STEPS:
        return steps[0] < finding.position or company.others.uncaught_below(last)
    return len(_between(steps, last, end)) >= MANY_STEPS and steps[0] < finding.position


def _refused_its_arguments(company: FailureContext) -> bool:
    """Returns whether a script refused its arguments and exited, and got further in another run of the same log."""
    finding = company.finding
    refused = _REFUSED.match(finding.event.text) if finding.event.where is Where.LINE else None
    return refused is not None and company.others.ended_below(refused[1], finding.last)


def _restarted_without_modules(company: FailureContext) -> bool:
    """Returns whether the script was started again in the same log and could not even load its modules."""
    return not _failed_import(company.finding) and company.others.imports.restarted(company.finding)


def _restarted_and_failed(company: FailureContext) -> bool:
    """Returns whether the script was started again in the same log and failed again."""
    return company.alone and company.others.restarts.restarted(company.finding)


# These findings are set aside, although no step shows that the run survived them.
DISCOUNTED: tuple[Rule[FailureContext], ...] = (
    Rule(
        "caught-and-printed",
        _caught_and_printed,
        "the program caught and printed the exception, and training continued",
        "程序捕获并打印了该异常，训练继续进行",
    ),
    Rule(
        "refused-its-arguments",
        _refused_its_arguments,
        "the script rejected its arguments and was started again",
        "脚本因参数错误退出，之后重新启动",
    ),
    Rule(
        "restarted-without-modules",
        _restarted_without_modules,
        "the script was started again and could not load its modules",
        "脚本重新启动后无法加载模块",
    ),
    Rule(
        "restarted-and-failed",
        _restarted_and_failed,
        "the script was started again and failed again",
        "脚本重新启动后再次失败",
    ),
)


def discounting_rule(company: FailureContext) -> Rule[FailureContext] | None:
    """Returns the rule by which the finding does not count, or None if no rule applies and the finding stays."""
    return first_applying(DISCOUNTED, company)


def _is_separate_failure(finding: Finding) -> bool:
    """Returns whether an exception that ended a script is a separate failure that matches an entry."""
    if not _is_whole(finding) or finding.has_role(Role.CANCELLED):
        return False
    return finding.match is not None and not finding.has_role(Role.DISTRIBUTED_SYMPTOM)


def _max_traceback_lines(finding: Finding) -> int:
    """Returns the largest number of lines that its traceback can have. Lines further above were printed before the
    script was started again."""
    chain = finding.event.chain
    return sum(len(raised.frames) for raised in chain) * LINES_OF_FRAME + len(chain) * LINES_AROUND_TRACEBACK


def _script_and_file(finding: Finding) -> Script:
    """Returns the script that raised the exception, and the log file that contains it."""
    return _script(finding), finding.event.line.file


def _script(finding: Finding) -> str:
    raised = finding.event.exception
    return raised.frames[0].file.rpartition("/")[2] if raised is not None and raised.frames else ""


def is_in_last_steps(finding: Finding, facts: CollectedFacts) -> bool:
    """Returns whether the lines of the last training steps themselves show the failure, such as a loss of NaN. A last
    step without it may be the summary that follows the steps."""
    event, progress = finding.event, facts.progress
    if event.where is not Where.LINE or event.source is not EventSource.MATCHED_LINE or finding.count < TWO_STEPS:
        return False
    below = bisect_right(progress, finding.last)
    shown = below > 0 and progress[below - 1] == finding.last
    return shown and len(_between(progress, finding.last, finding.last.file_end)) <= TWO_STEPS


def is_stalled(finding: Finding, facts: CollectedFacts) -> bool:
    """Returns whether Horovod says that ranks are waiting for others, and no training step follows."""
    return STALLED in finding.event.text and all(place < finding.last for place in facts.progress)


def _between(places: list[Position], low: Position, high: Position) -> list[Position]:
    """Returns the positions between `low` and `high`. They are sorted."""
    return places[bisect_right(places, low) : bisect_left(places, high)]


def _is_whole(finding: Finding) -> bool:
    raised = finding.event.exception
    return (
        finding.event.source is EventSource.TRACEBACK
        and raised is not None
        and 0 < len(raised.frames) < WHOLE_TRACEBACK
    )


def _begins_at_entry_point(finding: Finding, facts: CollectedFacts) -> bool:
    """Returns whether the traceback begins where the traceback of an uncaught exception begins."""
    raised = finding.event.exception
    outermost = raised.frames[0].function if raised is not None and raised.frames else ""
    return outermost.startswith("<") or outermost in facts.regexes.entry_points


def _failed_import(finding: Finding) -> bool:
    """Returns whether an import failed while the program loaded its modules. No training can follow, unless the program
    works without the module."""
    raised = finding.event.exception
    if (
        finding.event.source not in (EventSource.TRACEBACK, EventSource.EXCEPTION_LINE)
        or raised is None
        or len(raised.frames) >= WHOLE_TRACEBACK
    ):
        return False
    if not raised.type.endswith(("ImportError", "ModuleNotFoundError")):
        return False
    return all(frame.function == "<module>" or frame.file.startswith("<frozen ") for frame in raised.frames)


def _ended_a_program(finding: Finding) -> bool:
    """Returns whether an exception left the user's main program uncaught, so that the outermost frame is the script
    itself."""
    raised = finding.event.exception
    if raised is None or not raised.frames or finding.event.source is not EventSource.TRACEBACK or not finding.fatal:
        return False
    outermost = raised.frames[0]
    return outermost.function == "<module>" and outermost.user_code


def _fell_silent(finding: Finding, facts: CollectedFacts) -> bool:
    """Returns whether the ranks that raised an uncaught exception printed progress before it and none after it."""
    if not finding.fatal or finding.event.source is not EventSource.TRACEBACK:
        return False
    last = [facts.last_progress(rank) for rank in finding.ranks]
    return bool(last) and all(place is not None and place < finding.last for place in last)
