"""Finds where a failure happened (rank, local rank and host), from the failure itself or from other lines of the
log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torchtriage.causality.clock_offsets import report_time
from torchtriage.causality.fingerprint import raised_of
from torchtriage.causality.grades import Grade, grade
from torchtriage.causality.missing_ranks import awaited, rank_timeouts_point_to
from torchtriage.causality.root_cause import Choice
from torchtriage.causality.thresholds import MAX_PROCESSES_PER_HOST, OWN_WORDS
from torchtriage.domain.entry import Kind, Role
from torchtriage.domain.event import Event, EventSource, Where
from torchtriage.lazy_regex import lazy_regex
from torchtriage.runs.findings import Finding
from torchtriage.runs.run_reading import Reading

RankAndHost = tuple[int | None, int | None, str | None]
# Ranks as people and their loggers write them inside a line: [rank3], (rank=3), RANK:3; not the rank of a memory
# module.
_WRITTEN = lazy_regex(
    r"(?i)(?<!_mask:\w)[\[( ]\[?rank[ =:]{0,2}(\d{1,6})(?:[\]):,](?!:? Ranks? \d)|\.$)|\bon rank (\d{1,6})$"
    r"|\[(\d{1,6})\] is setting up NCCL communicator|\bprocess (\d{1,6}) terminated with (?:signal|exit)"
)
_GUARD = lazy_regex(r"\bif (?:[\w.]{1,60}\.|global_|self\.)?rank == (\d{1,6})\b(?!.*\belse (?!None\b))")
# Schedulers and kernels that ended a process because of its memory do not name its rank.
_FOR_MEMORY = lazy_regex(r"(?i)oom[-_ ]?kill|out of memory: killed")
# Before torch 2.2, the agent checked its workers only every five seconds.
_SELDOM = lazy_regex(r"torch\.distributed\.elastic\.multiprocessing\.api(?:: \[ERROR\] |:)failed")
# Received 15 death signal, shutting down workers · SignalException: Process 71 got signal: 15
_TO_AGENT = lazy_regex(
    r"Received \S+ death signal, shutting down|Process \d+ got signal|closing signal (?:Signals\.)?SIG(?:INT|HUP)\b"
)
# srun: error: gpu-3: task 3: Exited with exit code 1 · srun: error: gpu-3: task 3: Segmentation fault (core dumped)
_LEFT = lazy_regex(
    r"^srun: error: \S+: tasks? [\d,-]+: (?:Exited with exit code \d|Aborted|Segmentation|Bus error|Illegal|Floating)"
)
_TASK_KILLED = lazy_regex(r"^srun: error: \S+: task \d+: Out Of Memory")
# ray.exceptions.RayTaskError(KeyError): ray::train() (pid=71, ip=10.0.0.3): the exception inside was raised on that
# host.
_CARRIED_FROM = lazy_regex(r"\bray::[^\n]{1,200}?\(pid=\d+, ip=([\w.:-]+)")
_WARNED = "NCCL WARN "
_WHOLE_RUN = (EventSource.LAUNCHER, EventSource.SLURM)  # sources that report on all processes


@dataclass(frozen=True, slots=True)
class UnplacedFailure:
    """A finding whose rank is unknown, and everything that may name it. `own` is the finding's own local rank."""

    finding: Finding
    choice: Choice
    reading: Reading
    own: int | None = None


@dataclass(frozen=True, slots=True)
class RankRule:
    """A rule that finds the rank of a finding that names none. The first rule that returns a rank decides."""

    name: str
    rank: Callable[[UnplacedFailure], int | None]
    reason: str
    reason_zh: str
    whole_run: bool = False  # whether the rule also applies if a launcher or scheduler reports on all processes


