"""Selects the incidents of a list page: takes filters, search words and a cursor, returns incident numbers in order.

Lists are sorted by time of receipt, newest first. Every filter has an index in that order. One filter leads: its
incidents are read in order and checked against the other filters and words until the page is full, which usually
happens at once. If few match, the filter with the fewest incidents leads, rare words are looked up in their own index,
and months without such verdicts are skipped. A page ends after LOOKED_AT incidents even if it is not full, and the next
page continues there. So every query is fast, and none is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, Select, false, func, literal, or_, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session

from torchtriage.domain.dashboard import UNKNOWN
from torchtriage.domain.incident import IncidentFilter
from torchtriage.domain.verdict import FAILED
from torchtriage.storage import full_text_search, groups, periods
from torchtriage.storage.pagination import Page, Place, microseconds, moment_at, number_of, piece, place
from torchtriage.storage.periods import midnight
from torchtriage.storage.tables import CountRow, FeedbackRow, IncidentRow, Moment

AT_FIRST = 2_000  # incidents checked before a faster way is looked for
LOOKED_AT = 20_000  # maximum incidents checked per page
FEW = 5_000  # maximum incidents with the search words that are looked up one by one

_AT, _NUMBER = IncidentRow.received_at, IncidentRow.number
_Fits = Callable[[ColumnElement[Any]], ColumnElement[bool]]
RETRIES = ("retry", "retry-elsewhere")  # the meaning of the filter value "any"
_NOT_IN_PATHS = frozenset('"\\')  # characters that SQLite does not accept in a JSON path
# Filters that usually have the fewest incidents come first.
_FILTERS: dict[str, InstrumentedAttribute[Any]] = {
    "group": IncidentRow.group_number,
    "host": IncidentRow.host,
    "user": IncidentRow.user,
    "entry": IncidentRow.entry,
    "cluster": IncidentRow.cluster,
    "state": IncidentRow.state,
    "outcome": IncidentRow.outcome,
}


class Listed(NamedTuple):
    number: int
    received_at: datetime


@dataclass(frozen=True, slots=True)
class _ListQuery:
    """A query in parts: filter values by column; filters without an index, each a column and a function that makes its
    condition; conditions of time and cursor; search words; the direction."""

    values: dict[InstrumentedAttribute[Any], Any]
    more: list[tuple[ColumnElement[Any], _Fits]]
    times: list[ColumnElement[bool]]
    words: str
    back: bool

    @property
    def order(self) -> tuple[ColumnElement[Any], ...]:
        return (_AT.asc(), _NUMBER.asc()) if self.back else (_AT.desc(), _NUMBER.desc())

    def of(self, lead: InstrumentedAttribute[Any] | None, *columns: Any) -> Select[Any]:
        """Selects the incidents of the leading filter in the list's order."""
        leading = [lead == self.values[lead]] if lead is not None else []
        return select(*columns).where(*leading, *self.times).order_by(*self.order)


def listed(session: Session, wanted: IncidentFilter, limit: int, cursor: str | None) -> Page[Listed]:
    """Returns a page of matching incidents, newest first. It can have fewer than `limit` although more exist, because a
    page checks at most LOOKED_AT incidents. Raises BadCursor."""
    at = place(cursor, 2)
    if wanted.group is not None:
        wanted = replace(wanted, group=str(groups.number_now(session, wanted.group)))
    asked = _list_query(wanted, at)
    lead = next(iter(asked.values), None)
    found, end = _walk(session, asked, lead, limit, AT_FIRST)
    if end is not None:
        narrowed = _narrowed(session, wanted)
        if narrowed is None:
            found, end = [], None
        else:
            found, end = _read_list(session, _list_query(narrowed, at), limit)
    return piece(found, limit, at, _key, end and _key(end))


def _read_list(session: Session, asked: _ListQuery, limit: int) -> tuple[list[Listed], Listed | None]:
    few = full_text_search.some(session, asked.words, FEW + 1) if asked.words else None
    if few is not None and len(few) <= FEW:
        conditions = [column == value for column, value in asked.values.items()]
        conditions += [fits(column) for column, fits in asked.more]
        query = select(_NUMBER, _AT).where(_NUMBER.in_(few), *conditions, *asked.times).order_by(*asked.order)
        return [Listed(*row) for row in session.execute(query.limit(limit + 1))], None
    lead = min(asked.values, key=lambda column: _size(session, asked, column), default=None)
    return _walk(session, asked, lead, limit, LOOKED_AT)


def _walk(
    session: Session, asked: _ListQuery, lead: InstrumentedAttribute[Any] | None, limit: int, most: int
) -> tuple[list[Listed], Listed | None]:
    """Checks at most `most` incidents of the leading filter. Returns those that match (one more than `limit` if there
    are more), and the incident at which it stopped early, or None."""
    others = [column for column in asked.values if column is not lead]
    more = [column.label(f"more{at}") for at, (column, _) in enumerate(asked.more)]
    # The limit stops the planner from merging this subquery, so its rows come one by one and in order.
    walked = asked.of(lead, _NUMBER, _AT, *others, *more).limit(most).subquery()
    query = select(walked.c.number, walked.c.received_at)
    query = query.where(*(walked.c[column.key] == asked.values[column] for column in others))
    query = query.where(*(fits(walked.c[column.name]) for column, (_, fits) in zip(more, asked.more, strict=True)))
    if asked.words:
        query = query.where(full_text_search.has(walked.c.number, asked.words))
    found = [Listed(*row) for row in session.execute(query.limit(limit + 1))]
    if len(found) > limit:
        return found, None
    end = session.execute(asked.of(lead, _NUMBER, _AT).offset(most - 1).limit(1)).one_or_none()
    return found, Listed(*end) if end is not None else None


