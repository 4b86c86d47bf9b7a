"""Chooses the finding that explains the others and is explained by none, and says why."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from torchtriage.causality.cascade import ECHO_AREAS, Grade, grade, reported, unexplained, without_clean_up
from torchtriage.causality.findings import Finding
from torchtriage.causality.missing_ranks import TIMED_OUT, told_before
from torchtriage.causality.run_reading import RunReading
from torchtriage.causality.survived import ends_badly, handled, refused_before, stands_still, started_over, survived
from torchtriage.domain.event import EventSource, Where
from torchtriage.domain.line import Line
from torchtriage.facts.line_facts import LineSigns
from torchtriage.facts.log_classifier import is_by_a_person

# srun: error: c12: tasks 0-63: Exited with exit code 1 · slurmstepd: error: *** JOB 31 ON c12 CANCELLED AT …
_TASK_FAILED = re.compile(r"^srun: error: \S+: tasks? \S+: |\*\*\* (?:JOB|STEP) \S+ ON \S+ (?:CANCELLED|FAILED)")
# Causes that a rank also shows which another one has left alone.
_LOST_A_PEER = frozenset(
    {"nccl.unhandled-system-error", "nccl.internal-error", "gloo.error", "network.connect-refused"}
)
_OWN_SIGNALS = frozenset({-4, -7, -8, -9, -11})  # that end no process because another one has left
_LATE = 1000  # lines; so far below may stand what came before
_BY_HAND = (None, "python")  # launchers of a log in which no other is seen
_PASTE = 40  # lines; a longer text is no paste of a warning
_OF_A_WARNING = re.compile(  # lines below one that say more of it, or nothing
    r"\s|\W*$|.*\bNCCL INFO\b|(?:\[rank\d+\]:)?\s?(?:Exception raised from \w|frame #\d+: )"
)
_BELOW = 2  # lines; a program that prints more behind its last warning went on
# [ 9426.062972] INFO: task … · May 26 18:09:55 gpu-7 kernel: … · [Sat Apr  3 05:23:42 2021] watchdog: …
_KERNEL = re.compile(
    r"\W{0,3}\[ {0,6}(\d{1,9})\.\d{6}\] |\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}\] |[^\n]{0,60} kernel: "
)


@dataclass(slots=True)
class Choice:
    """The root finding of a run (None where nothing failed), and the rest by what became of them."""

    root: Finding | None = None
    live: list[Finding] = field(default_factory=list)
    survived: list[Finding] = field(default_factory=list)
    roots: dict[int, Finding] = field(default_factory=dict)  # of each attempt
    gave_way: list[str] = field(default_factory=list)  # entries that a worker's own earlier exception came before


def choose(reading: RunReading) -> Choice:
    """-> the root cause of what was read, over all attempts: the first attempt's, unless that one names nothing."""
    findings = reading.matched()
    _clamp_attempts(findings, reading)
    findings = without_clean_up(findings)
    terminal = sorted(finding.position for finding in findings if ends_badly(finding))
    choice = Choice()
    for finding in findings:
        lived = survived(finding, reading.environment, terminal)
        (choice.survived if lived else choice.live).append(finding)
    _set_logged_aside(choice, reading)
    failed = _failed(choice, reading)
    if not failed and not reading.extractors.elastic.attempt:
        choice.survived, choice.live = choice.survived + choice.live, []
        return choice
    attempts: dict[int, list[Finding]] = {}
    for finding in choice.live:
        attempts.setdefault(finding.attempt, []).append(finding)
    for attempt, live in sorted(attempts.items()):
        root = _root_of(live, choice.gave_way)
        if root is not None:
            choice.roots[attempt] = told_before(root, live, reading) or root
    choice.root = _first_telling(choice) if failed else None
    return choice