def place_of(
    finding: Finding, choice: Choice, reading: Reading, captured: str | None
) -> tuple[RankAndHost, RankRule | None]:
    """Returns the rank, local rank and host of a finding, each None if unknown, and the rule that found the rank, or
    None if the finding names it itself."""
    case = UnplacedFailure(finding, choice, reading)
    if finding in reading.report_findings:
        return _place_of_report(finding, choice, reading, captured)
    if finding.event.source is EventSource.EVIDENCE:
        rank = finding.event.rank
        host = finding.event.host or (reading.facts.host_of.get(rank) if rank is not None else None)
        return (rank, None, host), None
    if _waited(case):
        rank, rule = _by_rules(TIMEOUT_RANK_RULES, case)
        return (rank, None, None), rule
    alone = awaited(finding, choice.live, reading) if captured is None else None
    if alone is not None:
        return (alone, None, reading.facts.host_of.get(alone)), None
    if _agent_was_signalled(finding, choice):
        host = finding.event.host
        return (None, None, _only_host(reading) if host in (None, "localhost") else host), None
    rank, local, host = _place_of_finding(finding, choice, reading, captured)
    rule = None
    if rank is None:
        rank, rule = _by_rules(RANKS, replace(case, own=local))
        if (rule is None or rule.name in _ASKED_LAST) and (left := _first_exited_task(case)) is not None:
            host = host or left.host  # Even if several tasks exited together, they did so on a host that srun names.
    if rank is not None and (host is None or local is None):
        exits = [other.event for other in choice.live if other.event.where is Where.EXIT and other.event.rank == rank]
        host = host or next((other.host for other in exits if other.host), None)
        local = next((other.local_rank for other in exits), None) if local is None else local
        host = host or reading.facts.host_of.get(rank)
    host = _host_with_warning(finding, choice) if host in (None, "localhost") else host
    return (rank, local, _only_host(reading) if host in (None, "localhost") else host), rule


def _place_of_report(
    finding: Finding, choice: Choice, reading: Reading, captured: str | None
) -> tuple[RankAndHost, RankRule | None]:
    """Returns the host of what a tool reports; tools do not know ranks. If the failure in the log has the same cause,
    its place is returned too."""
    own, host = choice.instead_of, finding.event.host
    if own is not None and own.entry == finding.entry:
        (rank, local, place), rule = place_of(own, choice, reading, captured)
        return (rank, local, host or place), rule
    return (None, None, host or _only_host(reading)), None


def _by_rules(rules: Sequence[RankRule], case: UnplacedFailure) -> tuple[int | None, RankRule | None]:
    whole_run = case.finding.event.source in _WHOLE_RUN
    for rule in rules:
        if (rule.whole_run or not whole_run) and (rank := rule.rank(case)) is not None:
            return rank, rule
    return None, None


def _waited(case: UnplacedFailure) -> bool:
    """Returns whether the finding says that ranks timed out waiting. Such a rank did not fail first."""
    finding = case.finding
    echo = finding.match is not None and finding.match.entry.kind is Kind.CONSEQUENCE
    waited = echo and bool(finding.ranks) and finding.ranks <= case.reading.extractors.collectives.timed_out
    return waited or finding.event.source is EventSource.COLLECTIVE_MISMATCH


def _first_exited_task(case: UnplacedFailure) -> Event | None:
    """Returns srun's message about the task that exited first, if its tasks are the ranks."""
    of_a_task = case.finding.event.source not in _WHOLE_RUN or case.finding.has_role(Role.NOT_STARTED)
    return _task(case.choice, case.finding) if of_a_task and not _has_launcher_agent(case.reading) else None


def _same_on_rank(case: UnplacedFailure) -> int | None:
    return min(case.finding.ranks) if len(case.finding.ranks) == 1 else None


def _by_communicator(case: UnplacedFailure) -> int | None:
    return case.reading.extractors.nccl.rank_of(case.finding.event.text, case.reading.facts.world_size)


def _local_is_rank(case: UnplacedFailure) -> int | None:
    return case.own if case.own is not None and _first_host(case.finding, case.reading) else None


def _rank_of_exited_task(case: UnplacedFailure) -> int | None:
    left = _first_exited_task(case)
    return left.rank if left is not None else None


def _killed_for_memory(case: UnplacedFailure) -> int | None:
    finding = case.finding
    return _killed(case.choice, finding.attempt) if _FOR_MEMORY.search(finding.event.text) else None


