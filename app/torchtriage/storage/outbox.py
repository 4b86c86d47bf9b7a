"""Messages to send, in the database. Each function is one step of the caller's transaction.

An item is added in the transaction of the change that it reports. A sender leases an item (`claim`) and renews the
lease (`renew`). If its process dies, the lease ends and another takes the item. Each channel gets one message at a
time, at its own pace. A clock that was set back delays nothing: times too far in the future count as due.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, func, or_, select, update
from sqlalchemy.orm import Session

from torchtriage.domain.incident import State
from torchtriage.domain.notice import OutboxItem, SendState
from torchtriage.errors import NotFound
from torchtriage.storage.database import insert, lock
from torchtriage.storage.pagination import Page, number_of, piece, place
from torchtriage.storage.tables import IncidentRow, LaneRow, OutboxRow

_UNSYNCHRONIZED = {"synchronize_session": False}
_MAX_PROBLEM_LENGTH = 500
MAX_HOLD = timedelta(minutes=5)  # maximum pause of a channel; a longer one was set before the clock was set back
# Maximum difference between the clocks of two machines; a later put_at was set by a wrong clock.
_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A new item of the outbox."""

    key: str
    kind: str
    channel: str
    incident: str | None = None
    group: str | None = None
    detail: dict[str, Any] | None = None
    state: SendState = SendState.READY


def put(session: Session, wanted: Wanted, now: datetime, delay: float = 0) -> bool:
    """Adds an item, due in `delay` seconds. Returns False if its key exists already."""
    row = {
        "key": wanted.key,
        "kind": wanted.kind,
        "channel": wanted.channel,
        "incident_number": number_of(wanted.incident) if wanted.incident else None,
        "group_number": number_of(wanted.group) if wanted.group else None,
        "detail": wanted.detail or {},
        "state": wanted.state,
        "tries": 0,
        "put_at": now,
        "due_at": now + timedelta(seconds=delay),
    }
    putting = insert(session, OutboxRow).values(row).on_conflict_do_nothing(index_elements=["key"])
    return session.execute(putting.returning(OutboxRow.number)).scalar_one_or_none() is not None


def put_for_verdict(session: Session, wanted: Wanted, now: datetime) -> None:
    """Adds an item that is due when the incident is triaged or failed; at once if it is already."""
    # Locked, so that a verdict stored meanwhile does not leave the item waiting.
    query = select(IncidentRow.state).where(IncidentRow.number == number_of(wanted.incident or ""))
    state = session.execute(query.with_for_update()).scalar_one_or_none()
    if state is not None:
        ready = SendState.READY if State(state).final else SendState.WAITING
        put(session, replace(wanted, state=ready), now)


def is_coming(session: Session, kind: str, channel: str, group: str) -> bool:
    """Returns whether an unsent item exists that will report the group as this transaction leaves it."""
    query = select(OutboxRow.number).where(
        OutboxRow.group_number == number_of(group),
        OutboxRow.kind == kind,
        OutboxRow.channel == channel,
        OutboxRow.state == SendState.READY,
        OutboxRow.tries == 0,
    )
    # Locked, so that nobody sends it before this transaction's changes are visible.
    return session.execute(query.limit(1).with_for_update()).scalar_one_or_none() is not None


def release(session: Session, incident: str, now: datetime) -> None:
    """waiting → ready, for items that wait for this incident's verdict."""
    waiting = [OutboxRow.incident_number == number_of(incident), OutboxRow.state == SendState.WAITING]
    _change(session, waiting, {"state": SendState.READY, "due_at": now})


def withdraw(session: Session, incident: str, kind: str) -> bool:
    """Deletes items of one kind about an incident that nobody has begun to send. Returns whether there were any."""
    own = [OutboxRow.incident_number == number_of(incident), OutboxRow.kind == kind]
    untouched = [OutboxRow.state == SendState.READY, OutboxRow.tries == 0]
    gone = delete(OutboxRow).where(*own, *untouched).returning(OutboxRow.number)
    return bool(session.execute(gone, execution_options=_UNSYNCHRONIZED).scalars().all())


def move(session: Session, incident: int, group: int) -> None:
    """Moves an incident's items to another group. Otherwise they would be deleted with the old group."""
    moving = update(OutboxRow).where(OutboxRow.incident_number == incident, OutboxRow.group_number.is_not(None))
    session.execute(moving.values(group_number=group), execution_options=_UNSYNCHRONIZED)


def is_due(session: Session, now: datetime) -> bool:
    """Returns whether there is anything to claim."""
    return session.execute(select(OutboxRow.number).where(*_due(now)).limit(1)).scalar_one_or_none() is not None


def claim(
    session: Session, now: datetime, seconds: float, no_lane: Collection[str] = (), but: Collection[str] = ()
) -> OutboxItem | None:
    """Leases and returns the oldest due item for `seconds`, and pauses its channel for as long.

    Items of kinds in `no_lane` do not pause their channel. Items of kinds in `but` are skipped.
    """
    lock(session, "outbox")  # otherwise two processes could take two items of one channel at the same moment
    oldest = select(OutboxRow).where(*_due(now), OutboxRow.kind.not_in(but)).order_by(OutboxRow.number).limit(1)
    row = session.execute(oldest.with_for_update(skip_locked=True)).scalar_one_or_none()
    if row is None:
        return None
    row.tries += 1
    row.due_at = now + timedelta(seconds=seconds)
    if row.put_at > now + _SKEW:
        row.put_at = now  # otherwise it would be due again at once and never be given up
    session.flush()
    if row.kind not in no_lane:
        pause_channel(session, row.channel, now, seconds)
    return _item(row)


