"""Decides whether a report of a tool names a better root cause than the log itself.

Reports are the kernel log, records of a scheduler, the state of a GPU and similar output. They say why a process died,
while the log often shows only the consequences. So a report comes before symptoms in the log, but not before an error
of the program itself that it does not explain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from torchtriage.causality.clock_offsets import ahead
from torchtriage.causality.consequences import explains
from torchtriage.causality.ending import ending
from torchtriage.causality.grades import Grade, grade
from torchtriage.causality.root_cause import Choice
from torchtriage.causality.rules import Rule, first_applying
from torchtriage.causality.thresholds import CLOCKS_APART
from torchtriage.domain.entry import Kind, Role
from torchtriage.domain.host import host_name
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.file_types import FileForm
from torchtriage.reading.prefixes.times import seconds_between
from torchtriage.runs.findings import Finding, failing_findings
from torchtriage.runs.run_reading import Reading

_OF_THE_JOB = frozenset({FileForm.SLURM_JOB, FileForm.KUBERNETES})  # forms of reports that are only about this run
_ZONE = lazy_regex(r"(?:Z|[+-]\d\d:?\d\d)$")
_MAX_UTC_OFFSET = 14 * 3600.0  # seconds; the largest offset of a time zone from UTC
_OF_THE_USER = "user"  # the owner of entries about errors in the user's program


@dataclass(frozen=True)
class ReportedFailure:
    """A finding from a report, and the root cause that the log shows, which is None if nothing failed in the log."""

    report: Finding
    root: Finding | None
    reading: Reading

    @property
    def of_the_job(self) -> bool:
        """Whether the report is a scheduler's record of this job."""
        return self.reading.forms.get(self.report.position.file) in _OF_THE_JOB

    @property
    def after_the_failure(self) -> Seconds | None:
        """The seconds from the failure in the log to the report, corrected by the known clock differences of their
        hosts. None if the times cannot be compared."""
        root, report = self.root, self.report.event
        seconds = self._between(_time_of(root), report.time) if root is not None else None
        if root is None or seconds is None:
            return seconds
        own = ahead(report, self.reading) if not self.of_the_job else 0.0  # A scheduler has a clock of its own.
        shift = ahead(root.event, self.reading) - own
        return Seconds(seconds.least + shift, seconds.most + shift)

    @property
    def before_the_run(self) -> Seconds | None:
        """The seconds from the report to the first line of the run."""
        return self._between(self.report.event.time, self._run[0])

    @property
    def before_the_end(self) -> Seconds | None:
        """The seconds from the report to the last line of the run."""
        return self._between(self.report.event.time, self._run[1])

    @property
    def _run(self) -> tuple[str | None, str | None]:
        return self.reading.facts.span.of(self.report.event.time)

    def _between(self, first: str | None, last: str | None) -> Seconds | None:
        dated = self.reading.facts.span.dated
        return between(dated(first), dated(last))


class Seconds(NamedTuple):
    """The minimum and maximum number of seconds between two times. They differ if only one of the times has an offset
    from UTC."""

    least: float
    most: float


def between(first: str | None, last: str | None) -> Seconds | None:
    """Returns the seconds from one time to another, or None if they cannot be compared.

    Times in logs often have no offset. Such a time is taken as local time of the host whose kernel prints an offset, or
    as UTC, as in most containers. If the other time is in UTC, it may be the local time of any place.
    """
    if first is None or last is None:
        return None
    exact = seconds_between(first, last)
    if exact is not None:
        return Seconds(exact, exact)
    zones = _ZONE.search(first), _ZONE.search(last)
    if (zones[0] is None) == (zones[1] is None):
        return None
    as_clock = seconds_between(_ZONE.sub("", first), _ZONE.sub("", last))
    if as_clock is None:
        return None
    offset = _offset(next(zone[0] for zone in zones if zone is not None))
    if offset is None:
        return Seconds(as_clock - _MAX_UTC_OFFSET, as_clock + _MAX_UTC_OFFSET)
    as_utc = as_clock + (offset if zones[0] is not None else -offset)
    return Seconds(min(as_clock, as_utc), max(as_clock, as_utc))


def _offset(zone: str) -> float | None:
    """Returns how many seconds a clock with this offset is ahead of UTC, or None for UTC itself."""
    if zone == "Z":
        return None
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return -60.0 * minutes if zone[0] == "-" else 60.0 * minutes


