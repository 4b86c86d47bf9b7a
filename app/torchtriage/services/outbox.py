"""Delivers the outbox: sends due messages to other services. Also lists its items."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial

from sqlalchemy.orm import Session

from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.domain.access import AuditLine
from torchtriage.domain.notice import Notice, NoticeKind, OutboxItem, SendState, Thread
from torchtriage.errors import NotFound
from torchtriage.services.explanation import EXPLAIN, explain
from torchtriage.services.notices import read_notice, test_notice
from torchtriage.services.service import Service
from torchtriage.services.slack_jobs import ANSWER, REPLY, TAKE, Keep, answer, reply, take
from torchtriage.storage import alerts, audit_log, outbox, slack_state
from torchtriage.storage.database import StorageUnavailable
from torchtriage.storage.pagination import Page

log = logging.getLogger(__name__)
LEASE = 30  # seconds; if a process ends while it sends an item, another may take the item after this time
NO_LANE = (TAKE, ANSWER, REPLY, EXPLAIN)
_SOONEST, _LATEST = 2.0, 3600.0  # seconds before the second try; maximum seconds between later ones
_TIMEOUT = timedelta(days=3)
_AGAIN = 2.0  # seconds before the next try to store the result of sending
_PAUSE = 60.0  # maximum seconds for which an unreachable channel gets no messages
_REQUESTS_KEPT = timedelta(days=2)  # Slack stops retrying after an hour

Work = Callable[[Service, OutboxItem], Keep]


def send_one(service: Service, now: datetime | None = None) -> bool:
    """Handles the next due item. Returns False if there is none. Raises StorageUnavailable."""
    item = claim(service, now or datetime.now(UTC))
    if item is None:
        return False
    work(service, item)
    return True


def claim(service: Service, now: datetime, but: Collection[str] = ()) -> OutboxItem | None:
    """Leases and returns a due item whose kind is not in `but`, or None. Nobody else handles it during the lease.

    Raises StorageUnavailable.
    """
    with service.database.reading() as session:
        if not outbox.is_due(session, now):
            return None
    with service.database.transaction() as session:
        return outbox.claim(session, now, LEASE, NO_LANE, but)


def renew(service: Service, items: Iterable[OutboxItem], now: datetime) -> list[OutboxItem]:
    """Extends the leases of claimed items, and returns the items. Raises StorageUnavailable."""
    with service.database.transaction(durable=False) as session:
        return [outbox.renew(session, item, now, LEASE, item.kind not in NO_LANE) for item in items]


def work(service: Service, item: OutboxItem, stopping: Callable[[float], bool] = lambda _: True) -> None:
    """Handles an item and stores the result. Raises StorageUnavailable.

    If the result cannot be stored, tries again until it can or until `stopping` returns True; it waits the given
    seconds. An item without a stored result blocks its channel until its lease ends, and then is sent again.
    """
    kinds: dict[str, Work] = {TAKE: take, ANSWER: answer, REPLY: reply, EXPLAIN: explain}
    try:
        keep = kinds.get(item.kind, _notify)(service, item)
    except Undelivered as problem:
        end = partial(_not_sent, service, item, problem)
    except NotFound as problem:
        end = partial(_not_sent, service, item, Undelivered(problem.message))
    except StorageUnavailable as problem:
        end = partial(_not_sent, service, item, Undelivered(problem.message, passing=True))
    else:
        end = partial(_sent, service, item, keep)
    while True:
        try:
            return end()
        except StorageUnavailable:
            if stopping(_AGAIN):
                raise


def send_test(service: Service, channel: str, by: str) -> None:
    """Sends a test message to a channel now. Raises NotFound and Undelivered."""
    sender = service.channels.senders.get(channel)
    if sender is None:
        raise NotFound("no such channel", channel=channel[:100])
    now = datetime.now(UTC)
    sender.send(test_notice(service), f"test {channel} {now.isoformat()}")
    with service.database.transaction() as session:
        audit_log.add(session, AuditLine(now, by, "test", f"channel {channel}", {}))


def list_outbox(
    service: Service, state: SendState | None = None, limit: int = 50, cursor: str | None = None
) -> Page[OutboxItem]:
    """Returns a page of items, newest first. Raises BadCursor."""
    with service.database.reading() as session:
        return outbox.listed(session, state, limit, cursor)


def count_outbox(service: Service) -> dict[tuple[str, str], int]:
    """Returns the number of items by channel and state."""
    with service.database.reading() as session:
        return outbox.counted(session)


def send_again(service: Service, item_id: str, by: str) -> OutboxItem:
    """Queues an item that failed for good again, and returns it. Raises NotFound."""
    now = datetime.now(UTC)
    with service.database.transaction() as session:
        audit_log.add(session, AuditLine(now, by, "send again", f"notice {item_id}", {}))
        return outbox.again(session, item_id, now)


def forget_sent(service: Service, now: datetime | None = None) -> int:
    """Deletes items that ended more than `outbox_days` days ago, and returns how many."""
    now = now or datetime.now(UTC)
    with service.database.transaction() as session:
        slack_state.forget_requests(session, now - _REQUESTS_KEPT)
        return outbox.forget_ended(session, now - timedelta(days=service.settings.outbox_days))


def _sent(service: Service, item: OutboxItem, keep: Keep) -> None:
    """Stores that an item was sent, together with the result of its work."""
    now = datetime.now(UTC)
    sender = service.channels.senders.get(item.channel)
    with service.database.transaction() as session:
        if outbox.end(session, item, SendState.SENT, now):
            keep(session)
        if sender and item.kind not in NO_LANE:
            outbox.pause_channel(session, item.channel, now, sender.pace)


def _notify(service: Service, item: OutboxItem) -> Keep:
    """Sends a notice. Returns a function that stores the thread. Raises Undelivered and NotFound."""
    sender = service.channels.senders.get(item.channel)
    if sender is None:
        raise Undelivered(f"channel {item.channel} no longer exists")
    with service.database.reading() as session:
        notice, thread, first = _read(session, service, item)
    found = sender.send(notice, item.key, thread, first)

    def keep(session: Session) -> None:
        if sender.extra_notices and item.group and found != thread:
            slack_state.keep_thread(session, item.group, item.channel, found)

    return keep


def _read(session: Session, service: Service, item: OutboxItem) -> tuple[Notice, Thread | None, Notice | None]:
    """Returns the notice, the group's thread, and the thread's first message as it should be now."""
    kind = NoticeKind(item.kind)
    thread = slack_state.thread_of(session, item.group, item.channel) if item.group else None
    first = None
    if kind in (NoticeKind.REPEAT, NoticeKind.STATUS):
        about = (thread and thread.incident) or (item.group and alerts.latest(session, item.group))
        if not about:
            raise NotFound("the group's incidents were deleted")
        first = read_notice(session, service, kind, about, {})
        return first, thread, first
    if item.incident is None:
        raise NotFound("the incident was deleted")
    return read_notice(session, service, kind, item.incident, item.detail), thread, first


def _not_sent(service: Service, item: OutboxItem, problem: Undelivered) -> None:
    """Postpones an item, or gives it up."""
    now = datetime.now(UTC)
    wait = problem.wait if problem.wait is not None else _backoff(item.tries)
    over = not problem.passing or now + timedelta(seconds=wait) > item.put_at + _TIMEOUT
    with service.database.transaction() as session:
        if over:
            outbox.end(session, item, SendState.FAILED, now, problem.message)
        else:
            outbox.postpone(session, item, now + timedelta(seconds=wait), problem.message)
        if item.kind not in NO_LANE:
            pause = 0.0 if not problem.passing else problem.wait if problem.wait is not None else min(wait, _PAUSE)
            outbox.pause_channel(session, item.channel, now, pause)
    log.log(
        logging.ERROR if over else logging.WARNING,
        "%s to %s %s: %s",
        item.kind,
        item.channel,
        "given up" if over else f"trying again in {wait:.0f} s",
        problem.message,
    )


def _backoff(tries: int) -> float:
    """Returns seconds. They double with each try and vary randomly, so that items do not all return at the
    same time."""
    return float(min(_LATEST, _SOONEST * 2 ** min(tries - 1, 20)) * random.uniform(0.75, 1.25))
