"""Finds when a run began and ended: the earliest and latest time of its lines, all from one clock.

Clocks are distinguished by how they print the time zone. A time with an offset cannot be compared with one without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from torchtriage.reading.prefixes import times as clocks

_NO_YEAR = "--"
_NO_ZONE = frozenset({b"--T::", b"--T::."})  # the marks of times without a time zone


@dataclass(slots=True)
class _Times:
    first: str
    last: str
    count: int = 0


@dataclass(slots=True)
class TimeRange:
    """Collects the times of a run, in ISO 8601. A time without a year begins with `--`."""

    _by_zone: dict[str, _Times] = field(default_factory=dict)

    def feed(self, times: Sequence[str]) -> None:
        """Adds many times. Most of them are from one clock."""
        of_zone: dict[str, list[str]] = {}
        if _plain(times):
            of_zone[""] = list(times)
        else:
            for time in times:
                of_zone.setdefault(_zone(time), []).append(time)
        for zone, zone_times in of_zone.items():
            first, last = min(zone_times), max(zone_times)
            known = self._by_zone.get(zone)
            if known is None:
                known = self._by_zone[zone] = _Times(first, last)
            known.count += len(zone_times)
            known.first, known.last = min(known.first, first), max(known.last, last)

    def dated(self, time: str | None) -> str | None:
        """Returns the time. If it has no year, adds the year of the run if that is known."""
        if time is None or not time.startswith(_NO_YEAR):
            return time
        years = [known.first[:4] for zone, known in self._by_zone.items() if zone != _NO_YEAR]
        return f"{max(years)}{time[1:]}" if years else time

    def of(self, like: str | None) -> tuple[str | None, str | None]:
        """Returns the first and last time of the clock that printed `like`, or else of the clock with the most
        times."""
        plain: list[_Times] = []
        zoned: list[_Times] = []
        for zone, known in self._by_zone.items():
            first, last = self.dated(known.first) or "", self.dated(known.last) or ""
            (plain if zone in ("", _NO_YEAR) else zoned).append(_Times(first, last, known.count))
        wanted = zoned if like and _zone(like) not in ("", _NO_YEAR) else plain if like else []
        chosen = wanted or max((plain, zoned), key=lambda clock: sum(known.count for known in clock))
        if not chosen:
            return None, None
        firsts, lasts = [known.first for known in chosen], [known.last for known in chosen]
        return min(firsts, key=moment), max(lasts, key=moment)


def moment(time: str) -> datetime:
    """Returns a datetime for comparison. One with a time zone can only be compared with others that have one. An
    invalid date counts as the earliest."""
    try:
        return clocks.moment(time)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC if _zone(time) else None)


def _plain(times: Sequence[str]) -> bool:
    """Returns whether all times have a year and no time zone, as in most logs. Checks them all at once, by their
    marks."""
    marks = "\n".join(times).encode("utf-8", "replace").translate(None, b"0123456789")
    return bool(times) and _NO_ZONE.issuperset(marks.split(b"\n"))


def _zone(time: str) -> str:
    if time[-1] == "Z":
        return "Z"
    if time[:2] == _NO_YEAR:
        return _NO_YEAR
    if len(time) > 20 and (time[-6] in "+-" or time[-5] in "+-"):  # +02:00, +0200
        return time[-6:] if time[-6] in "+-" else time[-5:]
    return ""