def _set_logged_aside(choice: Choice, reading: RunReading) -> None:
    """Sets exceptions aside that were caught: those that the run went on after, and those that were logged where an
    uncaught one tells of a failure."""
    own = [finding for finding in choice.live if grade(finding) >= Grade.LINE and not _speaks_of_peers(finding)]
    caught = [finding for finding in choice.live if handled(finding, own, reading.environment)]
    environment = reading.environment
    alone = not reading.ranks and environment.launcher in _BY_HAND and environment.world_size in (None, 1)
    caught += [
        each for each in choice.live if refused_before(each, choice.live) or started_over(each, choice.live, alone)
    ]
    rest = [finding for finding in choice.live if finding not in caught]
    uncaught = (finding for finding in rest if finding.fatal and finding.event.source is EventSource.TRACEBACK)
    if any(grade(finding) >= Grade.UNNAMED for finding in uncaught):
        caught += [finding for finding in rest if not finding.fatal and finding.event.where is Where.EXCEPTION]
    choice.survived += caught
    choice.live = [finding for finding in choice.live if finding not in caught]


def _speaks_of_peers(finding: Finding) -> bool:
    return finding.match is not None and finding.match.entry.area in ECHO_AREAS


def _failed(choice: Choice, reading: RunReading) -> bool:
    """-> whether anything that is left means that the run failed."""
    strong = [finding for finding in choice.live if grade(finding) is not Grade.WEAK]
    environment = reading.environment
    ended_well = bool(environment.well) and not reading.extractors.elastic.given_up
    ended = [finding for finding in strong if ends_badly(finding)]
    if ended and not (environment.of_another_program and all(map(_of_any_program, ended))):
        return not (ended_well and environment.well[-1] > max(finding.last for finding in strong))
    if environment.well and (not strong or environment.well[-1] > max(finding.last for finding in strong)):
        return False
    if strong:
        signs = environment.signs
        return not environment.of_another_program or any(_fails_any_program(each, signs) for each in strong)
    if any(stands_still(finding, environment) for finding in choice.live):
        return True
    # Only warnings: they explain a paste that holds nothing else, never a run that trains.
    return (
        bool(choice.live)
        and not environment.progress
        and reading.last_position.line <= _PASTE
        and not _went_on(choice.live, reading)
        and not environment.foreign
    )


def _went_on(warnings: list[Finding], reading: RunReading) -> bool:
    """-> whether a program printed more below its last warning. What somebody wrote there tells nothing of it, nor does
    a log below words that the run hangs, which no program can say of itself."""
    said = any(finding.match is not None and finding.match.entry.area in ("perf", "hang") for finding in warnings)
    last, paste = max(finding.last for finding in warnings), reading.paste or ()
    instants = {_instant(line) for line in paste if line.position == last} - {None}
    rest = [line for line in paste if line.position > last and not _OF_A_WARNING.match(line.text)]
    below = [line for line in rest if _instant(line) not in instants]
    return len(below) > _BELOW and not said and not is_by_a_person(paste, reading.environment.signs)


def _instant(line: Line) -> str | None:
    """-> the second in which the kernel printed the line, None for another writer's: what it prints at once, as the
    registers and the call trace below a message, is of one piece."""
    hit = _KERNEL.match(line.raw)
    return (hit[1] or line.time) if hit else None


def _of_any_program(finding: Finding) -> bool:
    """-> whether a shell, a runtime, a kernel or MPI tells of a process that ended, and nothing of what it was."""
    return finding.event.source in (EventSource.PROCESS_EXIT, EventSource.LAUNCHER)


def _fails_any_program(finding: Finding, signs: LineSigns) -> bool:
    """-> whether the finding says that a process failed, whatever program it ran; one that uses GPUs for something else
    fails of its own."""
    event = finding.event
    if event.source is EventSource.TRACEBACK:
        return not any(signs.gpu_programs.shows(frame.file) for raised in event.chain for frame in raised.frames)
    return event.source is EventSource.SLURM and bool(_TASK_FAILED.search(event.text))


