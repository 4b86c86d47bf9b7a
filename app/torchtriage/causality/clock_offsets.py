"""How far the clocks of a run's hosts are apart: the times at which they logged the same steps in, offsets out.

All ranks of a synchronous job end a step together, so that what their times differ by is a difference of clocks.
"""

from __future__ import annotations

from itertools import chain
from statistics import median, median_low

from torchtriage.causality.run_reading import Reading
from torchtriage.causality.thresholds import FEWEST_COMMON_STEPS, LEAST_OFFSET, MOST_THAT_DIFFER, STEPS_AGREE
from torchtriage.domain.event import Event
from torchtriage.domain.verdict import ClockOffset
from torchtriage.facts import Environment
from torchtriage.facts.host_steps import StepTimes, host_of_line, spans
from torchtriage.reading.prefixes.times import seconds_between
from torchtriage.reading.slurm_nodelist import sorted_hosts

_Span = tuple[str, str]


def clock_offsets(environment: Environment) -> tuple[ClockOffset, ...]:
    """-> the hosts whose clocks are wrong, against one that goes as most do; of two, against the one that is behind.
    Empty where one host alone logged steps, or the steps do not agree on it."""
    steps = environment.host_steps.times(environment.host_of)
    if not steps:
        return ()
    lines = chain(environment.host_steps.lines, environment.spread.lines, environment.progress_lines)
    known = spans(lines, environment.host_of)
    hosts = sorted_hosts(dict.fromkeys(steps))
    first = max(hosts, key=lambda host: len(steps[host]))
    offsets = [found for host in hosts if (found := _offset(host, first, steps, known)) is not None]
    _, reference = median_low([(0.0, first), *((found.seconds, found.host) for found in offsets)])
    if reference != first:
        offsets = [found for host in hosts if (found := _offset(host, reference, steps, known)) is not None]
    return tuple(found for found in offsets if abs(found.seconds) >= LEAST_OFFSET)


def ahead(event: Event, reading: Reading) -> float:
    """-> how many seconds the clock that dated an event is ahead, as far as that is known."""
    if not reading.clock_offsets:
        return 0.0
    host = host_of_line(event.line, reading.environment.host_of) or event.host
    return next((offset.seconds for offset in reading.clock_offsets if offset.host == host), 0.0)


def _offset(host: str, reference: str, steps: dict[str, StepTimes], known: dict[str, _Span]) -> ClockOffset | None:
    """-> how far a host's clock is ahead of the reference's; None where their common steps do not tell."""
    own, others = steps[host], steps[reference]
    if host == reference:
        return None
    told = (seconds_between(others[step], own[step]) for step in own.keys() & others.keys())
    apart = [seconds for seconds in told if seconds is not None]
    if len(apart) < FEWEST_COMMON_STEPS or not _at_once(known[host], known[reference]):
        return None
    middle = median(apart)
    agreeing = [seconds for seconds in apart if abs(seconds - middle) <= STEPS_AGREE]
    few = len(agreeing) < FEWEST_COMMON_STEPS
    if few or len(apart) - len(agreeing) > MOST_THAT_DIFFER * len(apart):
        return None
    return ClockOffset(host, round(middle, 1), reference, len(agreeing), round(max(agreeing) - min(agreeing), 1))


def _at_once(one: _Span, other: _Span) -> bool:
    """-> whether hosts trained at the same time by their own clocks: else a folder may hold two launches, one after the
    other, whose steps took equally long."""
    gaps = seconds_between(one[0], other[1]), seconds_between(other[0], one[1])
    return all(seconds is not None and seconds >= 0 for seconds in gaps)