def is_state(finding: Finding, reading: Reading) -> bool:
    """Returns whether a report may be older than the run: it shows a state without saying when it began, or the times
    cannot be compared."""
    form = reading.forms.get(finding.position.file)
    undated = finding.event.time is None or ReportedFailure(finding, None, reading).before_the_run is None
    return form is not None and form not in _OF_THE_JOB and undated


def with_reports(choice: Choice, reading: Reading) -> Choice:
    """Returns the choice, with a report as its root cause if that report names the cause of what the log shows."""
    reports = [each for each in failing_findings(reading.report_findings) if each.match is not None]
    if not reports:
        return choice
    aside: dict[Finding, Rule[ReportedFailure]] = {}
    open_: list[Finding] = []
    for report in reports:
        rule = first_applying(IGNORED_REPORTS, ReportedFailure(report, choice.root, reading))
        if rule is None:
            open_.append(report)
        else:
            aside[report] = rule
    rules = dict.fromkeys((*choice.rules, *aside.values()))
    best = _best(open_, choice, reading)
    if best is None:
        return replace(choice, rules=tuple(rules), reported=tuple(open_))
    report, rule = best
    others = tuple(each for each in open_ if each is not report)
    roots = {**choice.roots, (choice.root.attempt if choice.root else 0): report}
    return replace(
        choice,
        root=report,
        live=(*choice.live, *(each for each in (report, *others) if each.entry == report.entry)),
        roots=roots,
        rules=(*rules, rule),
        reported=others,
        instead_of=choice.root,
    )


def _best(reports: Iterable[Finding], choice: Choice, reading: Reading) -> tuple[Finding, Rule[ReportedFailure]] | None:
    """Returns the report that names the cause, and the rule that says so. The strongest report wins; among equals, the
    earliest that no other report explains."""
    decided = [
        (report, rule)
        for report in reports
        if (rule := first_applying(PREFERRED_REPORTS, ReportedFailure(report, choice.root, reading))) is not None
    ]
    free = [
        each for each in decided if not any(explains(other, each[0]) for other, _ in decided if other is not each[0])
    ]
    return min(
        free or decided, key=lambda each: (-grade(each[0]), each[0].event.time or "~", each[0].position), default=None
    )


def _time_of(finding: Finding) -> str | None:
    return finding.event.time or finding.around[0] or finding.around[1]


def _recorded_before_the_run(case: ReportedFailure) -> bool:
    seconds = case.before_the_run
    return seconds is not None and seconds.least > CLOCKS_APART


def _recorded_after_the_failure(case: ReportedFailure) -> bool:
    seconds = case.after_the_failure
    return seconds is not None and seconds.least > CLOCKS_APART and not case.of_the_job


def _of_another_host(case: ReportedFailure) -> bool:
    """Returns whether the report is about another host than the failure. Symptoms do not count, because their cause may
    be on another host."""
    root = case.root
    if root is None or root.has_role(Role.DISTRIBUTED_SYMPTOM) or root.has_role(Role.TIMEOUT) or _is_symptom(root):
        return False
    host, other = host_name(root.event.host), host_name(case.report.event.host)
    return host is not None and other is not None and _without_domain(host) != _without_domain(other)


def _without_domain(host: str) -> str:
    """Returns the name of a host without its domain, because tools differ in whether they print it."""
    return host.split(".")[0].lower() if not host[:1].isdigit() else host


IGNORED_REPORTS: tuple[Rule[ReportedFailure], ...] = (
    Rule(
        "recorded-before-the-run",
        _recorded_before_the_run,
        "a tool report is from before the run started",
        "日志之外的某条记录早于本次运行的开始时间",
    ),
    Rule(
        "recorded-after-the-failure",
        _recorded_after_the_failure,
        "a tool report is from after the failure",
        "日志之外的某条记录晚于失败时刻",
    ),
    Rule(
        "of-another-host",
        _of_another_host,
        "a tool report is about another host than the one that failed",
        "日志之外的某条记录来自另一台主机，而不是失败的主机",
    ),
)


def _names_more_specific_cause(case: ReportedFailure) -> bool:
    """Returns whether the report names the same cause, while the log shows only how the process ended."""
    root = case.root
    return root is not None and root.entry == case.report.entry and grade(case.report) > grade(root)


