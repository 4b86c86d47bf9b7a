"""Chooses the finding that explains the others, by ordered rules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torchtriage.causality.clean_up import clean_up
from torchtriage.causality.clock_offsets import report_time
from torchtriage.causality.consequences import unexplained
from torchtriage.causality.grades import Grade, grade
from torchtriage.causality.missing_ranks import earlier_cause_of_awaited
from torchtriage.causality.rules import Rule, first_applying
from torchtriage.causality.survived import (
    FailureContext,
    Others,
    discounting_rule,
    is_in_last_steps,
    is_stalled,
    reports_process_failure,
    survival,
)
from torchtriage.causality.thresholds import FEW_STEPS, PRINTED_BELOW_WARNING, PRINTED_LATE, SHORT_PASTE
from torchtriage.domain.entry import Role
from torchtriage.domain.event import EventSource, Where
from torchtriage.domain.line import Line
from torchtriage.facts.line_facts import LineRegexes
from torchtriage.facts.log_classifier import is_written_by_person
from torchtriage.lazy_regex import lazy_regex
from torchtriage.runs.findings import Finding, failing_findings
from torchtriage.runs.run_reading import Reading

# srun: error: c12: tasks 0-63: Exited with exit code 1 · slurmstepd: error: *** JOB 31 ON c12 CANCELLED AT …
_TASK_FAILED = lazy_regex(r"^srun: error: \S+: tasks? \S+: |\*\*\* (?:JOB|STEP) \S+ ON \S+ (?:CANCELLED|FAILED)")
_OWN_SIGNALS = frozenset({-4, -7, -8, -9, -11})  # entries that end no process because another one has exited
_BY_HAND = (None, "python")  # launchers in a log that shows no other launcher
_OF_A_WARNING = lazy_regex(  # lines below a finding that describe it further, or mean nothing
    r"\s|\W*$|.*\bNCCL INFO\b|(?:\[rank\d+\]:)?\s?(?:Exception raised from \w|frame #\d+: )"
)
# [ 9426.062972] INFO: task … · May 26 18:09:55 gpu-7 kernel: … · [Sat Apr  3 05:23:42 2021] watchdog: …
_KERNEL = lazy_regex(
    r"\W{0,3}\[ {0,6}(\d{1,9})\.\d{6}\] |\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}\] |[^\n]{0,60} kernel: "
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The root finding of a run, or None if nothing failed, and what became of the other findings."""

    root: Finding | None = None
    live: tuple[Finding, ...] = ()
    survived: tuple[Finding, ...] = ()
    roots: dict[int, Finding] = field(default_factory=dict)  # the root of each attempt
    gave_way: tuple[str, ...] = ()  # entries that an earlier exception of a worker preceded
    rules: tuple[AnyRule, ...] = ()  # rules that decided, in the order in which they were applied
    reported: tuple[Finding, ...] = ()  # findings in reports about this run's time and hosts, besides the root
    instead_of: Finding | None = None  # the root according to the log alone, if a report replaced it


@dataclass(frozen=True, slots=True)
class ChoosingRule:
    """A rule that prefers another finding to the strongest one. It returns that finding or None."""

    name: str
    finding: Callable[[Finding, Sequence[Finding], Reading], Finding | None]
    reason: str
    reason_zh: str
    sets_aside: bool = False


AnyRule = Rule[Any] | ChoosingRule


@dataclass(frozen=True, slots=True)
class _Root:
    """The root cause of one attempt, and the rules that preferred it to a stronger finding."""

    finding: Finding
    gave_way: tuple[str, ...] = ()
    rules: tuple[AnyRule, ...] = ()