def _size(session: Session, asked: _ListQuery, column: InstrumentedAttribute[Any]) -> int:
    """Returns the number of a filter's incidents, at most LOOKED_AT."""
    some = asked.of(column, _NUMBER).limit(LOOKED_AT).subquery()
    return session.execute(select(func.count()).select_from(some)).scalar_one()


def _narrowed(session: Session, wanted: IncidentFilter) -> IncidentFilter | None:
    """Returns the filter limited to the months that have such verdicts according to the counts, or None if there are
    none."""
    if wanted.outcome is None and wanted.entry is None:
        return wanted  # incidents without a verdict may match, too
    known = {CountRow.outcome: wanted.outcome, CountRow.entry: wanted.entry, CountRow.cluster: wanted.cluster}
    theirs = [column == value for column, value in known.items() if value is not None]
    every = wanted.cluster is None
    query = select(func.min(CountRow.period), func.max(CountRow.period))
    query = query.where(CountRow.period < periods.FIRST_DAY, CountRow.every == every, *theirs)
    first, last = cast(tuple[int | None, int | None], session.execute(query).one())
    if first is None or last is None:
        return None
    since, until = _first_of(first), _first_of(last + 1)
    return replace(wanted, since=max(since, wanted.since or since), until=min(until, wanted.until or until))


def _first_of(month: int) -> datetime:
    year, month = divmod(month - 1, 100)  # month 13 is January of the next year
    return midnight(date(year + month // 12, month % 12 + 1, 1))


def _list_query(wanted: IncidentFilter, at: Place | None) -> _ListQuery:
    given = {column: getattr(wanted, name) for name, column in _FILTERS.items()}
    values = {column: value for column, value in given.items() if value is not None}
    if wanted.group is not None:
        values[IncidentRow.group_number] = number_of(wanted.group)
    times: list[ColumnElement[bool]] = []
    if wanted.since is not None:
        times.append(wanted.since <= _AT)
    if wanted.until is not None:
        times.append(wanted.until > _AT)
    if at is not None:
        here = tuple_(literal(moment_at(at.key[0]), Moment()), literal(at.key[1]))
        times.append(tuple_(_AT, _NUMBER) > here if at.back else tuple_(_AT, _NUMBER) < here)
    words = wanted.q if wanted.q and full_text_search.asked(wanted.q) else ""
    return _ListQuery(values, list(_more(wanted)), times, words, at is not None and at.back)


def _more(wanted: IncidentFilter) -> Iterator[tuple[ColumnElement[Any], _Fits]]:
    """Yields the conditions that cannot lead, which are checked for each incident."""
    row = IncidentRow
    for name in ("queue", "image"):
        if (value := getattr(wanted, name)) is not None:
            yield row.job[name].as_string(), _equal(value)
    if wanted.label is not None:
        key, _, value = wanted.label.partition(":")
        plain = not set(key) & _NOT_IN_PATHS
        yield row.job["labels"][key if plain else ""].as_string(), _equal(value) if plain else lambda _: false()
    if wanted.retry is not None:
        yield row.advice.expression, _in(RETRIES if wanted.retry == "any" else (wanted.retry,))
    if wanted.failed:
        yield row.outcome.expression, _in(FAILED)
    if wanted.feedback is not None:
        with_feedback = select(FeedbackRow.incident_number).where(FeedbackRow.verdict == wanted.feedback)
        yield row.number.expression, lambda column: with_feedback.where(FeedbackRow.incident_number == column).exists()
    yield from _of_cause(wanted)


def _of_cause(wanted: IncidentFilter) -> Iterator[tuple[ColumnElement[Any], _Fits]]:
    areas = wanted.area.split(",") if wanted.area is not None else []
    if UNKNOWN in (wanted.owner, *areas):
        yield from _no_entry()
    if wanted.entries is not None and wanted.owner != UNKNOWN:
        yield IncidentRow.entry.expression, _in(sorted(wanted.entries))
    if areas and UNKNOWN not in areas:
        yield IncidentRow.entry.expression, _of_areas(areas)


def _no_entry() -> Iterator[tuple[ColumnElement[Any], _Fits]]:
    yield IncidentRow.entry.expression, lambda column: column.is_(None)
    yield IncidentRow.outcome.expression, _in(FAILED)


def _equal(value: str) -> _Fits:
    return lambda column: column == value


def _in(values: Sequence[str]) -> _Fits:
    return lambda column: column.in_(values)


def _of_areas(areas: list[str]) -> _Fits:
    """Does not use LIKE, in which some characters of names have another meaning."""
    return lambda column: or_(*(func.substr(column, 1, len(area) + 1) == f"{area}." for area in areas))


def _key(row: Listed) -> tuple[int, int]:
    return microseconds(row.received_at), row.number
