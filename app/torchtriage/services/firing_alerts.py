"""Sends firing alerts to Alertmanagers again, as their API requires. A restarted Alertmanager knows no alerts."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import UTC, datetime

from torchtriage.chat.alertmanager import Alertmanager
from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.domain.notice import Notice, NoticeKind, Thread
from torchtriage.errors import NotFound
from torchtriage.services.notices import read_notice
from torchtriage.services.service import Service
from torchtriage.storage import alerts

log = logging.getLogger(__name__)
_MAX_COUNT = 200  # maximum groups per Alertmanager, latest seen first


def send_firing_again(service: Service, now: datetime | None = None) -> None:
    """Sends one request to each Alertmanager. Alerts that it does not take are sent with the next call. Raises
    StorageUnavailable."""
    now = now or datetime.now(UTC)
    for name, sender in service.channels.senders.items():
        if not isinstance(sender, Alertmanager):
            continue
        try:
            sender.send_again(_firing(service, name, now - sender.fires))
        except Undelivered as problem:
            log.warning("alerts of %s are not sent again now: %s", name, problem.message)


def _firing(service: Service, channel: str, since: datetime) -> list[tuple[Notice, Thread]]:
    found = []
    with service.database.reading() as session:
        for group, thread in alerts.firing(session, channel, since, _MAX_COUNT):
            with suppress(NotFound):  # the incident was deleted meanwhile
                about = thread.incident or alerts.latest(session, group) or ""
                notice = read_notice(session, service, NoticeKind.REPEAT, about, {})
                if notice.muted_until is None:
                    found.append((notice, thread))
    return found