def _agent_was_signalled(finding: Finding, choice: Choice) -> bool:
    """Returns whether the failure is a signal that the launcher's agent received, so that no rank failed first."""
    if not finding.has_role(Role.WHOLE_JOB):
        return False
    same = (other for other in choice.live if other.attempt == finding.attempt)
    return any(_TO_AGENT.search(other.event.text) for other in same)


def _killed(choice: Choice, attempt: int) -> int | None:
    """Returns the only rank that SIGKILL ended, or None."""
    exits = [other for other in choice.live if other.attempt == attempt and other.event.where is Where.EXIT]
    killed = {rank for other in exits if other.event.exit_code == -9 for rank in {other.event.rank, *other.ranks}}
    killed |= {other.event.rank for other in choice.live if _TASK_KILLED.search(other.event.text)}
    killed.discard(None)  # reported by the agent, which knows only local ranks
    return killed.pop() if len(killed) == 1 else None


def _task(choice: Choice, finding: Finding) -> Event | None:
    """Returns srun's message about the task that exited first. Its rank is None if several tasks exited together."""
    same = [other for other in choice.live if other.attempt == finding.attempt]
    left = (other.event for other in same if other.event.source is EventSource.SLURM and _LEFT.search(other.event.text))
    return min(left, key=lambda event: event.line.position, default=None)


def _has_launcher_agent(reading: Reading) -> bool:
    """Returns whether a launcher started the workers, so that the tasks that srun started are not the ranks."""
    return reading.extractors.elastic.attempt > 0 or reading.facts.launcher not in ("srun", "python", None)


def _place_of_finding(finding: Finding, choice: Choice, reading: Reading, captured: str | None) -> RankAndHost:
    """Returns the place that the message names, else the event's own, else the place of the exit status that
    followed."""
    event = finding.event
    rank, local, host = event.rank, event.local_rank, _host_of_wrapper(finding, choice) or event.host
    if captured is not None and captured.isdecimal() and len(captured) < 7:
        rank, local = int(captured), None if int(captured) != rank else local
    elif not (finding.ranks or rank is not None) or event.where is Where.EXIT:
        exit_event = _exit_of(finding, choice, reading)
        # The launcher's own exception is about all processes; the report below it names one.
        named = (
            exit_event is not None
            and exit_event.source is EventSource.FIRST_FAILURE
            and event.source is EventSource.LAUNCHER
        )
        if exit_event is not None and (named or event.source not in _WHOLE_RUN):
            # On a single host, the local rank is the rank.
            rank = exit_event.local_rank if exit_event.rank is None and not exit_event.line.node else exit_event.rank
            local, host = exit_event.local_rank, host or exit_event.host
    return rank, local, host


def _exit_of(finding: Finding, choice: Choice, reading: Reading) -> Event | None:
    """Returns the exit status that belongs to a finding without a rank: one of the same entry, else the first observed
    one."""
    exits = [other for other in choice.live if other.attempt == finding.attempt and other.event.where is Where.EXIT]
    same = [other.event for other in exits if other.entry == finding.entry]
    local, node, file = finding.event.local_rank, finding.event.line.node, finding.event.line.file
    exits = [other for other in exits if other.event.line.node == node] or exits
    exits = [other for other in exits if other.event.line.file == file] or exits
    events = same or [other.event for other in exits if local is None or other.event.local_rank == local]
    order = (EventSource.FIRST_FAILURE, EventSource.PROCESS_EXIT, EventSource.ELASTIC_AGENT, EventSource.OTHER_FAILURE)
    known = [event for event in events if event.rank is not None or event.source is EventSource.ELASTIC_AGENT]
    if not same and _ended_together(known) and any(_lost_a_peer(other, finding) for other in choice.live):
        return None
    return min(known, key=lambda event: (order.index(event.source), report_time(event, reading)), default=None)


def _ended_together(exits: list[Event]) -> bool:
    """Returns whether the agent found several ranks that had ended in the same way. Then the first in its report is
    only the one that it checked first."""
    seldom = any(_SELDOM.search(event.line.text) for event in exits if event.source is EventSource.ELASTIC_AGENT)
    ends = [(event.exit_code, event.time) for event in exits if event.rank is not None]
    return seldom and len(ends) > len(set(ends))