def choose(reading: Reading) -> Choice:
    """Returns the root cause of a run over all its attempts. It is the root of the first attempt, unless that attempt
    names no cause. The findings must already have their entries and attempts."""
    findings = failing_findings(reading.findings)
    launchers = clean_up(findings, reading.facts.progress)
    live, aside = _without_survived([finding for finding in findings if finding not in launchers], reading)
    rules = (*launchers.values(), *aside.values())
    failure = first_applying(FAILED, _Remaining.of(live, reading))
    failed = failure is not None and not failure.sets_aside
    if not failed and not reading.extractors.elastic.attempt:
        return Choice(survived=(*aside, *live), rules=_once((*rules, failure)))
    attempts: dict[int, list[Finding]] = {}
    for finding in live:
        attempts.setdefault(finding.attempt, []).append(finding)
    roots = {attempt: _root_of(part, reading) for attempt, part in sorted(attempts.items())}
    root = _first_explaining_root(roots.values()) if failed else None
    return Choice(
        root.finding if root else None,
        tuple(live),
        tuple(aside),
        {attempt: one.finding for attempt, one in roots.items()},
        tuple(entry for one in roots.values() for entry in one.gave_way),
        _once((*rules, failure, *(root.rules if root else ()))),
    )


def with_attempts(reading: Reading) -> Reading:
    """Returns the reading with the attempts of its findings. After an agent gave up there is no further attempt, so
    whatever follows its last line belongs to the last one."""
    elastic = reading.extractors.elastic
    if not (elastic.given_up or not reading.facts.progress):
        return reading
    lasts = ((finding, elastic.last_at(finding.event.line)) for finding in reading.findings)
    findings = (
        finding if last is None or finding.attempt <= last else replace(finding, attempt=last)
        for finding, last in lasts
    )
    return replace(reading, findings=tuple(findings))


def _once(rules: Iterable[AnyRule | None]) -> tuple[AnyRule, ...]:
    return tuple(dict.fromkeys(rule for rule in rules if rule is not None))


def _without_survived(findings: list[Finding], reading: Reading) -> tuple[list[Finding], dict[Finding, Rule[Any]]]:
    """Returns the findings that the run did not survive, and the ones that it did, each of the latter with its rule."""
    terminal = sorted(finding.position for finding in findings if reports_process_failure(finding))
    decided = {finding: survival(finding, reading.facts, terminal) for finding in findings}
    aside: dict[Finding, Rule[Any]] = {each: rule for each, rule in decided.items() if rule and rule.sets_aside}
    live = [finding for finding in findings if finding not in aside]
    caught = _discounted(live, reading)
    live = [finding for finding in live if finding not in caught]
    has_uncaught = _has_uncaught(live)
    decided_logged = ((finding, first_applying(LOGGED_ONLY, finding, has_uncaught)) for finding in live)
    logged = {finding: rule for finding, rule in decided_logged if rule is not None}
    return [finding for finding in live if finding not in logged], aside | caught | logged


def _discounted(live: list[Finding], reading: Reading) -> dict[Finding, Rule[Any]]:
    """Returns the findings that do not count, although no step shows that the run survived them."""
    own = [finding for finding in live if grade(finding) >= Grade.LINE and not _is_about_peers(finding)]
    facts = reading.facts
    alone = not reading.ranks and facts.launcher in _BY_HAND and facts.world_size in (None, 1)
    others = Others(live, own, reading.facts)
    decided = ((each, discounting_rule(FailureContext(each, others, facts, alone))) for each in live)
    return {finding: rule for finding, rule in decided if rule is not None}


def _has_uncaught(live: list[Finding]) -> bool:
    """Returns whether an uncaught exception says why the run failed."""
    uncaught = (other for other in live if other.fatal and other.event.source is EventSource.TRACEBACK)
    return any(grade(other) >= Grade.UNNAMED for other in uncaught)


def _logged_beside_uncaught(finding: Finding, has_uncaught: bool) -> bool:
    """Returns whether an exception was only logged, while an uncaught one says why the run failed."""
    return has_uncaught and not finding.fatal and finding.event.where is Where.EXCEPTION


LOGGED_ONLY: tuple[Rule[Finding, bool], ...] = (
    Rule(
        "logged-beside-uncaught",
        _logged_beside_uncaught,
        "this exception was only logged, while another one was uncaught",
        "该异常只是被记录，而另一个异常未被捕获",
    ),
)


def _is_about_peers(finding: Finding) -> bool:
    return finding.has_role(Role.DISTRIBUTED_SYMPTOM)


