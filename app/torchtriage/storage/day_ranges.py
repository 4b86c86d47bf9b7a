"""A time as the whole days that counts are kept of, and the pieces of days that are left of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from torchtriage.storage import periods
from torchtriage.storage.tables import CountRow

_DAY = timedelta(days=1)
_FIRST = date.min + _DAY
_Piece = tuple[datetime | None, datetime | None]


@dataclass(frozen=True, slots=True)
class Parts:
    """`days`: the first and the last whole day, None where there is none; `pieces`: what is left, at most two."""

    days: tuple[date, date] | None
    pieces: tuple[_Piece, ...] = ()

    @property
    def periods(self) -> list[int]:
        """The whole days as months and days that counts are kept by."""
        return periods.covering(*self.days) if self.days else []


def parts(session: Session, since: datetime | None, until: datetime | None) -> Parts:
    """-> the parts of a time, as far as verdicts are known of it."""
    first, last = _days_known(session)
    if first is None or last is None:
        return Parts(None)
    begin, end = _whole_days(since, until)
    if begin is not None and end is not None and begin >= end:
        return Parts(None, ((since, until),))
    pieces: list[_Piece] = []
    if since is not None and begin is not None and since < midnight(begin):
        pieces.append((since, midnight(begin)))
    if until is not None and end is not None and midnight(end) < until:
        pieces.append((midnight(end), until))
    day = max(begin or date.min, periods.day_of(first))
    stop = periods.day_of(last)
    if end is not None and end <= stop:
        stop = max(end, _FIRST) - _DAY
    return Parts((day, stop) if day <= stop else None, tuple(pieces))


def _days_known(session: Session) -> tuple[int | None, int | None]:
    first, last = (  # one each: SQLite takes one step in the index for it
        session.execute(select(end(CountRow.period)).where(CountRow.period > periods.FIRST_DAY)).scalar()
        for end in (func.min, func.max)
    )
    return first, last


def midnight(day: date) -> datetime:
    """-> the moment at which a day begins, in UTC."""
    return datetime.combine(day, time(), UTC)


def _whole_days(since: datetime | None, until: datetime | None) -> tuple[date | None, date | None]:
    """-> the first day that lies in this time as a whole, and the first after it that does not."""
    begin = None
    if since is not None:
        begin = since.astimezone(UTC).date()
        if midnight(begin) < since and begin < date.max:
            begin += _DAY
    return begin, until.astimezone(UTC).date() if until is not None else None