def _lost_a_peer(other: Finding, finding: Finding) -> bool:
    """Returns whether another exception of the same attempt is from a rank that lost the failing one."""
    alike = other.attempt == finding.attempt and other.entry != finding.entry
    return alike and other.event.source is EventSource.TRACEBACK and grade(other) is Grade.ECHO


def _rank_with_same_cause(finding: Finding, choice: Choice) -> int | None:
    """Returns the only rank that shows the same cause in other words, such as an exception that quotes NCCL's own
    line."""
    if finding.match is None or finding.match.entry.kind is not Kind.CAUSE or finding.match.broad:
        return None
    ranks = {rank for other in _same_failure(finding, choice) for rank in other.ranks}
    return ranks.pop() if len(ranks) == 1 else None


def _host_with_warning(finding: Finding, choice: Choice) -> str | None:
    """Returns the only host on which NCCL printed a warning about the same failure as a rank's exception, or None."""
    if finding.event.where is not Where.EXCEPTION or finding.entry is None:
        return None
    hosts = {host for other in _same_failure(finding, choice) if _WARNED in other.event.text for host in other.hosts}
    return hosts.pop() if len(hosts) == 1 else None


def _same_failure(finding: Finding, choice: Choice) -> list[Finding]:
    """Returns the findings about the same failure in the same attempt: those that match the same entry, and those that
    quote the NCCL warning or are quoted."""
    same = (other for other in choice.live if other.attempt == finding.attempt)
    return [other for other in same if other.entry == finding.entry or _quote(finding.event, other.event)]


def _quote(one: Event, other: Event) -> bool:
    warnings = ((a.text.partition(_WARNED)[2].strip(), b) for a, b in ((one, other), (other, one)))
    return any(
        len(said) >= OWN_WORDS and any(said in raised.text for raised in event.chain) for said, event in warnings
    )


def _rank_in_lines(finding: Finding) -> int | None:
    """Returns the rank that is written inside the lines that show the failure, or None."""
    found = (_WRITTEN.search(line.raw) for line in finding.event.lines[:3])
    return next((int(next(filter(None, one.groups()))) for one in found if one), None)


def _rank_by_condition(finding: Finding) -> int | None:
    """Returns the only rank that runs a line of a failing frame, as in `torch.save(…) if rank == 0 else None`."""
    raised = raised_of(finding)
    found = (_GUARD.search(frame.code) for frame in (raised.frames if raised else ()) if frame.user_code)
    return next((int(one[1]) for one in found if one), None)


def _first_exited_rank(finding: Finding, choice: Choice, reading: Reading) -> int | None:
    """Returns the rank that a parent process saw exit first, unless that rank was waiting for others."""
    exits = [other for other in choice.live if other.attempt == finding.attempt and other.event.where is Where.EXIT]
    process_exits = [
        other for other in exits if other.event.source is EventSource.PROCESS_EXIT and other.event.rank is not None
    ]
    first = min(process_exits, key=lambda other: other.position).event.rank if process_exits else None
    return None if first in reading.extractors.collectives.timed_out else first


def _host_of_wrapper(finding: Finding, choice: Choice) -> str | None:
    """Returns the host named by the nearest Ray wrapper above an exception whose type the wrapper names, or None."""
    event = finding.event
    if event.exception is None:
        return None
    carried = f"({event.exception.type.rpartition('.')[2]}): ray::"
    above = (other.event for other in choice.live if other.event.line.position <= event.line.position)
    nearest = max((e for e in above if carried in e.text), key=lambda e: e.line.position, default=event)
    found = _CARRIED_FROM.search(nearest.text)
    return found[1] if found else None


def _one_host(reading: Reading) -> bool:
    """Returns whether everything in the log is about one host, so that the local rank is the rank."""
    size = reading.facts.world_size
    return len(reading.facts.hosts) < 2 and (size is None or size <= MAX_PROCESSES_PER_HOST)