@dataclass(frozen=True, slots=True)
class _Remaining:
    """The findings that the run did not survive, and everything else that was read."""

    live: list[Finding]
    reading: Reading
    strong: list[Finding]  # those that are more than warnings
    ended: list[Finding]  # those that say that a process ended, unless all of them belong to another program

    @classmethod
    def of(cls, live: list[Finding], reading: Reading) -> _Remaining:
        strong = [finding for finding in live if grade(finding) is not Grade.WEAK]
        ended = [finding for finding in strong if reports_process_failure(finding)]
        foreign = reading.facts.of_another_program and all(map(_any_program_reports, ended))
        return cls(live, reading, strong, [] if foreign else ended)

    @property
    def ended_well_below(self) -> bool:
        """Whether the log says below all failures that the run ended well."""
        well, strong = self.reading.facts.good_ends, self.strong
        return bool(well) and (not strong or well[-1] > max(finding.last for finding in strong))


def _ended_well_below_a_process(rest: _Remaining) -> bool:
    """Returns whether a process failed and the log still says below it that the run ended well. After an agent gave up,
    only another launch with its own steps can end well."""
    if not rest.ended or not rest.ended_well_below:
        return False
    steps, last = rest.reading.facts.progress, max(finding.last for finding in rest.strong)
    return not rest.reading.extractors.elastic.given_up or len(steps) - bisect_right(steps, last) >= FEW_STEPS


def _process_ended_badly(rest: _Remaining) -> bool:
    return bool(rest.ended)


def _last_steps_show_failure(rest: _Remaining) -> bool:
    return any(is_in_last_steps(finding, rest.reading.facts) for finding in rest.live)


def _ended_well(rest: _Remaining) -> bool:
    return rest.ended_well_below


def _something_failed(rest: _Remaining) -> bool:
    facts = rest.reading.facts
    own = not facts.of_another_program or rest.reading.is_training_log
    return bool(rest.strong) and (own or any(_fails_any_program(each, facts.regexes) for each in rest.strong))


def _is_stalled(rest: _Remaining) -> bool:
    return any(is_stalled(finding, rest.reading.facts) for finding in rest.live)


def _is_pasted_warning(rest: _Remaining) -> bool:
    # There are only warnings. They explain a paste without anything else, but never a run that trains.
    facts = rest.reading.facts
    short = rest.reading.last_position.line <= SHORT_PASTE
    return (
        bool(rest.live)
        and short
        and not (facts.progress or facts.other_program_lines or _continued_after(rest.live, rest.reading))
    )


# The order matters: the first rule that applies decides whether the run failed. If none applies, it did not fail.
FAILED: tuple[Rule[_Remaining], ...] = (
    Rule(
        "ended-well-below-a-process",
        _ended_well_below_a_process,
        "the log reports a successful end after the last failure",
        "日志在最后一个失败之后说明运行正常结束",
    ),
    Rule(
        "process-ended-badly",
        _process_ended_badly,
        "the log reports that a process failed",
        "日志说明有进程异常结束",
        sets_aside=False,
    ),
    Rule(
        "trained-in-vain",
        _last_steps_show_failure,
        "the last training steps still show the failure",
        "最后几个训练步仍显示该失败",
        sets_aside=False,
    ),
    Rule(
        "run-ended-well",
        _ended_well,
        "the log reports a successful end after the last failure",
        "日志在最后一个失败之后说明运行正常结束",
    ),
    Rule(
        "something-failed",
        _something_failed,
        "nothing shows that the run continued after it",
        "没有迹象表明此后运行仍在继续",
        sets_aside=False,
    ),
    Rule(
        "stalled",
        _is_stalled,
        "ranks are waiting for others, and no training step follows",
        "有 rank 在等待其他 rank，之后没有训练步",
        sets_aside=False,
    ),
    Rule(
        "warning-of-a-paste",
        _is_pasted_warning,
        "the pasted text contains only this warning",
        "这段短文本中只有该警告",
        sets_aside=False,
    ),
)