def _explains_failure(case: ReportedFailure) -> bool:
    root = case.root
    return root is not None and grade(case.report) > Grade.WEAK and explains(case.report, root)


def _host_failed_first(case: ReportedFailure) -> bool:
    """Returns whether a host reported its failure before anything failed in the log, and no entry names a cause in the
    log. After a GPU or disk is lost, a program can fail with any message."""
    root, seconds = case.root, case.after_the_failure
    if root is None or seconds is None or seconds.least > CLOCKS_APART or not _is_cause(case.report):
        return False
    of_the_program = root.match is not None and root.match.entry.owner == _OF_THE_USER  # no GPU makes a KeyError
    return grade(root) <= Grade.EXIT and not of_the_program and not explains(root, case.report)


def _log_shows_only_symptoms(case: ReportedFailure) -> bool:
    """Returns whether the log shows only consequences of a failure elsewhere."""
    root, report = case.root, case.report
    if root is None or report.match is None or explains(root, report) or root.entry == report.entry:
        return False
    if report.match.entry.kind is not Kind.CAUSE or not _is_symptom(root):
        return False
    return not case.of_the_job or _ended_with_it(case, root)


def _ended_with_it(case: ReportedFailure, root: Finding) -> bool:
    """Returns whether the scheduler ended the job at the time of the failure. A job that hung for minutes after a
    failure, or a rank that waited for minutes, does not count."""
    seconds = case.after_the_failure
    return not root.has_role(Role.TIMEOUT) and (seconds is None or seconds.least <= CLOCKS_APART)


def _ended_the_job(case: ReportedFailure) -> bool:
    """Returns whether nothing failed in the log, and a scheduler's record says how the job ended."""
    return (
        case.root is None and case.of_the_job and grade(case.report) > Grade.WEAK and not case.reading.facts.good_ends
    )


def _stopped_the_run(case: ReportedFailure) -> bool:
    """Returns whether the log stops without a failure or a successful end, and the kernel reported a failure just
    before."""
    if case.root is not None or case.of_the_job or not _is_cause(case.report):
        return False
    seconds = case.before_the_end
    if seconds is not None:
        near = seconds.least <= CLOCKS_APART and seconds.most >= -CLOCKS_APART
        return near and not case.reading.facts.good_ends
    return not ending(case.reading, {}, ()).good


PREFERRED_REPORTS: tuple[Rule[ReportedFailure], ...] = (
    Rule(
        "report-tells-more",
        _names_more_specific_cause,
        "a tool report names the same cause, while the log shows only how the process ended",
        "日志之外的记录给出同一原因，而日志只说明了进程如何结束",
        sets_aside=False,
    ),
    Rule(
        "report-explains-failure",
        _explains_failure,
        "a tool report names a cause that explains the failure in the log",
        "日志之外的记录给出了原因，日志中的失败是它的后果",
        sets_aside=False,
    ),
    Rule(
        "host-failed-first",
        _host_failed_first,
        "the host reported this failure before anything failed in the log",
        "在日志出现任何失败之前，主机已报告了该故障",
        sets_aside=False,
    ),
    Rule(
        "report-beside-symptoms",
        _log_shows_only_symptoms,
        "the log shows only consequences, while a tool report names a cause",
        "日志中只有后果，而日志之外的记录给出了原因",
        sets_aside=False,
    ),
    Rule(
        "record-of-the-job",
        _ended_the_job,
        "the log shows no failure, but the scheduler's record says how the job ended",
        "日志中没有失败，而调度器的记录说明了任务如何结束",
        sets_aside=False,
    ),
    Rule(
        "stopped-the-run",
        _stopped_the_run,
        "the log stops without a failure, but a tool report names one",
        "日志中断且未显示失败，而日志之外的记录给出了失败",
        sets_aside=False,
    ),
)


def _is_cause(report: Finding) -> bool:
    return grade(report) is Grade.CAUSE


def _is_symptom(root: Finding) -> bool:
    """Returns whether a finding shows only that a peer was lost, that ranks waited, or how a process ended."""
    roles = (Role.TIMEOUT, Role.PEER_LOSS, Role.PROCESS_END, Role.LAUNCHER_ECHO)
    return any(map(root.has_role, roles)) or grade(root) <= Grade.WITNESS