def _first_host(finding: Finding, reading: Reading) -> bool:
    """Returns whether a failure was on the first host of the run. There, the local rank is the rank."""
    return _one_host(reading) and not finding.event.line.node


def _only_host(reading: Reading) -> str | None:
    """Returns the host of a run that used only one: the log names one host, and the run is small enough for one host or
    had no other."""
    hosts, size = reading.facts.hosts, reading.facts.world_size
    if len(reading.facts.executed_on) == 1:
        return next(iter(reading.facts.executed_on))
    return next(iter(hosts)) if len(hosts) == 1 and size is not None and _one_host(reading) else None


def _only_rank(reading: Reading, finding: Finding, choice: Choice) -> int | None:
    """Returns the rank if the log names only one. Rank 0 does not count, because in most runs it is the one that
    writes. A rank that only lost a peer or waited for others does not count either."""
    if reading.facts.world_size == 1 or (reading.extractors.processes.workers == 1 and _one_host(reading)):
        return 0
    if len(reading.ranks) != 1 or 0 in reading.ranks or reading.ranks <= reading.extractors.collectives.timed_out:
        return None
    echoed = any(other.ranks == reading.ranks and _lost_a_peer(other, finding) for other in choice.live)
    return None if echoed else next(iter(reading.ranks))


_ALL_WAITED_FOR = RankRule(
    "others-waited-for-it",
    lambda case: rank_timeouts_point_to(case.reading),
    "the others timed out waiting for this rank",
    "其他 rank 一直在等待它",
)
# These rules apply if ranks timed out waiting.
TIMEOUT_RANK_RULES = (
    replace(_ALL_WAITED_FOR, whole_run=True),
    RankRule(
        "parent-saw-it-leave",
        lambda case: _first_exited_rank(case.finding, case.choice, case.reading),
        "its parent process reports that it exited first",
        "父进程最先看到它退出",
        whole_run=True,
    ),
)
TASK_LEFT_FIRST = RankRule(
    "task-left-first",
    _rank_of_exited_task,
    "srun reports that this task exited first",
    "srun 最先报告该 task 退出",
    whole_run=True,
)
ONLY_ONE_KILLED = RankRule(
    "only-one-killed",
    _killed_for_memory,
    "it is the only rank that was killed by SIGKILL",
    "只有该 rank 被 SIGKILL 结束",
    whole_run=True,
)
_ASKED_LAST = frozenset({TASK_LEFT_FIRST.name, ONLY_ONE_KILLED.name})
# These rules apply, in this order, if the finding itself names no rank.
RANKS = (
    RankRule(
        "same-on-one-rank",
        _same_on_rank,
        "an identical message on another line names the rank",
        "相同的信息中给出了该 rank",
        whole_run=True,
    ),
    RankRule(
        "nccl-communicator",
        _by_communicator,
        "NCCL log lines map this communicator to the rank",
        "NCCL 日志给出了该通信域对应的 rank",
    ),
    RankRule(
        "same-cause-in-other-words",
        lambda case: _rank_with_same_cause(case.finding, case.choice),
        "only this rank shows the same cause in other words",
        "只有该 rank 以其他形式显示了同一原因",
    ),
    RankRule(
        "written-in-the-line",
        lambda case: _rank_in_lines(case.finding),
        "the line names the rank",
        "该行中写明了 rank",
    ),
    RankRule(
        "guarded-code",
        lambda case: _rank_by_condition(case.finding),
        "the failing code runs only on this rank",
        "出错的代码只在该 rank 上运行",
    ),
    RankRule(
        "local-rank-on-one-host",
        _local_is_rank,
        "on a single host the local rank is the rank",
        "单机运行时 local rank 即 rank",
    ),
    _ALL_WAITED_FOR,
    RankRule(
        "only-rank-of-the-log",
        lambda case: _only_rank(case.reading, case.finding, case.choice),
        "the log names no other rank",
        "日志中只有该 rank",
    ),
    TASK_LEFT_FIRST,
    ONLY_ONE_KILLED,
)
