"""Builds the facts about the run itself, as seen from its root cause: phase, exit status, time and versions."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from torchtriage.answer.progress_curve import progress_curve
from torchtriage.causality.fingerprint import raised_of
from torchtriage.causality.root_cause import Choice
from torchtriage.domain.entry import Role
from torchtriage.domain.event import Event, EventSource, Where
from torchtriage.domain.evidence import RankState
from torchtriage.domain.host import host_name
from torchtriage.domain.verdict import Checkpoint, RootCause, RunFacts
from torchtriage.domain.vocabulary import VocabularyPattern
from torchtriage.facts import checkpoints
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.prefixes.times import seconds_between
from torchtriage.reading.slurm_nodelist import sorted_hosts
from torchtriage.runs.findings import Finding
from torchtriage.runs.run_reading import Reading

_PHASE_FUNCTIONS = "phase-functions"  # the vocabulary's list: phases by frames of a traceback
_RUNNING = ("train", "evaluate", "save", "teardown")  # after these phases, a line that sounds like a startup is not one
_AT_LAUNCH = ("SyntaxError", "IndentationError", "ModuleNotFoundError", "ImportError")
_EXIT_DELAY = 1.0  # seconds in which a launcher notices the end of a process; its report gives whole seconds
# Sources of exit statuses, most reliable first.
_SOURCES = (
    EventSource.FIRST_FAILURE,
    EventSource.OTHER_FAILURE,
    EventSource.PROCESS_EXIT,
    EventSource.ELASTIC_AGENT,
)


def run_facts(reading: Reading, choice: Choice) -> RunFacts:
    """Returns what the log says about the run. Unknown facts are None."""
    env = reading.facts
    hosts = dict(env.hosts)
    for finding in reading.findings:
        if (host := host_name(finding.event.host)) and host != "localhost":
            hosts.setdefault(host)
    failed = env.span.dated(_failed_at(choice, reading))
    started, ended = env.span.of(failed)
    after = seconds_between(failed, ended)
    guessed = {"torch": env.torch_range} if env.torch_range and "torch" not in env.versions else {}
    phase = _phase(choice.root, reading) if choice.root else env.phase_at(reading.last_position)
    saved = _checkpoints(choice, reading, phase == "save")
    return RunFacts(
        launcher=env.launcher,
        world_size=env.world_size or reading.evidence.world_size,
        hosts=sorted_hosts(hosts),
        attempts=max([1, reading.extractors.elastic.attempt, *(number + 1 for number in choice.roots)]),
        phase=phase,
        step=env.step,
        versions=dict(env.versions),
        versions_inferred=guessed,
        started=dated(started, reading),
        ended=dated(ended, reading),
        exit_code=_exit_code(choice, reading),
        seconds_after_failure=round(after, 3) if after is not None and after >= 0 else None,
        checkpoints=saved,
        checkpoint=saved[-1] if saved else None,
        progress=progress_curve(reading),
        sources=reading.evidence.sources,
        waits=_waits(choice, reading),
        clock_offsets=reading.clock_offsets,
    )


def suspect_ranks(choice: Choice, reading: Reading, root: RootCause) -> tuple[int, ...]:
    """Returns the ranks that are held responsible. Dumps and stack traces decide if they are the cause or agree with
    it. Otherwise it is the rank that failed, or else the lost ranks, or else those that the others waited for. The
    result is empty if none is known."""
    hang, watched = reading.evidence.hang, reading.extractors.collectives.suspects(reading.facts.world_size)
    waited_for = hang.suspects if hang is not None else ()
    if waited_for and (root.rank is None or root.rank in waited_for):
        return waited_for
    if root.rank is not None:
        return (root.rank,)
    if hang is None and (lost := _lost_peers(choice, reading)):
        return lost
    return tuple(sorted(watched.ranks)) if root.suspects and watched is not None else ()


def _waits(choice: Choice, reading: Reading) -> tuple[RankState, ...]:
    """Returns the state of each rank in a hang, if the hang belongs to the failure."""
    hang = reading.evidence.hang
    return hang.states if hang is not None and choice.root is not None else ()


def _lost_peers(choice: Choice, reading: Reading) -> tuple[int, ...]:
    """Returns the ranks that left no dump, if the root cause is a lost peer, or if ranks disagree and only one of
    several left no dump."""
    lost, root = reading.evidence.lost, choice.root
    odd = len(lost) == 1 < len(reading.evidence.dumped)
    lost_one = root is not None and (root.has_role(Role.PEER_LOSS) or (odd and root.has_role(Role.RANKS_DISAGREE)))
    return tuple(sorted(lost)) if lost_one else ()


def _checkpoints(choice: Choice, reading: Reading, failed_saving: bool) -> tuple[Checkpoint, ...]:
    """Returns the newest checkpoints that were written before the root cause."""
    values = reading.facts.values.get(checkpoints.NAME, {}).values()
    messages = list({value.line.position: (value.line, value.value) for value in values}.values())
    failed_at = choice.root.position if choice.root else None
    found = checkpoints.completed_checkpoints(messages, reading.facts.progress, failed_at, failed_saving)
    return tuple(replace(checkpoint, time=dated(checkpoint.time, reading)) for checkpoint in found)


def dated(time: str | None, reading: Reading) -> str | None:
    """Returns an ISO 8601 time. If it has no year, another time in the log supplies it, or else the result is None."""
    full = reading.facts.span.dated(time)
    return None if full is None or full.startswith("--") else full


def _phase(root: Finding, reading: Reading) -> str | None:
    """Returns what the run did when it failed, judged by the traceback, or else by the last phase that the log shows
    before it."""
    raised, before = raised_of(root), reading.facts.phase_before(root.event)
    functions = _compiled(reading.matcher.patterns.vocabulary.patterns(_PHASE_FUNCTIONS))
    # A worker's own traceback does not show what its parent was doing.
    chain = (raised, *reversed([one for one in root.event.chain if one is not raised])) if raised else ()
    for frame in (frame for one in chain for frame in reversed(one.frames)):
        place = f"{frame.file}:{frame.function}"
        phase_of_frame = next((phase for phase, regex in functions if regex.search(place)), None)
        if phase_of_frame is not None and not (phase_of_frame == "init" and before in _RUNNING):
            return phase_of_frame
    if before not in (None, "launch"):
        return before
    # An exception in the script shows that the launch was over, unless it kept the script from starting.
    unstarted = (
        raised is None or raised.type.rpartition(".")[2] in _AT_LAUNCH or root.event.source is EventSource.LAUNCHER
    )
    return "launch" if unstarted and (before or raised) else None


@cache
def _compiled(patterns: tuple[VocabularyPattern, ...]) -> tuple[tuple[str | None, re.Pattern[str]], ...]:
    """Returns the names and regexes of a list, in order."""
    return tuple((pattern.name, lazy_regex(pattern.exact)) for pattern in patterns)


def _exit_code(choice: Choice, reading: Reading) -> int | None:
    """Returns the exit status of the process that failed first: its own, or else the one that log lines show."""
    ended = exit_of(choice, reading)
    return ended.exit_code if ended else reading.facts.exit_code if choice.root else None


def _failed_at(choice: Choice, reading: Reading) -> str | None:
    """Returns the time of the first failure, or else the time at which its process ended. A process can hang after its
    last output. So if the next line of the log is clearly older than that end, the time is that of the line above the
    failure."""
    ended = exit_of(choice, reading)
    own = failure_time(choice.root) if choice.root else None
    if own or ended is None:
        return own
    above, below = choice.root.around if choice.root else (None, None)
    hung = seconds_between(*map(reading.facts.span.dated, (below, ended.time)))
    return (above or below) if hung is not None and hung > _EXIT_DELAY else ended.time


def failure_time(finding: Finding) -> str | None:
    """Returns the time of a failure from its line, or else from the same rank's copy of it, such as its error.json."""
    place = finding.places.get(finding.event.rank) if finding.event.rank is not None else None
    return finding.event.time or (place.time if place else None)


def exit_of(choice: Choice, reading: Reading) -> Event | None:
    """Returns how the process that failed first ended: its own exit status, or else the first one that was observed."""
    root = choice.root
    if root is None or root.event.exit_code is not None:
        return root.event if root else None
    exits = [finding.event for finding in reading.findings if _is_failure(finding.event, root.attempt)]
    own = [event for event in exits if event.rank is not None and event.rank in (root.ranks | {root.event.rank})]
    return min(own or exits, key=lambda event: _SOURCES.index(event.source), default=None)


def _is_failure(event: Event, attempt: int) -> bool:
    is_exit = event.where is Where.EXIT and event.source in _SOURCES and event.attempt == attempt
    return is_exit and event.exit_code not in (None, 0, -15)
