"""The ranks over time: a verdict's marks in, rows of a picture out, with places along it in percent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import RankMark
from torchtriage.reading.prefixes import times

KINDS = ("first", "missing", "failed", "waited", "stopped", "ended", "silent")
_LEFT, _RIGHT = 3.0, 97.0  # percent; a mark has a width of its own
_MOST_LABEL = 40  # characters
_MOST_LANES = 16  # beyond, ranks of one kind share a lane, so that the picture stays one glance high


@dataclass(frozen=True, slots=True)
class Lane:
    """One rank, or ranks of one kind. `at` is where its mark is, `since` where it began to wait, `until` where the last
    of several marks is; None where the log does not tell."""

    mark: RankMark
    count: int
    at: float | None
    since: float | None = None
    until: float | None = None

    @property
    def label(self) -> str:
        """-> the ranks, cut where they are many ranges."""
        ranks = str(self.mark.ranks)
        return ranks if len(ranks) <= _MOST_LABEL else ranks[:_MOST_LABEL].rsplit(",", 1)[0] + ", …"

    @property
    def single(self) -> bool:
        return len(self.mark.ranks) == 1


@dataclass(frozen=True, slots=True)
class RankTimeline:
    """`marks` are all of them by rank, for the table; `began` and `ended` are the times at the picture's edges, None
    where the lanes are in the order of lines."""

    lanes: tuple[Lane, ...]
    began: str | None = None
    ended: str | None = None
    seconds: float | None = None
    marks: tuple[RankMark, ...] = ()

    @property
    def timed(self) -> bool:
        """-> whether any line tells a time, be it that others tell none."""
        return any(mark.time for mark in self.marks)

    @property
    def kinds(self) -> tuple[tuple[str, int], ...]:
        """-> each kind that is there, with how many ranks."""
        counted: Counter[str] = Counter()
        for lane in self.lanes:
            counted[lane.mark.kind] += lane.count
        return tuple((kind, counted[kind]) for kind in KINDS if counted[kind])


def rank_timeline(marks: Sequence[RankMark]) -> RankTimeline | None:
    """-> one lane a mark, or a kind, where there are many; None where there is nothing to compare."""
    if sum(len(mark.ranks) for mark in marks) < 2 or all(mark.kind == "silent" for mark in marks):
        return None
    drawn = _drawn(marks if len(marks) <= _MOST_LANES else _shared(marks))
    return replace(drawn, marks=tuple(sorted(marks, key=lambda mark: (mark.kind == "silent", _first_range(mark)))))


def _drawn(marks: Sequence[RankMark]) -> RankTimeline:
    shown = [mark for mark in marks if mark.kind != "silent"]
    moments = [_moment(mark.time) for mark in shown if mark.kind != "missing"]
    zones = {moment.tzinfo for moment in moments if moment}
    if moments and all(moments) and (len(zones) == 1 or None not in zones):
        return _by_time(marks, [mark for mark in shown if mark.time])
    step = (_RIGHT - _LEFT) / max(len(shown) - 1, 1)
    places = {id(mark): round(_LEFT + step * number, 2) for number, mark in enumerate(shown)}
    return RankTimeline(_sorted([Lane(mark, len(mark.ranks), places.get(id(mark))) for mark in marks]))


def _shared(marks: Sequence[RankMark]) -> list[RankMark]:
    """-> one mark for all of a kind and entry; the first gives line and time."""
    alike: dict[tuple[str, str | None], list[RankMark]] = {}
    for mark in marks:
        alike.setdefault((mark.kind, mark.entry), []).append(mark)
    return [_as_one(part) for part in alike.values()]


def _as_one(marks: list[RankMark]) -> RankMark:
    ranks = RankSet.of(rank for mark in marks for rank in mark.ranks)
    times = [time for mark in marks for time in (mark.time, mark.until) if time]
    return replace(marks[0], ranks=ranks, until=max(times, key=_seconds) if len(times) > 1 else marks[0].until)


def _by_time(marks: Sequence[RankMark], shown: Sequence[RankMark]) -> RankTimeline:
    begin = min(_seconds(mark.time) - (mark.waited or 0) for mark in shown)
    end = max(_seconds(mark.until or mark.time) for mark in shown)

    def place(second: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * (second - begin) / ((end - begin) or 1.0), 2)

    def lane(mark: RankMark) -> Lane:
        if mark.time is None:
            return Lane(mark, len(mark.ranks), _LEFT if mark.kind == "missing" else None)
        at = _seconds(mark.time)
        since = place(at - mark.waited) if mark.waited else None
        return Lane(mark, len(mark.ranks), place(at), since, place(_seconds(mark.until)) if mark.until else None)

    zoned = "Z" if any(moment and moment.tzinfo for moment in (_moment(mark.time) for mark in shown)) else ""
    year = slice(5, None) if any(str(mark.time).startswith("--") for mark in shown) else slice(None)
    began, ended = (
        datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:-6][year] + zoned for at in (begin, end)
    )
    return RankTimeline(_sorted([lane(mark) for mark in marks]), began, ended, end - begin)


def _sorted(lanes: list[Lane]) -> tuple[Lane, ...]:
    """-> by rank, the silent ones last; where a lane is of many ranks it has no place among the others, so who failed
    first stands on top."""
    several = any(lane.count > 1 and lane.mark.kind != "silent" for lane in lanes)

    def order(lane: Lane) -> tuple[int, tuple[int, int]]:
        kind = KINDS.index(lane.mark.kind) if several else lane.mark.kind == "silent"
        return int(kind), _first_range(lane.mark)

    return tuple(sorted(lanes, key=order))


def _first_range(mark: RankMark) -> tuple[int, int]:
    return next(iter(mark.ranks.ranges), (0, -1))


def _moment(time: str | None) -> datetime | None:
    """-> a time that a log tells; None where it is none."""
    with suppress(ValueError):
        return times.moment(time) if time else None
    return None


def _seconds(time: str | None) -> float:
    """-> seconds since 1970; a time without a zone counts as UTC, so that none is skipped."""
    moment = _moment(time)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() if moment else 0.0