def renew(session: Session, item: OutboxItem, now: datetime, seconds: float, lane: bool) -> OutboxItem:
    """Extends the lease of an item, and its channel's pause if it has one. Returns the item with its new lease;
    unchanged if it ended, was postponed, or was taken by another."""
    until = now + timedelta(seconds=seconds)
    if not _change(session, [*_claim_conditions(item), OutboxRow.due_at == item.due_at], {"due_at": until}):
        return item
    if lane:
        pause_channel(session, item.channel, now, seconds)
    return replace(item, due_at=until)


def pause_channel(session: Session, channel: str, now: datetime, seconds: float) -> None:
    """Sends nothing to a channel for `seconds`, at most MAX_HOLD."""
    until = now + min(timedelta(seconds=seconds), MAX_HOLD)
    putting = insert(session, LaneRow).values(channel=channel, free_at=until)
    session.execute(putting.on_conflict_do_update(index_elements=["channel"], set_={"free_at": until}))


def end(session: Session, item: OutboxItem, state: SendState, now: datetime, problem: str | None = None) -> bool:
    """ready → sent or failed. Deletes the item's detail. Returns False if another has taken the item meanwhile."""
    changes = {"state": state, "ended_at": now, "problem": _short(problem), "detail": {}}
    return _change(session, _claim_conditions(item), changes)


def postpone(session: Session, item: OutboxItem, until: datetime, problem: str) -> bool:
    """Postpones an item. Returns False if another has taken it meanwhile."""
    return _change(session, _claim_conditions(item), {"due_at": until, "problem": _short(problem)})


def again(session: Session, item_id: str, now: datetime) -> OutboxItem:
    """failed → ready. Returns the item. Raises NotFound if there is no such failed item."""
    failed = [OutboxRow.number == number_of(item_id), OutboxRow.state == SendState.FAILED]
    changes = {"state": SendState.READY, "due_at": now, "put_at": now, "ended_at": None, "tries": 0}
    if not _change(session, failed, changes):
        raise NotFound("no such failed notice", notice=item_id[:100])
    return _item(session.execute(select(OutboxRow).where(failed[0])).scalar_one())


def listed(session: Session, state: SendState | None, limit: int, cursor: str | None) -> Page[OutboxItem]:
    """Returns a page of items, newest first. Raises BadCursor."""
    at, number = place(cursor, 1), OutboxRow.number
    query = select(OutboxRow).order_by(number if at and at.back else number.desc()).limit(limit + 1)
    if state is not None:
        query = query.where(OutboxRow.state == state)
    if at is not None:
        query = query.where(number > at.key[0] if at.back else number < at.key[0])
    page = piece(session.execute(query).scalars().all(), limit, at, lambda row: (row.number,))
    return Page(tuple(map(_item, page.items)), page.next, page.previous)


def counted(session: Session) -> dict[tuple[str, str], int]:
    """Returns the number of items by channel and state."""
    query = select(OutboxRow.channel, OutboxRow.state, func.count()).group_by(OutboxRow.channel, OutboxRow.state)
    return {(channel, state): count for channel, state, count in session.execute(query)}


def latest(session: Session, kind: str, incident: str) -> OutboxItem | None:
    """Returns the latest item of a kind about an incident, or None."""
    query = select(OutboxRow).where(OutboxRow.incident_number == number_of(incident), OutboxRow.kind == kind)
    row = session.execute(query.order_by(OutboxRow.number.desc()).limit(1)).scalar_one_or_none()
    return _item(row) if row is not None else None


def latest_of_group(session: Session, group: str, channel: str) -> OutboxItem | None:
    """Returns the latest item for a channel about a group, or None."""
    query = select(OutboxRow).where(OutboxRow.group_number == number_of(group), OutboxRow.channel == channel)
    row = session.execute(query.order_by(OutboxRow.number.desc()).limit(1)).scalar_one_or_none()
    return _item(row) if row is not None else None


def forget_ended(session: Session, before: datetime) -> int:
    """Deletes items that ended before a time, and returns how many."""
    gone = delete(OutboxRow).where(OutboxRow.ended_at < before).returning(OutboxRow.number)
    return len(session.execute(gone, execution_options=_UNSYNCHRONIZED).scalars().all())


def _due(now: datetime) -> list[ColumnElement[bool]]:
    held = LaneRow.free_at.between(now, now + MAX_HOLD)
    busy = exists().where(LaneRow.channel == OutboxRow.channel, held)
    due = or_(OutboxRow.due_at <= now, OutboxRow.put_at > now + _SKEW)
    return [OutboxRow.state == SendState.READY, due, ~busy]


def _claim_conditions(item: OutboxItem) -> list[ColumnElement[bool]]:
    number = OutboxRow.number == number_of(item.id)
    return [number, OutboxRow.state == SendState.READY, OutboxRow.tries == item.tries]


def _change(session: Session, conditions: list[ColumnElement[bool]], changes: dict[str, Any]) -> bool:
    changing = update(OutboxRow).where(*conditions).values(changes).returning(OutboxRow.number)
    return bool(session.execute(changing, execution_options=_UNSYNCHRONIZED).scalars().all())


def _short(problem: str | None) -> str | None:
    return problem[:_MAX_PROBLEM_LENGTH].replace("\0", "") if problem else None


def _item(row: OutboxRow) -> OutboxItem:
    return OutboxItem(
        id=str(row.number),
        key=row.key,
        kind=row.kind,
        channel=row.channel,
        state=SendState(row.state),
        tries=row.tries,
        put_at=row.put_at,
        due_at=row.due_at,
        incident=str(row.incident_number) if row.incident_number else None,
        group=str(row.group_number) if row.group_number else None,
        detail=row.detail,
        ended_at=row.ended_at,
        problem=row.problem,
    )