def _continued_after(warnings: list[Finding], reading: Reading) -> bool:
    """Returns whether a program printed more below its last warning. This does not count in a text that a person wrote,
    in the report of a tool, or below a message that the run hangs, because a program that hangs cannot say so
    itself."""
    if reading.reports_alone:
        return False
    hung = any(finding.has_role(Role.SLOW_OR_HUNG) for finding in warnings)
    last, paste = max(finding.last for finding in warnings), reading.paste or ()
    instants = {_kernel_second(line) for line in paste if line.position == last} - {None}
    rest = [line for line in paste if line.position > last and not _OF_A_WARNING.match(line.text)]
    below = [line for line in rest if _kernel_second(line) not in instants]
    return len(below) > PRINTED_BELOW_WARNING and not hung and not is_written_by_person(paste, reading.facts.regexes)


def from_kernel(line: Line) -> bool:
    """Returns whether the kernel of a host printed the line, as in dmesg and syslog."""
    return bool(_KERNEL.match(line.raw))


def _kernel_second(line: Line) -> str | None:
    """Returns the time, in whole seconds, at which the kernel printed the line, or None if another program wrote it.
    Lines of the same second, such as the registers and call trace below a message, belong together."""
    hit = _KERNEL.match(line.raw)
    return (hit[1] or line.time) if hit else None


def _any_program_reports(finding: Finding) -> bool:
    """Returns whether a shell, a runtime, a kernel or MPI reports that a process ended, and not which program it
    was."""
    return finding.event.source in (EventSource.PROCESS_EXIT, EventSource.LAUNCHER)


def _fails_any_program(finding: Finding, regexes: LineRegexes) -> bool:
    """Returns whether the finding says that a process failed, whatever program it ran. The traceback of a program that
    uses GPUs for something other than training does not count."""
    event = finding.event
    if event.source is EventSource.TRACEBACK:
        return not any(regexes.gpu_programs.matches(frame.file) for raised in event.chain for frame in raised.frames)
    return event.source is EventSource.SLURM and bool(_TASK_FAILED.search(event.text))


def _root_of(findings: list[Finding], reading: Reading) -> _Root:
    """Returns the root cause of one attempt."""
    free = unexplained(findings) or findings
    best = min(free, key=lambda finding: (-grade(finding), finding.position))
    root = _Root(best)
    if best.match is not None and grade(best) >= Grade.UNNAMED:
        earlier = _preferred(EARLIER_FAILURES, free, best)
        if earlier is not None:
            root = replace(earlier, gave_way=(best.match.entry.id,))
    behind = _preferred(LATE_OUTPUT, free, root.finding)
    if behind is not None:
        root = replace(root, finding=behind.finding, rules=(*root.rules, *behind.rules))
    root = replace(root, finding=_most_informative(root.finding, findings, reading))
    for rule in BY_MISSING_RANK:
        before = rule.finding(root.finding, findings, reading)
        if before is not None:
            return replace(root, finding=before, rules=(*root.rules, rule))
    return root


def _preferred(rules: tuple[Rule[Finding, Finding], ...], findings: list[Finding], best: Finding) -> _Root | None:
    """Returns the first finding that a rule prefers to the strongest one, with that rule, or None."""
    decided = ((finding, first_applying(rules, finding, best)) for finding in findings)
    roots = [_Root(finding, rules=(rule,)) for finding, rule in decided if rule is not None]
    return min(roots, key=lambda root: root.finding.position, default=None)


def _missing_before_teardown(finding: Finding, best: Finding) -> bool:
    """Returns whether ranks timed out waiting before somebody ended the job."""
    above = finding.position < best.position and finding.has_role(Role.TIMEOUT) and best.has_role(Role.TEARDOWN)
    return above and finding.fatal


def _worker_failed_before_peers(finding: Finding, best: Finding) -> bool:
    return _is_own_traceback_above(finding, best) and _is_about_peers(best)


def _other_rank_failed_before(finding: Finding, best: Finding) -> bool:
    """Returns whether both are mistakes in the program, on different ranks."""
    if not _is_own_traceback_above(finding, best) or best.match is None or not _on_different_ranks(finding, best):
        return False
    return best.match.entry.owner == "user" and best.event.where is Where.EXCEPTION


def _is_own_traceback_above(finding: Finding, best: Finding) -> bool:
    """Returns whether this is a worker's own uncaught exception above the strongest finding."""
    if finding.has_role(Role.TIMEOUT) and best.has_role(Role.TEARDOWN):
        return False
    own = grade(finding) >= Grade.UNNAMED and finding.event.source is EventSource.TRACEBACK
    return own and finding.position < best.position


