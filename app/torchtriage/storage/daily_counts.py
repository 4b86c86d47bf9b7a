"""Counts of verdicts, maintained so that pages about a year need not read a million incidents (docs/decisions/0010).

Counts change in the transaction that changes the incident and locks its row. Code that adds, changes or removes
verdicts calls `update` or `update_all` as its last step and only once, with the state before and after. All
transactions write rows of counts in the same order, so that they never wait for each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date
from functools import cache
from itertools import chain
from typing import Any, cast

from sqlalchemy import Table, bindparam, delete, func, select
from sqlalchemy.orm import Session

from torchtriage.domain.verdict import FAILED
from torchtriage.storage import periods
from torchtriage.storage.tables import CountRow, HostCountRow, IncidentRow

NONE = ""  # in a key column, if the incident has no cluster or entry
COST = 10_000  # units of cost per GPU hour
EVERY = True  # marks the rows that count all clusters together
_BATCH_SIZE = 40  # rows per statement

_Key = tuple[Any, ...]
_Changes = dict[_Key, list[int]]


@dataclass(frozen=True, slots=True)
class Counted:
    """What one verdict adds to the counts. `day` is in UTC; `host` is the host on which the run failed."""

    day: date
    cluster: str
    outcome: str
    entry: str
    host: str | None
    hardware: bool
    cost: int


class _Kept:
    """A table of counts and its prepared statements."""

    def __init__(self, row: type[CountRow] | type[HostCountRow]) -> None:
        table = cast(Table, row.__table__)
        self.name = table.name
        self.keys = [column.name for column in table.primary_key]
        self.sums = [column.name for column in table.columns if not column.primary_key]
        of_key = [table.c[key] == bindparam(f"of_{key}") for key in self.keys]
        self._clear = delete(table).where(*of_key, table.c.count == 0)

    def change(self, session: Session, changes: _Changes) -> None:
        """Adds numbers to the sums of rows, and deletes rows whose count becomes 0."""
        rows = sorted((key, sums) for key, sums in changes.items() if any(sums))
        connection = session.connection()
        mark = "?" if connection.dialect.name == "sqlite" else "%s"
        for start in range(0, len(rows), _BATCH_SIZE):
            some = rows[start : start + _BATCH_SIZE]
            values = tuple(chain.from_iterable((*key, *sums) for key, sums in some))
            connection.exec_driver_sql(_adding(self, mark, len(some)), values)
        fewer = [
            {f"of_{name}": part for name, part in zip(self.keys, key, strict=True)}
            for key, (count, *_) in rows
            if count < 0
        ]
        if fewer:
            connection.execute(self._clear, fewer)


@cache
def _adding(kept: _Kept, mark: str, rows: int) -> str:
    """Returns one statement for this many rows, valid on both databases; `mark` is the placeholder of a value."""
    names = [*kept.keys, *kept.sums]
    row = f"({', '.join(mark for _ in names)})"
    added = ", ".join(f"{name} = {kept.name}.{name} + excluded.{name}" for name in kept.sums)
    return (
        f"INSERT INTO {kept.name} ({', '.join(names)}) VALUES {', '.join(row for _ in range(rows))} "
        f"ON CONFLICT ({', '.join(kept.keys)}) DO UPDATE SET {added}"
    )


_COUNTS, _HOSTS = _Kept(CountRow), _Kept(HostCountRow)


def of(row: IncidentRow) -> Counted | None:
    """Returns what an incident adds to the counts, or None if it has no verdict."""
    if row.outcome is None:
        return None
    day = row.received_at.astimezone(UTC).date()
    host = row.host if row.outcome in FAILED else None
    cost = round((row.gpu_hours or 0.0) * COST)
    return Counted(day, row.cluster or NONE, row.outcome, row.entry or NONE, host, bool(row.hardware), cost)


def update(session: Session, before: Counted | None, after: Counted | None) -> None:
    """Subtracts what an incident added before from the counts, and adds what it adds now."""
    update_all(session, [(before, after)])


def update_all(session: Session, moves: Iterable[tuple[Counted | None, Counted | None]]) -> None:
    """Like `update` for several incidents, with as many statements as for one."""
    counts: _Changes = defaultdict(lambda: [0, 0])
    hosts: _Changes = defaultdict(lambda: [0, 0, 0])
    for before, after in moves:
        for counted, sign in ((before, -1), (after, 1)):
            if counted is not None:
                _add(counts, hosts, counted, sign)
    _COUNTS.change(session, counts)
    _HOSTS.change(session, hosts)


def of_entry(session: Session, entry: str, since: date) -> tuple[int, dict[str, int]]:
    """Returns the number of verdicts that name the entry, and their number on each day from `since` on (key:
    `2026-05-01`)."""
    theirs = (CountRow.entry == entry, CountRow.every == EVERY)
    whole = select(func.coalesce(func.sum(CountRow.count), 0)).where(CountRow.period < periods.FIRST_DAY, *theirs)
    days = select(CountRow.period, func.sum(CountRow.count)).where(
        CountRow.period >= periods.day_period(since), *theirs
    )
    found = session.execute(days.group_by(CountRow.period))
    return int(session.execute(whole).scalar_one()), {periods.period_name(day): int(count) for day, count in found}


def _add(counts: _Changes, hosts: _Changes, counted: Counted, sign: int) -> None:
    for period in (periods.month_period(counted.day), periods.day_period(counted.day)):
        for every, cluster in ((False, counted.cluster), (EVERY, NONE)):
            _sum(counts[period, every, cluster, counted.outcome, counted.entry], sign, 1, counted.cost)
        if counted.host is not None:
            _sum(hosts[period, counted.host, counted.cluster], sign, 1, int(counted.hardware), counted.cost)


def _sum(sums: list[int], sign: int, *added: int) -> None:
    for at, number in enumerate(added):
        sums[at] += sign * number
