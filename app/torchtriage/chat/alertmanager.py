"""Alerts for an Alertmanager, or what takes its API: one alert a group, which fires until the group is resolved."""

from __future__ import annotations

import base64
import json
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
_TESTED = timedelta(minutes=5)  # for which a test fires
_VALUE, _SUMMARY, _DESCRIPTION = 200, 200, 3000  # characters


class Alertmanager:
    """`user` is that of basic authentication, with `token` as its password; without one the token is a bearer token.

    An alert fires until its group is resolved, ignored or muted, or until no incident came for `hours`. Its labels are
    what an Alertmanager knows it by, so those that it was sent with first are kept as the group's thread.
    """

    pace = 0.0
    hears = frozenset({NoticeKind.REPEAT, NoticeKind.STATUS})

    def __init__(
        self, outgoing: Outgoing, url: str, hours: int, labels: dict[str, str], token: str = "", user: str = ""
    ) -> None:
        self._outgoing = outgoing
        self._url = f"{url.rstrip('/')}/api/v2/alerts"
        self._fires = timedelta(hours=hours)
        self._labels = labels
        pair = base64.b64encode(f"{user}:{token}".encode()).decode()
        authorization = f"Basic {pair}" if user else f"Bearer {token}" if token else ""
        self._headers = {"Authorization": authorization} if authorization else {}

    def send(
        self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None
    ) -> Thread | None:
        """-> the thread, which holds the alert's labels. Raises Undelivered."""
        now = datetime.now(UTC)
        if notice.kind is NoticeKind.TEST:
            self._post({"alertname": TEST, **self._labels}, notice, now, now + _TESTED)
            return None
        if thread is None and notice.kind in self.hears:
            return None
        labels = json.loads(thread.ts) if thread else self._labels | _labels_of(notice)
        over = notice.status in (GroupStatus.RESOLVED, GroupStatus.IGNORED) or notice.muted_until is not None
        began = min(_began(notice) or now, now)
        self._post(labels, notice, began, now if over else now + self._fires)
        return thread or Thread("alertmanager", json.dumps(labels, sort_keys=True), notice.incident)

    def _post(self, labels: dict[str, str], notice: Notice, began: datetime, ends: datetime) -> None:
        test = notice.kind is NoticeKind.TEST
        said = [word(notice.lang, "tested")] if test else paragraphs(notice)
        alert = {
            "labels": labels,
            "annotations": {
                "summary": headline(notice) if test else plain(notice.title, _SUMMARY),
                "description": "\n".join(said)[:_DESCRIPTION],
                "incident": notice.url,
            },
            "startsAt": iso(began),
            "endsAt": iso(ends),
            "generatorURL": notice.group_url or notice.url,
        }
        refuse(self._outgoing.call("POST", self._url, [alert], self._headers), "Alertmanager")


def _labels_of(notice: Notice) -> dict[str, str]:
    """-> what tells this alert from others, and what routes of an Alertmanager can ask for; none is empty."""
    known = {
        "alertname": ALERT,
        "torchtriage_group": notice.group,
        "outcome": notice.outcome,
        "entry": notice.entry,
        "cluster": notice.cluster,
    }
    return {name: plain(value, _VALUE) for name, value in known.items() if value and value.strip()}


def _began(notice: Notice) -> datetime | None:
    """-> when the group was first seen, or came back after it had been resolved."""
    group: dict[str, Any] = notice.document.get("group") or {}
    told = group.get("regressed_at") or group.get("first_seen")
    return datetime.fromisoformat(told) if isinstance(told, str) else None