def _clamp_attempts(findings: list[Finding], reading: RunReading) -> None:
    """After an agent gave up there is no further attempt: what stands behind its last line belongs to the last one."""
    elastic = reading.extractors.elastic
    if elastic.given_up or not reading.environment.progress:
        for finding in findings:
            last = elastic.last_at(finding.event.line)
            if last is not None:
                finding.attempt = min(finding.attempt, last)


def _root_of(findings: list[Finding], gave_way: list[str]) -> Finding | None:
    """-> the root cause of one attempt; the entry of a stronger finding that it came before goes to `gave_way`."""
    free = unexplained(findings) or findings
    best = min(free, key=lambda finding: (-grade(finding), finding.position), default=None)
    if best is None:
        return None
    match = best.match
    if match is not None and grade(best) >= Grade.UNNAMED:
        earlier = [finding for finding in free if _came_first(finding, best)]
        if earlier:
            best = min(earlier, key=lambda finding: finding.position)
            gave_way.append(match.entry.id)
    behind = [finding for finding in free if _printed_later(finding, best)]
    best = min(behind, key=lambda finding: finding.position, default=best)
    return _most_telling(best, findings)


def _came_first(finding: Finding, best: Finding) -> bool:
    """-> whether a worker's own uncaught exception before `best` is the better answer: where `best` speaks of peers,
    or where both are mistakes of the program, on different ranks."""
    if finding.position >= best.position:
        return False
    if finding.entry in TIMED_OUT and best.entry == "elastic.sigterm":
        return finding.fatal  # What others waited for was missing before somebody ended it all.
    if grade(finding) < Grade.UNNAMED or finding.event.source is not EventSource.TRACEBACK:
        return False
    if best.match is None or _speaks_of_peers(best):
        return best.match is not None
    return _of_others(finding, best) and best.match.entry.owner == "user" and best.event.where is Where.EXCEPTION


def _printed_later(finding: Finding, best: Finding) -> bool:
    """-> whether `best` is that of ranks that lost a peer, and the finding a little below it what that peer died of:
    ranks write as they please."""
    if (
        best.match is None
        or best.match.entry.id not in _LOST_A_PEER
        or best.event.source not in (EventSource.TRACEBACK, EventSource.COLLECTIVE)
    ):
        return False
    if not 0 < finding.position.lines_below(best.position) < _LATE or not _of_others(finding, best):
        return False
    if finding.event.where is Where.EXIT:
        return finding.event.exit_code in _OWN_SIGNALS
    uncaught = finding.event.source is EventSource.TRACEBACK and finding.fatal and grade(finding) >= Grade.UNNAMED
    return uncaught and (finding.match is None or finding.match.entry.area not in (*ECHO_AREAS, "user"))


def _of_others(one: Finding, other: Finding) -> bool:
    """-> whether other ranks tell of one finding than of the other, as far as the log names them."""
    if one.ranks and other.ranks:
        return not one.ranks & other.ranks
    local = one.event.local_rank, other.event.local_rank
    return None not in local and local[0] != local[1]


def _most_telling(best: Finding, findings: list[Finding]) -> Finding:
    """-> of the findings that show the same entry, the one that tells more: a traceback beside a bare line, of the
    exit statuses in a report the one that was observed first."""
    if best.entry is None or best.event.where is Where.EXCEPTION:
        return best
    alike = [other for other in findings if other.entry == best.entry and grade(other) >= min(grade(best), Grade.ECHO)]
    if best.event.where is Where.LINE:
        told = [other for other in alike if other.event.chain or other.event.source is EventSource.PROCESS_EXIT]
    else:
        first = best.event.source is EventSource.OTHER_FAILURE
        told = [other for other in alike if first and other.event.source is EventSource.FIRST_FAILURE]
        told.sort(key=lambda other: (reported(other.event), other.position))
    return told[0] if told else best


def _first_telling(choice: Choice) -> Finding | None:
    """-> the first attempt's root, or the first one that is more than an echo."""
    telling = [root for root in choice.roots.values() if grade(root) > Grade.ECHO]
    return telling[0] if telling else next(iter(choice.roots.values()), None)
