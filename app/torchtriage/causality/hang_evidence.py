"""Turns the hang that dumps and stacks show into one event with a fixed form of line, which signs can match: `flight
recorder: missing: Ranks 3, 6; in all_reduce 168 of default_pg; waiting 14; …`. A report gives its own line."""

from __future__ import annotations

from torchtriage.domain.event import Event, EventSource, Where
from torchtriage.domain.evidence import Call, Hang
from torchtriage.domain.line import START, Line
from torchtriage.domain.rank_set import RankSet
from torchtriage.lazy_regex import lazy_regex
from torchtriage.runs.run_reading import Reading

_SPACE = lazy_regex(r"[\s;]+")


def with_evidence(reading: Reading) -> Reading:
    """Returns the reading with one more event if dumps, stacks or reports show a hang."""
    hang = reading.evidence.hang
    return reading.with_events((hang_event(hang),)) if hang is not None else reading


def hang_event(hang: Hang) -> Event:
    """Returns the event for a hang. It has a rank if there is exactly one suspect."""
    rank = hang.suspects[0] if len(hang.suspects) == 1 else None
    lines = hang.lines or (Line(1, "", "", START),)
    return Event(Where.LINE, hang_text(hang), lines, EventSource.EVIDENCE, rank=rank, host=hang.host, fatal=False)


def hang_text(hang: Hang) -> str:
    """Returns the line in its fixed form."""
    if hang.report is not None:
        return hang.report
    parts = [f"flight recorder: {hang.kind}: {named(hang.suspects or hang.waiting)}"]
    if hang.call is not None:
        parts.append(f"in {_call(hang.call)} of {_SPACE.sub('_', hang.group) or 'a_group'}")
    parts.append(f"waiting {len(hang.waiting)}")
    if hang.other is not None:
        apart = f" of {_SPACE.sub('_', hang.other_group)}" if hang.other_group else ""
        parts.append(f"called {_called(hang.other)}{apart}, others {_called(hang.call)}")
    elif hang.last is not None:
        parts.append(f"last {_call(hang.last)}" + (f" at {hang.last.where}" if hang.last.where else ""))
    if hang.call is not None and hang.call.timeout_ms > 0:
        parts.append(f"limit {hang.call.timeout_ms // 1000} s")
    if hang.call is not None and hang.call.where:
        parts.append(f"from {hang.call.where}")
    if hang.doing:
        parts.append(f"stack {_SPACE.sub(' ', hang.doing)}")
    return "; ".join(parts)


def named(ranks: tuple[int, ...]) -> str:
    """Returns `Rank 3`, `Ranks 3, 6` or `Ranks 0-7`."""
    numbers = str(RankSet.of(ranks)).replace(",", ", ")
    return f"Rank {numbers}" if len(ranks) == 1 else f"Ranks {numbers}" if ranks else "Ranks"


def _call(call: Call) -> str:
    return f"{_SPACE.sub(' ', call.operation)} {call.sequence}"


def _called(call: Call | None) -> str:
    """Returns a call with the properties that must be equal on all ranks, and the place in the code that made it."""
    return _call_properties(call) + (f" at {_SPACE.sub(' ', call.where)}" if call is not None and call.where else "")


def _call_properties(call: Call | None) -> str:
    if call is None:
        return "nothing"
    sizes = call.sizes.removeprefix("[").removesuffix("]")
    return _SPACE.sub(" ", f"{call.operation} {sizes} {call.dtypes.strip('[]').replace(chr(34), '')}").strip()
