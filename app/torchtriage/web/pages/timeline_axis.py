"""The axis of a timeline: converts lines and times of a log into positions from 0 to WIDTH."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from torchtriage.reading.prefixes.times import moment

WIDTH = 1000.0
_BREAK = (540.0, 570.0)  # of a picture whose end is enlarged: where the one scale ends, and where the other begins
_SMALL = 0.3  # part of the whole below which what is looked at is enlarged
_AIR = 0.04  # before it, part of it
_HOUR, _HOURS = 3600.0, 5400.0  # seconds; clocks of other zones differ by whole hours, and hang for less than so many
_SLACK = 120.0  # seconds by which lines that stand beside one another are out of order
_TIMED = 0.5  # part of the lines that must tell a time
_SHORT = 2.0  # seconds that are not worth a scale of their own
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Spot:
    """A line of the log and its time in ISO 8601. Line 0 means that the line is unknown, so it has no value."""

    line: int
    file: str | None = None
    time: str | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """A position and its time: `text` in the log's own time, `moment` in UTC if the time zone is known."""

    at: float
    text: str
    moment: str | None


@dataclass(frozen=True, slots=True)
class Axis:
    """`knots` are pairs of a value and its position; positions between them are interpolated. Values are seconds if
    `timed`, else line numbers. `zone` is the UTC offset of the log's clock in seconds, or None if unknown. `enlarged`
    is the position from which a larger scale is used."""

    knots: tuple[tuple[float, float], ...]
    timed: bool
    zone: float | None = None
    dated: bool = True
    enlarged: float | None = None

    def at(self, value: float) -> float:
        """Returns the position of a value."""
        for (low, begin), (high, end) in zip(self.knots, self.knots[1:], strict=False):
            if value <= high:
                part = (value - low) / ((high - low) or 1.0)
                return round(begin + (end - begin) * min(max(part, 0.0), 1.0), 1)
        return self.knots[-1][1]

    @property
    def seconds(self) -> float:
        """The length of the axis, in seconds if it shows times."""
        return self.knots[-1][0] - self.knots[0][0]

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Returns the times to label; none if the lines have no times."""
        if not self.timed:
            return ()
        edges = [self.knots[0], *(knot for knot in self.knots[2:] if self.enlarged is not None), self.knots[-1]]
        values = dict.fromkeys(value for value, _ in edges)
        return tuple(self._tick(value) for value in values)

    @property
    def one_day(self) -> bool:
        """Whether times without a date are unambiguous."""
        first, last = (self._wall(value) for value in (self.knots[0][0], self.knots[-1][0]))
        return first.date() == last.date() or self.seconds < _DAY / 2

    def moment(self, value: float | None) -> str | None:
        """Returns the value as a time in UTC, if the time zone of the log is known."""
        if value is None or not self.timed or self.zone is None:
            return None
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")

    def _tick(self, value: float) -> Tick:
        whole = self._wall(value).strftime("%Y-%m-%d %H:%M:%S" if self.dated else "%m-%d %H:%M:%S")
        return Tick(self.at(value), whole, self.moment(value))

    def _wall(self, value: float) -> datetime:
        """Returns the value as the log's clock showed it."""
        return datetime.fromtimestamp(value + (self.zone or 0.0), UTC)


def measured(spots: Sequence[Spot], curve: int = 0) -> tuple[list[float | None], bool, float | None]:
    """Returns a value for each spot, whether the values are seconds, and how many seconds the log's clock is ahead of
    UTC.

    A line without a time gets the time of the last line above it that has one. If too few lines have times, or too few
    of the first `curve` spots, the values are line numbers instead. Times without a time zone, next to times with one,
    are placed in the zone in which they fit the lines around them.
    """
    parsed = [_moment(spot.time) for spot in spots]
    few = sum(at is not None for at in parsed) < max(2, _TIMED * sum(spot.line > 0 for spot in spots))
    if few or sum(at is not None for at in parsed[:curve]) < _TIMED * curve:
        return _by_line(spots), False, None
    zoned = {n: at.timestamp() for n, at in enumerate(parsed) if at and at.tzinfo}
    plain = {n: at.replace(tzinfo=UTC).timestamp() for n, at in enumerate(parsed) if at and not at.tzinfo}
    zone = next((_offset(at) for at in parsed if at and at.tzinfo), None)
    ahead = _ahead(spots, zoned, plain, zone or 0.0) if zoned and plain else 0.0
    known = zoned | {n: value - ahead for n, value in plain.items()}
    return [known.get(n, _beside(n, spots, known)) for n in range(len(spots))], True, zone


def axis(values: Iterable[float], focus: float | None, timed: bool, zone: float | None, dated: bool = True) -> Axis:
    """Returns an axis that contains all values. The part from `focus` on is enlarged if it would be small."""
    known = sorted(set(values))
    start, end = known[0], known[-1]
    begin = focus if focus is not None else start
    part = end - begin
    few = sum(value >= begin for value in known) < 2 or (timed and part < _SHORT)
    if few or not 0 < part < _SMALL * (end - start):
        return Axis(((start, 0.0), (end, WIDTH)), timed, zone, dated)
    begin = max(begin - _AIR * part, max((value for value in known if value < begin), default=start))
    knots = ((start, 0.0), (begin, _BREAK[0]), (begin, _BREAK[1]), (end, WIDTH))
    return Axis(knots, timed, zone, dated, _BREAK[1])


def _moment(time: str | None) -> datetime | None:
    with suppress(ValueError):
        return moment(time) if time else None
    return None


def _offset(at: datetime) -> float:
    offset = at.utcoffset()
    return offset.total_seconds() if offset else 0.0


def _by_line(spots: Sequence[Spot]) -> list[float | None]:
    files = {spot.file for spot in spots if spot.line}
    if len(files) < 2:
        return [float(spot.line) or None for spot in spots]
    order = {
        place: float(n) for n, place in enumerate(sorted({(spot.file or "", spot.line) for spot in spots if spot.line}))
    }
    return [order[spot.file or "", spot.line] if spot.line else None for spot in spots]


def _ahead(spots: Sequence[Spot], zoned: dict[int, float], plain: dict[int, float], zone: float) -> float:
    """Returns how many seconds the clocks without a time zone are ahead of UTC: the same as the zoned clocks, unless
    their times would then be before a line above or hours after it; else as many whole hours as fit."""
    apart = [
        (value - zoned[m], spots[m].line > spots[n].line)
        for n, value in plain.items()
        for m in zoned
        if spots[m].file == spots[n].file
    ]
    most = min((seconds for seconds, below in apart if not below), default=zone)
    least = max((seconds for seconds, below in apart if below), default=zone)
    if least - _SLACK <= zone <= most + _SLACK and most - zone < _HOURS:
        return zone
    return (most + _SLACK) // _HOUR * _HOUR


def _beside(n: int, spots: Sequence[Spot], known: dict[int, float]) -> float | None:
    """Returns the value of the nearest line above that has one, else of the next one below, in the same file."""
    here = spots[n]
    if not here.line:
        return None
    same = sorted((spots[m].line, value) for m, value in known.items() if spots[m].file == here.file)
    above = [value for line, value in same if line <= here.line]
    return above[-1] if above else same[0][1] if same else None
