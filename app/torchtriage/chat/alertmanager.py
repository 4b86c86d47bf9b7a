"""Sends alerts to an Alertmanager or a service with the same API. Each group is one alert, which fires until the group
is resolved."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from torchtriage.chat.outbound_http import Outgoing, refuse
from torchtriage.chat.plain_text import paragraphs
from torchtriage.chat.sanitize import plain
from torchtriage.chat.wording import headline, word
from torchtriage.domain.group import GroupStatus
from torchtriage.domain.notice import Notice, NoticeKind, Thread
from torchtriage.domain.timestamps import iso

ALERT, TEST = "TrainingRunFailed", "TorchtriageTest"
_TESTED = timedelta(minutes=5)  # how long a test alert fires
_VALUE, _SUMMARY, _DESCRIPTION = 200, 200, 3000  # maximum characters


class Alertmanager:
    """Sends alerts to one Alertmanager.

    With `user`, `token` is the password of basic authentication; without, it is a bearer token. An alert fires until
    its group is resolved, ignored or muted, or until no incident came for `hours`. An Alertmanager identifies an alert
    by its labels, so the first labels are kept as the group's thread.
    """

    pace = 0.0
    extra_notices = frozenset({NoticeKind.REPEAT, NoticeKind.STATUS})

    def __init__(
        self, outgoing: Outgoing, url: str, hours: int, labels: dict[str, str], token: str = "", user: str = ""
    ) -> None:
        self._outgoing = outgoing
        self._url = f"{url.rstrip('/')}/api/v2/alerts"
        self.fires = timedelta(hours=hours)
        self._labels = labels
        pair = base64.b64encode(f"{user}:{token}".encode()).decode()
        authorization = f"Basic {pair}" if user else f"Bearer {token}" if token else ""
        self._headers = {"Authorization": authorization} if authorization else {}

    def send(
        self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None
    ) -> Thread | None:
        """Returns the thread, which contains the alert's labels. Raises Undelivered."""
        now = datetime.now(UTC)
        if notice.kind is NoticeKind.TEST:
            self._post([_alert({"alertname": TEST, **self._labels}, notice, now, now + _TESTED)])
            return None
        if thread is None and notice.kind in self.extra_notices:
            return None
        labels = json.loads(thread.ts) if thread else self._labels | _labels_of(notice)
        over = notice.status in (GroupStatus.RESOLVED, GroupStatus.IGNORED) or notice.muted_until is not None
        began = min(_moment(notice, "regressed_at", "first_seen") or now, now)
        self._post([_alert(labels, notice, began, now if over else now + self.fires)])
        return thread or Thread("alertmanager", json.dumps(labels, sort_keys=True), notice.incident)

    def send_again(self, firing: Sequence[tuple[Notice, Thread]]) -> None:
        """Sends all firing alerts again, because an Alertmanager that was restarted knows none. Raises Undelivered."""
        now = datetime.now(UTC)
        alerts = []
        for notice, thread in firing:
            ends = (_moment(notice, "last_seen") or now) + self.fires
            began = min(_moment(notice, "regressed_at", "first_seen") or now, now)
            if ends > now:
                alerts.append(_alert(json.loads(thread.ts), notice, began, ends))
        if alerts:
            self._post(alerts)

    def _post(self, alerts: list[dict[str, Any]]) -> None:
        refuse(self._outgoing.call("POST", self._url, alerts, self._headers), "Alertmanager")


def _alert(labels: dict[str, str], notice: Notice, began: datetime, ends: datetime) -> dict[str, Any]:
    test = notice.kind is NoticeKind.TEST
    texts = [word(notice.lang, "tested")] if test else paragraphs(notice)
    return {
        "labels": labels,
        "annotations": {
            "summary": headline(notice) if test else plain(notice.title, _SUMMARY),
            "description": "\n".join(texts)[:_DESCRIPTION],
            "incident": notice.url,
        },
        "startsAt": iso(began),
        "endsAt": iso(ends),
        "generatorURL": notice.group_url or notice.url,
    }


def _labels_of(notice: Notice) -> dict[str, str]:
    """Returns the labels that identify the alert and that routes can use, without empty ones."""
    known = {
        "alertname": ALERT,
        "torchtriage_group": notice.group,
        "outcome": notice.outcome,
        "entry": notice.entry,
        "cluster": notice.cluster,
    }
    return {name: plain(value, _VALUE) for name, value in known.items() if value and value.strip()}


def _moment(notice: Notice, *names: str) -> datetime | None:
    """Returns the first of these times that the group has."""
    group: dict[str, Any] = notice.document.get("group") or {}
    value = next((group[name] for name in names if isinstance(group.get(name), str)), None)
    return datetime.fromisoformat(value) if value else None