def _lost_peer_died_of_signal(finding: Finding, best: Finding) -> bool:
    exit_code = finding.event.exit_code if finding.event.where is Where.EXIT else None
    return exit_code in _OWN_SIGNALS and _is_printed_later(finding, best)


def _lost_peer_raised(finding: Finding, best: Finding) -> bool:
    """Returns whether this is the uncaught exception that ended the lost peer."""
    uncaught = finding.event.source is EventSource.TRACEBACK and finding.fatal and grade(finding) >= Grade.UNNAMED
    if not uncaught or not _is_printed_later(finding, best):
        return False
    return not _is_about_peers(finding) and not (finding.match is not None and finding.match.entry.area == "user")


def _is_printed_later(finding: Finding, best: Finding) -> bool:
    """Returns whether `best` is from ranks that lost a peer, and the finding is a little below it on other ranks. The
    output of several ranks can appear in any order."""
    sources = (EventSource.TRACEBACK, EventSource.COLLECTIVE)
    if not best.has_role(Role.POSSIBLE_PEER_LOSS) or best.event.source not in sources:
        return False
    return 0 < finding.position.lines_below(best.position) < PRINTED_LATE and _on_different_ranks(finding, best)


EARLIER_FAILURES: tuple[Rule[Finding, Finding], ...] = (
    Rule(
        "missing-before-teardown",
        _missing_before_teardown,
        "ranks timed out before the job was stopped",
        "在任务被终止之前，已有 rank 等待超时",
    ),
    Rule(
        "worker-failed-before-peers",
        _worker_failed_before_peers,
        "a worker raised this exception before other ranks lost their peer",
        "该 worker 先抛出异常，其他 rank 随后失去连接",
    ),
    Rule(
        "other-rank-failed-before",
        _other_rank_failed_before,
        "another rank raised an exception earlier",
        "另一个 rank 更早抛出异常",
    ),
)
LATE_OUTPUT: tuple[Rule[Finding, Finding], ...] = (
    Rule(
        "lost-peer-died-of-signal",
        _lost_peer_died_of_signal,
        "the peer that the others lost was killed by a signal",
        "其他 rank 失去的进程是被信号结束的",
    ),
    Rule(
        "lost-peer-raised",
        _lost_peer_raised,
        "the peer that the others lost raised this exception, but its output appeared later",
        "其他 rank 失去的进程抛出了该异常，只是输出较晚",
    ),
)
BY_MISSING_RANK = (
    ChoosingRule(
        "missing-rank-said-it",
        earlier_cause_of_awaited,
        "the rank that the others waited for printed this error first",
        "其他 rank 所等待的那个 rank 之前输出了它",
    ),
)


def _on_different_ranks(one: Finding, other: Finding) -> bool:
    """Returns whether different ranks show the two findings, as far as the log names ranks."""
    if one.ranks and other.ranks:
        return not one.ranks & other.ranks
    local = one.event.local_rank, other.event.local_rank
    return None not in local and local[0] != local[1]


def _most_informative(best: Finding, findings: list[Finding], reading: Reading) -> Finding:
    """Returns, out of the findings with the same entry, the one that says most: a traceback rather than a single line,
    and of the exit statuses in a report the one that was observed first."""
    if best.entry is None or best.event.where is Where.EXCEPTION:
        return best
    same = [other for other in findings if other.entry == best.entry and grade(other) >= min(grade(best), Grade.ECHO)]
    if best.event.where is Where.LINE:
        telling = [other for other in same if other.event.chain or other.event.source is EventSource.PROCESS_EXIT]
    else:
        first = best.event.source is EventSource.OTHER_FAILURE
        telling = [other for other in same if first and other.event.source is EventSource.FIRST_FAILURE]
        telling.sort(key=lambda other: (report_time(other.event, reading), other.position))
    return telling[0] if telling else best


def _first_explaining_root(roots: Iterable[_Root]) -> _Root | None:
    """Returns the root of the first attempt that has more than an echo of a failure. If none has, returns the first
    attempt's."""
    roots = tuple(roots)
    return next((root for root in roots if grade(root.finding) > Grade.ECHO), next(iter(roots), None))
